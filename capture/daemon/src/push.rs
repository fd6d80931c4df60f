//! Messages to browsers: the subscriptions of paired devices, for the notifier and the server.

use devices::{
    Devices,
    push::{PushError, PushRequest, Subscriptions},
};
use events::Timestamp;
use live_view::Refusal;
use notifier::{PushPost, PushSink};

/// The sender's contact, for push services.
const CONTACT: &str = env!("CARGO_PKG_REPOSITORY");

/// The subscribed browsers. Clones share the state.
#[derive(Clone)]
pub struct PushedBrowsers {
    /// The subscriptions.
    pub subscriptions: Subscriptions,
    /// The paired devices.
    pub devices: Devices,
}

impl PushedBrowsers {
    /// Whether a browser is subscribed.
    #[must_use]
    pub fn are_any(&self) -> bool {
        !self.subscriptions.is_empty()
    }
}

impl PushSink for PushedBrowsers {
    fn posts(&self, message: &[u8], now: Timestamp) -> Result<Vec<PushPost>, String> {
        // A revoked device gets no more messages.
        let paired: Vec<String> = self.devices.list().into_iter().map(|device| device.id).collect();
        let is_gone = |device: &str, _: &str| !paired.iter().any(|known| known == device);
        self.subscriptions.forget(is_gone).map_err(|error| error.to_string())?;
        let requests = self.subscriptions.requests(message, now.as_millisecond() / 1_000, CONTACT);
        let post = |PushRequest { endpoint, headers, body }| PushPost { endpoint, headers, body };
        Ok(requests.map_err(|error| error.to_string())?.into_iter().map(post).collect())
    }

    fn gone(&self, endpoint: &str) {
        if let Err(error) = self.subscriptions.forget(|_, known| known == endpoint) {
            tracing::warn!(%error, "cannot remove the subscription of a browser that no longer exists");
        }
    }
}

/// Converts the reason a browser could not be subscribed.
pub(crate) fn refusal(error: PushError) -> Refusal {
    match error {
        PushError::Endpoint => Refusal::Invalid { name: "endpoint", reason: error.to_string() },
        PushError::Keys => Refusal::Invalid { name: "keys", reason: error.to_string() },
        PushError::TooMany => Refusal::Conflict(error.to_string()),
        PushError::Long | PushError::Crypto | PushError::File(_) => Refusal::Failed(error.to_string()),
    }
}
