//! Formats events as lines for users. An approval is one line with its command and its decision.

use std::collections::{HashMap, HashSet};

use events::{
    ApprovalId, ApprovalRequested, ApprovalResolved, ApprovalState, DecidedBy, Event, FindingKind, FindingState,
    Payload, PromptOrigin, Reason, SendOutcome, SessionId, Timestamp,
};
use export::conversation::duration;
use projections::Approval;

use crate::show::request::decided;

use super::super::events::{text_of, turn_words};

/// Time within which a second source reports a session start or end that another source has reported, ms.
const SAME_MS: i64 = 10_000;
/// The text for a request whose approval is no longer stored.
const UNKNOWN_REQUEST: &str = "a request that is no longer stored";

/// The word for an event, and the text of its line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LogLine {
    pub(super) word: &'static str,
    pub(super) text: String,
}

/// How and when an approval was closed.
#[derive(Debug, Clone)]
struct LoggedDecision {
    resolved: ApprovalResolved,
    at: Timestamp,
}

/// The contents of a request's line.
#[derive(Debug, Clone)]
struct LoggedRequest {
    subject: String,
    asked_at: Timestamp,
    /// Whether the line included the decision.
    is_decided: bool,
}

/// Formats events as lines. Events must be passed in order.
pub(super) struct LogLines<'a> {
    /// Reads an approval whose events are not among those received.
    read: &'a dyn Fn(&ApprovalId) -> Option<Approval>,
    /// Requests that have been printed.
    requests: HashMap<ApprovalId, LoggedRequest>,
    /// Decisions read before their event is formatted.
    ahead: HashMap<ApprovalId, LoggedDecision>,
    /// Approvals whose requests have been received, and those of them whose effects may be irreversible.
    approvals: HashSet<ApprovalId>,
    risky: HashSet<ApprovalId>,
    started: HashMap<SessionId, Timestamp>,
    ended: HashMap<SessionId, Timestamp>,
}

impl<'a> LogLines<'a> {
    /// Creates a formatter for consecutive events.
    pub(super) fn new(read: &'a dyn Fn(&ApprovalId) -> Option<Approval>) -> Self {
        Self {
            read,
            requests: HashMap::new(),
            ahead: HashMap::new(),
            approvals: HashSet::new(),
            risky: HashSet::new(),
            started: HashMap::new(),
            ended: HashMap::new(),
        }
    }

    /// Reads upcoming events, so that the line of a request includes its decision.
    pub(super) fn look_ahead<'e>(&mut self, events: impl IntoIterator<Item = &'e Event>) {
        for event in events {
            #[expect(clippy::wildcard_enum_match_arm, reason = "only approvals are looked for")]
            match &event.payload {
                Payload::ApprovalRequested(asked) => {
                    self.approvals.insert(asked.approval_id.clone());
                }
                Payload::ApprovalResolved(resolved) => {
                    self.approvals.insert(resolved.approval_id.clone());
                    if resolved.new_state().is_some() {
                        let decision = LoggedDecision { resolved: resolved.clone(), at: event.created_at };
                        self.ahead.insert(resolved.approval_id.clone(), decision);
                    }
                }
                Payload::Finding(finding) if finding.kind == FindingKind::RiskyApproval => {
                    self.risky.extend(finding.approval_id.clone());
                }
                _ => {}
            }
        }
    }

    /// The line of an event; `None` if another line covers it.
    pub(super) fn line(&mut self, event: &Event) -> Option<LogLine> {
        let line = |word: &'static str, text: String| Some(LogLine { word, text });
        #[expect(clippy::wildcard_enum_match_arm, reason = "other kinds are rare here and have the words of `events`")]
        match &event.payload {
            Payload::UserPrompt(prompt) => {
                let word = match prompt.origin {
                    PromptOrigin::Human | PromptOrigin::Steering => "prompt",
                    PromptOrigin::Wakeup => "wake-up",
                    PromptOrigin::Agent => "task",
                    PromptOrigin::Monitor => "prompt by a rule",
                    PromptOrigin::Command => "command",
                };
                line(word, text_of(event))
            }
            Payload::SessionStarted(start) => {
                self.ended.remove(&event.session_id);
                let before = self.started.insert(event.session_id, event.created_at);
                if before.is_some_and(|before| event.created_at.since_ms(before) < SAME_MS) {
                    return None;
                }
                let version = start.cli_version.as_deref().map(|version| format!("version {version}"));
                let parts = [start.cwd.clone(), version, start.model.clone()];
                line("started", parts.into_iter().flatten().collect::<Vec<_>>().join(" · "))
            }
            Payload::SessionExited(exit) => {
                let before = self.ended.insert(event.session_id, event.created_at);
                if before.is_some_and(|before| event.created_at.since_ms(before) < SAME_MS) {
                    return None;
                }
                let how = match exit.reason {
                    Some(Reason::Killed) => "its process was killed".to_owned(),
                    Some(Reason::Failed) => match exit.code {
                        Some(code) => format!("with exit code {code}"),
                        None => "with an error".to_owned(),
                    },
                    Some(_) | None => String::new(),
                };
                line("ended", how)
            }
            Payload::TurnCompleted(turn) => line("turn", turn_words(turn)),
            Payload::ApprovalRequested(asked) => line("approval", self.request(event, asked)),
            Payload::ApprovalResolved(resolved) => self.resolution(event, resolved),
            Payload::QuestionAsked(_) => line("question", text_of(event)),
            Payload::QuestionAnswered(_) => match text_of(event) {
                text if text.is_empty() => line("answer", "given in the agent".to_owned()),
                text => line("answer", text),
            },
            Payload::Error(_) => line("error", text_of(event)),
            Payload::ToolResult(_) => line("failed", event.text.clone().unwrap_or_default()),
            Payload::ContextCompacted(_) => line("compacted", text_of(event)),
            Payload::SessionForked(_) => line("forked", text_of(event)),
            Payload::QueuedPrompt(_) => line("queue", text_of(event)),
            Payload::Notification(sent) => {
                let how = match sent.outcome {
                    SendOutcome::Sent => "sent".to_owned(),
                    SendOutcome::Failed | SendOutcome::Dropped => {
                        format!("not sent: {}", sent.error.as_deref().unwrap_or("no reason is known"))
                    }
                };
                line("message", format!("{}: {how}", sent.channel))
            }
            Payload::Finding(finding) => {
                let of_approval = matches!(finding.kind, FindingKind::Approval | FindingKind::RiskyApproval);
                let is_told = |id: &ApprovalId| self.approvals.contains(id);
                if of_approval && finding.approval_id.as_ref().is_some_and(is_told) {
                    return None;
                }
                let what = &finding.what;
                let text = match (finding.state, finding.resolution.as_deref()) {
                    (FindingState::Open, _) => what.clone(),
                    (FindingState::Acknowledged, _) => format!("acknowledged: {what}"),
                    (FindingState::Resolved, Some(how)) => format!("over ({how}): {what}"),
                    (FindingState::Resolved, None) => format!("over: {what}"),
                };
                line("finding", text)
            }
            _ => line(event.payload.kind().as_str(), text_of(event)),
        }
    }

    fn request(&mut self, event: &Event, asked: &ApprovalRequested) -> String {
        let id = &asked.approval_id;
        self.approvals.insert(id.clone());
        let subject = subject(asked, event.text.as_deref());
        let decision = self.ahead.get(id).map(|decision| told(&decision.resolved, decision.at, event.created_at));
        let decision = decision.or_else(|| {
            let approval = (self.read)(id).filter(|approval| approval.state != ApprovalState::Pending)?;
            let words = decided(approval.state, approval.by, approval.device.as_deref(), approval.rule.as_deref());
            Some((words, details(approval.by, approval.closed_at, event.created_at, approval.message.as_deref())))
        });
        let is_decided = decision.is_some();
        let (words, details) =
            decision.unwrap_or_else(|| (decided(ApprovalState::Pending, None, None, None), String::new()));
        let risky = if self.risky.contains(id) { " · risky" } else { "" };
        let request = LoggedRequest { subject: subject.clone(), asked_at: event.created_at, is_decided };
        self.requests.insert(id.clone(), request);
        format!("{words}: {subject}{risky}{details}")
    }

    fn resolution(&mut self, event: &Event, resolved: &ApprovalResolved) -> Option<LogLine> {
        // The event only reports how the call ended.
        resolved.new_state()?;
        let id = &resolved.approval_id;
        self.approvals.insert(id.clone());
        let (subject, asked_at) = match self.requests.get(id) {
            Some(request) if request.is_decided => return None,
            Some(request) => (request.subject.clone(), request.asked_at),
            None => {
                let approval = (self.read)(id);
                let subject = approval.as_ref().and_then(|approval| {
                    approval.command.clone().or_else(|| approval.subject.clone()).or_else(|| approval.tool.clone())
                });
                let at = approval.map_or(event.created_at, |approval| approval.opened_at);
                (subject.unwrap_or_else(|| UNKNOWN_REQUEST.to_owned()), at)
            }
        };
        let (words, details) = told(resolved, event.created_at, asked_at);
        Some(LogLine { word: "approval", text: format!("{words}: {subject}{details}") })
    }
}

/// How and by whom an approval was closed, and the details to print after its subject.
fn told(resolved: &ApprovalResolved, at: Timestamp, asked_at: Timestamp) -> (String, String) {
    let state = resolved.new_state().unwrap_or(ApprovalState::Pending);
    let words = decided(state, resolved.by, resolved.device.as_deref(), resolved.rule.as_deref());
    (words, details(resolved.by, Some(at), asked_at, resolved.message.as_deref()))
}

/// The time a person took and the person's message. They come last, so that a narrow terminal does not cut off the
/// command.
fn details(by: Option<DecidedBy>, closed_at: Option<Timestamp>, asked_at: Timestamp, message: Option<&str>) -> String {
    if by != Some(DecidedBy::Person) {
        return String::new();
    }
    let waited = closed_at.and_then(|at| u64::try_from(at.since_ms(asked_at)).ok());
    let waited = waited.map(|waited| format!(" · after {}", duration(waited))).unwrap_or_default();
    let message = message.filter(|message| !message.is_empty());
    waited + &message.map(|message| format!(" · {message}")).unwrap_or_default()
}

/// The subject of a request: its command, files or address, or the text of its source.
fn subject(asked: &ApprovalRequested, text: Option<&str>) -> String {
    let paths = (!asked.paths.is_empty()).then(|| asked.paths.join(", "));
    let subject = asked.command.clone().or(paths).or_else(|| asked.url.clone()).or_else(|| text.map(str::to_owned));
    subject.or_else(|| asked.tool.clone()).unwrap_or_else(|| "a request with unknown content".to_owned())
}

#[cfg(test)]
mod tests {
    use events::{
        ApprovalKind, AssistantMessage, Confidence, EventId, Finding, Notification, Origin, Provider, SessionExited,
        SessionStarted, Severity, Source, ToolOutcome, ToolResult, TurnCompleted, TurnOutcome, UserPrompt,
    };

    use super::*;

    fn event(at_s: i64, payload: impl Into<Payload>, text: Option<&str>) -> Event {
        Event {
            position: 1,
            id: EventId::from_bits(1),
            session_id: SessionId::from_bits(1),
            sequence: 7,
            provider: Provider::Claude,
            provider_session_id: "p".into(),
            source: Source::Transcript,
            created_at: Timestamp::from_millisecond(at_s * 1_000),
            observed_at: Timestamp::MIN,
            turn_id: None,
            parent_id: None,
            agent_id: None,
            confidence: Confidence::High,
            severity: None,
            text: text.map(str::to_owned),
            text_ref: None,
            payload: payload.into(),
            origin: Origin::Derived,
            derived: false,
            history: false,
        }
    }

    fn id() -> ApprovalId {
        EventId::from_bits(9).into()
    }

    fn asked(at_s: i64) -> Event {
        let asked = ApprovalRequested {
            approval_id: id(),
            about: Some(ApprovalKind::Command),
            tool: Some("Bash".into()),
            command: Some("git push --force".into()),
            ..ApprovalRequested::default()
        };
        event(at_s, asked, None)
    }

    fn allowed(at_s: i64) -> Event {
        let resolved = ApprovalResolved {
            approval_id: id(),
            allowed: Some(true),
            by: Some(DecidedBy::Person),
            ..ApprovalResolved::default()
        };
        event(at_s, resolved, None)
    }

    fn outcome(at_s: i64) -> Event {
        let outcome = Some(ToolOutcome::Ok);
        event(at_s, ApprovalResolved { approval_id: id(), outcome, ..ApprovalResolved::default() }, None)
    }

    fn finding(at_s: i64, state: FindingState) -> Event {
        let finding = Finding {
            confidence: events::Confidence::High,
            id: "f1".into(),
            kind: FindingKind::RiskyApproval,
            severity: Severity::Warning,
            state,
            session_id: SessionId::from_bits(1),
            key: "k".into(),
            what: "asks permission for Bash: git push --force".into(),
            why: "it overwrites shared history".into(),
            subject: None,
            approval_id: Some(id()),
            evidence: Vec::new(),
            first_at: Timestamp::MIN,
            last_at: Timestamp::MIN,
            count: 1,
            until: None,
            acknowledged_at: None,
            resolved_at: None,
            resolution: (state == FindingState::Resolved).then(|| "it was allowed".into()),
        };
        event(at_s, finding, None)
    }

    fn unread(_: &ApprovalId) -> Option<Approval> {
        None
    }

    fn lines(events: &[Event]) -> Vec<String> {
        let mut lines = LogLines::new(&unread);
        lines.look_ahead(events);
        let lines = events.iter().filter_map(|event| lines.line(event));
        lines.map(|line| format!("{} {}", line.word, line.text)).collect()
    }

    #[test]
    fn an_end_that_two_sources_report_is_one_line() {
        let ended = |at_s, code| event(at_s, SessionExited { reason: Some(Reason::Failed), code }, None);
        let again = event(2, SessionStarted::default(), None);
        let events = [ended(0, Some(3)), ended(1, None), again, ended(3, Some(1)), ended(60, Some(2))];
        let told = lines(&events);
        let ends: Vec<&String> = told.iter().filter(|line| line.starts_with("ended")).collect();
        assert_eq!(ends, ["ended with exit code 3", "ended with exit code 1", "ended with exit code 2"]);
    }

    #[test]
    fn an_approval_is_one_line_with_its_command_and_its_decision() {
        let events =
            [asked(0), finding(0, FindingState::Open), allowed(3), finding(3, FindingState::Resolved), outcome(5)];
        assert_eq!(lines(&events), ["approval allowed by you: git push --force · risky · after 3.0 s"]);
        assert_eq!(lines(&[asked(0)]), ["approval waiting for you: git push --force"]);
    }

    #[test]
    fn a_followed_approval_prints_its_request_and_its_decision() {
        let mut followed = LogLines::new(&unread);
        let told: Vec<_> = [asked(0), finding(0, FindingState::Open), allowed(15), outcome(16)]
            .iter()
            .filter_map(|event| Some(followed.line(event)?.text))
            .collect();
        assert_eq!(told, ["waiting for you: git push --force", "allowed by you: git push --force · after 15 s"]);
    }

    fn stored(request: &Event) -> Approval {
        let Payload::ApprovalRequested(asked) = &request.payload else { panic!() };
        let of = (SessionId::from_bits(1), Provider::Claude);
        Approval::of(asked, of, None, (Source::Hook, Confidence::High), request.created_at)
    }

    #[test]
    fn a_followed_approval_that_is_already_decided_prints_one_line() {
        let mut approval = stored(&asked(0));
        let told = |approval: &Approval| {
            let read = |_: &ApprovalId| Some(approval.clone());
            let mut followed = LogLines::new(&read);
            let events = [asked(0), allowed(3), outcome(5)];
            events.iter().filter_map(|event| Some(followed.line(event)?.text)).collect::<Vec<_>>()
        };
        assert_eq!(
            told(&approval),
            ["waiting for you: git push --force", "allowed by you: git push --force · after 3.0 s"]
        );
        approval.state = ApprovalState::Allowed;
        approval.by = Some(DecidedBy::Person);
        approval.closed_at = Some(Timestamp::from_millisecond(3_000));
        assert_eq!(told(&approval), ["allowed by you: git push --force · after 3.0 s"]);
    }

    #[test]
    fn a_decision_on_a_later_page_is_printed() {
        let mut lines = LogLines::new(&unread);
        for (event, told) in [
            (asked(0), "waiting for you: git push --force"),
            (allowed(3), "allowed by you: git push --force · after 3.0 s"),
        ] {
            lines.look_ahead([&event]);
            assert_eq!(lines.line(&event).unwrap().text, told);
        }
    }

    #[test]
    fn a_decision_without_its_request_shows_the_stored_command_if_any() {
        assert_eq!(lines(&[allowed(3)]), [format!("approval allowed by you: {UNKNOWN_REQUEST} · after 0.0 s")]);
        let read = |_: &ApprovalId| Some(stored(&asked(0)));
        let mut lines = LogLines::new(&read);
        assert_eq!(lines.line(&allowed(3)).unwrap().text, "allowed by you: git push --force · after 3.0 s");
    }

    #[test]
    fn a_finding_without_an_approval_event_is_printed() {
        assert_eq!(
            lines(&[finding(0, FindingState::Open), finding(3, FindingState::Resolved)]),
            [
                "finding asks permission for Bash: git push --force",
                "finding over (it was allowed): asks permission for Bash: git push --force",
            ]
        );
    }

    #[test]
    fn common_events_are_described_in_plain_words() {
        let ended =
            |outcome, duration_ms| TurnCompleted { outcome, number: 1, duration_ms, ..TurnCompleted::default() };
        let of = |payload: Payload, text: Option<&str>| lines(&[event(0, payload, text)]);
        assert_eq!(of(UserPrompt::default().into(), Some("fix it")), ["prompt fix it"]);
        assert_eq!(of(ended(TurnOutcome::Completed, 14_712).into(), None), ["turn done in 14 s"]);
        assert_eq!(of(ended(TurnOutcome::Interrupted, 3_000).into(), None), ["turn interrupted after 3.0 s"]);
        assert_eq!(of(ToolResult::default().into(), Some("no such file")), ["failed no such file"]);
        let sent = Notification {
            message_id: "m1".into(),
            channel: "desktop".into(),
            findings: Vec::new(),
            outcome: SendOutcome::Sent,
            error: None,
            attempts: 1,
        };
        assert_eq!(of(sent.into(), None), ["message desktop: sent"]);
        assert_eq!(of(AssistantMessage::default().into(), Some("hm")), ["assistant.message hm"]);
    }

    #[test]
    fn a_start_that_two_sources_report_is_one_line() {
        let start = |at| {
            let started =
                SessionStarted { cwd: Some("/w".into()), cli_version: Some("2.1".into()), ..Default::default() };
            event(at, started, None)
        };
        let line = "started /w · version 2.1";
        assert_eq!(lines(&[start(0), start(2), start(60)]), [line, line]);
    }
}
