//! The last step of every input: assigns an event its place in the log, folds it into its session, and adds the events
//! derived from it.

use std::{collections::BTreeSet, sync::Arc};

use events::{
    Annotation, Claim, Confidence, Event, Identity, NewEvent, Origin, Payload, PromptOrigin, Provider, Repeat,
    SessionForked, SessionId, Signal, Source, State, Timestamp, Topic,
};
use live_view::Refusal;
use projections::{Conclusion, LABELS, LabelChange, MarkChange};
use store::PackedText;

use super::{
    ChangeReply, Ingest, TransactionFailure,
    transaction::{Additions, PreparedParts},
};

/// Number of events below which a session counts as just begun.
const FRESH_EVENTS: u64 = 20;

/// An event that has no place in the log yet.
pub(super) struct UnsequencedEvent<'a> {
    pub(super) new: &'a NewEvent,
    /// The identity under which the event is known.
    pub(super) identity: Identity,
    /// The payload, if it differs from that of the record.
    pub(super) payload: Option<Payload>,
    /// The event's long text.
    pub(super) text: Option<&'a PackedText>,
    pub(super) history: bool,
}

impl<'a> UnsequencedEvent<'a> {
    /// A current event, unchanged from the record.
    pub(super) const fn of(new: &'a NewEvent) -> Self {
        Self { new, identity: new.identity, payload: None, text: None, history: false }
    }
}

impl Ingest {
    /// Assigns an event its place in the log.
    pub(super) fn make(&mut self, slot: usize, draft: UnsequencedEvent<'_>) -> Result<Event, TransactionFailure> {
        let UnsequencedEvent { new, identity, payload, text, history } = draft;
        let mut payload = payload.unwrap_or_else(|| new.payload.clone());
        if let Payload::SessionStarted(started) = &mut payload
            && let Some(parent) = &started.parent_provider_session_id
        {
            let parent: Arc<str> = Arc::from(parent.as_str());
            let parent = self.resolve(new.provider, &parent, first_seen(new, true))?;
            started.parent_session_id = Some(self.sessions.known(parent).id);
            if self.sessions.loaded(parent).is_some_and(|s| s.session.last_sequence == 0) {
                self.sessions.mark(parent);
            }
        }
        let known = self.sessions.known(slot).clone();
        let state = self.sessions.state(&self.transaction.writer, slot)?;
        let mut event = Event {
            position: self.transaction.next_position(),
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
            redact::of_event(&mut event.text, &mut event.payload);
        }
        if state.is_typed_for_rule(&event, || text.and_then(PackedText::unpacked))
            && let Payload::UserPrompt(prompt) = &mut event.payload
        {
            (prompt.origin, prompt.stated) = (PromptOrigin::Monitor, true);
        }
        event.turn_id = state.turn_of(&event);
        Ok(event)
    }

    /// Folds an event without prepared parts.
    pub(super) fn fold(
        &mut self,
        slot: usize,
        event: Event,
        additions: &mut Additions,
    ) -> Result<(), TransactionFailure> {
        self.fold_prepared(slot, event, None, PreparedParts::NONE, additions)?;
        self.sessions.schedule(slot, (self.clock)());
        Ok(())
    }

    /// Folds an event and stores everything derived from it. `text` is its long text. Does not update the session's
    /// deadline: [`Sessions::rest`](super::sessions::Sessions::rest) does so once after all events of a batch.
    pub(super) fn fold_prepared(
        &mut self,
        slot: usize,
        mut event: Event,
        text: Option<&PackedText>,
        prepared: PreparedParts,
        additions: &mut Additions,
    ) -> Result<(), TransactionFailure> {
        if let Payload::UsageReported(usage) = &event.payload {
            let is_first = !self.state(slot)?.is_counted(usage);
            let (provider, position, at) = (event.provider, event.position, event.created_at);
            let entry = store::UsageEntry { provider, position, at, usage, is_first };
            self.transaction.writer.add_usage(self.sessions.known(slot).row, &entry)?;
        }
        let history = event.history;
        self.sessions.set_past(slot, history);
        let observed_at = event.observed_at;
        let row = self.sessions.known(slot).row;
        let state = self.sessions.state(&self.transaction.writer, slot)?;
        let process_before = state.process();
        let sequence = event.sequence;
        let whole = state.whole_text_of(&event).and(text).and_then(PackedText::unpacked);
        let cut = whole.map(|whole| event.text.replace(whole));
        let conclusions = state.fold(&event);
        if let Some(cut) = cut {
            event.text = cut;
        }
        let process = state.process();
        // Usage and messages recorded after the end of a turn still belong to that turn.
        let adds = matches!(
            event.payload,
            Payload::UsageReported(_) | Payload::AssistantMessage(_) | Payload::AssistantDelta(_)
        );
        if let (true, None, Some(turn)) = (adds, state.open_turn(), state.recent_turns().next_back()) {
            self.transaction.put_turn(row, turn);
        }
        self.store_approval_of(slot, &event)?;
        additions.push(slot, event, prepared);
        self.sessions.mark(slot);
        for conclusion in conclusions {
            let event = self.derive(slot, conclusion, observed_at, history)?;
            additions.push_derived(slot, event);
        }
        if let Some((pid, start)) = process.filter(|p| Some(*p) != process_before) {
            self.processes.watch(pid, start);
            self.merge_awaited(slot, pid, start)?;
            self.link_host(slot, pid)?;
            if !history {
                // Until the next process scan, a program that only launched the agent may have a session.
                self.processes.wanted(true);
            }
        }
        if !history && process.is_none() {
            self.processes.wanted(sequence < FRESH_EVENTS);
        }
        if !history {
            self.watch_request(slot);
            self.signal_parent(slot, observed_at, additions)?;
        }
        Ok(())
    }

    /// Assigns a conclusion its place in the log.
    pub(super) fn derive(
        &mut self,
        slot: usize,
        mut conclusion: Conclusion,
        observed_at: Timestamp,
        history: bool,
    ) -> Result<Event, TransactionFailure> {
        let known = self.sessions.known(slot).clone();
        if let Some(turn) = &conclusion.turn {
            self.transaction.put_turn(known.row, turn);
        }
        if let Some(approval) = conclusion.approval.take() {
            self.store_approval(slot, *approval, &conclusion.payload, history)?;
        }
        let (source, confidence) = conclusion.basis.unwrap_or((Source::Runtime, Confidence::High));
        let state = self.state(slot)?;
        state.session.last_sequence += 1;
        let sequence = state.session.last_sequence;
        let identity = Identity::of(known.provider, "derived", &[&known.id.to_bytes(), &sequence.to_le_bytes()]);
        Ok(Event {
            position: self.transaction.next_position(),
            id: identity.event_id(),
            session_id: known.id,
            sequence,
            provider: known.provider,
            provider_session_id: known.provider_session_id,
            source,
            created_at: conclusion.at,
            observed_at,
            turn_id: conclusion.turn_id,
            parent_id: None,
            agent_id: None,
            confidence,
            severity: None,
            text: None,
            text_ref: None,
            payload: conclusion.payload,
            origin: Origin::Derived,
            derived: true,
            history,
        })
    }

    /// Writes conclusions that no event caused.
    pub(super) fn conclude(
        &mut self,
        slot: usize,
        conclusions: Vec<Conclusion>,
        now: Timestamp,
        history: bool,
    ) -> Result<(), TransactionFailure> {
        let mut additions = Additions::default();
        for conclusion in conclusions {
            let event = self.derive(slot, conclusion, now, history)?;
            additions.push_derived(slot, event);
        }
        self.signal_parent(slot, now, &mut additions)?;
        Ok(additions.write(&mut self.transaction, &self.sessions, &[], history)?)
    }

    /// Mirrors a sub-agent's state in its parent: the sub-agent's work keeps the parent running, and its dialog is also
    /// the parent's. The parent gets a signal event, so that its own log is enough to explain its state.
    fn signal_parent(
        &mut self,
        slot: usize,
        now: Timestamp,
        additions: &mut Additions,
    ) -> Result<(), TransactionFailure> {
        let Some(child) = self.sessions.loaded(slot) else { return Ok(()) };
        let Some(parent) = child.session.parent_session_id.and_then(|id| self.sessions.find(id)) else { return Ok(()) };
        let child_id = Arc::clone(&self.sessions.known(slot).provider_session_id);
        let (state, started_at) = (child.session.status.state, child.session.started_at);
        // An agent may start sub-agents before its first prompt; the directory is needed to find its process.
        if let Some(cwd) = child.session.cwd.clone()
            && self.state(parent)?.session.last_sequence == 0
        {
            let place = Annotation { topic: Topic::Cwd, value: cwd };
            let place = self.new_for_parent(parent, &child_id, place.into(), now)?;
            // The parent existed before its sub-agent, which may have ended long ago.
            let place = NewEvent { created_at: Some(started_at.min(now)), ..place };
            self.add_to_parent(parent, UnsequencedEvent { history: true, ..UnsequencedEvent::of(&place) }, additions)?;
        }
        let claimed = self.state(parent)?.claim_of_agent(&child_id);
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
        let signal = self.new_for_parent(parent, &child_id, signal.into(), now)?;
        let signal = NewEvent { agent_id: Some(child_id), ..signal };
        self.add_to_parent(parent, UnsequencedEvent::of(&signal), additions)
    }

    /// Creates the next event that a sub-agent causes in its parent.
    fn new_for_parent(
        &mut self,
        parent: usize,
        child_id: &str,
        payload: Payload,
        now: Timestamp,
    ) -> Result<NewEvent, TransactionFailure> {
        let sequence = self.state(parent)?.session.last_sequence;
        let known = self.sessions.known(parent);
        let identity = Identity::of(
            known.provider,
            "subagent",
            &[&known.id.to_bytes(), child_id.as_bytes(), &sequence.to_le_bytes()],
        );
        Ok(internal(known.provider, &known.provider_session_id, identity, Source::Transcript, now, payload, None))
    }

    fn add_to_parent(
        &mut self,
        parent: usize,
        draft: UnsequencedEvent<'_>,
        additions: &mut Additions,
    ) -> Result<(), TransactionFailure> {
        self.transaction.writer.learn(draft.identity, self.sessions.known(parent).row)?;
        let event = self.make(parent, draft)?;
        self.fold(parent, event, additions)
    }

    /// Records that a session repeats another session's records; `at` is the time of the first repeated record.
    pub(super) fn fork(
        &mut self,
        slot: usize,
        owner: usize,
        at: Timestamp,
        history: bool,
        additions: &mut Additions,
    ) -> Result<(), TransactionFailure> {
        let (own, from) = (self.sessions.known(slot).clone(), self.sessions.known(owner).clone());
        let identity = Identity::of(
            own.provider,
            "forked",
            &[own.provider_session_id.as_bytes(), from.provider_session_id.as_bytes()],
        );
        if !self.transaction.writer.learn(identity, own.row)? {
            return Ok(());
        }
        let payload = SessionForked { from: from.provider_session_id.to_string(), ..SessionForked::default() }.into();
        let new = internal(
            own.provider,
            &own.provider_session_id,
            identity,
            Source::Transcript,
            (self.clock)(),
            payload,
            None,
        );
        let new = NewEvent { created_at: Some(at), ..new };
        let event = self.make(slot, UnsequencedEvent { history, ..UnsequencedEvent::of(&new) })?;
        self.fold(slot, event, additions)
    }

    pub(super) fn apply_capture(&mut self, id: SessionId, on: bool) -> Result<(), TransactionFailure> {
        let Some(slot) = self.sessions.find(id) else { return Ok(()) };
        let row = self.sessions.known(slot).row;
        self.transaction.writer.set_capture(row, on)?;
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

    pub(super) fn apply_labels(
        &mut self,
        id: SessionId,
        labels: &[LabelChange],
        reply: &ChangeReply,
    ) -> Result<(), TransactionFailure> {
        let Some(slot) = self.sessions.find(id) else { return Ok(()) };
        let mut keys: BTreeSet<String> = self.state(slot)?.session.labels.keys().cloned().collect();
        for label in labels {
            match label.value {
                Some(_) => drop(keys.insert(label.key.clone())),
                None => drop(keys.remove(&label.key)),
            }
        }
        if keys.len() > LABELS {
            reply.refuse(Refusal::Conflict(format!("a session can have at most {LABELS} labels; remove one first")));
            return Ok(());
        }
        for label in labels {
            let label = Annotation { topic: Topic::Label, value: label.to_annotation() };
            self.inject(slot, Source::Runtime, (self.clock)(), "label", label.into())?;
        }
        Ok(())
    }

    pub(super) fn apply_marks(&mut self, id: SessionId, changes: &[MarkChange]) -> Result<(), TransactionFailure> {
        let Some(slot) = self.sessions.find(id) else { return Ok(()) };
        for change in changes {
            let mark = Annotation { topic: Topic::Mark, value: change.value() };
            self.inject(slot, Source::Runtime, (self.clock)(), "mark", mark.into())?;
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
    ) -> Result<(), TransactionFailure> {
        let known = self.sessions.known(slot).clone();
        if known.is_removed() {
            return Ok(());
        }
        let sequence = self.state(slot)?.session.last_sequence;
        let identity = Identity::of(known.provider, space, &[&known.id.to_bytes(), &sequence.to_le_bytes()]);
        self.transaction.writer.learn(identity, known.row)?;
        let new = internal(known.provider, &known.provider_session_id, identity, source, now, payload, None);
        self.add(slot, &new, false)
    }

    /// Folds and writes one event with its derived events.
    pub(super) fn add(&mut self, slot: usize, new: &NewEvent, history: bool) -> Result<(), TransactionFailure> {
        if self.sessions.known(slot).is_removed() {
            return Ok(());
        }
        let event = self.make(slot, UnsequencedEvent { history, ..UnsequencedEvent::of(new) })?;
        let mut additions = Additions::default();
        self.fold(slot, event, &mut additions)?;
        Ok(additions.write(&mut self.transaction, &self.sessions, &[], history)?)
    }
}

pub(super) fn first_seen(new: &NewEvent, history: bool) -> Timestamp {
    if history { new.created_at.unwrap_or(new.observed_at).min(new.observed_at) } else { new.observed_at }
}

/// An event created by capture. Its delivery id is its identity.
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
