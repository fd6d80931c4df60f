//! `/metrics` of the real program is a valid document in the text format of OpenMetrics.

use std::collections::{BTreeMap, BTreeSet};

use tests::{
    eventually,
    program::Machine,
    transcript::{answer, append, prompt, session, uuid},
};

use super::PROGRAM;

/// The contents of one metric family.
struct Family<'a> {
    kind: &'a str,
    has_help: bool,
    samples: BTreeMap<&'a str, f64>,
}

/// Parses a document line by line; fails on anything OpenMetrics does not allow.
fn families(text: &str) -> BTreeMap<&str, Family<'_>> {
    let body = text.strip_suffix("# EOF\n").unwrap_or_else(|| panic!("does not end with EOF:\n{text}"));
    let mut families: BTreeMap<&str, Family<'_>> = BTreeMap::new();
    let mut current = "";
    for line in body.lines() {
        if let Some((name, help)) = line.strip_prefix("# HELP ").map(|rest| rest.split_once(' ').unwrap()) {
            assert!(help.ends_with('.') && !help.ends_with(".."), "{line}");
            let family = Family { kind: "", has_help: true, samples: BTreeMap::new() };
            assert!(families.insert(name, family).is_none(), "{name} is there twice");
            current = name;
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").map(|rest| rest.split_once(' ').unwrap()) {
            assert!(name == current && ["counter", "gauge"].contains(&kind), "{line}");
            families.get_mut(name).unwrap().kind = kind;
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = series.split_once('{').map_or(series, |(name, labels)| {
                check_labels(labels.strip_suffix('}').unwrap());
                name
            });
            let family = families.get_mut(current).unwrap_or_else(|| panic!("{line} is of no family"));
            let suffix = if family.kind == "counter" { "_total" } else { "" };
            assert_eq!(name.strip_prefix(current), Some(suffix), "{line} is not of {current}");
            assert!(family.samples.insert(series, value.parse().unwrap()).is_none(), "{series} is there twice");
        }
    }
    families
}

/// Labels are `name="value"` pairs separated by commas, with quotes in values escaped and no name twice.
fn check_labels(mut labels: &str) {
    let mut names = BTreeSet::new();
    loop {
        let (name, rest) = labels.split_once("=\"").unwrap();
        assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_') && names.insert(name), "{labels}");
        let mut escaped = false;
        let end = rest.find(|c| {
            let is_end = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            is_end
        });
        match rest.split_at(end.unwrap()).1 {
            "\"" => return,
            behind => labels = behind.strip_prefix("\",").unwrap(),
        }
    }
}

#[test]
fn every_sample_belongs_to_a_family_with_help_and_type() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let (name, cwd) = (session(1), machine.project().to_str().unwrap().to_owned());
    append(&machine.claude(&name), &prompt(&name, &uuid(1, 0), &cwd, "go on"));
    append(&machine.claude(&name), &answer(&name, &uuid(1, 1), &cwd, "done"));
    let text = eventually("the session is counted", || {
        let text = server.client.get("/metrics").ok()?.text();
        // A session is listed before its events are committed and counted.
        let is_counted = text.lines().any(|line| {
            let count = line.strip_prefix("capture_ingest_events_total ");
            count.and_then(|count| count.parse::<f64>().ok()).is_some_and(|count| count >= 2.0)
        });
        (is_counted && text.contains("capture_sessions{provider=\"claude\",state=")).then_some(text)
    });
    let families = families(&text);
    for (name, family) in &families {
        assert!(family.has_help && !family.kind.is_empty(), "{name}");
        assert!(family.samples.values().all(|value| *value >= 0.0), "{name}");
    }
    let kinds: Vec<(&str, &str)> = families.iter().map(|(name, family)| (*name, family.kind)).collect();
    let (counter, gauge) = ("counter", "gauge");
    assert_eq!(
        kinds,
        [
            ("capture_approval_wait_seconds", counter),
            ("capture_approvals_asked", counter),
            ("capture_approvals_closed", counter),
            ("capture_connections", gauge),
            ("capture_connections_refused", counter),
            ("capture_deltas_coalesced", counter),
            ("capture_deltas_dropped", counter),
            ("capture_deltas_received", counter),
            ("capture_events_committed", counter),
            ("capture_findings", counter),
            ("capture_frames_delivered", counter),
            ("capture_frames_published", counter),
            ("capture_hook_deliveries", counter),
            ("capture_http_panics", counter),
            ("capture_http_refused", counter),
            ("capture_http_requests", counter),
            ("capture_ingest_commits", counter),
            ("capture_ingest_commits_failed", counter),
            ("capture_ingest_events", counter),
            ("capture_ingest_repeated", counter),
            ("capture_notifications", counter),
            ("capture_search_bytes", gauge),
            ("capture_search_position", gauge),
            ("capture_search_texts", gauge),
            ("capture_sessions", gauge),
            ("capture_source_active", gauge),
            ("capture_source_coalesced", counter),
            ("capture_source_dropped", counter),
            ("capture_source_errors", counter),
            ("capture_source_files", gauge),
            ("capture_source_lag_milliseconds", gauge),
            ("capture_source_trouble", gauge),
            ("capture_sse_clients", gauge),
            ("capture_streams_broken", counter),
            ("capture_subscribers", gauge),
            ("capture_telemetry_records", counter),
            ("capture_telemetry_rejected", counter),
            ("capture_telemetry_unknown_session", counter),
            ("capture_websocket_clients", gauge),
        ]
    );
    // Every state and kind is present from the start and counted in its family.
    assert_eq!(families["capture_approvals_closed"].samples.len(), events::ApprovalState::ALL.len() - 1);
    assert_eq!(families["capture_findings"].samples.len(), events::FindingKind::ALL.len());
    assert_eq!(families["capture_connections"].samples["capture_connections"], 1.0);
    assert!(families["capture_http_requests"].samples["capture_http_requests_total"] >= 1.0);
    assert!(families["capture_ingest_events"].samples["capture_ingest_events_total"] >= 2.0);
}
