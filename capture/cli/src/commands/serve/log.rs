//! The log of a background server. It is rotated when it is full, so that its size is bounded however long the server
//! runs.

use std::{
    fs::{self, OpenOptions},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use rustix::fs::{Stat, fstat};

/// Size from which the log is rotated, bytes.
const MOST_BYTES: u64 = 4 << 20;
/// Number of rotated logs kept; `serve.log.1` is the newest.
const KEPT: u32 = 3;

/// The log, if standard error writes to its file.
#[derive(Debug)]
pub(super) struct ServerLog(Mutex<Option<PathBuf>>);

impl ServerLog {
    /// The log at this path; ignored if standard error does not write to it.
    pub(super) fn of_stderr(path: PathBuf) -> Self {
        let is_stderr = fstat(io::stderr()).is_ok_and(|open| is_at(&path, &open));
        Self(Mutex::new(is_stderr.then_some(path)))
    }

    /// Called before writing a record: begins a new file if the current one is full. On failure, the next record tries
    /// again.
    pub(super) fn replace_if_full(&self) {
        let path = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some(path), Ok(open)) = (path.as_ref(), fstat(io::stderr())) else { return };
        if u64::try_from(open.st_size).is_ok_and(|size| size < MOST_BYTES) {
            return;
        }
        let numbered = |number: u32| path.with_extension(format!("log.{number}"));
        // Another server that found the data directory in use may have rotated the log.
        if is_at(path, &open) {
            for number in (1..KEPT).rev() {
                fs::rename(numbered(number), numbered(number + 1)).ok();
            }
            fs::rename(path, numbered(1)).ok();
        }
        if let Ok(file) = OpenOptions::new().create(true).append(true).mode(0o600).open(path) {
            rustix::stdio::dup2_stdout(&file).ok();
            rustix::stdio::dup2_stderr(&file).ok();
        }
    }
}

#[allow(clippy::unnecessary_cast, reason = "the widths differ between platforms")]
fn is_at(path: &std::path::Path, open: &Stat) -> bool {
    fs::metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == (open.st_dev as u64, open.st_ino))
}
