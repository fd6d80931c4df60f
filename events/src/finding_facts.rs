//! The facts about each kind of finding: one source for the help of the command line, the page, the documentation, and
//! the need of a session with such a finding. A new kind of finding is described here; its detector is in the crate
//! `monitor`.

use crate::{finding::FindingKind, need::Need};

/// Describes a kind of finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindingFacts {
    /// Its name as a heading: `Rate limit`.
    pub title: &'static str,
    /// Its meaning for a session, as a clause: `a quota is used up`.
    pub meaning: &'static str,
    /// The need of a session with such a finding.
    pub need: Option<Need>,
    /// Whether it reports that something is done, so that nothing remains open.
    pub is_done: bool,
    /// Whether it reports how the session ended.
    pub is_of_end: bool,
    /// Its severity, and what the severity depends on.
    pub severity: &'static str,
    /// When it is raised, with the default limits.
    pub raised: &'static str,
    /// When it is resolved.
    pub resolved: &'static str,
    /// What the user can do about it.
    pub advice: &'static str,
}

impl FindingKind {
    /// The facts about this kind of finding.
    #[must_use]
    pub const fn facts(self) -> FindingFacts {
        match self {
            Self::Approval => FindingFacts {
                title: "Approval",
                meaning: "a permission request is pending",
                need: Some(Need::Approval),
                is_done: false,
                is_of_end: false,
                severity: "warning",
                raised: "a permission request has been pending for 200 ms",
                resolved: "it is answered",
                advice: "Decide it with `capture approvals`, on the page or in the agent's terminal.",
            },
            Self::RiskyApproval => FindingFacts {
                title: "Risky approval",
                meaning: "a pending permission request could do harm that cannot be undone",
                need: Some(Need::Approval),
                is_done: false,
                is_of_end: false,
                severity: "error",
                raised: "a pending permission request could do harm that cannot be undone",
                resolved: "it is answered",
                advice: "Read the whole command before you allow it. A reason with your denial tells the agent what to do instead.",
            },
            Self::ApprovalBacklog => FindingFacts {
                title: "Approval backlog",
                meaning: "several permission requests are pending, or one for a long time",
                need: Some(Need::Approval),
                is_done: false,
                is_of_end: false,
                severity: "warning",
                raised: "3 permission requests of a session are pending, or one has been for 10 minutes",
                resolved: "fewer are pending",
                advice: "Decide them with `capture approvals`. A rule in the policy answers requests that repeat.",
            },
            Self::Question => FindingFacts {
                title: "Question",
                meaning: "the agent asks you a question",
                need: Some(Need::Question),
                is_done: false,
                is_of_end: false,
                severity: "warning",
                raised: "the agent asks you a question",
                resolved: "it is answered",
                advice: "Answer it on the page or in the agent's terminal (`capture attach`).",
            },
            Self::Stuck => FindingFacts {
                title: "Stuck",
                meaning: "a turn makes no progress, or requests to the model keep failing",
                need: Some(Need::Stuck),
                is_done: false,
                is_of_end: false,
                severity: "warning; error if requests to the model fail",
                raised: "a turn is open, no command is running and nothing has happened for 10 minutes; or a command that has been running for 3 minutes will not end by itself; or 8 attempts in a row to reach the model failed, or attempts have been failing for 2 minutes",
                resolved: "something happens, or the command ends",
                advice: "Look at the agent's screen (`capture screen`). Interrupt it and tell it what to do instead; for a command, the explanation ends with a line that would unblock it.",
            },
            Self::Loop => FindingFacts {
                title: "Loop",
                meaning: "the agent repeats the same steps",
                need: Some(Need::Stuck),
                is_done: false,
                is_of_end: false,
                severity: "warning",
                raised: "the same step has the same result 5 times with little new in between, edits are reverted 3 times, or 7 attempts end in the same failure",
                resolved: "the agent does something new",
                advice: "Interrupt it and tell it what it is missing; `capture log` shows the steps that repeat.",
            },
            Self::RepeatedFailure => FindingFacts {
                title: "Repeated failure",
                meaning: "a command or test fails again and again",
                need: Some(Need::Stuck),
                is_done: false,
                is_of_end: false,
                severity: "warning",
                raised: "a command or test failed in the same way 4 times",
                resolved: "it passes",
                advice: "Read the failure. A hint about its cause often saves many attempts.",
            },
            Self::Auth => FindingFacts {
                title: "Sign-in",
                meaning: "the agent is not signed in, or its key was rejected",
                need: Some(Need::Failure),
                is_done: false,
                is_of_end: false,
                severity: "error",
                raised: "the model's service rejects the agent's key or sign-in",
                resolved: "the model answers",
                advice: "Sign in to the agent again, or correct its API key.",
            },
            Self::RateLimit => FindingFacts {
                title: "Rate limit",
                meaning: "a rate limit of the model's service was reached",
                need: Some(Need::Failure),
                is_done: false,
                is_of_end: false,
                severity: "warning",
                raised: "the model's service refuses requests because of a rate limit; includes the reset time if the agent reports one",
                resolved: "the model answers",
                advice: "Wait until the reset time, or run fewer agents at once.",
            },
            Self::Quota => FindingFacts {
                title: "Quota",
                meaning: "a quota is used up",
                need: Some(Need::Failure),
                is_done: false,
                is_of_end: false,
                severity: "error",
                raised: "the model's service refuses requests because a quota is used up; includes the reset time if the agent reports one",
                resolved: "the model answers",
                advice: "Wait until the reset time, or switch the model or the account.",
            },
            Self::Network => FindingFacts {
                title: "Network",
                meaning: "the model's service cannot be reached",
                need: Some(Need::Failure),
                is_done: false,
                is_of_end: false,
                severity: "error",
                raised: "the model's service cannot be reached",
                resolved: "the model answers",
                advice: "Check the connection of this machine, its proxy and its DNS.",
            },
            Self::MergeConflict => FindingFacts {
                title: "Merge conflict",
                meaning: "a merge, rebase or pull stopped at conflicts",
                need: Some(Need::Failure),
                is_done: false,
                is_of_end: false,
                severity: "warning",
                raised: "a merge, rebase or pull stopped at conflicts",
                resolved: "the conflicts are resolved",
                advice: "Resolve the conflicts, or tell the agent which side is right.",
            },
            Self::ContextFull => FindingFacts {
                title: "Context full",
                meaning: "the context is nearly full",
                need: Some(Need::Stuck),
                is_done: false,
                is_of_end: false,
                severity: "warning",
                raised: "90 % of the context is used",
                resolved: "the context is compacted",
                advice: "Let the agent compact its context, or continue in a new session (`capture handoff`).",
            },
            Self::Crash => FindingFacts {
                title: "Crash",
                meaning: "the agent's process died",
                need: Some(Need::Failure),
                is_done: false,
                is_of_end: true,
                severity: "error if it died in a turn; otherwise warning",
                raised: "the agent's process died; an exit code that only reports a failed prompt does not count",
                resolved: "a day has passed, or the session continues",
                advice: "Resume the session (`capture resume`); `capture log` shows what it had done.",
            },
            Self::OpenWork => FindingFacts {
                title: "Open work",
                meaning: "the session ended with an open turn, a failed check or conflicts",
                need: Some(Need::Stuck),
                is_done: false,
                is_of_end: true,
                severity: "warning",
                raised: "the session ended with an open turn, a failed check or conflicts",
                resolved: "a day has passed, or the session continues",
                advice: "Resume the session (`capture resume`), or finish the work yourself.",
            },
            Self::Completion => FindingFacts {
                title: "Completion",
                meaning: "a turn is done, and nothing is pending",
                need: Some(Need::Prompt),
                is_done: true,
                is_of_end: false,
                severity: "info; warning if the last tests, commit, push, merge or deployment failed or a merge has conflicts",
                raised: "a turn is done, and nothing is pending",
                resolved: "work begins again",
                advice: "Read the result, and give the next prompt.",
            },
            Self::LongJob => FindingFacts {
                title: "Long job",
                meaning: "a long-running command is done",
                need: None,
                is_done: true,
                is_of_end: false,
                severity: "info; warning if it failed",
                raised: "a command that ran for more than 5 minutes is done",
                resolved: "the turn ends, or a new prompt arrives",
                advice: "Nothing. It tells you that the command you were waiting for is done.",
            },
            Self::Provider => FindingFacts {
                title: "Provider",
                meaning: "the model's service fails",
                need: Some(Need::Failure),
                is_done: false,
                is_of_end: false,
                severity: "error",
                raised: "the model's service answers with errors",
                resolved: "the model answers",
                advice: "Wait, or switch to another model; the service's status page may say more.",
            },
            Self::Idle => FindingFacts {
                title: "Idle",
                meaning: "a session has been idle for a long time",
                need: None,
                is_done: false,
                is_of_end: false,
                severity: "info",
                raised: "a session has been idle for 30 minutes",
                resolved: "it is active again",
                advice: "Close the session if it is no longer needed.",
            },
            Self::Claim => FindingFacts {
                title: "Claim",
                meaning: "the agent's last message does not agree with what its commands showed",
                need: Some(Need::Prompt),
                is_done: false,
                is_of_end: false,
                severity: "warning; info if files were only edited after the check that showed it",
                raised: "a turn is done, and its last message says that a check passed or that work was committed or pushed, but the last run failed, is older than an edit, or does not exist",
                resolved: "work begins again",
                advice: "Run `capture check` to compare the message with the receipt, or ask the agent to run the check again.",
            },
            Self::SharedFiles => FindingFacts {
                title: "Shared files",
                meaning: "two sessions edit the same file at the same time",
                need: Some(Need::Stuck),
                is_done: false,
                is_of_end: false,
                severity: "warning",
                raised: "two sessions edit the same file within 10 minutes, and both have an open turn; sub-agents count as their session",
                resolved: "a turn ends, or they edit different files for 10 minutes",
                advice: "Stop one of them, or give each a worktree of its own.",
            },
            Self::SharedQuota => FindingFacts {
                title: "Shared quota",
                meaning: "a quota stops several sessions of an agent",
                need: None,
                is_done: false,
                is_of_end: false,
                severity: "error",
                raised: "a quota or a rate limit stops two sessions of an agent within an hour",
                resolved: "fewer than two are stopped",
                advice: "Wait until the reset time, or switch the account.",
            },
            Self::SeveralBlocked => FindingFacts {
                title: "Several blocked",
                meaning: "several sessions wait for you at the same time",
                need: None,
                is_done: false,
                is_of_end: false,
                severity: "warning",
                raised: "3 sessions wait for a decision or an answer, each for at least a minute",
                resolved: "fewer wait",
                advice: "`capture next` shows them one after another.",
            },
            Self::Boundary => FindingFacts {
                title: "Boundary",
                meaning: "the agent did something that you had forbidden",
                need: Some(Need::Stuck),
                is_done: false,
                is_of_end: false,
                severity: "error",
                raised: "a command or an edit succeeded that one of your earlier prompts forbids",
                resolved: "you send a new prompt",
                advice: "Read what ran, and undo it if necessary. To allow it from now on, say so in a prompt. See [boundaries](#boundaries).",
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finding_kind_has_a_distinct_title_and_meaning() {
        let all: Vec<FindingFacts> = FindingKind::ALL.iter().map(|kind| kind.facts()).collect();
        for (at, facts) in all.iter().enumerate() {
            for text in [facts.title, facts.meaning, facts.severity, facts.raised, facts.resolved, facts.advice] {
                assert!(!text.is_empty() && !text.contains(['|', '\n']), "{text:?} goes into a table");
            }
            assert!(facts.advice.ends_with('.'), "{:?} is a sentence", facts.advice);
            for other in &all[..at] {
                assert_ne!(other.title, facts.title);
                assert_ne!(other.meaning, facts.meaning);
            }
        }
    }
}
