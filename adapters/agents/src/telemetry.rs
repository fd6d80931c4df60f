//! The description of an agent's telemetry: how to recognize its records, and the settings that make it send them.

/// An agent's telemetry over OTLP.
#[derive(Debug)]
pub struct Telemetry {
    /// `service.name` of its records.
    pub service: Name,
    /// The scope of its records, where the user named the service.
    pub scope: Name,
    /// Variables of its environment. [`URL`], [`TOKEN`] and [`INTERVAL_MS`] stand for their values.
    pub environment: &'static [(&'static str, &'static str)],
    /// A part of its configuration file.
    pub file: Option<TelemetryFile>,
}

/// A name, or its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// All of it.
    Is(&'static str),
    /// The beginning.
    StartsWith(&'static str),
}

/// A part of a configuration file that makes an agent send its telemetry.
#[derive(Debug)]
pub struct TelemetryFile {
    /// The file, as its users call it.
    pub path: &'static str,
    /// What to add to it. [`URL`], [`TOKEN`] and [`INTERVAL_MS`] stand for their values.
    pub content: &'static str,
}

/// Stands for the address that takes telemetry, without `/v1/logs`.
pub const URL: &str = "{url}";
/// Stands for the token that opens it.
pub const TOKEN: &str = "{token}";
/// Stands for the time between two batches, ms.
pub const INTERVAL_MS: &str = "{interval_ms}";

impl Name {
    /// Whether this is the name.
    #[must_use]
    pub fn matches(self, name: &str) -> bool {
        match self {
            Self::Is(all) => name == all,
            Self::StartsWith(start) => name.starts_with(start),
        }
    }
}
