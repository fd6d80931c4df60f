//! Sends requests and returns the events of answers.
//!
//! A [`ModelClient`] owns the connections; an [`Exchange`] is one request and its answer. Nothing is retried here: the
//! caller does that, since it knows whether a tool of the answer has run. Dropping an exchange cancels it.
//!
//! Redirects are not followed, so that keys are sent only to the configured host; the caller passes the proxy, which is
//! not used for loopback; TLS is 1.2 or newer, with the certificates of the system. HTTP is 1.1, as in the vendors' own
//! clients: a session has one request at a time.

mod client;
mod exchange;
mod patience;
mod sending;

pub use client::{ClientError, ClientOptions, ModelClient, ModelEndpoint};
pub use exchange::Exchange;
pub use patience::{Patience, PatienceError};

#[cfg(test)]
mod tests;
