//! The description of an agent's telemetry: how to recognize its records, and the settings that enable it.

/// An agent's telemetry over OTLP.
#[derive(Debug)]
pub struct Telemetry {
    /// `service.name` of its records.
    pub service: Name,
    /// The scope of its records, for when the user changed the service name.
    pub scope: Name,
    /// Variables for its environment. [`URL`], [`TOKEN`] and [`INTERVAL_MS`] are placeholders for their values.
    pub environment: &'static [(&'static str, &'static str)],
    /// A part of its configuration file.
    pub file: Option<TelemetryFile>,
}

/// A name, or the beginning of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// The whole name.
    Is(&'static str),
    /// The beginning.
    StartsWith(&'static str),
}

/// A part of a configuration file that makes an agent send its telemetry.
#[derive(Debug)]
pub struct TelemetryFile {
    /// The path of the file, as users write it.
    pub path: &'static str,
    /// The text to add to the file. [`URL`], [`TOKEN`] and [`INTERVAL_MS`] are placeholders for their values.
    pub content: &'static str,
}

/// Placeholder for the address that receives telemetry, without `/v1/logs`.
pub const URL: &str = "{url}";
/// Placeholder for the token that authorizes the sender.
pub const TOKEN: &str = "{token}";
/// Placeholder for the time between two batches, ms.
pub const INTERVAL_MS: &str = "{interval_ms}";

impl Name {
    /// Whether a name matches.
    #[must_use]
    pub fn matches(self, name: &str) -> bool {
        match self {
            Self::Is(all) => name == all,
            Self::StartsWith(start) => name.starts_with(start),
        }
    }
}
