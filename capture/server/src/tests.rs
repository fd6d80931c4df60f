//! Tests of the interface from a client's view: most call the service directly, those about connections use a real
//! port.

mod agentapi;
mod clients;
mod commands;
mod compat;
mod ids;
mod limits;
mod mcp;
mod reading;
mod runs;
mod security;
mod signing_in;
mod site;
mod sockets;
mod streaming;
mod telemetry;
mod terminal;
mod waiting;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use events::{
    Confidence, Event, EventId, Origin, Payload, PromptOrigin, Provider, Reason, SessionId, Source, State,
    StatusChanged, Timestamp, UserPrompt,
};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use live_view::{Frame, Json, LiveView, SessionEntry};
use projections::{Session, SessionHealth, SessionStatus, Summary, Usage};
use serde_json::Value;
use store::{SessionRow, Writer};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_util::sync::CancellationToken;
use tower::Service as _;

use crate::{
    Config, Health, Limits, Serving, Token, Tokens,
    app::Parts,
    connection::{Connection, Transport},
    peer::Client,
    router::router,
    serve,
};

const HOST: &str = "127.0.0.1:7777";

fn token(scope: &str) -> String {
    format!("{scope:-<43}")
}

fn tokens() -> Tokens {
    let of = |scope| Token::new(&token(scope)).unwrap();
    Tokens { owner: of("owner"), ingest: of("ingest"), read: of("read"), control: of("control"), admin: of("admin") }
}

fn id(n: u128) -> SessionId {
    SessionId::from_bits(n)
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(1_795_149_432_000 + ms)
}

fn session(n: u128, state: State) -> Session {
    Session {
        id: id(n),
        provider: Provider::Claude,
        provider_session_id: Some(format!("agent-{n}")),
        run_id: None,
        parent_session_id: None,
        merged_into: None,
        forked_from: None,
        title: Some(format!("Session {n}")),
        cwd: Some("/home/dev/proj".into()),
        began_in: None,
        git_branch: Some("main".into()),
        labels: std::collections::BTreeMap::new(),
        marks: None,
        model: None,
        cli_version: None,
        permission_mode: None,
        headless: false,
        pid: None,
        started_at: at(0),
        last_event_at: at(n as i64),
        last_user_prompt_at: None,
        last_assistant_output_at: None,
        status: SessionStatus {
            state,
            reason: (state == State::WaitingApproval).then_some(Reason::Tool),
            since: at(0),
            confidence: Confidence::High,
            activity: None,
            evidence: vec![],
            disagreements: vec![],
        },
        pending_approvals: vec![],
        approval_wait_ms: 0,
        turn: None,
        turns: 1,
        usage: Usage { input_tokens: 10, ..Usage::default() },
        failures: std::collections::BTreeMap::new(),
        summary: Summary { current: Some("at work".into()), ..Summary::default() },
        transcripts: vec![],
        health: SessionHealth::Ok,
        last_sequence: 0,
    }
}

fn entry(n: u128, state: State) -> SessionEntry {
    SessionEntry::of(&session(n, state), state != State::Exited).unwrap()
}

fn event(n: u128, sequence: u64, position: u64, payload: impl Into<Payload>) -> Event {
    Event {
        position,
        id: EventId::from_bits(u128::from(position)),
        session_id: id(n),
        sequence,
        provider: Provider::Claude,
        provider_session_id: format!("agent-{n}").into(),
        source: Source::Transcript,
        created_at: at(position as i64),
        observed_at: at(position as i64 + 1),
        turn_id: None,
        parent_id: None,
        agent_id: None,
        confidence: Confidence::High,
        severity: None,
        text: Some(format!("text {position}")),
        text_ref: None,
        payload: payload.into(),
        origin: Origin::Derived,
        derived: false,
        history: false,
    }
}

fn prompt(n: u128, sequence: u64, position: u64) -> Event {
    event(n, sequence, position, UserPrompt { origin: PromptOrigin::Human, ..UserPrompt::default() })
}

fn changed(n: u128, sequence: u64, position: u64, from: State, to: State) -> Event {
    let change =
        StatusChanged { from: Some(from), to, reason: None, activity: None, evidence: vec!["registry: busy".into()] };
    event(n, sequence, position, change)
}

/// A store with a test's data, written as ingest would write it.
struct Log {
    writer: Writer,
    _directory: TempDir,
}

impl Log {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let writer = Writer::open(&directory.path().join("data")).unwrap();
        Self { writer, _directory: directory }
    }

    fn session(&mut self, session: &Session) -> SessionRow {
        let name = session.provider_session_id.as_deref().unwrap();
        self.writer.begin().unwrap();
        let row = self.writer.add_session(session.id, session.provider, name).unwrap();
        let view = serde_json::to_string(session).unwrap();
        self.writer.put_session(row, session.last_event_at, &view, "{}").unwrap();
        self.writer.commit().unwrap();
        row
    }

    fn append(&mut self, row: SessionRow, events: &[Event]) {
        self.writer.begin().unwrap();
        for event in events {
            self.writer.append(row, event, None).unwrap();
        }
        self.writer.commit().unwrap();
    }
}

fn publish(live_view: &LiveView, event: &Event) {
    live_view.publish_event(event);
}

fn announce(live_view: &LiveView, position: Option<u64>, entry: SessionEntry) {
    let frame = Frame::of_entry(position, &entry).unwrap();
    live_view.put(entry);
    live_view.publish(frame);
}

/// The service without a connection.
struct TestServer {
    router: axum::Router,
    connection: Arc<Connection>,
    live_view: LiveView,
    log: Log,
}

struct Answered {
    status: StatusCode,
    head: http::response::Parts,
    body: Bytes,
}

impl Answered {
    async fn of(response: Response<axum::body::Body>) -> Self {
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Self { status: head.status, head, body }
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Status and code of an error.
    fn error(&self) -> (u16, String) {
        (self.status.as_u16(), self.json()["error"]["code"].as_str().unwrap_or_default().to_owned())
    }
}

impl TestServer {
    fn new() -> Self {
        Self::with(Health::default(), |_| ())
    }

    fn with(health: Health, adjust: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::new(tokens());
        adjust(&mut config);
        let (live_view, log) = (LiveView::new("epoch-1"), Log::new());
        let address: SocketAddr = HOST.parse().unwrap();
        let app =
            Parts::new(live_view.clone(), log.writer.reader(), health, &config, address, CancellationToken::new());
        let connection = Connection { transport: Transport::Tcp(address, address, Client::Own), admission: None };
        Self { router: router(&app), connection: Arc::new(connection), live_view, log }
    }

    async fn send(&self, mut request: Request<Full<Bytes>>) -> Answered {
        request.extensions_mut().insert(self.connection.clone());
        let Ok(answer) = self.router.clone().call(request.map(axum::body::Body::new)).await;
        Answered::of(answer).await
    }

    async fn get(&self, path: &str) -> Answered {
        self.send(request(Method::GET, path).body(Full::default()).unwrap()).await
    }
}

/// A valid request with the owner's token.
fn request(method: Method, path: &str) -> http::request::Builder {
    Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, HOST)
        .header(header::AUTHORIZATION, format!("Bearer {}", token("owner")))
}

/// A server on a real port, stopped when dropped.
struct Live {
    serving: Serving,
    live_view: LiveView,
    log: Log,
    cancel: CancellationToken,
}

impl Drop for Live {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

impl Live {
    async fn new() -> Self {
        Self::with(|_| ()).await
    }

    async fn with(adjust: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::new(tokens());
        adjust(&mut config);
        let (live_view, log, cancel) = (LiveView::new("epoch-1"), Log::new(), CancellationToken::new());
        let serving =
            serve(config, live_view.clone(), log.writer.reader(), Health::default(), cancel.clone()).await.unwrap();
        Self { serving, live_view, log, cancel }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.serving.address()).await.unwrap()
    }

    /// Sends bytes and reads until the server closes.
    async fn exchange(&self, raw: &[u8]) -> String {
        let mut stream = self.connect().await;
        stream.write_all(raw).await.unwrap();
        rest(&mut stream).await
    }

    /// The head of a valid request to this server, without its last line.
    fn head(&self, line: &str) -> String {
        format!(
            "{line} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n",
            self.serving.address(),
            token("owner")
        )
    }

    async fn get(&self, path: &str) -> String {
        self.exchange(format!("{}\r\n", self.head(&format!("GET {path}"))).as_bytes()).await
    }

    /// Opens a stream of server-sent events.
    async fn events(&self, path: &str, headers: &str) -> Sse {
        let mut stream = self.connect().await;
        let head = format!("{}{headers}\r\n", self.head(&format!("GET {path}")));
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut sse = Sse { stream, text: String::new() };
        let head = sse.until("\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        sse
    }
}

async fn rest(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    let mut part = [0; 4096];
    // A reset after the response also counts as the end.
    while let Ok(n) = stream.read(&mut part).await {
        if n == 0 {
            break;
        }
        all.extend_from_slice(&part[..n]);
    }
    String::from_utf8_lossy(&all).into_owned()
}

/// A client of server-sent events. Chunk sizes are skipped as lines that are not fields.
struct Sse {
    stream: TcpStream,
    text: String,
}

#[derive(Debug, PartialEq)]
struct Told {
    event: String,
    id: Option<u64>,
    data: Value,
}

impl Sse {
    async fn until(&mut self, end: &str) -> String {
        loop {
            if let Some(i) = self.text.find(end) {
                let rest = self.text.split_off(i + end.len());
                return std::mem::replace(&mut self.text, rest);
            }
            let mut part = [0; 65536];
            let n = self.stream.read(&mut part).await.unwrap();
            assert!(n > 0, "the stream ended: {}", self.text);
            self.text.push_str(std::str::from_utf8(&part[..n]).unwrap());
        }
    }

    async fn next(&mut self) -> Told {
        loop {
            let block = self.until("\n\n").await;
            let field = |name: &str| {
                block.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
            };
            if let (Some(event), Some(data)) = (field("event:"), field("data:")) {
                let id = field("id:").map(|id| id.parse().unwrap());
                return Told { event, id, data: serde_json::from_str(&data).unwrap() };
            }
        }
    }
}

/// Small limits, so that tests reach them quickly.
fn tight() -> Limits {
    Limits { read: Duration::from_millis(50), ..Limits::default() }
}
