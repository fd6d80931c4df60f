//! Decodes a session message by message, for both file formats.
//!
//! Every message is emitted once; a message with a known id adds only its new parts. The meaning of the last record for
//! the state is stored in [`GeminiMemory::standing`] and emitted at a pause; a turn is known to be complete when the
//! next prompt is recorded.

use std::{collections::VecDeque, sync::Arc};

use events::{
    Annotation, AssistantDelta, AssistantMessage, Block, CompactTrigger, Confidence, ContextCompacted, NewEvent,
    PromptOrigin, Severity, Stop, Timestamp, Topic, TurnOutcome, UsageReported, UserPrompt,
};

use super::record_writer::GeminiRecordWriter;
use super::{
    batch::MessageCalls,
    content::{self, MessageText, UserRecord},
    memory::{EmittedMessage, GeminiMemory, HeldRecord, LONGEST_HELD, Restated, hash},
    record::{ChatMessage, GeminiTokens, ToolCall},
    record_writer::{identity, later, signal},
    standing::{Stance, StandingRecord},
};
use tailer::decode::Decoded;

mod remarks;
pub(super) mod session;

/// Decodes the session of one file.
#[derive(Debug)]
pub(super) struct SessionDecoder {
    pub(super) memory: GeminiMemory,
    pub(super) cwd: Option<String>,
    /// Whether the whole file is decoded again after each change.
    pub(super) whole: bool,
    /// The messages emitted from the file's previous content.
    before: VecDeque<EmittedMessage>,
    /// The session's name until a header names it.
    nameless: Arc<str>,
    /// The parent session, according to the file's directory, if this is a sub-agent.
    parent: Option<String>,
}

/// Whether a message is new.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Freshness {
    /// A new message, or one that happened at the time in the file.
    Live,
    /// Part of a history that is repeated.
    History,
}

impl Freshness {
    fn confidence(self) -> Confidence {
        match self {
            Self::Live => Confidence::High,
            Self::History => Confidence::Low,
        }
    }
}

impl SessionDecoder {
    pub(super) fn new(memory: GeminiMemory, nameless: Arc<str>, parent: Option<String>) -> Self {
        Self { memory, cwd: None, whole: false, before: VecDeque::new(), nameless, parent }
    }

    /// Starts decoding the whole file again.
    pub(super) fn again(&mut self) {
        self.before = std::mem::take(&mut self.memory.told);
        self.memory = GeminiMemory::default();
    }

    fn session(&self) -> Arc<str> {
        Arc::clone(self.memory.session.as_ref().unwrap_or(&self.nameless))
    }

    /// Decodes a message that has a separate record.
    pub(super) fn message(&mut self, message: ChatMessage<'_>, writer: &mut GeminiRecordWriter<'_, '_>) {
        self.release(Freshness::Live, Some(&message), writer.out);
        let at = message.timestamp.as_deref().and_then(Timestamp::parse);
        if self.is_copy(&message, at) {
            return;
        }
        let talk = matches!(message.kind.as_deref(), Some("user" | "gemini"));
        let mut news = Freshness::Live;
        if let Some(restated) = self.memory.restated.filter(|_| talk) {
            if !restated.covers(at) {
                self.memory.restated = None;
            } else if restated.known {
                return;
            } else {
                news = Freshness::History;
            }
        }
        self.one(message, news, writer);
    }

    /// Whether a message is a repetition: from 0.57 on a cancelled call makes the CLI reset its history and write all
    /// of it again as records, beginning with the context. The list of the records follows (`$set.messages`).
    fn is_copy(&mut self, message: &ChatMessage<'_>, at: Option<Timestamp>) -> bool {
        let begins = || message.kind.as_deref() == Some("user") && content::begins_history(message.content);
        if !self.memory.told.is_empty() && begins() {
            self.memory.copying = at;
        } else if !self.memory.is_copied(at) {
            self.memory.copying = None;
        }
        self.memory.copying.is_some()
    }

    fn one(&mut self, mut message: ChatMessage<'_>, news: Freshness, writer: &mut GeminiRecordWriter<'_, '_>) {
        let Some(id) = message.id.take() else {
            return self.unknown("message without an id", None, None, writer);
        };
        let at = message.timestamp.as_deref().and_then(Timestamp::parse);
        let text = |m: &ChatMessage<'_>| content::read(m.content).text.into_owned();
        match message.kind.as_deref() {
            Some("user") => self.user(&id, at, &message, news, writer),
            Some("gemini") => self.answer(&id, at, message, news, writer),
            Some("info") => self.info(&id, at, text(&message), writer),
            Some("error") => self.error(&id, at, text(&message), writer),
            Some("warning") => self.notice(&id, at, text(&message), Severity::Warning, writer),
            kind => {
                let kind = kind.unwrap_or("message").to_owned();
                self.unknown(&kind, Some(&id), at, writer);
            }
        }
    }

    fn user(
        &mut self,
        id: &str,
        at: Option<Timestamp>,
        message: &ChatMessage<'_>,
        news: Freshness,
        writer: &mut GeminiRecordWriter<'_, '_>,
    ) {
        let said = content::user_record(message.content, message.display_content);
        if said == UserRecord::Responses || said == UserRecord::Context || self.memory.emitted(hash(id)).is_some() {
            return;
        }
        self.memory.remember(EmittedMessage { id: hash(id), ..EmittedMessage::default() });
        let session = self.session();
        match said {
            UserRecord::Responses | UserRecord::Context => {}
            UserRecord::Prompt { text, attachments } => {
                let held = HeldRecord::Prompt {
                    id: id.to_owned(),
                    at,
                    place: writer.place(),
                    text: text.into_owned(),
                    attachments,
                };
                // Only a record of a main session can be the first of a restored history.
                let certain = news == Freshness::History || self.whole || self.parent.is_some();
                self.hold_back(held, certain, news, writer.out);
            }
            UserRecord::Snapshot { text } => {
                self.memory.restated = at.map(|at| Restated { at, known: true });
                let held =
                    HeldRecord::Compaction { id: id.to_owned(), at, place: writer.place(), summary: text.into_owned() };
                self.hold_back(held, false, news, writer.out);
            }
            UserRecord::Injected { shown } => self.notice(id, at, shown.into_owned(), Severity::Warning, writer),
            UserRecord::Command { text } => {
                let value = content::one_line(&text);
                let event = writer.event(&session, "command", id, 0, at, Annotation { topic: Topic::Command, value });
                writer.out.push(event);
            }
        }
    }

    /// Holds a record back until the next one shows its meaning, unless it is too long or its meaning is already
    /// certain.
    fn hold_back(&mut self, held: HeldRecord, certain: bool, news: Freshness, out: &mut Decoded) {
        let (HeldRecord::Prompt { text, .. } | HeldRecord::Compaction { summary: text, .. }) = &held;
        let certain = certain || text.len() > LONGEST_HELD;
        self.memory.held = Some(held);
        if certain {
            self.release(news, None, out);
        }
    }

    /// Emits the held record, given that `next` (or nothing more) follows.
    fn release(&mut self, news: Freshness, next: Option<&ChatMessage<'_>>, out: &mut Decoded) {
        let Some(held) = self.memory.held.take() else {
            return;
        };
        let session = self.session();
        let kind = next.and_then(|n| n.kind.as_deref());
        match held {
            HeldRecord::Compaction { id, at, place, summary } => {
                let by_hand = kind == Some("info") && next.is_some_and(|n| content::read(n.content).text.is_empty());
                let trigger = if by_hand { CompactTrigger::Manual } else { CompactTrigger::Auto };
                let compacted = ContextCompacted { trigger: Some(trigger), ..ContextCompacted::default() };
                let identity = identity(&session, "compacted", &id, 0);
                let event = NewEvent { text: Some(summary), ..later(out, &session, &place, identity, at, compacted) };
                out.push(event);
            }
            HeldRecord::Prompt { id, at, place, text, attachments } => {
                let restated = at.map(|at| Restated { at, known: false });
                let next_at = next.and_then(|n| n.timestamp.as_deref()).and_then(Timestamp::parse);
                let copied = matches!(kind, Some("user" | "gemini")) && restated.is_some_and(|r| r.covers(next_at));
                let news = if copied { Freshness::History } else { news };
                if copied {
                    self.memory.restated = restated;
                }
                self.settle(out);
                self.memory.open = news == Freshness::Live;
                self.memory.denied = false;
                let origin = if self.parent.is_some() { PromptOrigin::Agent } else { PromptOrigin::Human };
                // Gemini CLI records its own requests as the user's, so a record does not state that a person wrote it.
                let stated = origin == PromptOrigin::Agent;
                let prompt = UserPrompt { origin, stated, attachments, provider_turn_id: None };
                let identity = identity(&session, "prompt", &id, 0);
                let event = NewEvent {
                    text: Some(text),
                    confidence: news.confidence(),
                    ..later(out, &session, &place, identity, at, prompt)
                };
                out.push(event);
                if self.whole {
                    let stance = Stance::Prompted;
                    self.memory.standing = Some(StandingRecord { stance, id, calls: 0, at, place, told: false });
                }
            }
        }
    }

    /// Handles the next prompt (or the end of the session): the answer before it was the last of its turn.
    fn settle(&mut self, out: &mut Decoded) {
        let Some(last) = self.memory.standing.take() else {
            return;
        };
        if last.stance.may_end() {
            self.memory.open = false;
            let session = self.session();
            let (ended, words) = match last.stance {
                Stance::Refused | Stance::Stopped => {
                    (last.stance.claim().0, "calls that did not run, and then the next prompt")
                }
                Stance::Answer
                | Stance::Announced
                | Stance::Unaccounted
                | Stance::Tool
                | Stance::Thinking
                | Stance::Prompted => {
                    (Stance::Answer.claim().0, "a text without a tool call, and then the next prompt")
                }
            };
            let claim = signal(ended, Confidence::Medium, words);
            let identity = identity(&session, "turn", &last.id, 1);
            let event = later(out, &session, &last.place, identity, last.at, claim);
            out.push(event);
        }
    }

    /// Decodes a message of the model, or an update of one.
    fn answer(
        &mut self,
        id: &str,
        at: Option<Timestamp>,
        message: ChatMessage<'_>,
        news: Freshness,
        writer: &mut GeminiRecordWriter<'_, '_>,
    ) {
        let session = self.session();
        let key = hash(id);
        let known = self.memory.emitted(key).map(|t| *t);
        let new = known.is_none();
        let mut told = known.unwrap_or(EmittedMessage { id: key, ..EmittedMessage::default() });
        // An update repeats the whole message; unchanged content is not parsed again.
        let raw = message.content.map_or(0, |c| length(c.get()));
        let content = if new || raw != told.raw { content::read(message.content) } else { MessageText::default() };
        let calls = message.tool_calls.unwrap_or_default();
        let thinking = message.thoughts.filter(|_| new).and_then(content::thinking);
        let tokens = message.tokens.filter(|_| !told.usage);
        let tokens = tokens.and_then(|t| serde_json::from_str::<GeminiTokens>(t.get()).ok());
        // A repeated history contains only the texts; an original message has a model, thoughts or tokens.
        let bare =
            message.thoughts.is_none() && message.tokens.is_none() && message.model.is_none() && calls.is_empty();
        let news = if bare && !self.whole { Freshness::History } else { news };

        // The carrier of a cancelled call: the CLI could not add the call to the message before it.
        let carrier = content.text.is_empty() && thinking.is_none() && tokens.is_none() && !calls.is_empty();
        if new && !carrier {
            let payload = AssistantMessage {
                message_id: Some(id.to_owned()),
                model: message.model.as_deref().map(str::to_owned),
                stop: (!calls.is_empty()).then_some(Stop::ToolUse),
                blocks: 1,
                tool_calls: u32::try_from(calls.len()).unwrap_or(u32::MAX),
                thinking,
            };
            let text = (!content.text.is_empty()).then(|| content.text.to_string());
            let event = NewEvent {
                text,
                confidence: news.confidence(),
                ..writer.event(&session, "message", id, 0, at, payload)
            };
            writer.out.push(event);
            self.memory.open |= news == Freshness::Live;
        }
        let before = self.before.iter().find(|t| t.id == key).map(|t| t.text).or_else(|| known.map(|k| k.text));
        if let Some(from) = before {
            self.added(id, at, from, &content.text, writer);
        }
        told.text = told.text.max(length(&content.text));
        told.raw = raw;

        if let Some(t) = &tokens {
            told.usage = true;
            let usage = UsageReported {
                message_id: Some(id.to_owned()),
                model: message.model.as_deref().map(str::to_owned),
                input_tokens: t.input.saturating_sub(t.cached).saturating_add(t.tool),
                output_tokens: t.output.saturating_add(t.thoughts),
                cache_read_tokens: t.cached,
                thinking_tokens: t.thoughts,
                ..UsageReported::default()
            };
            let event = writer.event(&session, "usage", id, 0, at, usage);
            writer.out.push(event);
        }

        let batch = self.calls(id, calls, &mut told, at, news, writer);
        match self.memory.emitted(key) {
            Some(slot) => *slot = told,
            None => self.memory.remember(told),
        }
        let stance = new.then(|| Stance::of(&content.text, tokens.map(|t| t.output)));
        self.stand(id, at, stance, &batch, told.calls, writer);
    }

    /// Emits text that was appended to a known message.
    fn added(
        &mut self,
        id: &str,
        at: Option<Timestamp>,
        from: u32,
        text: &str,
        writer: &mut GeminiRecordWriter<'_, '_>,
    ) {
        let Some(tail) = text.get(from as usize..).filter(|t| !t.is_empty()) else {
            return;
        };
        let delta = AssistantDelta { message_id: Some(id.to_owned()), block: Block::Text, stop: None, blocks: 0 };
        let session = self.session();
        let event = NewEvent { text: Some(tail.to_owned()), ..writer.event(&session, "delta", id, from, at, delta) };
        writer.out.push(event);
    }

    /// Emits the tool calls that were not emitted yet, and returns their outcome. A call without an id is named after
    /// its position in the message.
    fn calls(
        &mut self,
        message: &str,
        calls: Vec<ToolCall<'_>>,
        told: &mut EmittedMessage,
        at: Option<Timestamp>,
        news: Freshness,
        writer: &mut GeminiRecordWriter<'_, '_>,
    ) -> MessageCalls {
        let session = self.session();
        let mut batch = MessageCalls::default();
        let mut unbroken = true;
        for (index, mut call) in calls.into_iter().enumerate().skip(told.calls as usize) {
            if call.id.is_empty() {
                call.id = super::record::Text(format!("{message}/{index}").into());
            }
            let finished = batch.put_call(call, &session, at, news.confidence(), writer);
            unbroken &= finished;
            told.calls += u32::from(unbroken);
        }
        batch
    }

    /// Derives the state from a model message; `stance` is that of a new one.
    fn stand(
        &mut self,
        id: &str,
        at: Option<Timestamp>,
        stance: Option<Stance>,
        batch: &MessageCalls,
        calls: u32,
        writer: &mut GeminiRecordWriter<'_, '_>,
    ) {
        let session = self.session();
        let standing =
            |stance| Some(StandingRecord { stance, id: id.to_owned(), calls, at, place: writer.place(), told: false });
        if batch.finished > 0 {
            self.memory.denied = batch.denied;
            if self.parent.is_some() && batch.completed_task {
                self.memory.standing = None;
                self.memory.open = false;
                writer.end(&session, id, batch.at.or(at), TurnOutcome::Completed, Confidence::High, "complete_task");
            } else if batch.stopped == batch.finished {
                // A record that ends the turn (`Request cancelled.`) follows or was already read: none of the calls is
                // running. Version 0.10.0 writes no such record.
                let stopped = if batch.denied { Stance::Refused } else { Stance::Stopped };
                self.memory.standing = if self.whole && self.memory.open { standing(stopped) } else { None };
                if !self.memory.open && self.parent.is_none() {
                    let outcome = if batch.denied { TurnOutcome::Denied } else { TurnOutcome::Interrupted };
                    writer.end(
                        &session,
                        id,
                        batch.at.or(at),
                        outcome,
                        Confidence::High,
                        "calls of a turn that is over",
                    );
                }
            } else if self.memory.open {
                self.memory.standing = standing(Stance::Thinking);
            }
        } else if let Some(stance) = stance {
            // A sub-agent that answers without `complete_task` is prompted again.
            let asked_again = self.parent.is_some() && stance.may_end();
            self.memory.standing = match self.memory.open {
                true if asked_again => standing(Stance::Thinking),
                true => standing(stance),
                false => standing(stance).filter(|_| stance.may_end()),
            };
        }
    }

    /// Handles the current end of the file: the claim of the last record is emitted.
    pub(super) fn pause(&mut self, out: &mut Decoded) {
        self.release(Freshness::Live, None, out);
        let session = self.session();
        let Some(standing) = self.memory.standing.as_mut().filter(|s| !s.told) else {
            return;
        };
        standing.told = true;
        let (claim, strength, words) = standing.stance.claim();
        // In a file that records a call only once it is done, a dialog may be open at any time during a turn.
        let strength = if self.whole { Confidence::Low } else { strength };
        let (kind, block) = match standing.stance {
            // The message may already have emitted a claim for its calls.
            Stance::Refused | Stance::Stopped => ("turn", 2),
            stance if stance.may_end() => ("turn", 0),
            Stance::Answer
            | Stance::Announced
            | Stance::Unaccounted
            | Stance::Tool
            | Stance::Thinking
            | Stance::Prompted => ("state", standing.calls),
        };
        let identity = identity(&session, kind, &standing.id, block);
        let claim = signal(claim, strength, words);
        let event = later(out, &session, &standing.place, identity, standing.at, claim);
        out.push(event);
    }
}

fn length(text: &str) -> u32 {
    u32::try_from(text.len()).unwrap_or(u32::MAX)
}
