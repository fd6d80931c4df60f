//! `GET /api/v1/sessions/{id}/wait`.

use super::*;
use crate::live_view::Interest;

/// Waits until somebody waits.
async fn watched(live_view: &LiveView) {
    while !live_view.watched() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn there_already() {
    let desk = Desk::new();
    desk.live_view.put(entry(1, State::Waiting));
    let answer = desk.get("/api/v1/sessions/agent-1/wait?until=idle,waiting&timeout_ms=0").await;
    assert_eq!(answer.json()["status"]["state"], "waiting");
}

#[tokio::test(start_paused = true)]
async fn not_in_time() {
    let desk = Desk::new();
    desk.live_view.put(entry(1, State::Running));
    let answer = desk.get("/api/v1/sessions/agent-1/wait?until=idle&timeout_ms=5000").await;
    assert_eq!(answer.error(), (408, "timeout".into()));
    assert!(!desk.live_view.watched(), "the place was given up");
}

#[tokio::test]
async fn passing_through_counts() {
    let desk = Desk::new();
    desk.live_view.put(entry(1, State::Running));
    let hand_on = tokio::spawn(desk.live_view.clone().hand_on(CancellationToken::new()));
    let change = async {
        watched(&desk.live_view).await;
        announce(&desk.live_view, None, entry(2, State::Waiting));
        announce(&desk.live_view, Some(1), entry(1, State::WaitingApproval));
        announce(&desk.live_view, Some(2), entry(1, State::Running));
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
    desk.live_view.put(entry(1, State::Running));
    let hand_on = tokio::spawn(desk.live_view.clone().hand_on(CancellationToken::new()));
    let change = async {
        watched(&desk.live_view).await;
        desk.live_view.put(entry(1, State::Exited));
        desk.live_view.advance(100);
    };
    let (answer, ()) = tokio::join!(desk.get("/api/v1/sessions/agent-1/wait?until=exited"), change);
    assert_eq!(answer.json()["status"]["state"], "exited");
    hand_on.abort();
}

#[tokio::test]
async fn a_place_among_the_streams_ends_with_its_holder() {
    let live_view = LiveView::new("e");
    let place = live_view.subscribe(Interest::Sessions(vec![id(1)]), 10, 10);
    assert!(live_view.watched());
    drop(place);
    assert!(!live_view.watched());
}
