//! `capture hook`: the command that agents' hooks call. It must not slow down or disturb the agent: it uses no command
//! line parser, reads no configuration, does not wait for the server, and prints nothing, whatever goes wrong. The
//! delivery is in the spool before the server is notified. With `redacted_only`, the spool gets it without secrets; a
//! hook that waits for a decision sends the server the original.
//!
//! With `--approver SECONDS`, set in the agent's settings, a permission request waits for a decision, which is printed
//! to standard output. Without a decision, or if anything goes wrong, nothing is printed, and the agent asks its user
//! itself.

use std::{
    ffi::OsString,
    io::{self, Read, Write},
    net::Shutdown,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use agents::{AgentAnswer, DRIVEN, RUN_VARIABLE};
use api::hooks::DeliveryNotice;
use events::{DeliveryId, Provider, Source};
use hooks::{
    APPROVER,
    delivery::{
        Agent, Delivery, PAYLOAD_BYTES,
        answer::{accepts_allowance, answer, asks_before_rules, asks_for_decision},
    },
};
use processes::{is_started_by, nearest_agent};
use serde_json::value::RawValue;

use home::{clock, paths, redacted_only};

/// Time the server has to accept the call, and again to answer it.
const WITHIN: Duration = Duration::from_millis(80);

/// Maximum wait for the decision of the policy.
const POLICY_WITHIN: Duration = Duration::from_secs(2);
/// Interval between tries to reach a server that ended: it may have been restarted.
const AGAIN: Duration = Duration::from_millis(500);
/// Longest decision that is read, bytes.
const ANSWER_BYTES: u64 = 1 << 20;

/// The name of the subcommand.
pub const VERB: &str = "hook";

/// Delivers the payload on standard input. Never fails, as far as the agent can see.
#[must_use]
pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    // An error cannot be reported: the agent must not notice, and the server tells of hooks that stay away.
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
        // The agent asks whoever speaks with it too, who tells of it: once is enough.
        return Ok(());
    }
    let id = DeliveryId::mint(at, clock::random()?);
    let delivery =
        Delivery { id, provider, source: Source::Hook, at, agent, run, search_path, redacted_from: None, payload };
    if let Err(error) = redacted_only::put(&data, &delivery) {
        // The server reports it: here nobody can be told. The request is left to the agent.
        return Ok(notify_lost(&data, delivery.id, error.to_string())?);
    }
    let told = notify_server(&data, delivery.id);
    if let Some(seconds) = approver.filter(|_| asks_for_decision(provider, &delivery.payload)) {
        // Nobody is asked before the agent's own rules are.
        let patience = if asks_before_rules(provider) { 0 } else { seconds };
        if let Some(text) = wait(&data, &delivery, Duration::from_secs(patience)) {
            io::stdout().lock().write_all(text.as_bytes())?;
        }
        return Ok(());
    }
    told?;
    Ok(())
}

/// Whether somebody speaks with this agent over its protocol: its environment names who, and between
/// the two there is nothing but the agent. An agent that another one started is not meant.
fn is_driven(agent: Option<Agent>) -> bool {
    let driver = paths::variable(DRIVEN).and_then(|pid| pid.to_str()?.parse().ok());
    agent.zip(driver).is_some_and(|(agent, driver)| is_started_by(agent.pid, driver))
}

/// Waits for the decision on a request; gives the agent's own words for it.
fn wait(data: &Path, delivery: &Delivery, patience: Duration) -> Option<String> {
    let people = !patience.is_zero();
    let patience = if people { patience } else { POLICY_WITHIN };
    match decision(data, delivery, patience, people) {
        DecisionOutcome::Decided(decided) => answer(delivery.provider, &delivery.payload, &decided),
        DecisionOutcome::Undecided | DecisionOutcome::NoServer => None,
    }
}

/// The outcome of waiting for a decision.
#[derive(Debug)]
pub enum DecisionOutcome {
    /// It was decided.
    Decided(AgentAnswer),
    /// Nobody decided, or not in time.
    Undecided,
    /// No server could be reached from the start.
    NoServer,
}

/// Waits for the decision on a request that was delivered.
pub fn decision(data: &Path, delivery: &Delivery, patience: Duration, people: bool) -> DecisionOutcome {
    let until = Instant::now() + patience;
    let mut heard = false;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return DecisionOutcome::Undecided;
        }
        match request_decision(data, delivery, left, people, &mut heard) {
            Ok(decided) => {
                let decided = decided.and_then(|decided| serde_json::from_slice(&decided).ok());
                return decided.map_or(DecisionOutcome::Undecided, DecisionOutcome::Decided);
            }
            // Nobody there from the start is nobody who would decide.
            Err(_) if !heard => return DecisionOutcome::NoServer,
            // Nobody sends on this channel: it is a wait.
            Err(_) => drop(crossbeam_channel::after(AGAIN.min(left)).recv()),
        }
    }
}

/// Asks the server for the decision; `None` when it says that there is none. Notes when somebody was
/// there to be asked.
fn request_decision(
    data: &Path,
    delivery: &Delivery,
    left: Duration,
    people: bool,
    heard: &mut bool,
) -> io::Result<Option<Vec<u8>>> {
    #[derive(serde::Serialize)]
    struct Patience<'a> {
        wait_ms: u128,
        people: bool,
        /// What is asked is what was delivered.
        digest: String,
        /// Of an agent that asks before its own rules do; nothing else tells of it.
        #[serde(skip_serializing_if = "Option::is_none")]
        whole: Option<&'a Delivery>,
    }
    let whole = (delivery.source == Source::Hook && asks_before_rules(delivery.provider)).then_some(delivery);
    let body =
        serde_json::to_string(&Patience { wait_ms: left.as_millis(), people, digest: delivery.digest(), whole })?;
    let path = format!("/api/v1/deliveries/{}/answer", delivery.id);
    let stream = post(data, &path, &body, left + WITHIN)?;
    *heard = true;
    let mut text = Vec::new();
    stream.take(ANSWER_BYTES).read_to_end(&mut text)?;
    let head = text.windows(4).position(|w| w == b"\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    // Whether the body is whole shows when it is parsed.
    match text.get(9..12) {
        Some(b"200") => Ok(Some(text.split_off(head + 4))),
        Some(b"204") => Ok(None),
        _ => Err(io::ErrorKind::ConnectionRefused.into()),
    }
}

/// Tells the server that there is a delivery; it finds it by itself otherwise, a little later.
pub fn notify_server(data: &Path, id: DeliveryId) -> io::Result<()> {
    notify(data, &DeliveryNotice { id, lost: None })
}

/// Tells the server that a delivery is lost.
fn notify_lost(data: &Path, id: DeliveryId, why: String) -> io::Result<()> {
    notify(data, &DeliveryNotice { id, lost: Some(why) })
}

fn notify(data: &Path, notice: &DeliveryNotice) -> io::Result<()> {
    let mut stream = post(data, "/api/v1/deliveries", &serde_json::to_string(notice)?, WITHIN)?;
    // The first bytes of the answer say that it was heard.
    let heard = stream.read(&mut [0; 64]);
    stream.shutdown(Shutdown::Both).ok();
    heard.map(|_| ())
}

/// Sends a request to the server's socket; the answer is to come within this time.
fn post(data: &Path, path: &str, body: &str, within: Duration) -> io::Result<UnixStream> {
    // A server that does not come to accepting must not hold up the agent, and a listener of another
    // user decides nothing.
    let (mut stream, _) = processes::local_socket::connect(&data.join("capture.sock"), WITHIN)?;
    stream.set_read_timeout(Some(within))?;
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes())?;
    Ok(stream)
}
