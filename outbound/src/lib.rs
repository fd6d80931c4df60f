//! HTTP requests that go only to addresses that were checked.
//!
//! A name is resolved once for each request, every address it has is held against the list of what may not be reached
//! ([`guard`]), and the connection is made to the addresses that were checked: a name that resolves to another address a
//! moment later changes nothing. Redirects are not followed, proxies of the environment not used, connections not kept.
//!
//! What this crate must not do: decide what is sent or fetched, read a clock or the environment, repeat an address in an
//! error (it may hold a token).

mod allowed_host;
#[cfg(feature = "client")]
mod client;
#[cfg(feature = "client")]
pub mod guard;
#[cfg(feature = "client")]
mod lookup;

pub use allowed_host::{AllowedHost, InvalidHost};
#[cfg(feature = "client")]
pub use client::{ClientSettings, OutboundClient, PlainHttp, RequestError, Stopper};
#[cfg(feature = "client")]
pub use lookup::{Lookup, SystemLookup};
#[cfg(feature = "client")]
pub use ureq::{Body, http};
