//! Builds the router from the table of routes, and defines the layers that every response passes.

use std::{collections::BTreeMap, panic::AssertUnwindSafe};

use api::{ErrorCode, Operation, OperationId, Route, routes::ROUTES};
use axum::{
    Router,
    extract::{Request, State},
    handler::Handler,
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::{MethodFilter, MethodRouter, any, on},
};
use futures_util::FutureExt;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use tower_http::{
    CompressionLevel,
    compression::{
        CompressionLayer,
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
        admin, agentapi, approvals, attention, check, compat, devices, findings, history, mcp, otlp, prompts,
        retention, runs, search, sessions, site, status, steering, streams, terminal, timeline, usage, wait,
    },
};

/// Keeps pages of other origins from embedding a response.
const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
/// Minimum size of a compressed response, bytes.
const COMPRESSED_FROM: u64 = 4 << 10;

/// The router of all routes in the table, with the common layers: a response if a handler panicked, fixed headers,
/// compression. Each handler receives its request as a [`Call`], and creating the call checks access.
pub(crate) fn router(app: &App) -> Router {
    let mut by_path: BTreeMap<&str, (Vec<&'static Route>, MethodRouter<App>)> = BTreeMap::new();
    for route in ROUTES {
        let (routes, methods) = by_path.entry(route.path).or_default();
        routes.push(route);
        *methods = std::mem::take(methods).merge(handler(route));
    }
    let mut router = Router::new();
    for (path, (routes, methods)) in by_path {
        let refuse = async move |State(app): State<App>, request: Request| other_method(&app, &routes, &request);
        // As a handler, not as a fallback: axum adds the methods of the path to the response of a fallback, and
        // strangers must not learn which paths exist.
        router = router.route(path, any(refuse).merge(methods));
    }
    let large = SizeAbove::new(COMPRESSED_FROM).and(NotForContentType::new("text/event-stream"));
    router
        .fallback(async |State(app): State<App>, request: Request| no_route(&app, &request))
        .layer(from_fn_with_state(app.clone(), answer))
        .layer(CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(large))
        .with_state(app.clone())
}

async fn answer(State(app): State<App>, request: Request, next: Next) -> Response {
    app.tally.requests.inc();
    let mut response = match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => response,
        Err(_) => {
            app.tally.panics.inc();
            ApiError::internal(&"a handler panicked").into_response()
        }
    };
    let headers = response.headers_mut();
    // The page's files set their own caching; they contain no data.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(CROSS_ORIGIN_RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// The handler of an operation.
fn handler(route: &'static Route) -> MethodRouter<App> {
    use OperationId as O;
    match route.operation {
        O::Healthz => of(route, site::healthz),
        O::Index => of(route, site::index),
        O::CreatePairingCode => of(route, devices::create_code),
        O::PairDevice => of(route, devices::pair),
        O::GetPush => of(route, devices::push_key),
        O::SubscribePush => of(route, devices::subscribe),
        O::UnsubscribePush => of(route, devices::unsubscribe),
        O::GetMe => of(route, devices::me),
        O::StepUp => of(route, devices::step_up),
        O::SignOut => of(route, devices::sign_out),
        O::ListDevices => of(route, devices::list),
        O::RevokeDevice => of(route, devices::revoke),
        O::Metrics => of(route, site::metrics),
        O::Openapi => of(route, site::openapi),
        O::HealthSources => of(route, site::sources),
        O::UsageOfAll => of(route, usage::report),
        O::GetOverview => of(route, usage::overview),
        O::QualityOfAll => of(route, usage::quality),
        O::SearchTexts => of(route, search::texts),
        O::GetIndex => of(route, search::index),
        O::RebuildIndex => of(route, search::rebuild),
        O::ListRecentTurns => of(route, history::recent_turns),
        O::GetText => of(route, history::text),
        O::ConnectHost => of(route, runs::host),
        O::AnnounceDelivery => of(route, runs::delivery),
        O::SendDelta => of(route, runs::delta),
        O::AwaitDecision => of(route, approvals::await_decision),
        O::ListApprovals => of(route, approvals::list),
        O::GetApproval => of(route, approvals::one),
        O::DecideApproval => of(route, approvals::decide),
        O::PressButton => of(route, approvals::press_button),
        O::ListFindings => of(route, findings::list),
        O::GetFinding => of(route, findings::one),
        O::AcknowledgeFinding => of(route, findings::acknowledge),
        O::ListPrompts => of(route, prompts::list),
        O::CancelPrompt => of(route, prompts::cancel),
        O::QueuePrompt => of(route, prompts::queue),
        O::TestChannel => of(route, prompts::test_channel),
        O::ListRuns => of(route, runs::list),
        O::GetRun => of(route, runs::one),
        O::RunScreen => of(route, runs::screen),
        O::RunRecording => of(route, runs::recording),
        O::RunRecordingFrames => of(route, runs::recorded_frames),
        O::RunTerminal => of(route, terminal::open),
        O::ExplainRun => of(route, runs::explain),
        O::RunInput => of(route, runs::input),
        O::AgentApiGetStatus => of(route, agentapi::status),
        O::AgentApiGetMessages => of(route, agentapi::list_messages),
        O::AgentApiSend => of(route, agentapi::send),
        O::AgentApiEvents => of(route, agentapi::events),
        O::SendMcpMessage => of(route, mcp::answer),
        O::ListSessions => of(route, sessions::list),
        O::GetSession => of(route, sessions::one),
        O::ListAttention => of(route, attention::list),
        O::ListTimeline => of(route, timeline::list),
        O::ListEvents => of(route, history::events),
        O::ReadConversation => of(route, history::conversation),
        O::ListTurns => of(route, history::turns),
        O::GetWork => of(route, history::work),
        O::CheckSession => of(route, check::check),
        O::GetDrift => of(route, history::drift),
        O::HandOffSession => of(route, history::handoff),
        O::SummarizeSession => of(route, sessions::summary::<api::routes::SummarizeSession>),
        O::UsageOfSession => of(route, sessions::usage),
        O::GetStatus => of(route, status::at),
        O::StatusHistory => of(route, history::status),
        O::ListStatusChanges => of(route, history::status_changes),
        O::WaitForState => of(route, wait::wait),
        O::SessionScreen => of(route, runs::session_screen),
        O::ExplainSession => of(route, runs::session_explain),
        O::StartSession => of(route, steering::start),
        O::SessionInput => of(route, steering::input),
        O::LabelSession => of(route, admin::label),
        O::ListNotes => of(route, admin::notes),
        O::AddNote => of(route, admin::add_note),
        O::MarkSession => of(route, admin::mark),
        O::CaptureSession => of(route, admin::set_capture),
        O::ForgetSession => of(route, retention::forget),
        O::PruneSessions => of(route, retention::prune),
        O::GetRetention => of(route, retention::status),
        O::Stream => of(route, streams::sse),
        O::StreamOverWebSocket => of(route, streams::websocket),
        O::TelemetryLogs => of(route, otlp::logs),
        O::TelemetryTraces => of(route, otlp::traces),
        O::TelemetryMetrics => of(route, otlp::metrics),
        O::CompatStatusStream => of(route, compat::status_stream),
        O::CompatSessionStream => of(route, compat::session_stream),
        O::CompatSummary => of(route, sessions::summary::<api::routes::CompatSummary>),
        O::CompatMessages => of(route, compat::messages),
    }
}

/// The handler of this route's operation, for its method.
fn of<O: Operation + 'static, M, H>(route: &'static Route, handler: H) -> MethodRouter<App>
where
    H: Handler<(M, Call<O>), App>,
    M: 'static,
{
    debug_assert_eq!(O::ID, route.operation, "the handler is of another operation");
    match MethodFilter::try_from(route.method.clone()) {
        Ok(method) => on(method, handler),
        Err(_) => MethodRouter::new(),
    }
}

fn no_route(app: &App, request: &Request) -> HandlerResult {
    if [Method::GET, Method::HEAD].contains(request.method())
        && let Some(asset) = assets::at(request.uri().path())
    {
        // The page's route is open, and so are its files.
        call::authorize(app, request, Some(OperationId::Index.route()))?;
        return Ok(assets::answer(asset, request.uri().query(), request.headers()));
    }
    // Strangers must not learn which paths exist.
    call::authorize(app, request, None)?;
    if wants_page(request)
        && let Some(page) = assets::at("/")
    {
        // The page reports that there is no such view, and links to the existing ones.
        let mut answer = assets::answer(page, None, &HeaderMap::new());
        *answer.status_mut() = StatusCode::NOT_FOUND;
        return Ok(answer);
    }
    Err(ApiError::not_found("unknown route").hint("GET /openapi.json lists all routes"))
}

/// Whether a browser will show the response to the user.
fn wants_page(request: &Request) -> bool {
    [Method::GET, Method::HEAD].contains(request.method())
        && !request.uri().path().starts_with("/api/")
        && call::accepts(request.headers(), "text/html")
}

/// Refuses a request for a path that has no route with its method.
fn other_method(app: &App, routes: &[&'static Route], request: &Request) -> ApiError {
    if let Err(refused) = call::authorize(app, request, routes.first().copied()) {
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
