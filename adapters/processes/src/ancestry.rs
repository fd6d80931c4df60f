//! Determines which agent a process is, belongs to, or was started by.

use agents::RUN_CHILD;
use events::Provider;

use crate::{
    command_line::{agent_of_script, verb, which_agent},
    os,
    stat::{GENERATIONS, children, parent, start_ticks, stat_field},
};

/// The agent that a process is; [`Provider::Unknown`] if it is not an agent; `None` if it cannot be examined, or is one
/// of our own processes that is about to execute another program.
#[must_use]
pub fn agent_of(pid: u32) -> Option<Provider> {
    let arguments = os::arguments(pid).ok().filter(|words| !words.is_empty())?;
    if verb(&arguments) == Some(RUN_CHILD.as_bytes()) {
        return None;
    }
    Some(which_agent(&arguments).map_or(Provider::Unknown, |(provider, _)| provider))
}

/// The agent in a process group, such as the foreground group of a terminal: the leader; a process that the leader
/// started in the same group (`npx`, `sh -c`, `env`); or the agent after which a shell script is named. `None` if the
/// leader cannot be examined.
#[must_use]
pub fn agent_in_group(group: u32) -> Option<Provider> {
    let leader = agent_of(group)?;
    if leader != Provider::Unknown {
        return Some(leader);
    }
    let (mut looked, mut at) = (vec![group], 0);
    while let Some(pid) = looked.get(at).copied() {
        at += 1;
        for child in children(pid) {
            if looked.len() >= GROUP || stat_field(child, 5).and_then(|g| g.parse().ok()) != Some(group) {
                continue;
            }
            match agent_of(child) {
                Some(Provider::Unknown) | None => looked.push(child),
                agent => return agent,
            }
        }
    }
    let script = os::arguments(group).ok().and_then(|arguments| agent_of_script(&arguments));
    Some(script.unwrap_or(Provider::Unknown))
}

/// Maximum number of processes of a group that are examined.
const GROUP: usize = 32;

/// The nearest agent among a process and its ancestors: its pid, its start, and whether it serves sessions for other
/// processes.
#[must_use]
pub fn nearest_agent(pid: u32) -> Option<(u32, u64, bool)> {
    let mut at = pid;
    for _ in 0..GENERATIONS {
        if at <= 1 {
            return None;
        }
        if let Some((_, shared)) = which_agent(&os::arguments(at).ok()?) {
            return Some((at, start_ticks(at)?, shared));
        }
        at = stat_field(at, 4)?.parse().ok()?;
    }
    None
}

/// Whether `starter` started an agent with only processes of agents between them, such as the script that starts a
/// binary.
#[must_use]
pub fn is_started_by(agent: u32, starter: u32) -> bool {
    let mut at = agent;
    for _ in 0..GENERATIONS {
        match parent(at) {
            Some(above) if above == starter => return true,
            Some(above) if above > 1 && agent_of(above).is_some_and(|agent| agent != Provider::Unknown) => at = above,
            Some(_) | None => return false,
        }
    }
    false
}
