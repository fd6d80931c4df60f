//! The file of the devices: JSON, with only the hash of each cookie.

use std::{
    io::{self, ErrorKind},
    path::Path,
};

use api::devices::{Device, DeviceScope};
use atomic_file::Durability;
use events::{Timestamp, id::Hex};
use serde::{Deserialize, Serialize};

use super::Known;

/// The format version of the file.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DevicesFile {
    version: u32,
    devices: Vec<Kept>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    id: String,
    name: String,
    scope: DeviceScope,
    paired_at: Timestamp,
    last_used_at: Timestamp,
    #[serde(default)]
    tunnel: bool,
    /// The BLAKE3 hash of the cookie, hexadecimal.
    cookie_hash: String,
}

/// Reads the file; a missing file contains no devices.
pub(super) fn load(file: &Path) -> io::Result<Vec<Known>> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let found: DevicesFile = serde_json::from_str(&text)?;
    if found.version != VERSION {
        return Err(io::Error::other(format!("its format version is {}, not {VERSION}", found.version)));
    }
    found.devices.into_iter().map(known).collect()
}

fn known(kept: Kept) -> io::Result<Known> {
    let Kept { id, name, scope, paired_at, last_used_at, tunnel, cookie_hash } = kept;
    let hash = blake3::Hash::from_hex(&cookie_hash).map_err(io::Error::other)?;
    let device = Device { id, name, scope, paired_at, last_used_at, tunnel };
    Ok(Known { device, hash, raised_until: None, revoked: std::sync::Arc::default() })
}

/// The content of the file.
pub(super) fn text(devices: &[Known]) -> io::Result<String> {
    let kept = |Known { device, hash, .. }: &Known| {
        let Device { id, name, scope, paired_at, last_used_at, tunnel } = device.clone();
        Kept { id, name, scope, paired_at, last_used_at, tunnel, cookie_hash: Hex(hash.as_bytes()).to_string() }
    };
    let file = DevicesFile { version: VERSION, devices: devices.iter().map(kept).collect() };
    Ok(serde_json::to_string_pretty(&file)?)
}

/// Atomically writes the file with mode 0600.
pub(super) fn write(file: &Path, text: &str) -> io::Result<()> {
    atomic_file::replace(file, text.as_bytes(), Durability::Synced)
}
