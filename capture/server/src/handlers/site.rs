//! The server itself: health, metrics, the OpenAPI document, the start page.

use std::sync::{Arc, LazyLock};

use api::{
    health::Sources,
    routes::{HealthSources, Healthz, Index, Metrics, Openapi},
};
use http::StatusCode;

use crate::{
    answer::{self, HandlerResult},
    assets,
    call::Call,
    error::ApiError,
    metrics::encode,
};

/// `GET /healthz`: returns no data, so it needs no token.
pub(crate) async fn healthz(call: Call<Healthz>) -> HandlerResult {
    let Some(trouble) = (call.app.health.trouble)() else { return Ok(answer::text("ok\n")) };
    let mut response = answer::text(format!("not ready: {trouble}\n"));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    Ok(response)
}

/// `GET /api/v1/health/sources`
pub(crate) async fn sources(call: Call<HealthSources>) -> HandlerResult {
    let sources = call.app.sources().await?;
    call.answer(&Sources { sources })
}

/// `GET /metrics`
pub(crate) async fn metrics(call: Call<Metrics>) -> HandlerResult {
    let app = Arc::clone(&call.app);
    let encoded = call.app.tasks.spawn_blocking(move || encode(&app.metrics)).await;
    let text = encoded.map_err(|cause| ApiError::internal(&cause))?.map_err(|cause| ApiError::internal(&cause))?;
    Ok(answer::metrics(text))
}

/// `GET /openapi.json`
pub(crate) async fn openapi(_: Call<Openapi>) -> HandlerResult {
    static DOCUMENT: LazyLock<Result<String, String>> =
        LazyLock::new(|| serde_json::to_string(&api::openapi::document()).map_err(|cause| cause.to_string()));
    match &*DOCUMENT {
        Ok(text) => Ok(answer::json(text.as_str())),
        Err(cause) => Err(ApiError::internal(cause)),
    }
}

/// `GET /`
pub(crate) async fn index(call: Call<Index>) -> HandlerResult {
    let page = assets::at("/").ok_or_else(|| ApiError::not_found("this program was built without the page"))?;
    Ok(assets::answer(page, None, &call.parts.headers))
}
