//! Waits until a session reaches a state.
//!
//! Without a position, the current state decides. With a position, only the log after it decides, and a state in which
//! the session waits for a prompt ends the wait only once a turn has begun after the position. So a client can wait for
//! the turn that its prompt starts, however soon that turn begins or ends.

use std::{collections::VecDeque, time::Duration};

use api::{Operation, routes::WaitForState};
use axum::response::Response;
use events::{Event, Kind, Payload, Reason, SessionId, State, StatusChanged};
use live_view::{FrameKind, Interest, Json};
use projections::Session;
use tokio::time::{Instant, timeout_at};

use crate::{
    answer::{self, HandlerResult},
    call::Call,
    error::ApiError,
    lookup::{moved, target},
};

const DEFAULT_TIMEOUT_MS: u64 = 30_000;
const MAX_TIMEOUT_MS: u64 = 3_600_000;
/// Number of events read from the log at once.
const PAGE: usize = 1_000;

/// `GET /api/v1/sessions/{id}/wait`
pub(crate) async fn wait(call: Call<WaitForState>) -> HandlerResult {
    let until = &call.query.until.0;
    let timeout_ms = call.query.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS).min(MAX_TIMEOUT_MS);
    let id = target(&call).await?;
    let deadline = Instant::now() + Duration::from_millis(timeout_ms);
    tokio::select! {
        () = call.app.cancel.cancelled() => Err(ApiError::unavailable("the server is stopping")),
        answer = reached(&call, id, until, call.query.after, deadline) => match answer? {
            Some(answer) => Ok(answer),
            None => Err(ApiError::timeout(format!("the state was not reached within {timeout_ms} ms"))),
        },
    }
}

/// Answers when the session is in or passes through one of the states; `None` after the deadline. It checks at least
/// once, however short the deadline is.
async fn reached<O: Operation>(
    call: &Call<O>,
    id: SessionId,
    until: &[State],
    after: Option<u64>,
    deadline: Instant,
) -> Result<Option<Response>, ApiError> {
    let app = &call.app;
    let subscription =
        app.live_view.subscribe(Interest::Sessions(vec![id]), app.limits.queue_frames, app.limits.queue_bytes);
    let mut frames = VecDeque::new();
    let mut behind = after.map(Behind::new);
    loop {
        subscription.mend();
        let reached = match &mut behind {
            Some(behind) => behind.look(call, id, until).await?,
            None => now(call, id, until).await?,
        };
        if let Some(json) = reached {
            return Ok(Some(answer::json(json.bytes())));
        }
        // Read frames one by one: a state that was left again immediately still counts.
        loop {
            match timeout_at(deadline, subscription.take(&mut frames)).await {
                Ok(Ok(_)) => {}
                Ok(Err(_)) => break,
                Err(_) => return Ok(None),
            }
            // The session was merged into another one, whose states count.
            if let Some(target) = app.live_view.get(id).and_then(|entry| entry.merged_into) {
                return Err(moved(call, target));
            }
            if behind.is_some() {
                if frames.drain(..).any(|frame| tells(frame.kind)) {
                    break;
                }
                continue;
            }
            let reached =
                frames.drain(..).find(|frame| matches!(frame.kind, FrameKind::Status(state) if until.contains(&state)));
            if let Some(frame) = reached {
                return Ok(Some(answer::json(frame.json.bytes())));
            }
        }
    }
}

/// The kinds of events about turns and states.
const KINDS: [Kind; 4] = [Kind::UserPrompt, Kind::TurnStarted, Kind::TurnCompleted, Kind::StatusChanged];

/// Whether a frame may be relevant to [`Behind`].
fn tells(kind: FrameKind) -> bool {
    match kind {
        FrameKind::Status(_) => true,
        FrameKind::Event(kind) => KINDS.contains(&kind),
        FrameKind::Approval | FrameKind::Finding | FrameKind::Delta => false,
    }
}

/// The log of a session after a position.
struct Behind {
    position: u64,
    /// The sequence up to which the session's log was read.
    read: Option<u64>,
    turn: TurnSeen,
}

/// The observed progress of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TurnSeen {
    None,
    /// The turn began. The state may still be the previous one, because the screen shows the prompt until the agent
    /// redraws it.
    Begun,
    /// The agent was seen working.
    Working,
    Over,
}

impl TurnSeen {
    /// Whether entering a state now counts.
    fn counts(self, to: State, reason: Option<Reason>) -> bool {
        match (to, self) {
            (State::Running | State::WaitingApproval | State::Exited | State::Unknown, _) => true,
            (State::Waiting | State::Idle, Self::Working | Self::Over) => true,
            (State::Waiting | State::Idle, Self::None) => false,
            // Only reasons that cannot date from before the turn, such as a question or an error.
            (State::Waiting | State::Idle, Self::Begun) => {
                reason.is_some_and(|reason| !reason.facts().waiting.is_some_and(|waiting| waiting.may_precede_turn))
            }
        }
    }
}

impl Behind {
    const fn new(position: u64) -> Self {
        Self { position, read: None, turn: TurnSeen::None }
    }

    /// Reads further events; returns the session if it reached one of the states.
    async fn look<O: Operation>(
        &mut self,
        call: &Call<O>,
        id: SessionId,
        until: &[State],
    ) -> Result<Option<Json>, ApiError> {
        if let Some(target) = call.app.live_view.get(id).and_then(|entry| entry.merged_into) {
            return Err(moved(call, target));
        }
        loop {
            let read = self.read;
            let found = call.app.read(move |reader| {
                let events = match read {
                    Some(sequence) => reader.events(id, sequence, PAGE, &KINDS)?,
                    None => reader.last_events(id, PAGE, &KINDS)?,
                };
                Ok((events, reader.session(id)?))
            });
            let (events, session) = found.await?;
            let Some(mut session) = session else { return Ok(None) };
            let is_all = read.is_none() || events.len() < PAGE;
            if let Some(change) = self.fold(&events, until) {
                (session.status.state, session.status.reason) = change;
                return json_of(&session).map(Some);
            }
            if is_all {
                // If a turn was over before any change was seen, the state did not change.
                let over = self.turn == TurnSeen::Over && until.contains(&session.status.state);
                return over.then(|| json_of(&session)).transpose();
            }
        }
    }

    /// Folds events; returns the state and reason if one of the states was reached.
    fn fold(&mut self, events: &[Event], until: &[State]) -> Option<(State, Option<Reason>)> {
        self.read = events.last().map(|last| last.sequence).or(self.read).or(Some(0));
        for event in events.iter().filter(|event| event.position > self.position && event.agent_id.is_none()) {
            #[expect(clippy::wildcard_enum_match_arm, reason = "nothing else tells of a turn or a state")]
            match &event.payload {
                Payload::UserPrompt(_) | Payload::TurnStarted(_) if self.turn != TurnSeen::Working => {
                    self.turn = TurnSeen::Begun;
                }
                Payload::TurnCompleted(_) if self.turn != TurnSeen::None => self.turn = TurnSeen::Over,
                Payload::StatusChanged(StatusChanged { to, reason, .. }) => {
                    if *to == State::Running {
                        self.turn = TurnSeen::Working;
                    }
                    if until.contains(to) && self.turn.counts(*to, *reason) {
                        return Some((*to, *reason));
                    }
                }
                _ => {}
            }
        }
        None
    }
}

fn json_of(session: &Session) -> Result<Json, ApiError> {
    Json::of(session).map_err(|cause| ApiError::internal(&cause))
}

async fn now<O: Operation>(call: &Call<O>, id: SessionId, until: &[State]) -> Result<Option<Json>, ApiError> {
    let app = &call.app;
    match app.live_view.get(id) {
        Some(entry) => {
            if let Some(target) = entry.merged_into {
                return Err(moved(call, target));
            }
            if !until.contains(&entry.state) {
                return Ok(None);
            }
            Ok(app.session_jsons(vec![entry]).await?.into_iter().next())
        }
        None => {
            let session = app.read(move |reader| reader.session(id)).await?;
            let reached = session.filter(|session| until.contains(&session.status.state));
            reached.as_ref().map(json_of).transpose()
        }
    }
}
