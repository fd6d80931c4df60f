//! Decodes one log record within limits, and identifies the program that wrote it.

use agents::agent::ALL;
use events::{Identity, Provider, Timestamp};
use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, KeyValue, any_value::Value},
    logs::v1::LogRecord,
    resource::v1::Resource,
};
use prost::Message;

use crate::telemetry::limits::{ATTRIBUTE_BYTES, ATTRIBUTES, DEPTH, Encoding, RECORD_BYTES, RESOURCE_BYTES};

/// The program that wrote a group of records.
#[derive(Debug)]
pub(super) struct RecordSource {
    pub(super) provider: Provider,
    /// The resource as bytes, for the identity of its records.
    resource: Vec<u8>,
}

impl RecordSource {
    /// Identifies the agent by its service name, or by its scope if the user renamed the service.
    pub(super) fn of(encoding: Encoding, resource: Option<&[u8]>, scope: &str) -> Result<Self, String> {
        let resource = match resource {
            Some(bytes) if bytes.len() > RESOURCE_BYTES => {
                return Err(format!("a resource is larger than {RESOURCE_BYTES} bytes"));
            }
            Some(bytes) => decode::<Resource>(encoding, bytes).map_err(|why| {
                format!(
                    "cannot decode a resource: \
                {why}"
                )
            })?,
            None => Resource::default(),
        };
        let service = text(&resource.attributes, "service.name").unwrap_or_default();
        let known = || ALL.iter().filter_map(|agent| Some((agent.provider, agent.telemetry.as_ref()?)));
        let by_service = known().find(|(_, telemetry)| telemetry.service.matches(service));
        let writer = by_service.or_else(|| known().find(|(_, telemetry)| telemetry.scope.matches(scope)));
        let provider = writer.map_or(Provider::Unknown, |(provider, _)| provider);
        Ok(Self { provider, resource: resource.encode_to_vec() })
    }

    /// The identity of the `index`-th event of a record: an exporter that resends a record gives the same identity.
    pub(super) fn identity(&self, record: &TelemetryRecord, index: u32) -> Identity {
        let record = record.0.encode_to_vec();
        Identity::of(self.provider, "telemetry", &[&self.resource, &record, &index.to_le_bytes()])
    }
}

/// A log record.
#[derive(Debug)]
pub(super) struct TelemetryRecord(LogRecord);

impl TelemetryRecord {
    pub(super) fn decode(encoding: Encoding, bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > RECORD_BYTES {
            return Err(format!("a record is larger than {RECORD_BYTES} bytes"));
        }
        let record: LogRecord = decode(encoding, bytes).map_err(|why| format!("cannot decode a record: {why}"))?;
        if record.attributes.len() > ATTRIBUTES {
            return Err(format!("a record has more than {ATTRIBUTES} attributes"));
        }
        let values = record.attributes.iter().filter_map(|attribute| attribute.value.as_ref());
        for value in values.chain(&record.body) {
            check(value)?;
        }
        Ok(Self(record))
    }

    /// The agent's name of the event.
    pub(super) fn name(&self) -> &str {
        let named = Some(self.0.event_name.as_str()).filter(|name| !name.is_empty());
        self.text("event.name").or(named).unwrap_or_default()
    }

    /// The provider's id of the session.
    pub(super) fn session(&self) -> Option<&str> {
        self.text("session.id").or_else(|| self.text("conversation.id"))
    }

    /// The agent's trace and span of the record, in hexadecimal digits: `TRACE-SPAN` or `TRACE`.
    pub(super) fn trace(&self) -> Option<String> {
        let hex = |id: &[u8], length: usize| {
            let is_id = id.len() == length && id.iter().any(|byte| *byte != 0);
            is_id.then(|| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        };
        let trace = hex(&self.0.trace_id, 16)?;
        Some(match hex(&self.0.span_id, 8) {
            Some(span) => format!("{trace}-{span}"),
            None => trace,
        })
    }

    /// The time of the event, by the agent's clock. Codex leaves the record's own time at 0.
    pub(super) fn at(&self) -> Option<Timestamp> {
        let of = |nanos: u64| i64::try_from(nanos / 1_000_000).ok().filter(|ms| *ms > 0);
        let own = of(self.0.time_unix_nano).map(Timestamp::from_millisecond);
        let said = || self.text("event.timestamp").and_then(Timestamp::parse);
        own.or_else(said).or_else(|| of(self.0.observed_time_unix_nano).map(Timestamp::from_millisecond))
    }

    /// A non-empty text attribute.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        text(&self.0.attributes, key)
    }

    /// A numeric attribute, or a text that contains a number.
    pub(super) fn number(&self, key: &str) -> Option<i64> {
        match self.value(key)? {
            Value::IntValue(n) => Some(*n),
            Value::DoubleValue(n) => n.is_finite().then_some(*n as i64),
            Value::StringValue(text) => text.parse().ok(),
            Value::BoolValue(_)
            | Value::ArrayValue(_)
            | Value::KvlistValue(_)
            | Value::BytesValue(_)
            | Value::StringValueStrindex(_) => None,
        }
    }

    /// A boolean attribute, or a text that contains one.
    pub(super) fn flag(&self, key: &str) -> Option<bool> {
        match self.value(key)? {
            Value::BoolValue(flag) => Some(*flag),
            Value::StringValue(text) => text.parse().ok(),
            Value::IntValue(_)
            | Value::DoubleValue(_)
            | Value::ArrayValue(_)
            | Value::KvlistValue(_)
            | Value::BytesValue(_)
            | Value::StringValueStrindex(_) => None,
        }
    }

    fn value(&self, key: &str) -> Option<&Value> {
        value(&self.0.attributes, key)
    }
}

fn decode<T: Message + Default + serde::de::DeserializeOwned>(encoding: Encoding, bytes: &[u8]) -> Result<T, String> {
    match encoding {
        Encoding::Json => serde_json::from_slice(bytes).map_err(|error| error.to_string()),
        Encoding::Protobuf => T::decode(bytes).map_err(|error| error.to_string()),
    }
}

fn value<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a Value> {
    attributes.iter().find(|attribute| attribute.key == key)?.value.as_ref()?.value.as_ref()
}

fn text<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a str> {
    match value(attributes, key)? {
        Value::StringValue(text) if !text.is_empty() => Some(text),
        Value::StringValue(_)
        | Value::BoolValue(_)
        | Value::IntValue(_)
        | Value::DoubleValue(_)
        | Value::ArrayValue(_)
        | Value::KvlistValue(_)
        | Value::BytesValue(_)
        | Value::StringValueStrindex(_) => None,
    }
}

/// Checks a value against the limits.
fn check(value: &AnyValue) -> Result<(), String> {
    let mut open = vec![(value, 0)];
    while let Some((value, depth)) = open.pop() {
        if depth > DEPTH {
            return Err(format!("a value is nested more than {DEPTH} levels deep"));
        }
        let bytes = match &value.value {
            Some(Value::StringValue(text)) => text.len(),
            Some(Value::BytesValue(bytes)) => bytes.len(),
            Some(Value::ArrayValue(list)) => {
                open.extend(list.values.iter().map(|value| (value, depth + 1)));
                0
            }
            Some(Value::KvlistValue(list)) => {
                open.extend(list.values.iter().filter_map(|pair| pair.value.as_ref()).map(|value| (value, depth + 1)));
                0
            }
            Some(Value::BoolValue(_) | Value::IntValue(_) | Value::DoubleValue(_) | Value::StringValueStrindex(_))
            | None => 0,
        };
        if bytes > ATTRIBUTE_BYTES {
            return Err(format!("an attribute is larger than {ATTRIBUTE_BYTES} bytes"));
        }
    }
    Ok(())
}
