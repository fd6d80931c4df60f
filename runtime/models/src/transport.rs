//! Sends requests and hands on what comes back.
//!
//! A [`ModelClient`] holds the connections; an [`Exchange`] is one request and its answer. Nothing is repeated here:
//! that is for whoever knows whether a tool of the answer has run. An exchange that is dropped is cancelled.
//!
//! Redirects are not followed, so a key goes to the host that was configured and to no other; the proxy is handed in
//! and not used for loopback; TLS is 1.2 or newer, with the certificates of the system. HTTP is 1.1, as in the vendors'
//! own clients: a session has one request at a time.

mod client;
mod exchange;
mod patience;
mod sending;

pub use client::{ClientError, ClientOptions, ModelClient, ModelEndpoint};
pub use exchange::Exchange;
pub use patience::{Patience, PatienceError};

#[cfg(test)]
mod tests;
