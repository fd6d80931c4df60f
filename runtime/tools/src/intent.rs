//! What a call would do: the facts a decision on it needs. Nothing here decides.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What a call would do if it were run now.
///
/// Paths are absolute and have no symbolic links. [`Tools::run`](crate::Tools::run) takes the intent that was decided on
/// and touches exactly these paths: a link that is put in the way afterwards makes the call fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Intent {
    /// The kind of action.
    pub kind: IntentKind,
    /// The working directory of the session.
    pub cwd: PathBuf,
    /// The file or directory it reads or writes, and for a new file its future path. Empty for the other kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathBuf>,
    /// The exact bytes bash gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The address it fetches, in its normal form.
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
    /// Change a file that exists, in the workspace or outside: see the paths.
    Edit,
    /// Create a file or replace a whole one.
    Write,
    /// Run a command line.
    Command,
    /// Fetch from the network.
    Fetch,
    /// Ask the person. The caller puts the question; [`answer`](crate::answer) makes the result.
    Question,
    /// Nothing outside the session: the list of tasks, and commands in the background that were allowed when they began.
    Session,
}

impl IntentKind {
    /// Whether it leaves everything as it is. Calls that do may run at the same time.
    #[must_use]
    pub const fn only_reads(self) -> bool {
        match self {
            Self::ReadInWorkspace | Self::ReadOutside => true,
            // The others are run one after another, in the order of the model.
            Self::Edit | Self::Write | Self::Command | Self::Fetch | Self::Question | Self::Session => false,
        }
    }

    /// Whether it may have had a consequence when it began and nothing is known of its end.
    #[must_use]
    pub const fn has_consequences(self) -> bool {
        match self {
            Self::Edit | Self::Write | Self::Command | Self::Fetch => true,
            Self::ReadInWorkspace | Self::ReadOutside | Self::Question | Self::Session => false,
        }
    }
}
