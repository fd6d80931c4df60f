//! The decoder of the event log: the state carried from record to record, and where events go.

use std::{collections::VecDeque, sync::Arc};

use events::{Identity, NewEvent, Payload, Provider, Timestamp};
use serde::{Deserialize, Serialize};

use super::record::LogRecord;
use tailer::decode::{Decoded, Decoder, Malformed, Record};

const PROVIDER: Provider = Provider::Opencode;
/// Messages of all sessions whose parts may still come.
const OPEN_MESSAGES: usize = 64;
/// Sessions whose beginning is remembered: a fork copies its messages when it begins.
const BEGUN_SESSIONS: usize = 64;

/// Decodes the log. It has records of all sessions.
#[derive(Debug, Default)]
pub struct OpencodeDecoder {
    carried: OpencodeState,
}

/// What is needed to go on after a restart.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct OpencodeState {
    messages: VecDeque<OpenMessage>,
    /// When the last sessions began, ms since 1970, by their ids.
    begun: VecDeque<(String, i64)>,
}

/// A message of which more may be told.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct OpenMessage {
    id: String,
    /// The user's, not the model's.
    pub(super) user: bool,
    pub(super) model: Option<String>,
    /// A tool of it was refused, with nothing said to the model: the turn ends with the message.
    pub(super) denied: bool,
    /// A fork took it over: it is older than its session.
    pub(super) copied: bool,
}

/// One record, and where what it says goes.
pub(super) struct OpencodeRecordWriter<'a, 'r> {
    pub(super) session: &'a Arc<str>,
    /// The record's own id.
    pub(super) id: &'a str,
    pub(super) at: Option<Timestamp>,
    pub(super) record: &'a Record<'r>,
    pub(super) out: &'a mut Decoded,
}

impl OpencodeDecoder {
    /// A decoder that goes on from `state`.
    #[must_use]
    pub fn new(state: Option<&str>) -> Self {
        Self { carried: state.and_then(|state| serde_json::from_str(state).ok()).unwrap_or_default() }
    }
}

impl OpencodeState {
    /// What is known of a message.
    pub(super) fn message(&mut self, id: &str) -> &mut OpenMessage {
        let at = self.messages.iter().position(|message| message.id == id).unwrap_or_else(|| {
            if self.messages.len() == OPEN_MESSAGES {
                self.messages.pop_front();
            }
            self.messages.push_back(OpenMessage { id: id.to_owned(), ..OpenMessage::default() });
            self.messages.len() - 1
        });
        &mut self.messages[at]
    }

    /// Notes when a session began.
    pub(super) fn began(&mut self, session: &str, at: i64) {
        if self.begun.len() == BEGUN_SESSIONS {
            self.begun.pop_front();
        }
        self.begun.push_back((session.to_owned(), at));
    }

    /// Whether something is older than its session, as far as the last sessions tell.
    pub(super) fn is_copied(&self, session: &str, at: Option<i64>) -> bool {
        let begun = self.begun.iter().rev().find(|(id, _)| id == session);
        begun.zip(at).is_some_and(|((_, begun), at)| at < *begun)
    }

    /// Forgets a message that is over.
    pub(super) fn close(&mut self, id: &str) {
        self.messages.retain(|message| message.id != id);
    }
}

impl OpencodeRecordWriter<'_, '_> {
    /// Puts out an event of the thing with this id; `block` tells it from others of the same thing. When the
    /// log repeats it, the identity is the same, and it is not stored again.
    pub(super) fn emit(&mut self, id: &str, block: u32, payload: impl Into<Payload>, text: Option<String>) {
        let identity = Identity::record(PROVIDER, id, block);
        let event = self.out.event(self.record, self.session, identity, payload);
        self.out.push(NewEvent { created_at: self.at, text, ..event });
    }

    pub(super) fn unrecognized(&mut self, kind: &str) {
        let identity = Identity::record(PROVIDER, self.id, 0);
        self.out.unrecognized(self.record, self.session, identity, kind, self.at);
    }
}

impl Decoder for OpencodeDecoder {
    fn record(&mut self, record: Record<'_>, out: &mut Decoded) -> Result<(), Malformed> {
        let row: LogRecord<'_> = serde_json::from_slice(record.bytes)?;
        let session: Arc<str> = Arc::from(&*row.session);
        let mut writer = OpencodeRecordWriter { session: &session, id: &row.id, at: None, record: &record, out };
        writer.row(&row, &mut self.carried);
        Ok(())
    }

    fn state(&self) -> Option<String> {
        serde_json::to_string(&self.carried).ok()
    }

    /// The log belongs to no one session.
    fn session(&self) -> Option<&Arc<str>> {
        None
    }
}
