//! Removes sessions: from the store, from what is kept of them in memory, from the live view.

use events::SessionId;
use store::{KnownSession, RemovalKind, SessionRemoval};
use tokio::sync::oneshot;

use super::{Ingest, TransactionFailure};

/// Sessions that are to be removed.
#[derive(Debug)]
pub struct RemovalRequest {
    /// Each with what has to be known of it until it is erased everywhere.
    pub sessions: Vec<(SessionId, String)>,
    /// Why.
    pub kind: RemovalKind,
    /// Is sent to after the commit.
    pub done: oneshot::Sender<()>,
}

impl Ingest {
    pub(super) fn apply_removal(&mut self, request: &RemovalRequest) -> Result<(), TransactionFailure> {
        let found = |(id, about): &(SessionId, String)| Some((self.sessions.find(*id)?, about.clone()));
        let found: Vec<(usize, String)> = request.sessions.iter().filter_map(found).collect();
        self.remove(&found, request.kind)?;
        if !found.is_empty() {
            // Streams get a new snapshot, without these sessions.
            let position = self.transaction.next_position();
            self.transaction.writer.keep_position(position)?;
        }
        Ok(())
    }

    fn remove(&mut self, slots: &[(usize, String)], kind: RemovalKind) -> Result<(), TransactionFailure> {
        let at = (self.clock)();
        let known: Vec<KnownSession> = slots.iter().map(|(slot, _)| self.sessions.known(*slot).clone()).collect();
        let removals: Vec<SessionRemoval<'_>> =
            known.iter().zip(slots).map(|(known, (_, about))| SessionRemoval { known, kind, about, at }).collect();
        let head = self.transaction.writer.remove_sessions(&removals)?;
        self.transaction.set_audit_head(head);
        for ((slot, _), known) in slots.iter().zip(&known) {
            self.processes.watch_request(known.id, None);
            self.sessions.remove(*slot);
        }
        Ok(())
    }

    /// A helper that begins in a session that was removed is removed too, before anything of it is kept.
    pub(super) fn remove_with_parent(&mut self, slot: usize, parent: &str) -> Result<(), TransactionFailure> {
        let known = self.sessions.known(slot);
        if known.is_removed() || &*known.provider_session_id == parent {
            return Ok(());
        }
        let Some(kind) = self.transaction.writer.removed(known.provider, parent) else { return Ok(()) };
        if self.state(slot)?.session.last_sequence > 0 {
            return Ok(());
        }
        self.remove(&[(slot, String::new())], kind)
    }

    /// After the commit: nobody sees them any more.
    pub(super) fn removed(&self, request: RemovalRequest) {
        let ids: Vec<SessionId> = request.sessions.iter().map(|(id, _)| *id).collect();
        for id in &ids {
            self.publisher.live_view.remove(*id);
        }
        self.publisher.onlooker.removed(&ids);
        self.publisher.live_view.advance(self.transaction.position());
        // Whoever asked may have gone away meanwhile.
        request.done.send(()).ok();
    }
}
