//! The policy in force, and its decisions on requests. [`file`] reads the rules, [`rule`] matches one against a
//! request, [`decide`] combines the results for every command of a line; the strictest decision counts.
//!
//! Rules come from presets, the user's file and repositories' files.

mod always;
mod decide;
mod file;
mod rule;

use std::path::Path;

use serde::{Deserialize, Serialize};

pub use always::rule_for;
pub use file::PolicyError;
use rule::PolicyRule;

use crate::{Decision, Facts, PermissionRequest, Verdict};

/// The rules in force.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The user's, then those of the preset below them. The first that matches counts.
    own: Vec<PolicyRule>,
    /// Those of repositories, which only deny or ask.
    repositories: Vec<Vec<PolicyRule>>,
}

/// A policy that comes with the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// A person decides about everything.
    AskEverything,
    /// What only reads the workspace is allowed.
    ReadOnly,
    /// And what changes its files.
    WorkspaceEdits,
}

impl Preset {
    /// All there are.
    pub const ALL: &'static [Self] = &[Self::AskEverything, Self::ReadOnly, Self::WorkspaceEdits];

    /// Its name in policy files and on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AskEverything => "ask-everything",
            Self::ReadOnly => "read-only",
            Self::WorkspaceEdits => "workspace-edits",
        }
    }

    /// The text of its file.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::AskEverything => include_str!("../presets/ask-everything.toml"),
            Self::ReadOnly => include_str!("../presets/read-only.toml"),
            Self::WorkspaceEdits => include_str!("../presets/workspace-edits.toml"),
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

/// A decision on a request, with its explanation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The decision on a request.
    pub decision: Decision,
    /// Why the command line could not be analysed, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_understood: Option<String>,
    /// The shell invocation (`bash -c`) that was removed from around the line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wrapper: Vec<String>,
    /// Each command of the line; for another request, that as a whole.
    pub parts: Vec<ExplainedPart>,
}

/// How one command of a line, or another request, was judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedPart {
    /// The words of the command, as the program gets them.
    pub words: Vec<String>,
    /// The decision on it.
    pub verdict: Verdict,
    /// The rule that decided.
    pub rule: String,
    /// Why.
    pub reason: String,
    /// Every rule that was tried, in order.
    pub tried: Vec<TriedRule>,
}

/// A rule that was compared with a part of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TriedRule {
    /// Its name.
    pub rule: String,
    /// What it decides.
    pub decision: Verdict,
    /// Whether it matched.
    pub matched: bool,
    /// Why, or why not.
    pub why: String,
}

impl Policy {
    /// The policy of a preset alone.
    ///
    /// # Panics
    /// Never: the presets are part of the program, and a test reads them.
    #[must_use]
    #[expect(clippy::panic, reason = "the presets are part of the program, and a test reads them")]
    pub fn preset(preset: Preset) -> Self {
        file::preset(preset).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Reads the user's policy.
    ///
    /// # Errors
    /// When it is not TOML, has an unknown key, or a rule that means nothing; with file, line and column.
    pub fn parse(text: &str, path: &Path) -> Result<Self, PolicyError> {
        file::user(text, path)
    }

    /// Adds the rules of a repository, which can only make it stricter.
    ///
    /// # Errors
    /// As for [`Policy::parse`]; a rule that allows and a preset are errors too.
    pub fn with_repository(mut self, text: &str, path: &Path) -> Result<Self, PolicyError> {
        self.repositories.push(file::repository(text, path)?);
        Ok(self)
    }

    /// Decides.
    #[must_use]
    pub fn decide(&self, request: &PermissionRequest, facts: &dyn Facts) -> Decision {
        self.explain(request, facts).decision
    }

    /// Decides, and tells how.
    #[must_use]
    pub fn explain(&self, request: &PermissionRequest, facts: &dyn Facts) -> Explanation {
        decide::explain(self, request, facts)
    }
}

#[cfg(test)]
mod tests;
