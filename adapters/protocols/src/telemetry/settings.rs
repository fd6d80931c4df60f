//! What to tell an agent so that it sends its telemetry to capture: log records in short
//! intervals, without the content of prompts.

use events::Provider;
use serde::Serialize;

/// Between two batches, ms. Agents send every 1 to 7 s by themselves.
const EVERY_MS: u32 = 1_000;

/// The settings for one agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// Variables of its environment.
    pub environment: Vec<(&'static str, String)>,
    /// A part of its configuration file.
    pub file: Option<Snippet>,
}

/// A part of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Snippet {
    /// The file, as its users call it.
    pub path: &'static str,
    /// What to add to it.
    pub content: String,
}

/// The settings that make an agent send to the server at `url` with this token; `None` for what
/// sends no telemetry.
#[must_use]
pub fn settings(provider: Provider, url: &str, token: &str) -> Option<Settings> {
    let headers = || ("OTEL_EXPORTER_OTLP_HEADERS", format!("Authorization=Bearer {token}"));
    Some(match provider {
        Provider::Claude => Settings {
            environment: vec![
                ("CLAUDE_CODE_ENABLE_TELEMETRY", "1".into()),
                ("OTEL_LOGS_EXPORTER", "otlp".into()),
                ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json".into()),
                ("OTEL_EXPORTER_OTLP_ENDPOINT", url.into()),
                headers(),
                ("OTEL_LOGS_EXPORT_INTERVAL", EVERY_MS.to_string()),
            ],
            file: None,
        },
        Provider::Codex => Settings {
            environment: Vec::new(),
            file: Some(Snippet {
                path: "~/.codex/config.toml",
                content: format!(
                    "[otel]\nlog_user_prompt = false\n\n[otel.exporter.otlp-http]\nendpoint = \"{url}/v1/logs\"\n\
                     protocol = \"json\"\nheaders = {{ \"Authorization\" = \"Bearer {token}\" }}\n"
                ),
            }),
        },
        // Its settings have no place for headers; the exporter reads them from the environment.
        Provider::Gemini => Settings {
            environment: vec![headers(), ("OTEL_BLRP_SCHEDULE_DELAY", EVERY_MS.to_string())],
            file: Some(Snippet {
                path: "~/.gemini/settings.json",
                content: format!(
                    "{{\n  \"telemetry\": {{\n    \"enabled\": true,\n    \"target\": \"local\",\n    \
                     \"otlpEndpoint\": \"{url}\",\n    \"otlpProtocol\": \"http\",\n    \"logPrompts\": false\n  }}\n}}\n"
                ),
            }),
        },
        Provider::Pi | Provider::Capture | Provider::Unknown => return None,
    })
}
