//! Approvals: permission requests of agents, and people's decisions. The approval broker decides; the server only
//! reports who sent the decision.

use std::{sync::Arc, time::Duration};

use api::{
    ErrorCode,
    approvals::{ApprovalPage, DecisionRequest, DecisionScope, Verdict},
    hooks::{HookWait, MAX_WAIT_MS},
    routes::{AwaitDecision, DecideApproval, GetApproval, ListApprovals, PressButton},
};
use devices::SignedIn;
use events::DeliveryId;
use live_view::{ApprovalFilter, Decision, DecisionWait, Who};
use tokio::time::timeout;

use crate::{
    answer::HandlerResult,
    call::{Call, no_content},
    connection::Transport,
    error::ApiError,
    lookup::named,
    page::{self, Cursor},
};

/// `GET /api/v1/approvals`
pub(crate) async fn list(call: Call<ListApprovals>) -> HandlerResult {
    let (app, query) = (&call.app, &call.query);
    let limit = page::limit(query.limit);
    let behind = Cursor::read(query.cursor.as_deref())?.map(Into::into);
    let session = named(app, query.session.as_deref()).await?;
    let as_of = app.live_view.mark().position;
    // Request one more, to find out whether there are more.
    let filter = ApprovalFilter { state: query.state, session, behind, limit: limit + 1 };
    let mut approvals = app.ask(app.control.approvals(filter)).await?;
    let next_cursor = page::cut(&mut approvals, limit, |view| Cursor::of(&view.approval));
    call.answer(&ApprovalPage { as_of, approvals, next_cursor })
}

/// `GET /api/v1/approvals/{id}`
pub(crate) async fn one(call: Call<GetApproval>) -> HandlerResult {
    let view = call.app.ask(call.app.control.approval(call.segment.clone())).await?;
    call.answer(&view)
}

/// `POST /api/v1/approvals/{id}/decision`
pub(crate) async fn decide(mut call: Call<DecideApproval>) -> HandlerResult {
    let DecisionRequest { decision, message, scope, answers, revision, rule } = call.body().await?;
    if rule {
        // A rule answers further requests, so it changes how capture works.
        let transport = &call.connection.transport;
        call.app.gate.check_raised(call.device.as_ref(), &call.parts.headers, transport)?;
        if decision == Verdict::Deny || scope == DecisionScope::Session || revision.is_none() {
            return Err(ApiError::body("`rule` needs `decision` `allow`, `scope` `once`, and `revision`"));
        }
    }
    if scope == DecisionScope::Session && decision == Verdict::Deny {
        return Err(ApiError::body("`scope` can be `session` only if `decision` is `allow`"));
    }
    let who = who(&call.connection.transport, call.device.as_ref());
    let decision = Decision { verdict: decision, message, scope, answers, revision, rule, who };
    let view = call.app.ask(call.app.control.decide(call.segment.clone(), decision)).await?;
    call.answer(&view)
}

pub(super) fn who(transport: &Transport, device: Option<&SignedIn>) -> Who {
    let (device, device_name) = device.map(|SignedIn { device, .. }| (device.id.clone(), device.name.clone())).unzip();
    match transport {
        Transport::Unix(peer) => Who { pid: peer.pid, uid: Some(peer.uid), address: None, device, device_name },
        Transport::Tcp(from, ..) => Who { pid: None, uid: None, address: Some(*from), device, device_name },
    }
}

/// `POST /api/v1/answers`. Only a token is required, because the device that shows the message has nothing else. The
/// token was made for one decision on one request, and descendants of an agent cannot use it.
pub(crate) async fn press_button(mut call: Call<PressButton>) -> HandlerResult {
    let app = Arc::clone(&call.app);
    let transport = call.connection.transport.clone();
    app.gate.pairing_caller(&transport)?;
    let token = call.body().await?.token;
    let answer = app.ask(app.control.press_button(token, who(&transport, None))).await?;
    match answer {
        Some(answer) => call.answer(&answer),
        None => Err(app.gate.wrong_button(&transport)),
    }
}

/// `POST /api/v1/deliveries/{id}/answer`: a hook waits for a decision. The response is 204 if there is none, and the
/// agent then asks its user itself.
pub(crate) async fn await_decision(mut call: Call<AwaitDecision>) -> HandlerResult {
    let Transport::Unix(_) = call.connection.transport else {
        return Err(ApiError::new(ErrorCode::UnixOnly, "hooks must connect over the Unix socket"));
    };
    let HookWait { wait_ms, people, digest, whole } = call.body().await?;
    let delivery: DeliveryId = call.segment.parse().map_err(|_| ApiError::not_found("no hook delivery has this id"))?;
    let decided = call.app.control.await_decision(DecisionWait { delivery, people, digest, whole });
    let wait = Duration::from_millis(wait_ms.min(MAX_WAIT_MS));
    let answer = tokio::select! {
        () = call.app.cancel.cancelled() => return Err(ApiError::unavailable("the server is stopping")),
        decided = timeout(wait, decided) => match decided {
            Ok(decided) => decided?,
            Err(_) => None,
        },
    };
    match answer {
        Some(answer) => crate::answer::json_of(&answer),
        None => Ok(no_content()),
    }
}
