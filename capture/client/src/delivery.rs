//! Deliveries in the spool and the server's socket: announces them, and waits for the decisions on them.
//!
//! Hooks call this while an agent waits for them: it uses the socket alone, reads no configuration and starts nothing.

use std::{
    io::{self, Read, Write},
    net::Shutdown,
    os::unix::net::UnixStream,
    path::Path,
    time::{Duration, Instant},
};

use agents::AgentAnswer;
use api::hooks::DeliveryNotice;
use events::{DeliveryId, Source};
use hooks::delivery::{Delivery, answer::asks_before_rules};

/// Time the server has to accept the call, and again to answer it.
const WITHIN: Duration = Duration::from_millis(80);
/// Interval between tries to reach a server that ended: it may have been restarted.
const AGAIN: Duration = Duration::from_millis(500);
/// Longest decision that is read, bytes.
const ANSWER_BYTES: u64 = 1 << 20;

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

/// Waits for the decision on a request that was delivered, of a person too or of rules only.
#[must_use]
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
///
/// # Errors
/// When no server hears it in time.
pub fn notify_server(data: &Path, id: DeliveryId) -> io::Result<()> {
    notify(data, &DeliveryNotice { id, lost: None })
}

/// Tells the server that a delivery is lost.
///
/// # Errors
/// When no server hears it in time.
pub fn notify_lost(data: &Path, id: DeliveryId, why: String) -> io::Result<()> {
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
