//! A provider of notes, and a simulated ingest for its events.

use std::{
    collections::HashMap,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use events::{Annotation, Cursor, Identity, NewEvent, Origin, Payload, Provider, Repeat, Timestamp, Topic};

use crate::{
    decode::{Decoded, Decoder, Malformed, Record, line_identity},
    tail::{FileFormat, FileSpec, Now},
};

/// Accepts `{"id": …, "v": …}`, `{"v": …}` without an id, and both with a time as `"at"`. Its state is the number of
/// records. A note with `held` is emitted with the next record, or at a pause.
struct Notes {
    session: Arc<str>,
    records: u64,
    path: String,
    held: Option<NewEvent>,
}

#[derive(serde::Deserialize)]
struct Note {
    id: Option<String>,
    v: String,
    at: Option<Timestamp>,
}

impl Decoder for Notes {
    fn record(&mut self, record: Record<'_>, out: &mut Decoded) -> Result<(), Malformed> {
        let note: Note = serde_json::from_slice(record.bytes)?;
        assert_ne!(note.v, "panic");
        let (identity, repeat) = match &note.id {
            Some(id) => (Identity::record(Provider::Unknown, id, 0), Repeat::Unique),
            None => (line_identity(Provider::Unknown, &self.session, record.bytes, 0), Repeat::Next),
        };
        let mut event = out.event(&record, &self.session, identity, Annotation { topic: Topic::Note, value: note.v });
        event.repeat = repeat;
        event.created_at = note.at;
        self.records += 1;
        self.pause(out);
        if event.payload == Payload::from(Annotation { topic: Topic::Note, value: "held".into() }) {
            self.held = Some(event);
        } else {
            out.push(event);
        }
        Ok(())
    }

    fn pause(&mut self, out: &mut Decoded) {
        out.events.extend(self.held.take());
    }

    fn removed(&mut self, observed_at: Timestamp, out: &mut Decoded) {
        let record = Record { bytes: b"", offset: 0, observed_at };
        let identity = Identity::of(Provider::Unknown, "removed", &[self.path.as_bytes()]);
        out.push(out.event(
            &record,
            &self.session,
            identity,
            Annotation { topic: Topic::Note, value: "removed".into() },
        ));
    }

    fn state(&self) -> Option<String> {
        Some(self.records.to_string())
    }

    fn session(&self) -> Option<&Arc<str>> {
        Some(&self.session)
    }
}

fn make(path: &Path, state: Option<&str>) -> Box<dyn Decoder> {
    let records = state.map_or(0, |state| state.parse().unwrap());
    Box::new(Notes { session: Arc::from("s"), records, path: path.display().to_string(), held: None })
}

pub(crate) const LINES: FileSpec = FileSpec { format: FileFormat::Lines, make, live: false };
pub(crate) const WHOLE: FileSpec = FileSpec { format: FileFormat::Whole, make, live: true };

pub(crate) fn note(id: impl std::fmt::Display, value: &str) -> String {
    format!("{{\"id\":\"{id}\",\"v\":\"{value}\"}}\n")
}

/// A note written this long ago.
pub(crate) fn note_of(id: impl std::fmt::Display, age: Duration) -> String {
    let at = now(Duration::ZERO).wall.as_millisecond() - age.as_millis() as i64;
    format!("{{\"id\":\"{id}\",\"v\":\"{id}\",\"at\":\"{}\"}}\n", Timestamp::from_millisecond(at))
}

pub(crate) fn plain(value: &str) -> String {
    format!("{{\"v\":\"{value}\"}}\n")
}

/// A steady clock that tests advance, and a wall clock that starts at the real time, because files have real times.
#[expect(clippy::disallowed_methods, reason = "the times of the files written here are real")]
pub(crate) fn now(steady: Duration) -> Now {
    let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as i64;
    Now { wall: Timestamp::from_millisecond(wall + steady.as_millis() as i64), steady }
}

/// The modification time of a file of this age.
pub(crate) fn ago(age: Duration) -> SystemTime {
    let wall = now(Duration::ZERO).wall.as_millisecond() as u64;
    SystemTime::UNIX_EPOCH + Duration::from_millis(wall) - age
}

/// Commits batches: events once per identity, cursors with them.
#[derive(Debug, Default)]
pub(crate) struct Ingest {
    pub(crate) events: HashMap<Identity, String>,
    /// Values in the order of their commits.
    pub(crate) order: Vec<String>,
    pub(crate) cursors: HashMap<String, Cursor>,
    pub(crate) vanished: Vec<String>,
    /// Number of events that were already known.
    pub(crate) repeats: usize,
    pub(crate) batches: usize,
    /// All origins, committed or not.
    pub(crate) origins: Vec<(String, u32, u64, u64)>,
}

impl Ingest {
    pub(crate) fn commit(&mut self, events: Vec<NewEvent>, cursor: &Cursor, vanished: bool) {
        self.batches += 1;
        for event in events {
            self.take(event);
        }
        if vanished {
            self.vanished.push(cursor.path.clone());
        }
        self.cursors.insert(cursor.path.clone(), cursor.clone());
    }

    fn take(&mut self, event: NewEvent) {
        let value = if let Payload::Annotation(note) = &event.payload {
            note.value.clone()
        } else if let Payload::Unrecognized(raw) = &event.payload {
            let what = raw.hash.as_deref().or(event.text.as_deref());
            format!("{}:{}", raw.raw_kind, what.unwrap_or_default())
        } else {
            panic!("unexpected {event:?}");
        };
        if let Origin::File { path, generation, offset, length } = &event.origin {
            self.origins.push((path.to_string(), *generation, *offset, *length));
        }
        let mut identity = event.identity;
        if event.repeat == Repeat::Next {
            let free = (0..).map(|k| event.identity.occurrence(k)).find(|id| !self.events.contains_key(id));
            identity = free.unwrap();
        }
        match self.events.get(&identity) {
            Some(known) => {
                assert_eq!(*known, value, "one identity, two events");
                self.repeats += 1;
            }
            None => {
                self.events.insert(identity, value.clone());
                self.order.push(value);
            }
        }
    }

    pub(crate) fn order(&self) -> Vec<&str> {
        self.order.iter().map(String::as_str).collect()
    }
}
