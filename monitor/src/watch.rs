//! The monitor of one session: applies its events in order, and the time.
//!
//! Owns the data that all detectors share: the clock of the session, its state, the open calls, and whether its events
//! arrive live. History raises nothing.

use events::{
    Annotation, Claim, ErrorClass, Event, EventId, Finding, FindingKind, Payload, PromptOrigin, Reason, SessionId,
    Severity, Signal, Source, StartKind, State, StatusChanged, Timestamp, ToolResult, Topic,
};
use projections::{Session, shorten::one_line};

use crate::{
    approvals::{ApprovalWatch, QUESTION},
    boundaries::BoundaryWatch,
    cause::{Cause, hang_cause},
    claims, conflict,
    context::ContextUse,
    ending::EndingDetector,
    errors::RequestErrors,
    failing::FailureDetector,
    findings::{NewFinding, SessionFindings},
    loops::{self, LoopDetector},
    polling::{self, Polling},
    rules::DetectorLimits,
    step::{PendingCalls, RunningCommand, session_of},
    stuck::{PendingWork, StuckDetector},
    together::EditedFile,
};

/// Age from which a derived event counts as past, ms.
const PAST_MS: i64 = 60_000;
/// How long a session is watched after its end, ms.
const LAST_WORDS_MS: i64 = 60_000;
/// Age from which the end of a turn that was read as history is no longer reported, ms.
const OLD_NEWS_MS: i64 = 10 * 60 * 1000;

/// A watched session.
#[derive(Debug)]
pub(crate) struct SessionWatch {
    pub(crate) findings: SessionFindings,
    clock: Timestamp,
    /// The position of the last event that was applied live.
    position: u64,
    /// Whether any of its events arrived live, not as history.
    live: bool,
    /// Whether it is the sub-agent of another session.
    sub: bool,
    /// Whether a program runs it; the user then does not wait for its turns to end.
    headless: bool,
    /// When its process ended, or another session replaced it.
    over_at: Option<Timestamp>,
    /// Whether the current event happened before that.
    before_end: bool,
    merged: bool,
    /// Whether its screen is read.
    seen: bool,
    state: Option<(State, Option<Reason>)>,
    /// The start of the status that was last checked for open problems.
    stood_since: Option<Timestamp>,
    /// A question in the status that was not raised yet.
    unasked: Option<(EventId, String)>,
    answered_at: Timestamp,
    calls: PendingCalls,
    loops: LoopDetector,
    polling: Polling,
    failures: FailureDetector,
    stuck: StuckDetector,
    errors: RequestErrors,
    approvals: ApprovalWatch,
    boundaries: BoundaryWatch,
    context: ContextUse,
    ending: EndingDetector,
    /// The files that the current event reports as changed.
    edited: Vec<EditedFile>,
}

/// When an event happened, as in the reducer: by our clock if it is live, by its own date if it is history or was sent
/// late.
fn moment(event: &Event) -> Timestamp {
    if event.derived {
        event.created_at
    } else if event.history || event.source == Source::Telemetry {
        event.created_at.min(event.observed_at)
    } else {
        event.observed_at
    }
}

/// Whether an event was already over when it was observed.
pub(crate) fn is_past(event: &Event) -> bool {
    event.history || event.derived && event.observed_at.since_ms(event.created_at) > PAST_MS
}

impl SessionWatch {
    pub(crate) fn new(session: SessionId, rules: &DetectorLimits) -> Self {
        Self {
            findings: SessionFindings::new(session, &rules.off),
            clock: Timestamp::MIN,
            position: 0,
            live: false,
            sub: false,
            headless: false,
            over_at: None,
            before_end: false,
            merged: false,
            seen: false,
            state: None,
            stood_since: None,
            unasked: None,
            answered_at: Timestamp::MIN,
            calls: PendingCalls::default(),
            loops: LoopDetector::default(),
            polling: Polling::default(),
            failures: FailureDetector::default(),
            stuck: StuckDetector::new(Timestamp::MIN),
            errors: RequestErrors::default(),
            approvals: ApprovalWatch::default(),
            boundaries: BoundaryWatch::default(),
            context: ContextUse::default(),
            ending: EndingDetector::default(),
            edited: Vec::new(),
        }
    }

    /// Returns the files that the last event reports as changed, once.
    pub(crate) fn take_edited(&mut self) -> Vec<EditedFile> {
        std::mem::take(&mut self.edited)
    }

    /// Raises a finding about several sessions, if this session is followed.
    pub(crate) fn raise_shared(&mut self, raise: NewFinding, at: Timestamp) {
        if self.live && !self.merged && self.over_at.is_none() {
            self.findings.audible = true;
            self.findings.raise(raise, at);
        }
    }

    pub(crate) fn restore(&mut self, finding: Finding) {
        if finding.is_open() {
            self.live = true;
            self.clock = self.clock.max(finding.first_at);
            if finding.kind.facts().is_of_end {
                self.over_at = Some(finding.last_at);
            }
            if let Some(until) = finding.until {
                self.errors.lasts(finding.kind, until);
            }
        }
        self.findings.restore(finding);
    }

    pub(crate) fn clock(&self) -> Timestamp {
        self.clock
    }

    /// Whether there is nothing left to watch.
    pub(crate) fn is_over(&self, now: Timestamp) -> bool {
        let long_ago = |at: Timestamp| self.merged || now.since_ms(at) >= LAST_WORDS_MS;
        self.over_at.is_some_and(long_ago) && self.findings.open().next().is_none()
    }

    /// Number of steps, calls and findings remembered.
    pub(crate) fn memory_size(&self) -> usize {
        self.findings.len()
            + self.calls.len()
            + self.loops.len()
            + self.polling.len()
            + self.failures.len()
            + self.approvals.len()
            + self.boundaries.len()
    }

    /// Follows the session live from now on; turns that ended long before are not reported.
    fn follow_live(&mut self, at: Timestamp) {
        if !self.live {
            self.live = true;
            self.stuck = StuckDetector::new(at);
            self.calls.follow_live(at);
            self.ending.forget_before(at.plus_ms(-OLD_NEWS_MS));
            self.ending.forget_idleness(at);
        }
    }

    /// Applies an event. An event that was already applied before a restart (`again`) raises nothing.
    pub(crate) fn apply(&mut self, event: &Event, again: bool, rules: &DetectorLimits) {
        // An event that is applied again, because its session had ended and a late event arrived, is ignored.
        if self.merged || event.position <= self.position {
            return;
        }
        // An event that was applied as history may be applied once more as live.
        if !event.history {
            self.position = event.position;
        }
        let past = again || is_past(event);
        let at = moment(event).max(self.clock);
        if !is_past(event) && !event.derived {
            self.follow_live(at);
            self.stuck.begin(at);
        }
        if !past {
            self.pass(at, rules);
        }
        self.clock = at;
        self.findings.audible = self.live && !past;
        self.findings.examine(if let Payload::Signal(signal) = &event.payload {
            signal.strength
        } else {
            event.confidence
        });
        self.before_end = self.over_at.is_some_and(|over_at| moment(event) < over_at);
        self.read(event, at, rules);
        self.raise_deferred_question(at);
        let pending = !self.approvals.is_empty() || self.findings.is_open(QUESTION);
        self.ending.settle(self.state, pending, at, rules);
    }

    /// Advances the time.
    pub(crate) fn pass(&mut self, now: Timestamp, rules: &DetectorLimits) {
        // Each step ends at a deadline; the bound limits the steps if the clock jumps.
        for _ in 0..1_024 {
            let Some(due) = self.due(rules).filter(|due| *due <= now) else { break };
            self.ring(due.max(self.clock), rules);
        }
        self.clock = self.clock.max(now);
    }

    /// The next time at which time alone would change something.
    pub(crate) fn due(&self, rules: &DetectorLimits) -> Option<Timestamp> {
        if !self.live || self.merged {
            return None;
        }
        if let Some(over_at) = self.over_at {
            let keeps = self.findings.open().next().is_some();
            let left = if keeps { rules.keep_ms } else { LAST_WORDS_MS };
            return Some(over_at.plus_ms(left)).filter(|due| *due > self.clock || keeps);
        }
        let silent = self.stuck.due(self.work(), rules, &self.findings);
        let hangs = self.unexamined(rules).map(|(due, _)| due).min();
        let all = [silent, hangs, self.errors.due(), self.approvals.due(self.waits(), rules), self.ending.due()];
        all.into_iter().flatten().min()
    }

    fn ring(&mut self, at: Timestamp, rules: &DetectorLimits) {
        self.clock = at;
        self.findings.audible = true;
        if let Some(over_at) = self.over_at {
            if over_at.plus_ms(rules.keep_ms) <= at {
                self.findings.resolve_kinds(FindingKind::ALL, at, "it is outdated");
            }
            return;
        }
        let work = self.work();
        if self.stuck.due(work, rules, &self.findings).is_some_and(|due| due <= at) {
            let call = self.calls.iter().next();
            self.stuck.ring(work, call, at, &mut self.findings);
        }
        self.examine_commands(at, rules);
        self.errors.ring(at, &mut self.findings);
        let waits = self.waits();
        if self.approvals.due(waits, rules).is_some_and(|due| due <= at) {
            self.approvals.ring(waits, at, rules, &mut self.findings);
        }
        self.ending.ring(at, self.sub || self.headless, self.answered_at, &mut self.findings);
    }

    /// Whether the session waits for the user, judged by its sources. If its screen is read, the status shows a dialog;
    /// otherwise a request is enough.
    fn waits(&self) -> bool {
        !self.seen || self.state.is_none_or(|(state, reason)| state.awaits_answer(reason))
    }

    /// The commands that run and were not examined yet, each with the time at which it is.
    fn unexamined(&self, rules: &DetectorLimits) -> impl Iterator<Item = (Timestamp, &RunningCommand)> {
        let runs = self.ending.is_open() && self.work() == PendingWork::Patient;
        let asked_until = self.approvals.over_at().unwrap_or(Timestamp::MIN);
        let (hang_ms, prompt_ms, poll_ms) = (rules.hang_ms, rules.prompt_ms, rules.poll_ms);
        let calls = self.calls.iter().filter(move |call| runs && call.takes_its_time());
        let commands = calls.filter_map(|call| call.command_line.as_ref()).filter(|command| !command.examined);
        commands.map(move |command| {
            let limit = match command.output {
                None if command.polls => hang_ms.max(poll_ms),
                None => hang_ms,
                Some(_) => prompt_ms,
            };
            (command.since.max(asked_until).plus_ms(limit), command)
        })
    }

    /// Examines the commands that have been running for long.
    fn examine_commands(&mut self, at: Timestamp, rules: &DetectorLimits) {
        let due = self.unexamined(rules).filter(|(due, _)| *due <= at).map(|(_, command)| command.call.clone());
        let due: Vec<String> = due.collect();
        for command in self.calls.commands().filter(|command| due.contains(&command.call)) {
            let cause = hang_cause(&command.line, command.output.as_deref(), None);
            // A command that was left running on purpose may run without end, but a prompt needs an answer.
            let cause = cause.filter(|cause| cause.is_shown || command.output.is_none());
            let is_loop = cause.as_ref().is_some_and(|cause| cause.cause == Cause::WaitLoop);
            let polls = std::mem::replace(&mut command.polls, is_loop);
            command.examined = polls || !is_loop;
            if let Some(cause) = cause.filter(|_| command.examined) {
                StuckDetector::hangs(command, &cause, at, &mut self.findings);
            }
        }
    }

    fn work(&self) -> PendingWork {
        let runs = match self.state {
            Some((State::Running, Some(Reason::Subagents))) => return PendingWork::Patient,
            Some((State::Running, _)) => true,
            Some((State::Waiting | State::WaitingApproval | State::Idle | State::Exited | State::Unknown, _))
            | None => false,
        };
        if !runs || !self.ending.is_open() || !self.approvals.is_empty() {
            PendingWork::None
        } else if self.calls.iter().any(|call| call.takes_its_time() && !call.background) {
            PendingWork::Patient
        } else if self.calls.iter().any(|call| !call.background) {
            PendingWork::Tool
        } else {
            PendingWork::Model
        }
    }

    fn read(&mut self, event: &Event, at: Timestamp, rules: &DetectorLimits) {
        if speaks(event) {
            self.stuck.progress(event.id, at, &mut self.findings);
        }
        match &event.payload {
            Payload::SessionStarted(started) => {
                self.sub |= started.how == StartKind::Subagent
                    || started.parent_session_id.is_some()
                    || started.parent_provider_session_id.is_some();
                self.headless = started.headless.unwrap_or(self.headless);
                self.boundaries.moved(started.cwd.as_deref());
                self.context.model(started.model.as_deref());
            }
            // Only the reducer's conclusion counts, and the reducer concludes one end for each reported one.
            Payload::SessionExited(exited) if event.derived => {
                let answered_at = self.answered_at;
                self.ending.exited(
                    event.id,
                    exited.reason,
                    (self.sub || self.headless, answered_at),
                    at,
                    &mut self.findings,
                );
                self.leave(at, "the session ended");
            }
            Payload::TurnStarted(_) => {
                self.revive(at);
                self.ending.turn_started(at, &mut self.findings);
                self.stuck.progress(event.id, at, &mut self.findings);
            }
            Payload::TurnCompleted(completed) => {
                self.ending.turn_completed(event.id, completed, at, &mut self.findings);
                if !self.sub {
                    claims::turn_completed(event.id, completed, at, &mut self.findings);
                }
                if at.since_ms(moment(event)) > OLD_NEWS_MS {
                    // Read late: its own time counts.
                    self.ending.forget_before(at.plus_ms(1));
                }
                self.turn_ended(at);
                if self.errors.turn_ended(at, &mut self.findings) {
                    self.ending.failed(at, &mut self.findings);
                }
            }
            Payload::UserPrompt(_) if event.confidence == events::Confidence::Low => {}
            Payload::UserPrompt(prompt) => {
                self.boundaries.apply(event, at, &mut self.findings);
                self.prompted(event, prompt.origin, at);
            }
            Payload::AssistantMessage(message) => {
                self.context.model(message.model.as_deref());
                self.ending.answered(message.stop);
                self.answered(at);
            }
            Payload::AssistantDelta(_) => self.answered(at),
            Payload::ToolCall(call) => {
                self.answered(at);
                if let Some(call) = self.calls.called(event, call, at) {
                    StuckDetector::command_over(&call, at, "the agent typed an answer", &mut self.findings);
                }
                self.boundaries.called(call, event.text.as_deref());
            }
            Payload::ToolResult(result) if !result.detail => self.returned(event, result, at, rules),
            Payload::ApprovalRequested(asked) => {
                self.boundaries.requested(asked);
                self.approvals.requested(event, asked, at);
            }
            Payload::ApprovalResolved(resolved) => {
                self.boundaries.resolved(resolved);
                self.approvals.resolved(event, resolved, at, rules, &mut self.findings)
            }
            Payload::StatusChanged(change) => self.changed(event, change, at, rules),
            Payload::Error(error) => {
                // Late report: the model has answered since.
                if event.source == Source::Telemetry && event.created_at <= self.answered_at {
                    return;
                }
                if error.class == ErrorClass::Context {
                    self.context.full(event, "a request was rejected because it was too long", at, &mut self.findings);
                    return;
                }
                self.errors.apply(event, error, at, rules, &mut self.findings);
                // A late report about a turn that has ended, or about a turn that no other source reported.
                let mends_itself = !matches!(error.class, ErrorClass::Auth | ErrorClass::Quota);
                let unseen = !mends_itself && !self.ending.is_open();
                if event.source == Source::Telemetry && (unseen || self.ending.ended_after(event.created_at)) {
                    self.errors.turn_ended(at, &mut self.findings);
                    self.ending.failed(at, &mut self.findings);
                }
                if error.retrying && self.errors.due().is_none() {
                    let words = one_line(event.text.as_deref().unwrap_or_default(), 160);
                    self.stuck.retries(event.id, true, &words, at, rules, &mut self.findings);
                }
            }
            Payload::QuestionAsked(_) => {
                let question = one_line(event.text.as_deref().unwrap_or("a question"), 160);
                self.raise_question(Some(event.id), question, at);
            }
            // While its approval is pending, the end of the approval counts.
            Payload::QuestionAnswered(_) => {
                if self.approvals.is_empty() {
                    self.findings.resolve(QUESTION, at, "it was answered");
                }
            }
            Payload::UsageReported(usage) => self.context.apply(event, usage, at, rules, &mut self.findings),
            Payload::ContextCompacted(_) => {
                self.answered(at);
                self.context.compacted(at, &mut self.findings);
            }
            Payload::Annotation(note) => self.annotate(event, note, at, rules),
            Payload::Signal(signal) => self.signalled(event, signal, at, rules),
            Payload::SessionExited(_)
            | Payload::ToolResult(_)
            | Payload::Heartbeat(_)
            | Payload::SessionForked(_)
            | Payload::Unrecognized(_)
            | Payload::Finding(_)
            | Payload::Notification(_)
            | Payload::QueuedPrompt(_) => {}
        }
    }

    fn answered(&mut self, at: Timestamp) {
        self.answered_at = at;
        self.stuck.answered(at, &mut self.findings);
        self.errors.answered(at, &mut self.findings);
    }

    fn prompted(&mut self, event: &Event, origin: PromptOrigin, at: Timestamp) {
        self.revive(at);
        let by_person = match origin {
            PromptOrigin::Human | PromptOrigin::Steering | PromptOrigin::Agent => {
                self.begin_anew(at, "a new prompt was sent");
                true
            }
            // An agent that repeats its last step after a wake-up is supervising.
            PromptOrigin::Wakeup | PromptOrigin::Command => {
                self.loops.clear();
                self.findings.resolve(loops::KEY, at, "the agent was woken");
                self.polling.woken();
                false
            }
            // The rule acts on what was found: an agent that continues the same way is still found.
            PromptOrigin::Monitor => false,
        };
        self.ending.prompted(event.text.as_deref(), by_person, at, &mut self.findings);
    }

    fn begin_anew(&mut self, at: Timestamp, why: &str) {
        self.loops.clear();
        self.polling.clear();
        self.failures.clear();
        self.findings.resolve_kinds(&[FindingKind::Loop, FindingKind::RepeatedFailure], at, why);
    }

    fn turn_ended(&mut self, at: Timestamp) {
        self.calls.clear();
        self.stuck.ended(at, &mut self.findings);
        // A failure that recurs from turn to turn stays remembered until it is found.
        if self.findings.is_open(loops::KEY)
            || self.findings.is_open(polling::KEY)
            || self.findings.has(FindingKind::RepeatedFailure)
        {
            self.begin_anew(at, "the turn is over");
        }
    }

    fn returned(&mut self, event: &Event, result: &ToolResult, at: Timestamp, rules: &DetectorLimits) {
        self.answered(at);
        self.boundaries.returned(event, result, at, &mut self.findings);
        let Some((call, step)) = self.calls.returned(event, result) else { return };
        let continues = session_of(event.text.as_deref().unwrap_or_default()).is_some();
        if let Some(command) = call.command_line.as_ref().filter(|_| !continues) {
            StuckDetector::command_over(&command.call, at, "the command ended", &mut self.findings);
        }
        let ran_ms = result.duration_ms.and_then(|ms| i64::try_from(ms).ok());
        let began_at = self.approvals.over_at().map_or(call.at, |over| over.max(call.at));
        let took_ms = ran_ms.unwrap_or_else(|| at.since_ms(began_at));
        self.ending.stepped(&call, &step, took_ms, at, rules, &mut self.findings);
        conflict::apply(&step, at, &mut self.findings);
        if call.tool == events::ToolKind::Edit && result.outcome == events::ToolOutcome::Ok {
            self.edited = call.paths.iter().cloned().map(|path| EditedFile { path, event: event.id }).collect();
        }
        if call.tool == events::ToolKind::Question || call.tool == events::ToolKind::Subagent {
            return;
        }
        if !self.polling.apply(&step, at, rules, &mut self.findings) {
            self.loops.apply(&step, at, rules, &mut self.findings);
            self.failures.apply(&step, at, rules, &mut self.findings);
        }
    }

    fn raise_question(&mut self, event: Option<EventId>, question: String, at: Timestamp) {
        let why = "the agent asked a question and is waiting for the answer".to_owned();
        let raise = NewFinding::new(FindingKind::Question, Severity::Warning, format!("asks: {question}"), why, at);
        self.findings.raise(NewFinding { subject: Some(question), evidence: event.into_iter().collect(), ..raise }, at);
    }

    fn changed(&mut self, event: &Event, change: &StatusChanged, at: Timestamp, rules: &DetectorLimits) {
        let asked = self.state == Some((State::Waiting, Some(Reason::Question)));
        self.state = Some((change.to, change.reason));
        if change.to != State::Exited {
            self.revive(at);
        }
        if change.to == State::Waiting {
            self.errors.waits(event.id, change.reason, at, &mut self.findings);
        }
        if (change.to, change.reason) == (State::Waiting, Some(Reason::Question)) {
            self.unasked = Some((event.id, change.activity.clone().unwrap_or_else(|| "a question".to_owned())));
        } else if asked {
            self.unasked = None;
            if self.approvals.is_empty() {
                self.findings.resolve(QUESTION, at, "it was answered");
            }
        }
        self.ending.status(change.to, at, rules, &mut self.findings);
    }

    /// The status shows a question immediately. While an approval is pending, the question belongs to it; if the status
    /// still shows it when the approval has ended, it is a separate question.
    fn raise_deferred_question(&mut self, at: Timestamp) {
        if self.findings.is_open(QUESTION) {
            self.unasked = None;
        } else if self.approvals.is_empty()
            && let Some((event, question)) = self.unasked.take()
        {
            self.raise_question(Some(event), question, at);
        }
    }

    fn annotate(&mut self, event: &Event, note: &Annotation, at: Timestamp, rules: &DetectorLimits) {
        match note.topic {
            Topic::Model => self.context.model(Some(&note.value)),
            Topic::Notice => self.context.remark(event, &note.value, at, rules, &mut self.findings),
            Topic::MergedInto => {
                self.leave(at, "the session was merged into another session");
                self.merged = true;
            }
            Topic::Asleep => {
                let ms = note.asleep_ms().unwrap_or(0);
                self.stuck.slept(ms);
                self.calls.slept(ms);
            }
            Topic::Cwd => self.boundaries.moved(Some(&note.value)),
            Topic::Title
            | Topic::GitBranch
            | Topic::PermissionMode
            | Topic::CliVersion
            | Topic::Queue
            | Topic::Command
            | Topic::Capture
            | Topic::Note
            | Topic::Run
            | Topic::Input
            | Topic::Screen
            | Topic::Trace
            | Topic::Label
            | Topic::Mark => {}
        }
    }

    fn signalled(&mut self, event: &Event, signal: &Signal, at: Timestamp, rules: &DetectorLimits) {
        self.seen |= event.source == Source::Pty;
        if event.source == Source::Runtime
            && let Claim::State { state, .. } = signal.claim
        {
            self.ending.reported(state);
        }
        let retries = Claim::State { state: State::Running, reason: Some(Reason::Retrying) };
        let late = event.source == Source::Telemetry;
        if signal.claim == retries && !late && self.ending.is_open() && self.errors.due().is_none() {
            let words = signal.words.clone().unwrap_or_default();
            self.stuck.retries(event.id, false, &words, at, rules, &mut self.findings);
        }
    }

    /// The session has ended, or another one replaced it.
    fn leave(&mut self, at: Timestamp, why: &str) {
        self.over_at = Some(at);
        self.begin_anew(at, why);
        self.calls.clear();
        self.boundaries.ended();
        self.stuck.ended(at, &mut self.findings);
        self.errors = RequestErrors::default();
        self.approvals.gone(at, &mut self.findings);
        let rest: Vec<FindingKind> = FindingKind::ALL.iter().copied().filter(|kind| !kind.facts().is_of_end).collect();
        self.findings.resolve_kinds(&rest, at, why);
    }

    /// Marks an ended session as active again, unless the event is only repeated or late.
    fn revive(&mut self, at: Timestamp) {
        if !self.before_end && self.over_at.take().is_some() {
            let of_end: Vec<FindingKind> =
                FindingKind::ALL.iter().copied().filter(|kind| kind.facts().is_of_end).collect();
            self.findings.resolve_kinds(&of_end, at, "the session continues");
        }
    }

    /// Compares the session with the reducer's state, for facts that its events did not contain or contained too long
    /// ago.
    pub(crate) fn check(&mut self, session: &Session, now: Timestamp, rules: &DetectorLimits) {
        if self.merged {
            return;
        }
        let at = now.max(self.clock);
        // An agent whose process is alive waits now, even if all its output was read as history.
        if session.pid.is_some() && session.status.state != State::Exited && session.merged_into.is_none() {
            self.follow_live(at);
        }
        self.stuck.begin(session.last_event_at);
        self.findings.examine(session.status.confidence);
        self.pass(at, rules);
        self.findings.audible = self.live;
        self.sub |= session.parent_session_id.is_some();
        self.headless |= session.headless;
        self.context.model(session.model.as_deref());
        self.boundaries.stands(session.began_in.as_deref(), session.cwd.as_deref());
        if self.state.is_none() {
            self.state = Some((session.status.state, session.status.reason));
        }
        if let Some(turn) = &session.turn {
            self.ending.is_known_open(turn.started_at);
        }
        if self.live && self.over_at.is_none() {
            self.approvals.check(session, at, rules, &mut self.findings);
            self.check_standing(session, at);
        }
        if session.merged_into.is_some() {
            self.leave(at, "the session was merged into another session");
            self.merged = true;
        }
    }

    /// Raises findings for a status that began unobserved, for example before the start: a question, a rejected key, an
    /// exhausted quota. Each status is checked once.
    fn check_standing(&mut self, session: &Session, at: Timestamp) {
        let status = &session.status;
        let since = status.since;
        if status.state != State::Waiting || self.stood_since.replace(since) == Some(since) {
            return;
        }
        let Some(kind) = status.reason.and_then(Reason::finding) else { return };
        if kind != FindingKind::Question {
            self.errors.stands(kind, since.min(at), at, &mut self.findings);
        } else if self.approvals.is_empty() && self.findings.is_news(QUESTION, since) {
            let question = status.activity.as_deref().unwrap_or("a question");
            let question = one_line(question.strip_prefix("asks: ").unwrap_or(question), 160);
            self.raise_question(None, question, since.min(at));
        }
    }

    /// Resolves all findings because the session is dropped for a newer one.
    pub(crate) fn abandon(&mut self) {
        self.findings.resolve_kinds(FindingKind::ALL, self.clock, "too many sessions are monitored");
    }
}

/// Whether an event shows activity.
fn speaks(event: &Event) -> bool {
    match &event.payload {
        Payload::UserPrompt(_)
        | Payload::AssistantMessage(_)
        | Payload::AssistantDelta(_)
        | Payload::ToolCall(_)
        | Payload::ToolResult(_)
        | Payload::ApprovalRequested(_)
        | Payload::ApprovalResolved(_)
        | Payload::QuestionAsked(_)
        | Payload::QuestionAnswered(_)
        | Payload::UsageReported(_)
        | Payload::ContextCompacted(_)
        | Payload::Heartbeat(_) => true,
        Payload::Signal(signal) => event.source == Source::Hook && matches!(signal.claim, Claim::State { .. }),
        Payload::SessionStarted(_)
        | Payload::SessionExited(_)
        | Payload::TurnStarted(_)
        | Payload::TurnCompleted(_)
        | Payload::StatusChanged(_)
        | Payload::Error(_)
        | Payload::SessionForked(_)
        | Payload::Annotation(_)
        | Payload::Finding(_)
        | Payload::Notification(_)
        | Payload::QueuedPrompt(_)
        | Payload::Unrecognized(_) => false,
    }
}
