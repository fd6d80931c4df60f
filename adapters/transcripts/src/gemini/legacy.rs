//! Chat files that are one JSON document, rewritten as a whole (up to 0.38.2).
//!
//! The file is one record. After each rewrite all its events are emitted again with the same identities, so that the
//! caller stores only the new ones, for example a tool call added to an old message. Only text added to an old message
//! requires state: its message is known, the added text is not.

use std::{collections::VecDeque, path::Path, sync::Arc};

use events::Timestamp;
use serde::de::Error as _;

use super::{
    memory::{EmittedMessage, GeminiMemory},
    record::ChatDocument,
    session_decoder::{SessionDecoder, session::Header},
};
use crate::gemini::record_writer::GeminiRecordWriter;
use tailer::decode::{Decoded, Decoder, Malformed, Record};

/// Decodes a chat file that is rewritten as a whole. Pass it the whole file as one record after each change.
#[derive(Debug)]
pub struct GeminiLegacyDecoder {
    session_decoder: SessionDecoder,
}

impl GeminiLegacyDecoder {
    /// A decoder for the file at `path`. `state` is the last result of [`Decoder::state`]; an unreadable state is
    /// ignored.
    #[must_use]
    pub fn new(path: &str, state: Option<&str>) -> Self {
        let stem = Path::new(path).file_stem().and_then(|s| s.to_str()).unwrap_or_default();
        let nameless = stem.rsplit('-').next().unwrap_or(stem);
        let told = state.and_then(|s| serde_json::from_str::<VecDeque<EmittedMessage>>(s).ok()).unwrap_or_default();
        let mut session_decoder =
            SessionDecoder::new(GeminiMemory { told, ..GeminiMemory::default() }, Arc::from(nameless), None);
        session_decoder.whole = true;
        Self { session_decoder }
    }

    /// Sets the working directory of the project the file belongs to.
    #[must_use]
    pub fn with_cwd(mut self, cwd: Option<String>) -> Self {
        self.session_decoder.cwd = cwd;
        self
    }
}

impl Decoder for GeminiLegacyDecoder {
    fn record(&mut self, record: Record<'_>, out: &mut Decoded) -> Result<(), Malformed> {
        let text = std::str::from_utf8(record.bytes).map_err(|e| Malformed(serde_json::Error::custom(e)))?;
        let document: ChatDocument<'_> = serde_json::from_str(text)?;
        self.session_decoder.again();
        let mut writer = GeminiRecordWriter { record: &record, out };
        let header = Header {
            session: &document.session_id,
            at: document.start_time.as_deref().and_then(Timestamp::parse),
            subagent: false,
            directory: None,
            summary: document.summary,
        };
        self.session_decoder.header(&header, &mut writer);
        for message in document.messages.unwrap_or_default() {
            self.session_decoder.message(message, &mut writer);
        }
        Ok(())
    }

    fn pause(&mut self, out: &mut Decoded) {
        self.session_decoder.pause(out);
    }

    fn state(&self) -> Option<String> {
        serde_json::to_string(&self.session_decoder.memory.told).ok()
    }

    fn session(&self) -> Option<&Arc<str>> {
        self.session_decoder.memory.session.as_ref()
    }
}
