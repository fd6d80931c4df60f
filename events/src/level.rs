//! Confidence of a claim, and severity of a finding.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::provider::names;

names! {
    /// The confidence of a claim.
    Confidence {
        /// A reasoned guess.
        Low = "low" / 1,
        /// Likely.
        Medium = "medium" / 2,
        /// Reported by a source with direct knowledge.
        High = "high" / 3,
    }
}

names! {
    /// The severity of an event for a person.
    Severity {
        /// For information.
        Info = "info" / 1,
        /// Should be checked.
        Warning = "warning" / 2,
        /// Something failed.
        Error = "error" / 3,
    }
}
