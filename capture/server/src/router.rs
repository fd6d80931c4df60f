//! Builds the router from the table of routes, and holds the layers that every answer passes.

use std::{collections::BTreeMap, convert::Infallible, panic::AssertUnwindSafe, pin::Pin, sync::Arc};

use api::{ErrorCode, Operation, OperationId, Route, routes::ROUTES};
use axum::{
    body::{Body, HttpBody as _},
    extract::Request,
    handler::Handler,
    response::{IntoResponse, Response},
};
use futures_util::{FutureExt, TryFutureExt, future::Either};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use tower::{Layer, Service, service_fn, util::BoxCloneSyncService};
use tower_http::{
    CompressionLevel,
    compression::{
        CompressionBody, CompressionLayer,
        predicate::{NotForContentType, Predicate, SizeAbove},
    },
};

use crate::{
    answer::HandlerResult,
    app::App,
    assets,
    call::{self, Call},
    error::ApiError,
    handlers::{
        admin, agentapi, approvals, attention, compat, devices, findings, history, mcp, otlp, prompts, retention, runs,
        search, sessions, site, status, steering, streams, terminal, timeline, usage, wait,
    },
};

/// Keeps pages of other origins from embedding an answer.
const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
/// Smallest answer that is compressed, bytes.
const COMPRESSED_FROM: u64 = 4 << 10;

/// A response to come.
type Responding = Pin<Box<dyn Future<Output = Response> + Send>>;

/// A handler whose operation is not in its type any more.
type AnyHandler = Box<dyn Fn(Request, App) -> Responding + Send + Sync>;

/// All routes, by path. Each handler takes its request as a [`Call`](call::Call), which is where it is let in.
///
/// The paths are looked up as axum looks them up, which is not asked for the rest: each route of its router is a service
/// of its own, and a request would be moved through several on its way.
pub(crate) struct Router {
    paths: matchit::Router<Vec<Endpoint>>,
}

/// A method of a path, and what handles it.
struct Endpoint {
    route: &'static Route,
    handler: AnyHandler,
}

impl Router {
    pub(crate) fn new() -> Self {
        let mut by_path: BTreeMap<&str, Vec<Endpoint>> = BTreeMap::new();
        for route in ROUTES {
            let endpoint = Endpoint { route, handler: handler(route.operation) };
            by_path.entry(route.path).or_default().push(endpoint);
        }
        let mut paths = matchit::Router::new();
        for (path, endpoints) in by_path {
            let added = paths.insert(path, endpoints);
            debug_assert!(added.is_ok(), "{path} is in the way of another path");
        }
        Self { paths }
    }

    /// Hands a request to the handler of its route.
    fn route(&self, app: App, request: Request) -> Responding {
        let Ok(found) = self.paths.at(request.uri().path()) else {
            return Box::pin(async move { no_route(&app, &request).into_response() });
        };
        let (endpoints, method) = (found.value, request.method());
        // A route that is read answers HEAD too.
        let is_head = method == Method::HEAD;
        let serves = |route: &Route| route.method == *method || is_head && route.method == Method::GET;
        let Some(endpoint) = endpoints.iter().find(|endpoint| serves(endpoint.route)) else {
            let refused = other_method(&app, endpoints, &request).into_response();
            return Box::pin(async { refused });
        };
        let responding = (endpoint.handler)(request, app);
        if is_head { Box::pin(responding.map(without_body)) } else { responding }
    }
}

/// The head of a response alone, with the length of its body.
fn without_body(response: Response) -> Response {
    let length = response.size_hint().exact();
    let mut response = response.map(|_| Body::empty());
    if let Some(length) = length {
        response.headers_mut().entry(header::CONTENT_LENGTH).or_insert(length.into());
    }
    response
}

/// Answers requests: the router, and what every answer passes around it (an answer where a handler panicked, fixed
/// headers, compression).
pub(crate) struct Answering {
    app: App,
    router: Arc<Router>,
    /// The same for clients that accept compression.
    compressing: BoxCloneSyncService<Request, Response<CompressionBody<Body>>, Infallible>,
}

impl Answering {
    pub(crate) fn new(app: &App) -> Self {
        let router = Arc::new(Router::new());
        let large = SizeAbove::new(COMPRESSED_FROM).and(NotForContentType::new("text/event-stream"));
        let (of, routes) = (Arc::clone(app), Arc::clone(&router));
        let answering = service_fn(move |request| answer(Arc::clone(&of), &routes, request));
        let compressing = CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(large);
        let compressing = BoxCloneSyncService::new(compressing.layer(answering));
        Self { app: Arc::clone(app), router, compressing }
    }

    /// Answers a request, however it goes.
    ///
    /// No `async fn`, and no more futures in each other than needed: each would move the request once or twice.
    pub(crate) fn answer(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<Response<Body>, Infallible>> + Send + use<> {
        if request.headers().contains_key(header::ACCEPT_ENCODING) {
            let answer = self.compressing.clone().call(request);
            return Either::Left(answer.map_ok(|response| response.map(Body::new)));
        }
        Either::Right(answer(Arc::clone(&self.app), &self.router, request))
    }
}

fn answer(
    app: App,
    router: &Router,
    request: Request,
) -> impl Future<Output = Result<Response<Body>, Infallible>> + Send + use<> {
    app.tally.requests.inc();
    let routed = AssertUnwindSafe(router.route(Arc::clone(&app), request)).catch_unwind();
    async move {
        let mut response = match routed.await {
            Ok(response) => response,
            Err(_) => {
                app.tally.panics.inc();
                ApiError::internal(&"a handler panicked").into_response()
            }
        };
        let headers = response.headers_mut();
        // The files of the page say themselves how they are kept; they hold no data.
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
        headers.insert(CROSS_ORIGIN_RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        Ok(response)
    }
}

/// The handler of an operation.
fn handler(operation: OperationId) -> AnyHandler {
    use OperationId as O;
    match operation {
        O::Healthz => of(operation, site::healthz),
        O::Index => of(operation, site::index),
        O::CreatePairingCode => of(operation, devices::create_code),
        O::PairDevice => of(operation, devices::pair),
        O::GetPush => of(operation, devices::push_key),
        O::SubscribePush => of(operation, devices::subscribe),
        O::UnsubscribePush => of(operation, devices::unsubscribe),
        O::GetMe => of(operation, devices::me),
        O::StepUp => of(operation, devices::step_up),
        O::SignOut => of(operation, devices::sign_out),
        O::ListDevices => of(operation, devices::list),
        O::RevokeDevice => of(operation, devices::revoke),
        O::Metrics => of(operation, site::metrics),
        O::Openapi => of(operation, site::openapi),
        O::HealthSources => of(operation, site::sources),
        O::UsageOfAll => of(operation, usage::report),
        O::GetOverview => of(operation, usage::overview),
        O::QualityOfAll => of(operation, usage::quality),
        O::SearchTexts => of(operation, search::texts),
        O::GetIndex => of(operation, search::index),
        O::RebuildIndex => of(operation, search::rebuild),
        O::ListRecentTurns => of(operation, history::recent_turns),
        O::GetText => of(operation, history::text),
        O::ConnectHost => of(operation, runs::host),
        O::AnnounceDelivery => of(operation, runs::delivery),
        O::SendDelta => of(operation, runs::delta),
        O::AwaitDecision => of(operation, approvals::await_decision),
        O::ListApprovals => of(operation, approvals::list),
        O::GetApproval => of(operation, approvals::one),
        O::DecideApproval => of(operation, approvals::decide),
        O::PressButton => of(operation, approvals::press_button),
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
        O::RunRecording => of(operation, runs::recording),
        O::RunRecordingFrames => of(operation, runs::recorded_frames),
        O::RunTerminal => of(operation, terminal::open),
        O::ExplainRun => of(operation, runs::explain),
        O::RunInput => of(operation, runs::input),
        O::AgentApiGetStatus => of(operation, agentapi::status),
        O::AgentApiGetMessages => of(operation, agentapi::list_messages),
        O::AgentApiSend => of(operation, agentapi::send),
        O::AgentApiEvents => of(operation, agentapi::events),
        O::SendMcpMessage => of(operation, mcp::answer),
        O::ListSessions => of(operation, sessions::list),
        O::GetSession => of(operation, sessions::one),
        O::ListAttention => of(operation, attention::list),
        O::ListTimeline => of(operation, timeline::list),
        O::ListEvents => of(operation, history::events),
        O::ReadConversation => of(operation, history::conversation),
        O::ListTurns => of(operation, history::turns),
        O::GetWork => of(operation, history::work),
        O::HandOffSession => of(operation, history::handoff),
        O::SummarizeSession => of(operation, sessions::summary::<api::routes::SummarizeSession>),
        O::UsageOfSession => of(operation, sessions::usage),
        O::GetStatus => of(operation, status::at),
        O::StatusHistory => of(operation, history::status),
        O::ListStatusChanges => of(operation, history::status_changes),
        O::WaitForState => of(operation, wait::wait),
        O::SessionScreen => of(operation, runs::session_screen),
        O::ExplainSession => of(operation, runs::session_explain),
        O::StartSession => of(operation, steering::start),
        O::SessionInput => of(operation, steering::input),
        O::LabelSession => of(operation, admin::label),
        O::ListNotes => of(operation, admin::notes),
        O::AddNote => of(operation, admin::add_note),
        O::MarkSession => of(operation, admin::mark),
        O::CaptureSession => of(operation, admin::set_capture),
        O::ForgetSession => of(operation, retention::forget),
        O::PruneSessions => of(operation, retention::prune),
        O::GetRetention => of(operation, retention::status),
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

/// A handler of this operation.
fn of<O: Operation, M, H>(operation: OperationId, handler: H) -> AnyHandler
where
    H: Handler<(M, Call<O>), App, Future = Responding> + Sync,
{
    debug_assert_eq!(O::ID, operation, "the handler is of another operation");
    Box::new(move |request, app| handler.clone().call(request, app))
}

fn no_route(app: &App, request: &Request) -> HandlerResult {
    if [Method::GET, Method::HEAD].contains(request.method())
        && let Some(asset) = assets::at(request.uri().path())
    {
        // The route of the page: it is open, and so are its files.
        call::authorize(app, request, Some(OperationId::Index.route()))?;
        return Ok(assets::answer(asset, request.uri().query(), request.headers()));
    }
    // Strangers do not learn which paths exist.
    call::authorize(app, request, None)?;
    if wants_page(request)
        && let Some(page) = assets::at("/")
    {
        // It says that it has no such view, and leads to those it has.
        let mut answer = assets::answer(page, None, &HeaderMap::new());
        *answer.status_mut() = StatusCode::NOT_FOUND;
        return Ok(answer);
    }
    Err(ApiError::not_found("unknown route").hint("GET /openapi.json lists all routes"))
}

/// Whether a person looks at the answer in a browser.
fn wants_page(request: &Request) -> bool {
    let accepts = |value: &HeaderValue| value.to_str().is_ok_and(|types| types.contains("text/html"));
    [Method::GET, Method::HEAD].contains(request.method())
        && !request.uri().path().starts_with("/api/")
        && request.headers().get(header::ACCEPT).is_some_and(accepts)
}

/// Refuses a request for a path that has no route of its method.
fn other_method(app: &App, endpoints: &[Endpoint], request: &Request) -> ApiError {
    let mut routes = endpoints.iter().map(|endpoint| endpoint.route).peekable();
    if let Err(refused) = call::authorize(app, request, routes.peek().copied()) {
        return refused;
    }
    let mut allowed: Vec<&str> = Vec::new();
    for route in routes {
        allowed.push(route.method.as_str());
        if route.method == Method::GET {
            allowed.push("HEAD");
        }
    }
    let (method, allowed) = (request.method(), allowed.join(", "));
    let error = ApiError::new(
        ErrorCode::MethodNotAllowed,
        format!("this route does not accept {method}; it accepts {allowed}"),
    );
    match HeaderValue::try_from(allowed) {
        Ok(allowed) => error.header(header::ALLOW, allowed),
        Err(_) => error,
    }
}
