//! The HTTP, SSE and WebSocket interface.
//!
//! Answers the routes of [`api`], on axum: frames, and what a browser or a stranger may not do. It reads and
//! never writes: the ingest side puts sessions on the [`LiveView`] and publishes [`Frame`]s there, handlers
//! read the live view and the [`store::Reader`], and what neither can answer they ask of [`Control`]. No client's
//! slowness reaches the ingest side.
//!
//! `router` builds the router from the table of routes and holds what every request passes, `gate` decides
//! who is let in, `clients` how many at once, `lookup` says which session a request means, `routes` has the
//! handlers, `tail` is the one way to follow the log, over SSE (`sse`) and WebSocket (`ws`).

mod access;
mod answer;
mod app;
mod call;
mod clients;
mod compat;
mod config;
mod control;
mod entry;
mod error;
mod frame;
mod gate;
mod header_timer;
mod json;
mod listen;
mod locks;
mod lookup;
mod page;
mod peer;
mod router;
mod routes;
mod snapshot;
mod sse;
mod stream_format;
mod tail;
mod unix;
mod ws;

pub mod live_view;
pub mod metrics;

pub use access::{Token, TokenError, Tokens};
pub use clients::ClientLimits;
pub use config::{Config, Exposure, Health, Limits, Redact};
pub use control::{
    ApprovalFilter, Control, Decision, DecisionWait, HostConnection, HostStream, NoControl, Refusal, Reply, RunTarget,
    Telemetry, TelemetryKind, TelemetryRefusal, Who,
};
pub use entry::SessionEntry;
pub use frame::Frame;
pub use json::Json;
pub use listen::{ServeError, Serving, serve};
pub use live_view::{LiveView, OpenItem};
pub use peer::{Peer, PeerCheck, TcpCheck, TcpUser};
pub use unix::SocketError;

#[cfg(test)]
mod tests;
