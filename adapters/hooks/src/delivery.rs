//! Deliveries: what a hook or a protocol client reports, and the spool that keeps it until it is stored.
//!
//! The hook command writes a delivery into the spool, a directory of ours, and tells the server its
//! id; the server takes it from there and removes the file after the commit. A server that is away
//! finds it later. So the agent waits for neither the disk's nor the server's slowness, and the id
//! makes a delivery that was told twice one.
//!
//! [`decode`] says what a payload means. Pure but for the spool.

pub mod answer;
pub mod decode;
pub mod permission;

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Read},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use atomic_file::Durability;
use events::{ApprovalId, DeliveryId, Identity, Provider, RunId, Source, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Longest payload that is stored, bytes.
pub const PAYLOAD_BYTES: u64 = 4 << 20;
/// Extension of a delivery's file, `<id>.json`.
const EXTENSION: &str = "json";
/// Extension of a file that is not complete yet, `.<id>.json.<random>.part`.
const DRAFT: &str = "part";
/// A file that is not complete by then was left by a process that was killed, ms.
const DRAFT_AGE_MS: i64 = 60_000;
/// Most bytes that wait in a spool while no server takes them.
pub const SPOOL_BYTES: u64 = 64 << 20;
/// Most deliveries that wait in a spool while no server takes them.
pub const SPOOL_FILES: usize = 4_096;
/// Extension of a rejected file, `<id>.bad`.
const ASIDE: &str = "bad";

/// One call of the hook command, or one message of an agent's protocol.
#[derive(Debug, Serialize, Deserialize)]
pub struct Delivery {
    /// Made by the sender; ids are ordered by time.
    pub id: DeliveryId,
    /// The agent whose hook or protocol it is.
    pub provider: Provider,
    /// Which of the two: [`Source::Hook`] or [`Source::Protocol`].
    #[serde(default = "by_hook", skip_serializing_if = "is_by_hook")]
    pub source: Source,
    /// When it was called, by our clock.
    pub at: Timestamp,
    /// The agent's process: the nearest ancestor that is one.
    #[serde(default)]
    pub agent: Option<Agent>,
    /// The run it belongs to, as the environment says.
    #[serde(default)]
    pub run: Option<RunId>,
    /// The PATH of the agent, as its hook has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search_path: Option<String>,
    /// The hash of the payload as the hook was called with it, when secrets were taken out of it before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redacted_from: Option<String>,
    /// What the agent wrote to the hook's standard input; of a protocol, a
    /// `Told` of the protocols.
    pub payload: Box<RawValue>,
}

const fn by_hook() -> Source {
    Source::Hook
}

fn is_by_hook(source: &Source) -> bool {
    *source == Source::Hook
}

impl Delivery {
    /// The BLAKE3 hash of the payload as the hook was called with it: what is decided is decided for just these bytes.
    #[must_use]
    pub fn digest(&self) -> String {
        self.redacted_from.clone().unwrap_or_else(|| self.payload_hash())
    }

    /// The BLAKE3 hash of the payload as it is here.
    #[must_use]
    pub fn payload_hash(&self) -> String {
        blake3::hash(self.payload.get().as_bytes()).to_hex().to_string()
    }

    /// Id of the approval that the delivery opens, if it asks for permission.
    #[must_use]
    pub fn approval_id(&self) -> ApprovalId {
        Identity::of(Provider::Capture, "approval", &[&self.id.to_bytes()]).event_id().into()
    }
}

/// The process of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// Process id.
    pub pid: u32,
    /// Start in clock ticks since boot.
    pub start_ticks: u64,
    /// Whether it serves several sessions (a daemon).
    #[serde(default)]
    pub shared: bool,
}

/// The spool of a data directory.
#[derive(Debug, Clone)]
pub struct Spool {
    dir: PathBuf,
}

/// Why a file of the spool is not a delivery.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}")]
pub struct SpoolError {
    /// The file or directory.
    pub path: PathBuf,
    /// What is wrong.
    pub source: io::Error,
}

impl Spool {
    /// The spool of this data directory.
    #[must_use]
    pub fn of(data: &Path) -> Self {
        Self { dir: data.join("spool") }
    }

    fn path(&self, id: DeliveryId) -> PathBuf {
        self.dir.join(format!("{id}.{EXTENSION}"))
    }

    fn error(&self, source: io::Error) -> SpoolError {
        SpoolError { path: self.dir.clone(), source }
    }

    /// Writes a delivery to the spool.
    ///
    /// # Errors
    /// When its file cannot be written, or the spool is full.
    pub fn put(&self, delivery: &Delivery) -> Result<(), SpoolError> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir).map_err(|e| self.error(e))?;
        let path = self.path(delivery.id);
        let failed = |source| SpoolError { path: path.clone(), source };
        let text = serde_json::to_vec(delivery).map_err(|e| failed(e.into()))?;
        let (files, bytes) = self.size();
        if files >= SPOOL_FILES || bytes + text.len() as u64 > SPOOL_BYTES {
            let full = format!(
                "too many hook deliveries are waiting ({files} files, {bytes} bytes); start the server (`capture serve`)"
            );
            return Err(failed(io::Error::new(io::ErrorKind::StorageFull, full)));
        }
        atomic_file::replace(&path, &text, Durability::Unsynced).map_err(failed)
    }

    fn is_full(&self) -> bool {
        let (files, bytes) = self.size();
        files >= SPOOL_FILES || bytes + PAYLOAD_BYTES > SPOOL_BYTES
    }

    /// The files in the spool and their bytes, of whatever sort.
    fn size(&self) -> (usize, u64) {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let sizes = entries.filter_map(|entry| Some(entry.metadata().ok()?.len()));
        sizes.fold((0, 0), |(files, bytes), size| (files + 1, bytes + size))
    }

    /// Removes what processes that were killed left half written.
    pub fn remove_drafts(&self, now: Timestamp) {
        for entry in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_old = || changed(&path).is_some_and(|at| now.since_ms(at) > DRAFT_AGE_MS);
            if path.extension().is_some_and(|of| of == DRAFT) && is_old() {
                fs::remove_file(&path).ok();
            }
        }
    }

    /// Reads a delivery; its file stays. `None` when there is none with this id.
    ///
    /// # Errors
    /// When the file of that name is not a delivery of ours.
    pub fn get(&self, id: DeliveryId) -> Result<Option<Delivery>, SpoolError> {
        let path = self.path(id);
        let failed = |source| SpoolError { path: path.clone(), source };
        let file = OpenOptions::new().read(true).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32).open(&path);
        let file = match file {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let about = file.metadata().map_err(failed)?;
        if !about.is_file() || about.uid() != rustix::process::geteuid().as_raw() {
            return Err(failed(io::Error::other("is not a regular file of this user")));
        }
        let mut text = Vec::new();
        file.take(2 * PAYLOAD_BYTES).read_to_end(&mut text).map_err(failed)?;
        let delivery: Delivery = serde_json::from_slice(&text).map_err(|e| failed(e.into()))?;
        if delivery.id == id { Ok(Some(delivery)) } else { Err(failed(io::Error::other("holds another delivery"))) }
    }

    /// Removes a delivery that is stored.
    pub fn remove(&self, id: DeliveryId) {
        // A file that stays is found again, and recognised as stored.
        fs::remove_file(self.path(id)).ok();
    }

    /// Renames a file that is not a valid delivery, so that it is not read again and again.
    pub fn reject(&self, id: DeliveryId) {
        let path = self.path(id);
        fs::rename(&path, path.with_extension(ASIDE)).ok();
    }

    /// Paths of a delivery's file, before and after it is rejected.
    #[must_use]
    pub fn paths(&self, id: DeliveryId) -> (PathBuf, PathBuf) {
        let path = self.path(id);
        let aside = path.with_extension(ASIDE);
        (path, aside)
    }

    /// The spool's directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Counts what is in the spool.
    #[must_use]
    pub fn contents(&self) -> SpoolUsage {
        let waiting = self.waiting();
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        SpoolUsage {
            waiting: waiting.len(),
            oldest: waiting.first().and_then(|id| changed(&self.path(*id))),
            is_full: self.is_full(),
            aside: entries.filter(|entry| entry.path().extension().is_some_and(|of| of == ASIDE)).count(),
        }
    }

    /// The deliveries that wait, oldest first.
    #[must_use]
    pub fn waiting(&self) -> Vec<DeliveryId> {
        let Ok(entries) = fs::read_dir(&self.dir) else { return Vec::new() };
        let mut ids: Vec<DeliveryId> = entries
            .filter_map(|entry| {
                let name = entry.ok()?.file_name().into_string().ok()?;
                name.strip_suffix(EXTENSION)?.strip_suffix('.')?.parse().ok()
            })
            .collect();
        ids.sort_unstable();
        ids
    }
}

/// When a file was last changed.
fn changed(path: &Path) -> Option<Timestamp> {
    let since = fs::metadata(path).ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok().map(Timestamp::from_millisecond)
}

/// How full a spool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpoolUsage {
    /// Deliveries waiting to be stored.
    pub waiting: usize,
    /// When the oldest waiting delivery was made.
    pub oldest: Option<Timestamp>,
    /// Files that were rejected.
    pub aside: usize,
    /// Whether a further delivery is refused.
    pub is_full: bool,
}

#[cfg(test)]
mod tests;
