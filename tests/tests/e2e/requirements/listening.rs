//! Who can reach the server: its sockets, and the credentials a connection needs.

use std::{
    fs,
    io::{Read, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream},
};

use tests::PATIENCE;

use super::{PROGRAM, RequirementsMachine};
use tests::program::Machine;

/// State of a listening socket in `/proc/net/tcp`.
const LISTENS: &str = "0A";

/// The address in a row of `/proc/net`: 32-bit words in the byte order of the machine, and the port.
fn address(text: &str) -> SocketAddr {
    let (ip, port) = text.split_once(':').unwrap();
    let bytes: Vec<u8> = (0..ip.len() / 8)
        .flat_map(|word| u32::from_str_radix(&ip[word * 8..word * 8 + 8], 16).unwrap().to_ne_bytes())
        .collect();
    let ip = match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(v4) => IpAddr::V4(Ipv4Addr::from(v4)),
        Err(_) => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(bytes.as_slice()).unwrap())),
    };
    SocketAddr::new(ip, u16::from_str_radix(port, 16).unwrap())
}

/// The listening sockets of a process as shown by `ss -lntup`: protocol and local address.
fn sockets(pid: u32) -> Vec<(&'static str, SocketAddr)> {
    let own: Vec<String> = fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .flatten()
        .filter_map(|fd| {
            let link = fs::read_link(fd.path()).ok()?;
            Some(link.to_str()?.strip_prefix("socket:[")?.trim_end_matches(']').to_owned())
        })
        .collect();
    let mut found = Vec::new();
    for protocol in ["tcp", "tcp6", "udp", "udp6", "raw", "raw6"] {
        let Ok(table) = fs::read_to_string(format!("/proc/{pid}/net/{protocol}")) else { continue };
        for row in table.lines().skip(1) {
            let fields: Vec<&str> = row.split_whitespace().collect();
            let receives = fields[3] == LISTENS || !protocol.starts_with("tcp");
            if receives && own.iter().any(|inode| inode == fields[9]) {
                found.push((protocol, address(fields[1])));
            }
        }
    }
    found
}

#[test]
fn the_server_listens_only_on_loopback_by_default() {
    let here = RequirementsMachine::new();
    // Started by a user's first command, without options and without a configuration.
    here.done(&["ps"]);
    let endpoint = here.machine.endpoint().unwrap();
    let pid = endpoint["pid"].as_u64().unwrap().try_into().unwrap();
    let found = sockets(pid);
    let [("tcp" | "tcp6", address)] = found.as_slice() else { panic!("{found:?}") };
    assert!(address.ip().is_loopback(), "{address}");
    assert_eq!(endpoint["url"], format!("http://{address}"));
}

#[test]
fn non_loopback_listen_addresses_need_the_expose_flag() {
    let here = RequirementsMachine::new();
    for address in ["0.0.0.0:0", "[::]:0", "[::ffff:127.0.0.1]:0", "192.0.2.1:0"] {
        let (code, err) = here.failed(&["serve", "--listen", address]);
        assert_eq!(code, Some(1), "{address}: {err}");
        assert!(err.contains("is not a loopback address"), "{address}: {err}");
        assert!(here.machine.endpoint().is_none(), "{address}");
    }
}

/// The server listens on loopback and accepts the given host names.
#[test]
fn an_exposed_server_accepts_only_the_allowed_host_names() {
    let machine = Machine::new(PROGRAM);
    let data = machine.data();
    let refused = machine.command(&["serve", "--allowed-host", "http://dev.example"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let arguments = ["serve", "--expose", "--listen", "0.0.0.0:0", "--allowed-host", "dev.example", "--allowed-host"];
    let arguments = [&arguments[..], &["proxy.example:8443", "--data-dir", data.to_str().unwrap()]].concat();
    let mut child = machine.command(&arguments).stderr(std::process::Stdio::null()).spawn().unwrap();
    let client = tests::eventually("it answers", || machine.any_client());
    let (_, port) = client.address.rsplit_once(':').unwrap();
    let status = |host: &str| {
        let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let token = format!("Authorization: Bearer {}", client.token);
        let request = format!("GET /api/v1/sessions HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{token}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.get(9..12).unwrap_or_default().to_owned()
    };
    for host in [&format!("dev.example:{port}"), "dev.example", "proxy.example:8443", &format!("127.0.0.1:{port}")] {
        assert_eq!(status(host), "200", "{host}");
    }
    for host in ["dev.example:1", "proxy.example", "evil.example", &format!("proxy.example:{port}")] {
        assert_eq!(status(host), "403", "{host}");
    }
    // Commands on this machine reach the server without a host name.
    let output = machine.command(&["--tcp", "ps"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The configured port and host names are used, also by a server that a command starts.
#[test]
fn the_configured_port_and_host_names_are_used() {
    let machine = Machine::new(PROGRAM);
    let failure = || {
        let output = machine.command(&["ps"]).output().unwrap();
        assert!(!output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    machine.configure("[server]\nallowed_hosts = [\"http://dev.example\"]\n");
    let said = failure();
    assert!(said.contains("server.allowed_hosts") && said.contains("`http://dev.example`"), "{said}");
    // A port outside the ephemeral range, so that no other test is assigned it.
    let from = 20_000 + u16::try_from(std::process::id() % 10_000).unwrap();
    let port = (from..32_000).find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap();
    machine.configure(&format!("[server]\nport = {port}\nallowed_hosts = [\"dev.example\"]\n"));
    assert!(machine.command(&["ps"]).output().unwrap().status.success());
    let client = machine.any_client().unwrap();
    assert_eq!(client.address, format!("127.0.0.1:{port}"));
    let host = |host: &str| answer_to_head(&client.address, &format!("GET / HTTP/1.1\r\nHost: {host}\r\n"));
    assert_ne!(host("dev.example"), "HTTP/1.1 403");
    assert_eq!(host("other.example"), "HTTP/1.1 403");
    assert!(machine.command(&["serve", "--stop"]).output().unwrap().status.success());

    let taken = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let said = failure();
    assert!(said.contains(&format!("127.0.0.1:{port}")), "{said}");
    drop(taken);
}

/// Sends the head of a request that announces a body, and returns the first line of the answer. The body is never sent:
/// a server that waits for it would make the test time out.
fn answer_to_head(address: &str, head: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(format!("{head}Content-Length: 100000\r\n\r\n").as_bytes()).unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn wrong_hosts_and_origins_are_refused_before_the_body_is_read() {
    let machine = Machine::new(PROGRAM);
    // Within the patience of the test, so a server that waits longer for a body cannot pass.
    let server = machine.serve();
    let address = &server.client.address;
    let port = address.rsplit(':').next().unwrap();
    let token = &server.client.token;
    for path in ["/api/v1/notify/test", "/api/v1/deliveries", "/v1/logs", "/nowhere"] {
        let with = |more: &str| {
            let head = format!(
                "POST {path} HTTP/1.1\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n{more}"
            );
            answer_to_head(address, &head)
        };
        for host in ["evil.test", "localhost", &format!("127.0.0.1.evil.test:{port}"), "127.0.0.1:1"] {
            assert_eq!(with(&format!("Host: {host}\r\n")), "HTTP/1.1 403", "{path} {host}");
        }
        for origin in [
            "null",
            "http://localhost:1",
            "http://127.0.0.1.evil.test",
            "https://evil.test#127.0.0.1",
            &format!("https://{address}"),
        ] {
            let more = format!("Host: {address}\r\nOrigin: {origin}\r\n");
            assert_eq!(with(&more), "HTTP/1.1 403", "{path} {origin}");
        }
    }
}

#[test]
fn the_token_is_accepted_only_in_the_authorization_header() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let (address, token) = (&server.client.address, &server.client.token);
    let status = |path: &str, more: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{more}\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.get(9..12).unwrap_or_default().to_owned()
    };
    let sessions = "/api/v1/sessions";
    assert_eq!(status(sessions, &format!("Authorization: Bearer {token}\r\n")), "200");
    assert_eq!(status(&format!("{sessions}?token={token}"), ""), "401");
    assert_eq!(status(&format!("{sessions}?access_token={token}"), ""), "401");
    for cookie in ["token", "capture", "session", "authorization"] {
        assert_eq!(status(sessions, &format!("Cookie: {cookie}={token}\r\n")), "401", "{cookie}");
    }
    assert_eq!(status(sessions, &format!("X-Api-Key: {token}\r\n")), "401");
    assert_eq!(status(sessions, &format!("Authorization: Basic {token}\r\n")), "401");
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    assert_eq!(status(&format!("/api/v1/ws?token={token}"), upgrade), "401");
    assert_eq!(status("/api/v1/ws", &format!("{upgrade}Sec-WebSocket-Protocol: {token}\r\n")), "401");
}
