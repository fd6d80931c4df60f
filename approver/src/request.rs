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
    /// The directory in which it would happen. Absolute.
    pub cwd: PathBuf,
    /// Whether the agent reported the directory. Otherwise `cwd` is only where its session began, and what
    /// counts from it is not known.
    pub cwd_is_certain: bool,
    /// What the session works on: the top of its repository. Absolute.
    pub workspace: PathBuf,
    /// The files a tool would read or write. Relative ones count from `cwd`.
    pub paths: Vec<PathBuf>,
    /// The address a tool would fetch.
    pub url: Option<String>,
    /// The pattern of the names of files that a tool which searches a directory looks into, if it is given one.
    pub glob: Option<String>,
    /// What the user's run or session is labelled with.
    pub labels: BTreeMap<String, String>,
    /// Whether the agent runs a rewritten command instead of its own.
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
    /// Change files that are there.
    Edit,
    /// Write whole files.
    Write,
    /// Call a tool of an MCP server.
    Mcp,
    /// Fetch from the network.
    Fetch,
    /// Go on with a plan.
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
    /// Not known: what any of them would do differently counts.
    Unknown,
}

/// The decision on a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Allow, deny or ask.
    pub verdict: Verdict,
    /// What must run instead of the command, when it is allowed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rewrite: Option<String>,
    /// The rule that decided: its name, or that of a preset's rule (`read-only/tools`), or `default`.
    pub rule: String,
    /// Why, in one sentence.
    pub reason: String,
}

/// The outcome. The order is that of strictness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It may happen without a question.
    Allow,
    /// A person decides.
    Ask,
    /// It must not happen.
    Deny,
}

impl Verdict {
    /// The one spelling used everywhere.
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
