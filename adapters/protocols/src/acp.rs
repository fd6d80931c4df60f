//! ACP, the Agent Client Protocol, as spoken by `gemini --acp` and `opencode acp`: JSON-RPC, one message per line.
//!
//! A permission request does not contain the tool's input. For its shell, Gemini CLI 0.61.0 shows the exact command and
//! the directory; for an edit, the file before and after. For all other tools it shows only a description, so their
//! requests are never complete. opencode 1.18.33 shows a command without its directory, and may not show all of an
//! edit: none of its requests is complete.

use std::collections::BTreeMap;

use events::ToolOutcome;
use serde::Deserialize;
use serde_json::{json, value::RawValue};

use super::rpc::{RpcDialect, RpcMessage, RpcMessageKind};
use crate::codec::{Codec, Meaning, PermissionRequest, TurnEnd, raw};
use agents::{AgentAnswer, borrowed::Text};

const DIALECT: RpcDialect = RpcDialect::Versioned;
const ASKS: &str = "session/request_permission";

/// Id of our `initialize` request.
const INITIALIZE: u64 = 1;
const NEW: u64 = 2;

/// A conversation over ACP.
#[derive(Debug)]
pub struct Acp {
    cwd: String,
    session: Option<String>,
    /// The id of our last request.
    last: u64,
    /// The request whose answer ends the turn.
    prompted: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AcpParams<'a> {
    #[serde(borrow)]
    session_id: Option<Text<'a>>,
    #[serde(borrow)]
    tool_call: Option<&'a RawValue>,
    #[serde(borrow)]
    update: Option<&'a RawValue>,
    #[serde(borrow)]
    options: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Update<'a> {
    #[serde(borrow)]
    session_update: Option<Text<'a>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_call_id: Option<Text<'a>>,
    #[serde(borrow)]
    title: Option<Text<'a>>,
    #[serde(borrow)]
    status: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
struct TextBlock<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Offer<'a> {
    #[serde(borrow)]
    option_id: Text<'a>,
    #[serde(borrow)]
    kind: Text<'a>,
}

impl Acp {
    /// A codec for a session in this directory.
    #[must_use]
    pub fn new(cwd: &str) -> Self {
        Self { cwd: cwd.to_owned(), session: None, last: NEW, prompted: None }
    }

    fn result(&mut self, id: u64, result: &RawValue) -> Vec<Meaning> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct ResultFields<'a> {
            #[serde(borrow)]
            session_id: Option<Text<'a>>,
            #[serde(borrow)]
            stop_reason: Option<Text<'a>>,
        }
        let of = serde_json::from_str::<ResultFields<'_>>(result.get()).ok();
        if id == INITIALIZE {
            let new = json!({ "cwd": self.cwd, "mcpServers": [] });
            return vec![Meaning::Send(DIALECT.request(NEW, "session/new", &new))];
        }
        if id == NEW {
            let session = of.and_then(|of| of.session_id).map(Text::into_string);
            let Some(session) = session else {
                return vec![Meaning::Ended(TurnEnd::Failed("`session/new` returned no session id".into()))];
            };
            self.session = Some(session.clone());
            return vec![Meaning::Session(session), Meaning::Ready];
        }
        if self.prompted != Some(id) {
            return Vec::new();
        }
        self.prompted = None;
        let reason = of.and_then(|of| of.stop_reason).map(Text::into_string).unwrap_or_default();
        vec![Meaning::Ended(match reason.as_str() {
            "end_turn" => TurnEnd::Completed,
            "cancelled" => TurnEnd::Interrupted,
            other => TurnEnd::Failed(format!("stop reason `{other}`")),
        })]
    }

    fn decode_request(id: &RawValue, method: &str, params: Option<&RawValue>, line: &str) -> Vec<Meaning> {
        let told = params.and_then(|params| serde_json::from_str::<AcpParams<'_>>(params.get()).ok());
        let session = told.as_ref().and_then(|told| told.session_id.as_deref());
        let call = told.as_ref().and_then(|told| told.tool_call);
        let (Some(session), Some(call), Some(line), true) = (session, call, raw(line), method == ASKS) else {
            return vec![
                Meaning::Send(DIALECT.unknown(id.get(), method)),
                Meaning::Unrecognized(format!("a request: {method}")),
            ];
        };
        let update: Update<'_> = serde_json::from_str(call.get()).unwrap_or_default();
        let call = update.tool_call_id.map(Text::into_string);
        let (id, session) = (id.get().to_owned(), session.to_owned());
        vec![Meaning::Asks(Box::new(PermissionRequest { id, session, call, place: None, line, item: None }))]
    }

    fn decode_notification(method: &str, params: Option<&RawValue>) -> Vec<Meaning> {
        let params = params.and_then(|params| serde_json::from_str::<AcpParams<'_>>(params.get()).ok());
        let update = params.and_then(|params| serde_json::from_str::<Update<'_>>(params.update?.get()).ok());
        let (true, Some(update)) = (method == "session/update", update) else {
            return vec![Meaning::Unrecognized(method.to_owned())];
        };
        let call = || update.tool_call_id.as_deref().unwrap_or_default().to_owned();
        match update.session_update.as_deref() {
            Some("agent_message_chunk") => {
                let words =
                    update.content.and_then(|content| serde_json::from_str::<TextBlock<'_>>(content.get()).ok());
                words.and_then(|words| words.text).map(|text| Meaning::Text(text.into_string())).into_iter().collect()
            }
            Some("tool_call") => {
                let tool = update.title.as_deref().unwrap_or_default().to_owned();
                vec![Meaning::Called { call: call(), tool }]
            }
            Some("tool_call_update") => match update.status.as_deref() {
                Some("completed") => vec![Meaning::Returned { call: call(), outcome: ToolOutcome::Ok }],
                Some("failed") => vec![Meaning::Returned { call: call(), outcome: ToolOutcome::Error }],
                Some(_) | None => Vec::new(),
            },
            Some(
                "agent_thought_chunk"
                | "user_message_chunk"
                | "plan"
                | "available_commands_update"
                | "current_mode_update"
                | "usage_update"
                | "session_info_update",
            ) => Vec::new(),
            other => vec![Meaning::Unrecognized(format!("an update: {}", other.unwrap_or("of no sort")))],
        }
    }
}

impl Codec for Acp {
    fn begin(&mut self) -> Vec<String> {
        let files = json!({ "readTextFile": false, "writeTextFile": false });
        let params = json!({ "protocolVersion": 1, "clientCapabilities": { "fs": files } });
        vec![DIALECT.request(INITIALIZE, "initialize", &params)]
    }

    fn prompt(&mut self, text: &str) -> Option<String> {
        let session = self.session.clone()?;
        self.last += 1;
        self.prompted = Some(self.last);
        let prompt = json!([{ "type": "text", "text": text }]);
        Some(DIALECT.request(self.last, "session/prompt", &json!({ "sessionId": session, "prompt": prompt })))
    }

    fn interrupt(&mut self) -> Option<String> {
        self.prompted?;
        let session = self.session.as_deref()?;
        Some(DIALECT.notice("session/cancel", Some(json!({ "sessionId": session }))))
    }

    fn decode_line(&mut self, line: &str) -> Vec<Meaning> {
        let Ok(message) = serde_json::from_str::<RpcMessage<'_>>(line) else {
            return vec![Meaning::Unrecognized("not a JSON-RPC message".into())];
        };
        match message.sort() {
            RpcMessageKind::Request { id, method, params } => Self::decode_request(id, method, params, line),
            RpcMessageKind::Notice { method, params } => Self::decode_notification(method, params),
            RpcMessageKind::Result { id, result } => self.result(id, result),
            RpcMessageKind::Error { id, words } if id <= NEW || self.prompted == Some(id) => {
                self.prompted = None;
                vec![Meaning::Ended(TurnEnd::Failed(words))]
            }
            RpcMessageKind::Error { words, .. } => vec![Meaning::Failed(words)],
            RpcMessageKind::Strange => vec![Meaning::Unrecognized("not a JSON-RPC message".into())],
        }
    }

    fn answer(&self, request: &PermissionRequest, given: &AgentAnswer) -> Option<String> {
        let asked = parse_request(&request.line)?;
        if !given.allow {
            // The protocol has no field for a reason.
            return Some(asked.deny.map_or_else(|| self.cancel(request), |option| selected(&request.id, &option)));
        }
        let option = asked.allow.filter(|_| given.rewrite.is_none() && given.answers.is_none())?;
        Some(selected(&request.id, &option))
    }

    fn cancel(&self, request: &PermissionRequest) -> String {
        DIALECT.result(&request.id, &json!({ "outcome": { "outcome": "cancelled" } }))
    }
}

fn selected(id: &str, option: &str) -> String {
    DIALECT.result(id, &json!({ "outcome": { "outcome": "selected", "optionId": option } }))
}

/// A permission request as written by the agent.
#[derive(Debug)]
pub(super) struct AcpRequest {
    /// The kind of call, in the protocol's terms.
    pub kind: String,
    /// The title shown for the call.
    pub title: String,
    /// The text shown beside the title.
    pub words: Option<String>,
    /// The files it would write.
    pub paths: Vec<String>,
    /// Id of the option that allows the call once.
    allow: Option<String>,
    /// Id of the option that rejects the call.
    deny: Option<String>,
    /// The shown part of the call and the offered answers, as exact bytes.
    pub input: String,
}

/// Parses a permission request; `None` if the line is another message.
pub(super) fn parse_request(line: &RawValue) -> Option<AcpRequest> {
    let message: RpcMessage<'_> = serde_json::from_str(line.get()).ok()?;
    let params = message.params.filter(|_| message.method.as_deref() == Some(ASKS))?;
    let params: AcpParams<'_> = serde_json::from_str(params.get()).ok()?;
    let mut fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(params.tool_call?.get()).ok()?;
    fields.retain(|name, _| !matches!(name.as_str(), "toolCallId" | "status"));
    if let Some(options) = params.options {
        fields.insert("options".into(), options.to_owned());
    }
    read(&serde_json::to_string(&fields).ok()?)
}

/// Parses the shown part of a call and the offered answers.
fn read(input: &str) -> Option<AcpRequest> {
    #[derive(Deserialize)]
    struct ShownCall<'a> {
        #[serde(borrow)]
        title: Option<Text<'a>>,
        #[serde(borrow)]
        kind: Option<Text<'a>>,
        #[serde(default, borrow)]
        content: Vec<ShownContent<'a>>,
        #[serde(default, borrow)]
        options: Vec<Offer<'a>>,
    }
    #[derive(Deserialize)]
    struct ShownContent<'a> {
        #[serde(borrow, rename = "type")]
        kind: Text<'a>,
        #[serde(borrow)]
        path: Option<Text<'a>>,
        #[serde(borrow)]
        content: Option<TextBlock<'a>>,
    }
    let shown: ShownCall<'_> = serde_json::from_str(input).ok()?;
    let offered = |kind: &str| {
        let mut fitting = shown.options.iter().filter(|option| &*option.kind == kind);
        // Two options of the same kind cannot be distinguished.
        let first = fitting.next().filter(|_| fitting.next().is_none());
        first.map(|option| option.option_id.to_string())
    };
    let diffs = shown.content.iter().filter(|content| &*content.kind == "diff");
    let words = match shown.content.as_slice() {
        [ShownContent { content: Some(words), .. }] => words.text.as_deref().map(str::to_owned),
        _ => None,
    };
    Some(AcpRequest {
        allow: offered("allow_once"),
        deny: offered("reject_once"),
        kind: shown.kind.as_deref().unwrap_or_default().to_owned(),
        title: shown.title.as_deref().unwrap_or_default().to_owned(),
        paths: diffs.filter_map(|diff| diff.path.as_deref().map(str::to_owned)).collect(),
        words,
        input: input.to_owned(),
    })
}

impl AcpRequest {
    /// Whether it is Gemini CLI's shell in this directory, in the foreground. The text before the bracket is from
    /// Gemini CLI, the text after it from the model.
    pub(super) fn is_shell_in(&self, cwd: &str) -> bool {
        let here = format!("[current working directory {cwd}]");
        let rest = self.words.as_deref().and_then(|words| words.strip_prefix(&here));
        let plain = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" (") && rest.ends_with(')'));
        self.kind == "execute" && plain
    }
}

pub(super) fn can_express(input: Option<&str>, given: &AgentAnswer) -> bool {
    let allowed = || input.and_then(read).is_some_and(|asked| asked.allow.is_some());
    !given.allow || given.rewrite.is_none() && given.answers.is_none() && allowed()
}

/// Whether a request for a command asks for nothing else.
pub(super) fn is_plain(input: &str) -> bool {
    const KNOWN: [&str; 5] = ["content", "kind", "locations", "options", "title"];
    let Ok(fields) = serde_json::from_str::<BTreeMap<String, &RawValue>>(input) else { return false };
    fields.keys().all(|name| KNOWN.contains(&name.as_str()))
}
