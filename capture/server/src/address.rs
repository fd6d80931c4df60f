//! The address at which the server is reached.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// `http://ADDRESS`, at which this machine reaches a server that listens on an address.
pub(crate) fn url_of(mut address: SocketAddr) -> String {
    // All addresses: from this machine it is reached at loopback, by a name that needs no `allowed_hosts`.
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!("http://{address}")
}
