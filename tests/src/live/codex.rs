//! Codex CLI 0.169.0, working in the terminal's process or, if a setting requests it, in its daemon; and the
//! differences of older versions.

use std::fs;

use events::Provider;
use serde_json::json;

use super::{Agent, AgentVersion, Key, LiveAgent, QUESTION, Start};
use crate::models::{
    Api,
    responses::{self, delegate, wait},
    script::{Call, Script, Step, hold, say},
};

/// The first tested version with a daemon.
const HAS_DAEMON: AgentVersion = (0, 169, 0);
/// The first tested version that runs only hooks trusted by its user.
const TRUSTS_HOOKS: AgentVersion = (0, 150, 0);
/// The first version that runs hooks by default.
const HOOKS_BY_DEFAULT: AgentVersion = (0, 124, 0);

/// Codex CLI.
#[derive(Debug)]
pub struct Codex;

impl Agent for Codex {
    fn provider(&self) -> Provider {
        Provider::Codex
    }

    fn api(&self) -> Api {
        Api::Responses
    }

    fn prepare(&self, place: &LiveAgent) -> std::io::Result<Start> {
        let home = place.home.join(".codex");
        // Files that it creates next to its own must not be below the temporary directory it knows.
        let temporary = place.home.join("tmp");
        fs::create_dir_all(&temporary)?;
        let config = format!(
            r#"model = "gpt-6-sol"
model_provider = "scripted"
approval_policy = "on-request"
sandbox_mode = "workspace-write"
check_for_update_on_startup = false

[model_providers.scripted]
name = "scripted"
base_url = "{model}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"

[projects."{project}"]
trust_level = "trusted"

[features]
default_mode_request_user_input = true
{hooks}
[tui]
screen_reader_detection_done = true

[tui.model_availability_nux]
"gpt-6.1-sol" = 1
"#,
            model = place.model,
            hooks = if place.hooks && place.version < HOOKS_BY_DEFAULT { "codex_hooks = true\n" } else { "" },
            project = place.project.display(),
        );
        fs::write(home.join("config.toml"), config)?;
        let mut arguments = Vec::new();
        if place.version >= HAS_DAEMON && !place.daemon {
            arguments.push("--no-daemon".to_owned());
        }
        if place.hooks && place.version >= TRUSTS_HOOKS {
            // Otherwise it asks whether to trust the hooks.
            arguments.push("--dangerously-bypass-hook-trust".to_owned());
        }
        let environment = [
            ("CODEX_HOME", home.to_string_lossy().into_owned()),
            ("TMPDIR", temporary.to_string_lossy().into_owned()),
            ("SCRIPTED_KEY", "dummy".to_owned()),
        ];
        Ok(Start { arguments, environment: environment.map(|(name, value)| (name.to_owned(), value)).to_vec() })
    }

    fn ready(&self) -> &'static str {
        "(?m)^› "
    }

    fn dialog(&self) -> &'static str {
        "Would you like to run the following command"
    }

    fn key(&self, key: Key) -> &'static str {
        match key {
            Key::Approve => "y",
            Key::Answer => "\r",
            Key::Deny | Key::Interrupt => "\x1b",
        }
    }

    fn command(&self, line: &str) -> Call {
        responses::escalated(line)
    }

    fn question(&self) -> Call {
        let options = json!([{ "label": "Red", "description": "warm" }, { "label": "Blue", "description": "cold" }]);
        let question = json!({ "id": "color", "header": "Color", "question": QUESTION, "options": options });
        Call::new("request_user_input", json!({ "questions": [question] }))
    }

    fn asks_questions_from(&self) -> AgentVersion {
        (0, 120, 0)
    }

    fn delegates(&self, word: &str, part: &str, done: &str) -> Script {
        Script::default()
            .lane(part, [hold("Looking ", done, "found it.")])
            .lane(word, [Step::Answer(vec![delegate(part)]), Step::Answer(vec![wait()]), say("All of it is done.")])
    }

    fn rests_after(&self) -> usize {
        1
    }

    fn calls_to_delegate(&self) -> usize {
        2
    }

    fn last_word<'w>(&self, word: &'w str) -> (&'w str, usize) {
        (word, 2)
    }
}
