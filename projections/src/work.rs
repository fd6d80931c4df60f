//! The work of a session: the files it changed, the commands it ran, its last answer; without secrets.

use std::collections::{BTreeMap, HashMap};

use events::{Block, Event, Kind, Payload, TextRef, ToolKind, ToolOutcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ItemText,
    shorten::{Shown, one_line},
};

/// Longest path of a file, characters.
const FILE_CHARS: usize = 200;
/// Longest command, characters.
const COMMAND_CHARS: usize = 160;

/// The work of a session, from its events in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkLog {
    /// The files it changed, and how often. Failed and refused edits changed nothing.
    pub files: BTreeMap<String, u32>,
    /// The commands it ran, oldest first.
    pub commands: Vec<CommandRun>,
    /// The whole text of its last answer.
    pub last_text: Option<String>,
    /// The command of each call, by its place in `commands`.
    #[serde(skip)]
    calls: HashMap<String, usize>,
    /// The files of each edit without a result.
    #[serde(skip)]
    edits: HashMap<String, Vec<String>>,
    /// The message of the last answer, if it has an id: more parts of it may come.
    #[serde(skip)]
    last_message: Option<String>,
    /// The parts of the last answer.
    #[serde(skip)]
    last_parts: Vec<ItemText>,
}

/// A command that was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandRun {
    /// The command, in one line.
    pub command: String,
    /// How it ended; absent while it runs.
    pub outcome: Option<ToolOutcome>,
    /// Its exit code, when known.
    pub exit_code: Option<i32>,
}

impl WorkLog {
    /// The kinds of events from which it is made.
    pub const KINDS: &[Kind] = &[Kind::ToolCall, Kind::ToolResult, Kind::AssistantMessage, Kind::AssistantDelta];

    /// Applies the next event; other kinds of events change nothing.
    pub fn apply(&mut self, event: &Event) {
        #[expect(clippy::wildcard_enum_match_arm, reason = "calls and answers are what was done")]
        match &event.payload {
            Payload::ToolCall(call) => match (call.tool, &call.title) {
                (ToolKind::Edit, _) => {
                    let files = call.edited_files().map(|file| one_line(file, FILE_CHARS)).collect();
                    self.edits.insert(call.call_id.clone(), files);
                }
                (ToolKind::Execute, Some(command)) => {
                    self.calls.insert(call.call_id.clone(), self.commands.len());
                    let command = one_line(command, COMMAND_CHARS);
                    self.commands.push(CommandRun { command, outcome: None, exit_code: None });
                }
                _ => {}
            },
            Payload::ToolResult(result) if !result.detail => {
                let edited = self.edits.remove(&result.call_id).unwrap_or_default();
                if result.outcome == ToolOutcome::Ok {
                    edited.into_iter().for_each(|file| *self.files.entry(file).or_default() += 1);
                }
                let ran = self.calls.get(&result.call_id).and_then(|place| self.commands.get_mut(*place));
                if let Some(ran) = ran {
                    (ran.outcome, ran.exit_code) = (Some(result.outcome), result.exit_code);
                }
            }
            Payload::AssistantMessage(message) => self.answered(message.message_id.as_deref(), event),
            Payload::AssistantDelta(delta) if delta.block == Block::Text => {
                self.answered(delta.message_id.as_deref(), event);
            }
            _ => {}
        }
    }

    /// Records a text of the agent: a part of the last answer, or a new answer.
    fn answered(&mut self, message: Option<&str>, event: &Event) {
        let part = ItemText::of(event);
        if part.is_empty() {
            return;
        }
        if message.is_none() || self.last_message.as_deref() != message {
            self.last_parts.clear();
        }
        self.last_message = message.map(str::to_owned);
        self.last_parts.push(part);
    }

    /// Assembles the last answer, reading the full text of parts of which the events contain only the beginning and the
    /// end. A part whose text is not stored stays as it is.
    ///
    /// # Errors
    /// The errors of `whole`.
    pub fn complete<E>(&mut self, mut whole: impl FnMut(&TextRef) -> Result<Option<String>, E>) -> Result<(), E> {
        for part in &mut self.last_parts {
            let Some(text_ref) = &part.text_ref else { continue };
            if let Some(text) = whole(text_ref)? {
                *part = ItemText { text, text_ref: None };
            }
        }
        let parts: Vec<&str> = self.last_parts.iter().map(|part| part.text.as_str()).collect();
        self.last_text = (!parts.is_empty()).then(|| Shown::of(&parts.join("\n")).as_str().to_owned());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use events::{
        AssistantDelta, AssistantMessage, Confidence, EventId, Origin, Provider, SessionId, Source, Timestamp,
        ToolCall, ToolResult, UserPrompt,
    };

    use super::*;

    fn event(sequence: u64, payload: impl Into<Payload>, text: Option<&str>) -> Event {
        Event {
            position: sequence,
            id: EventId::from_bits(sequence.into()),
            session_id: SessionId::from_bits(1),
            sequence,
            provider: Provider::Claude,
            provider_session_id: "p".into(),
            source: Source::Transcript,
            created_at: Timestamp::MIN,
            observed_at: Timestamp::MIN,
            turn_id: None,
            parent_id: None,
            agent_id: None,
            confidence: Confidence::High,
            severity: None,
            text: text.map(str::to_owned),
            text_ref: None,
            payload: payload.into(),
            origin: Origin::Derived,
            derived: false,
            history: false,
        }
    }

    fn call(id: &str, tool: ToolKind, title: &str) -> ToolCall {
        ToolCall { call_id: id.into(), name: "T".into(), tool, title: Some(title.into()), ..ToolCall::default() }
    }

    fn result(id: &str, outcome: ToolOutcome) -> ToolResult {
        ToolResult { call_id: id.into(), outcome, exit_code: Some(1), ..ToolResult::default() }
    }

    #[test]
    fn the_last_answer_has_all_its_parts_in_full() {
        let mut work = WorkLog::default();
        let message = |id: &str| AssistantMessage { message_id: Some(id.into()), ..AssistantMessage::default() };
        let part = |id: &str, block| AssistantDelta { message_id: Some(id.into()), block, ..AssistantDelta::default() };
        let cut =
            |event: Event| Event { text_ref: Some(TextRef { hash: "h".into(), length: 9, stored: true }), ..event };
        for event in [
            event(1, message("a"), Some("An older answer.")),
            cut(event(2, message("b"), Some("begin…end"))),
            event(3, part("b", Block::Thinking), Some("Hm.")),
            event(4, part("b", Block::Text), Some("And this.")),
            event(5, message("c"), None),
        ] {
            work.apply(&event);
        }
        let whole = |text: &TextRef| Ok::<_, ()>((text.hash == "h").then(|| "begin, middle, end".to_owned()));
        work.complete(whole).unwrap();
        assert_eq!(work.last_text.as_deref(), Some("begin, middle, end\nAnd this."));
        let mut gone = WorkLog::default();
        gone.apply(&cut(event(1, message("b"), Some("begin…end"))));
        gone.complete(|_| Ok::<_, ()>(None)).unwrap();
        assert_eq!(gone.last_text.as_deref(), Some("begin…end"), "a text that is not stored");
    }

    #[test]
    fn only_edits_that_were_carried_out_count_as_changed_files() {
        use ToolOutcome::{Blocked, Cancelled, Denied, Error, Ok};
        for outcome in [Ok, Error, Denied, Cancelled, Blocked] {
            let mut work = WorkLog::default();
            work.apply(&event(1, call("a", ToolKind::Edit, "src/a.rs"), None));
            assert!(work.files.is_empty(), "it has no result yet");
            work.apply(&event(2, ToolResult { detail: true, ..result("a", Ok) }, None));
            work.apply(&event(3, result("a", outcome), None));
            assert_eq!(work.files.len(), usize::from(outcome == Ok), "{outcome}");
        }
    }

    #[test]
    fn files_are_counted_and_a_command_has_the_outcome_of_its_own_call() {
        let mut work = WorkLog::default();
        for event in [
            event(1, call("a", ToolKind::Edit, "src/a.rs"), None),
            event(2, call("b", ToolKind::Edit, "src/a.rs"), None),
            event(3, result("b", ToolOutcome::Ok), None),
            event(4, call("c", ToolKind::Execute, "cargo\ntest"), None),
            event(5, call("d", ToolKind::Execute, "ls"), None),
            event(6, result("c", ToolOutcome::Error), None),
            event(7, ToolResult { detail: true, ..result("d", ToolOutcome::Error) }, None),
            event(8, AssistantMessage::default(), Some("Half of it\nis done.")),
            event(9, AssistantMessage::default(), None),
            event(10, UserPrompt::default(), Some("go on")),
            // If a call id is reused, it refers to the last call.
            event(11, call("c", ToolKind::Execute, "cargo test"), None),
            event(12, result("c", ToolOutcome::Ok), None),
            event(
                13,
                ToolCall {
                    files: vec!["src/a.rs".into(), "b.rs".into()],
                    ..call("e", ToolKind::Edit, "src/a.rs, b.rs")
                },
                None,
            ),
            event(14, result("e", ToolOutcome::Ok), None),
        ] {
            work.apply(&event);
        }
        assert_eq!(work.files, BTreeMap::from([("src/a.rs".to_owned(), 2), ("b.rs".to_owned(), 1)]));
        let run = |command: &str, outcome, exit_code| CommandRun { command: command.into(), outcome, exit_code };
        let expected = [
            run("cargo test", Some(ToolOutcome::Error), Some(1)),
            run("ls", None, None),
            run("cargo test", Some(ToolOutcome::Ok), Some(1)),
        ];
        assert_eq!(work.commands, expected);
        work.complete(|_| Ok::<_, ()>(None)).unwrap();
        assert_eq!(work.last_text.as_deref(), Some("Half of it\nis done."));
    }
}
