//! What is about the server: health, metrics, the description of the interface, the first page.

use std::sync::{Arc, LazyLock};

use http::StatusCode;
use serde::Serialize;

use crate::{
    SourceHealth,
    app::App,
    body,
    call::{Call, Reply},
    error::ApiError,
    metrics as text_of,
};

/// `GET /healthz`: no data, so no token.
pub(crate) fn healthz(app: &App, _: Call) -> Reply {
    Reply::Now(if (app.health.ready)() {
        Ok(body::text("ok\n"))
    } else {
        let mut response = body::text("not ready\n");
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        Ok(response)
    })
}

/// `GET /api/v1/health/sources`
pub(crate) fn sources(app: &App, _: Call) -> Reply {
    #[derive(Serialize)]
    struct Answer {
        sources: Vec<SourceHealth>,
    }
    let app = Arc::clone(app);
    Reply::later(async move { body::json_of(&Answer { sources: app.sources().await? }) })
}

/// `GET /metrics`
pub(crate) fn metrics(app: &App, _: Call) -> Reply {
    let app = Arc::clone(app);
    Reply::later(async move { Ok(body::metrics(text_of::text(&app, &app.sources().await?))) })
}

/// `GET /openapi.json`
pub(crate) fn openapi(_: &App, _: Call) -> Reply {
    static DOCUMENT: LazyLock<Result<String, String>> =
        LazyLock::new(|| serde_json::to_string(&crate::openapi::document()).map_err(|cause| cause.to_string()));
    Reply::Now(match &*DOCUMENT {
        Ok(text) => Ok(body::json(text.as_str())),
        Err(cause) => Err(ApiError::internal(cause)),
    })
}

/// `GET /`
pub(crate) fn index(_: &App, _: Call) -> Reply {
    Reply::Now(Ok(body::html(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>capture</title>\
         <h1>capture</h1><p>The interface is described in <a href=\"/openapi.json\">/openapi.json</a>; \
         sessions are at <a href=\"/api/v1/sessions\">/api/v1/sessions</a>.</p></html>\n",
    )))
}
