//! Tests every route of the table with every kind of invalid access.

use http::HeaderValue;

use super::*;
use api::{
    Scope,
    routes::{ROUTES, RequestBody, Route},
};

fn path(route: &Route) -> String {
    route.path.replace("{id}", &id(1).to_string()).replace("{hash}", "00")
}

/// A request for this route that is valid except for what the test changes.
fn of(route: &Route) -> Request<Full<Bytes>> {
    let builder = request(route.method.clone(), &path(route));
    if route.method == Method::GET {
        builder.body(Full::default()).unwrap()
    } else {
        builder.header(header::CONTENT_TYPE, "application/json").body(Full::from("{}")).unwrap()
    }
}

fn set(request: &mut Request<Full<Bytes>>, name: &'static str, value: &str) {
    request.headers_mut().insert(name, HeaderValue::from_str(value).unwrap());
}

async fn refused(server: &TestServer, request: Request<Full<Bytes>>, expected: (u16, &str)) {
    let what = format!("{} {}", request.method(), request.uri());
    let answer = server.send(request).await;
    let (status, code) = answer.error();
    assert_eq!((status, code.as_str()), expected, "{what}");
    clean(&answer);
}

/// Checks the properties of every response.
fn clean(answer: &Answered) {
    let headers = &answer.head.headers;
    assert!(!headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN));
    assert_eq!(headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
    assert_eq!(headers[header::REFERRER_POLICY], "no-referrer");
    assert_eq!(headers[header::CACHE_CONTROL], "no-store");
}

#[tokio::test]
async fn every_route_with_data_needs_a_token() {
    let server = TestServer::new();
    for route in ROUTES {
        let mut request = of(route);
        request.headers_mut().remove(header::AUTHORIZATION);
        match (route.scope, route.path) {
            (Scope::Open, "/healthz") => {
                let answer = server.send(request).await;
                assert_eq!(answer.status, 200);
                assert_eq!(answer.body, "ok\n");
                clean(&answer);
            }
            // The page contains no data, and pairing needs a code.
            (Scope::Open, "/") => assert_eq!(server.send(request).await.status, 200),
            (Scope::Open, "/api/v1/answers") => refused(&server, request, (400, "bad_body")).await,
            (Scope::Open, "/api/v1/pair") => refused(&server, request, (403, "foreign_origin")).await,
            (scope, path) => {
                assert_ne!(scope, Scope::Open, "{path}");
                refused(&server, request, (401, "unauthorized")).await;
            }
        }
    }
    let mut nowhere = request(Method::GET, "/nowhere").body(Full::default()).unwrap();
    nowhere.headers_mut().remove(header::AUTHORIZATION);
    refused(&server, nowhere, (401, "unauthorized")).await;
}

#[tokio::test]
async fn every_route_refuses_tokens_of_other_scopes() {
    let server = TestServer::new();
    for route in ROUTES.iter().filter(|route| route.scope != Scope::Open) {
        for scope in ["ingest", "read", "control", "admin"] {
            let opens = match route.scope {
                Scope::Open => true,
                Scope::Ingest => scope == "ingest",
                Scope::Read => scope == "read",
                Scope::Control => scope == "control",
                Scope::Admin => scope == "admin",
            };
            let mut request = of(route);
            set(&mut request, "authorization", &format!("Bearer {}", token(scope)));
            if opens {
                if route.path != "/api/stream/status" && route.path != "/api/v1/stream" {
                    let answer = server.send(request).await;
                    clean(&answer);
                    if route.path == "/api/v1/deliveries/{id}/answer" {
                        // Whatever its token, a hook must use the Unix socket.
                        assert_eq!(answer.error(), (403, "unix_only".into()), "{scope}");
                    } else {
                        assert!(![401, 403].contains(&answer.status.as_u16()), "{} {scope}", route.path);
                    }
                }
            } else {
                refused(&server, request, (403, "wrong_scope")).await;
            }
        }
    }
}

#[tokio::test]
async fn every_route_refuses_other_hosts() {
    let server = TestServer::new();
    for route in ROUTES {
        for host in [
            "evil.test",
            "evil.test:7777",
            "127.0.0.1",
            "127.0.0.1:7778",
            "localhost",
            "127.0.0.1.evil.test:7777",
            "127.0.0.2:7777",
            "",
        ] {
            let mut request = of(route);
            set(&mut request, "host", host);
            refused(&server, request, (403, "wrong_host")).await;
        }
        let mut request = of(route);
        request.headers_mut().remove(header::HOST);
        refused(&server, request, (403, "wrong_host")).await;
        let mut request = of(route);
        request.headers_mut().append(header::HOST, HeaderValue::from_static("evil.test"));
        refused(&server, request, (403, "wrong_host")).await;
    }
    for host in ["127.0.0.1:7777", "localhost:7777", "LOCALHOST:7777", "[::1]:7777"] {
        let mut request = request(Method::GET, "/healthz").body(Full::default()).unwrap();
        set(&mut request, "host", host);
        assert_eq!(server.send(request).await.status, 200, "{host}");
    }
}

#[tokio::test]
async fn every_route_refuses_foreign_origins() {
    let server = TestServer::new();
    for route in ROUTES {
        for origin in [
            "null",
            "http://localhost:8888",
            "http://127.0.0.1",
            "https://127.0.0.1:7777",
            "http://127.0.0.1.evil.test",
            "http://127.0.0.1:7777.evil.test",
            "https://evil.test#127.0.0.1",
            "https://evil.test/127.0.0.1:7777",
            "http://evil.test@127.0.0.1:7777",
            "file://",
            "",
        ] {
            let mut request = of(route);
            set(&mut request, "origin", origin);
            refused(&server, request, (403, "foreign_origin")).await;
        }
        let mut request = of(route);
        set(&mut request, "origin", "http://127.0.0.1:7777");
        request.headers_mut().append(header::ORIGIN, HeaderValue::from_static("http://127.0.0.1:7777"));
        refused(&server, request, (403, "foreign_origin")).await;
    }
    let mut own = request(Method::GET, "/api/v1/sessions").body(Full::default()).unwrap();
    set(&mut own, "origin", "http://localhost:7777");
    let answer = server.send(own).await;
    assert_eq!(answer.status, 200);
    clean(&answer);
}

#[tokio::test]
async fn preflights_are_refused() {
    let server = TestServer::new();
    for route in ROUTES {
        let ask = |origin: &str| {
            request(Method::OPTIONS, &path(route))
                .header(header::ORIGIN, origin)
                .header(header::ACCESS_CONTROL_REQUEST_METHOD, "GET")
        };
        let foreign = ask("http://router.lan").header("access-control-request-private-network", "true");
        refused(&server, foreign.body(Full::default()).unwrap(), (403, "foreign_origin")).await;
        let own = ask("http://localhost:7777").header("access-control-request-private-network", "true");
        refused(&server, own.body(Full::default()).unwrap(), (403, "private_network")).await;
        if route.scope != Scope::Open {
            let own = ask("http://localhost:7777").body(Full::default()).unwrap();
            refused(&server, own, (405, "method_not_allowed")).await;
        }
    }
}

#[tokio::test]
async fn too_many_wrong_tokens_are_refused_without_locking_out_the_owner() {
    let server = TestServer::new();
    let with = |token: &str| {
        let mut request = request(Method::GET, "/api/v1/sessions").body(Full::default()).unwrap();
        set(&mut request, "authorization", token);
        request
    };
    let wrong = format!("Bearer {}", "x".repeat(43));
    for malformed in ["Bearer", "Bearer ", "Basic b3duZXI6", &wrong] {
        refused(&server, with(malformed), (401, "unauthorized")).await;
    }
    for _ in 4..20 {
        refused(&server, with(&wrong), (401, "unauthorized")).await;
    }
    let of_scope = |scope: &str| with(&format!("Bearer {}", token(scope)));
    let answer = server.send(of_scope("ingest")).await;
    let told = "the token has the scope `ingest`, but this route needs `read`; use the one in `tokens/read` in \
                the data directory";
    assert_eq!(answer.json()["error"]["message"], told);
    let answer = server.send(with(&wrong)).await;
    assert_eq!(answer.error(), (429, "too_many_wrong_tokens".into()));
    assert_eq!(answer.head.headers[header::RETRY_AFTER], "10");
    let right = format!("bearer {}", token("read"));
    assert_eq!(server.send(with(&right)).await.status, 200, "the owner is not locked out");
}

#[tokio::test]
async fn content_types_that_a_foreign_page_can_send_are_refused() {
    let server = TestServer::new();
    for route in ROUTES {
        let (code, foreign) = match route.body {
            RequestBody::None => {
                // A page cannot send DELETE to another origin without a preflight request, and no response allows that.
                let is_safe = [Method::GET, Method::DELETE].contains(&route.method);
                assert!(is_safe, "{}: what changes something needs a body", route.path);
                continue;
            }
            RequestBody::Json(_) => ("not_json", "application/x-protobuf"),
            RequestBody::Telemetry => ("not_otlp", "application/grpc"),
        };
        for kind in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
            "application/jsonp",
            "application/x-protobuf2",
            foreign,
            "",
        ] {
            let mut request = of(route);
            set(&mut request, "content-type", kind);
            refused(&server, request, (415, code)).await;
        }
        let mut request = of(route);
        request.headers_mut().remove(header::CONTENT_TYPE);
        refused(&server, request, (415, code)).await;
    }
}

#[tokio::test]
async fn only_telemetry_routes_accept_chunked_or_large_bodies() {
    let server = TestServer::new();
    for route in ROUTES {
        let telemetry = matches!(route.body, RequestBody::Telemetry);
        assert_eq!(telemetry, route.path.starts_with("/v1/"), "{}", route.path);
        let mut chunked = of(route);
        set(&mut chunked, "transfer-encoding", "chunked");
        let mut large = of(route);
        *large.body_mut() = Full::from("x".repeat(Limits::default().body_bytes + 1));
        match route.body {
            RequestBody::None => assert_eq!(server.send(chunked).await.status, 411, "{}", route.path),
            RequestBody::Json(_) => {
                assert_eq!(server.send(chunked).await.status, 411, "{}", route.path);
                assert_eq!(server.send(large).await.status, 413, "{}", route.path);
            }
            RequestBody::Telemetry => {
                assert_eq!(server.send(chunked).await.status, 503, "{}: nobody takes it", route.path);
                assert_eq!(server.send(large).await.status, 503, "{}: nobody takes it", route.path);
            }
        }
    }
}

#[tokio::test]
async fn the_websocket_upgrade_checks_host_origin_and_token() {
    let live = Live::new().await;
    let address = live.serving.address();
    let upgrade = |host: &str, more: &str| {
        format!(
            "GET /api/v1/ws HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n"
        )
    };
    let own = address.to_string();
    let bearer = format!("Authorization: Bearer {}\r\n", token("read"));
    for (host, more, status) in [
        (own.as_str(), String::new(), "401"),
        (own.as_str(), format!("Authorization: Bearer {}\r\n", token("ingest")), "403"),
        ("evil.test", bearer.clone(), "403"),
        (own.as_str(), format!("{bearer}Origin: null\r\n"), "403"),
        (own.as_str(), format!("{bearer}Origin: http://localhost:1\r\n"), "403"),
        (own.as_str(), format!("{bearer}Origin: http://{own}.evil.test\r\n"), "403"),
        (own.as_str(), format!("{bearer}Origin: http://{own}\r\n"), "101"),
        (own.as_str(), bearer, "101"),
    ] {
        let mut stream = live.connect().await;
        stream.write_all(upgrade(host, &more).as_bytes()).await.unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&head), format!("HTTP/1.1 {status}"), "{host} {more}");
    }
    let read = token("read");
    let in_the_query = format!("GET /api/v1/ws?token={read} HTTP/1.1\r\nHost: {own}\r\nConnection: close\r\n\r\n");
    assert!(live.exchange(in_the_query.as_bytes()).await.starts_with("HTTP/1.1 401"));
}

#[test]
fn listening_beyond_loopback_is_refused_by_default() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut config = Config::new(tokens());
        config.listen = "0.0.0.0:0".parse().unwrap();
        let log = Log::new();
        let refused =
            serve(config, LiveView::new("e"), log.writer.reader(), Health::default(), CancellationToken::new()).await;
        assert!(matches!(refused, Err(crate::ServeError::Exposed { .. })));
    });
}
