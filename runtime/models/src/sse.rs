//! Reads server-sent events from arbitrarily split bytes.
//!
//! Follows <https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation>: lines end with
//! LF, CR or CR LF, a byte order mark at the start is skipped, an empty line ends an event, comments and unknown fields
//! are skipped; `id` and `retry` are not used. Unlike in the standard, the end of the stream also ends an event: some
//! servers omit the last empty line.
//!
//! Written for this project because it limits memory and does no I/O: the published crate (sse-stream) wraps a body,
//! and rmcp needs a version other than the newest.

/// Maximum length of a line, in bytes.
pub(crate) const LINE_BYTES: usize = 8 << 20;
/// Maximum size of an event, in bytes.
pub(crate) const EVENT_BYTES: usize = 16 << 20;

/// An event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// Its name; empty if it has none.
    pub name: String,
    /// Its data, with lines joined by LF.
    pub data: String,
}

/// Why reading a stream failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// A line is longer than 8 MiB.
    #[error("a line of the stream is longer than {} MiB", LINE_BYTES >> 20)]
    LongLine,
    /// An event is longer than 16 MiB.
    #[error("an event of the stream is longer than {} MiB", EVENT_BYTES >> 20)]
    LongEvent,
}

/// Collects bytes into events.
#[derive(Debug, Default)]
pub struct SseReader {
    line: Vec<u8>,
    /// Whether the last byte was CR: a following LF belongs to it.
    after_cr: bool,
    /// Whether a line has ended, so that a byte order mark is no longer skipped.
    began: bool,
    name: String,
    data: String,
    has_data: bool,
}

impl SseReader {
    /// Reads the next bytes and appends complete events to `out`.
    ///
    /// # Errors
    /// If a line or an event is too long. Events completed before are in `out`.
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

    /// Handles the end of the stream: an unterminated event counts as complete.
    ///
    /// # Errors
    /// If the event is too long.
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
