//! Identifies the user of a local TCP connection. The kernel is queried for the one socket (sock_diag(7)), which costs
//! the same however many sockets exist; if it does not answer, its tables are searched.

use std::{
    io,
    net::{IpAddr, SocketAddr},
};

use rustix::{
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType,
        netlink::{SOCK_DIAG, SocketAddrNetlink},
        recv, sendto, socket_with,
    },
};

use super::tcp::find_in_tables;

/// The user whose process has the end `local` of a local TCP connection to `remote` open. `None` if there is no such
/// connection, or no process has that end open any more.
#[must_use]
pub fn user_of_tcp(local: SocketAddr, remote: SocketAddr) -> Option<u32> {
    query_user(local, remote).unwrap_or_else(|_| find_in_tables(local, remote).map(|socket| socket.uid))
}

/// `SOCK_DIAG_BY_FAMILY`, as a request and as the type of its answer.
const BY_FAMILY: u16 = 20;
/// `NLMSG_ERROR`
const ERROR: u16 = 2;
/// `NLM_F_REQUEST`
const REQUEST: u16 = 1;
/// `TCP_LISTEN`: if there is no such connection, the kernel finds a listener.
const LISTEN: u8 = 10;
/// Length of a netlink header.
const HEADER: usize = 16;
/// Length of `struct inet_diag_sockid`.
const SOCKET_ID: usize = 48;

fn query_user(local: SocketAddr, remote: SocketAddr) -> io::Result<Option<u32>> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(SOCK_DIAG))?;
    sendto(&socket, &request(local, remote), SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut answer = [0; 512];
    // The kernel has answered before the request returns.
    let (length, _) = recv(&socket, &mut answer, RecvFlags::DONTWAIT)?;
    user_in(answer.get(..length).unwrap_or_default(), local, remote)
}

/// A netlink header and a `struct inet_diag_req_v2` (linux/inet_diag.h).
fn request(local: SocketAddr, remote: SocketAddr) -> Vec<u8> {
    let (local_ip, remote_ip) = (local.ip().to_canonical(), remote.ip().to_canonical());
    let family = if local_ip.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let length = HEADER + 8 + SOCKET_ID;
    let mut bytes = Vec::with_capacity(length);
    bytes.extend(u32::try_from(length).unwrap_or_default().to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend(REQUEST.to_ne_bytes());
    bytes.extend([0; 8]);
    const TCP: u8 = 6;
    bytes.extend([family.as_raw() as u8, TCP, 0, 0]);
    // All states.
    bytes.extend(u32::MAX.to_ne_bytes());
    bytes.extend(local.port().to_be_bytes());
    bytes.extend(remote.port().to_be_bytes());
    for ip in [local_ip, remote_ip] {
        match ip {
            IpAddr::V4(ip) => {
                bytes.extend(ip.octets());
                bytes.extend([0; 12]);
            }
            IpAddr::V6(ip) => bytes.extend(ip.octets()),
        }
    }
    // Any interface, and no cookie.
    bytes.extend([0; 4]);
    bytes.extend([0xff; 8]);
    bytes
}

/// The user in an answer: a header and a `struct inet_diag_msg`, or an error.
fn user_in(answer: &[u8], local: SocketAddr, remote: SocketAddr) -> io::Result<Option<u32>> {
    let cut = || io::Error::from(io::ErrorKind::InvalidData);
    let word = |at: usize| answer.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
    let kind = answer.get(4..6).and_then(|kind| kind.try_into().ok()).map(u16::from_ne_bytes).ok_or_else(cut)?;
    if kind == ERROR {
        let errno = word(HEADER).ok_or_else(cut)?.wrapping_neg();
        let errno = i32::try_from(errno).map_err(|_| cut())?;
        return if errno == Errno::NOENT.raw_os_error() { Ok(None) } else { Err(io::Error::from_raw_os_error(errno)) };
    }
    let message = answer.get(HEADER..).filter(|_| kind == BY_FAMILY).ok_or_else(cut)?;
    let &[family, state, ..] = message else { return Err(cut()) };
    let id = message.get(4..4 + SOCKET_ID).ok_or_else(cut)?;
    let port = |at: usize| Some(u16::from_be_bytes(id.get(at..at + 2)?.try_into().ok()?));
    let ip = |at: usize| -> Option<IpAddr> {
        if u16::from(family) == AddressFamily::INET.as_raw() {
            Some(<[u8; 4]>::try_from(id.get(at..at + 4)?).ok()?.into())
        } else {
            Some(<[u8; 16]>::try_from(id.get(at..at + 16)?).ok()?.into())
        }
    };
    let is = |address: SocketAddr, ip: Option<IpAddr>, port: Option<u16>| {
        port == Some(address.port()) && ip.map(|ip| ip.to_canonical()) == Some(address.ip().to_canonical())
    };
    if state == LISTEN || !is(local, ip(4), port(0)) || !is(remote, ip(20), port(2)) {
        return Ok(None);
    }
    // After the id: three words, then user and inode. A socket without an inode is not open in any process.
    let (uid, inode) = (word(HEADER + 4 + SOCKET_ID + 12), word(HEADER + 4 + SOCKET_ID + 16));
    Ok(uid.filter(|_| inode.is_some_and(|inode| inode != 0)))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn both_ways_name_the_user_of_a_connection() {
        let own = rustix::process::getuid().as_raw();
        for address in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let port = listener.local_addr().unwrap().port();
            let at: SocketAddr =
                if address == "[::]:0" { ([127, 0, 0, 1], port).into() } else { listener.local_addr().unwrap() };
            let client = TcpStream::connect(at).unwrap();
            let (server, from) = listener.accept().unwrap();
            let to = server.local_addr().unwrap();
            assert_eq!(query_user(from, to).unwrap(), Some(own), "{address}");
            assert_eq!(find_in_tables(from, to).map(|socket| socket.uid), Some(own), "{address}");
            assert_eq!(user_of_tcp(from, to), Some(own));
            // There is a listener, but not this connection.
            let nobody: SocketAddr = (to.ip(), 1).into();
            assert_eq!(query_user(to, nobody).unwrap(), None, "{address}");
            drop(client);
            assert_eq!(user_of_tcp(from, to), None, "{address}: nobody holds it any more");
        }
    }

    #[test]
    fn answers_that_are_cut_name_nobody() {
        let address: SocketAddr = "127.0.0.1:80".parse().unwrap();
        let full = {
            let mut bytes = request(address, address);
            bytes.resize(512, 0);
            bytes
        };
        for length in 0..HEADER + 4 + SOCKET_ID + 20 {
            assert_eq!(user_in(&full[..length], address, address).ok().flatten(), None, "{length}");
        }
    }
}
