//! Forwards reports of agents' daemons to ingest, and reports the health of that source.

use std::path::PathBuf;

use api::health::SourceHealth;
use home::clock;
use ingest::{IngestHandle, IngestInput, ProtocolInput};
use protocols::codex_daemon::{DaemonEvent, Daemons, HealthHandle, PROVIDER, Timing};
use tailer::collect::Stopped;

use crate::supervisor::Supervisor;

/// Follows the daemons of the Codex homes.
///
/// # Errors
/// When a thread or a file descriptor cannot be created.
pub fn follow(homes: Vec<PathBuf>, inputs: IngestHandle, supervisor: &Supervisor) -> std::io::Result<Daemons> {
    let sentinel = supervisor.sentinel();
    Daemons::start(homes, Timing::default(), clock::now, move |told| {
        let _watched = &sentinel;
        let input = match told {
            DaemonEvent::Claims(events, strangers) => {
                let stored = Box::new(move |unknown: Vec<_>| unknown.into_iter().for_each(|id| strangers.report(id)));
                ProtocolInput::Claims { events, stored }
            }
            DaemonEvent::Only(threads) => {
                ProtocolInput::Only { provider: PROVIDER, sessions: threads.into_iter().collect() }
            }
        };
        inputs.send(IngestInput::Protocol(input)).map_err(|_| Stopped)
    })
}

/// The health row; `None` until a daemon was seen.
#[must_use]
pub fn health(handle: &HealthHandle) -> Option<SourceHealth> {
    let health = handle.get();
    if !health.seen {
        return None;
    }
    let detail = format!("{} connected, {} messages", health.connected, health.messages);
    Some(SourceHealth {
        name: "codex daemon".into(),
        active: health.connected > 0,
        lag_ms: None,
        last_event_at: health.last_at,
        dropped: 0,
        coalesced: 0,
        errors: health.errors,
        files: 0,
        reading: None,
        detail: Some(detail),
        trouble: health.trouble,
    })
}
