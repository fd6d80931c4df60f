//! The decoder's state between two records. It is the whole state and survives a restart as JSON, so it stays small: no
//! texts, and calls only while they are open.

use serde::{Deserialize, Serialize};

/// Maximum number of open calls tracked; the oldest is dropped first.
const OPEN_CALLS: usize = 64;

/// The state of a decoder.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct CodexMemory {
    /// The file's thread, once `session_meta` has named it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thread: Option<String>,
    /// The thread with whose history the file's thread begins: the oldest one that the file names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) root: Option<String>,
    /// Whether the thread belongs to a sub-agent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) subagent: bool,
    /// The model recorded last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    /// The working directory recorded last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cwd: Option<String>,
    /// The permission mode recorded last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) permission_mode: Option<String>,
    /// The open turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) turn: Option<OpenTurn>,
    /// Whether turns of this file record their trigger, so that a turn without one was started by a command.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) attributed: bool,
    /// Calls without a result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) calls: Vec<OpenCall>,
    /// Whether usage is recorded by `token_usage_record`, so that `token_count` repeats it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) usage_records: bool,
    /// The total of the last `token_count`: a record with the same total is a repetition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) total_tokens: Option<u64>,
    /// The quotas reported last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) quotas: Vec<events::QuotaReported>,
    /// The last prompt, for recognising its copy in the other form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_prompt: Option<EmittedText>,
    /// The last answer, for recognising its copy in the other form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_answer: Option<EmittedText>,
    /// The web search that ended last; its call has no id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) search: Option<String>,
    /// Whether the next mail starts a turn.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) mail_triggers: bool,
    /// Whether the file records beginnings and ends of turns, or answers marked as final or not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) has_ends: bool,
    /// Whether the last call was refused, in a file that does not record where turns begin.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) refused: bool,
}

impl CodexMemory {
    /// Whether the file never records that a turn ended: observed in 0.60.1, whose answers are events.
    pub(super) fn tells_no_ends(&self) -> bool {
        !self.has_ends && self.last_answer.as_ref().is_some_and(|answer| answer.form == MessageForm::Event)
    }
}

/// The open turn.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct OpenTurn {
    /// Its id, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    /// Who started it.
    pub(super) starter: Starter,
    /// Whether it has its prompt, so that the next one is steering.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) prompted: bool,
    /// Whether an error was reported that the end of the turn will repeat.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) failed: bool,
    /// Whether one of its calls was refused.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) denied: bool,
}

/// Who started a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Starter {
    /// The record does not name the starter.
    #[default]
    Unsaid,
    /// The user.
    User,
    /// Another agent.
    Agent,
    /// The agent itself.
    Itself,
    /// A command of Codex itself.
    Command,
}

/// A call without a result.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct OpenCall {
    /// Its `call_id`.
    pub(super) id: String,
    /// When it was made, milliseconds since 1970.
    pub(super) at_ms: i64,
    /// Whether it is a script (code mode), whose commands have separate ids.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) script: bool,
    /// Whether it requested more rights.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) escalated: bool,
    /// The command of a script that requested more rights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) asks: Option<String>,
    /// Whether it asks the user a question.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) question: bool,
    /// Whether the answer was recorded.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) answered: bool,
    /// Whether one of its actions has ended, so that it was not refused.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) executed: bool,
    /// Exit code of its commands so far: the last non-zero one, else zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exit_code: Option<i32>,
}

/// A text that was emitted, and the form that recorded it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EmittedText {
    form: MessageForm,
    hash: u64,
}

/// The two forms in which rollouts record messages. A file may contain both: first of an older Codex, then of a newer
/// one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum MessageForm {
    /// `item_completed`.
    Item,
    /// A dedicated event.
    Event,
}

impl EmittedText {
    fn new(form: MessageForm, text: &str) -> Self {
        let mut hash = [0_u8; 8];
        hash.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..8]);
        Self { form, hash: u64::from_le_bytes(hash) }
    }

    /// Whether this text in this form is the other form's copy of the last text. A text has at most one copy.
    pub(super) fn repeats(last: &mut Option<Self>, form: MessageForm, text: &str) -> bool {
        let now = Self::new(form, text);
        match last {
            Some(before) if before.form != now.form && before.hash == now.hash => {
                *last = None;
                true
            }
            Some(_) | None => {
                *last = Some(now);
                false
            }
        }
    }
}

impl CodexMemory {
    /// Tracks a call until its result.
    pub(super) fn open(&mut self, call: OpenCall) {
        if self.calls.len() >= OPEN_CALLS {
            self.calls.remove(0);
        }
        self.calls.push(call);
    }

    /// The open call with this id.
    pub(super) fn call(&mut self, id: &str) -> Option<&mut OpenCall> {
        self.calls.iter_mut().find(|call| call.id == id)
    }

    /// Removes and returns the open call with this id.
    pub(super) fn close(&mut self, id: &str) -> Option<OpenCall> {
        let at = self.calls.iter().position(|call| call.id == id)?;
        Some(self.calls.remove(at))
    }

    /// The call a command belongs to: the one with its id, or the only script of the open turn that was running when
    /// the command began. If two scripts were running, the call is unknown.
    pub(super) fn owner(&mut self, item: &str, turn: Option<&str>, began_ms: Option<i64>) -> Option<&mut OpenCall> {
        if let Some(at) = self.calls.iter().position(|call| call.id == item) {
            return self.calls.get_mut(at);
        }
        let open = self.turn.as_ref()?.id.as_deref();
        if open != turn {
            return None;
        }
        let began = began_ms?;
        let mut scripts = self.calls.iter_mut().filter(|call| call.script && call.at_ms <= began);
        let first = scripts.next()?;
        scripts.next().is_none().then_some(first)
    }
}
