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
    /// Which agent.
    pub provider: Provider,
    /// Process id.
    pub pid: u32,
    /// Start in clock ticks since boot.
    pub start_ticks: u64,
    /// How long it had been running when it was found, ms.
    pub age_ms: i64,
    /// The process that started it; of a child the first of its agent's processes, which may have started it
    /// through others (Qwen Code 0.24.4 starts itself again twice).
    pub parent: Option<u32>,
    /// Started by another process of the same agent: a part of it, not one of its own.
    pub child: bool,
    /// Working directory.
    pub cwd: PathBuf,
    /// Serves sessions for other processes (a daemon), so its directory says nothing.
    pub shared: bool,
    /// It was started to take up an earlier session.
    pub resumes: bool,
    /// It does one prompt, and nobody can type into it.
    pub headless: bool,
    /// The run it belongs to, as its environment says; a daemon belongs to none, whoever started it.
    pub run: Option<RunId>,
    /// Regular files it has open below a home of agents, transcripts among them.
    pub open_files: Vec<PathBuf>,
}

/// Scans the processes of our own user for agents that keep their
/// sessions in the homes that are read; agents with other homes are left out. A process
/// that was not an agent twice is not examined again, so that a scan costs little more than
/// listing `/proc`.
#[derive(Debug)]
pub struct ProcessTable {
    homes: Homes,
    looks: HashMap<u32, ScanResult>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanResult {
    /// Examined once, and not an agent then; it may have been about to become one.
    Once,
    /// Examined twice, and not an agent.
    Stranger,
    Agent,
}

impl ProcessTable {
    /// A table of the agents of these homes.
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

/// The first of the processes of one agent that started each other down to this one; `None` when none of them
/// started it. Each is given with its parent.
pub(crate) fn launcher(pid: u32, provider: Provider, processes: &[(u32, Provider, Option<u32>)]) -> Option<u32> {
    let parent = |of: u32| processes.iter().find(|(pid, ..)| *pid == of).and_then(|(_, _, parent)| *parent);
    let is_same = |pid: &u32| processes.iter().any(|(one, of, _)| one == pid && *of == provider);
    // No more steps than processes: what was read while pids were given out again may go round.
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

/// The run a process belongs to, as its environment says; `None` for a daemon, which outlives the
/// one that started it.
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

/// Where an agent with this environment may keep its sessions. Nothing else of it is looked at.
pub(crate) fn homes_in(provider: Provider, environment: &[u8]) -> Vec<PathBuf> {
    let variable = |name: &str| variable_in(environment, name).map(PathBuf::from);
    Agent::of(provider).map_or_else(Vec::new, |agent| agent.home.directories(variable))
}

/// Most descriptors of a process that are examined.
const DESCRIPTORS: usize = 512;

fn open_files(pid: u32) -> Vec<PathBuf> {
    let Ok(targets) = os::descriptors(pid) else { return Vec::new() };
    targets
        .take(DESCRIPTORS)
        .flatten()
        .filter(|target| target.extension().is_some_and(|e| e == "jsonl" || e == "json"))
        .collect()
}
