//! The URL of the server.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// The URL `http://ADDRESS` through which this machine reaches a server that listens on `address`.
pub(crate) fn url_of(mut address: SocketAddr) -> String {
    // If the server listens on all addresses, use loopback, whose name needs no `allowed_hosts`.
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!("http://{address}")
}
