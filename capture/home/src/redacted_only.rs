//! Tells programs that read no configuration whether `store.redacted_only` is on: the server keeps a file in the data
//! directory while it is. Hooks and drivers then write their deliveries to the spool without secrets.

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

/// Notes whether the setting is on; called by the server before it takes anything in.
///
/// # Errors
/// When the file cannot be made or removed.
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

/// Whether the setting was on when a server last started. What cannot be told is taken for a yes.
#[must_use]
pub fn is_recorded(data: &Path) -> bool {
    marker(data).try_exists().unwrap_or(true)
}

/// Whether nothing secret may be written: a server said so, or the configuration does.
#[must_use]
pub fn is_on(data: &Path) -> bool {
    let configured = || paths::config_file().and_then(|file| Config::load(&file));
    // A configuration that is wrong keeps every server from starting: then nothing else says that it is off.
    is_recorded(data) || configured().map_or(true, |config| config.store.redacted_only)
}

/// Puts a delivery into the spool, without its secrets when the setting is on. Whoever waits for a decision on it has
/// it as it was: the delivery in the spool keeps the hash of that.
///
/// # Errors
/// When it cannot be written.
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

/// Sets aside a file that is not a delivery, without its secrets.
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

/// A payload without secrets: itself, to the byte, when there are none.
fn without_secrets(payload: &RawValue) -> Box<RawValue> {
    let nothing = || RawValue::NULL.to_owned();
    let Ok(mut value) = serde_json::from_str::<Value>(payload.get()) else { return nothing() };
    let before = value.clone();
    if let Value::Object(fields) = &mut value {
        // What stands at the top is named by the agent's makers: `session_id`. Below are what people and models named.
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
