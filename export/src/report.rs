//! Reports, in Markdown or as text for a terminal: the work of all sessions since a time (standup), and a handoff note.
//!
//! No model is involved: a report contains only what was said or done. The texts are an agent's; the caller redacts the
//! whole report before it is output.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use events::{Finding, State, Timestamp, ToolOutcome, TurnOutcome};
use projections::{CommandRun, OpenTurn, Session, Turn, WorkLog, shorten::one_line};
use serde::Serialize;

/// A session and its work within the time of a report.
#[derive(Debug, Clone, Serialize)]
pub struct SessionWork {
    /// The session.
    pub session: Session,
    /// Its turns that began or ended within the time.
    pub turns: Vec<Turn>,
    /// Its findings.
    pub findings: Vec<Finding>,
}

impl SessionWork {
    /// The directory in which it began.
    #[must_use]
    pub fn project(&self) -> &str {
        self.session.began_in.as_deref().or(self.session.cwd.as_deref()).unwrap_or("(no directory)")
    }

    /// Its open turn, unless it is in `turns`.
    fn open_turn(&self) -> Option<&OpenTurn> {
        self.session.turn.as_ref().filter(|open| self.turns.iter().all(|turn| turn.id != open.id))
    }

    /// The number of its turns within the time, including the open one.
    #[must_use]
    pub fn count(&self) -> usize {
        self.turns.len() + usize::from(self.open_turn().is_some())
    }

    /// How long its turns lasted within the time, ms.
    #[must_use]
    pub fn busy_ms(&self, since: Timestamp, now: Timestamp) -> u64 {
        let ended = self.turns.iter().map(|turn| (turn.started_at, turn.completed_at));
        // The activity of a session after its last event is unknown if it ended, or may have ended.
        let last = match self.session.status.state {
            State::Running | State::Waiting | State::WaitingApproval | State::Idle => None,
            State::Exited | State::Unknown => Some(self.session.last_event_at),
        };
        let open = self.open_turn().map(|turn| (turn.started_at, last));
        let lasted = |(from, to): (Timestamp, Option<Timestamp>)| to.unwrap_or(now).since_ms(from.max(since)).max(0);
        ended.chain(open).map(lasted).sum::<i64>().unsigned_abs()
    }
}

/// The format in which a report is displayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Markup {
    /// As Markdown: characters of a text that would be markup are escaped.
    Markdown,
    /// On a terminal: all characters of a text are unchanged.
    Terminal,
}

/// How a report is formatted.
#[derive(Clone, Copy)]
pub struct ReportFormat<'a> {
    /// The format in which it is displayed.
    pub markup: Markup,
    /// Shortens a path.
    pub path: &'a dyn Fn(&str) -> String,
    /// Formats a time.
    pub time: &'a dyn Fn(Timestamp) -> String,
}

/// Maximum number of prompts per session in a standup report.
const PROMPTS: usize = 6;
/// Longest prompt in a standup report, characters.
const PROMPT_CHARS: usize = 110;
/// Longest last answer in a standup report, characters.
const ANSWER_CHARS: usize = 240;

/// The work of every session since a time, grouped by project; sessions that need the user are first.
#[must_use]
pub fn standup(work: &[SessionWork], since: Timestamp, now: Timestamp, format: ReportFormat<'_>) -> String {
    let mut projects: BTreeMap<&str, Vec<&SessionWork>> = BTreeMap::new();
    for one in work {
        projects.entry(one.project()).or_default().push(one);
    }
    let turns: usize = work.iter().map(SessionWork::count).sum();
    let mut out = String::new();
    if work.is_empty() {
        return "Nothing happened in that time.\n".to_owned();
    }
    let _ = writeln!(
        out,
        "{}, {}, {}\n",
        counted(projects.len(), "project"),
        counted(work.len(), "session"),
        counted(turns, "turn")
    );
    for (project, mut sessions) in projects {
        sessions.sort_by_key(|one| (rank(one), std::cmp::Reverse(one.session.last_event_at)));
        let _ = writeln!(out, "## {}\n", (format.path)(project));
        for one in sessions {
            standup_of(one, since, now, format, &mut out);
        }
    }
    out
}

fn rank(work: &SessionWork) -> u8 {
    match work.session.status.state {
        State::WaitingApproval => 0,
        _ if !work.findings.is_empty() => 1,
        State::Running => 2,
        State::Waiting | State::Idle | State::Unknown => 3,
        State::Exited => 4,
    }
}

fn standup_of(work: &SessionWork, since: Timestamp, now: Timestamp, format: ReportFormat<'_>, out: &mut String) {
    let session = &work.session;
    let title = session.title.as_deref().unwrap_or("(no prompt yet)");
    let calls: u32 = work.turns.iter().map(|turn| turn.tool_calls).sum();
    let failed: u32 = work.turns.iter().map(|turn| turn.tool_errors).sum();
    let mut facts = vec![session.provider.to_string()];
    facts.extend(session.git_branch.clone());
    facts.push(counted(work.count(), "turn"));
    if calls > 0 {
        let failed = if failed > 0 { format!(" ({failed} failed)") } else { String::new() };
        facts.push(format!("{}{failed}", counted(calls as usize, "call")));
    }
    facts.push(lasted(work.busy_ms(since, now)));
    let plain = |text: &str, chars| format.plain(text, chars);
    let title = plain(title, PROMPT_CHARS);
    let title = match format.markup {
        Markup::Markdown => format!("**{title}**"),
        Markup::Terminal => title,
    };
    let _ = writeln!(out, "- {title} ({})", plain(&facts.join(", "), 200));
    let ended = work.turns.iter().map(|turn| &turn.prompt);
    let prompts = ended.chain(work.open_turn().map(|turn| &turn.prompt));
    let asked: Vec<&str> = prompts.filter_map(Option::as_deref).collect();
    for prompt in asked.iter().take(PROMPTS) {
        let _ = writeln!(out, "  - asked: {}", plain(prompt, PROMPT_CHARS));
    }
    if asked.len() > PROMPTS {
        let _ = writeln!(out, "  - and {} more", asked.len() - PROMPTS);
    }
    if let Some(text) = work.turns.iter().rev().find_map(|turn| turn.text.as_deref()) {
        let _ = writeln!(out, "  - answered: {}", plain(text, ANSWER_CHARS));
    }
    if let Some(checks) = work.turns.iter().rev().find_map(|turn| turn.receipt.line()) {
        let _ = writeln!(out, "  - checks: {}", plain(&checks, ANSWER_CHARS));
    }
    let done = |current: &&String| current.starts_with("done");
    if let Some(current) = session.summary.current.as_ref().filter(|current| !done(current)) {
        let _ = writeln!(out, "  - now: {}", plain(current, ANSWER_CHARS));
    }
    // Completion is already reported above.
    let open = work.findings.iter().filter(|f| !f.kind.facts().is_done);
    for finding in open {
        let _ = writeln!(out, "  - {}: {}", finding.severity, plain(&finding.what, ANSWER_CHARS));
    }
    out.push('\n');
}

/// The content of a handoff note.
#[derive(Debug, Clone, Serialize)]
pub struct Handoff {
    /// The session.
    pub session: Session,
    /// Its turns, oldest first.
    pub turns: Vec<Turn>,
    /// Its findings.
    pub findings: Vec<Finding>,
    /// The files it changed, and how often.
    pub files: BTreeMap<String, u32>,
    /// The commands it ran, oldest first.
    pub commands: Vec<CommandRun>,
    /// The whole text of its last answer.
    pub last_text: Option<String>,
    /// The command line that resumes it.
    pub resume: Option<String>,
}

/// Maximum number of turns in a handoff note.
const TURNS: usize = 12;
/// Maximum number of files in a handoff note.
const FILES: usize = 40;
/// Maximum number of commands in a handoff note.
const COMMANDS: usize = 12;

impl Handoff {
    /// Creates a note about a session from its turns, oldest first, and its work.
    #[must_use]
    pub fn new(session: Session, turns: Vec<Turn>, work: WorkLog, findings: Vec<Finding>) -> Self {
        let WorkLog { files, commands, last_text, .. } = work;
        Self { session, turns, findings, files, commands, last_text, resume: None }
    }

    /// The note.
    #[must_use]
    pub fn text(&self, format: ReportFormat<'_>) -> String {
        let mut out = String::new();
        let session = &self.session;
        let plain = |text: &str, chars| format.plain(text, chars);
        let _ = writeln!(out, "# {}\n", plain(session.title.as_deref().unwrap_or("Untitled session"), 120));
        let mut line = |name: &str, value: Option<String>| {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                let _ = writeln!(out, "- {name}: {}", plain(&value, 300));
            }
        };
        line("now", session.summary.current.clone());
        line("directory", session.cwd.as_deref().map(format.path));
        line("branch", session.git_branch.clone());
        let agent = [Some(session.provider.to_string()), session.cli_version.clone(), session.model.clone()];
        line("agent", Some(agent.into_iter().flatten().collect::<Vec<_>>().join(" ")));
        line("session", Some(session.id.to_string()));
        line("last event", Some((format.time)(session.last_event_at)));
        if let Some(command) = &self.resume {
            let _ = writeln!(out, "- continue with: `{}`", code_text(command));
        }
        self.open_matters(&mut out, format);
        self.what_was_done(&mut out, format);
        if let Some(text) = &self.last_text {
            let _ = write!(out, "\n## Last answer\n\n{}\n", quoted(text));
        }
        out
    }

    fn open_matters(&self, out: &mut String, format: ReportFormat<'_>) {
        let session = &self.session;
        let plain = |text: &str, chars| format.plain(text, chars);
        // If a command was run more than once, its last run counts.
        let mut failing: Vec<(&CommandRun, u32)> = Vec::new();
        let mut seen = BTreeSet::new();
        for ran in self.commands.iter().rev().take(COMMANDS) {
            let failed = ran.outcome == Some(ToolOutcome::Error);
            match failing.iter_mut().find(|(other, _)| other.command == ran.command) {
                Some((_, times)) if failed => *times += 1,
                None if failed && seen.insert(&ran.command) => failing.push((ran, 1)),
                Some(_) | None => drop(seen.insert(&ran.command)),
            }
        }
        let open = || self.findings.iter().filter(|f| !f.kind.facts().is_done);
        let nothing = session.pending_approvals.is_empty() && open().next().is_none() && failing.is_empty();
        out.push_str("\n## Open\n\n");
        if nothing && session.turn.is_none() {
            out.push_str("capture knows of no open work.\n");
        }
        if let Some(turn) = &session.turn {
            let _ = writeln!(out, "- a turn is open: {}", plain(turn.prompt.as_deref().unwrap_or("no prompt"), 200));
        }
        if !session.pending_approvals.is_empty() {
            let count = session.pending_approvals.len();
            let _ = writeln!(out, "- {} wait{}", counted(count, "approval"), if count == 1 { "s" } else { "" });
        }
        for finding in open() {
            let until = finding.until.map(|until| format!(" (until {})", (format.time)(until))).unwrap_or_default();
            let _ = writeln!(out, "- {}: {}{until}", plain(&finding.what, 200), plain(&finding.why, 300));
        }
        for (ran, times) in failing {
            let code = ran.exit_code.map(|code| format!(" (exit code {code})")).unwrap_or_default();
            let times = if times > 1 { format!(" {times}×") } else { String::new() };
            let _ = writeln!(out, "- failed{times}: `{}`{code}", code_text(&ran.command));
        }
    }

    fn what_was_done(&self, out: &mut String, format: ReportFormat<'_>) {
        let plain = |text: &str, chars| format.plain(text, chars);
        out.push_str("\n## Prompts and results\n\n");
        let skipped = self.turns.len().saturating_sub(TURNS);
        if skipped > 0 {
            let _ = writeln!(out, "({} before these)\n", counted(skipped, "turn"));
        }
        for turn in self.turns.iter().skip(skipped) {
            let end = match turn.outcome {
                None => " (open)",
                Some(TurnOutcome::Completed | TurnOutcome::Superseded) => "",
                Some(TurnOutcome::Interrupted) => " (interrupted)",
                Some(TurnOutcome::Denied) => " (refused)",
                Some(TurnOutcome::Failed) => " (failed)",
                Some(TurnOutcome::Exited) => " (cut off)",
                Some(TurnOutcome::TimedOut) => " (no end seen)",
                Some(TurnOutcome::TakenBack) => " (taken back: the conversation continued without it)",
            };
            let prompt = turn.prompt.as_deref().unwrap_or("(no prompt)");
            let _ = writeln!(out, "{}. {}{end}", turn.number, plain(prompt, 300));
            if let Some(text) = &turn.text {
                let _ = writeln!(out, "   - {}", plain(text, 300));
            }
            if let Some(checks) = turn.receipt.line() {
                let _ = writeln!(out, "   - checks: {}", plain(&checks, 300));
            }
        }
        match &self.session.turn {
            Some(open) if self.turns.iter().all(|turn| turn.id != open.id) => {
                let _ = writeln!(out, "- {} (open)", plain(open.prompt.as_deref().unwrap_or("(no prompt)"), 300));
            }
            None if self.turns.is_empty() => out.push_str("No prompt yet.\n"),
            Some(_) | None => {}
        }
        if !self.files.is_empty() {
            out.push_str("\n## Files changed\n\n");
            for (file, times) in self.files.iter().take(FILES) {
                let _ = writeln!(
                    out,
                    "- `{}`{}",
                    code_text(file),
                    if *times > 1 { format!(" ({times}×)") } else { String::new() }
                );
            }
            if self.files.len() > FILES {
                let _ = writeln!(out, "- and {} more", self.files.len() - FILES);
            }
        }
        if !self.commands.is_empty() {
            out.push_str("\n## Last commands\n\n");
            let last = self.commands.get(self.commands.len().saturating_sub(COMMANDS)..).unwrap_or_default();
            for same in last.chunk_by(|a, b| (&a.command, a.outcome) == (&b.command, b.outcome)) {
                let Some(ran) = same.first() else { continue };
                let end = ran.outcome.map_or("runs", |outcome| outcome.as_str());
                let times = if same.len() > 1 { format!(" {}×", same.len()) } else { String::new() };
                let _ = writeln!(out, "- `{}`: {end}{times}", code_text(&ran.command));
            }
        }
    }
}

fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn lasted(ms: u64) -> String {
    match ms / 1000 {
        s @ 0..60 => format!("{s} s"),
        s @ 60..3600 => format!("{} min", s / 60),
        s => format!("{} h {:02} min", s / 3600, s % 3600 / 60),
    }
}

impl ReportFormat<'_> {
    /// One line of an agent's text.
    fn plain(self, text: &str, chars: usize) -> String {
        let line: String = one_line(text, chars).chars().filter(|c| !c.is_control()).collect();
        match self.markup {
            Markup::Markdown => escaped(&line),
            Markup::Terminal => line,
        }
    }
}

/// A line that remains plain text in Markdown: no heading, list, image, link or HTML.
fn escaped(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut before = ' ';
    for c in line.chars() {
        let has_meaning = match c {
            '\\' | '`' | '*' | '[' | ']' | '<' | '>' | '|' => true,
            // Only at the beginning of a word, or of the line.
            '#' | '_' | '~' => before == ' ',
            '-' | '+' => out.is_empty(),
            _ => false,
        };
        if has_meaning {
            out.push('\\');
        }
        out.push(c);
        before = c;
    }
    out
}

/// The text in a form that can be put between backticks.
fn code_text(text: &str) -> String {
    text.replace('`', "'")
}

pub(crate) fn quoted(text: &str) -> String {
    text.lines().map(|line| format!("> {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
