//! Decodes agents' OpenTelemetry (OTLP) requests into events.
//!
//! Pure: bytes and the time they came in, nothing else. [`receive`] walks the message without
//! building it: records are cut out one by one (`envelope`), decoded one at a time and within
//! limits (`record`), and understood by whoever wrote them (`claude`, `codex`, `gemini`), so that
//! a request takes memory in proportion to what is kept of it. A record over a limit is rejected
//! and counted; a message that is none is [`Malformed`].
//!
//! Of log records only what status and history gain by is kept, see `meaning::TelemetryEvent`. Spans and
//! metrics are walked and counted, and nothing of them is read: they come later than the log
//! records and say nothing a status needs. Telemetry comes seconds late, so nothing here speaks
//! without the record's own time. What a call used is told as the agent's account of it, which is
//! compared with what transcripts report and never added to it. It closes no approval, because
//! whoever has the ingest token may send anything.

mod claude;
mod codex;
mod envelope;
mod event;
mod gemini;
mod limits;
mod meaning;
mod record;
pub mod settings;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use events::{NewEvent, Provider, Timestamp};
use opentelemetry_proto::tonic::collector::logs::v1::{ExportLogsPartialSuccess, ExportLogsServiceResponse};
use prost::Message;

pub use limits::{ATTRIBUTE_BYTES, ATTRIBUTES, DEPTH, Encoding, RECORD_BYTES, RECORDS};
use record::{RecordSource, TelemetryRecord};

/// What a request holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Log records, which agents use for events.
    Logs,
    /// Spans.
    Traces,
    /// Metrics.
    Metrics,
}

/// The bytes are not an OTLP message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(String);

/// Counts for one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProviderTally {
    /// Records, spans and metrics that came.
    pub records: u64,
    /// Telemetry records that were damaged or over a limit.
    pub rejected: u64,
}

/// The result of decoding a request.
#[derive(Debug, Default)]
pub struct Received {
    /// What its records mean, oldest first. The same request gives the same identities.
    pub events: Vec<NewEvent>,
    /// Counts by agent; [`Provider::Unknown`] for services that are not a known agent.
    pub tallies: BTreeMap<Provider, ProviderTally>,
    /// Why a record was rejected, of the first one.
    pub why: Option<String>,
}

impl Received {
    /// How many records were rejected.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.tallies.values().map(|tally| tally.rejected).sum()
    }

    fn reject(&mut self, provider: Provider, n: u64, why: impl FnOnce() -> String) {
        self.tallies.entry(provider).or_default().rejected += n;
        self.why.get_or_insert_with(why);
    }
}

/// Reads a request.
///
/// # Errors
/// When the bytes are not such a message.
pub fn receive(signal: Signal, encoding: Encoding, body: &[u8], observed_at: Timestamp) -> Result<Received, Malformed> {
    let keep = match signal {
        Signal::Logs => RECORDS,
        Signal::Traces | Signal::Metrics => 0,
    };
    let envelope = envelope::open(encoding, body, keep).map_err(Malformed)?;
    let mut received = Received::default();
    for group in &envelope.groups {
        let writer = RecordSource::of(encoding, group.resource, &group.scope);
        let count = group.records.len() as u64 + group.beyond;
        let provider = writer.as_ref().map_or(Provider::Unknown, |writer| writer.provider);
        received.tallies.entry(provider).or_default().records += count;
        if signal != Signal::Logs {
            continue;
        }
        if group.beyond > 0 {
            received.reject(provider, group.beyond, || format!("more than {RECORDS} records in one request"));
        }
        let writer = match writer {
            Ok(writer) => writer,
            Err(why) => {
                received.reject(provider, group.records.len() as u64, || why);
                continue;
            }
        };
        for bytes in &group.records {
            match TelemetryRecord::decode(encoding, bytes) {
                Ok(record) => received.events.extend(event::events(&writer, &record, observed_at)),
                Err(why) => received.reject(provider, 1, || why),
            }
        }
    }
    received.events.sort_by_key(|event| event.created_at);
    Ok(received)
}

/// The answer to a request that was taken, in its own encoding.
#[must_use]
pub fn answer(signal: Signal, encoding: Encoding, received: &Received) -> Vec<u8> {
    // Of spans and metrics nothing is ever rejected, and their empty answers look alike.
    let rejected = match signal {
        Signal::Logs => received.rejected(),
        Signal::Traces | Signal::Metrics => 0,
    };
    let partial_success = (rejected > 0).then(|| ExportLogsPartialSuccess {
        rejected_log_records: i64::try_from(rejected).unwrap_or(i64::MAX),
        error_message: received.why.clone().unwrap_or_default(),
    });
    match (encoding, &partial_success) {
        (Encoding::Protobuf, _) => ExportLogsServiceResponse { partial_success }.encode_to_vec(),
        // As text, as the mapping of 64-bit numbers wants it.
        (Encoding::Json, Some(partial)) => serde_json::json!({ "partialSuccess": {
            "rejectedLogRecords": partial.rejected_log_records.to_string(),
            "errorMessage": partial.error_message,
        } })
        .to_string()
        .into_bytes(),
        (Encoding::Json, None) => b"{}".to_vec(),
    }
}
