//! The state of our entries in an agent's settings, and the obstacles to running them.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use agents::hooks::{HookConfig, Switch};
use events::Provider;
use jsonc_parser::ast::Value;
use semver::Version;

use super::{
    byte_order::split,
    command::{approver, is_ours, of_event, program},
    delivery::answer::asks_before_rules,
    file,
    program::{Installed, VersionUnknown},
    settings::{self, NAME, dialect, find_value},
    text::{JsonDialect, parse},
    versions::{Fit, accepted_events},
};
use crate::{
    command::HookCommand,
    error::Error,
    facts::{catalogue, facts, place},
    file::LARGEST,
};

/// The state of our entries in one agent's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookStatus {
    /// The agent.
    pub provider: Provider,
    /// The settings file.
    pub path: PathBuf,
    /// The overall state.
    pub state: InstallState,
    /// The events of the catalogue that the agent's version accepts; all of them if the version is unknown.
    pub events: Vec<(&'static str, EventState)>,
    /// The version of the agent; `None` if it is unknown, or there are no entries of ours.
    pub version: Option<Version>,
    /// Whether the agent accepts all existing entries.
    pub fit: Fit,
    /// The programs our entries run, and whether each can be started.
    pub programs: Vec<(PathBuf, bool)>,
    /// What prevents the agent from running them.
    pub hindrances: Vec<String>,
    /// Other notes for the user.
    pub remarks: Vec<String>,
}

/// The overall state of our entries in one agent's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstallState {
    /// All entries are present and correct.
    Installed,
    /// Some events are missing.
    Partly,
    /// All events are present, but with other commands than would be installed now.
    OutOfDate,
    /// There are no entries.
    NotInstalled,
}

/// The state of the entry for one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventState {
    /// Present and correct.
    Installed,
    /// Present, but different from what would be installed now.
    OutOfDate,
    /// Missing.
    Missing,
}

impl InstallState {
    /// The name of the state.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Installed => "installed",
            Self::Partly => "partly",
            Self::OutOfDate => "out_of_date",
            Self::NotInstalled => "not_installed",
        }
    }
}

impl EventState {
    /// The name of the state.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Installed => "installed",
            Self::OutOfDate => "out_of_date",
            Self::Missing => "missing",
        }
    }
}

impl HookStatus {
    /// Reads the settings below `home`; `command` is the command that would be installed now. `installed` finds the
    /// agent that reads the settings, and is called only if there are entries of ours.
    ///
    /// # Errors
    /// If the settings cannot be read.
    pub fn read(
        provider: Provider,
        home: &Path,
        command: &HookCommand,
        installed: impl FnOnce() -> Result<Installed, VersionUnknown>,
    ) -> Result<Self, Error> {
        let path = place(provider, home).ok_or(Error::NoHooks(provider))?;
        let seen = file::read_settings(&path)?;
        let (_, text) = seen.content.as_ref().map_or(Ok(("", "")), |content| split(&seen.path, &content.bytes))?;
        let text = if text.trim().is_empty() { "{}" } else { text };
        let root = parse(text, dialect(provider)).map_err(|problem| Error::content(&seen.path, problem))?;
        let there = settings::events_with_ours(&root);
        let found = (!there.is_empty()).then(installed);
        let fit = found.as_ref().map_or(Fit::Accepted, |found| Fit::of(provider, &there, found));
        let version = found.and_then(Result::ok).map(|installed| installed.version);
        let accepted = version.as_ref().and_then(|version| accepted_events(provider, version).ok());
        let expected = accepted.unwrap_or_else(|| catalogue(provider));
        let ours = settings::ours(&root, provider, &expected);
        // Answering requests is the user's choice, so a difference there is no reason to reinstall.
        let approver = ours.iter().find_map(|(_, command, _)| approver(command));
        let line = HookCommand { approver, ..command.clone() }.line(provider)?;
        let events: Vec<_> = expected
            .into_iter()
            .map(|event| {
                let state = match ours.iter().find(|(of, ..)| *of == event) {
                    None => EventState::Missing,
                    Some((_, command, same)) if *same && *command == of_event(&line, provider, event) => {
                        EventState::Installed
                    }
                    Some(_) => EventState::OutOfDate,
                };
                (event, state)
            })
            .collect();
        let mut programs: Vec<_> = ours.iter().filter_map(|(_, command, _)| program(command)).collect();
        programs.sort_unstable();
        programs.dedup();
        let programs = programs.into_iter().map(|program| (program.clone(), can_start(&program))).collect();
        let mut hindrances = hindrances(provider, home, text.as_bytes());
        hindrances.extend(version.as_ref().and_then(|version| off_by_default(provider, home, version)));
        let state = if there.is_empty() { InstallState::NotInstalled } else { in_short(&events) };
        let mut remarks = remarks(provider, home);
        let config = facts(provider).and_then(|hooks| hooks.config).filter(|_| state != InstallState::NotInstalled);
        if let Some(config) = config.filter(|config| !trusted_any(config, home, &[&path, &seen.path])) {
            remarks.push(config.untrusted.into());
        }
        if let Some(seconds) = approver {
            remarks.push(match (asks_before_rules(provider), seconds) {
                (true, _) => "tool calls are checked against your policy, which may deny them".into(),
                (false, 0) => "permission requests are decided by your policy".into(),
                (false, _) => format!(
                    "permission requests are decided by your policy, or within {seconds} s by `capture approve`"
                ),
            });
        }
        Ok(Self { provider, path, state, events, version, fit, programs, hindrances, remarks })
    }
}

fn in_short(events: &[(&str, EventState)]) -> InstallState {
    let count = |state| events.iter().filter(|(_, s)| *s == state).count();
    if count(EventState::Missing) > 0 {
        InstallState::Partly
    } else if count(EventState::OutOfDate) > 0 {
        InstallState::OutOfDate
    } else {
        InstallState::Installed
    }
}

fn can_start(program: &Path) -> bool {
    fs::metadata(program).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The step still needed before new entries run.
pub(super) fn what_next(provider: Provider) -> Option<&'static str> {
    facts(provider)?.after_install
}

/// Descriptions of settings that prevent the agent from running our entries.
pub(super) fn hindrances(provider: Provider, home: &Path, settings: &[u8]) -> Vec<String> {
    let Some(hooks) = facts(provider) else { return Vec::new() };
    let in_settings = hooks.switches.iter().filter(|switch| turns_off(switch, settings)).map(in_words);
    let in_config = hooks.config.iter().flat_map(|config| switched_off(config, home));
    in_settings.chain(in_config).collect()
}

fn with_root<T>(settings: &[u8], ask: impl FnOnce(&jsonc_parser::ast::Object<'_>) -> T) -> Option<T> {
    let text = std::str::from_utf8(settings).ok()?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    parse(text, JsonDialect::Commented).ok().map(|root| ask(&root))
}

fn is(value: Option<&Value<'_>>, wanted: bool) -> bool {
    value.and_then(Value::as_boolean_lit).is_some_and(|literal| literal.value == wanted)
}

fn turns_off(switch: &Switch, settings: &[u8]) -> bool {
    let named =
        |value: &Value<'_>| value.as_string_lit().is_some_and(|text| text.value == NAME || is_ours(&text.value));
    with_root(settings, |root| match switch {
        Switch::All { path, off } => is(find_value(root, path), *off),
        Switch::Listed { path } => {
            let listed = find_value(root, path).and_then(Value::as_array);
            listed.is_some_and(|array| array.elements.iter().any(named))
        }
    })
    .unwrap_or_default()
}

fn in_words(switch: &Switch) -> String {
    let (which, path, value) = match switch {
        Switch::All { path, off } => ("all", path, off.to_string()),
        Switch::Listed { path } => ("these", path, "[…]".into()),
    };
    let (last, above) = path.split_last().map_or(("", path as &[_]), |(last, above)| (*last, above));
    let member = format!("\"{last}\": {value}");
    let member = above.iter().rev().fold(member, |member, name| format!("\"{name}\": {{{member}}}"));
    format!("{which} hooks are turned off in the same file: {member}")
}

/// Reports a version that runs hooks only if enabled by a setting that is missing.
fn off_by_default(provider: Provider, home: &Path, version: &Version) -> Option<String> {
    let hooks = facts(provider)?;
    let (since, setting) = hooks.versions.on_by_default.as_ref()?;
    let on = hooks.config.is_some_and(|config| {
        config.switches.last().is_some_and(|key| feature(&table(&config, home), key) == Some(true))
    });
    (version < since && !on).then(|| format!("{provider} {version} runs hooks only with {setting}"))
}

/// Descriptions of switches in the second file that are off.
fn switched_off(config: &HookConfig, home: &Path) -> Vec<String> {
    let (settings, file) = (table(config, home), home.join(config.file));
    let off = |key: &&&str| feature(&settings, key) == Some(false);
    let says = |key| format!("all hooks are turned off in {}: [features] {key} = false", file.display());
    config.switches.iter().filter(off).map(says).collect()
}

fn feature(settings: &toml::Table, key: &str) -> Option<bool> {
    settings.get("features")?.as_table()?.get(key)?.as_bool()
}

/// Notes for the user, before and after.
pub(super) fn remarks(provider: Provider, home: &Path) -> Vec<String> {
    let Some(config) = facts(provider).and_then(|hooks| hooks.config) else { return Vec::new() };
    let settings = table(&config, home);
    let hooks = settings.get("hooks").and_then(toml::Value::as_table);
    let file = home.join(config.file);
    hooks
        .is_some_and(|hooks| hooks.keys().any(|key| key != "state"))
        .then(|| format!("{} {}", file.display(), config.has_hooks_too))
        .into_iter()
        .collect()
}

/// Whether the agent has recorded any hook of these files as trusted: `[hooks.state."<file>:<event>:0:0"]` with a
/// `trusted_hash` (Codex 0.169). Only the agent knows which hooks, and whether the record is still valid.
fn trusted_any(config: &HookConfig, home: &Path, files: &[&Path]) -> bool {
    let settings = table(config, home);
    let state = settings.get("hooks").and_then(|hooks| hooks.get("state")).and_then(toml::Value::as_table);
    let of_these = |key: &str| {
        files.iter().any(|file| key.strip_prefix(&*file.to_string_lossy()).is_some_and(|rest| rest.starts_with(':')))
    };
    state.is_some_and(|state| state.iter().any(|(key, of)| of_these(key) && of.get("trusted_hash").is_some()))
}

/// The second file; empty if there is no readable one.
fn table(config: &HookConfig, home: &Path) -> toml::Table {
    let path = home.join(config.file);
    let small = fs::metadata(&path).is_ok_and(|meta| meta.is_file() && meta.len() <= LARGEST);
    let text = small.then(|| fs::read_to_string(&path).ok()).flatten();
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}
