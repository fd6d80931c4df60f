//! Reading sessions and their history, as the contract specifies.

use std::collections::BTreeMap;

use events::{AssistantMessage, Check, CheckClass, CheckVerdict, EventId, Receipt, TestCounts, UsageReported};
use live_view::Refusal;
use projections::Turn;

use super::commands::{Command, commands};
use super::*;

fn ids_of(answer: &Value) -> Vec<SessionId> {
    let sessions = answer["sessions"].as_array().unwrap();
    sessions.iter().map(|s| s["id"].as_str().unwrap().parse().unwrap()).collect()
}

#[tokio::test]
async fn a_session_is_returned_by_either_of_its_ids() {
    let server = TestServer::new();
    server.live_view.put(entry(1, State::Running));
    let expected = serde_json::to_value(session(1, State::Running)).unwrap();
    let by_id = server.get(&format!("/api/v1/sessions/{}", id(1))).await;
    assert_eq!(by_id.head.headers[header::CONTENT_TYPE], "application/json");
    assert_eq!(by_id.json(), expected);
    assert_eq!(server.get("/api/v1/sessions/agent-1").await.json(), expected);
    assert_eq!(server.get("/api/v1/sessions/agent%2D1").await.json(), expected);
    assert_eq!(server.get("/api/v1/sessions/agent-2").await.error(), (404, "not_found".into()));
    assert_eq!(server.get(&format!("/api/v1/sessions/{}", id(2))).await.error(), (404, "not_found".into()));
    assert_eq!(server.get("/api/v1/sessions/%ff").await.error(), (400, "bad_parameter".into()));
    assert_eq!(server.get("/api/v1/sessions/a%00b").await.error(), (400, "bad_parameter".into()));
}

#[tokio::test]
async fn requests_for_a_merged_session_are_redirected() {
    let server = TestServer::new();
    server.live_view.put(entry(1, State::Running));
    server.live_view.put(SessionEntry { merged_into: Some(id(1)), ..entry(2, State::Running) });
    let mut gone = session(3, State::Running);
    gone.merged_into = Some(id(1));
    let mut server = server;
    server.log.session(&gone);
    for n in [2, 3] {
        for rest in ["", "/events?after=3&limit=2", "/summary", "/wait?until=idle"] {
            let answer = server.get(&format!("/api/v1/sessions/{}{rest}", id(n))).await;
            assert_eq!(answer.error(), (308, "merged".into()), "{n}{rest}");
            assert_eq!(answer.head.headers[header::LOCATION], format!("/api/v1/sessions/{}{rest}", id(1)));
        }
    }
    assert_eq!(ids_of(&server.get("/api/v1/sessions").await.json()), [id(1)]);
}

#[tokio::test]
async fn cold_sessions_are_read_from_the_store() {
    let mut server = TestServer::new();
    server.log.session(&session(1, State::Idle));
    server.log.session(&session(2, State::Idle));
    server.live_view.put(SessionEntry::cold(&session(1, State::Idle), true));
    server.live_view.put(entry(3, State::Running));
    let expected = serde_json::to_value(session(1, State::Idle)).unwrap();
    assert_eq!(server.get(&format!("/api/v1/sessions/{}", id(1))).await.json(), expected);
    assert_eq!(ids_of(&server.get("/api/v1/sessions").await.json()), [id(3), id(1)]);
    for name in [id(2).to_string(), "agent-2".into()] {
        assert_eq!(server.get(&format!("/api/v1/sessions/{name}")).await.json()["title"], "Session 2", "{name}");
    }
}

#[tokio::test]
async fn session_lists_are_filtered_and_paged() {
    let server = TestServer::new();
    for n in 1..=5 {
        server.live_view.put(entry(n, if n == 2 { State::Exited } else { State::Running }));
    }
    server.live_view.advance(812);
    let list = |query: &'static str| {
        let server = &server;
        async move { server.get(&format!("/api/v1/sessions{query}")).await.json() }
    };
    let all = list("?active=all").await;
    assert_eq!(all["as_of"], 812);
    assert_eq!(all["next_cursor"], Value::Null);
    assert_eq!(ids_of(&all), [id(5), id(4), id(3), id(2), id(1)]);
    assert_eq!(ids_of(&list("").await), [id(5), id(4), id(3), id(1)]);
    assert_eq!(ids_of(&list("?active=true").await), [id(5), id(4), id(3), id(1)]);
    assert_eq!(ids_of(&list("?state=exited").await), [id(2)]);
    assert_eq!(ids_of(&list("?state=exited&active=true").await), [] as [SessionId; 0]);
    assert_eq!(ids_of(&list("?state=exited,running&limit=2").await), [id(5), id(4)]);
    assert_eq!(ids_of(&list("?provider=codex").await), [] as [SessionId; 0]);
    assert_eq!(ids_of(&list("?cwd=/home/dev/proj/&limit=1").await), [id(5)]);
    assert_eq!(ids_of(&list("?cwd=/home/dev").await), [] as [SessionId; 0]);

    let mut seen = Vec::new();
    let mut query = "?active=all&limit=2".to_owned();
    loop {
        let page = server.get(&format!("/api/v1/sessions{query}")).await.json();
        seen.extend(ids_of(&page));
        match page["next_cursor"].as_str() {
            Some(cursor) => query = format!("?active=all&limit=2&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(seen, [id(5), id(4), id(3), id(2), id(1)]);
}

#[tokio::test]
async fn invalid_parameters_are_named_in_the_error() {
    let server = TestServer::new();
    server.live_view.put(entry(1, State::Running));
    for (query, name) in [
        ("sessions?state=sleeping", "state"),
        ("sessions?provider=x", "provider"),
        ("sessions?active=no", "active"),
        ("sessions?cursor=1", "cursor"),
        ("sessions?limit=0", "limit"),
        ("sessions?limit=-1", "limit"),
        ("sessions/agent-1/events?after=x", "after"),
        ("sessions/agent-1/events?kind=user.prompt,x", "kind"),
        ("sessions/agent-1/turns?after=99999999999", "after"),
        ("sessions/agent-1/wait", "until"),
        ("sessions/agent-1/wait?until=done", "until"),
        ("sessions/agent-1/wait?until=idle&timeout_ms=soon", "timeout_ms"),
        ("stream?after=x", "after"),
        ("texts/xyz", "hash"),
    ] {
        let answer = server.get(&format!("/api/v1/{query}")).await;
        assert_eq!(answer.error(), (400, "bad_parameter".into()), "{query}");
        let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.starts_with(&format!("{name}: ")), "{query}: {message}");
    }
}

#[tokio::test]
async fn events_and_status_history_are_paged() {
    let mut server = TestServer::new();
    server.live_view.put(entry(1, State::Running));
    let row = server.log.session(&session(1, State::Running));
    let answer = AssistantMessage::default();
    server.log.append(
        row,
        &[
            prompt(1, 1, 1),
            changed(1, 2, 2, State::Waiting, State::Running),
            event(1, 3, 3, answer),
            changed(1, 4, 4, State::Running, State::Waiting),
        ],
    );
    let get = |rest: &'static str| {
        let server = &server;
        async move { server.get(&format!("/api/v1/sessions/agent-1/{rest}")).await.json() }
    };
    let events = get("events").await;
    assert_eq!(events["events"].as_array().unwrap().len(), 4);
    assert_eq!(events["next_after"], 4);
    let page = get("events?after=1&limit=2").await;
    assert_eq!(page["events"][0]["sequence"], 2);
    assert_eq!(page["next_after"], 3);
    assert_eq!(get("events?after=9").await["next_after"], 9);
    let picked = get("events?kind=user.prompt,assistant.message").await;
    assert_eq!(picked["events"].as_array().unwrap().len(), 2);

    let history = get("status/history").await;
    assert_eq!(
        history[0],
        serde_json::json!({
            "at": at(2), "observed_at": at(3), "from": "waiting", "to": "running", "reason": null,
            "confidence": "high", "source": "transcript", "evidence": ["registry: busy"], "sequence": 2,
        })
    );
    assert_eq!(history.as_array().unwrap().len(), 2);
    assert_eq!(get("status/history?limit=1").await[0]["to"], "waiting", "the last ones");
    assert_eq!(get("status/history?after=0&limit=1").await[0]["to"], "running", "the first ones");

    let changes = get("status/changes?limit=1").await;
    assert_eq!((&changes["changes"][0]["to"], &changes["next_cursor"]), (&"running".into(), &"2".into()));
    let last = get("status/changes?limit=1&cursor=2").await;
    assert_eq!(last["changes"][0]["to"], "waiting");
    assert_eq!(get("status/changes?cursor=4").await["next_cursor"], Value::Null);

    assert_eq!(get("summary").await["current"], "at work");
    assert_eq!(get("usage").await["input_tokens"], 10);
    assert_eq!(server.get("/api/v1/sessions/agent-9/events").await.error(), (404, "not_found".into()));
}

#[tokio::test]
async fn turns_usage_and_texts_are_returned() {
    let mut server = TestServer::new();
    server.live_view.put(entry(1, State::Running));
    let row = server.log.session(&session(1, State::Running));
    let long = "x".repeat(100_000);
    let mut text = long.clone();
    let packed = store::PackedText::split(&mut text).unwrap();
    let hash = events::id::Hex(&packed.hash).to_string();
    let turn = turn(1, None);
    let writer = &mut server.log.writer;
    writer.begin().unwrap();
    writer.append(row, &prompt(1, 1, 1), Some(&packed)).unwrap();
    writer.put_turn(row, &turn).unwrap();
    let usage = UsageReported { input_tokens: 7, ..UsageReported::default() };
    let at = Timestamp::from_millisecond(1);
    let entry = store::UsageEntry { provider: Provider::Claude, position: 1, at, usage: &usage, is_first: true };
    writer.add_usage(row, &entry).unwrap();
    writer.commit().unwrap();

    let turns = server.get("/api/v1/sessions/agent-1/turns").await.json();
    assert_eq!(turns, serde_json::json!({ "as_of": 0, "turns": [turn], "next_cursor": null, "next_after": 1 }));
    let usage = server.get("/api/v1/usage").await.json();
    assert_eq!((&usage["total"]["input_tokens"], &usage["usage"][0]["provider"]), (&7.into(), &"claude".into()));
    let text = server.get(&format!("/api/v1/texts/{hash}")).await;
    assert_eq!(text.head.headers[header::CONTENT_TYPE], "text/plain; charset=utf-8");
    assert_eq!(text.body, long);
    assert_eq!(server.get("/api/v1/texts/00ff").await.error(), (404, "not_found".into()));
}

fn turn(number: u32, ended_at: Option<i64>) -> Turn {
    Turn {
        id: events::TurnId::from_bits(number.into()),
        number,
        trigger: events::TurnTrigger::Prompt,
        prompt: None,
        text: None,
        messages: 0,
        tool_calls: 0,
        tool_errors: 0,
        approvals: 0,
        steering: 0,
        outcome: None,
        started_at: at(0),
        completed_at: ended_at.map(at),
        usage: Usage::default(),
        failures: std::collections::BTreeMap::new(),
        test_fix_loops: None,
        work: projections::TurnWork::default(),
        receipt: events::Receipt::default(),
    }
}

#[tokio::test]
async fn turns_of_all_sessions_are_listed_since_a_time() {
    let mut server = TestServer::new();
    let rows = [1, 2, 3].map(|n| server.log.session(&session(n, State::Idle)));
    let writer = &mut server.log.writer;
    writer.begin().unwrap();
    // The last event of session N is at N ms.
    writer.put_turn(rows[0], &turn(1, Some(1))).unwrap();
    for (number, ended_at) in [(1, Some(1)), (2, Some(2)), (3, None)] {
        writer.put_turn(rows[1], &turn(number, ended_at)).unwrap();
    }
    writer.put_turn(rows[2], &turn(1, Some(3))).unwrap();
    writer.commit().unwrap();
    let listed = |query: String| {
        let server = &server;
        async move {
            let page = server.get(&format!("/api/v1/turns{query}")).await.json();
            let turns = page["turns"].as_array().unwrap().iter();
            let turns = turns.map(|one| (one["session_id"].clone(), one["turn"]["number"].as_u64().unwrap()));
            (turns.collect::<Vec<_>>(), page["next_cursor"].as_str().map(str::to_owned))
        }
    };
    let of = |turns: &[(u128, u64)]| -> Vec<(Value, u64)> {
        turns.iter().map(|(n, number)| (id(*n).to_string().into(), *number)).collect()
    };
    assert_eq!(listed(String::new()).await, (of(&[(1, 1), (2, 1), (2, 2), (2, 3), (3, 1)]), None));
    let since = format!("?since={}", at(2));
    assert_eq!(listed(since.clone()).await, (of(&[(2, 2), (2, 3), (3, 1)]), None), "one that has not ended is new");
    let (mut seen, mut query) = (Vec::new(), format!("{since}&limit=2"));
    while let (page, Some(cursor)) = listed(query).await {
        seen.extend(page);
        query = format!("{since}&limit=2&cursor={cursor}");
    }
    assert_eq!(seen, of(&[(2, 2), (2, 3)]));
    for (query, name) in [("cursor=1", "cursor"), ("cursor=x.y", "cursor"), ("since=now", "since")] {
        let answer = server.get(&format!("/api/v1/turns?{query}")).await;
        assert!(answer.json()["error"]["message"].as_str().unwrap().starts_with(name), "{query}");
    }
}

#[tokio::test]
async fn the_work_of_a_session_lists_its_files_and_commands() {
    use events::{ToolCall, ToolKind, ToolResult};
    let mut server = TestServer::new();
    server.live_view.put(entry(1, State::Running));
    let row = server.log.session(&session(1, State::Running));
    let call = |n: u64| {
        let (tool, title) =
            if n.is_multiple_of(2) { (ToolKind::Edit, "a.rs".into()) } else { (ToolKind::Execute, format!("run {n}")) };
        event(1, n, n, ToolCall { call_id: n.to_string(), tool, title: Some(title), ..ToolCall::default() })
    };
    // More than one page.
    let result =
        |n: u64| event(1, 2_300 + n, 2_300 + n, ToolResult { call_id: n.to_string(), ..ToolResult::default() });
    let calls = (1..=2_300).map(call).chain((1..=2_300).filter(|n: &u64| n.is_multiple_of(2)).map(result));
    let events: Vec<_> = calls.chain([event(1, 4_601, 4_601, AssistantMessage::default())]).collect();
    server.log.append(row, &events);
    let work = server.get("/api/v1/sessions/agent-1/work").await.json();
    assert_eq!(work["files"], serde_json::json!({ "a.rs": 1_150 }));
    let commands = work["commands"].as_array().unwrap();
    assert_eq!((commands.len(), &commands[1_149]["command"]), (1_150, &"run 2299".into()));
    assert_eq!(work["last_text"], "text 4601");
    assert_eq!(server.get("/api/v1/sessions/agent-9/work").await.error(), (404, "not_found".into()));
}

#[tokio::test]
async fn a_check_shows_the_last_finished_turns_with_the_checks_of_their_subagents() {
    let mut server = TestServer::new();
    let mut rows = BTreeMap::new();
    for (n, parent) in [(1, None), (2, Some(id(1))), (3, Some(id(2)))] {
        let session = Session { parent_session_id: parent, turns: 3, ..session(n, State::Idle) };
        server.live_view.put(SessionEntry::of(&session, true).unwrap());
        rows.insert(n, server.log.session(&session));
    }
    let span = |number, started: i64, ended, passed: u32| {
        let counts = Some(TestCounts { passed, ..TestCounts::default() });
        let check = Check {
            class: CheckClass::Tests,
            command: "cargo test".into(),
            verdict: CheckVerdict::Passed,
            exit_code: None,
            counts,
            event: EventId::from_bits(1),
            tries: 1,
            failures: 0,
            edits_after: 0,
            files_after: Vec::new(),
            opaque_after: false,
            other_passed: false,
        };
        let receipt = Receipt { checks: (passed > 0).then_some(check).into_iter().collect(), ..Receipt::default() };
        Turn { started_at: at(started), receipt, ..turn(number, ended) }
    };
    let turns = [
        (1, span(1, 10_000, Some(20_000), 1)),
        (1, span(2, 30_000, Some(40_000), 0)),
        (1, span(3, 50_000, None, 0)),
        // Dated a moment before its parent's.
        (2, span(1, 29_000, Some(35_000), 2)),
        (2, span(2, 36_000, Some(37_000), 0)),
        (3, span(1, 31_000, Some(45_000), 3)),
        (3, span(2, 45_000, Some(46_000), 4)),
    ];
    let writer = &mut server.log.writer;
    writer.begin().unwrap();
    for (n, turn) in turns {
        writer.put_turn(rows[&n], &turn).unwrap();
    }
    writer.commit().unwrap();
    let told = |check: &Value| -> Vec<String> {
        let of_turn = |turn: &Value| {
            let subagents = turn["subagents"].as_array().into_iter().flatten();
            let subagents: Vec<&str> = subagents.map(|subagent| subagent["checks"].as_str().unwrap()).collect();
            format!("{} {} {}", turn["number"], turn["checks"], subagents.join(", "))
        };
        check["turns"].as_array().unwrap().iter().map(of_turn).collect()
    };
    let last = server.get("/api/v1/sessions/agent-1/check").await.json();
    assert_eq!(told(&last), ["2 null tests 2 passed, tests 3 passed"]);
    let all = server.get("/api/v1/sessions/agent-1/check?last=9").await.json();
    assert_eq!(told(&all), ["1 \"tests 1 passed\" ", "2 null tests 2 passed, tests 3 passed"]);
    assert_eq!(server.get("/api/v1/sessions/agent-9/check").await.error(), (404, "not_found".into()));
    assert_eq!(server.get("/api/v1/sessions/agent-1/check?last=0").await.error().0, 400);
}

#[tokio::test]
async fn the_drift_of_a_session_remembers_old_prompts() {
    use events::{ToolCall, ToolKind, ToolResult, UserPrompt};
    let mut server = TestServer::new();
    server.live_view.put(entry(1, State::Running));
    let row = server.log.session(&session(1, State::Running));
    let call = |n: u64, title: String| ToolCall {
        call_id: n.to_string(),
        tool: ToolKind::Edit,
        title: Some(title),
        ..ToolCall::default()
    };
    let mut prompt = event(1, 1, 1, UserPrompt::default());
    prompt.text = Some("Fix src/a.rs".into());
    // More than the 20,000 events whose edits count.
    let edits = (2..22_000_u64).flat_map(|n| {
        let file = if n < 21_000 { "src/a.rs".into() } else { format!("lib/d{}/b.rs", n % 2) };
        let result = ToolResult { call_id: n.to_string(), ..ToolResult::default() };
        [event(1, 2 * n, 2 * n, call(n, file)), event(1, 2 * n + 1, 2 * n + 1, result)]
    });
    let events: Vec<_> = [prompt].into_iter().chain(edits).collect();
    server.log.append(row, &events);
    let drift = server.get("/api/v1/sessions/agent-1/drift").await.json();
    let ask = &drift["asks"][0];
    assert_eq!((&ask["prompt"], &ask["named"]), (&"Fix src/a.rs".into(), &serde_json::json!(["src/a.rs"])));
    let files = ask["files"].as_array().unwrap();
    assert_eq!((files.len(), &files[0]["distance"], &files[0]["edits"]), (3, &"named".into(), &9_000.into()));
    assert_eq!((&drift["left"]["file"], &drift["left"]["sequence"]), (&"lib/d0/b.rs".into(), &42_000.into()));
    assert_eq!(server.get("/api/v1/sessions/agent-9/drift").await.error(), (404, "not_found".into()));
}

#[tokio::test]
async fn sub_agents_are_folded_into_the_conversation() {
    use events::{ToolCall, ToolKind, ToolResult, UserPrompt};
    let mut server = TestServer::new();
    server.live_view.put(entry(1, State::Running));
    let row = server.log.session(&session(1, State::Running));
    // One is named by a result, one is not named, and one belongs to another session.
    for (n, parent, started) in [(10, 1, 2), (20, 1, 4), (30, 9, 4)] {
        let (parent_session_id, started_at) = (Some(id(parent)), at(started));
        let child = Session { parent_session_id, started_at, ..session(n, State::Idle) };
        server.live_view.put(SessionEntry::of(&child, true).unwrap());
        server.log.session(&child);
    }
    let call = ToolCall { call_id: "c".into(), tool: ToolKind::Subagent, ..ToolCall::default() };
    let result = ToolResult { call_id: "c".into(), ..ToolResult::default() };
    let named = Event { text: Some("agentId: agent-10".into()), ..event(1, 3, 3, result) };
    let events = [
        event(1, 1, 1, UserPrompt::default()),
        event(1, 2, 2, call),
        named,
        event(1, 4, 4, AssistantMessage::default()),
        event(1, 5, 5, AssistantMessage::default()),
    ];
    server.log.append(row, &events);
    let path = "/api/v1/sessions/agent-1/conversation";
    let whole = server.get(path).await.json()["items"].as_array().unwrap().clone();
    let shape: Vec<(&str, u64, Option<&str>)> = whole
        .iter()
        .map(|item| {
            let child = item["subagents"][0]["session_id"].as_str().or(item["session_id"].as_str());
            (item["type"].as_str().unwrap(), item["sequence"].as_u64().unwrap(), child)
        })
        .collect();
    let (named, unnamed) = (id(10).to_string(), id(20).to_string());
    let expected = [
        ("prompt", 1, None),
        ("tool_call", 2, Some(&*named)),
        ("message", 4, None),
        ("subagent", 4, Some(&*unnamed)),
        ("message", 5, None),
    ];
    assert_eq!(shape, expected);
    assert_eq!(whole[1]["subagents"][0]["title"], "Session 10");
    assert_eq!(whole[1]["subagents"][0]["state"], "idle");
    let (mut paged, mut query) = (Vec::new(), "limit=1".to_owned());
    loop {
        let page = server.get(&format!("{path}?{query}")).await.json();
        paged.extend(page["items"].as_array().unwrap().iter().cloned());
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        query = format!("limit=1&cursor={cursor}");
    }
    assert_eq!(paged, whole, "page by page");
}

#[tokio::test]
async fn a_capture_switch_is_forwarded_and_its_outcome_returned() {
    let (control, mut inbox) = commands(1);
    let server = TestServer::with(Health::default(), |config| config.control = control);
    server.live_view.put(entry(1, State::Running));
    let put = |body: &'static str| {
        request(Method::PUT, "/api/v1/sessions/agent-1/capture")
            .header(header::CONTENT_TYPE, "application/json; charset=utf-8")
            .body(Full::from(body))
            .unwrap()
    };
    for (reply, expected) in [
        (Some(Ok(())), 200),
        (Some(Err(Refusal::NotFound("gone".into()))), 404),
        (Some(Err(Refusal::Conflict("no".into()))), 409),
        (Some(Err(Refusal::Failed("disk".into()))), 500),
        (None, 503),
    ] {
        let serve = async {
            let Command::SetCapture { session, enabled, reply: answer } = inbox.recv().await.unwrap() else {
                panic!("another command")
            };
            assert_eq!((session, enabled), (id(1), false));
            if let Some(reply) = reply {
                answer.send(reply).unwrap();
            }
        };
        let (answer, ()) = tokio::join!(server.send(put(r#"{"enabled":false}"#)), serve);
        assert_eq!(answer.status, expected);
        assert!(!String::from_utf8_lossy(&answer.body).contains("disk"), "causes stay in the log");
    }
    for bad in ["", "{", "{}", r#"{"enabled":1}"#, r#"{"enabled":true,"approved":true}"#] {
        assert_eq!(server.send(put(bad)).await.error(), (400, "bad_body".into()), "{bad}");
    }
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let deep: &'static str = deep.leak();
    assert_eq!(server.send(put(deep)).await.error(), (400, "bad_body".into()));
    drop(inbox);
    assert_eq!(server.send(put(r#"{"enabled":true}"#)).await.error(), (503, "unavailable".into()));
    let alone = TestServer::new();
    alone.live_view.put(entry(1, State::Running));
    assert_eq!(alone.send(put(r#"{"enabled":true}"#)).await.error(), (503, "unavailable".into()));
}

#[tokio::test]
async fn the_status_at_a_past_time_is_reconstructed() {
    let mut server = TestServer::new();
    server.live_view.put(entry(1, State::Running));
    let row = server.log.session(&session(1, State::Running));
    // Each was observed a millisecond after it happened; the second was read later, with its original time.
    let long_ago = Event { history: true, ..event(1, 2, 500, AssistantMessage::default()) };
    server.log.append(row, &[prompt(1, 1, 1000), long_ago, prompt(1, 3, 300_000)]);
    let get = |query: String| {
        let server = &server;
        async move { server.get(&format!("/api/v1/sessions/agent-1/status{query}")).await }
    };
    let then = |ms: i64| get(format!("?at={}", at(ms)));

    let moment = then(2000).await.json();
    assert_eq!(moment["status"]["state"], "running");
    assert_eq!(moment["status"]["confidence"], "high");
    assert_eq!(moment["account"]["rule"], "alone");
    assert_eq!(moment["account"]["claims"][0]["standing"], "decides");
    assert_eq!(moment["session_id"], id(1).to_string());
    assert_eq!(then(32_000).await.json()["status"]["confidence"], "medium", "it was quiet for long");
    assert_eq!(then(999_999).await.json()["status"]["reason"], "lost", "what only time changes");
    assert_eq!(then(700).await.status, 200, "history that was read later");
    let now = get(String::new()).await.json();
    assert_eq!((&now["status"]["state"], &now["at"]), (&"running".into(), &Value::Null));

    let before = then(499).await;
    assert_eq!(before.error(), (404, "not_found".into()));
    let message = before.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("after the requested time") && message.contains(&at(500).to_string()), "{message}");
    assert_eq!(get("?at=yesterday".into()).await.error(), (400, "bad_parameter".into()));
    assert_eq!(server.get("/api/v1/sessions/nobody/status").await.error(), (404, "not_found".into()));
}

#[tokio::test]
async fn a_past_status_is_computed_over_several_log_pages() {
    let mut server = TestServer::new();
    server.live_view.put(entry(1, State::Running));
    let row = server.log.session(&session(1, State::Running));
    let events: Vec<_> = (1..=2500).map(|n| prompt(1, n, n)).collect();
    server.log.append(row, &events);
    let moment = server.get(&format!("/api/v1/sessions/agent-1/status?at={}", at(2501))).await.json();
    let last = at(2501).to_string();
    assert_eq!(moment["account"]["claims"][0]["at"], last, "the last event of the third page");
}
