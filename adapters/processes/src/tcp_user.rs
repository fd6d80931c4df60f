//! Identifies the user of a local TCP connection. The kernel is queried for the one socket (sock_diag(7)), which costs
//! the same however many sockets exist; if it does not answer, its tables are searched.

use std::net::SocketAddr;

use super::tcp::find_in_tables;
use crate::os::query_user;

/// The user whose process has the end `local` of a local TCP connection to `remote` open. `None` if there is no such
/// connection, or no process has that end open any more.
#[must_use]
pub fn user_of_tcp(local: SocketAddr, remote: SocketAddr) -> Option<u32> {
    query_user(local, remote).unwrap_or_else(|_| find_in_tables(local, remote).map(|socket| socket.uid))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn netlink_and_proc_tables_both_find_the_user_of_a_connection() {
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
}
