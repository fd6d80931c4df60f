//! Runs: the processes that `capture run` started. The daemon forwards requests to their terminal hosts.

use api::{
    ErrorCode, Operation,
    hooks::{DeliveryTaken, DeltaTaken, TextDelta},
    list::Limit,
    part::{PART_HINT, shown},
    routes::{
        AnnounceDelivery, ConnectHost, ExplainRun, ExplainSession, GetRun, ListRuns, RunInput, RunRecording,
        RunRecordingFrames, RunScreen, SendDelta, SessionScreen,
    },
    runs::{Input, RunPage},
};
use axum::{body::Body, response::Response};
use events::Source;
use http::{HeaderValue, StatusCode, header};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use live_view::{Delta, HostConnection, Refusal, RunTarget};

use crate::{
    answer::HandlerResult,
    call::Call,
    connection::Transport,
    error::ApiError,
    lookup::{id_of, target},
};

/// Number of frames of a recording per answer.
const FRAMES: usize = 300;

/// `GET /api/v1/host`: the host of a run connects. The connection is upgraded from HTTP and passed to the daemon.
pub(crate) async fn host(mut call: Call<ConnectHost>) -> HandlerResult {
    let app = call.app.clone();
    let protocol = app.host_protocol;
    let wanted = || {
        ApiError::new(ErrorCode::UpgradeRequired, format!("this route needs the header `Upgrade: {protocol}`"))
            .header(header::UPGRADE, HeaderValue::from_static(protocol))
    };
    let named = call.parts.headers.get(header::UPGRADE).and_then(|v| v.to_str().ok());
    if !named.is_some_and(|named| named.eq_ignore_ascii_case(protocol)) {
        return Err(wanted());
    }
    let Transport::Unix(peer) = call.connection.transport else {
        return Err(ApiError::new(ErrorCode::UnixOnly, "terminal hosts must connect over the Unix socket"));
    };
    let upgrade = call.parts.extensions.remove::<OnUpgrade>().ok_or_else(wanted)?;
    let slot = call.stream()?;
    let task = {
        let app = app.clone();
        async move {
            match upgrade.await {
                Ok(upgraded) => {
                    let connection = HostConnection(Box::new(TokioIo::new(upgraded)));
                    app.control.serve_host(connection, peer).await;
                }
                Err(cause) => tracing::debug!(%cause, "cannot upgrade the connection of a terminal host"),
            }
            drop(slot);
        }
    };
    let cancel = app.cancel.clone();
    app.tasks.spawn(cancel.run_until_cancelled_owned(task));
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    response.headers_mut().insert(header::UPGRADE, HeaderValue::from_static(protocol));
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    Ok(response)
}

/// `POST /api/v1/deliveries`: a hook reports that it wrote to the spool, or that the spool is full. The response is
/// sent as soon as the report is received.
pub(crate) async fn delivery(mut call: Call<AnnounceDelivery>) -> HandlerResult {
    let notice = call.body().await?;
    let control = &call.app.control;
    let reply = match notice.lost {
        Some(why) => control.lose_delivery(why),
        None => control.accept_delivery(notice.id),
    };
    call.app.ask(reply).await?;
    call.answer(&DeliveryTaken {})
}

/// `POST /api/v1/deltas`: text that an agent is currently producing. Nothing is sent for a session that is not known
/// yet.
pub(crate) async fn delta(mut call: Call<SendDelta>) -> HandlerResult {
    let TextDelta { provider, session_id, text, joined, lost } = call.body().await?;
    let live_view = &call.app.live_view;
    let session = live_view.find(&session_id).filter(|id| live_view.get(*id).is_some_and(|s| s.provider == provider));
    match session {
        Some(session) => {
            live_view.offer_delta(Delta { session, provider, source: Source::Protocol, text, joined });
            live_view.count_lost_deltas(lost);
        }
        None => live_view.count_lost_deltas(lost.saturating_add(joined).saturating_add(1)),
    }
    call.answer(&DeltaTaken {})
}

/// `GET /api/v1/runs`
pub(crate) async fn list(call: Call<ListRuns>) -> HandlerResult {
    call.app.control.runs_reconnected().await;
    let as_of = call.app.live_view.mark().position;
    let runs = call.app.control.runs()?;
    call.answer(&RunPage { as_of, runs, next_cursor: None })
}

/// `GET /api/v1/runs/{id}`
pub(crate) async fn one(call: Call<GetRun>) -> HandlerResult {
    let run = call.app.control.run(&of_run(&call).await?)?;
    call.answer(&run)
}

/// `GET /api/v1/runs/{id}/screen`
pub(crate) async fn screen(call: Call<RunScreen>) -> HandlerResult {
    let screen = call.app.ask(call.app.control.screen(of_run(&call).await?)).await?;
    call.answer(&screen)
}

/// `GET /api/v1/runs/{id}/recording`
pub(crate) async fn recording(call: Call<RunRecording>) -> HandlerResult {
    let recording = call.app.ask(call.app.control.recording(of_recorded(&call).await)).await?;
    call.answer(&recording)
}

/// `GET /api/v1/runs/{id}/recording/frames`
pub(crate) async fn recorded_frames(call: Call<RunRecordingFrames>) -> HandlerResult {
    let (from_ms, limit) = (call.query.from_ms.unwrap_or_default(), call.query.limit.map_or(FRAMES, Limit::get));
    let target = of_recorded(&call).await;
    let frames = call.app.ask(call.app.control.recorded_frames(target, from_ms, limit)).await?;
    call.answer(&frames)
}

/// The run in a path. A run that is no longer listed may still have a recording.
async fn of_recorded<O: Operation>(call: &Call<O>) -> RunTarget {
    of_run(call).await.unwrap_or_else(|_| RunTarget::Run(call.segment.clone()))
}

/// `GET /api/v1/runs/{id}/explain`
pub(crate) async fn explain(call: Call<ExplainRun>) -> HandlerResult {
    let explanation = call.app.ask(call.app.control.explain_screen(of_run(&call).await?)).await?;
    call.answer(&explanation)
}

/// `POST /api/v1/runs/{id}/input`
pub(crate) async fn input(mut call: Call<RunInput>) -> HandlerResult {
    let input = checked(call.body().await?)?;
    let sent = call.app.send_input(of_run(&call).await?, input).await?;
    call.answer(&sent)
}

/// `GET /api/v1/sessions/{id}/screen`
pub(crate) async fn session_screen(call: Call<SessionScreen>) -> HandlerResult {
    let target = RunTarget::Session(target(&call).await?);
    let screen = call.app.ask(call.app.control.screen(target)).await?;
    call.answer(&screen)
}

/// `GET /api/v1/sessions/{id}/explain`
pub(crate) async fn session_explain(call: Call<ExplainSession>) -> HandlerResult {
    let target = RunTarget::Session(target(&call).await?);
    let explanation = call.app.ask(call.app.control.explain_screen(target)).await?;
    call.answer(&explanation)
}

/// The run in the path, by its id, part of its id, or its name; otherwise the run that hosts the session of this name.
pub(super) async fn of_run<O: Operation>(call: &Call<O>) -> Result<RunTarget, ApiError> {
    let target = RunTarget::Run(call.segment.clone());
    let Err(Refusal::NotFound(_)) = call.app.control.run(&target) else { return Ok(target) };
    call.app.control.runs_reconnected().await;
    let Err(Refusal::NotFound(_)) = call.app.control.run(&target) else { return Ok(target) };
    match id_of(&call.app, &call.segment).await {
        Ok(session) => {
            let target = RunTarget::Session(session);
            match call.app.control.run(&target) {
                Err(Refusal::Conflict(why)) => {
                    Err(ApiError::not_found(format!("no run `{}`: {why}", shown(&call.segment))))
                }
                Ok(_) | Err(_) => Ok(target),
            }
        }
        Err(error) if error.code == ErrorCode::NotFound => {
            let given = shown(&call.segment);
            Err(ApiError::not_found(format!(
                "no run or session `{given}`; `capture runs --all` lists the runs, and {PART_HINT}"
            )))
        }
        Err(error) => Err(error),
    }
}

/// Checks that only one of text, keys and interrupt is given.
pub(super) fn checked(input: Input) -> Result<Input, ApiError> {
    let given = [input.text.is_some(), input.keys.is_some(), input.interrupt];
    if given.iter().filter(|given| **given).count() != 1 {
        return Err(ApiError::body("expected exactly one of `text`, `keys` and `interrupt`"));
    }
    Ok(input)
}
