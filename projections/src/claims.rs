//! Claims: what an agent's last message says was done, compared with the receipts of its session.
//!
//! The verdict accuses only on evidence that is complete: the last check failed, files were edited after it, or no check
//! ran at all. A gap in the record, a program that may have run the check unseen, or a disclosure in the message makes
//! the verdict `undecided`.

mod grammar;

use events::{Check, CheckClass, CheckVerdict, ClaimCheck, ClaimSubject, ClaimVerdict, EventId, Receipt};
use serde::{Deserialize, Serialize};

use crate::{receipt, shorten::one_line};
use grammar::{Statement, statements};

/// Maximum number of statements kept per turn.
const CLAIMS: usize = 4;
/// Longest sentence kept, characters.
const SAID_CHARS: usize = 120;
/// Number of files named in a reason.
const FILES: usize = 2;

/// The checks of the finished turns of a session: the last run of each class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CheckHistory {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    checks: Vec<Check>,
    /// Whether a turn ran programs that may have run checks without showing their results.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    opaque: bool,
    /// Whether a turn ran programs that are not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    unlisted: bool,
    /// Whether a turn ran programs that may have committed, pushed, merged or deployed unseen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    publishes: bool,
}

impl CheckHistory {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds a finished turn that changed these files.
    pub(crate) fn add(&mut self, receipt: &Receipt, files: &[String]) {
        // The result of a background command may become known in a later turn.
        let continues = receipt.background > 0;
        self.opaque |= receipt.opaque || continues;
        self.unlisted |= receipt.unlisted;
        self.publishes |= receipt.publishes;
        self.checks.retain(|check| receipt.check(check.class).is_none());
        self.checks.iter_mut().for_each(|check| age(check, receipt, files));
        self.checks.extend(receipt.checks.iter().cloned());
        self.checks.iter_mut().for_each(|check| check.opaque_after |= continues);
    }
}

/// Counts the edits and programs of a later turn.
fn age(check: &mut Check, receipt: &Receipt, files: &[String]) {
    if check.class.goes_stale() {
        check.edits_after = check.edits_after.saturating_add(receipt.edits);
        files.iter().for_each(|file| receipt::add_file(&mut check.files_after, &receipt::end_of_path(file)));
    }
    check.opaque_after |= receipt.opaque;
}

/// What is known about the record of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub(crate) receipt: &'a Receipt,
    /// The files that the turn changed.
    pub(crate) files: &'a [String],
    pub(crate) history: &'a CheckHistory,
    /// Whether a part of the record is missing: the turn has calls without a result, or the conversation began
    /// elsewhere.
    pub(crate) has_gap: bool,
}

/// Compares the statements of a message with the record of its session.
pub(crate) fn judge(text: &str, record: Record<'_>) -> Vec<ClaimCheck> {
    let mut found = statements(text);
    found.made.truncate(CLAIMS);
    let (disclosed, reports_failure) = (found.disclosed, found.reports_failure);
    let judged = found.made.into_iter().filter_map(|statement| {
        let mut verdict = record.verdict(&statement);
        let last = statement.about.class().and_then(|class| record.last(class));
        let reports_it = reports_failure && last.is_some_and(|check| check.verdict == CheckVerdict::Failed);
        if verdict.is.accuses() && (reports_it || disclosed.contains(&statement.about)) {
            verdict = Verdict { is: ClaimVerdict::Undecided, why: "the message discloses a gap".to_owned(), ..verdict };
        }
        // "Everything passes" may be about anything, unless the last tests failed.
        if statement.is_loose && !matches!(verdict.is, ClaimVerdict::Contradicted | ClaimVerdict::Supported) {
            return None;
        }
        Some(ClaimCheck {
            about: statement.about,
            said: one_line(&statement.sentence, SAID_CHARS),
            verdict: verdict.is,
            why: verdict.why,
            event: verdict.event,
        })
    });
    judged.collect()
}

struct Verdict {
    is: ClaimVerdict,
    why: String,
    event: Option<EventId>,
}

impl Verdict {
    fn undecided(why: &str) -> Self {
        Self { is: ClaimVerdict::Undecided, why: why.to_owned(), event: None }
    }
}

impl Record<'_> {
    /// The last run of a class, in this turn or before it.
    fn last(&self, class: CheckClass) -> Option<Check> {
        if let Some(check) = self.receipt.check(class) {
            return Some(check.clone());
        }
        let mut check = self.history.checks.iter().find(|check| check.class == class)?.clone();
        age(&mut check, self.receipt, self.files);
        Some(check)
    }

    fn verdict(&self, statement: &Statement) -> Verdict {
        let Some(class) = statement.about.class() else { return self.of_todo_list() };
        let shows = |check: &Check| check.class == class || check.class != CheckClass::Lint || compiles(&check.command);
        let checks = shown_by(statement.about).iter().filter_map(|class| self.last(*class));
        let checks: Vec<Check> = checks.filter(shows).collect();
        let fresh = checks.iter().find(|check| check.verdict == CheckVerdict::Passed && !is_outdated(check));
        if let Some(check) = fresh {
            return self.of_passed(check, statement.tests);
        }
        let Some(check) = checks.into_iter().next() else { return self.without_check(class) };
        let event = Some(check.event);
        let noun = class.noun();
        if check.verdict == CheckVerdict::Unknown {
            return Verdict {
                event,
                ..Verdict::undecided(&format!("the result of the last {} is unknown", run_of(check.class)))
            };
        }
        if check.opaque_after {
            let why = format!("a later program may have run the {noun} again without showing a result");
            return Verdict { event, ..Verdict::undecided(&why) };
        }
        if self.has_gap {
            return Verdict { event, ..Verdict::undecided(INCOMPLETE) };
        }
        // "39 tests pass", of 41.
        let says_all = statement.sentence.to_lowercase().contains("all ");
        let counted = check.counts.filter(|counts| !says_all && statement.tests == Some(counts.passed));
        if check.verdict == CheckVerdict::Failed && (check.other_passed || counted.is_some()) {
            let why = if counted.is_some() { shown(&check) } else { format!("another {} passed", run_of(check.class)) };
            return Verdict { event, ..Verdict::undecided(&why) };
        }
        // Everything may have been committed before.
        let before =
            self.history.checks.iter().any(|check| check.class == class && check.verdict == CheckVerdict::Passed);
        if check.verdict == CheckVerdict::Failed && class == CheckClass::Commit && self.receipt.edits == 0 && before {
            return Verdict { event, ..Verdict::undecided("an earlier turn committed, and nothing was edited since") };
        }
        let edits = edits_after(&check);
        let (is, why) = match (check.verdict, edits) {
            (CheckVerdict::Passed, edits) => {
                (ClaimVerdict::Stale, format!("{}, then {}", shown(&check), edits.unwrap_or_default()))
            }
            (_, None) => (ClaimVerdict::Contradicted, format!("the last {} failed", run_of(check.class))),
            (_, Some(edits)) => {
                let why = format!("the last {} failed, then {edits}, and it was not run again", run_of(check.class));
                (ClaimVerdict::Unsupported, why)
            }
        };
        Verdict { is, why, event }
    }

    /// A check that passed and is not outdated.
    fn of_passed(&self, check: &Check, tests: Option<u32>) -> Verdict {
        let event = Some(check.event);
        let all = check.counts.map(|counts| counts.passed.saturating_add(counts.failed).saturating_add(counts.skipped));
        let (Some(tests), Some(all), CheckClass::Tests) = (tests, all, check.class) else {
            return Verdict { is: ClaimVerdict::Supported, why: shown(check), event };
        };
        if tests <= all {
            return Verdict { is: ClaimVerdict::Supported, why: shown(check), event };
        }
        let ran_once = check.tries == 1 && self.history.checks.iter().all(|check| check.class != CheckClass::Tests);
        let is_complete = !self.has_gap && !self.receipt.opaque && !self.history.opaque;
        let why = format!("the last test run had {all} tests, not {tests}");
        let is = if ran_once && is_complete { ClaimVerdict::Contradicted } else { ClaimVerdict::Undecided };
        Verdict { is, why, event }
    }

    fn without_check(&self, class: CheckClass) -> Verdict {
        let ran = |class| self.last(class).is_some();
        // A server may do these after a push.
        if matches!(class, CheckClass::Merge | CheckClass::Deploy) && ran(CheckClass::Push) {
            return Verdict::undecided("the push may have caused it");
        }
        // `make check` may also lint, and `npm run lint` may check types.
        let is_task = |class| self.last(class).is_some_and(|check| receipt::runs_a_task(&check.command));
        let may_test = |class| self.last(class).is_some_and(|check| receipt::may_test(&check.command));
        let may_include =
            |others: &[CheckClass]| others.iter().copied().find(|other| is_task(*other) || may_test(*other));
        let by = match class {
            CheckClass::Build | CheckClass::Types | CheckClass::Lint => {
                may_include(&[CheckClass::Tests, CheckClass::Lint, CheckClass::Types, CheckClass::Build])
            }
            CheckClass::Tests => {
                let others = [CheckClass::Build, CheckClass::Lint, CheckClass::Types, CheckClass::Install];
                others.into_iter().find(|other| may_test(*other))
            }
            // `docker push` publishes an image.
            CheckClass::Push => self.last(CheckClass::Deploy).map(|check| check.class),
            CheckClass::Commit => self.last(CheckClass::Merge).map(|check| check.class),
            CheckClass::Format | CheckClass::Merge | CheckClass::Deploy | CheckClass::Install => None,
        };
        if let Some(by) = by {
            return Verdict::undecided(&format!("the last {} may include it", run_of(by)));
        }
        let is_published =
            matches!(class, CheckClass::Commit | CheckClass::Push | CheckClass::Merge | CheckClass::Deploy);
        let publishes = self.receipt.publishes || self.history.publishes;
        let unlisted = self.receipt.unlisted || self.history.unlisted;
        if self.receipt.opaque || self.history.opaque || unlisted || is_published && publishes {
            return Verdict::undecided("a program that ran may have done it without showing a result");
        }
        if self.has_gap {
            return Verdict::undecided(INCOMPLETE);
        }
        if self.receipt.edits == 0 && self.receipt.checks.is_empty() {
            return Verdict::undecided(
                "the turn changed and checked nothing, so the statement may be about earlier work",
            );
        }
        let why = match class {
            CheckClass::Tests => "no test ran in this session",
            CheckClass::Build => "nothing was built in this session",
            CheckClass::Types => "no type check ran in this session",
            CheckClass::Lint => "no linter ran in this session",
            CheckClass::Commit => "no `git commit` ran in this session",
            CheckClass::Push => "no `git push` ran in this session",
            CheckClass::Merge => "no command merged anything in this session",
            CheckClass::Deploy => "no command deployed anything in this session",
            CheckClass::Format | CheckClass::Install => "no command shows it",
        };
        Verdict { is: ClaimVerdict::Unsupported, why: why.to_owned(), event: None }
    }

    fn of_todo_list(&self) -> Verdict {
        let (is, why) = match self.receipt.todo_left {
            None => return Verdict::undecided("the turn did not update a to-do list"),
            Some(0) => (ClaimVerdict::Supported, "every item of the to-do list is done".to_owned()),
            Some(1) => (ClaimVerdict::Contradicted, "1 item of its to-do list is not done".to_owned()),
            Some(left) => (ClaimVerdict::Contradicted, format!("{left} items of its to-do list are not done")),
        };
        let is = if self.has_gap && is.accuses() { ClaimVerdict::Undecided } else { is };
        Verdict { is, why, event: None }
    }
}

const INCOMPLETE: &str = "the record of the turn is not complete";

/// The checks that can show a statement, best first: tests that pass also compile.
const fn shown_by(about: ClaimSubject) -> &'static [CheckClass] {
    match about {
        ClaimSubject::Tests => &[CheckClass::Tests],
        ClaimSubject::Build => &[CheckClass::Build, CheckClass::Types, CheckClass::Tests, CheckClass::Lint],
        ClaimSubject::Types => &[CheckClass::Types, CheckClass::Build, CheckClass::Lint],
        ClaimSubject::Lint => &[CheckClass::Lint],
        ClaimSubject::Commit => &[CheckClass::Commit],
        ClaimSubject::Push => &[CheckClass::Push],
        ClaimSubject::Merge => &[CheckClass::Merge, CheckClass::Push],
        ClaimSubject::Deploy => &[CheckClass::Deploy],
        ClaimSubject::Todo => &[],
    }
}

/// Whether a linter compiles the code that it examines, as Clippy does.
fn compiles(command: &str) -> bool {
    ["clippy", "vet", "golangci-lint", "credo", "staticcheck"].iter().any(|linter| command.contains(linter))
}

/// Whether files that the check depends on were edited after it.
fn is_outdated(check: &Check) -> bool {
    edits_after(check).is_some()
}

/// The edits after a check, in words; `None` if none of them changes its result.
fn edits_after(check: &Check) -> Option<String> {
    if check.edits_after == 0 {
        return None;
    }
    // Documents are committed, but neither compiled nor tested.
    let all_named = (1..receipt::FILES).contains(&check.files_after.len());
    if check.class != CheckClass::Commit && all_named && check.files_after.iter().all(|file| is_document(file)) {
        return None;
    }
    let edits = if check.edits_after == 1 { "1 edit".to_owned() } else { format!("{} edits", check.edits_after) };
    let names: Vec<&str> = check.files_after.iter().take(FILES).map(|file| file_name(file)).collect();
    Some(if names.is_empty() {
        edits
    } else {
        format!("{edits} ({}{})", names.join(", "), if check.files_after.len() > FILES { ", …" } else { "" })
    })
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

fn is_document(file: &str) -> bool {
    let name = file_name(file).to_ascii_lowercase();
    let is_named = ["license", "changelog", "readme", "authors", "notice", ".gitignore"].contains(&name.as_str());
    is_named || [".md", ".mdx", ".txt", ".rst", ".adoc"].iter().any(|end| name.ends_with(end))
}

/// What a check showed, without the edits after it.
fn shown(check: &Check) -> String {
    Check { edits_after: 0, ..check.clone() }.words()
}

const fn run_of(class: CheckClass) -> &'static str {
    match class {
        CheckClass::Tests => "test run",
        CheckClass::Build => "build",
        CheckClass::Types => "type check",
        CheckClass::Lint => "lint run",
        CheckClass::Format => "format run",
        CheckClass::Commit => "commit",
        CheckClass::Push => "push",
        CheckClass::Merge => "merge",
        CheckClass::Deploy => "deployment",
        CheckClass::Install => "installation",
    }
}

#[cfg(test)]
mod tests;
