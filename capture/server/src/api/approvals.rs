//! Approvals: what agents ask leave for, and people's decisions. Capture knows and decides; the server
//! only says who asks.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use events::{ApprovalState, RunId};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::{sync::oneshot, time::timeout};

use crate::{
    ApprovalAsk, Command, Decision, DecisionScope, Verdict, Who,
    app::App,
    body,
    call::{Call, Door, Reply},
    error::ApiError,
};

use super::{admin::ask, sessions::id_of};

const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 1_000;
/// A hook waits no longer than this in one request, ms.
const MAX_WAIT_MS: u64 = 3_600_000;

/// `GET /api/v1/approvals`
pub(crate) fn list(app: &App, call: Call) -> Reply {
    let app = Arc::clone(app);
    Reply::later(async move {
        let query = call.query();
        let state = query.value::<ApprovalState>("state")?;
        let limit = query.value("limit")?.unwrap_or(DEFAULT_LIMIT).min(MAX_LIMIT);
        let session = match query.value::<String>("session")? {
            None => None,
            Some(name) => Some(
                id_of(&app, &name).await?.ok_or_else(|| ApiError::parameter("session", "there is no such session"))?,
            ),
        };
        answer(&app, ApprovalAsk::List { state, session, limit }).await
    })
}

/// `GET /api/v1/approvals/{id}`
pub(crate) fn one(app: &App, call: Call) -> Reply {
    let app = Arc::clone(app);
    Reply::later(async move { answer(&app, ApprovalAsk::One(call.segment()?.into_owned())).await })
}

/// What is sent to decide.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Decided {
    /// `allow` or `deny`.
    decision: Verdict,
    /// What the agent is told when it is denied.
    #[serde(default)]
    message: Option<String>,
    /// `once` (default), or `session` for the same request again in the same session.
    #[serde(default)]
    scope: DecisionScope,
    /// The answers to questions, by question.
    #[serde(default)]
    answers: Option<BTreeMap<String, String>>,
}

/// `POST /api/v1/approvals/{id}/decision`
pub(crate) fn decide(app: &App, mut call: Call) -> Reply {
    let app = Arc::clone(app);
    Reply::later(async move {
        let Decided { decision, message, scope, answers } = call.json(&app).await?;
        if scope == DecisionScope::Session && decision == Verdict::Deny {
            return Err(ApiError::body("`scope` is for what is allowed"));
        }
        let decision = Decision { verdict: decision, message, scope, answers, who: who(&call.door) };
        answer(&app, ApprovalAsk::Decide(call.segment()?.into_owned(), Box::new(decision))).await
    })
}

const fn who(door: &Door) -> Who {
    match door {
        Door::Unix(peer) => Who { pid: peer.pid, uid: Some(peer.uid), address: None },
        Door::Tcp(from, ..) => Who { pid: None, uid: None, address: Some(*from) },
    }
}

async fn answer(app: &App, what: ApprovalAsk) -> crate::call::Answer {
    Ok(body::json(ask(app, |reply| Command::Approvals { ask: what, reply }).await?))
}

/// `POST /api/v1/deliveries/{id}/answer`: a hook waits for a decision. 204 when there is none: the
/// agent then asks its user itself.
pub(crate) fn hold(app: &App, mut call: Call) -> Reply {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Patience {
        wait_ms: u64,
        /// Waits for a person too, and not only for a rule.
        #[serde(default)]
        people: bool,
        /// The BLAKE3 hash of what the hook was called with.
        digest: String,
        /// The delivery itself, when nothing else tells of the request.
        #[serde(default)]
        whole: Option<Box<RawValue>>,
    }
    let app = Arc::clone(app);
    Reply::later(async move {
        let Door::Unix(_) = call.door else {
            return Err(ApiError::forbidden("unix_only", "a hook comes over the Unix socket"));
        };
        let Patience { wait_ms, people, digest, whole } = call.json(&app).await?;
        let delivery: RunId = call.segment()?.parse().map_err(|_| ApiError::not_found("there is no such delivery"))?;
        let nobody = || ApiError::unavailable("nobody decides at the moment");
        let commands = app.commands.as_ref().ok_or_else(nobody)?;
        let (reply, decided) = oneshot::channel();
        commands.try_send(Command::Hold { delivery, people, digest, whole, reply }).map_err(|_| nobody())?;
        let wait = Duration::from_millis(wait_ms.min(MAX_WAIT_MS));
        let text = tokio::select! {
            () = app.cancel.cancelled() => return Err(ApiError::unavailable("capture is stopping")),
            decided = timeout(wait, decided) => decided.ok().and_then(Result::ok).flatten(),
        };
        Ok(text.map_or_else(
            || {
                let mut nothing = body::json("");
                *nothing.status_mut() = StatusCode::NO_CONTENT;
                nothing
            },
            body::json,
        ))
    })
}
