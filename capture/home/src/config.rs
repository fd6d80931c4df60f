//! The configuration file: `$XDG_CONFIG_HOME/capture/config.toml`. Every key has a default; an unknown key is an error
//! that names it.

mod actions;
mod changes;
mod otlp;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use agents::agent::ALL;
use anyhow::Context;
use approver::TomlFault;
use events::Provider;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

pub use self::{
    actions::{Action, ActionKind},
    changes::{LOOK_EVERY, TakesEffect, changed, takes_effect},
    otlp::{HeaderSource, OtlpSettings, OtlpSettingsError},
};
use crate::endpoint::read_if_there;

/// All settings.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Commands start a server in the background if none is running.
    pub autostart: bool,
    /// Long output on a terminal is paged.
    pub pager: bool,
    /// Directories whose sessions are not captured, including everything below them.
    pub ignore: Vec<PathBuf>,
    /// Additional directories in which agents store their files.
    pub roots: ExtraRoots,
    /// Limits of the status rules.
    pub status: StatusRules,
    /// How files are read.
    pub read: Read,
    /// What is stored.
    pub store: Storing,
    /// Where the server listens.
    pub server: ServerSettings,
    /// Full-text search.
    pub search: SearchSettings,
    /// The MCP server over HTTP.
    pub mcp: McpSettings,
    /// The OpenTelemetry collector to which sessions are sent while they run.
    pub otlp: OtlpSettings,
    /// What is removed automatically.
    pub retention: RetentionSettings,
    /// Permission requests.
    pub approvals: ApprovalSettings,
    /// The limits of the detectors.
    pub monitor: monitor::DetectorLimits,
    /// The actions triggered by findings.
    pub actions: Vec<Action>,
    /// How and where findings are announced.
    pub notify: notifier::NotifySettings,
    /// Our own agent.
    pub agent: settings::AgentSettings,
}

/// A setting in effect.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Setting {
    /// The key including its tables: `status.idle_after_s`.
    pub key: String,
    /// The value.
    pub value: serde_json::Value,
    /// The origin of the value.
    pub from: SettingOrigin,
}

impl Setting {
    /// Whether the setting has this key, or is in the table with this key.
    #[must_use]
    pub fn is_in(&self, key: &str) -> bool {
        self.key.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

/// The origin of a setting's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingOrigin {
    /// The default; the setting is not in the configuration file.
    Default,
    /// The configuration file.
    File,
}

/// The values below a key, each under its full key.
fn flatten(
    key: &str,
    value: serde_json::Value,
    from: SettingOrigin,
    all: &mut BTreeMap<String, (serde_json::Value, SettingOrigin)>,
) {
    let serde_json::Value::Object(fields) = value else {
        all.insert(key.to_owned(), (value, from));
        return;
    };
    for (name, value) in fields {
        let key = if key.is_empty() { name } else { format!("{key}.{name}") };
        flatten(&key, value, from, all);
    }
}

/// Additional home directories of agents, by the agent's name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExtraRoots(BTreeMap<Provider, Vec<PathBuf>>);

impl ExtraRoots {
    /// The additional homes of one agent.
    #[must_use]
    pub fn of(&self, provider: Provider) -> &[PathBuf] {
        self.0.get(&provider).map_or(&[], Vec::as_slice)
    }
}

impl<'de> Deserialize<'de> for ExtraRoots {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let named = BTreeMap::<String, Vec<PathBuf>>::deserialize(deserializer)?;
        let known = |name: &str| ALL.iter().map(|agent| agent.provider).find(|provider| provider.as_str() == name);
        let root = |(name, dirs): (String, _)| match known(&name) {
            Some(provider) => Ok((provider, dirs)),
            None => {
                let names: Vec<_> = ALL.iter().map(|agent| format!("`{}`", agent.provider)).collect();
                Err(D::Error::custom(format!("unknown setting `{name}`, expected one of {}", names.join(", "))))
            }
        };
        named.into_iter().map(root).collect::<Result<_, _>>().map(Self)
    }
}

/// Limits of the status rules.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StatusRules {
    /// Silence without an open turn, after which a session is idle, seconds.
    pub idle_after_s: u32,
    /// Silence in an open turn without a known process, after which the state is unknown, seconds.
    pub lost_after_s: u32,
}

/// What is stored.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Storing {
    /// Remove secrets from texts before storing them. Texts already stored are not changed.
    pub redacted_only: bool,
}

/// Where the server listens, on this machine only. Options of `capture serve` take precedence.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerSettings {
    /// The port; 0 selects a free one.
    pub port: u16,
    /// Hosts that a proxy on this machine forwards, with or without a port.
    pub allowed_hosts: Vec<String>,
}

/// Whether a text is a host in the format of the `Host` header: without a scheme, a path or a user.
#[must_use]
pub fn is_host(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-._:[]".contains(c))
}

/// Full-text search.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SearchSettings {
    /// Index texts, so that they can be searched.
    pub enabled: bool,
}

/// Permission requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ApprovalSettings {
    /// The effect of a prompt that forbids what a request asks for.
    pub boundaries: BoundaryMode,
}

/// The effect of a prompt that forbids what a request asks for. It never allows anything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundaryMode {
    /// The request shows the words of the prompt.
    #[default]
    Show,
    /// The request is also denied, before the policy is applied.
    Deny,
}

/// The MCP server over HTTP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct McpSettings {
    /// Tools that change something, for callers with the scope `control`.
    pub allow: Vec<McpTool>,
}

/// A tool of the MCP server that changes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpTool {
    /// Queue prompts for runs.
    Send,
    /// Set and remove labels of sessions.
    Label,
}

/// What is kept, and which sessions are removed automatically, once a day. 0 disables a limit. Running sessions are
/// never removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetentionSettings {
    /// Also store texts from 256 KiB up to 64 MiB.
    pub keep_large_texts: bool,
    /// Remove sessions whose last event is older than this, days.
    pub older_than_days: u32,
    /// Remove the oldest sessions while the database is larger than this, MiB.
    pub larger_than_mib: u32,
    /// Additional rules for the sessions of a directory.
    pub projects: Vec<ProjectRetention>,
}

/// Which sessions of a directory are removed automatically.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectRetention {
    /// The directory in or below which the sessions began.
    pub directory: PathBuf,
    /// Remove sessions whose last event is older than this, days.
    pub older_than_days: u32,
}

/// How files are read.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Read {
    /// Maximum length of a line, MiB; of longer lines only the length and the hash are stored.
    pub max_line_mib: u32,
    /// Use file change notifications; otherwise files are polled.
    pub watch: bool,
    /// Interval at which recently changed files are polled, milliseconds.
    pub hot_poll_ms: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            autostart: true,
            pager: true,
            ignore: Vec::new(),
            roots: ExtraRoots::default(),
            status: StatusRules::default(),
            read: Read::default(),
            store: Storing::default(),
            server: ServerSettings::default(),
            search: SearchSettings::default(),
            mcp: McpSettings::default(),
            otlp: OtlpSettings::default(),
            retention: RetentionSettings::default(),
            approvals: ApprovalSettings::default(),
            monitor: monitor::DetectorLimits::default(),
            actions: Vec::new(),
            notify: notifier::NotifySettings::default(),
            agent: settings::AgentSettings::default(),
        }
    }
}

impl Default for StatusRules {
    fn default() -> Self {
        Self { idle_after_s: 120, lost_after_s: 600 }
    }
}

impl Default for SearchSettings {
    fn default() -> Self {
        Self { enabled: true }
    }
}

impl Default for Read {
    fn default() -> Self {
        Self { max_line_mib: 16, watch: true, hot_poll_ms: 500 }
    }
}

impl Config {
    /// Reads a configuration file; if it is missing, the defaults apply.
    ///
    /// # Errors
    /// If it cannot be read, is not TOML, has an unknown key or a value out of range.
    pub fn load(path: &Path) -> anyhow::Result<Self> {
        let Some(text) = read_if_there(path)? else { return Ok(Self::default()) };
        Self::parse(&text, path)
    }

    /// Parses the text of a configuration file; the path is used in messages.
    ///
    /// # Errors
    /// If the text is not TOML, has an unknown key or a value out of range.
    pub fn parse(text: &str, path: &Path) -> anyhow::Result<Self> {
        let config: Self = toml::from_str(text).map_err(|error| explained(path, text, &error))?;
        config.check().with_context(|| format!("{} is not valid", path.display()))?;
        Ok(config)
    }

    /// All settings in effect with this text of a configuration file, sorted by key.
    ///
    /// # Errors
    /// If the text is not valid.
    pub fn settings(text: &str, path: &Path) -> anyhow::Result<Vec<Setting>> {
        Self::parse(text, path)?;
        let default = Self::default();
        let defaults = serde_json::json!({
            "autostart": default.autostart,
            "pager": default.pager,
            "ignore": default.ignore,
            "roots": ALL.iter().map(|agent| (agent.provider.as_str(), [(); 0])).collect::<BTreeMap<_, _>>(),
            "status": { "idle_after_s": default.status.idle_after_s, "lost_after_s": default.status.lost_after_s },
            "read": {
                "max_line_mib": default.read.max_line_mib,
                "watch": default.read.watch,
                "hot_poll_ms": default.read.hot_poll_ms,
            },
            "store": { "redacted_only": default.store.redacted_only },
            "server": { "port": default.server.port, "allowed_hosts": [] },
            "search": { "enabled": default.search.enabled },
            "mcp": { "allow": [] },
            "otlp": default.otlp,
            "retention": {
                "keep_large_texts": default.retention.keep_large_texts,
                "older_than_days": 0,
                "larger_than_mib": 0,
                "projects": [],
            },
            "approvals": default.approvals,
            "monitor": default.monitor,
            "actions": [],
            "notify": notify_values(&default.notify),
            "agent": agent_values(&default.agent)?,
        });
        let mut settings = BTreeMap::new();
        flatten("", defaults, SettingOrigin::Default, &mut settings);
        let written: serde_json::Value = toml::from_str(text)?;
        flatten("", written, SettingOrigin::File, &mut settings);
        Ok(settings.into_iter().map(|(key, (value, from))| Setting { key, value, from }).collect())
    }

    /// Whether a key is an optional setting without a default.
    #[must_use]
    pub fn has_no_default(key: &str) -> bool {
        let agent = serde_json::to_value(settings::AgentSettings::default()).unwrap_or_default();
        key.strip_prefix("agent.").and_then(|name| agent.get(name)).is_some_and(serde_json::Value::is_null)
    }

    fn check(&self) -> anyhow::Result<()> {
        let range = |name: &str, value: u32, low: u32, high: u32| {
            anyhow::ensure!(
                (low..=high).contains(&value),
                "{name} = {value} is out of range: expected {low} to \
                {high}"
            );
            Ok(())
        };
        range("status.idle_after_s", self.status.idle_after_s, 5, 86_400)?;
        range("status.lost_after_s", self.status.lost_after_s, 30, 604_800)?;
        range("read.max_line_mib", self.read.max_line_mib, 1, 1024)?;
        range("read.hot_poll_ms", self.read.hot_poll_ms, 50, 5_000)?;
        let ignored = self.ignore.iter().map(|dir| ("ignore".to_owned(), dir));
        let roots = self
            .roots
            .0
            .iter()
            .flat_map(|(provider, dirs)| dirs.iter().map(move |dir| (format!("roots.{provider}"), dir)));
        for (key, dir) in ignored.chain(roots) {
            anyhow::ensure!(dir.is_absolute(), "{key}: expected an absolute path, got `{}`", dir.display());
        }
        for project in &self.retention.projects {
            anyhow::ensure!(
                project.directory.is_absolute(),
                "retention.projects.directory: expected an absolute path, got `{}`",
                project.directory.display()
            );
        }
        for host in &self.server.allowed_hosts {
            anyhow::ensure!(is_host(host), "server.allowed_hosts: expected a host such as dev.example, got `{host}`");
        }
        self.actions.iter().try_for_each(Action::check)?;
        self.notify.check()?;
        self.otlp.check()?;
        self.agent.check()?;
        Ok(())
    }

    /// The limits in the form the projections use.
    #[must_use]
    pub fn rules(&self) -> projections::StatusRules {
        projections::StatusRules {
            idle_after_ms: i64::from(self.status.idle_after_s) * 1000,
            lost_after_ms: i64::from(self.status.lost_after_s) * 1000,
            ..projections::StatusRules::default()
        }
    }
}

/// The line that sets the unknown setting named in a message: in the table that begins or continues at the position,
/// or, without a position, anywhere.
fn line_of_setting(text: &str, position: Option<usize>, message: &str) -> Option<usize> {
    let (name, _) = message.strip_prefix("unknown setting `")?.split_once('`')?;
    let sets = |line: &str| line.split_once('=').is_some_and(|(key, _)| key.trim() == name);
    let first = position.unwrap_or(1);
    let is_in_table = |(line, text): &(usize, &str)| {
        position.is_none_or(|first| *line == first) || !text.trim_start().starts_with('[')
    };
    let mut lines = (1..).zip(text.lines()).skip(first - 1).take_while(is_in_table);
    lines.find(|(_, text)| sets(text)).map(|(line, _)| line)
}

/// The dotted key of the setting on a line; `None` if the line sets none.
fn setting_in(text: &str, line: usize) -> Option<String> {
    let lines: Vec<&str> = text.lines().take(line).collect();
    let (last, before) = lines.split_last()?;
    let (key, _) = last.split_once('=')?;
    let key = key.trim();
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
    let header = before.iter().rev().map(|line| line.trim()).find(|line| line.starts_with('['));
    let table = header.map(|header| header.split(']').next().unwrap_or_default().trim_start_matches('[').trim());
    is_key.then(|| table.map_or_else(|| key.to_owned(), |table| format!("{table}.{key}")))
}

/// The correct form, if the line assigns a single value to a group of settings.
fn group(line: &str) -> Option<String> {
    let (key, _) = line.split_once('=')?;
    let below = format!("{}.", key.trim());
    let settings = Config::settings("", Path::new("")).ok()?;
    let example = settings.iter().find(|setting| setting.key.starts_with(&below))?;
    Some(format!("`{}` is a group of settings; set one of them, such as `{}`", key.trim(), example.key))
}

/// The notification settings in the form of the file. New settings must be added here.
fn notify_values(settings: &notifier::NotifySettings) -> serde_json::Value {
    let notifier::NotifySettings {
        enabled,
        channels,
        rules: _,
        quiet,
        allow_hosts,
        group_at,
        group_window_ms,
        gather_ms,
        per_minute,
        page_url,
    } = settings;
    // By default there is one channel and no rule.
    let channels: Vec<_> =
        channels.iter().map(|channel| serde_json::json!({ "type": "desktop", "name": channel.name() })).collect();
    let mut values = serde_json::json!({
        "enabled": enabled,
        "channels": channels,
        "rules": [],
        "quiet": { "hours": [], "urgent_breaks_through": quiet.urgent_breaks_through },
        "allow_hosts": allow_hosts,
        "group_at": group_at,
        "group_window_ms": group_window_ms,
        "gather_ms": gather_ms,
        "per_minute": per_minute,
    });
    if let Some(page_url) = page_url {
        values["page_url"] = page_url.as_str().into();
    }
    values
}

/// Our own agent's settings. By default no model is set and no provider is configured.
fn agent_values(settings: &settings::AgentSettings) -> serde_json::Result<serde_json::Value> {
    let mut values = serde_json::to_value(settings)?;
    if let Some(values) = values.as_object_mut() {
        values.retain(|_, value| !value.is_null());
    }
    Ok(values)
}

/// Describes an error in a configuration and its position: file, line and column.
fn explained(path: &Path, text: &str, error: &toml::de::Error) -> anyhow::Error {
    let TomlFault { line, column, message } = TomlFault::of(text, error);
    let header = text.lines().nth(line - 1).unwrap_or_default().trim();
    let message = match error.message() {
        // Serde's message for a table in place of an array of tables.
        message if message.starts_with("invalid type: map, expected a sequence") && header.starts_with('[') => {
            format!("write `[{header}]`, not `{header}`")
        }
        theirs if theirs.contains(", expected struct ") => group(header).unwrap_or(message),
        _ => message,
    };
    // A value of the wrong type.
    let message = match setting_in(text, line) {
        Some(key) if error.span().is_some() && message.starts_with("expected ") => format!("{key}: {message}"),
        Some(_) | None => message,
    };
    // The parser does not always know the position within a table; it may report the table's header, or nothing.
    let position = error.span().map(|_| line);
    match line_of_setting(text, position, &message).or(position) {
        Some(line) => anyhow::anyhow!("{}:{line}:{column}: {message}", path.display()),
        None => anyhow::anyhow!("{}: {message}", path.display()),
    }
}

#[cfg(test)]
mod tests;
