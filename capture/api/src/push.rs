//! Web Push: messages to browsers in which the page is not open.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The key that a browser subscribes with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PushKey {
    /// The public key of this server: 65 bytes, base64 in the alphabet of URLs.
    pub public_key: String,
}

/// A subscription, as a browser's `PushSubscription` gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PushSubscription {
    /// Where the browser's push service takes messages for it.
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

/// The subscription of the device that asks is to end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PushEnd {
    /// Where it was sent to; the subscription of the device ends whatever this says.
    #[serde(default)]
    pub endpoint: Option<String>,
}

/// Whether the device is subscribed now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PushState {
    /// Whether it is.
    pub subscribed: bool,
}
