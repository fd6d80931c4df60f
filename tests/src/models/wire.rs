//! The server side of HTTP/1.1, limited to what the agents need: one request per connection, bodies of known length or
//! chunked, answers sent at once or streamed in chunks.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;

/// Longer than any request of an agent.
const MAX_BODY: usize = 64 << 20;

/// A request.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: String,
    /// Including its query.
    pub(super) path: String,
    /// `Null` if it is not JSON.
    pub(super) body: Value,
    /// The raw body.
    pub(super) bytes: Vec<u8>,
}

/// A connection of a client.
#[derive(Debug)]
pub(super) struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        stream.set_write_timeout(Some(Duration::from_secs(20)))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Reads the request.
    pub(super) fn read(&mut self) -> io::Result<Request> {
        let first = self.line()?;
        let mut words = first.split(' ').map(str::to_owned);
        let (Some(method), Some(path)) = (words.next(), words.next()) else { return Err(io::Error::other(first)) };
        let (mut length, mut chunked) = (0, false);
        loop {
            let header = self.line()?;
            if header.is_empty() {
                break;
            }
            let Some((name, value)) = header.split_once(':') else { continue };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().map_err(io::Error::other)?,
                "transfer-encoding" => chunked = value.contains("chunked"),
                "expect" => self.stream.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?,
                _ => {}
            }
        }
        let mut body = Vec::new();
        if chunked {
            loop {
                let size = usize::from_str_radix(self.line()?.trim(), 16).map_err(io::Error::other)?;
                self.read_into(&mut body, size)?;
                self.line()?;
                if size == 0 {
                    break;
                }
            }
        } else {
            self.read_into(&mut body, length)?;
        }
        Ok(Request { method, path, body: serde_json::from_slice(&body).unwrap_or_default(), bytes: body })
    }

    /// Answers with a complete JSON body.
    pub(super) fn whole(&mut self, status: u16, headers: &[String], body: &Value) -> io::Result<()> {
        let body = body.to_string();
        let mut head = format!("HTTP/1.1 {status} Said\r\ncontent-type: application/json\r\nconnection: close\r\n");
        for header in headers {
            head.push_str(&format!("{header}\r\n"));
        }
        head.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
        self.stream.get_mut().write_all(head.as_bytes())
    }

    /// Answers with an HTML page.
    pub(super) fn page(&mut self, html: &str) -> io::Result<()> {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            html.len()
        );
        self.stream.get_mut().write_all((head + html).as_bytes())
    }

    /// Begins an answer of server-sent events.
    pub(super) fn stream(&mut self) -> io::Result<()> {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n\
                    connection: close\r\ntransfer-encoding: chunked\r\n\r\n";
        self.stream.get_mut().write_all(head.as_bytes())
    }

    /// Sends a piece of the stream.
    pub(super) fn chunk(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.stream.get_mut().write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
    }

    /// Ends the stream.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.stream.get_mut().write_all(b"0\r\n\r\n")
    }

    /// Whether the client hung up.
    pub(super) fn is_gone(&self) -> bool {
        let stream = self.stream.get_ref();
        let readable = poll(&mut [PollFd::new(stream, PollFlags::IN)], Some(&Timespec::default()));
        readable == Ok(1) && !matches!(stream.peek(&mut [0]), Ok(1..))
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.by_ref().take(1 << 16).read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }

    fn read_into(&mut self, body: &mut Vec<u8>, length: usize) -> io::Result<()> {
        if body.len() + length > MAX_BODY {
            return Err(io::Error::other("the request is too long"));
        }
        let from = body.len();
        body.resize(from + length, 0);
        self.stream.read_exact(&mut body[from..])
    }
}
