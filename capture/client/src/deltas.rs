//! Sends the agent's text to the server as it is written. A separate thread waits for the server, so the driver never
//! does. Text that exceeds the queue is dropped; the agent's own files contain it anyway.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use api::{hooks::TextDelta, routes::SendDelta};
use crossbeam_channel::{Receiver, Sender, bounded};
use events::Provider;
use home::redacted_only;

use crate::{Client, Connection};

/// Maximum number of queued deltas.
const WAITING: usize = 256;
/// Minimum time between two requests.
const BETWEEN: Duration = Duration::from_millis(100);
/// Maximum size of the text in a request, bytes.
const TEXT_BYTES: usize = 16 << 10;
/// Pause after a failed request.
const UNREACHABLE: Duration = Duration::from_secs(5);

/// Sends the deltas of one conversation.
#[derive(Debug)]
pub struct DeltaSender {
    deltas: Option<Sender<SessionText>>,
    lost: Arc<AtomicU64>,
}

#[derive(Debug)]
struct SessionText {
    session: String,
    text: String,
}

impl DeltaSender {
    /// A sender for an agent. With `redacted_only` nothing is sent, because part of a secret is not recognized as one.
    #[must_use]
    pub fn new(data: PathBuf, provider: Provider) -> Self {
        let lost = Arc::new(AtomicU64::new(0));
        let (deltas, waiting) = bounded(WAITING);
        let counted = Arc::clone(&lost);
        let thread = std::thread::Builder::new().name("deltas".into());
        let started =
            !redacted_only::is_on(&data) && thread.spawn(move || send_all(&data, provider, &waiting, &counted)).is_ok();
        Self { deltas: started.then_some(deltas), lost }
    }

    /// Sends a text, unless too many are queued.
    pub fn send(&self, session: &str, text: &str) {
        let Some(deltas) = &self.deltas else { return };
        if deltas.try_send(SessionText { session: session.to_owned(), text: text.to_owned() }).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Sends deltas until the driver exits.
fn send_all(data: &Path, provider: Provider, waiting: &Receiver<SessionText>, lost: &AtomicU64) {
    let mut next = Instant::now();
    while let Ok(SessionText { session, mut text }) = waiting.recv() {
        let mut joined = 0;
        while let Ok(more) = waiting.recv_deadline(next) {
            if more.session == session && text.len() + more.text.len() <= TEXT_BYTES {
                text.push_str(&more.text);
                joined += 1;
            } else {
                lost.fetch_add(1, Ordering::Relaxed);
            }
        }
        let lost_before = lost.swap(0, Ordering::Relaxed);
        let delta = TextDelta { provider, session_id: session, text, joined, lost: lost_before };
        let client = Client::running(data, Connection::Unix).ok().flatten();
        let sent = client.is_some_and(|client| client.send::<SendDelta>("", &delta).is_ok());
        if !sent {
            lost.fetch_add(lost_before + joined + 1, Ordering::Relaxed);
        }
        next = Instant::now() + if sent { BETWEEN } else { UNREACHABLE };
    }
}
