//! G12 and G13, each next to its limit: the same machine, run and load.
//!
//! G12: `GET /api/v1/sessions/{id}` against a bare axum handler that returns the same bytes. G13: one event to 1,000
//! WebSocket subscribers against a minimal axum broadcast.
//!
//! Each server has a runtime with one worker on one core; the load comes from another core. The two alternate, and
//! figures are medians. Requests are counted per second of the server's own CPU time, so that a load generator that
//! cannot keep up does not flatter the slower server.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a measuring program, not a service")]

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use axum::{
    Router,
    extract::ws::{Message, Utf8Bytes, WebSocketUpgrade},
    http::header,
    routing::{any, get},
};
use bytes::Bytes;
use events::{Kind, Provider, SessionId, State, Timestamp};
use live_view::{Frame, Json, LiveView, SessionEntry};
use rustix::thread::{CpuSet, sched_setaffinity};
use server::{Config, Health, Token, Tokens, serve};
use store::Reader;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    runtime::Runtime,
    sync::broadcast,
};
use tokio_util::sync::CancellationToken;

/// Both servers use the program's allocator.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const CONNECTIONS: usize = 32;
const ROUND: Duration = Duration::from_millis(800);
const ROUNDS: usize = 9;
const SUBSCRIBERS: usize = 1000;
const EVENTS: usize = 60;

fn main() {
    let files = rustix::process::Rlimit { current: Some(16_384), maximum: Some(16_384) };
    let _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, files);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (server_core, load_core) = (0, cores - 1);
    let ours = Ours::start(server_core);
    let bare = Bare::start(server_core, &ours);
    println!("{cores} cores; servers on core {server_core} with one worker each, load on core {load_core}");
    // `cargo bench -p server -- g13` runs only that benchmark.
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| arg.starts_with('g')).collect();
    let wanted = |name: &str| asked.is_empty() || asked.iter().any(|arg| arg == name);
    if wanted("g12") {
        status(&ours, &bare, load_core);
    }
    if wanted("g13") {
        fan_out(&ours, &bare, load_core);
    }
    ours.cancel.cancel();
}

/// The server under test.
struct Ours {
    runtime: Runtime,
    address: SocketAddr,
    live_view: LiveView,
    session: Bytes,
    cancel: CancellationToken,
}

/// The limit: plain axum.
struct Bare {
    runtime: Runtime,
    address: SocketAddr,
    events: broadcast::Sender<Utf8Bytes>,
}

impl Ours {
    fn start(core: usize) -> Self {
        let live_view = LiveView::new("epoch");
        let json = session();
        for n in 0..2000 {
            live_view.put(entry(n, &json));
        }
        let runtime = runtime(core);
        let cancel = CancellationToken::new();
        let reader = Reader::new("/nonexistent".into());
        let config = Config::new(tokens());
        let serving =
            runtime.block_on(serve(config, live_view.clone(), reader, Health::default(), cancel.clone())).unwrap();
        Self { address: serving.address(), runtime, live_view, session: json.bytes(), cancel }
    }
}

impl Bare {
    fn start(core: usize, ours: &Ours) -> Self {
        let runtime = runtime(core);
        let (events, _) = broadcast::channel::<Utf8Bytes>(1024);
        let (session, sender) = (ours.session.clone(), events.clone());
        let app = Router::new()
            .route(&path(), get(move || async move { ([(header::CONTENT_TYPE, "application/json")], session.clone()) }))
            .route(
                "/api/v1/ws",
                any(move |upgrade: WebSocketUpgrade| async move {
                    let mut events = sender.subscribe();
                    upgrade.on_upgrade(|mut socket| async move {
                        while let Ok(event) = events.recv().await {
                            if socket.send(Message::Text(event)).await.is_err() {
                                break;
                            }
                        }
                    })
                }),
            );
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(async move {
            let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
                let _ = stream.set_nodelay(true);
            });
            axum::serve(listener, app).await
        });
        Self { runtime, address, events }
    }
}

/// G12.
fn status(ours: &Ours, bare: &Bare, core: usize) {
    let load = runtime(core);
    // The load never sleeps: waking it would be work of the server, and more work for the server that lets it sleep
    // longer.
    let awake = load.spawn(async {
        loop {
            tokio::task::yield_now().await;
        }
    });
    let mut figures = [Vec::new(), Vec::new()];
    let mut wall = [Vec::new(), Vec::new()];
    for round in 0..=ROUNDS {
        for (i, (address, runtime)) in
            [(ours.address, &ours.runtime), (bare.address, &bare.runtime)].into_iter().enumerate()
        {
            let before = cpu_time(runtime);
            let start = Instant::now();
            let requests = load.block_on(requests(address));
            let (elapsed, spent) = (start.elapsed(), cpu_time(runtime) - before);
            if round > 0 {
                figures[i].push(requests as f64 / spent.as_secs_f64());
                wall[i].push(requests as f64 / elapsed.as_secs_f64());
            }
        }
    }
    awake.abort();
    let ratios: Vec<f64> = figures[0].iter().zip(&figures[1]).map(|(a, b)| a / b).collect();
    let [ours, limit] = figures.map(median);
    let [our_wall, limit_wall] = wall.map(median);
    println!(
        "G12 status GET, per core-second: {ours:.0} req, axum limit {limit:.0}; ratio {:.3} (must 0.8)",
        median(ratios)
    );
    println!("    on the wall clock: {our_wall:.0} req/s, axum limit {limit_wall:.0} req/s");
}

/// Sends requests over persistent connections for one round; returns the number of responses.
async fn requests(address: SocketAddr) -> usize {
    let deadline = Instant::now() + ROUND;
    let tasks: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            tokio::spawn(async move {
                let request = request(address, &path(), "");
                let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
                stream.set_nodelay(true).unwrap();
                let mut buffer = vec![0; 16 << 10];
                let (mut answered, mut length) = (0, 0);
                while Instant::now() < deadline {
                    stream.write_all(request.as_bytes()).await.unwrap();
                    let mut have = 0;
                    while length == 0 || have < length {
                        have += stream.read(&mut buffer[have..]).await.unwrap();
                        if length == 0 {
                            length = whole(&buffer[..have]);
                        }
                    }
                    answered += 1;
                }
                answered
            })
        })
        .collect();
    let mut sum = 0;
    for task in tasks {
        sum += task.await.unwrap();
    }
    sum
}

/// The length of a response, once its head has been received.
fn whole(answer: &[u8]) -> usize {
    let text = String::from_utf8_lossy(answer);
    let Some(end) = text.find("\r\n\r\n") else {
        return 0;
    };
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    let length = text.lines().find_map(|l| l.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned));
    end + 4 + length.unwrap().parse::<usize>().unwrap()
}

/// G13.
fn fan_out(ours: &Ours, bare: &Bare, core: usize) {
    let id = SessionId::from_bits(1);
    let json = event();
    let load = runtime(core);
    let to_ours = Audience::gather(&load, ours.address, 1, sent(1, &json).len());
    let to_bare = Audience::gather(&load, bare.address, 0, sent(1, &json).len());
    let mut figures = [Vec::new(), Vec::new()];
    let mut spent = [Vec::new(), Vec::new()];
    for round in 0..EVENTS + 5 {
        // Positions have the same number of digits, so that frames have the same length.
        let position = 1_000 + round as u64;
        let frame = Frame::event(Some(position), id, Kind::AssistantMessage, json.clone());
        let before = [cpu_time(&ours.runtime), cpu_time(&bare.runtime)];
        let start = Instant::now();
        ours.live_view.publish(frame);
        let our_time = to_ours.last() - start;
        let text = Utf8Bytes::from(sent(position, &json));
        let start = Instant::now();
        bare.events.send(text).unwrap();
        let bare_time = to_bare.last() - start;
        if round >= 5 {
            figures[0].push(our_time.as_secs_f64() * 1000.0);
            figures[1].push(bare_time.as_secs_f64() * 1000.0);
            spent[0].push((cpu_time(&ours.runtime) - before[0]).as_secs_f64() * 1000.0);
            spent[1].push((cpu_time(&bare.runtime) - before[1]).as_secs_f64() * 1000.0);
        }
    }
    let ratios: Vec<f64> = figures[0].iter().zip(&figures[1]).map(|(a, b)| a / b).collect();
    let [ours, limit] = figures.map(median);
    println!(
        "G13 one event to {SUBSCRIBERS} WebSockets, last after {ours:.2} ms, axum limit {limit:.2} ms; ratio {:.3} (must 1.3, stretch 1.0)",
        median(ratios)
    );
    let [ours, limit] = spent.map(median);
    println!("    CPU time of the server for it: {ours:.2} ms, axum limit {limit:.2} ms; ratio {:.3}", ours / limit);
}

/// The WebSocket message of the event.
fn sent(position: u64, json: &Json) -> String {
    format!(
        "{{\"type\":\"event\",\"position\":{},\"epoch\":\"epoch\",\"data\":{}}}",
        position.max(1_000),
        json.as_str()
    )
}

/// Subscribers that count the messages they receive.
struct Audience {
    done: mpsc::Receiver<Instant>,
}

impl Audience {
    /// Connects the subscribers. The first `snapshots` messages of each connection are read but not counted.
    fn gather(load: &Runtime, address: SocketAddr, snapshots: usize, length: usize) -> Self {
        let (tell, done) = mpsc::channel();
        let arrived = Arc::new(AtomicUsize::new(0));
        let (ready, is_ready) = mpsc::channel();
        for _ in 0..SUBSCRIBERS {
            let mut stream = TcpStream::connect(address).unwrap();
            let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
            stream
                .write_all(request(address, "/api/v1/ws?session=01", upgrade).replace("?session=01", "").as_bytes())
                .unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") {
                stream.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
            stream.set_nonblocking(true).unwrap();
            let (tell, arrived, ready) = (tell.clone(), Arc::clone(&arrived), ready.clone());
            load.spawn(async move {
                let mut stream = tokio::net::TcpStream::from_std(stream).unwrap();
                let mut buffer = Vec::new();
                for _ in 0..snapshots {
                    message(&mut stream, &mut buffer, None).await;
                }
                ready.send(()).unwrap();
                loop {
                    message(&mut stream, &mut buffer, Some(length)).await;
                    if (arrived.fetch_add(1, Ordering::AcqRel) + 1) % SUBSCRIBERS == 0 {
                        let _ = tell.send(Instant::now());
                    }
                }
            });
        }
        for _ in 0..SUBSCRIBERS {
            is_ready.recv_timeout(Duration::from_secs(60)).unwrap();
        }
        Self { done }
    }

    fn last(&self) -> Instant {
        self.done.recv_timeout(Duration::from_secs(30)).unwrap()
    }
}

/// Reads one text message and skips pings.
async fn message(stream: &mut tokio::net::TcpStream, buffer: &mut Vec<u8>, expected: Option<usize>) {
    loop {
        let mut head = [0; 2];
        stream.read_exact(&mut head).await.unwrap();
        let length = match head[1] {
            126 => usize::from(stream.read_u16().await.unwrap()),
            127 => usize::try_from(stream.read_u64().await.unwrap()).unwrap(),
            short => usize::from(short),
        };
        buffer.resize(length, 0);
        stream.read_exact(buffer).await.unwrap();
        if head[0] & 0x0f == 1 {
            assert!(expected.is_none_or(|expected| expected == length));
            return;
        }
        stream.flush().await.unwrap();
    }
}

fn request(address: SocketAddr, path: &str, more: &str) -> String {
    let token = "r".repeat(43);
    format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nAccept: */*\r\n{more}\r\n")
}

fn path() -> String {
    format!("/api/v1/sessions/{}", SessionId::from_bits(1))
}

fn runtime(core: usize) -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .on_thread_start(move || {
            let mut cores = CpuSet::new();
            cores.set(core);
            let _ = sched_setaffinity(None, &cores);
        })
        .enable_all()
        .build()
        .unwrap()
}

/// The CPU time of a runtime's only worker thread.
fn cpu_time(runtime: &Runtime) -> Duration {
    runtime
        .block_on(runtime.spawn(async {
            let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
        }))
        .unwrap()
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn tokens() -> Tokens {
    let of = |letter: &str| Token::new(&letter.repeat(43)).unwrap();
    Tokens { owner: of("o"), ingest: of("i"), read: of("r"), control: of("c"), admin: of("a") }
}

fn entry(n: u128, json: &Json) -> SessionEntry {
    SessionEntry {
        id: SessionId::from_bits(n),
        provider: Provider::Claude,
        provider_session_id: Some(format!("agent-{n}").into()),
        state: State::Running,
        run_id: None,
        parent: None,
        forked_from: None,
        merged_into: None,
        cwd: Some("/home/dev/proj".into()),
        started_at: Timestamp::from_millisecond(0),
        last_event_at: Timestamp::from_millisecond(n as i64),
        active: n < 20,
        json: Some(json.clone()),
    }
}

/// The JSON of a session of typical size.
fn session() -> Json {
    let text = "waiting for approval to run touch /tmp/x ".repeat(6);
    Json::of(&serde_json::json!({
        "id": SessionId::from_bits(1), "provider": "claude", "provider_session_id": "bff73f3f-0000-0000-0000-000000000000",
        "title": "Run the touch command", "cwd": "/home/dev/proj", "git_branch": "main", "model": "claude-opus-5-5",
        "status": { "state": "waiting_approval", "reason": "tool", "activity": "touch /tmp/x", "evidence": [
            { "source": "registry", "claim": "waiting: permission prompt", "at": "2026-11-20T04:37:12.189Z", "strength": "high" },
            { "source": "hook", "claim": "PermissionRequest Bash", "at": "2026-11-20T04:37:12.189Z", "strength": "high" } ] },
        "summary": { "current": text, "recent": text, "last_prompt": text },
    }))
    .unwrap()
}

/// The JSON of an event of typical size.
fn event() -> Json {
    Json::of(&serde_json::json!({
        "id": SessionId::from_bits(7), "kind": "assistant.message", "provider": "claude",
        "text": "I will run the command and look at what it says. ".repeat(8),
    }))
    .unwrap()
}
