//! The export of sessions to the user's OpenTelemetry collector as a part of the service: its thread, health and
//! metrics.

use std::{fmt, path::Path, sync::Arc};

use api::health::SourceHealth;
use home::config::OtlpSettings;
use live_view::{LiveView, metrics::encode_family};
use otlp_export::{Exporter, ExporterParts, OtlpExport};
use prometheus_client::{
    collector::Collector, encoding::DescriptorEncoder, metrics::counter::ConstCounter, registry::Registry,
};
use store::Reader;

use crate::notices;

/// Name of the source in health reports.
const SOURCE: &str = "otlp export";

/// Creates the exporter, whose thread is not started yet, and a handle on it.
pub(crate) fn exporter(
    data: &Path,
    reader: &Reader,
    live_view: &LiveView,
    settings: &OtlpSettings,
) -> anyhow::Result<(OtlpExport, Exporter)> {
    let live_view = live_view.clone();
    let parts = ExporterParts {
        data: data.to_owned(),
        reader: reader.clone(),
        settings: settings.clone(),
        context: notices::channel_context(),
        sessions: Arc::new(move || live_view.counts()),
        version: env!("CARGO_PKG_VERSION"),
    };
    Ok(Exporter::new(parts)?)
}

/// The health of the export; `None` if it is off.
pub(crate) fn health(export: &OtlpExport) -> Option<SourceHealth> {
    if !export.is_on() {
        return None;
    }
    let counts = export.counts();
    let dropped = counts.dropped().iter().map(|(_, count)| count).sum();
    let detail = format!("{} spans sent to {}", counts.sent, export.endpoint());
    let row = SourceHealth::active(SOURCE.into());
    let trouble = counts.trouble.map(|why| format!("the OpenTelemetry collector: {why}"));
    Some(SourceHealth { detail: Some(detail), trouble, dropped, errors: counts.failed_requests, ..row })
}

/// Registers the counts of spans as metrics.
pub(crate) fn register(export: &OtlpExport, registry: &mut Registry) {
    if export.is_on() {
        registry.register_collector(Box::new(SpanCounts(export.clone())));
    }
}

#[derive(Debug)]
struct SpanCounts(OtlpExport);

impl Collector for SpanCounts {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let counts = self.0.counts();
        let [expired, rejected] = counts.dropped();
        let spans = [("sent", counts.sent), expired, rejected]
            .map(|(outcome, count)| ([("outcome", outcome)], ConstCounter::new(count)));
        encode_family(&mut encoder, "capture_otlp_spans", "Spans for the OpenTelemetry collector, by outcome.", spans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exporter_has_no_health_row_without_an_endpoint() {
        let dir = tempfile::tempdir().unwrap();
        let writer = store::Writer::open(dir.path()).unwrap();
        let live_view = LiveView::new("e");
        let (off, _) = exporter(dir.path(), &writer.reader(), &live_view, &OtlpSettings::default()).unwrap();
        assert!(!off.is_on() && health(&off).is_none());
        let on = OtlpSettings { endpoint: "http://127.0.0.1:1".into(), ..OtlpSettings::default() };
        let (on, _) = exporter(dir.path(), &writer.reader(), &live_view, &on).unwrap();
        assert_eq!(health(&on).unwrap().detail.as_deref(), Some("0 spans sent to http://127.0.0.1:1"));
    }
}
