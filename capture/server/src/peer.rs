//! Identifies the process at the other end of a connection.

use std::{
    net::{IpAddr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use live_view::Peer;

/// Returns why a process may not use the `control` and `admin` scopes over the Unix socket; `None` if it may.
pub type PeerCheck = Arc<dyn Fn(Peer) -> Option<String> + Send + Sync>;

/// Returns why the peer of a TCP connection (client, server) may not use these scopes; `None` if it may.
pub type TcpCheck = Arc<dyn Fn(SocketAddr, SocketAddr) -> Option<TcpRefusal> + Send + Sync>;

/// Why the peer of a TCP connection may not use the `control` and `admin` scopes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TcpRefusal {
    /// The process cannot be identified.
    #[error("the process cannot be identified")]
    Unidentified,
    /// An agent started the process; contains the evidence.
    #[error("{0}")]
    Agent(String),
}

/// Returns the id of the user at the other end of a TCP connection on this machine (client, server).
pub type TcpUser = Arc<dyn Fn(SocketAddr, SocketAddr) -> Option<u32> + Send + Sync>;

/// The client at the other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Client {
    /// Our own user.
    Own,
    /// Another user of this machine.
    User(u32),
    /// A process on this machine that the kernel does not identify.
    Unnamed,
    /// Another machine; for IPv6 its network, because a machine has many addresses in it.
    Machine(IpAddr),
}

impl Client {
    /// The client of a TCP connection. If users cannot be looked up, this machine counts as our own user.
    pub(crate) fn of_tcp(from: SocketAddr, to: SocketAddr, own_uid: u32, user: Option<&TcpUser>) -> Self {
        match (from.ip().to_canonical(), user) {
            (ip, Some(user)) if ip.is_loopback() => match user(from, to) {
                Some(uid) if uid == own_uid => Self::Own,
                Some(uid) => Self::User(uid),
                None => Self::Unnamed,
            },
            (ip, None) if ip.is_loopback() => Self::Own,
            (IpAddr::V6(ip), _) => {
                let [a, b, c, d, ..] = ip.segments();
                Self::Machine(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into())
            }
            (ip, _) => Self::Machine(ip),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tcp_client_is_identified_by_user_or_machine() {
        let user: TcpUser = Arc::new(|from, _| match from.port() {
            1 => Some(1_000),
            2 => Some(1_001),
            _ => None,
        });
        let of = |from: &str, user: Option<&TcpUser>| {
            Client::of_tcp(from.parse().unwrap(), "127.0.0.1:80".parse().unwrap(), 1_000, user)
        };
        assert_eq!(of("127.0.0.1:1", Some(&user)), Client::Own);
        assert_eq!(of("[::1]:2", Some(&user)), Client::User(1_001));
        assert_eq!(of("[::ffff:127.0.0.1]:2", Some(&user)), Client::User(1_001));
        assert_eq!(of("127.0.0.1:3", Some(&user)), Client::Unnamed);
        assert_eq!(of("127.0.0.1:3", None), Client::Own);
        assert_eq!(of("10.0.0.1:1", Some(&user)), Client::Machine([10, 0, 0, 1].into()));
        assert_eq!(of("[2001:db8:1:2:3::4]:1", None), of("[2001:db8:1:2:5::6]:9", Some(&user)));
    }
}
