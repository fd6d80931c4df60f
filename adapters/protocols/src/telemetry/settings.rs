//! The settings that make an agent send its telemetry to capture: log records at short intervals, without the content
//! of prompts.

use agents::{
    Agent,
    telemetry::{INTERVAL_MS, TOKEN, URL},
};
use events::Provider;
use serde::Serialize;

/// Interval between two batches of an agent, in ms. By default agents send every 1 to 7 s.
const EVERY_MS: u32 = 1_000;

/// The settings for one agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TelemetrySettings {
    /// Environment variables.
    pub environment: Vec<(&'static str, String)>,
    /// A part of its configuration file.
    pub file: Option<Snippet>,
}

/// A part of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Snippet {
    /// The file, as its users name it.
    pub path: &'static str,
    /// The text to add.
    pub content: String,
}

/// The settings that make an agent send to the server at `url` with this token; `None` for an agent without telemetry.
#[must_use]
pub fn settings(provider: Provider, url: &str, token: &str) -> Option<TelemetrySettings> {
    let telemetry = Agent::of(provider)?.telemetry.as_ref()?;
    let fill =
        |template: &str| template.replace(URL, url).replace(TOKEN, token).replace(INTERVAL_MS, &EVERY_MS.to_string());
    Some(TelemetrySettings {
        environment: telemetry.environment.iter().map(|(name, value)| (*name, fill(value))).collect(),
        file: telemetry.file.as_ref().map(|file| Snippet { path: file.path, content: fill(file.content) }),
    })
}
