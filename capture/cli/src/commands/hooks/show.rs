//! The output of `capture hooks`: changes as a diff, states as lines, both as JSON.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use api::health::{HOOKS, SourceHealth};
use events::{Provider, Timestamp};
use hooks::{AppliedPlan, Error, EventState, Fit, HookStatus, InstallState, Plan, place};
use printing::style;
use serde::Serialize;
use similar::TextDiff;

use super::{Purpose, error_text};
use printing::{print_error_line, prose, safe};

/// A change of one agent's settings: planned, or made.
#[derive(Debug, Serialize)]
pub(super) struct SettingsChange {
    pub(super) provider: Provider,
    /// The settings file; `None` if only the error names it.
    file: Option<PathBuf>,
    change: ChangeForm,
    /// Whether the change was made.
    done: bool,
    diff: Option<String>,
    /// The copy of the previous file.
    backup: Option<PathBuf>,
    notes: Vec<String>,
    pub(super) error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum ChangeForm {
    None,
    Create,
    Edit,
    Remove,
    Refused,
}

/// The state of settings that the agent ignores, or may ignore, because of our entries.
const HARMFUL: &str = "harmful";

/// The state of one agent's settings.
#[derive(Debug, Serialize)]
pub(super) struct AgentHooks {
    provider: Provider,
    file: Option<PathBuf>,
    /// `installed`, `partly`, `out_of_date`, `not_installed`, `turned_off`, `harmful` (the agent ignores or may ignore
    /// the user's settings because of our entries) or `unreadable`.
    state: &'static str,
    /// The version of the agent on the PATH, if it is known and entries are installed.
    version: Option<String>,
    /// Events with our entries that this version does not support.
    unknown_events: Vec<String>,
    /// The mismatch between the entries and that version, as text.
    mismatch: Option<String>,
    events: Vec<EntryState>,
    programs: Vec<EntryProgram>,
    hindrances: Vec<String>,
    remarks: Vec<String>,
    /// Whether a server is running, which would have received calls.
    server: bool,
    /// When the agent last called a hook, according to that server.
    last_seen: Option<Timestamp>,
    error: Option<String>,
}

#[derive(Debug, Serialize)]
struct EntryState {
    name: &'static str,
    state: &'static str,
}

#[derive(Debug, Serialize)]
struct EntryProgram {
    path: PathBuf,
    exists: bool,
}

#[derive(Serialize)]
pub(super) struct ChangesOutput<'a> {
    dry_run: bool,
    agents: &'a [SettingsChange],
}

#[derive(Serialize)]
pub(super) struct HooksOutput<'a> {
    agents: &'a [AgentHooks],
}

/// Changes in the JSON format.
pub(super) fn changed(agents: &[SettingsChange], dry_run: bool) -> ChangesOutput<'_> {
    ChangesOutput { dry_run, agents }
}

/// States in the JSON format.
pub(super) fn states(agents: &[AgentHooks]) -> HooksOutput<'_> {
    HooksOutput { agents }
}

/// An error without its note about the change, for commands that change nothing.
fn without_outcome(error: &str) -> String {
    error.strip_suffix("; nothing was changed").unwrap_or(error).to_owned()
}

impl SettingsChange {
    pub(super) fn planned(plan: &Plan) -> Self {
        let change = match (plan.before(), plan.after()) {
            (before, after) if before == after => ChangeForm::None,
            (None, _) => ChangeForm::Create,
            (Some(_), None) => ChangeForm::Remove,
            (Some(_), Some(_)) => ChangeForm::Edit,
        };
        Self {
            provider: plan.provider,
            file: Some(plan.target().to_owned()),
            change,
            done: false,
            diff: (change != ChangeForm::None).then(|| diff(plan)),
            backup: None,
            notes: plan.notes.clone(),
            error: None,
        }
    }

    pub(super) fn refused(provider: Provider, error: &Error) -> Self {
        Self {
            provider,
            file: None,
            change: ChangeForm::Refused,
            done: false,
            diff: None,
            backup: None,
            notes: Vec::new(),
            error: Some(error_text(error)),
        }
    }

    pub(super) fn done(&mut self, done: AppliedPlan) {
        self.done = true;
        self.backup = done.backup;
    }

    pub(super) fn failed(&mut self, error: &Error) {
        self.error = Some(error_text(error));
    }

    fn name(&self) -> String {
        self.file.as_deref().map(shown).unwrap_or_default()
    }
}

/// The change in the format of `diff -u` and `patch`.
fn diff(plan: &Plan) -> String {
    let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
    let (before, after) = (text(plan.before()), text(plan.after()));
    let name = |there: Option<&[u8]>| match there {
        Some(_) => plan.target().display().to_string(),
        None => "/dev/null".into(),
    };
    let diff = TextDiff::from_lines(&before, &after);
    let diff = diff.unified_diff().context_radius(3).header(&name(plan.before()), &name(plan.after())).to_string();
    if diff.ends_with('\n') { diff } else { diff + "\n" }
}

/// Prints the planned changes. On a terminal, file content is escaped; otherwise the output is the patch.
pub(super) fn plans(all: &[SettingsChange], is_patch: bool) -> anyhow::Result<()> {
    let mut out = printing::stdout();
    let terminal = out.escapes();
    let colour = style::colours();
    for changed in all {
        if let Some(diff) = &changed.diff {
            if !is_patch {
                writeln!(out, "{}", prose(&summary(changed, diff), 2))?;
            } else if terminal {
                for line in diff.split_terminator('\n') {
                    let line: Vec<_> = line.split('\t').map(safe).collect();
                    writeln!(out, "{}", coloured(&line.join("\t"), colour))?;
                }
            } else {
                out.write_all(diff.as_bytes())?;
            }
        }
    }
    out.flush()?;
    for changed in all {
        for note in &changed.notes {
            print_error_line(&format!("{}: {}", changed.provider, safe(note)));
        }
    }
    Ok(())
}

/// A change in one line.
fn summary(changed: &SettingsChange, diff: &str) -> String {
    let lines =
        |sign: char, head: &str| diff.lines().filter(|line| line.starts_with(sign) && !line.starts_with(head)).count();
    let (added, removed) = (lines('+', "+++"), lines('-', "---"));
    let how = match changed.change {
        ChangeForm::Create => "will be created",
        ChangeForm::Remove => "will be deleted",
        ChangeForm::None | ChangeForm::Edit | ChangeForm::Refused => "will be changed",
    };
    let (provider, name) = (changed.provider, changed.name());
    format!("{provider}: {name} {how}: {added} lines added, {removed} removed (--diff shows them)")
}

fn coloured(line: &str, colour: bool) -> String {
    let style = match line.as_bytes().first() {
        Some(b'+') => style::GREEN,
        Some(b'-') => style::RED,
        Some(b'@') => style::CYAN,
        Some(_) | None => return line.to_owned(),
    };
    if colour { style::coloured(line, style) } else { line.to_owned() }
}

/// Prints the changes made.
pub(super) fn done(all: &[SettingsChange], purpose: &Purpose) {
    for changed in all {
        let (provider, name) = (changed.provider, changed.name());
        if changed.change == ChangeForm::None {
            let how = match purpose {
                Purpose::Install { .. } => "all hook entries are already installed",
                Purpose::Uninstall => "no hook entries of capture are installed",
            };
            print_error_line(&format!("{provider}: {how} in {name}"));
        } else if changed.done {
            let how = match purpose {
                // Uninstalling may also have removed entries unknown to this version.
                Purpose::Install { .. } => "hook entries updated in",
                Purpose::Uninstall => "hook entries removed from",
            };
            let copy = changed.backup.as_deref().map_or_else(String::new, |copy| format!(" (backup: {})", shown(copy)));
            print_error_line(&format!("{provider}: {how} {name}{copy}"));
        }
    }
    if matches!(purpose, Purpose::Install { .. }) && all.iter().any(|changed| changed.done) {
        print_error_line("restart running agents: agents read their hooks at startup");
    }
}

impl From<HookStatus> for AgentHooks {
    fn from(status: HookStatus) -> Self {
        let off = !status.hindrances.is_empty() && status.state != InstallState::NotInstalled;
        let state = match status.state.as_str() {
            _ if status.fit.is_harmful() => HARMFUL,
            _ if off => "turned_off",
            state => state,
        };
        Self {
            provider: status.provider,
            file: Some(status.path),
            state,
            version: status.version.map(|version| version.to_string()),
            mismatch: status.fit.in_words(),
            unknown_events: match status.fit {
                Fit::Accepted | Fit::Unchecked { .. } => Vec::new(),
                Fit::Skips { events, .. } | Fit::DropsSettings { events, .. } => events,
            },
            events: status.events.iter().map(|(name, state)| EntryState { name, state: state.as_str() }).collect(),
            programs: status.programs.into_iter().map(|(path, exists)| EntryProgram { path, exists }).collect(),
            hindrances: status.hindrances,
            remarks: status.remarks,
            server: false,
            last_seen: None,
            error: None,
        }
    }
}

impl AgentHooks {
    pub(super) fn unreadable(provider: Provider, home: &Path, error: &Error) -> Self {
        Self {
            provider,
            file: place(provider, home),
            state: "unreadable",
            version: None,
            unknown_events: Vec::new(),
            mismatch: None,
            events: Vec::new(),
            programs: Vec::new(),
            hindrances: Vec::new(),
            remarks: Vec::new(),
            server: false,
            last_seen: None,
            error: Some(without_outcome(&error_text(error))),
        }
    }

    /// Adds the calls that the running server has received.
    pub(super) fn with_health(self, sources: Option<&[SourceHealth]>) -> Self {
        let name = format!("{} {HOOKS}", self.provider);
        let row = sources.and_then(|sources| sources.iter().find(|source| source.name == name));
        Self { server: sources.is_some(), last_seen: row.and_then(|row| row.last_event_at), ..self }
    }

    fn last_call(&self, now: Timestamp) -> String {
        match (self.last_seen, self.server) {
            (Some(at), _) => format!("last hook call {} ago", style::age(at, now)),
            (None, true) => "no hook call since the server started".into(),
            (None, false) => "no server is running; hook calls are stored until one starts".into(),
        }
    }

    fn with(&self, state: EventState) -> Vec<&str> {
        self.events.iter().filter(|event| event.state == state.as_str()).map(|event| event.name).collect()
    }
}

/// Indentation of the text below an agent's line, columns.
const BELOW: usize = 9;

/// Prints the states: a line per agent, and its problems below.
pub(super) fn statuses(all: &[AgentHooks], now: Timestamp) -> anyhow::Result<()> {
    let mut out = printing::stdout();
    for agent in all {
        let name = agent.file.as_deref().map(shown).unwrap_or_default();
        let there = agent.events.len() - agent.with(EventState::Missing).len();
        let (of, state) = match agent.unknown_events.len() {
            _ if agent.events.is_empty() => ("-".into(), agent.state.replace('_', " ")),
            unknown if agent.state == HARMFUL && unknown > 0 => {
                (format!("{} installed, {} supported", there + unknown, agent.events.len()), "breaks settings".into())
            }
            _ if agent.state == HARMFUL => (format!("{there}/{}", agent.events.len()), "may break settings".into()),
            _ => (format!("{there}/{}", agent.events.len()), agent.state.replace('_', " ")),
        };
        writeln!(out, "{:<8} {state:<18} {of:>5}  {name}", agent.provider.as_str())?;
        if let Some(error) = &agent.error {
            writeln!(out, "{}", below(error))?;
        }
        if let Some(mismatch) = &agent.mismatch {
            writeln!(out, "{}", below(&safe(mismatch)))?;
        }
        if there > 0 || agent.last_seen.is_some() {
            writeln!(out, "{}", below(&agent.last_call(now)))?;
        }
        let missing = agent.with(EventState::Missing);
        if there > 0 && !missing.is_empty() {
            writeln!(out, "{}", below(&format!("missing: {}", missing.join(", "))))?;
        }
        let old = agent.with(EventState::OutOfDate);
        if !old.is_empty() {
            writeln!(
                out,
                "{}",
                below(&format!("out of date: {} (`capture hooks install` updates them)", old.join(", ")))
            )?;
        }
        for program in agent.programs.iter().filter(|program| !program.exists) {
            writeln!(out, "{}", below(&format!("{} does not exist or cannot be started", shown(&program.path))))?;
        }
        for remark in agent.hindrances.iter().chain(&agent.remarks) {
            writeln!(out, "{}", below(&safe(remark)))?;
        }
    }
    Ok(())
}

/// A line below the line of its agent.
fn below(words: &str) -> String {
    prose(&format!("{:BELOW$}{words}", ""), BELOW)
}

pub(super) fn shown(path: &Path) -> String {
    safe(&style::path(&path.to_string_lossy()))
}
