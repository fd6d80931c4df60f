//! Classifies failures of tools and errors by their text.
//!
//! Owns the kinds and the words that identify them. The tables of words are tried in a fixed order, the most certain
//! first. Only the head and the tail of a long text are examined. A failure that no table identifies is
//! [`FailureKind::Other`].

use std::sync::{LazyLock, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use events::{ErrorClass, ErrorReported, ToolKind, ToolOutcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::words::{
    AUTH, DISK, HARD_TYPE_ERROR, MERGE_CONFLICT, MISSING, NETWORK, PERMISSION, PROVIDER, RATE_LIMIT, TEST_FAILURE,
    TESTS_FAILED, TYPE_ERROR,
};
use crate::receipt::runs_tests;

mod words;

/// Bytes examined at the head of a long text.
const HEAD_BYTES: usize = 4 << 10;
/// Bytes examined at the tail of a long text, where most tools report the outcome.
const TAIL_BYTES: usize = 12 << 10;

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// Not signed in, or the key, the password or the token was refused.
    Auth,
    /// A program, a package, a module or a header is missing.
    MissingDependency,
    /// A test failed.
    TestFailure,
    /// A compiler, a type checker or a parser rejected the code.
    TypeError,
    /// A merge has conflicts.
    MergeConflict,
    /// Too many requests, or a quota is exhausted.
    RateLimit,
    /// The network, or a connection that broke.
    Network,
    /// The model's provider failed.
    ProviderCrash,
    /// The system, a sandbox or a rule denied the action.
    Permission,
    /// No space left, or a failing disk.
    Disk,
    /// Anything else.
    Other,
}

impl FailureKind {
    /// Every kind.
    pub const ALL: &'static [Self] = &[
        Self::Auth,
        Self::MissingDependency,
        Self::TestFailure,
        Self::TypeError,
        Self::MergeConflict,
        Self::RateLimit,
        Self::Network,
        Self::ProviderCrash,
        Self::Permission,
        Self::Disk,
        Self::Other,
    ];

    /// The one spelling used on every interface.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::MissingDependency => "missing_dependency",
            Self::TestFailure => "test_failure",
            Self::TypeError => "type_error",
            Self::MergeConflict => "merge_conflict",
            Self::RateLimit => "rate_limit",
            Self::Network => "network",
            Self::ProviderCrash => "provider_crash",
            Self::Permission => "permission",
            Self::Disk => "disk",
            Self::Other => "other",
        }
    }
}

/// What is known about a finished tool call.
#[derive(Debug, Clone, Copy)]
pub struct FinishedCall<'a> {
    /// What the tool does.
    pub tool: ToolKind,
    /// One line about the call: the command.
    pub title: Option<&'a str>,
    /// The exit code of a command, when known.
    pub exit_code: Option<i32>,
    /// The outcome that the agent reported.
    pub outcome: ToolOutcome,
    /// The output.
    pub text: Option<&'a str>,
}

/// Classifies the failure of a finished call; `None` if the call did not fail. A refusal by the user and a cancelled
/// call are not failures. A command that exited with 0 may still have failed, for example behind a pipe; this counts
/// only if the output of a test, a build or a merge reports the failure.
#[must_use]
pub fn classify(returned: &FinishedCall<'_>) -> Option<FailureKind> {
    let failed = match returned.outcome {
        ToolOutcome::Denied | ToolOutcome::Cancelled => return None,
        ToolOutcome::Blocked => return Some(FailureKind::Permission),
        ToolOutcome::Error => true,
        ToolOutcome::Ok => returned.exit_code.is_some_and(|code| code != 0),
    };
    let text = returned.text.unwrap_or_default();
    if failed {
        let text = HeadAndTail::of(text);
        let code = returned.exit_code.or_else(|| text.exit_code());
        // `grep` and `diff` exit with 1 for "no match" and "different".
        if code == Some(1) && returned.tool == ToolKind::Execute && returned.title.is_some_and(asks_by_exit_code) {
            return None;
        }
        return Some(text.kind().unwrap_or(match code {
            Some(127) => FailureKind::MissingDependency,
            Some(126) => FailureKind::Permission,
            Some(_) | None => FailureKind::Other,
        }));
    }
    let title = returned.title.filter(|_| returned.tool == ToolKind::Execute)?;
    let (tests, git) = (runs_tests(title), words(title).any(|word| word == "git"));
    let compiles = tests || builds(title);
    // Most commands return here, before the possibly long text is examined.
    if !compiles && !git {
        return None;
    }
    let text = HeadAndTail::for_few(text);
    if tests && text.says_tests_failed() {
        return Some(FailureKind::TestFailure);
    }
    if compiles && text.says_any(SignTable::HardTypeError) {
        return Some(FailureKind::TypeError);
    }
    (git && text.says_any(SignTable::MergeConflict)).then_some(FailureKind::MergeConflict)
}

/// Classifies an error reported by the agent.
#[must_use]
pub fn classify_error(error: &ErrorReported, text: Option<&str>) -> FailureKind {
    match error.class {
        ErrorClass::Auth => FailureKind::Auth,
        ErrorClass::RateLimit | ErrorClass::Quota => FailureKind::RateLimit,
        ErrorClass::Network => FailureKind::Network,
        ErrorClass::Provider => FailureKind::ProviderCrash,
        ErrorClass::Context => FailureKind::Other,
        ErrorClass::Other => match error.code.as_deref().and_then(|code| code.parse::<u16>().ok()) {
            Some(401 | 403) => FailureKind::Auth,
            Some(402 | 429) => FailureKind::RateLimit,
            Some(500..=599) => FailureKind::ProviderCrash,
            Some(_) | None => HeadAndTail::of(text.unwrap_or_default()).kind().unwrap_or(FailureKind::Other),
        },
    }
}

/// Whether a command line builds or checks code.
#[must_use]
pub fn builds(command: &str) -> bool {
    words(command).take(COMMAND_WORDS).any(|word| {
        let program = word.rsplit('/').next().unwrap_or(word);
        matches!(
            program,
            "build"
                | "check"
                | "clippy"
                | "tsc"
                | "mypy"
                | "pyright"
                | "make"
                | "cmake"
                | "ninja"
                | "rustc"
                | "gcc"
                | "g++"
                | "clang"
                | "javac"
                | "vet"
                | "typecheck"
                | "compile"
                | "vue-tsc"
                | "flow"
                | "xcodebuild"
                | "msbuild"
        )
    })
}

/// Number of words of a command line that are examined.
const COMMAND_WORDS: usize = 40;

fn words(command: &str) -> impl Iterator<Item = &str> {
    command
        .split(|c: char| c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(' | ')'))
        .filter(|word| !word.is_empty())
}

/// Whether the last command of the line answers a question with its exit code.
fn asks_by_exit_code(command: &str) -> bool {
    let last = command.rsplit([';', '&', '|']).next().unwrap_or(command);
    let mut program = words(last).map(|word| word.rsplit('/').next().unwrap_or(word));
    match program.next() {
        Some(
            "grep" | "egrep" | "fgrep" | "rg" | "ag" | "ack" | "diff" | "cmp" | "test" | "[" | "[[" | "which" | "pgrep"
            | "type",
        ) => true,
        Some("git") => matches!(program.next(), Some("diff" | "grep" | "show-ref" | "check-ignore" | "merge-base")),
        Some("command") => program.next() == Some("-v"),
        Some(_) | None => false,
    }
}

/// The tables of signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SignTable {
    MergeConflict,
    Disk,
    TestsFailed,
    RateLimit,
    Auth,
    HardTypeError,
    Missing,
    TypeError,
    Network,
    Provider,
    Permission,
    TestFailure,
}

impl SignTable {
    /// Whether a text, in lower case, contains a sign from this table. For a single table this is much faster than
    /// searching for the signs of all tables.
    fn has_sign_in(self, text: &str) -> bool {
        static AUTOMATA: [OnceLock<Option<AhoCorasick>>; TABLES.len()] = [const { OnceLock::new() }; TABLES.len()];
        let signs = || TABLES.iter().filter(|(table, _)| *table == self).flat_map(|(_, signs)| *signs);
        let automaton = AUTOMATA[self as usize].get_or_init(|| {
            // For this kind of match, the automaton skips ahead to where a sign may begin.
            let mut builder = AhoCorasick::builder();
            builder.match_kind(MatchKind::LeftmostFirst).kind(Some(AhoCorasickKind::ContiguousNFA));
            builder.build(signs()).ok()
        });
        automaton.as_ref().map_or_else(|| signs().any(|sign| text.contains(sign)), |signs| signs.is_match(text))
    }
}

const TABLES: &[(SignTable, &[&str])] = &[
    (SignTable::MergeConflict, MERGE_CONFLICT),
    (SignTable::Disk, DISK),
    (SignTable::TestsFailed, TESTS_FAILED),
    (SignTable::RateLimit, RATE_LIMIT),
    (SignTable::Auth, AUTH),
    (SignTable::HardTypeError, HARD_TYPE_ERROR),
    (SignTable::Missing, MISSING),
    (SignTable::TypeError, TYPE_ERROR),
    (SignTable::Network, NETWORK),
    (SignTable::Provider, PROVIDER),
    (SignTable::Permission, PERMISSION),
    (SignTable::TestFailure, TEST_FAILURE),
];

/// Finds the signs of all tables in one pass.
struct Signs {
    automaton: AhoCorasick,
    /// The table of each sign.
    tables: Vec<SignTable>,
}

/// `None` if the automaton cannot be built; then each sign is searched for separately.
static SIGNS: LazyLock<Option<Signs>> = LazyLock::new(|| {
    let signs = TABLES.iter().flat_map(|(table, signs)| signs.iter().map(move |sign| (*table, *sign)));
    let (tables, signs): (Vec<SignTable>, Vec<&str>) = signs.unzip();
    // The compact form: a larger one would be faster, but would need a megabyte.
    let automaton = AhoCorasick::builder().kind(Some(AhoCorasickKind::ContiguousNFA)).build(signs).ok()?;
    Some(Signs { automaton, tables })
});

/// The tables with a sign in a text (in lower case), one bit per table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct FoundTables(u16);

impl FoundTables {
    fn of(text: &str) -> Self {
        let Some(signs) = &*SIGNS else { return Self::one_by_one(text) };
        let hits = signs.automaton.find_overlapping_iter(text);
        hits.filter_map(|hit| signs.tables.get(hit.pattern().as_usize())).fold(Self::default(), Self::with)
    }

    fn one_by_one(text: &str) -> Self {
        let has_sign = |(_, signs): &&(SignTable, &[&str])| signs.iter().any(|sign| text.contains(sign));
        TABLES.iter().filter(has_sign).map(|(table, _)| table).fold(Self::default(), Self::with)
    }

    fn with(self, table: &SignTable) -> Self {
        Self(self.0 | 1 << *table as u16)
    }

    fn contains(self, table: SignTable) -> bool {
        self.0 & 1 << table as u16 != 0
    }
}

/// The exit code that some agents write into the first lines of an output.
pub(crate) fn exit_code_in(output: &str) -> Option<i32> {
    const FIRST_BYTES: usize = 40;
    let first = output[..output.floor_char_boundary(FIRST_BYTES)].to_ascii_lowercase();
    let begins = ["exit code", "exited with code", "command exited with code", "error: exit code"];
    code_in(&first).filter(|_| begins.iter().any(|sign| first.trim_start().starts_with(sign)))
}

/// The exit code in a text in lower case.
fn code_in(text: &str) -> Option<i32> {
    let head: String = text.lines().take(3).collect::<Vec<_>>().join("\n");
    let at = ["exit code: ", "exit code ", "exited with code "].iter().find_map(|sign| {
        let at = head.find(sign)?;
        Some(at + sign.len())
    })?;
    let digits: String = head[at..].chars().take_while(char::is_ascii_digit).take(4).collect();
    digits.parse().ok()
}

/// Head and tail of a text, in lower case, and the tables with a sign in it, if they were searched.
struct HeadAndTail {
    text: String,
    found: Option<FoundTables>,
}

impl HeadAndTail {
    /// For a text that is searched for the signs of all tables.
    fn of(text: &str) -> Self {
        let text = ends_of(text);
        let found = Some(FoundTables::of(&text));
        Self { text, found }
    }

    /// For a text that is searched for the signs of a few tables.
    fn for_few(text: &str) -> Self {
        Self { text: ends_of(text), found: None }
    }

    fn says_any(&self, table: SignTable) -> bool {
        self.found.map_or_else(|| table.has_sign_in(&self.text), |found| found.contains(table))
    }

    fn exit_code(&self) -> Option<i32> {
        code_in(&self.text)
    }

    fn kind(&self) -> Option<FailureKind> {
        if self.says_any(SignTable::MergeConflict) {
            return Some(FailureKind::MergeConflict);
        }
        if self.says_any(SignTable::Disk) {
            return Some(FailureKind::Disk);
        }
        if self.says_tests_failed() {
            return Some(FailureKind::TestFailure);
        }
        const ORDER: &[(FailureKind, SignTable)] = &[
            (FailureKind::RateLimit, SignTable::RateLimit),
            (FailureKind::Auth, SignTable::Auth),
            (FailureKind::TypeError, SignTable::HardTypeError),
            (FailureKind::MissingDependency, SignTable::Missing),
            (FailureKind::TypeError, SignTable::TypeError),
            (FailureKind::Network, SignTable::Network),
            (FailureKind::ProviderCrash, SignTable::Provider),
            (FailureKind::Permission, SignTable::Permission),
            (FailureKind::TestFailure, SignTable::TestFailure),
        ];
        ORDER.iter().find(|(_, table)| self.says_any(*table)).map(|(kind, _)| *kind)
    }

    /// Whether a test runner reports failed tests: by one of its phrases, or by a number other than 0 before `failed`.
    fn says_tests_failed(&self) -> bool {
        if self.says_any(SignTable::TestsFailed) {
            return true;
        }
        // Most texts contain none of the phrases.
        if !self.text.contains(" fail") {
            return false;
        }
        const COUNTED: &[&str] = &[" failed", " failing", " failures", " failure,", " tests failed"];
        COUNTED.iter().any(|sign| {
            self.text.match_indices(sign).take(64).any(|(at, _)| {
                let before = &self.text.as_bytes()[at.saturating_sub(6)..at];
                let digits = before.iter().rev().take_while(|b| b.is_ascii_digit());
                let (mut any, mut zero) = (false, true);
                for digit in digits {
                    any = true;
                    zero &= *digit == b'0';
                }
                any && !zero && self.is_a_summary(at)
            })
        })
    }

    /// Whether the line around `at` comes from a test runner: it counts passed tests, or names tests.
    fn is_a_summary(&self, at: usize) -> bool {
        let start = self.text[..at].rfind('\n').map_or(0, |n| n + 1);
        let end = self.text[at..].find('\n').map_or(self.text.len(), |n| at + n);
        let line = &self.text[start..end];
        line.len() < 400
            && [
                "passed", "passing", "total", "tests", "test ", " in ", "===", "failures", "examples", "specs",
                "skipped",
            ]
            .iter()
            .any(|sign| line.contains(sign))
            || line.trim_start().bytes().all(|b| b.is_ascii_digit() || b == b' ' || b.is_ascii_lowercase())
                && line.trim_end().ends_with(" failing")
    }
}

/// Head and tail of a text, in lower case.
fn ends_of(text: &str) -> String {
    if text.len() <= HEAD_BYTES + TAIL_BYTES {
        return text.to_ascii_lowercase();
    }
    let head = text.floor_char_boundary(HEAD_BYTES);
    let tail = text.ceil_char_boundary(text.len() - TAIL_BYTES);
    let mut ends = String::with_capacity(HEAD_BYTES + TAIL_BYTES + 1);
    ends.push_str(&text[..head]);
    ends.push('\n');
    ends.push_str(&text[tail..]);
    ends.make_ascii_lowercase();
    ends
}

#[cfg(test)]
mod tests;
