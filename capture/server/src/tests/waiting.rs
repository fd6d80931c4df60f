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
    let server = TestServer::new();
    server.live_view.put(entry(1, State::Waiting));
    let answer = server.get("/api/v1/sessions/agent-1/wait?until=idle,waiting&timeout_ms=0").await;
    assert_eq!(answer.json()["status"]["state"], "waiting");
}

#[tokio::test(start_paused = true)]
async fn not_in_time() {
    let server = TestServer::new();
    server.live_view.put(entry(1, State::Running));
    let answer = server.get("/api/v1/sessions/agent-1/wait?until=idle&timeout_ms=5000").await;
    assert_eq!(answer.error(), (408, "timeout".into()));
    assert!(!server.live_view.watched(), "the place was given up");
}

#[tokio::test]
async fn passing_through_counts() {
    let server = TestServer::new();
    server.live_view.put(entry(1, State::Running));
    let relay_frames = tokio::spawn(server.live_view.clone().relay_frames(CancellationToken::new()));
    let change = async {
        watched(&server.live_view).await;
        announce(&server.live_view, None, entry(2, State::Waiting));
        announce(&server.live_view, Some(1), entry(1, State::WaitingApproval));
        announce(&server.live_view, Some(2), entry(1, State::Running));
    };
    let wait = server.get("/api/v1/sessions/agent-1/wait?until=waiting_approval");
    let (answer, ()) = tokio::join!(wait, change);
    assert_eq!(answer.json()["status"]["state"], "waiting_approval");
    assert_eq!(answer.json()["id"], id(1).to_string());
    relay_frames.abort();
}

#[tokio::test]
async fn a_change_that_was_not_published_is_seen_too() {
    let server = TestServer::new();
    server.live_view.put(entry(1, State::Running));
    let relay_frames = tokio::spawn(server.live_view.clone().relay_frames(CancellationToken::new()));
    let change = async {
        watched(&server.live_view).await;
        server.live_view.put(entry(1, State::Exited));
        server.live_view.advance(100);
    };
    let (answer, ()) = tokio::join!(server.get("/api/v1/sessions/agent-1/wait?until=exited"), change);
    assert_eq!(answer.json()["status"]["state"], "exited");
    relay_frames.abort();
}

#[tokio::test]
async fn a_session_that_is_merged_meanwhile_is_waited_for_as_what_it_became() {
    let server = TestServer::new();
    server.live_view.put(entry(1, State::Running));
    server.live_view.put(entry(2, State::Running));
    let relay_frames = tokio::spawn(server.live_view.clone().relay_frames(CancellationToken::new()));
    let change = async {
        watched(&server.live_view).await;
        let merged = SessionEntry { merged_into: Some(id(2)), ..entry(1, State::Exited) };
        announce(&server.live_view, Some(1), merged);
    };
    let (answer, ()) = tokio::join!(server.get("/api/v1/sessions/agent-1/wait?until=exited,idle"), change);
    assert_eq!(answer.error(), (308, "merged".into()), "the end of the former id is not the end of the session");
    let on = format!("/api/v1/sessions/{}/wait?until=exited,idle", id(2));
    assert_eq!(answer.head.headers[header::LOCATION], on);
    relay_frames.abort();
}

#[tokio::test]
async fn a_place_among_the_streams_ends_with_its_holder() {
    let live_view = LiveView::new("e");
    let place = live_view.subscribe(Interest::Sessions(vec![id(1)]), 10, 10);
    assert!(live_view.watched());
    drop(place);
    assert!(!live_view.watched());
}
