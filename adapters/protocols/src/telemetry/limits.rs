//! The encodings of telemetry, and limits on what is read.

/// Maximum number of log records read from one request; the rest are rejected.
pub const RECORDS: usize = 10_000;

/// Maximum size of a record, in bytes.
pub const RECORD_BYTES: usize = 1 << 20;

/// Maximum number of attributes per record.
pub const ATTRIBUTES: usize = 256;

/// Maximum size of a text in an attribute, in bytes.
pub const ATTRIBUTE_BYTES: usize = 256 << 10;

/// Maximum nesting of lists and maps in one value.
pub const DEPTH: usize = 16;

/// Maximum size of the sender's description, in bytes.
pub(crate) const RESOURCE_BYTES: usize = 64 << 10;

/// The encoding of a request and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// `application/json`
    Json,
    /// `application/x-protobuf`
    Protobuf,
}
