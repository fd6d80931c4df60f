//! A receiver of webhooks on a free port: it stores each request, verifies signatures in the format of Standard
//! Webhooks with an independent implementation, and sends the answers a test chooses.

use std::{
    collections::VecDeque,
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};

/// A received request.
#[derive(Debug, Clone)]
pub struct Delivered {
    /// `POST /path HTTP/1.1`
    pub line: String,
    /// Header names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Delivered {
    /// The value of a header; empty if it is absent.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(n, _)| n == name).map_or("", |(_, value)| value)
    }

    /// The body as JSON.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Whether the signature matches the secret (`whsec_…`) over id, time and body.
    #[must_use]
    pub fn is_signed_by(&self, secret: &str) -> bool {
        let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
        let (id, at) = (self.header("webhook-id"), self.header("webhook-timestamp"));
        let mut signed = format!("{id}.{at}.").into_bytes();
        signed.extend_from_slice(&self.body);
        let expected = format!("v1,{}", STANDARD.encode(hmac_sha256::HMAC::mac(&signed, key)));
        !id.is_empty() && at.parse::<u64>().is_ok() && self.header("webhook-signature") == expected
    }
}

#[derive(Debug, Default)]
struct Inbox {
    requests: Vec<Delivered>,
    /// The next answers, as status and further header lines; 204 once they are used up.
    answers: VecDeque<(u16, String)>,
    over: bool,
}

/// A server on loopback that receives webhooks until it is dropped.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    inbox: Arc<(Mutex<Inbox>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    /// Starts listening.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let inbox: Arc<(Mutex<Inbox>, Condvar)> = Arc::default();
        let shared = inbox.clone();
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if shared.0.lock().unwrap().over {
                    return;
                }
                // A client that disconnects early must not end the server.
                let _ = take(stream, &shared);
            }
        });
        Self { address, inbox, thread: Some(thread) }
    }

    /// `127.0.0.1:PORT`, for `allow_hosts`.
    #[must_use]
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// The address of a path.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Sets the answer to a coming request, in the order of the calls: a status and header lines that end in `\r\n`.
    /// Later requests are answered with 204.
    pub fn answer(&self, status: u16, headers: &str) {
        self.inbox.0.lock().unwrap().answers.push_back((status, headers.to_owned()));
    }

    /// The requests received so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Delivered> {
        self.inbox.0.lock().unwrap().requests.clone()
    }

    /// Waits until this many requests were received.
    ///
    /// # Panics
    /// If they do not arrive in time.
    #[must_use]
    pub fn wait(&self, count: usize, patience: Duration) -> Vec<Delivered> {
        let (inbox, more) = &*self.inbox;
        let deadline = Instant::now() + patience;
        let mut inbox = inbox.lock().unwrap();
        while inbox.requests.len() < count {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{} of {count} requests came", inbox.requests.len());
            inbox = more.wait_timeout(inbox, left).unwrap().0;
        }
        inbox.requests.clone()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.inbox.0.lock().unwrap().over = true;
        // The thread checks the flag on the next connection.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn take(mut stream: TcpStream, inbox: &(Mutex<Inbox>, Condvar)) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let Some((name, value)) = header.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(n, _)| n == "content-length").and_then(|(_, v)| v.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let (status, more) = {
        let (inbox, came) = inbox;
        let mut inbox = inbox.lock().unwrap();
        inbox.requests.push(Delivered { line: line.trim_end().to_owned(), headers, body });
        came.notify_all();
        inbox.answers.pop_front().unwrap_or((204, String::new()))
    };
    let length = if status == 204 { "" } else { "Content-Length: 0\r\n" };
    stream.write_all(format!("HTTP/1.1 {status} X\r\n{length}{more}Connection: close\r\n\r\n").as_bytes())
}
