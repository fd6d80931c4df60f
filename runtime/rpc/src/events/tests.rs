use engine::{CallDecision, CallVerdict, MessageOrigin, QueueOutcome, RequestNumber, cache::CachePrediction};
use session_tree::FailureKind;

use super::*;

const NOW: StepTime = StepTime { wall_ms: 1, mono_ms: 1000 };

/// The lines of a stream in short form: types, with the type of an update and the relevant fields.
#[derive(Default)]
struct Told {
    stream: EventStream,
    lines: Vec<String>,
}

impl Told {
    fn new() -> Self {
        let model = AnswerModel { api: "a".to_owned(), provider: "p".to_owned(), id: "m".to_owned() };
        Self { stream: EventStream::new(model, 8), lines: Vec::new() }
    }

    fn entry(&mut self, fields: &str) {
        let entry = Entry::read(Json::parse(fields).unwrap().as_object().unwrap().clone());
        let lines = self.stream.entry(&entry);
        self.take(&lines);
    }

    fn message(&mut self, message: &str) {
        self.entry(&format!(r#"{{"type":"message","id":"e","parentId":null,"message":{message}}}"#));
    }

    fn frame(&mut self, frame: RuntimeFrame) {
        let lines = self.stream.frame(&frame, NOW);
        self.take(&lines);
    }

    fn take(&mut self, lines: &[String]) {
        for line in lines {
            let event = Json::parse(line).unwrap();
            let event = event.as_object().unwrap();
            let update = event.get("assistantMessageEvent").and_then(Json::as_object);
            let message = event.get("message").and_then(Json::as_object);
            let detail = match (update, message) {
                (Some(update), _) => {
                    let of = |key: &str| update.get(key).map(Json::to_text).unwrap_or_default();
                    format!(" {} {} {}", update.text("type").unwrap(), of("contentIndex"), of("delta") + &of("content"))
                }
                (None, Some(message)) => {
                    let stop = message.text("stopReason").unwrap_or_default();
                    format!(" {} {stop}", message.text("role").unwrap())
                }
                (None, None) => {
                    let of = |key: &str| event.get(key).map(|value| format!(" {}", value.to_text()));
                    ["toolCallId", "steering", "followUp", "willRetry", "attempt", "delayMs", "success", "reason"]
                        .iter()
                        .filter_map(|key| of(key))
                        .collect()
                }
            };
            self.lines.push(format!("{}{detail}", event.text("type").unwrap()).trim_end().to_owned());
        }
    }

    #[track_caller]
    fn expect(&mut self, expected: &[&str]) {
        assert_eq!(self.lines, expected);
        self.lines.clear();
    }
}

fn block(text: &str) -> RuntimeFrame {
    RuntimeFrame::Block(Json::parse(text).unwrap().as_object().unwrap().clone())
}

fn request_ended(failure: Option<FailureKind>, error: Option<&str>) -> RuntimeFrame {
    RuntimeFrame::RequestEnded {
        request: RequestNumber(1),
        usage: None,
        predicted: CachePrediction::default(),
        cause: None,
        failure,
        error: error.map(str::to_owned),
    }
}

fn ended(outcome: TurnOutcome) -> RuntimeFrame {
    RuntimeFrame::TurnEnded { outcome, error: None }
}

const ANSWER: &str = r#"{"role":"assistant","content":[{"type":"text","text":"Done."}],"stopReason":"stop"}"#;

#[test]
fn a_turn_produces_the_same_events_as_pi() {
    let mut told = Told::new();
    told.message(r#"{"role":"user","content":"go","capture":{"id":"1","by":"person"}}"#);
    told.frame(RuntimeFrame::TurnStarted);
    told.expect(&["agent_start", "turn_start", "message_start user", "message_end user"]);
    told.frame(RuntimeFrame::Thinking("hm".to_owned()));
    told.frame(block(r#"{"type":"thinking","thinking":"hm","thinkingSignature":"s"}"#));
    told.frame(RuntimeFrame::Text("I ".to_owned()));
    told.frame(RuntimeFrame::Text("look.".to_owned()));
    told.frame(block(r#"{"type":"text","text":"I look."}"#));
    told.frame(RuntimeFrame::CallOpened { tool: "read".to_owned() });
    told.frame(block(r#"{"type":"toolCall","id":"c1","name":"read","arguments":{"path":"a"}}"#));
    told.frame(block(r#"{"type":"opaque","raw":"x"}"#));
    told.frame(block(r#"{"type":"text","text":"whole"}"#));
    told.expect(&[
        "message_start assistant pending",
        "message_update thinking_start 0",
        "message_update thinking_delta 0 \"hm\"",
        "message_update thinking_end 0 \"hm\"",
        "message_update text_start 1",
        "message_update text_delta 1 \"I \"",
        "message_update text_delta 1 \"look.\"",
        "message_update text_end 1 \"I look.\"",
        "message_update toolcall_start 2",
        "message_update toolcall_delta 2 \"{\\\"path\\\":\\\"a\\\"}\"",
        "message_update toolcall_end 2",
        "message_update text_start 4",
        "message_update text_delta 4 \"whole\"",
        "message_update text_end 4 \"whole\"",
    ]);
    told.message(
        r#"{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"read","arguments":{"path":"a"}},
            {"type":"toolCall","id":"c2","name":"bash","arguments":{}}],"stopReason":"toolUse"}"#,
    );
    told.frame(request_ended(None, None));
    let call = |index| CallId { request: RequestNumber(1), index };
    told.frame(RuntimeFrame::CallStarted { call: call(0), tool: "read".to_owned() });
    told.message(r#"{"role":"toolResult","toolCallId":"c1","toolName":"read","content":[],"isError":false}"#);
    // A denied call never started.
    let decision = CallDecision {
        verdict: CallVerdict::Deny,
        by: "policy".to_owned(),
        rule: None,
        audit: None,
        reason: None,
        answer: None,
        arguments: None,
    };
    told.frame(RuntimeFrame::CallDecided { call: call(1), decision });
    told.message(r#"{"role":"toolResult","toolCallId":"c2","toolName":"bash","content":[],"isError":true}"#);
    told.expect(&[
        "message_end assistant toolUse",
        "tool_execution_start \"c1\"",
        "tool_execution_end \"c1\"",
        "message_start toolResult",
        "message_end toolResult",
        "tool_execution_start \"c2\"",
        "tool_execution_end \"c2\"",
        "message_start toolResult",
        "message_end toolResult",
        "turn_end assistant toolUse",
    ]);
    told.message(ANSWER);
    told.frame(request_ended(None, None));
    told.frame(RuntimeFrame::Activity(EngineActivity::Idle));
    told.frame(ended(TurnOutcome::Done));
    told.expect(&[
        "turn_start",
        "message_start assistant pending",
        "message_end assistant stop",
        "turn_end assistant stop",
        "agent_end false",
        "agent_settled",
    ]);
}

#[test]
fn queued_messages_continue_the_same_run() {
    let mut told = Told::new();
    let queued = |id: &str, kind: QueueKind| {
        let origin = MessageOrigin::Person;
        let record =
            QueuedRecord::Queued { id: id.to_owned(), kind, content: Json::from(format!("text {id}")), origin };
        format!(
            r#"{{"type":"custom","id":"q","parentId":null,"customType":"capture.steer","data":{}}}"#,
            serde_json::to_string(&record).unwrap()
        )
    };
    told.message(r#"{"role":"user","content":"go","capture":{"id":"1","by":"person"}}"#);
    told.lines.clear();
    told.entry(&queued("2", QueueKind::Steer));
    told.entry(&queued("3", QueueKind::FollowUp));
    told.frame(RuntimeFrame::Message { id: "3".to_owned(), outcome: QueueOutcome::Queued });
    told.expect(&[
        "queue_update [\"text 2\"] []",
        "entry_appended",
        "queue_update [\"text 2\"] [\"text 3\"]",
        "entry_appended",
    ]);
    assert_eq!(told.stream.queued().map(|(id, ..)| id).collect::<Vec<_>>(), ["2", "3"]);
    told.message(r#"{"role":"user","content":"text 2","capture":{"id":"2","by":"person"}}"#);
    told.message(ANSWER);
    told.lines.clear();
    told.frame(ended(TurnOutcome::Done));
    told.expect(&[]);
    told.message(r#"{"role":"user","content":"text 3","capture":{"id":"3","by":"person"}}"#);
    told.message(ANSWER);
    told.frame(ended(TurnOutcome::Done));
    told.expect(&[
        "turn_start",
        "queue_update [] []",
        "message_start user",
        "message_end user",
        "message_start assistant pending",
        "message_end assistant stop",
        "turn_end assistant stop",
        "agent_end false",
        "agent_settled",
    ]);
}

#[test]
fn each_failure_and_each_retry_is_reported_once() {
    let mut told = Told::new();
    told.message(r#"{"role":"user","content":"go"}"#);
    told.lines.clear();
    told.frame(request_ended(Some(FailureKind::Overloaded), Some("too much to do")));
    told.frame(RuntimeFrame::Activity(EngineActivity::Retrying { until_mono_ms: 1500, until_wall_ms: 0 }));
    told.expect(&[
        "message_start assistant error",
        "message_end assistant error",
        "turn_end assistant error",
        "agent_end true",
        "auto_retry_start 1 500",
    ]);
    told.frame(RuntimeFrame::Text("Do".to_owned()));
    told.message(ANSWER);
    told.frame(ended(TurnOutcome::Done));
    told.expect(&[
        "agent_start",
        "turn_start",
        "message_start assistant pending",
        "message_update text_start 0",
        "message_update text_delta 0 \"Do\"",
        "message_end assistant stop",
        "auto_retry_end 1 true",
        "turn_end assistant stop",
        "agent_end false",
        "agent_settled",
    ]);
    // Half an answer is in the file, and there is no further attempt.
    told.message(r#"{"role":"user","content":"go"}"#);
    told.frame(request_ended(Some(FailureKind::Network), Some("gone")));
    told.frame(RuntimeFrame::Activity(EngineActivity::Retrying { until_mono_ms: 0, until_wall_ms: 0 }));
    told.lines.clear();
    told.frame(RuntimeFrame::Text("Do".to_owned()));
    told.message(r#"{"role":"assistant","content":[{"type":"text","text":"Do"}],"stopReason":"error"}"#);
    told.frame(request_ended(Some(FailureKind::Network), Some("gone")));
    told.frame(ended(TurnOutcome::Failed));
    told.expect(&[
        "agent_start",
        "turn_start",
        "message_start assistant pending",
        "message_update text_start 0",
        "message_update text_delta 0 \"Do\"",
        "message_end assistant error",
        "turn_end assistant error",
        "auto_retry_end 1 false",
        "agent_end false",
        "agent_settled",
    ]);
}

#[test]
fn a_turn_whose_end_cannot_be_written_still_ends_for_the_client() {
    let with_error = |outcome| RuntimeFrame::TurnEnded { outcome, error: Some("cannot append".to_owned()) };
    let trouble = |error: Option<&str>| RuntimeFrame::DiskTrouble { error: error.map(str::to_owned) };
    let mut told = Told::new();
    told.frame(RuntimeFrame::TurnStarted);
    told.message(r#"{"role":"user","content":"go"}"#);
    told.frame(RuntimeFrame::Text("Do".to_owned()));
    told.lines.clear();
    told.frame(trouble(Some("cannot append")));
    told.frame(with_error(TurnOutcome::Aborted));
    let ends = |stop: &str| ["message_end", "turn_end"].map(|line| format!("{line} assistant {stop}")).to_vec();
    let over = |first: &str, stop: &str| -> Vec<String> {
        let rest = ["agent_end false", "agent_settled"].map(str::to_owned);
        [first.to_owned()].into_iter().chain(ends(stop)).chain(rest).collect()
    };
    assert_eq!(std::mem::take(&mut told.lines), over("disk_trouble", "aborted"));
    // There is space again: the late entries form a run with an end, and nothing is settled twice without one.
    told.frame(trouble(None));
    told.message(r#"{"role":"assistant","content":[{"type":"text","text":"Do"}],"stopReason":"aborted"}"#);
    told.frame(ended(TurnOutcome::Aborted));
    told.frame(ended(TurnOutcome::Aborted));
    told.expect(&[
        "disk_trouble",
        "agent_start",
        "turn_start",
        "message_start assistant pending",
        "message_end assistant aborted",
        "turn_end assistant aborted",
        "agent_end false",
        "agent_settled",
    ]);
    told.frame(RuntimeFrame::TurnStarted);
    told.message(r#"{"role":"user","content":"go"}"#);
    told.frame(RuntimeFrame::Text("Do".to_owned()));
    told.lines.clear();
    told.frame(RuntimeFrame::FileLost { error: "cannot append".to_owned() });
    told.frame(with_error(TurnOutcome::Failed));
    assert_eq!(told.lines, over("file_lost", "error"));
}

#[test]
fn an_abort_ends_the_open_message_turn_and_run() {
    let mut told = Told::new();
    told.message(r#"{"role":"user","content":"go"}"#);
    told.frame(RuntimeFrame::Text("Do".to_owned()));
    told.lines.clear();
    told.message(r#"{"role":"assistant","content":[{"type":"text","text":"Do"}],"stopReason":"aborted"}"#);
    told.frame(request_ended(None, Some("aborted")));
    told.frame(ended(TurnOutcome::Aborted));
    told.expect(&["message_end assistant aborted", "turn_end assistant aborted", "agent_end false", "agent_settled"]);
    // Before any part of the answer.
    told.message(r#"{"role":"user","content":"go"}"#);
    told.lines.clear();
    told.frame(ended(TurnOutcome::Aborted));
    told.expect(&[
        "message_start assistant aborted",
        "message_end assistant aborted",
        "turn_end assistant aborted",
        "agent_end false",
        "agent_settled",
    ]);
    told.frame(RuntimeFrame::Activity(EngineActivity::Paused(engine::PauseReason::CostLimit)));
    told.expect(&["turn_paused \"cost_limit\""]);
}
