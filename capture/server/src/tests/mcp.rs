//! The Model Context Protocol over HTTP: what the answering side receives, and who may change something.

use std::sync::Mutex;

use futures_util::FutureExt;
use http_body_util::BodyExt as _;

use super::*;
use crate::McpAnswer;

/// A server whose answer reports whether the caller may change something and which headers it received; and the
/// received bodies.
fn server() -> (TestServer, Arc<Mutex<Vec<Bytes>>>) {
    let bodies: Arc<Mutex<Vec<Bytes>>> = Arc::default();
    let came = Arc::clone(&bodies);
    let answer: McpAnswer = Arc::new(move |request, control| {
        came.lock().unwrap().push(request.body().clone());
        let said =
            format!("{:?} {:?}", control(), request.headers().keys().map(http::HeaderName::as_str).collect::<Vec<_>>());
        async move { Response::new(Full::new(Bytes::from(said)).boxed()) }.boxed()
    });
    (TestServer::with(Health::default(), |config| config.mcp = Some(answer)), bodies)
}

fn message(scope: &str, body: &str) -> Request<Full<Bytes>> {
    let mut request = request(Method::POST, "/mcp")
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::from(body.to_owned()))
        .unwrap();
    let value = format!("Bearer {}", token(scope)).parse().unwrap();
    request.headers_mut().insert(header::AUTHORIZATION, value);
    request
}

#[tokio::test]
async fn the_mcp_handler_receives_the_message_without_the_token() {
    let (server, bodies) = server();
    let answer = server.send(message("read", r#"{"jsonrpc":"2.0"}"#)).await;
    let said = String::from_utf8(answer.body.to_vec()).unwrap();
    assert_eq!((answer.status.as_u16(), bodies.lock().unwrap()[0].as_ref()), (200, &br#"{"jsonrpc":"2.0"}"#[..]));
    assert!(said.contains("content-type") && !said.contains("authorization"), "{said}");
    assert!(said.starts_with("Some(\"the token has the scope `read`"), "{said}");
    let answer = server.send(message("owner", "{}")).await;
    assert!(answer.body.starts_with(b"None"), "{answer:?}", answer = answer.body);
}

#[tokio::test]
async fn refused_mcp_requests_do_not_reach_the_handler() {
    let (server, bodies) = server();
    assert_eq!(server.send(message("control", "{}")).await.error(), (403, "wrong_scope".into()));
    let mut plain = message("read", "{}");
    plain.headers_mut().insert(header::CONTENT_TYPE, "text/plain".parse().unwrap());
    assert_eq!(server.send(plain).await.error(), (415, "not_json".into()));
    let limit = Limits::default().body_bytes;
    assert_eq!(server.send(message("read", &" ".repeat(limit + 1))).await.error(), (413, "body_too_large".into()));
    assert!(bodies.lock().unwrap().is_empty());
    assert_eq!(server.send(message("read", &" ".repeat(limit))).await.status, 200);
    assert_eq!(TestServer::new().send(message("read", "{}")).await.error().0, 503, "where nothing answers");
}
