//! A store written by tests, and its index.

use std::{
    borrow::Cow,
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
    thread::JoinHandle,
    time::Duration,
};

use api::search::{SearchHit, SearchPage, SearchQuery, SearchSort};
use events::{Confidence, Event, EventId, Origin, Payload, Provider, SessionId, Source, Timestamp, TurnId};
use jiff::tz::TimeZone;
use search::{Clock, Pace, SearchError, SearchIndex, SearchRequest};
use store::{About, PackedText, Reader, RemovalKind, SessionRemoval, SessionRow, Writer};

/// The time of the first event.
pub(crate) const FIRST: &str = "2026-11-01T00:00:00.000Z";
/// Longer than any operation takes.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A growing log.
pub(crate) struct Log {
    pub(crate) data: PathBuf,
    writer: Writer,
    sessions: HashMap<String, (SessionRow, SessionId, u64)>,
    pub(crate) position: u64,
    /// The turn of added events.
    pub(crate) turn: Option<TurnId>,
}

impl Log {
    pub(crate) fn open(data: &Path) -> Self {
        let writer = Writer::open(data).unwrap();
        let position = writer.reader().position().unwrap();
        Self { data: data.to_owned(), writer, sessions: HashMap::new(), position, turn: None }
    }

    pub(crate) fn reader(&self) -> Reader {
        self.writer.reader()
    }

    pub(crate) fn begin(&mut self) {
        self.writer.begin().unwrap();
    }

    pub(crate) fn commit(&mut self) -> u64 {
        self.writer.commit().unwrap();
        self.position
    }

    /// Adds an event to a session named `agent/name`, a minute after the previous event.
    pub(crate) fn add(&mut self, session: &str, payload: impl Into<Payload>, text: &str) -> u64 {
        let (agent, _) = session.split_once('/').unwrap();
        let provider: Provider = agent.parse().unwrap();
        let position = self.position + 1;
        let at = Timestamp::parse(FIRST).unwrap().plus_ms(position as i64 * 60_000);
        if !self.sessions.contains_key(session) {
            let id = SessionId::mint(at, provider, session);
            let row = self.writer.add_session(id, provider, session).unwrap();
            self.sessions.insert(session.to_owned(), (row, id, 0));
        }
        let (row, id, sequence) = self.sessions.get_mut(session).unwrap();
        *sequence += 1;
        let mut text = text.to_owned();
        let packed = PackedText::split(&mut text);
        let event = Event {
            position,
            id: EventId::from_bits(u128::from(position)),
            session_id: *id,
            sequence: *sequence,
            provider,
            provider_session_id: Arc::from(session),
            source: Source::Transcript,
            created_at: at,
            observed_at: at,
            turn_id: self.turn,
            parent_id: None,
            agent_id: None,
            confidence: Confidence::High,
            severity: None,
            text: (!text.is_empty()).then_some(text),
            text_ref: packed.as_ref().map(PackedText::reference),
            payload: payload.into(),
            origin: Origin::File { path: "/t.jsonl".into(), generation: 1, offset: position * 100, length: 99 },
            derived: false,
            history: false,
        };
        self.writer.append(*row, &event, packed.as_ref()).unwrap();
        self.position = position;
        position
    }

    /// Adds an event in its own transaction.
    pub(crate) fn append(&mut self, session: &str, payload: impl Into<Payload>, text: &str) -> u64 {
        self.begin();
        self.add(session, payload, text);
        self.commit()
    }

    /// Forgets a session as ingest does: its events are erased later.
    pub(crate) fn forget(&mut self, name: &str) -> SessionId {
        let id = self.session(name);
        let known = self.writer.sessions().unwrap().into_iter().find(|known| known.id == id).unwrap();
        let (kind, about) = (RemovalKind::Forgotten, About::default());
        self.writer.begin().unwrap();
        let removal = SessionRemoval { known: &known, kind, about: &about, at: Timestamp::MIN };
        self.writer.remove_sessions(&[removal]).unwrap();
        self.writer.commit().unwrap();
        id
    }

    /// Erases up to `limit` events of removed sessions; returns the number erased.
    pub(crate) fn erase_events(&mut self, limit: usize) -> usize {
        let pending = self.writer.reader().erasing().unwrap();
        let rows: Vec<SessionRow> = pending.iter().map(|pending| pending.row).collect();
        self.writer.erase_events(&rows, limit).unwrap()
    }

    /// Marks removed sessions as erased everywhere.
    pub(crate) fn finish_erasing(&mut self) {
        let pending = self.writer.reader().erasing().unwrap();
        let erased: Vec<_> = pending.iter().map(|pending| (pending.row, pending.kind)).collect();
        self.writer.finish_erasing(&erased).unwrap();
    }

    pub(crate) fn session(&self, name: &str) -> SessionId {
        self.sessions[name].1
    }

    pub(crate) fn index(&self) -> Running {
        Running::start(&self.data, self.reader())
    }

    /// An index that contains everything.
    pub(crate) fn full_index(&self) -> Running {
        let index = self.index();
        assert!(index.index.wait_for(self.position, LONG), "{:?}", index.index.status());
        index
    }
}

/// An index and the thread that feeds it.
pub(crate) struct Running {
    pub(crate) index: SearchIndex,
    reader: Reader,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    pub(crate) fn start(data: &Path, reader: Reader) -> Self {
        Self::at_pace(data, reader, Pace::default())
    }

    pub(crate) fn at_pace(data: &Path, reader: Reader, pace: Pace) -> Self {
        let (index, mut feeder) = SearchIndex::open_at_pace(data.join("index"), reader.clone(), pace);
        let thread = std::thread::spawn(move || feeder.run());
        Self { index, reader, thread: Some(thread) }
    }

    pub(crate) fn search(&self, query: &SearchQuery) -> Result<SearchPage, SearchError> {
        let now = Timestamp::parse("2026-11-20T00:00:00.000Z").unwrap();
        let request = SearchRequest::new(query, None, &Clock { now, zone: TimeZone::UTC })?;
        self.index.search(&request, &self.reader, &redacted)
    }

    /// The first page of a query's hits.
    pub(crate) fn page(&self, q: &str, sort: SearchSort, limit: usize) -> SearchPage {
        let limit = Some(api::list::Limit::of(limit));
        self.search(&SearchQuery { q: Some(q.into()), sort: Some(sort), limit, ..SearchQuery::default() }).unwrap()
    }

    /// The hits of a query, by relevance.
    pub(crate) fn hits(&self, q: &str) -> Vec<SearchHit> {
        let query =
            SearchQuery { q: Some(q.into()), limit: Some(api::list::Limit::of(1000)), ..SearchQuery::default() };
        let page = self.search(&query).unwrap_or_else(|error| panic!("{q}: {error}"));
        assert_eq!(page.matches, page.hits.len() as u64, "{q}");
        page.hits
    }

    /// The positions of a query's hits, in order.
    pub(crate) fn positions(&self, q: &str) -> Vec<u64> {
        let mut positions: Vec<_> = self.hits(q).iter().map(|hit| hit.position).collect();
        positions.sort_unstable();
        positions
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.index.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

fn redacted(text: &str) -> Cow<'_, str> {
    text.replace("hunter2", "[redacted]").into()
}
