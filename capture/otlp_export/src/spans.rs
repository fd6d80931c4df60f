//! Finds in the log what is over and was not sent, and makes spans of it.
//!
//! A call is sent when its result is there, a turn when it ended, a session when it is idle or has exited. Of each
//! session it is remembered from where on its conversation is read, and what of that was sent. A call that is open when
//! its turn ends is sent with the turn.

use std::collections::{BTreeMap, HashMap, HashSet};

use agents::Agent;
use events::{ApprovalState, Event, Kind, Payload, Provider, SessionId, State, Timestamp};
use export::otlp::{AgentTrace, OtlpOptions, SessionTrace, Span, encode_request, encoded_bytes};
use projections::{Approval, ConversationItem, ConversationItems, ItemBody, Session};
use store::{ReadError, Reader};

/// Events with which something is over.
const ENDS: &[Kind] =
    &[Kind::ToolResult, Kind::ApprovalResolved, Kind::Error, Kind::TurnCompleted, Kind::StatusChanged];
/// Events that spans are made of.
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
/// Ends that are looked at in a round.
const ROUND: usize = 2_000;
/// Events of a conversation that are read at a time, and in all.
const PAGE: usize = 1_000;
const MOST_EVENTS: usize = 20_000;
/// Most bytes of long texts of a session in a round.
const TEXTS: u64 = 8 << 20;
/// Sessions whose place is remembered; beyond that some spans are sent twice, with the same ids.
const SESSIONS: usize = 512;
/// Most spans, and most bytes, of a message.
const MESSAGE: (usize, usize) = (500, 1 << 20);

/// Spans of the log up to a position, encoded.
#[derive(Debug, Default)]
pub(crate) struct SpanBatch {
    /// Everything up to here is in it, or is none of it.
    pub(crate) until: u64,
    /// The messages for the collector.
    pub(crate) messages: Vec<SpanMessage>,
    /// Turns and calls that ended too long ago.
    pub(crate) expired: u64,
    /// Permission requests that were closed, and how long they waited, ms.
    pub(crate) waits: Vec<(Provider, ApprovalState, i64)>,
}

/// A message for the collector.
#[derive(Debug)]
pub(crate) struct SpanMessage {
    /// It, as protobuf.
    pub(crate) body: Vec<u8>,
    /// How many spans are in it.
    pub(crate) spans: u64,
}

/// Where the conversation of a session is read from, and what of it was sent.
#[derive(Debug, Default)]
struct TurnWindow {
    /// Items up to this sequence are done with.
    from: u64,
    /// Items behind it that were sent, by their sequence.
    sent: HashSet<u64>,
}

/// What ended in a session.
#[derive(Debug, Clone, Copy)]
struct EndedSession {
    /// The first sequence at which something did.
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

    /// Another one of the same store, which remembers nothing.
    pub(crate) fn fresh(&self) -> Self {
        Self::new(self.reader.clone(), self.texts, self.version)
    }

    fn options(&self, provider: Provider) -> OtlpOptions<'static> {
        let provider = Agent::of(provider).and_then(|agent| agent.gen_ai_provider);
        OtlpOptions { redact: &redact, texts: self.texts, provider, version: self.version }
    }

    /// What ended behind a position, up to another at most; nothing that ended before `since`.
    pub(crate) fn read(&mut self, after: u64, until: u64, since: Timestamp) -> Result<SpanBatch, ReadError> {
        let ends = self.reader.log_of(after, until, ROUND, ENDS)?;
        let is_whole = ends.len() < ROUND;
        let reached = ends.last().filter(|_| !is_whole).map_or(until, |last| last.position);
        let mut batch = SpanBatch { until: reached, ..SpanBatch::default() };
        let mut sessions: BTreeMap<SessionId, EndedSession> = BTreeMap::new();
        for event in &ends {
            if event.created_at < since {
                // History that is read for the first time was never to be sent.
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

    /// How long the request waited that this event closes.
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
                // The turn it is in, from its beginning.
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
        // With texts a turn needs all that was asked and said in it.
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

    /// The items of a conversation behind a sequence, and up to where it was read. The agent's traces go to `trace`.
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
                // What is left of a call that was sent before: its result.
                return Ok((items.filter(|item| !is_nameless(item)).collect(), after));
            }
        }
    }

    /// Spans as messages of bounded size.
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

/// Whether nothing is added to an item any more, as far as its span goes.
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
