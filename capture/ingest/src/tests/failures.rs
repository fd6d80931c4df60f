//! Failures to store: no input is half applied, and all are applied later.

use super::*;

impl World {
    /// Makes storing the next event fail: its position is already used.
    fn break_once(&mut self) {
        self.ingest().transaction.lose_position();
    }

    fn failed(&self) -> (u64, bool) {
        (self.gauges.counters.commits_failed.get(), self.gauges.stuck.load(Ordering::Relaxed))
    }
}

fn first(world: &mut World) {
    world.live("s", vec![prompt("s", "one", 1.0), answer("s", "yes", 2.0)]);
    world.live("t", vec![prompt("t", "other", 2.0)]);
    world.commit();
}

fn second(world: &mut World) {
    world.live(
        "s",
        vec![
            prompt("s", "two", 3.0),
            block("s", "b1", 4.0, "m", Some("I look"), Stop::ToolUse),
            block("s", "b2", 4.0, "m", None, Stop::ToolUse),
            call("s", "c", 4.0),
        ],
    );
}

fn third(world: &mut World) {
    world.live(
        "new",
        vec![started("new", 5.0, helper_of("t")), prompt("new", "task", 5.0), tokens("new", "m9", 5.0, 9)],
    );
}

#[test]
fn a_failed_transaction_is_retried_as_a_whole() {
    let mut expected = World::new();
    first(&mut expected);
    second(&mut expected);
    third(&mut expected);
    expected.commit();

    let mut world = World::new();
    first(&mut world);
    let before = world.log();
    second(&mut world);
    assert_eq!(world.log(), before, "nothing of an open transaction is seen");
    world.break_once();
    third(&mut world);
    assert_eq!(world.failed(), (1, false));
    world.commit();
    assert_eq!(world.log(), expected.log(), "the same positions, sequences and times");
    for session in ["s", "t", "new"] {
        assert_eq!(world.session(session), expected.session(session));
    }
    assert_eq!(world.read().session_usage(world.id("new")).unwrap()[0].2.output_tokens, 9, "counted once");
    assert_eq!(world.live_view.position(), world.log().len() as u64);
    world.assert_sound();
    // It continues from there, before and after a restart.
    world.live("s", vec![result("s", "r", "c", 6.0)]);
    world.commit();
    world.start();
    world.live("s", vec![answer("s", "done", 7.0)]);
    world.until(300.0);
    assert_eq!(world.status("s"), "idle quiet");
    world.assert_sound();
}

#[test]
fn a_capture_switch_survives_a_failed_transaction() {
    let mut world = World::new();
    first(&mut world);
    let (reply, mut answer) = ChangeReply::new();
    world.take(IngestInput::SetCapture(world.id("t"), false, reply));
    world.break_once();
    world.live("s", vec![prompt("s", "two", 3.0)]);
    world.commit();
    assert_eq!((world.failed(), answer.try_recv().unwrap().unwrap()), ((1, false), true));
    world.live("t", vec![prompt("t", "unheard", 4.0)]);
    world.commit();
    assert_eq!(world.told("t").last().unwrap(), "capture: off");
    world.assert_sound();
}

#[test]
fn time_advanced_in_a_failed_transaction_is_advanced_again() {
    let mut world = World::new();
    first(&mut world);
    world.now.store(at(130.0).as_millisecond(), Ordering::Relaxed);
    world.break_once();
    world.ingest().advance();
    world.until(130.0);
    assert_eq!(world.failed(), (1, false));
    assert_eq!(world.status("s"), "idle quiet");
    world.assert_sound();
}

#[test]
fn transcript_offsets_survive_a_failed_transaction() {
    let mut world = World::new();
    first(&mut world);
    // The row is behind its log when the next transaction fails.
    world.live("s", vec![answer("s", "more", 3.0)]);
    world.ingest().commit();
    let offset = world.offsets[&path_of("s")];
    world.break_once();
    world.live("t", vec![prompt("t", "again", 4.0)]);
    world.commit();
    assert_eq!(world.failed(), (1, false));
    assert_eq!(world.session("s").transcripts[0].offset, offset);
}
