//! The server's configuration: where to listen, which tokens to accept, where to ask about health.

use std::{convert::Infallible, fmt, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use api::health::SourceHealth;
use bytes::Bytes;
use devices::Devices;
use events::Timestamp;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use live_view::{Control, NoControl};
use projections::StatusRules;
use prometheus_client::registry::Registry;

use crate::{
    access::Tokens,
    clients::ClientLimits,
    peer::{PeerCheck, TcpCheck, TcpUser},
};

/// Who can reach the TCP port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Exposure {
    /// This machine only; any other address is refused at start.
    #[default]
    Loopback,
    /// Whoever reaches the address: the user asked for it explicitly.
    Network,
}

/// Tells the time.
pub type ServerClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Takes the secrets out of every text of an answer.
pub type Redact = Arc<dyn Fn(&mut serde_json::Value) + Send + Sync>;

/// The body of an answer of the Model Context Protocol.
pub type McpBody = BoxBody<Bytes, Infallible>;

/// Says why a caller may not use the scope `control`; `None` if it may.
pub type ControlRefusal = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// Answers a message of the Model Context Protocol. The request has no `Authorization` any more.
pub type McpAnswer = Arc<dyn Fn(Request<Bytes>, ControlRefusal) -> BoxFuture<'static, Response<McpBody>> + Send + Sync>;

/// Where to listen and who may come in.
#[derive(Clone)]
pub struct Config {
    /// TCP address; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Whether an address outside loopback is allowed.
    pub exposure: Exposure,
    /// Names under which the TCP port may be asked besides its address, each with a port, or for the one it has and the
    /// one that browsers leave out.
    pub allowed_hosts: Vec<String>,
    /// Path of the Unix socket, in a directory of ours with mode 0700.
    pub socket: Option<PathBuf>,
    /// The tokens.
    pub tokens: Tokens,
    /// The browsers that are paired; `None` pairs none.
    pub devices: Option<Devices>,
    /// Tells the time, where a request names none.
    pub clock: ServerClock,
    /// Asked before a token with `control` or `admin` counts on the Unix socket: false for a
    /// descendant of an agent. `None` admits every process of our user.
    pub control_peer: Option<PeerCheck>,
    /// The same for the TCP port, tokens and cookies: asked with the addresses of the client and of the server, for
    /// routes of these scopes only, because looking is slow. `None` admits whoever has the token.
    pub control_tcp: Option<TcpCheck>,
    /// Asked once for each TCP connection from this machine: each user has connections and wrong tokens
    /// of its own. `None` takes all of them for our own user's.
    pub tcp_user: Option<TcpUser>,
    /// Does what the server cannot do itself.
    pub control: Arc<dyn Control>,
    /// Answers the Model Context Protocol; `None` refuses it as unavailable.
    pub mcp: Option<McpAnswer>,
    /// The protocol hosts of runs speak, as their `Upgrade` header names it.
    pub host_protocol: &'static str,
    /// The limits of the status rules, for folding a log again.
    pub rules: StatusRules,
    /// Redacts answers that are made from what is stored as it was, and are neither events nor
    /// approvals nor screens. `None` shows them as they are.
    pub redact: Option<Redact>,
    /// The user's prices of models, which may be missing.
    pub prices_file: Option<PathBuf>,
    /// How much of everything.
    pub limits: Limits,
}

impl Config {
    /// The settings of a loopback server on a free port, without a Unix socket.
    #[must_use]
    pub fn new(tokens: Tokens) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            exposure: Exposure::Loopback,
            allowed_hosts: Vec::new(),
            socket: None,
            tokens,
            devices: None,
            clock: Arc::new(|| Timestamp::MIN),
            control_peer: None,
            control_tcp: None,
            tcp_user: None,
            control: Arc::new(NoControl),
            mcp: None,
            host_protocol: "capture-host/1",
            rules: StatusRules::default(),
            redact: None,
            prices_file: None,
            limits: Limits::default(),
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("listen", &self.listen)
            .field("exposure", &self.exposure)
            .field("socket", &self.socket)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Bounds on what one client, and all of them together, can take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum number of connections, by client.
    pub clients: ClientLimits,
    /// Maximum size of request line and headers, bytes.
    pub header_bytes: usize,
    /// Maximum size of a JSON body, bytes.
    pub body_bytes: usize,
    /// Maximum size of a telemetry body when decompressed, bytes.
    pub telemetry_bytes: usize,
    /// Maximum number of telemetry bodies in memory; further ones get 429.
    pub telemetry_at_once: usize,
    /// Time limit for storing the events of a telemetry body; after that its sender is asked to retry.
    pub telemetry_wait: Duration,
    /// Maximum size of a client's WebSocket message, bytes.
    pub message_bytes: usize,
    /// Time limit for reading headers, and for reading a body.
    pub read: Duration,
    /// Time after which a client that reads nothing is disconnected.
    pub write: Duration,
    /// Interval between keepalive messages on a quiet stream.
    pub keepalive: Duration,
    /// Time limit for requests that are still running at shutdown, and for clients that do not read.
    pub shutdown: Duration,
    /// Maximum number of frames queued for one stream.
    pub queue_frames: usize,
    /// Maximum size of the frames queued for one stream, bytes.
    pub queue_bytes: usize,
    /// Maximum number of events that a resumed stream reads from the log; if there are more, it gets a snapshot.
    pub resume_events: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            clients: ClientLimits::default(),
            header_bytes: 16 << 10,
            body_bytes: 64 << 10,
            telemetry_bytes: 20 << 20,
            telemetry_at_once: 4,
            telemetry_wait: Duration::from_secs(5),
            message_bytes: 64 << 10,
            read: Duration::from_secs(10),
            write: Duration::from_secs(20),
            keepalive: Duration::from_secs(15),
            shutdown: Duration::from_secs(1),
            queue_frames: 4096,
            queue_bytes: 2 << 20,
            resume_events: 10_000,
        }
    }
}

/// The server's reports about capture itself: readiness, sources, metrics.
pub struct Health {
    /// Why nothing can be recorded, in one line without names of files; `None` while all is well. Answers from
    /// memory. Called for each request.
    pub trouble: Arc<dyn Fn() -> Option<String> + Send + Sync>,
    /// The sources and their health; may read a few files. Called for each request.
    pub sources: Arc<dyn Fn() -> Vec<SourceHealth> + Send + Sync>,
    /// Metrics shown beside the server's own; their collectors answer from memory.
    pub metrics: Registry,
}

impl Default for Health {
    fn default() -> Self {
        Self { trouble: Arc::new(|| None), sources: Arc::new(Vec::new), metrics: Registry::default() }
    }
}
