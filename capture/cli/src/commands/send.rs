//! `capture send`: types into a run.

use std::{
    io::Write,
    time::{Duration, Instant},
};

use api::{
    routes::{GetRun, RunInput},
    runs::{Input, InputSent, MAX_PROMPT_WITHIN_MS, PROMPT_WITHIN_MS},
};
use client::failure::Failed;
use events::State;
use printing::style;
use projections::Session;
use serde::Serialize;

use super::{
    context::{Context, find},
    meanings,
    number::seconds_or_part,
    wait,
};

/// The command that adds a message to a session's running turn.
const STEER: &str = "steer";

#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("what").required(true).args(["text", "keys", "interrupt"]),
    override_usage = "capture send [OPTIONS] <TARGET> <TEXT>
       capture send [OPTIONS] <TARGET> --keys <KEY>...
       capture send [OPTIONS] <TARGET> --interrupt",
)]
pub(super) struct Arguments {
    /// The run: its name, its id, at least 3 characters from the start or end of its id, or the session that it hosts.
    target: String,
    /// Text to type, followed by Enter. `send` waits until the agent is at its prompt, and types nothing while a dialog
    /// or menu is open. For capture's own agent, `send` adds the text to the running turn.
    text: Option<String>,
    /// Keys to press in order instead of a text, immediately and whatever the screen shows. Separate them by spaces or
    /// commas: `enter`, `esc`, `ctrl-c`, `up`, `y`, `1` and so on.
    #[arg(long, num_args = 1.., value_name = "KEY")]
    keys: Option<Vec<String>>,
    /// Press the agent's interrupt key: Esc for some agents (such as codex), Ctrl-C for others and for other programs.
    #[arg(long)]
    interrupt: bool,
    /// Do not press Enter after the text.
    #[arg(long, requires = "text")]
    no_submit: bool,
    /// Type the text immediately, whatever the screen shows. The text may answer a dialog.
    #[arg(long, requires = "text")]
    force: bool,
    /// After sending, wait until the turn that the text started reaches a state listed in `--until`.
    #[arg(long, requires = "text", conflicts_with = "no_submit")]
    wait: bool,
    /// States that `--wait` waits for.
    #[arg(long, requires = "wait", value_delimiter = ',', value_name = "STATE", value_parser = super::words::one_of_explained(State::ALL, State::as_str, meanings::of_state), default_value = wait::UNTIL)]
    until: Vec<State>,
    /// Give up after this many seconds (exit code 3) [default: 30 to wait for the prompt, and no limit for the turn
    /// with `--wait`].
    #[arg(long, requires = "text", value_name = "SECONDS", value_parser = seconds_or_part)]
    timeout: Option<f64>,
}

/// The output of `--wait --json`.
#[derive(Serialize)]
struct SentAndReached {
    #[serde(flatten)]
    sent: InputSent,
    session: Session,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let Some(client) = context.running()? else {
        return Err(Failed::NotFound("cannot send: no server is running".into()).into());
    };
    let begun = Instant::now();
    let limit = arguments.timeout.map(Duration::try_from_secs_f64).transpose()?;
    let within_ms = limit.map_or(PROMPT_WITHIN_MS, |limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
    let input = Input {
        text: arguments.text.clone(),
        submit: arguments.text.is_some() && !arguments.no_submit,
        keys: arguments.keys.as_deref().map(keys_of),
        interrupt: arguments.interrupt,
        force: arguments.force,
        timeout_ms: arguments.text.as_ref().map(|_| within_ms.min(MAX_PROMPT_WITHIN_MS)),
    };
    // The server answers within this time; typing itself takes a few seconds at most.
    let within = Duration::from_millis(input.prompt_within_ms()) + Duration::from_secs(20);
    let sent = client.send_within::<RunInput>(&arguments.target, &input, within)?;
    let mut out = printing::stdout();
    if !context.json {
        let is_steered = arguments.text.is_some()
            && client.one::<GetRun>(&sent.run.to_string()).is_ok_and(|run| run.hello.takes.iter().any(|t| t == STEER));
        writeln!(out, "{}", said(&sent, is_steered))?;
    }
    if !arguments.wait {
        return if context.json { context.print_json(&sent) } else { Ok(()) };
    }
    let id = find(&client, &sent.run.to_string())?.id;
    let left = limit.map(|limit| limit.saturating_sub(begun.elapsed()));
    let session = wait::until(&client, id, &arguments.until, Some(sent.position), left)?;
    if context.json {
        return context.print_json(&SentAndReached { sent, session });
    }
    Ok(writeln!(out, "{}", style::state(&session.status, style::colours()))?)
}

fn said(sent: &InputSent, is_steered: bool) -> String {
    if is_steered {
        return format!("sent at position {}; the running turn receives it at its next step", sent.position);
    }
    let how = if sent.forced { "forced: typed without checking the screen" } else { "sent" };
    format!("{how} at position {}", sent.position)
}

/// The given keys, one element each. A lone comma is the comma key.
fn keys_of(given: &[String]) -> Vec<String> {
    let keys = given.iter().flat_map(|word| match word.as_str() {
        "," => vec![","],
        word => word.split(',').filter(|key| !key.is_empty()).collect(),
    });
    keys.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::keys_of;

    #[test]
    fn keys_are_separated_by_spaces_or_commas() {
        let given = ["esc,enter", "ctrl-c", ",", "y"].map(str::to_owned);
        assert_eq!(keys_of(&given), ["esc", "enter", "ctrl-c", ",", "y"]);
    }
}
