//! Requests of hooks: announcing a delivery in the spool, and waiting for a decision.

pub use agents::AgentAnswer as HookAnswer;
use events::DeliveryId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Most time a hook waits in one request, ms.
pub const MAX_WAIT_MS: u64 = 3_600_000;

/// A delivery is in the spool, or could not be stored there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeliveryNotice {
    /// The delivery.
    pub id: DeliveryId,
    /// Why it could not be stored: it is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

/// The delivery is being read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeliveryTaken {}

/// A hook waits for the decision on its delivery.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HookWait {
    /// How long it waits, ms; at most an hour.
    pub wait_ms: u64,
    /// Whether it waits for a person too, and not only for a rule.
    #[serde(default)]
    pub people: bool,
    /// The BLAKE3 hash of what the hook was called with, hexadecimal.
    pub digest: String,
    /// The delivery itself, when nothing else reports the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub whole: Option<Box<RawValue>>,
}
