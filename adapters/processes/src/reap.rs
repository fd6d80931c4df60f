//! Collects the remains of adopted processes.

use std::fs;

use rustix::process::{Pid, WaitOptions, waitpid};

/// Collects the exit statuses of children that were adopted and have ended; `program` is left to whoever
/// waits for it. Nobody else would: a process that adopts what others cut loose is their last parent.
pub fn reap_adopted(program: Pid) {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    for task in tasks {
        let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        let adopted = children.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
        for pid in adopted.filter(|pid| *pid != program) {
            // One that still runs is left alone.
            waitpid(Some(pid), WaitOptions::NOHANG).ok();
        }
    }
}
