//! The descendants of a process, and the processes that remain after it ended.

use std::collections::BTreeSet;

use crate::{
    descent::marked_with,
    os,
    stat::{children, start_ticks, stat_field},
};

/// Maximum number of processes listed.
const MOST: usize = 65_536;

/// The running descendants of a process.
#[must_use]
pub fn descendants(pid: u32) -> Vec<u32> {
    let (mut found, mut seen, mut at) = (vec![pid], BTreeSet::from([pid]), 0);
    while let Some(parent) = found.get(at).copied() {
        at += 1;
        let more = children(parent).into_iter().filter(|child| seen.insert(*child)).collect::<Vec<_>>();
        if found.len() + more.len() > MOST {
            break;
        }
        found.extend(more);
    }
    found.retain(|one| *one != pid && start_ticks(*one).is_some());
    found
}

/// The remaining processes of a session leader that ended: the processes of its session, and those with the mark that
/// the program got ([`program_mark`](crate::program_mark)).
#[must_use]
pub fn left_of(leader: u32, mark: Option<u64>) -> Vec<u32> {
    let Ok(all) = os::process_ids() else { return Vec::new() };
    all.filter(|pid| *pid != leader && start_ticks(*pid).is_some())
        .filter(|pid| {
            let session = stat_field(*pid, 6).and_then(|session| session.parse().ok());
            session == Some(leader) || mark.is_some_and(|mark| marked_with(*pid, mark))
        })
        .collect()
}
