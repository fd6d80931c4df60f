//! Raises findings at the end of a turn, a long command or a session, and when a session is idle after it.
//!
//! A session without its own process (a sub-agent) ends with its parent's process, and only the parent reports its
//! turns, so it gets none of these findings.

use events::{EventId, FindingKind, Reason, Severity, State, Stop, Timestamp, ToolKind, TurnCompleted, TurnOutcome};
use projections::shorten::one_line;

use crate::{
    conflict,
    findings::{NewFinding, SessionFindings},
    rules::DetectorLimits,
    step::{PendingCall, ToolStep},
};

/// Length of a prompt in a finding, characters.
const PROMPT: usize = 100;

/// The agent's activity, and how it ended.
#[derive(Debug, Default)]
pub(crate) struct EndingDetector {
    prompt: Option<String>,
    /// The start of the open turn.
    turn: Option<Timestamp>,
    steps: u32,
    /// What the last checks showed, in words, and whether one failed.
    checks: Option<(bool, String)>,
    done: Option<CompletedTurn>,
    completion_due: Option<Timestamp>,
    idle_due: Option<Timestamp>,
    cut_off: bool,
    /// The last ended turn: its start and end.
    last: Option<(Timestamp, Timestamp)>,
    /// Whether the last turn ended without success, which was reported.
    has_failed: bool,
    /// Whether the last answer reached its maximum length.
    is_cut: bool,
    /// Whether the session itself reported that it waits: the exit code of its process reports how the turn ended.
    has_reported_end: bool,
}

#[derive(Debug, Clone, Copy)]
struct CompletedTurn {
    event: EventId,
    started_at: Timestamp,
    at: Timestamp,
}

impl EndingDetector {
    pub(crate) fn is_open(&self) -> bool {
        self.turn.is_some()
    }

    /// Records an open turn reported by another source than its event. A stored row may be older than the end of its
    /// turn.
    pub(crate) fn is_known_open(&mut self, since: Timestamp) {
        if self.last.is_none_or(|(_, ended)| ended < since) {
            self.turn.get_or_insert(since);
        }
    }

    pub(crate) fn prompted(
        &mut self,
        text: Option<&str>,
        by_person: bool,
        at: Timestamp,
        findings: &mut SessionFindings,
    ) {
        if by_person {
            self.prompt = text.map(|text| one_line(text, PROMPT));
            self.checks = None;
            findings.resolve_kinds(&[FindingKind::LongJob], at, "a new prompt was sent");
        }
        self.begins(at, findings);
    }

    pub(crate) fn turn_started(&mut self, at: Timestamp, findings: &mut SessionFindings) {
        self.turn = Some(at);
        self.steps = 0;
        self.cut_off = false;
        self.begins(at, findings);
    }

    /// Records why the last answer ended.
    pub(crate) fn answered(&mut self, stop: Option<Stop>) {
        self.is_cut = stop == Some(Stop::MaxTokens);
    }

    /// Records the state that the session itself reports.
    pub(crate) fn reported(&mut self, state: State) {
        self.has_reported_end = state == State::Waiting;
    }

    fn begins(&mut self, at: Timestamp, findings: &mut SessionFindings) {
        self.done = None;
        let kinds = [FindingKind::Completion, FindingKind::Claim, FindingKind::Idle];
        findings.resolve_kinds(&kinds, at, "it is working again");
    }

    pub(crate) fn turn_completed(
        &mut self,
        event: EventId,
        completed: &TurnCompleted,
        at: Timestamp,
        findings: &mut SessionFindings,
    ) {
        let outcome = completed.outcome;
        self.checks = completed.receipt.line().map(|line| (completed.receipt.has_failed(), line));
        let started_at = self.turn.take().unwrap_or(at);
        self.cut_off = outcome == TurnOutcome::Exited;
        self.last = Some((started_at, at));
        self.has_failed = matches!(outcome, TurnOutcome::Failed | TurnOutcome::Interrupted | TurnOutcome::Denied);
        self.done = (outcome == TurnOutcome::Completed).then_some(CompletedTurn { event, started_at, at });
        findings.resolve_kinds(&[FindingKind::LongJob], at, "the turn is over");
    }

    /// Whether a time is within the last turn, and that turn has ended.
    pub(crate) fn ended_after(&self, moment: Timestamp) -> bool {
        self.turn.is_none() && self.last.is_some_and(|(from, to)| from <= moment && moment <= to)
    }

    /// Forgets the end of a turn before this time, because it is too old to report.
    pub(crate) fn forget_before(&mut self, moment: Timestamp) {
        if self.done.take_if(|done| done.at < moment).is_some() {
            self.completion_due = None;
        }
    }

    /// Forgets idle time that should already have been reported.
    pub(crate) fn forget_idleness(&mut self, now: Timestamp) {
        self.idle_due.take_if(|due| *due <= now);
    }

    /// Records that the turn ended in an error, regardless of earlier reports of its end.
    pub(crate) fn failed(&mut self, at: Timestamp, findings: &mut SessionFindings) {
        self.has_failed = true;
        self.done = None;
        self.completion_due = None;
        findings.resolve_kinds(&[FindingKind::Completion], at, "the turn ended in an error");
    }

    /// Handles the result of a call.
    pub(crate) fn stepped(
        &mut self,
        call: &PendingCall,
        step: &ToolStep,
        took_ms: i64,
        at: Timestamp,
        rules: &DetectorLimits,
        findings: &mut SessionFindings,
    ) {
        self.steps = self.steps.saturating_add(1);
        if call.tool != ToolKind::Execute || step.refused {
            return;
        }
        if took_ms < rules.long_job_ms || step.poll {
            return;
        }
        let minutes = took_ms / 60_000;
        let (severity, how) = match step.failed {
            Some(kind) => (Severity::Warning, format!("it failed: {}", crate::failing::words(kind))),
            None => (Severity::Info, "it worked".to_owned()),
        };
        let what = format!("{} is done after {minutes} min", step.words());
        let why = format!("the command ran for {minutes} min, and {how}");
        let raise = NewFinding::new(FindingKind::LongJob, severity, what, why, at);
        let key = format!("long_job:{}", call.id);
        findings.raise(NewFinding { key, subject: Some(step.words()), evidence: vec![step.evidence()], ..raise }, at);
    }

    /// Handles a change of the status.
    pub(crate) fn status(
        &mut self,
        state: State,
        at: Timestamp,
        rules: &DetectorLimits,
        findings: &mut SessionFindings,
    ) {
        if state == State::Idle {
            self.idle_due = Some(at.plus_ms(rules.idle_ms));
        } else {
            self.idle_due = None;
            findings.resolve_kinds(&[FindingKind::Idle], at, "it is no longer idle");
        }
    }

    /// Called after each event: decides whether the end of the turn is final.
    pub(crate) fn settle(
        &mut self,
        state: Option<(State, Option<Reason>)>,
        pending: bool,
        at: Timestamp,
        rules: &DetectorLimits,
    ) {
        let rests = match state {
            Some((State::Waiting, reason)) => matches!(reason, Some(Reason::TurnComplete) | None),
            Some((State::Idle, _)) => true,
            Some((State::Running | State::WaitingApproval | State::Exited | State::Unknown, _)) | None => false,
        };
        if self.done.is_some() && self.turn.is_none() && rests && !pending {
            self.completion_due.get_or_insert(at.plus_ms(rules.completion_ms));
        } else {
            self.completion_due = None;
        }
    }

    pub(crate) fn due(&self) -> Option<Timestamp> {
        self.completion_due.into_iter().chain(self.idle_due).min()
    }

    pub(crate) fn ring(&mut self, at: Timestamp, sub: bool, answered_at: Timestamp, findings: &mut SessionFindings) {
        if self.completion_due.take_if(|due| *due <= at).is_some() {
            self.complete(at, sub, answered_at, findings);
        }
        if self.idle_due.take_if(|due| *due <= at).is_some() && !sub {
            let why = "no turn is running, and there has been no activity for a long time".to_owned();
            let raise = NewFinding::new(FindingKind::Idle, Severity::Info, "the session is idle".into(), why, at);
            findings.raise(raise, at);
        }
    }

    /// A turn without output of the model is not reported as completed.
    fn complete(&mut self, at: Timestamp, sub: bool, answered_at: Timestamp, findings: &mut SessionFindings) {
        let Some(done) = self.done.take().filter(|done| !sub && done.started_at <= answered_at) else { return };
        let seconds = done.at.since_ms(done.started_at) / 1_000;
        let (what, prompt) = match &self.prompt {
            _ if self.is_cut => ("the answer was cut at its maximum length".to_owned(), self.prompt.as_deref()),
            Some(prompt) => (format!("done: {prompt}"), None),
            None => ("the turn is done".to_owned(), None),
        };
        let (severity, checks) = match &self.checks {
            Some((has_failed, line)) => {
                (if *has_failed { Severity::Warning } else { Severity::Info }, format!("; its checks: {line}"))
            }
            None => (Severity::Info, String::new()),
        };
        let (severity, rest) = if findings.is_open(conflict::KEY) {
            (Severity::Warning, "a merge has conflicts")
        } else {
            (if self.is_cut { Severity::Warning } else { severity }, "nothing is pending")
        };
        let prompt = prompt.map(|prompt| format!("; the prompt was: {prompt}")).unwrap_or_default();
        let calls = if self.steps == 1 { "1 tool call".to_owned() } else { format!("{} tool calls", self.steps) };
        let why = format!("the turn ended after {seconds} s and {calls}, and {rest}{checks}{prompt}");
        let raise = NewFinding::new(FindingKind::Completion, severity, what, why, done.at);
        findings.raise(NewFinding { evidence: vec![done.event], ..raise }, at);
    }

    /// Handles the end of the process.
    pub(crate) fn exited(
        &mut self,
        event: EventId,
        reason: Option<Reason>,
        (sub, answered_at): (bool, Timestamp),
        at: Timestamp,
        findings: &mut SessionFindings,
    ) {
        if self.done.is_some() && self.completion_due.take().is_some() {
            self.complete(at, sub, answered_at, findings);
        }
        let in_turn = self.cut_off || self.turn.is_some();
        let died = match reason {
            Some(Reason::Killed) => true,
            // With its exit code a process reports that its last turn failed, for an agent that runs one prompt.
            Some(Reason::Failed) => in_turn || !self.has_failed && !self.has_reported_end,
            Some(_) | None => false,
        };
        let checks = self.checks.as_ref().filter(|(has_failed, _)| *has_failed).map(|(_, line)| line.clone());
        let conflict = findings.is_open(conflict::KEY);
        self.turn = None;
        self.idle_due = None;
        self.done = None;
        if sub {
            return;
        }
        if died {
            let (severity, when) =
                if in_turn { (Severity::Error, " in the middle of a turn") } else { (Severity::Warning, "") };
            let how =
                if reason == Some(Reason::Failed) { "failed" } else { "was killed or exited without reporting an end" };
            let what = format!("the agent's process died{when}");
            let raise = NewFinding::new(FindingKind::Crash, severity, what, format!("its process {how}{when}"), at);
            findings.raise(NewFinding { evidence: vec![event], ..raise }, at);
            return;
        }
        let mut left = Vec::new();
        if in_turn {
            left.push("a turn was running".to_owned());
        }
        left.extend(checks.map(|line| format!("its checks had failed: {line}")));
        if conflict {
            left.push("a merge has conflicts".to_owned());
        }
        if !left.is_empty() {
            let why = format!("when it ended, {}", left.join(" and "));
            let raise = NewFinding::new(
                FindingKind::OpenWork,
                Severity::Warning,
                "the session ended with unfinished work".into(),
                why,
                at,
            );
            findings.raise(NewFinding { evidence: vec![event], ..raise }, at);
        }
    }
}
