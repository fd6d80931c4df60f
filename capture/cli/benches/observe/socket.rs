//! A minimal WebSocket client, used for capture and for its limit.

use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

/// An open WebSocket.
pub(crate) struct Socket {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// Number of bytes at the front of `buffer` that were returned to the caller.
    used: usize,
    closed: bool,
}

impl Socket {
    pub(crate) fn connect(address: &str, token: &str, path: &str) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let (mut answer, mut byte) = (Vec::new(), [0]);
        while !answer.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).unwrap();
            answer.push(byte[0]);
        }
        assert!(answer.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&answer));
        Self { stream, buffer: Vec::new(), used: 0, closed: false }
    }

    /// Whether the server closed it.
    pub(crate) fn closed(&self) -> bool {
        self.closed
    }

    /// Sends a text.
    pub(crate) fn say(&mut self, text: &str) {
        self.send(1, text.as_bytes());
    }

    fn send(&mut self, opcode: u8, payload: &[u8]) {
        // Masked with zeros, which leaves the payload unchanged.
        let mut frame = vec![0x80 | opcode];
        match payload.len() {
            length @ 0..126 => frame.push(0x80 | length as u8),
            length => {
                frame.push(0x80 | 126);
                frame.extend((length as u16).to_be_bytes());
            }
        }
        frame.extend([0; 4]);
        frame.extend(payload);
        self.stream.write_all(&frame).unwrap();
    }

    /// The next text and its arrival time; `None` if none arrived before `deadline` or the server closed the
    /// connection.
    pub(crate) fn next(&mut self, deadline: Instant) -> Option<(Instant, &[u8])> {
        self.buffer.drain(..std::mem::take(&mut self.used));
        let mut read_at = Instant::now();
        loop {
            match whole(&self.buffer) {
                Some((1, head, length)) => {
                    self.used = head + length;
                    return Some((read_at, &self.buffer[head..head + length]));
                }
                Some((opcode, head, length)) => {
                    let payload: Vec<u8> = self.buffer.drain(..head + length).skip(head).collect();
                    match opcode {
                        8 => {
                            self.closed = true;
                            return None;
                        }
                        9 => self.send(10, &payload),
                        _ => {}
                    }
                }
                None => {
                    let patience = deadline.saturating_duration_since(Instant::now()).max(Duration::from_micros(1));
                    self.stream.set_read_timeout(Some(patience)).unwrap();
                    let start = self.buffer.len();
                    self.buffer.resize(start + (64 << 10), 0);
                    let read = self.stream.read(&mut self.buffer[start..]);
                    read_at = Instant::now();
                    self.buffer.truncate(start + read.as_ref().map_or(0, |n| *n));
                    match read {
                        Ok(n) if n > 0 => {}
                        Err(error) if error.kind() == ErrorKind::Interrupted => {}
                        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                            return None;
                        }
                        Ok(_) | Err(_) => {
                            self.closed = true;
                            return None;
                        }
                    }
                }
            }
        }
    }
}

/// The opcode, header length and payload length, once a complete frame is buffered.
fn whole(buffer: &[u8]) -> Option<(u8, usize, usize)> {
    let (first, second) = (*buffer.first()?, *buffer.get(1)?);
    let (head, length) = match second & 0x7f {
        126 => (4, usize::from(u16::from_be_bytes(buffer.get(2..4)?.try_into().ok()?))),
        127 => (10, usize::try_from(u64::from_be_bytes(buffer.get(2..10)?.try_into().ok()?)).ok()?),
        short => (2, usize::from(short)),
    };
    (buffer.len() >= head + length).then_some((first & 0x0f, head, length))
}
