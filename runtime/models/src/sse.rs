//! Reads server-sent events from bytes that come in any pieces.
//!
//! Follows <https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation>: lines end with
//! LF, CR or CR LF, a byte order mark at the beginning is skipped, an empty line ends an event, comments and unknown
//! fields are skipped; `id` and `retry` are not used. Unlike there, the stream's end ends an event too: some servers
//! leave out the empty line behind the last.
//!
//! Our own because its limits stand in front of the memory it takes, and because it is pure: the published crate
//! (sse-stream) wraps a body, and the version that rmcp needs is another one than the newest.

/// Most bytes of a line.
pub(crate) const LINE_BYTES: usize = 8 << 20;
/// Most bytes of an event.
pub(crate) const EVENT_BYTES: usize = 16 << 20;

/// An event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// Its name; empty when it has none.
    pub name: String,
    /// Its data, lines joined by LF.
    pub data: String,
}

/// Why a stream cannot be read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// A line longer than 8 MiB.
    #[error("a line of the stream is longer than {} MiB", LINE_BYTES >> 20)]
    LongLine,
    /// An event longer than 16 MiB.
    #[error("an event of the stream is longer than {} MiB", EVENT_BYTES >> 20)]
    LongEvent,
}

/// Collects bytes into events.
#[derive(Debug, Default)]
pub struct SseReader {
    line: Vec<u8>,
    /// The last byte was CR: a LF that follows belongs to it.
    after_cr: bool,
    /// A line has ended, so no byte order mark follows.
    began: bool,
    name: String,
    data: String,
    has_data: bool,
}

impl SseReader {
    /// Takes the next bytes and appends the events that are complete to `out`.
    ///
    /// # Errors
    /// When a line or an event is too long. Events complete before that are in `out`.
    pub fn read(&mut self, mut bytes: &[u8], out: &mut Vec<SseEvent>) -> Result<(), SseError> {
        while let Some(&first) = bytes.first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            if self.line.len() + piece.len() > LINE_BYTES {
                return Err(SseError::LongLine);
            }
            self.line.extend_from_slice(piece);
            let Some(end) = end else { return Ok(()) };
            self.after_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            let line = std::mem::take(&mut self.line);
            self.take_line(&line, out)?;
        }
        Ok(())
    }

    /// The stream is at its end: what has come of an event is one.
    ///
    /// # Errors
    /// When the event is too long.
    pub fn finish(&mut self, out: &mut Vec<SseEvent>) -> Result<(), SseError> {
        let line = std::mem::take(&mut self.line);
        self.take_line(&line, out)?;
        self.take_line(b"", out)
    }

    fn take_line(&mut self, line: &[u8], out: &mut Vec<SseEvent>) -> Result<(), SseError> {
        let line = if std::mem::replace(&mut self.began, true) {
            line
        } else {
            line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
        };
        if line.is_empty() {
            let (name, data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
            if std::mem::take(&mut self.has_data) {
                out.push(SseEvent { name, data });
            }
            return Ok(());
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (field, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value));
        match field {
            b"event" => self.name = value.into_owned(),
            b"data" => {
                if self.data.len() + value.len() + 1 > EVENT_BYTES {
                    return Err(SseError::LongEvent);
                }
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push('\n');
                }
                self.data.push_str(&value);
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
