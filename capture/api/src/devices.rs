//! Devices: browsers paired with this server, and how they sign in.
//!
//! A pairing code is created with a token and entered in the browser, which then gets a cookie. A device has one of two
//! scopes. Routes with a higher scope need a second code from the terminal, which elevates the device for a few
//! minutes.

use events::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Scope;

/// The name of a device's cookie.
pub const COOKIE: &str = "capture_device";

/// What a device may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceScope {
    /// See sessions.
    #[default]
    Read,
    /// See sessions and act on them: decide permission requests, type, queue prompts.
    Control,
}

impl DeviceScope {
    /// The name in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Control => "control",
        }
    }

    /// Whether a device with this scope may use routes of a scope without being elevated.
    #[must_use]
    pub const fn covers(self, scope: Scope) -> bool {
        match scope {
            Scope::Open | Scope::Read => true,
            Scope::Control => matches!(self, Self::Control),
            Scope::Ingest | Scope::Admin => false,
        }
    }
}

/// What a pairing code is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CodeScope {
    /// Pairs a device that may see sessions.
    Read,
    /// Pairs a device that may also act on them.
    Control,
    /// Elevates a paired device for ten minutes. Requires `device_id`.
    Admin,
}

/// Asks for a pairing code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PairingRequest {
    /// What the code is for.
    pub scope: CodeScope,
    /// The device to elevate; only with the scope `admin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_id: Option<String>,
    /// Whether the device connects through an SSH tunnel or a proxy of the server's own user, so that the process at
    /// the other end of its connections cannot be identified.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tunnel: bool,
    /// Whether only a process of the server's own user on this machine can use the code. Set for a browser that a
    /// command opens, because other users of the machine can read its arguments.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub local: bool,
}

/// A single-use code that pairs or elevates a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PairingCode {
    /// The code, as it is typed.
    pub code: String,
    /// What it is for.
    pub scope: CodeScope,
    /// When it expires.
    pub expires_at: Timestamp,
    /// The address of the page that accepts the code. The code is in the fragment, which browsers do not send.
    pub url: String,
}

/// Pairs a browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PairRequest {
    /// The code.
    pub code: String,
    /// The name of the device, at most 80 characters.
    pub name: String,
}

/// Elevates a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepUpRequest {
    /// A code with the scope `admin` that was created for this device.
    pub code: String,
}

/// A device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Device {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it may do.
    pub scope: DeviceScope,
    /// When it was paired.
    pub paired_at: Timestamp,
    /// When it was last used, to the minute.
    pub last_used_at: Timestamp,
    /// Whether it connects through a tunnel or a proxy of the server's own user.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tunnel: bool,
}

/// The paired device. The answer also sets its cookie.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Paired {
    /// The device.
    pub device: Device,
}

/// The signed-in device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Me {
    /// The device.
    pub device: Device,
    /// Time until which the device may use routes that need a second code; `null` if it is not elevated.
    pub elevated_until: Option<Timestamp>,
    /// The version of the server.
    pub version: String,
    /// When the server started.
    pub started_at: Timestamp,
}

/// The end of the elevation of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SteppedUp {
    /// Time until which the device may use routes that need a second code.
    pub elevated_until: Timestamp,
}

/// A device in the list of paired devices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListedDevice {
    /// The device.
    #[serde(flatten)]
    pub device: Device,
    /// Whether it is the device that sent the request.
    pub current: bool,
}

/// The paired devices, most recently used first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceList {
    /// The devices.
    pub devices: Vec<ListedDevice>,
}

/// A device whose cookie is no longer valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SignedOut {
    /// Its id.
    pub id: String,
}
