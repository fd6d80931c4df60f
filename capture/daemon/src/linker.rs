//! Searches for agents' processes on behalf of ingest, and watches known agents and the commands they start.

use std::{
    cell::Cell,
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use agents::Homes;
use anyhow::Context as _;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded};
use hooks::ConfiguredCommands;
use ingest::{IngestHandle, IngestInput, Processes, WatchedAction, WatchedRequest};
use processes::{
    EndedProcess, ProcessTable, ShellCommand, Watcher, executed_commands, is_alive, run_of, shell_commands_below,
    simple_command, working_directory,
};

use events::{RunId, SessionId};

use crate::supervisor::Supervisor;

/// Name of the thread that searches.
const SEARCH: &str = "search-agents";
/// Delay before the process table is searched for a session that has just begun.
const SOONEST: Duration = Duration::from_millis(300);

/// Name of the thread that watches commands.
const COMMANDS: &str = "watch-commands";

/// Owns the threads that look at processes.
pub struct Linker {
    watcher: Watcher,
    ask: Option<Sender<bool>>,
    /// Notifies the thread that the watched requests changed; dropping it ends the thread.
    requests_changed: Option<Sender<()>>,
    requests: Arc<Mutex<WatchedRequests>>,
    supervisor: Supervisor,
}

impl Linker {
    /// Starts the threads; they report to ingest.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start(homes: Homes, inputs: IngestHandle, supervisor: &Supervisor) -> anyhow::Result<Self> {
        let (ended, sentinel) = (inputs.clone(), supervisor.sentinel());
        let watcher = Watcher::start(move |process| {
            let _watched = &sentinel;
            // Fails only if ingest has stopped.
            ended.send(IngestInput::Ended(process)).ok();
        })
        .context("cannot start the thread that watches processes")?;
        let (ask, asked) = bounded(1);
        // It reads the process table from scratch, so restarting it loses nothing.
        let (commands, settings) = (inputs.clone(), homes.clone());
        supervisor.spawn_restarting(SEARCH, move || search(ProcessTable::new(homes.clone()), &asked, &inputs))?;
        let (requests_changed, changed) = bounded(1);
        let requests = Arc::<Mutex<WatchedRequests>>::default();
        // After a restart it continues with the requests watched at that time.
        let of_thread = Arc::clone(&requests);
        let watch = move || watch_commands(&changed, &of_thread, &settings, &commands);
        supervisor.spawn_restarting(COMMANDS, watch)?;
        let (ask, requests_changed) = (Some(ask), Some(requests_changed));
        Ok(Self { watcher, ask, requests_changed, requests, supervisor: supervisor.clone() })
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

    fn is_alive(&self, pid: u32, start_ticks: u64) -> bool {
        is_alive(pid, start_ticks)
    }

    fn watch_request(&mut self, session: SessionId, request: Option<WatchedRequest>) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = requests.get(&session) != request.as_ref();
        match request {
            Some(request) => drop(requests.insert(session, request)),
            None => drop(requests.remove(&session)),
        }
        drop(requests);
        if is_new && let Some(changed) = &self.requests_changed {
            match changed.try_send(()) {
                // If the channel is full, a notification is already pending.
                Ok(()) | Err(TrySendError::Full(()) | TrySendError::Disconnected(())) => {}
            }
        }
    }
}

impl Drop for Linker {
    fn drop(&mut self) {
        self.ask = None;
        self.requests_changed = None;
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
    // By then recent files are read, and sessions can be linked to their processes.
    let mut next = Instant::now() + SOONEST;
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
        // New processes are reported twice: the second report shows that they stayed.
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

/// The sessions that wait for permission.
type WatchedRequests = HashMap<SessionId, WatchedRequest>;

/// Interval between checks of an agent's commands while it waits for permission.
const LOOK: Duration = Duration::from_millis(100);
/// Minimum running time of a command that is not a helper of the agent itself (its status line, a query to git).
const STAYS: Duration = Duration::from_millis(300);
/// Interval between reports that a hook of the user is deciding.
const DECIDES: Duration = Duration::from_secs(3);

/// An agent that waits for permission, and the commands seen below it.
struct Waiting {
    request: WatchedRequest,
    /// The requested command, in the form seen when a process replaced its shell.
    command: Option<String>,
    /// Commands that the user configured and the agent runs without asking: hooks that may take long, a status line.
    configured: ConfiguredCommands,
    /// Commands that were running when the wait began.
    before: HashSet<ShellCommand>,
    /// Commands that began later, with the time they were first seen.
    since: HashMap<ShellCommand, Instant>,
    /// When a running hook of the user that may decide was last reported.
    deciding: Option<Instant>,
    /// Whether watching is finished: a command was reported, the agent ended, or nothing can be found.
    over: bool,
}

fn watch_commands(changed: &Receiver<()>, requests: &Mutex<WatchedRequests>, homes: &Homes, inputs: &IngestHandle) {
    let mut waiting: HashMap<SessionId, Waiting> = HashMap::new();
    loop {
        let watched = requests.lock().unwrap_or_else(PoisonError::into_inner).clone();
        waiting.retain(|session, wait| watched.get(session) == Some(&wait.request));
        for (session, request) in watched {
            waiting.entry(session).or_insert_with(|| Waiting::new(request, homes));
        }
        let woken = if waiting.values().all(|wait| wait.over) {
            changed.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            changed.recv_timeout(LOOK)
        };
        match woken {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) => {
                let now = Instant::now();
                for wait in waiting.values_mut().filter(|wait| !wait.over) {
                    let (pid, start_ticks) = wait.request.agent;
                    let (found, deciding) = wait.look(now);
                    wait.over = found.is_some() || !is_alive(pid, start_ticks);
                    let agent = EndedProcess { pid, start_ticks };
                    if let Some(runs) = deciding
                        && inputs.send(IngestInput::HookDecides { agent, runs }).is_err()
                    {
                        return;
                    }
                    if let Some(command) = found
                        && inputs.send(IngestInput::CommandRuns { agent, command }).is_err()
                    {
                        return;
                    }
                }
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

impl Waiting {
    fn new(request: WatchedRequest, homes: &Homes) -> Self {
        let project = working_directory(request.agent.0);
        let configured = ConfiguredCommands::read(homes, project.as_deref());
        let (command, over) = match &request.asks_for {
            WatchedAction::Command(command) => (command.as_deref().and_then(simple_command), false),
            WatchedAction::Other => (None, !configured.may_decide()),
        };
        let (before, since) = (HashSet::new(), HashMap::new());
        let mut waiting = Self { request, command, configured, before, since, deciding: None, over };
        waiting.before = waiting.running().0;
        waiting
    }

    /// The running commands, and whether a hook of the user that may decide is among them.
    fn running(&self) -> (HashSet<ShellCommand>, bool) {
        let decides = Cell::new(false);
        let is_configured = |arguments: &[u8]| {
            decides.set(decides.get() || self.configured.decide_in(arguments));
            self.configured.are_run_by(arguments)
        };
        let is_asked = |arguments: &[u8]| {
            self.command.as_ref().is_some_and(|asked| executed_commands(arguments).any(|command| command == *asked))
        };
        let running = shell_commands_below(self.request.agent.0, is_configured, is_asked);
        (running.into_iter().collect(), decides.get())
    }

    /// A command that began after the wait did and stays; and, if it must be reported, whether a hook of the user that
    /// may decide is running.
    fn look(&mut self, now: Instant) -> (Option<ShellCommand>, Option<bool>) {
        let (running, decides) = self.running();
        let is_due = self.deciding.is_none_or(|last| now.duration_since(last) >= DECIDES);
        let deciding = if decides { is_due.then_some(true) } else { self.deciding.map(|_| false) };
        match deciding {
            Some(true) => self.deciding = Some(now),
            Some(false) => self.deciding = None,
            None => {}
        }
        if self.request.asks_for == WatchedAction::Other {
            return (None, deciding);
        }
        self.since.retain(|command, _| running.contains(command));
        for command in running.difference(&self.before) {
            self.since.entry(*command).or_insert(now);
        }
        let stays = |(_, seen): &(&ShellCommand, &Instant)| now.duration_since(**seen) >= STAYS;
        (self.since.iter().find(stays).map(|(command, _)| *command), deciding)
    }
}

#[cfg(test)]
mod tests;
