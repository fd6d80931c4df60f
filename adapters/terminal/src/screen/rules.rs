//! The screen rules of all agents: the built-in ones, and those in the user's directory.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use agents::Agent;
use events::Provider;
use semver::{Version, VersionReq};

use super::form::{self, BUILT_IN, Cut, DialogRule, Expression, Pattern, RuleFile, ScreenRule};
pub use crate::screen::error::RuleError;

/// The built-in rules for an agent, or for any program: the file's name and its text.
const fn embedded(provider: Provider) -> Option<(&'static str, &'static str)> {
    match provider {
        Provider::Claude => Some(("claude.toml", include_str!("../../rules/claude.toml"))),
        Provider::Codex => Some(("codex.toml", include_str!("../../rules/codex.toml"))),
        Provider::Gemini => Some(("gemini.toml", include_str!("../../rules/gemini.toml"))),
        Provider::Unknown => Some(("any.toml", include_str!("../../rules/any.toml"))),
        Provider::Opencode => Some(("opencode.toml", include_str!("../../rules/opencode.toml"))),
        Provider::Aider => Some(("aider.toml", include_str!("../../rules/aider.toml"))),
        Provider::Amp => Some(("amp.toml", include_str!("../../rules/amp.toml"))),
        Provider::Qwen => Some(("qwen.toml", include_str!("../../rules/qwen.toml"))),
        Provider::Pi | Provider::Crush | Provider::Goose | Provider::Capture => None,
    }
}

fn tested(provider: Provider) -> &'static [&'static str] {
    Agent::of(provider).map_or(&[], |agent| agent.tested_dialogs)
}

/// The rules for all providers.
#[derive(Debug, Default)]
pub struct ScreenRules {
    files: Vec<RuleFile>,
}

impl ScreenRules {
    /// The built-in rules.
    #[must_use]
    pub fn embedded() -> Self {
        // A test parses each of them, so none is skipped.
        let read = |provider: &Provider| {
            let (name, text) = embedded(*provider)?;
            form::read(name, text, false, tested(*provider)).ok()
        };
        Self { files: Provider::ALL.iter().filter_map(read).collect() }
    }

    /// The built-in rules, and those in `dir`: every `*.toml`, in the order of their names. In a file for the same
    /// provider whose version range includes the agent's version, a rule or region with a known name replaces the known
    /// one; others are added. A missing directory is not an error.
    /// error.
    ///
    /// # Errors
    /// When a file cannot be read or is not a valid file of rules; the error names the file and position.
    pub fn load(dir: Option<&Path>) -> Result<Self, RuleError> {
        let mut rules = Self::default();
        for provider in Provider::ALL {
            if let Some((name, text)) = embedded(*provider) {
                rules.insert(name, text, false, tested(*provider))?;
            }
        }
        let Some(dir) = dir else { return Ok(rules) };
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| RuleError::Read { path, source }
        };
        let entries = match fs::read_dir(dir) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(rules),
            Err(e) => return Err(failed(dir)(e)),
        };
        let mut paths: Vec<PathBuf> = Vec::new();
        for entry in entries {
            let path = entry.map_err(failed(dir))?.path();
            if path.extension().is_some_and(|e| e == "toml") {
                paths.push(path);
            }
        }
        paths.sort();
        for path in paths {
            let Some(text) = atomic_file::read_settings(&path).map_err(failed(&path))? else { continue };
            rules.add(&path.display().to_string(), &text)?;
        }
        Ok(rules)
    }

    /// The rules of one file.
    #[cfg(test)]
    pub(crate) fn of(name: &str, text: &str) -> Self {
        let mut rules = Self::default();
        rules.add(name, text).unwrap_or_else(|error| panic!("{error}"));
        rules
    }

    /// Adds a file, parsed and checked against the files before it.
    pub(crate) fn add(&mut self, name: &str, text: &str) -> Result<(), RuleError> {
        self.insert(name, text, true, &[])
    }

    fn insert(&mut self, name: &str, text: &str, compile: bool, tested: &[&str]) -> Result<(), RuleError> {
        let file = form::read(name, text, compile, tested)?;
        let known: Vec<&RuleFile> = self.files.iter().filter(|f| f.provider == file.provider).collect();
        let is_known = |region: &str| {
            BUILT_IN.contains(&region)
                || file.regions.contains_key(region)
                || known.iter().any(|f| f.regions.contains_key(region))
        };
        for place in file.places() {
            if !is_known(&place.name) {
                return Err(form::wrong(name, text, place.at, format!("unknown region `{}`", place.name)));
            }
        }
        self.files.push(file);
        Ok(())
    }

    /// Whether there are rules for this provider.
    pub(crate) fn has(&self, provider: Provider) -> bool {
        self.files.iter().any(|file| file.provider == provider)
    }

    /// The rules for an agent of this version. If the version is unknown or in no range, the ranges are ignored. A
    /// provider without rules gets the rules for any program.
    pub(crate) fn select(&self, provider: Provider, version: Option<&Version>) -> RuleSet {
        let provider = if self.has(provider) { provider } else { Provider::Unknown };
        let of_provider = || self.files.iter().filter(|f| f.provider == provider);
        let within: Vec<&RuleFile> = of_provider().filter(|f| version.is_some_and(|v| f.versions.matches(v))).collect();
        let files: Vec<&RuleFile> = if within.is_empty() { of_provider().collect() } else { within.clone() };
        let mut set = RuleSet {
            outside: version.is_some() && within.is_empty(),
            agent_version: version.cloned(),
            files: files.iter().map(|f| (f.name.clone(), f.versions.to_string())).collect(),
            ..RuleSet::default()
        };
        for name in BUILT_IN {
            set.regions.push((name.to_owned(), None));
        }
        let mut rules: Vec<ScreenRule> = Vec::new();
        for file in &files {
            set.version = file.version.clone().or(set.version);
            set.prompt = file.prompt.clone().or(set.prompt);
            for (name, cut) in &file.regions {
                match set.regions.iter_mut().find(|(known, _)| known == name) {
                    Some(known) => known.1 = Some(cut.clone()),
                    None => set.regions.push((name.clone(), Some(cut.clone()))),
                }
            }
            for rule in &file.rules {
                match rules.iter_mut().find(|known| known.name == rule.name) {
                    Some(known) => known.clone_from(rule),
                    None => rules.push(rule.clone()),
                }
            }
        }
        // Equal priorities keep their order in the files (the sort is stable).
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.priority));
        set.has_rows = rules.iter().any(|rule| rule.dialog.as_ref().is_some_and(|dialog| dialog.row));
        set.rules = rules;
        set.provider = provider;
        set
    }
}

impl RuleFile {
    /// Every reference to a region.
    fn places(&self) -> impl Iterator<Item = &form::RegionRef> {
        let rules = self.rules.iter().flat_map(|rule| {
            let dialog =
                rule.dialog.iter().flat_map(|d| d.question.iter().chain(&d.subject).chain(&d.options).chain(&d.names));
            let whole = rule.dialog.iter().filter_map(|d| d.whole.as_ref());
            rule.all.iter().chain(&rule.any).chain(&rule.none).chain(dialog).map(|p| &p.place).chain(whole)
        });
        let regions = self.regions.values().filter_map(|cut| match cut {
            Cut::Above(place, _) => Some(place),
            Cut::Last(_) | Cut::Bottom(_) | Cut::From(..) | Cut::Find(_) => None,
        });
        rules.chain(self.version.iter().chain(&self.prompt).map(|p| &p.place)).chain(regions)
    }
}

/// The rules for one agent.
#[derive(Debug)]
pub(crate) struct RuleSet {
    /// The provider the rules are for.
    pub(crate) provider: Provider,
    /// The agent's version is known, but no file covers it.
    pub(crate) outside: bool,
    /// The agent's version, if known.
    pub(crate) agent_version: Option<Version>,
    /// The files the rules are from, and the versions each one covers.
    pub(crate) files: Vec<(String, String)>,
    /// How to read the version.
    pub(crate) version: Option<Pattern>,
    /// Finds the input line of a prompt.
    pub(crate) prompt: Option<Pattern>,
    /// All regions by name; the built-in ones come first and have no cut.
    pub(crate) regions: Vec<(String, Option<Cut>)>,
    /// The rules, highest priority first.
    pub(crate) rules: Vec<ScreenRule>,
    /// Whether one of their dialogs has its options side by side.
    pub(crate) has_rows: bool,
}

impl Default for RuleSet {
    fn default() -> Self {
        Self {
            provider: Provider::Unknown,
            outside: false,
            agent_version: None,
            files: Vec::new(),
            version: None,
            prompt: None,
            regions: Vec::new(),
            rules: Vec::new(),
            has_rows: false,
        }
    }
}

impl RuleSet {
    /// Why capture never types a key for a dialog of this form; `None` if it may.
    pub(crate) fn unanswerable(&self, form: &DialogRule) -> Option<String> {
        if form.tested.is_empty() {
            return Some("keys were not tested for this kind of dialog".to_owned());
        }
        let tested: Vec<String> = form.tested.iter().map(range_in_words).collect();
        let tested = tested.join(", ");
        let agent = if self.provider == Provider::Unknown { "version" } else { self.provider.as_str() };
        match &self.agent_version {
            None => Some(format!("the agent's version is unknown, and keys were tested only with {agent} {tested}")),
            Some(version) if form.tested.iter().any(|range| range.matches(version)) => None,
            Some(version) => Some(format!("keys were tested with {agent} {tested}, not with {version}")),
        }
    }
}

/// A version range in words: `2.1.328 and later, before 2.2.0`.
fn range_in_words(range: &VersionReq) -> String {
    let text = range.to_string();
    match text.split_once(", ") {
        Some((from, to)) if from.starts_with(">=") && to.starts_with('<') => {
            format!("{} and later, before {}", from.trim_start_matches(">="), to.trim_start_matches('<'))
        }
        Some(_) | None => text.trim_start_matches('=').to_owned(),
    }
}

/// A version as shown on a screen; a pre-release counts as its release.
pub(crate) fn version(text: &str) -> Option<Version> {
    let mut version = Version::parse(text).ok()?;
    version.pre = semver::Prerelease::EMPTY;
    Some(version)
}

/// The first group of an expression, or its whole match.
pub(crate) fn group<'t>(expression: &Expression, text: &'t str) -> Option<&'t str> {
    let found = expression.regex()?.captures(text)?;
    found.get(1).or_else(|| found.get(0)).map(|m| m.as_str())
}
