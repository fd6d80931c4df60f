//! Scans for the agents' processes when ingest asks for it, and watches the known ones.

use std::time::{Duration, Instant};

use agents::Homes;
use anyhow::Context as _;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded};
use processes::{ProcessTable, Watcher, run_of};

use events::RunId;

use crate::{
    ingest::{IngestHandle, IngestInput, Processes},
    supervisor::Supervisor,
};

/// The thread that searches.
const SEARCH: &str = "search-agents";
/// Delay before the process table is searched for a session that has just begun.
const SOONEST: Duration = Duration::from_millis(300);

/// Owns the two threads that look at processes.
pub struct Linker {
    watcher: Watcher,
    ask: Option<Sender<bool>>,
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
        .context("cannot start the processes thread")?;
        let (ask, asked) = bounded(1);
        // It looks at the process table afresh: starting it again loses nothing.
        supervisor.spawn_restarting(SEARCH, move || search(ProcessTable::new(homes.clone()), &asked, &inputs))?;
        Ok(Self { watcher, ask: Some(ask), supervisor: supervisor.clone() })
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
}

impl Drop for Linker {
    fn drop(&mut self) {
        self.ask = None;
        self.supervisor.join(SEARCH);
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
