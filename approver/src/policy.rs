//! The policy in force, and its decisions on requests. [`file`] reads the rules, [`rule`] matches one against a
//! request, [`decide`] combines the results for every command of a line; the strictest decision counts.
//!
//! Rules come from presets, the user's file and repositories' files.

mod always;
mod decide;
mod explanation;
mod file;
mod pattern;
mod preset;
mod rule;
mod rule_set;

use std::path::Path;

pub use always::rule_for;
pub use decide::DEFAULT_RULE;
pub use explanation::{ExplainedPart, Explanation, TriedRule};
pub use file::PolicyError;
pub use preset::Preset;
pub use rule_set::{Policy, RuleSource, RuleView};

use crate::{
    facts::Facts,
    request::{Decision, PermissionRequest},
};

impl Policy {
    /// The policy that consists only of a preset.
    ///
    /// # Panics
    /// Never: the presets are compiled in, and a test parses them.
    #[must_use]
    #[expect(clippy::panic, reason = "the presets are part of the program, and a test reads them")]
    pub fn preset(preset: Preset) -> Self {
        file::preset(preset).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Parses the user's policy.
    ///
    /// # Errors
    /// If it is not TOML, has an unknown key, or has a rule without effect; with file, line and column.
    pub fn parse(text: &str, path: &Path) -> Result<Self, PolicyError> {
        file::user(text, path)
    }

    /// Adds the rules of a repository, which can only make the policy stricter.
    ///
    /// # Errors
    /// The errors of [`Policy::parse`]; a rule that allows and a preset are errors too.
    pub fn with_repository(mut self, text: &str, path: &Path) -> Result<Self, PolicyError> {
        self.repositories.push(file::repository(text, path)?);
        Ok(self)
    }

    /// Decides a request.
    #[must_use]
    pub fn decide(&self, request: &PermissionRequest, facts: &dyn Facts) -> Decision {
        self.explain(request, facts).decision
    }

    /// Decides a request and explains the decision.
    #[must_use]
    pub fn explain(&self, request: &PermissionRequest, facts: &dyn Facts) -> Explanation {
        decide::explain(self, request, facts)
    }
}

#[cfg(test)]
mod tests;
