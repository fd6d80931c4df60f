//! Claude Code's stream-json: the protocol of `claude -p --input-format stream-json --output-format stream-json
//! --permission-prompt-tool stdio`.
//!
//! A permission request names no directory, and the agent's shell may have changed it; so capture registers a callback
//! before each call, which reports the directory and is answered at once without a decision. If the directory was not
//! reported, the request counts as incomplete.

use std::collections::BTreeMap;

use events::ToolOutcome;
use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};

use crate::codec::{Calls, Codec, Meaning, PermissionRequest, TurnEnd, raw};
use agents::{AgentAnswer, borrowed::Text};

/// The id of our initialization request.
const GREETING: &str = "capture-begins";
/// The id of the callback before each call.
const PLACE: &str = "capture-place";
/// The reason given to an agent if a denial has none.
const DENIED: &str = "denied through capture";

/// A conversation with Claude Code.
#[derive(Debug, Default)]
pub struct StreamJson {
    session: Option<String>,
    began: bool,
    /// Number of interrupts sent.
    interrupts: u64,
    /// Whether a turn is running.
    works: bool,
    /// Whether parts of the current message were reported.
    told_parts: bool,
    /// The directory of each call.
    places: Calls<String>,
}

#[derive(Debug, Deserialize)]
struct StreamMessage<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    subtype: Option<Text<'a>>,
    #[serde(borrow)]
    session_id: Option<Text<'a>>,
    #[serde(borrow)]
    request_id: Option<Text<'a>>,
    #[serde(borrow)]
    request: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    event: Option<&'a RawValue>,
    #[serde(borrow)]
    parent_tool_use_id: Option<Text<'a>>,
    #[serde(borrow)]
    tool_result_meta: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    terminal_reason: Option<&'a RawValue>,
    #[serde(borrow)]
    is_error: Option<&'a RawValue>,
    #[serde(borrow)]
    errors: Option<&'a RawValue>,
    #[serde(borrow, rename = "isReplay")]
    is_replay: Option<&'a RawValue>,
}

/// A request of the agent.
#[derive(Debug, Deserialize)]
struct ControlRequest<'a> {
    #[serde(borrow)]
    subtype: Text<'a>,
    #[serde(borrow)]
    tool_name: Option<Text<'a>>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_use_id: Option<Text<'a>>,
    #[serde(borrow)]
    callback_id: Option<Text<'a>>,
}

/// The data of the callback before a call.
#[derive(Debug, Deserialize)]
struct PreToolUse<'a> {
    #[serde(borrow)]
    cwd: Option<Text<'a>>,
    #[serde(borrow)]
    tool_use_id: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
struct ControlResponse<'a> {
    #[serde(borrow)]
    subtype: Option<Text<'a>>,
    #[serde(borrow)]
    request_id: Option<Text<'a>>,
    #[serde(borrow)]
    error: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
struct AssistantMessage<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct ContentBlock<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    tool_use_id: Option<Text<'a>>,
    #[serde(default)]
    is_error: Option<bool>,
}

/// Metadata of a result.
#[derive(Debug, Deserialize)]
struct ResultMeta<'a> {
    #[serde(borrow)]
    id: Text<'a>,
    #[serde(borrow)]
    permission_decision: Option<Permission<'a>>,
}

#[derive(Debug, Deserialize)]
struct Permission<'a> {
    #[serde(borrow)]
    decision: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
struct StreamEvent<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
}

#[derive(Debug, Deserialize)]
struct Delta<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
}

/// A permission request as written by the agent.
#[derive(Debug)]
pub(super) struct ToolRequest<'a> {
    /// The tool.
    pub tool: String,
    /// Its input, as exact bytes.
    pub input: &'a RawValue,
}

/// Parses a permission request; `None` if the line is another message.
pub(super) fn parse_request(line: &RawValue) -> Option<ToolRequest<'_>> {
    let message: StreamMessage<'_> = serde_json::from_str(line.get()).ok()?;
    let control: ControlRequest<'_> = serde_json::from_str(message.request?.get()).ok()?;
    let asks = &*message.kind == "control_request" && &*control.subtype == "can_use_tool";
    let tool = control.tool_name?.into_string();
    control.input.filter(|_| asks).map(|input| ToolRequest { tool, input })
}

impl Codec for StreamJson {
    fn begin(&mut self) -> Vec<String> {
        let place = json!([{ "matcher": null, "hookCallbackIds": [PLACE] }]);
        let request = json!({ "subtype": "initialize", "hooks": { "PreToolUse": place } });
        vec![json!({ "type": "control_request", "request_id": GREETING, "request": request }).to_string()]
    }

    fn prompt(&mut self, text: &str) -> Option<String> {
        if !self.began {
            return None;
        }
        self.works = true;
        let message = json!({ "role": "user", "content": text });
        let prompt = json!({ "type": "user", "message": message, "parent_tool_use_id": null, "session_id": "" });
        Some(prompt.to_string())
    }

    fn interrupt(&mut self) -> Option<String> {
        self.interrupts += 1;
        let id = format!("capture-interrupts-{}", self.interrupts);
        let request = json!({ "type": "control_request", "request_id": id, "request": { "subtype": "interrupt" } });
        self.works.then(|| request.to_string())
    }

    fn decode_line(&mut self, line: &str) -> Vec<Meaning> {
        let Ok(message) = serde_json::from_str::<StreamMessage<'_>>(line) else {
            return vec![Meaning::Unrecognized("no message".into())];
        };
        let mut meanings = Vec::new();
        // The agent's first messages may precede the answer to our initialization; a prompt may not.
        if let Some(session) = message.session_id.as_deref().filter(|id| !id.is_empty())
            && self.session.as_deref() != Some(session)
        {
            self.session = Some(session.to_owned());
            meanings.push(Meaning::Session(session.to_owned()));
        }
        let of_helper = message.parent_tool_use_id.is_some();
        match &*message.kind {
            "control_request" => self.control(&message, line, &mut meanings),
            "control_cancel_request" => {
                let id = message.request_id.as_deref().map(|id| json!(id).to_string());
                meanings.push(id.map_or_else(
                    || Meaning::Unrecognized("a cancellation without a request".into()),
                    Meaning::Settled,
                ));
            }
            "control_response" => self.response(message.response, &mut meanings),
            "stream_event" if !of_helper => self.part(message.event, &mut meanings),
            "assistant" if !of_helper => self.decode_message(message.message, &mut meanings),
            "user" if !is(message.is_replay) => self.returned(&message, &mut meanings),
            "result" => {
                self.works = false;
                meanings.push(Meaning::Ended(ended(&message)));
            }
            "system" if message.subtype.is_some() => {}
            "stream_event" | "assistant" | "user" | "system" | "rate_limit_event" | "keep_alive" | "tool_progress" => {}
            other => meanings.push(Meaning::Unrecognized(other.to_owned())),
        }
        meanings
    }

    fn answer(&self, request: &PermissionRequest, given: &AgentAnswer) -> Option<String> {
        let asked = parse_request(&request.line)?;
        let response = response(&asked.tool, asked.input.get(), given)?;
        Some(answered(&request.id, &response))
    }

    fn cancel(&self, request: &PermissionRequest) -> String {
        answered(
            &request.id,
            &json!({ "behavior": "deny", "message": "interrupted by the user", "interrupt": true }).to_string(),
        )
    }
}

impl StreamJson {
    fn control(&mut self, message: &StreamMessage<'_>, line: &str, meanings: &mut Vec<Meaning>) {
        let Some(id) = message.request_id.as_deref() else {
            return meanings.push(Meaning::Unrecognized("a request without an id".into()));
        };
        let refused = |what: &str| {
            let error = json!({ "subtype": "error", "request_id": id, "error": format!("{what} is not supported") });
            Meaning::Send(json!({ "type": "control_response", "response": error }).to_string())
        };
        let control =
            message.request.and_then(|request| serde_json::from_str::<ControlRequest<'_>>(request.get()).ok());
        let Some(control) = control else {
            meanings.push(refused("it"));
            return meanings.push(Meaning::Unrecognized("a request".into()));
        };
        match &*control.subtype {
            "can_use_tool" => {
                let call = control.tool_use_id.as_deref().map(str::to_owned);
                let whole = raw(line).filter(|line| parse_request(line).is_some());
                let (Some(line), Some(session)) = (whole, self.session.clone()) else {
                    return meanings.push(refused("such a request"));
                };
                let place = call.as_deref().and_then(|call| self.places.get(call)).cloned();
                let id = json!(id).to_string();
                meanings.push(Meaning::Asks(Box::new(PermissionRequest {
                    id,
                    session,
                    call,
                    place,
                    line,
                    item: None,
                })));
            }
            "hook_callback" if control.callback_id.as_deref() == Some(PLACE) => {
                let before = control.input.and_then(|input| serde_json::from_str::<PreToolUse<'_>>(input.get()).ok());
                if let Some(PreToolUse { cwd: Some(cwd), tool_use_id }) = before
                    && let Some(call) = tool_use_id.or(control.tool_use_id)
                {
                    self.places.insert(call.into_string(), cwd.into_string());
                }
                // No decision: the agent applies its own rules, and then asks.
                meanings.push(Meaning::Send(answered(&json!(id).to_string(), "{}")));
            }
            other => {
                meanings.push(refused(other));
                meanings.push(Meaning::Unrecognized(format!("a request: {other}")));
            }
        }
    }

    /// Handles the answer to one of our requests. The agent repeats our own answers too.
    fn response(&mut self, response: Option<&RawValue>, meanings: &mut Vec<Meaning>) {
        let response = response.and_then(|response| serde_json::from_str::<ControlResponse<'_>>(response.get()).ok());
        let Some(response) = response else { return };
        if response.request_id.as_deref() != Some(GREETING) || self.began {
            return;
        }
        if response.subtype.as_deref() == Some("success") {
            self.began = true;
            meanings.push(Meaning::Ready);
        } else {
            let why = response.error.map_or_else(|| "it refused to start".to_owned(), Text::into_string);
            meanings.push(Meaning::Ended(TurnEnd::Failed(why)));
        }
    }

    fn part(&mut self, event: Option<&RawValue>, meanings: &mut Vec<Meaning>) {
        let event = event.and_then(|event| serde_json::from_str::<StreamEvent<'_>>(event.get()).ok());
        if let Some(StreamEvent { kind, delta: Some(Delta { kind: Some(what), text: Some(text) }) }) = event
            && (&*kind, &*what) == ("content_block_delta", "text_delta")
        {
            self.told_parts = true;
            meanings.push(Meaning::Text(text.into_string()));
        }
    }

    fn decode_message(&mut self, message: Option<&RawValue>, meanings: &mut Vec<Meaning>) {
        for block in blocks(message) {
            match (&*block.kind, block.text, block.id, block.name) {
                // A text that arrived in parts is repeated as a whole.
                ("text", Some(_), ..) if std::mem::take(&mut self.told_parts) => {}
                ("text", Some(text), ..) => meanings.push(Meaning::Text(text.into_string())),
                ("tool_use", _, Some(id), Some(name)) => {
                    meanings.push(Meaning::Called { call: id.into_string(), tool: name.into_string() });
                }
                _ => {}
            }
        }
    }

    fn returned(&mut self, message: &StreamMessage<'_>, meanings: &mut Vec<Meaning>) {
        let meta = message.tool_result_meta.map(RawValue::get);
        let meta: Vec<ResultMeta<'_>> = meta.and_then(|meta| serde_json::from_str(meta).ok()).unwrap_or_default();
        for block in blocks(message.message) {
            let Some(call) = block.tool_use_id.filter(|_| &*block.kind == "tool_result") else { continue };
            let rejected = meta.iter().filter(|meta| *meta.id == *call).any(|meta| {
                let decision = meta.permission_decision.as_ref().and_then(|p| p.decision.as_deref());
                decision == Some("reject")
            });
            let outcome = match (rejected, block.is_error) {
                (true, _) => ToolOutcome::Denied,
                (false, Some(true)) => ToolOutcome::Error,
                (false, _) => ToolOutcome::Ok,
            };
            self.places.forget(&call);
            meanings.push(Meaning::Returned { call: call.into_string(), outcome });
        }
    }
}

/// The blocks of a message; empty if it is a plain text.
fn blocks(message: Option<&RawValue>) -> Vec<ContentBlock<'_>> {
    let said = message.and_then(|message| serde_json::from_str::<AssistantMessage<'_>>(message.get()).ok());
    said.and_then(|said| serde_json::from_str(said.content?.get()).ok()).unwrap_or_default()
}

/// Whether a field is present and true.
fn is(value: Option<&RawValue>) -> bool {
    value.is_some_and(|value| value.get() == "true")
}

fn ended(message: &StreamMessage<'_>) -> TurnEnd {
    let text = |value: Option<&RawValue>| value.and_then(|value| serde_json::from_str::<String>(value.get()).ok());
    if text(message.terminal_reason).is_some_and(|reason| reason.starts_with("aborted")) {
        return TurnEnd::Interrupted;
    }
    if !is(message.is_error) && message.subtype.as_deref() == Some("success") {
        return TurnEnd::Completed;
    }
    let errors = message.errors.and_then(|errors| serde_json::from_str::<Vec<String>>(errors.get()).ok());
    let words = text(message.result).or_else(|| errors.and_then(|errors| errors.into_iter().next()));
    TurnEnd::Failed(words.or_else(|| message.subtype.as_deref().map(str::to_owned)).unwrap_or_default())
}

fn answered(id: &str, response: &str) -> String {
    format!(
        "{{\"type\":\"control_response\",\"response\":{{\"subtype\":\"success\",\"request_id\":{id},\"response\":{response}}}}}"
    )
}

/// The answer to a request for this tool; `None` if the decision does not fit it. An unchanged input is returned as
/// exact bytes.
fn response(tool: &str, input: &str, given: &AgentAnswer) -> Option<String> {
    if !given.allow {
        let message = given.message.as_deref().filter(|m| !m.is_empty()).unwrap_or(DENIED);
        return Some(json!({ "behavior": "deny", "message": message }).to_string());
    }
    let changed = |name: &str, value: Value| {
        let mut fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(input).ok()?;
        fields.insert(name.to_owned(), raw(&value.to_string())?);
        serde_json::to_string(&fields).ok()
    };
    let input = match (tool, &given.rewrite, &given.answers) {
        // An allowance without answers would not answer the question.
        ("AskUserQuestion", None, Some(answers)) => changed("answers", json!(answers))?,
        ("AskUserQuestion", ..) => return None,
        ("Bash", Some(command), None) => changed("command", json!(command))?,
        (_, None, None) => serde_json::from_str::<Map<String, Value>>(input).ok().map(|_| input.to_owned())?,
        _ => return None,
    };
    Some(format!("{{\"behavior\":\"allow\",\"updatedInput\":{input}}}"))
}

pub(super) fn can_express(tool: Option<&str>, input: Option<&str>, given: &AgentAnswer) -> bool {
    match (tool, input) {
        (Some(tool), Some(input)) => response(tool, input, given).is_some(),
        // A request too long to be stored can be denied, or allowed unchanged.
        (tool, _) => {
            given.rewrite.is_none() && given.answers.is_none() && tool != Some("AskUserQuestion") || !given.allow
        }
    }
}
