//! Loads the stored sessions at start: puts them on the live view, and selects those to keep in memory.

use std::thread;

use crossbeam_channel::bounded;
use events::{ApprovalState, Finding, FindingState, SessionId, State, Timestamp};
use live_view::{Json, LiveView, SessionEntry};
use projections::{Approval, Session};
use store::{EntityFilter, ReadError, Reader};

use super::{
    Ingest,
    activity::is_active,
    publisher,
    sessions::{StoredViews, cold_entry},
    shown,
};

/// Maximum number of earlier pending approvals, and of open findings, in a snapshot.
const OPEN_ITEMS: usize = 10_000;
/// Views are parsed on a separate thread, in chunks of this size.
const PARSED_AT_ONCE: usize = 64;
/// Number of parsed chunks the thread may be ahead.
const PARSED_AHEAD: usize = 2;

impl Ingest {
    /// Puts every known session on the live view, and starts the clocks of those that may change.
    pub(super) fn load_board(&mut self, views: StoredViews, reader: &Reader) -> Result<(), ReadError> {
        self.sessions.load_behind(&self.transaction.writer)?;
        self.restore_transcripts()?;
        let now = (self.clock)();
        let mut entries = Vec::with_capacity(views.len());
        thread::scope(|scope| {
            let (send, parsed) = bounded(PARSED_AHEAD);
            let mut views = views.into_iter();
            scope.spawn(move || {
                let parse = |(id, json): (SessionId, String)| (id, reader.parsed("session", id, &json), json);
                while views.len() > 0 && send.send(views.by_ref().take(PARSED_AT_ONCE).map(parse).collect()).is_ok() {}
            });
            for (index, (id, session, json)) in parsed.iter().flat_map(Vec::into_iter).enumerate() {
                entries.extend(self.load_entry(index, id, session, json, now)?);
            }
            Ok::<_, ReadError>(())
        })?;
        self.load_open_items(reader)?;
        self.publisher.live_view.load(entries, self.transaction.position());
        for slot in self.sessions.woken() {
            let process = self.state(slot)?.process();
            self.sessions.schedule(slot, now);
            if let Some((pid, start)) = process {
                self.processes.watch(pid, start);
            }
            self.watch_request(slot);
        }
        self.transaction.writer.shrink();
        Ok(())
    }

    /// The live view's entry for a session whose stored view is `session` and `json`.
    fn load_entry(
        &mut self,
        index: usize,
        id: SessionId,
        session: Option<Session>,
        json: String,
        now: Timestamp,
    ) -> Result<Option<SessionEntry>, ReadError> {
        let slot = self.sessions.find(id);
        let is_behind = slot.is_some_and(|slot| self.sessions.is_behind(slot));
        let (session, json) = match session.filter(|_| !is_behind) {
            Some(session) => (session, Some(Json::from_text(json))),
            None => match self.rebuild_view(id)? {
                Some(session) => {
                    let json = Json::of(&session).ok();
                    (session, json)
                }
                None => return Ok(None),
            },
        };
        self.sessions.schedule_cold(&session, now);
        let active = is_active(&session, false, now);
        let mut entry = match slot {
            Some(slot) => cold_entry(&session, active, self.sessions.known(slot)),
            None => SessionEntry::cold(&session, active),
        };
        if index < LiveView::HOT_ROWS {
            entry.json = json;
        }
        // A resting session may still have a process whose end must be noticed, an open turn, or an approval that is
        // about to be closed.
        if session.pid.is_some()
            || session.turn.is_some()
            || !session.pending_approvals.is_empty()
            || !matches!(session.status.state, State::Exited | State::Idle | State::Unknown)
        {
            self.sessions.wake(session.id);
        }
        Ok(Some(entry))
    }

    /// Puts the open approvals and findings on the live view.
    fn load_open_items(&self, reader: &Reader) -> Result<(), ReadError> {
        let view = &self.publisher.live_view;
        let states = Some(ApprovalState::Pending..=ApprovalState::Pending);
        let filter = EntityFilter { states, session: None, behind: None, limit: OPEN_ITEMS };
        for approval in reader.entities::<Approval>(&filter)? {
            view.put_approval(publisher::pending(&approval));
        }
        let states = Some(FindingState::Open..=FindingState::Acknowledged);
        let filter = EntityFilter { states, session: None, behind: None, limit: OPEN_ITEMS };
        for finding in reader.entities::<Finding>(&filter)? {
            view.put_finding(publisher::open(&finding));
        }
        Ok(())
    }

    /// Rebuilds the damaged stored view of a session from its reducer; it is stored with the next commit.
    fn rebuild_view(&mut self, id: SessionId) -> Result<Option<Session>, ReadError> {
        let Some(slot) = self.sessions.find(id) else { return Ok(None) };
        let wall = (self.wall)();
        let session = shown(self.state(slot)?, wall);
        if let Err(error) = self.transaction.begin() {
            tracing::warn!(%error, "cannot store the new state of a session now; it is stored with the session's next event");
            return Ok(Some(session));
        }
        self.sessions.mark(slot);
        Ok(Some(session))
    }
}
