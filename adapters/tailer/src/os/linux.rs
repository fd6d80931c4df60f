//! Linux: `openat2`, `O_PATH`, limits of inotify, magic numbers of file systems.

use std::path::Path;

use rustix::{
    fd::OwnedFd,
    fs::{self, Mode, OFlags, ResolveFlags},
    io::Errno,
};

/// Flag for opening a directory that is not read.
pub(crate) const PATH: OFlags = OFlags::PATH;

/// Opens a path below a directory without following links, in one call (`openat2`, Linux 5.6). `None` if the kernel
/// lacks the call or a sandbox forbids it.
pub(crate) fn resolve(top: &OwnedFd, relative: &str, flags: OFlags) -> Option<rustix::io::Result<OwnedFd>> {
    let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match fs::openat2(top, relative, flags, Mode::empty(), how) {
        Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN | Errno::INVAL) => None,
        other => Some(other),
    }
}

/// Number of directories that this user may watch; `None` if unknown.
pub(crate) fn allowed_watches() -> Option<usize> {
    let allowed = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_watches");
    allowed.ok().and_then(|text| text.trim().parse::<usize>().ok())
}

/// Whether a directory is on a file system that no other machine writes to. The kernel does not report writes by
/// another machine or by the host of a virtual machine.
pub(crate) fn is_local(directory: &Path) -> bool {
    /// NFS, SMB, SMB2, CIFS, FUSE, 9P, Ceph, AFS, folders shared by VirtualBox and VMware (`linux/magic.h` and the
    /// kernel's file systems).
    const SHARED: [u32; 10] = [
        0x6969,
        0x517b,
        0xfe53_4d42,
        0xff53_4d42,
        0x6573_5546,
        0x0102_1997,
        0x00c3_6400,
        0x5346_414f,
        0x786f_4256,
        0xbacb_acbc,
    ];
    rustix::fs::statfs(directory).is_ok_and(|system| !SHARED.contains(&(system.f_type as u32)))
}
