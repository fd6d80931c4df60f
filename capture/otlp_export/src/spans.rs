//! Finds ended items in the log that were not sent, and converts them to spans.
//!
//! A call is sent once its result is known, a turn once it ended, a session once it is idle or has exited. For each
//! session the reader remembers where to continue reading its conversation, and which later items were sent. A call
//! that is open when its turn ends is sent with the turn.

use std::collections::{BTreeMap, HashMap, HashSet};

use agents::Agent;
use events::{ApprovalState, Event, Kind, Payload, Provider, SessionId, State, Timestamp};
use export::otlp::{AgentTrace, OtlpOptions, SessionTrace, Span, encode_request, encoded_bytes};
use projections::{Approval, ConversationItem, ConversationItems, ItemBody, Session};
use store::{ReadError, Reader};

/// Events that end something.
const ENDS: &[Kind] =
    &[Kind::ToolResult, Kind::ApprovalResolved, Kind::Error, Kind::TurnCompleted, Kind::StatusChanged];
/// Events that spans are built from.
const PARTS: &[Kind] = &[
    Kind::UserPrompt,
    Kind::AssistantMessage,
    Kind::AssistantDelta,
    Kind::ToolCall,
    Kind::ToolResult,
    Kind::ApprovalRequested,
    Kind::ApprovalResolved,
    Kind::Error,
    Kind::TurnCompleted,
    Kind::Annotation,
];
/// Maximum number of ends processed in a round.
const ROUND: usize = 2_000;
/// Number of events of a conversation read at a time, and maximum in total.
const PAGE: usize = 1_000;
const MOST_EVENTS: usize = 20_000;
/// Maximum bytes of a session's long texts in a round.
const TEXTS: u64 = 8 << 20;
/// Maximum number of sessions whose position is remembered; beyond that some spans are sent twice, with the same ids.
const SESSIONS: usize = 512;
/// Maximum number of spans, and maximum bytes, of a message.
const MESSAGE: (usize, usize) = (500, 1 << 20);

/// Encoded spans of the log up to a position.
#[derive(Debug, Default)]
pub(crate) struct SpanBatch {
    /// The position up to which the log is covered: every span up to it is in the batch.
    pub(crate) until: u64,
    /// The messages for the collector.
    pub(crate) messages: Vec<SpanMessage>,
    /// Number of turns and calls that ended too long ago.
    pub(crate) expired: u64,
    /// Closed permission requests and how long they waited, ms.
    pub(crate) waits: Vec<(Provider, ApprovalState, i64)>,
}

/// A message for the collector.
#[derive(Debug)]
pub(crate) struct SpanMessage {
    /// The message as protobuf.
    pub(crate) body: Vec<u8>,
    /// Number of spans in the message.
    pub(crate) spans: u64,
}

/// The position from which a session's conversation is read, and the later items already sent.
#[derive(Debug, Default)]
struct TurnWindow {
    /// Items up to this sequence are finished.
    from: u64,
    /// Sequences of later items that were sent.
    sent: HashSet<u64>,
}

/// The ends in a session.
#[derive(Debug, Clone, Copy)]
struct EndedSession {
    /// The first sequence with an end.
    first: u64,
    /// Whether the session is idle or has exited.
    rests: bool,
}

/// Reads spans from the log.
pub(crate) struct SpanReader {
    reader: Reader,
    texts: bool,
    version: &'static str,
    windows: HashMap<SessionId, TurnWindow>,
}

fn redact(text: &str) -> String {
    redact::text(text).into_owned()
}

impl SpanReader {
    pub(crate) fn new(reader: Reader, texts: bool, version: &'static str) -> Self {
        Self { reader, texts, version, windows: HashMap::new() }
    }

    /// Another reader of the same store, with empty memory.
    pub(crate) fn fresh(&self) -> Self {
        Self::new(self.reader.clone(), self.texts, self.version)
    }

    fn options(&self, provider: Provider) -> OtlpOptions<'static> {
        let provider = Agent::of(provider).and_then(|agent| agent.gen_ai_provider);
        OtlpOptions { redact: &redact, texts: self.texts, provider, version: self.version }
    }

    /// Reads the spans of everything that ended after a position, up to `until` at most and not before `since`.
    pub(crate) fn read(&mut self, after: u64, until: u64, since: Timestamp) -> Result<SpanBatch, ReadError> {
        let ends = self.reader.log_of(after, until, ROUND, ENDS)?;
        let is_whole = ends.len() < ROUND;
        let reached = ends.last().filter(|_| !is_whole).map_or(until, |last| last.position);
        let mut batch = SpanBatch { until: reached, ..SpanBatch::default() };
        let mut sessions: BTreeMap<SessionId, EndedSession> = BTreeMap::new();
        for event in &ends {
            if event.created_at < since {
                // History that is read for the first time was never meant to be sent.
                let counts = !event.history && matches!(event.payload.kind(), Kind::ToolResult | Kind::TurnCompleted);
                batch.expired += u64::from(counts);
                continue;
            }
            batch.waits.extend(self.wait(event)?);
            let rests = matches!(&event.payload, Payload::StatusChanged(changed) if is_at_rest(changed.to));
            let ended = sessions.entry(event.session_id).or_insert(EndedSession { first: event.sequence, rests });
            ended.rests |= rests;
        }
        let mut spans = Vec::new();
        for (id, ended) in sessions {
            if self.windows.len() >= SESSIONS && !self.windows.contains_key(&id) {
                self.windows.clear();
            }
            if let Some(session) = self.reader.session(id)? {
                spans.extend(self.spans_of(&session, ended, since)?);
            }
        }
        batch.messages = self.messages(spans);
        Ok(batch)
    }

    /// How long the request closed by this event waited.
    fn wait(&self, event: &Event) -> Result<Option<(Provider, ApprovalState, i64)>, ReadError> {
        let Payload::ApprovalResolved(resolved) = &event.payload else { return Ok(None) };
        let Some(state) = resolved.new_state() else { return Ok(None) };
        let approval = self.reader.entity::<Approval>(&resolved.approval_id)?;
        Ok(approval.map(|approval| (approval.provider, state, event.created_at.since_ms(approval.opened_at))))
    }

    fn spans_of(&mut self, session: &Session, ended: EndedSession, since: Timestamp) -> Result<Vec<Span>, ReadError> {
        let mut window = match self.windows.remove(&session.id) {
            Some(window) => window,
            None => {
                // Start at the beginning of the current turn.
                let before = self.reader.last_before(session.id, ended.first, 1, &[Kind::TurnCompleted])?;
                TurnWindow { from: before.last().map_or(0, |turn| turn.sequence), ..TurnWindow::default() }
            }
        };
        let mut trace = SessionTrace::new(session, self.options(session.provider));
        let (items, read_until) = self.items(session.id, window.from, &mut trace)?;
        let last_turn = items.iter().rev().find(|item| matches!(item.body, ItemBody::TurnEnd { .. }));
        let last_turn = last_turn.map_or(0, |turn| turn.sequence);
        let mut spans = Vec::new();
        let mut first_open = None;
        for item in &items {
            let made = match &item.body {
                ItemBody::TurnEnd { number, .. } => {
                    let turn = self.reader.turns(session.id, number.saturating_sub(1), 1)?.pop();
                    turn.filter(|turn| turn.number == *number).map(|turn| trace.turn(&turn))
                }
                ItemBody::Prompt { .. }
                | ItemBody::Message { .. }
                | ItemBody::ToolCall { .. }
                | ItemBody::Approval { .. }
                | ItemBody::Question { .. }
                | ItemBody::Error { .. }
                | ItemBody::Compaction { .. }
                | ItemBody::Subagent(_) => {
                    if self.texts {
                        trace.item(&redact::of_item(item))
                    } else {
                        trace.item(item)
                    }
                }
            };
            if !is_over(item) && item.sequence > last_turn {
                first_open = first_open.or(Some(item.sequence));
            } else if let Some(span) = made
                && window.sent.insert(item.sequence)
                && span.end_time_unix_nano / 1_000_000 >= since.as_millisecond().unsigned_abs()
            {
                spans.push(span);
            }
        }
        // With texts, a turn needs all its prompts and messages.
        let done = if self.texts { last_turn } else { first_open.map_or(read_until, |open| open - 1).max(last_turn) };
        window.from = window.from.max(done);
        let from = window.from;
        window.sent.retain(|sequence| *sequence > from);
        if ended.rests {
            spans.push(trace.root());
        }
        if session.status.state != State::Exited {
            self.windows.insert(session.id, window);
        }
        Ok(spans)
    }

    /// The items of a conversation after a sequence, and the sequence up to which it was read. The agent's own traces
    /// go to `trace`.
    fn items(
        &self,
        session: SessionId,
        from: u64,
        trace: &mut SessionTrace<'_>,
    ) -> Result<(Vec<ConversationItem>, u64), ReadError> {
        let mut items = ConversationItems::behind(from);
        let (mut after, mut read, mut left) = (from, 0, if self.texts { TEXTS } else { 0 });
        loop {
            let events = self.reader.events(session, after, PAGE, PARTS)?;
            let is_last = events.len() < PAGE;
            read += events.len();
            for mut event in events {
                after = event.sequence;
                if let Some(own) = AgentTrace::of(&event) {
                    trace.join(own);
                }
                if self.texts {
                    self.reader.whole_text(&mut event, &mut left)?;
                }
                items.apply(&event);
            }
            if is_last || read >= MOST_EVENTS {
                let items = items.into_items(usize::MAX).into_iter();
                // A result remains of a call that was sent earlier.
                return Ok((items.filter(|item| !is_nameless(item)).collect(), after));
            }
        }
    }

    /// Splits spans into messages of bounded size.
    fn messages(&self, spans: Vec<Span>) -> Vec<SpanMessage> {
        let (most, most_bytes) = MESSAGE;
        let (mut messages, mut pending, mut bytes) = (Vec::new(), Vec::new(), 0);
        let mut close = |pending: &mut Vec<Span>| {
            if !pending.is_empty() {
                let spans = pending.len() as u64;
                let body = encode_request(self.options(Provider::Unknown), std::mem::take(pending));
                messages.push(SpanMessage { body, spans });
            }
        };
        for span in spans {
            let size = encoded_bytes(&span);
            if pending.len() >= most || bytes + size > most_bytes {
                close(&mut pending);
                bytes = 0;
            }
            bytes += size;
            pending.push(span);
        }
        close(&mut pending);
        messages
    }
}

const fn is_at_rest(state: State) -> bool {
    match state {
        State::Idle | State::Exited => true,
        State::Running | State::Waiting | State::WaitingApproval | State::Unknown => false,
    }
}

/// Whether nothing more is added to an item that its span would include.
const fn is_over(item: &ConversationItem) -> bool {
    match &item.body {
        ItemBody::ToolCall { result, .. } => result.is_some(),
        ItemBody::Approval { closed_at, .. } => closed_at.is_some(),
        ItemBody::Prompt { .. }
        | ItemBody::Message { .. }
        | ItemBody::Question { .. }
        | ItemBody::Error { .. }
        | ItemBody::Compaction { .. }
        | ItemBody::Subagent(_)
        | ItemBody::TurnEnd { .. } => true,
    }
}

const fn is_nameless(item: &ConversationItem) -> bool {
    matches!(&item.body, ItemBody::ToolCall { name, .. } if name.is_empty())
}
