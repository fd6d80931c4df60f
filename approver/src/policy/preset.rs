//! The presets of the policy.

use serde::{Deserialize, Serialize};

/// A policy that comes with the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// A person decides about everything.
    AskEverything,
    /// What no agent should do without a person is denied; a person decides about the rest.
    Denials,
    /// What only reads the workspace is allowed.
    ReadOnly,
    /// And what changes its files.
    WorkspaceEdits,
    /// And everyday work: builds, tests and checks, which run the repository's code, and commits.
    Develop,
}

impl Preset {
    /// All there are.
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
