//! The HTTP, SSE and WebSocket interface.
//!
//! Owns the wire: routes, scopes, frames, what a browser or a stranger may not do. It reads and
//! never writes: the ingest side puts sessions on the [`Board`] and publishes [`Frame`]s there,
//! handlers read the board and the [`store::Reader`], and what neither can answer is sent to
//! capture as a [`Command`]. Nobody's slowness here reaches the ingest side.
//!
//! Every way in is one row of the table in `routes`; `service` is what a request goes through,
//! `gate` decides who may, `clients` how many at once, `tail` is the one way to follow the log, over SSE (`sse`) and
//! WebSocket (`ws`).

mod access;
mod api;
mod app;
mod body;
mod call;
mod clients;
mod command;
mod config;
mod dialect;
mod error;
mod frame;
mod gate;
mod json;
mod listen;
mod locks;
mod metrics;
mod older;
mod openapi;
mod routes;
mod service;
mod sse;
mod tail;
mod unix;
mod woken;
mod ws;

pub mod board;

pub use access::{Token, TokenError, Tokens};
pub use api::moment::Moment;
pub use board::{Board, SessionEntry};
pub use clients::ClientLimits;
pub use command::{
    ApprovalAsk, Command, Decision, DecisionScope, FindingAsk, HostConnection, HostStream, Input, PromptAsk, Refusal,
    RunAsk, RunTarget, Telemetry, TelemetryKind, TelemetryRefusal, Verdict, Who,
};
pub use config::{Config, Exposure, Health, Limits, Peer, PeerCheck, Redact, SourceHealth, TcpCheck, TcpUser};
pub use frame::Frame;
pub use json::Json;
pub use listen::{ServeError, Serving, serve};
pub use openapi::document as openapi;
pub use unix::SocketError;

#[cfg(test)]
mod tests;
