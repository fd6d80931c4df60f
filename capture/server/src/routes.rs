//! The table of routes: every way in is one row, with the scope it needs.
//!
//! The service routes by it, the OpenAPI document is written from it, the security tests walk it.
//! A row is all there is to adding a route.

use std::ops::Range;

use http::Method;

use crate::{
    access::Scope,
    api::{admin, approvals, findings, history, moment, otlp, prompts, runs, sessions, site, streams, wait},
    app::App,
    call::{Call, Reply},
    older,
};

/// One route.
pub(crate) struct Route {
    pub(crate) method: Method,
    /// A segment in braces matches anything; a path has one at most.
    pub(crate) path: &'static str,
    /// Where that segment is in the path: from the opening brace to behind the closing one.
    braces: Option<(usize, usize)>,
    pub(crate) scope: Scope,
    /// For people, in one line.
    pub(crate) about: &'static str,
    pub(crate) query: &'static [Param],
    pub(crate) takes: Takes,
    pub(crate) gives: Gives,
    pub(crate) handler: fn(&App, Call) -> Reply,
}

/// A query parameter.
pub(crate) struct Param {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
}

/// What a route takes as its body. Of none of them a browser sends for a page without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// Nothing: a body is not looked at.
    Nothing,
    /// JSON with its length said before, up to [`Limits::body_bytes`](crate::Limits::body_bytes).
    Json,
    /// OpenTelemetry: JSON or protobuf, compressed by gzip or not, in chunks or whole, up to
    /// [`Limits::telemetry_bytes`](crate::Limits::telemetry_bytes) when it is inflated.
    Telemetry,
}

/// What a route answers with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gives {
    /// JSON of this schema.
    One(&'static str),
    /// JSON with a list of this schema in this field.
    List(&'static str, &'static str),
    /// JSON that is a list of this schema.
    Array(&'static str),
    /// JSON of no fixed shape.
    Json,
    /// What OTLP answers, encoded as the request.
    Telemetry,
    /// Text of this type.
    Text(&'static str),
    /// Server-sent events.
    Events,
    /// A WebSocket.
    WebSocket,
    /// Another protocol after an upgrade.
    Upgrade,
}

const fn param(name: &'static str, about: &'static str) -> Param {
    Param { name, about }
}

const AFTER_SEQUENCE: Param = param("after", "only what has a higher sequence (default 0)");
const LIMIT: Param = param("limit", "at most so many (cap 1000)");
const SESSION: Param = param("session", "only this session: our id or the agent's; several by comma");
const STREAM: &[Param] = &[
    SESSION,
    param("after", "resume behind this position, as Last-Event-ID does"),
    param("epoch", "the epoch that position was seen in; another one gives a snapshot"),
];
const LIST: &[Param] = &[
    param("state", "states, separated by commas; without `active`, looks among all sessions"),
    param("provider", "agents, separated by commas"),
    param("cwd", "working directory, exactly"),
    param("active", "`true` (default): not exited, and not idle or unknown for long; `all`"),
    param("cursor", "the `next_cursor` of the page before"),
    LIMIT,
];
const EVENTS: &[Param] = &[AFTER_SEQUENCE, LIMIT, param("kind", "kinds, separated by commas")];
const PAGE: &[Param] = &[AFTER_SEQUENCE, LIMIT];
const WAIT: &[Param] = &[
    param("until", "states, separated by commas; required"),
    param("timeout_ms", "answer 408 after so long (default 30000, cap 3600000)"),
];

const APPROVALS: &[Param] = &[
    param("state", "only those that stand like this: `pending`, `allowed`, …"),
    param("session", "only those of this session: our id or the agent's"),
    LIMIT,
];

const FINDINGS: &[Param] = &[
    param("state", "`open`, `acknowledged`, `resolved` or `all`; without, those that are not resolved"),
    param("kind", "kinds, separated by commas"),
    param("session", "only those of this session: our id or the agent's"),
    LIMIT,
];
const PROMPTS: &[Param] = &[
    param("state", "only those that stand like this: `queued`, `delivered`, …"),
    param("session", "only those of this session: our id or the agent's"),
    LIMIT,
];

const MOMENT: &[Param] =
    &[param("at", "as it was then, RFC 3339; without it as it is, one of the future as it will be if nothing happens")];

const fn braces(path: &str) -> Option<(usize, usize)> {
    let bytes = path.as_bytes();
    let (mut i, mut open) = (0, None);
    while i < bytes.len() {
        match (bytes[i], open) {
            (b'{', _) => open = Some(i),
            (b'}', Some(open)) => return Some((open, i + 1)),
            _ => {}
        }
        i += 1;
    }
    None
}

const fn get(
    path: &'static str,
    scope: Scope,
    query: &'static [Param],
    gives: Gives,
    handler: fn(&App, Call) -> Reply,
    about: &'static str,
) -> Route {
    Route {
        method: Method::GET,
        path,
        braces: braces(path),
        scope,
        about,
        query,
        takes: Takes::Nothing,
        gives,
        handler,
    }
}

/// A route that changes something.
const fn act(
    method: Method,
    path: &'static str,
    scope: Scope,
    gives: Gives,
    handler: fn(&App, Call) -> Reply,
    about: &'static str,
) -> Route {
    Route { method, path, braces: braces(path), scope, about, query: &[], takes: Takes::Json, gives, handler }
}

const fn otlp(path: &'static str, handler: fn(&App, Call) -> Reply, about: &'static str) -> Route {
    let scope = Scope::Ingest;
    let (takes, gives) = (Takes::Telemetry, Gives::Telemetry);
    Route { method: Method::POST, path, braces: None, scope, about, query: &[], takes, gives, handler }
}

/// All of them.
#[rustfmt::skip]
pub(crate) static ROUTES: &[Route] = &[
    get("/healthz", Scope::Open, &[], Gives::Text("text/plain"), site::healthz, "200 when ingest, store and index are up, else 503"),
    get("/", Scope::Read, &[], Gives::Text("text/html"), site::index, "a page that points here"),
    get("/metrics", Scope::Read, &[], Gives::Text("text/plain"), site::metrics, "metrics in Prometheus text form"),
    get("/openapi.json", Scope::Read, &[], Gives::Json, site::openapi, "this document"),

    get("/api/v1/health/sources", Scope::Read, &[], Gives::List("sources", "SourceHealth"), site::sources, "the sources and how they do"),
    get("/api/v1/usage", Scope::Read, &[], Gives::Json, history::usage_of_all, "tokens of all sessions, by agent and model"),
    get("/api/v1/texts/{hash}", Scope::Read, &[], Gives::Text("text/plain"), history::text, "the whole text an event's text_ref points to"),
    get("/api/v1/host", Scope::Ingest, &[], Gives::Upgrade, runs::host, "the host of a run connects (Unix socket only)"),
    act(Method::POST, "/api/v1/deliveries", Scope::Ingest, Gives::Json, runs::delivery, "a hook put a delivery in the spool"),
    act(Method::POST, "/api/v1/deliveries/{id}/answer", Scope::Ingest, Gives::Json, approvals::hold, "a hook waits for the decision on what it delivered; 204 for none"),
    get("/api/v1/approvals", Scope::Read, APPROVALS, Gives::List("approvals", "Approval"), approvals::list, "what agents ask leave for, the newest first"),
    get("/api/v1/approvals/{id}", Scope::Read, &[], Gives::One("Approval"), approvals::one, "one of them, with all that is needed to decide"),
    act(Method::POST, "/api/v1/approvals/{id}/decision", Scope::Control, Gives::One("Approval"), approvals::decide, "allows or denies one; 409 when it is closed or cannot be answered from here"),
    get("/api/v1/findings", Scope::Read, FINDINGS, Gives::List("findings", "Finding"), findings::list, "what a person should know, the newest first"),
    get("/api/v1/findings/{id}", Scope::Read, &[], Gives::One("Finding"), findings::one, "one of them"),
    act(Method::POST, "/api/v1/findings/{id}/ack", Scope::Control, Gives::One("Finding"), findings::acknowledge, "somebody knows of it: it is not told again"),
    get("/api/v1/prompts", Scope::Read, PROMPTS, Gives::List("prompts", "Prompt"), prompts::list, "prompts that wait to be delivered, and what became of others"),
    act(Method::POST, "/api/v1/prompts/{id}/cancel", Scope::Control, Gives::One("Prompt"), prompts::cancel, "takes a prompt back that waits"),
    act(Method::POST, "/api/v1/sessions/{id}/prompts", Scope::Control, Gives::One("Prompt"), prompts::queue, "queues a prompt: it is typed when the session's run waits for one"),
    act(Method::POST, "/api/v1/notify/test", Scope::Control, Gives::Json, prompts::test_channel, "sends a message over a channel, to try it"),
    get("/api/v1/runs", Scope::Read, &[], Gives::Json, runs::list, "the processes capture started"),
    get("/api/v1/runs/{id}", Scope::Read, &[], Gives::Json, runs::one, "one of them, by its id or name"),
    get("/api/v1/runs/{id}/screen", Scope::Read, &[], Gives::Json, runs::screen, "its terminal's screen as it stands"),
    get("/api/v1/runs/{id}/explain", Scope::Read, &[], Gives::Json, runs::explain, "which rule reads its screen, and why the others do not"),
    act(Method::POST, "/api/v1/runs/{id}/input", Scope::Control, Gives::Json, runs::input, "types into its terminal: text, keys or an interrupt"),

    get("/api/v1/sessions", Scope::Read, LIST, Gives::List("sessions", "Session"), sessions::list, "sessions, newest last event first"),
    get("/api/v1/sessions/{id}", Scope::Read, &[], Gives::One("Session"), sessions::one, "a session, by our id or the agent's"),
    get("/api/v1/sessions/{id}/events", Scope::Read, EVENTS, Gives::List("events", "Event"), history::events, "events of a session, in order"),
    get("/api/v1/sessions/{id}/turns", Scope::Read, PAGE, Gives::List("turns", "Turn"), history::turns, "turns of a session, in order"),
    get("/api/v1/sessions/{id}/summary", Scope::Read, &[], Gives::Json, sessions::summary, "what a session is about"),
    get("/api/v1/sessions/{id}/usage", Scope::Read, &[], Gives::One("Usage"), sessions::usage, "tokens of a session"),
    get("/api/v1/sessions/{id}/status", Scope::Read, MOMENT, Gives::One("Moment"), moment::status, "a session's status now or at a past time, the claims held then and the rule that decided"),
    get("/api/v1/sessions/{id}/status/history", Scope::Read, PAGE, Gives::Array("StatusChange"), history::status, "how a session's status changed; without `after`, the last changes"),
    get("/api/v1/sessions/{id}/wait", Scope::Read, WAIT, Gives::One("Session"), wait::wait, "answers when a session gets into a state"),
    get("/api/v1/sessions/{id}/screen", Scope::Read, &[], Gives::Json, runs::session_screen, "the screen of the run that hosts a session"),
    get("/api/v1/sessions/{id}/explain", Scope::Read, &[], Gives::Json, runs::session_explain, "how the screen of a session's run is read"),
    act(Method::POST, "/api/v1/sessions/{id}/input", Scope::Control, Gives::Json, runs::session_input, "types into the run that hosts a session"),
    act(Method::PUT, "/api/v1/sessions/{id}/labels", Scope::Control, Gives::Json, admin::label, "puts labels on a session, which policies may name, and takes them off"),
    act(Method::PUT, "/api/v1/sessions/{id}/capture", Scope::Admin, Gives::Json, admin::set_capture, "turns the capture of a session on or off"),

    get("/api/v1/stream", Scope::Read, STREAM, Gives::Events, streams::sse, "snapshot, then event and status as they come"),
    get("/api/v1/ws", Scope::Read, STREAM, Gives::WebSocket, streams::websocket, "the same frames over a WebSocket"),

    otlp("/v1/logs", otlp::logs, "OTLP/HTTP: log records of an agent"),
    otlp("/v1/traces", otlp::traces, "OTLP/HTTP: spans of an agent; taken, not kept"),
    otlp("/v1/metrics", otlp::metrics, "OTLP/HTTP: metrics of an agent; taken, not kept"),

    get("/api/stream/status", Scope::Read, &[], Gives::Events, older::status_stream, "older name: status of all sessions in the old words"),
    get("/api/sessions/{id}/stream", Scope::Read, &[], Gives::Events, older::session_stream, "older name: one session in the old words"),
    get("/api/sessions/{id}/summary", Scope::Read, &[], Gives::Json, sessions::summary, "older name of /api/v1/sessions/{id}/summary"),
    get("/api/session/messages", Scope::Read, &[SESSION, LIMIT], Gives::Json, older::messages, "older name: the last prompts and answers of a session"),
];

/// What the path of a request leads to.
pub(crate) enum Found {
    /// This route; the range is that of the variable segment.
    Route(&'static Route, Range<usize>),
    /// A path of ours, but another method.
    OtherMethod(&'static Route),
    /// Nothing.
    Nothing,
}

/// Finds the row. Literal segments are compared as they were sent, so an encoded spelling of a
/// path is no path of ours. HEAD is GET without the body.
pub(crate) fn find(method: &Method, path: &str) -> Found {
    let method = if method == Method::HEAD { &Method::GET } else { method };
    let mut other = None;
    for route in ROUTES {
        if let Some(segment) = route.matches(path) {
            if route.method == *method {
                return Found::Route(route, segment);
            }
            other = Some(route);
        }
    }
    other.map_or(Found::Nothing, Found::OtherMethod)
}

impl Route {
    /// The variable segment when the path is one of this route's; an empty range for a route
    /// without one.
    fn matches(&self, path: &str) -> Option<Range<usize>> {
        let Some((open, close)) = self.braces else {
            return (self.path == path).then_some(0..0);
        };
        let (before, behind) = (&self.path[..open], &self.path[close..]);
        let segment = path.strip_prefix(before)?.strip_suffix(behind)?;
        (!segment.is_empty() && !segment.contains('/')).then_some(open..open + segment.len())
    }
}

/// The methods a path takes, for `Allow`.
pub(crate) fn allowed(path: &str) -> String {
    let mut allowed: Vec<&str> = Vec::new();
    for route in ROUTES.iter().filter(|r| r.matches(path).is_some()) {
        allowed.push(route.method.as_str());
        if route.method == Method::GET {
            allowed.push("HEAD");
        }
    }
    allowed.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leads_to(path: &str) -> Option<(&'static str, String)> {
        match find(&Method::GET, path) {
            Found::Route(route, segment) => Some((route.path, path[segment].to_owned())),
            Found::OtherMethod(_) | Found::Nothing => None,
        }
    }

    #[test]
    fn paths() {
        assert_eq!(leads_to("/"), Some(("/", String::new())));
        assert_eq!(leads_to("/api/v1/sessions"), Some(("/api/v1/sessions", String::new())));
        assert_eq!(leads_to("/api/v1/sessions/x%2Fy"), Some(("/api/v1/sessions/{id}", "x%2Fy".into())));
        assert_eq!(leads_to("/api/v1/sessions/x/wait"), Some(("/api/v1/sessions/{id}/wait", "x".into())));
        for nothing in [
            "",
            "//",
            "/api",
            "/api/v1/sessions/",
            "/api/v1/sessions//wait",
            "/api/v1/sessions/x/",
            "/API/v1/sessions",
            "/api/v1/%73essions",
            "/api/v1/../v1/sessions",
            "/healthz/",
            "/api/v1/sessions/x/y/wait",
            "/metrics%00",
        ] {
            assert_eq!(leads_to(nothing), None, "{nothing}");
        }
        assert!(matches!(find(&Method::POST, "/metrics"), Found::OtherMethod(_)));
        assert!(matches!(find(&Method::HEAD, "/metrics"), Found::Route(..)));
        assert_eq!(allowed("/metrics"), "GET, HEAD");
    }

    #[test]
    fn no_path_leads_to_two_rows() {
        for (i, a) in ROUTES.iter().enumerate() {
            assert!(a.path.matches('{').count() <= 1, "{}", a.path);
            for b in &ROUTES[i + 1..] {
                let same = a.matches(&b.path.replace(['{', '}'], "")).is_some()
                    || b.matches(&a.path.replace(['{', '}'], "")).is_some();
                assert!(!(same && a.method == b.method), "{} and {}", a.path, b.path);
            }
        }
    }
}
