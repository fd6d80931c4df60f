//! Looks for agents' processes when ingest asks for them, and watches those it knows.

use std::{
    thread::JoinHandle,
    time::{Duration, Instant},
};

use adapters::process::{Watcher, agents};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded};

use crate::ingest::{Input, Processes};

/// The process table is searched at most this often for a session that has just begun,
const SOONEST: Duration = Duration::from_millis(500);
/// and ever more rarely, down to this, while nothing is found.
const RAREST: Duration = Duration::from_secs(30);

/// Owns the two threads that look at processes.
pub struct Linker {
    watcher: Watcher,
    ask: Option<Sender<bool>>,
    search: Option<JoinHandle<()>>,
}

impl Linker {
    /// Starts the threads; what they find goes to ingest.
    ///
    /// # Errors
    /// When a thread cannot be made.
    pub fn start(inputs: Sender<Input>) -> std::io::Result<Self> {
        let ended = inputs.clone();
        let watcher = Watcher::start(move |process| {
            // Only a stopped ingest takes nothing more.
            ended.send(Input::Ended(process)).ok();
        })?;
        let (ask, asked) = bounded(1);
        let search = std::thread::Builder::new().name("search-agents".into()).spawn(move || search(&asked, &inputs))?;
        Ok(Self { watcher, ask: Some(ask), search: Some(search) })
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
}

impl Drop for Linker {
    fn drop(&mut self) {
        self.ask = None;
        if let Some(thread) = self.search.take() {
            thread.join().ok();
        }
    }
}

fn search(asked: &Receiver<bool>, inputs: &Sender<Input>) {
    let mut last: Option<Instant> = None;
    let mut interval = SOONEST;
    while let Ok(mut fresh) = asked.recv() {
        loop {
            if fresh {
                interval = SOONEST;
            }
            let wait = last.map_or(Duration::ZERO, |at| interval.saturating_sub(at.elapsed()));
            if wait.is_zero() {
                break;
            }
            match asked.recv_timeout(wait) {
                Ok(again) => fresh = again,
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
        let found = agents();
        last = Some(Instant::now());
        interval = (interval * 2).min(RAREST);
        if !found.is_empty() && inputs.send(Input::Agents(found)).is_err() {
            return;
        }
    }
}
