//! Looks for agents' processes when ingest asks for them, and watches those it knows and what they start.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use agents::Homes;
use anyhow::Context as _;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded, unbounded};
use processes::{EndedProcess, ProcessTable, ShellCommand, Watcher, is_alive, run_of, shell_commands_below};

use events::{RunId, SessionId};

use crate::{
    ingest::{IngestHandle, IngestInput, Processes},
    supervisor::Supervisor,
};

/// The thread that searches.
const SEARCH: &str = "search-agents";
/// Delay before the process table is searched for a session that has just begun.
const SOONEST: Duration = Duration::from_millis(300);

/// The thread that looks for commands.
const COMMANDS: &str = "watch-commands";

/// Owns the threads that look at processes.
pub struct Linker {
    watcher: Watcher,
    ask: Option<Sender<bool>>,
    expect: Option<Sender<Expectation>>,
    expected: HashMap<SessionId, (u32, u64)>,
    supervisor: Supervisor,
}

impl Linker {
    /// Starts the threads; what they find goes to ingest.
    ///
    /// # Errors
    /// When a thread cannot be made.
    pub fn start(homes: Homes, inputs: IngestHandle, supervisor: &Supervisor) -> anyhow::Result<Self> {
        let (ended, sentinel) = (inputs.clone(), supervisor.sentinel());
        let watcher = Watcher::start(move |process| {
            let _watched = &sentinel;
            // Only a stopped ingest takes nothing more.
            ended.send(IngestInput::Ended(process)).ok();
        })
        .context("cannot start the thread that watches processes")?;
        let (ask, asked) = bounded(1);
        // It looks at the process table afresh: starting it again loses nothing.
        let commands = inputs.clone();
        supervisor.spawn_restarting(SEARCH, move || search(ProcessTable::new(homes.clone()), &asked, &inputs))?;
        let (expect, expectations) = unbounded();
        // What it is to look for is said again with the next event of the session.
        supervisor.spawn_restarting(COMMANDS, move || watch_commands(&expectations, &commands))?;
        let (ask, expect) = (Some(ask), Some(expect));
        Ok(Self { watcher, ask, expect, expected: HashMap::new(), supervisor: supervisor.clone() })
    }
}

impl Processes for Linker {
    fn watch(&mut self, pid: u32, start_ticks: u64) {
        self.watcher.watch(pid, start_ticks);
    }

    fn wanted(&mut self, fresh: bool) {
        if let Some(ask) = &self.ask {
            match ask.try_send(fresh) {
                Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
            }
        }
    }

    fn run_of(&mut self, pid: u32) -> Option<RunId> {
        run_of(pid)
    }

    fn expect_command(&mut self, session: SessionId, agent: Option<(u32, u64)>) {
        let before = match agent {
            Some(agent) => self.expected.insert(session, agent),
            None => self.expected.remove(&session),
        };
        if before != agent
            && let Some(expect) = &self.expect
        {
            expect.send(Expectation { session, agent }).ok();
        }
    }
}

impl Drop for Linker {
    fn drop(&mut self) {
        self.ask = None;
        self.expect = None;
        self.supervisor.join(SEARCH);
        self.supervisor.join(COMMANDS);
    }
}

/// Interval between searches for agents that have no session yet.
const ROUND: Duration = Duration::from_secs(3);
/// Delay before a process seen for the first time is examined again.
const AGAIN: Duration = Duration::from_millis(1500);

fn search(mut table: ProcessTable, asked: &Receiver<bool>, inputs: &IngestHandle) {
    let mut last_told: Vec<(u32, u64)> = Vec::new();
    let mut wanted = false;
    let mut tellings = 0;
    let mut next = Instant::now();
    loop {
        match asked.recv_deadline(next) {
            Ok(fresh) => {
                wanted = true;
                if fresh {
                    next = next.min(Instant::now() + SOONEST);
                }
                continue;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let found = table.scan();
        let names: Vec<(u32, u64)> = found.iter().map(|a| (a.pid, a.start_ticks)).collect();
        // What is new is told twice: the second time tells that it stayed.
        if names != last_told {
            tellings = 2;
        } else if wanted {
            tellings = tellings.max(1);
        }
        wanted = false;
        last_told = names;
        next = Instant::now() + if tellings > 1 { AGAIN } else { ROUND };
        if tellings > 0 {
            tellings -= 1;
            if inputs.send(IngestInput::Agents(found)).is_err() {
                return;
            }
        }
    }
}

/// A session waits for permission to run a command, or no longer does.
struct Expectation {
    session: SessionId,
    agent: Option<(u32, u64)>,
}

/// Between two looks at what an agent runs while it waits for permission.
const LOOK: Duration = Duration::from_millis(100);
/// A command that runs this long is not a helper of the agent's own (its status line, a question to git).
const STAYS: Duration = Duration::from_millis(300);

/// An agent that waits for permission, and the commands seen below it.
struct Waiting {
    agent: (u32, u64),
    /// Ran when the wait began.
    before: HashSet<ShellCommand>,
    /// Began since, and when they were first seen.
    since: HashMap<ShellCommand, Instant>,
}

fn watch_commands(expectations: &Receiver<Expectation>, inputs: &IngestHandle) {
    let mut waiting: HashMap<SessionId, Waiting> = HashMap::new();
    loop {
        let expectation = if waiting.is_empty() {
            expectations.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            expectations.recv_timeout(LOOK)
        };
        match expectation {
            Ok(Expectation { session, agent: Some(agent) }) => {
                let before = shell_commands_below(agent.0).into_iter().collect();
                waiting.insert(session, Waiting { agent, before, since: HashMap::new() });
            }
            Ok(Expectation { session, agent: None }) => drop(waiting.remove(&session)),
            Err(RecvTimeoutError::Timeout) => {
                let now = Instant::now();
                let mut stopped = false;
                waiting.retain(|_, wait| {
                    let (pid, start_ticks) = wait.agent;
                    let found = wait.look(now);
                    let agent = EndedProcess { pid, start_ticks };
                    if let Some(command) = found {
                        stopped |= inputs.send(IngestInput::CommandRuns { agent, command }).is_err();
                    }
                    found.is_none() && is_alive(pid, start_ticks)
                });
                if stopped {
                    return;
                }
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

impl Waiting {
    /// A command that began since the wait did, and stays.
    fn look(&mut self, now: Instant) -> Option<ShellCommand> {
        let running: HashSet<ShellCommand> = shell_commands_below(self.agent.0).into_iter().collect();
        self.since.retain(|command, _| running.contains(command));
        for command in running.difference(&self.before) {
            self.since.entry(*command).or_insert(now);
        }
        self.since.iter().find(|(_, seen)| now.duration_since(**seen) >= STAYS).map(|(command, _)| *command)
    }
}
