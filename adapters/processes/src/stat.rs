//! Reads `/proc/<pid>/stat`: the start, state and parent of a process.

use std::path::PathBuf;

use crate::os;
pub(crate) use crate::os::{children, stat_field};

/// Clock ticks per second in `/proc` (`USER_HZ`): 100 on every architecture that capture supports.
const TICKS_PER_SECOND: i64 = 100;

/// Start time of a live process in clock ticks since boot (`/proc/<pid>/stat`, field 22); `None` if the process does
/// not exist or is a zombie.
#[must_use]
pub fn start_ticks(pid: u32) -> Option<u64> {
    if matches!(stat_field(pid, 3)?.as_str(), "Z" | "X") {
        return None;
    }
    stat_field(pid, 22)?.parse().ok()
}

/// Time since a start given in clock ticks since boot, ms.
#[must_use]
pub fn age_ms(start_ticks: u64) -> i64 {
    let now = os::since_boot();
    let now_ms = now.tv_sec * 1000 + now.tv_nsec / 1_000_000;
    let began_ms = i64::try_from(start_ticks).unwrap_or(i64::MAX).saturating_mul(1000) / TICKS_PER_SECOND;
    now_ms.saturating_sub(began_ms).max(0)
}

/// The working directory of a process.
#[must_use]
pub fn working_directory(pid: u32) -> Option<PathBuf> {
    os::working_directory(pid).ok()
}

/// Whether the process that started at `start` (0: unknown) is alive under this pid.
#[must_use]
pub fn is_alive(pid: u32, start: u64) -> bool {
    start_ticks(pid).is_some_and(|now| start == 0 || now == start)
}

/// Whether a process is `ancestor` or one of its descendants.
#[must_use]
pub fn descends_from(pid: u32, ancestor: u32) -> bool {
    let line = std::iter::successors(Some(pid), |at| parent(*at));
    line.take(GENERATIONS).take_while(|at| *at > 1).any(|at| at == ancestor)
}

/// The process that started this one.
#[must_use]
pub fn parent(pid: u32) -> Option<u32> {
    stat_field(pid, 4)?.parse().ok()
}

/// Whether a process has running children.
#[must_use]
pub fn has_children(pid: u32) -> bool {
    children(pid).into_iter().any(|child| start_ticks(child).is_some())
}

/// Maximum number of ancestors of a process that are examined.
pub(crate) const GENERATIONS: usize = 64;

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use super::*;

    #[test]
    fn a_process_name_truncated_inside_a_character_is_still_read() {
        let dir = tempfile::tempdir().unwrap();
        // The kernel reports the first 15 bytes of the name, which end in the middle of the `é`.
        let program = dir.path().join("fourteen_bytesé");
        fs::copy("/bin/sleep", &program).unwrap();
        let mut child = Command::new(&program).arg("1000").spawn().unwrap();
        let pid = child.id();
        let (started, above, below) = (start_ticks(pid), parent(pid), descends_from(pid, std::process::id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(started.is_some(), "its start is known");
        assert_eq!(above, Some(std::process::id()), "its parent is known");
        assert!(below, "it is below this process");
    }
}
