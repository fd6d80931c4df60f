//! The decoder of a chat file: the session of a record, and the state carried from record to record.

use std::sync::Arc;

use crate::rewinds::PromptPlaces;
use events::{Identity, NewEvent, Payload, Provider, Repeat, SessionStarted, StartKind, Timestamp};
use serde::{Deserialize, Serialize};

use super::record::{QwenLine, Text, UnknownQwenLine};
use tailer::decode::{Decoded, Decoder, Malformed, Record, line_identity};

const PROVIDER: Provider = Provider::Qwen;

/// The block number of [`SessionStarted`] among the events of a record.
const STARTED: u32 = 1;

/// Decodes a chat file.
#[derive(Debug)]
pub struct QwenDecoder {
    session: Arc<str>,
    carried: QwenState,
}

/// The state needed to continue after a restart.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct QwenState {
    session: Option<String>,
    cwd: Option<String>,
    branch: Option<String>,
    version: Option<String>,
    /// Whether the model's response is complete and its message will follow.
    pub(super) responded: bool,
    /// The positions of the last prompts.
    #[serde(default, skip_serializing_if = "PromptPlaces::is_empty")]
    pub(super) prompts: PromptPlaces,
}

/// One record and the receiver of its events.
pub(super) struct QwenRecordWriter<'a, 'r> {
    pub(super) session: &'a Arc<str>,
    pub(super) uuid: Option<&'a str>,
    pub(super) at: Option<Timestamp>,
    pub(super) record: &'a Record<'r>,
    pub(super) out: &'a mut Decoded,
}

impl QwenDecoder {
    /// A decoder for the file at `path` that continues from `state`.
    #[must_use]
    pub fn new(path: &str, state: Option<&str>) -> Self {
        let carried: QwenState = state.and_then(|state| serde_json::from_str(state).ok()).unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or_default();
        let name = name.strip_suffix(".jsonl").unwrap_or(name);
        Self { session: Arc::from(carried.session.as_deref().unwrap_or(name)), carried }
    }
}

impl QwenState {
    /// Emits directory, branch and version, which are in each record, when they change.
    fn surroundings(&mut self, line: &QwenLine<'_>, writer: &mut QwenRecordWriter<'_, '_>) {
        let first = self.session.is_none();
        let mut changed = first;
        for (known, said) in
            [(&mut self.cwd, &line.cwd), (&mut self.branch, &line.git_branch), (&mut self.version, &line.version)]
        {
            if let Some(said) = said.as_deref().filter(|said| known.as_deref() != Some(*said)) {
                *known = Some(said.to_owned());
                changed = true;
            }
        }
        self.session = Some(writer.session.to_string());
        if changed {
            let started = SessionStarted {
                how: if first { StartKind::New } else { StartKind::Unknown },
                cwd: self.cwd.clone(),
                git_branch: self.branch.clone(),
                cli_version: self.version.clone(),
                ..SessionStarted::default()
            };
            writer.emit(STARTED, started, None);
        }
    }
}

impl QwenRecordWriter<'_, '_> {
    pub(super) fn identity(&self, block: u32) -> (Identity, Repeat) {
        match self.uuid {
            Some(uuid) => (Identity::record(PROVIDER, uuid, block), Repeat::Unique),
            None => (line_identity(PROVIDER, self.session, self.record.bytes, block), Repeat::Next),
        }
    }

    /// Emits an event about the record; `block` distinguishes it from others of the same record.
    pub(super) fn emit(&mut self, block: u32, payload: impl Into<Payload>, text: Option<String>) {
        let (identity, repeat) = self.identity(block);
        let event = self.out.event(self.record, self.session, identity, payload);
        self.out.push(NewEvent { repeat, created_at: self.at, text, ..event });
    }

    pub(super) fn unrecognized(&mut self, kind: &str) {
        let (identity, repeat) = self.identity(0);
        self.out.unrecognized(self.record, self.session, identity, kind, self.at);
        if let Some(event) = self.out.events.last_mut() {
            event.repeat = repeat;
        }
    }
}

impl Decoder for QwenDecoder {
    fn record(&mut self, record: Record<'_>, out: &mut Decoded) -> Result<(), Malformed> {
        let session = Arc::clone(&self.session);
        let line: QwenLine<'_> = match serde_json::from_slice(record.bytes) {
            Ok(line) => line,
            Err(error) => {
                // A field of an unexpected type: the record is preserved unparsed.
                let Ok(UnknownQwenLine { kind }) = serde_json::from_slice(record.bytes) else {
                    return Err(error.into());
                };
                QwenRecordWriter { session: &session, uuid: None, at: None, record: &record, out }.unrecognized(&kind);
                return Ok(());
            }
        };
        if let Some(id) = line.session_id.as_deref().filter(|id| !id.is_empty() && self.carried.session.is_none()) {
            self.session = Arc::from(id);
        }
        let session = Arc::clone(&self.session);
        let at = line.timestamp.as_deref().and_then(Timestamp::parse);
        let uuid = line.uuid.as_deref().filter(|uuid| !uuid.is_empty());
        let mut writer = QwenRecordWriter { session: &session, uuid, at, record: &record, out };
        self.carried.surroundings(&line, &mut writer);
        writer.line(&line, &mut self.carried);
        Ok(())
    }

    fn state(&self) -> Option<String> {
        serde_json::to_string(&self.carried).ok()
    }

    fn session(&self) -> Option<&Arc<str>> {
        Some(&self.session)
    }
}

/// The text of a field, if it is not blank.
pub(super) fn words(text: Option<&Text<'_>>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty()).map(|text| text.to_string())
}
