//! Web Push: messages to browsers in which the page is not open.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The key that a browser subscribes with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PushKey {
    /// The public key of this server: 65 bytes, in URL-safe base64.
    pub public_key: String,
}

/// A subscription, in the format of a browser's `PushSubscription`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PushSubscription {
    /// The address at which the browser's push service accepts messages for it.
    pub endpoint: String,
    /// The browser's keys.
    pub keys: PushKeys,
}

/// The keys of a browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PushKeys {
    /// Its public key.
    pub p256dh: String,
    /// The secret it shares with this server.
    pub auth: String,
}

/// Ends the subscription of the device that sends the request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PushEnd {
    /// The endpoint of the subscription; the device's subscription ends whatever this value is.
    #[serde(default)]
    pub endpoint: Option<String>,
}

/// The state of the device's subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PushState {
    /// Whether the device is subscribed.
    pub subscribed: bool,
}
