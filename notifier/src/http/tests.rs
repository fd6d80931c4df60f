use std::{
    collections::HashMap,
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener},
    sync::Mutex,
};

use events::Timestamp;
use outbound::{Lookup, SystemLookup};
use rustls::crypto::ring;

use super::*;

/// Names with addresses set by the test. Each lookup uses the next answer; the last one is repeated.
#[derive(Debug, Default)]
struct Names(Mutex<HashMap<String, Vec<Vec<SocketAddr>>>>);

impl Lookup for Names {
    fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let mut names = self.0.lock().unwrap();
        match names.get_mut(host) {
            Some(answers) if answers.len() > 1 => Ok(answers.remove(0)),
            Some(answers) => Ok(answers[0].clone()),
            // Addresses need no lookup.
            None => SystemLookup.addresses(host, port),
        }
    }
}

fn client(allow: &[&str], names: &[(&str, &[&[&str]])]) -> HttpClient {
    let parse = |answers: &[&[&str]]| -> Vec<Vec<SocketAddr>> {
        answers.iter().map(|list| list.iter().map(|a| a.parse().unwrap()).collect()).collect()
    };
    let names = names.iter().map(|(name, answers)| ((*name).to_owned(), parse(answers))).collect();
    let mut context = ChannelContext::new(Arc::new(|_| None), Arc::new(|| Timestamp::MIN));
    context.lookup = Arc::new(Names(Mutex::new(names)));
    let allow: Vec<String> = allow.iter().map(|h| (*h).to_owned()).collect();
    HttpClient::new(&allow, None, &context).unwrap()
}

/// A server that gives this answer to every request, and returns the heads of the requests.
fn server(answer: &'static str) -> (u16, crossbeam_channel::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, told) = crossbeam_channel::bounded(16);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap_or(0) > 0 {}
            let length = head.lines().find_map(|l| l.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            if tell.send(head).is_err() {
                return;
            }
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (port, told)
}

const OK: &str = "HTTP/1.1 204 No Content\r\n\r\n";

fn refused(client: &HttpClient, url: &str, part: &str) {
    let failure = client.post(url, &[], b"{}").unwrap_err();
    assert_eq!(failure.again, RetryHint::Never, "{url}: {}", failure.error);
    assert!(failure.error.contains(part), "{url}: {}", failure.error);
}

#[test]
fn non_public_ip_addresses_are_refused_in_any_notation() {
    let (port, requests) = server(OK);
    let client = client(&[], &[]);
    for host in [
        "127.0.0.1",
        "2130706433",
        "0177.0.0.1",
        "0x7f.1",
        "0x7f000001",
        "127.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "0.0.0.0",
        "0",
        "169.254.169.254",
        "[fe80::1]",
        "[64:ff9b::7f00:1]",
        "10.0.0.1",
        "192.168.0.1",
        "①②⑦.0.0.1",
    ] {
        refused(&client, &format!("https://{host}:{port}/"), "capture refuses to connect to it");
    }
    assert!(requests.try_recv().is_err());
}

#[test]
fn a_host_with_any_non_public_address_is_refused() {
    let client = client(
        &[],
        &[
            ("inside.test", &[&["127.0.0.1:443"]]),
            ("both.test", &[&["8.8.8.8:443", "10.0.0.1:443"]]),
            ("mapped.test", &[&["[::ffff:10.0.0.1]:443"]]),
            ("meta.test", &[&["169.254.169.254:443"]]),
        ],
    );
    for host in ["inside.test", "both.test", "mapped.test", "meta.test"] {
        refused(&client, &format!("https://{host}/hook"), "capture refuses to connect to it");
    }
}

#[test]
fn other_schemes_plain_http_and_passwords_are_refused() {
    let client = client(&["127.0.0.1:1"], &[]);
    refused(&client, "http://example.test/", "not https");
    refused(&client, "http://127.0.0.1:2/", "not https");
    refused(&client, "ftp://127.0.0.1:1/", "not https");
    refused(&client, "file:///etc/passwd", "not https");
    refused(&client, "http://user:hunter2@127.0.0.1:1/", "password");
    refused(&client, "https://127.0.0.1:1@evil.test/", "password");
    refused(&client, "nonsense", "invalid URL");
}

#[test]
fn an_allowed_host_is_reachable_only_on_its_port() {
    let (port, requests) = server(OK);
    let (other, others) = server(OK);
    let host = format!("127.0.0.1:{port}");
    let client = client(&[&host], &[]);
    client.post(&format!("http://{host}/in"), &[("x-a", "b".into())], b"{}").unwrap();
    let head = requests.recv().unwrap();
    assert!(head.starts_with("POST /in HTTP/1.1\r\n") && head.contains("x-a: b\r\n"), "{head}");
    assert!(head.contains("content-type: application/json\r\n"), "{head}");
    refused(&client, &format!("https://127.0.0.1:{other}/"), "capture refuses to connect to it");
    assert!(others.try_recv().is_err());
}

#[test]
fn the_connection_goes_to_the_address_that_was_checked() {
    let (port, requests) = server(OK);
    let near: &str = &format!("127.0.0.1:{port}");
    // A second lookup would return another address, where no server listens.
    let name = format!("rebind.test:{port}");
    let client = client(&[&name], &[("rebind.test", &[&[near], &["127.0.0.1:1"]])]);
    client.post(&format!("http://{name}/"), &[], b"{}").unwrap();
    assert!(requests.recv().unwrap().contains(&format!("host: {name}\r\n")));
    // The other way round: first a public address, then our server's. The first one counts, so nothing reaches our
    // server.
    let public: &[&str] = &["169.254.0.1:80"];
    let client = self::client(&[&name], &[("rebind.test", &[public, &[near]])]);
    refused(&client, &format!("http://{name}/"), "link-local");
    assert!(requests.try_recv().is_err());
}

#[test]
fn redirects_are_not_followed() {
    let (inside, inner) = server(OK);
    let answer: &'static str = Box::leak(
        format!("HTTP/1.1 307 X\r\nlocation: http://127.0.0.1:{inside}/\r\ncontent-length: 0\r\n\r\n").into(),
    );
    let (port, _requests) = server(answer);
    let client = client(&[&format!("127.0.0.1:{port}"), &format!("127.0.0.1:{inside}")], &[]);
    refused(&client, &format!("http://127.0.0.1:{port}/"), "redirects are not followed");
    assert!(inner.try_recv().is_err());
}

#[test]
fn http_status_and_retry_after_decide_whether_to_retry() {
    let check = |status: u16, after: Option<&str>| {
        judge(http::StatusCode::from_u16(status).unwrap(), after).map_err(|failure| failure.again)
    };
    assert_eq!(check(200, None), Ok(()));
    assert_eq!(check(204, None), Ok(()));
    for status in [301, 400, 401, 403, 404, 410, 413] {
        assert_eq!(check(status, Some("1")), Err(RetryHint::Never), "{status}");
    }
    for status in [408, 425, 429, 500, 502, 503] {
        assert_eq!(check(status, None), Err(RetryHint::Soon), "{status}");
        assert_eq!(check(status, Some("7")), Err(RetryHint::After(Duration::from_secs(7))), "{status}");
    }
    assert_eq!(check(503, Some("Fri, 31 Dec 1999 23:59:59 GMT")), Err(RetryHint::Soon));
}

#[test]
fn a_server_that_does_not_answer_times_out_and_may_be_retried() {
    // The server listens and never accepts; the kernel accepts the connection.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = format!("127.0.0.1:{}", listener.local_addr().unwrap().port());
    let mut context = ChannelContext::new(Arc::new(|_| None), Arc::new(|| Timestamp::MIN));
    context.attempt = Duration::from_millis(100);
    let client = HttpClient::new(std::slice::from_ref(&host), None, &context).unwrap();
    let failure = client.post(&format!("http://{host}/?token=hunter2"), &[], b"{}").unwrap_err();
    assert_eq!(failure.again, RetryHint::Soon);
    assert!(failure.error.contains("timed out") && !failure.error.contains("hunter2"), "{}", failure.error);
    drop(listener);
    let failure = client.post(&format!("http://{host}/?token=hunter2"), &[], b"{}").unwrap_err();
    assert_eq!(failure.again, RetryHint::Soon);
    assert!(!failure.error.contains("hunter2"), "{}", failure.error);
}

#[test]
fn a_request_in_progress_can_be_aborted() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = format!("127.0.0.1:{}", listener.local_addr().unwrap().port());
    let client = HttpClient::new(
        std::slice::from_ref(&host),
        None,
        &ChannelContext::new(Arc::new(|_| None), Arc::new(|| Timestamp::MIN)),
    )
    .unwrap();
    let stop = client.stopper();
    let stopper = std::thread::spawn(move || {
        // The request is running once the connection is accepted.
        let accepted = listener.accept();
        stop();
        accepted.is_ok()
    });
    let failure = client.post(&format!("http://{host}/"), &[], b"{}").unwrap_err();
    assert!(stopper.join().unwrap() && !failure.error.contains("timed out"), "{}", failure.error);
}

#[test]
fn a_request_body_above_the_limit_is_refused() {
    let client = client(&[], &[]);
    let failure = client.post("https://example.test/", &[], &vec![b' '; REQUEST_BYTES + 1]).unwrap_err();
    assert!(failure.error.contains("too large"), "{}", failure.error);
}

/// An https server that answers every request with 204, with the certificate from the fixtures.
fn secure_server() -> u16 {
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
    let file = |name: &str| format!("{}/../fixtures/notifier/{name}", env!("CARGO_MANIFEST_DIR"));
    let certificate = CertificateDer::from_pem_file(file("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(file("server.key.pem")).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let session = rustls::ServerConnection::new(config.clone()).unwrap();
            let mut stream = rustls::StreamOwned::new(session, stream.unwrap());
            // A client that does not trust the certificate closes the connection here.
            let mut piece = [0; 4096];
            let mut seen = Vec::new();
            while !seen.ends_with(b"{}") {
                match stream.read(&mut piece) {
                    Ok(bytes) if bytes > 0 => seen.extend_from_slice(&piece[..bytes]),
                    _ => break,
                }
            }
            if seen.ends_with(b"{}") {
                let _ = stream.write_all(OK.as_bytes()).and_then(|()| stream.flush());
            }
        }
    });
    port
}

#[test]
fn https_requires_a_trusted_certificate_for_the_host() {
    let port = secure_server();
    let near = format!("127.0.0.1:{port}");
    let names = ["hooks", "other"].map(|name| (format!("{name}.test"), vec![vec![near.parse().unwrap()]]));
    let mut context = ChannelContext::new(Arc::new(|_| None), Arc::new(|| Timestamp::MIN));
    context.lookup = Arc::new(Names(Mutex::new(names.into_iter().collect())));
    let allow = [format!("hooks.test:{port}"), format!("other.test:{port}")];
    let authority = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/notifier/authority.pem");
    let trusting = HttpClient::new(&allow, Some(&authority), &context).unwrap();
    trusting.post(&format!("https://{}/in", allow[0]), &[], b"{}").unwrap();
    refused(&trusting, &format!("https://{}/in", allow[1]), "TLS failed");
    let client = HttpClient::new(&allow, None, &context).unwrap();
    refused(&client, &format!("https://{}/in", allow[0]), "TLS failed");
    let empty = tempfile::NamedTempFile::new().unwrap();
    assert!(HttpClient::new(&allow, Some(empty.path()), &context).is_err());
}
