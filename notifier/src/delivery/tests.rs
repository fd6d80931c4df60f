use std::sync::Mutex;

use super::*;
use crate::{Loudness, MessageForm, attempt::AttemptFailure, plan::tests::notice};

/// Returns the given answers, one per attempt, and records the messages.
struct Scripted {
    answers: Vec<Result<(), AttemptFailure>>,
    given: Arc<Mutex<Vec<MessageId>>>,
    /// Waited for before each answer.
    gate: Option<Receiver<()>>,
}

impl Channel for Scripted {
    fn deliver(&mut self, message: &OutgoingMessage, _: Timestamp) -> Result<(), AttemptFailure> {
        if let Some(gate) = &self.gate {
            let _ = gate.recv();
        }
        self.given.lock().unwrap().push(message.id.clone());
        if self.answers.is_empty() { Ok(()) } else { self.answers.remove(0) }
    }
}

struct Setup {
    delivery: Delivery,
    heard: Receiver<Receipt>,
    given: Arc<Mutex<Vec<MessageId>>>,
    gate: Sender<()>,
}

/// A channel `a` with these answers, and a channel `slow` that answers when the gate opens.
fn setup(answers: Vec<Result<(), AttemptFailure>>) -> Setup {
    let given = Arc::new(Mutex::new(Vec::new()));
    let (gate, opened) = bounded(0);
    let a = Scripted { answers, given: given.clone(), gate: None };
    let slow = Scripted { answers: vec![], given: Arc::default(), gate: Some(opened) };
    let (on_receipt, heard) = bounded(1_000);
    let context = ChannelContext::new(Arc::new(|_| None), Arc::new(|| Timestamp::MIN));
    let channels: Vec<(String, &'static str, Box<dyn Channel>)> =
        vec![("a".into(), "test", Box::new(a)), ("slow".into(), "test", Box::new(slow))];
    let delivery = Delivery::begin(channels, context, Arc::new(move |receipt| drop(on_receipt.send(receipt)))).unwrap();
    Setup { delivery, heard, given, gate }
}

fn message(channel: &str, cause: &str) -> OutgoingMessage {
    OutgoingMessage::new(
        channel,
        MessageForm::Single,
        Loudness::Normal,
        vec![notice(cause, "approval")],
        Timestamp::MIN,
    )
}

const PATIENCE: Duration = Duration::from_secs(20);

fn again() -> Result<(), AttemptFailure> {
    Err(AttemptFailure { error: "busy".into(), again: RetryHint::After(Duration::ZERO) })
}

#[test]
fn a_temporary_failure_is_retried_with_the_same_message_id() {
    let Setup { delivery, heard, given, .. } = setup(vec![again(), again(), Ok(())]);
    delivery.send(message("a", "x"));
    let receipt = heard.recv_timeout(PATIENCE).unwrap();
    assert_eq!((receipt.outcome, receipt.causes.as_slice()), (DeliveryOutcome::Sent, ["x".to_owned()].as_slice()));
    assert_eq!(*given.lock().unwrap(), vec![receipt.message_id; 3]);
    assert_eq!(delivery.counts()[0].sent, 1);
}

#[test]
fn permanent_failures_are_not_retried_and_retries_are_limited() {
    let Setup { delivery, heard, .. } =
        setup([vec![Err(AttemptFailure::never("no"))], (0..9).map(|_| again()).collect()].concat());
    delivery.send(message("a", "x"));
    delivery.send(message("a", "y"));
    let ends: Vec<DeliveryOutcome> = (0..2).map(|_| heard.recv_timeout(PATIENCE).unwrap().outcome).collect();
    let failed = |error: &str, attempts| DeliveryOutcome::Failed { error: error.into(), attempts };
    assert_eq!(ends, [failed("no", 1), failed("busy", ATTEMPTS)]);
    assert_eq!(delivery.counts()[0].failed, 2);
}

#[test]
fn a_retry_delay_above_the_maximum_fails_the_delivery() {
    let long = RetryHint::After(LONGEST_PAUSE + Duration::from_secs(1));
    let Setup { delivery, heard, .. } = setup(vec![Err(AttemptFailure { error: "busy".into(), again: long })]);
    delivery.send(message("a", "x"));
    let receipt = heard.recv_timeout(PATIENCE).unwrap();
    assert_eq!(receipt.outcome, DeliveryOutcome::Failed { error: "busy".into(), attempts: 1 });
}

#[test]
fn a_slow_channel_delays_no_other_and_drops_what_its_queue_cannot_hold() {
    let Setup { delivery, heard, gate, .. } = setup(vec![]);
    // One message is in progress or about to be, and a full queue waits.
    for n in 0..QUEUE_CAPACITY + 10 {
        delivery.send(message("slow", &n.to_string()));
    }
    delivery.send(message("a", "fast"));
    let mut dropped = 0;
    loop {
        let receipt = heard.recv_timeout(PATIENCE).unwrap();
        match receipt.outcome {
            DeliveryOutcome::Dropped { why: DropReason::QueueFull } => dropped += 1,
            DeliveryOutcome::Sent => {
                assert_eq!(receipt.causes, ["fast"]);
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!((9..=10).contains(&dropped), "{dropped}");
    for _ in 0..QUEUE_CAPACITY + 10 - dropped {
        gate.send(()).unwrap();
        assert_eq!(heard.recv_timeout(PATIENCE).unwrap().outcome, DeliveryOutcome::Sent);
    }
    assert!(delivery.stop(PATIENCE));
}

#[test]
fn every_message_gets_a_receipt_when_delivery_stops() {
    let Setup { delivery, heard, gate, .. } = setup(vec![Err(AttemptFailure::soon("later"))]);
    delivery.send(message("a", "x"));
    delivery.send(message("slow", "1"));
    delivery.send(message("slow", "2"));
    // The gate stays closed: no message of `slow` is sent before the deadline.
    let opener = std::thread::spawn(move || {
        let over = |receipt: &Receipt| receipt.channel == "a";
        let first = heard.recv_timeout(PATIENCE).unwrap();
        assert!(over(&first) && matches!(first.outcome, DeliveryOutcome::Failed { .. }), "{first:?}");
        (heard, gate)
    });
    let ended = delivery.stop(Duration::from_millis(10));
    let (heard, gate) = opener.join().unwrap();
    assert!(!ended);
    drop(gate);
    let rest: Vec<DeliveryOutcome> = heard.iter().map(|r| r.outcome).collect();
    assert_eq!(rest, [DeliveryOutcome::Sent, DeliveryOutcome::Dropped { why: DropReason::Stopping }]);
}

#[test]
fn a_test_message_returns_its_delivery_receipt() {
    let Setup { delivery, gate: _shut, .. } = setup(vec![]);
    assert_eq!(delivery.test("a", PATIENCE).unwrap().outcome, DeliveryOutcome::Sent);
    assert_eq!(delivery.test("b", PATIENCE).unwrap().outcome, DeliveryOutcome::Dropped { why: DropReason::NoChannel });
    assert_eq!(delivery.test("slow", Duration::ZERO), None);
}

#[test]
fn retry_delays_grow_and_differ_between_messages() {
    let pause = |id: &str, n| backoff(&id.into(), n).as_millis();
    for n in 1..=12 {
        let most = u128::from(BACKOFF_MS) << (n - 1).min(8);
        assert!((most / 2..=most).contains(&pause("x", n)), "{n}: {}", pause("x", n));
    }
    assert_ne!(pause("x", 3), pause("y", 3));
}
