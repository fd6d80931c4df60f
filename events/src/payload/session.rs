//! Payloads about a session itself: how it began and ended, its status, its origin, annotations.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::TurnId;
use crate::{
    provider::names,
    status::{Reason, State},
};

names! {
    /// How a session began.
    StartKind {
        /// Not reported.
        Unknown = "unknown" / 0,
        /// A new conversation.
        New = "new" / 1,
        /// An earlier conversation, continued in its own file.
        Resume = "resume" / 2,
        /// A copy of another conversation that continues separately.
        Fork = "fork" / 3,
        /// A sub-agent of another session.
        Subagent = "subagent" / 4,
    }
}

by_default!(StartKind::Unknown);

data! {
    /// A session was first seen. Repeated if a later record contains more.
    SessionStarted {
        /// How it began.
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
        /// The provider's id of the parent session, if this is a sub-agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_provider_session_id: Option<String>,
        /// capture's id of the parent session; filled in when the event is committed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_session_id: Option<crate::id::SessionId>,
        /// The kind of sub-agent: `general-purpose`, `/root/helper`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent_type: Option<String>,
        /// Whether a program runs it, so that no person can type into it (`claude -p`, `codex exec`); absent if
        /// unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        headless: Option<bool>,
    }
}

data! {
    /// The session's process reported its end, or capture concluded that it is gone (derived).
    SessionExited {
        /// clean, failed or killed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Reason>,
        /// Exit code, when known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<i32>,
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
    /// The activity, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<String>,
    /// The claims that decided, in their sources' words: `registry: waiting: permission prompt`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
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
    /// The session repeats the history of another session up to a record and then continues differently; or it returned
    /// to one of its own earlier records (rewind).
    SessionForked {
        /// The provider's id of the session it comes from; its own for a rewind.
        from: String,
        /// The provider's id of the last common record, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<String>,
        /// For a rewind: the first turn that was taken back, which is the event of its prompt. The later turns are
        /// taken back too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        taken_back: Option<TurnId>,
        /// For a rewind of an agent that counts turns: the number of turns that were taken back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turns: Option<u32>,
    }
}

names! {
    /// The topic of an annotation.
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
        /// A prompt was added to the agent's own queue, or removed from it.
        Queue = "queue" / 7,
        /// A command of the agent's own was run (`/rename`).
        Command = "command" / 8,
        /// A remark of the agent for the user.
        Notice = "notice" / 9,
        /// The session was merged into another: the value is capture's id of the other session.
        MergedInto = "merged_into" / 10,
        /// Capture of the session was turned `on` or `off`.
        Capture = "capture" / 11,
        /// A user's or monitor's note.
        Note = "note" / 12,
        /// The run that hosts the session: the value is its id.
        Run = "run" / 13,
        /// A key answered a dialog on the terminal; the typed text is not stored.
        Input = "input" / 14,
        /// The user labelled the session: the value is `key=value`, or `key` to remove the label.
        Label = "label" / 15,
        /// Lines that appeared on the terminal of an agent whose files are not read. The lines are the event's text.
        Screen = "screen" / 16,
        /// The agent's own trace of a turn, as named in its OpenTelemetry data: 32 hexadecimal digits, followed by `-`
        /// and the span if it is known.
        Trace = "trace" / 17,
        /// The user marked the session for their lists: the value is `pinned`, `archived` or `snoozed_until=TIME`, or
        /// the same after a `-` to remove the mark.
        Mark = "mark" / 18,
        /// The machine slept, or capture was stopped, up to this event: the value is the duration (`28800 s`). That
        /// time does not count as silence.
        Asleep = "asleep" / 19,
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

impl Annotation {
    /// The note that the machine slept for this long.
    #[must_use]
    pub fn asleep(ms: i64) -> Self {
        Self { topic: Topic::Asleep, value: format!("{} s", ms / 1_000) }
    }

    /// How long the machine slept, ms; `None` for another topic.
    #[must_use]
    pub fn asleep_ms(&self) -> Option<i64> {
        let seconds = self.value.strip_suffix(" s").filter(|_| self.topic == Topic::Asleep)?;
        seconds.parse::<i64>().ok().filter(|seconds| *seconds >= 0)?.checked_mul(1_000)
    }
}
