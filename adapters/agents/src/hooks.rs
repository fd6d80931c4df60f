//! The description of an agent's hooks: the settings file, the events, what each version of the agent does with them,
//! and the answers a hook can give.

use semver::Version;

/// An agent's hooks.
#[derive(Debug)]
pub struct Hooks {
    /// The file below the agent's home that holds them.
    pub settings_file: &'static str,
    /// Whether that file may have comments and trailing commas.
    pub comments: bool,
    /// The unit of an entry's timeout.
    pub timeout_unit: TimeoutUnit,
    /// Whether entries have names, which the agent shows and by which it turns them off.
    pub named_entries: bool,
    /// Switches in the settings file that turn hooks off.
    pub switches: &'static [Switch],
    /// A second file with facts about hooks.
    pub config: Option<HookConfig>,
    /// What must happen before new entries are run, for a person.
    pub after_install: Option<&'static str>,
    /// What each version accepts.
    pub versions: HookVersions,
    /// What its payloads are made of.
    pub payload: HookPayload,
    /// What its hooks ask and can be answered.
    pub answers: HookAnswers,
}

/// The unit in which an agent counts the timeout of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeoutUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Seconds below this number, milliseconds from it on.
    SecondsBelow(u64),
}

/// A switch in the settings file that turns hooks off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// All of them, when the value at these names is `off`.
    All {
        /// The names, from the root.
        path: &'static [&'static str],
        /// The value that turns them off.
        off: bool,
    },
    /// Those that the list at these names has, by name or by command.
    Listed {
        /// The names, from the root.
        path: &'static [&'static str],
    },
}

/// A TOML file below the agent's home in which hooks are switched, defined and trusted besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookConfig {
    /// Its name.
    pub file: &'static str,
    /// The keys of the table `features` that turn all hooks off when they are false; the last is the one that
    /// [`HookVersions::on_by_default`] is about.
    pub switches: &'static [&'static str],
    /// What a person is told, behind the file's name, when it defines hooks too.
    pub has_hooks_too: &'static str,
    /// What a person is told when none of our entries is among those noted as trusted.
    pub untrusted: &'static str,
}

/// What is known about the versions of one agent.
#[derive(Debug)]
pub struct HookVersions {
    /// The oldest version that was run with our entries.
    pub oldest: Version,
    /// The newest version that was run with our entries. Later ones are taken to accept the same events.
    pub newest: Version,
    /// The first version that reads the rest of a settings file with an unknown event in it; `None` when
    /// every version that was run does.
    pub reads_the_rest_since: Option<Version>,
    /// The first version that runs hooks without a setting that says so, and that setting; `None` when all
    /// versions with hooks do.
    pub on_by_default: Option<(Version, &'static str)>,
    /// The events for which something is installed: those that tell something no file tells as soon.
    ///
    /// Left out are events that fire per chunk or step of a model's answer, since each costs the agent the
    /// start of a process, and those that change what the agent does by being there.
    pub events: &'static [HookEvent],
}

/// Since when an agent accepts an event.
#[derive(Debug)]
pub struct HookEvent {
    /// The name in the settings.
    pub event: &'static str,
    /// The first published version that accepts it.
    pub since: Version,
    /// The version published before that one, which does not; `None` for the oldest that was run.
    pub not_in: Option<Version>,
}

/// What an agent's hooks are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookPayload {
    /// The tools that run a command line.
    pub shell_tools: &'static [&'static str],
    /// The boolean inputs of these tools that request nothing beyond the command while they are `false`.
    pub shell_switches: &'static [&'static str],
    /// The type by which the details of a notification name a command; `None` where there are no details.
    pub shell_details: Option<&'static str>,
    /// Whether the result of a tool names it as the request did, so that requests made at once are told apart.
    pub keyed_requests: bool,
}

/// What an agent's hooks ask and can be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookAnswers {
    /// The event by which a hook asks for a decision.
    pub asking_event: &'static str,
    /// It takes an allowance; otherwise only a denial.
    pub allowance: bool,
    /// It takes another command in place of the one it asked for.
    pub rewrite: bool,
    /// Its hook is called for every tool, before the agent's own rules are asked.
    pub before_rules: bool,
    /// It shows its dialog while the hook waits; otherwise nothing of it tells that it waits.
    pub dialog_meanwhile: bool,
    /// The directory its hook names is the one the command would run in.
    pub names_directory: bool,
}

/// A version, in few letters for tables.
pub(crate) const fn v(major: u64, minor: u64, patch: u64) -> Version {
    Version::new(major, minor, patch)
}

/// An event that the oldest version accepts.
pub(crate) const fn from_the_first(event: &'static str, since: Version) -> HookEvent {
    HookEvent { event, since, not_in: None }
}

/// An event that came later: the version before it, and its own.
pub(crate) const fn new_in(event: &'static str, not_in: Version, since: Version) -> HookEvent {
    HookEvent { event, since, not_in: Some(not_in) }
}

#[cfg(test)]
mod tests {
    use crate::agent::ALL;

    #[test]
    fn versions_are_in_order_and_what_asks_is_installed() {
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
