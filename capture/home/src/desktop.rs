//! Whether messages can reach the user's desktop.

use notifier::{NotifySettings, config::ChannelSettings};

use crate::paths;

/// Whether a message can reach the user: notifications are on, and there is a channel other than the desktop, or a
/// desktop session.
#[must_use]
pub fn can_deliver(settings: &NotifySettings) -> bool {
    let is_usable = |channel: &ChannelSettings| !matches!(channel, ChannelSettings::Desktop { .. }) || has_desktop();
    settings.enabled && settings.channels.iter().any(is_usable)
}

/// Whether there is a session bus, judging by its variables and its usual path.
#[must_use]
pub fn has_desktop() -> bool {
    paths::variable("DBUS_SESSION_BUS_ADDRESS").is_some()
        || paths::variable("XDG_RUNTIME_DIR").is_some_and(|dir| dir.join("bus").exists())
}
