//! The way of one request: gate, table, handler, answer.

use std::{
    convert::Infallible,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::{FutureExt, future::BoxFuture};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header, request::Parts};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::{
    Limits,
    app::App,
    body::Body,
    call::{self, BrokenUpload, Call, Door, MediaType, Reply, Upload},
    clients::Admission,
    error::ApiError,
    gate::Gate,
    routes::{self, Found, Takes},
};

/// Answers the requests of one connection.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) app: App,
    pub(crate) gate: Arc<Gate>,
    pub(crate) door: Door,
    /// The connection among those of its client; `None` without a connection.
    pub(crate) admission: Option<Arc<Admission>>,
}

/// An answer on its way. Answers from memory are there at once and cost no allocation.
pub(crate) enum Answering {
    Now(Option<Response<Body>>),
    Later(BoxFuture<'static, Response<Body>>),
}

impl Future for Answering {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Now(response) => response.take().map_or(Poll::Pending, |r| Poll::Ready(Ok(r))),
            Self::Later(response) => response.as_mut().poll(cx).map(Ok),
        }
    }
}

impl hyper::service::Service<Request<Incoming>> for Service {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answering;

    fn call(&self, request: Request<Incoming>) -> Answering {
        self.answer(request)
    }
}

impl Service {
    pub(crate) fn answer<B>(&self, request: Request<B>) -> Answering
    where
        B: hyper::body::Body<Data = Bytes, Error: std::fmt::Display> + Send + Sync + 'static,
    {
        self.app.tally.requests.fetch_add(1, Ordering::Relaxed);
        let (parts, body) = request.into_parts();
        let (route, segment) = match self.admit(&parts, body.size_hint().exact()) {
            Ok(found) => found,
            Err(error) => {
                self.app.tally.refused.fetch_add(1, Ordering::Relaxed);
                return Answering::Now(Some(dress(error.into_response())));
            }
        };
        let upload: Option<Upload> =
            (!body.is_end_stream()).then(|| body.map_err(|why| BrokenUpload(why.to_string())).boxed());
        let call = Call { parts, segment, upload, door: self.door.clone(), admission: self.admission.clone() };
        match catch_unwind(AssertUnwindSafe(|| (route.handler)(&self.app, call))) {
            Ok(Reply::Now(answer)) => Answering::Now(Some(dress(answer.unwrap_or_else(ApiError::into_response)))),
            Ok(Reply::Later(answer)) => {
                let app = Arc::clone(&self.app);
                Answering::Later(Box::pin(async move {
                    let answer = AssertUnwindSafe(answer).catch_unwind().await;
                    dress(match answer {
                        Ok(answer) => answer.unwrap_or_else(ApiError::into_response),
                        Err(_) => broken(&app),
                    })
                }))
            }
            Err(_) => Answering::Now(Some(dress(broken(&self.app)))),
        }
    }

    /// Decides from the head alone whether the request is let in, and where it goes.
    fn admit(
        &self,
        parts: &Parts,
        body_bytes: Option<u64>,
    ) -> Result<(&'static routes::Route, std::ops::Range<usize>), ApiError> {
        let (gate, headers, door) = (&self.gate, &parts.headers, &self.door);
        gate.check_origin(&parts.method, &parts.uri, headers, door)?;
        let path = parts.uri.path();
        let (route, segment) = match routes::find(&parts.method, path) {
            Found::Route(route, segment) => (route, segment),
            Found::OtherMethod(route) => {
                gate.check_scope(route.scope, headers, door)?;
                return Err(other_method(&parts.method, path));
            }
            Found::Nothing => {
                gate.check_known(headers, door)?;
                return Err(ApiError::not_found("no such route").hint("GET /openapi.json lists them"));
            }
        };
        gate.check_scope(route.scope, headers, door)?;
        check_body(route.takes, headers, body_bytes, &self.app.limits)?;
        Ok((route, segment))
    }
}

/// Holds what the head says of the body against what the route takes.
fn check_body(takes: Takes, headers: &HeaderMap, body_bytes: Option<u64>, limits: &Limits) -> Result<(), ApiError> {
    let chunked = headers.contains_key(header::TRANSFER_ENCODING);
    match takes {
        Takes::Nothing | Takes::Json if chunked => {
            // Of a request with both length and transfer coding hyper keeps only the latter, so
            // this is also where smuggled ones end.
            Err(ApiError::new(StatusCode::LENGTH_REQUIRED, "length_required", "send the body with a Content-Length"))
        }
        Takes::Nothing => Ok(()),
        Takes::Json => {
            // No form and no plain text, which a browser would send for any page without asking.
            if call::media_type(headers) != Some(MediaType::Json) {
                let why = "send the body as application/json";
                return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", why));
            }
            let limit = limits.body_bytes;
            if body_bytes.is_none_or(|n| n > limit as u64) { Err(ApiError::too_large(limit)) } else { Ok(()) }
        }
        // Exporters send in chunks, and there is nobody between them and us to read a length else.
        Takes::Telemetry => {
            if call::media_type(headers).is_none() {
                let why = "send the body as application/json or application/x-protobuf";
                return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_otlp", why));
            }
            call::coding(headers)?;
            let limit = limits.telemetry_bytes;
            if body_bytes.is_some_and(|n| n > limit as u64) { Err(ApiError::too_large(limit)) } else { Ok(()) }
        }
    }
}

fn other_method(method: &Method, path: &str) -> ApiError {
    let allowed = routes::allowed(path);
    let error = ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        format!("{method} is not for this route; it takes {allowed}"),
    );
    match HeaderValue::try_from(allowed) {
        Ok(allowed) => error.header(header::ALLOW, allowed),
        Err(_) => error,
    }
}

fn broken(app: &App) -> Response<Body> {
    app.tally.panics.fetch_add(1, Ordering::Relaxed);
    ApiError::internal(&"a handler panicked").into_response()
}

/// Adds the headers every answer has.
fn dress(mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
