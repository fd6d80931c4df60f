//! Reads `/proc/<pid>/stat`: the start, state and parent of a process.

use std::{fs, path::PathBuf};

use rustix::time::{ClockId, clock_gettime};

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
    let now = clock_gettime(ClockId::Boottime);
    let now_ms = now.tv_sec * 1000 + now.tv_nsec / 1_000_000;
    let began_ms = i64::try_from(start_ticks).unwrap_or(i64::MAX).saturating_mul(1000) / TICKS_PER_SECOND;
    now_ms.saturating_sub(began_ms).max(0)
}

/// A field of `/proc/<pid>/stat`, numbered as in proc(5), from 3.
pub(crate) fn stat_field(pid: u32, number: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may contain any character, including parentheses.
    stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace().nth(number.checked_sub(3)?).map(str::to_owned)
}

/// The working directory of a process.
#[must_use]
pub fn working_directory(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd")).ok()
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

/// The child processes of a process, started by any of its threads; empty if it cannot be examined.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// Whether a process has running children.
#[must_use]
pub fn has_children(pid: u32) -> bool {
    children(pid).into_iter().any(|child| start_ticks(child).is_some())
}

/// Maximum number of ancestors of a process that are followed.
pub(crate) const GENERATIONS: usize = 64;
