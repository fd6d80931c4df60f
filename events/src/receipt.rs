//! Receipts: what the checks of a turn showed. `projections` makes them from the calls of a turn.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{EventId, payload::skip::is_zero};

/// What a command checks or publishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckClass {
    /// Runs tests.
    Tests,
    /// Compiles or bundles.
    Build,
    /// Checks types.
    Types,
    /// Looks for likely mistakes.
    Lint,
    /// Formats files or checks their format.
    Format,
    /// Commits to version control.
    Commit,
    /// Pushes to a remote repository.
    Push,
    /// Merges branches or a pull request.
    Merge,
    /// Deploys or publishes.
    Deploy,
    /// Installs dependencies.
    Install,
}

impl CheckClass {
    /// Every class.
    pub const ALL: [Self; 10] = [
        Self::Tests,
        Self::Build,
        Self::Types,
        Self::Lint,
        Self::Format,
        Self::Commit,
        Self::Push,
        Self::Merge,
        Self::Deploy,
        Self::Install,
    ];

    /// Its name in a sentence, before `failed`.
    #[must_use]
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Tests => "tests",
            Self::Build => "build",
            Self::Types => "type check",
            Self::Lint => "lint",
            Self::Format => "format",
            Self::Commit => "commit",
            Self::Push => "push",
            Self::Merge => "merge",
            Self::Deploy => "deploy",
            Self::Install => "install",
        }
    }

    /// The words for a check that passed.
    const fn passed(self) -> &'static str {
        match self {
            Self::Tests => "tests passed",
            Self::Build => "build passed",
            Self::Types => "type check passed",
            Self::Lint => "lint passed",
            Self::Format => "format passed",
            Self::Commit => "committed",
            Self::Push => "pushed",
            Self::Merge => "merged",
            Self::Deploy => "deployed",
            Self::Install => "installed",
        }
    }

    /// Whether an edit after it makes its result out of date.
    #[must_use]
    pub const fn goes_stale(self) -> bool {
        match self {
            Self::Tests | Self::Build | Self::Types | Self::Lint | Self::Format | Self::Commit => true,
            Self::Push | Self::Merge | Self::Deploy | Self::Install => false,
        }
    }

    /// Whether a summary leaves it out unless it failed.
    const fn is_minor(self) -> bool {
        match self {
            Self::Build | Self::Types | Self::Lint | Self::Format | Self::Install => true,
            Self::Tests | Self::Commit | Self::Push | Self::Merge | Self::Deploy => false,
        }
    }
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckVerdict {
    /// It succeeded.
    Passed,
    /// It failed.
    Failed,
    /// Nothing shows how it ended: its exit code is hidden by a pipe, or it still runs.
    Unknown,
}

/// The numbers that a test runner printed, added up over its summaries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestCounts {
    /// Tests that passed.
    pub passed: u32,
    /// Tests that failed, and errors.
    pub failed: u32,
    /// Tests that were skipped or ignored.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u32,
}

impl TestCounts {
    /// Adds other counts.
    pub const fn add(&mut self, other: Self) {
        self.passed = self.passed.saturating_add(other.passed);
        self.failed = self.failed.saturating_add(other.failed);
        self.skipped = self.skipped.saturating_add(other.skipped);
    }
}

/// The last run of a check of one class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// What it checks.
    pub class: CheckClass,
    /// The command, shortened.
    pub command: String,
    /// How it ended.
    pub verdict: CheckVerdict,
    /// The exit code of the command line, if known and if it is that of this command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The numbers that the test runner printed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<TestCounts>,
    /// The event of its result.
    pub event: EventId,
    /// Number of runs of this class in the turn.
    pub tries: u32,
    /// Number of runs that failed since the last run that passed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: u32,
    /// Number of edits after it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub edits_after: u32,
    /// The files of these edits, each once; at most 3.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files_after: Vec<String>,
    /// Whether a program ran after it that may have run this check again without showing a result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub opaque_after: bool,
    /// Whether another command of this class passed before it in the same turn, such as the tests of another package.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub other_passed: bool,
}

/// What the checks of a turn showed. The changed files and the denied calls are in the turn's `work`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Receipt {
    /// The last run of each class, in the order of these runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// The files whose last edit failed, each once; at most 3.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_edits: Vec<String>,
    /// Number of commands that the agent left running in the background.
    #[serde(skip_serializing_if = "is_zero")]
    pub background: u32,
    /// Number of items of the agent's to-do list that are not done; absent without a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub todo_left: Option<u32>,
    /// Number of edits that were carried out.
    #[serde(skip_serializing_if = "is_zero")]
    pub edits: u32,
    /// Whether a program ran that may have run checks without showing their results: a script, a tool of an MCP server,
    /// a sub-agent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub opaque: bool,
    /// Whether a program ran that capture does not know: it may have run any check.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unlisted: bool,
    /// Whether a program ran that may have committed, pushed, merged or deployed in a way that capture does not know.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub publishes: bool,
    /// The statements of the agent's last message, compared with the checks; at most 4.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<ClaimCheck>,
}

/// What the agent's last message says was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClaimSubject {
    /// The tests pass.
    Tests,
    /// The code compiles.
    Build,
    /// The types are correct.
    Types,
    /// The linter reports nothing.
    Lint,
    /// The changes are committed.
    Commit,
    /// The commits are pushed.
    Push,
    /// A branch or pull request is merged.
    Merge,
    /// The program is deployed or published.
    Deploy,
    /// All items of the to-do list are done.
    Todo,
}

impl ClaimSubject {
    /// The check that shows whether it is true; `None` for the to-do list.
    #[must_use]
    pub const fn class(self) -> Option<CheckClass> {
        Some(match self {
            Self::Tests => CheckClass::Tests,
            Self::Build => CheckClass::Build,
            Self::Types => CheckClass::Types,
            Self::Lint => CheckClass::Lint,
            Self::Commit => CheckClass::Commit,
            Self::Push => CheckClass::Push,
            Self::Merge => CheckClass::Merge,
            Self::Deploy => CheckClass::Deploy,
            Self::Todo => return None,
        })
    }
}

/// What the record of a session says about a statement of its agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClaimVerdict {
    /// The last check shows that it is true.
    Supported,
    /// The last check showed it, but files were edited after it.
    Stale,
    /// The last check shows that it is false.
    Contradicted,
    /// No check ran that could show it.
    Unsupported,
    /// The record is not complete enough to decide.
    Undecided,
}

impl ClaimVerdict {
    /// Whether the agent's statement does not agree with the record.
    #[must_use]
    pub const fn accuses(self) -> bool {
        match self {
            Self::Stale | Self::Contradicted | Self::Unsupported => true,
            Self::Supported | Self::Undecided => false,
        }
    }

    /// Its name, as in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Supported => "supported",
            Self::Stale => "stale",
            Self::Contradicted => "contradicted",
            Self::Unsupported => "unsupported",
            Self::Undecided => "undecided",
        }
    }
}

/// A statement of an agent, compared with what its commands showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimCheck {
    /// What the statement is about.
    pub about: ClaimSubject,
    /// The sentence, shortened.
    pub said: String,
    /// What the record says about it.
    pub verdict: ClaimVerdict,
    /// Why, in words.
    pub why: String,
    /// The event of the result that decided; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<EventId>,
}

impl Receipt {
    /// Whether nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The last run of a class.
    #[must_use]
    pub fn check(&self, class: CheckClass) -> Option<&Check> {
        self.checks.iter().find(|check| check.class == class)
    }

    /// The most important parts in words: `tests 297 passed, then 5 edits`, `commit failed ×7`. Without tests, also the
    /// last other check.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let is_major = |check: &Check| check.verdict == CheckVerdict::Failed || !check.class.is_minor();
        let has_tests = self.check(CheckClass::Tests).is_some();
        let other = self.checks.iter().rev().find(|check| !has_tests && check.class.is_minor());
        let other = other.map(|check| check.class);
        let shown = |check: &&Check| is_major(check) || other == Some(check.class);
        self.checks.iter().filter(shown).map(Check::words).collect()
    }
}

impl Receipt {
    /// Its most important parts in one line; `None` without checks.
    #[must_use]
    pub fn line(&self) -> Option<String> {
        let words = self.words();
        (!words.is_empty()).then(|| words.join(" · "))
    }

    /// Whether the last run of an important check failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.checks.iter().any(|check| check.verdict == CheckVerdict::Failed && !check.class.is_minor())
    }
}

impl Check {
    /// In words: `tests 297 passed, then 5 edits`.
    #[must_use]
    pub fn words(&self) -> String {
        let noun = self.class.noun();
        let mut words = match (self.verdict, self.counts) {
            (CheckVerdict::Passed, Some(counts)) if counts.passed > 0 => format!("{noun} {} passed", counts.passed),
            (CheckVerdict::Passed, _) => self.class.passed().to_owned(),
            (CheckVerdict::Failed, Some(counts)) if counts.failed > 0 => {
                let all = counts.passed.saturating_add(counts.failed);
                format!("{noun} {} of {all} failed", counts.failed)
            }
            (CheckVerdict::Failed, _) => format!("{noun} failed"),
            (CheckVerdict::Unknown, _) => format!("{noun}: result unknown"),
        };
        if self.verdict == CheckVerdict::Failed && self.failures > 1 {
            words += &format!(" ×{}", self.failures);
        }
        match self.edits_after {
            0 => {}
            1 => words += ", then 1 edit",
            edits => words += &format!(", then {edits} edits"),
        }
        words
    }
}
