//! Confidence of a claim, and severity of a finding.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::provider::names;

names! {
    /// How far something can be trusted.
    Confidence {
        /// A guess with a reason.
        Low = "low" / 1,
        /// Likely.
        Medium = "medium" / 2,
        /// Said by the one who knows.
        High = "high" / 3,
    }
}

names! {
    /// How much an event should worry a person.
    Severity {
        /// Worth knowing.
        Info = "info" / 1,
        /// Worth a look.
        Warning = "warning" / 2,
        /// Something failed.
        Error = "error" / 3,
    }
}
