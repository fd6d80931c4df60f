use super::*;
use crate::ChangeReply;
use events::{ApprovalId, SessionId};

/// Longer than any of these waits should need on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// An input with a reply channel.
fn label(reply: ChangeReply) -> IngestInput {
    IngestInput::Label(SessionId::from_bits(1), Vec::new(), reply)
}

/// An input identified by its number.
fn waits(n: u128) -> IngestInput {
    IngestInput::Waits(SessionId::from_bits(n), ApprovalId::default(), true)
}

fn number(input: &IngestInput) -> u128 {
    match input {
        IngestInput::Waits(session, ..) => session.bits(),
        _ => 0,
    }
}

#[test]
fn senders_get_room_in_arrival_order() {
    let (handle, inputs) = channel(1);
    handle.send(waits(1)).unwrap();
    assert_eq!(handle.try_send(waits(9)), Err(NotSent::Full));
    assert_eq!(handle.send_timeout(waits(9), Duration::from_millis(1)), Err(NotSent::Full));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    // A task waits for room, and a thread that arrived later waits too.
    let mut task = Box::pin(handle.send_async(waits(2)));
    runtime.block_on(async {
        std::future::poll_fn(|context| {
            assert!(task.as_mut().poll(context).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
    });
    let thread = std::thread::spawn({
        let handle = handle.clone();
        move || handle.send(waits(3))
    });
    let taken: Vec<u128> = (0..3).map(|_| number(&inputs.recv(PATIENCE).unwrap().unwrap())).collect();
    assert_eq!(taken, [1, 2, 3]);
    runtime.block_on(task).unwrap();
    thread.join().unwrap().unwrap();
    assert!(inputs.recv(Duration::from_millis(1)).unwrap().is_none());
    drop(handle);
    assert!(inputs.recv(PATIENCE).is_err());
}

#[test]
fn unread_inputs_are_dropped_with_their_reply_when_ingest_stops() {
    let (handle, inputs) = channel(1);
    let (reply, first) = ChangeReply::new();
    handle.send(label(reply)).unwrap();
    let (reply, second) = ChangeReply::new();
    // Whether it is already waiting for room or arrives later, it is dropped.
    let waits_for_room = std::thread::spawn({
        let handle = handle.clone();
        move || handle.send(label(reply))
    });
    drop(inputs);
    assert!(first.blocking_recv().is_err());
    assert!(second.blocking_recv().is_err());
    assert_eq!(waits_for_room.join().unwrap(), Err(IngestStopped));
    assert_eq!(handle.send(waits(1)), Err(IngestStopped));
    assert_eq!(handle.try_send(waits(1)), Err(NotSent::Stopped(IngestStopped)));
    assert_eq!(handle.sender.len(), 0);
}
