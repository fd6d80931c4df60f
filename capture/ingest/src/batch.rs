//! Applies a batch read from a transcript: finds out which records are new and which session they belong to.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
    sync::Arc,
};

use events::{Cursor, Identity, NewEvent, Payload, Repeat, SessionStarted, Timestamp, UsageReported};
use projections::{Session, SessionHealth, TranscriptView};
use store::{ReadError, RemovalKind};
use tailer::collect::Batch;

use super::{
    Ingest, PreparedBatch, TransactionFailure,
    fold::{UnsequencedEvent, first_seen},
    message::{Merge, OpenMessage, as_delta},
    transaction::{Additions, PreparedParts},
};

/// Maximum number of identical records without an id that are counted separately.
const OCCURRENCES: u32 = 100_000;

impl Ingest {
    pub(super) fn apply_batch(&mut self, prepared: &PreparedBatch) -> Result<(), TransactionFailure> {
        let batch = &prepared.batch;
        let mut additions = Additions::with_capacity(batch.events.len());
        let mut open = OpenMessage::default();
        let mut forks: HashMap<(usize, usize), Timestamp> = HashMap::new();
        let mut placed: HashSet<usize> = HashSet::new();
        for (index, new) in batch.events.iter().enumerate() {
            let slot = match self.sessions.find_by_provider(new.provider, &new.provider_session_id) {
                Some(slot) => slot,
                None => {
                    let timed = batch.events[index..].iter().find(|e| e.created_at.is_some()).unwrap_or(new);
                    let seen_at = match timed.created_at {
                        None if batch.history => written_at(batch, timed),
                        Some(_) | None => first_seen(timed, batch.history),
                    };
                    self.resolve(new.provider, &new.provider_session_id, seen_at)?
                }
            };
            // Lines before the one that names the directory are dropped too. A session may be known before its
            // directory is, for example as the parent of a sub-agent or from a hook.
            if placed.insert(slot) {
                if self.transaction.writer.has_removed()
                    && let Some(parent) =
                        first_start(&batch.events[index..], |s| s.parent_provider_session_id.as_deref())
                {
                    self.remove_with_parent(slot, parent)?;
                }
                if !self.ignored.is_empty()
                    && let Some(cwd) = first_start(&batch.events[index..], |started| started.cwd.as_deref())
                {
                    self.turn_off_if_ignored(slot, cwd)?;
                }
            }
            if let Payload::SessionStarted(SessionStarted { cwd: Some(cwd), .. }) = &new.payload {
                self.turn_off_if_ignored(slot, cwd)?;
            }
            let (row, is_removed) = (self.sessions.known(slot).row, self.sessions.known(slot).is_removed());
            if !self.sessions.known(slot).capture {
                // Learn the identity: another session's file may contain copies of the record.
                if is_removed && new.repeat == Repeat::Unique {
                    self.transaction.writer.learn(new.identity, row)?;
                }
                continue;
            }
            let Some(identity) = self.learn(new, row, slot, &mut forks)? else {
                if let Payload::UsageReported(usage) = &new.payload {
                    self.count_growth(new, usage, batch.history, &mut additions)?;
                }
                continue;
            };
            let last_message = if let Payload::AssistantMessage(_) = &new.payload {
                self.state(slot)?.last_message().map(str::to_owned)
            } else {
                None
            };
            let payload = match open.merge(slot, new, last_message.as_deref(), &mut additions.events) {
                Merge::Into => {
                    self.transaction.add_merged(new.provider);
                    continue;
                }
                Merge::Delta => as_delta(&new.payload),
                Merge::New => None,
            };
            let is_as_read = payload.is_none() && !self.redacted_only;
            let dated;
            let new = if batch.history && new.created_at.is_none() {
                dated = NewEvent {
                    created_at: Some(self.neighbour_time(slot, batch, &batch.events[index..])),
                    ..new.clone()
                };
                &dated
            } else {
                new
            };
            let text = prepared.events[index].text.as_ref();
            let draft = UnsequencedEvent { new, identity, payload, text, history: batch.history };
            let event = self.make(slot, draft)?;
            if let Payload::AssistantMessage(_) = event.payload {
                open.begin(slot, additions.events.len());
            }
            // `make` completes the start of a session and the origin of a prompt.
            let may_differ = matches!(event.payload, Payload::SessionStarted(_) | Payload::UserPrompt(_));
            let is_as_read = is_as_read && (!may_differ || event.payload == new.payload);
            let prepared = PreparedParts { text: text.map(|_| index), payload: is_as_read.then_some(index) };
            self.fold_prepared(slot, event, text, prepared, &mut additions)?;
        }
        for ((slot, other), at) in forks {
            self.fork(slot, other, at, batch.history, &mut additions)?;
        }
        let reads_on = batch.history && !batch.cursor.caught_up && !batch.vanished;
        if batch.history && !reads_on {
            // The last process scan may have seen an agent that has the file open.
            self.processes.wanted(false);
        }
        let touched = additions.events.iter().map(|addition| addition.slot);
        self.sessions.rest(&batch.cursor, reads_on, touched, (self.clock)());
        additions.write(&mut self.transaction, &self.sessions, &prepared.events, batch.history)?;
        if !self.is_of_forgotten(batch, &placed) {
            self.transaction.writer.put_cursor(&batch.cursor)?;
        }
        self.record_transcript(prepared);
        Ok(())
    }

    /// Whether all sessions of the batch's file are forgotten. Then its path is not stored either, and the file is read
    /// again, without effect, after the next start.
    fn is_of_forgotten(&self, batch: &Batch, sessions: &HashSet<usize>) -> bool {
        let writer = &self.transaction.writer;
        let is_forgotten = |id: &str| writer.removed(batch.provider, id) == Some(RemovalKind::Forgotten);
        sessions.iter().all(|slot| self.sessions.known(*slot).is_removed())
            && batch
                .events
                .first()
                .map(|new| &*new.provider_session_id)
                .or(batch.cursor.provider_session_id.as_deref())
                .is_some_and(is_forgotten)
    }

    /// The time of a historical record that contains none: the time of the session's last event, else of the next
    /// record with a time, else the modification time of the file.
    fn neighbour_time(&self, slot: usize, batch: &Batch, following: &[NewEvent]) -> Timestamp {
        let this = &following[0];
        let before =
            self.sessions.loaded(slot).filter(|s| s.session.last_sequence > 0).map(|s| s.session.last_event_at);
        let next = || {
            following.iter().filter(|e| e.provider_session_id == this.provider_session_id).find_map(|e| e.created_at)
        };
        before.or_else(next).unwrap_or_else(|| written_at(batch, this))
    }

    /// Turns capture off for a session that begins in an ignored directory, before anything from the session is stored.
    pub(super) fn turn_off_if_ignored(&mut self, slot: usize, cwd: &str) -> Result<(), TransactionFailure> {
        if !self.sessions.known(slot).capture || !self.ignored.holds(Path::new(cwd)) {
            return Ok(());
        }
        let begins = self.state(slot)?.session.cwd.is_none();
        if begins {
            let row = self.sessions.known(slot).row;
            self.transaction.writer.set_capture(row, false)?;
            self.sessions.set_capture(slot, false);
            self.sessions.unlist(slot);
        }
        Ok(())
    }

    /// Whether a record is new. A known record that belongs to another session makes this session a fork of that one.
    fn learn(
        &mut self,
        new: &NewEvent,
        row: store::SessionRow,
        slot: usize,
        forks: &mut HashMap<(usize, usize), Timestamp>,
    ) -> Result<Option<Identity>, TransactionFailure> {
        match new.repeat {
            Repeat::Unique => {
                if self.transaction.writer.learn(new.identity, row)? {
                    return Ok(Some(new.identity));
                }
                self.publisher.gauges.counters.repeated.inc();
                if matches!(new.payload, Payload::UserPrompt(_) | Payload::AssistantMessage(_)) {
                    let owner = self.transaction.writer.known(new.identity)?.filter(|owner| *owner != row);
                    if let Some(owner) = owner.and_then(|o| self.sessions.find_by_row(o)) {
                        forks.entry((slot, owner)).or_insert(new.created_at.unwrap_or(new.observed_at));
                    }
                }
                Ok(None)
            }
            Repeat::Next => self.learn_next(new.identity, row),
        }
    }

    /// Learns the first unknown occurrence of a record.
    fn learn_next(
        &mut self,
        identity: Identity,
        row: store::SessionRow,
    ) -> Result<Option<Identity>, TransactionFailure> {
        for occurrence in 0..OCCURRENCES {
            let identity = identity.occurrence(occurrence);
            if self.transaction.writer.learn(identity, row)? {
                return Ok(Some(identity));
            }
        }
        Ok(None)
    }

    /// Adds the growth of an already counted response to the session in which it was counted.
    fn count_growth(
        &mut self,
        new: &NewEvent,
        usage: &UsageReported,
        history: bool,
        additions: &mut Additions,
    ) -> Result<(), TransactionFailure> {
        let owner = self.transaction.writer.known(new.identity)?;
        let Some((row, slot)) = owner.and_then(|row| Some((row, self.sessions.find_by_row(row)?))) else {
            return Ok(());
        };
        if !self.sessions.known(slot).capture {
            return Ok(());
        }
        let Some(growth) = self.state(slot)?.usage_growth(usage) else { return Ok(()) };
        let Some(identity) = self.learn_next(new.identity, row)? else { return Ok(()) };
        let draft = UnsequencedEvent { new, identity, payload: Some(growth.into()), text: None, history };
        let event = self.make(slot, draft)?;
        self.fold(slot, event, additions)
    }

    /// Records how far a session's transcript was read, in the session's row.
    fn record_transcript(&mut self, prepared: &PreparedBatch) {
        let batch = &prepared.batch;
        let Some(id) = batch
            .cursor
            .provider_session_id
            .as_deref()
            .filter(|_| transcripts::is_transcript(batch.provider, &batch.cursor.path))
        else {
            return;
        };
        let Some(slot) = self.sessions.find_by_provider(batch.provider, &Arc::from(id)) else { return };
        let Ok(state) = self.state(slot) else { return };
        let untold = state.session.last_sequence == 0;
        if untold && !self.sessions.known(slot).capture {
            return;
        }
        let Some(state) = self.sessions.loaded_mut(slot) else { return };
        put_transcript(&mut state.session, &batch.cursor, batch.backfill);
        self.sessions.mark(slot);
    }

    /// Restores the read positions of transcripts after sessions were loaded whose rows are behind: the log does not
    /// contain them.
    pub(super) fn restore_transcripts(&mut self) -> Result<(), ReadError> {
        if self.sessions.behind_due().is_none() {
            return Ok(());
        }
        for cursor in self.transaction.writer.reader().cursors()? {
            let Some(id) = cursor.provider_session_id.as_deref() else { continue };
            for slot in self.sessions.behind_of_provider_id(id) {
                if transcripts::is_transcript(self.sessions.known(slot).provider, &cursor.path)
                    && let Some(state) = self.sessions.loaded_mut(slot)
                {
                    put_transcript(&mut state.session, &cursor, false);
                }
            }
        }
        Ok(())
    }
}

/// Records the read position of one transcript.
fn put_transcript(session: &mut Session, cursor: &Cursor, backfill: bool) {
    let view = TranscriptView {
        path: cursor.path.clone(),
        size: cursor.size,
        offset: cursor.offset,
        generation: cursor.generation,
        issues: cursor.issues,
    };
    let transcripts = &mut session.transcripts;
    match transcripts.iter_mut().find(|t| t.path == view.path) {
        Some(known) => *known = view,
        None => transcripts.push(view),
    }
    session.health = if transcripts.iter().any(|t| t.issues > 0) {
        SessionHealth::Issues
    } else if transcripts.iter().any(|t| t.offset < t.size) && backfill {
        SessionHealth::Behind
    } else {
        SessionHealth::Ok
    };
}

/// The modification time of the event's file, at most the time the event was observed.
fn written_at(batch: &Batch, event: &NewEvent) -> Timestamp {
    batch.modified_at.unwrap_or(event.observed_at).min(event.observed_at)
}

/// A field of the first `session.started` event of the session to which the first of these events belongs.
fn first_start<'a>(events: &'a [NewEvent], of: impl Fn(&'a SessionStarted) -> Option<&'a str>) -> Option<&'a str> {
    let session = &events.first()?.provider_session_id;
    events
        .iter()
        .filter(|e| e.provider_session_id == *session)
        .find_map(|e| if let Payload::SessionStarted(started) = &e.payload { of(started) } else { None })
}
