//! The facts about a call that a decision needs. This module makes no decisions.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The effects a call would have if it ran now.
///
/// Paths are absolute and contain no symbolic links. [`Tools::run`](crate::Tools::run) takes the intent that was
/// approved and touches exactly these paths: a link created on a path afterwards makes the call fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Intent {
    /// The kind of action.
    pub kind: IntentKind,
    /// The working directory of the session.
    pub cwd: PathBuf,
    /// The file or directory it reads or writes; for a new file, its future path. Empty for the other kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathBuf>,
    /// The exact bytes passed to bash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The address it fetches, normalised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// The kind of action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntentKind {
    /// Read files in the workspace.
    ReadInWorkspace,
    /// Read files outside the workspace.
    ReadOutside,
    /// Change an existing file, in or outside the workspace; see the paths.
    Edit,
    /// Create a file or replace a whole one.
    Write,
    /// Run a command line.
    Command,
    /// Fetch from the network.
    Fetch,
    /// Ask the user. The caller asks the question; [`answer`](crate::answer) builds the result.
    Question,
    /// Nothing outside the session: the to-do list, and background commands that were approved when they started.
    Session,
}
