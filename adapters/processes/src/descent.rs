//! Decides whether a process was started by an agent, directly or indirectly. Such processes may not decide for the
//! user.
//!
//! Each of three signs is sufficient:
//!
//! - the **ancestors**: one of them is an agent, whether or not it holds a conversation;
//! - the **environment**: it contains a variable that agents set for the programs they run;
//! - the **mark**: every process below `capture run` has a hard limit on file locks, which Linux keeps for
//!   compatibility and has not used since 2.4.25 (getrlimit(2), `RLIMIT_LOCKS`). Children inherit the limit, and a
//!   process without `CAP_SYS_RESOURCE` can lower it but not raise it, so a cleaned environment, a double fork or a new
//!   session does not remove it. The mark contains the start time and pid of the program that first got it: a process
//!   with the mark, but without that program among its ancestors, was detached.
//!
//! A process that an agent outside of `capture run` detaches with a cleaned environment is not recognized.

use std::{fmt, io};

use rustix::process::{Pid, getpid};

use crate::{
    command_line::{agent_named, verb},
    os::{self, mark_of},
    stat::{GENERATIONS, children, parent, start_ticks},
};
use agents::{DRIVEN, HOST, TOOL_HOST, agent::ALL};

/// Why a process counts as started by an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Descent {
    /// This ancestor, or the process itself, is an agent, or drives one.
    Agent {
        /// The process id of the agent.
        pid: u32,
    },
    /// The environment contains this variable, which agents set.
    Variable(&'static str),
    /// The process was started below a run, and was detached from it.
    CutLoose,
    /// The process or an ancestor could not be examined.
    Unreadable,
}

impl fmt::Display for Descent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent { pid } => write!(f, "started by an agent (process {pid})"),
            Self::Variable(name) => write!(f, "its environment has {name}, which agents set for the programs they run"),
            Self::CutLoose => f.write_str("started by a program under `capture run`, then detached from it"),
            Self::Unreadable => f.write_str("its ancestors cannot be read from /proc"),
        }
    }
}

/// Whether an agent started this process, directly or indirectly, and the sign for it; `None` without a sign.
#[must_use]
pub fn agent_descent(pid: u32) -> Option<Descent> {
    let Ok(environment) = os::environment(pid) else { return Some(Descent::Unreadable) };
    let has = |name: &&str| {
        let set = |entry: &[u8]| entry.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b"="));
        environment.split(|byte| *byte == 0).any(set)
    };
    let mut variables = ALL.iter().flat_map(|agent| agent.descent_variables).chain(&[DRIVEN]);
    if let Some(name) = variables.find(|name| has(name)) {
        return Some(Descent::Variable(name));
    }
    let Ok(mark) = mark_of(pid) else { return Some(Descent::Unreadable) };
    // The highest process with the mark is the one that got it first.
    let mut highest_marked = None;
    let (mut at, mut below) = (pid, None);
    for _ in 0..GENERATIONS {
        if at <= 1 {
            let begins_there = highest_marked.and_then(name_of);
            let cut_loose = mark.is_some_and(|mark| begins_there.is_none() || begins_there != named_by(mark));
            return cut_loose.then_some(Descent::CutLoose);
        }
        let Ok(arguments) = os::arguments(at) else { return Some(Descent::Unreadable) };
        // The driver itself may decide. Processes below it may not: those that the agent detached become its children.
        if agent_named(&arguments).is_some() || is_tool_host(&arguments) || below.is_some() && is_driver(&arguments) {
            return Some(Descent::Agent { pid: at });
        }
        if let Some(below) = below
            && is_host(&arguments)
            && program_of(at) != Some(below)
            && !is_own_server(below)
        {
            return Some(Descent::CutLoose);
        }
        match mark_of(at) {
            Ok(Some(_)) => highest_marked = Some(at),
            Ok(None) => {}
            Err(_) => return Some(Descent::Unreadable),
        }
        below = Some(at);
        match parent(at) {
            Some(parent) => at = parent,
            None => return Some(Descent::Unreadable),
        }
    }
    Some(Descent::Unreadable)
}

/// Whether an agent started this process, directly or indirectly. A process that cannot be examined counts as started
/// by an agent.
#[must_use]
pub fn descends_from_agent(pid: u32) -> bool {
    agent_descent(pid).is_some()
}

/// Whether a process is `capture agent drive`, judged by its arguments.
fn is_driver(arguments: &[u8]) -> bool {
    let words: Vec<&[u8]> = arguments.split(|byte| *byte == 0).collect();
    words.windows(2).any(|words| words == [&b"agent"[..], b"drive"])
}

/// Whether a process is the host of a run, judged by its arguments.
fn is_host(arguments: &[u8]) -> bool {
    verb(arguments) == Some(HOST.as_bytes())
}

/// Whether a process is the host of a command of our own agent, judged by its arguments.
fn is_tool_host(arguments: &[u8]) -> bool {
    verb(arguments) == Some(TOOL_HOST.as_bytes())
}

/// Whether a process is a server started by a host: the same executable as ours, with the verb of the server.
fn is_own_server(pid: u32) -> bool {
    os::runs_own_executable(pid) && os::arguments(pid).is_ok_and(|arguments| verb(&arguments) == Some(b"serve"))
}

/// The program of a host: its first child. Detached processes become later children.
fn program_of(host: u32) -> Option<u32> {
    children(host).into_iter().filter_map(|pid| Some((start_ticks(pid)?, pid))).min().map(|(_, pid)| pid)
}

/// The upper bits of a mark, which distinguish it from a limit set for another purpose.
const SIGNATURE: u64 = 0x4341 << 48;
/// The lower bits: the program that first got the mark.
const NAME_BITS: u64 = (1 << 48) - 1;

/// The program in a mark; `None` if the mark contains none because it is sealed or was lowered.
fn named_by(mark: u64) -> Option<u64> {
    (mark & !NAME_BITS == SIGNATURE && mark & NAME_BITS != 0).then_some(mark & NAME_BITS)
}

/// A process in 48 bits: its start in clock ticks since boot, then its pid, which distinguishes processes that start
/// within one tick. A process can only lower its mark, so it cannot adopt the name of a process that started later.
fn name_of(pid: u32) -> Option<u64> {
    let start = start_ticks(pid)?;
    Some((start & 0xffff_ffff) << 16 | u64::from(pid & 0xffff))
}

/// Marks this process, which is about to become the program of a run, and all processes it will start. A process that
/// already has a mark keeps it.
///
/// # Errors
/// If the kernel refuses.
pub fn mark_program() -> io::Result<()> {
    mark_child(getpid())
}

/// Marks a child of this process, as [`mark_program`] does for the process itself.
///
/// # Errors
/// If the kernel refuses, or the child has ended.
pub fn mark_child(program: Pid) -> io::Result<()> {
    let pid = program.as_raw_nonzero().get().unsigned_abs();
    if mark_of(pid)?.is_some() {
        return Ok(());
    }
    let mark = SIGNATURE | name_of(pid).ok_or(io::ErrorKind::NotFound)?;
    os::mark(program, mark)
}

/// The mark that [`mark_program`] gives to this process and all its children. `None` if the process has ended.
#[must_use]
pub fn program_mark(pid: u32) -> Option<u64> {
    Some(SIGNATURE | name_of(pid)?)
}

/// Whether a process has this mark.
pub(crate) fn marked_with(pid: u32, mark: u64) -> bool {
    matches!(mark_of(pid), Ok(Some(own)) if own == mark)
}

/// Permanently marks this process and all its future children as started by an agent, if an agent started it. Call it
/// before starting anything that outlives its parent.
///
/// # Errors
/// If the kernel refuses.
pub fn seal_if_agents() -> io::Result<()> {
    if descends_from_agent(std::process::id()) { os::lower_own_mark(SIGNATURE) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rustix::process::{Resource, getrlimit};

    use super::*;

    /// Starts a shell under this name with `word` as its argument, and a child that waits; returns both.
    fn family(name: &str, word: &str) -> (std::process::Child, u32, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let agent = dir.path().join(name);
        std::os::unix::fs::symlink("/bin/sh", &agent).unwrap();
        // The shell runs the file named `word` as its script.
        fs::write(dir.path().join(word), "sleep 1000 & echo $!; wait\n").unwrap();
        let mut child = std::process::Command::new(&agent)
            .arg(word)
            .current_dir(dir.path())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line).unwrap();
        (child, line.trim().parse().unwrap(), dir)
    }

    fn end(mut child: std::process::Child, grandchild: u32) {
        rustix::process::kill_process(Pid::from_raw(grandchild as i32).unwrap(), rustix::process::Signal::KILL)
            .unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_child_of_an_agent_process_descends_from_an_agent() {
        let (child, grandchild, _dir) = family("claude", "script");
        assert_eq!(agent_descent(child.id()), Some(Descent::Agent { pid: child.id() }));
        // Until it executes `sleep`, the grandchild looks like the agent itself.
        let started = agent_descent(grandchild);
        assert!(
            matches!(started, Some(Descent::Agent { pid }) if pid == child.id() || pid == grandchild),
            "{started:?}"
        );
        assert_eq!(agent_descent(u32::MAX - 1), Some(Descent::Unreadable));
        end(child, grandchild);
    }

    #[test]
    fn a_child_of_codex_mcp_server_descends_from_an_agent() {
        let (child, grandchild, _dir) = family("codex", "mcp-server");
        // Until it executes `sleep`, the grandchild looks like the agent itself.
        let started = agent_descent(grandchild);
        assert!(
            matches!(started, Some(Descent::Agent { pid }) if pid == child.id() || pid == grandchild),
            "{started:?}"
        );
        end(child, grandchild);
    }

    #[test]
    fn a_child_of_capture_tool_host_descends_from_an_agent() {
        let (child, grandchild, _dir) = family("capture", "tool-host");
        let started = agent_descent(grandchild);
        assert!(
            matches!(started, Some(Descent::Agent { pid }) if pid == child.id() || pid == grandchild),
            "{started:?}"
        );
        end(child, grandchild);
    }

    #[test]
    fn only_a_complete_process_mark_names_a_program() {
        assert_eq!(named_by(SIGNATURE | 77), Some(77));
        assert_eq!(named_by(SIGNATURE), None, "sealed");
        assert_eq!(named_by(5), None, "lowered by somebody");
        let own = std::process::id();
        assert_eq!(mark_of(own).unwrap(), getrlimit(Resource::Locks).maximum);
        // A child that starts within the same tick has a different, higher name.
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        assert_ne!(name_of(child.id()), name_of(own));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
