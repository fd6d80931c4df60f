//! Requests of hooks: announcing a delivery in the spool, and waiting for a decision.

pub use agents::AgentAnswer as HookAnswer;
use events::{DeliveryId, Provider};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Maximum time a hook waits in one request, ms.
pub const MAX_WAIT_MS: u64 = 3_600_000;

/// A delivery is in the spool, or could not be stored there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeliveryNotice {
    /// The delivery.
    pub id: DeliveryId,
    /// Why the delivery could not be stored and is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

/// The delivery is being read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeliveryTaken {}

/// The text that an agent is writing now, before it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TextDelta {
    /// The agent.
    pub provider: Provider,
    /// The agent's own id of the session.
    pub session_id: String,
    /// The text, at most 16 KiB.
    pub text: String,
    /// Number of deltas that were joined to this one.
    #[serde(default)]
    pub joined: u64,
    /// Number of deltas before it that were lost.
    #[serde(default)]
    pub lost: u64,
}

/// The delta was accepted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeltaTaken {}

/// A hook waits for the decision on its delivery.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HookWait {
    /// How long it waits, ms; at most an hour.
    pub wait_ms: u64,
    /// Whether it also waits for a person, not only for a rule.
    #[serde(default)]
    pub people: bool,
    /// The BLAKE3 hash of the payload passed to the hook, hexadecimal.
    pub digest: String,
    /// The delivery itself, if nothing else reports the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub whole: Option<Box<RawValue>>,
}
