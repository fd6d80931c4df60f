//! The Model Context Protocol. This module checks access as for every route; the daemon provides the answering side,
//! which in turn sends requests to this server.

use std::sync::Arc;

use api::{Scope, routes::SendMcpMessage};
use axum::body::Body;
use http::{Request, header};

use crate::{
    answer::HandlerResult,
    call::{self, Call},
    config::ControlRefusal,
    error::ApiError,
};

/// `POST /mcp`
pub(crate) async fn answer(call: Call<SendMcpMessage>) -> HandlerResult {
    let Call { app, connection, device, mut parts, body, .. } = call;
    let mcp = app.mcp.clone().ok_or_else(|| ApiError::unavailable("the Model Context Protocol is not served here"))?;
    let body = call::read(body.into_inner(), app.limits.body_bytes, app.limits.read).await?;
    let headers = parts.headers.clone();
    // Credentials were checked, and the answering side must not log them.
    parts.headers.remove(header::AUTHORIZATION);
    parts.headers.remove(header::COOKIE);
    let control: ControlRefusal = Arc::new(move || match &device {
        Some(_) => Some("a device cannot use the tools that change something; use a token".to_owned()),
        None => {
            let checked = app.gate.check_scope(Scope::Control, &headers, &connection.transport);
            checked.err().map(|refused| refused.into_message())
        }
    });
    Ok(mcp(Request::from_parts(parts, body), control).await.map(Body::new))
}
