//! Payloads about tool calls, including questions to the user.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::skip::is_false;
use crate::provider::names;

names! {
    /// What a tool does, as far as it matters for status and approvals.
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

impl ToolKind {
    /// Whether agents usually ask the user before they run such a call, unless a rule or a mode allows it. Some also
    /// ask for reads outside their directory.
    #[must_use]
    pub const fn is_asked_for(self) -> bool {
        match self {
            Self::Execute | Self::Edit | Self::Fetch | Self::Mcp | Self::Plan | Self::Other => true,
            Self::Read | Self::Question | Self::Subagent => false,
        }
    }
}

data! {
    /// The agent called a tool. The input, as the agent wrote it, is the event's text.
    ToolCall {
        /// The provider's id of the call.
        call_id: String,
        /// The provider's name for the tool.
        name: String,
        /// What it does.
        tool: ToolKind,
        /// One line for people: the command, the file, the URL, the question.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// The files of an edit that changes several files; at most 64, each up to 1,024 bytes.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<String>,
        /// Whether the agent may ask a person before it runs this call without its records showing it.
        #[serde(default, skip_serializing_if = "is_false")]
        may_ask: bool,
        /// Whether the call continues after its turn (a background command).
        #[serde(default, skip_serializing_if = "is_false")]
        background: bool,
    }
}

impl ToolCall {
    /// The files that an edit is about, as the agent names them.
    pub fn edited_files(&self) -> impl Iterator<Item = &str> {
        let title = self.title.as_deref().filter(|_| self.files.is_empty());
        let is_edit = self.tool == ToolKind::Edit;
        title.into_iter().chain(self.files.iter().map(String::as_str)).filter(move |_| is_edit)
    }
}

names! {
    /// How a tool call ended.
    ToolOutcome {
        /// It succeeded.
        Ok = "ok" / 1,
        /// It failed.
        Error = "error" / 2,
        /// A person refused it.
        Denied = "denied" / 3,
        /// A rule, a hook or a host refused it; the turn continues.
        Blocked = "blocked" / 4,
        /// It was interrupted.
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
        /// Whether it contains only details of a call whose result was reported before.
        #[serde(default, skip_serializing_if = "is_false")]
        detail: bool,
    }
}

data! {
    /// The agent asked the user a question. The question is the event's text.
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
    /// The user answered, or dismissed the question.
    QuestionAnswered {
        /// The provider's id of the call that asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
    }
}
