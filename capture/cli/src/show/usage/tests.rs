use std::collections::BTreeMap;

use api::usage::SessionQuality;
use events::{Provider, SessionId};
use projections::{FailureKind, Usage};

use super::*;

fn sums(output_tokens: u64, cost_usd: Option<f64>, unpriced_calls: u64) -> UsageSums {
    let tokens = Usage { input_tokens: 1_000, output_tokens, cache_read_tokens: 3_000, ..Usage::default() };
    UsageSums { tokens, calls: 3, cost_usd, unpriced_calls, cache_hit_rate: Some(0.75), ..UsageSums::default() }
}

fn row(day: &str, sums: UsageSums) -> UsageRow {
    UsageRow {
        day: Some(day.into()),
        period: None,
        project: None,
        session_id: None,
        parent_session_id: None,
        title: None,
        provider: None,
        model: None,
        sums,
        subagents: None,
    }
}

fn of(by: UsageBy, usage: Vec<UsageRow>) -> UsageReport {
    UsageReport {
        by,
        since: None,
        until: None,
        total: sums(2_500_000, Some(12.345), 1),
        usage,
        more_rows: 0,
        unpriced_models: vec!["mystery".into(), String::new()],
        prices_date: "2026-11-23".into(),
        quotas: Vec::new(),
    }
}

#[test]
fn an_unknown_cost_is_shown_as_a_question_mark() {
    let rows = vec![
        row("2026-11-22", sums(950, Some(0.001), 0)),
        row("2026-11-23", sums(12_345, None, 3)),
        row("2026-11-24", sums(2_500_000, Some(12.345), 1)),
    ];
    let text = report(&of(UsageBy::Day, rows), Timestamp::MIN);
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0].join(" "), "at any time");
    assert_eq!(lines[2].join(" "), "DAY CALLS INPUT OUTPUT CACHE READ CACHE WRITE CACHED COST");
    assert_eq!(lines[3].join(" "), "2026-11-22 3 1.0k 950 3.0k 0 75 % < $0.01");
    assert_eq!(lines[4].join(" "), "2026-11-23 3 1.0k 12.3k 3.0k 0 75 % ?");
    assert_eq!(lines[5].join(" "), "2026-11-24 3 1.0k 2.5M 3.0k 0 75 % $12.35 + ?");
    assert_eq!(lines[6][0], "total");
    assert_eq!(lines[7].join(" "), "? the price is unknown: mystery, (not reported); prices.toml can add it");
    assert_eq!(lines[8].join(" "), "costs at list prices of 2026-11-23; your costs may differ");
    assert_eq!(report(&of(UsageBy::Day, Vec::new()), Timestamp::MIN), "no usage at any time\n");
    let since = UsageReport { since: Some(Timestamp::MIN), ..of(UsageBy::Day, Vec::new()) };
    let text = report(&since, Timestamp::MIN);
    assert!(text.starts_with("no usage since ") && !text.contains("until"), "{text}");
    let ended = UsageReport { until: Some(Timestamp::MIN), ..since };
    let text = report(&ended, Timestamp::MIN);
    assert!(text.starts_with("no usage from ") && text.contains(" until "), "{text}");
}

#[test]
fn subagent_usage_is_added_to_its_session() {
    let (parent, child) = (SessionId::from_bits(1), SessionId::from_bits(2));
    let session = |id, title: &str, sums| UsageRow {
        session_id: Some(id),
        title: Some(title.into()),
        ..UsageRow { day: None, ..row("", sums) }
    };
    let rows = vec![
        UsageRow {
            subagents: Some(sums(50, Some(1.0), 0)),
            ..session(parent, "work\u{1b}[2J", sums(100, Some(2.0), 0))
        },
        UsageRow { parent_session_id: Some(parent), ..session(child, "helper", sums(50, Some(1.0), 0)) },
    ];
    let text = report(&of(UsageBy::Session, rows), Timestamp::MIN);
    assert!(!text.contains("helper") && !text.contains('\u{1b}'), "{text}");
    let line = text.lines().nth(3).unwrap();
    assert!(line.ends_with("$3.00") && line.contains(" 6 ") && line.contains(" 150 "), "{line}");
}

#[test]
fn quotas_are_described_with_their_window_and_reset() {
    let at = |hours: i64| Timestamp::from_millisecond(hours * 3_600_000);
    let quota = QuotaView {
        provider: Provider::Codex,
        name: "primary".into(),
        window_minutes: Some(300),
        used_percent: 91.5,
        at: at(1),
        resets_at: Some(at(4)),
        used_up_at: Some(at(3)),
    };
    let words = in_words(&quota, at(2));
    assert!(words.starts_with("codex quota primary (5 hours): 92 % used, 1h ago; resets at "), "{words}");
    assert!(words.contains("; at this rate, it is used up at "), "{words}");
    assert!(in_words(&quota, at(5)).contains("92 % used before its reset at"), "{}", in_words(&quota, at(5)));
    let week = QuotaView { window_minutes: Some(10_080), resets_at: None, ..quota };
    assert_eq!(in_words(&week, at(2)), "codex quota primary (7 days): 92 % used, 1h ago");
}

#[test]
fn the_quality_report_is_printed_as_a_table() {
    let figures = Quality {
        turns: 4,
        completed_turns: 3,
        tool_calls: 20,
        failed_calls: 2,
        failures: BTreeMap::from([(FailureKind::TestFailure, 2)]),
        test_fix_loops: None,
        active_ms: 61_000,
        waiting_ms: 3_660_000,
        idle_ms: 5,
    };
    let session = SessionQuality {
        session_id: SessionId::from_bits(1),
        provider: Provider::Claude,
        title: None,
        last_turn_at: Timestamp::MIN,
        quality: figures.clone(),
    };
    let latency = |tool: Option<&str>| ApprovalLatency {
        tool: tool.map(str::to_owned),
        answered: 2,
        p50_ms: 1_500,
        p90_ms: 9_000,
    };
    let all = QualityReport {
        since: None,
        until: None,
        total: figures,
        sessions: vec![session],
        more_sessions: 1,
        approvals: vec![latency(None), latency(Some("Bash"))],
    };
    let text = quality(&all);
    let line = text.lines().nth(3).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(line.ends_with("(no title) 4 3 20 2 - 1m01s 1h01m 5ms"), "{line}");
    for part in ["1 more sessions; --limit shows more", "failures: test_failure 2", "all tools", "Bash"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let none = QualityReport { sessions: Vec::new(), ..all };
    assert_eq!(quality(&none), "no turns ended at any time\n");
}
