//! Claude Code 2.1.328, and the differences of older versions.

use std::fs;

use events::Provider;
use serde_json::json;

use super::{Agent, AgentVersion, Key, LiveAgent, QUESTION, Start};
use crate::models::{
    Api, anthropic,
    script::{Call, Script, Step, hold, say},
};

const API_KEY: &str = "sk-dummy";

/// A command that only reads, for which the settings still require a question.
pub const ASKED: &str = "git status";

/// The first tested version that must be started in the mode in which it asks.
const ASKS_IN_MODE: AgentVersion = (2, 1, 200);

/// Writes the plan to the file the agent named.
#[must_use]
pub fn write_plan() -> Call {
    Call::new("Write", json!({ "file_path": anthropic::PLAN_FILE, "content": "# Plan\n1. Make it.\n" }))
}

/// Shows the plan to the user.
#[must_use]
pub fn show_plan() -> Call {
    Call::new("ExitPlanMode", json!({}))
}

/// Claude Code.
#[derive(Debug)]
pub struct Claude;

impl Agent for Claude {
    fn provider(&self) -> Provider {
        Provider::Claude
    }

    fn api(&self) -> Api {
        Api::Anthropic
    }

    fn prepare(&self, place: &LiveAgent) -> std::io::Result<Start> {
        // Without this list 1.0.100 does not start.
        let project =
            json!({ "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true, "allowedTools": [] });
        let known = json!({
            "hasCompletedOnboarding": true,
            "lastOnboardingVersion": "2.1.328",
            "theme": "dark",
            "customApiKeyResponses": { "approved": [API_KEY], "rejected": [] },
            "projects": { place.project.to_string_lossy(): project },
        });
        fs::write(place.home.join(".claude.json"), known.to_string())?;
        // It does not ask about commands that it knows to be read-only.
        let settings = json!({ "permissions": { "ask": [format!("Bash({ASKED})")] } });
        fs::write(place.home.join(".claude/settings.json"), settings.to_string())?;
        let environment = [
            ("ANTHROPIC_BASE_URL", place.model),
            ("ANTHROPIC_API_KEY", API_KEY),
            ("DISABLE_AUTOUPDATER", "1"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ];
        // By default newer versions decide themselves what to ask; older versions always ask.
        let mode = match (place.plans, place.version) {
            (true, _) => Some("plan"),
            (false, version) => (version >= ASKS_IN_MODE).then_some("manual"),
        };
        Ok(Start {
            arguments: mode.iter().flat_map(|mode| ["--permission-mode", mode]).map(str::to_owned).collect(),
            environment: environment.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        })
    }

    fn ready(&self) -> &'static str {
        // A frame and another prompt sign: 1.0.100. Non-breaking spaces: 1.0.100, 2.0.60.
        "(?m)^(❯|[│ \u{a0}]*>[ \u{a0}])"
    }

    fn dialog(&self) -> &'static str {
        r"Do you want to proceed\?"
    }

    fn key(&self, key: Key) -> &'static str {
        match key {
            Key::Approve | Key::Answer => "\r",
            Key::Deny | Key::Interrupt => "\x1b",
        }
    }

    fn command(&self, line: &str) -> Call {
        Call::new("Bash", json!({ "command": line, "description": "Do it" }))
    }

    fn question(&self) -> Call {
        let options = json!([{ "label": "Red", "description": "warm" }, { "label": "Blue", "description": "cold" }]);
        let question = json!({ "question": QUESTION, "header": "Color", "multiSelect": false, "options": options });
        Call::new("AskUserQuestion", json!({ "questions": [question] }))
    }

    fn asks_questions_from(&self) -> AgentVersion {
        (2, 0, 60)
    }

    fn delegates(&self, word: &str, part: &str, done: &str) -> Script {
        Script::default()
            .lane(anthropic::NOTIFICATION, [say("All of it is done.")])
            .lane(part, [hold("Looking ", done, "found it.")])
            .lane(word, [Step::Answer(vec![anthropic::delegate(part)]), say("It was begun.")])
    }

    fn rests_after(&self) -> usize {
        1
    }

    fn calls_to_delegate(&self) -> usize {
        1
    }

    fn last_word<'w>(&self, _: &'w str) -> (&'w str, usize) {
        (anthropic::NOTIFICATION, 0)
    }
}
