//! The description of an agent's hooks: the settings file, the events, the behaviour of each version of the agent, and
//! the answers a hook can return.

use semver::Version;

/// An agent's hooks.
#[derive(Debug)]
pub struct Hooks {
    /// The settings file with the hooks, relative to the agent's home.
    pub settings_file: &'static str,
    /// Whether that file may contain comments and trailing commas.
    pub comments: bool,
    /// The unit of an entry's timeout.
    pub timeout_unit: TimeoutUnit,
    /// Whether entries have names, which the agent shows and by which it disables them.
    pub named_entries: bool,
    /// Switches in the settings file that disable hooks.
    pub switches: &'static [Switch],
    /// A second file with settings for hooks.
    pub config: Option<HookConfig>,
    /// The step that the user must take before new entries run, as text for the user.
    pub after_install: Option<&'static str>,
    /// The events that each version accepts.
    pub versions: HookVersions,
    /// The contents of its hook payloads.
    pub payload: HookPayload,
    /// The requests its hooks make and the answers they accept.
    pub answers: HookAnswers,
}

/// The unit in which an agent counts the timeout of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeoutUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Seconds below this number, milliseconds from this number on.
    SecondsBelow(u64),
}

/// A switch in the settings file that disables hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// All hooks, if the value at this path is `off`.
    All {
        /// The path, from the root.
        path: &'static [&'static str],
        /// The value that disables them.
        off: bool,
    },
    /// The hooks in the list at this path, by name or by command.
    Listed {
        /// The path, from the root.
        path: &'static [&'static str],
    },
}

/// A TOML file below the agent's home that also enables, defines and trusts hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookConfig {
    /// Its name.
    pub file: &'static str,
    /// The keys of the table `features` that disable all hooks if they are false; [`HookVersions::on_by_default`]
    /// refers to the last one.
    pub switches: &'static [&'static str],
    /// Text for the user, after the file's name, if the file defines hooks too.
    pub has_hooks_too: &'static str,
    /// Text for the user if none of our entries is recorded as trusted.
    pub untrusted: &'static str,
}

/// The tested versions of one agent.
#[derive(Debug)]
pub struct HookVersions {
    /// The oldest version tested with our entries.
    pub oldest: Version,
    /// The newest version tested with our entries. Later versions are assumed to accept the same events.
    pub newest: Version,
    /// The first version that reads the rest of a settings file that contains an unknown event; `None` if every tested
    /// version does.
    pub reads_the_rest_since: Option<Version>,
    /// The first version that runs hooks without a setting that enables them, and that setting; `None` if all versions
    /// with hooks do.
    pub on_by_default: Option<(Version, &'static str)>,
    /// The events for which a hook is installed: those that report something earlier than any file does.
    ///
    /// Omitted are events that fire per chunk or step of a model's answer, because each starts a process, and events
    /// whose mere presence changes the agent's behaviour.
    pub events: &'static [HookEvent],
}

/// The first version in which an agent accepts an event.
#[derive(Debug)]
pub struct HookEvent {
    /// The name in the settings.
    pub event: &'static str,
    /// The first published version that accepts it.
    pub since: Version,
    /// The version published before that one, which does not accept it; `None` for the oldest tested version.
    pub not_in: Option<Version>,
}

/// The input of an agent's hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookPayload {
    /// The tools that run a command line.
    pub shell_tools: &'static [&'static str],
    /// The boolean inputs of these tools that request nothing beyond the command while they are `false`.
    pub shell_switches: &'static [&'static str],
    /// The type that identifies a command in the details of a notification; `None` if there are no details.
    pub shell_details: Option<&'static str>,
    /// Whether the result of a tool identifies the call in the same way as the request, so that simultaneous requests
    /// can be distinguished.
    pub keyed_requests: bool,
}

/// The requests that an agent's hooks make and the answers they accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookAnswers {
    /// The event with which a hook requests a decision.
    pub asking_event: &'static str,
    /// Whether it accepts an allowance; otherwise only a denial.
    pub allowance: bool,
    /// Whether it accepts another command in place of the requested one.
    pub rewrite: bool,
    /// Whether its hook is called for every tool, before the agent applies its own rules.
    pub before_rules: bool,
    /// Whether it shows its dialog while the hook waits; otherwise nothing shows that it waits.
    pub dialog_meanwhile: bool,
    /// Whether the directory in the hook's input is the one in which the command would run.
    pub names_directory: bool,
}

/// A version; short for use in tables.
pub(crate) const fn v(major: u64, minor: u64, patch: u64) -> Version {
    Version::new(major, minor, patch)
}

/// An event that the oldest version accepts.
pub(crate) const fn from_the_first(event: &'static str, since: Version) -> HookEvent {
    HookEvent { event, since, not_in: None }
}

/// An event added later: the version before it, and the first version with it.
pub(crate) const fn new_in(event: &'static str, not_in: Version, since: Version) -> HookEvent {
    HookEvent { event, since, not_in: Some(not_in) }
}

#[cfg(test)]
mod tests {
    use crate::agent::ALL;

    #[test]
    fn hook_versions_are_ordered_and_include_the_asking_event() {
        for (agent, hooks) in ALL.into_iter().filter_map(|agent| Some((agent, agent.hooks.as_ref()?))) {
            let versions = &hooks.versions;
            assert!(versions.oldest <= versions.newest, "{}", agent.provider);
            for fact in versions.events {
                assert!(fact.not_in.as_ref().is_none_or(|not_in| *not_in < fact.since), "{}", fact.event);
                assert!(fact.since <= versions.newest, "{}", fact.event);
            }
            let asks = |event: &&str| versions.events.iter().any(|fact| fact.event == *event);
            assert!(asks(&hooks.answers.asking_event), "{}", agent.provider);
        }
    }
}
