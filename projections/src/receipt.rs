//! Receipts: what the checks of a turn showed, held against the edits after them.
//!
//! An agent says that tests pass; the receipt says which command ran last, how it ended, what the runner printed, and
//! how many edits came later. Evidence decides, in this order: what the program itself prints about its result, then the
//! exit code, as far as it is the command's own (`line`). Without evidence the verdict is `unknown`, never `passed`.

mod continuing;
mod line;
mod programs;
mod ran;
mod summary;
mod tasks;

use std::borrow::Cow;

use events::{Check, CheckClass, CheckVerdict, EventId, Receipt, TestCounts, ToolCall, ToolKind, ToolOutcome};
use serde::{Deserialize, Serialize};

use crate::{conversation::OpenCall, failure::FinishedCall, shorten::one_line};
pub use ran::{ShellCommand, commands};
use summary::TestSummary;

pub(crate) use continuing::ContinuingCommands;
pub(crate) use tasks::TaskList;

pub use line::{ExitMeans, LineCommand, Surroundings, commands_of};
pub use programs::{base, subcommands, without_wrappers};

/// Longest command kept, characters.
const COMMAND_CHARS: usize = 60;
/// Longest path kept, characters.
const FILE_CHARS: usize = 80;
/// Number of files named per check and per receipt.
pub(crate) const FILES: usize = 3;
/// Length from which the title of a command may be cut, bytes: adapters keep at most 400 characters.
const TITLE_BYTES: usize = 160;
/// Bytes at the end of an output in which the summary of an unknown test run is looked for.
const END_BYTES: usize = 2_048;
/// Maximum number of checks of one call.
const CHECKS_OF_CALL: usize = 8;

/// A check that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunningCheck {
    class: CheckClass,
    /// What the exit code of the line says about it.
    exit: ExitMeans,
    /// The chain of `&&` it belongs to.
    chain: usize,
    /// Whether the output may lack failures that the program printed, or contain what others printed before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    filtered: bool,
    /// Whether no other program of the line prints anything.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    alone: bool,
    /// Whether the next command of its chain runs only if it succeeded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    gates: bool,
    /// Whether the line ends with a program whose exit code 1 is an answer, such as `grep`: some agents do not report it
    /// as an error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    ends_softly: bool,
}

/// The command of a call, of which only the beginning may be known.
#[must_use]
pub fn command_of<'a>(call: &'a ToolCall, input: Option<&str>) -> Option<Cow<'a, str>> {
    whole_command_of(call, input).or(call.title.as_deref().map(Cow::Borrowed))
}

/// The whole command of a call: from its input, as its title may be cut. Agents name the field differently, and some
/// give the words of a shell call.
#[must_use]
pub fn whole_command_of<'a>(call: &'a ToolCall, input: Option<&str>) -> Option<Cow<'a, str>> {
    #[derive(Deserialize)]
    struct Input<'b> {
        #[serde(borrow, alias = "cmd", alias = "CommandLine")]
        command: CommandField<'b>,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum CommandField<'b> {
        Line(#[serde(borrow)] Cow<'b, str>),
        Words(Vec<String>),
    }
    // The title of a short command of one line is the command.
    let is_whole = |title: &str| title.len() < TITLE_BYTES && input.is_none_or(|input| !input.contains("\\n"));
    let title = call.title.as_deref().filter(|_| call.tool == ToolKind::Execute);
    if let Some(title) = title.filter(|title| is_whole(title)) {
        return Some(Cow::Borrowed(title));
    }
    match serde_json::from_str::<Input<'_>>(input?).ok()?.command {
        CommandField::Line(line) => Some(Cow::Owned(line.into_owned())),
        CommandField::Words(words) => programs::script_of(&words).map(|script| Cow::Owned(script.to_owned())),
    }
}

/// Whether the input of a call, of which `cut` is the beginning and the end, may contain a check.
pub(crate) fn may_contain_check(call: &ToolCall, cut: Option<&str>) -> bool {
    let may_check = |text: &str| programs::may_check(&text.replace("\\n", "\n"));
    call.tool == ToolKind::Execute && (call.title.as_deref().is_some_and(may_check) || cut.is_some_and(may_check))
}

/// The class of a command line that runs one check.
pub(crate) fn class_of_line(line: &str) -> Option<CheckClass> {
    match checks_of(line).as_slice() {
        [only] => Some(only.class),
        _ => None,
    }
}

/// Whether a command line that checks or builds may also run tests.
pub(crate) fn may_test(command: &str) -> bool {
    programs::may_test(command)
}

/// Whether a command line runs a task of the project, which may consist of several checks.
pub(crate) fn runs_a_task(command: &str) -> bool {
    programs::roughly(command).any(|words| programs::runs_a_task(&words))
}

/// What the programs of a command line that are no checks may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LineKind {
    /// They run no check.
    Shows,
    /// They are known, or not examined. A test run is known by the summary it prints.
    #[default]
    Unknown,
    /// One of them may have committed, pushed, merged or deployed.
    Publishes,
    /// One of them is not known.
    Unlisted,
    /// They may run checks without showing their results: a script of the project, a task whose name says nothing, a
    /// command in a container or on another machine.
    Opaque,
}

impl LineKind {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
    pub(crate) const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }

    pub(crate) fn of(command: &str) -> Self {
        let of_parts = programs::roughly(command).map(|words| Self::of_words(&words)).max().unwrap_or(Self::Shows);
        // Without quotation marks, the parts are the commands. Otherwise parts of texts may look like programs.
        if of_parts <= Self::Unknown || !command.contains(['\'', '"', '\\', '<', '#', '`']) {
            return of_parts;
        }
        line::commands_of(command).map_or(of_parts, |commands| {
            commands.iter().map(|command| Self::of_words(&command.words)).max().unwrap_or(Self::Shows)
        })
    }

    /// What the program of a command may do unseen.
    fn of_words<W: AsRef<str>>(words: &[W]) -> Self {
        if programs::only_shows(words) {
            return match programs::unseen(words) {
                programs::Unseen::Publishes => Self::Publishes,
                programs::Unseen::Nothing | programs::Unseen::Anything => Self::Shows,
            };
        }
        if programs::class_of(words).is_some() {
            return Self::Unknown;
        }
        if programs::is_opaque(words) {
            return Self::Opaque;
        }
        match programs::unseen(words) {
            programs::Unseen::Nothing => Self::Unknown,
            programs::Unseen::Publishes => Self::Publishes,
            programs::Unseen::Anything => Self::Unlisted,
        }
    }
}

/// The checks that a command line runs, in order.
pub(crate) fn checks_of(command: &str) -> Vec<RunningCheck> {
    if !programs::may_check(command) {
        return Vec::new();
    }
    let commands = line::commands_of(command).unwrap_or_else(|| line::unparsed(command));
    let printing = commands.iter().filter(|command| !programs::only_shows(&command.words)).count();
    let shows_files = commands.iter().any(|command| !command.is_filter && programs::shows_files(&command.words));
    let ends_softly = commands.last().is_some_and(|last| {
        let program = last.piped_into.last().unwrap_or(&last.words).first();
        let program = program.map_or("", |program| programs::base(program));
        matches!(program, "grep" | "egrep" | "fgrep" | "rg" | "find" | "diff" | "test" | "[")
    });
    let check = |command: &LineCommand| {
        let class = programs::class_of(&command.words)?;
        let exit = if command.background { ExitMeans::Nothing } else { command.exit };
        let drops = command.piped_into.iter().any(|filter| drops_lines(filter));
        let filtered = drops || command.redirected || shows_files;
        let (chain, alone, gates) = (command.chain, printing == 1, command.gates);
        Some(RunningCheck { class, exit, chain, filtered, alone, gates, ends_softly })
    };
    commands.iter().filter_map(check).take(CHECKS_OF_CALL).collect()
}

/// Whether a command line runs tests.
#[must_use]
pub fn runs_tests(command: &str) -> bool {
    run_tests(&checks_of(command))
}

/// Whether tests are among the checks of a command line.
pub(crate) fn run_tests(checks: &[RunningCheck]) -> bool {
    checks.iter().any(|check| check.class == CheckClass::Tests)
}

/// Whether the output of a command line is its own: none of its commands shows what was printed before.
fn prints_its_own(command: &str) -> bool {
    line::commands_of(command).is_some_and(|commands| {
        let shows = |command: &LineCommand| !command.is_filter && programs::shows_files(&command.words);
        !commands.iter().any(shows) && commands.iter().any(|command| !programs::only_shows(&command.words))
    })
}

/// Whether a filter may drop the line that reports failures.
fn drops_lines(filter: &[String]) -> bool {
    let words = || filter.iter().skip(1).map(String::as_str);
    match filter.first().map_or("", |program| programs::base(program)) {
        "cat" | "tail" | "Select-Object" | "tee" | "less" | "more" | "sort" | "cut" | "tr" | "nl" | "ts" => false,
        // A pattern that matches the summary line of a failed run too.
        "grep" | "egrep" | "rg" => {
            let drops = |word: &str| {
                let is_short = word.starts_with('-') && !word.starts_with("--");
                is_short && word.contains(['v', 'm']) || word == "--invert-match" || word.starts_with("--max-count")
            };
            let shows = |word: &str| {
                let word = word.to_ascii_lowercase();
                (word.contains("test result") || word.contains("tests:") || word.contains("fail"))
                    && !word.contains("ok")
                    && !word.ends_with("passed")
            };
            words().any(drops) || !words().any(shows)
        }
        _ => true,
    }
}

/// Records a call; `input` is its input, and `tasks` is the list of the session.
pub(crate) fn called(receipt: &mut Receipt, call: &ToolCall, input: Option<&str>, tasks: &mut TaskList) {
    if call.background && call.tool == ToolKind::Execute {
        receipt.background = receipt.background.saturating_add(1);
    }
    let left = |input| todo_left(&call.name, input).or_else(|| tasks.called(call, input));
    if let Some(left) = input.and_then(left) {
        receipt.todo_left = Some(left);
    }
}

/// Records what the programs of a line may have done without showing it.
pub(crate) fn hid(receipt: &mut Receipt, kind: LineKind) {
    match kind {
        LineKind::Shows | LineKind::Unknown => {}
        LineKind::Publishes => receipt.publishes = true,
        LineKind::Unlisted => receipt.unlisted = true,
        LineKind::Opaque => {
            receipt.opaque = true;
            receipt.checks.iter_mut().for_each(|check| check.opaque_after = true);
        }
    }
}

/// Whether a file belongs to no project: a temporary file, or a plan, a setting or the memory of an agent. No check
/// depends on it.
pub(crate) fn is_scratch(file: &str, cwd: Option<&str>) -> bool {
    const TEMPORARY: &[&str] = &["/tmp/", "/private/tmp/", "/var/tmp/", "/var/folders/", "/dev/shm/"];
    const OF_AGENTS: &[&str] = &["/.claude/", "/.codex/", "/.gemini/"];
    let is_inside = cwd.is_some_and(|cwd| file.strip_prefix(cwd).is_some_and(|rest| rest.starts_with('/')));
    let is_temporary = TEMPORARY.iter().any(|folder| file.starts_with(folder));
    let is_of_agent = file.starts_with('/') && OF_AGENTS.iter().any(|part| file.contains(part));
    !is_inside && (is_temporary || is_of_agent) || file.ends_with("/.claude/settings.local.json")
}

/// Records a finished edit of these files.
pub(crate) fn edited(receipt: &mut Receipt, files: &[String], outcome: ToolOutcome) {
    let files: Vec<String> = files.iter().map(|file| end_of_path(file)).collect();
    match outcome {
        ToolOutcome::Ok => {
            receipt.edits = receipt.edits.saturating_add(1);
            receipt.failed_edits.retain(|file| !files.contains(file));
            for check in receipt.checks.iter_mut().filter(|check| check.class.goes_stale()) {
                check.edits_after = check.edits_after.saturating_add(1);
                files.iter().for_each(|file| add_file(&mut check.files_after, file));
            }
        }
        ToolOutcome::Error => files.iter().for_each(|file| add_file(&mut receipt.failed_edits, file)),
        ToolOutcome::Denied | ToolOutcome::Cancelled | ToolOutcome::Blocked => {}
    }
}

/// Records the result of a command, with the checks that it ran.
pub(crate) fn ran(receipt: &mut Receipt, call: &FinishedCall<'_>, open: &OpenCall, event: EventId) {
    let (running, kind) = (&open.checks[..], open.line);
    match call.outcome {
        ToolOutcome::Ok | ToolOutcome::Error => {}
        // It did not run, or not to its end.
        ToolOutcome::Denied | ToolOutcome::Cancelled | ToolOutcome::Blocked => return,
    }
    let text = call.text.unwrap_or_default();
    // Claude Code refused the call itself, or the program has no such subcommand: no check ran.
    if text.starts_with("<tool_use_error>") || text.contains("error: unrecognized subcommand '") {
        return;
    }
    let mut found = running.to_vec();
    // A script of the project, a build or a hook of git that runs tests prints their summary.
    if kind != LineKind::Shows && !run_tests(running) {
        found.extend(tests_printed_by(call, text));
    }
    if found.is_empty() {
        return;
    }
    let running = &found[..];
    let is_published =
        |check: &RunningCheck| matches!(check.class, CheckClass::Commit | CheckClass::Push | CheckClass::Deploy);
    if running.iter().any(is_published) && shows_hooks(text) {
        receipt.unlisted = true;
    }
    let is_soft = call.exit_code.is_none() && running.iter().any(|check| check.ends_softly);
    let exit = match LineExit::of(call) {
        LineExit::Zero if is_soft => LineExit::Unknown,
        exit @ (LineExit::Zero | LineExit::NotZero | LineExit::Unknown) => exit,
    };
    let has_tests = running.iter().any(|check| check.class == CheckClass::Tests);
    let tests = if has_tests { summary::of_tests(text) } else { None };
    let printed = running.iter().map(|check| {
        // Of several builds, one may have printed the success.
        let is_of_class = |other: &&RunningCheck| other.class == check.class;
        let is_sure = check.class == CheckClass::Tests || running.iter().filter(is_of_class).count() == 1;
        check.printed(text, tests, exit, running.len() == 1).filter(|passed| !passed || is_sure)
    });
    let printed: Vec<Option<bool>> = printed.collect();
    let command = open.shown.as_deref().map(|shown| one_line(shown, COMMAND_CHARS)).unwrap_or_default();
    for (at, check) in running.iter().enumerate() {
        let of_chain = |other: usize| running[other].chain == check.chain;
        let later_ran = check.gates && (at + 1..running.len()).any(|other| of_chain(other) && printed[other].is_some());
        let earlier_failed = (0..at).any(|other| of_chain(other) && printed[other] == Some(false));
        if earlier_failed {
            // The chain ended before it.
            continue;
        }
        let mut verdict = check.verdict(printed[at], exit, later_ran, text, tests);
        // Of a chain that failed, the last command failed if all before it succeeded.
        let others_passed = at > 0 && (0..at).all(|other| of_chain(other) && printed[other] == Some(true));
        if exit == LineExit::NotZero && others_passed && at + 1 == running.len() && check.exit != ExitMeans::Nothing {
            verdict = CheckVerdict::Failed;
        }
        if check.class == CheckClass::Commit && verdict == CheckVerdict::Failed {
            if adding_failed(text) {
                continue;
            }
            // Everything is committed already.
            let is_again =
                receipt.check(CheckClass::Commit).is_some_and(|before| before.verdict == CheckVerdict::Passed);
            if is_again && text.contains("nothing to commit, working tree clean") {
                continue;
            }
        }
        let exit_code = call.exit_code.filter(|_| check.exit == ExitMeans::Own);
        let counts = tests.filter(|_| check.class == CheckClass::Tests);
        let counts = counts.and_then(|summary| summary.counts);
        let result = CheckResult { verdict, exit_code, counts, event, continues: open.continues.is_some() };
        put(receipt, check.class, &command, result);
    }
}

/// The result of a run.
struct CheckResult {
    verdict: CheckVerdict,
    exit_code: Option<i32>,
    counts: Option<TestCounts>,
    event: EventId,
    /// Whether the beginning of this run was recorded already.
    continues: bool,
}

fn put(receipt: &mut Receipt, class: CheckClass, command: &str, result: CheckResult) {
    let CheckResult { verdict, exit_code, counts, event, continues } = result;
    let before = receipt.checks.iter().position(|check| check.class == class).map(|at| receipt.checks.remove(at));
    let other_passed = before.as_ref().is_some_and(|before| {
        let is_other = before.command.split_whitespace().next() != command.split_whitespace().next();
        before.other_passed || before.verdict == CheckVerdict::Passed && is_other
    });
    let is_known = continues && before.as_ref().is_some_and(|before| before.command == command);
    let (tries, failures) = before.map_or((0, 0), |before| (before.tries, before.failures));
    let failures = match verdict {
        CheckVerdict::Passed => 0,
        CheckVerdict::Failed => failures.saturating_add(1),
        CheckVerdict::Unknown => failures,
    };
    receipt.checks.push(Check {
        class,
        command: command.to_owned(),
        verdict,
        exit_code,
        counts,
        event,
        tries: tries.saturating_add(u32::from(!is_known)),
        failures,
        edits_after: 0,
        files_after: Vec::new(),
        opaque_after: false,
        other_passed,
    });
}

/// A path in one line; of a long one, its last parts.
pub(crate) fn end_of_path(path: &str) -> String {
    let path = one_line(path, usize::MAX);
    let Some((from, _)) = path.char_indices().rev().nth(FILE_CHARS - 1).filter(|(from, _)| *from > 0) else {
        return path;
    };
    let end = &path[from..];
    format!("…{}", end.find('/').map_or(end, |at| &end[at..]))
}

pub(crate) fn add_file(files: &mut Vec<String>, file: &str) {
    if files.len() < FILES && !files.iter().any(|known| known == file) {
        files.push(file.to_owned());
    }
}

/// Whether the end of a text looks like the summary of a test runner.
pub(crate) fn may_end_in_summary(text: &str) -> bool {
    summary::of_tests(text).is_some()
}

/// What is known about the exit code of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineExit {
    Zero,
    NotZero,
    Unknown,
}

impl LineExit {
    fn of(call: &FinishedCall<'_>) -> Self {
        // Some agents begin the text of an error with the exit code.
        let written = || crate::failure::exit_code_in(call.text.filter(|_| call.outcome == ToolOutcome::Error)?);
        match (call.exit_code.or_else(written), call.outcome) {
            // `timeout` ended the command.
            (Some(124), _) => Self::Unknown,
            (Some(0), _) => Self::Zero,
            (Some(_), _) => Self::NotZero,
            // Agents report a failed command as an error.
            (None, ToolOutcome::Ok) if !call.text.is_some_and(still_runs) => Self::Zero,
            (None, ToolOutcome::Error) if !call.text.is_some_and(was_stopped) => Self::NotZero,
            (None, _) => Self::Unknown,
        }
    }
}

/// Whether an error of a tool says that the command was stopped, so that its result is not known.
fn was_stopped(text: &str) -> bool {
    begins_with_one_of(text, &["timed out", "timeout", "aborted", "interrupted", "killed", "cancelled"])
}

/// Whether a result says that the command continues in the background.
fn still_runs(text: &str) -> bool {
    begins_with_one_of(
        text,
        &["running in background", "running in the background", "process running with session", "still running"],
    )
}

/// Whether the beginning of a text contains one of these words, which are in lower case.
fn begins_with_one_of(text: &str, words: &[&str]) -> bool {
    const FIRST_BYTES: usize = 300;
    let first = text[..text.floor_char_boundary(FIRST_BYTES)].to_ascii_lowercase();
    words.iter().any(|word| first.contains(word))
}

impl ExitMeans {
    /// Whether the exit code of a line shows that the command succeeded.
    const fn shows_success(self, exit: LineExit) -> bool {
        matches!((self, exit), (Self::Own | Self::SuccessOnly, LineExit::Zero))
    }
}

impl RunningCheck {
    /// Whether the output says that it succeeded; `None` if it says nothing.
    fn printed(&self, text: &str, tests: Option<TestSummary>, exit: LineExit, is_only: bool) -> Option<bool> {
        match self.class {
            CheckClass::Tests => {
                let summary = tests?;
                let is_empty = summary.counts.is_some_and(|counts| counts.passed == 0);
                if summary.failed {
                    Some(false)
                } else if self.filtered || is_empty || summary.doubtful || is_cut(text) {
                    None
                } else {
                    Some(true)
                }
            }
            CheckClass::Commit | CheckClass::Push | CheckClass::Merge => {
                // git exits with 0 only if it did it: another command printed the failure.
                let printed = summary::of_git(self.class, text, self.alone);
                printed.filter(|passed| *passed || !self.exit.shows_success(exit))
            }
            CheckClass::Build | CheckClass::Types | CheckClass::Lint | CheckClass::Format => {
                summary::of_checker(self.class, text, is_only).filter(|passed| !passed || !self.filtered)
            }
            CheckClass::Deploy | CheckClass::Install => None,
        }
    }

    fn verdict(
        &self,
        printed: Option<bool>,
        exit: LineExit,
        later_ran: bool,
        text: &str,
        tests: Option<TestSummary>,
    ) -> CheckVerdict {
        let by_exit = match (self.exit, exit) {
            // `cd` failed before it.
            (ExitMeans::Own | ExitMeans::FailureOnly, LineExit::NotZero) if begins_with_one_of(text, &["cd: "]) => None,
            (means, exit) if means.shows_success(exit) => Some(true),
            (ExitMeans::Own | ExitMeans::FailureOnly, LineExit::NotZero) => Some(false),
            _ if later_ran => Some(true),
            (ExitMeans::Own | ExitMeans::SuccessOnly | ExitMeans::FailureOnly | ExitMeans::Nothing, _) => None,
        };
        // In a line that failed, another command may have printed the success.
        let printed = printed.filter(|passed| {
            let is_sure = self.alone || self.class == CheckClass::Commit;
            !passed || exit != LineExit::NotZero || later_ran || is_sure
        });
        // A run of no tests shows nothing.
        let is_empty = self.class == CheckClass::Tests && summary::ran_nothing(text, tests);
        match (printed, by_exit) {
            // A printed failure counts even if the line succeeded, and a failed line even if a part printed success.
            (Some(false), _) | (_, Some(false)) => CheckVerdict::Failed,
            (Some(true), _) => CheckVerdict::Passed,
            (None, Some(true)) if !is_empty => CheckVerdict::Passed,
            (None, Some(true) | None) => CheckVerdict::Unknown,
        }
    }
}

/// Whether the output of a commit, a push or a publication shows that hooks ran, which may check anything.
fn shows_hooks(text: &str) -> bool {
    const SIGNS: &[&str] = &[
        "husky",
        "lint-staged",
        "lefthook",
        "pre-commit",
        "pre-push",
        "prepublish",
        "prepack",
        "eslint",
        "prettier",
        "....Passed",
        "Running tasks for",
        "[STARTED]",
        "overcommit",
    ];
    SIGNS.iter().any(|sign| text.contains(sign))
}

/// Whether `git add` failed, so that a commit behind `&&` did not run. `git commit` prints `error: pathspec` instead.
fn adding_failed(text: &str) -> bool {
    text.contains("fatal: pathspec '") || text.contains("paths are ignored by one of your .gitignore files")
}

/// Whether a part of an output is missing.
fn is_cut(text: &str) -> bool {
    ["<persisted-output>", "tokens truncated", "characters truncated", "[output truncated"]
        .iter()
        .any(|sign| text.contains(sign))
}

/// The tests that a command ran although its words do not say so, by the summary it printed.
fn tests_printed_by(call: &FinishedCall<'_>, text: &str) -> Option<RunningCheck> {
    // A runner prints its summary at the end.
    let end = &text[text.ceil_char_boundary(text.len().saturating_sub(END_BYTES))..];
    summary::of_tests(end).filter(|summary| summary.counts.is_some())?;
    let prints = call.title.is_some_and(prints_its_own);
    prints.then_some(RunningCheck {
        class: CheckClass::Tests,
        exit: ExitMeans::FailureOnly,
        chain: 0,
        filtered: false,
        alone: false,
        gates: false,
        ends_softly: false,
    })
}

/// The number of items not done in a to-do list; `None` if the tool does not write one.
fn todo_left(tool: &str, input: &str) -> Option<u32> {
    if !matches!(tool, "TodoWrite" | "update_plan" | "write_todos" | "todo" | "todowrite") {
        return None;
    }
    let input: serde_json::Value = serde_json::from_str(input).ok()?;
    let items = ["todos", "plan", "items"].iter().find_map(|key| input.get(key)?.as_array())?;
    let is_left = |item: &&serde_json::Value| {
        let state = ["status", "state"].iter().find_map(|key| item.get(key)?.as_str());
        !matches!(state, Some("completed" | "done" | "cancelled"))
    };
    u32::try_from(items.iter().filter(is_left).count()).ok()
}

#[cfg(test)]
mod tests;
