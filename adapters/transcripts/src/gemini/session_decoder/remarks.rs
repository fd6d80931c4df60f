//! The CLI's own messages: `info`, `warning` and `error` records, and records of unknown kinds.

use events::{Annotation, Confidence, ErrorReported, NewEvent, Severity, Timestamp, Topic, TurnOutcome, Unrecognized};

use super::SessionDecoder;
use crate::gemini::{
    content,
    record_writer::{GeminiRecordWriter, identity},
    standing::Stance,
};

impl SessionDecoder {
    /// Emits a record of an unknown kind.
    pub(in crate::gemini) fn unknown(
        &mut self,
        kind: &str,
        id: Option<&str>,
        at: Option<Timestamp>,
        writer: &mut GeminiRecordWriter<'_, '_>,
    ) {
        let session = self.session();
        match id {
            Some(id) => {
                let identity = identity(&session, "unknown", id, 0);
                writer.out.unrecognized(writer.record, &session, identity, kind, at);
            }
            None => {
                let unnamed = Unrecognized {
                    raw_kind: kind.chars().take(200).collect(),
                    issue: None,
                    length: writer.record.bytes.len() as u64,
                    hash: None,
                };
                let text = Some(String::from_utf8_lossy(writer.record.bytes).into_owned());
                let event = NewEvent { text, created_at: at, ..writer.nameless(&session, 0, unnamed) };
                writer.out.push(event);
            }
        }
    }

    pub(super) fn info(
        &mut self,
        id: &str,
        at: Option<Timestamp>,
        text: String,
        writer: &mut GeminiRecordWriter<'_, '_>,
    ) {
        if text.is_empty() {
            return;
        }
        if text.starts_with("Request cancelled") {
            let outcome = if self.memory.denied { TurnOutcome::Denied } else { TurnOutcome::Interrupted };
            // 0.24.5 writes the same text for a call that is stopped at its dialog and for one that is stopped later.
            let is_blurred = self.memory.standing.as_ref().is_some_and(|last| last.stance == Stance::Stopped);
            let strength = if is_blurred { Confidence::Medium } else { Confidence::High };
            return self.over(id, at, outcome, strength, &text, writer);
        }
        let halted = text.contains("has been halted") || text.contains("maximum number of turns");
        let words = content::one_line(&text);
        self.notice(id, at, text, if halted { Severity::Warning } else { Severity::Info }, writer);
        if halted {
            self.over(id, at, TurnOutcome::Failed, Confidence::Medium, &words, writer);
        }
    }

    pub(super) fn error(
        &mut self,
        id: &str,
        at: Option<Timestamp>,
        text: String,
        writer: &mut GeminiRecordWriter<'_, '_>,
    ) {
        let (class, code) = content::error_class(&text);
        let ends_turn = text.contains("API Error");
        let session = self.session();
        let words = content::one_line(&text);
        let reported = ErrorReported { class, code, ends_turn, retrying: false };
        let event = NewEvent {
            text: Some(text),
            severity: Some(Severity::Error),
            ..writer.event(&session, "error", id, 0, at, reported)
        };
        writer.out.push(event);
        if ends_turn {
            self.over(id, at, TurnOutcome::Failed, Confidence::High, &words, writer);
        }
    }

    /// Handles a record that ends the turn.
    fn over(
        &mut self,
        id: &str,
        at: Option<Timestamp>,
        outcome: TurnOutcome,
        strength: Confidence,
        words: &str,
        writer: &mut GeminiRecordWriter<'_, '_>,
    ) {
        self.memory.standing = None;
        self.memory.open = false;
        self.memory.denied = false;
        let session = self.session();
        writer.end(&session, id, at, outcome, strength, words);
    }

    pub(super) fn notice(
        &mut self,
        id: &str,
        at: Option<Timestamp>,
        value: String,
        severity: Severity,
        writer: &mut GeminiRecordWriter<'_, '_>,
    ) {
        let session = self.session();
        let event = NewEvent {
            severity: Some(severity),
            ..writer.event(&session, "notice", id, 0, at, Annotation { topic: Topic::Notice, value })
        };
        writer.out.push(event);
    }
}
