//! Web Push: the subscribed browsers, and the encrypted messages for their push services.
//!
//! [`Subscriptions`] stores the subscriptions and this server's key in a file with mode 0600, and creates
//! [`PushRequest`]s. This module makes no connections: the code that sends the requests reports which browsers have
//! unsubscribed. A message is
//! encrypted for one browser (RFC 8291), so the push service sees its time and size but not its content. Requests are
//! sent only to the push services of browsers, because a client supplies the endpoint and could name any address.

mod encrypt;
mod vapid;

use std::{
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use atomic_file::Durability;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use serde::{Deserialize, Serialize};
use url::Url;

use encrypt::BrowserKeys;
pub use encrypt::MAX_MESSAGE;
use vapid::ServerKey;

/// Maximum number of subscriptions.
pub const MOST_SUBSCRIPTIONS: usize = 64;
/// Maximum length of an endpoint, bytes.
const ENDPOINT_BYTES: usize = 1_024;
/// How long a push service stores a message for an offline browser, seconds.
const KEPT_SECONDS: u32 = 3_600;
/// The format version of the file.
const VERSION: u32 = 1;
/// Hosts of push services.
const SERVICES: &[&str] = &["fcm.googleapis.com", "updates.push.services.mozilla.com", "web.push.apple.com"];
/// Domains whose subdomains are all push services.
const SERVICE_DOMAINS: &[&str] = &[".push.services.mozilla.com", ".push.apple.com", ".notify.windows.com"];

/// A subscribed browser, in the format of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Subscription {
    /// The id of the paired device.
    device: String,
    /// The push service's URL for the browser. Anyone with this URL and the server's key can send messages to it.
    endpoint: String,
    /// The browser's public key, as received.
    p256dh: String,
    /// The secret shared by the browser and this server.
    auth: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PushFile {
    version: u32,
    /// The private key of this server, PKCS #8.
    key: String,
    subscriptions: Vec<Subscription>,
}

/// The subscribed browsers. A handle: clones share them.
#[derive(Clone)]
pub struct Subscriptions(Arc<SharedSubscriptions>);

struct SharedSubscriptions {
    file: PathBuf,
    state: Mutex<Option<LoadedFile>>,
}

/// The content of the file, created when it is first needed.
struct LoadedFile {
    key: ServerKey,
    subscriptions: Vec<Subscription>,
}

/// A request to a push service.
#[derive(Clone, PartialEq, Eq)]
pub struct PushRequest {
    /// The URL.
    pub endpoint: String,
    /// Additional headers.
    pub headers: Vec<(&'static str, String)>,
    /// The encrypted message.
    pub body: Vec<u8>,
}

impl std::fmt::Debug for PushRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PushRequest").field("bytes", &self.body.len()).finish_non_exhaustive()
    }
}

/// Why a browser was not subscribed, or a message not created.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The endpoint does not belong to a browser's push service.
    #[error("the endpoint does not belong to a known push service")]
    Endpoint,
    /// The browser's keys cannot be used.
    #[error("the keys of the subscription are not valid")]
    Keys,
    /// The maximum number of subscriptions is reached.
    #[error("{MOST_SUBSCRIPTIONS} browsers are subscribed, which is the maximum")]
    TooMany,
    /// The message is too long.
    #[error("the message is too long")]
    Long,
    /// No key could be created, or signing or encryption failed.
    #[error("cannot create a key or sign with it")]
    Crypto,
    /// The file cannot be read or written.
    #[error("cannot use the file of the subscriptions: {0}")]
    File(#[from] io::Error),
}

impl Subscriptions {
    /// The subscriptions in this file. The file is read or created when it is first needed.
    #[must_use]
    pub fn new(file: &Path) -> Self {
        Self(Arc::new(SharedSubscriptions { file: file.to_owned(), state: Mutex::new(None) }))
    }

    fn state(&self) -> MutexGuard<'_, Option<LoadedFile>> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The public key of this server for browsers: 65 bytes as base64url. Reads or creates the file, so it blocks.
    ///
    /// # Errors
    /// If the file cannot be used, or no key can be created.
    pub fn public_key(&self) -> Result<String, PushError> {
        self.with(|state| Ok(state.key.public_text()))
    }

    /// Number of subscribed browsers. Reads the file, so it blocks; an unreadable file counts as empty.
    #[must_use]
    pub fn len(&self) -> usize {
        if self.state().is_none() && !self.0.file.exists() {
            return 0;
        }
        self.with(|state| Ok(state.subscriptions.len())).unwrap_or_default()
    }

    /// Whether no browser is subscribed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Subscribes the browser of a device, replacing the device's previous subscription. Blocks.
    ///
    /// # Errors
    /// If the endpoint is not a push service's, the keys are not valid, there are too many subscriptions, or the file
    /// cannot be written.
    pub fn subscribe(&self, device: &str, endpoint: &str, p256dh: &str, auth: &str) -> Result<(), PushError> {
        if !is_push_service(endpoint) {
            return Err(PushError::Endpoint);
        }
        BrowserKeys::read(p256dh, auth).ok_or(PushError::Keys)?;
        let (device, endpoint) = (device.to_owned(), endpoint.to_owned());
        let (p256dh, auth) = (p256dh.to_owned(), auth.to_owned());
        self.change(move |subscriptions| {
            subscriptions.retain(|other| other.device != device && other.endpoint != endpoint);
            if subscriptions.len() >= MOST_SUBSCRIPTIONS {
                return Err(PushError::TooMany);
            }
            subscriptions.push(Subscription { device, endpoint, p256dh, auth });
            Ok(())
        })
    }

    /// Ends the subscription of a device. Blocks.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn unsubscribe(&self, device: &str) -> Result<(), PushError> {
        self.change(|subscriptions| {
            subscriptions.retain(|other| other.device != device);
            Ok(())
        })
    }

    /// Removes the subscriptions for which `is_gone` returns true: the push service no longer knows the endpoint, or
    /// the device is no longer paired. Blocks.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn forget(&self, is_gone: impl Fn(&str, &str) -> bool) -> Result<(), PushError> {
        if self.is_empty() {
            return Ok(());
        }
        self.change(|subscriptions| {
            subscriptions.retain(|known| !is_gone(&known.device, &known.endpoint));
            Ok(())
        })
    }

    /// One encrypted message per browser. `now_s` is the time, seconds since 1970; `contact` identifies the sender: an
    /// address that begins with `https:` or `mailto:`.
    ///
    /// # Errors
    /// If the message is too long, or signing or encryption fails.
    pub fn requests(&self, message: &[u8], now_s: i64, contact: &str) -> Result<Vec<PushRequest>, PushError> {
        self.with(|state| {
            let request = |subscription: &Subscription| {
                let keys = BrowserKeys::read(&subscription.p256dh, &subscription.auth).ok_or(PushError::Keys)?;
                let body = keys.encrypt(message)?;
                let url = Url::parse(&subscription.endpoint).map_err(|_| PushError::Endpoint)?;
                let audience = url.origin().ascii_serialization();
                let authorization = state.key.authorization(&audience, now_s, contact)?;
                let headers = vec![
                    ("authorization", authorization),
                    ("content-encoding", "aes128gcm".to_owned()),
                    ("ttl", KEPT_SECONDS.to_string()),
                    ("urgency", "high".to_owned()),
                ];
                Ok(PushRequest { endpoint: subscription.endpoint.clone(), headers, body })
            };
            state.subscriptions.iter().map(request).collect()
        })
    }

    fn with<T>(&self, use_state: impl FnOnce(&mut LoadedFile) -> Result<T, PushError>) -> Result<T, PushError> {
        let mut state = self.state();
        if state.is_none() {
            *state = Some(self.load()?);
        }
        match state.as_mut() {
            Some(state) => use_state(state),
            None => Err(PushError::Crypto),
        }
    }

    /// Changes the subscriptions; if they cannot be written, nothing changes.
    fn change(&self, change: impl FnOnce(&mut Vec<Subscription>) -> Result<(), PushError>) -> Result<(), PushError> {
        let file = self.0.file.clone();
        self.with(|state| {
            let mut subscriptions = state.subscriptions.clone();
            change(&mut subscriptions)?;
            if subscriptions != state.subscriptions {
                write(&file, &state.key, &subscriptions)?;
                state.subscriptions = subscriptions;
            }
            Ok(())
        })
    }

    fn load(&self) -> Result<LoadedFile, PushError> {
        let text = match std::fs::read_to_string(&self.0.file) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let state =
                    LoadedFile { key: ServerKey::generate().ok_or(PushError::Crypto)?, subscriptions: Vec::new() };
                // Store the key before a browser receives it.
                write(&self.0.file, &state.key, &[])?;
                return Ok(state);
            }
            Err(error) => return Err(error.into()),
        };
        let found: PushFile = serde_json::from_str(&text).map_err(io::Error::other)?;
        if found.version != VERSION {
            return Err(io::Error::other(format!("its format version is {}, not {VERSION}", found.version)).into());
        }
        let key = BASE64.decode(&found.key).ok().and_then(ServerKey::read).ok_or(PushError::Crypto)?;
        Ok(LoadedFile { key, subscriptions: found.subscriptions })
    }
}

fn write(file: &Path, key: &ServerKey, subscriptions: &[Subscription]) -> Result<(), PushError> {
    let kept = PushFile { version: VERSION, key: BASE64.encode(key.pkcs8()), subscriptions: subscriptions.to_vec() };
    let text = serde_json::to_string_pretty(&kept).map_err(io::Error::other)?;
    Ok(atomic_file::replace(file, text.as_bytes(), Durability::Synced)?)
}

/// Whether an endpoint belongs to a browser's push service, with TLS on the default port.
fn is_push_service(endpoint: &str) -> bool {
    let Some(url) = Url::parse(endpoint).ok().filter(|_| endpoint.len() <= ENDPOINT_BYTES) else { return false };
    let is_plain =
        url.scheme() == "https" && url.port().is_none() && url.username().is_empty() && url.password().is_none();
    let host = url.host_str().unwrap_or_default();
    is_plain && (SERVICES.contains(&host) || SERVICE_DOMAINS.iter().any(|domain| host.ends_with(domain)))
}

#[cfg(test)]
mod tests;
