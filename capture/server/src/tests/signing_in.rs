//! Browsers: how they are paired, what their cookies allow, and what other pages cannot make them do.

use std::sync::atomic::{AtomicI64, Ordering};

use api::{
    Scope,
    devices::{CodeScope, PairingRequest},
    routes::{AnswerKind, ROUTES, RequestBody, Route},
};
use devices::{CODE_MS, Caller, Devices, RAISED_MS};
use http::HeaderValue;

use tower::Service as _;

use super::*;
use crate::TcpRefusal;

const ORIGIN: &str = "http://127.0.0.1:7777";

/// A server with paired devices and a fixed clock.
struct World {
    server: TestServer,
    now: Arc<AtomicI64>,
}

impl World {
    fn new() -> Self {
        Self::with(|_| ())
    }

    fn with(adjust: impl FnOnce(&mut Config)) -> Self {
        let now = Arc::new(AtomicI64::new(1_795_149_432_000));
        let clock = Arc::clone(&now);
        let clock: devices::Clock = Arc::new(move || Timestamp::from_millisecond(clock.load(Ordering::Relaxed)));
        let server = TestServer::with(Health::default(), |config| {
            config.devices = Some(Devices::in_memory(clock));
            adjust(config);
        });
        Self { server, now }
    }

    async fn code(&self, body: &str) -> String {
        let answer = self.server.send(json(Method::POST, "/api/v1/pairing", body)).await;
        assert_eq!(answer.status, 201, "{:?}", answer.body);
        let made = answer.json();
        let code = made["code"].as_str().unwrap().to_owned();
        let url = made["url"].as_str().unwrap();
        assert!(url.starts_with("http://127.0.0.1:7777/") && url.ends_with(&format!("#{code}")), "{url}");
        code
    }

    async fn pair(&self, code: &str) -> Answered {
        self.server.send(pairing(&format!(r#"{{"code":"{code}","name":"Pixel"}}"#))).await
    }

    /// The cookie of a new device of this scope, and its id.
    async fn device(&self, scope: &str) -> (String, String) {
        let answer = self.pair(&self.code(&format!(r#"{{"scope":"{scope}"}}"#)).await).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        let cookie = answer.head.headers[header::SET_COOKIE].to_str().unwrap();
        let (cookie, _) = cookie.split_once(';').unwrap();
        (cookie.to_owned(), answer.json()["device"]["id"].as_str().unwrap().to_owned())
    }

    async fn raised(&self) -> String {
        let (cookie, id) = self.device("control").await;
        let code = self.code(&format!(r#"{{"scope":"admin","device_id":"{id}"}}"#)).await;
        let answer = self.server.send(step_up(&cookie, &code)).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        cookie
    }
}

fn json(method: Method, path: &str, body: &str) -> Request<Full<Bytes>> {
    request(method, path).header(header::CONTENT_TYPE, "application/json").body(Full::from(body.to_owned())).unwrap()
}

/// A request of our own page, without a token.
fn own_page(mut request: Request<Full<Bytes>>) -> Request<Full<Bytes>> {
    request.headers_mut().remove(header::AUTHORIZATION);
    set(&mut request, "origin", ORIGIN);
    set(&mut request, "x-capture", "1");
    set(&mut request, "sec-fetch-site", "same-origin");
    request
}

fn pairing(body: &str) -> Request<Full<Bytes>> {
    own_page(json(Method::POST, "/api/v1/pair", body))
}

fn step_up(cookie: &str, code: &str) -> Request<Full<Bytes>> {
    let mut request = own_page(json(Method::POST, "/api/v1/step-up", &format!(r#"{{"code":"{code}"}}"#)));
    set(&mut request, "cookie", cookie);
    request
}

fn set(request: &mut Request<Full<Bytes>>, name: &'static str, value: &str) {
    request.headers_mut().insert(name, HeaderValue::from_str(value).unwrap());
}

/// A request for a route by a device, from our own page.
fn by(route: &Route, cookie: &str) -> Request<Full<Bytes>> {
    let path = route.path.replace("{id}", &id(1).to_string()).replace("{hash}", "00");
    let body = if route.method == Method::GET { "" } else { "{}" };
    let mut request = own_page(json(route.method.clone(), &path, body));
    set(&mut request, "cookie", cookie);
    request
}

/// The cookie of a new device with the scope `control`.
fn paired(devices: &Devices, tunnel: bool) -> String {
    let wanted = PairingRequest { scope: CodeScope::Control, device_id: None, tunnel, local: false };
    let (code, _) = devices.make_code(&wanted).unwrap();
    format!("capture_device={}", devices.pair(&code, "x", Caller::Own).unwrap().1.as_str())
}

fn is_endless(route: &Route) -> bool {
    matches!(route.answer, AnswerKind::Events | AnswerKind::JsonOrEvents(_))
}

#[tokio::test]
async fn every_route_has_the_same_scope_for_devices_as_for_tokens() {
    let world = World::new();
    let (reader, _) = world.device("read").await;
    let (controller, _) = world.device("control").await;
    let raised = world.raised().await;
    for (cookie, scopes) in [
        (&reader, &[Scope::Read][..]),
        (&controller, &[Scope::Read, Scope::Control]),
        (&raised, &[Scope::Read, Scope::Control, Scope::Admin]),
    ] {
        // Signing out comes last.
        let routes = ROUTES.iter().filter(|route| route.scope != Scope::Open && route.path != "/api/v1/sign-out");
        for route in routes {
            let what = format!("{} {} {scopes:?}", route.method, route.path);
            let is_open = scopes.contains(&route.scope);
            if is_open && is_endless(route) {
                continue;
            }
            let answer = world.server.send(by(route, cookie)).await;
            if route.path == "/api/v1/pairing" && is_open {
                assert_eq!(answer.error(), (403, "wrong_scope".into()), "no device makes a code");
            } else if is_open {
                assert!(![401, 403].contains(&answer.status.as_u16()), "{what}: {:?}", answer.body);
            } else if route.scope == Scope::Admin && scopes.contains(&Scope::Control) {
                assert_eq!(answer.error(), (403, "step_up_required".into()), "{what}");
            } else {
                assert_eq!(answer.error(), (403, "wrong_scope".into()), "{what}");
            }
        }
    }
}

#[tokio::test]
async fn an_invalid_device_cookie_is_refused_on_every_route() {
    let world = World::new();
    let (cookie, _) = world.device("control").await;
    let value = cookie.split_once('=').unwrap().1;
    let wrong = format!("capture_device={}", "0".repeat(value.len()));
    let cut = &cookie[..cookie.len() - 1];
    for route in ROUTES.iter().filter(|route| route.scope != Scope::Open) {
        for cookie in [wrong.as_str(), cut, "capture_device=", &format!("{cookie}; {cookie}")] {
            let answer = world.server.send(by(route, cookie)).await;
            assert_eq!(answer.error(), (401, "unauthorized".into()), "{} {}", route.method, route.path);
        }
        let answer = world.server.send(by(route, &format!("other=1; x{cookie}"))).await;
        assert_eq!(answer.error(), (401, "unauthorized".into()), "a cookie of another name: {}", route.path);
    }
    let me = by(api::OperationId::GetMe.route(), &format!("theme=dark; {cookie}; x=y"));
    assert_eq!(world.server.send(me).await.status, 200, "among others");
    let mut both = by(api::OperationId::GetMe.route(), &cookie);
    set(&mut both, "authorization", "Bearer nobody");
    assert_eq!(world.server.send(both).await.status, 401, "a token is not made good by a cookie");
}

#[tokio::test]
async fn a_page_of_another_origin_cannot_change_anything_with_a_device_cookie() {
    let world = World::new();
    let cookie = world.raised().await;
    for route in ROUTES.iter().filter(|route| route.method != Method::GET) {
        // Pages on other ports of this machine belong to the same site, so the browser sends them the cookie.
        for (name, value) in [
            ("origin", None),
            ("x-capture", None),
            ("x-capture", Some("0")),
            ("origin", Some("null")),
            ("origin", Some("http://127.0.0.1:3000")),
            ("origin", Some("https://127.0.0.1:7777")),
            ("sec-fetch-site", Some("same-site")),
            ("sec-fetch-site", Some("cross-site")),
            ("sec-fetch-site", Some("none")),
        ] {
            // The request of a button contains only the button's token; cookies do not count there.
            if route.scope == Scope::Open && route.path != "/api/v1/pair" {
                continue;
            }
            let mut request = by(route, &cookie);
            match value {
                Some(value) => set(&mut request, name, value),
                None => drop(request.headers_mut().remove(name)),
            }
            let answer = world.server.send(request).await;
            assert_eq!(answer.error(), (403, "foreign_origin".into()), "{} {name}: {value:?}", route.path);
        }
    }
}

#[tokio::test]
async fn a_page_of_another_site_cannot_read_with_a_device_cookie() {
    let world = World::new();
    let (cookie, _) = world.device("read").await;
    for route in ROUTES.iter().filter(|route| route.method == Method::GET && route.scope == Scope::Read) {
        for site in ["same-site", "cross-site", "unheard-of"] {
            let mut request = by(route, &cookie);
            set(&mut request, "sec-fetch-site", site);
            let answer = world.server.send(request).await;
            assert_eq!(answer.error(), (403, "foreign_origin".into()), "{} {site}", route.path);
        }
        let mut silent = by(route, &cookie);
        for name in ["origin", "x-capture", "sec-fetch-site"] {
            silent.headers_mut().remove(name);
        }
        if is_endless(route) || matches!(route.answer, AnswerKind::WebSocket) {
            let answer = world.server.send(silent).await;
            assert_eq!(answer.error(), (403, "foreign_origin".into()), "a stream needs a sign: {}", route.path);
        } else {
            let answer = world.server.send(silent).await;
            assert_ne!(answer.status, 403, "a browser that says nothing of the site: {}", route.path);
            assert_eq!(answer.head.headers["cross-origin-resource-policy"], "same-origin", "{}", route.path);
        }
    }
}

#[tokio::test]
async fn a_stream_opens_for_a_page_of_the_same_origin() {
    let world = World::new();
    let (cookie, _) = world.device("read").await;
    for (name, value) in [("sec-fetch-site", "same-origin"), ("origin", ORIGIN), ("x-capture", "1")] {
        let mut request = request(Method::GET, "/api/v1/stream").body(Full::default()).unwrap();
        request.headers_mut().remove(header::AUTHORIZATION);
        set(&mut request, "cookie", &cookie);
        set(&mut request, name, value);
        request.extensions_mut().insert(world.server.connection.clone());
        let Ok(answer) = world.server.router.clone().call(request.map(axum::body::Body::new)).await;
        assert_eq!(answer.status(), 200, "{name}");
    }
}

#[tokio::test]
async fn the_device_cookie_is_http_only_and_same_site_strict() {
    let world = World::new();
    let code = world.code(r#"{"scope":"read"}"#).await;
    let answer = world.pair(&code).await;
    let cookie = answer.head.headers[header::SET_COOKIE].to_str().unwrap().to_owned();
    let (value, attributes) = cookie.split_once("; ").unwrap();
    assert_eq!(attributes, "Path=/; Max-Age=34560000; HttpOnly; SameSite=Strict");
    let secret = value.strip_prefix("capture_device=").unwrap();
    assert_eq!(secret.len(), 64);
    assert!(!String::from_utf8_lossy(&answer.body).contains(secret));
    assert_eq!(answer.head.headers[header::CACHE_CONTROL], "no-store");
    let me = world.server.send(by(api::OperationId::GetMe.route(), value)).await.json();
    assert_eq!((&me["device"]["name"], &me["device"]["scope"]), (&"Pixel".into(), &"read".into()));
    assert_eq!(me["elevated_until"], Value::Null);
}

#[tokio::test]
async fn pairing_is_accepted_through_an_allowed_https_proxy() {
    let world =
        World::with(|config| config.allowed_hosts = vec!["box.tail.ts.net".into(), "alias.example:8443".into()]);
    for (host, origin, expected) in [
        ("box.tail.ts.net", "https://box.tail.ts.net", 200),
        ("box.tail.ts.net", "http://box.tail.ts.net", 200),
        ("box.tail.ts.net:7777", "http://box.tail.ts.net:7777", 200),
        ("alias.example:8443", "https://alias.example:8443", 200),
        ("alias.example", "https://alias.example", 403),
        ("box.tail.ts.net", "https://box.tail.ts.net.evil.test", 403),
        ("box.tail.ts.net:1", "https://box.tail.ts.net:1", 403),
        ("127.0.0.1:7777", "https://127.0.0.1:7777", 403),
    ] {
        let code = world.code(r#"{"scope":"read"}"#).await;
        let mut request = pairing(&format!(r#"{{"code":"{code}","name":"Pixel"}}"#));
        set(&mut request, "host", host);
        set(&mut request, "origin", origin);
        let answer = world.server.send(request).await;
        assert_eq!(answer.status, expected, "{host} {origin}");
        if expected == 200 {
            let cookie = answer.head.headers[header::SET_COOKIE].to_str().unwrap();
            assert_eq!(cookie.ends_with("; Secure"), origin.starts_with("https"), "{cookie}");
        }
    }
}

#[tokio::test]
async fn used_expired_or_wrong_codes_pair_no_device() {
    let world = World::new();
    let code = world.code(r#"{"scope":"control"}"#).await;
    assert_eq!(world.pair(&code).await.status, 200);
    assert_eq!(world.pair(&code).await.error(), (410, "code_expired".into()), "replayed");
    let code = world.code(r#"{"scope":"control"}"#).await;
    world.now.fetch_add(CODE_MS, Ordering::Relaxed);
    assert_eq!(world.pair(&code).await.error(), (410, "code_expired".into()), "late");
    let code = world.code(r#"{"scope":"control"}"#).await;
    for _ in 0..10 {
        let answer = world.pair("0000-0000").await;
        assert_eq!(answer.error(), (403, "wrong_code".into()));
        assert!(!String::from_utf8_lossy(&answer.body).contains("0000"), "no answer repeats a code");
    }
    let listed = world.server.get("/api/v1/devices").await.json();
    assert_eq!(listed["devices"].as_array().unwrap().len(), 1);
    assert_eq!(world.pair(&code).await.status, 200, "wrong codes void no other");
}

#[tokio::test]
async fn wrong_codes_are_counted_as_wrong_tokens() {
    let world = World::new();
    for _ in 0..20 {
        assert_eq!(world.pair("ZZZZ-ZZZZ").await.status, 403);
    }
    assert_eq!(world.pair("ZZZZ-ZZZZ").await.error(), (429, "too_many_wrong_tokens".into()));
    let (cookie, _) = world.device("read").await;
    assert!(!cookie.is_empty(), "a right code is not refused because of wrong ones");
}

#[tokio::test]
async fn only_an_admin_token_creates_pairing_codes() {
    let world = World::new();
    for (scope, status) in [("read", 403), ("control", 403), ("ingest", 403), ("admin", 201), ("owner", 201)] {
        let mut request = json(Method::POST, "/api/v1/pairing", r#"{"scope":"read"}"#);
        set(&mut request, "authorization", &format!("Bearer {}", token(scope)));
        assert_eq!(world.server.send(request).await.status, status, "{scope}");
    }
    for (body, code) in [
        (r#"{"scope":"admin"}"#, (400, "bad_body")),
        (r#"{"scope":"admin","device_id":"nobody"}"#, (404, "not_found")),
        (r#"{"scope":"read","device_id":"nobody"}"#, (400, "bad_body")),
        (r#"{"scope":"ingest"}"#, (400, "bad_body")),
    ] {
        let (status, error) = world.server.send(json(Method::POST, "/api/v1/pairing", body)).await.error();
        assert_eq!((status, error.as_str()), code, "{body}");
    }
}

#[tokio::test]
async fn processes_of_an_agent_cannot_pair_or_control_with_a_device_cookie() {
    let world = World::with(|config| {
        config.control_tcp = Some(Arc::new(|_, _| Some(TcpRefusal::Agent("it descends from `claude`".into()))));
    });
    let answer = world.server.send(json(Method::POST, "/api/v1/pairing", r#"{"scope":"read"}"#)).await;
    assert_eq!(answer.error(), (403, "agents_peer".into()));
    let answer = world.pair("ZZZZ-ZZZZ").await;
    assert_eq!(answer.error(), (403, "agents_peer".into()), "nor does it use one that it saw");
    let devices = Devices::in_memory(Arc::new(|| Timestamp::from_millisecond(0)));
    let server = TestServer::with(Health::default(), |config| {
        config.devices = Some(devices.clone());
        config.control_tcp = Some(Arc::new(|_, _| Some(TcpRefusal::Agent("it descends from `claude`".into()))));
    });
    let cookie = paired(&devices, true);
    for route in ROUTES.iter().filter(|route| route.scope == Scope::Control) {
        let answer = server.send(by(route, &cookie)).await;
        assert_eq!(answer.error(), (403, "agents_peer".into()), "{}", route.path);
    }
}

#[tokio::test]
async fn unidentified_clients_may_act_only_with_a_tunnel_device() {
    let devices = Devices::in_memory(Arc::new(|| Timestamp::from_millisecond(0)));
    let of = |client: Client| {
        let mut server = TestServer::with(Health::default(), |config| {
            config.devices = Some(devices.clone());
            config.control_tcp = Some(Arc::new(|_, _| Some(TcpRefusal::Unidentified)));
        });
        let address: SocketAddr = HOST.parse().unwrap();
        let transport = Transport::Tcp(address, address, client);
        server.connection = Arc::new(Connection { transport, admission: None });
        server
    };
    let (plain, tunnel) = (paired(&devices, false), paired(&devices, true));
    let route = api::OperationId::LabelSession.route();
    for (client, cookie, refused) in [
        (Client::Own, &plain, true),
        (Client::Own, &tunnel, false),
        (Client::Unnamed, &plain, true),
        // The process of a proxy that another user runs.
        (Client::User(1), &plain, false),
    ] {
        let answer = of(client).send(by(route, cookie)).await;
        assert_eq!(answer.error().1 == "agents_peer", refused, "{client:?}");
    }
    let token = json(Method::PUT, "/api/v1/sessions/x/labels", r#"{"labels":{}}"#);
    assert_eq!(of(Client::User(1)).send(token).await.error().1, "agents_peer", "a token is checked as before");
}

#[tokio::test]
async fn device_elevation_expires() {
    let world = World::new();
    let cookie = world.raised().await;
    let admin = || by(api::OperationId::CaptureSession.route(), &cookie);
    assert_ne!(world.server.send(admin()).await.status, 403);
    world.now.fetch_add(RAISED_MS, Ordering::Relaxed);
    assert_eq!(world.server.send(admin()).await.error(), (403, "step_up_required".into()));
    let (other, id) = world.device("control").await;
    let code = world.code(&format!(r#"{{"scope":"admin","device_id":"{id}"}}"#)).await;
    let answer = world.server.send(step_up(&cookie, &code)).await;
    assert_eq!(answer.error(), (403, "wrong_code".into()), "the code was made for another device");
    assert_eq!(world.server.send(step_up(&other, &code)).await.status, 200);
}

#[tokio::test]
async fn revoking_a_device_ends_its_access_and_open_streams() {
    let world = World::new();
    let (first, first_id) = world.device("control").await;
    let (second, second_id) = world.device("read").await;
    let listed = world.server.send(by(api::OperationId::ListDevices.route(), &second)).await.json();
    let current: Vec<_> = listed["devices"].as_array().unwrap().iter().filter(|d| d["current"] == true).collect();
    assert_eq!(current.len(), 1);
    assert_eq!(current[0]["id"], second_id);

    let mut stream = request(Method::GET, "/api/v1/stream").body(Full::default()).unwrap();
    stream.headers_mut().remove(header::AUTHORIZATION);
    set(&mut stream, "cookie", &second);
    set(&mut stream, "sec-fetch-site", "same-origin");
    stream.extensions_mut().insert(world.server.connection.clone());
    let Ok(stream) = world.server.router.clone().call(stream.map(axum::body::Body::new)).await;
    let mut stream = stream.into_body();
    assert!(stream.frame().await.is_some(), "the snapshot");

    let mut revoke = own_page(json(Method::DELETE, &format!("/api/v1/devices/{second_id}"), ""));
    set(&mut revoke, "cookie", &first);
    assert_eq!(world.server.send(revoke).await.status, 200);
    let end = stream.frame().await;
    assert!(end.is_none(), "its stream ends at once, not with what comes next: {end:?}");
    let me = |cookie: &str| by(api::OperationId::GetMe.route(), cookie);
    assert_eq!(world.server.send(me(&second)).await.error(), (401, "unauthorized".into()));

    let mut sign_out = own_page(json(Method::POST, "/api/v1/sign-out", "{}"));
    set(&mut sign_out, "cookie", &first);
    let answer = world.server.send(sign_out).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["id"]), (200, &first_id.into()));
    assert!(
        answer.head.headers[header::SET_COOKIE].to_str().unwrap().starts_with("capture_device=; Path=/; Max-Age=0")
    );
    assert_eq!(world.server.send(me(&first)).await.status, 401);
}

#[tokio::test]
async fn the_page_needs_no_token_and_has_strict_security_headers() {
    let server = TestServer::new();
    for path in ["/", "/pair", "/s/agent-1", "/assets/app.js", "/assets/app.css"] {
        let mut request = request(Method::GET, path).body(Full::default()).unwrap();
        request.headers_mut().remove(header::AUTHORIZATION);
        let answer = server.send(request).await;
        assert_eq!(answer.status, 200, "{path}");
        let headers = &answer.head.headers;
        let policy = headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "connect-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
        ] {
            assert!(policy.split("; ").any(|given| given == part), "{path}: {part}");
        }
        assert!(!policy.contains("unsafe") && !policy.contains('*') && !policy.contains("http"), "{policy}");
        assert_eq!(headers[header::X_FRAME_OPTIONS], "DENY");
        assert_eq!(headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
        assert_eq!(headers[header::REFERRER_POLICY], "no-referrer");
        assert_eq!(headers[header::CACHE_CONTROL], "no-cache");
        assert_eq!(headers["cross-origin-opener-policy"], "same-origin");
        assert_eq!(headers["cross-origin-resource-policy"], "same-origin");
        let tag = headers[header::ETAG].to_str().unwrap().to_owned();
        let known = super::request(Method::GET, path).header(header::IF_NONE_MATCH, tag).body(Full::default()).unwrap();
        let answer = server.send(known).await;
        assert_eq!((answer.status.as_u16(), answer.body.len()), (304, 0), "{path}");
        for (name, value) in [("host", "evil.test:7777"), ("origin", "http://evil.test")] {
            let mut foreign = super::request(Method::GET, path).body(Full::default()).unwrap();
            set(&mut foreign, name, value);
            assert_eq!(server.send(foreign).await.status, 403, "{path} {name}");
        }
    }
    for path in ["/assets/nothing.js", "/assets/../Cargo.toml", "/nowhere", "/index.html"] {
        let mut request = request(Method::GET, path).body(Full::default()).unwrap();
        request.headers_mut().remove(header::AUTHORIZATION);
        assert_eq!(server.send(request).await.error(), (401, "unauthorized".into()), "{path}");
    }
}

#[tokio::test]
async fn a_malformed_pairing_body_is_refused() {
    let world = World::new();
    let route = api::OperationId::PairDevice.route();
    assert!(matches!(route.body, RequestBody::Json(_)));
    for body in ["", "{", "{}", r#"{"code":"x"}"#, r#"{"code":"x","name":"y","scope":"control"}"#] {
        assert_eq!(world.server.send(pairing(body)).await.error(), (400, "bad_body".into()), "{body}");
    }
}

#[tokio::test]
async fn an_answer_button_needs_only_its_token() {
    let (control, _inbox) = super::commands::commands(1);
    let press = |token: &str| {
        let mut request = json(Method::POST, "/api/v1/answers", &format!(r#"{{"token":"{token}"}}"#));
        request.headers_mut().remove(header::AUTHORIZATION);
        request
    };
    let server = TestServer::with(Health::default(), |config| config.control = Arc::clone(&control));
    let answer = server.send(press("good")).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["state"]), (200, &"denied".into()));
    for _ in 0..20 {
        assert_eq!(server.send(press("bad")).await.error(), (410, "code_expired".into()));
    }
    assert_eq!(server.send(press("bad")).await.error(), (429, "too_many_wrong_tokens".into()));
    let mut foreign = press("good");
    set(&mut foreign, "origin", "http://evil.test");
    assert_eq!(server.send(foreign).await.status, 403);
    let below_an_agent = TestServer::with(Health::default(), |config| {
        config.control = control;
        config.control_tcp = Some(Arc::new(|_, _| Some(TcpRefusal::Agent("an agent's".into()))));
    });
    assert_eq!(below_an_agent.send(press("good")).await.error(), (403, "agents_peer".into()));
}
