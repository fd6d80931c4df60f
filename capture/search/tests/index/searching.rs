//! The results of queries.

use api::search::{SearchQuery, SearchSort, TextKind};
use events::{
    Annotation, ApprovalRequested, ApprovalResolved, ApprovalState, AssistantMessage, DecidedBy, ErrorReported,
    EventId, Finding, FindingId, FindingKind, FindingState, SessionStarted, Severity, Timestamp, ToolCall, ToolKind,
    ToolOutcome, ToolResult, Topic, TurnStarted, UserPrompt,
};
use search::SearchError;

use crate::log::{Log, Running};

/// A log with events of many kinds.
fn corpus(log: &mut Log) -> Running {
    let started = |cwd: &str, model: &str| SessionStarted {
        cwd: Some(cwd.into()),
        model: Some(model.into()),
        ..SessionStarted::default()
    };
    log.begin();
    log.add("claude/a", started("/home/me/my-app", "claude-opus-4-5"), "");
    log.add("claude/a", UserPrompt::default(), "Fix the parseQueryString function, please");
    let thinking = AssistantMessage { thinking: Some("The tokenizer splits wrong".into()), ..Default::default() };
    log.add("claude/a", thinking, "I fixed parse_query_string in src/query/parser.rs");
    let call = ToolCall {
        call_id: "1".into(),
        name: "Bash".into(),
        tool: ToolKind::Execute,
        title: Some("cargo test".into()),
        ..Default::default()
    };
    log.add("claude/a", call, r#"{"command":"cargo test\nparser","timeout":3}"#);
    let result = ToolResult { call_id: "1".into(), outcome: ToolOutcome::Error, ..Default::default() };
    log.add("claude/a", result, "connection refused\nby peer, password hunter2");
    log.add("codex/b", started("/home/me/other/", "gpt-5"), "");
    log.add("codex/b", UserPrompt::default(), "全文検索の索引を作る");
    let edit = ToolCall {
        call_id: "2".into(),
        name: "apply_patch".into(),
        tool: ToolKind::Edit,
        title: Some("src/lib.rs, b.rs and 1 more".into()),
        files: vec!["src/lib.rs".into(), "b.rs".into(), "src/far_away.rs".into()],
        ..Default::default()
    };
    log.add("codex/b", edit, "*** Begin Patch");
    log.add("codex/b", ErrorReported::default(), "rate limit: retry; peer of the connection refused");
    log.add("codex/b", Annotation { topic: Topic::Title, value: "Search index".into() }, "");
    log.add("codex/b", Annotation { topic: Topic::PermissionMode, value: "peer".into() }, "");
    let long = format!("begin {} needle {} finish", "x ".repeat(20_000), "y ".repeat(20_000));
    log.add("codex/b", ToolResult { call_id: "2".into(), ..Default::default() }, &long);
    log.commit();
    log.full_index()
}

#[test]
fn queries_find_the_expected_events() {
    let data = tempfile::tempdir().unwrap();
    let mut log = Log::open(data.path());
    let index = corpus(&mut log);
    for (query, positions) in [
        ("parser", vec![3, 4]),
        ("parseQueryString", vec![2, 3]),
        ("parsequerystring", vec![2]),
        ("PARSE_QUERY_STRING", vec![2, 3]),
        ("query", vec![2, 3]),
        ("\"connection refused\"", vec![5, 9]),
        ("\"refused by\"", vec![5]),
        ("peer", vec![5, 9]),
        ("peer -\"rate limit\"", vec![5]),
        ("(parser OR limit) NOT agent:codex", vec![3, 4]),
        ("tokenzier~", vec![3]),
        ("toke*", vec![3]),
        ("parseQ*", vec![2, 3]),
        ("src/query/pars*", vec![3]),
        ("検索", vec![7]),
        ("索検", vec![]),
        ("kind:thinking tokenizer", vec![3]),
        ("kind:answer tokenizer", vec![]),
        ("kind:title", vec![10]),
        ("kind:error", vec![9]),
        ("outcome:error", vec![5, 9]),
        ("tool:bash", vec![4, 5]),
        ("tool:execute", vec![4, 5]),
        ("tool:apply_patch", vec![8, 12]),
        ("file:lib.rs", vec![8, 12]),
        ("file:src/lib.rs kind:call", vec![8]),
        ("file:far_away.rs kind:call", vec![8]),
        ("agent:claude peer", vec![5]),
        ("model:opus kind:prompt", vec![2]),
        ("project:my-app kind:prompt", vec![2]),
        ("project:other kind:prompt", vec![7]),
        ("cwd:/home/me kind:prompt", vec![2, 7]),
        ("cwd:/home/me/other kind:prompt", vec![7]),
        ("cwd:/home/m kind:prompt", vec![]),
        ("cwd:my-app kind:prompt", vec![2]),
        ("session:claude/a kind:prompt", vec![2]),
        ("time:>=2026-11-01T00:09 kind:title", vec![10]),
        ("time:<2026-11-01T00:05 kind:prompt", vec![2]),
        ("begin", vec![8, 12]),
        ("finish", vec![12]),
        // In the omitted middle of a long text.
        ("needle", vec![]),
    ] {
        assert_eq!(index.positions(query), positions, "{query}");
    }
}

#[test]
fn a_hit_names_its_source_and_shows_no_secret() {
    let data = tempfile::tempdir().unwrap();
    let mut log = Log::open(data.path());
    let index = corpus(&mut log);
    let hits = index.hits("\"refused by\"");
    let [hit] = hits.as_slice() else { panic!("{hits:?}") };
    assert_eq!((hit.kind, hit.sequence, hit.agent.as_str()), (TextKind::Output, 5, "claude"));
    assert_eq!(hit.session_id, log.session("claude/a"));
    let source = hit.source.as_ref().unwrap();
    assert_eq!((source.path.as_str(), source.offset, source.length), ("/t.jsonl", 500, 99));
    assert_eq!(hit.snippet.text, "connection refused by peer, password [redacted]");
    assert_eq!(hit.snippet.highlights, [[11, 21]]);
    let hits = index.hits("tool:bash test");
    assert_eq!(hits[0].snippet.text, "cargo test parser");
}

#[test]
fn pages_are_ordered_by_relevance_or_time() {
    let data = tempfile::tempdir().unwrap();
    let mut log = Log::open(data.path());
    log.begin();
    for number in 0..25 {
        log.add("pi/a", UserPrompt::default(), &format!("needle {}", "hay ".repeat(25 - number)));
    }
    log.commit();
    let index = log.full_index();
    let query = |sort, cursor: Option<String>| SearchQuery {
        q: Some("needle".into()),
        sort: Some(sort),
        cursor,
        limit: Some(api::list::Limit::of(10)),
        ..SearchQuery::default()
    };
    for sort in [SearchSort::Relevance, SearchSort::Time] {
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let page = index.search(&query(sort, cursor)).unwrap();
            assert_eq!(page.matches, 25);
            seen.extend(page.hits.iter().map(|hit| hit.position));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
            if sort == SearchSort::Time && seen.len() == 10 {
                // New texts do not shift the pages.
                log.append("pi/a", UserPrompt::default(), "needle");
                assert!(index.index.wait_for(log.position, crate::log::LONG));
            }
        }
        assert_eq!(seen, (1..=25).rev().collect::<Vec<_>>(), "{sort:?}");
    }
}

#[test]
fn search_parameters_filter_the_hits_and_errors_name_the_parameter() {
    let data = tempfile::tempdir().unwrap();
    let mut log = Log::open(data.path());
    let index = corpus(&mut log);
    let at = |text| Timestamp::parse(text);
    let found = |query: SearchQuery| {
        let page = index.search(&query)?;
        Ok(page.hits.iter().map(|hit| hit.position).collect::<std::collections::BTreeSet<_>>().into_iter().collect())
    };
    let base = SearchQuery::default;
    let cases: [(SearchQuery, &[u64]); 7] = [
        (SearchQuery { kind: vec![TextKind::Prompt, TextKind::Title].into(), ..base() }, &[2, 7, 10]),
        (SearchQuery { agent: vec![events::Provider::Codex].into(), q: Some("peer".into()), ..base() }, &[9]),
        (SearchQuery { tool: Some("Bash".into()), ..base() }, &[4, 5]),
        (SearchQuery { project: Some("my-app".into()), q: Some("parser".into()), ..base() }, &[3, 4]),
        (SearchQuery { cwd: Some("/home/me/other".into()), q: Some("peer".into()), ..base() }, &[9]),
        (SearchQuery { since: at("2026-11-01T00:10:00Z"), ..base() }, &[10, 12]),
        (SearchQuery { until: at("2026-11-01T00:03:00Z"), ..base() }, &[2]),
    ];
    for (query, positions) in cases {
        let found: Result<Vec<u64>, SearchError> = found(query.clone());
        assert_eq!(found.unwrap(), positions, "{query:?}");
    }
    for (query, error) in [
        (base(), "q: expected something to search for"),
        (SearchQuery { q: Some("a (b".into()), ..base() }, "q: column 3: the `(` is not closed"),
        (SearchQuery { cwd: Some("x".into()), ..base() }, "cwd: expected an absolute path"),
        (SearchQuery { tool: Some("*".into()), ..base() }, "tool: expected letters or digits"),
        (SearchQuery { q: Some("a".into()), cursor: Some("x".into()), ..base() }, "cursor: not the `next_cursor`"),
        (SearchQuery { q: Some("a".into()), cursor: Some("10000.1".into()), ..base() }, "cursor: at most 10000 hits"),
    ] {
        let found: Result<Vec<u64>, SearchError> = found(query.clone());
        let message = found.unwrap_err().to_string();
        assert!(message.starts_with(error), "{query:?}: {message}");
    }
}

#[test]
fn permission_requests_decisions_and_findings_are_found() {
    let data = tempfile::tempdir().unwrap();
    let mut log = Log::open(data.path());
    let asked = ApprovalRequested {
        tool: Some("Bash".into()),
        command: Some("rm -rf build".into()),
        input: Some(r#"{"command":"rm -rf build","description":"Clean the artifacts"}"#.into()),
        ..Default::default()
    };
    log.append("claude/a", asked, "");
    let denied = ApprovalResolved {
        state: Some(ApprovalState::Denied),
        by: Some(DecidedBy::Person),
        message: Some("keep them, password hunter2".into()),
        ..Default::default()
    };
    log.append("claude/a", denied, "");
    let ended = ApprovalResolved { outcome: Some(ToolOutcome::Denied), ..Default::default() };
    log.append("claude/a", ended, "keep");
    let mut finding = Finding {
        confidence: events::Confidence::High,
        id: FindingId::from("f"),
        kind: FindingKind::RepeatedFailure,
        severity: Severity::Warning,
        state: FindingState::Open,
        session_id: log.session("claude/a"),
        key: "k".into(),
        what: "cargo test failed 4 times".into(),
        why: "The same test fails.".into(),
        subject: Some("parser::tests".into()),
        approval_id: None,
        evidence: Vec::new(),
        first_at: Timestamp::default(),
        last_at: Timestamp::default(),
        count: 4,
        until: None,
        acknowledged_at: None,
        resolved_at: None,
        resolution: None,
    };
    log.append("claude/a", finding.clone(), "");
    finding.state = FindingState::Acknowledged;
    log.append("claude/a", finding.clone(), "");
    finding.state = FindingState::Resolved;
    finding.resolution = Some("It passed.".into());
    log.append("claude/a", finding, "");
    let index = log.full_index();
    for (query, positions) in [
        ("kind:approval", vec![1, 2]),
        ("kind:approval build", vec![1]),
        ("tool:bash artifacts", vec![1]),
        ("kind:approval denied", vec![2]),
        ("\"denied by person\"", vec![2]),
        ("keep", vec![2]),
        ("kind:finding", vec![4]),
        ("kind:finding parser", vec![4]),
        ("passed", vec![]),
    ] {
        assert_eq!(index.positions(query), positions, "{query}");
    }
    assert_eq!(index.hits("artifacts")[0].snippet.text, "Bash rm -rf build Clean the artifacts");
    assert_eq!(index.hits("kind:approval them")[0].snippet.text, "denied by person keep them, password [redacted]");
}

#[test]
fn a_hit_has_the_number_of_its_turn() {
    let data = tempfile::tempdir().unwrap();
    let mut log = Log::open(data.path());
    let open_turn = |log: &mut Log, number: u32| {
        log.turn = Some(EventId::from_bits(u128::from(log.position + 1)).into());
        log.append("claude/a", UserPrompt::default(), "needle");
        log.append("claude/a", TurnStarted { number, ..Default::default() }, "");
        log.append("claude/a", AssistantMessage::default(), "needle");
    };
    let turns = |index: &Running| {
        let hits = index.page("needle", SearchSort::Time, 1000).hits;
        hits.iter().rev().map(|hit| hit.turn).collect::<Vec<_>>()
    };
    log.append("claude/a", UserPrompt::default(), "needle");
    open_turn(&mut log, 1);
    open_turn(&mut log, 2);
    let index = log.full_index();
    assert_eq!(turns(&index), [None, Some(1), Some(1), Some(2), Some(2)]);
    drop(index);
    // The numbering continues after a restart, within a turn and after it.
    log.append("claude/a", AssistantMessage::default(), "needle");
    open_turn(&mut log, 3);
    assert_eq!(turns(&log.full_index())[4..], [Some(2), Some(2), Some(3), Some(3)]);
}

#[test]
fn phrase_matches_equal_those_of_a_full_scan() {
    let data = tempfile::tempdir().unwrap();
    let mut log = Log::open(data.path());
    let mut state = 7_u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let words = ["aa", "bb", "cc", "dd", "aaBb"];
    let (mut texts, mut spelled) = (Vec::new(), Vec::new());
    log.begin();
    for _ in 0..3000 {
        let count = 1 + random(30);
        let text: Vec<_> = (0..count).map(|_| words[random(5) as usize]).collect();
        let session = if random(10) == 0 { "codex/b" } else { "claude/a" };
        log.add(session, UserPrompt::default(), &text.join(" "));
        spelled.push(text.contains(&"aaBb"));
        texts.push((session, text.join(" ").replace("aaBb", "aa bb") + " "));
    }
    log.commit();
    let index = log.full_index();
    for phrase in ["aa bb", "bb aa bb", "cc cc", "aa bb cc dd", "aa bb cc dd aa bb", "dd cc bb aa cc dd bb"] {
        let has = |text: &str| text.contains(&format!("{phrase} "));
        let expected = texts.iter().filter(|(_, text)| has(text)).count() as u64;
        for filter in ["", "agent:codex ", "-agent:claude "] {
            let expected = if filter.is_empty() {
                expected
            } else {
                texts.iter().filter(|(session, text)| *session == "codex/b" && has(text)).count() as u64
            };
            let query = format!("{filter}\"{phrase}\"");
            for sort in [SearchSort::Relevance, SearchSort::Time] {
                let all = index.page(&query, sort, 1000);
                assert_eq!(all.hits.len() as u64, expected.min(1000), "{query}");
                let first = index.page(&query, sort, 7);
                for page in [&all, &first] {
                    let counted = if page.at_least { 1000 } else { expected };
                    assert!(page.matches == counted && counted <= expected, "{query}: {} of {expected}", page.matches);
                }
                assert!(first.at_least || expected < 1100, "{query}: {expected} were looked at");
                let shown = |page: &api::search::SearchPage| {
                    page.hits.iter().take(7).map(|hit| (hit.position, hit.score)).collect::<Vec<_>>()
                };
                assert_eq!(shown(&first), shown(&all), "{query}");
                let worth = |hit: &api::search::SearchHit| match sort {
                    SearchSort::Relevance => f64::from(hit.score),
                    SearchSort::Time => hit.position as f64,
                };
                assert!(all.hits.is_sorted_by(|a, b| worth(a) >= worth(b)), "{query}");
            }
        }
    }
    // The exact spelling ranks first.
    let best = index.page("aaBb", SearchSort::Relevance, 1);
    assert!(best.at_least && best.matches == 1000);
    assert!(spelled[best.hits[0].position as usize - 1], "{best:?}");
}
