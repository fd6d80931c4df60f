//! `GET /api/v1/sessions/{id}/wait`.

use super::*;
use crate::board::Interest;

/// Waits until somebody waits.
async fn watched(board: &Board) {
    while !board.watched() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn there_already() {
    let desk = Desk::new();
    desk.board.put(entry(1, State::Waiting));
    let answer = desk.get("/api/v1/sessions/agent-1/wait?until=idle,waiting&timeout_ms=0").await;
    assert_eq!(answer.json()["status"]["state"], "waiting");
}

#[tokio::test(start_paused = true)]
async fn not_in_time() {
    let desk = Desk::new();
    desk.board.put(entry(1, State::Running));
    let answer = desk.get("/api/v1/sessions/agent-1/wait?until=idle&timeout_ms=5000").await;
    assert_eq!(answer.error(), (408, "timeout".into()));
    assert!(!desk.board.watched(), "the place was given up");
}

#[tokio::test]
async fn passing_through_counts() {
    let desk = Desk::new();
    desk.board.put(entry(1, State::Running));
    let hand_on = tokio::spawn(desk.board.clone().hand_on(CancellationToken::new()));
    let change = async {
        watched(&desk.board).await;
        announce(&desk.board, None, entry(2, State::Waiting));
        announce(&desk.board, Some(1), entry(1, State::WaitingApproval));
        announce(&desk.board, Some(2), entry(1, State::Running));
    };
    let wait = desk.get("/api/v1/sessions/agent-1/wait?until=waiting_approval");
    let (answer, ()) = tokio::join!(wait, change);
    assert_eq!(answer.json()["status"]["state"], "waiting_approval");
    assert_eq!(answer.json()["id"], id(1).to_string());
    hand_on.abort();
}

#[tokio::test]
async fn a_change_that_was_not_published_is_seen_too() {
    let desk = Desk::new();
    desk.board.put(entry(1, State::Running));
    let hand_on = tokio::spawn(desk.board.clone().hand_on(CancellationToken::new()));
    let change = async {
        watched(&desk.board).await;
        desk.board.put(entry(1, State::Exited));
        desk.board.advance(100);
    };
    let (answer, ()) = tokio::join!(desk.get("/api/v1/sessions/agent-1/wait?until=exited"), change);
    assert_eq!(answer.json()["status"]["state"], "exited");
    hand_on.abort();
}

#[tokio::test]
async fn a_place_among_the_streams_ends_with_its_holder() {
    let board = Board::new("e");
    let place = board.subscribe(Interest::Sessions(vec![id(1)]), 10, 10);
    assert!(board.watched());
    drop(place);
    assert!(!board.watched());
}
