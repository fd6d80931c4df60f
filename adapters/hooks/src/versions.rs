//! Which hook events each version of an agent accepts, and what happens to the others.
//!
//! If a settings file contains one unknown event name, Claude Code before 2.1.101 ignores the whole file: the user's
//! permission rules are lost with it, and a denied command runs. So only events that the installed version accepts are
//! installed, and existing entries are compared with the version again at every status check.
//!
//! Every fact here was found by running the published programs against a scripted model, which `tests/live/versions`
//! repeats. An [`agents::hooks::HookEvent`] names the two versions that were run.

use agents::hooks::HookVersions;
use events::Provider;
use semver::Version;

use super::program::{Installed, VersionUnknown};
use crate::facts::facts;

fn version_facts(provider: Provider) -> Option<&'static HookVersions> {
    facts(provider).map(|hooks| &hooks.versions)
}

/// The events of the catalogue that this version accepts.
///
/// # Errors
/// When the version is older than any that was run, or accepts none.
pub fn accepted_events(provider: Provider, version: &Version) -> Result<Vec<&'static str>, Unsupported> {
    let Some(facts) = version_facts(provider) else { return Ok(Vec::new()) };
    if *version < facts.oldest {
        let (version, oldest) = (version.clone(), facts.oldest.clone());
        return Err(Unsupported::TooOld { provider, version, oldest });
    }
    let events: Vec<_> = facts.events.iter().filter(|fact| fact.since <= *version).map(|fact| fact.event).collect();
    match facts.events.iter().map(|fact| &fact.since).min() {
        Some(first) if events.is_empty() => {
            Err(Unsupported::NoHooks { provider, version: version.clone(), first: first.clone() })
        }
        Some(_) | None => Ok(events),
    }
}

/// Whether this version of an agent calls a hook when it asks for permission; assumed if the version is unknown.
#[must_use]
pub fn reports_requests(provider: Provider, version: Option<&str>) -> bool {
    let Some(hooks) = facts(provider) else { return true };
    let asking = hooks.versions.events.iter().find(|fact| fact.event == hooks.answers.asking_event);
    let version = version.and_then(|version| Version::parse(version).ok());
    asking.zip(version).is_none_or(|(asking, version)| version >= asking.since)
}

/// Why no entries can be installed for the agent on the PATH.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// The version is unknown.
    #[error("{why}, so its version is unknown")]
    Unknown {
        /// The agent.
        provider: Provider,
        /// The reason.
        why: VersionUnknown,
    },
    /// It is untested how this version handles our entries.
    #[error("{provider} {version} is older than {oldest}, the oldest version that capture was tested with")]
    TooOld {
        /// The agent.
        provider: Provider,
        /// Its version.
        version: Version,
        /// The oldest version that was tested.
        oldest: Version,
    },
    /// This version runs no hooks.
    #[error("{provider} {version} does not support hooks; version {first} or newer does")]
    NoHooks {
        /// The agent.
        provider: Provider,
        /// Its version.
        version: Version,
        /// The first version with hooks.
        first: Version,
    },
}

impl Unsupported {
    /// The agent, with its version if that is known.
    fn agent(&self) -> String {
        match self {
            Self::Unknown { provider, .. } => provider.to_string(),
            Self::TooOld { provider, version, .. } | Self::NoHooks { provider, version, .. } => {
                format!("{provider} {version}")
            }
        }
    }

    /// The user's options for having hooks installed.
    pub(crate) const fn advice(&self) -> &'static str {
        match self {
            Self::Unknown { why: VersionUnknown::NotOnPath { .. }, .. } => "Put it on the PATH, or use --force",
            Self::Unknown { .. } | Self::TooOld { .. } => "Use --force to install regardless",
            Self::NoHooks { .. } => "Update it, then install again",
        }
    }
}

/// How the entries in a settings file suit the agent on the PATH.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fit {
    /// It accepts all entries, or there are none.
    Accepted,
    /// It skips the entries of these events and reads the rest.
    Skips {
        /// The agent.
        provider: Provider,
        /// Its version.
        version: Version,
        /// The events it does not support.
        events: Vec<String>,
    },
    /// It ignores the whole file because of these events.
    DropsSettings {
        /// The agent.
        provider: Provider,
        /// Its version.
        version: Version,
        /// The events it does not support.
        events: Vec<String>,
    },
    /// Unknown.
    Unchecked {
        /// The reason.
        why: Unsupported,
        /// Whether some version of this agent ignores the whole file because of an unknown event.
        can_drop_settings: bool,
    },
}

impl Fit {
    /// Compares the events that have entries of ours with the version of the agent.
    #[must_use]
    pub fn of(provider: Provider, events: &[String], found: &Result<Installed, VersionUnknown>) -> Self {
        let Some(facts) = version_facts(provider).filter(|_| !events.is_empty()) else { return Self::Accepted };
        let can_drop_settings = facts.reads_the_rest_since.is_some();
        let unchecked = |why| Self::Unchecked { why, can_drop_settings };
        let version = match found {
            Ok(installed) => installed.version.clone(),
            Err(why) => return unchecked(Unsupported::Unknown { provider, why: why.clone() }),
        };
        let accepted = match accepted_events(provider, &version) {
            Ok(accepted) => accepted,
            Err(Unsupported::NoHooks { .. }) => Vec::new(),
            Err(why @ (Unsupported::TooOld { .. } | Unsupported::Unknown { .. })) => return unchecked(why),
        };
        let events: Vec<_> = events.iter().filter(|event| !accepted.contains(&event.as_str())).cloned().collect();
        match &facts.reads_the_rest_since {
            _ if events.is_empty() => Self::Accepted,
            Some(since) if version < *since => Self::DropsSettings { provider, version, events },
            Some(_) | None => Self::Skips { provider, version, events },
        }
    }

    /// Whether the entries harm the agent: the user's own settings are not, or may not be, in force.
    #[must_use]
    pub fn is_harmful(&self) -> bool {
        match self {
            Self::Accepted | Self::Skips { .. } => false,
            Self::DropsSettings { .. } => true,
            Self::Unchecked { can_drop_settings, .. } => *can_drop_settings,
        }
    }

    /// A message for the user with the required action; `None` if there is no problem.
    #[must_use]
    pub fn in_words(&self) -> Option<String> {
        match self {
            Self::Accepted => None,
            Self::Skips { provider, version, events } => Some(format!(
                "{provider} {version} does not support {} and skips {}; it applies everything else in the file",
                named(events),
                if events.len() == 1 { "it" } else { "them" }
            )),
            Self::DropsSettings { provider, version, events } => Some(format!(
                "{provider} {version} ignores your whole settings file, including permission rules, because it does \
                 not support {}; run `capture hooks install` to remove {} (or `capture hooks uninstall`)",
                named(events),
                if events.len() == 1 { "it" } else { "them" }
            )),
            Self::Unchecked { why, can_drop_settings: true } => Some(format!(
                "{why}. Hook events that it does not support may make it ignore your whole settings file, including \
                 permission rules. Run `capture hooks uninstall`, unless you are sure that {} accepts them",
                why.agent()
            )),
            Self::Unchecked { why, can_drop_settings: false } => Some(why.to_string()),
        }
    }
}

/// The events by name: "the hook event `A`", "the hook events `A`, `B`".
fn named(events: &[String]) -> String {
    let names: Vec<_> = events.iter().map(|event| format!("`{event}`")).collect();
    format!("the hook event{} {}", if events.len() == 1 { "" } else { "s" }, names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AGENTS, catalogue};

    fn installed(version: &str) -> Result<Installed, VersionUnknown> {
        Ok(Installed { program: "/bin/agent".into(), version: Version::parse(version).unwrap() })
    }

    fn accepted(provider: Provider, version: &str) -> Result<Vec<&'static str>, Unsupported> {
        accepted_events(provider, &Version::parse(version).unwrap())
    }

    #[test]
    fn older_versions_do_not_report_requests() {
        let reports = |provider, version| reports_requests(provider, version);
        assert!(!reports(Provider::Codex, Some("0.120.0")) && reports(Provider::Codex, Some("0.150.0")));
        assert!(!reports(Provider::Claude, Some("1.0.100")) && reports(Provider::Claude, Some("2.0.60")));
        assert!(reports(Provider::Gemini, None) && reports(Provider::Codex, Some("of a branch")));
        assert!(reports(Provider::Aider, Some("0.1.0")));
    }

    fn fit(provider: Provider, events: &[&str], version: &str) -> Fit {
        let events: Vec<_> = events.iter().map(|event| (*event).to_owned()).collect();
        Fit::of(provider, &events, &installed(version))
    }

    #[test]
    fn the_newest_version_accepts_every_event_of_the_catalogue() {
        for provider in AGENTS.iter().copied() {
            let facts = version_facts(provider).unwrap();
            assert_eq!(accepted_events(provider, &facts.newest).unwrap(), catalogue(provider));
        }
        assert_eq!(accepted(Provider::Pi, "1.0.0").unwrap(), Vec::<&str>::new());
    }

    #[test]
    fn accepted_events_are_those_the_version_supports() {
        let all = catalogue(Provider::Claude);
        let missing = |version| {
            let accepted = accepted(Provider::Claude, version).unwrap();
            all.iter().copied().filter(|event| !accepted.contains(event)).collect::<Vec<_>>()
        };
        let late = ["PermissionDenied", "StopFailure", "PostCompact", "Elicitation", "ElicitationResult"];
        assert_eq!(missing("2.0.60"), late);
        assert_eq!(missing("2.1.55"), late);
        assert_eq!(missing("2.1.76"), ["PermissionDenied", "StopFailure"]);
        assert_eq!(missing("2.1.88"), Vec::<&str>::new());
        assert_eq!(missing("3.0.0"), Vec::<&str>::new());
        // A pre-release has fewer events than its release.
        assert_eq!(missing("2.1.88-beta.1"), ["PermissionDenied"]);
        assert_eq!(
            accepted(Provider::Claude, "1.0.38").unwrap(),
            ["PreToolUse", "PostToolUse", "Notification", "Stop"]
        );
    }

    #[test]
    fn versions_older_than_the_oldest_tested_are_refused() {
        let why = |provider, version| accepted(provider, version).unwrap_err().to_string();
        assert_eq!(
            why(Provider::Claude, "1.0.30"),
            "claude 1.0.30 is older than 1.0.38, the oldest version that capture was tested with"
        );
        assert!(why(Provider::Codex, "0.59.0").contains("older than 0.60.1"));
        assert_eq!(
            why(Provider::Codex, "0.60.1"),
            "codex 0.60.1 does not support hooks; version 0.114.0 or newer does"
        );
    }

    #[test]
    fn an_unknown_event_is_harmful_if_the_agent_then_ignores_its_settings() {
        let all = catalogue(Provider::Claude);
        let old = fit(Provider::Claude, &all, "2.1.87");
        assert_eq!(
            old.in_words().unwrap(),
            "claude 2.1.87 ignores your whole settings file, including permission rules, because it does not support \
             the hook event `PermissionDenied`; run `capture hooks install` to remove it (or `capture hooks \
             uninstall`)"
        );
        assert!(old.is_harmful());
        assert_eq!(fit(Provider::Claude, &all, "2.1.88"), Fit::Accepted);
        assert_eq!(fit(Provider::Claude, &["Stop"], "1.0.38"), Fit::Accepted);
        assert_eq!(fit(Provider::Claude, &[], "0.2.9"), Fit::Accepted, "nothing of ours is there");
        assert!(fit(Provider::Claude, &["Stop"], "1.0.30").is_harmful(), "not known");
        // A version that reads the rest: the event is not in our catalogue, but it could be.
        let skips = fit(Provider::Claude, &["Stop", "NoSuchEvent"], "2.1.101");
        assert!(!skips.is_harmful() && skips.in_words().unwrap().contains("`NoSuchEvent` and skips it"), "{skips:?}");
        let codex = fit(Provider::Codex, &catalogue(Provider::Codex), "0.120.0");
        assert!(matches!(&codex, Fit::Skips { events, .. } if events.len() == 7), "{codex:?}");
        let before_hooks = fit(Provider::Codex, &["Stop"], "0.60.1");
        assert!(matches!(before_hooks, Fit::Skips { .. }), "{before_hooks:?}");
    }

    #[test]
    fn an_unknown_version_is_harmful_if_any_version_of_the_agent_is() {
        let unknown = Err(VersionUnknown::NotOnPath { name: "claude" });
        let fit = |provider| Fit::of(provider, &["Stop".to_owned()], &unknown);
        let claude = fit(Provider::Claude);
        assert!(claude.is_harmful());
        let words = claude.in_words().unwrap();
        assert!(words.contains("`claude` is not on the PATH") && words.contains("hooks uninstall"), "{words}");
        assert!(!fit(Provider::Gemini).is_harmful() && fit(Provider::Gemini).in_words().is_some());
        assert_eq!(Fit::of(Provider::Claude, &[], &unknown), Fit::Accepted);
    }
}
