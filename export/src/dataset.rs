//! Turns as records for evaluation and training: one turn per line, in JSON.
//!
//! The format has a version ([`VERSION`]): fields may be added, and a change of existing fields is a new version. Texts
//! pass the caller's function before they are written, which removes secrets and the path of the home directory. For
//! calls that the caller's other function selects, neither input nor output is written ([`WITHHELD`]).

use events::{ApprovalState, DecidedBy, PromptOrigin, Provider, SessionId, Timestamp, ToolKind, ToolOutcome, TurnId};
use projections::{ConversationItem, ItemBody, ItemText, Session};
use serde::Serialize;

/// The version of the format.
pub const VERSION: u32 = 1;
/// Replaces the input and the output of a withheld call.
pub const WITHHELD: &str = "[withheld: the call names a file of secrets]";
/// Longest text, characters.
const TEXT_CHARS: usize = 64 << 10;

/// A turn: the prompt and everything up to the answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TurnRecord {
    /// The version of the format.
    pub version: u32,
    /// The session.
    pub session: SessionId,
    /// The turn; absent for steps outside a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// The agent.
    pub agent: Provider,
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// When the first step began.
    pub started_at: Timestamp,
    /// The outcome; absent if the end was not observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// The duration, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

/// A step of a turn.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Step {
    /// A prompt to the agent.
    Prompt {
        /// The origin of the prompt.
        origin: PromptOrigin,
        /// The text of the prompt.
        text: String,
    },
    /// A message of the agent.
    Message {
        /// The text of the message.
        text: String,
        /// The model's thinking, if it is readable.
        #[serde(skip_serializing_if = "Option::is_none")]
        thinking: Option<String>,
    },
    /// The agent called a tool.
    Tool {
        /// The agent's name of the tool.
        name: String,
        /// What the tool does.
        kind: ToolKind,
        /// The input, as the agent wrote it.
        input: String,
        /// The output; absent if it was not observed.
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<String>,
        /// How it ended.
        #[serde(skip_serializing_if = "Option::is_none")]
        outcome: Option<ToolOutcome>,
        /// The exit code of a command.
        #[serde(skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// How long it took, milliseconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
    },
    /// The agent asked for permission.
    Approval {
        /// The command, the file or the URL.
        #[serde(skip_serializing_if = "Option::is_none")]
        subject: Option<String>,
        /// How it ended.
        state: ApprovalState,
        /// Who decided, if it was decided through capture.
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<DecidedBy>,
    },
    /// The agent asked the user something.
    Question {
        /// The question.
        text: String,
        /// The answer, if it was observed.
        #[serde(skip_serializing_if = "Option::is_none")]
        answer: Option<String>,
    },
    /// The agent reported an error.
    Error {
        /// Its kind.
        class: String,
        /// The message.
        text: String,
    },
}

/// Builds records from the items of a conversation, which must be passed in order.
pub struct DatasetTurns<'a> {
    session: &'a Session,
    sanitize: &'a dyn Fn(&str) -> String,
    withhold: &'a dyn Fn(&str) -> bool,
    open: Option<TurnRecord>,
}

impl<'a> DatasetTurns<'a> {
    /// Creates the records of a session. `sanitize` is applied to each text, and calls for whose input `withhold`
    /// returns true are withheld.
    #[must_use]
    pub fn new(session: &'a Session, sanitize: &'a dyn Fn(&str) -> String, withhold: &'a dyn Fn(&str) -> bool) -> Self {
        Self { session, sanitize, withhold, open: None }
    }

    /// Applies the next item; returns the finished record if the item belongs to another turn.
    #[must_use]
    pub fn apply(&mut self, item: &ConversationItem) -> Option<TurnRecord> {
        let ended = self.open.take_if(|open| open.turn != item.turn_id);
        let open = self.open.get_or_insert_with(|| TurnRecord {
            version: VERSION,
            session: self.session.id,
            turn: item.turn_id,
            agent: self.session.provider,
            agent_version: self.session.cli_version.clone(),
            model: self.session.model.clone(),
            started_at: item.at,
            outcome: None,
            duration_ms: None,
            steps: Vec::new(),
        });
        let clean = |text: &str| cut((self.sanitize)(text));
        let of_call = |input: &ItemText, text: &str| {
            if (self.withhold)(&input.text) { WITHHELD.to_owned() } else { clean(text) }
        };
        match &item.body {
            ItemBody::Prompt { origin, text, .. } => {
                open.steps.push(Step::Prompt { origin: *origin, text: clean(&text.text) });
            }
            ItemBody::Message { text, thinking, model, .. } => {
                open.model = model.clone().or_else(|| open.model.take());
                open.steps.push(Step::Message { text: clean(&text.text), thinking: thinking.as_deref().map(clean) });
            }
            ItemBody::ToolCall { name, tool, input, result, .. } => open.steps.push(Step::Tool {
                name: clean(name),
                kind: *tool,
                input: of_call(input, &input.text),
                output: result.as_ref().map(|result| of_call(input, &result.text.text)),
                outcome: result.as_ref().map(|result| result.outcome),
                exit_code: result.as_ref().and_then(|result| result.exit_code),
                duration_ms: result.as_ref().and_then(|result| result.duration_ms),
            }),
            ItemBody::Approval { subject, state, by, .. } => {
                open.steps.push(Step::Approval { subject: subject.as_deref().map(clean), state: *state, by: *by });
            }
            ItemBody::Question { text, answer, .. } => open.steps.push(Step::Question {
                text: clean(&text.text),
                answer: answer.as_ref().map(|answer| clean(&answer.text)),
            }),
            ItemBody::Error { class, text, .. } => {
                open.steps.push(Step::Error { class: class.to_string(), text: clean(&text.text) });
            }
            ItemBody::TurnEnd { outcome, duration_ms, .. } => {
                (open.outcome, open.duration_ms) = (Some(outcome.to_string()), Some(*duration_ms));
            }
            // The summary repeats the content of other records; a sub-agent has separate records.
            ItemBody::Compaction { .. } | ItemBody::Subagent(_) => {}
        }
        ended.filter(|record| !record.steps.is_empty())
    }

    /// The record of the last turn.
    #[must_use]
    pub fn finish(self) -> Option<TurnRecord> {
        self.open.filter(|record| !record.steps.is_empty())
    }
}

/// A text of limited length.
fn cut(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(TEXT_CHARS) {
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use events::TurnOutcome;
    use projections::{CallResult, SessionState, StatusRules};

    use super::*;

    fn session() -> Session {
        let (id, at) = (SessionId::from_bits(1), Timestamp::from_millisecond(1_000));
        SessionState::new(id, Provider::Claude, None, at, StatusRules::default()).session
    }

    fn text(text: &str) -> ItemText {
        ItemText { text: text.into(), text_ref: None }
    }

    fn item(sequence: u64, turn: u128, body: ItemBody) -> ConversationItem {
        let turn_id = Some(TurnId::from_bits(turn));
        ConversationItem { sequence, at: Timestamp::from_millisecond(1_000), turn_id, agent_id: None, body }
    }

    #[test]
    fn each_turn_becomes_one_record_with_sanitized_texts() {
        let session = session();
        let hide = |text: &str| text.replace("/home/me", "~");
        let mut turns = DatasetTurns::new(&session, &hide, &|input| input.contains("key"));
        let call = |input| ItemBody::ToolCall {
            call_id: "c".into(),
            name: "Bash".into(),
            tool: ToolKind::Execute,
            title: None,
            input: text(input),
            result: Some(CallResult {
                outcome: ToolOutcome::Error,
                exit_code: Some(2),
                duration_ms: Some(5),
                text: text("/home/me: denied"),
            }),
            subagents: Vec::new(),
        };
        let prompt = |said| ItemBody::Prompt { origin: PromptOrigin::Human, text: text(said), attachments: 0 };
        let end = ItemBody::TurnEnd { outcome: TurnOutcome::Completed, number: 1, duration_ms: 7 };
        assert_eq!(turns.apply(&item(1, 1, prompt("look into /home/me"))), None);
        assert_eq!(turns.apply(&item(2, 1, call("ls /home/me"))), None);
        assert_eq!(turns.apply(&item(3, 1, call("cat key"))), None);
        assert_eq!(turns.apply(&item(4, 1, end)), None);
        let record = turns.apply(&item(5, 2, prompt("next"))).unwrap();
        let json = serde_json::to_value(&record).unwrap();
        assert_eq!(
            (&json["version"], &json["outcome"], &json["duration_ms"]),
            (&1.into(), &"completed".into(), &7.into())
        );
        assert_eq!(
            json["steps"],
            serde_json::json!([
                {"type": "prompt", "origin": "human", "text": "look into ~"},
                {"type": "tool", "name": "Bash", "kind": "execute", "input": "ls ~", "output": "~: denied",
                 "outcome": "error", "exit_code": 2, "duration_ms": 5},
                {"type": "tool", "name": "Bash", "kind": "execute", "input": WITHHELD, "output": WITHHELD,
                 "outcome": "error", "exit_code": 2, "duration_ms": 5},
            ])
        );
        let last = turns.finish().unwrap();
        assert_eq!((last.turn, last.steps.len(), last.outcome), (Some(TurnId::from_bits(2)), 1, None));
    }

    #[test]
    fn long_texts_are_bounded() {
        assert_eq!(cut("ä".repeat(TEXT_CHARS + 1)).chars().count(), TEXT_CHARS + 1);
        assert_eq!(cut("ä".repeat(TEXT_CHARS)), "ä".repeat(TEXT_CHARS));
    }
}
