//! The program under test, as a child process.

use std::{
    fs::{self, File},
    io::{Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;

use crate::socket::Socket;

/// The kernel's unit of CPU time in `/proc/PID/stat`, seconds.
const TICK: f64 = 0.01;
/// History counts as committed once it is read and no event has arrived for this long.
const STABLE: Duration = Duration::from_millis(1500);
/// Time limit for every wait.
const PATIENCE: Duration = Duration::from_secs(600);

/// The directories of a child.
pub(crate) struct ChildDirs<'a> {
    pub(crate) home: &'a Path,
    pub(crate) data: &'a Path,
    /// `XDG_CONFIG_HOME`.
    pub(crate) config: &'a Path,
}

/// A running `capture serve`. Dropping it kills it.
pub(crate) struct Program {
    child: Child,
    data: PathBuf,
    pub(crate) started_at: Instant,
    pub(crate) address: String,
    pub(crate) token: String,
}

#[derive(Deserialize)]
struct Endpoint {
    url: String,
    pid: u32,
    token_file: PathBuf,
}

/// The state after reading history.
pub(crate) struct Settled {
    /// When the last event of the history was seen committed.
    pub(crate) at: Instant,
    /// The last position.
    pub(crate) events: u64,
}

/// The state of the full-text index.
#[derive(Deserialize)]
pub(crate) struct IndexStatus {
    state: String,
    indexed: u64,
    pub(crate) texts: u64,
    pub(crate) bytes: u64,
}

impl Program {
    /// Starts the program without waiting for it.
    pub(crate) fn launch(place: &ChildDirs<'_>) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_capture"));
        fs::create_dir_all(place.data).unwrap();
        let log = File::create(place.data.join("capture.bench.log")).unwrap();
        command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(place.data);
        command
            .env_clear()
            .env("HOME", place.home)
            .env("XDG_CONFIG_HOME", place.config)
            .env("PATH", "/usr/bin:/bin")
            .env("CAPTURE_LOG", "warn");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let started_at = Instant::now();
        let child = command.spawn().unwrap();
        Self { child, data: place.data.to_owned(), started_at, address: String::new(), token: String::new() }
    }

    /// Waits until the program publishes its address.
    pub(crate) fn found(mut self) -> Self {
        let file = self.data.join("endpoint.json");
        loop {
            let endpoint: Option<Endpoint> = fs::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok());
            if let Some(endpoint) = endpoint.filter(|e| e.pid == self.child.id()) {
                self.address = endpoint.url.trim_start_matches("http://").trim_end_matches('/').to_owned();
                self.token = fs::read_to_string(endpoint.token_file).unwrap().trim().to_owned();
                return self;
            }
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!(
                    "capture ended with {status}: {}",
                    fs::read_to_string(self.data.join("capture.bench.log")).unwrap_or_default()
                );
            }
            assert!(self.started_at.elapsed() < PATIENCE, "capture does not say where it is");
            pause(Duration::from_micros(200));
        }
    }

    pub(crate) fn start(place: &ChildDirs<'_>) -> Self {
        Self::launch(place).found()
    }

    /// The status and the body of a response.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (address, token) = (&self.address, &self.token);
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// The sum of a metric over all labels.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let (_, text) = self.get("/metrics");
        let of = |line: &str| {
            line.strip_prefix(name)
                .filter(|rest| rest.starts_with([' ', '{']))
                .and_then(|rest| rest.rsplit(' ').next()?.parse::<u64>().ok())
        };
        text.lines().filter_map(of).sum()
    }

    /// Waits until all history is read and committed.
    pub(crate) fn settled(&self) -> Settled {
        let mut last = Settled { at: Instant::now(), events: 0 };
        loop {
            let events = self.metric("capture_events_committed_total");
            if events != last.events {
                last = Settled { at: Instant::now(), events };
            }
            let read = || {
                self.metric("capture_source_files") > 0
                    && !self.get("/api/v1/health/sources").1.contains("reading history")
            };
            if last.at.elapsed() > STABLE && read() {
                return last;
            }
            assert!(self.started_at.elapsed() < PATIENCE, "the history is never done");
            pause(Duration::from_millis(20));
        }
    }

    /// Waits until all history is searchable; returns the time.
    pub(crate) fn searchable(&self) -> (Instant, IndexStatus) {
        let events = self.settled().events;
        loop {
            let status: IndexStatus = serde_json::from_str(&self.get("/api/v1/search/index").1).unwrap();
            if status.state == "ready" && status.indexed >= events {
                return (Instant::now(), status);
            }
            assert!(self.started_at.elapsed() < PATIENCE, "the index is never done");
            pause(Duration::from_millis(10));
        }
    }

    /// Subscribes to these sessions, or to all if none are given.
    pub(crate) fn subscribe(&self, sessions: &[&str]) -> Socket {
        let mut socket = Socket::connect(&self.address, &self.token, "/api/v1/ws");
        if !sessions.is_empty() {
            socket.say(&format!("{{\"subscribe\":[\"{}\"]}}", sessions.join("\",\"")));
        }
        socket
    }

    /// Waits until the server lists the session with this provider id; returns our id.
    pub(crate) fn session(&self, provider_id: &str) -> String {
        #[derive(Deserialize)]
        struct Session {
            id: String,
        }
        loop {
            let (status, body) = self.get(&format!("/api/v1/sessions/{provider_id}"));
            if status == 200 {
                return serde_json::from_str::<Session>(&body).unwrap().id;
            }
            assert!(self.started_at.elapsed() < PATIENCE, "session {provider_id} never comes");
            pause(Duration::from_millis(5));
        }
    }

    /// CPU time of the program, user and system, seconds.
    pub(crate) fn cpu(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        let ticks = |index: usize| fields[index].parse::<f64>().unwrap();
        (ticks(11) + ticks(12)) * TICK
    }

    /// CPU time of the running threads, with nanosecond resolution.
    pub(crate) fn cpu_of_threads(&self) -> f64 {
        self.threads().iter().map(|(_, cpu)| cpu).sum()
    }

    /// Name and CPU time of each running thread, busiest first.
    pub(crate) fn threads(&self) -> Vec<(String, f64)> {
        let mut threads = Vec::new();
        for task in fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap().flatten() {
            let of = |name: &str| fs::read_to_string(task.path().join(name)).unwrap_or_default();
            let ns = of("schedstat").split(' ').next().and_then(|ns| ns.parse::<f64>().ok());
            threads.push((of("comm").trim().to_owned(), ns.unwrap_or(0.0) / 1e9));
        }
        threads.sort_by(|a, b| b.1.total_cmp(&a.1));
        threads
    }

    /// A line of the program's `/proc/PID/status`, MB.
    pub(crate) fn memory(&self, key: &str) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).unwrap_or_default();
        line.split_whitespace().next().and_then(|kb| kb.parse::<f64>().ok()).unwrap_or(f64::NAN) * 1024.0 / 1e6
    }

    /// Number of bytes the program caused to be written to disk.
    pub(crate) fn written(&self) -> f64 {
        let io = fs::read_to_string(format!("/proc/{}/io", self.child.id())).unwrap_or_default();
        let line = io.lines().find_map(|line| line.strip_prefix("write_bytes: "));
        line.and_then(|bytes| bytes.parse().ok()).unwrap_or(f64::NAN)
    }

    /// Asks the program to exit and waits for it.
    pub(crate) fn stop(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Sleeps.
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}
