//! Forwards telemetry from the server to ingest: decodes it on a blocking thread, sends it, and replies once it is
//! stored. Counts the outcome for each agent.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::Duration,
};

use api::health::SourceHealth;
use events::{Provider, Timestamp};
use home::clock;
use ingest::{Gauges, IngestHandle, IngestInput, NotSent, Stored, TelemetryInput};
use live_view::{Telemetry, TelemetryKind, TelemetryRefusal, metrics::encode_family};
use prometheus_client::{
    collector::Collector, encoding::DescriptorEncoder, metrics::counter::ConstCounter, registry::Registry,
};
use protocols::telemetry::{self, Encoding, Received, Signal};
use tokio::sync::oneshot;

/// How long a message waits for room in the ingest channel.
const WAIT: Duration = Duration::from_secs(2);

/// Receives telemetry. Clones share the state.
#[derive(Clone)]
pub struct TelemetryReceiver {
    inputs: IngestHandle,
    gauges: Arc<Gauges>,
    counts: Arc<Mutex<BTreeMap<Provider, TelemetryCounts>>>,
}

/// Counts of one agent since the start.
#[derive(Debug, Clone, Copy, Default)]
struct TelemetryCounts {
    /// Number of log records, spans and metrics.
    records: u64,
    /// Number of records that were damaged or over a limit.
    rejected: u64,
    /// Number of events of unknown sessions.
    strange: u64,
    /// Time of the last message.
    last: Timestamp,
}

/// The reply to a sender.
type TelemetryReply = Result<Vec<u8>, TelemetryRefusal>;

impl TelemetryReceiver {
    /// Creates a receiver that sends telemetry to ingest.
    #[must_use]
    pub fn new(inputs: IngestHandle, gauges: Arc<Gauges>) -> Self {
        Self { inputs, gauges, counts: Arc::default() }
    }

    /// Receives one message; replies once its events are stored. Blocks.
    pub fn receive(&self, message: &Telemetry, reply: oneshot::Sender<TelemetryReply>) {
        // The sender may have disconnected; its message is stored anyway.
        match self.read(message) {
            Err(refusal) => {
                reply.send(Err(refusal)).ok();
            }
            Ok((received, answer)) if received.events.is_empty() => {
                reply.send(Ok(answer)).ok();
            }
            Ok((received, answer)) => self.send_to_ingest(received, answer, reply),
        }
    }

    fn read(&self, message: &Telemetry) -> Result<(Received, Vec<u8>), TelemetryRefusal> {
        if self.gauges.stuck.load(Ordering::Relaxed) {
            return Err(TelemetryRefusal::Stuck);
        }
        let signal = match message.kind {
            TelemetryKind::Logs => Signal::Logs,
            TelemetryKind::Traces => Signal::Traces,
            TelemetryKind::Metrics => Signal::Metrics,
        };
        let encoding = if message.protobuf { Encoding::Protobuf } else { Encoding::Json };
        let now = clock::now();
        let received = telemetry::receive(signal, encoding, &message.body, now)
            .map_err(|malformed| TelemetryRefusal::Malformed(malformed.to_string()))?;
        for (provider, tally) in &received.tallies {
            self.count(*provider, |counts| {
                counts.records += tally.records;
                counts.rejected += tally.rejected;
                counts.last = now;
            });
        }
        if let Some(why) = &received.why {
            tracing::warn!(rejected = received.rejected(), %why, "telemetry was rejected");
        }
        let answer = telemetry::answer(signal, encoding, &received);
        Ok((received, answer))
    }

    fn send_to_ingest(&self, received: Received, answer: Vec<u8>, reply: oneshot::Sender<TelemetryReply>) {
        let telemeter = self.clone();
        // Shared, because the input is dropped if there is no room for it.
        let reply = Arc::new(Mutex::new(Some(reply)));
        let tell = {
            let reply = Arc::clone(&reply);
            move |answer: TelemetryReply| {
                if let Some(reply) = reply.lock().unwrap_or_else(PoisonError::into_inner).take() {
                    reply.send(answer).ok();
                }
            }
        };
        let stored = {
            let tell = tell.clone();
            Box::new(move |stored: Stored| {
                for (provider, events) in stored.strange {
                    telemeter.count(provider, |counts| counts.strange += events);
                }
                tell(Ok(answer));
            })
        };
        let input = IngestInput::Telemetry(TelemetryInput { events: received.events, stored });
        match self.inputs.send_timeout(input, WAIT) {
            Ok(()) => {}
            Err(NotSent::Full) => tell(Err(TelemetryRefusal::Busy)),
            Err(NotSent::Stopped(_)) => tell(Err(TelemetryRefusal::Stuck)),
        }
    }

    fn count(&self, provider: Provider, change: impl FnOnce(&mut TelemetryCounts)) {
        change(self.counts.lock().unwrap_or_else(PoisonError::into_inner).entry(provider).or_default());
    }

    /// A row for each agent that sent telemetry.
    #[must_use]
    pub fn health(&self) -> Vec<SourceHealth> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts
            .iter()
            .map(|(provider, counts)| SourceHealth {
                name: format!("{provider} telemetry"),
                active: true,
                lag_ms: None,
                last_event_at: Some(counts.last),
                dropped: counts.rejected + counts.strange,
                coalesced: 0,
                errors: 0,
                files: 0,
                reading: None,
                detail: Some(format!(
                    "{} records, {} rejected; {} events of unknown sessions dropped",
                    counts.records, counts.rejected, counts.strange
                )),
                trouble: None,
            })
            .collect()
    }

    /// Registers the counts as metrics.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(TelemetryMetrics(Arc::clone(&self.counts))));
    }
}

/// Exports the counts of agents' telemetry as metrics.
#[derive(Debug)]
struct TelemetryMetrics(Arc<Mutex<BTreeMap<Provider, TelemetryCounts>>>);

impl Collector for TelemetryMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut family = |name, help, of: fn(&TelemetryCounts) -> u64| {
            let each = counts
                .iter()
                .map(|(provider, counts)| ([("provider", provider.as_str())], ConstCounter::new(of(counts))));
            encode_family(&mut encoder, name, help, each)
        };
        family("capture_telemetry_records", "Log records, spans and metrics that agents sent.", |counts| {
            counts.records
        })?;
        family("capture_telemetry_rejected", "Telemetry records that were damaged or over a limit.", |counts| {
            counts.rejected
        })?;
        family("capture_telemetry_unknown_session", "Telemetry events of unknown sessions.", |counts| counts.strange)
    }
}
