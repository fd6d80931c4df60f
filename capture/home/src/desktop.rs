//! Whether messages can reach the user's desktop.

use notifier::{NotifySettings, config::ChannelSettings};

use crate::paths;

/// Whether a message can reach somebody: notifications are on, and one of the channels is not the desktop's, or there
/// is a desktop session.
#[must_use]
pub fn can_deliver(settings: &NotifySettings) -> bool {
    let is_usable = |channel: &ChannelSettings| !matches!(channel, ChannelSettings::Desktop { .. }) || has_desktop();
    settings.enabled && settings.channels.iter().any(is_usable)
}

/// Whether there is a session bus, by the variables that name one and by its usual place.
#[must_use]
pub fn has_desktop() -> bool {
    paths::variable("DBUS_SESSION_BUS_ADDRESS").is_some()
        || paths::variable("XDG_RUNTIME_DIR").is_some_and(|dir| dir.join("bus").exists())
}
