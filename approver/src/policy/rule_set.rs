//! The rules in force.

use serde::Serialize;

use crate::{
    policy::{preset::Preset, rule::PolicyRule},
    request::Verdict,
};

/// The rules in force.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The user's rules, then the rules of the preset. The first that matches counts.
    pub(super) own: Vec<PolicyRule>,
    /// The rules of repositories, which only deny or ask.
    pub(super) repositories: Vec<Vec<PolicyRule>>,
    /// The preset below the user's rules, if one is named.
    pub(super) preset: Option<Preset>,
}

/// A rule of the policy, for display.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleView {
    /// The origin of the rule.
    pub from: RuleSource,
    /// Its name. The name of a preset's rule begins with the preset's name, that of a repository's rule with
    /// `repository`.
    pub name: String,
    /// Its decision.
    pub decision: Verdict,
    /// Its conditions, such as `command git push`; empty if it has none.
    pub conditions: String,
    /// Its reason, in the words of its author.
    pub reason: Option<String>,
}

/// The origin of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleSource {
    /// The repository of the session.
    Repository,
    /// The user.
    User,
    /// A preset.
    Preset,
}

impl Policy {
    /// The preset that the user's file names; `None` if it names none or does not exist.
    #[must_use]
    pub const fn chosen_preset(&self) -> Option<Preset> {
        self.preset
    }

    /// Whether a rule denies or asks only with a label, so that nothing may be allowed if the labels are unknown.
    #[must_use]
    pub fn depends_on_labels(&self) -> bool {
        let all = self.own.iter().chain(self.repositories.iter().flatten());
        all.into_iter().any(|rule| !rule.labels.is_empty() && rule.decision != Verdict::Allow)
    }

    /// All rules: those of repositories, then the user's and the preset's, in the order in which they are tried.
    #[must_use]
    pub fn rules(&self) -> Vec<RuleView> {
        let own = self.own.iter();
        let own = own.map(|rule| (if rule.is_of_preset { RuleSource::Preset } else { RuleSource::User }, rule));
        let all = self.repositories.iter().flatten().map(|rule| (RuleSource::Repository, rule)).chain(own);
        let view = |(from, rule): (RuleSource, &PolicyRule)| RuleView {
            from,
            name: rule.name.clone(),
            decision: rule.decision,
            conditions: rule.conditions(),
            reason: rule.reason.clone(),
        };
        all.map(view).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn rules_are_listed_in_evaluation_order() {
        let text = r#"
version = 1
preset = "read-only"

[[rule]]
name = "no push"
decision = "deny"
command = ["git", "push"]
reason = "I push myself."

[[rule]]
name = "tests"
decision = "allow"
agent = "claude"
command = ["cargo", "*", "..."]
cwd = "/home/me/project"

[[rule]]
name = "docs"
decision = "allow"
domain = "docs.rs"
labels = { unattended = "yes" }
"#;
        let repository = "version = 1\n[[rule]]\nname = \"ask\"\ndecision = \"ask\"\nkind = [\"edit\", \"write\"]\npaths = [\"ci/**\"]\n";
        let policy = Policy::parse(text, Path::new("policy.toml")).unwrap();
        let policy = policy.with_repository(repository, Path::new("repository.toml")).unwrap();
        assert_eq!(policy.chosen_preset(), Some(Preset::ReadOnly));
        let rules = policy.rules();
        let told: Vec<(RuleSource, &str, &str)> =
            rules.iter().map(|rule| (rule.from, rule.name.as_str(), rule.conditions.as_str())).collect();
        assert_eq!(
            told[..5],
            [
                (RuleSource::Repository, "repository/ask", "edit, write in `ci/**`"),
                (RuleSource::User, "no push", "`git push`"),
                (RuleSource::User, "tests", "`cargo * ...`, in `/home/me/project`, of claude"),
                (RuleSource::User, "docs", "fetch from docs.rs, with the label unattended=yes"),
                (RuleSource::Preset, "denials/secrets-leave", "signs of a danger"),
            ]
        );
        assert_eq!(rules[1].reason.as_deref(), Some("I push myself."));
        let tools = rules.iter().find(|rule| rule.name == "read-only/tools").unwrap();
        assert_eq!(
            (tools.decision, tools.conditions.as_str()),
            (Verdict::Allow, "commands that are known to only read")
        );
        assert_eq!(Policy::parse("version = 1\n", Path::new("p")).unwrap().chosen_preset(), None);
    }
}
