//! A model that sends prepared answers and does not interpret requests, so that its own work is not measured; and a
//! minimal client for it.
//!
//! It implements Anthropic's Messages and records the times of each request and answer.

use std::{
    fmt::Write as _,
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// The answer to the request with this number, from 0. `None`: the request is never answered.
pub(crate) type Answers = Box<dyn Fn(usize) -> Option<String> + Send + Sync>;

/// A request and its answer.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    /// The path, without a query.
    pub(crate) path: String,
    /// When the first byte had arrived.
    pub(crate) begun: Instant,
    /// When the last byte had arrived.
    pub(crate) read: Instant,
    /// When the last byte of the answer was sent.
    pub(crate) answered: Option<Instant>,
    /// The body, if bodies are kept.
    pub(crate) body: Vec<u8>,
}

struct State {
    answers: Answers,
    keeps_bodies: bool,
    exchanges: Mutex<Vec<Exchange>>,
    changed: Condvar,
    address: SocketAddr,
    stopped: std::sync::atomic::AtomicBool,
}

/// The model. Dropping it stops it.
pub(crate) struct Canned {
    state: Arc<State>,
    listening: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Canned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Canned").field("address", &self.state.address).finish_non_exhaustive()
    }
}

impl Canned {
    /// Starts a model on a free loopback port.
    pub(crate) fn start(keeps_bodies: bool, answers: Answers) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let state = Arc::new(State {
            answers,
            keeps_bodies,
            exchanges: Mutex::default(),
            changed: Condvar::new(),
            address: listener.local_addr()?,
            stopped: false.into(),
        });
        let serving = Arc::clone(&state);
        let listening = std::thread::Builder::new().name("canned".to_owned()).spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if serving.stopped.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
                let serving = Arc::clone(&serving);
                // The thread ends with its client.
                std::thread::spawn(move || serving.serve(stream));
            }
        })?;
        Ok(Self { state, listening: Some(listening) })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.state.address)
    }

    /// The answered and pending requests so far.
    pub(crate) fn exchanges(&self) -> Vec<Exchange> {
        self.state.exchanges().clone()
    }

    /// Waits for the request with this number, from 0.
    pub(crate) fn wait_for(&self, n: usize, limit: Duration) -> Option<Exchange> {
        let (exchanges, deadline) = (self.state.exchanges(), Instant::now() + limit);
        let left = deadline.saturating_duration_since(Instant::now());
        let waited = self.state.changed.wait_timeout_while(exchanges, left, |exchanges| exchanges.len() <= n);
        waited.unwrap_or_else(std::sync::PoisonError::into_inner).0.get(n).cloned()
    }
}

impl Drop for Canned {
    fn drop(&mut self) {
        self.state.stopped.store(true, std::sync::atomic::Ordering::Relaxed);
        TcpStream::connect(self.state.address).ok();
        if let Some(listening) = self.listening.take() {
            listening.join().ok();
        }
    }
}

impl State {
    fn exchanges(&self) -> MutexGuard<'_, Vec<Exchange>> {
        self.exchanges.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn serve(&self, stream: TcpStream) {
        stream.set_nodelay(true).ok();
        let mut reader = BufReader::with_capacity(256 << 10, stream);
        // A client that hangs up sends no more requests.
        while self.exchange(&mut reader).is_ok() {}
    }

    fn exchange(&self, reader: &mut BufReader<TcpStream>) -> io::Result<()> {
        if reader.fill_buf()?.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let begun = Instant::now();
        let (line, length) = head(reader)?;
        let mut words = line.split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let path = path.split('?').next().unwrap_or_default();
        let mut body = Vec::new();
        match length {
            Some(length) => {
                body.resize(length, 0);
                reader.read_exact(&mut body)?;
            }
            None => read_chunks(reader, &mut body)?,
        }
        let read = Instant::now();
        let is_asked = ["/messages", "/responses", "/chat/completions"].iter().any(|end| path.ends_with(end));
        if method != "POST" || !is_asked {
            let body = "{\"data\":[],\"has_more\":false}";
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
            return reader
                .get_mut()
                .write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes());
        }
        if !self.keeps_bodies {
            body = Vec::new();
        }
        let n = {
            let mut exchanges = self.exchanges();
            exchanges.push(Exchange { path: path.to_owned(), begun, read, answered: None, body });
            exchanges.len() - 1
        };
        self.changed.notify_all();
        let Some(answer) = (self.answers)(n) else {
            // Waits until the client hangs up.
            return reader.fill_buf().map(|_| ()).and(Err(io::ErrorKind::TimedOut.into()));
        };
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        let whole = format!("{head}{:x}\r\n{answer}\r\n0\r\n\r\n", answer.len());
        reader.get_mut().write_all(whole.as_bytes())?;
        self.exchanges()[n].answered = Some(Instant::now());
        Ok(())
    }
}

/// The first line and the length of the body; `None` for a chunked body.
fn head(reader: &mut BufReader<TcpStream>) -> io::Result<(String, Option<usize>)> {
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut length = Some(0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            return Ok((first, length));
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = Some(value.trim().parse().map_err(io::Error::other)?);
        } else if line.starts_with("transfer-encoding:") && line.contains("chunked") {
            length = None;
        }
    }
}

fn read_chunks(reader: &mut BufReader<TcpStream>, body: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let size = usize::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
        let from = body.len();
        body.resize(from + size, 0);
        reader.read_exact(&mut body[from..])?;
        reader.read_line(&mut line)?;
        if size == 0 {
            return Ok(());
        }
    }
}

/// A minimal client with one connection: posts a body and reads the answer.
#[derive(Debug)]
pub(crate) struct Bare {
    stream: BufReader<TcpStream>,
    host: String,
}

impl Bare {
    pub(crate) fn connect(url: &str) -> io::Result<Self> {
        let host = url.trim_start_matches("http://").to_owned();
        let stream = TcpStream::connect(&host)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::with_capacity(64 << 10, stream), host })
    }

    /// Posts a body and reads the answer to its end.
    pub(crate) fn post(&mut self, path: &str, body: &[u8]) -> io::Result<usize> {
        let head = format!("POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\n\r\n", self.host, body.len());
        let stream = self.stream.get_mut();
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)?;
        let (_, length) = self::head(&mut self.stream)?;
        let mut answer = Vec::new();
        match length {
            Some(length) => {
                answer.resize(length, 0);
                self.stream.read_exact(&mut answer)?;
            }
            None => read_chunks(&mut self.stream, &mut answer)?,
        }
        Ok(answer.len())
    }
}

/// An answer of the model: a text followed by tool calls.
pub(crate) fn answer(n: usize, text: &str, calls: &[(&str, Value)]) -> String {
    let mut stream = String::new();
    let mut event = |data: &Value| {
        let _ = write!(stream, "event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default());
    };
    let usage = json!({ "input_tokens": 10, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 5000,
        "output_tokens": 1 });
    event(&json!({ "type": "message_start", "message": {
        "id": format!("msg_{n}"), "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage } }));
    let mut index = 0;
    let mut block = |start: &Value, delta: &Value| {
        event(&json!({ "type": "content_block_start", "index": index, "content_block": start }));
        event(&json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        event(&json!({ "type": "content_block_stop", "index": index }));
        index += 1;
    };
    if !text.is_empty() {
        block(&json!({ "type": "text", "text": "" }), &json!({ "type": "text_delta", "text": text }));
    }
    for (at, (name, input)) in calls.iter().enumerate() {
        let start = json!({ "type": "tool_use", "id": format!("toolu_{n}_{at}"), "name": name, "input": {} });
        block(&start, &json!({ "type": "input_json_delta", "partial_json": input.to_string() }));
    }
    let reason = if calls.is_empty() { "end_turn" } else { "tool_use" };
    event(&json!({ "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null },
        "usage": { "output_tokens": 42 } }));
    event(&json!({ "type": "message_stop" }));
    stream
}
