//! The server's configuration: where to listen, which tokens to accept, how to query health.

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
    /// Only this machine; any other address is refused at start.
    #[default]
    Loopback,
    /// Every machine that can reach the address, because the user explicitly asked for that.
    Network,
}

/// Returns the current time.
pub type ServerClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Removes secrets from every text of an answer.
pub type Redact = Arc<dyn Fn(&mut serde_json::Value) + Send + Sync>;

/// The body of a Model Context Protocol response.
pub type McpBody = BoxBody<Bytes, Infallible>;

/// Returns why a caller may not use the scope `control`; `None` if it may.
pub type ControlRefusal = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// Answers a message of the Model Context Protocol. The `Authorization` header has been removed from the request.
pub type McpAnswer = Arc<dyn Fn(Request<Bytes>, ControlRefusal) -> BoxFuture<'static, Response<McpBody>> + Send + Sync>;

/// The listening addresses and access rules of a server.
#[derive(Clone)]
pub struct Config {
    /// TCP address; port 0 selects a free port.
    pub listen: SocketAddr,
    /// Whether an address outside loopback is allowed.
    pub exposure: Exposure,
    /// Names accepted in the Host header besides the address, each with or without a port. A name without a port is
    /// accepted with the server's port, and alone, because browsers omit default ports.
    pub allowed_hosts: Vec<String>,
    /// Path of the Unix socket, in a directory of ours with mode 0700.
    pub socket: Option<PathBuf>,
    /// The tokens.
    pub tokens: Tokens,
    /// The paired browsers; `None` disables pairing.
    pub devices: Option<Devices>,
    /// Returns the current time, for requests that do not name one.
    pub clock: ServerClock,
    /// Checks the peer before a token with `control` or `admin` counts on the Unix socket; refuses descendants of an
    /// agent. `None` accepts every process of our user.
    pub control_peer: Option<PeerCheck>,
    /// The same check for the TCP port, for tokens and cookies. It is called with the addresses of the client and the
    /// server, and only for routes of these scopes, because finding the process is slow. `None` accepts every client
    /// with the token.
    pub control_tcp: Option<TcpCheck>,
    /// Called once for each TCP connection from this machine, because each user has a separate count of connections and
    /// wrong tokens. `None` attributes all connections to our own user.
    pub tcp_user: Option<TcpUser>,
    /// Carries out requests that the server cannot answer itself.
    pub control: Arc<dyn Control>,
    /// Answers the Model Context Protocol; with `None`, it is refused as unavailable.
    pub mcp: Option<McpAnswer>,
    /// The protocol that hosts of runs use, as named in their `Upgrade` header.
    pub host_protocol: &'static str,
    /// The limits of the status rules, used when a log is folded again.
    pub rules: StatusRules,
    /// Redacts answers made from unredacted stored data, other than events, approvals and screens. `None` disables
    /// this.
    pub redact: Option<Redact>,
    /// The file of the user's model prices, which may not exist.
    pub prices_file: Option<PathBuf>,
    /// The limits.
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

/// Limits on what one client, and all clients together, can use.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum number of connections of each client.
    pub clients: ClientLimits,
    /// Maximum size of request line and headers, bytes.
    pub header_bytes: usize,
    /// Maximum size of a JSON body, bytes.
    pub body_bytes: usize,
    /// Maximum size of a telemetry body when decompressed, bytes.
    pub telemetry_bytes: usize,
    /// Maximum number of telemetry bodies in memory; further ones are answered with 429.
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

/// The program's reports about itself: readiness, sources, metrics.
pub struct Health {
    /// Why nothing can be recorded, in one line without file names; `None` if recording works. Called for each request,
    /// so it must answer from memory.
    pub trouble: Arc<dyn Fn() -> Option<String> + Send + Sync>,
    /// The sources and their health; may read a few files. Called for each request.
    pub sources: Arc<dyn Fn() -> Vec<SourceHealth> + Send + Sync>,
    /// Metrics shown in addition to the server's own; their collectors answer from memory.
    pub metrics: Registry,
}

impl Default for Health {
    fn default() -> Self {
        Self { trouble: Arc::new(|| None), sources: Arc::new(Vec::new), metrics: Registry::default() }
    }
}
