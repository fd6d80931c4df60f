//! The rows of hooks, depending on their settings, spool and calls.

use std::{fs, time::Duration};

use hooks::{Plan, ProgramSearch, RequestedChange, catalogue};
use ingest::store_health::StoreFiles;

use super::*;

const NOW: i64 = 1_795_149_432_000;

struct HealthFixture {
    dir: tempfile::TempDir,
    hooks: HookPaths,
    gauges: Gauges,
    now: Timestamp,
}

impl HealthFixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let at = |below: &str| dir.path().join(below);
        fs::create_dir_all(at(".claude")).unwrap();
        let home = |provider: Provider| (provider, vec![at(&format!(".{provider}"))]);
        let homes = [Provider::Claude, Provider::Codex, Provider::Gemini].map(home).into_iter().collect::<Homes>();
        let hooks =
            HookPaths::new(&at("data"), &homes, "/bin/sh".into(), ProgramSearch::new(at("bin").into(), Vec::new()));
        Self { hooks, gauges: Gauges::default(), now: Timestamp::from_millisecond(NOW), dir }
    }

    fn install(&self) {
        let (command, events) = (self.hooks.command.clone(), catalogue(Provider::Claude));
        let wish = RequestedChange::Install { command, events };
        let (home, data) = (self.dir.path().join(".claude"), self.dir.path().join("data"));
        let plan = Plan::new(Provider::Claude, &home, &data, &wish).unwrap();
        plan.apply(self.now).unwrap();
    }

    fn rows(&self, seconds: i64) -> Vec<SourceHealth> {
        self.hooks.rows(&self.gauges, self.now.plus_ms(seconds * 1000))
    }

    fn claude(&self, seconds: i64) -> SourceHealth {
        let rows = self.rows(seconds);
        assert_eq!(rows.iter().map(|r| r.name.as_str()).collect::<Vec<_>>(), ["hooks", "claude hooks"]);
        rows.into_iter().nth(1).unwrap()
    }
}

#[test]
fn each_agent_found_has_a_health_row() {
    let mut place = HealthFixture::new();
    let row = place.claude(0);
    assert_eq!((row.active, row.detail.as_deref(), row.trouble), (false, Some("not installed"), None));

    place.install();
    let settings = place.dir.path().join(".claude/settings.json");
    place.now = modified(&settings).unwrap();
    let row = place.claude(0);
    assert!(row.active && row.detail.unwrap().starts_with("installed, no call since"));

    place.gauges.heard.delivery(Provider::Claude, place.now);
    let row = place.claude(3);
    assert_eq!((row.last_event_at, row.detail.as_deref()), (Some(place.now), Some("installed, 1 calls")));

    fs::write(&settings, fs::read_to_string(&settings).unwrap().replace("/bin/sh", "/gone/sh")).unwrap();
    assert!(place.claude(3).trouble.unwrap().contains("/gone/sh does not exist"));
    fs::write(&settings, "{").unwrap();
    let row = place.claude(3);
    assert!(!row.active && row.detail.unwrap().contains("settings.json"));

    place.gauges.heard.delivery(Provider::Codex, place.now);
    assert_eq!(place.rows(3).len(), 3, "one that was heard of is reported");
}

#[test]
fn installed_hooks_that_are_not_called_during_turns_are_reported() {
    let mut place = HealthFixture::new();
    place.install();
    place.now = modified(&place.dir.path().join(".claude/settings.json")).unwrap();
    let turn = |seconds: i64| {
        let at = place.now.plus_ms(seconds * 1000);
        place.gauges.heard.turn(Provider::Claude, at);
    };
    turn(10);
    turn(60);
    assert_eq!(place.claude(100).trouble, None);
    let trouble = place.claude(200).trouble.unwrap();
    assert!(trouble.starts_with("installed, but no hook was called"), "{trouble}");
    place.gauges.heard.delivery(Provider::Claude, place.now.plus_ms(150_000));
    assert_eq!(place.claude(200).trouble, None);
}

#[test]
fn deliveries_left_in_the_spool_are_reported() {
    let place = HealthFixture::new();
    let spool = place.dir.path().join("data/spool");
    fs::create_dir_all(&spool).unwrap();
    let row = place.rows(0).remove(0);
    assert_eq!((row.detail.as_deref(), row.trouble), (Some("0 deliveries waiting, 0 set aside"), None));
    let file = spool.join("01K7A2B3C4D5E6F7G8H9J0K1M2.json");
    fs::write(&file, "{}").unwrap();
    let since = modified(&file).unwrap();
    let row = |ms: i64| place.hooks.rows(&place.gauges, since.plus_ms(ms)).remove(0);
    assert_eq!((row(30_000).lag_ms, row(30_000).trouble), (Some(30_000), None));
    assert!(row(30_001).trouble.unwrap().contains("1 hook deliveries in"));
    fs::rename(&file, file.with_extension("bad")).unwrap();
    assert!(row(0).trouble.unwrap().contains("set aside"));
}

#[test]
fn lag_counts_from_the_first_unread_data_until_all_is_read() {
    let (behind, start) = (BehindSince::default(), Instant::now());
    let at = |place: &str, unread: u64, ms: u64| behind.lag_ms(place, unread, start + Duration::from_millis(ms));
    assert_eq!(at("a", 0, 0), 0);
    assert_eq!((at("a", 10, 100), at("b", 0, 100)), (0, 0));
    assert_eq!((at("a", 99, 1_350), at("b", 5, 1_350)), (1_250, 0));
    assert_eq!((at("a", 0, 1_400), at("b", 5, 1_400)), (0, 50));
    assert_eq!(at("a", 1, 9_000), 0, "it began again");
}

#[test]
fn the_server_is_ready_while_its_threads_run_and_the_store_works() {
    let (supervisor, gauges) = (Supervisor::default(), Gauges::default());
    assert_eq!(trouble(&supervisor, &gauges), None);
    gauges.stuck.store(true, Ordering::Relaxed);
    assert_eq!(
        trouble(&supervisor, &gauges).unwrap(),
        "nothing is recorded: writing to the database failed; the server's log says why"
    );
    gauges.store.failed(store::ReadFailure::Full, &"13");
    assert_eq!(trouble(&supervisor, &gauges).unwrap(), "nothing is recorded: the disk is full");
    assert_eq!(store_row(&gauges).trouble, trouble(&supervisor, &gauges));
    gauges.store.recovered();
    gauges.stuck.store(false, Ordering::Relaxed);
    assert_eq!(store_row(&gauges).trouble, None);
    supervisor.spawn("ingest", || panic!("no more")).unwrap();
    supervisor.join("ingest");
    assert_eq!(trouble(&supervisor, &gauges).unwrap(), "thread `ingest` ended: no more");
}

#[test]
fn removed_or_replaced_store_files_are_detected() {
    let dir = tempfile::tempdir().unwrap();
    let (data, database) = (dir.path().join("data"), dir.path().join("data/capture.db"));
    let make = || {
        fs::create_dir(&data).unwrap();
        fs::write(store::lock_file(&data), "").unwrap();
        fs::write(&database, "").unwrap();
    };
    make();
    let files = StoreFiles::of(&database);
    assert_eq!(files.change(), None);
    fs::remove_file(&database).unwrap();
    assert_eq!(files.change().unwrap(), "the database was removed");
    fs::rename(&data, dir.path().join("elsewhere")).unwrap();
    assert_eq!(files.change().unwrap(), "the data directory was removed");
    make();
    assert_eq!(files.change().unwrap(), "the data directory was replaced");
}
