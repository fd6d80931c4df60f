//! HTTP requests that go only to addresses that were checked.
//!
//! A name is resolved once for each request, all its addresses are compared with the list of forbidden addresses
//! ([`guard`]), and the connection is made to one of the checked addresses. So it has no effect if the name resolves to
//! another address a moment later. Redirects are not followed, proxies of the environment are not used, and connections
//! are not reused.
//!
//! This crate must not decide what is sent or fetched, read a clock or the environment, or repeat a URL in an error (it
//! may contain a token).

mod allowed_host;
mod client;
pub mod guard;
mod lookup;

pub use allowed_host::{AllowedHost, InvalidHost};
pub use client::{ClientSettings, OutboundClient, PlainHttp, RequestError, Stopper};
pub use lookup::{Lookup, SystemLookup};
pub use ureq::{Body, http};
