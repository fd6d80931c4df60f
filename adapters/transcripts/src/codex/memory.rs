//! The decoder's state between two records. It is the decoder's whole state and survives a restart as JSON, so it stays
//! small: no texts, and calls only while they are open.

use serde::{Deserialize, Serialize};

/// Maximum number of open calls followed; the oldest is dropped first.
const OPEN_CALLS: usize = 64;

/// The state of a decoder.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct CodexMemory {
    /// The file's thread, once `session_meta` named it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thread: Option<String>,
    /// The thread whose history the file's thread begins with: the oldest one that the file names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) root: Option<String>,
    /// The thread is a sub-agent's.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) subagent: bool,
    /// What was last said of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    /// What was last said of the working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cwd: Option<String>,
    /// What was last said of the permission mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) permission_mode: Option<String>,
    /// The turn that is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) turn: Option<OpenTurn>,
    /// Turns of this file say what triggered them, so one that does not is a command's.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) attributed: bool,
    /// Calls without a result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) calls: Vec<OpenCall>,
    /// Usage is told by `token_usage_record`; `token_count` repeats it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) usage_records: bool,
    /// The total of the last `token_count`: one with the same total repeats it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) total_tokens: Option<u64>,
    /// The quotas as they were last told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) quotas: Vec<events::QuotaReported>,
    /// The last prompt, to know its copy in the other form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_prompt: Option<EmittedText>,
    /// The last answer, to know its copy in the other form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_answer: Option<EmittedText>,
    /// The search of the web that ended last, whose call has no id of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) search: Option<String>,
    /// The mail that comes next starts a turn.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) mail_triggers: bool,
    /// Turns of this file have a beginning and an end of their own, or answers that say whether they are the last.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) has_ends: bool,
    /// The last call was refused, in a file that does not tell where its turns begin.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) refused: bool,
}

impl CodexMemory {
    /// Whether this is a file in which nothing tells that a turn ended: seen of 0.60.1, whose answers are events.
    pub(super) fn tells_no_ends(&self) -> bool {
        !self.has_ends && self.last_answer.as_ref().is_some_and(|answer| answer.form == MessageForm::Event)
    }
}

/// The turn that is open.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct OpenTurn {
    /// Its id, when it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    /// Who started it.
    pub(super) starter: Starter,
    /// It has its prompt: the next one is steering.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) prompted: bool,
    /// An error was told that its end will tell again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) failed: bool,
    /// A call of it was refused.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) denied: bool,
}

/// Who started a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Starter {
    /// The record does not say.
    #[default]
    Unsaid,
    /// The user.
    User,
    /// Another agent.
    Agent,
    /// The agent itself.
    Itself,
    /// A command of Codex's own.
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
    /// It is a script (code mode), whose commands have ids of their own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) script: bool,
    /// It asked for more rights.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) escalated: bool,
    /// The command of a script that asked for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) asks: Option<String>,
    /// It asks the user something.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) question: bool,
    /// The answer was seen.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) answered: bool,
    /// Something it did has ended, so nobody refused it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) executed: bool,
    /// Exit code of its commands so far: the last that is not zero, else zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exit_code: Option<i32>,
}

/// A text that was put out, and which form told it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EmittedText {
    form: MessageForm,
    hash: u64,
}

/// The two ways in which rollouts tell messages. A file may hold both: older Codex, then newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum MessageForm {
    /// `item_completed`.
    Item,
    /// An event of its own.
    Event,
}

impl EmittedText {
    fn new(form: MessageForm, text: &str) -> Self {
        let mut hash = [0_u8; 8];
        hash.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..8]);
        Self { form, hash: u64::from_le_bytes(hash) }
    }

    /// Whether this text, told in this form, is the other form's copy of what was told last.
    /// A copy is one only once.
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
    /// Follows a call until its result.
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

    /// Takes the open call with this id out.
    pub(super) fn close(&mut self, id: &str) -> Option<OpenCall> {
        let at = self.calls.iter().position(|call| call.id == id)?;
        Some(self.calls.remove(at))
    }

    /// The call a command belongs to: the one with its id, or the only script of the open turn
    /// that was running when the command began. With two such scripts nobody can tell.
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
