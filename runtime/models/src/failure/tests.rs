use super::*;
use crate::Secret;

#[test]
fn http_error_answers_are_classified() {
    let check = |status, body: &str, kind| {
        let failure = Failure::of_http(&HttpAnswer { status, body, ..HttpAnswer::default() });
        assert_eq!((failure.kind, failure.status), (kind, Some(status)), "{body}");
    };
    use FailureKind as Kind;
    check(529, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, Kind::Overloaded);
    check(401, r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#, Kind::Auth);
    check(
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 213462 tokens > 200000 maximum"}}"#,
        Kind::TooLong,
    );
    check(
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.1: wrong"}}"#,
        Kind::BadRequest,
    );
    check(413, r#"{"type":"error","error":{"type":"request_too_large","message":"too large"}}"#, Kind::TooLong);
    check(
        429,
        r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
        Kind::Quota,
    );
    check(
        429,
        r#"{"error":{"message":"Rate limit reached","type":"tokens","code":"rate_limit_exceeded"}}"#,
        Kind::Rate,
    );
    check(
        400,
        r#"{"error":{"message":"This model's maximum context length is 128000 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
        Kind::TooLong,
    );
    check(
        400,
        r#"{"error":{"message":"Missing required parameter","type":"invalid_request_error","code":null}}"#,
        Kind::BadRequest,
    );
    check(
        400,
        r#"[{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}]"#,
        Kind::Auth,
    );
    check(429, r#"{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED"}}"#, Kind::Rate);
    check(
        429,
        r#"{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProject"}]}]}}"#,
        Kind::Quota,
    );
    check(
        400,
        r#"{"error":{"code":400,"message":"The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}"#,
        Kind::TooLong,
    );
    check(403, r#"{"type":"error","error":{"type":"api_error","message":"Forbidden"}}"#, Kind::Auth);
    check(404, r#"{"type":"error","error":{"type":"api_error","message":"Not found"}}"#, Kind::BadRequest);
    check(413, r#"{"error":{"code":413,"message":"Too large","status":"INTERNAL"}}"#, Kind::TooLong);
    check(500, r#"{"type":"error","error":{"type":"api_error","message":"Internal server error"}}"#, Kind::Overloaded);
    check(502, "<html>Bad gateway</html>", Kind::Overloaded);
    check(404, "not here", Kind::BadRequest);
    for body in [
        r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-sonnet-55"}}"#,
        r#"{"error":{"message":"The model `gpt-55` does not exist","type":"invalid_request_error","code":"model_not_found"}}"#,
        r#"{"error":{"code":404,"message":"models/gemini-55 is not found for API version v1beta","status":"NOT_FOUND"}}"#,
        r#"{"error":{"message":"model \"llama55\" not found, try pulling it first","type":"api_error"}}"#,
    ] {
        check(404, body, Kind::NoModel);
    }
    let credit = "Your credit balance is too low to access the Anthropic API.";
    let body = format!(r#"{{"type":"error","error":{{"type":"invalid_request_error","message":"{credit}"}}}}"#);
    check(400, &body, Kind::Quota);
    check(402, "", Kind::Quota);
}

#[test]
fn retry_delays_are_parsed_from_headers_and_bodies() {
    let check = |answer: HttpAnswer<'_>, seconds: Option<f64>| {
        let told = Failure::of_http(&answer).retry_after.map(|wait| wait.as_secs_f64());
        assert_eq!(told, seconds, "{answer:?}");
    };
    let answer = HttpAnswer { status: 429, ..HttpAnswer::default() };
    check(answer, None);
    check(HttpAnswer { retry_after: Some("7"), ..answer }, Some(7.0));
    check(HttpAnswer { retry_after: Some("7"), retry_after_ms: Some("1500"), ..answer }, Some(1.5));
    let date = Some("Wed, 21 Oct 2026 07:28:00 GMT");
    check(HttpAnswer { retry_after: Some("Wed, 21 Oct 2026 07:29:30 GMT"), date, ..answer }, Some(90.0));
    check(HttpAnswer { retry_after: Some("Thu, 01 Jan 2026 00:00:00 GMT"), date, ..answer }, Some(0.0));
    check(
        HttpAnswer {
            retry_after: Some("Mon, 01 Mar 2027 00:00:00 GMT"),
            date: Some("Sun, 28 Feb 2027 23:59:59 GMT"),
            ..answer
        },
        Some(1.0),
    );
    check(HttpAnswer { retry_after: Some("soon"), ..answer }, None);
    check(HttpAnswer { retry_after: Some("-5"), ..answer }, Some(0.0));
    let body = r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"m","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}"#;
    check(HttpAnswer { body, ..answer }, Some(34.5));
}

#[test]
fn the_should_retry_header_of_the_vendor_is_parsed() {
    let of = |should_retry| {
        Failure::of_http(&HttpAnswer { status: 529, should_retry, ..HttpAnswer::default() }).should_retry
    };
    assert_eq!([None, Some("false"), Some(" true "), Some("maybe")].map(of), [None, Some(false), Some(true), None]);
}

#[test]
fn an_api_key_is_redacted_from_failures() {
    let key = Secret::new(" sk-very-secret\n".to_owned());
    let body = r#"{"error":{"message":"Incorrect API key provided: sk-very-secret.","code":"invalid_api_key"}}"#;
    let failure = Failure::of_http(&HttpAnswer { status: 401, body, ..HttpAnswer::default() }).without(&key);
    let shown = format!("{failure} {failure:?} {key:?}");
    assert!(!shown.contains("very-secret"), "{shown}");
    assert!(shown.contains("[key]"));
}

#[test]
fn a_failure_message_describes_its_kind_once() {
    let shown = |kind, message: &str| Failure::new(kind, message).to_string();
    assert_eq!(shown(FailureKind::Refused, ""), "the model refused to answer");
    assert_eq!(shown(FailureKind::Refused, "not this"), "the model refused to answer: not this");
    assert_eq!(
        shown(FailureKind::Network, "error reading a body"),
        "the connection to the provider failed: error reading a body"
    );
}
