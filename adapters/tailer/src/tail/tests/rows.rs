//! Logs in SQLite databases.

use rusqlite::Connection;

use super::*;

/// A log whose rows the decoder of these tests accepts.
pub(crate) static LOG: RowTable = RowTable { name: "log", id: "id", columns: &["id", "v"] };

/// Opens a database as an agent does.
pub(crate) fn writer(path: &Path) -> Connection {
    let database = Connection::open(path).unwrap();
    database.pragma_update(None, "journal_mode", "wal").unwrap();
    database.execute("CREATE TABLE IF NOT EXISTS log (id text PRIMARY KEY, v text NOT NULL)", []).unwrap();
    database
}

pub(crate) fn insert(database: &Connection, id: &str, value: &str) {
    database.execute("INSERT INTO log VALUES (?1, ?2)", [id, value]).unwrap();
}

fn case() -> Case {
    case_with(ReadLimits::default())
}

fn case_with(limits: ReadLimits) -> Case {
    case_of(FileSpec { format: FileFormat::Rows(&LOG), ..LINES }, limits)
}

fn names(case: &Case) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(case.home.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn rows_are_read_once_as_they_are_committed() {
    let mut case = case();
    let database = writer(&case.path());
    assert!(case.look().is_empty());
    insert(&database, "a", "one");
    assert_eq!(case.look(), ["one"]);
    insert(&database, "b", "two");
    insert(&database, "c", "three");
    assert_eq!(case.look(), ["two", "three"]);
    assert!(case.look().is_empty());
    case.restart();
    insert(&database, "d", "four");
    assert_eq!(case.look(), ["four"]);
    assert_eq!((case.generation(), case.ingest.repeats), (1, 0));
    let origins: Vec<u64> = case.ingest.origins.iter().map(|(_, _, row, _)| *row).collect();
    assert_eq!(origins, [1, 2, 3, 4], "a row's number is its place");
}

#[test]
fn uncommitted_rows_are_not_read_and_do_not_block_reading() {
    let mut case = case();
    let database = writer(&case.path());
    insert(&database, "a", "one");
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    insert(&database, "b", "two");
    assert_eq!(case.look(), ["one"]);
    database.execute_batch("COMMIT").unwrap();
    assert_eq!(case.look(), ["two"]);
}

#[test]
fn rows_of_a_killed_writer_are_read_from_the_write_ahead_log() {
    let mut case = case();
    let other = tempfile::tempdir().unwrap();
    let database = writer(&other.path().join("f"));
    insert(&database, "a", "one");
    // The files as left by a killed process.
    for name in ["f", "f-wal"] {
        fs::copy(other.path().join(name), case.home.path().join(name)).unwrap();
    }
    assert_eq!(case.look(), ["one"]);
    let log = fs::read(case.home.path().join("f-wal")).unwrap();
    assert_eq!(log, fs::read(other.path().join("f-wal")).unwrap(), "the log is not touched");
}

#[test]
fn reading_a_closed_database_creates_no_files() {
    let mut case = case();
    let database = writer(&case.path());
    insert(&database, "a", "one");
    drop(database);
    assert_eq!(names(&case), ["f"]);
    let before = fs::read(case.path()).unwrap();
    assert_eq!(case.look(), ["one"]);
    assert_eq!(names(&case), ["f"]);
    assert_eq!(fs::read(case.path()).unwrap(), before);
}

#[test]
fn a_row_that_reuses_a_deleted_rowid_is_read() {
    let mut case = case();
    let database = writer(&case.path());
    insert(&database, "a", "one");
    insert(&database, "b", "two");
    assert_eq!(case.look(), ["one", "two"]);
    database.execute("DELETE FROM log WHERE id = 'b'", []).unwrap();
    insert(&database, "c", "three");
    assert_eq!(case.look(), ["three"]);
    assert_eq!((case.generation(), case.ingest.repeats), (2, 1));
}

#[test]
fn rows_of_a_recreated_database_are_read() {
    let mut case = case();
    let database = writer(&case.path());
    insert(&database, "a", "one");
    assert_eq!(case.look(), ["one"]);
    drop(database);
    fs::remove_file(case.path()).unwrap();
    case.look();
    assert_eq!(case.ingest.vanished.len(), 1);
    let database = writer(&case.path());
    insert(&database, "z", "other");
    assert_eq!(case.look(), ["other"]);
}

#[test]
fn rows_come_in_batches_of_bounded_size() {
    let mut case = case_with(ReadLimits { batch_bytes: 1000, ..ReadLimits::default() });
    let database = writer(&case.path());
    let values: Vec<String> = (0..50).map(|n| format!("{n}-{}", "x".repeat(100))).collect();
    for (n, value) in values.iter().enumerate() {
        insert(&database, &n.to_string(), value);
    }
    assert_eq!(case.look(), values);
    assert!(case.ingest.batches > 5, "{} batches", case.ingest.batches);
}

#[test]
fn rows_that_are_too_long_become_stubs() {
    let mut case = case_with(ReadLimits { line_bytes: 100, ..ReadLimits::default() });
    let database = writer(&case.path());
    insert(&database, "a", &"x".repeat(200));
    insert(&database, "b", "two");
    let read = case.look();
    assert!(read[0].starts_with("oversized:"), "{read:?}");
    assert_eq!(read[1], "two");
}

#[test]
fn symlinks_and_files_without_the_table_are_refused() {
    let mut case = case();
    let elsewhere = tempfile::tempdir().unwrap();
    drop(writer(&elsewhere.path().join("f")));
    symlink(elsewhere.path().join("f"), case.path()).unwrap();
    assert!(matches!(case.try_look(), Err(TailError::Refused { reason: ReadRefusal::Symlink, .. })));
    fs::remove_file(case.path()).unwrap();
    case.write("this is not a database, however long it may be: ".repeat(100));
    assert!(matches!(case.try_look(), Err(TailError::Malformed { .. })));
    fs::remove_file(case.path()).unwrap();
    let database = Connection::open(case.path()).unwrap();
    database.execute("CREATE TABLE message (id text)", []).unwrap();
    let Err(TailError::Malformed { error, .. }) = case.try_look() else { panic!("a table that is not there") };
    assert!(error.contains("log"), "{error}");
}

#[test]
fn a_view_named_like_the_table_is_not_queried() {
    let mut case = case();
    let database = Connection::open(case.path()).unwrap();
    let endless = "CREATE VIEW log AS WITH RECURSIVE n(rowid) AS (SELECT 1 UNION ALL SELECT rowid + 1 FROM n) \
                   SELECT rowid, rowid AS id, 'v' AS v FROM n";
    database.execute(endless, []).unwrap();
    let Err(TailError::Malformed { error, .. }) = case.try_look() else { panic!("a view") };
    assert_eq!(error, "no table `log`");
}
