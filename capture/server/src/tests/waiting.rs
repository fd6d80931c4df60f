//! `GET /api/v1/sessions/{id}/wait`.

use events::{TurnCompleted, TurnOutcome, TurnStarted, TurnTrigger};
use live_view::Interest;

use super::*;

/// Waits until a client waits.
async fn watched(live_view: &LiveView) {
    while !live_view.watched() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_wait_ends_at_once_if_the_state_is_already_reached() {
    let server = TestServer::new();
    server.live_view.put(entry(1, State::Waiting));
    let answer = server.get("/api/v1/sessions/agent-1/wait?until=idle,waiting&timeout_ms=0").await;
    assert_eq!(answer.json()["status"]["state"], "waiting");
}

#[tokio::test(start_paused = true)]
async fn a_wait_times_out_and_drops_its_subscription() {
    let server = TestServer::new();
    server.live_view.put(entry(1, State::Running));
    let answer = server.get("/api/v1/sessions/agent-1/wait?until=idle&timeout_ms=5000").await;
    assert_eq!(answer.error(), (408, "timeout".into()));
    assert!(!server.live_view.watched(), "the place was given up");
}

#[tokio::test]
async fn a_wait_ends_for_a_state_that_was_reached_only_briefly() {
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
async fn a_wait_notices_an_unpublished_change() {
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
async fn a_wait_for_a_session_that_is_merged_meanwhile_is_redirected() {
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
async fn dropping_a_subscription_removes_it() {
    let live_view = LiveView::new("e");
    let place = live_view.subscribe(Interest::Sessions(vec![id(1)]), 10, 10);
    assert!(live_view.watched());
    drop(place);
    assert!(!live_view.watched());
}

/// A change to a state.
fn change(sequence: u64, position: u64, to: State) -> Event {
    changed(1, sequence, position, State::Waiting, to)
}

/// Sends a wait to a server whose session is waiting and has these events after position 1; returns the response.
async fn waited(behind: &[Event], until: &str) -> Answered {
    let mut server = TestServer::new();
    let row = server.log.session(&session(1, State::Waiting));
    server.log.append(row, &[change(1, 1, State::Waiting)]);
    if !behind.is_empty() {
        server.log.append(row, behind);
    }
    server.live_view.put(entry(1, State::Waiting));
    server.get(&format!("/api/v1/sessions/agent-1/wait?until={until}&after=1&timeout_ms=0")).await
}

#[tokio::test(start_paused = true)]
async fn a_state_from_before_the_position_does_not_end_a_wait() {
    assert_eq!(waited(&[], "waiting").await.error(), (408, "timeout".into()));
    // The state changed, but no turn began.
    assert_eq!(waited(&[change(2, 2, State::Waiting)], "waiting").await.error(), (408, "timeout".into()));
    assert_eq!(waited(&[change(2, 2, State::Idle)], "waiting,idle").await.error(), (408, "timeout".into()));
}

#[tokio::test(start_paused = true)]
async fn a_turn_completed_after_the_position_ends_a_wait() {
    let turn = [change(2, 2, State::Running), change(3, 3, State::Waiting)];
    assert_eq!(waited(&turn, "waiting").await.json()["status"]["state"], "waiting");
    assert_eq!(waited(&turn[..1], "waiting").await.error(), (408, "timeout".into()), "it has only begun");
    // A prompt and its end, without an observed state change in between.
    let whole = [
        prompt(1, 2, 2),
        event(1, 3, 3, Payload::TurnStarted(TurnStarted { trigger: TurnTrigger::Prompt, number: 1 })),
        event(
            1,
            4,
            4,
            Payload::TurnCompleted(TurnCompleted {
                outcome: TurnOutcome::Completed,
                number: 1,
                duration_ms: 1,
                ..TurnCompleted::default()
            }),
        ),
    ];
    assert_eq!(waited(&whole, "waiting").await.json()["status"]["state"], "waiting");
    assert_eq!(waited(&whole[..2], "waiting").await.error(), (408, "timeout".into()), "it is not over");
    // The screen still shows the previous prompt.
    let early = [whole[0].clone(), whole[1].clone(), change(4, 4, State::Waiting)];
    assert_eq!(waited(&early, "waiting").await.error(), (408, "timeout".into()), "it has not begun to work");
    // The end of an earlier turn.
    assert_eq!(waited(&whole[2..], "waiting").await.error(), (408, "timeout".into()));
}

#[tokio::test(start_paused = true)]
async fn a_state_reached_briefly_after_the_position_ends_a_wait() {
    let asks = [change(2, 2, State::Running), change(3, 3, State::WaitingApproval), change(4, 4, State::Running)];
    let answer = waited(&asks, "waiting,waiting_approval").await;
    assert_eq!(answer.json()["status"]["state"], "waiting_approval");
    assert_eq!(waited(&asks[1..2], "waiting_approval").await.json()["status"]["state"], "waiting_approval");
}

#[tokio::test]
async fn a_wait_continues_until_a_turn_after_the_position_ends() {
    let mut server = TestServer::new();
    let mut log = std::mem::replace(&mut server.log, Log::new());
    let row = log.session(&session(1, State::Waiting));
    log.append(row, &[change(1, 1, State::Waiting)]);
    server.live_view.put(entry(1, State::Waiting));
    let relay_frames = tokio::spawn(server.live_view.clone().relay_frames(CancellationToken::new()));
    let changes = async {
        watched(&server.live_view).await;
        for (at, state) in [(2, State::Running), (3, State::Waiting)] {
            log.append(row, &[change(at, at, state)]);
            announce(&server.live_view, Some(at), entry(1, state));
        }
    };
    let wait = server.get("/api/v1/sessions/agent-1/wait?until=waiting&after=1");
    let (answer, ()) = tokio::join!(wait, changes);
    assert_eq!(answer.json()["status"]["state"], "waiting");
    relay_frames.abort();
}
