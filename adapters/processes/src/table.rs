//! The agents among the processes of our own user.

use std::{collections::HashMap, path::PathBuf};

use agents::{Agent, Homes, RUN_VARIABLE};
use events::{Provider, RunId};

use crate::{
    command_line::{is_headless, resumes, which_agent},
    os,
    stat::{age_ms, start_ticks, stat_field},
};

/// A process that looks like an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentProcess {
    /// The agent.
    pub provider: Provider,
    /// Process id.
    pub pid: u32,
    /// Start in clock ticks since boot.
    pub start_ticks: u64,
    /// Its age when it was found, ms.
    pub age_ms: i64,
    /// The process that started it. For a child: the first process of the same agent, which may have started it
    /// indirectly (Qwen Code 0.24.4 restarts itself twice).
    pub parent: Option<u32>,
    /// Whether it was started by another process of the same agent and so is a part of that agent.
    pub child: bool,
    /// Working directory.
    pub cwd: PathBuf,
    /// Whether it serves sessions for other processes (a daemon), so that its directory is not significant.
    pub shared: bool,
    /// Whether it was started to resume an earlier session.
    pub resumes: bool,
    /// Whether it answers one prompt, so that the user cannot type into it.
    pub headless: bool,
    /// The run it belongs to, according to its environment. A daemon belongs to no run, whichever process started it.
    pub run: Option<RunId>,
    /// Regular files that it has open below an agent's home, transcripts among them.
    pub open_files: Vec<PathBuf>,
}

/// Scans the processes of our own user for agents with sessions in the configured homes; agents with other homes are
/// skipped. A process that was examined twice and was not an agent is not examined again, so that a scan costs little
/// more than listing `/proc`.
#[derive(Debug)]
pub struct ProcessTable {
    homes: Homes,
    looks: HashMap<u32, ScanResult>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanResult {
    /// Examined once, and not an agent at that time; it may have been about to become one.
    Once,
    /// Examined twice, and not an agent.
    Stranger,
    Agent,
}

impl ProcessTable {
    /// Creates a table for agents with these homes.
    #[must_use]
    pub fn new(homes: Homes) -> Self {
        Self { homes, looks: HashMap::new() }
    }

    /// The agents that run now.
    pub fn scan(&mut self) -> Vec<AgentProcess> {
        let Ok(pids) = os::process_ids() else { return Vec::new() };
        let pids: Vec<u32> = pids.collect();
        let mut looks = HashMap::with_capacity(pids.len());
        let mut agents = Vec::new();
        for pid in pids {
            let before = self.looks.get(&pid).copied();
            if before == Some(ScanResult::Stranger) {
                looks.insert(pid, ScanResult::Stranger);
                continue;
            }
            let found = inspect(pid, &self.homes);
            let look = match (&found, before) {
                (Some(_), _) => ScanResult::Agent,
                (None, None) => ScanResult::Once,
                (None, Some(_)) => ScanResult::Stranger,
            };
            looks.insert(pid, look);
            agents.extend(found);
        }
        self.looks = looks;
        let processes: Vec<(u32, Provider, Option<u32>)> =
            agents.iter().map(|a| (a.pid, a.provider, a.parent)).collect();
        for agent in &mut agents {
            if let Some(launcher) = launcher(agent.pid, agent.provider, &processes) {
                agent.child = true;
                agent.parent = Some(launcher);
            }
        }
        agents
    }
}

/// The topmost process in the chain of processes of the same agent that leads to this one; `None` if no such process
/// started it. Each process is listed with its parent.
pub(crate) fn launcher(pid: u32, provider: Provider, processes: &[(u32, Provider, Option<u32>)]) -> Option<u32> {
    let parent = |of: u32| processes.iter().find(|(pid, ..)| *pid == of).and_then(|(_, _, parent)| *parent);
    let is_same = |pid: &u32| processes.iter().any(|(one, of, _)| one == pid && *of == provider);
    // At most as many steps as processes: if pids were reused during the scan, the chain may be circular.
    std::iter::successors(Some(pid), |pid| parent(*pid).filter(is_same)).take(processes.len()).skip(1).last()
}

fn inspect(pid: u32, homes: &Homes) -> Option<AgentProcess> {
    if os::user(pid).ok()? != rustix::process::geteuid().as_raw() {
        return None;
    }
    let arguments = os::arguments(pid).ok()?;
    let (provider, shared) = which_agent(&arguments)?;
    let resumes = resumes(&arguments);
    let environment = os::environment(pid).ok()?;
    if !homes_in(provider, &environment).iter().any(|home| homes.of(provider).contains(home)) {
        return None;
    }
    let start_ticks = start_ticks(pid)?;
    Some(AgentProcess {
        provider,
        pid,
        start_ticks,
        age_ms: age_ms(start_ticks),
        parent: stat_field(pid, 4).and_then(|p| p.parse().ok()),
        child: false,
        cwd: os::working_directory(pid).ok()?,
        shared,
        resumes,
        headless: is_headless(&arguments),
        run: run_in(&environment).filter(|_| !shared),
        open_files: open_files(pid),
    })
}

fn run_in(environment: &[u8]) -> Option<RunId> {
    let run = variable_in(environment, RUN_VARIABLE)?;
    run.parse().ok()
}

/// The run a process belongs to, according to its environment; `None` for a daemon, which outlives the process that
/// started it.
#[must_use]
pub fn run_of(pid: u32) -> Option<RunId> {
    let shared = which_agent(&os::arguments(pid).ok()?).is_some_and(|(_, shared)| shared);
    if shared { None } else { run_in(&os::environment(pid).ok()?) }
}

fn variable_in<'a>(environment: &'a [u8], name: &str) -> Option<&'a str> {
    let value =
        environment.split(|b| *b == 0).find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
    std::str::from_utf8(value).ok().filter(|v| !v.is_empty())
}

/// The directories in which an agent with this environment may keep its sessions. No other variables are read.
pub(crate) fn homes_in(provider: Provider, environment: &[u8]) -> Vec<PathBuf> {
    let variable = |name: &str| variable_in(environment, name).map(PathBuf::from);
    Agent::of(provider).map_or_else(Vec::new, |agent| agent.home.directories(variable))
}

/// Maximum number of descriptors examined per process.
const DESCRIPTORS: usize = 512;

fn open_files(pid: u32) -> Vec<PathBuf> {
    let Ok(targets) = os::descriptors(pid) else { return Vec::new() };
    targets
        .take(DESCRIPTORS)
        .flatten()
        .filter(|target| target.extension().is_some_and(|e| e == "jsonl" || e == "json"))
        .collect()
}
