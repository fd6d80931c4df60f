//! Gemini CLI 0.61.0.

use std::fs;

use events::Provider;
use serde_json::json;

use super::{Agent, AgentVersion, Key, LiveAgent, QUESTION, Start};
use crate::models::{
    Api,
    gemini::{delegate, report},
    script::{Call, Part, Script, Step, say},
};

/// Gemini CLI.
#[derive(Debug)]
pub struct Gemini;

impl Agent for Gemini {
    fn provider(&self) -> Provider {
        Provider::Gemini
    }

    fn api(&self) -> Api {
        Api::Gemini
    }

    fn prepare(&self, place: &LiveAgent) -> std::io::Result<Start> {
        let settings = json!({
            "general": {
                "enableAutoUpdate": false, "enableAutoUpdateNotification": false,
                "disableAutoUpdate": true, "disableUpdateNag": true,
            },
            "privacy": { "usageStatisticsEnabled": false },
            "telemetry": { "enabled": false },
            "security": { "auth": { "selectedType": "gemini-api-key" }, "folderTrust": { "enabled": false } },
        });
        fs::write(place.home.join(".gemini/settings.json"), settings.to_string())?;
        let environment =
            [("GOOGLE_GEMINI_BASE_URL", place.model), ("GEMINI_API_KEY", "dummy"), ("COLORTERM", "truecolor")];
        Ok(Start {
            // Without a fixed model the agent chooses one with an additional request.
            arguments: ["-m", "gemini-2.5-pro"].map(str::to_owned).to_vec(),
            environment: environment.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        })
    }

    fn ready(&self) -> &'static str {
        "Type your message"
    }

    fn dialog(&self) -> &'static str {
        r"Allow execution of"
    }

    fn key(&self, key: Key) -> &'static str {
        match key {
            Key::Approve | Key::Answer => "\r",
            Key::Deny | Key::Interrupt => "\x1b",
        }
    }

    fn command(&self, line: &str) -> Call {
        Call::new("run_shell_command", json!({ "command": line, "description": "Do it" }))
    }

    fn question(&self) -> Call {
        let options = json!([{ "label": "Red", "description": "warm" }, { "label": "Blue", "description": "cold" }]);
        let question = json!({
            "question": QUESTION, "header": "Color", "type": "choice", "multiSelect": false, "options": options,
        });
        Call::new("ask_user", json!({ "questions": [question] }))
    }

    fn asks_questions_from(&self) -> AgentVersion {
        (0, 30, 0)
    }

    fn delegates(&self, word: &str, part: &str, done: &str) -> Script {
        let works = vec![Part::Say("Looking around. ".to_owned()), Part::Until(done.to_owned()), report("found it")];
        Script::default()
            .lane(part, [Step::Answer(works)])
            .lane(word, [Step::Answer(vec![delegate(part)]), say("All of it is done.")])
    }

    fn rests_after(&self) -> usize {
        0
    }

    fn calls_to_delegate(&self) -> usize {
        1
    }

    fn last_word<'w>(&self, word: &'w str) -> (&'w str, usize) {
        (word, 1)
    }
}
