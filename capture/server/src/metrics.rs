//! Metrics in Prometheus text form.

use std::{
    fmt::{Display, Write as _},
    sync::atomic::Ordering,
};

use api::health::SourceHealth;

use crate::app::App;

/// All metrics: what the server knows, then what capture adds.
pub(crate) fn text(app: &App, sources: &[SourceHealth]) -> String {
    let mut out = String::with_capacity(4096);
    family(&mut out, "capture_sessions", "gauge", "Sessions by agent and state.");
    for (provider, state, n) in app.board.counts() {
        let labels = [("provider", provider.as_str()), ("state", state.as_str())];
        sample(&mut out, "capture_sessions", &labels, n);
    }
    let feed = app.board.feed_counts();
    let load = |n: &std::sync::atomic::AtomicU64| n.load(Ordering::Relaxed);
    let tally = &app.tally;
    for (name, kind, about, n) in [
        ("capture_events_committed_total", "counter", "Last committed position.", app.board.position()),
        ("capture_frames_published_total", "counter", "Frames and commits told to the feed.", feed.published),
        ("capture_frames_delivered_total", "counter", "Frames put in the queues of streams.", feed.delivered),
        ("capture_streams_broken_total", "counter", "Times a stream had to start again with a snapshot.", feed.broken),
        ("capture_subscribers", "gauge", "Streams and waits open.", feed.subscribers as u64),
        ("capture_sse_clients", "gauge", "Server-sent event streams open.", load(&tally.streams)),
        ("capture_websocket_clients", "gauge", "WebSockets open.", load(&tally.websockets)),
        ("capture_connections", "gauge", "HTTP connections open.", load(&tally.connections)),
        (
            "capture_connections_refused_total",
            "counter",
            "Connections over the limit.",
            load(&tally.connections_refused),
        ),
        ("capture_http_requests_total", "counter", "Requests.", load(&tally.requests)),
        ("capture_http_refused_total", "counter", "Requests that were not let in.", load(&tally.refused)),
        ("capture_http_panics_total", "counter", "Requests that ended in a panic.", load(&tally.panics)),
    ] {
        family(&mut out, name, kind, about);
        sample(&mut out, name, &[], n);
    }
    for (name, kind, about, of) in [
        (
            "capture_source_active",
            "gauge",
            "Whether the source is read.",
            (|s| u64::from(s.active)) as fn(&SourceHealth) -> u64,
        ),
        ("capture_source_lag_milliseconds", "gauge", "How far behind it is.", |s| s.lag_ms),
        ("capture_source_dropped_total", "counter", "Events lost.", |s| s.dropped),
        ("capture_source_coalesced_total", "counter", "Events merged under load.", |s| s.coalesced),
        ("capture_source_errors_total", "counter", "Failures.", |s| s.errors),
        ("capture_source_files", "gauge", "Files followed.", |s| s.files),
        ("capture_source_trouble", "gauge", "Whether somebody has to look at it.", |s| u64::from(s.trouble.is_some())),
    ] {
        family(&mut out, name, kind, about);
        for source in sources {
            sample(&mut out, name, &[("source", &source.name)], of(source));
        }
    }
    (app.health.metrics)(&mut out);
    out
}

fn family(out: &mut String, name: &str, kind: &str, about: &str) {
    let _ = writeln!(out, "# HELP {name} {about}\n# TYPE {name} {kind}");
}

fn sample(out: &mut String, name: &str, labels: &[(&str, &str)], value: impl Display) {
    out.push_str(name);
    for (i, (label, text)) in labels.iter().enumerate() {
        let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let _ = write!(out, "{}{label}=\"{text}\"", if i == 0 { '{' } else { ',' });
    }
    let end = if labels.is_empty() { "" } else { "}" };
    let _ = writeln!(out, "{end} {value}");
}
