//! Agents that run on this machine and are not observed: agents of other users and in containers.

use events::Provider;

use crate::{
    command_line::which_agent,
    os,
    stat::{parent, stat_field},
};

/// Why an agent is not observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unseen {
    /// Another user runs it.
    OtherUser,
    /// It runs in a container: its process has another id there.
    Container,
}

impl Unseen {
    /// The reason in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::OtherUser => "of another user",
            Self::Container => "in a container",
        }
    }
}

/// An agent that is not observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnseenAgent {
    /// The agent.
    pub provider: Provider,
    /// Its process id, as this process sees it.
    pub pid: u32,
    /// The reason.
    pub why: Unseen,
}

/// The agents that run on this machine without being observed, according to `/proc`. Agents started by an agent of the
/// same kind are omitted.
#[must_use]
pub fn unseen_agents() -> Vec<UnseenAgent> {
    let Ok(pids) = os::process_ids() else { return Vec::new() };
    let found: Vec<UnseenAgent> = pids.filter_map(look_at).collect();
    let is_part = |agent: &UnseenAgent| {
        parent(agent.pid)
            .is_some_and(|above| found.iter().any(|other| other.pid == above && other.provider == agent.provider))
    };
    found.iter().copied().filter(|agent| !is_part(agent)).collect()
}

fn look_at(pid: u32) -> Option<UnseenAgent> {
    let owner = os::user(pid).ok()?;
    let (provider, _) = which_agent(&os::arguments(pid).ok()?)?;
    // A process that has ended has no state or is a zombie.
    stat_field(pid, 3).filter(|state| state != "Z")?;
    let why = if is_nested(&os::status(pid).ok()?) {
        Unseen::Container
    } else if owner != rustix::process::geteuid().as_raw() {
        Unseen::OtherUser
    } else {
        return None;
    };
    Some(UnseenAgent { provider, pid, why })
}

/// Whether a process has further ids in pid namespaces below ours (proc(5), `NSpid`).
fn is_nested(status: &str) -> bool {
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    numbers.is_some_and(|numbers| numbers.split_ascii_whitespace().count() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_several_namespace_pids_is_in_a_container() {
        assert!(is_nested("Name:\tclaude\nNStgid:\t812\t5\nNSpid:\t812\t5\nNSpgid:\t812\t5\n"));
        assert!(!is_nested("Name:\tclaude\nNSpid:\t812\nNSpgid:\t812\t5\n") && !is_nested(""));
    }

    #[test]
    fn an_agent_of_the_same_user_is_not_listed_as_unseen() {
        let dir = tempfile::tempdir().unwrap();
        let agent = dir.path().join("claude");
        std::os::unix::fs::symlink("/bin/sh", &agent).unwrap();
        let mut child = std::process::Command::new(&agent)
            .args(["-c", "read x; exit 0"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        assert_eq!(look_at(child.id()), None);
        assert!(unseen_agents().iter().all(|unseen| unseen.pid != child.id()));
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
