//! The HTTP, SSE and WebSocket interface.
//!
//! Answers the routes of [`api`], on axum: frames, and what a browser or a stranger may not do. It reads and
//! never writes: the ingest side puts sessions on the [`Board`] and publishes [`Frame`]s there, handlers
//! read the board and the [`store::Reader`], and what neither can answer they ask of [`Control`]. No client's
//! slowness reaches the ingest side.
//!
//! `router` builds the router from the table of routes and holds what every request passes, `gate` decides
//! who is let in, `clients` how many at once, `routes` has the handlers, `tail` is the one way to follow the
//! log, over SSE (`sse`) and WebSocket (`ws`).

mod access;
mod answer;
mod app;
mod call;
mod clients;
mod config;
mod control;
mod dialect;
mod error;
mod frame;
mod gate;
mod json;
mod listen;
mod locks;
mod older;
mod router;
mod routes;
mod sse;
mod tail;
mod unix;
mod ws;

pub mod board;
pub mod metrics;

pub use access::{Token, TokenError, Tokens};
pub use board::{Board, SessionEntry};
pub use clients::ClientLimits;
pub use config::{Config, Exposure, Health, Limits, Peer, PeerCheck, Redact, TcpCheck, TcpUser};
pub use control::{
    ApprovalFilter, Control, Decision, DecisionWait, HostConnection, HostStream, NoControl, Refusal, Reply, RunTarget,
    Telemetry, TelemetryKind, TelemetryRefusal, Who,
};
pub use frame::Frame;
pub use json::Json;
pub use listen::{ServeError, Serving, serve};
pub use unix::SocketError;

#[cfg(test)]
mod tests;
