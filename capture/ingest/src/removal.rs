//! Removes sessions from the store, from memory and from the live view.
//!
//! A removal is carried out while its requester waits, or not at all. While the store fails, inputs wait; until then
//! the requester can withdraw the removal with its [`RemovalTicket`]. So a request that was answered with an error has
//! no effect later.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use events::SessionId;
use store::{About, KnownSession, RemovalKind, SessionRemoval};
use tokio::sync::oneshot;

use super::{Ingest, TransactionFailure};

/// A request to remove sessions.
#[derive(Debug)]
pub struct RemovalRequest {
    /// Each session with the facts needed until it is erased everywhere. A pruned session can still be forgotten.
    pub sessions: Vec<(SessionId, About)>,
    /// The kind of removal.
    pub kind: RemovalKind,
    /// Whether the removal is still wanted.
    pub ticket: RemovalTicket,
    /// Notified after the commit.
    pub done: oneshot::Sender<()>,
}

/// Whether a removal is still wanted, or is being carried out. Clones share the state.
#[derive(Debug, Clone, Default)]
pub struct RemovalTicket(Arc<AtomicU8>);

impl RemovalTicket {
    const WANTED: u8 = 0;
    const TAKEN: u8 = 1;
    const WITHDRAWN: u8 = 2;

    /// Withdraws the request. Returns false if ingest is carrying it out: then it completes within one transaction, or
    /// can soon be withdrawn.
    #[must_use]
    pub fn withdraw(&self) -> bool {
        self.change(Self::WANTED, Self::WITHDRAWN) || self.0.load(Ordering::Acquire) == Self::WITHDRAWN
    }

    /// Begins to carry it out; false if it was withdrawn.
    fn take(&self) -> bool {
        self.change(Self::WANTED, Self::TAKEN) || self.is_taken()
    }

    fn is_taken(&self) -> bool {
        self.0.load(Ordering::Acquire) == Self::TAKEN
    }

    /// The transaction that carried it out was rolled back.
    pub(super) fn release(&self) {
        self.change(Self::TAKEN, Self::WANTED);
    }

    fn change(&self, from: u8, to: u8) -> bool {
        self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// A session being removed; a pruned session has no slot by its id.
struct Going {
    slot: Option<usize>,
    known: KnownSession,
    about: About,
}

impl Ingest {
    pub(super) fn apply_removal(&mut self, request: &RemovalRequest) -> Result<(), TransactionFailure> {
        if !request.ticket.take() {
            return Ok(());
        }
        let mut going = Vec::new();
        let mut pruned = None;
        for (id, about) in &request.sessions {
            if let Some(slot) = self.sessions.find(*id) {
                let known = self.sessions.known(slot).clone();
                going.push(Going { slot: Some(slot), known, about: about.clone() });
            } else if request.kind == RemovalKind::Forgotten {
                let pruned = match &mut pruned {
                    Some(pruned) => pruned,
                    None => pruned.insert(self.transaction.writer.reader().pruned()?),
                };
                let found = pruned.iter().find(|session| session.known.id == *id);
                going.extend(found.map(|session| Going {
                    slot: None,
                    known: session.known.clone(),
                    about: session.about.clone(),
                }));
            }
        }
        self.remove(&going, request.kind)?;
        if !going.is_empty() {
            // Makes streams send a new snapshot without these sessions.
            let position = self.transaction.next_position();
            self.transaction.writer.keep_position(position)?;
        }
        Ok(())
    }

    fn remove(&mut self, going: &[Going], kind: RemovalKind) -> Result<(), TransactionFailure> {
        let at = (self.clock)();
        let removals: Vec<SessionRemoval<'_>> =
            going.iter().map(|Going { known, about, .. }| SessionRemoval { known, kind, about, at }).collect();
        let head = self.transaction.writer.remove_sessions(&removals)?;
        self.transaction.set_audit_head(head);
        for Going { slot, known, .. } in going {
            if let Some(slot) = slot {
                self.processes.watch_request(known.id, None);
                self.sessions.remove(*slot);
            }
        }
        Ok(())
    }

    /// Removes a sub-agent's session whose parent was removed, before anything from it is stored.
    pub(super) fn remove_with_parent(&mut self, slot: usize, parent: &str) -> Result<(), TransactionFailure> {
        let known = self.sessions.known(slot).clone();
        if known.is_removed() || &*known.provider_session_id == parent {
            return Ok(());
        }
        let Some(kind) = self.transaction.writer.removed(known.provider, parent) else { return Ok(()) };
        let session = &self.state(slot)?.session;
        if session.last_sequence > 0 {
            return Ok(());
        }
        let mut about = About::of(session);
        about.above = about.above.or(self.transaction.writer.pruned_id(known.provider, parent)?);
        self.remove(&[Going { slot: Some(slot), known, about }], kind)
    }

    /// After the commit: removes the sessions from the live view.
    pub(super) fn removed(&self, request: RemovalRequest) {
        if !request.ticket.is_taken() {
            return;
        }
        let ids: Vec<SessionId> = request.sessions.iter().map(|(id, _)| *id).collect();
        for id in &ids {
            self.publisher.live_view.remove(*id);
        }
        self.publisher.onlooker.removed(&ids);
        self.publisher.live_view.advance(self.transaction.position());
        // The requester may be gone.
        request.done.send(()).ok();
    }
}
