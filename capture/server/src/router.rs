//! The router, built from the table of routes, and what every request passes: gate, handler, headers.

use std::{
    any::Any,
    collections::HashMap,
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use api::{
    ErrorCode, OperationId, Route,
    routes::{ROUTES, RequestBody},
};
use axum::{
    Router,
    body::HttpBody,
    extract::{MatchedPath, Request},
    handler::Handler,
    response::{IntoResponse, Response},
    routing::{MethodFilter, MethodRouter, on},
};
use futures_util::future::Either;
use http::{HeaderMap, HeaderValue, Method, header, request::Parts};
use tower::{Layer, Service, ServiceBuilder};
use tower_http::{
    CompressionLevel,
    catch_panic::CatchPanicLayer,
    compression::{
        CompressionLayer,
        predicate::{NotForContentType, Predicate, SizeAbove},
    },
    set_header::SetResponseHeaderLayer,
};

use crate::{
    Limits,
    app::App,
    call::{self, Connection, MediaType},
    error::ApiError,
    gate::Gate,
    routes::{admin, approvals, compat, findings, history, otlp, prompts, runs, sessions, site, status, streams, wait},
};

/// Shorter answers are not compressed, bytes.
const COMPRESSED_FROM: u64 = 4 << 10;

/// The router of all routes.
pub(crate) fn router(app: &App, gate: Arc<Gate>) -> Router {
    let mut router = Router::new();
    for route in ROUTES {
        router = router.route(route.path, handler(route.operation));
    }
    router
        .fallback(|| async { ApiError::not_found("no such route").hint("GET /openapi.json lists them") })
        .method_not_allowed_fallback(other_method)
        .layer(Guard { app: Arc::clone(app), gate, by_path: Arc::new(by_path()) })
        .with_state(Arc::clone(app))
}

/// The router with what every answer passes: headers, compression, and an answer where a handler panicked. Around
/// the router and not in it, where every route would be boxed once more for each layer.
pub(crate) fn service(
    app: &App,
    router: Router,
) -> impl Service<
    Request,
    Response = http::Response<impl HttpBody<Data = axum::body::Bytes, Error: Into<axum::BoxError>> + Send + 'static>,
    Error = Infallible,
    Future: Send + 'static,
> + Clone
+ Send
+ 'static {
    let panics = Arc::clone(app);
    let fixed = |name, value| SetResponseHeaderLayer::overriding(name, HeaderValue::from_static(value));
    let compressed = SizeAbove::new(COMPRESSED_FROM).and(NotForContentType::new("text/event-stream"));
    ServiceBuilder::new()
        .layer(fixed(header::CACHE_CONTROL, "no-store"))
        .layer(fixed(header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .layer(fixed(header::REFERRER_POLICY, "no-referrer"))
        .layer(CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(compressed))
        .layer(CatchPanicLayer::custom(move |_: Box<dyn Any + Send>| {
            panics.tally.panics.inc();
            ApiError::internal(&"a handler panicked").into_response()
        }))
        .service(router)
}

/// The handler of an operation.
fn handler(operation: OperationId) -> MethodRouter<App> {
    use OperationId as O;
    match operation {
        O::Healthz => of(operation, site::healthz),
        O::Index => of(operation, site::index),
        O::Metrics => of(operation, site::metrics),
        O::Openapi => of(operation, site::openapi),
        O::HealthSources => of(operation, site::sources),
        O::UsageOfAll => of(operation, history::usage_of_all),
        O::GetText => of(operation, history::text),
        O::ConnectHost => of(operation, runs::host),
        O::AnnounceDelivery => of(operation, runs::delivery),
        O::AwaitDecision => of(operation, approvals::await_decision),
        O::ListApprovals => of(operation, approvals::list),
        O::GetApproval => of(operation, approvals::one),
        O::DecideApproval => of(operation, approvals::decide),
        O::ListFindings => of(operation, findings::list),
        O::GetFinding => of(operation, findings::one),
        O::AcknowledgeFinding => of(operation, findings::acknowledge),
        O::ListPrompts => of(operation, prompts::list),
        O::CancelPrompt => of(operation, prompts::cancel),
        O::QueuePrompt => of(operation, prompts::queue),
        O::TestChannel => of(operation, prompts::test_channel),
        O::ListRuns => of(operation, runs::list),
        O::GetRun => of(operation, runs::one),
        O::RunScreen => of(operation, runs::screen),
        O::ExplainRun => of(operation, runs::explain),
        O::RunInput => of(operation, runs::input),
        O::ListSessions => of(operation, sessions::list),
        O::GetSession => of(operation, sessions::one),
        O::ListEvents => of(operation, history::events),
        O::ListTurns => of(operation, history::turns),
        O::SummarizeSession => of(operation, sessions::summary::<api::routes::SummarizeSession>),
        O::UsageOfSession => of(operation, sessions::usage),
        O::GetStatus => of(operation, status::at),
        O::StatusHistory => of(operation, history::status),
        O::ListStatusChanges => of(operation, history::status_changes),
        O::WaitForState => of(operation, wait::wait),
        O::SessionScreen => of(operation, runs::session_screen),
        O::ExplainSession => of(operation, runs::session_explain),
        O::SessionInput => of(operation, runs::session_input),
        O::LabelSession => of(operation, admin::label),
        O::CaptureSession => of(operation, admin::set_capture),
        O::Stream => of(operation, streams::sse),
        O::StreamOverWebSocket => of(operation, streams::websocket),
        O::TelemetryLogs => of(operation, otlp::logs),
        O::TelemetryTraces => of(operation, otlp::traces),
        O::TelemetryMetrics => of(operation, otlp::metrics),
        O::CompatStatusStream => of(operation, compat::status_stream),
        O::CompatSessionStream => of(operation, compat::session_stream),
        O::CompatSummary => of(operation, sessions::summary::<api::routes::CompatSummary>),
        O::CompatMessages => of(operation, compat::messages),
    }
}

/// A handler for the method of its operation.
fn of<H: Handler<T, App>, T: 'static>(operation: OperationId, handler: H) -> MethodRouter<App> {
    let method = operation.route().method.clone();
    let filter = MethodFilter::try_from(method).unwrap_or(MethodFilter::GET);
    on(filter, handler)
}

fn by_path() -> HashMap<&'static str, Vec<&'static Route>> {
    let mut by_path: HashMap<&str, Vec<&Route>> = HashMap::new();
    for route in ROUTES {
        by_path.entry(route.path).or_default().push(route);
    }
    by_path
}

async fn other_method(path: MatchedPath, method: Method) -> ApiError {
    let mut allowed: Vec<&str> = Vec::new();
    for route in ROUTES.iter().filter(|route| route.path == path.as_str()) {
        allowed.push(route.method.as_str());
        if route.method == Method::GET {
            allowed.push("HEAD");
        }
    }
    let allowed = allowed.join(", ");
    let error = ApiError::new(
        ErrorCode::MethodNotAllowed,
        format!("this route does not accept {method}; it accepts {allowed}"),
    );
    match HeaderValue::try_from(allowed) {
        Ok(allowed) => error.header(header::ALLOW, allowed),
        Err(_) => error,
    }
}

/// Decides from the head of a request whether it is let in, before its body is read.
#[derive(Clone)]
struct Guard {
    app: App,
    gate: Arc<Gate>,
    by_path: Arc<HashMap<&'static str, Vec<&'static Route>>>,
}

impl<S> Layer<S> for Guard {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        Guarded { guard: self.clone(), inner }
    }
}

/// A service behind the guard.
#[derive(Clone)]
struct Guarded<S> {
    guard: Guard,
    inner: S,
}

impl<S> Service<Request> for Guarded<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Either<std::future::Ready<Result<Response, Infallible>>, S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let tally = &self.guard.app.tally;
        tally.requests.inc();
        let (parts, body) = request.into_parts();
        match self.guard.admit(&parts, body.size_hint().exact()) {
            Ok(()) => Either::Right(self.inner.call(Request::from_parts(parts, body))),
            Err(error) => {
                tally.refused.inc();
                Either::Left(std::future::ready(Ok(error.into_response())))
            }
        }
    }
}

impl Guard {
    fn admit(&self, parts: &Parts, body_bytes: Option<u64>) -> Result<(), ApiError> {
        let (gate, headers) = (&self.gate, &parts.headers);
        let connection = parts.extensions.get::<Connection>();
        let door = &connection.ok_or_else(|| ApiError::internal(&"a request without its connection"))?.door;
        gate.check_origin(&parts.method, &parts.uri, headers, door)?;
        let path = parts.extensions.get::<MatchedPath>().map(MatchedPath::as_str);
        let Some(routes) = path.and_then(|path| self.by_path.get(path)) else {
            // Strangers do not learn which paths exist.
            return gate.check_known(headers, door);
        };
        let method = call::effective(&parts.method);
        let route = routes.iter().find(|route| route.method == *method);
        let Some(any) = route.or(routes.first()) else { return gate.check_known(headers, door) };
        gate.check_scope(any.scope, headers, door)?;
        match route {
            Some(route) => check_body(&route.body, headers, body_bytes, &self.app.limits),
            // The fallback says which methods there are.
            None => Ok(()),
        }
    }
}

/// Compares what the head says of the body with what the route takes.
fn check_body(
    takes: &RequestBody,
    headers: &HeaderMap,
    body_bytes: Option<u64>,
    limits: &Limits,
) -> Result<(), ApiError> {
    let chunked = headers.contains_key(header::TRANSFER_ENCODING);
    match takes {
        RequestBody::None | RequestBody::Json(_) if chunked => {
            // Of a request with both length and transfer coding hyper keeps only the latter, so
            // this is also where smuggled ones end.
            Err(ApiError::new(ErrorCode::LengthRequired, "send the body with a Content-Length"))
        }
        RequestBody::None => Ok(()),
        RequestBody::Json(_) => {
            // No form and no plain text, which a browser would send for any page without asking.
            if call::media_type(headers) != Some(MediaType::Json) {
                return Err(ApiError::new(ErrorCode::NotJson, "send the body as application/json"));
            }
            let limit = limits.body_bytes;
            if body_bytes.is_none_or(|n| n > limit as u64) { Err(ApiError::too_large(limit)) } else { Ok(()) }
        }
        // Exporters send in chunks, and nothing between them and us would read a length differently.
        RequestBody::Telemetry => {
            if call::media_type(headers).is_none() {
                let why = "send the body as application/json or application/x-protobuf";
                return Err(ApiError::new(ErrorCode::NotOtlp, why));
            }
            call::coding(headers)?;
            let limit = limits.telemetry_bytes;
            if body_bytes.is_some_and(|n| n > limit as u64) { Err(ApiError::too_large(limit)) } else { Ok(()) }
        }
    }
}
