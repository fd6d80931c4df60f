//! A client for a server on loopback: HTTP/1.1 over `TcpStream`, one connection per request, bodies of known length or
//! chunked, server-sent events.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use serde_json::Value;

/// A response.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Header lines as received, without line endings.
    pub headers: Vec<String>,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The body as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("{}: not JSON ({e}): {}", self.status, self.text()))
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// The address of a server and the token to send.
#[derive(Debug, Clone)]
pub struct Client {
    /// `127.0.0.1:PORT`
    pub address: String,
    /// Sent as bearer token if not empty.
    pub token: String,
}

impl Client {
    /// Sends a request and reads the whole answer.
    ///
    /// # Errors
    /// If the server cannot be reached or the connection breaks.
    pub fn send(&self, method: &str, path: &str, body: Option<&str>, patience: Duration) -> io::Result<Answer> {
        whole(self.open(method, path, &[], body, patience)?)
    }

    /// Sends a POST with a JSON body and further header lines.
    ///
    /// # Errors
    /// If the server cannot be reached or the connection breaks.
    pub fn post(&self, path: &str, headers: &[&str], body: &str, patience: Duration) -> io::Result<Answer> {
        whole(self.open("POST", path, headers, Some(body), patience)?)
    }

    /// Sends any request with further header lines.
    ///
    /// # Errors
    /// If the server cannot be reached or the connection breaks.
    pub fn send_with(&self, method: &str, path: &str, headers: &[&str], body: Option<&str>) -> io::Result<Answer> {
        whole(self.open(method, path, headers, body, Duration::from_secs(20))?)
    }

    /// Sends a GET.
    ///
    /// # Errors
    /// If the server cannot be reached or the connection breaks.
    pub fn get(&self, path: &str) -> io::Result<Answer> {
        self.send("GET", path, None, Duration::from_secs(20))
    }

    /// Sends a GET and parses the JSON body; `None` if the server cannot be reached or the status is not 200.
    #[must_use]
    pub fn json(&self, path: &str) -> Option<Value> {
        let answer = self.get(path).ok()?;
        (answer.status == 200).then(|| answer.json())
    }

    /// Opens a stream of server-sent events; `last` is sent as `Last-Event-ID`.
    ///
    /// # Errors
    /// If the server cannot be reached or does not answer with 200.
    pub fn events(&self, path: &str, last: Option<u64>) -> io::Result<Events> {
        let last = last.map(|last| format!("Last-Event-ID: {last}"));
        let extra: Vec<&str> = last.iter().map(String::as_str).collect();
        let mut stream = self.open("GET", path, &extra, None, Duration::from_secs(20))?;
        let (status, headers) = head(&mut stream)?;
        if status != 200 || !is_chunked(&headers) {
            return Err(io::Error::other(format!("{status} {headers:?}")));
        }
        Ok(Events { stream, pending: String::new() })
    }

    fn open(
        &self,
        method: &str,
        path: &str,
        extra: &[&str],
        body: Option<&str>,
        patience: Duration,
    ) -> io::Result<BufReader<TcpStream>> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_nodelay(true)?;
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.address);
        if !self.token.is_empty() {
            head.push_str(&format!("Authorization: Bearer {}\r\n", self.token));
        }
        for line in extra {
            head.push_str(line);
            head.push_str("\r\n");
        }
        if let Some(body) = body {
            head.push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        head.push_str(body.unwrap_or_default());
        stream.write_all(head.as_bytes())?;
        Ok(BufReader::new(stream))
    }
}

/// Reads an answer to its end.
fn whole(mut stream: BufReader<TcpStream>) -> io::Result<Answer> {
    let (status, headers) = head(&mut stream)?;
    let body = if is_chunked(&headers) {
        let mut all = Vec::new();
        while let Some(mut chunk) = chunk(&mut stream)? {
            all.append(&mut chunk);
        }
        all
    } else {
        let length = header(&headers, "content-length").and_then(|v| v.parse::<usize>().ok());
        let mut all = Vec::new();
        match length {
            Some(length) => {
                all.resize(length, 0);
                stream.read_exact(&mut all)?;
            }
            None => drop(stream.read_to_end(&mut all)?),
        }
        all
    };
    Ok(Answer { status, headers, body })
}

/// One server-sent event.
#[derive(Debug, Clone)]
pub struct Sent {
    /// `snapshot`, `event` or `status`.
    pub name: String,
    /// The event's id, if it has one.
    pub id: Option<u64>,
    /// The event's data.
    pub data: Value,
}

/// An open stream of server-sent events.
#[derive(Debug)]
pub struct Events {
    stream: BufReader<TcpStream>,
    pending: String,
}

impl Events {
    /// The next event within `patience`.
    ///
    /// # Errors
    /// If no event arrives in time or the stream ends.
    pub fn next(&mut self, patience: Duration) -> io::Result<Sent> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(end) = self.pending.find("\n\n") {
                let block: String = self.pending.drain(..end + 2).collect();
                let field = |name: &str| {
                    block.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(": ").map(str::to_owned))
                };
                let Some(data) = field("data") else { continue };
                let data = serde_json::from_str(&data).map_err(io::Error::other)?;
                return Ok(Sent {
                    name: field("event").unwrap_or_default(),
                    id: field("id").and_then(|id| id.parse().ok()),
                    data,
                });
            }
            // Keep-alive messages in between must not prolong the wait.
            let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            self.stream.get_ref().set_read_timeout(Some(left))?;
            match chunk(&mut self.stream)? {
                Some(bytes) => self.pending.push_str(&String::from_utf8_lossy(&bytes)),
                None => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the stream ended")),
            }
        }
    }
}

fn line(stream: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}

fn head(stream: &mut BufReader<TcpStream>) -> io::Result<(u16, Vec<String>)> {
    let first = line(stream)?;
    let status = first.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(|| io::Error::other(first))?;
    let mut headers = Vec::new();
    loop {
        match line(stream)? {
            end if end.is_empty() => return Ok((status, headers)),
            header => headers.push(header),
        }
    }
}

fn header<'h>(headers: &'h [String], name: &str) -> Option<&'h str> {
    headers.iter().find_map(|h| h.split_once(':').filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.trim()))
}

fn is_chunked(headers: &[String]) -> bool {
    header(headers, "transfer-encoding").is_some_and(|v| v.contains("chunked"))
}

/// The next chunk; `None` after the last.
fn chunk(stream: &mut BufReader<TcpStream>) -> io::Result<Option<Vec<u8>>> {
    let size = line(stream)?;
    let size = usize::from_str_radix(size.split(';').next().unwrap_or_default(), 16).map_err(io::Error::other)?;
    let mut bytes = vec![0; size];
    stream.read_exact(&mut bytes)?;
    line(stream)?;
    Ok((size > 0).then_some(bytes))
}
