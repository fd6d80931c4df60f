//! Records about the session as a whole: headers, `$set`, `$rewindTo`.

use std::sync::Arc;

use events::{Annotation, Confidence, SessionForked, SessionStarted, StartKind, Timestamp, Topic, TurnOutcome};
use serde_json::value::RawValue;

use super::{Freshness, SessionDecoder};
use crate::gemini::{
    content::{self, UserRecord},
    memory::{HeldRecord, Restated, hash},
    record::{ChatMessage, Set},
    record_writer::{GeminiRecordWriter, identity},
    standing::{Stance, StandingRecord},
};

/// The first record of a file, or of the part that a resume appended.
pub(in crate::gemini) struct Header<'a> {
    pub(in crate::gemini) session: &'a str,
    pub(in crate::gemini) at: Option<Timestamp>,
    pub(in crate::gemini) subagent: bool,
    pub(in crate::gemini) directory: Option<String>,
    pub(in crate::gemini) summary: Option<&'a RawValue>,
}

/// Whether a history contains messages that were rewritten since then.
fn lists_copies(messages: &[ChatMessage<'_>], since: Timestamp) -> bool {
    let first = messages.first().and_then(|message| message.timestamp.as_deref()).and_then(Timestamp::parse);
    first.is_some_and(|at| at >= since)
}

impl SessionDecoder {
    /// Decodes a header: the first one starts the session; it is repeated when the session is resumed.
    pub(in crate::gemini) fn header(&mut self, header: &Header<'_>, writer: &mut GeminiRecordWriter<'_, '_>) {
        self.release(Freshness::Live, None, writer.out);
        if self.memory.session.as_deref() != Some(header.session) {
            // The previous session has no further records.
            self.settle(writer.out);
            self.memory.open = false;
            self.memory.session = Some(Arc::from(header.session));
            self.memory.started = false;
        }
        let session = self.session();
        if !self.memory.started {
            self.memory.started = true;
            let parent = self.parent.clone();
            let started = SessionStarted {
                how: if header.subagent || parent.is_some() { StartKind::Subagent } else { StartKind::New },
                cwd: self.cwd.clone().or_else(|| header.directory.clone()),
                parent_provider_session_id: parent,
                ..SessionStarted::default()
            };
            let event = writer.event(&session, "session", "started", 0, header.at, started);
            writer.out.push(event);
        }
        self.title(header.summary, writer);
    }

    /// Handles the `$set` after a message that only records the time of the write: the message before it is not a copy,
    /// because copies are written at once.
    pub(in crate::gemini) fn touched(&mut self, writer: &mut GeminiRecordWriter<'_, '_>) {
        self.release(Freshness::Live, None, writer.out);
    }

    /// Decodes any other `$set`.
    pub(in crate::gemini) fn set(&mut self, set: Set<'_>, writer: &mut GeminiRecordWriter<'_, '_>) {
        self.release(Freshness::Live, None, writer.out);
        self.title(set.summary, writer);
        if set.session_id.is_some() {
            self.memory.reopened = true;
        }
        let Some(messages) = set.messages else { return };
        let written_at = set.last_updated.as_deref().and_then(Timestamp::parse);
        let reopened = std::mem::take(&mut self.memory.reopened);
        // The list of the messages just rewritten contains nothing new.
        if self.memory.copying.take().is_none_or(|since| !lists_copies(&messages, since)) {
            self.history(messages, written_at, writer);
        }
        if reopened && !matches!(self.memory.held, Some(HeldRecord::Compaction { .. })) {
            let key = set.last_updated.as_deref().unwrap_or_default();
            self.resumed(key, written_at, writer);
        }
    }

    /// Decodes a history that replaces the previous records. Emits only messages that no other record contained.
    fn history(
        &mut self,
        messages: Vec<ChatMessage<'_>>,
        written_at: Option<Timestamp>,
        writer: &mut GeminiRecordWriter<'_, '_>,
    ) {
        let copies = written_at.map(|at| Restated { at, known: true });
        // Repeated messages are in the past and do not change the open turn.
        let (open, denied) = (self.memory.open, self.memory.denied);
        let standing = self.memory.standing.take();
        self.memory.open = false;
        let mut prompted = None;
        for message in messages {
            let Some(id) = message.id.as_deref() else {
                continue;
            };
            let at = message.timestamp.as_deref().and_then(Timestamp::parse);
            if self.memory.emitted(hash(id)).is_some() {
                continue;
            }
            let said = content::user_record(message.content, message.display_content);
            if copies.is_some_and(|c| c.covers(at)) && !matches!(said, UserRecord::Snapshot { .. }) {
                continue;
            }
            if matches!(said, UserRecord::Prompt { .. }) {
                prompted = Some((id.to_owned(), at));
            }
            self.one(message, Freshness::History, writer);
        }
        // The turns that the history seems to open have ended.
        let over = prompted.filter(|_| !open).map(|(id, at)| StandingRecord {
            stance: Stance::Answer,
            id,
            calls: 0,
            at,
            place: writer.place(),
            told: false,
        });
        self.memory.standing = standing.or(over);
        (self.memory.open, self.memory.denied) = (open, denied);
    }

    /// The session was resumed, so no earlier turn is open.
    fn resumed(&mut self, key: &str, at: Option<Timestamp>, writer: &mut GeminiRecordWriter<'_, '_>) {
        let session = self.session();
        self.settle(writer.out);
        if std::mem::take(&mut self.memory.open) {
            writer.end(&session, key, at, TurnOutcome::Exited, Confidence::Medium, "resumed with an open turn");
        }
        let again = SessionStarted { how: StartKind::Resume, cwd: self.cwd.clone(), ..SessionStarted::default() };
        let event = writer.event(&session, "resumed", key, 0, at, again);
        writer.out.push(event);
    }

    /// `$rewindTo`: the user went back; the named message and all later ones are dropped.
    pub(in crate::gemini) fn rewound(&mut self, id: &str, writer: &mut GeminiRecordWriter<'_, '_>) {
        self.release(Freshness::Live, None, writer.out);
        self.settle(writer.out);
        self.memory.open = false;
        let session = self.session();
        let taken_back = Some(identity(&session, "prompt", id, 0).event_id().into());
        let rewind = SessionForked { from: session.to_string(), at: Some(id.to_owned()), taken_back, turns: None };
        let event = writer.nameless(&session, 0, rewind);
        writer.out.push(event);
    }

    /// Emits the session's title: the summary of a main session (a sub-agent's summary is its result).
    fn title(&mut self, summary: Option<&RawValue>, writer: &mut GeminiRecordWriter<'_, '_>) {
        let Some(value) = summary.and_then(|s| serde_json::from_str::<String>(s.get()).ok()) else {
            return;
        };
        if self.parent.is_none() && !value.is_empty() {
            let session = self.session();
            let id = hash(&value).to_string();
            let event = writer.event(&session, "title", &id, 0, None, Annotation { topic: Topic::Title, value });
            writer.out.push(event);
        }
    }
}
