//! The sessions that ingest knows: all sessions by name, the reducers of those in use, and each reducer's next
//! deadline.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap, HashSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
    time::{Duration, Instant},
};

use events::{Cursor, Event, Provider, SessionId, State, Timestamp};
use live_view::{Json, SessionEntry};
use projections::{Session, SessionState, StatusRules};
use store::{CommitError, KnownSession, ReadError, ReadFailure, Reader, SessionRow, Writer, removed_name};

use super::{
    activity::{active_until, is_active},
    shown,
};

/// Number of reducers kept in memory in addition to those with pending work.
const KEPT: usize = 128;

#[derive(Debug)]
struct SessionSlot {
    known: KnownSession,
    state: Option<Box<SessionState>>,
    deadline: Option<Timestamp>,
    dirty: bool,
    /// Whether the current state and reason were sent to streams before the commit.
    told_ahead: bool,
    /// Hash of the stored values that must be up to date in the store.
    stored: Option<u64>,
    /// Whether the stored row is behind the log.
    behind: bool,
    /// Whether the last event was history.
    past: bool,
    /// The value of the use counter when the session was last used.
    used: u64,
}

/// How long a session's row may be behind its log. A start folds the rest of the log into it.
const BEHIND: Duration = Duration::from_secs(2);
/// Number of events after which all rows are recorded as complete again.
const SETTLE_EVERY: u64 = 10_000;

/// Hash of the fields that other code acts on: a change to them is written with its commit.
fn prompt_part(session: &Session) -> u64 {
    let mut hasher = DefaultHasher::new();
    let reason = session.status.reason.filter(|reason| !reason.facts().is_progress).map(|reason| reason as u8);
    (reason, session.status.state as u8, &session.pending_approvals, session.turns, session.pid).hash(&mut hasher);
    (session.run_id, session.parent_session_id, session.merged_into, &session.forked_from).hash(&mut hasher);
    (&session.title, &session.cwd, &session.began_in, &session.git_branch, &session.labels).hash(&mut hasher);
    (&session.model, &session.cli_version, &session.permission_mode).hash(&mut hasher);
    let marks = session.marks.unwrap_or_default();
    (marks.pinned, marks.snoozed_until, marks.archived).hash(&mut hasher);
    hasher.finish()
}

/// The row of a session for the live view, without its JSON. Shares the string of the agent's id.
pub(super) fn cold_entry(session: &Session, active: bool, known: &KnownSession) -> SessionEntry {
    let mut entry = SessionEntry::cold(session, active);
    if let Some(name) = &mut entry.provider_session_id
        && *name == known.provider_session_id
    {
        *name = Arc::clone(&known.provider_session_id);
    }
    entry
}

/// Views of sessions as stored JSON.
pub(super) type StoredViews = Vec<(SessionId, String)>;

#[derive(Debug)]
pub(super) struct Sessions {
    slots: Vec<SessionSlot>,
    by_provider: HashMap<(Provider, Arc<str>), usize>,
    by_id: HashMap<SessionId, usize>,
    by_row: HashMap<SessionRow, usize>,
    dirty: Vec<usize>,
    woken: Vec<usize>,
    deadlines: BTreeSet<(Timestamp, usize)>,
    /// Sessions whose clock is stopped, by the file whose history is not fully read yet.
    resting: HashMap<String, BTreeSet<usize>>,
    /// Sessions that a daemon keeps although no process of their user is running.
    unattended: HashSet<SessionId>,
    /// Sessions whose rows are behind their logs, and the time since when the first of them is.
    behind: Vec<usize>,
    behind_since: Option<Instant>,
    /// Position up to which all rows are recorded as complete.
    settled: u64,
    loaded: usize,
    uses: u64,
    rules: StatusRules,
}

impl Sessions {
    /// Loads the sessions of the store, with the views of listed ones, newest last event first.
    pub(super) fn load(writer: &Writer, reader: &Reader, rules: StatusRules) -> Result<(Self, StoredViews), ReadError> {
        let (mut known, mut listed) = (Vec::new(), Vec::new());
        for stored in reader.stored_sessions()? {
            listed.extend(stored.view.map(|view| (stored.last_event_at, stored.known.id, view)));
            known.push(stored.known);
        }
        listed.sort_unstable_by_key(|(last_event_at, id, _)| Reverse((*last_event_at, *id)));
        let views = listed.into_iter().map(|(_, id, view)| (id, view)).collect();
        Ok((Self::new(known, writer, rules)?, views))
    }

    fn new(known: Vec<KnownSession>, writer: &Writer, rules: StatusRules) -> Result<Self, ReadError> {
        let mut sessions = Self {
            slots: Vec::new(),
            by_provider: HashMap::new(),
            by_id: HashMap::new(),
            by_row: HashMap::new(),
            dirty: Vec::new(),
            woken: Vec::new(),
            deadlines: BTreeSet::new(),
            resting: HashMap::new(),
            unattended: HashSet::new(),
            behind: Vec::new(),
            behind_since: None,
            settled: writer.settled()?,
            loaded: 0,
            uses: 0,
            rules,
        };
        for known in known {
            sessions.add(known);
        }
        Ok(sessions)
    }

    fn add(&mut self, known: KnownSession) -> usize {
        let slot = self.slots.len();
        self.by_provider.insert((known.provider, Arc::clone(&known.provider_session_id)), slot);
        if !known.is_removed() {
            self.by_id.insert(known.id, slot);
            self.by_row.insert(known.row, slot);
        }
        self.slots.push(SessionSlot {
            known,
            state: None,
            deadline: None,
            dirty: false,
            told_ahead: false,
            stored: None,
            behind: false,
            past: false,
            used: 0,
        });
        slot
    }

    pub(super) fn find(&self, id: SessionId) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    pub(super) fn find_by_row(&self, row: SessionRow) -> Option<usize> {
        self.by_row.get(&row).copied()
    }

    pub(super) fn find_by_provider(&self, provider: Provider, id: &Arc<str>) -> Option<usize> {
        self.by_provider.get(&(provider, Arc::clone(id))).copied()
    }

    /// The session with this name; created if it does not exist.
    pub(super) fn resolve(
        &mut self,
        writer: &mut Writer,
        provider: Provider,
        id: &Arc<str>,
        first_seen: Timestamp,
    ) -> Result<usize, CommitError> {
        if let Some(slot) = self.find_by_provider(provider, id) {
            return Ok(slot);
        }
        if writer.removed(provider, id).is_some() {
            return self.resolve_removed(writer, provider, id);
        }
        let session_id = SessionId::mint(first_seen, provider, id);
        let row = writer.add_session(session_id, provider, id)?;
        let known = KnownSession { row, id: session_id, provider, provider_session_id: Arc::clone(id), capture: true };
        let slot = self.add(known);
        let state = SessionState::new(session_id, provider, Some(Arc::clone(id)), first_seen, self.rules);
        self.slots[slot].state = Some(Box::new(state));
        self.loaded += 1;
        Ok(slot)
    }

    /// A placeholder for a removed session: it has no name, and nothing from the session is stored.
    fn resolve_removed(&mut self, writer: &mut Writer, provider: Provider, id: &str) -> Result<usize, CommitError> {
        let name: Arc<str> = removed_name(provider, id).into();
        if let Some(slot) = self.find_by_provider(provider, &name) {
            return Ok(slot);
        }
        let id = SessionId::mint(Timestamp::MIN, provider, &name);
        let row = writer.add_session(id, provider, &name)?;
        writer.set_capture(row, false)?;
        Ok(self.add(KnownSession { row, id, provider, provider_session_id: name, capture: false }))
    }

    /// Drops a session that was removed from the store.
    pub(super) fn remove(&mut self, slot: usize) {
        self.unlist(slot);
        self.set_deadline(slot, None);
        self.behind.retain(|behind| *behind != slot);
        let SessionSlot { known, state, behind, .. } = &mut self.slots[slot];
        *behind = false;
        if state.take().is_some() {
            self.loaded -= 1;
        }
        self.by_id.remove(&known.id);
        self.by_row.remove(&known.row);
        self.by_provider.remove(&(known.provider, Arc::clone(&known.provider_session_id)));
        known.provider_session_id = removed_name(known.provider, &known.provider_session_id).into();
        known.capture = false;
        self.by_provider.insert((known.provider, Arc::clone(&known.provider_session_id)), slot);
    }

    pub(super) fn known(&self, slot: usize) -> &KnownSession {
        &self.slots[slot].known
    }

    pub(super) fn set_capture(&mut self, slot: usize, on: bool) {
        self.slots[slot].known.capture = on;
    }

    /// The reducer of a session, from memory or from the store. Events of the log after the snapshot are folded; if the
    /// snapshot has another version, the whole log is.
    pub(super) fn state(&mut self, writer: &Writer, slot: usize) -> Result<&mut SessionState, ReadError> {
        self.uses += 1;
        self.slots[slot].used = self.uses;
        let state = match self.slots[slot].state.take() {
            Some(state) => state,
            None => {
                let state = Box::new(self.load_state(writer, slot)?);
                self.loaded += 1;
                state
            }
        };
        Ok(self.slots[slot].state.insert(state))
    }

    fn load_state(&mut self, writer: &Writer, slot: usize) -> Result<SessionState, ReadError> {
        let known = self.slots[slot].known.clone();
        let until = writer.last_sequence(known.row)?;
        let mut state = match writer.snapshot(known.row)? {
            Some(state) if state.session.last_sequence >= until => state,
            snapshot => {
                let state = fold_log(writer, &known, snapshot, self.rules)?;
                self.mark_behind(slot);
                state
            }
        };
        state.set_rules(self.rules);
        Ok(state)
    }

    pub(super) fn loaded(&self, slot: usize) -> Option<&SessionState> {
        self.slots[slot].state.as_deref()
    }

    pub(super) fn loaded_mut(&mut self, slot: usize) -> Option<&mut SessionState> {
        self.slots[slot].state.as_deref_mut()
    }

    /// All reducers in memory, with their slots.
    pub(super) fn all_loaded(&self) -> impl Iterator<Item = (usize, &SessionState)> {
        self.slots.iter().enumerate().filter_map(|(slot, s)| s.state.as_deref().map(|state| (slot, state)))
    }

    /// Sets whether the last event of a session was history.
    pub(super) fn set_past(&mut self, slot: usize, past: bool) {
        self.slots[slot].past = past;
    }

    /// Whether the last event of a session was history.
    pub(super) fn is_past(&self, slot: usize) -> bool {
        self.slots[slot].past
    }

    /// Removes a session that is not captured from the lists.
    pub(super) fn unlist(&mut self, slot: usize) {
        self.dirty.retain(|dirty| *dirty != slot);
        self.slots[slot].dirty = false;
    }

    /// Records that the session changed in the open transaction.
    pub(super) fn mark(&mut self, slot: usize) {
        let entry = &mut self.slots[slot];
        entry.told_ahead = false;
        if !entry.dirty && !entry.known.is_removed() {
            entry.dirty = true;
            self.dirty.push(slot);
        }
    }

    /// Changed sessions that were not sent to streams yet.
    pub(super) fn changed_ahead(&mut self) -> Vec<usize> {
        let slots: Vec<usize> = self.dirty.iter().copied().filter(|s| !self.slots[*s].told_ahead).collect();
        for slot in &slots {
            self.slots[*slot].told_ahead = true;
        }
        slots
    }

    /// Updates a session's deadline: the next timeout, or the time it leaves the list of active sessions.
    pub(super) fn schedule(&mut self, slot: usize, now: Timestamp) {
        let state = self.loaded(slot).filter(|_| !self.known(slot).is_removed());
        let Some(state) = state else { return self.set_deadline(slot, None) };
        let unattended = self.unattended.contains(&state.session.id);
        let leaves = active_until(&state.session, unattended).filter(|until| *until > now);
        let due = state.next_deadline().into_iter().chain(leaves).min();
        self.set_deadline(slot, due);
    }

    /// Sets the deadline of a session that is not in memory: the time it leaves the list of active sessions.
    pub(super) fn schedule_cold(&mut self, session: &Session, now: Timestamp) {
        let due = active_until(session, false).filter(|until| *until > now);
        if let Some(slot) = self.find(session.id).filter(|_| due.is_some()) {
            self.set_deadline(slot, due);
        }
    }

    /// Whether a session belongs on the list of active sessions.
    pub(super) fn is_active(&self, session: &Session, now: Timestamp) -> bool {
        is_active(session, self.unattended.contains(&session.id), now)
    }

    /// Whether a session leaves the list of active sessions because it has been inactive.
    pub(super) fn leaves_list(&self, slot: usize, now: Timestamp) -> bool {
        let session = self.loaded(slot).map(|state| &state.session);
        session.is_some_and(|session| session.status.state != State::Exited && !self.is_active(session, now))
    }

    /// Sets which sessions a daemon keeps although no process of their user is running; returns those that changed.
    pub(super) fn set_unattended(&mut self, unattended: HashSet<SessionId>) -> Vec<usize> {
        let before = std::mem::replace(&mut self.unattended, unattended);
        before.symmetric_difference(&self.unattended).filter_map(|id| self.find(*id)).collect()
    }

    fn set_deadline(&mut self, slot: usize, due: Option<Timestamp>) {
        if let Some(old) = std::mem::replace(&mut self.slots[slot].deadline, due) {
            self.deadlines.remove(&(old, slot));
        }
        if let Some(due) = due {
            self.deadlines.insert((due, slot));
        }
    }

    /// The next deadline.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        self.deadlines.first().map(|(due, _)| *due)
    }

    /// Removes and returns the session with the earliest expired deadline.
    pub(super) fn take_due(&mut self, now: Timestamp) -> Option<usize> {
        let (_, slot) = self.deadlines.first().filter(|(due, _)| *due <= now)?;
        let slot = *slot;
        self.deadlines.pop_first();
        Some(slot)
    }

    /// Stops a session's clock while the history of its file is read in parts: the rest contains what happened next.
    /// The last part restarts the clock.
    pub(super) fn rest(
        &mut self,
        cursor: &Cursor,
        reads_on: bool,
        touched: impl Iterator<Item = usize>,
        now: Timestamp,
    ) {
        if reads_on {
            let mut resting = self.resting.remove(&cursor.path).unwrap_or_default();
            for slot in touched {
                resting.insert(slot);
                self.set_deadline(slot, None);
            }
            self.resting.insert(cursor.path.clone(), resting);
        } else {
            let mut awake = self.resting.remove(&cursor.path).unwrap_or_default();
            awake.extend(touched);
            awake.into_iter().for_each(|slot| self.schedule(slot, now));
        }
    }

    /// Writes the changed sessions. Without `all`, sessions whose change can wait are written only once the oldest
    /// pending row is overdue. Returns the live view's rows of all changed sessions.
    pub(super) fn write_changed(
        &mut self,
        writer: &mut Writer,
        position: u64,
        all: bool,
        (now, wall): (Timestamp, Timestamp),
    ) -> Result<Vec<SessionEntry>, CommitError> {
        let all = all || self.behind_due().is_some_and(|due| due.is_zero());
        let mut entries = Vec::new();
        for slot in self.dirty.clone() {
            let SessionSlot { known, state, .. } = &mut self.slots[slot];
            let Some(state) = state.as_deref_mut() else { continue };
            let Ok(view) = Json::of(&shown(state, wall)) else { continue };
            let active = is_active(&state.session, self.unattended.contains(&state.session.id), now);
            let cold = cold_entry(&state.session, active, known);
            entries.push(SessionEntry { json: Some(view.clone()), ..cold });
            let prompt = Some(prompt_part(&state.session));
            if all || self.slots[slot].stored != prompt {
                self.write(writer, slot, &view)?;
            } else {
                self.mark_behind(slot);
            }
        }
        if all {
            for slot in std::mem::take(&mut self.behind) {
                if std::mem::take(&mut self.slots[slot].behind)
                    && let Some(state) = self.slots[slot].state.as_deref_mut()
                    && let Ok(view) = Json::of(&shown(state, wall))
                {
                    self.write(writer, slot, &view)?;
                }
            }
            let wrote_late = self.behind_since.take().is_some();
            if wrote_late || position >= self.settled + SETTLE_EVERY {
                writer.settle(position)?;
                self.settled = position;
            }
        }
        Ok(entries)
    }

    /// Makes the next write of all rows record that they are complete up to this position, so that the next start does
    /// not fold any log into them.
    pub(super) fn settle_at_next_write(&mut self, position: u64) {
        if self.settled < position {
            self.behind_since.get_or_insert_with(Instant::now);
        }
    }

    /// Marks the row of a session as behind its log.
    fn mark_behind(&mut self, slot: usize) {
        if !std::mem::replace(&mut self.slots[slot].behind, true) {
            self.behind.push(slot);
            self.behind_since.get_or_insert_with(Instant::now);
        }
    }

    /// Writes the row of a session.
    fn write(&mut self, writer: &mut Writer, slot: usize, view: &Json) -> Result<(), CommitError> {
        let entry = &mut self.slots[slot];
        let Some(state) = entry.state.as_deref() else { return Ok(()) };
        let Ok(snapshot) = serde_json::to_string(state) else { return Ok(()) };
        writer.put_session(entry.known.row, state.session.last_event_at, view.as_str(), &snapshot)?;
        entry.stored = Some(prompt_part(&state.session));
        entry.behind = false;
        Ok(())
    }

    /// Time until the rows that are behind must be written; `None` if there are none.
    pub(super) fn behind_due(&self) -> Option<Duration> {
        self.behind_since.map(|since| BEHIND.saturating_sub(since.elapsed()))
    }

    /// Finds the sessions whose rows were behind when the last program ended.
    pub(super) fn load_behind(&mut self, writer: &Writer) -> Result<(), ReadError> {
        for row in writer.unsettled()? {
            if let Some(slot) = self.find_by_row(row) {
                self.state(writer, slot)?;
            }
        }
        Ok(())
    }

    /// The sessions with this agent's id whose rows are behind.
    pub(super) fn behind_of_provider_id(&self, id: &str) -> Vec<usize> {
        let is_named = |slot: &usize| &*self.slots[*slot].known.provider_session_id == id;
        self.behind.iter().copied().filter(is_named).collect()
    }

    /// Sessions that changed in the open transaction.
    pub(super) fn changed(&self) -> &[usize] {
        &self.dirty
    }

    /// Whether the row of a session is behind its log.
    pub(super) fn is_behind(&self, slot: usize) -> bool {
        self.slots[slot].behind
    }

    /// After a commit: marks all sessions as clean, and unloads reducers that will not be needed soon.
    pub(super) fn settle(&mut self) {
        for slot in self.dirty.drain(..) {
            self.slots[slot].dirty = false;
        }
        if self.loaded <= KEPT * 2 {
            return;
        }
        let mut idle: Vec<(u64, usize)> = self
            .slots
            .iter()
            .enumerate()
            .filter(|(_, s)| {
                s.state.is_some()
                    && !s.behind
                    && s.deadline.is_none()
                    && s.state.as_deref().is_none_or(|st| st.process().is_none())
            })
            .map(|(i, s)| (s.used, i))
            .collect();
        idle.sort_unstable();
        let surplus = self.loaded.saturating_sub(KEPT).min(idle.len());
        for (_, slot) in idle.into_iter().take(surplus) {
            self.slots[slot].state = None;
            self.loaded -= 1;
        }
    }

    /// Schedules a session whose deadlines must be observed from the start.
    pub(super) fn wake(&mut self, id: SessionId) {
        if let Some(slot) = self.find(id) {
            self.woken.push(slot);
        }
    }

    pub(super) fn woken(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.woken)
    }

    /// After a rollback: reloads everything from the store, including the reducers that were in memory.
    pub(super) fn reload(&mut self, writer: &Writer, now: Timestamp) -> Result<(), ReadError> {
        let loaded: Vec<SessionId> = self.slots.iter().filter(|s| s.state.is_some()).map(|s| s.known.id).collect();
        let unattended = std::mem::take(&mut self.unattended);
        *self = Self { unattended, ..Self::new(writer.sessions()?, writer, self.rules)? };
        for id in loaded {
            if let Some(slot) = self.find(id) {
                self.state(writer, slot)?;
                self.schedule(slot, now);
            }
        }
        Ok(())
    }
}

/// Number of events folded at a time.
const FOLD_PAGE: usize = 1_000;

/// Folds a session's log into the given state, or from the beginning.
fn fold_log(
    writer: &Writer,
    known: &KnownSession,
    mut state: Option<SessionState>,
    rules: StatusRules,
) -> Result<SessionState, ReadError> {
    let KnownSession { row, id, provider, .. } = *known;
    let provider_session_id = Arc::clone(&known.provider_session_id);
    let reader = writer.reader();
    let mut after = state.as_ref().map_or(0, |state| state.session.last_sequence);
    loop {
        let page: Vec<Event> = match reader.events(id, after, FOLD_PAGE, &[]) {
            Ok(page) => page,
            // A partly readable session is better than none.
            Err(error) if error.failure() == ReadFailure::Damaged => {
                tracing::error!(session = %id, after, %error, "the log of a session is damaged; events after the damaged one are left out");
                break;
            }
            Err(error) => return Err(error),
        };
        let is_last = page.len() < FOLD_PAGE;
        for event in page {
            after = event.sequence;
            let first =
                || SessionState::new(id, provider, Some(Arc::clone(&provider_session_id)), event.created_at, rules);
            reader.fold(state.get_or_insert_with(first), event)?;
        }
        if is_last {
            break;
        }
    }
    let mut state =
        state.unwrap_or_else(|| SessionState::new(id, provider, Some(provider_session_id), Timestamp::MIN, rules));
    // The next event must not reuse the sequence of an unreadable one.
    state.session.last_sequence = state.session.last_sequence.max(writer.last_sequence(row)?);
    Ok(state)
}
