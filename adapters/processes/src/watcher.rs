//! Reports when a process ends, on a separate thread.

use std::{
    collections::HashMap,
    os::fd::{AsFd, OwnedFd},
    thread::JoinHandle,
    time::Duration,
};

use crossbeam_channel::{Receiver, Sender, bounded};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::Pid,
};

use crate::{
    os,
    stat::is_alive,
    wake::{self, Wake, WakeReceiver},
};

/// A process that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedProcess {
    /// Process id.
    pub pid: u32,
    /// Start in clock ticks since boot.
    pub start_ticks: u64,
}

/// Maximum number of requests queued for the watcher.
const REQUESTS: usize = 4096;

/// Interval between checks of a process if pidfd is not available.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Waits for processes to end, on a separate thread.
pub struct Watcher {
    requests: Option<Sender<EndedProcess>>,
    wake: Wake,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    /// Starts the thread, which calls `ended` once for each watched process.
    ///
    /// # Errors
    /// If the thread or its wake-up descriptor cannot be created.
    pub fn start(ended: impl FnMut(EndedProcess) + Send + 'static) -> std::io::Result<Self> {
        let (requests, incoming) = bounded(REQUESTS);
        let (wake, woken) = wake::pair()?;
        let thread =
            std::thread::Builder::new().name("processes".into()).spawn(move || watch(&incoming, &woken, ended))?;
        Ok(Self { requests: Some(requests), wake, thread: Some(thread) })
    }

    /// Watches a process. A process that has already ended is reported immediately. Never blocks, because the caller
    /// may be the thread that receives the reports.
    pub fn watch(&self, pid: u32, start_ticks: u64) {
        if let Some(requests) = &self.requests {
            if requests.try_send(EndedProcess { pid, start_ticks }).is_err() {
                tracing::warn!(pid, "too many watched processes; the exit of this one will not be noticed");
            }
            self.wake.wake();
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.requests = None;
        self.wake.wake();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

pub(crate) fn watch(incoming: &Receiver<EndedProcess>, woken: &WakeReceiver, mut ended: impl FnMut(EndedProcess)) {
    let mut watched: HashMap<EndedProcess, Option<OwnedFd>> = HashMap::new();
    loop {
        let mut stopped = false;
        loop {
            match incoming.try_recv() {
                Ok(process) if watched.contains_key(&process) => {}
                Ok(process) => {
                    let descriptor = i32::try_from(process.pid)
                        .ok()
                        .and_then(Pid::from_raw)
                        .and_then(|pid| os::exit_descriptor(pid).ok());
                    // Checked after opening the descriptor, which therefore refers to this process and not to a later
                    // one with the same pid.
                    if is_alive(process.pid, process.start_ticks) {
                        watched.insert(process, descriptor);
                    } else {
                        ended(process);
                    }
                }
                Err(crossbeam_channel::TryRecvError::Empty) => break,
                Err(crossbeam_channel::TryRecvError::Disconnected) => {
                    stopped = true;
                    break;
                }
            }
        }
        if stopped {
            return;
        }
        let blind = watched.values().any(Option::is_none);
        let mut fds: Vec<PollFd<'_>> = vec![PollFd::from_borrowed_fd(woken.as_fd(), PollFlags::IN)];
        fds.extend(watched.values().flatten().map(|fd| PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)));
        let timeout = blind.then(|| Timespec { tv_sec: 0, tv_nsec: LOOK_EVERY.as_nanos() as i64 });
        let result = poll(&mut fds, timeout.as_ref());
        drop(fds);
        woken.drain();
        if result.is_err() {
            continue;
        }
        let gone: Vec<EndedProcess> = watched.keys().filter(|p| !is_alive(p.pid, p.start_ticks)).copied().collect();
        for process in gone {
            watched.remove(&process);
            ended(process);
        }
    }
}

impl std::hash::Hash for EndedProcess {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.pid, self.start_ticks).hash(state);
    }
}
