use std::sync::Mutex as StdMutex;

use super::*;

const HOUR_MS: i64 = 3_600_000;
/// An arbitrary time.
const NOW_MS: i64 = 1_000 * DAY_MS;

/// A machine whose clocks are set by the test.
#[derive(Clone)]
pub(crate) struct Clocks(Arc<StdMutex<ClockReading>>);

impl Clocks {
    /// A machine that has been running for some days.
    pub(crate) fn at(wall: Timestamp) -> Self {
        Self(Arc::new(StdMutex::new(ClockReading { wall, boot: "one".into(), since_boot_ms: 5 * DAY_MS })))
    }

    pub(crate) fn read(&self) -> ReadClocks {
        let own = self.clone();
        Arc::new(move || own.0.lock().unwrap().clone())
    }

    /// Lets time pass.
    pub(crate) fn pass(&self, ms: i64) {
        let mut reading = self.0.lock().unwrap();
        reading.since_boot_ms += ms;
        reading.wall = reading.wall.plus_ms(ms);
    }

    /// Changes the wall clock only: it was set, or is wrong.
    pub(crate) fn jump(&self, ms: i64) {
        let mut reading = self.0.lock().unwrap();
        reading.wall = reading.wall.plus_ms(ms);
    }

    /// Turns the machine off for this long, according to the wall clock afterwards, then lets it run for an hour.
    fn reboot(&self, off_ms: i64) {
        self.jump(off_ms);
        let mut reading = self.0.lock().unwrap();
        reading.boot.push('+');
        reading.since_boot_ms = 0;
        drop(reading);
        self.pass(HOUR_MS);
    }
}

/// A data directory and its clocks.
struct World {
    dir: tempfile::TempDir,
    clocks: Clocks,
    newest: Option<Timestamp>,
}

impl World {
    /// The age of the newest event.
    fn new(newest_ms: Option<i64>) -> Self {
        let now = Timestamp::from_millisecond(NOW_MS);
        let newest = newest_ms.map(|age| now.plus_ms(-age));
        Self { dir: tempfile::tempdir().unwrap(), clocks: Clocks::at(now), newest }
    }

    /// A world in which the clock is trusted.
    fn trusted() -> Self {
        let world = Self::new(Some(HOUR_MS));
        assert!(world.open().check().is_ok());
        world
    }

    /// Starts the server.
    fn open(&self) -> ClockCheck {
        ClockCheck::open(self.dir.path(), self.clocks.read(), self.newest)
    }
}

/// Lets time pass in steps, checking the clock after each; returns the time until it was trusted.
fn trusted_after(world: &World, check: &ClockCheck, part_ms: i64) -> i64 {
    let mut passed = 0;
    while check.check().is_err() {
        world.clocks.pass(part_ms);
        passed += part_ms;
        assert!(passed <= 10 * DAY_MS + part_ms, "it is never trusted");
    }
    passed
}

#[test]
fn a_clock_that_keeps_pace_with_the_boot_clock_is_trusted() {
    let world = World::trusted();
    let check = world.open();
    for ms in [1, 60_000, HOUR_MS, 400 * DAY_MS, HOUR_MS] {
        world.clocks.pass(ms);
        assert!(check.check().is_ok(), "{ms}");
        assert!(world.open().check().is_ok(), "{ms}: also after a restart of the server");
    }
}

#[test]
fn a_forward_clock_jump_is_refused_whenever_it_happens() {
    for jump in [2 * HOUR_MS, DAY_MS, 30 * DAY_MS, 365 * DAY_MS, 10_000 * DAY_MS] {
        // While the server runs, while it is stopped, and after a long time without checks.
        for (restarts, quiet) in [(false, 0), (true, 0), (false, 40 * DAY_MS), (true, 40 * DAY_MS)] {
            let world = World::trusted();
            let mut check = world.open();
            world.clocks.pass(quiet);
            world.clocks.jump(jump);
            if restarts {
                check = world.open();
            }
            let doubt = check.check().unwrap_err();
            assert!(doubt.is_contradicted(), "{jump} {restarts} {quiet}: {doubt}");
            assert_eq!(doubt.why, Why::Jumped(jump));
            // Checking again or restarting the server does not help.
            world.clocks.pass(HOUR_MS);
            assert!(check.check().is_err() && world.open().check().is_err());
        }
    }
}

#[test]
fn small_clock_jumps_cannot_accumulate_unnoticed() {
    let world = World::trusted();
    let check = world.open();
    let mut jumped = 0;
    while check.check().is_ok() {
        world.clocks.jump(HOUR_MS / 2);
        world.clocks.pass(HOUR_MS);
        jumped += HOUR_MS / 2;
        assert!(jumped <= 2 * HOUR_MS, "they add up");
    }
}

#[test]
fn a_clock_set_back_after_a_jump_is_trusted_at_once() {
    let world = World::trusted();
    let check = world.open();
    world.clocks.jump(365 * DAY_MS);
    assert!(check.check().is_err());
    world.clocks.pass(HOUR_MS);
    world.clocks.jump(-365 * DAY_MS);
    assert!(check.check().is_ok());
    // A clock that goes back is followed, so a jump to its earlier time counts as a jump.
    world.clocks.jump(-30 * DAY_MS);
    assert!(check.check().is_ok());
    world.clocks.jump(30 * DAY_MS);
    assert!(check.check().is_err());
}

#[test]
fn a_clock_that_jumped_is_trusted_after_keeping_pace_for_a_day() {
    for part in [HOUR_MS, 10 * HOUR_MS, 30 * DAY_MS] {
        let world = World::trusted();
        world.clocks.jump(365 * DAY_MS);
        let check = world.open();
        let after = trusted_after(&world, &check, part);
        assert!((DAY_MS..DAY_MS + part + 1).contains(&after), "{part}: {after}");
        assert!(world.open().check().is_ok());
    }
    // Another jump restarts the waiting time.
    let world = World::trusted();
    let check = world.open();
    world.clocks.jump(100 * DAY_MS);
    assert!(check.check().is_err());
    world.clocks.pass(DAY_MS - HOUR_MS);
    assert!(check.check().is_err());
    world.clocks.jump(100 * DAY_MS);
    world.clocks.pass(2 * HOUR_MS);
    assert!(check.check().is_err());
}

#[test]
fn a_weekend_off_is_trusted_but_two_months_off_count_as_a_jump() {
    let world = World::trusted();
    for off in [0, HOUR_MS, DAY_MS, 3 * DAY_MS - HOUR_MS] {
        world.clocks.reboot(off - HOUR_MS);
        assert!(world.open().check().is_ok(), "{off}");
    }
    world.clocks.reboot(60 * DAY_MS);
    let doubt = world.open().check().unwrap_err();
    assert_eq!((doubt.is_contradicted(), doubt.why), (true, Why::Later(60 * DAY_MS + HOUR_MS)));
    // A laptop that runs for a few hours a day.
    let mut ran = 0;
    while world.open().check().is_err() {
        world.clocks.pass(7 * HOUR_MS);
        let _trusted = world.open().check();
        ran += 8;
        world.clocks.reboot(16 * HOUR_MS);
        assert!(ran < 60, "it is never trusted");
    }
    assert!(ran >= 24, "{ran}");
}

#[test]
fn the_clock_is_not_trusted_right_after_boot() {
    let world = World::trusted();
    world.clocks.reboot(0);
    let check = world.open();
    {
        let mut reading = world.clocks.0.lock().unwrap();
        reading.since_boot_ms = 5_000;
    }
    let doubt = check.check().unwrap_err();
    assert!(!doubt.is_contradicted(), "{doubt}");
    // With an empty battery the clock begins in the past and is set a little later.
    world.clocks.jump(-9_000 * DAY_MS);
    assert!(check.check().is_err());
    world.clocks.jump(9_000 * DAY_MS);
    world.clocks.pass(BOOTED_MS);
    assert!(check.check().is_ok());
}

#[test]
fn without_a_clock_record_the_newest_event_decides_trust() {
    for (newest, is_trusted) in
        [(Some(0), true), (Some(DAY_MS), true), (Some(-DAY_MS), true), (Some(365 * DAY_MS), false), (None, false)]
    {
        let world = World::new(newest);
        let check = world.open();
        let trusted = check.check();
        assert_eq!(trusted.is_ok(), is_trusted, "{newest:?}");
        if let Err(doubt) = trusted {
            assert!(!doubt.is_contradicted(), "a person may remove what is old: {doubt}");
            // New events have the time of the possibly wrong clock.
            let world = World { newest: Some((world.clocks.read())().wall), ..world };
            assert!(world.open().check().is_err(), "{newest:?}");
            assert_eq!(trusted_after(&world, &world.open(), HOUR_MS) / HOUR_MS, 24);
        }
    }
}

#[test]
fn a_confirmed_clock_is_trusted_until_its_next_jump() {
    let world = World::trusted();
    let check = world.open();
    world.clocks.jump(365 * DAY_MS);
    assert!(check.check().is_err());
    check.confirm();
    assert!(check.check().is_ok() && world.open().check().is_ok());
    world.clocks.jump(365 * DAY_MS);
    assert!(check.check().is_err(), "that was the time before");
}

#[test]
fn peeking_at_the_clock_check_changes_no_state() {
    let world = World::trusted();
    let check = world.open();
    let file = || fs::read(world.dir.path().join(FILE)).unwrap();
    let before = file();
    world.clocks.jump(365 * DAY_MS);
    for _ in 0..30 {
        assert!(check.peek().is_err());
        world.clocks.pass(HOUR_MS);
    }
    assert_eq!(file(), before);
    assert_eq!(trusted_after(&world, &check, HOUR_MS) / HOUR_MS, 24, "the time is counted from the first check");
}

#[test]
fn a_damaged_clock_record_is_treated_as_missing() {
    let world = World::trusted();
    for text in ["", "{", "[]", "{\"last\": 3}", "\u{0}\u{0}"] {
        fs::write(world.dir.path().join(FILE), text).unwrap();
        world.clocks.jump(365 * DAY_MS);
        assert!(world.open().check().is_err(), "{text}: the newest event is a year old");
        world.clocks.jump(-365 * DAY_MS);
    }
}

#[test]
fn a_clock_doubt_states_its_reason_and_duration() {
    let world = World::trusted();
    world.clocks.jump(400 * DAY_MS);
    let text = world.open().check().unwrap_err().to_string();
    for part in ["the clock", "1 year later", "right pace for 1 day more", "1973-"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(
        [0, 59_000, 61_000, 7_200_000, 3 * DAY_MS].map(|ms| ClockSpan(ms).to_string()),
        ["0 seconds", "59 seconds", "1 minute", "2 hours", "3 days"]
    );
}
