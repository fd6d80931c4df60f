//! Runs: the processes capture started. Their hosts know the answers; capture passes the questions
//! on.

use std::sync::Arc;

use bytes::Bytes;
use events::RunId;
use http::{HeaderValue, Response, StatusCode, header};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use serde::Deserialize;

use crate::{
    Command, HostConnection, Input, RunAsk, RunTarget,
    app::App,
    body::{self, Body},
    call::{Answer, Call, Door, Reply},
    error::ApiError,
};

use super::{admin::ask, sessions::target};

/// `GET /api/v1/host`: the host of a run says hello. The connection leaves HTTP, and capture goes
/// on with it.
pub(crate) fn host(app: &App, mut call: Call) -> Reply {
    Reply::Now(upgrade(app, &mut call))
}

fn upgrade(app: &App, call: &mut Call) -> Answer {
    let protocol = app.host_protocol;
    let wanted = || {
        ApiError::new(StatusCode::UPGRADE_REQUIRED, "upgrade_required", format!("this route speaks {protocol}"))
            .header(header::UPGRADE, HeaderValue::from_static(protocol))
    };
    let named = call.parts.headers.get(header::UPGRADE).and_then(|v| v.to_str().ok());
    if !named.is_some_and(|named| named.eq_ignore_ascii_case(protocol)) {
        return Err(wanted());
    }
    let Door::Unix(peer) = call.door else {
        return Err(ApiError::forbidden("unix_only", "a host comes over the Unix socket"));
    };
    let upgrade = call.parts.extensions.remove::<OnUpgrade>().ok_or_else(wanted)?;
    let commands = app.commands.clone().ok_or_else(|| ApiError::unavailable("nobody takes hosts here"))?;
    let slot = call.stream()?;
    let cancel = app.cancel.clone();
    app.tasks.spawn(async move {
        match upgrade.await {
            Ok(upgraded) => {
                let connection = HostConnection(Box::new(TokioIo::new(upgraded)));
                tokio::select! {
                    sent = commands.send(Command::Host { connection, peer }) => if sent.is_err() {
                        tracing::debug!("a host came while nobody took it any more");
                    },
                    () = cancel.cancelled() => {}
                }
            }
            Err(cause) => tracing::debug!(%cause, "the upgrade of a host came to nothing"),
        }
        drop(slot);
    });
    let mut response = Response::new(Body::Whole(Bytes::new()));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    response.headers_mut().insert(header::UPGRADE, HeaderValue::from_static(protocol));
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    Ok(response)
}

/// `POST /api/v1/deliveries`: a hook tells that there is something in the spool. It waits for
/// nothing but that this was heard.
pub(crate) fn delivery(app: &App, mut call: Call) -> Reply {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct There {
        id: RunId,
    }
    let app = Arc::clone(app);
    Reply::later(async move {
        let There { id } = call.json(&app).await?;
        ask(&app, |reply| Command::Delivery { id, reply }).await?;
        Ok(body::json("{}"))
    })
}

/// `GET /api/v1/runs`
pub(crate) fn list(app: &App, _: Call) -> Reply {
    let app = Arc::clone(app);
    Reply::later(async move { Ok(body::json(ask(&app, |reply| Command::Runs { reply }).await?)) })
}

/// `GET /api/v1/runs/{id}`
pub(crate) fn one(app: &App, call: Call) -> Reply {
    of_run(app, &call, RunAsk::Describe)
}

/// `GET /api/v1/runs/{id}/screen`
pub(crate) fn screen(app: &App, call: Call) -> Reply {
    of_run(app, &call, RunAsk::Screen)
}

/// `GET /api/v1/runs/{id}/explain`
pub(crate) fn explain(app: &App, call: Call) -> Reply {
    of_run(app, &call, RunAsk::Explain)
}

/// `POST /api/v1/runs/{id}/input`
pub(crate) fn input(app: &App, mut call: Call) -> Reply {
    let app = Arc::clone(app);
    Reply::later(async move {
        let input = checked(call.json(&app).await?)?;
        let target = RunTarget::Run(call.segment()?.into_owned());
        answer(&app, target, RunAsk::Input(input)).await
    })
}

/// `GET /api/v1/sessions/{id}/screen`
pub(crate) fn session_screen(app: &App, call: Call) -> Reply {
    of_session(app, call, RunAsk::Screen)
}

/// `GET /api/v1/sessions/{id}/explain`
pub(crate) fn session_explain(app: &App, call: Call) -> Reply {
    of_session(app, call, RunAsk::Explain)
}

/// `POST /api/v1/sessions/{id}/input`
pub(crate) fn session_input(app: &App, mut call: Call) -> Reply {
    let app = Arc::clone(app);
    Reply::later(async move {
        let input = checked(call.json(&app).await?)?;
        let session = target(&app, &call).await?;
        answer(&app, RunTarget::Session(session), RunAsk::Input(input)).await
    })
}

fn of_run(app: &App, call: &Call, ask: RunAsk) -> Reply {
    let target = match call.segment() {
        Ok(given) => RunTarget::Run(given.into_owned()),
        Err(error) => return Reply::Now(Err(error)),
    };
    let app = Arc::clone(app);
    Reply::later(async move { answer(&app, target, ask).await })
}

fn of_session(app: &App, call: Call, ask: RunAsk) -> Reply {
    let app = Arc::clone(app);
    Reply::later(async move {
        let session = target(&app, &call).await?;
        answer(&app, RunTarget::Session(session), ask).await
    })
}

async fn answer(app: &App, target: RunTarget, what: RunAsk) -> Answer {
    Ok(body::json(ask(app, |reply| Command::Run { target, ask: what, reply }).await?))
}

/// One thing at a time: text, keys or an interrupt.
fn checked(input: Input) -> Result<Input, ApiError> {
    let given = [input.text.is_some(), input.keys.is_some(), input.interrupt];
    if given.iter().filter(|given| **given).count() != 1 {
        return Err(ApiError::body("give one of `text`, `keys` and `interrupt`"));
    }
    Ok(input)
}
