//! Resolving names to addresses.

use std::{
    fmt, io,
    net::{SocketAddr, ToSocketAddrs},
};

/// Resolves names to addresses.
pub trait Lookup: fmt::Debug + Send + Sync {
    /// The addresses of a name (or of an address in any notation) at a port.
    ///
    /// # Errors
    /// If the name has no address, or the resolver does not answer.
    fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

/// Resolves names as the system does.
#[derive(Debug, Clone, Copy)]
pub struct SystemLookup;

impl Lookup for SystemLookup {
    fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok((host, port).to_socket_addrs()?.collect())
    }
}
