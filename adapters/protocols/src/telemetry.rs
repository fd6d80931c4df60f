//! Decodes agents' OpenTelemetry (OTLP) requests into events.
//!
//! The input is only the bytes and the time of receipt. [`receive`] walks the message without building it: records are
//! extracted one by one (`envelope`), decoded within limits (`record`), and interpreted per program that wrote them
//! (`claude`, `codex`, `gemini`), so that a request needs memory in proportion to the data kept. A record over a limit
//! is rejected and counted; an invalid message is [`Malformed`].
//!
//! Of log records only data useful for status and history is kept, see `meaning::TelemetryEvent`. Spans and metrics are
//! counted but not read: they arrive later than the log records and add nothing to the status. Telemetry arrives
//! seconds late, so every event has the record's own time. The usage of a call is reported as the agent's account,
//! which is compared with the usage in transcripts and never added to it. Telemetry closes no approval, because every
//! holder of the ingest token can send anything.

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

/// The kind of data in a request.
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
    /// Number of records, spans and metrics received.
    pub records: u64,
    /// Number of records that were damaged or over a limit.
    pub rejected: u64,
}

/// The result of decoding a request.
#[derive(Debug, Default)]
pub struct Received {
    /// The events of its records, oldest first. The same request gives the same identities.
    pub events: Vec<NewEvent>,
    /// Counts by agent; [`Provider::Unknown`] for services that are not known agents.
    pub tallies: BTreeMap<Provider, ProviderTally>,
    /// Why the first rejected record was rejected.
    pub why: Option<String>,
}

impl Received {
    /// The number of records rejected.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.tallies.values().map(|tally| tally.rejected).sum()
    }

    fn reject(&mut self, provider: Provider, n: u64, why: impl FnOnce() -> String) {
        self.tallies.entry(provider).or_default().rejected += n;
        self.why.get_or_insert_with(why);
    }
}

/// Decodes a request.
///
/// # Errors
/// If the bytes are not a valid message.
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

/// The answer to an accepted request, in the request's encoding.
#[must_use]
pub fn answer(signal: Signal, encoding: Encoding, received: &Received) -> Vec<u8> {
    // Spans and metrics are never rejected, and their empty answers are equal.
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
        // As a string, as the JSON mapping of 64-bit numbers requires.
        (Encoding::Json, Some(partial)) => serde_json::json!({ "partialSuccess": {
            "rejectedLogRecords": partial.rejected_log_records.to_string(),
            "errorMessage": partial.error_message,
        } })
        .to_string()
        .into_bytes(),
        (Encoding::Json, None) => b"{}".to_vec(),
    }
}
