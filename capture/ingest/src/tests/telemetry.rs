//! Telemetry: late, from any sender, and sometimes repeated.

use events::{Annotation, ErrorClass, ErrorReported, Heartbeat, Topic};

use super::*;

/// A telemetry record of a session with this event time.
fn told(session: &str, record: &str, seconds: f64, payload: impl Into<Payload>) -> NewEvent {
    let source = Source::Telemetry;
    NewEvent { source, ..new(session, &format!("otlp-{record}"), 0, seconds, payload) }
}

fn claim(session: &str, record: &str, seconds: f64, reason: Reason) -> NewEvent {
    let signal = Signal {
        holds_from: None,
        key: None,
        claim: Claim::State { state: State::Running, reason: Some(reason) },
        strength: Confidence::Medium,
        valid_until: Some(at(seconds + 15.0)),
        words: Some(record.into()),
        dialog: None,
    };
    told(session, record, seconds, signal)
}

fn failed(session: &str, record: &str, seconds: f64) -> [NewEvent; 2] {
    let error = ErrorReported { class: ErrorClass::RateLimit, retrying: true, ..ErrorReported::default() };
    let error = told(session, &format!("error-{record}"), seconds, error);
    [error, claim(session, record, seconds, Reason::Retrying)]
}

impl World {
    /// Receives telemetry at that time; returns the sender's reply, once sent.
    fn telemetry(&mut self, seconds: f64, events: Vec<NewEvent>) -> Arc<Mutex<Option<Stored>>> {
        self.now.fetch_max(at(seconds).as_millisecond(), Ordering::Relaxed);
        self.ingest().advance();
        let answered = Arc::new(Mutex::new(None));
        let stored = {
            let answered = Arc::clone(&answered);
            Box::new(move |stored| *answered.lock().unwrap() = Some(stored))
        };
        let came = |event| NewEvent { observed_at: at(seconds), ..event };
        let events = events.into_iter().map(came).collect();
        self.take(IngestInput::Telemetry(TelemetryInput { events, stored }));
        answered
    }

    fn telemetry_now(&mut self, seconds: f64, events: Vec<NewEvent>) -> Stored {
        let answered = self.telemetry(seconds, events);
        assert_eq!(*answered.lock().unwrap(), None, "not before its commit");
        self.commit();
        answered.lock().unwrap().take().unwrap()
    }
}

#[test]
fn telemetry_sent_twice_is_stored_once() {
    let mut world = World::new();
    world.live("s", vec![prompt("s", "one", 1.0)]);
    let batch = || {
        let mut batch = failed("s", "e", 2.0).to_vec();
        batch.push(told("s", "beat", 2.5, Heartbeat {}));
        batch
    };
    assert_eq!(world.telemetry_now(3.0, batch()), Stored::default());
    let before = world.log();
    // The reply was lost, by a dropped connection and by the end of the program.
    world.telemetry_now(4.0, batch());
    world.start();
    assert_eq!(world.telemetry_now(5.0, batch()), Stored::default());
    assert_eq!(world.log(), before);
    world.until(40.0);
    world.assert_sound();
}

#[test]
fn telemetry_does_not_create_an_unknown_session() {
    let mut world = World::new();
    world.live("s", vec![prompt("s", "one", 1.0)]);
    let mut batch = failed("title", "e", 2.0).to_vec();
    batch.push(told("s", "beat", 2.0, Heartbeat {}));
    let stored = world.telemetry_now(3.0, batch);
    assert_eq!(stored.strange, [(Provider::Claude, 2)].into());
    assert_eq!(world.read().find("title").unwrap(), None);
    assert_eq!(world.told("s").last().unwrap(), "heartbeat");
    world.assert_sound();
}

#[test]
fn a_retry_is_shown_until_newer_telemetry_or_a_timeout() {
    let mut world = World::new();
    world.live("s", vec![prompt("s", "one", 1.0)]);
    world.commit();
    world.telemetry_now(3.0, failed("s", "a", 2.0).to_vec());
    assert_eq!(world.status("s"), "running retrying");
    world.telemetry_now(5.0, vec![told("s", "beat", 4.0, Heartbeat {})]);
    assert_eq!(world.status("s"), "running thinking", "the model answered");
    world.telemetry_now(7.0, failed("s", "b", 6.0).to_vec());
    assert_eq!(world.status("s"), "running retrying");
    world.until(20.9);
    assert_eq!(world.status("s"), "running retrying");
    world.until(21.1);
    assert_eq!(world.status("s"), "running thinking", "a claim ends by itself");
    world.assert_sound();
}

#[test]
fn late_telemetry_does_not_override_newer_state() {
    let mut world = World::new();
    world.live("s", vec![prompt("s", "one", 1.0)]);
    world.live("s", vec![block("s", "b", 3.0, "m", Some("I look"), Stop::ToolUse)]);
    world.commit();
    // It happened before the transcript's last line.
    world.telemetry_now(6.0, failed("s", "a", 2.0).to_vec());
    assert_eq!(world.status("s"), "running thinking");
    // This one happened before the end of the turn.
    world.live("s", vec![answer("s", "done", 7.0)]);
    world.telemetry_now(9.0, [failed("s", "b", 6.5).to_vec(), vec![claim("s", "p", 1.0, Reason::Thinking)]].concat());
    assert_eq!(world.status("s"), "waiting turn_complete");
    // A claim for a period that is over is not even stored.
    let before = world.log().len();
    world.telemetry_now(60.0, vec![claim("s", "q", 30.0, Reason::Thinking)]);
    assert_eq!(world.log().len(), before);
    // Out-of-order records do not restore an older state.
    world.live("s", vec![prompt("s", "two", 61.0)]);
    world.telemetry_now(
        63.0,
        vec![claim("s", "new", 62.5, Reason::Retrying), claim("s", "old", 62.0, Reason::Thinking)],
    );
    assert_eq!(world.status("s"), "running retrying");
    world.assert_sound();
}

#[test]
fn late_telemetry_does_not_revive_an_exited_session() {
    let mut world = World::new();
    let alive = Claim::ProcessAlive { pid: 7, start_ticks: 9 };
    world.live("s", vec![registry("s", "alive", 1.0, alive), prompt("s", "one", 1.0)]);
    world.until(2.0);
    world.take(IngestInput::Ended(EndedProcess { pid: 7, start_ticks: 9 }));
    world.until(5.0);
    assert_eq!(world.status("s"), "exited killed");
    let mut batch = vec![told("s", "beat", 1.9, Heartbeat {}), claim("s", "p", 1.5, Reason::Thinking)];
    batch.push(told("s", "beat-2", 4.9, Heartbeat {}));
    world.telemetry_now(6.0, batch);
    assert_eq!(world.status("s"), "exited killed");
    world.assert_sound();
}

#[test]
fn telemetry_does_not_close_an_open_dialog() {
    let mut world = World::new();
    world.live("s", vec![prompt("s", "one", 1.0), claims("s", "asks", 2.0, State::WaitingApproval)]);
    world.commit();
    let approvals = world.session("s").pending_approvals;
    assert_eq!(approvals.len(), 1);
    let note = Annotation { topic: Topic::Notice, value: "Bash allowed by the user".into() };
    world.telemetry_now(
        4.0,
        vec![
            claim("s", "p", 3.0, Reason::Thinking),
            told("s", "decided", 3.5, note),
            told("s", "beat", 3.6, Heartbeat {}),
        ],
    );
    assert_eq!(world.status("s"), "waiting_approval tool");
    assert_eq!(world.session("s").pending_approvals, approvals);
    world.assert_sound();
}

#[test]
fn the_telemetry_sender_is_answered_once_after_a_successful_commit() {
    let mut world = World::new();
    world.live("s", vec![prompt("s", "one", 1.0)]);
    world.commit();
    let answered = world.telemetry(2.0, vec![told("s", "beat", 1.5, Heartbeat {})]);
    // The next event cannot be stored: its position is already used.
    world.ingest().transaction.lose_position();
    world.live("s", vec![prompt("s", "two", 3.0)]);
    world.commit();
    assert_eq!(*answered.lock().unwrap(), Some(Stored::default()), "once, after the second try");
    assert_eq!(world.told("s").iter().filter(|line| *line == "heartbeat").count(), 1);
    world.assert_sound();
}

#[test]
fn telemetry_of_an_uncaptured_session_is_discarded() {
    let mut world = World::new();
    world.live("s", vec![prompt("s", "one", 1.0)]);
    world.commit();
    let id = world.id("s");
    let (reply, _answer) = ChangeReply::new();
    world.take(IngestInput::SetCapture(id, false, reply));
    world.commit();
    let before = world.log().len();
    assert_eq!(world.telemetry_now(3.0, vec![told("s", "beat", 2.0, Heartbeat {})]), Stored::default());
    assert_eq!(world.log().len(), before);
}

/// The session is found between the claim and its commit: the claimant must repeat the claim.
#[test]
fn a_claim_for_a_session_found_before_the_commit_must_be_repeated() {
    let mut world = World::new();
    let told = Arc::new(Mutex::new(Vec::new()));
    let claim = Claim::State { state: State::Running, reason: None };
    let claims = |world: &mut World| {
        let stored = Arc::clone(&told);
        let events = vec![new("late", "claim", 0, 1.0, Signal::new(claim.clone(), Confidence::High, None))];
        let stored = Box::new(move |unknown: Vec<Arc<str>>| stored.lock().unwrap().push(unknown));
        world.take(IngestInput::Protocol(ProtocolInput::Claims { events, stored }));
    };
    claims(&mut world);
    world.past("late", vec![prompt("late", "a", 0.5)]);
    world.commit();
    claims(&mut world);
    world.commit();
    assert_eq!(*told.lock().unwrap(), [vec![Arc::from("late")], vec![]]);
}
