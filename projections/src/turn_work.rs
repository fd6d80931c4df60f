//! The work of a turn, in numbers and names: changed files, commands, whether tests passed.

use std::collections::BTreeMap;

use events::{CheckClass, ToolCall, ToolKind, ToolOutcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    FailureKind, Turn,
    failure::FinishedCall,
    shorten::{Shown, one_line},
};

/// Maximum number of files named per turn.
const FILES: usize = 8;
/// Longest path of a file, characters.
const FILE_CHARS: usize = 200;
/// Longest command kept, characters.
const COMMAND_CHARS: usize = 60;
/// Number of files named in a sentence.
const NAMED_FILES: usize = 2;
/// Number of error kinds named in a sentence.
const NAMED_ERRORS: usize = 3;

/// The work of a turn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TurnWork {
    /// The changed files, as the agent names them, each once, in the order of their first change; at most 8.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Whether more files were changed than are named.
    #[serde(skip_serializing_if = "is_false")]
    pub more_files: bool,
    /// Number of commands that were started, except checks, which the receipt lists.
    #[serde(skip_serializing_if = "is_zero")]
    pub commands: u32,
    /// The last of these commands, shortened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_command: Option<String>,
    /// Calls that a person refused.
    #[serde(skip_serializing_if = "is_zero")]
    pub denied: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

impl TurnWork {
    /// Whether no work was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Records a call; `shown` is its title without secrets, and `is_check` says that the receipt lists it.
    pub(crate) fn called(&mut self, call: &ToolCall, shown: Option<&Shown<'_>>, is_check: bool) {
        if let (ToolKind::Execute, Some(shown), false) = (call.tool, shown, is_check) {
            self.commands = self.commands.saturating_add(1);
            self.last_command = Some(shown.one_line(COMMAND_CHARS));
        }
    }

    /// Records a finished call; `files` are the files of an edit, without secrets if they were shortened.
    pub(crate) fn returned(&mut self, call: &FinishedCall<'_>, files: &[String]) {
        match call.outcome {
            ToolOutcome::Denied => self.denied = self.denied.saturating_add(1),
            ToolOutcome::Ok if call.tool == ToolKind::Edit => files.iter().for_each(|file| self.changed(file)),
            ToolOutcome::Ok | ToolOutcome::Error | ToolOutcome::Cancelled | ToolOutcome::Blocked => {}
        }
    }

    fn changed(&mut self, file: &str) {
        let file = one_line(file, FILE_CHARS);
        if !self.files.contains(&file) {
            self.more_files |= self.files.len() == FILES;
            if !self.more_files {
                self.files.push(file);
            }
        }
    }
}

/// The work of a turn, as parts of a sentence: `changed main.rs`, `ran 3 commands`, `tests passed`. Empty if the agent
/// only read and answered.
pub(crate) fn clauses(turn: &Turn) -> Vec<String> {
    let work = &turn.work;
    let mut parts = Vec::new();
    if !work.files.is_empty() {
        let names: Vec<&str> = work.files.iter().map(|file| file.rsplit(['/', '\\']).next().unwrap_or(file)).collect();
        parts.push(format!("changed {}", enumerated(&names, work.more_files)));
    }
    match (work.commands, &work.last_command) {
        (0, _) => {}
        (1, Some(command)) => parts.push(format!("ran `{}`", command.replace('`', "'"))),
        (n, _) => parts.push(format!("ran {n} commands")),
    }
    parts.extend(turn.receipt.words());
    if turn.approvals > 0 {
        parts.push(counted(turn.approvals, "approval", "approvals"));
    }
    if work.denied > 0 {
        parts.push(format!("{} denied", counted(work.denied, "call", "calls")));
    }
    parts.extend(errors(&turn.failures, turn.receipt.check(CheckClass::Tests).is_some()));
    parts
}

/// `a.rs`, `a.rs and b.rs`, `a.rs, b.rs and 3 more`.
fn enumerated(names: &[&str], more: bool) -> String {
    let rest = names.len().saturating_sub(NAMED_FILES);
    match (names, rest, more) {
        ([only], _, false) => (*only).to_owned(),
        ([first, second], _, false) => format!("{first} and {second}"),
        (_, _, more) => {
            let named = names.iter().take(NAMED_FILES).copied().collect::<Vec<_>>().join(", ");
            format!("{named} and {}{rest} more", if more { "at least " } else { "" })
        }
    }
}

/// The errors of a turn by kind; failed tests are omitted if the sentence already mentions tests.
fn errors(failures: &BTreeMap<FailureKind, u32>, tests_are_told: bool) -> Vec<String> {
    let told = |kind: FailureKind| tests_are_told && kind == FailureKind::TestFailure;
    let errors: Vec<_> = failures.iter().filter(|(kind, count)| !told(**kind) && **count > 0).collect();
    let named = errors.iter().take(NAMED_ERRORS).map(|(kind, count)| {
        let (one, many) = match kind {
            FailureKind::Auth => ("sign-in error", "sign-in errors"),
            FailureKind::MissingDependency => ("missing dependency", "missing dependencies"),
            FailureKind::TestFailure => ("failed test run", "failed test runs"),
            FailureKind::TypeError => ("compile error", "compile errors"),
            FailureKind::MergeConflict => ("merge conflict", "merge conflicts"),
            FailureKind::RateLimit => ("rate limit", "rate limits"),
            FailureKind::Network => ("network error", "network errors"),
            FailureKind::ProviderCrash => ("provider error", "provider errors"),
            FailureKind::Permission => ("permission error", "permission errors"),
            FailureKind::Disk => ("disk error", "disk errors"),
            FailureKind::Other => ("error", "errors"),
        };
        counted(**count, one, many)
    });
    named.collect()
}

fn counted(n: u32, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_file_lists_are_abbreviated() {
        assert_eq!(enumerated(&["a"], false), "a");
        assert_eq!(enumerated(&["a", "b"], false), "a and b");
        assert_eq!(enumerated(&["a", "b", "c"], false), "a, b and 1 more");
        assert_eq!(enumerated(&["a", "b", "c", "d"], true), "a, b and at least 2 more");
    }

    #[test]
    fn changed_files_are_listed_once_and_failed_edits_not_at_all() {
        let mut work = TurnWork::default();
        let mut edited = |files: &[&str], outcome| {
            let call = FinishedCall { tool: ToolKind::Edit, title: None, exit_code: None, outcome, text: None };
            let files: Vec<_> = files.iter().map(|file| (*file).to_owned()).collect();
            work.returned(&call, &files);
            work.clone()
        };
        edited(&["src/a.rs"], ToolOutcome::Ok);
        edited(&["src/a.rs"], ToolOutcome::Ok);
        edited(&["src/b.rs"], ToolOutcome::Error);
        let work = edited(&["src/c.rs"], ToolOutcome::Denied);
        assert_eq!((work.files.as_slice(), work.denied), (["src/a.rs".to_owned()].as_slice(), 1));
        // A patch of several files counts as several files.
        let work = edited(&["src/d.rs", "src/a.rs"], ToolOutcome::Ok);
        assert_eq!(work.files, ["src/a.rs", "src/d.rs"]);
        let many: Vec<String> = (0..20).map(|n| format!("{n}.rs")).collect();
        let work = edited(&many.iter().map(String::as_str).collect::<Vec<_>>(), ToolOutcome::Ok);
        assert_eq!((work.files.len(), work.more_files), (FILES, true));
    }
}
