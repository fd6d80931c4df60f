//! `capture telemetry`

use std::fmt::Write as _;

use agents::Agent;
use anyhow::Context as _;
use clap::ValueEnum;
use client::failure::Failed;
use events::Provider;
use home::endpoint;
use protocols::telemetry::settings::{TelemetrySettings, settings};
use serde::Serialize;

use super::context::{Context, print_line};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: TelemetryCommand,
}

#[derive(Debug, clap::Subcommand)]
enum TelemetryCommand {
    /// Print the settings that make an agent send its telemetry to the running server.
    ///
    /// The settings contain the server's current address and a token that only permits sending events. To keep the
    /// settings valid, start `capture serve` with a fixed port (`--listen`).
    Env {
        /// The agent.
        #[arg(value_parser = agent())]
        agent: Provider,
        /// Print the variables for this shell (not for codex, which prints TOML).
        #[arg(long, default_value = "sh")]
        shell: EnvironmentShell,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum EnvironmentShell {
    Sh,
    Fish,
}

fn agent() -> impl clap::builder::TypedValueParser<Value = Provider> {
    super::words::one_of(&Agent::providers_with(|agent| agent.telemetry.is_some()), Provider::as_str)
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let TelemetryCommand::Env { agent, shell } = arguments.verb;
    let client = context.client()?;
    let path = endpoint::ingest_token_file(&context.data);
    let token = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let settings = settings(agent, &client.endpoint().url, token.trim())
        .ok_or_else(|| Failed::Other(format!("{agent} sends no telemetry that capture accepts")))?;
    if context.json {
        return context.print_json(&EnvironmentOutput::of(&settings));
    }
    print_line(text(&settings, shell).trim_end())
}

/// The `--json` output, with the variables as an object.
#[derive(Serialize)]
struct EnvironmentOutput<'a> {
    environment: std::collections::BTreeMap<&'a str, &'a str>,
    file: Option<&'a protocols::telemetry::settings::Snippet>,
}

impl<'a> EnvironmentOutput<'a> {
    fn of(settings: &'a TelemetrySettings) -> Self {
        Self {
            environment: settings.environment.iter().map(|(name, value)| (*name, value.as_str())).collect(),
            file: settings.file.as_ref(),
        }
    }
}

/// The settings as text that a shell can evaluate. A snippet for a file is printed alone, or as a comment above its
/// variables.
fn text(settings: &TelemetrySettings, shell: EnvironmentShell) -> String {
    let mut out = String::new();
    if let Some(file) = &settings.file {
        let quiet = !settings.environment.is_empty();
        let _ = writeln!(out, "# add to {}", file.path);
        for line in file.content.lines() {
            let _ = writeln!(out, "{}{line}", if quiet { "#   " } else { "" });
        }
    }
    for (name, value) in &settings.environment {
        // The values come from capture: an address, a token of hexadecimal digits, words.
        let quoted = format!("'{}'", value.replace('\'', "'\\''"));
        let _ = match shell {
            EnvironmentShell::Sh => writeln!(out, "export {name}={quoted}"),
            EnvironmentShell::Fish => writeln!(out, "set -gx {name} {quoted}"),
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn telemetry_settings_are_printed_for_each_agent_and_shell() {
        let of = |provider, shell| text(&settings(provider, "http://127.0.0.1:9", "t0k3n").unwrap(), shell);
        let sh = of(Provider::Claude, EnvironmentShell::Sh);
        assert!(sh.contains("export OTEL_EXPORTER_OTLP_HEADERS='Authorization=Bearer t0k3n'\n"), "{sh}");
        assert!(sh.lines().all(|line| line.starts_with("export ")), "{sh}");
        let fish = of(Provider::Claude, EnvironmentShell::Fish);
        assert!(fish.contains("set -gx OTEL_EXPORTER_OTLP_ENDPOINT 'http://127.0.0.1:9'\n"), "{fish}");
        let gemini = of(Provider::Gemini, EnvironmentShell::Sh);
        assert!(gemini.lines().all(|line| line.starts_with('#') || line.starts_with("export ")), "{gemini}");
        let codex = of(Provider::Codex, EnvironmentShell::Sh);
        assert!(codex.contains("\n[otel]\n") && !codex.contains("export "), "{codex}");
    }
}
