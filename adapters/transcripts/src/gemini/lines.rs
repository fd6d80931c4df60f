//! Chat files with one record per line (0.39.1 and later).

use std::{path::Path, sync::Arc};

use events::Timestamp;
use serde::de::Error as _;

use super::{
    memory::GeminiMemory,
    record::{ChatLine, ChatMessage, UnknownChatLine},
    session_decoder::{SessionDecoder, session::Header},
};
use crate::gemini::record_writer::GeminiRecordWriter;
use tailer::decode::{Decoded, Decoder, Malformed, Record};

/// The beginning of the most frequent line: `$set` with only the time of the last write.
const TOUCHED: &[u8] = br#"{"$set":{"lastUpdated":""#;
/// Maximum length of such a line.
const TOUCHED_LENGTH: usize = TOUCHED.len() + 40;

/// Decodes a chat file with one record per line, of a main session or a sub-agent.
#[derive(Debug)]
pub struct GeminiDecoder {
    session_decoder: SessionDecoder,
}

impl GeminiDecoder {
    /// A decoder for the file at `path`, whose last two directories distinguish a sub-agent's file from a session's.
    /// `state` is the result of [`Decoder::state`] where the last decoder stopped; an unreadable state is ignored,
    /// which can repeat events but never loses any.
    #[must_use]
    pub fn new(path: &str, state: Option<&str>) -> Self {
        let path = Path::new(path);
        let name = |p: Option<&Path>| p.and_then(Path::file_name).and_then(|n| n.to_str()).map(str::to_owned);
        let stem = path.file_stem().and_then(|s| s.to_str()).unwrap_or_default();
        let folder = name(path.parent());
        let inside_chats = name(path.parent().and_then(Path::parent)).as_deref() == Some("chats");
        let parent = folder.filter(|_| inside_chats);
        let memory = state.and_then(|s| serde_json::from_str::<GeminiMemory>(s).ok()).unwrap_or_default();
        let nameless = if parent.is_some() { stem } else { stem.rsplit('-').next().unwrap_or(stem) };
        Self { session_decoder: SessionDecoder::new(memory, Arc::from(nameless), parent) }
    }

    /// Sets the working directory of the project the file belongs to.
    #[must_use]
    pub fn with_cwd(mut self, cwd: Option<String>) -> Self {
        self.session_decoder.cwd = cwd;
        self
    }
}

impl Decoder for GeminiDecoder {
    fn record(&mut self, record: Record<'_>, out: &mut Decoded) -> Result<(), Malformed> {
        let session_decoder = &mut self.session_decoder;
        let mut writer = GeminiRecordWriter { record: &record, out };
        if record.bytes.len() <= TOUCHED_LENGTH
            && record.bytes.starts_with(TOUCHED)
            && record.bytes.ends_with(br#""}}"#)
        {
            session_decoder.touched(&mut writer);
            return Ok(());
        }
        let text = std::str::from_utf8(record.bytes).map_err(|e| Malformed(serde_json::Error::custom(e)))?;
        match serde_json::from_str::<ChatLine<'_>>(text) {
            Ok(line) => apply_line(session_decoder, line, &mut writer),
            Err(error) => {
                // It may be a record of an unknown form.
                let odd: UnknownChatLine<'_> = serde_json::from_str(text).map_err(|_| error)?;
                let kind = odd.kind.map_or("record", |k| k.get().trim_matches('"'));
                session_decoder.unknown(&format!("{kind} of another form"), None, None, &mut writer);
            }
        }
        Ok(())
    }

    fn pause(&mut self, out: &mut Decoded) {
        self.session_decoder.pause(out);
    }

    fn state(&self) -> Option<String> {
        serde_json::to_string(&self.session_decoder.memory).ok()
    }

    fn session(&self) -> Option<&Arc<str>> {
        self.session_decoder.memory.session.as_ref()
    }
}

fn apply_line(session_decoder: &mut SessionDecoder, line: ChatLine<'_>, writer: &mut GeminiRecordWriter<'_, '_>) {
    if let Some(set) = line.set {
        session_decoder.set(set, writer);
    } else if let Some(id) = line.rewind_to {
        session_decoder.rewound(&id, writer);
    } else if line.id.is_some() || line.kind_of_message.is_some() {
        let message = ChatMessage {
            id: line.id,
            timestamp: line.timestamp,
            kind: line.kind_of_message,
            content: line.content,
            display_content: line.display_content,
            thoughts: line.thoughts,
            tokens: line.tokens,
            model: line.model,
            tool_calls: line.tool_calls,
        };
        session_decoder.message(message, writer);
    } else if let Some(session) = line.session_id {
        session_decoder.header(
            &Header {
                session: &session,
                at: line.start_time.as_deref().and_then(Timestamp::parse),
                subagent: line.kind.as_deref() == Some("subagent"),
                directory: line
                    .directories
                    .and_then(|d| serde_json::from_str::<Vec<String>>(d.get()).ok()?.into_iter().next()),
                summary: line.summary,
            },
            writer,
        );
    } else {
        session_decoder.unknown("record", None, None, writer);
    }
}
