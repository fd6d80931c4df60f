//! Detects a command that keeps failing in the same way, whatever is tried in between.

use std::collections::VecDeque;

use events::{EventId, FindingKind, Severity, Timestamp, ToolKind};
use projections::FailureKind;

use crate::{
    findings::{NewFinding, SessionFindings},
    loops,
    rules::DetectorLimits,
    step::ToolStep,
    text::hash_of,
};

/// Number of failing commands remembered in a session.
const COMMANDS: usize = 16;
/// Maximum number of events per finding.
const EVIDENCE: usize = 8;

#[derive(Debug)]
struct RepeatedFailure {
    command: u64,
    result: u64,
    /// The failing tests, if they are named.
    tests: Option<u64>,
    /// Number of consecutive identical failures.
    count: u32,
    /// Number of consecutive failures of the same tests.
    of_tests: u32,
    first_at: Timestamp,
    evidence: VecDeque<EventId>,
}

/// The failing commands of a session.
#[derive(Debug, Default)]
pub(crate) struct FailureDetector {
    failing: VecDeque<RepeatedFailure>,
}

fn key(command: u64) -> String {
    format!("repeated_failure:{command:016x}")
}

impl FailureDetector {
    pub(crate) fn len(&self) -> usize {
        self.failing.len()
    }

    pub(crate) fn clear(&mut self) {
        self.failing.clear();
    }

    pub(crate) fn apply(
        &mut self,
        step: &ToolStep,
        at: Timestamp,
        rules: &DetectorLimits,
        findings: &mut SessionFindings,
    ) {
        let command = match step.tool {
            ToolKind::Execute => step.command.unwrap_or(step.same),
            ToolKind::Mcp | ToolKind::Fetch => step.same,
            ToolKind::Edit
            | ToolKind::Read
            | ToolKind::Plan
            | ToolKind::Question
            | ToolKind::Subagent
            | ToolKind::Other => {
                return;
            }
        };
        if step.refused {
            return;
        }
        let known = self.failing.iter().position(|failing| failing.command == command);
        let before = known.and_then(|index| self.failing.remove(index));
        let Some(kind) = step.failed else {
            if before.is_some() {
                findings.resolve(&key(command), at, "it succeeded");
            }
            return;
        };
        let result = hash_of((kind, step.result));
        let mut failing = match before {
            Some(failing) if failing.result == result => failing,
            // The same tests fail with other output.
            Some(failing) if failing.tests.is_some() && failing.tests == step.tests => {
                RepeatedFailure { result, count: 0, ..failing }
            }
            Some(_) | None => {
                if before.is_some() {
                    findings.resolve(&key(command), at, "it now fails in a different way");
                }
                let (first_at, tests) = (step.began_at, step.tests);
                RepeatedFailure { command, result, tests, count: 0, of_tests: 0, first_at, evidence: VecDeque::new() }
            }
        };
        failing.count = failing.count.saturating_add(1);
        failing.of_tests = failing.of_tests.saturating_add(1);
        if failing.evidence.len() == EVIDENCE {
            failing.evidence.remove(EVIDENCE / 2);
        }
        failing.evidence.push_back(step.evidence());
        if findings.is_open(loops::KEY) {
            findings.resolve(&key(command), at, "it is part of a loop");
        } else if failing.count >= rules.failures || failing.tests.is_some() && failing.of_tests > rules.failures {
            let count = failing.of_tests;
            let what = format!("{} failed {count} times", step.words());
            let how = if failing.count >= rules.failures { "in the same way" } else { "in the same tests" };
            let why = format!("its last {count} runs failed {how}: {}", words(kind));
            let raise = NewFinding::new(FindingKind::RepeatedFailure, Severity::Warning, what, why, failing.first_at);
            let evidence = failing.evidence.iter().copied().collect();
            let subject = Some(step.words());
            findings.raise(NewFinding { key: key(command), evidence, count, subject, ..raise }, at);
        }
        if self.failing.len() == COMMANDS
            && let Some(oldest) = self.failing.pop_front()
        {
            findings.resolve(&key(oldest.command), at, "it was not run again");
        }
        self.failing.push_back(failing);
    }
}

/// A failure kind as text.
pub(crate) fn words(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Auth => "authentication fails",
        FailureKind::MissingDependency => "a dependency is missing",
        FailureKind::TestFailure => "tests fail",
        FailureKind::TypeError => "the code does not compile or pass its checks",
        FailureKind::MergeConflict => "a merge has conflicts",
        FailureKind::RateLimit => "too many requests",
        FailureKind::Network => "the network fails",
        FailureKind::ProviderCrash => "the provider fails",
        FailureKind::Permission => "it is not permitted",
        FailureKind::Disk => "the disk is full or fails",
        FailureKind::Other => "an error",
    }
}
