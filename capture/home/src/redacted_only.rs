//! Tells programs that read no configuration whether `store.redacted_only` is on: while it is, the server keeps a
//! marker file in the data directory. Hooks and drivers then write their deliveries to the spool without secrets.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use events::DeliveryId;
use hooks::delivery::{Delivery, PAYLOAD_BYTES, Spool, SpoolError};
use serde_json::{Value, value::RawValue};

use crate::{config::Config, paths};

/// The name of the file.
const MARKER: &str = "redacted-only";

fn marker(data: &Path) -> PathBuf {
    data.join(MARKER)
}

/// Records whether the setting is on. The server calls this before it ingests anything.
///
/// # Errors
/// If the file cannot be created or removed.
pub fn record_setting(data: &Path, is_on: bool) -> io::Result<()> {
    let path = marker(data);
    if is_on {
        return fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path).map(drop);
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Whether the setting was on when a server last started. Returns true if this cannot be determined.
#[must_use]
pub fn is_recorded(data: &Path) -> bool {
    marker(data).try_exists().unwrap_or(true)
}

/// Whether no secrets may be written, according to a server or the configuration.
#[must_use]
pub fn is_on(data: &Path) -> bool {
    let configured = || paths::config_file().and_then(|file| Config::load(&file));
    // With an invalid configuration no server starts, so nothing else could show that the setting is off.
    is_recorded(data) || configured().map_or(true, |config| config.store.redacted_only)
}

/// Writes a delivery to the spool, without its secrets if the setting is on. Callers that wait for a decision have the
/// original, and the delivery in the spool contains the original's hash.
///
/// # Errors
/// If it cannot be written.
pub fn put(data: &Path, delivery: &Delivery) -> Result<(), SpoolError> {
    let spool = Spool::of(data);
    if !is_recorded(data) {
        return spool.put(delivery);
    }
    let payload = without_secrets(&delivery.payload);
    let is_same = payload.get() == delivery.payload.get();
    spool.put(&Delivery {
        id: delivery.id,
        provider: delivery.provider,
        source: delivery.source,
        at: delivery.at,
        agent: delivery.agent,
        run: delivery.run,
        search_path: delivery.search_path.as_deref().map(|path| redact::text(path).into_owned()),
        redacted_from: (!is_same).then(|| delivery.digest()),
        payload,
    })
}

/// Moves a file that is not a valid delivery aside, without its secrets.
pub fn put_aside(spool: &Spool, id: DeliveryId) {
    let (path, aside) = spool.paths(id);
    let flags = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
    let read = || {
        let mut bytes = Vec::new();
        let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(&path)?;
        file.take(2 * PAYLOAD_BYTES).read_to_end(&mut bytes)?;
        let mut out = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside)?;
        out.write_all(&redact::of_bytes(&bytes))
    };
    if let Err(error) = read() {
        tracing::debug!(%error, "a file in the spool is not a delivery and is removed");
    }
    fs::remove_file(&path).ok();
}

/// A payload without secrets; unchanged byte for byte if it has none.
fn without_secrets(payload: &RawValue) -> Box<RawValue> {
    let nothing = || RawValue::NULL.to_owned();
    let Ok(mut value) = serde_json::from_str::<Value>(payload.get()) else { return nothing() };
    let before = value.clone();
    if let Value::Object(fields) = &mut value {
        // The agent's makers name the top-level fields, such as `session_id`; users and models name the nested ones.
        for value in fields.values_mut() {
            if let Value::String(string) = value {
                *string = redact::text(string).into_owned();
            } else {
                redact::value(value);
            }
        }
    } else {
        redact::value(&mut value);
    }
    if value == before {
        return payload.to_owned();
    }
    serde_json::value::to_raw_value(&value).unwrap_or_else(|_| nothing())
}

#[cfg(test)]
mod tests;
