//! Sessions: `sessions/<folder>/<time>_<session id>.jsonl`, one entry per line, appended.
//!
//! Properties of the format that a reader must handle:
//! - Entries form a tree. An entry that does not follow the last one shows that the user went back (`session.forked`
//!   from the session itself, like a rewind); emitted events are not retracted. A move of the leaf becomes visible only
//!   when an entry is appended there: pi does not record it. Our own sessions do ([`LEAF_TYPE`]).
//! - After an unreadable line, an entry follows an unknown one. That is not a step back.
//! - Ids of entries are 8 hex digits and unique within one file only. Combined with its time, an entry is the same
//!   everywhere: a fork's file begins with copies that keep both. Entries older than the header are such copies and are
//!   attributed to the parent session, so that the order in which the files are read does not matter. Entries that are
//!   older even than the parent session were already copies in the parent's file. They are ignored, because the file they
//!   come from contains them.
//! - Version 1 has no ids. When pi opens such a file it rewrites it with ids, and its entries are emitted again.
//! - oh-my-pi's file begins with its title, in a line before the header that is overwritten in place.

use std::sync::Arc;

use events::{
    Annotation, Identity, NewEvent, Payload, Provider, Repeat, SessionForked, SessionStarted, StartKind, Timestamp,
    Topic,
};
use session_tree::entry::LEAF_TYPE;

use super::{
    entry::EntryWriter,
    record::{self, Line, Message, shape, text},
};
use crate::pi::state::PiState;
use tailer::decode::{Decoded, Decoder, Malformed, Record, line_identity};

/// The block number of a step back's identity, so that it differs from the other events of the entry.
const STEP_BACK: u32 = 9_000;

/// Decodes one session's file.
#[derive(Debug)]
pub struct PiDecoder {
    provider: Provider,
    session: Arc<str>,
    carried: PiState,
}

impl PiDecoder {
    /// A decoder for the file at `path` that continues from `state`. Our own sessions have the same format as pi's
    /// (`provider` says whose the file is). An unreadable state is ignored.
    #[must_use]
    pub fn new(provider: Provider, path: &str, state: Option<&str>) -> Self {
        let carried: PiState = state.and_then(|s| serde_json::from_str(s).ok()).unwrap_or_default();
        let session = carried.session.as_deref().map_or_else(|| Arc::from(named(path).1), Arc::from);
        Self { provider, session, carried }
    }

    fn title(&mut self, line: &Line<'_>, record: &Record<'_>, out: &mut Decoded) {
        let Some(title) = record::words(line.title) else { return };
        if self.carried.session.is_none() {
            self.carried.title = Some(title);
            return;
        }
        self.put_title(title, record, out);
    }

    fn put_title(&self, value: String, record: &Record<'_>, out: &mut Decoded) {
        let identity = Identity::of(self.provider, "title", &[self.session.as_bytes(), value.as_bytes()]);
        out.push(out.event(record, &self.session, identity, Annotation { topic: Topic::Title, value }));
    }

    fn header(&mut self, line: &Line<'_>, record: &Record<'_>, out: &mut Decoded) {
        let id = text(line.id);
        if self.carried.session.is_some() {
            // pi uses the first header and ignores any other.
            if id.as_deref() != Some(&*self.session) {
                let identity = line_identity(self.provider, &self.session, record.bytes, 0);
                out.unrecognized(record, &self.session, identity, "session", None);
            }
            return;
        }
        if let Some(id) = id {
            self.session = Arc::from(&*id);
        }
        self.carried.session = Some(self.session.to_string());
        let at = text(line.timestamp).as_deref().and_then(Timestamp::parse);
        let parent = record::words(line.parent_session);
        let started = SessionStarted {
            how: if parent.is_some() { StartKind::Fork } else { StartKind::New },
            cwd: record::words(line.cwd),
            ..SessionStarted::default()
        };
        let session = Arc::clone(&self.session);
        let own = |what: &str, other: &str| Identity::of(self.provider, what, &[session.as_bytes(), other.as_bytes()]);
        let event = out.event(record, &session, own("started", ""), started);
        out.push(NewEvent { created_at: at, ..event });
        if let Some(path) = parent {
            let (parent_began, parent) = named(&path);
            let fork = SessionForked { from: parent.to_owned(), ..SessionForked::default() };
            let event = out.event(record, &session, own("forked", parent), fork);
            out.push(NewEvent { created_at: at, ..event });
            self.carried.began = at;
            self.carried.parent = Some(parent.to_owned());
            self.carried.parent_began = parent_began;
        }
        if let Some(title) = self.carried.title.take() {
            self.put_title(title, record, out);
        }
    }

    fn entry(&mut self, kind: &str, line: &Line<'_>, record: &Record<'_>, out: &mut Decoded) {
        let message: Message<'_> = shape(line.message);
        let written = text(line.timestamp);
        let at = written.as_deref().and_then(Timestamp::parse).or_else(|| {
            record::count(message.timestamp).and_then(|ms| ms.try_into().ok()).map(Timestamp::from_millisecond)
        });
        let older = |than: Option<Timestamp>| at.zip(than).is_some_and(|(at, than)| at < than);
        let is_copy = older(self.carried.began);
        let owner: Arc<str> = match self.carried.parent.as_deref().filter(|_| is_copy) {
            Some(parent) => Arc::from(parent),
            None => Arc::clone(&self.session),
        };
        let id = text(line.id);
        let name = id.as_deref().map(|id| format!("{id}/{}", written.as_deref().unwrap_or_default()));
        let mut said = EntryWriter { provider: self.provider, owner, name, at, record, out };
        if !is_copy {
            self.step_back(line, &mut said);
        }
        // A fork creates a new label, with the time of the label it copies.
        let is_told_elsewhere = is_copy && (older(self.carried.parent_began) || kind == "label");
        let leaf = (text(line.custom_type).as_deref() == Some(LEAF_TYPE) && kind == "custom").then(|| said.leaf(line));
        if !is_told_elsewhere && leaf.is_none() {
            said.entry(kind, line, &message, &mut self.carried);
        }
        self.carried.begun = true;
        self.carried.last = id.as_deref().map(str::to_owned);
        self.carried.leaf = match leaf {
            Some(moved) => moved,
            None => self.carried.last.clone(),
        };
    }

    /// Emits a step back if an entry does not follow the last one.
    fn step_back(&mut self, line: &Line<'_>, said: &mut EntryWriter<'_, '_>) {
        let carried = &mut self.carried;
        let parent = text(line.parent_id).filter(|id| !id.is_empty());
        let follows = [&carried.leaf, &carried.last].into_iter().any(|id| id.as_deref() == parent.as_deref());
        // Lines end with one or two bytes. A larger gap was an unreadable line.
        let unread = said.record.offset > carried.end + 2;
        if !carried.begun || line.id.is_none() || follows || unread {
            return;
        }
        carried.working = false;
        let at = parent.map(|id| id.into_owned());
        let taken_back = carried.prompts.go_back(at.as_deref().unwrap_or_default());
        let fork = SessionForked { from: self.session.to_string(), at, taken_back, turns: None };
        said.put(STEP_BACK, fork, None);
    }
}

impl Decoder for PiDecoder {
    fn record(&mut self, record: Record<'_>, out: &mut Decoded) -> Result<(), Malformed> {
        let line = record::line(record.bytes)?;
        let kind = text(line.kind).unwrap_or_default();
        match &*kind {
            "title" if !self.carried.begun => self.title(&line, &record, out),
            "session" => self.header(&line, &record, out),
            kind => self.entry(kind, &line, &record, out),
        }
        self.carried.end = record.offset + record.bytes.len() as u64;
        Ok(())
    }

    fn state(&self) -> Option<String> {
        serde_json::to_string(&self.carried).ok()
    }

    fn session(&self) -> Option<&Arc<str>> {
        Some(&self.session)
    }
}

impl EntryWriter<'_, '_> {
    /// Emits an event about the entry; `block` distinguishes it from others of the same entry.
    pub(super) fn put(&mut self, block: u32, payload: impl Into<Payload>, text: Option<String>) {
        let (identity, repeat) = match &self.name {
            Some(name) => (Identity::record(self.provider, name, block), Repeat::Unique),
            None => (line_identity(self.provider, &self.owner, self.record.bytes, block), Repeat::Next),
        };
        let event = self.out.event(self.record, &self.owner, identity, payload);
        self.out.push(NewEvent { repeat, created_at: self.at, text, ..event });
    }
}

/// The start time and id of a session according to its file's name: `2026-11-20T04-39-18-871Z_<id>.jsonl`. The argument
/// may also be only an id.
fn named(path: &str) -> (Option<Timestamp>, &str) {
    let stem = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let stem = stem.strip_suffix(".jsonl").unwrap_or(stem);
    let Some((time, id)) = stem.split_once('_').filter(|(_, id)| !id.is_empty()) else { return (None, stem) };
    let (day, clock) = time.split_once('T').unwrap_or((time, ""));
    let parts: Vec<&str> = clock.trim_end_matches('Z').split('-').collect();
    let began = match parts[..] {
        [h, m, s, ms] => Timestamp::parse(&format!("{day}T{h}:{m}:{s}.{ms}Z")),
        _ => None,
    };
    (began, id)
}
