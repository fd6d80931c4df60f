//! Metrics in the OpenMetrics text format.
//!
//! The server's own counters and gauges are in a `Tally`. A [`Collector`] reads the numbers of the live view and of the
//! sources for each request. The daemon registers its own metrics with [`Health::metrics`](crate::Health::metrics).

use std::{collections::BTreeMap, fmt, sync::Arc};

use api::health::SourceHealth;
use live_view::{
    LiveView,
    metrics::{encode_family, encode_metric},
};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, text},
    metrics::{
        counter::{ConstCounter, Counter},
        gauge::{ConstGauge, Gauge},
    },
    registry::Registry,
};

use crate::Health;

/// The counters of requests and connections. A handle: clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    pub(crate) requests: Counter,
    pub(crate) refused: Counter,
    pub(crate) panics: Counter,
    pub(crate) connections: Gauge,
    pub(crate) connections_refused: Counter,
    pub(crate) streams: Gauge,
    pub(crate) websockets: Gauge,
}

impl Tally {
    fn register(&self, registry: &mut Registry) {
        registry.register("capture_http_requests", "Requests", self.requests.clone());
        registry.register("capture_http_refused", "Requests that were refused", self.refused.clone());
        registry.register("capture_http_panics", "Requests whose handler panicked", self.panics.clone());
        registry.register("capture_connections", "HTTP connections open", self.connections.clone());
        let refused = self.connections_refused.clone();
        registry.register("capture_connections_refused", "Connections over the limit", refused);
        registry.register("capture_sse_clients", "Server-sent event streams open", self.streams.clone());
        registry.register("capture_websocket_clients", "WebSockets open", self.websockets.clone());
    }
}

/// All metrics of `/metrics`: those the program registered, and the server's own.
pub(crate) fn registry(health: &mut Health, live_view: &LiveView, tally: &Tally) -> Registry {
    let mut registry = std::mem::take(&mut health.metrics);
    tally.register(&mut registry);
    registry.register_collector(Box::new(SessionCollector(live_view.clone())));
    registry.register_collector(Box::new(Sources(Arc::clone(&health.sources))));
    registry
}

/// The response to a scrape. Queries the sources, which may read files.
pub(crate) fn encode(registry: &Registry) -> Result<String, fmt::Error> {
    let mut out = String::with_capacity(8 << 10);
    text::encode(&mut out, registry)?;
    Ok(out)
}

/// Collects the sessions and streams of the live view.
#[derive(Debug)]
struct SessionCollector(LiveView);

impl Collector for SessionCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let sessions = self.0.counts().into_iter().map(|(provider, state, sessions)| {
            let labels = [("provider", provider.as_str()), ("state", state.as_str())];
            (labels, ConstGauge::new(sessions))
        });
        encode_family(&mut encoder, "capture_sessions", "Sessions by agent and state.", sessions)?;
        let (feed, deltas) = (self.0.feed_counts(), self.0.delta_counts());
        for (name, help, value) in [
            ("capture_events_committed", "Last committed position.", self.0.position()),
            ("capture_frames_published", "Frames and commits published to the feed.", feed.published),
            ("capture_frames_delivered", "Frames queued for streams.", feed.delivered),
            ("capture_streams_broken", "Number of times a stream was restarted with a snapshot.", feed.broken),
            ("capture_deltas_received", "Deltas received: texts of agents before they are stored.", deltas.received),
            ("capture_deltas_coalesced", "Deltas that were merged into the frame of another delta.", deltas.coalesced),
            (
                "capture_deltas_dropped",
                "Deltas dropped because a queue was full or no client wanted them.",
                deltas.dropped,
            ),
        ] {
            encode_metric(&mut encoder, name, help, &ConstCounter::new(value))?;
        }
        let subscribers = ConstGauge::new(feed.subscribers as u64);
        encode_metric(&mut encoder, "capture_subscribers", "Open streams and waits.", &subscribers)
    }
}

/// Collects the health of the sources.
struct Sources(Arc<dyn Fn() -> Vec<SourceHealth> + Send + Sync>);

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sources").finish_non_exhaustive()
    }
}

impl Sources {
    /// The health of each source by name. Two homes of one agent are merged, because a series may occur only once.
    fn by_name(&self) -> BTreeMap<String, SourceHealth> {
        let mut by_name: BTreeMap<String, SourceHealth> = BTreeMap::new();
        for source in (self.0)() {
            match by_name.get_mut(&source.name) {
                None => drop(by_name.insert(source.name.clone(), source)),
                Some(sum) => {
                    sum.active |= source.active;
                    sum.lag_ms = sum.lag_ms.max(source.lag_ms);
                    sum.files += source.files;
                    sum.trouble = sum.trouble.take().or(source.trouble);
                    sum.dropped += source.dropped;
                    sum.coalesced += source.coalesced;
                    sum.errors += source.errors;
                }
            }
        }
        by_name
    }
}

impl Collector for Sources {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let sources = self.by_name();
        let mut gauge = |name, help, of: fn(&SourceHealth) -> u64| {
            let each = sources.values().map(|source| ([("source", source.name.as_str())], ConstGauge::new(of(source))));
            encode_family(&mut encoder, name, help, each)
        };
        gauge("capture_source_active", "Whether the source is working (1) or not (0).", |s| u64::from(s.active))?;
        gauge("capture_source_files", "Files that the source follows.", |s| s.files)?;
        gauge("capture_source_trouble", "Whether the source needs a person's attention.", |s| {
            u64::from(s.trouble.is_some())
        })?;
        let lag = sources
            .values()
            .filter_map(|source| Some(([("source", source.name.as_str())], ConstGauge::new(source.lag_ms?))));
        encode_family(&mut encoder, "capture_source_lag_milliseconds", "How long the source has been behind.", lag)?;
        let mut counter = |name, help, of: fn(&SourceHealth) -> u64| {
            let each =
                sources.values().map(|source| ([("source", source.name.as_str())], ConstCounter::new(of(source))));
            encode_family(&mut encoder, name, help, each)
        };
        counter("capture_source_dropped", "Events that the source lost.", |s| s.dropped)?;
        counter("capture_source_coalesced", "Records that were merged into the event of another record.", |s| {
            s.coalesced
        })?;
        counter("capture_source_errors", "Failures.", |s| s.errors)
    }
}
