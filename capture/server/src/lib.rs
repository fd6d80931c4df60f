//! The HTTP, SSE and WebSocket interface.
//!
//! Serves the routes of [`api`] with axum, and enforces the restrictions on browsers and strangers. It only reads:
//! ingest puts sessions into the [`LiveView`](live_view::LiveView) and publishes frames there, handlers read the live
//! view and the [`store::Reader`], and send all other requests to [`Control`](live_view::Control). A slow client cannot
//! slow down ingest.
//!
//! `router` builds the router from the table of routes and defines the layers that every request passes, `gate` decides
//! which requests are let in, `clients` limits concurrent connections, `lookup` resolves which session a request names,
//! `handlers` answers the requests, and `tail` follows the log, over SSE (`sse`) and WebSocket (`ws`).

mod access;
mod address;
mod agentapi;
mod answer;
mod app;
mod assets;
mod call;
mod clients;
mod compat;
mod config;
mod connection;
mod conversation;
mod error;
mod gate;
mod handlers;
mod header_timer;
mod leases;
mod line_stream;
mod listen;
mod lookup;
mod metrics;
mod os;
mod page;
mod peer;
mod router;
mod snapshot;
mod sse;
mod stream_format;
mod tail;
mod terminal_socket;
mod unix;
mod ws;

pub use access::{Token, TokenError, Tokens};
pub use clients::ClientLimits;
pub use config::{Config, ControlRefusal, Exposure, Health, Limits, McpAnswer, McpBody, Redact, ServerClock};
pub use listen::{ServeError, Serving, serve};
pub use peer::{PeerCheck, TcpCheck, TcpRefusal, TcpUser};
pub use unix::SocketError;

#[cfg(test)]
mod tests;
