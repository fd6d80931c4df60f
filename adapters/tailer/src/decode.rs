//! The interface between reading a file and decoding it.
//!
//! A [`Decoder`] gets the records of one file in order and converts them to events. It does no I/O and reads no clock.
//! [`feed`] passes one line to it: it repairs what can be repaired, finds the records in a damaged line, and emits the
//! remaining bytes as `unrecognized`.

use std::{borrow::Cow, sync::Arc};

use events::{
    Confidence, Identity, NewEvent, Origin, Payload, Provider, Repeat, Source, Timestamp, Unrecognized, id::Hex,
};

/// One whole line of a file (or a whole file, for formats that are rewritten whole).
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// The bytes, without the newline.
    pub bytes: &'a [u8],
    /// Their offset in the file.
    pub offset: u64,
    /// When they were read, by capture's clock.
    pub observed_at: Timestamp,
}

/// The bytes are not a record of the format.
#[derive(Debug)]
pub struct Malformed(pub serde_json::Error);

impl From<serde_json::Error> for Malformed {
    fn from(error: serde_json::Error) -> Self {
        Self(error)
    }
}

/// Decodes the records of one file of one provider.
pub trait Decoder: Send {
    /// Decodes one record. On an error, it must not have emitted anything or changed its state, because the caller
    /// tries again with repaired bytes.
    ///
    /// # Errors
    /// If the bytes are not a record. A well-formed record of an unknown kind is not an error but `unrecognized`.
    fn record(&mut self, record: Record<'_>, out: &mut Decoded) -> Result<(), Malformed>;

    /// Called after all complete records of the file were passed: the decoder must emit a record that it was holding
    /// back until the next one explains it.
    fn pause(&mut self, _out: &mut Decoded) {}

    /// Called when the file disappeared from disk. If it returns, a new decoder is created.
    fn removed(&mut self, _observed_at: Timestamp, _out: &mut Decoded) {}

    /// The state needed to continue with the next record after a restart, as JSON.
    fn state(&self) -> Option<String> {
        None
    }

    /// The provider's id of the session this file belongs to, once known.
    fn session(&self) -> Option<&Arc<str>>;
}

/// A line of which only position and hash are stored.
#[derive(Debug, Clone, Copy)]
pub struct Stub<'a> {
    /// `oversized` or `damaged`.
    pub raw_kind: &'a str,
    /// The reason why it was not decoded.
    pub issue: &'a str,
    /// Where it starts in the file, bytes.
    pub offset: u64,
    /// Its length without the newline, bytes.
    pub length: u64,
    /// BLAKE3 of its bytes.
    pub hash: [u8; 32],
}

/// The output of a decoder for one file.
#[derive(Debug)]
pub struct Decoded {
    /// The file with the records.
    path: Arc<str>,
    generation: u32,
    provider: Provider,
    /// Events, in the order of the records.
    pub events: Vec<NewEvent>,
    /// Number of records that were damaged or unknown.
    pub issues: u64,
}

impl Decoded {
    /// Creates an empty output for a file.
    #[must_use]
    pub fn new(provider: Provider, path: Arc<str>, generation: u32) -> Self {
        Self { path, generation, provider, events: Vec::new(), issues: 0 }
    }

    /// Creates an event for `record`; set its other fields and [`push`] it.
    ///
    /// [`push`]: Self::push
    #[must_use]
    pub fn event(
        &self,
        record: &Record<'_>,
        session: &Arc<str>,
        identity: Identity,
        payload: impl Into<Payload>,
    ) -> NewEvent {
        NewEvent {
            provider: self.provider,
            provider_session_id: Arc::clone(session),
            identity,
            repeat: Repeat::Unique,
            source: Source::Transcript,
            created_at: None,
            observed_at: record.observed_at,
            parent: None,
            agent_id: None,
            confidence: Confidence::High,
            severity: None,
            text: None,
            payload: payload.into(),
            origin: self.origin(record),
        }
    }

    /// The position of a record's bytes.
    #[must_use]
    pub fn origin(&self, record: &Record<'_>) -> Origin {
        Origin::File {
            path: Arc::clone(&self.path),
            generation: self.generation,
            offset: record.offset,
            length: record.bytes.len() as u64,
        }
    }

    /// Emits an event.
    pub fn push(&mut self, event: NewEvent) {
        self.events.push(event);
    }

    /// Emits a record of a kind that this decoder does not know. This is not an issue, because agents add kinds.
    pub fn unrecognized(
        &mut self,
        record: &Record<'_>,
        session: &Arc<str>,
        identity: Identity,
        raw_kind: &str,
        created_at: Option<Timestamp>,
    ) {
        let mut event = self.event(
            record,
            session,
            identity,
            Unrecognized {
                raw_kind: raw_kind.chars().take(200).collect(),
                issue: None,
                length: record.bytes.len() as u64,
                hash: None,
            },
        );
        event.created_at = created_at;
        event.text = Some(String::from_utf8_lossy(record.bytes).into_owned());
        self.push(event);
    }

    /// Emits a stub for a line that was not decoded: the position and hash of its bytes, never the text. Counts as an
    /// issue. An equal stub is a copy, because records contain ids and times.
    pub fn stub(&mut self, stub: &Stub<'_>, observed_at: Timestamp, session: &Arc<str>) {
        self.issues += 1;
        let record = Record { bytes: &[], offset: stub.offset, observed_at };
        let hash = Hex(&stub.hash[..16]).to_string();
        let identity = Identity::of(self.provider, "stub", &[session.as_bytes(), &stub.hash]);
        let mut event = self.event(
            &record,
            session,
            identity,
            Unrecognized {
                raw_kind: stub.raw_kind.into(),
                issue: Some(stub.issue.into()),
                length: stub.length,
                hash: Some(hash),
            },
        );
        event.confidence = Confidence::Low;
        if let Origin::File { length, .. } = &mut event.origin {
            *length = stub.length;
        }
        self.push(event);
    }

    fn damaged(&mut self, bytes: &[u8], offset: u64, observed_at: Timestamp, session: &Arc<str>, issue: String) {
        self.issues += 1;
        let record = Record { bytes, offset, observed_at };
        let identity = line_identity(self.provider, session, bytes, 0);
        let mut event = self.event(
            &record,
            session,
            identity,
            Unrecognized { raw_kind: "damaged".into(), issue: Some(issue), length: bytes.len() as u64, hash: None },
        );
        event.repeat = Repeat::Next;
        event.confidence = Confidence::Low;
        event.text = Some(String::from_utf8_lossy(bytes).into_owned());
        self.push(event);
    }
}

/// The identity of the `index`-th event of a record without an id. Events with it must be emitted with
/// [`Repeat::Next`].
#[must_use]
pub fn line_identity(provider: Provider, session: &str, bytes: &[u8], index: u32) -> Identity {
    Identity::of(provider, "line", &[session.as_bytes(), bytes, &index.to_le_bytes()])
}

/// Maximum number of positions in a damaged line that are tried as the start of a record.
const SALVAGE_TRIES: usize = 256;
/// Maximum number of bytes read in these attempts.
const SALVAGE_BYTES: usize = 256 << 20;

/// Passes one line to a decoder. A line that is not a record is repaired (NUL bytes at its ends, invalid UTF-8, lone
/// surrogates), then searched for records glued together in it. The remaining bytes are emitted as `unrecognized` with
/// kind `damaged` and counted as an issue.
pub fn feed(decoder: &mut dyn Decoder, line: Record<'_>, out: &mut Decoded) {
    let (bytes, skipped) = trim(line.bytes);
    if bytes.is_empty() {
        if skipped > 0 && line.bytes.contains(&0) {
            out.issues += 1;
        }
        return;
    }
    let after = &line.bytes[skipped + bytes.len()..];
    if line.bytes[..skipped].contains(&0) || after.contains(&0) {
        out.issues += 1;
    }
    let record = Record { bytes, offset: line.offset + skipped as u64, observed_at: line.observed_at };
    let error = match attempt(decoder, record, out) {
        Ok(()) => return,
        Err(error) => error,
    };
    salvage(decoder, record, &error, out);
}

/// Removes white space, a byte order mark and NUL bytes around a record; also returns the number of bytes removed from
/// the front.
fn trim(bytes: &[u8]) -> (&[u8], usize) {
    let blank = |b: &u8| matches!(b, 0 | b' ' | b'\t' | b'\r' | b'\n');
    let start = bytes.iter().position(|b| !blank(b)).unwrap_or(bytes.len());
    let rest = &bytes[start..];
    let (rest, start) = match rest.strip_prefix(b"\xef\xbb\xbf") {
        Some(after) => (after, start + 3),
        None => (rest, start),
    };
    let end = rest.iter().rposition(|b| !blank(b)).map_or(0, |e| e + 1);
    (&rest[..end], start)
}

fn attempt(decoder: &mut dyn Decoder, record: Record<'_>, out: &mut Decoded) -> Result<(), String> {
    match decoder.record(record, out) {
        Ok(()) => Ok(()),
        Err(Malformed(error)) => {
            if let Some(repaired) = repair(record.bytes)
                && decoder.record(Record { bytes: &repaired, ..record }, out).is_ok()
            {
                out.issues += 1;
                return Ok(());
            }
            Err(error.to_string())
        }
    }
}

/// Makes bytes valid UTF-8 and replaces lone surrogate escapes; `None` if nothing needed repair.
fn repair(bytes: &[u8]) -> Option<Cow<'_, [u8]>> {
    let text = String::from_utf8_lossy(bytes);
    let changed = matches!(text, Cow::Owned(_));
    match replace_lone_surrogates(&text) {
        Some(fixed) => Some(Cow::Owned(fixed.into_bytes())),
        None if changed => Some(Cow::Owned(text.into_owned().into_bytes())),
        None => None,
    }
}

/// Replaces `\ud800`…`\udfff` escapes that are not a pair by `\ufffd`.
fn replace_lone_surrogates(text: &str) -> Option<String> {
    let unit = |at: usize| -> Option<u16> {
        let escape = text.as_bytes().get(at..at + 6)?;
        if &escape[..2] != b"\\u" {
            return None;
        }
        u16::from_str_radix(std::str::from_utf8(&escape[2..]).ok()?, 16).ok()
    };
    let bytes = text.as_bytes();
    let mut lone = Vec::new();
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &bytes[at..]) {
        let here = at + found;
        match unit(here) {
            Some(0xd800..=0xdbff) => {
                if matches!(unit(here + 6), Some(0xdc00..=0xdfff)) {
                    at = here + 12;
                } else {
                    lone.push(here);
                    at = here + 6;
                }
            }
            Some(0xdc00..=0xdfff) => {
                lone.push(here);
                at = here + 6;
            }
            Some(_) => at = here + 6,
            None => at = (here + 2).min(bytes.len()),
        }
    }
    if lone.is_empty() {
        return None;
    }
    let mut fixed = String::with_capacity(text.len());
    let mut from = 0;
    for here in lone {
        fixed.push_str(&text[from..here]);
        fixed.push_str("\\ufffd");
        from = here + 6;
    }
    fixed.push_str(&text[from..]);
    Some(fixed)
}

/// Finds the records in a damaged line: complete ones in sequence (`}{`), and after an incomplete one the next that
/// parses completely.
fn salvage(decoder: &mut dyn Decoder, line: Record<'_>, error: &str, out: &mut Decoded) {
    let unknown: Arc<str> = Arc::from("");
    let mut at = 0;
    let mut lost_from = 0;
    let mut tries = 0;
    let mut looked_at = 0;
    let give_up = |decoder: &dyn Decoder, from: usize, to: usize, out: &mut Decoded| {
        let (lost, skipped) = trim(&line.bytes[from..to]);
        if !lost.is_empty() {
            let session = decoder.session().cloned().unwrap_or_else(|| Arc::clone(&unknown));
            out.damaged(lost, line.offset + (from + skipped) as u64, line.observed_at, &session, error.to_owned());
        }
    };
    while let Some(found) = memchr::memmem::find(&line.bytes[at..], b"{\"") {
        let start = at + found;
        tries += 1;
        if tries > SALVAGE_TRIES || looked_at > SALVAGE_BYTES {
            break;
        }
        let length = match whole_value(&line.bytes[start..]) {
            Ok(length) => length,
            Err(looked) => {
                looked_at += looked;
                at = start + 2;
                continue;
            }
        };
        let end = start + length;
        // A small object inside an incomplete record is complete too; a record ends where the line ends or the next
        // record begins.
        let (after, _) = trim(&line.bytes[end..]);
        if !after.is_empty() && !after.starts_with(b"{\"") {
            at = start + 2;
            continue;
        }
        let record = Record { bytes: &line.bytes[start..end], offset: line.offset + start as u64, ..line };
        let before = out.events.len();
        if (start > 0 || end < line.bytes.len()) && attempt(decoder, record, out).is_ok() {
            // The lost bytes precede the record, in the log too.
            let saved = out.events.split_off(before);
            give_up(decoder, lost_from, start, out);
            out.events.extend(saved);
            lost_from = end;
            at = end;
        } else {
            at = start + 2;
        }
    }
    give_up(decoder, lost_from, line.bytes.len(), out);
}

/// Length of the JSON value at the start of `bytes`; without a complete value, the number of bytes read.
fn whole_value(bytes: &[u8]) -> Result<usize, usize> {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<serde::de::IgnoredAny>();
    match values.next() {
        Some(Ok(_)) => Ok(values.byte_offset()),
        Some(Err(error)) => Err(error.column()),
        None => Err(0),
    }
}

#[cfg(test)]
mod tests;
