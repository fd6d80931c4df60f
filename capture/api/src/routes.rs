//! The table of routes: every entry point of the server is one row, with the scope it requires and the types of its
//! requests and answers.
//!
//! To add a route, add a row; the server then does not compile until it has a handler for it.

use std::borrow::Cow;

use http::Method;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::{
    ErrorCode, Scope, agentapi::*, approvals::*, check::*, compat::*, devices::*, findings::*, health::*, history::*,
    hooks::*, mcp::*, overview::*, prompts::*, push::*, retention::*, runs::*, search::*, sessions::*, steering::*,
    usage::*,
};

/// Generates the schema of a type.
pub type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// One route.
#[derive(Debug, Clone)]
pub struct Route {
    /// The operation.
    pub operation: OperationId,
    /// The method; GET includes HEAD.
    pub method: Method,
    /// The path; at most one segment is in braces and matches any value.
    pub path: &'static str,
    /// The required scope.
    pub scope: Scope,
    /// A description of the route in one line.
    pub about: &'static str,
    /// The query parameters: an object with one property each.
    pub query: SchemaOf,
    /// The body.
    pub body: RequestBody,
    /// The answer if the request succeeds.
    pub answer: AnswerKind,
    /// Error codes specific to this route.
    pub errors: &'static [ErrorCode],
}

/// The body that a route accepts. Browsers send none of these to another origin without a preflight request.
#[derive(Debug, Clone, Copy)]
pub enum RequestBody {
    /// No body; a body is ignored.
    None,
    /// JSON with a `Content-Length`, at most 64 KiB.
    Json(SchemaOf),
    /// OpenTelemetry: JSON or protobuf, optionally compressed with gzip, chunked or whole, at most 20 MiB when
    /// decompressed.
    Telemetry,
}

/// The answer of a route.
#[derive(Debug, Clone, Copy)]
pub enum AnswerKind {
    /// JSON.
    Json(SchemaOf),
    /// JSON, or 204 if there is no answer.
    JsonOrNothing(SchemaOf),
    /// An OTLP response, in the encoding of the request.
    Telemetry,
    /// Text of this media type.
    Text(&'static str),
    /// Server-sent events.
    Events,
    /// JSON, or server-sent events for a client that accepts them.
    JsonOrEvents(SchemaOf),
    /// A WebSocket.
    WebSocket,
    /// Another protocol after an upgrade.
    Upgrade,
}

/// A route as a type, with the types of its query, body and answer.
pub trait Operation {
    /// The query parameters.
    type Query: Serialize + for<'de> Deserialize<'de> + JsonSchema;
    /// The body.
    type Body: BodyForm;
    /// The answer.
    type Answer: AnswerForm;
    /// The operation's id.
    const ID: OperationId;
}

/// A body, or none.
pub trait BodyForm {
    /// The body that the route accepts.
    const BODY: RequestBody;
}

/// An answer.
pub trait AnswerForm {
    /// The answer of the route.
    const ANSWER: AnswerKind;
}

/// No query parameters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoQuery {}

/// Where to resume a stream, and what it contains.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StreamQuery {
    /// Only these sessions, separated by commas. Any id of a session is accepted.
    pub session: Option<String>,
    /// Resume after this position, like the header `Last-Event-ID`.
    pub after: Option<u64>,
    /// The server epoch in which that position was seen; if the epoch differs, the stream begins with a snapshot.
    pub epoch: Option<String>,
    /// Sends events and deltas only for these sessions, separated by commas; `none` sends no events. Changes of
    /// sessions, approvals and findings are still sent for all sessions. Cannot be combined with `session`.
    pub events: Option<String>,
    /// Collect frames for up to this time and send them together, ms, up to 1,000. If a session has several statuses in
    /// this time, only the last one is sent.
    pub batch_ms: Option<u64>,
    /// `gzip` compresses the stream. Only for WebSockets. Messages are then binary: pieces of one gzip stream whose
    /// text has one JSON message per line.
    pub compress: Option<String>,
}

/// No body.
#[derive(Debug, Clone, Copy)]
pub struct NoBody;

/// An OTLP body.
#[derive(Debug, Clone, Copy)]
pub struct TelemetryBody;

/// An OTLP response.
#[derive(Debug, Clone, Copy)]
pub struct TelemetryAnswer;

/// Plain text.
#[derive(Debug, Clone, Copy)]
pub struct PlainText;

/// Metrics in the OpenMetrics text format.
#[derive(Debug, Clone, Copy)]
pub struct OpenMetrics;

/// A web page.
#[derive(Debug, Clone, Copy)]
pub struct Page;

/// A document without a fixed schema.
#[derive(Debug, Clone, Copy)]
pub struct Document;

/// Server-sent events.
#[derive(Debug, Clone, Copy)]
pub struct EventStream;

/// A WebSocket.
#[derive(Debug, Clone, Copy)]
pub struct WebSocketStream;

/// Another protocol after an upgrade.
#[derive(Debug, Clone, Copy)]
pub struct Upgraded;

impl BodyForm for NoBody {
    const BODY: RequestBody = RequestBody::None;
}

impl BodyForm for TelemetryBody {
    const BODY: RequestBody = RequestBody::Telemetry;
}

impl<T: JsonSchema> BodyForm for T {
    const BODY: RequestBody = RequestBody::Json(schema_of::<T>);
}

impl AnswerForm for TelemetryAnswer {
    const ANSWER: AnswerKind = AnswerKind::Telemetry;
}

impl AnswerForm for PlainText {
    const ANSWER: AnswerKind = AnswerKind::Text("text/plain");
}

impl AnswerForm for OpenMetrics {
    const ANSWER: AnswerKind = AnswerKind::Text("application/openmetrics-text");
}

impl AnswerForm for Page {
    const ANSWER: AnswerKind = AnswerKind::Text("text/html");
}

impl AnswerForm for Document {
    const ANSWER: AnswerKind = AnswerKind::Json(object);
}

impl AnswerForm for EventStream {
    const ANSWER: AnswerKind = AnswerKind::Events;
}

impl AnswerForm for WebSocketStream {
    const ANSWER: AnswerKind = AnswerKind::WebSocket;
}

impl AnswerForm for Upgraded {
    const ANSWER: AnswerKind = AnswerKind::Upgrade;
}

/// JSON, or server-sent events for a client that accepts them.
#[derive(Debug, Clone, Copy)]
pub struct OrEvents<T>(std::marker::PhantomData<T>);

impl<T: JsonSchema> AnswerForm for OrEvents<T> {
    const ANSWER: AnswerKind = AnswerKind::JsonOrEvents(schema_of::<T>);
}

/// JSON, or nothing.
#[derive(Debug, Clone, Copy)]
pub struct Maybe<T>(std::marker::PhantomData<T>);

impl<T: JsonSchema> AnswerForm for Maybe<T> {
    const ANSWER: AnswerKind = AnswerKind::JsonOrNothing(schema_of::<T>);
}

impl<T: JsonSchema> AnswerForm for T {
    const ANSWER: AnswerKind = AnswerKind::Json(schema_of::<T>);
}

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

fn object(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({ "type": "object" })
}

macro_rules! operations {
    ($(
        #[doc = $about:literal]
        $name:ident = $method:ident $path:literal $scope:ident ($query:ty, $body:ty) -> $answer:ty $(, $error:ident)*;
    )*) => {
        /// All operations.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum OperationId {
            $(#[doc = $about] $name,)*
        }

        impl OperationId {
            /// The name in the OpenAPI document.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// The operation's row in the table.
            #[must_use]
            pub fn route(self) -> &'static Route {
                // The rows are in the order of the variants.
                &ROUTES[self as usize]
            }
        }

        $(
            #[doc = $about]
            #[derive(Debug, Clone, Copy)]
            pub struct $name;

            impl Operation for $name {
                type Query = $query;
                type Body = $body;
                type Answer = $answer;
                const ID: OperationId = OperationId::$name;
            }
        )*

        /// All routes.
        pub static ROUTES: &[Route] = &[$(
            Route {
                operation: OperationId::$name,
                method: Method::$method,
                path: $path,
                scope: Scope::$scope,
                about: $about.trim_ascii(),
                query: schema_of::<$query>,
                body: <$body as BodyForm>::BODY,
                answer: <$answer as AnswerForm>::ANSWER,
                errors: &[$(ErrorCode::$error),*],
            },
        )*];
    };
}

operations! {
    /// 200 while every part of the server works, otherwise 503.
    Healthz = GET "/healthz" Open (NoQuery, NoBody) -> PlainText;
    /// The page for browsers; it contains no data.
    Index = GET "/" Open (NoQuery, NoBody) -> Page;
    /// Metrics in Prometheus text form.
    Metrics = GET "/metrics" Read (NoQuery, NoBody) -> OpenMetrics;
    /// This document.
    Openapi = GET "/openapi.json" Read (NoQuery, NoBody) -> Document;

    /// Creates a single-use code that pairs a browser or elevates a device. Requires a token, not a cookie.
    CreatePairingCode = POST "/api/v1/pairing" Admin (NoQuery, PairingRequest) -> PairingCode, NotFound;
    /// Pairs a browser with a code; the answer sets its cookie. Works only from this server's own page.
    PairDevice = POST "/api/v1/pair" Open (NoQuery, PairRequest) -> Paired, WrongCode, CodeExpired, Conflict, TooManyWrongTokens;
    /// The device that is signed in.
    GetMe = GET "/api/v1/me" Read (NoQuery, NoBody) -> Me, NotFound;
    /// Grants the device the scope `admin` for ten minutes. Needs a code created for this device.
    StepUp = POST "/api/v1/step-up" Read (NoQuery, StepUpRequest) -> SteppedUp, WrongCode, CodeExpired, NotFound;
    /// Signs the device out; its cookie becomes invalid.
    SignOut = POST "/api/v1/sign-out" Read (NoQuery, EmptyBody) -> SignedOut, NotFound;
    /// The paired devices, most recently used first.
    ListDevices = GET "/api/v1/devices" Read (NoQuery, NoBody) -> DeviceList;
    /// Revokes a device; its cookie becomes invalid and its connections are closed.
    RevokeDevice = DELETE "/api/v1/devices/{id}" Control (NoQuery, NoBody) -> SignedOut;

    /// The key with which a browser subscribes to messages.
    GetPush = GET "/api/v1/push" Read (NoQuery, NoBody) -> PushKey;
    /// Subscribes the signed-in device to messages.
    SubscribePush = POST "/api/v1/push/subscriptions" Control (NoQuery, PushSubscription) -> PushState, Conflict, NotFound;
    /// Ends the subscription of the signed-in device.
    UnsubscribePush = DELETE "/api/v1/push/subscriptions" Control (NoQuery, PushEnd) -> PushState, NotFound;

    /// The sources and their health.
    HealthSources = GET "/api/v1/health/sources" Read (NoQuery, NoBody) -> Sources;
    /// Tokens and costs by model, day, project, session or agent, and the quotas of agents.
    UsageOfAll = GET "/api/v1/usage" Read (UsageQuery, NoBody) -> UsageReport, Conflict;
    /// How well sessions went: turns, failures, how long approvals took, active and waiting time.
    QualityOfAll = GET "/api/v1/usage/quality" Read (QualityQuery, NoBody) -> QualityReport;
    /// Activity of all sessions in a period: which agents worked when, how long agents waited for people, findings by day.
    GetOverview = GET "/api/v1/overview" Read (OverviewQuery, NoBody) -> Overview;
    /// The turns of all sessions, grouped by session.
    ListRecentTurns = GET "/api/v1/turns" Read (RecentTurnsQuery, NoBody) -> RecentTurnPage;
    /// The whole text an event's `text_ref` points to.
    GetText = GET "/api/v1/texts/{hash}" Read (NoQuery, NoBody) -> PlainText;

    /// The texts of all sessions that match a query, each with the matching part.
    SearchTexts = GET "/api/v1/search" Read (SearchQuery, NoBody) -> SearchPage, Conflict;
    /// The state and progress of the search index.
    GetIndex = GET "/api/v1/search/index" Read (NoQuery, NoBody) -> IndexStatus, Conflict;
    /// Deletes the search index and rebuilds it; until then, searches use the finished part.
    RebuildIndex = POST "/api/v1/search/index/rebuild" Control (NoQuery, EmptyBody) -> IndexStatus, Conflict;

    /// Connects the terminal host of a run (Unix socket only).
    ConnectHost = GET "/api/v1/host" Ingest (NoQuery, NoBody) -> Upgraded, UnixOnly, UpgradeRequired, TooManyStreams;
    /// Announces a delivery that a hook wrote to the spool.
    AnnounceDelivery = POST "/api/v1/deliveries" Ingest (NoQuery, DeliveryNotice) -> DeliveryTaken;
    /// Sends the text an agent is writing now; streams send it as a `delta`, and it is not stored.
    SendDelta = POST "/api/v1/deltas" Ingest (NoQuery, TextDelta) -> DeltaTaken;
    /// Waits for the decision on a hook's delivery; 204 if there is none.
    AwaitDecision = POST "/api/v1/deliveries/{id}/answer" Ingest (NoQuery, HookWait) -> Maybe<HookAnswer>, UnixOnly;

    /// Permission requests, newest first.
    ListApprovals = GET "/api/v1/approvals" Read (ApprovalsQuery, NoBody) -> ApprovalPage;
    /// A permission request, with everything needed to decide it.
    GetApproval = GET "/api/v1/approvals/{id}" Read (NoQuery, NoBody) -> ApprovalView, Ambiguous;
    /// Allows or denies a permission request; 409 if it is closed or cannot be answered from here.
    DecideApproval = POST "/api/v1/approvals/{id}/decision" Control (NoQuery, DecisionRequest) -> ApprovalView, Conflict, Ambiguous, StepUpRequired;

    /// Answers a permission request with the single-use token of a button in a message.
    PressButton = POST "/api/v1/answers" Open (NoQuery, ButtonPressed) -> ButtonAnswer, CodeExpired, Conflict, NotFound, AgentsPeer, TooManyWrongTokens, Unavailable;

    /// Findings, newest first.
    ListFindings = GET "/api/v1/findings" Read (FindingsQuery, NoBody) -> FindingPage;
    /// The active sessions that need a person, most urgent first, by need, risk and waiting time.
    ListAttention = GET "/api/v1/attention" Read (NoQuery, NoBody) -> AttentionList;
    /// One finding.
    GetFinding = GET "/api/v1/findings/{id}" Read (NoQuery, NoBody) -> events::Finding, Ambiguous;
    /// Acknowledges a finding: it is not reported again.
    AcknowledgeFinding = POST "/api/v1/findings/{id}/ack" Control (NoQuery, EmptyBody) -> events::Finding, Conflict, Ambiguous;

    /// Queued prompts and their outcomes, newest first.
    ListPrompts = GET "/api/v1/prompts" Read (PromptsQuery, NoBody) -> PromptPage;
    /// Cancels a queued prompt.
    CancelPrompt = POST "/api/v1/prompts/{id}/cancel" Control (NoQuery, EmptyBody) -> projections::Prompt, Conflict, Ambiguous;
    /// Queues a prompt, which is typed when the session's run waits for one.
    QueuePrompt = POST "/api/v1/sessions/{id}/prompts" Control (NoQuery, PromptRequest) -> projections::Prompt, Conflict;
    /// Sends a test message over a notification channel.
    TestChannel = POST "/api/v1/notify/test" Control (NoQuery, ChannelTest) -> Receipt;

    /// The processes that `capture run` started.
    ListRuns = GET "/api/v1/runs" Read (NoQuery, NoBody) -> RunPage;
    /// A run, by its id or name.
    GetRun = GET "/api/v1/runs/{id}" Read (NoQuery, NoBody) -> Run, Ambiguous;
    /// The screen of a run's terminal.
    RunScreen = GET "/api/v1/runs/{id}/screen" Read (NoQuery, NoBody) -> Picture, Conflict, Ambiguous;
    /// A run's terminal over a WebSocket: sends the screen as rows of coloured text, and accepts input.
    RunTerminal = GET "/api/v1/runs/{id}/terminal" Read (NoQuery, NoBody) -> WebSocketStream, Conflict, Ambiguous, UpgradeRequired, WebSocketVersion, TooManyStreams;
    /// The length and state of a run's recording.
    RunRecording = GET "/api/v1/runs/{id}/recording" Read (NoQuery, NoBody) -> RecordingInfo, Ambiguous;
    /// The recorded screen at a time, and the changes after it.
    RunRecordingFrames = GET "/api/v1/runs/{id}/recording/frames" Read (RecordedFramesQuery, NoBody) -> RecordedFrames, Ambiguous;
    /// Which rule matches a run's screen, and why the other rules do not.
    ExplainRun = GET "/api/v1/runs/{id}/explain" Read (NoQuery, NoBody) -> Explanation, Conflict, Ambiguous;
    /// Types into a run's terminal: text as soon as a prompt is shown, keys or an interrupt immediately.
    RunInput = POST "/api/v1/runs/{id}/input" Control (NoQuery, Input) -> InputSent, Conflict, Ambiguous, Timeout;

    /// As in coder/agentapi: whether the agent of a run is working.
    AgentApiGetStatus = GET "/api/v1/runs/{id}/agentapi/status" Read (NoQuery, NoBody) -> AgentApiStatus, Conflict, Ambiguous;
    /// As in coder/agentapi: the prompts and answers of the run's session.
    AgentApiGetMessages = GET "/api/v1/runs/{id}/agentapi/messages" Read (NoQuery, NoBody) -> AgentApiMessages, Conflict, Ambiguous;
    /// As in coder/agentapi: types a prompt or characters.
    AgentApiSend = POST "/api/v1/runs/{id}/agentapi/message" Control (NoQuery, AgentApiInput) -> AgentApiSent, Conflict, Ambiguous, Timeout;
    /// As in coder/agentapi: messages and status changes as they occur.
    AgentApiEvents = GET "/api/v1/runs/{id}/agentapi/events" Read (NoQuery, NoBody) -> EventStream, Conflict, Ambiguous, TooManyStreams;

    /// A message of the Model Context Protocol.
    SendMcpMessage = POST "/mcp" Read (NoQuery, McpMessage) -> McpMessage;

    /// Sessions, most recent event first.
    ListSessions = GET "/api/v1/sessions" Read (SessionsQuery, NoBody) -> SessionPage;
    /// A session, by any of its ids.
    GetSession = GET "/api/v1/sessions/{id}" Read (NoQuery, NoBody) -> projections::Session;
    /// Prompts, ends of turns, permission requests, errors, findings and similar events of all sessions, newest first.
    ListTimeline = GET "/api/v1/events" Read (TimelineQuery, NoBody) -> TimelinePage;
    /// The events of a session, in order.
    ListEvents = GET "/api/v1/sessions/{id}/events" Read (EventsQuery, NoBody) -> EventPage;
    /// The conversation of a session: prompts, messages, tool calls with their results, approvals, and sub-agents at the point where they were started.
    ReadConversation = GET "/api/v1/sessions/{id}/conversation" Read (ConversationQuery, NoBody) -> ConversationPage;
    /// The turns of a session, in order.
    ListTurns = GET "/api/v1/sessions/{id}/turns" Read (HistoryQuery, NoBody) -> TurnPage;
    /// The files a session changed, the commands it ran and its last answer, from its last 20,000 events.
    GetWork = GET "/api/v1/sessions/{id}/work" Read (NoQuery, NoBody) -> projections::WorkLog;
    /// The last finished turns of a session with what their checks showed, also in sub-agents, and what the agent said about them.
    CheckSession = GET "/api/v1/sessions/{id}/check" Read (CheckQuery, NoBody) -> SessionCheck;
    /// What the person asked for in a session, and how far its edits are from the named files, from its last 20,000 events.
    GetDrift = GET "/api/v1/sessions/{id}/drift" Read (NoQuery, NoBody) -> projections::Drift;
    /// A Markdown note without secrets with which a person or an agent can continue a session's work.
    HandOffSession = GET "/api/v1/sessions/{id}/handoff" Read (NoQuery, NoBody) -> HandoffNote;
    /// What a session is about.
    SummarizeSession = GET "/api/v1/sessions/{id}/summary" Read (NoQuery, NoBody) -> SessionSummary;
    /// The tokens of a session.
    UsageOfSession = GET "/api/v1/sessions/{id}/usage" Read (NoQuery, NoBody) -> SessionUsage;
    /// A session's status now or at a past time, the claims in force then, and the rule that decided.
    GetStatus = GET "/api/v1/sessions/{id}/status" Read (StatusQuery, NoBody) -> StatusAt;
    /// Changes of a session's status, oldest first; without `after`, the latest ones.
    StatusHistory = GET "/api/v1/sessions/{id}/status/history" Read (HistoryQuery, NoBody) -> Vec<StatusChange>;
    /// Changes of a session's status in pages, oldest first.
    ListStatusChanges = GET "/api/v1/sessions/{id}/status/changes" Read (HistoryQuery, NoBody) -> StatusChangePage;
    /// Answers when a session reaches a state; with `after`, only states after that position count.
    WaitForState = GET "/api/v1/sessions/{id}/wait" Read (WaitQuery, NoBody) -> projections::Session, Timeout;
    /// The screen of the run that hosts a session.
    SessionScreen = GET "/api/v1/sessions/{id}/screen" Read (NoQuery, NoBody) -> Picture, Conflict;
    /// Which rule matches that screen, and why the other rules do not.
    ExplainSession = GET "/api/v1/sessions/{id}/explain" Read (NoQuery, NoBody) -> Explanation, Conflict;
    /// Starts a session: capture's own agent, or another agent over its protocol. The session's process continues when the server or the client ends.
    StartSession = POST "/api/v1/sessions" Control (NoQuery, SessionRequest) -> StartedSession, Conflict;
    /// Sends a prompt or a command to a session, or types into the run that hosts it.
    SessionInput = POST "/api/v1/sessions/{id}/input" Control (NoQuery, SessionInputRequest) -> SessionInputTaken, Conflict, Timeout;
    /// Sets or removes labels of a session. Policies can refer to labels.
    LabelSession = PUT "/api/v1/sessions/{id}/labels" Control (NoQuery, Labels) -> Labels;
    /// The notes on a session.
    ListNotes = GET "/api/v1/sessions/{id}/notes" Read (NoQuery, NoBody) -> Notes;
    /// Adds a note to a session. Notes are stored as events of the session and cannot be deleted.
    AddNote = POST "/api/v1/sessions/{id}/notes" Control (NoQuery, NoteRequest) -> Notes;
    /// Pins, snoozes or archives a session in the user's lists, for every view.
    MarkSession = PUT "/api/v1/sessions/{id}/marks" Control (NoQuery, MarksRequest) -> projections::SessionMarks;
    /// Turns the capture of a session on or off.
    CaptureSession = PUT "/api/v1/sessions/{id}/capture" Admin (NoQuery, CaptureRequest) -> CaptureAnswer;
    /// Forgets a session and its sub-agents: all their data is removed, and they are not read again.
    ForgetSession = DELETE "/api/v1/sessions/{id}" Admin (RemovalQuery, NoBody) -> RemovalReport;
    /// Removes old sessions to save space; they are not read again.
    PruneSessions = POST "/api/v1/retention/prune" Admin (NoQuery, PruneRequest) -> RemovalReport;
    /// How much of the removed sessions still has to be erased, and the size of the database.
    GetRetention = GET "/api/v1/retention" Read (NoQuery, NoBody) -> RetentionStatus;

    /// A snapshot, then events, statuses, approvals and findings as they occur.
    Stream = GET "/api/v1/stream" Read (StreamQuery, NoBody) -> EventStream, TooManyStreams;
    /// The same frames over a WebSocket.
    StreamOverWebSocket = GET "/api/v1/ws" Read (StreamQuery, NoBody) -> WebSocketStream, UpgradeRequired, WebSocketVersion, TooManyStreams;

    /// OTLP/HTTP: log records of an agent.
    TelemetryLogs = POST "/v1/logs" Ingest (NoQuery, TelemetryBody) -> TelemetryAnswer;
    /// OTLP/HTTP: spans of an agent; accepted, not stored.
    TelemetryTraces = POST "/v1/traces" Ingest (NoQuery, TelemetryBody) -> TelemetryAnswer;
    /// OTLP/HTTP: metrics of an agent; accepted, not stored.
    TelemetryMetrics = POST "/v1/metrics" Ingest (NoQuery, TelemetryBody) -> TelemetryAnswer;

    /// Older name: the status of all active sessions, in the older format. As JSON, or as a stream with `Accept: text/event-stream`.
    CompatStatusStream = GET "/api/stream/status" Read (NoQuery, NoBody) -> OrEvents<StreamStatuses>, TooManyStreams;
    /// Older name: a session and its last events, in the older format. As JSON, or as a stream with `Accept: text/event-stream`.
    CompatSessionStream = GET "/api/sessions/{id}/stream" Read (NoQuery, NoBody) -> OrEvents<SessionStream>, TooManyStreams;
    /// Older name of /api/v1/sessions/{id}/summary.
    CompatSummary = GET "/api/sessions/{id}/summary" Read (NoQuery, NoBody) -> SessionSummary;
    /// Older name: the last prompts and answers of a session.
    CompatMessages = GET "/api/session/messages" Read (MessagesQuery, NoBody) -> Messages;
}

/// An empty object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EmptyBody {}

impl Route {
    /// The name of the path's variable segment.
    #[must_use]
    pub fn segment(&self) -> Option<&'static str> {
        let (_, rest) = self.path.split_once('{')?;
        Some(rest.split_once('}')?.0)
    }

    /// The path with this value in its variable segment, percent-encoded.
    #[must_use]
    pub fn path_of(&self, value: &str) -> String {
        use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
        /// Percent-encoded characters: all except the unreserved ones of RFC 3986.
        const ENCODED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
        match (self.path.split_once('{'), self.path.split_once('}')) {
            (Some((before, _)), Some((_, behind))) => {
                format!("{before}{}{behind}", utf8_percent_encode(value, &ENCODED))
            }
            _ => self.path.to_owned(),
        }
    }

    /// The decoded value of the variable segment in a path of this route; the inverse of [`path_of`](Self::path_of).
    /// `None` if the path belongs to another route, or the value is not UTF-8.
    #[must_use]
    pub fn segment_of<'a>(&self, path: &'a str) -> Option<Cow<'a, str>> {
        let (before, rest) = self.path.split_once('{')?;
        let (_, behind) = rest.split_once('}')?;
        let value = path.strip_prefix(before)?.strip_suffix(behind)?;
        // Most values need no decoding, and decoding would scan every byte a second time.
        if !value.contains('%') {
            return Some(value.into());
        }
        percent_encoding::percent_decode_str(value).decode_utf8().ok()
    }

    /// Whether the path names a session.
    #[must_use]
    pub fn is_of_session(&self) -> bool {
        self.path.contains("/sessions/{id}")
    }

    /// All errors the route may answer with.
    #[must_use]
    pub fn all_errors(&self) -> Vec<ErrorCode> {
        use ErrorCode as E;
        let mut errors = vec![E::BadTarget, E::WrongHost, E::ForeignOrigin, E::Internal];
        if self.scope != Scope::Open {
            errors.extend([E::Unauthorized, E::TooManyWrongTokens, E::WrongScope, E::Unavailable]);
        }
        if self.scope == Scope::Admin {
            errors.push(E::StepUpRequired);
        }
        if matches!(self.scope, Scope::Control | Scope::Admin) {
            errors.push(E::AgentsPeer);
        }
        if self.segment().is_some() {
            errors.extend([E::BadParameter, E::NotFound]);
        } else if self.operation_has_query() {
            errors.push(E::BadParameter);
        }
        if self.is_of_session() {
            errors.extend([E::Merged, E::Ambiguous]);
        }
        match self.body {
            RequestBody::None => {}
            RequestBody::Json(_) => {
                errors.extend([E::BadBody, E::LengthRequired, E::BodyTooLarge, E::NotJson, E::Timeout]);
            }
            RequestBody::Telemetry => {
                errors.extend([E::BadBody, E::BodyTooLarge, E::NotOtlp, E::UnknownCoding, E::Busy, E::Timeout]);
            }
        }
        errors.extend(self.errors);
        errors.sort_by_key(|code| (code.status().as_u16(), code.as_str()));
        errors.dedup();
        errors
    }

    fn operation_has_query(&self) -> bool {
        let schema = (self.query)(&mut SchemaGenerator::default());
        // A type without properties is inlined or referenced; only `NoQuery` has none.
        !schema.as_object().is_some_and(|schema| {
            schema.get("$ref").and_then(|name| name.as_str()).is_some_and(|name| name.ends_with("/NoQuery"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_id_maps_to_its_route() {
        for route in ROUTES {
            assert_eq!(route.operation.route().path, route.path);
            assert!(route.path.matches('{').count() <= 1, "{}", route.path);
        }
    }

    #[test]
    fn path_segments_are_percent_encoded() {
        let route = OperationId::WaitForState.route();
        assert_eq!(route.path_of("a/b c?é"), "/api/v1/sessions/a%2Fb%20c%3F%C3%A9/wait");
        assert_eq!((route.segment(), OperationId::Metrics.route().segment()), (Some("id"), None));
    }

    #[test]
    fn path_segments_are_decoded_from_a_path() {
        let route = OperationId::WaitForState.route();
        assert_eq!(route.segment_of("/api/v1/sessions/a%2Fb%20c%3F%C3%A9/wait").as_deref(), Some("a/b c?é"));
        assert_eq!(route.segment_of("/api/v1/sessions/a/wait").as_deref(), Some("a"));
        for other in ["/api/v1/sessions/%FF/wait", "/api/v1/sessions/a", "/api/v1/runs/a/wait", ""] {
            assert_eq!(route.segment_of(other), None, "{other}");
        }
        assert_eq!(OperationId::Metrics.route().segment_of("/metrics"), None);
        for route in ROUTES.iter().filter(|route| route.segment().is_some()) {
            for value in ["01J", "a/b", "%", "é\u{1f600}", " +&?#"] {
                let path = route.path_of(value);
                assert_eq!(route.segment_of(&path).as_deref(), Some(value), "{path}");
            }
        }
    }

    #[test]
    fn routes_list_the_error_codes_they_can_return() {
        let codes: Vec<_> = OperationId::DecideApproval.route().all_errors().iter().map(|code| code.as_str()).collect();
        for code in ["unauthorized", "agents_peer", "conflict", "ambiguous", "bad_body", "not_found"] {
            assert!(codes.contains(&code), "{code}: {codes:?}");
        }
        let healthz = OperationId::Healthz.route().all_errors();
        assert!(!healthz.contains(&ErrorCode::Unauthorized) && !healthz.contains(&ErrorCode::BadParameter));
    }
}
