//! Deltas: texts that are not stored yet, on their way to streams. Deltas of a session that arrive within a short time
//! become one frame. Everything is bounded; a delta without room is dropped, because its text is stored later.

use std::{
    collections::HashMap,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use events::{Provider, SessionId, Source};
use serde::Serialize;
use tokio::{sync::Notify, time::Instant};

use crate::{Frame, Json, locks::lock};

/// Shortest time between two frames of a session.
const BETWEEN: Duration = Duration::from_millis(100);
/// Largest text of a frame, bytes.
const TEXT_BYTES: usize = 16 << 10;
/// Maximum number of sessions with deltas at the same time.
const SESSIONS: usize = 256;

/// A part of an agent's output, before it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delta {
    /// The session.
    pub session: SessionId,
    /// Its agent.
    pub provider: Provider,
    /// Where the text comes from.
    pub source: Source,
    /// The text.
    pub text: String,
    /// Number of deltas that were already joined to this one.
    pub joined: u64,
}

/// A delta in the form sent to streams. Uncommitted frames begin with `epoch` and `live`.
#[derive(Serialize)]
struct DeltaForm<'a> {
    session_id: SessionId,
    provider: Provider,
    source: Source,
    text: &'a str,
}

/// Counters for the metrics. Each received delta is coalesced, dropped, or the first of a frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeltaCounts {
    /// Deltas received.
    pub received: u64,
    /// Deltas joined to another one's frame.
    pub coalesced: u64,
    /// Deltas dropped.
    pub dropped: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Deltas {
    pending: Mutex<HashMap<SessionId, PendingDelta>>,
    arrived: Notify,
    received: AtomicU64,
    coalesced: AtomicU64,
    dropped: AtomicU64,
}

/// The pending frame of a session.
#[derive(Debug)]
struct PendingDelta {
    provider: Provider,
    source: Source,
    text: String,
    due: Instant,
}

impl Deltas {
    /// Accepts a delta, unless there is no room or no recipient.
    pub(crate) fn offer(&self, delta: Delta, watched: bool, now: Instant) {
        let Delta { session, provider, source, text, joined } = delta;
        self.received.fetch_add(joined + 1, Ordering::Relaxed);
        let mut pending = lock(&self.pending);
        let known = pending.get(&session);
        let held = known.map_or(0, |pending| pending.text.len());
        let room = known.is_some() || pending.len() < SESSIONS;
        if !watched || !room || text.is_empty() || held + text.len() > TEXT_BYTES {
            drop(pending);
            self.dropped(joined + 1);
            return;
        }
        self.coalesced.fetch_add(joined + u64::from(held > 0), Ordering::Relaxed);
        let next = PendingDelta { provider, source, text: String::new(), due: now };
        pending.entry(session).or_insert(next).text.push_str(&text);
        drop(pending);
        self.arrived.notify_one();
    }

    /// Counts deltas that are not sent.
    pub(crate) fn dropped(&self, deltas: u64) {
        self.dropped.fetch_add(deltas, Ordering::Relaxed);
    }

    /// Counts deltas that were lost before they were received.
    pub(crate) fn lost(&self, deltas: u64) {
        self.received.fetch_add(deltas, Ordering::Relaxed);
        self.dropped(deltas);
    }

    /// Waits until frames are due, and removes and returns them. Cancel safe.
    pub(crate) async fn due(&self) -> Vec<Frame> {
        loop {
            let arrived = self.arrived.notified();
            let frames = self.take_due(Instant::now());
            if !frames.is_empty() {
                return frames;
            }
            let next = lock(&self.pending).values().map(|pending| pending.due).min();
            match next {
                Some(due) => tokio::select! {
                    () = arrived => {}
                    () = tokio::time::sleep_until(due) => {}
                },
                None => arrived.await,
            }
        }
    }

    /// Removes and returns the due frames. Sessions without new text since their last frame are dropped.
    fn take_due(&self, now: Instant) -> Vec<Frame> {
        let mut frames = Vec::new();
        lock(&self.pending).retain(|session, pending| {
            if pending.due > now {
                return true;
            }
            let text = std::mem::take(&mut pending.text);
            let form =
                DeltaForm { session_id: *session, provider: pending.provider, source: pending.source, text: &text };
            pending.due = now + BETWEEN;
            frames.extend(Json::of(&form).ok().filter(|_| !text.is_empty()).map(|json| Frame::delta(*session, json)));
            !text.is_empty()
        });
        frames
    }

    pub(crate) fn counts(&self) -> DeltaCounts {
        DeltaCounts {
            received: self.received.load(Ordering::Relaxed),
            coalesced: self.coalesced.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(session: u128, text: &str) -> Delta {
        let session = SessionId::from_bits(session);
        Delta { session, provider: Provider::Claude, source: Source::Protocol, text: text.to_owned(), joined: 0 }
    }

    fn texts(frames: Vec<Frame>) -> Vec<String> {
        let mut texts: Vec<String> = frames.iter().map(|frame| frame.json.as_str().to_owned()).collect();
        texts.sort();
        texts.into_iter().map(|json| json.rsplit_once("\"text\":").unwrap().1.to_owned()).collect()
    }

    #[test]
    fn deltas_of_a_session_within_an_interval_are_merged_into_one_frame() {
        let (deltas, start) = (Deltas::default(), Instant::now());
        deltas.offer(delta(1, "I "), true, start);
        assert_eq!(texts(deltas.take_due(start)), ["\"I \"}"], "the first is sent at once");
        for (ms, text) in [(10, "am "), (30, "at "), (90, "work")] {
            deltas.offer(delta(1, text), true, start + Duration::from_millis(ms));
        }
        deltas.offer(delta(2, "another"), true, start + Duration::from_millis(50));
        assert_eq!(texts(deltas.take_due(start + Duration::from_millis(99))), ["\"another\"}"]);
        assert_eq!(texts(deltas.take_due(start + BETWEEN)), ["\"am at work\"}"]);
        assert_eq!(deltas.counts(), DeltaCounts { received: 5, coalesced: 2, dropped: 0 });
        assert!(deltas.take_due(start + BETWEEN * 3).is_empty());
        assert!(lock(&deltas.pending).is_empty(), "sessions that are silent are forgotten");
    }

    #[test]
    fn deltas_beyond_the_limits_are_dropped_and_counted() {
        let (deltas, now) = (Deltas::default(), Instant::now());
        deltas.offer(delta(1, "nobody looks on"), false, now);
        deltas.offer(delta(1, &"x".repeat(TEXT_BYTES)), true, now);
        deltas.offer(Delta { joined: 2, ..delta(1, "y") }, true, now);
        deltas.lost(3);
        assert_eq!(deltas.counts(), DeltaCounts { received: 8, coalesced: 0, dropped: 7 });
        for session in 2..=SESSIONS as u128 + 1 {
            deltas.offer(delta(session, "z"), true, now);
        }
        assert_eq!(lock(&deltas.pending).len(), SESSIONS);
        assert_eq!(deltas.counts().dropped, 8);
    }
}
