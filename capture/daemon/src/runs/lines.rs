//! Reads lines from a terminal host.

use host_protocol::frame::HostMessage;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

/// Maximum length of a line from a host, bytes: a picture of a large screen fits.
const LINE_BYTES: u64 = 4 << 20;

/// Lines from a host, each of bounded length.
pub(super) struct BoundedLines<R> {
    read: BufReader<R>,
    line: Vec<u8>,
}

impl<R: AsyncRead + Unpin> BoundedLines<R> {
    pub(super) fn new(read: R) -> Self {
        Self { read: BufReader::new(read), line: Vec::new() }
    }

    /// The next line that can be parsed; `None` at the end. Cancel safe: the future may be dropped and the method
    /// called again.
    pub(super) async fn next(&mut self) -> Option<HostMessage> {
        loop {
            let room = LINE_BYTES.saturating_sub(self.line.len() as u64);
            let read = (&mut self.read).take(room).read_until(b'\n', &mut self.line).await.ok()?;
            if self.line.last() != Some(&b'\n') {
                if read == 0 {
                    return None;
                }
                continue;
            }
            let understood = serde_json::from_slice(&self.line);
            self.line.clear();
            match understood {
                Ok(up) => return Some(up),
                Err(error) => tracing::debug!(%error, "cannot decode a message from a terminal host"),
            }
        }
    }
}
