//! What queries find.

use api::search::{SearchQuery, SearchSort, TextKind};
use events::{
    Annotation, AssistantMessage, ErrorReported, SessionStarted, Timestamp, ToolCall, ToolKind, ToolOutcome,
    ToolResult, Topic, UserPrompt,
};
use search::SearchError;

use crate::log::{Log, Running};

/// A log with some of everything.
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
        title: Some("src/lib.rs".into()),
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
fn queries_find_what_they_name() {
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
        // In the middle of a text that is too long.
        ("needle", vec![]),
    ] {
        assert_eq!(index.positions(query), positions, "{query}");
    }
}

#[test]
fn a_hit_says_where_it_is_and_shows_no_secret() {
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
fn relevance_and_time_order_pages() {
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
                // What comes meanwhile moves no page.
                log.append("pi/a", UserPrompt::default(), "needle");
                assert!(index.index.wait_for(log.position, crate::log::LONG));
            }
        }
        assert_eq!(seen, (1..=25).rev().collect::<Vec<_>>(), "{sort:?}");
    }
}

#[test]
fn parameters_filter_and_errors_name_them() {
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
        (SearchQuery { q: Some("a (b".into()), ..base() }, "q: missing `)` for the `(` at column 3"),
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
