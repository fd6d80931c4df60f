//! Applying one input to the open transaction.

use std::{
    collections::HashSet,
    path::Path,
    sync::{Arc, atomic::Ordering},
};

use events::{
    Annotation, Claim, Confidence, Event, Identity, NewEvent, Origin, Payload, Provider, Repeat, SessionForked,
    SessionId, Signal, Source, State, Timestamp, Topic,
};
use projections::{Conclusion, Health, TranscriptView};

use super::{
    Failure, Ingest, Prepared,
    message::{Merge, OpenMessage, as_delta},
};
use crate::redaction;

/// A session with fewer events than this has just begun.
const FRESH_EVENTS: u64 = 20;
/// At most so many copies of a record without an id are told apart.
const OCCURRENCES: u32 = 100_000;

impl Ingest {
    pub(super) fn apply_batch(&mut self, prepared: &Prepared) -> Result<(), Failure> {
        let batch = &prepared.batch;
        let mut pending: Vec<(usize, Event, Option<usize>)> = Vec::with_capacity(batch.events.len());
        let mut derived = Vec::new();
        let mut open = OpenMessage::default();
        let mut forks: HashSet<(usize, usize)> = HashSet::new();
        let mut placed: HashSet<usize> = HashSet::new();
        for (index, new) in batch.events.iter().enumerate() {
            let slot = match self.sessions.find_by_provider(new.provider, &new.provider_session_id) {
                Some(slot) => slot,
                None => {
                    let timed = batch.events[index..].iter().find(|e| e.created_at.is_some()).unwrap_or(new);
                    self.sessions.resolve(
                        &mut self.writer,
                        new.provider,
                        &new.provider_session_id,
                        first_seen(timed, batch.history),
                    )?
                }
            };
            // Lines before the one that names the directory are not kept either. A session may be known by name before
            // its directory is: as a helper's parent, by a hook.
            if !self.ignored.is_empty()
                && placed.insert(slot)
                && let Some(cwd) = first_cwd(&batch.events[index..])
            {
                self.turn_off_if_ignored(slot, cwd)?;
            }
            if let Payload::SessionStarted(events::SessionStarted { cwd: Some(cwd), .. }) = &new.payload {
                self.turn_off_if_ignored(slot, cwd)?;
            }
            if !self.sessions.known(slot).capture {
                continue;
            }
            let row = self.sessions.known(slot).row;
            let Some(identity) = self.learn(new, row, slot, &mut forks)? else { continue };
            let last_message = if let Payload::AssistantMessage(_) = &new.payload {
                self.sessions.state(&self.writer, slot)?.last_message().map(str::to_owned)
            } else {
                None
            };
            let payload = match open.merge(slot, new, last_message.as_deref(), &mut pending) {
                Merge::Into => continue,
                Merge::Delta => as_delta(&new.payload),
                Merge::New => None,
            };
            let packed = prepared.texts.get(index).is_some_and(Option::is_some).then_some(index);
            let dated;
            let new = if batch.history && new.created_at.is_none() {
                dated = NewEvent { created_at: Some(self.neighbour_time(slot, &batch.events[index..])), ..new.clone() };
                &dated
            } else {
                new
            };
            let event = self.make(
                slot,
                new,
                identity,
                payload,
                packed.and_then(|i| prepared.texts[i].as_ref()),
                batch.history,
            )?;
            if let Payload::AssistantMessage(_) = event.payload {
                open.begin(slot, pending.len());
            }
            self.fold(slot, event, packed, &mut pending, &mut derived)?;
        }
        for (slot, other) in forks {
            self.fork(slot, other, &mut pending, &mut derived)?;
        }
        let reads_on = batch.history && !batch.cursor.caught_up && !batch.vanished;
        self.rest(&batch.cursor, reads_on, pending.iter().map(|(slot, ..)| *slot));
        for (slot, event, packed) in pending {
            let text = packed.and_then(|i| prepared.texts[i].as_ref());
            self.append(slot, event, text, batch.history)?;
        }
        self.write_derived(derived, batch.history)?;
        self.writer.put_cursor(&batch.cursor)?;
        self.note_transcript(prepared);
        Ok(())
    }

    /// A record of history that has no time of its own happened when its neighbours did.
    fn neighbour_time(&self, slot: usize, following: &[NewEvent]) -> Timestamp {
        let this = &following[0];
        let before =
            self.sessions.loaded(slot).filter(|s| s.session.last_sequence > 0).map(|s| s.session.last_event_at);
        let next = || {
            following.iter().filter(|e| e.provider_session_id == this.provider_session_id).find_map(|e| e.created_at)
        };
        before.or_else(next).unwrap_or(this.observed_at)
    }

    /// A session that begins in a directory whose sessions are not captured is turned off, before
    /// anything of it is kept.
    pub(super) fn turn_off_if_ignored(&mut self, slot: usize, cwd: &str) -> Result<(), Failure> {
        if !self.sessions.known(slot).capture || !self.ignored.holds(Path::new(cwd)) {
            return Ok(());
        }
        let begins = self.sessions.state(&self.writer, slot)?.session.cwd.is_none();
        if begins {
            let row = self.sessions.known(slot).row;
            self.writer.set_capture(row, false)?;
            self.sessions.set_capture(slot, false);
            self.sessions.unlist(slot);
        }
        Ok(())
    }

    /// Whether a record is new. One that is known, and belongs to another session, makes this one
    /// a fork of that.
    fn learn(
        &mut self,
        new: &NewEvent,
        row: store::SessionRow,
        slot: usize,
        forks: &mut HashSet<(usize, usize)>,
    ) -> Result<Option<Identity>, Failure> {
        match new.repeat {
            Repeat::Unique => {
                if self.writer.learn(new.identity, row)? {
                    return Ok(Some(new.identity));
                }
                self.gauges.repeated.fetch_add(1, Ordering::Relaxed);
                if matches!(new.payload, Payload::UserPrompt(_) | Payload::AssistantMessage(_)) {
                    let owner = self.writer.known(new.identity)?.filter(|owner| *owner != row);
                    if let Some(owner) = owner.and_then(|o| self.sessions.find_by_row(o)) {
                        forks.insert((slot, owner));
                    }
                }
                Ok(None)
            }
            Repeat::Next => {
                for occurrence in 0..OCCURRENCES {
                    let identity = new.identity.occurrence(occurrence);
                    if self.writer.learn(identity, row)? {
                        return Ok(Some(identity));
                    }
                }
                Ok(None)
            }
        }
    }

    fn make(
        &mut self,
        slot: usize,
        new: &NewEvent,
        identity: Identity,
        payload: Option<Payload>,
        text: Option<&store::PackedText>,
        history: bool,
    ) -> Result<Event, Failure> {
        let mut payload = payload.unwrap_or_else(|| new.payload.clone());
        if let Payload::SessionStarted(started) = &mut payload
            && let Some(parent) = &started.parent_provider_session_id
        {
            let parent: Arc<str> = Arc::from(parent.as_str());
            let parent = self.sessions.resolve(&mut self.writer, new.provider, &parent, first_seen(new, true))?;
            started.parent_session_id = Some(self.sessions.known(parent).id);
            if self.sessions.loaded(parent).is_some_and(|s| s.session.last_sequence == 0) {
                self.sessions.mark(parent);
            }
        }
        let known = self.sessions.known(slot).clone();
        let state = self.sessions.state(&self.writer, slot)?;
        self.position += 1;
        let mut event = Event {
            position: self.position,
            id: identity.event_id(),
            session_id: known.id,
            sequence: state.session.last_sequence + 1,
            provider: new.provider,
            provider_session_id: known.provider_session_id,
            source: new.source,
            created_at: new.created_at.unwrap_or(new.observed_at),
            observed_at: new.observed_at,
            turn_id: None,
            parent_id: new.parent.map(Identity::event_id),
            agent_id: new.agent_id.clone(),
            confidence: new.confidence,
            severity: new.severity,
            text: new.text.clone(),
            text_ref: text.map(|t| t.reference()),
            payload,
            origin: new.origin.clone(),
            derived: false,
            history,
        };
        if self.redacted_only {
            redaction::of_event(&mut event.text, &mut event.payload);
        }
        event.turn_id = state.turn_of(&event);
        Ok(event)
    }

    /// Folds an event and keeps what follows from it.
    fn fold(
        &mut self,
        slot: usize,
        event: Event,
        packed: Option<usize>,
        pending: &mut Vec<(usize, Event, Option<usize>)>,
        derived: &mut Vec<(usize, Event)>,
    ) -> Result<(), Failure> {
        if let Payload::UsageReported(usage) = &event.payload {
            self.writer.add_usage(self.sessions.known(slot).row, usage)?;
        }
        let history = event.history;
        let observed_at = event.observed_at;
        let row = self.sessions.known(slot).row;
        let state = self.sessions.state(&self.writer, slot)?;
        let process_before = state.process();
        let sequence = event.sequence;
        let conclusions = state.fold(&event);
        let process = state.process();
        // What comes behind a turn's end, its tokens above all, is still the turn's.
        let adds = matches!(
            event.payload,
            Payload::UsageReported(_) | Payload::AssistantMessage(_) | Payload::AssistantDelta(_)
        );
        if let (true, None, Some(turn)) = (adds, state.open_turn(), state.recent_turns().next_back()) {
            self.writer.put_turn(row, &redaction::of_turn(turn))?;
        }
        self.keep_told(slot, &event)?;
        pending.push((slot, event, packed));
        self.sessions.mark(slot);
        for conclusion in conclusions {
            let event = self.derive(slot, conclusion, observed_at, history)?;
            derived.push((slot, event));
        }
        if let Some((pid, start)) = process.filter(|p| Some(*p) != process_before) {
            self.processes.watch(pid, start);
            self.merge_awaited(slot, pid, start)?;
            self.link_host(slot, pid)?;
            if !history {
                // A program that only started it may have a session of its own until processes are looked at.
                self.processes.wanted(false);
            }
        }
        if !history && process.is_none() {
            self.processes.wanted(sequence < FRESH_EVENTS);
        }
        if !history {
            self.tell_parent(slot, observed_at, pending, derived)?;
        }
        self.schedule(slot);
        Ok(())
    }

    /// Gives a conclusion its place in the log.
    pub(super) fn derive(
        &mut self,
        slot: usize,
        mut conclusion: Conclusion,
        observed_at: Timestamp,
        history: bool,
    ) -> Result<Event, Failure> {
        let known = self.sessions.known(slot).clone();
        if let Some(turn) = &conclusion.turn {
            self.writer.put_turn(known.row, &redaction::of_turn(turn))?;
        }
        if let Some(approval) = conclusion.approval.take() {
            self.keep_approval(slot, *approval, &conclusion.payload, history)?;
        }
        let state = self.sessions.state(&self.writer, slot)?;
        state.session.last_sequence += 1;
        let sequence = state.session.last_sequence;
        self.position += 1;
        let identity = Identity::of(known.provider, "derived", &[&known.id.to_bytes(), &sequence.to_le_bytes()]);
        Ok(Event {
            position: self.position,
            id: identity.event_id(),
            session_id: known.id,
            sequence,
            provider: known.provider,
            provider_session_id: known.provider_session_id,
            source: Source::Runtime,
            created_at: conclusion.at,
            observed_at,
            turn_id: conclusion.turn_id,
            parent_id: None,
            agent_id: None,
            confidence: Confidence::High,
            severity: None,
            text: None,
            text_ref: None,
            payload: conclusion.payload,
            origin: Origin::Derived,
            derived: true,
            history: false,
        })
    }

    pub(super) fn append(
        &mut self,
        slot: usize,
        event: Event,
        text: Option<&store::PackedText>,
        history: bool,
    ) -> Result<(), Failure> {
        self.writer.append(self.sessions.known(slot).row, &event, text)?;
        self.rows += 1;
        self.keep(event, history);
        Ok(())
    }

    fn keep(&mut self, event: Event, history: bool) {
        self.committed.push((event, history));
    }

    fn write_derived(&mut self, derived: Vec<(usize, Event)>, history: bool) -> Result<(), Failure> {
        for (slot, event) in derived {
            self.append(slot, event, None, history)?;
        }
        Ok(())
    }

    /// Writes conclusions that no event brought about.
    pub(super) fn conclude(
        &mut self,
        slot: usize,
        conclusions: Vec<Conclusion>,
        now: Timestamp,
        history: bool,
    ) -> Result<(), Failure> {
        let mut derived = Vec::new();
        for conclusion in conclusions {
            derived.push((slot, self.derive(slot, conclusion, now, history)?));
        }
        let mut pending = Vec::new();
        self.tell_parent(slot, now, &mut pending, &mut derived)?;
        for (slot, event, _) in pending {
            self.append(slot, event, None, history)?;
        }
        self.write_derived(derived, history)
    }

    /// A helper's work keeps its parent running, and its dialog is its parent's too: the parent is
    /// told by a signal, so that the parent's log explains its state alone.
    fn tell_parent(
        &mut self,
        slot: usize,
        now: Timestamp,
        pending: &mut Vec<(usize, Event, Option<usize>)>,
        derived: &mut Vec<(usize, Event)>,
    ) -> Result<(), Failure> {
        let Some(child) = self.sessions.loaded(slot) else { return Ok(()) };
        let Some(parent) = child.session.parent_session_id.and_then(|id| self.sessions.find(id)) else { return Ok(()) };
        let (child_id, state) =
            (Arc::clone(&self.sessions.known(slot).provider_session_id), child.session.status.state);
        let claimed = self.sessions.state(&self.writer, parent)?.claim_of_agent(&child_id);
        let wanted = match state {
            State::Running | State::WaitingApproval => Some(state),
            State::Waiting | State::Idle | State::Exited | State::Unknown => None,
        };
        if claimed == wanted {
            return Ok(());
        }
        let claim = match wanted {
            Some(State::Running) => Claim::State { state: State::Running, reason: Some(events::Reason::Subagents) },
            Some(state) => Claim::State { state, reason: None },
            None => Claim::Withdrawn,
        };
        let words = format!("sub-agent {child_id} is {state}");
        let signal = Signal::new(claim, Confidence::High, Some(words));
        let known = self.sessions.known(parent).clone();
        let sequence = self.sessions.state(&self.writer, parent)?.session.last_sequence;
        let identity = Identity::of(
            known.provider,
            "subagent",
            &[&known.id.to_bytes(), child_id.as_bytes(), &sequence.to_le_bytes()],
        );
        let new = internal(
            known.provider,
            &known.provider_session_id,
            identity,
            Source::Transcript,
            now,
            signal.into(),
            Some(child_id),
        );
        self.writer.learn(identity, known.row)?;
        let event = self.make(parent, &new, identity, None, None, false)?;
        self.fold(parent, event, None, pending, derived)
    }

    /// Notes that a session repeats another's records.
    fn fork(
        &mut self,
        slot: usize,
        owner: usize,
        pending: &mut Vec<(usize, Event, Option<usize>)>,
        derived: &mut Vec<(usize, Event)>,
    ) -> Result<(), Failure> {
        let (own, from) = (self.sessions.known(slot).clone(), self.sessions.known(owner).clone());
        let identity = Identity::of(
            own.provider,
            "forked",
            &[own.provider_session_id.as_bytes(), from.provider_session_id.as_bytes()],
        );
        if !self.writer.learn(identity, own.row)? {
            return Ok(());
        }
        let payload = SessionForked { from: from.provider_session_id.to_string(), at: None }.into();
        let new = internal(
            own.provider,
            &own.provider_session_id,
            identity,
            Source::Transcript,
            (self.clock)(),
            payload,
            None,
        );
        let event = self.make(slot, &new, identity, None, None, false)?;
        self.fold(slot, event, None, pending, derived)
    }

    /// Keeps where a session's transcript stands beside the session.
    fn note_transcript(&mut self, prepared: &Prepared) {
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
        let Ok(state) = self.sessions.state(&self.writer, slot) else { return };
        let untold = state.session.last_sequence == 0;
        if untold && !self.sessions.known(slot).capture {
            return;
        }
        let Some(state) = self.sessions.loaded_mut(slot) else { return };
        let cursor = &batch.cursor;
        let view = TranscriptView {
            path: cursor.path.clone(),
            size: cursor.size,
            offset: cursor.offset,
            generation: cursor.generation,
            issues: cursor.issues,
        };
        let transcripts = &mut state.session.transcripts;
        match transcripts.iter_mut().find(|t| t.path == view.path) {
            Some(known) => *known = view,
            None => transcripts.push(view),
        }
        state.session.health = if transcripts.iter().any(|t| t.issues > 0) {
            Health::Issues
        } else if transcripts.iter().any(|t| t.offset < t.size) && batch.backfill {
            Health::Behind
        } else {
            Health::Ok
        };
        self.sessions.mark(slot);
    }

    pub(super) fn apply_capture(&mut self, id: SessionId, on: bool) -> Result<(), Failure> {
        let Some(slot) = self.sessions.find(id) else { return Ok(()) };
        let row = self.sessions.known(slot).row;
        self.writer.set_capture(row, on)?;
        self.sessions.set_capture(slot, on);
        let value = if on { "on" } else { "off" }.to_owned();
        self.inject(
            slot,
            Source::Runtime,
            (self.clock)(),
            "capture",
            Annotation { topic: Topic::Capture, value }.into(),
        )
    }

    pub(super) fn apply_labels(&mut self, id: SessionId, labels: &[String]) -> Result<(), Failure> {
        let Some(slot) = self.sessions.find(id) else { return Ok(()) };
        for value in labels {
            let label = Annotation { topic: Topic::Label, value: value.clone() };
            self.inject(slot, Source::Runtime, (self.clock)(), "label", label.into())?;
        }
        Ok(())
    }

    /// Adds an event that capture itself observed.
    pub(super) fn inject(
        &mut self,
        slot: usize,
        source: Source,
        now: Timestamp,
        space: &str,
        payload: Payload,
    ) -> Result<(), Failure> {
        let known = self.sessions.known(slot).clone();
        let sequence = self.sessions.state(&self.writer, slot)?.session.last_sequence;
        let identity = Identity::of(known.provider, space, &[&known.id.to_bytes(), &sequence.to_le_bytes()]);
        self.writer.learn(identity, known.row)?;
        let new = internal(known.provider, &known.provider_session_id, identity, source, now, payload, None);
        self.add(slot, &new, false)
    }

    /// Folds one event and writes it, with what follows from it.
    pub(super) fn add(&mut self, slot: usize, new: &NewEvent, history: bool) -> Result<(), Failure> {
        let event = self.make(slot, new, new.identity, None, None, history)?;
        let (mut pending, mut derived) = (Vec::new(), Vec::new());
        self.fold(slot, event, None, &mut pending, &mut derived)?;
        for (slot, event, _) in pending {
            self.append(slot, event, None, history)?;
        }
        self.write_derived(derived, history)
    }
}

/// The directory in which the session of the first of these events begins.
fn first_cwd(events: &[NewEvent]) -> Option<&str> {
    let session = &events.first()?.provider_session_id;
    events
        .iter()
        .filter(|e| e.provider_session_id == *session)
        .find_map(|e| if let Payload::SessionStarted(started) = &e.payload { started.cwd.as_deref() } else { None })
}

fn first_seen(new: &NewEvent, history: bool) -> Timestamp {
    if history { new.created_at.unwrap_or(new.observed_at).min(new.observed_at) } else { new.observed_at }
}

/// An event of capture's own making. Its delivery id is its identity.
fn internal(
    provider: Provider,
    session: &Arc<str>,
    identity: Identity,
    source: Source,
    now: Timestamp,
    payload: Payload,
    agent_id: Option<Arc<str>>,
) -> NewEvent {
    NewEvent {
        provider,
        provider_session_id: Arc::clone(session),
        identity,
        repeat: Repeat::Unique,
        source,
        created_at: Some(now),
        observed_at: now,
        parent: None,
        agent_id,
        confidence: Confidence::High,
        severity: None,
        text: None,
        payload,
        origin: Origin::Delivery { id: Arc::from(identity.event_id().to_string()) },
    }
}
