//! macOS: opens component by component, and knows local file systems by their flag.

use std::path::Path;

use rustix::{fd::OwnedFd, fs::OFlags};

/// Flag for opening a directory that is not read: macOS opens it for reading.
pub(crate) const PATH: OFlags = OFlags::RDONLY;

/// Opens a path without following links in one call: macOS has none below a directory, so callers open component by
/// component.
pub(crate) fn resolve(_: &OwnedFd, _: &str, _: OFlags) -> Option<rustix::io::Result<OwnedFd>> {
    None
}

/// Directories that this user may watch: unknown.
pub(crate) fn allowed_watches() -> Option<usize> {
    None
}

/// Whether a directory is on a file system that no other machine writes to.
pub(crate) fn is_local(directory: &Path) -> bool {
    /// `MNT_LOCAL` (sys/mount.h).
    const LOCAL: u32 = 0x1000;
    rustix::fs::statfs(directory).is_ok_and(|system| system.f_flags & LOCAL != 0)
}
