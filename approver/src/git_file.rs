//! Checks the files inside a git directory for credentials.

use std::path::{Component, Path};

use crate::credential::{has_credential, holds_credential};

/// A file in a git directory, by its path in that directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitFile {
    /// It contains names of objects, references and files, or is compressed.
    Names,
    /// A configuration.
    Configuration,
    /// A file that may contain an address or a patch: a reflog, a message, the state of an operation in progress.
    Text,
}

impl GitFile {
    /// Determines the kind of a file from its path.
    #[must_use]
    pub fn new(inside: &Path) -> Self {
        let mut parts = inside.components().filter_map(|part| match part {
            Component::Normal(name) => name.to_str(),
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
        });
        let first = parts.next().unwrap_or_default();
        let alone = parts.next().is_none();
        match first {
            "objects" | "refs" | "hooks" | "info" | "lfs" | "reftable" => Self::Names,
            "HEAD" | "ORIG_HEAD" | "MERGE_HEAD" | "CHERRY_PICK_HEAD" | "REVERT_HEAD" | "packed-refs" | "index"
            | "description" | "shallow" | "commondir" | "gitdir" => Self::Names,
            name if alone && name.starts_with("config") => Self::Configuration,
            // `modules/x/config`, `worktrees/x/config.worktree`
            _ if inside.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"config")) => {
                Self::Configuration
            }
            _ => Self::Text,
        }
    }

    /// Whether the content contains a credential.
    #[must_use]
    pub fn holds_credential(self, bytes: &[u8]) -> bool {
        match self {
            Self::Names => false,
            Self::Configuration => holds_credential(bytes),
            Self::Text => String::from_utf8_lossy(bytes).lines().any(has_credential),
        }
    }
}
