//! Detects turns without progress, and requests to the model that are retried without success.
//!
//! Silence counts only while a turn is open, the session is reported as running, and nothing is in progress that may
//! take any time: a command, a sub-agent or a question. A command raises a finding of its own if it is certain why it
//! will not end ([`crate::cause`]).

use std::collections::VecDeque;

use events::{EventId, FindingKind, Severity, Timestamp};

use projections::shorten::one_line;

use crate::{
    cause::{HangCause, hang_cause},
    findings::{NewFinding, SessionFindings},
    rules::DetectorLimits,
    step::{PendingCall, RunningCommand},
};

/// The key of a finding about a silent turn.
pub(crate) const SILENT: &str = "stuck";
/// The key of a finding about endless retries.
pub(crate) const RETRYING: &str = "stuck:retrying";
/// The beginning of the key of a finding about a command that will not end.
const COMMAND: &str = "stuck:command:";
/// Length of a command in a finding, characters.
const SHOWN_CHARS: usize = 80;

/// Work that may be in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PendingWork {
    /// Nothing is in progress.
    None,
    /// A request to the model.
    Model,
    /// A tool that should return soon.
    Tool,
    /// Work that may take any amount of time.
    Patient,
}

/// The state needed to find turns without progress.
#[derive(Debug)]
pub(crate) struct StuckDetector {
    progress_at: Timestamp,
    last: Option<EventId>,
    retries: u32,
    since: Option<Timestamp>,
    attempts: VecDeque<EventId>,
}

impl StuckDetector {
    pub(crate) fn new(at: Timestamp) -> Self {
        Self { progress_at: at, last: None, retries: 0, since: None, attempts: VecDeque::new() }
    }

    /// Sets the earliest time from which silence is counted, before the first progress.
    pub(crate) fn begin(&mut self, at: Timestamp) {
        if self.progress_at == Timestamp::MIN {
            self.progress_at = at;
        }
    }

    /// Records progress: silence counts from here.
    pub(crate) fn progress(&mut self, event: EventId, at: Timestamp, findings: &mut SessionFindings) {
        self.progress_at = self.progress_at.max(at);
        self.last = Some(event);
        findings.resolve(SILENT, at, "it is active again");
    }

    /// Excludes a time in which nothing was observed from the silence.
    pub(crate) fn slept(&mut self, ms: i64) {
        self.progress_at = self.progress_at.plus_ms(ms);
        self.since = self.since.map(|since| since.plus_ms(ms));
    }

    /// Handles an answer of the model or of a tool: the retries were successful.
    pub(crate) fn answered(&mut self, at: Timestamp, findings: &mut SessionFindings) {
        if self.since.is_some() {
            self.retries = 0;
            self.since = None;
            self.attempts.clear();
            findings.resolve(RETRYING, at, "the model answered");
        }
    }

    /// Handles the end of the turn.
    pub(crate) fn ended(&mut self, at: Timestamp, findings: &mut SessionFindings) {
        self.retries = 0;
        self.since = None;
        self.attempts.clear();
        findings.resolve_kinds(&[FindingKind::Stuck], at, "the turn is over");
    }

    /// Records a failed attempt (`counts`), or a report that a request is being retried.
    pub(crate) fn retries(
        &mut self,
        event: EventId,
        counts: bool,
        words: &str,
        at: Timestamp,
        rules: &DetectorLimits,
        findings: &mut SessionFindings,
    ) {
        let since = *self.since.get_or_insert(at);
        if counts {
            self.retries = self.retries.saturating_add(1);
            if self.attempts.len() == 8 {
                self.attempts.pop_front();
            }
            self.attempts.push_back(event);
        }
        let long = at.since_ms(since) >= rules.retrying_ms;
        if self.retries < rules.retries && !long {
            return;
        }
        let seconds = at.since_ms(since) / 1_000;
        let what = "requests to the model keep failing and are retried".to_owned();
        let why = match self.retries {
            0 => format!("the agent has been retrying for {seconds} s without an answer"),
            n => format!("{n} attempts failed within {seconds} s without an answer: {words}"),
        };
        let evidence = if self.attempts.is_empty() { vec![event] } else { self.attempts.iter().copied().collect() };
        let raise = NewFinding::new(FindingKind::Stuck, Severity::Error, what, why, since);
        findings.raise(NewFinding { key: RETRYING.into(), evidence, count: self.retries.max(1), ..raise }, at);
    }

    /// Raises a finding about a command that will not end.
    pub(crate) fn hangs(of: &RunningCommand, cause: &HangCause, at: Timestamp, findings: &mut SessionFindings) {
        let command = one_line(&of.line, SHOWN_CHARS);
        let what = format!("`{command}` {}", cause.clause());
        let shown = if cause.is_shown { "its output shows the cause" } else { "its command line shows the cause" };
        let seconds = at.since_ms(of.since) / 1_000;
        let why = format!("the command has been running for {seconds} s, and {shown} · try: {}", cause.unblock);
        let raise = NewFinding::new(FindingKind::Stuck, Severity::Warning, what, why, of.since);
        let (key, evidence) = (format!("{COMMAND}{}", of.call), vec![of.event]);
        findings.raise(NewFinding { key, subject: Some(command), evidence, ..raise }, at);
    }

    /// Handles the end of a command, or of its waiting. `call` started it.
    pub(crate) fn command_over(call: &str, at: Timestamp, why: &str, findings: &mut SessionFindings) {
        findings.resolve(&format!("{COMMAND}{call}"), at, why);
    }

    /// The time at which silence becomes too long.
    pub(crate) fn due(
        &self,
        work: PendingWork,
        rules: &DetectorLimits,
        findings: &SessionFindings,
    ) -> Option<Timestamp> {
        let limit = match work {
            PendingWork::Model => rules.stuck_ms,
            PendingWork::Tool => rules.stuck_tool_ms,
            PendingWork::None | PendingWork::Patient => return None,
        };
        (!findings.is_open(SILENT)).then(|| self.progress_at.plus_ms(limit))
    }

    /// Raises a finding if silence has lasted too long.
    pub(crate) fn ring(
        &mut self,
        work: PendingWork,
        call: Option<&PendingCall>,
        at: Timestamp,
        findings: &mut SessionFindings,
    ) {
        let minutes = at.since_ms(self.progress_at) / 60_000;
        let (what, waits) = match (work, call) {
            (PendingWork::Tool, Some(call)) => {
                (format!("{} has been running for {minutes} min", call.name), "a tool is running")
            }
            (PendingWork::Tool | PendingWork::Model | PendingWork::None | PendingWork::Patient, _) => {
                (format!("no activity for {minutes} min in a running turn"), "no command is running")
            }
        };
        let why = format!("the turn is still running, {waits}, and there was no activity for {minutes} min");
        let cause = call
            .filter(|_| work == PendingWork::Tool)
            .and_then(|call| hang_cause(&call.command_line.as_ref()?.line, None, None));
        let why = cause.map_or(why.clone(), |cause| format!("{why} · it {} · try: {}", cause.clause(), cause.unblock));
        let raise = NewFinding::new(FindingKind::Stuck, Severity::Warning, what, why, self.progress_at);
        let evidence = self.last.into_iter().collect();
        findings.raise(NewFinding { key: SILENT.into(), evidence, ..raise }, at);
        // Without a finding (history, or switched off) the deadline must not recur immediately.
        self.progress_at = at;
    }
}
