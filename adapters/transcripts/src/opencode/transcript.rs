//! The decoder of the event log, its state between records, and the writer of its events.

use std::{collections::VecDeque, sync::Arc};

use events::{Identity, NewEvent, Payload, Provider, Timestamp};
use serde::{Deserialize, Serialize};

use super::record::LogRecord;
use tailer::decode::{Decoded, Decoder, Malformed, Record};

const PROVIDER: Provider = Provider::Opencode;
/// Maximum number of messages, of all sessions, whose parts may still follow.
const OPEN_MESSAGES: usize = 64;
/// Maximum number of sessions whose start time is remembered: a fork copies its messages when it starts.
const BEGUN_SESSIONS: usize = 64;

/// Decodes the log, which contains records of all sessions.
#[derive(Debug, Default)]
pub struct OpencodeDecoder {
    carried: OpencodeState,
}

/// The state needed to continue after a restart.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct OpencodeState {
    messages: VecDeque<OpenMessage>,
    /// The start times of the last sessions, ms since 1970, by their ids.
    begun: VecDeque<(String, i64)>,
}

/// A message that may receive further records.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct OpenMessage {
    id: String,
    /// Whether it is the user's message and not the model's.
    pub(super) user: bool,
    pub(super) model: Option<String>,
    /// Whether one of its tools was refused without feedback for the model: the turn ends with the message.
    pub(super) denied: bool,
    /// Whether a fork copied it: it is older than its session.
    pub(super) copied: bool,
}

/// One record and the receiver of its events.
pub(super) struct OpencodeRecordWriter<'a, 'r> {
    pub(super) session: &'a Arc<str>,
    /// The record's own id.
    pub(super) id: &'a str,
    pub(super) at: Option<Timestamp>,
    pub(super) record: &'a Record<'r>,
    pub(super) out: &'a mut Decoded,
}

impl OpencodeDecoder {
    /// A decoder that continues from `state`.
    #[must_use]
    pub fn new(state: Option<&str>) -> Self {
        Self { carried: state.and_then(|state| serde_json::from_str(state).ok()).unwrap_or_default() }
    }
}

impl OpencodeState {
    /// The state of a message.
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

    /// Records when a session started.
    pub(super) fn began(&mut self, session: &str, at: i64) {
        if self.begun.len() == BEGUN_SESSIONS {
            self.begun.pop_front();
        }
        self.begun.push_back((session.to_owned(), at));
    }

    /// Whether an item is older than its session, if the session is among the remembered ones.
    pub(super) fn is_copied(&self, session: &str, at: Option<i64>) -> bool {
        let begun = self.begun.iter().rev().find(|(id, _)| id == session);
        begun.zip(at).is_some_and(|((_, begun), at)| at < *begun)
    }

    /// Drops a message that is complete.
    pub(super) fn close(&mut self, id: &str) {
        self.messages.retain(|message| message.id != id);
    }
}

impl OpencodeRecordWriter<'_, '_> {
    /// Emits an event of the item with this id; `block` distinguishes it from other events of the same item. If the log
    /// repeats the item, the identity is the same, so the event is not stored again.
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

    /// The log contains many sessions.
    fn session(&self) -> Option<&Arc<str>> {
        None
    }
}
