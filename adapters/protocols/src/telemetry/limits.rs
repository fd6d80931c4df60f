//! How telemetry is written, and how much of it is read.

/// Most log records read from one request; the rest are rejected.
pub const RECORDS: usize = 10_000;

/// Longest record, bytes.
pub const RECORD_BYTES: usize = 1 << 20;

/// Most attributes of one record.
pub const ATTRIBUTES: usize = 256;

/// Longest text of one attribute, bytes.
pub const ATTRIBUTE_BYTES: usize = 256 << 10;

/// Deepest nesting of lists and maps in one value.
pub const DEPTH: usize = 16;

/// Longest description of the sender, bytes.
pub(crate) const RESOURCE_BYTES: usize = 64 << 10;

/// How a request is written, and its answer too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// `application/json`
    Json,
    /// `application/x-protobuf`
    Protobuf,
}
