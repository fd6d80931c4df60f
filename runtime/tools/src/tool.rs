//! The tools, by name.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A tool that a model can call. Ordered by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tool {
    /// Ask the user a question.
    Ask,
    /// Run a command in bash.
    Bash,
    /// Replace text in a file.
    Edit,
    /// Fetch a page over HTTP.
    Fetch,
    /// Find files by name.
    Glob,
    /// Find lines in files.
    Grep,
    /// List, read or stop background commands.
    Process,
    /// Read a file.
    Read,
    /// Update the to-do list.
    Todo,
    /// Write a whole file.
    Write,
}

impl Tool {
    /// All of them, sorted by name.
    pub const ALL: [Self; 10] = [
        Self::Ask,
        Self::Bash,
        Self::Edit,
        Self::Fetch,
        Self::Glob,
        Self::Grep,
        Self::Process,
        Self::Read,
        Self::Todo,
        Self::Write,
    ];

    /// The name by which a model calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Bash => "bash",
            Self::Edit => "edit",
            Self::Fetch => "fetch",
            Self::Glob => "glob",
            Self::Grep => "grep",
            Self::Process => "process",
            Self::Read => "read",
            Self::Todo => "todo",
            Self::Write => "write",
        }
    }

    /// The tool of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
