//! Deliveries in the spool, and the server's socket: notifies the server of deliveries and waits for its decisions.
//!
//! Hooks call this while an agent waits for them, so it uses only the socket, reads no configuration and starts
//! nothing.

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

/// Time limit for the server to accept the connection, and again to answer.
const WITHIN: Duration = Duration::from_millis(80);
/// Interval between attempts to reach a server that exited and may be restarting.
const AGAIN: Duration = Duration::from_millis(500);
/// Maximum size of a decision, bytes.
const ANSWER_BYTES: u64 = 1 << 20;

/// The outcome of waiting for a decision.
#[derive(Debug)]
pub enum DecisionOutcome {
    /// A decision was made.
    Decided(AgentAnswer),
    /// No decision was made in time.
    Undecided,
    /// No server could be reached at the first attempt.
    NoServer,
}

/// Waits for the decision on a delivered request: by a person or a rule if `people` is set, otherwise only by rules.
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
            // If no server was ever reached, none will decide.
            Err(_) if !heard => return DecisionOutcome::NoServer,
            // The channel never receives a message; this only waits.
            Err(_) => drop(crossbeam_channel::after(AGAIN.min(left)).recv()),
        }
    }
}

/// Asks the server for the decision; `None` if the server reports that there is none. Sets `heard` once a server was
/// reached.
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
        /// The digest of the delivery, so that the decision applies to exactly that delivery.
        digest: String,
        /// The delivery itself, for agents that ask before applying their own rules; nothing else reports it.
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
    // Parsing the body shows whether it is complete.
    match text.get(9..12) {
        Some(b"200") => Ok(Some(text.split_off(head + 4))),
        Some(b"204") => Ok(None),
        _ => Err(io::ErrorKind::ConnectionRefused.into()),
    }
}

/// Notifies the server of a delivery. Otherwise the server finds it a little later.
///
/// # Errors
/// If no server accepts the notification in time.
pub fn notify_server(data: &Path, id: DeliveryId) -> io::Result<()> {
    notify(data, &DeliveryNotice { id, lost: None })
}

/// Notifies the server that a delivery is lost.
///
/// # Errors
/// If no server accepts the notification in time.
pub fn notify_lost(data: &Path, id: DeliveryId, why: String) -> io::Result<()> {
    notify(data, &DeliveryNotice { id, lost: Some(why) })
}

fn notify(data: &Path, notice: &DeliveryNotice) -> io::Result<()> {
    let mut stream = post(data, "/api/v1/deliveries", &serde_json::to_string(notice)?, WITHIN)?;
    // The first bytes of the response confirm that the server received the notification.
    let heard = stream.read(&mut [0; 64]);
    stream.shutdown(Shutdown::Both).ok();
    heard.map(|_| ())
}

/// Sends a request to the server's socket; `within` limits the wait for the response.
fn post(data: &Path, path: &str, body: &str, within: Duration) -> io::Result<UnixStream> {
    // A server that is too busy to accept must not delay the agent, and a socket of another user must not decide
    // anything.
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
