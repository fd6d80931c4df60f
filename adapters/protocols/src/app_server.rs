//! Codex' app-server: JSON-RPC without its version, one message per line, over `codex app-server`.
//!
//! A request to change files names only its item; the changes themselves were sent when the item started.

use std::collections::BTreeMap;

use events::ToolOutcome;
use serde::Deserialize;
use serde_json::{json, value::RawValue};

use super::rpc::{RpcDialect, RpcMessage, RpcMessageKind};
use crate::codec::{Calls, Codec, Meaning, PermissionRequest, TurnEnd, raw};
use agents::{AgentAnswer, borrowed::Text};

const DIALECT: RpcDialect = RpcDialect::Bare;
const COMMAND: &str = "item/commandExecution/requestApproval";
const FILES: &str = "item/fileChange/requestApproval";

/// Id of our `initialize` request.
const INITIALIZE: u64 = 1;
const START: u64 = 2;

/// Fields that identify a request, and differ between requests for the same action.
const NAMES: [&str; 7] = ["threadId", "turnId", "itemId", "startedAtMs", "completedAtMs", "id", "status"];

/// A conversation with Codex.
#[derive(Debug)]
pub struct AppServer {
    cwd: String,
    thread: Option<String>,
    turn: Option<String>,
    /// The id of our last request.
    last: u64,
    /// The request that starts the turn.
    prompted: Option<u64>,
    /// Whether to stop the turn as soon as its id is known.
    stops: bool,
    /// File changes of the items in progress.
    items: Calls<Box<RawValue>>,
    /// Messages that arrive in parts.
    parts: Calls<()>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AppServerParams<'a> {
    #[serde(borrow)]
    thread_id: Option<Text<'a>>,
    #[serde(borrow)]
    item_id: Option<Text<'a>>,
    #[serde(borrow)]
    delta: Option<Text<'a>>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    changes: Option<&'a RawValue>,
    #[serde(borrow)]
    turn: Option<&'a RawValue>,
    #[serde(borrow)]
    thread: Option<&'a RawValue>,
    #[serde(borrow)]
    request_id: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    will_retry: Option<bool>,
}

/// A thread, a turn or an item.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AppServerObject<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    /// A string for a turn or an item; an object for a thread.
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<Text<'a>>,
}

impl AppServerObject<'_> {
    fn status(&self) -> &str {
        self.status.map_or("", |status| status.get().trim_matches('"'))
    }
}

fn thing(text: Option<&RawValue>) -> AppServerObject<'_> {
    text.and_then(|text| serde_json::from_str(text.get()).ok()).unwrap_or_default()
}

impl AppServer {
    /// A codec for a thread in this directory.
    #[must_use]
    pub fn new(cwd: &str) -> Self {
        Self {
            cwd: cwd.to_owned(),
            thread: None,
            turn: None,
            last: START,
            prompted: None,
            stops: false,
            items: Calls::default(),
            parts: Calls::default(),
        }
    }

    fn request(&mut self, method: &str, params: &serde_json::Value) -> String {
        self.last += 1;
        DIALECT.request(self.last, method, params)
    }

    fn stop(&mut self) -> Option<String> {
        let (thread, turn) = (self.thread.clone()?, self.turn.clone()?);
        self.stops = false;
        Some(self.request("turn/interrupt", &json!({ "threadId": thread, "turnId": turn })))
    }

    fn result(&mut self, id: u64, result: &RawValue) -> Vec<Meaning> {
        #[derive(Deserialize)]
        struct ResultFields<'a> {
            #[serde(borrow)]
            thread: Option<&'a RawValue>,
            #[serde(borrow)]
            turn: Option<&'a RawValue>,
        }
        let of = serde_json::from_str::<ResultFields<'_>>(result.get()).ok();
        if id == INITIALIZE {
            let start = json!({ "cwd": self.cwd, "approvalPolicy": "on-request" });
            return [DIALECT.notice("initialized", None), DIALECT.request(START, "thread/start", &start)]
                .map(Meaning::Send)
                .to_vec();
        }
        if id == START {
            let thread = of.and_then(|of| thing(of.thread).id.map(Text::into_string));
            let Some(thread) = thread else {
                return vec![Meaning::Ended(TurnEnd::Failed("`thread/start` returned no thread id".into()))];
            };
            self.thread = Some(thread.clone());
            return vec![Meaning::Session(thread), Meaning::Ready];
        }
        if self.prompted == Some(id) {
            self.turn = of.and_then(|of| thing(of.turn).id.map(Text::into_string));
            let stop = self.stops.then(|| self.stop()).flatten();
            return stop.map(Meaning::Send).into_iter().collect();
        }
        Vec::new()
    }

    fn decode_request(&self, id: &RawValue, method: &str, params: Option<&RawValue>, line: &str) -> Vec<Meaning> {
        let refused = || {
            vec![
                Meaning::Send(DIALECT.unknown(id.get(), method)),
                Meaning::Unrecognized(format!("a request: {method}")),
            ]
        };
        let told = params.and_then(|params| serde_json::from_str::<AppServerParams<'_>>(params.get()).ok());
        let (Some(told), Some(line), true) = (told, raw(line), matches!(method, COMMAND | FILES)) else {
            return refused();
        };
        let (Some(session), Some(call)) = (told.thread_id, told.item_id) else { return refused() };
        let item = self.items.get(&call).filter(|_| method == FILES).cloned();
        let (session, call) = (session.into_string(), Some(call.into_string()));
        vec![Meaning::Asks(Box::new(PermissionRequest {
            id: id.get().to_owned(),
            session,
            call,
            place: None,
            line,
            item,
        }))]
    }

    fn decode_notification(&mut self, method: &str, params: Option<&RawValue>) -> Vec<Meaning> {
        let told = params
            .and_then(|params| serde_json::from_str::<AppServerParams<'_>>(params.get()).ok())
            .unwrap_or_default();
        // A sub-agent's thread reports its own turns.
        let own = told.thread_id.is_none() || told.thread_id.as_deref() == self.thread.as_deref();
        let named = |thing: &AppServerObject<'_>| thing.id.as_deref().unwrap_or_default().to_owned();
        match method {
            "turn/started" if own => {
                self.turn = thing(told.turn).id.map(Text::into_string);
                let stop = self.stops.then(|| self.stop()).flatten();
                stop.map(Meaning::Send).into_iter().collect()
            }
            "item/started" => {
                let item = thing(told.item);
                match (item.kind.as_deref(), told.item) {
                    (Some("fileChange"), Some(whole)) => {
                        self.items.insert(named(&item), whole.to_owned());
                        vec![Meaning::Called { call: named(&item), tool: "fileChange".into() }]
                    }
                    (Some(kind @ ("commandExecution" | "mcpToolCall" | "webSearch")), _) => {
                        vec![Meaning::Called { call: named(&item), tool: kind.to_owned() }]
                    }
                    _ => Vec::new(),
                }
            }
            // Later requests refer to the patch in its updated state.
            "item/fileChange/patchUpdated" => {
                let item = told.item_id.map(Text::into_string).unwrap_or_default();
                match told.changes.and_then(with_changes) {
                    Some(whole) => self.items.insert(item, whole),
                    None => self.items.forget(&item),
                }
                Vec::new()
            }
            "item/agentMessage/delta" if own => {
                self.parts.insert(told.item_id.map(Text::into_string).unwrap_or_default(), ());
                told.delta.map(|delta| Meaning::Text(delta.into_string())).into_iter().collect()
            }
            "item/completed" => self.completed(&thing(told.item), own),
            "turn/completed" if own => {
                self.turn = None;
                let turn = thing(told.turn);
                vec![Meaning::Ended(match turn.status() {
                    "completed" => TurnEnd::Completed,
                    "interrupted" => TurnEnd::Interrupted,
                    other => {
                        let words = thing(turn.error).message.map(Text::into_string);
                        TurnEnd::Failed(words.unwrap_or_else(|| format!("the turn ended: {other}")))
                    }
                })]
            }
            "serverRequest/resolved" => {
                told.request_id.map(|id| Meaning::Settled(id.get().to_owned())).into_iter().collect()
            }
            "error" if own && told.will_retry != Some(true) => {
                let words = thing(told.error).message.map(Text::into_string);
                vec![Meaning::Failed(words.unwrap_or_else(|| "an error without a message".into()))]
            }
            "thread/started" if self.thread.is_none() => {
                // The answer to our request contains it too.
                self.thread = thing(told.thread).id.map(Text::into_string);
                Vec::new()
            }
            known if KNOWN.iter().any(|prefix| known.starts_with(prefix)) => Vec::new(),
            other => vec![Meaning::Unrecognized(other.to_owned())],
        }
    }

    fn completed(&mut self, item: &AppServerObject<'_>, own: bool) -> Vec<Meaning> {
        let id = item.id.as_deref().unwrap_or_default();
        match item.kind.as_deref() {
            Some("agentMessage") if own => {
                let known = self.parts.get(id).is_some();
                self.parts.forget(id);
                let text = item.text.as_deref().filter(|_| !known);
                text.map(|text| Meaning::Text(text.to_owned())).into_iter().collect()
            }
            Some("commandExecution" | "fileChange" | "mcpToolCall" | "webSearch") => {
                self.items.forget(id);
                let outcome = match item.status() {
                    "declined" => ToolOutcome::Denied,
                    "failed" => ToolOutcome::Error,
                    _ => ToolOutcome::Ok,
                };
                vec![Meaning::Returned { call: id.to_owned(), outcome }]
            }
            _ => Vec::new(),
        }
    }
}

/// Notifications that need no handling here.
const KNOWN: [&str; 10] = [
    "account/",
    "configWarning",
    "deprecationNotice",
    "error",
    "hook/",
    "item/",
    "mcpServer/",
    "remoteControl/",
    "thread/",
    "turn/",
];

impl Codec for AppServer {
    fn begin(&mut self) -> Vec<String> {
        let client = json!({ "name": "capture", "title": "capture", "version": env!("CARGO_PKG_VERSION") });
        let params = json!({ "clientInfo": client, "capabilities": { "experimentalApi": true } });
        vec![DIALECT.request(INITIALIZE, "initialize", &params)]
    }

    fn prompt(&mut self, text: &str) -> Option<String> {
        let thread = self.thread.clone()?;
        let input = json!([{ "type": "text", "text": text }]);
        let prompt = self.request("turn/start", &json!({ "threadId": thread, "input": input }));
        self.prompted = Some(self.last);
        Some(prompt)
    }

    fn interrupt(&mut self) -> Option<String> {
        self.stops = self.prompted.is_some();
        self.stop()
    }

    fn decode_line(&mut self, line: &str) -> Vec<Meaning> {
        let Ok(message) = serde_json::from_str::<RpcMessage<'_>>(line) else {
            return vec![Meaning::Unrecognized("no message".into())];
        };
        match message.sort() {
            RpcMessageKind::Request { id, method, params } => self.decode_request(id, method, params, line),
            RpcMessageKind::Notice { method, params } => self.decode_notification(method, params),
            RpcMessageKind::Result { id, result } => self.result(id, result),
            RpcMessageKind::Error { id, words } if id <= START || self.prompted == Some(id) => {
                vec![Meaning::Ended(TurnEnd::Failed(words))]
            }
            RpcMessageKind::Error { words, .. } => vec![Meaning::Failed(words)],
            RpcMessageKind::Strange => vec![Meaning::Unrecognized("not a JSON-RPC message".into())],
        }
    }

    fn answer(&self, request: &PermissionRequest, given: &AgentAnswer) -> Option<String> {
        let offered = parse_request(&request.line)?;
        if given.allow && (given.rewrite.is_some() || given.answers.is_some() || !offered.accepts()) {
            return None;
        }
        // The protocol has no field for a reason.
        let decision = if given.allow { "accept" } else { "decline" };
        Some(DIALECT.result(&request.id, &json!({ "decision": decision })))
    }

    fn cancel(&self, request: &PermissionRequest) -> String {
        DIALECT.result(&request.id, &json!({ "decision": "cancel" }))
    }
}

/// A permission request as written by the agent.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct AppServerRequest<'a> {
    #[serde(borrow)]
    pub kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub command: Option<Text<'a>>,
    #[serde(borrow)]
    pub cwd: Option<Text<'a>>,
    #[serde(borrow)]
    pub environment_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub grant_root: Option<Text<'a>>,
    #[serde(borrow)]
    available_decisions: Option<Vec<&'a RawValue>>,
    /// Whether it concerns files.
    #[serde(skip)]
    pub is_files: bool,
    /// The fields that describe the request, as exact bytes.
    #[serde(skip)]
    pub input: String,
}

impl AppServerRequest<'_> {
    /// Whether the offered answers include accepting once.
    fn accepts(&self) -> bool {
        self.available_decisions.as_ref().is_none_or(|all| all.iter().any(|one| one.get() == "\"accept\""))
    }
}

/// Parses a permission request; `None` if the line is another message.
pub(super) fn parse_request(line: &RawValue) -> Option<AppServerRequest<'_>> {
    let message: RpcMessage<'_> = serde_json::from_str(line.get()).ok()?;
    let method = message.method?;
    let params = message.params.filter(|_| matches!(&*method, COMMAND | FILES))?;
    let asked: AppServerRequest<'_> = serde_json::from_str(params.get()).ok()?;
    Some(AppServerRequest { is_files: &*method == FILES, input: nameless(params.get())?, ..asked })
}

/// A file change item with these changes.
fn with_changes(changes: &RawValue) -> Option<Box<RawValue>> {
    let item = BTreeMap::from([("changes", changes)]);
    serde_json::value::to_raw_value(&item).ok()
}

/// The full content of a request for file changes: the changes of its item, and additional fields of the request, such
/// as a directory it wants lasting access to.
pub(super) fn changes_and(item: &str, request: &str) -> Option<String> {
    let mut fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(&nameless(item)?).ok()?;
    let beside: BTreeMap<String, Box<RawValue>> = serde_json::from_str(request).ok()?;
    for (name, value) in beside.into_iter().filter(|(_, value)| value.get() != "null") {
        fields.entry(name).or_insert(value);
    }
    serde_json::to_string(&fields).ok()
}

/// The fields of an object without those that only identify it.
pub(super) fn nameless(object: &str) -> Option<String> {
    let mut fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(object).ok()?;
    fields.retain(|name, _| !NAMES.contains(&name.as_str()));
    serde_json::to_string(&fields).ok()
}

/// A change that an item would make.
#[derive(Debug, Deserialize)]
pub(super) struct FileChange {
    /// The file.
    pub path: String,
    kind: ChangeKind,
}

#[derive(Debug, Deserialize)]
struct ChangeKind {
    #[serde(default)]
    move_path: Option<String>,
}

/// The files an item would change, by their names before and after; `None` if it does not say.
pub(super) fn changed(item: &RawValue) -> Option<Vec<String>> {
    #[derive(Deserialize)]
    struct ChangedItem {
        changes: Vec<FileChange>,
    }
    let item: ChangedItem = serde_json::from_str(item.get()).ok()?;
    let paths: Vec<String> =
        item.changes.into_iter().flat_map(|change| std::iter::once(change.path).chain(change.kind.move_path)).collect();
    (!paths.is_empty()).then_some(paths)
}

pub(super) fn can_express(input: Option<&str>, given: &AgentAnswer) -> bool {
    let asked = input.and_then(|input| serde_json::from_str::<AppServerRequest<'_>>(input).ok());
    !given.allow
        || given.rewrite.is_none() && given.answers.is_none() && asked.as_ref().is_none_or(AppServerRequest::accepts)
}

/// Whether a request for a command asks for nothing else: no other permissions, no other location, no input to a
/// running program.
pub(super) fn is_plain(input: &str) -> bool {
    const KNOWN: [&str; 8] = [
        "availableDecisions",
        "command",
        "commandActions",
        "cwd",
        "environmentId",
        "kind",
        "proposedExecpolicyAmendment",
        "reason",
    ];
    let Ok(fields) = serde_json::from_str::<BTreeMap<String, &RawValue>>(input) else { return false };
    let known = |(name, value): (&String, &&RawValue)| KNOWN.contains(&name.as_str()) || value.get() == "null";
    let is = |name: &str, wanted: &str| fields.get(name).is_none_or(|value| matches!(value.get(), v if v == wanted));
    fields.iter().all(known) && is("kind", "\"command\"") && is("environmentId", "\"local\"")
}
