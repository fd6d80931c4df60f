//! What `serve` is told: where to listen, who may come in, what to ask about health.

use std::{fmt, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use api::health::SourceHealth;
use projections::StatusRules;
use prometheus_client::registry::Registry;

use crate::{
    access::Tokens,
    clients::ClientLimits,
    control::{Control, NoControl},
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

/// Takes the secrets out of every text of an answer.
pub type Redact = Arc<dyn Fn(&mut serde_json::Value) + Send + Sync>;

/// Where to listen and who may come in.
#[derive(Clone)]
pub struct Config {
    /// TCP address; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Whether an address outside loopback is allowed.
    pub exposure: Exposure,
    /// Path of the Unix socket, in a directory of ours with mode 0700.
    pub socket: Option<PathBuf>,
    /// The tokens.
    pub tokens: Tokens,
    /// Asked before a token with `control` or `admin` counts on the Unix socket: false for a
    /// descendant of an agent. `None` admits every process of our user.
    pub control_peer: Option<PeerCheck>,
    /// The same for the TCP port: asked with the addresses of the client and of the server, for
    /// routes of these scopes only, because looking is slow. `None` admits whoever has the token.
    pub control_tcp: Option<TcpCheck>,
    /// Asked once for each TCP connection from this machine: each user has connections and wrong tokens
    /// of its own. `None` takes all of them for our own user's.
    pub tcp_user: Option<TcpUser>,
    /// Does what the server cannot do itself.
    pub control: Arc<dyn Control>,
    /// The protocol hosts of runs speak, as their `Upgrade` header names it.
    pub host_protocol: &'static str,
    /// The limits of the status rules, for folding a log again.
    pub rules: StatusRules,
    /// Redacts answers that are made from what is stored as it was, and are neither events nor
    /// approvals nor screens. `None` shows them as they are.
    pub redact: Option<Redact>,
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
            socket: None,
            tokens,
            control_peer: None,
            control_tcp: None,
            tcp_user: None,
            control: Arc::new(NoControl),
            host_protocol: "capture-host/1",
            rules: StatusRules::default(),
            redact: None,
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
    /// Connections at once, by client.
    pub clients: ClientLimits,
    /// Request line and headers, bytes.
    pub header_bytes: usize,
    /// A JSON body, bytes.
    pub body_bytes: usize,
    /// A body of telemetry, inflated, bytes.
    pub telemetry_bytes: usize,
    /// Bodies of telemetry in memory at once; further ones are told 429.
    pub telemetry_at_once: usize,
    /// Storing what a body of telemetry tells; after that its sender is told to come again.
    pub telemetry_wait: Duration,
    /// A WebSocket message from a client, bytes.
    pub message_bytes: usize,
    /// Reading headers, and reading a body.
    pub read: Duration,
    /// How long a client may read nothing of what was sent before it is cut off.
    pub write: Duration,
    /// Between signs of life on a quiet stream.
    pub keepalive: Duration,
    /// For requests still running at shutdown.
    pub shutdown: Duration,
    /// Frames waiting for one stream.
    pub queue_frames: usize,
    /// Bytes waiting for one stream.
    pub queue_bytes: usize,
    /// Events a resumed stream reads from the log before it is given a snapshot instead.
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
            shutdown: Duration::from_secs(3),
            queue_frames: 4096,
            queue_bytes: 2 << 20,
            resume_events: 10_000,
        }
    }
}

/// What capture tells about itself.
pub struct Health {
    /// Why nothing can be recorded, in one line without names of files; `None` while all is well. Answers from
    /// memory. Called for each request.
    pub trouble: Arc<dyn Fn() -> Option<String> + Send + Sync>,
    /// The sources and how they do; may look at a few files. Called for each request.
    pub sources: Arc<dyn Fn() -> Vec<SourceHealth> + Send + Sync>,
    /// Metrics shown beside the server's own; their collectors answer from memory.
    pub metrics: Registry,
}

impl Default for Health {
    fn default() -> Self {
        Self { trouble: Arc::new(|| None), sources: Arc::new(Vec::new), metrics: Registry::default() }
    }
}
