//! Collects the remains of adopted processes.

use rustix::process::{Pid, WaitOptions, waitpid};

use crate::stat::children;

/// Collects the exit statuses of children that were adopted and have ended; `program` is left to whoever
/// waits for it. Nobody else would: a process that adopts what others cut loose is their last parent.
pub fn reap_adopted(program: Pid) {
    let adopted = children(std::process::id()).into_iter().filter_map(|pid| Pid::from_raw(pid.try_into().ok()?));
    for pid in adopted.filter(|pid| *pid != program) {
        // One that still runs is left alone.
        waitpid(Some(pid), WaitOptions::NOHANG).ok();
    }
}
