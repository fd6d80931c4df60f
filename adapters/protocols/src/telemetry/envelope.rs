//! The outer message of an OTLP request: extracts the bytes of its records without decoding them.
//!
//! All three kinds of request have the same structure (resource, scope, items) and the same field numbers in protobuf.

use std::{borrow::Cow, fmt};

use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use serde::{
    Deserialize, Deserializer,
    de::{SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::telemetry::limits::Encoding;

/// The records of one scope, and the program that wrote them.
#[derive(Debug)]
pub(super) struct Group<'a> {
    /// The encoded resource.
    pub(super) resource: Option<&'a [u8]>,
    /// The name of the instrumentation scope.
    pub(super) scope: Cow<'a, str>,
    /// Encoded records.
    pub(super) records: Vec<&'a [u8]>,
    /// Number of records not kept.
    pub(super) beyond: u64,
}

/// A request split into groups. Groups without records are omitted.
#[derive(Debug, Default)]
pub(super) struct OtlpEnvelope<'a> {
    pub(super) groups: Vec<Group<'a>>,
    keep: usize,
}

impl<'a> OtlpEnvelope<'a> {
    fn add(&mut self, resource: Option<&'a [u8]>, scope: Cow<'a, str>, mut records: Vec<&'a [u8]>, beyond: u64) {
        let room = self.keep.min(records.len());
        let beyond = beyond + (records.len() - room) as u64;
        self.keep -= room;
        records.truncate(room);
        // Records that are not kept are only counted, so that a message consisting only of scopes stays small.
        match self.groups.last_mut() {
            Some(last) if records.is_empty() && last.resource == resource => last.beyond += beyond,
            Some(_) | None if records.is_empty() && beyond == 0 => {}
            Some(_) | None => self.groups.push(Group { resource, scope, records, beyond }),
        }
    }
}

/// Splits a request, and keeps its first `keep` records.
pub(super) fn open(encoding: Encoding, body: &[u8], keep: usize) -> Result<OtlpEnvelope<'_>, String> {
    let mut envelope = OtlpEnvelope { groups: Vec::new(), keep };
    match encoding {
        Encoding::Protobuf => open_protobuf(body, &mut envelope)?,
        Encoding::Json => open_json(body, &mut envelope).map_err(|error| error.to_string())?,
    }
    Ok(envelope)
}

/// Calls `each` with the number and bytes of each length-delimited field of a message.
fn fields<'a>(mut message: &'a [u8], mut each: impl FnMut(u32, &'a [u8]) -> Result<(), String>) -> Result<(), String> {
    while !message.is_empty() {
        let (tag, wire) = decode_key(&mut message).map_err(|error| error.to_string())?;
        if wire == WireType::LengthDelimited {
            let length = decode_varint(&mut message).map_err(|error| error.to_string())?;
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let (field, rest) =
                message.split_at_checked(length).ok_or("a field extends past the end of its message")?;
            message = rest;
            each(tag, field)?;
        } else {
            skip_field(wire, tag, &mut message, DecodeContext::default()).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

fn open_protobuf<'a>(body: &'a [u8], envelope: &mut OtlpEnvelope<'a>) -> Result<(), String> {
    fields(body, |tag, group| {
        if tag != 1 {
            return Ok(());
        }
        let mut resource = None;
        fields(group, |tag, field| {
            resource = (tag == 1).then_some(field).or(resource);
            Ok(())
        })?;
        fields(group, |tag, scope| {
            if tag != 2 {
                return Ok(());
            }
            let (mut name, mut records, mut beyond) = (Cow::Borrowed(""), Vec::new(), 0);
            let room = envelope.keep;
            fields(scope, |tag, field| {
                match tag {
                    1 => fields(field, |tag, text| {
                        if tag == 1 {
                            name = String::from_utf8_lossy(text);
                        }
                        Ok(())
                    })?,
                    2 if records.len() < room => records.push(field),
                    2 => beyond += 1,
                    3.. | 0 => {}
                }
                Ok(())
            })?;
            envelope.add(resource, name, records, beyond);
            Ok(())
        })
    })
}

/// The parts of each level in JSON, unparsed: every level is walked separately, so that only the kept data is in
/// memory.
#[derive(Deserialize)]
struct OtlpRequest<'a> {
    #[serde(borrow, default, alias = "resourceLogs", alias = "resourceSpans", alias = "resourceMetrics")]
    resources: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct OfResource<'a> {
    #[serde(borrow, default)]
    resource: Option<&'a RawValue>,
    #[serde(borrow, default, alias = "scopeLogs", alias = "scopeSpans", alias = "scopeMetrics")]
    scopes: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct OfScope<'a> {
    #[serde(borrow, default)]
    scope: Option<ScopeName<'a>>,
    #[serde(borrow, default, alias = "logRecords", alias = "spans", alias = "metrics")]
    records: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ScopeName<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
}

fn open_json<'a>(body: &'a [u8], envelope: &mut OtlpEnvelope<'a>) -> Result<(), serde_json::Error> {
    let request: OtlpRequest<'a> = object(body)?;
    each(request.resources, |raw| {
        let OfResource { resource, scopes } = object(raw.get().as_bytes())?;
        let resource = resource.map(|raw| raw.get().as_bytes());
        each(scopes, |raw| {
            let OfScope { scope, records: list } = object(raw.get().as_bytes())?;
            let (mut records, mut beyond) = (Vec::new(), 0);
            let room = envelope.keep;
            each(list, |raw| {
                if records.len() < room {
                    records.push(raw.get().as_bytes());
                } else {
                    beyond += 1;
                }
                Ok(())
            })?;
            envelope.add(resource, scope.map(|scope| scope.name).unwrap_or_default(), records, beyond);
            Ok(())
        })
    })
}

/// Parses an object; serde would otherwise accept a list of the fields in order.
fn object<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, serde_json::Error> {
    if text.trim_ascii_start().starts_with(b"[") {
        return Err(serde::de::Error::custom("expected an object, got a list"));
    }
    serde_json::from_slice(text)
}

/// Calls `take` with the text of each element of a JSON list.
fn each<'a>(
    list: Option<&'a RawValue>,
    take: impl FnMut(&'a RawValue) -> Result<(), serde_json::Error>,
) -> Result<(), serde_json::Error> {
    struct List<F>(F);
    impl<'de, F: FnMut(&'de RawValue) -> Result<(), serde_json::Error>> Visitor<'de> for List<F> {
        type Value = ();
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }
        fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
            while let Some(raw) = list.next_element()? {
                (self.0)(raw).map_err(serde::de::Error::custom)?;
            }
            Ok(())
        }
    }
    let Some(list) = list else { return Ok(()) };
    serde_json::Deserializer::from_str(list.get()).deserialize_seq(List(take))
}
