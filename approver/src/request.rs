//! Permission requests and the decisions on them.

use std::{collections::BTreeMap, path::PathBuf};

use events::Provider;
use serde::{Deserialize, Serialize};

/// A request of an agent for permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionRequest {
    /// The agent that makes the request.
    pub agent: Provider,
    /// The kind of action requested.
    pub kind: RequestKind,
    /// The agent's own name of the tool.
    pub tool: Option<String>,
    /// The command line, exactly as the shell would get it.
    pub command: Option<String>,
    /// The directory in which the action would happen. Absolute.
    pub cwd: PathBuf,
    /// Whether the agent reported the directory. If not, `cwd` is only the directory in which the session began, and
    /// relative paths cannot be resolved.
    pub cwd_is_certain: bool,
    /// The directory on which the session works: the top of its repository. Absolute.
    pub workspace: PathBuf,
    /// The files a tool would read or write. Relative paths refer to `cwd`.
    pub paths: Vec<PathBuf>,
    /// The address a tool would fetch.
    pub url: Option<String>,
    /// The pattern of file names for a tool that searches a directory, if it has one.
    pub glob: Option<String>,
    /// The labels of the user's run or session.
    pub labels: BTreeMap<String, String>,
    /// Whether the agent accepts a rewritten command instead of its own.
    pub takes_rewrite: bool,
    /// The shell that would run the command.
    pub shell: Shell,
}

/// The kind of action a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestKind {
    /// Run a command line.
    Command,
    /// Read files.
    Read,
    /// Change existing files.
    Edit,
    /// Write whole files.
    Write,
    /// Call a tool of an MCP server.
    Mcp,
    /// Fetch from the network.
    Fetch,
    /// Continue with a plan.
    Plan,
    /// Answer a question.
    Question,
    /// Trust a directory.
    Trust,
}

impl RequestKind {
    /// Its name in policy files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Read => "read",
            Self::Edit => "edit",
            Self::Write => "write",
            Self::Mcp => "mcp",
            Self::Fetch => "fetch",
            Self::Plan => "plan",
            Self::Question => "question",
            Self::Trust => "trust",
        }
    }
}

/// The shell that runs a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shell {
    /// bash.
    Bash,
    /// zsh.
    Zsh,
    /// A POSIX shell.
    Sh,
    /// Not known: a difference between any of the shells counts.
    Unknown,
}

/// The decision on a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Allow, deny or ask.
    pub verdict: Verdict,
    /// The command that must run instead of the original one, if it is allowed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rewrite: Option<String>,
    /// The rule that decided: its name, the name of a preset's rule (`read-only/tools`), or `default`.
    pub rule: String,
    /// The reason, in one sentence.
    pub reason: String,
}

/// The outcome. Values are ordered by strictness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The action may happen without asking.
    Allow,
    /// The user decides.
    Ask,
    /// The action must not happen.
    Deny,
}

impl Verdict {
    /// The name used everywhere.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}
