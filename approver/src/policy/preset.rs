//! The presets of the policy.

use serde::{Deserialize, Serialize};

/// A built-in policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// The user decides about everything.
    AskEverything,
    /// Actions that no agent should take without the user are denied; the user decides about the rest.
    Denials,
    /// Commands that only read the workspace are allowed.
    ReadOnly,
    /// Like `ReadOnly`, and edits of files in the workspace are allowed.
    WorkspaceEdits,
    /// Like `WorkspaceEdits`, and everyday work is allowed: builds, tests and checks, which run the repository's code,
    /// and commits.
    Develop,
}

impl Preset {
    /// All presets.
    pub const ALL: &'static [Self] =
        &[Self::AskEverything, Self::Denials, Self::ReadOnly, Self::WorkspaceEdits, Self::Develop];

    /// Its name in policy files and on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AskEverything => "ask-everything",
            Self::Denials => "denials",
            Self::ReadOnly => "read-only",
            Self::WorkspaceEdits => "workspace-edits",
            Self::Develop => "develop",
        }
    }

    /// What the preset allows, in a few words.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::AskEverything => "allows nothing; you decide every request",
            Self::Denials => "allows nothing, and denies actions that no agent should take without you",
            Self::ReadOnly => "allows actions that only read the workspace, except secrets",
            Self::WorkspaceEdits => "allows all of `read-only`, plus edits of workspace files",
            Self::Develop => {
                "allows all of `workspace-edits`, plus builds, tests and commits, which run the repository's code"
            }
        }
    }

    /// The text of its file.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::AskEverything => include_str!("../../presets/ask-everything.toml"),
            Self::Denials => include_str!("../../presets/denials.toml"),
            Self::ReadOnly => include_str!("../../presets/read-only.toml"),
            Self::WorkspaceEdits => include_str!("../../presets/workspace-edits.toml"),
            Self::Develop => include_str!("../../presets/develop.toml"),
        }
    }
}

impl std::fmt::Display for Preset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl std::str::FromStr for Preset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.iter().copied().find(|preset| preset.as_str() == text).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|preset| preset.as_str()).collect();
            format!(
                "expected a preset (one of {}), got `{}`",
                names.join(", "),
                text.chars().take(64).collect::<String>()
            )
        })
    }
}
