//! Thinking levels, with pi's names.

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

/// How much a model thinks. Models support some of the levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ThinkingLevel {
    /// No thinking.
    Off,
    /// The least possible.
    Minimal,
    /// Little.
    Low,
    /// Medium.
    Medium,
    /// Much.
    High,
    /// More than `High`.
    Xhigh,
    /// The most possible.
    Max,
}

impl ThinkingLevel {
    /// All levels in ascending order.
    pub const ALL: [Self; 7] = [Self::Off, Self::Minimal, Self::Low, Self::Medium, Self::High, Self::Xhigh, Self::Max];

    /// The name, as written in the settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }
}

impl std::fmt::Display for ThinkingLevel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl std::str::FromStr for ThinkingLevel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || format!("expected off, minimal, low, medium, high, xhigh or max, got `{text}`");
        Self::ALL.into_iter().find(|level| level.name() == text).ok_or_else(unknown)
    }
}

impl<'de> Deserialize<'de> for ThinkingLevel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
