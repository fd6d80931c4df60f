//! macOS: opens paths component by component, and recognizes local file systems by a flag.

use std::path::Path;

use rustix::{fd::OwnedFd, fs::OFlags};

/// Flag for opening a directory that is not read: macOS opens it for reading.
pub(crate) const PATH: OFlags = OFlags::RDONLY;

/// Opens a path below a directory without following links, in one call: macOS has no such call, so callers open the
/// path component by component.
pub(crate) fn resolve(_: &OwnedFd, _: &str, _: OFlags) -> Option<rustix::io::Result<OwnedFd>> {
    None
}

/// Number of directories that this user may watch: unknown.
pub(crate) fn allowed_watches() -> Option<usize> {
    None
}

/// Whether a directory is on a file system that no other machine writes to.
pub(crate) fn is_local(directory: &Path) -> bool {
    /// `MNT_LOCAL` (sys/mount.h).
    const LOCAL: u32 = 0x1000;
    rustix::fs::statfs(directory).is_ok_and(|system| system.f_flags & LOCAL != 0)
}
