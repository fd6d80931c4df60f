//! What the CLI itself says: `info`, `warning` and `error` records, and records not known here.

use events::{Annotation, Confidence, ErrorReported, NewEvent, Severity, Timestamp, Topic, TurnOutcome, Unrecognized};

use super::Story;
use crate::gemini::{
    content,
    scene::{Scene, identity},
};

impl Story {
    /// A record of a kind not known here.
    pub(in crate::gemini) fn unknown(
        &mut self,
        kind: &str,
        id: Option<&str>,
        at: Option<Timestamp>,
        scene: &mut Scene<'_, '_>,
    ) {
        let session = self.session();
        match id {
            Some(id) => {
                let identity = identity(&session, "unknown", id, 0);
                scene.out.unrecognized(scene.record, &session, identity, kind, at);
            }
            None => {
                let unnamed = Unrecognized {
                    raw_kind: kind.chars().take(200).collect(),
                    issue: None,
                    length: scene.record.bytes.len() as u64,
                    hash: None,
                };
                let text = Some(String::from_utf8_lossy(scene.record.bytes).into_owned());
                let event = NewEvent { text, created_at: at, ..scene.nameless(&session, 0, unnamed) };
                scene.out.push(event);
            }
        }
    }

    pub(super) fn info(&mut self, id: &str, at: Option<Timestamp>, text: String, scene: &mut Scene<'_, '_>) {
        if text.is_empty() {
            return;
        }
        if text.starts_with("Request cancelled") {
            let outcome = if self.memory.denied { TurnOutcome::Denied } else { TurnOutcome::Interrupted };
            return self.over(id, at, outcome, Confidence::High, &text, scene);
        }
        let halted = text.contains("has been halted") || text.contains("maximum number of turns");
        let words = content::one_line(&text);
        self.notice(id, at, text, if halted { Severity::Warning } else { Severity::Info }, scene);
        if halted {
            self.over(id, at, TurnOutcome::Failed, Confidence::Medium, &words, scene);
        }
    }

    pub(super) fn error(&mut self, id: &str, at: Option<Timestamp>, text: String, scene: &mut Scene<'_, '_>) {
        let (class, code) = content::error_class(&text);
        let ends_turn = text.contains("API Error");
        let session = self.session();
        let words = content::one_line(&text);
        let reported = ErrorReported { class, code, ends_turn, retrying: false };
        let event = NewEvent {
            text: Some(text),
            severity: Some(Severity::Error),
            ..scene.event(&session, "error", id, 0, at, reported)
        };
        scene.out.push(event);
        if ends_turn {
            self.over(id, at, TurnOutcome::Failed, Confidence::High, &words, scene);
        }
    }

    /// A record that says that the turn is over.
    fn over(
        &mut self,
        id: &str,
        at: Option<Timestamp>,
        outcome: TurnOutcome,
        strength: Confidence,
        words: &str,
        scene: &mut Scene<'_, '_>,
    ) {
        self.memory.standing = None;
        self.memory.open = false;
        self.memory.denied = false;
        let session = self.session();
        scene.end(&session, id, at, outcome, strength, words);
    }

    pub(super) fn notice(
        &mut self,
        id: &str,
        at: Option<Timestamp>,
        value: String,
        severity: Severity,
        scene: &mut Scene<'_, '_>,
    ) {
        let session = self.session();
        let event = NewEvent {
            severity: Some(severity),
            ..scene.event(&session, "notice", id, 0, at, Annotation { topic: Topic::Notice, value })
        };
        scene.out.push(event);
    }
}
