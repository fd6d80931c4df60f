//! The closed set of things that can happen in a session, each with its data.
//!
//! The text a person would read (prompt, answer, command output, error message) is not here but
//! in the event's `text`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

use crate::{Finding, Notification, QueuedPrompt, Reason, Signal, State, provider::names};

names! {
    /// The kind of an event.
    Kind {
        /// See [`SessionStarted`].
        SessionStarted = "session.started" / 1,
        /// See [`SessionExited`].
        SessionExited = "session.exited" / 2,
        /// See [`TurnStarted`].
        TurnStarted = "turn.started" / 3,
        /// See [`TurnCompleted`].
        TurnCompleted = "turn.completed" / 4,
        /// See [`UserPrompt`].
        UserPrompt = "user.prompt" / 5,
        /// See [`AssistantDelta`].
        AssistantDelta = "assistant.delta" / 6,
        /// See [`AssistantMessage`].
        AssistantMessage = "assistant.message" / 7,
        /// See [`ToolCall`].
        ToolCall = "tool.call" / 8,
        /// See [`ToolResult`].
        ToolResult = "tool.result" / 9,
        /// See [`ApprovalRequested`].
        ApprovalRequested = "approval.requested" / 10,
        /// See [`ApprovalResolved`].
        ApprovalResolved = "approval.resolved" / 11,
        /// See [`StatusChanged`].
        StatusChanged = "status.changed" / 12,
        /// See [`ErrorReported`].
        Error = "error" / 13,
        /// See [`Heartbeat`].
        Heartbeat = "heartbeat" / 14,
        /// See [`QuestionAsked`].
        QuestionAsked = "question.asked" / 15,
        /// See [`QuestionAnswered`].
        QuestionAnswered = "question.answered" / 16,
        /// See [`UsageReported`].
        UsageReported = "usage.reported" / 17,
        /// See [`ContextCompacted`].
        ContextCompacted = "context.compacted" / 18,
        /// See [`SessionForked`].
        SessionForked = "session.forked" / 19,
        /// See [`Annotation`].
        Annotation = "annotation" / 20,
        /// See [`Signal`].
        Signal = "signal" / 21,
        /// See [`Unrecognized`].
        Unrecognized = "unrecognized" / 22,
        /// See [`Finding`].
        Finding = "finding" / 23,
        /// See [`Notification`].
        Notification = "notification" / 24,
        /// See [`QueuedPrompt`].
        QueuedPrompt = "prompt.queued" / 25,
    }
}

macro_rules! payload {
    ($($(#[$doc:meta])* $kind:ident($data:ty),)*) => {
        /// What happened, with its data.
        #[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
        #[serde(untagged)]
        pub enum Payload { $($(#[$doc])* $kind($data),)* }

        impl Payload {
            /// The kind of the event.
            #[must_use]
            pub const fn kind(&self) -> Kind {
                match self { $(Self::$kind(_) => Kind::$kind,)* }
            }

            /// Reads the data of an event of this kind from JSON.
            ///
            /// # Errors
            /// When the JSON is not the data of that kind.
            pub fn from_json(kind: Kind, data: &str) -> Result<Self, serde_json::Error> {
                match kind { $(Kind::$kind => serde_json::from_str::<$data>(data).map(Self::$kind),)* }
            }

            pub(crate) fn data_schema(kind: Kind, generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                match kind { $(Kind::$kind => generator.subschema_for::<$data>(),)* }
            }
        }
        $(impl From<$data> for Payload { fn from(data: $data) -> Self { Self::$kind(data) } })*
    };
}

payload! {
    /// `session.started`
    SessionStarted(SessionStarted),
    /// `session.exited`
    SessionExited(SessionExited),
    /// `turn.started`
    TurnStarted(TurnStarted),
    /// `turn.completed`
    TurnCompleted(TurnCompleted),
    /// `user.prompt`
    UserPrompt(UserPrompt),
    /// `assistant.delta`
    AssistantDelta(AssistantDelta),
    /// `assistant.message`
    AssistantMessage(AssistantMessage),
    /// `tool.call`
    ToolCall(ToolCall),
    /// `tool.result`
    ToolResult(ToolResult),
    /// `approval.requested`
    ApprovalRequested(ApprovalRequested),
    /// `approval.resolved`
    ApprovalResolved(ApprovalResolved),
    /// `status.changed`
    StatusChanged(StatusChanged),
    /// `error`
    Error(ErrorReported),
    /// `heartbeat`
    Heartbeat(Heartbeat),
    /// `question.asked`
    QuestionAsked(QuestionAsked),
    /// `question.answered`
    QuestionAnswered(QuestionAnswered),
    /// `usage.reported`
    UsageReported(UsageReported),
    /// `context.compacted`
    ContextCompacted(ContextCompacted),
    /// `session.forked`
    SessionForked(SessionForked),
    /// `annotation`
    Annotation(Annotation),
    /// `signal`
    Signal(Signal),
    /// `unrecognized`
    Unrecognized(Unrecognized),
    /// `finding`
    Finding(Finding),
    /// `notification`
    Notification(Notification),
    /// `prompt.queued`
    QueuedPrompt(QueuedPrompt),
}

macro_rules! by_default {
    ($name:ident :: $variant:ident) => {
        impl Default for $name {
            fn default() -> Self {
                Self::$variant
            }
        }
    };
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

fn is_false(b: &bool) -> bool {
    !*b
}

macro_rules! data {
    ($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident : $ty:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
        pub struct $name { $($(#[$fdoc])* pub $field: $ty,)* }
    };
}

names! {
    /// How a session came to be.
    StartKind {
        /// Not said.
        Unknown = "unknown" / 0,
        /// A new conversation.
        New = "new" / 1,
        /// An old conversation taken up again in its own file.
        Resume = "resume" / 2,
        /// A copy of another conversation that goes its own way.
        Fork = "fork" / 3,
        /// Another agent's helper.
        Subagent = "subagent" / 4,
    }
}

by_default!(StartKind::Unknown);

data! {
    /// A session was first seen. Repeated when a later record knows more.
    SessionStarted {
        /// How it came to be.
        #[serde(default)]
        how: StartKind,
        /// Working directory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
        /// Git branch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        git_branch: Option<String>,
        /// Model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Version of the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cli_version: Option<String>,
        /// The provider's id of the session whose helper this is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_provider_session_id: Option<String>,
        /// Our id of that session; filled in when the event is committed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_session_id: Option<crate::SessionId>,
        /// What kind of helper: `general-purpose`, `/root/helper`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent_type: Option<String>,
    }
}

data! {
    /// The session's process said goodbye, or capture concluded that it is gone (derived).
    SessionExited {
        /// clean, failed or killed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Reason>,
        /// Exit code, when known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<i32>,
    }
}

names! {
    /// What opened a turn.
    TurnTrigger {
        /// A person's prompt.
        Prompt = "prompt" / 1,
        /// The agent itself: a finished background task, a scheduled wake-up.
        Wakeup = "wakeup" / 2,
        /// A command of the agent's own (`/compact`).
        Command = "command" / 3,
    }
}

by_default!(TurnTrigger::Prompt);

data! {
    /// A turn was opened (derived).
    TurnStarted {
        /// What opened it.
        trigger: TurnTrigger,
        /// Its number within the session, from 1.
        number: u32,
    }
}

names! {
    /// How a turn ended.
    TurnOutcome {
        /// The agent finished.
        Completed = "completed" / 1,
        /// The user interrupted it.
        Interrupted = "interrupted" / 2,
        /// The user refused a permission.
        Denied = "denied" / 3,
        /// An error ended it.
        Failed = "failed" / 4,
        /// The session's process ended first.
        Exited = "exited" / 5,
        /// The next prompt came before any end was seen.
        Superseded = "superseded" / 6,
        /// Silence and a ready prompt.
        TimedOut = "timed_out" / 7,
    }
}

by_default!(TurnOutcome::Completed);

data! {
    /// A turn is over (derived).
    TurnCompleted {
        /// How it ended.
        outcome: TurnOutcome,
        /// Its number within the session, from 1.
        number: u32,
        /// From its start to its end, milliseconds by capture's clock or the provider's.
        duration_ms: u64,
    }
}

names! {
    /// Who is behind a prompt.
    PromptOrigin {
        /// A person typed it while the agent was waiting.
        Human = "human" / 1,
        /// A person typed it while the agent was working: steering or queued.
        Steering = "steering" / 2,
        /// The agent gave it to itself (a background task ended).
        Wakeup = "wakeup" / 3,
        /// Another agent gave it: the task of a sub-agent.
        Agent = "agent" / 4,
        /// A command of the agent's own that makes it work (`/compact`, `!ls`).
        Command = "command" / 5,
    }
}

by_default!(PromptOrigin::Human);

data! {
    /// Something was asked of the agent. The text is the event's text.
    UserPrompt {
        /// Who asked.
        origin: PromptOrigin,
        /// Images and files that came with it.
        #[serde(default, skip_serializing_if = "is_zero")]
        attachments: u32,
        /// The provider's id of the turn, when it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_turn_id: Option<String>,
    }
}

names! {
    /// The part of a message a text belongs to.
    Block {
        /// What the user reads.
        Text = "text" / 1,
        /// Thinking.
        Thinking = "thinking" / 2,
    }
}

by_default!(Block::Text);

data! {
    /// A part of a message that came after the message's event was committed, or live output.
    AssistantDelta {
        /// The provider's id of the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        /// Which part.
        block: Block,
        /// Why the model stopped, when this part is the first to say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stop: Option<Stop>,
        /// Content blocks this part stands for.
        #[serde(default, skip_serializing_if = "is_zero")]
        blocks: u32,
    }
}

names! {
    /// Why the model stopped.
    Stop {
        /// It finished its turn.
        EndTurn = "end_turn" / 1,
        /// It called tools.
        ToolUse = "tool_use" / 2,
        /// It ran out of tokens.
        MaxTokens = "max_tokens" / 3,
        /// It was cut off by the user.
        Aborted = "aborted" / 4,
        /// It refused.
        Refusal = "refusal" / 5,
        /// Anything else, or not said.
        Other = "other" / 6,
    }
}

data! {
    /// One message of the model. Blocks of one message are one event. The text the user reads is
    /// the event's text.
    AssistantMessage {
        /// The provider's id of the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        /// Model that wrote it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Why the model stopped; `end_turn` ends the turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stop: Option<Stop>,
        /// Content blocks of any kind merged into this event.
        #[serde(default, skip_serializing_if = "is_zero")]
        blocks: u32,
        /// Tool calls among them.
        #[serde(default, skip_serializing_if = "is_zero")]
        tool_calls: u32,
        /// The model's thinking, as far as it is readable.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thinking: Option<String>,
    }
}

names! {
    /// What a tool does, as far as status and approval care.
    ToolKind {
        /// Runs a command.
        Execute = "execute" / 1,
        /// Changes files.
        Edit = "edit" / 2,
        /// Reads or searches.
        Read = "read" / 3,
        /// Fetches from the network.
        Fetch = "fetch" / 4,
        /// A tool of an MCP server.
        Mcp = "mcp" / 5,
        /// Presents a plan for approval.
        Plan = "plan" / 6,
        /// Asks the user a question.
        Question = "question" / 7,
        /// Hands work to a sub-agent.
        Subagent = "subagent" / 8,
        /// Anything else.
        Other = "other" / 9,
    }
}

by_default!(ToolKind::Other);

data! {
    /// The agent called a tool. The input, as the agent wrote it, is the event's text.
    ToolCall {
        /// The provider's id of the call.
        call_id: String,
        /// The provider's name of the tool.
        name: String,
        /// What it does.
        tool: ToolKind,
        /// One line for people: the command, the file, the URL, the question.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// The agent asked for more rights than it has, so a dialog is likely.
        #[serde(default, skip_serializing_if = "is_false")]
        escalated: bool,
        /// The call goes on after its turn (a background command).
        #[serde(default, skip_serializing_if = "is_false")]
        background: bool,
    }
}

names! {
    /// How a tool call ended.
    ToolOutcome {
        /// It worked.
        Ok = "ok" / 1,
        /// It failed.
        Error = "error" / 2,
        /// A person refused it.
        Denied = "denied" / 3,
        /// A rule, a hook or a host refused it; the turn goes on.
        Blocked = "blocked" / 4,
        /// It was cut off.
        Cancelled = "cancelled" / 5,
    }
}

by_default!(ToolOutcome::Ok);

data! {
    /// A tool call returned. Its output is the event's text.
    ToolResult {
        /// The provider's id of the call.
        call_id: String,
        /// How it ended.
        outcome: ToolOutcome,
        /// Exit code of a command, when known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// How long it took, milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
        /// Only details of a call whose result was reported before.
        #[serde(default, skip_serializing_if = "is_false")]
        detail: bool,
    }
}

names! {
    /// What an approval is about.
    ApprovalKind {
        /// A command.
        Command = "command" / 1,
        /// An edit of files.
        Edit = "edit" / 2,
        /// A plan.
        Plan = "plan" / 3,
        /// A call of an MCP tool.
        Mcp = "mcp" / 4,
        /// A fetch from the network.
        Fetch = "fetch" / 5,
        /// Trust in a folder, a hook or a key.
        Trust = "trust" / 6,
        /// A file that is written anew.
        Write = "write" / 7,
        /// A question to the user: the answer is what is asked for.
        Question = "question" / 8,
        /// A file that is read.
        Read = "read" / 9,
    }
}

impl ApprovalKind {
    /// Why a session waits that asks for this.
    #[must_use]
    pub const fn reason(self) -> Reason {
        match self {
            Self::Command | Self::Read => Reason::Tool,
            Self::Edit | Self::Write => Reason::Edit,
            Self::Question => Reason::Question,
            Self::Plan => Reason::Plan,
            Self::Mcp => Reason::Mcp,
            Self::Fetch => Reason::Fetch,
            Self::Trust => Reason::Trust,
        }
    }
}

names! {
    /// How an approval stands.
    ApprovalState {
        /// Somebody has to decide.
        Pending = "pending" / 1,
        /// Allowed through capture.
        Allowed = "allowed" / 2,
        /// Denied through capture.
        Denied = "denied" / 3,
        /// The agent went on: it was answered where it was asked, or by somebody else.
        AnsweredElsewhere = "answered_elsewhere" / 4,
        /// Nobody knows any more whether the agent still asks.
        Expired = "expired" / 5,
        /// There is nothing to decide any more: the turn was broken off, the agent is gone.
        Withdrawn = "withdrawn" / 6,
    }
}

by_default!(ApprovalState::Pending);

names! {
    /// Who decided.
    DecidedBy {
        /// A rule of the user's policy.
        Policy = "policy" / 1,
        /// A person.
        Person = "person" / 2,
        /// A person, for all requests of a session that are the same.
        Grant = "grant" / 3,
    }
}

names! {
    /// How a decision reaches the agent.
    DecidedVia {
        /// The agent's hook waits for it.
        Hook = "hook" / 1,
        /// Keys typed into the terminal of a run.
        Keys = "keys" / 2,
        /// Whoever speaks the agent's protocol waits for it.
        Protocol = "protocol" / 3,
    }
}

data! {
    /// The agent stopped to ask for permission. What it asks for is exact unless it was read from a
    /// screen.
    ApprovalRequested {
        /// Ours: names the approval until it is closed.
        approval_id: String,
        /// What it is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        about: Option<ApprovalKind>,
        /// The provider's id of the call, when it says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
        /// The provider's name of the tool.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        /// The command, every byte of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<String>,
        /// The files it wants, as the agent names them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        paths: Vec<String>,
        /// What is to be fetched.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        url: Option<String>,
        /// The tool's input, JSON.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<String>,
        /// Something of it was too long and is not here.
        #[serde(default, skip_serializing_if = "is_false")]
        cut: bool,
        /// Where it would happen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
        /// The dialog it was read from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dialog: Option<Box<crate::Dialog>>,
        /// The delivery of the hook that asks, which may wait for the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delivery: Option<String>,
        /// The BLAKE3 hash of what the hook was called with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
        /// The PATH of the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        search_path: Option<String>,
        /// The key of the claim that was made with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    }
}

data! {
    /// An approval was closed, by whomever; or, with an `outcome`, what the agent did after it.
    ApprovalResolved {
        /// Names the approval.
        approval_id: String,
        /// Whether it was allowed; absent when nobody can tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        allowed: Option<bool>,
        /// How it stands now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<ApprovalState>,
        /// Who decided, when it was decided through capture.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<DecidedBy>,
        /// How the decision reaches the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        via: Option<DecidedVia>,
        /// The rule of the policy.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
        /// Why, or what the agent is told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// The command that runs in place of the one that was asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rewrite: Option<String>,
        /// How the call ended that it was about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<ToolOutcome>,
    }
}

/// The status changed (derived).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatusChanged {
    /// The state before; absent for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<State>,
    /// The state now.
    pub to: State,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// What was going on, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<String>,
    /// The claims that decided, in their sources' words: `registry: waiting: permission prompt`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
}

names! {
    /// The sort of an error.
    ErrorClass {
        /// Not signed in, or the key was refused.
        Auth = "auth" / 1,
        /// Too many requests for now.
        RateLimit = "rate_limit" / 2,
        /// A quota is used up.
        Quota = "quota" / 3,
        /// The network, or a connection that broke.
        Network = "network" / 4,
        /// The model's provider failed.
        Provider = "provider" / 5,
        /// The context is too long.
        Context = "context" / 6,
        /// Anything else.
        Other = "other" / 7,
    }
}

by_default!(ErrorClass::Other);

data! {
    /// The agent reported an error. Its message is the event's text.
    ErrorReported {
        /// What sort.
        class: ErrorClass,
        /// The provider's code: `529`, `usage_limit_exceeded`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
        /// The error ended the turn.
        #[serde(default, skip_serializing_if = "is_false")]
        ends_turn: bool,
        /// The agent tries again by itself.
        #[serde(default, skip_serializing_if = "is_false")]
        retrying: bool,
    }
}

data! {
    /// The session is alive; nothing else is said.
    Heartbeat {}
}

data! {
    /// The agent asked the user something. The question is the event's text.
    QuestionAsked {
        /// The provider's id of the call that asks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
        /// The answers offered.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        options: Vec<String>,
    }
}

data! {
    /// The user answered, or turned the question away.
    QuestionAnswered {
        /// The provider's id of the call that asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
    }
}

data! {
    /// Tokens spent on one model response; never a running total.
    UsageReported {
        /// The provider's id of the message or response they were spent on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        /// Model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Input tokens that no cache served.
        #[serde(default)]
        input_tokens: u64,
        /// Output tokens, thinking included.
        #[serde(default)]
        output_tokens: u64,
        /// Input tokens read from a cache.
        #[serde(default)]
        cache_read_tokens: u64,
        /// Input tokens written to a cache.
        #[serde(default)]
        cache_write_tokens: u64,
    }
}

names! {
    /// Who started a compaction.
    CompactTrigger {
        /// The user.
        Manual = "manual" / 1,
        /// The agent.
        Auto = "auto" / 2,
    }
}

data! {
    /// The context was compacted.
    ContextCompacted {
        /// Who started it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trigger: Option<CompactTrigger>,
        /// Tokens before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens_before: Option<u64>,
        /// Tokens after.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens_after: Option<u64>,
    }
}

data! {
    /// The session repeats another's history up to a record and goes its own way from there; or
    /// it went back to an earlier record of its own (rewind).
    SessionForked {
        /// The provider's id of the session it comes from; its own for a rewind.
        from: String,
        /// The provider's id of the last record both share, when known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<String>,
    }
}

names! {
    /// What an annotation is about.
    Topic {
        /// The session's title.
        Title = "title" / 1,
        /// The model in use.
        Model = "model" / 2,
        /// The working directory.
        Cwd = "cwd" / 3,
        /// The git branch.
        GitBranch = "git_branch" / 4,
        /// The permission mode: `default`, `plan`, `acceptEdits`.
        PermissionMode = "permission_mode" / 5,
        /// Version of the agent.
        CliVersion = "cli_version" / 6,
        /// A prompt was put in the agent's own queue, or taken out of it.
        Queue = "queue" / 7,
        /// A command of the agent's own was run (`/rename`).
        Command = "command" / 8,
        /// A remark of the agent for the user.
        Notice = "notice" / 9,
        /// The session is one with another: the value is the other's id of ours.
        MergedInto = "merged_into" / 10,
        /// Capture of the session was turned `on` or `off`.
        Capture = "capture" / 11,
        /// A user's or monitor's note.
        Note = "note" / 12,
        /// The run that hosts the session: the value is its id.
        Run = "run" / 13,
        /// A key answered a dialog on the terminal; what was typed is not kept.
        Input = "input" / 14,
        /// The user labelled the session: the value is `key=value`, or `key` to take it off.
        Label = "label" / 15,
    }
}

by_default!(Topic::Note);

data! {
    /// A remark about the session: a title, a mode, a note.
    Annotation {
        /// What it is about.
        topic: Topic,
        /// The new value.
        value: String,
    }
}

data! {
    /// A record nobody here understands, or a damaged one. Nothing is dropped: `origin` says where
    /// its bytes are, the event's text holds them as far as they are readable.
    Unrecognized {
        /// The record's own kind: `type` (`system/foo`), or `damaged`, `oversized`.
        raw_kind: String,
        /// What was wrong with it, for damaged ones.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        issue: Option<String>,
        /// Its length, bytes.
        #[serde(default)]
        length: u64,
        /// Hash of its bytes (BLAKE3, hexadecimal), where they are not kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hash: Option<String>,
    }
}
