//! Scripts of events and times, and the transitions that they cause in a session.

use std::sync::Arc;

use events::{
    Annotation, AssistantDelta, CompactTrigger, Confidence, ContextCompacted, ErrorReported, Heartbeat, Identity,
    Origin, QuestionAnswered, QuestionAsked, SessionForked, StartKind, ToolCall, ToolOutcome, ToolResult, Unrecognized,
    UserPrompt,
};

use super::*;
use events::{
    ApprovalKind, ApprovalRequested, ApprovalResolved, ApprovalState, AssistantMessage, Block, DecidedBy, Dialog,
    ErrorClass, PromptOrigin, SessionExited, SessionStarted, Signal, Stop, ToolKind, Topic, TurnStarted, TurnTrigger,
};

mod approvals;
mod claims;
mod facts;
mod properties;
mod turns;

const START: Timestamp = Timestamp::from_millisecond(1_795_149_432_000);
const PID: u32 = 821;

/// The moment `seconds` after the start.
fn at(seconds: f64) -> Timestamp {
    START.plus_ms((seconds * 1000.0).round() as i64)
}

/// An event without a position in the log.
#[derive(Debug, Clone)]
struct TestEvent {
    payload: Payload,
    source: Source,
    text: Option<String>,
    agent: Option<String>,
    confidence: Confidence,
    /// The provider's time of the event, in seconds, if it is reported later than it happened.
    created: Option<f64>,
    history: bool,
}

impl TestEvent {
    fn by(self, source: Source) -> Self {
        Self { source, ..self }
    }

    fn of_agent(self, agent: &str) -> Self {
        Self { agent: Some(agent.into()), ..self }
    }

    fn restated(self) -> Self {
        Self { confidence: Confidence::Low, ..self }
    }

    fn long_ago(self, created: f64) -> Self {
        Self { created: Some(created), history: true, ..self }
    }

    /// A live event with the date of its source.
    fn dated(self, created: f64) -> Self {
        Self { created: Some(created), ..self }
    }
}

/// One line of a script: an event, or only time.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a test holds a handful of them")]
enum Step {
    Event(f64, TestEvent),
    Until(f64),
}

fn on(seconds: f64, said: TestEvent) -> Step {
    Step::Event(seconds, said)
}

fn until(seconds: f64) -> Step {
    Step::Until(seconds)
}

fn said(payload: impl Into<Payload>) -> TestEvent {
    TestEvent {
        payload: payload.into(),
        source: Source::Transcript,
        text: None,
        agent: None,
        confidence: Confidence::High,
        created: None,
        history: false,
    }
}

fn says(text: &str, payload: impl Into<Payload>) -> TestEvent {
    TestEvent { text: Some(text.into()), ..said(payload) }
}

fn prompt(text: &str) -> TestEvent {
    asks(PromptOrigin::Human, text)
}

fn asks(origin: PromptOrigin, text: &str) -> TestEvent {
    says(text, UserPrompt { origin, ..UserPrompt::default() })
}

fn message(id: &str, text: &str, stop: Option<Stop>) -> TestEvent {
    says(text, AssistantMessage { message_id: Some(id.into()), stop, blocks: 1, ..AssistantMessage::default() })
}

fn answer(text: &str) -> TestEvent {
    message("last", text, Some(Stop::EndTurn))
}

fn part(id: &str, text: &str, stop: Option<Stop>) -> TestEvent {
    says(text, AssistantDelta { message_id: Some(id.into()), block: Block::Text, stop, blocks: 1 })
}

fn call(id: &str, tool: ToolKind, title: &str) -> TestEvent {
    said(tool_call(id, tool, title))
}

fn tool_call(id: &str, tool: ToolKind, title: &str) -> ToolCall {
    ToolCall { call_id: id.into(), name: tool.as_str().into(), tool, title: Some(title.into()), ..ToolCall::default() }
}

fn result(id: &str) -> TestEvent {
    returns(id, ToolOutcome::Ok)
}

fn returns(id: &str, outcome: ToolOutcome) -> TestEvent {
    said(ToolResult { call_id: id.into(), outcome, ..ToolResult::default() })
}

fn failure(class: ErrorClass) -> TestEvent {
    says("it broke", ErrorReported { class, ends_turn: true, ..ErrorReported::default() })
}

fn signal(source: Source, strength: Confidence, claim: Claim) -> TestEvent {
    said(Signal::new(claim, strength, Some(format!("the {source} says so")))).by(source)
}

fn ends(outcome: TurnOutcome) -> TestEvent {
    signal(Source::Transcript, Confidence::High, Claim::TurnEnded { outcome, pending_subagents: 0 })
}

fn claims(source: Source, state: State) -> TestEvent {
    claims_why(source, state, None)
}

fn claims_why(source: Source, state: State, reason: Option<Reason>) -> TestEvent {
    signal(source, Confidence::High, Claim::State { state, reason })
}

fn registry(state: State) -> TestEvent {
    claims(Source::Registry, state)
}

/// A hook's request for a command, with its claim.
fn requests(id: &str, command: &str) -> [TestEvent; 2] {
    let claim = Claim::State { state: State::WaitingApproval, reason: Some(Reason::Tool) };
    let claim = Signal {
        key: Some(format!("key of {command}")),
        ..Signal::new(claim, Confidence::High, Some("PermissionRequest".into()))
    };
    let asked = ApprovalRequested {
        approval_id: id.into(),
        about: Some(ApprovalKind::Command),
        command: Some(command.into()),
        input: Some("{}".into()),
        key: claim.key.clone(),
        ..ApprovalRequested::default()
    };
    [said(asked).by(Source::Hook), said(claim).by(Source::Hook)]
}

fn decides(id: &str, allowed: bool) -> TestEvent {
    let resolved = ApprovalResolved {
        approval_id: id.into(),
        allowed: Some(allowed),
        by: Some(DecidedBy::Policy),
        ..ApprovalResolved::default()
    };
    said(resolved).by(Source::Runtime)
}

fn sees_dialog(subject: &str) -> TestEvent {
    let claim = Claim::State { state: State::WaitingApproval, reason: Some(Reason::Tool) };
    let dialog = Dialog { subject: Some(subject.into()), ..Dialog::default() };
    said(Signal { dialog: Some(Box::new(dialog)), ..Signal::new(claim, Confidence::High, None) }).by(Source::Pty)
}

fn withdrawn(source: Source) -> TestEvent {
    signal(source, Confidence::High, Claim::Withdrawn)
}

fn alive() -> TestEvent {
    signal(Source::Registry, Confidence::High, Claim::ProcessAlive { pid: PID, start_ticks: 7 })
}

fn gone() -> TestEvent {
    signal(Source::Process, Confidence::High, Claim::ProcessGone { pid: PID, clean: false })
}

fn usage(message: &str, output_tokens: u64) -> TestEvent {
    said(UsageReported {
        message_id: Some(message.into()),
        input_tokens: 10,
        output_tokens,
        cache_read_tokens: 5,
        cache_write_tokens: 1,
        ..UsageReported::default()
    })
}

fn note(topic: Topic, value: &str) -> TestEvent {
    said(Annotation { topic, value: value.into() })
}

/// A session and the conclusions about it.
#[derive(Debug, Clone)]
struct Tape {
    state: SessionState,
    conclusions: Vec<Conclusion>,
}

impl Tape {
    fn new() -> Self {
        Self::of(Provider::Claude)
    }

    fn of(provider: Provider) -> Self {
        let id = SessionId::mint(START, provider, "s");
        Self {
            state: SessionState::new(id, provider, Some(Arc::from("s")), START, StatusRules::default()),
            conclusions: Vec::new(),
        }
    }

    /// Creates the event with the next sequence of the log.
    fn event(&self, seconds: f64, said: &TestEvent) -> Event {
        let sequence = self.state.session.last_sequence + 1;
        Event {
            position: sequence,
            id: Identity::record(Provider::Claude, &sequence.to_string(), 0).event_id(),
            session_id: self.state.session.id,
            sequence,
            provider: Provider::Claude,
            provider_session_id: Arc::from("s"),
            source: said.source,
            created_at: at(said.created.unwrap_or(seconds)),
            observed_at: at(seconds),
            turn_id: None,
            parent_id: None,
            agent_id: said.agent.as_deref().map(Arc::from),
            confidence: said.confidence,
            severity: None,
            text: said.text.clone(),
            text_ref: None,
            payload: said.payload.clone(),
            origin: Origin::Delivery { id: Arc::from("d") },
            derived: false,
            history: said.history,
        }
    }

    fn play(&mut self, step: &Step) {
        let concluded = match step {
            Step::Until(seconds) => self.state.advance(at(*seconds)),
            Step::Event(seconds, said) => {
                let event = self.event(*seconds, said);
                self.state.fold(&event)
            }
        };
        self.conclusions.extend(concluded);
    }

    fn played(steps: &[Step]) -> Self {
        let mut tape = Self::new();
        steps.iter().for_each(|step| tape.play(step));
        tape
    }

    fn transitions(&self) -> Vec<String> {
        self.conclusions.iter().filter(|c| c.approval.is_none()).map(show).collect()
    }

    /// The conclusions about approvals: `second kind "subject" state [allowed] [outcome]`.
    fn approvals(&self) -> Vec<String> {
        let rows = self.conclusions.iter().filter_map(|c| c.approval.as_deref().map(|a| (c.at, a)));
        rows.map(|(at, a)| format!("{} {}", at.since_ms(START) as f64 / 1000.0, stands_so(a))).collect()
    }

    /// `state reason [activity]`.
    fn status(&mut self) -> String {
        let status = &self.state.view().status;
        let reason = status.reason.map_or("-", Reason::as_str);
        let activity = status.activity.as_deref().map(|a| format!(" [{a}]")).unwrap_or_default();
        format!("{} {reason}{activity}", status.state)
    }
}

fn stands_so(approval: &Approval) -> String {
    let mut line = format!("{} {}", approval.kind.map_or("-", ApprovalKind::as_str), approval.state);
    for word in [
        approval.subject.as_ref().map(|s| format!("`{s}`")),
        approval.allowed.map(|allowed| if allowed { "yes".to_owned() } else { "no".to_owned() }),
        approval.outcome.map(|o| o.to_string()),
    ] {
        line += &word.map(|w| format!(" {w}")).unwrap_or_default();
    }
    line
}

/// A conclusion on one line, with the second at which it became true.
fn show(conclusion: &Conclusion) -> String {
    let what = match &conclusion.payload {
        Payload::StatusChanged(to) => format!("{} {}", to.to, to.reason.map_or("-", Reason::as_str)),
        Payload::TurnStarted(turn) => format!("turn {} by {}", turn.number, turn.trigger),
        Payload::TurnCompleted(turn) => format!("turn {} {}", turn.number, turn.outcome),
        Payload::SessionExited(exit) => format!("exit {}", exit.reason.map_or("-", Reason::as_str)),
        other => panic!("nothing concludes {}", other.kind()),
    };
    format!("{} {what}", conclusion.at.since_ms(START) as f64 / 1000.0)
}

/// Plays the script, compares all conclusions, and returns the session for further checks.
#[track_caller]
fn check(steps: &[Step], expected: &[&str]) -> Tape {
    let tape = Tape::played(steps);
    assert_eq!(tape.transitions(), expected);
    tape
}

/// Plays the script and compares only the final status.
#[track_caller]
fn stands(steps: &[Step], expected: &str) -> Tape {
    let mut tape = Tape::played(steps);
    assert_eq!(tape.status(), expected);
    tape
}
