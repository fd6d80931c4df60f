//! Identifies the process at the other end of a local TCP connection. The kernel does not identify the peer, so its
//! tables are searched.

use std::net::{IpAddr, SocketAddr};

use crate::os;

/// The processes of our own user that have the end `local` of a local TCP connection to `remote` open. Empty if there
/// is no such connection, or the processes that have it open cannot be examined.
#[must_use]
pub fn holders_of_tcp(local: SocketAddr, remote: SocketAddr) -> Vec<u32> {
    let Some(TableRow { inode, .. }) = find_in_tables(local, remote) else { return Vec::new() };
    let socket = format!("socket:[{inode}]");
    let Ok(pids) = os::process_ids() else { return Vec::new() };
    let holds = |pid: &u32| {
        os::descriptors(*pid).is_ok_and(|mut targets| {
            targets.any(|target| target.is_some_and(|target| target.as_os_str() == socket.as_str()))
        })
    };
    pids.filter(holds).collect()
}

/// Whether the process `pid` has every socket open that listens on this address, so that a connection to the address
/// reaches no other process.
#[must_use]
pub fn listener_of_tcp(address: SocketAddr, pid: u32) -> bool {
    let wanted = address.ip().to_canonical();
    let takes = |row: &TableRow| {
        let ip = row.local.ip().to_canonical();
        let reaches = ip == wanted || ip.is_unspecified() || wanted.is_unspecified();
        row.listens && row.local.port() == address.port() && reaches
    };
    let inodes_in = |table: String| rows(&table).filter(takes).map(|row| row.inode).collect::<Vec<_>>();
    let inodes: Vec<u64> = os::tcp_tables().flat_map(inodes_in).collect();
    let Ok(descriptors) = os::descriptors(pid) else { return false };
    let held: Vec<_> = descriptors.flatten().collect();
    let holds = |inode: &u64| held.iter().any(|target| target.as_os_str() == format!("socket:[{inode}]").as_str());
    !inodes.is_empty() && inodes.iter().all(holds)
}

/// A socket in the kernel's tables.
pub(super) struct TableRow {
    local: SocketAddr,
    remote: SocketAddr,
    listens: bool,
    /// Its user id.
    pub(super) uid: u32,
    /// 0 if no process has it open any more.
    inode: u64,
}

/// The socket with these addresses, if a process has it open.
pub(super) fn find_in_tables(local: SocketAddr, remote: SocketAddr) -> Option<TableRow> {
    let same = |a: SocketAddr, b: SocketAddr| (a.ip().to_canonical(), a.port()) == (b.ip().to_canonical(), b.port());
    let is_it = |row: &TableRow| same(row.local, local) && same(row.remote, remote) && row.inode != 0;
    os::tcp_tables().find_map(|table| rows(&table).find(is_it))
}

/// The state of a listening socket.
const LISTEN: &str = "0A";

/// The rows of a table in the format of `/proc/net/tcp` (proc_net_tcp(5)): addresses are 32-bit words in the machine's
/// byte order, ports are hexadecimal.
fn rows(table: &str) -> impl Iterator<Item = TableRow> {
    table.lines().skip(1).filter_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (local, remote) = (address_of(fields.next()?)?, address_of(fields.next()?)?);
        let listens = fields.next()? == LISTEN;
        let uid = fields.nth(3)?.parse().ok()?;
        let inode = fields.nth(1)?.parse().ok()?;
        Some(TableRow { local, remote, listens, uid, inode })
    })
}

fn address_of(field: &str) -> Option<SocketAddr> {
    let (address, port) = field.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::with_capacity(16);
    for word in address.as_bytes().chunks(8) {
        let word = u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    let ip = match <[u8; 16]>::try_from(bytes.as_slice()) {
        Ok(long) => IpAddr::from(long),
        Err(_) => IpAddr::from(<[u8; 4]>::try_from(bytes.as_slice()).ok()?),
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_listening_on_a_tcp_port_is_identified() {
        for address in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0"] {
            let Ok(listener) = std::net::TcpListener::bind(address) else { continue };
            let address = listener.local_addr().unwrap();
            assert!(listener_of_tcp(address, std::process::id()), "{address}");
            assert!(!listener_of_tcp(address, 1), "{address}: another process");
            drop(listener);
            assert!(!listener_of_tcp(address, std::process::id()), "{address}: closed");
        }
    }

    #[test]
    fn the_process_holding_a_tcp_connection_is_found() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = std::net::TcpListener::bind(address) else { continue };
            let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (server, from) = listener.accept().unwrap();
            let to = server.local_addr().unwrap();
            assert_eq!(holders_of_tcp(from, to), [std::process::id()], "{address}");
            drop(client);
            assert_eq!(holders_of_tcp(to, "127.0.0.1:1".parse().unwrap()), Vec::<u32>::new());
        }
        assert_eq!(address_of("0100007F:1F90"), Some("127.0.0.1:8080".parse().unwrap()));
        assert_eq!(address_of("0100007F"), None);
    }
}
