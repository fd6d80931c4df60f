//! `capture hook`: the command that agents' hooks call. It must not slow down or disturb the agent: it uses no command
//! line parser, reads no configuration, does not wait for the server, and prints nothing, whatever goes wrong. It
//! writes the delivery to the spool before it notifies the server. With `redacted_only`, it removes secrets from what
//! it spools; a hook that waits for a decision sends the original to the server.
//!
//! With `--approver SECONDS`, set in the agent's settings, a permission request waits for a decision, which is printed
//! to standard output. If there is no decision or anything goes wrong, nothing is printed, and the agent asks its user
//! itself.

use std::{
    ffi::OsString,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use agents::{DRIVEN, RUN_VARIABLE};
use client::delivery::{DecisionOutcome, decision, notify_lost, notify_server};
use events::{DeliveryId, Provider, Source};
use home::{clock, paths, redacted_only};
use hooks::{
    APPROVER,
    delivery::{
        Agent, Delivery, PAYLOAD_BYTES,
        answer::{accepts_allowance, answer, asks_before_rules, asks_for_decision},
    },
};
use processes::{is_started_by, nearest_agent};
use serde_json::value::RawValue;

/// Maximum wait for the decision of the policy.
const POLICY_WITHIN: Duration = Duration::from_secs(2);
/// The name of the subcommand.
pub(crate) const VERB: &str = "hook";

/// Delivers the payload on standard input. To the agent, it always succeeds.
pub(crate) fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    // Errors cannot be reported here: the agent must not notice, and the server reports hooks that stop arriving.
    deliver(arguments).ok();
    ExitCode::SUCCESS
}

fn deliver(mut arguments: impl Iterator<Item = OsString>) -> anyhow::Result<()> {
    let provider: Provider = arguments
        .next()
        .and_then(|word| word.into_string().ok())
        .and_then(|word| word.parse().ok())
        .ok_or_else(|| anyhow::anyhow!("no provider"))?;
    let mut data: Option<PathBuf> = None;
    let mut approver: Option<u64> = None;
    while let Some(word) = arguments.next() {
        if word == "--data-dir" {
            data = arguments.next().map(PathBuf::from);
        } else if word == APPROVER {
            approver = arguments.next().and_then(|word| word.to_str()?.parse().ok());
        }
    }
    let data = paths::data_dir(data.as_deref())?;
    let mut payload = String::new();
    io::stdin().lock().take(PAYLOAD_BYTES).read_to_string(&mut payload)?;
    let payload = RawValue::from_string(payload)?;
    let at = clock::now();
    let agent = rustix::process::getppid()
        .and_then(|parent| nearest_agent(parent.as_raw_nonzero().get().unsigned_abs()))
        .map(|(pid, start_ticks, shared)| Agent { pid, start_ticks, shared });
    let run = paths::variable(RUN_VARIABLE).and_then(|run| run.to_str()?.parse().ok());
    let search_path = paths::variable("PATH").and_then(|path| path.to_str().map(str::to_owned));
    if is_driven(agent) && accepts_allowance(provider) && asks_for_decision(provider, &payload) {
        // The agent also asks its driver, which reports the request; reporting it once is enough.
        return Ok(());
    }
    let id = DeliveryId::mint(at, clock::random()?);
    let delivery =
        Delivery { id, provider, source: Source::Hook, at, agent, run, search_path, redacted_from: None, payload };
    if let Err(error) = redacted_only::put(&data, &delivery) {
        // The server reports the loss; the hook has no one to report to. The agent asks its user itself.
        return Ok(notify_lost(&data, delivery.id, error.to_string())?);
    }
    let told = notify_server(&data, delivery.id);
    if let Some(seconds) = approver.filter(|_| asks_for_decision(provider, &delivery.payload)) {
        // No person is asked before the agent has applied its own rules.
        let patience = if asks_before_rules(provider) { 0 } else { seconds };
        if let Some(text) = wait(&data, &delivery, Duration::from_secs(patience)) {
            io::stdout().lock().write_all(text.as_bytes())?;
        }
        return Ok(());
    }
    told?;
    Ok(())
}

/// Whether capture drives this agent over the agent's protocol: the environment names the driver, and only the agent is
/// between the driver and this process. An agent started by another agent does not count.
fn is_driven(agent: Option<Agent>) -> bool {
    let driver = paths::variable(DRIVEN).and_then(|pid| pid.to_str()?.parse().ok());
    agent.zip(driver).is_some_and(|(agent, driver)| is_started_by(agent.pid, driver))
}

/// Waits for the decision on a request; returns it in the agent's format.
fn wait(data: &Path, delivery: &Delivery, patience: Duration) -> Option<String> {
    let people = !patience.is_zero();
    let patience = if people { patience } else { POLICY_WITHIN };
    match decision(data, delivery, patience, people) {
        DecisionOutcome::Decided(decided) => answer(delivery.provider, &delivery.payload, &decided),
        DecisionOutcome::Undecided | DecisionOutcome::NoServer => None,
    }
}
