//! Reaps adopted processes.

use rustix::process::{Pid, WaitOptions, waitpid};

use crate::stat::children;

/// Reaps adopted children that have ended, except `program`, whose caller waits for it. A process that adopts detached
/// processes is their last parent, so no other process would reap them.
pub fn reap_adopted(program: Pid) {
    let adopted = children(std::process::id()).into_iter().filter_map(|pid| Pid::from_raw(pid.try_into().ok()?));
    for pid in adopted.filter(|pid| *pid != program) {
        // A child that still runs is left alone.
        waitpid(Some(pid), WaitOptions::NOHANG).ok();
    }
}
