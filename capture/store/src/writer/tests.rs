use events::{
    Annotation, ApprovalKind, ApprovalRequested, ApprovalResolved, ApprovalState, AssistantDelta, AssistantMessage,
    Block, Claim, CompactTrigger, Confidence, ContextCompacted, DecidedBy, DecidedVia, DeliveryId, ErrorClass,
    ErrorReported, EventId, FileKey, Finding, FindingKind, FindingState, Heartbeat, Kind, Notification, Origin,
    Payload, PromptId, PromptOrigin, QuestionAnswered, QuestionAsked, QueuedBy, QueuedPrompt, QueuedState,
    QuotaReported, Reason, SendOutcome, SessionExited, SessionForked, SessionStarted, Severity, Signal, Source,
    StartKind, State, StatusChanged, Stop, ToolCall, ToolKind, ToolOutcome, ToolResult, Topic, TurnCompleted, TurnId,
    TurnOutcome, TurnStarted, TurnTrigger, Unrecognized, UsageReported, UserPrompt,
};
use proptest::{collection::vec, prelude::*, sample::select};

use super::*;
use crate::{
    SessionFilter,
    accounts::MOST_TOKENS,
    schema::{MigrationError, SCHEMA_VERSION},
};

mod damage;
mod kinds;

/// A store in its own directory, with one session.
struct Fresh {
    dir: tempfile::TempDir,
    writer: Writer,
    session: KnownSession,
}

fn session_id(name: &str) -> SessionId {
    SessionId::mint(Timestamp::from_millisecond(5), Provider::Claude, name)
}

impl Fresh {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(dir.path()).unwrap();
        writer.begin().unwrap();
        writer.add_session(session_id("s"), Provider::Claude, "s").unwrap();
        writer.commit().unwrap();
        let session = writer.sessions().unwrap().remove(0);
        Self { dir, writer, session }
    }

    /// Closes the store and opens it again.
    fn reopened(self) -> Self {
        let Self { dir, writer, session } = self;
        drop(writer);
        let writer = Writer::open(dir.path()).unwrap();
        Self { dir, writer, session }
    }

    fn count(&self, table: &str) -> i64 {
        self.writer.connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    }

    fn commit(&mut self, write: impl FnOnce(&mut Writer, SessionRow)) {
        self.writer.begin().unwrap();
        write(&mut self.writer, self.session.row);
        self.writer.commit().unwrap();
    }

    fn log(&self) -> Vec<Event> {
        self.writer.reader().log(0, 1_000, None).unwrap()
    }
}

/// An event of the session, with all optional fields set.
fn event(n: u64, payload: impl Into<Payload>) -> Event {
    Event {
        position: n,
        id: EventId::from_bits(u128::from(n)),
        session_id: session_id("s"),
        sequence: n,
        provider: Provider::Claude,
        provider_session_id: Arc::from("s"),
        source: Source::Transcript,
        created_at: Timestamp::from_millisecond(1_000),
        observed_at: Timestamp::from_millisecond(2_000),
        turn_id: None,
        parent_id: None,
        agent_id: None,
        confidence: Confidence::High,
        severity: None,
        text: None,
        text_ref: None,
        payload: payload.into(),
        origin: Origin::Derived,
        derived: false,
        history: false,
    }
}

#[test]
fn a_reader_filters_events_by_range_session_and_kind() {
    let mut store = Fresh::new();
    let other = session_id("t");
    let prompt = |n, session_id, sequence, provider_session_id: &str| Event {
        session_id,
        sequence,
        provider_session_id: Arc::from(provider_session_id),
        ..event(n, UserPrompt::default())
    };
    store.commit(|writer, row| {
        let second = writer.add_session(other, Provider::Codex, "t").unwrap();
        writer.append(row, &event(1, UserPrompt::default()), None).unwrap();
        writer.append(second, &prompt(2, other, 1, "t"), None).unwrap();
        writer.append(row, &Event { sequence: 2, ..event(3, Heartbeat {}) }, None).unwrap();
        writer.append(row, &Event { sequence: 3, ..event(4, UserPrompt::default()) }, None).unwrap();
    });
    let reader = store.writer.reader();
    let positions = |events: Vec<Event>| events.iter().map(|e| e.position).collect::<Vec<_>>();
    let own = session_id("s");
    assert_eq!(positions(reader.log(0, 9, None).unwrap()), [1, 2, 3, 4]);
    assert_eq!(positions(reader.log(1, 2, None).unwrap()), [2, 3]);
    assert_eq!(positions(reader.log(0, 9, Some(own)).unwrap()), [1, 3, 4]);
    assert_eq!(positions(reader.events(own, 1, 9, &[]).unwrap()), [3, 4]);
    assert_eq!(positions(reader.events(own, 0, 9, &[Kind::UserPrompt]).unwrap()), [1, 4]);
    assert_eq!(positions(reader.last_events(own, 2, &[]).unwrap()), [3, 4]);
    assert_eq!(positions(reader.last_events(own, 1, &[Kind::UserPrompt]).unwrap()), [4]);
    assert_eq!(positions(reader.events(session_id("nobody"), 0, 9, &[]).unwrap()), [0; 0]);
    assert_eq!(reader.find("t").unwrap(), Some(other));
    assert_eq!(reader.find("nobody").unwrap(), None);
    assert_eq!(reader.log(1, 1, None).unwrap()[0].provider, Provider::Codex);
}

#[test]
fn identical_long_texts_are_stored_once() {
    let mut store = Fresh::new();
    let pack = |text: &str| {
        let mut cut = text.to_owned();
        let packed = PackedText::split(&mut cut).unwrap();
        (cut, packed)
    };
    let (long, longer) = ("one line\n".repeat(500), "x".repeat(crate::TEXT_CAP_BYTES + 1));
    store.commit(|writer, row| {
        for (n, whole) in [(1, &long), (2, &long), (3, &longer)] {
            let (text, packed) = pack(whole);
            let event =
                Event { text: Some(text), text_ref: Some(packed.reference()), ..event(n, UserPrompt::default()) };
            writer.append(row, &event, Some(&packed)).unwrap();
        }
    });
    assert_eq!(store.count("texts"), 1);
    let log = store.log();
    let references: Vec<_> = log.iter().map(|e| e.text_ref.clone().unwrap()).collect();
    assert_eq!(references[0], references[1]);
    let reader = store.writer.reader();
    assert_eq!(reader.text(&references[0].hash).unwrap(), Some(long));
    assert_eq!((references[2].stored, references[2].length), (false, longer.len() as u64));
    assert_eq!(reader.text(&references[2].hash).unwrap(), None);
    assert_eq!(reader.text("no hash").unwrap(), None);
}

#[test]
fn cursors_round_trip_and_damaged_ones_are_skipped() {
    let mut store = Fresh::new();
    let cursor = |path: &str, offset| Cursor {
        path: path.into(),
        key: FileKey { device: 3, inode: u64::MAX },
        generation: 2,
        offset,
        head_length: 4096,
        head_hash: u64::MAX,
        tail_hash: 7,
        size: offset + 1,
        changed_ns: -5,
        caught_up: true,
        issues: 3,
        provider_session_id: Some("s".into()),
        decoder_state: Some("{\"a\":1}".into()),
    };
    store.commit(|writer, _| {
        writer.put_cursor(&cursor("/a", 10)).unwrap();
        writer.put_cursor(&cursor("/b", 20)).unwrap();
        writer.put_cursor(&cursor("/a", 30)).unwrap();
    });
    let mut store = store.reopened();
    let sorted = |writer: &Writer| {
        let mut cursors = writer.reader().cursors().unwrap();
        cursors.sort_by(|a, b| a.path.cmp(&b.path));
        cursors
    };
    assert_eq!(sorted(&store.writer), [cursor("/a", 30), cursor("/b", 20)]);
    let reader = store.writer.reader();
    let summaries = || {
        let mut summaries = reader.cursor_summaries().unwrap();
        summaries.sort_by(|(a, _), (b, _)| a.cmp(b));
        summaries
    };
    assert_eq!(summaries(), [cursor("/a", 30), cursor("/b", 20)].map(|cursor| (cursor.path.clone(), (&cursor).into())));
    assert_eq!(reader.cursor("/a").unwrap(), Some(cursor("/a", 30)));
    assert_eq!(reader.cursor("/none").unwrap(), None);
    // A damaged cursor is skipped; its file is read again.
    store.writer.connection.execute("UPDATE files SET cursor = '{' WHERE path = '/a'", []).unwrap();
    assert_eq!(sorted(&store.writer), [cursor("/b", 20)]);
    assert_eq!((summaries().len(), reader.cursor("/a").unwrap()), (1, None));
    store.commit(|writer, _| writer.put_cursor(&cursor("/a", 40)).unwrap());
    assert_eq!(sorted(&store.writer)[0].offset, 40);
    // A file that only appears as an event's origin has no cursor.
    let there = Event {
        origin: Origin::File { path: Arc::from("/c"), generation: 1, offset: 0, length: 1 },
        ..event(1, Heartbeat {})
    };
    store.commit(|writer, row| writer.append(row, &there, None).unwrap());
    assert_eq!(sorted(&store.writer).len(), 2);
    assert_eq!(store.log(), [there]);
}

#[test]
fn a_record_is_learned_once() {
    let mut store = Fresh::new();
    let record = Identity::record(Provider::Claude, "u1", 0);
    let mut second = None;
    store.commit(|writer, row| {
        let other = writer.add_session(session_id("t"), Provider::Claude, "t").unwrap();
        assert_eq!(writer.known(record).unwrap(), None);
        assert!(writer.learn(record, row).unwrap());
        assert!(!writer.learn(record, row).unwrap());
        assert!(!writer.learn(record, other).unwrap(), "it stays with whom it was learned from");
        assert!(writer.learn(record.occurrence(1), other).unwrap());
        second = Some(other);
    });
    let store = store.reopened();
    assert_eq!(store.writer.known(record).unwrap(), Some(store.session.row));
    assert_eq!(store.writer.known(record.occurrence(1)).unwrap(), second);
    assert_eq!(store.writer.known(record.occurrence(2)).unwrap(), None);
}

#[test]
fn sessions_with_settings_and_snapshots_survive_a_reopen() {
    let mut store = Fresh::new();
    let mut state = SessionState::new(
        store.session.id,
        Provider::Claude,
        Some(Arc::from("s")),
        Timestamp::from_millisecond(5),
        projections::StatusRules::default(),
    );
    state.fold(&event(1, UserPrompt::default()));
    assert_eq!(store.writer.snapshot(store.session.row).unwrap(), None);
    let view = serde_json::to_string(state.view()).unwrap();
    let snapshot = serde_json::to_string(&state).unwrap();
    store.commit(|writer, row| {
        writer.put_session(row, Timestamp::from_millisecond(9), &view, &snapshot).unwrap();
        writer.set_capture(row, false).unwrap();
        let second = writer.add_session(session_id("t"), Provider::Codex, "t").unwrap();
        writer.put_session(second, Timestamp::from_millisecond(8), &view, "{\"of\":\"another version\"}").unwrap();
    });
    let store = store.reopened();
    let sessions = store.writer.reader().stored_sessions().unwrap();
    assert_eq!(
        sessions.iter().map(|stored| (stored.last_event_at, stored.view.as_ref())).collect::<Vec<_>>(),
        [(9, Some(&view)), (8, Some(&view))]
    );
    let known: Vec<_> = sessions.into_iter().map(|stored| stored.known).collect();
    assert_eq!(
        known.iter().map(|k| (&*k.provider_session_id, k.provider, k.capture)).collect::<Vec<_>>(),
        [("s", Provider::Claude, false), ("t", Provider::Codex, true)]
    );
    assert_eq!(store.writer.snapshot(known[0].row).unwrap(), Some(state.clone()));
    assert_eq!(store.writer.snapshot(known[1].row).unwrap(), None, "the log is folded again");
    let reader = store.writer.reader();
    assert_eq!(reader.session(known[0].id).unwrap().as_ref(), Some(state.view()));
    let page = |before, limit| reader.views(&SessionFilter { before, limit }).unwrap().len();
    assert_eq!(
        (page(None, 9), page(None, 1), page(Some((9, known[0].id)), 9), page(Some((8, known[1].id)), 9)),
        (2, 1, 1, 0)
    );
}

#[test]
fn turns_are_replaced_by_number_and_tokens_are_summed_by_model() {
    let mut store = Fresh::new();
    let mut state = SessionState::new(
        store.session.id,
        Provider::Claude,
        None,
        Timestamp::MIN,
        projections::StatusRules::default(),
    );
    state.fold(&event(1, UserPrompt::default()));
    let open = state.open_turn().unwrap().clone();
    let ended = Turn { outcome: Some(TurnOutcome::Completed), ..open.clone() };
    let spent = |model: Option<&str>, output_tokens| UsageReported {
        model: model.map(str::to_owned),
        output_tokens,
        input_tokens: 1,
        ..UsageReported::default()
    };
    store.commit(|writer, row| {
        writer.put_turn(row, &open).unwrap();
        writer.put_turn(row, &ended).unwrap();
        writer.put_turn(row, &Turn { number: 2, ..ended.clone() }).unwrap();
        writer.add_usage(row, &entry(1, &spent(Some("m"), 5))).unwrap();
        writer.add_usage(row, &entry(2, &spent(Some("m"), 7))).unwrap();
        writer.add_usage(row, &entry(3, &spent(None, u64::MAX))).unwrap();
    });
    let reader = store.writer.reader();
    assert_eq!(reader.turns(store.session.id, 0, 9).unwrap(), [ended.clone(), Turn { number: 2, ..ended }]);
    assert_eq!(reader.turns(store.session.id, 1, 9).unwrap().len(), 1);
    let usage = reader.session_usage(store.session.id).unwrap();
    assert_eq!(
        usage.iter().map(|(p, m, u)| (*p, m.as_deref(), u.input_tokens)).collect::<Vec<_>>(),
        [(Provider::Claude, None, 1), (Provider::Claude, Some("m"), 2)]
    );
    assert_eq!(usage[1].2.output_tokens, 12);
    assert_eq!(reader.usage().unwrap(), usage);
}

fn entry(position: u64, usage: &UsageReported) -> crate::UsageEntry<'_> {
    let at = Timestamp::from_millisecond(1);
    crate::UsageEntry { provider: Provider::Claude, position, at, usage, is_first: true }
}

#[test]
fn token_sums_saturate_at_the_maximum() {
    let mut store = Fresh::new();
    let most = UsageReported { output_tokens: u64::MAX, ..UsageReported::default() };
    for position in 0..6 {
        store.commit(|writer, row| writer.add_usage(row, &entry(position, &most)).unwrap());
    }
    store.commit(|writer, _| {
        let other = writer.add_session(session_id("t"), Provider::Claude, "t").unwrap();
        writer.add_usage(other, &entry(7, &most)).unwrap();
    });
    let reader = store.writer.reader();
    assert_eq!(reader.session_usage(store.session.id).unwrap()[0].2.output_tokens, MOST_TOKENS);
    assert_eq!(reader.usage().unwrap()[0].2.output_tokens, 2 * MOST_TOKENS);
}

#[test]
fn uncommitted_writes_leave_no_trace_after_rollback_or_reopen() {
    let mut store = Fresh::new();
    let there = |n, path: &str| Event {
        origin: Origin::File { path: Arc::from(path), generation: 1, offset: 0, length: 1 },
        ..event(n, Heartbeat {})
    };
    let record = Identity::record(Provider::Claude, "u1", 0);
    let row = store.session.row;
    store.commit(|writer, row| writer.append(row, &there(1, "/known"), None).unwrap());
    store.writer.begin().unwrap();
    store.writer.append(row, &there(2, "/new"), None).unwrap();
    store.writer.append(row, &there(3, "/known"), None).unwrap();
    store.writer.learn(record, row).unwrap();
    store.writer.add_session(session_id("t"), Provider::Claude, "t").unwrap();
    store.writer.put_cursor(&Cursor { path: "/other".into(), ..Cursor::default() }).unwrap();
    assert_eq!(store.log().len(), 1, "nobody sees it before");
    store.writer.rollback();
    store.writer.rollback();
    let counts = |store: &Fresh| ["events", "files", "known_batches", "sessions"].map(|table| store.count(table));
    assert_eq!(counts(&store), [1, 1, 0, 1]);
    // The caches were rolled back: the path gets a new row.
    store.commit(|writer, row| {
        writer.append(row, &there(2, "/new"), None).unwrap();
        writer.put_cursor(&Cursor { path: "/other".into(), ..Cursor::default() }).unwrap();
        assert!(writer.learn(record, row).unwrap());
    });
    assert_eq!(store.log(), [there(1, "/known"), there(2, "/new")]);
    assert_eq!(store.writer.reader().cursors().unwrap().len(), 1);
    // The store is closed during a transaction.
    store.writer.begin().unwrap();
    store.writer.append(row, &there(3, "/late"), None).unwrap();
    let store = store.reopened();
    assert_eq!(counts(&store), [2, 3, 1, 1]);
}

#[test]
fn a_taken_position_or_sequence_is_refused() {
    let mut store = Fresh::new();
    store.commit(|writer, row| writer.append(row, &event(1, Heartbeat {}), None).unwrap());
    let row = store.session.row;
    for taken in [Event { sequence: 2, ..event(1, Heartbeat {}) }, Event { sequence: 1, ..event(2, Heartbeat {}) }] {
        store.writer.begin().unwrap();
        let error = store.writer.append(row, &taken, None).unwrap_err();
        assert!(error.to_string().contains("an event"), "{error}");
        store.writer.rollback();
    }
    store.writer.begin().unwrap();
    store.writer.add_session(session_id("s"), Provider::Claude, "again").unwrap_err();
    store.writer.add_session(session_id("t"), Provider::Claude, "s").unwrap_err();
    store.writer.rollback();
    assert_eq!(store.log().len(), 1);
}

#[test]
fn a_full_disk_leaves_nothing_half_done() {
    let mut store = Fresh::new();
    store.commit(|writer, row| writer.append(row, &event(1, Heartbeat {}), None).unwrap());
    let pages: i64 = store.writer.connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    let limit = |store: &Fresh, pages: i64| {
        store.writer.connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(())).unwrap()
    };
    limit(&store, pages + 2);
    let row = store.session.row;
    let big = |n| Event {
        text: Some("x".repeat(1_000)),
        origin: Origin::File { path: Arc::from("/f"), generation: 1, offset: 0, length: 1 },
        ..event(n, UserPrompt::default())
    };
    store.writer.begin().unwrap();
    let stored = (2..200).take_while(|n| store.writer.append(row, &big(*n), None).is_ok()).count();
    assert!(stored > 0 && stored < 198, "{stored} went in before it was full");
    store.writer.rollback();
    assert_eq!(store.log().len(), 1);
    // There is room again, and the same positions are free.
    limit(&store, 1 << 30);
    store.commit(|writer, row| (2..200).for_each(|n| writer.append(row, &big(n), None).unwrap()));
    assert_eq!(store.log().len(), 199);
    assert_eq!(store.reopened().log().len(), 199);
}

#[test]
fn a_second_writer_is_refused_while_readers_are_not() {
    let store = Fresh::new();
    let refused = Writer::open(store.dir.path()).unwrap_err();
    assert!(matches!(refused, StoreOpenError::Lock(_)) && refused.to_string().contains("in use"), "{refused}");
    // Any number of readers can read at the same time.
    let reader = store.writer.reader();
    assert_eq!(reader.log(0, 9, None).unwrap(), []);
    let store = store.reopened();
    assert_eq!(store.count("sessions"), 1);
}

#[test]
fn the_data_directory_and_its_files_are_private() {
    use std::os::unix::fs::MetadataExt;
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("a/b");
    let writer = Writer::open(&data).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    for entry in std::fs::read_dir(&data).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    drop(writer);
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let error = Writer::open(&file).unwrap_err().to_string();
    assert!(error.contains(&*file.to_string_lossy()), "{error}");
}

#[test]
fn a_newer_database_is_refused_and_a_non_database_is_moved_aside() {
    let store = Fresh::new();
    let Fresh { dir, writer, .. } = store;
    let version: i64 = writer.connection.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    assert_eq!(version, SCHEMA_VERSION);
    writer.connection.pragma_update(None, "user_version", SCHEMA_VERSION + 1).unwrap();
    drop(writer);
    let refused = Writer::open(dir.path()).unwrap_err();
    assert!(matches!(refused, StoreOpenError::Migration { source: MigrationError::Newer { .. }, .. }), "{refused}");
    // The database is unchanged, and the lock is free.
    let connection = Connection::open(dir.path().join("capture.db")).unwrap();
    connection.pragma_update(None, "user_version", SCHEMA_VERSION).unwrap();
    drop(connection);
    assert_eq!(Writer::open(dir.path()).unwrap().sessions().unwrap().len(), 1);
    // A file that is not a database is moved away.
    let dir = tempfile::tempdir().unwrap();
    let text = "this is not a database, whatever its name says".repeat(100);
    std::fs::write(dir.path().join("capture.db"), &text).unwrap();
    let writer = Writer::open(dir.path()).unwrap();
    assert_eq!(std::fs::read_to_string(&writer.rebuilt().unwrap().aside).unwrap(), text);
}

#[test]
fn a_checkpoint_empties_the_write_ahead_log() {
    let mut store = Fresh::new();
    store.commit(|writer, row| writer.append(row, &event(1, Heartbeat {}), None).unwrap());
    let wal = store.dir.path().join("capture.db-wal");
    assert!(std::fs::metadata(&wal).unwrap().len() > 0);
    Writer::checkpoint(store.writer.path(), true).unwrap();
    assert_eq!(std::fs::metadata(&wal).unwrap().len(), 0);
    assert_eq!(store.log().len(), 1);
}

#[test]
fn the_write_ahead_log_is_truncated_once_no_reader_uses_it() {
    let mut store = Fresh::new();
    let wal = store.dir.path().join("capture.db-wal");
    let size = || std::fs::metadata(&wal).unwrap().len();
    store.commit(|writer, row| writer.append(row, &event(1, Heartbeat {}), None).unwrap());
    let holder = Connection::open(store.writer.path()).unwrap();
    holder.execute_batch("BEGIN; SELECT count(*) FROM events").unwrap();
    store.commit(|writer, row| writer.append(row, &event(2, Heartbeat {}), None).unwrap());
    Writer::truncate_log(store.writer.path()).unwrap();
    assert!(size() > 0, "a reader is at it, which is not waited for");
    holder.execute_batch("COMMIT").unwrap();
    Writer::truncate_log(store.writer.path()).unwrap();
    assert_eq!(size(), 0);
    // An open transaction also prevents the truncation, and loses nothing.
    store.writer.begin().unwrap();
    Writer::truncate_log(store.writer.path()).unwrap();
    store.writer.commit().unwrap();
    assert_eq!(store.log().len(), 2);
}

#[test]
fn restarting_the_write_ahead_log_reuses_its_space() {
    let mut store = Fresh::new();
    let wal = store.dir.path().join("capture.db-wal");
    let size = || std::fs::metadata(&wal).unwrap().len();
    for n in 1..20 {
        store.commit(|writer, row| writer.append(row, &event(n, Heartbeat {}), None).unwrap());
    }
    let full = store.writer.log_use().unwrap();
    assert!(full.moved == 0 && full.left() == full.written && full.written + 4_120 > size(), "{full:?} {}", size());
    Writer::checkpoint(store.writer.path(), false).unwrap();
    assert_eq!(Writer::log_use_of(store.writer.path()).unwrap().left(), 0);
    let before = size();
    store.writer.restart_log().unwrap();
    assert_eq!((store.writer.log_use().unwrap().left(), size()), (0, before));
    store.commit(|writer, row| writer.append(row, &event(20, Heartbeat {}), None).unwrap());
    assert_eq!(size(), before, "its space is used again");
    assert!(store.writer.log_use().unwrap().written < full.written);
    // While a reader uses the log, it keeps growing, and nothing waits for long.
    let holder = Connection::open(store.writer.path()).unwrap();
    holder.execute_batch("BEGIN; SELECT count(*) FROM events").unwrap();
    store.commit(|writer, row| writer.append(row, &event(21, Heartbeat {}), None).unwrap());
    let _ = store.writer.restart_log();
    assert!(store.writer.log_use().unwrap().written > 0);
    holder.execute_batch("COMMIT").unwrap();
    let store = store.reopened();
    assert_eq!(store.log().len(), 21);
}

#[test]
fn tool_times_pair_each_call_with_its_result() {
    use events::{ToolCall, ToolResult};
    let mut store = Fresh::new();
    let at =
        |n: u64, payload: Payload| Event { created_at: Timestamp::from_millisecond(n as i64), ..event(n, payload) };
    let call = |id: &str| ToolCall { call_id: id.into(), ..ToolCall::default() }.into();
    let result = |id: &str, detail| ToolResult { call_id: id.into(), detail, ..ToolResult::default() }.into();
    store.commit(|writer, row| {
        let events = [
            call("a"),
            call("b"),
            result("a", true),
            result("a", false),
            result("c", false),
            call("d"),
            result("b", false),
        ];
        for (n, payload) in (1..).zip(events) {
            writer.append(row, &at(n, payload), None).unwrap();
        }
    });
    let ms = |n: i64| Timestamp::from_millisecond(n);
    let times = |since, until| store.writer.reader().tool_times(store.session.id, ms(since), ms(until)).unwrap();
    assert_eq!(times(0, 99), [(ms(1), Some(ms(4))), (ms(2), Some(ms(7))), (ms(6), None)]);
    assert_eq!(times(2, 7), [(ms(2), None), (ms(6), None)]);
}
