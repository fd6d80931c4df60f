//! The names of sessions, findings and queued prompts.

use events::{Finding, FindingKind, FindingState, Severity};

use super::*;

async fn named(server: &TestServer, name: &str) -> (u16, String) {
    let answer = server.get(&format!("/api/v1/sessions/{name}")).await;
    let told = answer.json();
    let id = told["id"].as_str().or(told["error"]["code"].as_str()).unwrap_or_default();
    (answer.status.as_u16(), id.to_owned())
}

#[tokio::test]
async fn a_session_is_found_by_any_unambiguous_part_of_its_ids() {
    let server = TestServer::new();
    // The ids of the first two have the same end; the agents' ids have the same beginning.
    let (a, b, c) = (0x1234_5678, 0x2345_5678, 7);
    for n in [a, b, c] {
        server.live_view.put(entry(n, State::Running));
    }
    let text = |n: u128| id(n).to_string();
    assert_eq!(named(&server, &text(a)).await, (200, text(a)));
    assert_eq!(named(&server, &text(a)[18..]).await, (200, text(a)), "its end");
    assert_eq!(named(&server, &text(a)[18..].to_lowercase()).await, (200, text(a)));
    assert_eq!(named(&server, &format!("agent-{c}")).await, (200, text(c)));
    assert_eq!(named(&server, &format!("agent-{}", &a.to_string()[..5])).await, (200, text(a)), "its beginning");
    assert_eq!(named(&server, &format!("gent-{c}")).await, (200, text(c)), "the end of the agent's id");
    assert_eq!(named(&server, "agent-").await, (409, "ambiguous".into()));
    assert_eq!(named(&server, &text(a)[..8]).await, (409, "ambiguous".into()));
    assert_eq!(named(&server, "nothing-like-it").await, (404, "not_found".into()));
    assert_eq!(named(&server, &text(a)[24..]).await, (404, "not_found".into()), "too short to mean anything");
}

#[tokio::test]
async fn the_id_of_a_merged_session_redirects_to_the_survivor() {
    let server = TestServer::new();
    server.live_view.put(entry(0xAAAA_0001, State::Running));
    let merged = SessionEntry { merged_into: Some(id(0xAAAA_0001)), ..entry(0xBBBB_0001, State::Running) };
    server.live_view.put(merged);
    let short = id(0xBBBB_0001).to_string()[19..].to_owned();
    let answer = server.get(&format!("/api/v1/sessions/{short}/events?after=2")).await;
    assert_eq!(answer.error(), (308, "merged".into()));
    let now = id(0xAAAA_0001);
    assert_eq!(answer.head.headers[header::LOCATION], format!("/api/v1/sessions/{now}/events?after=2"));
    // Both ids have this beginning, and both are the same session.
    let both = server.get(&format!("/api/v1/sessions/{}", &now.to_string()[..10])).await;
    assert_eq!(both.json()["id"], now.to_string());
}

pub(super) fn finding(n: u32, kind: FindingKind) -> Finding {
    Finding {
        confidence: events::Confidence::High,
        id: format!("{n:04}-{kind}").into(),
        session_id: id(1),
        kind,
        key: String::new(),
        acknowledged_at: None,
        subject: None,
        severity: Severity::Warning,
        state: FindingState::Open,
        what: "something".into(),
        why: "because".into(),
        first_at: at(i64::from(n)),
        last_at: at(i64::from(n)),
        count: 1,
        evidence: Vec::new(),
        approval_id: None,
        until: None,
        resolved_at: None,
        resolution: None,
    }
}

#[tokio::test]
async fn a_cursor_continues_after_the_previous_page() {
    let mut server = TestServer::new();
    server.live_view.put(entry(1, State::Running));
    let row = server.log.session(&session(1, State::Running));
    server.log.writer.begin().unwrap();
    for n in 0..25 {
        let kind = if n % 5 == 0 { FindingKind::ALL[0] } else { FindingKind::ALL[1] };
        server.log.writer.put_entity(row, &finding(n, kind)).unwrap();
    }
    server.log.writer.commit().unwrap();
    for (query, expected) in [("", 25), (&*format!("&kind={}", FindingKind::ALL[0]), 5)] {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = server.get(&format!("/api/v1/findings?limit=4{query}{cursor}")).await.json();
            let findings = page["findings"].as_array().unwrap();
            assert!(!findings.is_empty() && findings.len() <= 4, "{page}");
            seen.extend(findings.iter().map(|finding| finding["id"].as_str().unwrap().to_owned()));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(seen.len(), expected, "{query}");
        assert!(seen.is_sorted_by(|a, b| a > b), "newest first: {seen:?}");
    }
    assert_eq!(server.get("/api/v1/findings/0007").await.json()["id"], finding(7, FindingKind::ALL[1]).id.as_str());
    assert_eq!(server.get("/api/v1/findings/00").await.error(), (404, "not_found".into()));
    let kind = FindingKind::ALL[1].to_string();
    assert_eq!(server.get(&format!("/api/v1/findings/{kind}")).await.error(), (409, "ambiguous".into()));
    assert_eq!(server.get("/api/v1/findings?cursor=x").await.error(), (400, "bad_parameter".into()));
}

#[tokio::test]
async fn attention_items_are_listed_most_urgent_first() {
    let mut server = TestServer::new();
    assert_eq!(server.get("/api/v1/attention").await.json()["items"], serde_json::json!([]));
    for (n, state) in [(1, State::Running), (2, State::WaitingApproval), (3, State::Running), (4, State::Exited)] {
        server.live_view.put(entry(n, state));
    }
    let row = server.log.session(&session(1, State::Running));
    server.log.writer.begin().unwrap();
    server.log.writer.put_entity(row, &finding(1, FindingKind::Stuck)).unwrap();
    server.log.writer.commit().unwrap();
    let list = server.get("/api/v1/attention").await.json();
    let items = list["items"].as_array().unwrap();
    let needs: Vec<_> =
        items.iter().map(|item| (item["title"].as_str().unwrap(), item["need"].as_str().unwrap())).collect();
    assert_eq!(needs, [("Session 2", "approval"), ("Session 1", "stuck")]);
    assert_eq!((&items[1]["what"], &items[1]["why"]), (&"something".into(), &"because".into()));
}
