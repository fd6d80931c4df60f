//! Sessions as OpenTelemetry traces, in the formats of OTLP: lines of JSON for files, protobuf for collectors.
//! [`metrics`] contains states of sessions and waiting times of requests.
//!
//! A session is a trace. Its root span is the session, each turn is a span `invoke_agent`, each tool call is a span
//! `execute_tool` below its turn, and each permission request is a span `permission_request` at the call it is about,
//! from the request to its end. Attributes are those of [`SCHEMA_URL`], or under `capture.` if it does not define one.
//! All ids are derived from ids of the session, so exporting it again results in the same spans.
//!
//! If the agent has its own traces, the span of a turn is linked to the agent's ([`AgentTrace`]).
//!
//! Texts written by people, agents and tools are left out unless [`OtlpOptions::texts`] is set; they are redacted, like
//! all other texts.

pub mod metrics;

use std::collections::{HashMap, HashSet};

use events::{
    ApprovalState, Event, Payload, PromptOrigin, SessionId, Timestamp, ToolOutcome, Topic, TurnId, TurnOutcome,
};
use hmac_sha256::Hash;
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceResponse,
    common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value::Value},
    resource::v1::Resource,
    trace::v1::{
        ResourceSpans, ScopeSpans, Status, TracesData,
        span::{Link, SpanKind},
        status::StatusCode,
    },
};
use projections::{ConversationItem, ItemBody, Session, Turn};
use prost::Message;

pub use opentelemetry_proto::tonic::trace::v1::Span;

/// The version of the semantic conventions: the last version that contains those for generative AI.
pub const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.41.0";
/// Longest text of an attribute, characters.
const TEXT_CHARS: usize = 32 << 10;
/// Maximum number of messages of a turn that become an attribute.
const MESSAGES: usize = 100;
/// Maximum number of traces of the agent to which a turn is linked.
const LINKS: usize = 16;
/// How long before the recorded start of a turn the agent may have reported its trace, ms.
const TRACE_BEFORE_MS: i64 = 2_000;

/// Makes a text safe to leave the machine.
pub type RedactText<'a> = &'a dyn Fn(&str) -> String;

/// What is exported, and the exporter's description.
#[derive(Clone, Copy)]
pub struct OtlpOptions<'a> {
    /// Removes secrets from every text that is exported.
    pub redact: RedactText<'a>,
    /// Whether texts written by people, agents and tools are exported.
    pub texts: bool,
    /// `gen_ai.provider.name`, if the agent has one provider.
    pub provider: Option<&'a str>,
    /// capture's version.
    pub version: &'a str,
}

/// Creates the spans of a session's parts, which must be passed in the order of the conversation: items first, then
/// turns.
pub struct SessionTrace<'a> {
    session: &'a Session,
    options: OtlpOptions<'a>,
    /// The calls that became spans.
    calls: HashSet<String>,
    /// The prompts and answers of each turn.
    messages: HashMap<TurnId, Messages>,
    /// The agent's own traces, in order.
    traces: Vec<AgentTrace>,
}

/// A trace that the agent itself reports to its own collector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentTrace {
    at: Timestamp,
    trace_id: [u8; 16],
    span_id: Option<[u8; 8]>,
}

impl AgentTrace {
    /// The agent's trace that an event reports, if it reports one.
    #[must_use]
    pub fn of(event: &Event) -> Option<Self> {
        let Payload::Annotation(note) = &event.payload else { return None };
        if note.topic != Topic::Trace {
            return None;
        }
        let (trace, span) = note.value.split_once('-').map_or((note.value.as_str(), None), |(t, s)| (t, Some(s)));
        Some(Self { at: event.created_at, trace_id: bytes_of(trace)?, span_id: span.and_then(bytes_of) })
    }
}

/// The bytes of an id in hexadecimal digits.
fn bytes_of<const N: usize>(hex: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if hex.len() != 2 * N || !hex.is_ascii() {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// The messages of a turn, as JSON.
#[derive(Default)]
struct Messages {
    input: Vec<serde_json::Value>,
    output: Vec<serde_json::Value>,
}

impl<'a> SessionTrace<'a> {
    /// Creates the trace of a session.
    #[must_use]
    pub fn new(session: &'a Session, options: OtlpOptions<'a>) -> Self {
        Self { session, options, calls: HashSet::new(), messages: HashMap::new(), traces: Vec::new() }
    }

    /// Links the turn in which it was reported to the agent's own trace.
    pub fn join(&mut self, trace: AgentTrace) {
        self.traces.push(trace);
    }

    /// Redacts texts, if they are exported.
    fn texts(&self) -> Option<RedactText<'a>> {
        self.options.texts.then_some(self.options.redact)
    }

    /// The span of the session.
    #[must_use]
    pub fn root(&self) -> Span {
        let session = self.session;
        let mut attributes = self.agent_attributes();
        let usage = session.usage;
        attributes.extend([
            text("capture.session.state", session.status.state.as_str()),
            integer("capture.session.turns", session.turns),
            integer("capture.session.approval_wait_ms", session.approval_wait_ms),
            integer("capture.usage.input_tokens", usage.input_tokens),
            integer("capture.usage.output_tokens", usage.output_tokens),
            integer("capture.usage.cache_read_tokens", usage.cache_read_tokens),
            integer("capture.usage.cache_write_tokens", usage.cache_write_tokens),
        ]);
        if let Some(parent) = session.parent_session_id {
            attributes.push(text("capture.session.parent_id", &parent.to_string()));
        }
        if let Some(redact) = self.texts() {
            attributes.extend(session.title.as_deref().map(|title| text("capture.session.title", &redact(title))));
            attributes.extend(session.cwd.as_deref().map(|cwd| text("capture.session.cwd", &redact(cwd))));
            attributes.extend(session.git_branch.as_deref().map(|name| text("vcs.ref.head.name", &redact(name))));
        }
        let mut span = self.span("session", root_id(session.id), Vec::new(), session.started_at, session.last_event_at);
        span.attributes = attributes;
        span
    }

    /// The span of an item; `None` if it only adds to a turn.
    pub fn item(&mut self, item: &ConversationItem) -> Option<Span> {
        match &item.body {
            ItemBody::ToolCall { call_id, name, tool, title: _, input, result, subagents: _ } => {
                let end = result.as_ref().and_then(|result| result.duration_ms).unwrap_or_default();
                let name = if name.is_empty() { "unknown" } else { name };
                let mut span = self.span(
                    &format!("execute_tool {name}"),
                    call_span(self.session.id, call_id),
                    self.turn_or_root(item.turn_id),
                    item.at,
                    item.at.plus_ms(i64::try_from(end).unwrap_or(i64::MAX)),
                );
                span.attributes = vec![
                    text("gen_ai.operation.name", "execute_tool"),
                    text("gen_ai.tool.name", name),
                    text("gen_ai.tool.call.id", call_id),
                    text("gen_ai.tool.type", "function"),
                    text("gen_ai.conversation.id", &self.conversation_id()),
                    text("capture.tool.kind", tool.as_str()),
                    text("capture.tool.outcome", result.as_ref().map_or("open", |result| result.outcome.as_str())),
                ];
                span.attributes.extend(item.agent_id.as_deref().map(|agent| text("capture.sub_agent.id", agent)));
                if let Some(result) = result {
                    span.attributes.extend(result.exit_code.map(|code| integer("process.exit.code", code)));
                    if let Some(error) = error_of(result.outcome) {
                        fail(&mut span, error);
                    }
                }
                if let Some(redact) = self.texts() {
                    span.attributes.push(text("gen_ai.tool.call.arguments", &cut(&redact(&input.text))));
                    let output = result.as_ref().map(|result| cut(&redact(&result.text.text)));
                    span.attributes.extend(output.map(|output| text("gen_ai.tool.call.result", &output)));
                }
                self.calls.insert(call_id.clone());
                Some(span)
            }
            ItemBody::Approval { approval_id, call_id, subject, state, by, closed_at } => {
                let parent = match call_id.as_deref().filter(|call| self.calls.contains(*call)) {
                    Some(call) => call_span(self.session.id, call).to_vec(),
                    None => self.turn_or_root(item.turn_id),
                };
                let id = span_id(self.session.id, "approval", approval_id.as_str());
                let end = closed_at.unwrap_or(self.session.last_event_at);
                let mut span = self.span("permission_request", id, parent, item.at, end);
                span.attributes = vec![
                    text("capture.approval.id", approval_id.as_str()),
                    text("capture.approval.state", state.as_str()),
                    text("gen_ai.conversation.id", &self.conversation_id()),
                ];
                span.attributes.extend(by.map(|by| text("capture.approval.decided_by", by.as_str())));
                if *state == ApprovalState::Denied {
                    fail(&mut span, "denied");
                }
                if let (Some(redact), Some(subject)) = (self.texts(), subject) {
                    span.attributes.push(text("capture.approval.subject", &cut(&redact(subject))));
                }
                Some(span)
            }
            ItemBody::Error { class, code, text: message } => {
                let id = span_id(self.session.id, "error", &item.sequence.to_string());
                let mut span = self.span("error", id, self.turn_or_root(item.turn_id), item.at, item.at);
                fail(&mut span, class.as_str());
                span.attributes.extend(code.as_deref().map(|code| text("capture.error.code", code)));
                if let Some(redact) = self.texts() {
                    span.attributes.push(text("exception.message", &cut(&redact(&message.text))));
                }
                Some(span)
            }
            ItemBody::Prompt { origin, text, .. } => {
                let role = match origin {
                    PromptOrigin::Human | PromptOrigin::Steering | PromptOrigin::Command => "user",
                    PromptOrigin::Wakeup | PromptOrigin::Agent | PromptOrigin::Monitor => "system",
                };
                self.message(item.turn_id, role, &text.text);
                None
            }
            ItemBody::Message { text, .. } => {
                self.message(item.turn_id, "assistant", &text.text);
                None
            }
            ItemBody::Question { .. }
            | ItemBody::Compaction { .. }
            | ItemBody::TurnEnd { .. }
            // A sub-agent has a separate trace.
            | ItemBody::Subagent(_) => None,
        }
    }

    /// The span of a turn.
    pub fn turn(&mut self, turn: &Turn) -> Span {
        let session = self.session;
        let end = turn.completed_at.unwrap_or(session.last_event_at);
        let name = format!("invoke_agent {}", session.provider);
        let root = root_id(session.id).to_vec();
        let mut span = self.span(&name, turn_span(session.id, turn.id), root, turn.started_at, end);
        span.attributes = self.agent_attributes();
        let usage = turn.usage;
        span.attributes.extend([
            text("gen_ai.operation.name", "invoke_agent"),
            // In the convention, tokens read from and written to a cache count as input.
            integer(
                "gen_ai.usage.input_tokens",
                usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
            ),
            integer("gen_ai.usage.output_tokens", usage.output_tokens),
            integer("gen_ai.usage.cache_read.input_tokens", usage.cache_read_tokens),
            integer("gen_ai.usage.cache_creation.input_tokens", usage.cache_write_tokens),
            integer("capture.turn.number", turn.number),
            integer("capture.turn.tool_calls", turn.tool_calls),
            integer("capture.turn.tool_errors", turn.tool_errors),
            integer("capture.turn.approvals", turn.approvals),
            text("capture.turn.outcome", turn.outcome.map_or("open", TurnOutcome::as_str)),
        ]);
        match turn.outcome {
            Some(TurnOutcome::Failed) => fail(&mut span, "failed"),
            Some(TurnOutcome::TimedOut) => fail(&mut span, "timeout"),
            Some(
                TurnOutcome::Completed
                | TurnOutcome::Interrupted
                | TurnOutcome::Denied
                | TurnOutcome::Exited
                | TurnOutcome::Superseded
                | TurnOutcome::TakenBack,
            )
            | None => {}
        }
        self.link(&mut span, turn.started_at, end);
        if let Some(messages) = self.messages.remove(&turn.id) {
            span.attributes.push(text("gen_ai.input.messages", &serde_json::Value::from(messages.input).to_string()));
            span.attributes.push(text("gen_ai.output.messages", &serde_json::Value::from(messages.output).to_string()));
        }
        span
    }

    /// A line of a file: spans with their common data, as JSON.
    ///
    /// # Errors
    /// If they cannot be written as JSON.
    pub fn encode(&self, spans: Vec<Span>) -> Result<String, serde_json::Error> {
        serde_json::to_string(&traces_data(self.options, spans))
    }

    /// Links the span of a turn to the agent's traces of that time.
    fn link(&self, span: &mut Span, from: Timestamp, to: Timestamp) {
        let from = from.plus_ms(-TRACE_BEFORE_MS);
        for trace in self.traces.iter().filter(|trace| (from..=to).contains(&trace.at)).take(LINKS) {
            if let Some(span_id) = trace.span_id {
                let (trace_id, span_id) = (trace.trace_id.to_vec(), span_id.to_vec());
                span.links.push(Link { trace_id, span_id, ..Link::default() });
            } else {
                // A link requires a span id.
                span.attributes.push(text("capture.agent.trace_id", &hex(&trace.trace_id)));
            }
        }
        // Each attribute may occur only once.
        let mut seen = HashSet::new();
        span.attributes.retain(|attribute| seen.insert(attribute.key.clone()));
    }

    fn agent_attributes(&self) -> Vec<KeyValue> {
        let session = self.session;
        let mut attributes = vec![
            text("gen_ai.agent.name", session.provider.as_str()),
            text("gen_ai.conversation.id", &self.conversation_id()),
            text("capture.session.id", &session.id.to_string()),
        ];
        attributes.extend(self.options.provider.map(|name| text("gen_ai.provider.name", name)));
        attributes.extend(session.cli_version.as_deref().map(|version| text("gen_ai.agent.version", version)));
        attributes.extend(session.model.as_deref().map(|model| text("gen_ai.request.model", model)));
        attributes
    }

    /// The agent's own id of the conversation, or capture's id if there is none.
    fn conversation_id(&self) -> String {
        self.session.provider_session_id.clone().unwrap_or_else(|| self.session.id.to_string())
    }

    fn message(&mut self, turn: Option<TurnId>, role: &str, content: &str) {
        let (Some(redact), Some(turn)) = (self.texts(), turn) else { return };
        if content.is_empty() {
            return;
        }
        let part = serde_json::json!({ "type": "text", "content": cut(&redact(content)) });
        let mut message = serde_json::json!({ "role": role, "parts": [part] });
        let messages = self.messages.entry(turn).or_default();
        let list = if role == "assistant" {
            message["finish_reason"] = "stop".into();
            &mut messages.output
        } else {
            &mut messages.input
        };
        if list.len() < MESSAGES {
            list.push(message);
        }
    }

    fn turn_or_root(&self, turn: Option<TurnId>) -> Vec<u8> {
        turn.map_or_else(|| root_id(self.session.id), |turn| turn_span(self.session.id, turn)).to_vec()
    }

    fn span(&self, name: &str, id: [u8; 8], parent: Vec<u8>, from: Timestamp, to: Timestamp) -> Span {
        Span {
            trace_id: self.session.id.to_bytes().to_vec(),
            span_id: id.to_vec(),
            parent_span_id: parent,
            name: name.to_owned(),
            kind: SpanKind::Internal.into(),
            start_time_unix_nano: nanos(from),
            end_time_unix_nano: nanos(to.max(from)),
            ..Span::default()
        }
    }
}

/// The spans of a request to a collector, as protobuf (`ExportTraceServiceRequest`, which is the same on the wire).
#[must_use]
pub fn encode_request(options: OtlpOptions<'_>, spans: Vec<Span>) -> Vec<u8> {
    traces_data(options, spans).encode_to_vec()
}

/// The size of a span in a request, bytes.
#[must_use]
pub fn encoded_bytes(span: &Span) -> usize {
    span.encoded_len()
}

/// The number of spans that a collector rejected, from its protobuf answer, and the reason.
#[must_use]
pub fn rejected_spans(answer: &[u8]) -> Option<(u64, String)> {
    let partial = ExportTraceServiceResponse::decode(answer).ok()?.partial_success?;
    let rejected = u64::try_from(partial.rejected_spans).ok().filter(|count| *count > 0)?;
    Some((rejected, partial.error_message))
}

fn traces_data(options: OtlpOptions<'_>, mut spans: Vec<Span>) -> TracesData {
    for span in &mut spans {
        span.name = (options.redact)(&span.name);
        for attribute in &mut span.attributes {
            if let Some(Value::StringValue(text)) = attribute.value.as_mut().and_then(|value| value.value.as_mut()) {
                *text = (options.redact)(text);
            }
        }
    }
    let scope_spans = vec![ScopeSpans { scope: Some(scope(options.version)), spans, schema_url: SCHEMA_URL.into() }];
    let resource = Some(resource(options.version));
    TracesData { resource_spans: vec![ResourceSpans { resource, scope_spans, schema_url: SCHEMA_URL.into() }] }
}

fn resource(version: &str) -> Resource {
    let attributes = vec![text("service.name", "capture"), text("service.version", version)];
    Resource { attributes, ..Resource::default() }
}

fn scope(version: &str) -> InstrumentationScope {
    InstrumentationScope { name: "capture".into(), version: version.into(), ..InstrumentationScope::default() }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn root_id(session: SessionId) -> [u8; 8] {
    span_id(session, "session", "")
}

fn turn_span(session: SessionId, turn: TurnId) -> [u8; 8] {
    span_id(session, "turn", &turn.to_string())
}

fn call_span(session: SessionId, call: &str) -> [u8; 8] {
    span_id(session, "call", call)
}

fn span_id(session: SessionId, kind: &str, id: &str) -> [u8; 8] {
    let hash = Hash::hash(format!("{session} {kind} {id}").as_bytes());
    let mut short = [0; 8];
    short.copy_from_slice(&hash[..8]);
    short
}

fn nanos(at: Timestamp) -> u64 {
    u64::try_from(at.as_millisecond()).unwrap_or_default().saturating_mul(1_000_000)
}

fn error_of(outcome: ToolOutcome) -> Option<&'static str> {
    match outcome {
        ToolOutcome::Ok => None,
        ToolOutcome::Error => Some("tool_error"),
        ToolOutcome::Denied => Some("denied"),
        ToolOutcome::Blocked => Some("blocked"),
        ToolOutcome::Cancelled => Some("cancelled"),
    }
}

fn fail(span: &mut Span, error: &str) {
    span.attributes.push(text("error.type", error));
    span.status = Some(Status { message: String::new(), code: StatusCode::Error.into() });
}

/// A text of limited length.
fn cut(text: &str) -> String {
    match text.char_indices().nth(TEXT_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::StringValue(value.to_owned()))
}

fn integer(key: &str, value: impl TryInto<i64>) -> KeyValue {
    attribute(key, Value::IntValue(value.try_into().unwrap_or(i64::MAX)))
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

#[cfg(test)]
mod tests;
