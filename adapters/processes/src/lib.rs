//! The process table: finds the processes that are agents, and notices when they end.
//!
//! [`ProcessTable`] looks through `/proc` for agents of our own user; [`Watcher`] waits for processes to
//! end (pidfd, so that it costs nothing while they live). A pid alone names nobody: it is always
//! held together with the start time of its process.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

mod descent;
pub mod local_socket;
mod path_search;
mod tcp;
mod tcp_user;
pub mod wake;

use std::{
    collections::HashMap,
    ffi::OsString,
    fs,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    thread::JoinHandle,
    time::Duration,
};

use crossbeam_channel::{Receiver, Sender, bounded};
use events::{Provider, RunId};

use agents::{Agent, Homes, RUN_CHILD, RUN_VARIABLE, agent::ALL};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, WaitOptions, pidfd_open, waitpid},
};

pub use descent::{Descent, agent_descent, descends_from_agent, mark_child, mark_program, seal_if_agents};
pub use path_search::{check_executable, find_program};
pub use tcp::{holders_of_tcp, listener_of_tcp};
pub use tcp_user::user_of_tcp;
use wake::{Wake, WakeReceiver};

/// A process that looks like an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentProcess {
    /// Which agent.
    pub provider: Provider,
    /// Process id.
    pub pid: u32,
    /// Start in clock ticks since boot.
    pub start_ticks: u64,
    /// The process that started it; of a child the first of its agent's processes, which may have started it
    /// through others (Qwen Code 0.24.4 starts itself again twice).
    pub parent: Option<u32>,
    /// Started by another process of the same agent: a part of it, not one of its own.
    pub child: bool,
    /// Working directory.
    pub cwd: PathBuf,
    /// Serves sessions for other processes (a daemon), so its directory says nothing.
    pub shared: bool,
    /// The run it belongs to, as its environment says; a daemon belongs to none, whoever started it.
    pub run: Option<RunId>,
    /// Regular files it has open below a home of agents, transcripts among them.
    pub open_files: Vec<PathBuf>,
}

/// Start time of a live process in clock ticks since boot (`/proc/<pid>/stat`, field 22); `None`
/// when there is no such process, or only its remains.
#[must_use]
pub fn start_ticks(pid: u32) -> Option<u64> {
    if matches!(stat_field(pid, 3)?.as_str(), "Z" | "X") {
        return None;
    }
    stat_field(pid, 22)?.parse().ok()
}

/// A field of `/proc/<pid>/stat`, numbered as in proc(5), from 3.
fn stat_field(pid: u32, number: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may hold anything, parentheses too.
    stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace().nth(number.checked_sub(3)?).map(str::to_owned)
}

/// Whether the process that started at `start` (0: not known) is alive under this pid.
#[must_use]
pub fn is_alive(pid: u32, start: u64) -> bool {
    start_ticks(pid).is_some_and(|now| start == 0 || now == start)
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
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let pids: Vec<u32> = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
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
fn launcher(pid: u32, provider: Provider, processes: &[(u32, Provider, Option<u32>)]) -> Option<u32> {
    let parent = |of: u32| processes.iter().find(|(pid, ..)| *pid == of).and_then(|(_, _, parent)| *parent);
    let is_same = |pid: &u32| processes.iter().any(|(one, of, _)| one == pid && *of == provider);
    // No more steps than processes: what was read while pids were given out again may go round.
    std::iter::successors(Some(pid), |pid| parent(*pid).filter(is_same)).take(processes.len()).skip(1).last()
}

fn inspect(pid: u32, homes: &Homes) -> Option<AgentProcess> {
    use std::os::unix::fs::MetadataExt;
    let dir = PathBuf::from(format!("/proc/{pid}"));
    if fs::metadata(&dir).ok()?.uid() != rustix::process::geteuid().as_raw() {
        return None;
    }
    let arguments = fs::read(dir.join("cmdline")).ok()?;
    let (provider, shared) = which_agent(&arguments)?;
    let environment = fs::read(dir.join("environ")).ok()?;
    if !homes_in(provider, &environment).iter().any(|home| homes.of(provider).contains(home)) {
        return None;
    }
    Some(AgentProcess {
        provider,
        pid,
        start_ticks: start_ticks(pid)?,
        parent: stat_field(pid, 4).and_then(|p| p.parse().ok()),
        child: false,
        cwd: fs::read_link(dir.join("cwd")).ok()?,
        shared,
        run: run_in(&environment).filter(|_| !shared),
        open_files: open_files(&dir),
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
    let shared = which_agent(&fs::read(format!("/proc/{pid}/cmdline")).ok()?).is_some_and(|(_, shared)| shared);
    if shared { None } else { run_in(&fs::read(format!("/proc/{pid}/environ")).ok()?) }
}

fn variable_in<'a>(environment: &'a [u8], name: &str) -> Option<&'a str> {
    let value =
        environment.split(|b| *b == 0).find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
    std::str::from_utf8(value).ok().filter(|v| !v.is_empty())
}

/// Where an agent with this environment may keep its sessions. Nothing else of it is looked at.
fn homes_in(provider: Provider, environment: &[u8]) -> Vec<PathBuf> {
    let variable = |name: &str| variable_in(environment, name).map(PathBuf::from);
    Agent::of(provider).map_or_else(Vec::new, |agent| agent.home.directories(variable))
}

/// Subcommands of an agent that hold no conversation.
const NO_CONVERSATION: &[&str] = &[
    "mcp",
    "mcp-server",
    "login",
    "logout",
    "update",
    "upgrade",
    "doctor",
    "completion",
    "config",
    "install",
    "--version",
    "-v",
    "--help",
    "-h",
];

/// Tells an agent that holds a conversation by its command line; with whether it serves others.
fn which_agent(arguments: &[u8]) -> Option<(Provider, bool)> {
    let (agent, word) = agent_named(arguments)?;
    if word.is_some_and(|w| NO_CONVERSATION.contains(&w)) {
        return None;
    }
    Some((agent.provider, word.is_some() && word == agent.daemon_word))
}

/// Options of Node.js that take the next word as their value (`node --help`, 24).
const OPTIONS_WITH_VALUE: [&str; 7] =
    ["-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions"];

/// Tells an agent by its command line, the program or the script an interpreter runs, and gives the
/// word behind its name.
fn agent_named(arguments: &[u8]) -> Option<(&'static Agent, Option<&str>)> {
    let mut words = arguments.split(|b| *b == 0).map(|w| std::str::from_utf8(w).unwrap_or_default());
    let first = words.next()?;
    let base = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
    let name = base(first);
    let by_name = |name: &str| {
        let name = name.trim_end_matches(".js");
        ALL.into_iter().find(|agent| agent.programs.contains(&name))
    };
    let agent = if matches!(name.as_str(), "node" | "bun" | "deno") || name.starts_with("python") {
        let script = loop {
            match words.next()? {
                option if OPTIONS_WITH_VALUE.contains(&option) => drop(words.next()),
                option if option.starts_with('-') => {}
                script => break script,
            }
        };
        // Some are started by the path of their package, and not by their name.
        let below = |agent: &&Agent| agent.script_below.is_some_and(|part| script.contains(part));
        ALL.into_iter().find(below).or_else(|| by_name(&base(script)))?
    } else {
        by_name(&name)?
    };
    Some((agent, words.next()))
}

/// The agent a command starts; `None` when it starts none.
#[must_use]
pub fn agent_of_words(words: &[OsString]) -> Option<Provider> {
    use std::os::unix::ffi::OsStrExt;
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    which_agent(&words.join(&0)).map(|(provider, _)| provider)
}

/// The first word behind a program's name.
fn verb(arguments: &[u8]) -> Option<&[u8]> {
    arguments.split(|byte| *byte == 0).nth(1)
}

/// The agent a process is, [`Provider::Unknown`] when it is none; `None` when it cannot be looked
/// at, or is one of ours that is about to become another program.
#[must_use]
pub fn agent_of(pid: u32) -> Option<Provider> {
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).ok().filter(|words| !words.is_empty())?;
    if verb(&arguments) == Some(RUN_CHILD.as_bytes()) {
        return None;
    }
    Some(which_agent(&arguments).map_or(Provider::Unknown, |(provider, _)| provider))
}

/// The agent in a process group, as its terminal's foreground has one: the leader, or what the
/// leader started in the same group (`npx`, `sh -c`, `env`). `None` when the leader cannot be
/// looked at.
#[must_use]
pub fn agent_in_group(group: u32) -> Option<Provider> {
    let leader = agent_of(group)?;
    if leader != Provider::Unknown {
        return Some(leader);
    }
    let (mut looked, mut at) = (vec![group], 0);
    while let Some(pid) = looked.get(at).copied() {
        at += 1;
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        for child in children.split_ascii_whitespace().filter_map(|c| c.parse().ok()) {
            if looked.len() >= GROUP || stat_field(child, 5).and_then(|g| g.parse().ok()) != Some(group) {
                continue;
            }
            match agent_of(child) {
                Some(Provider::Unknown) | None => looked.push(child),
                agent => return agent,
            }
        }
    }
    Some(Provider::Unknown)
}

/// Most processes of a group that are examined.
const GROUP: usize = 32;

/// Whether a process is this one or was started by it, however far back.
#[must_use]
pub fn descends_from(pid: u32, ancestor: u32) -> bool {
    let line = std::iter::successors(Some(pid), |at| parent(*at));
    line.take(GENERATIONS).take_while(|at| *at > 1).any(|at| at == ancestor)
}

/// The process that started this one.
#[must_use]
pub fn parent(pid: u32) -> Option<u32> {
    stat_field(pid, 4)?.parse().ok()
}

/// Collects the exit statuses of children that were adopted and have ended; `program` is left to whoever
/// waits for it. Nobody else would: a process that adopts what others cut loose is their last parent.
pub fn reap_adopted(program: Pid) {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    for task in tasks {
        let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        let adopted = children.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
        for pid in adopted.filter(|pid| *pid != program) {
            // One that still runs is left alone.
            waitpid(Some(pid), WaitOptions::NOHANG).ok();
        }
    }
}

/// Most descriptors of a process that are examined.
const DESCRIPTORS: usize = 512;

fn open_files(process: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(process.join("fd")) else { return Vec::new() };
    entries
        .take(DESCRIPTORS)
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .filter(|target| target.extension().is_some_and(|e| e == "jsonl" || e == "json"))
        .collect()
}

/// Most ancestors of a process that are followed.
const GENERATIONS: usize = 64;

/// The nearest agent among a process and those that started it: its pid, its start, and whether it
/// serves sessions for others.
#[must_use]
pub fn nearest_agent(pid: u32) -> Option<(u32, u64, bool)> {
    let mut at = pid;
    for _ in 0..GENERATIONS {
        if at <= 1 {
            return None;
        }
        if let Some((_, shared)) = which_agent(&fs::read(format!("/proc/{at}/cmdline")).ok()?) {
            return Some((at, start_ticks(at)?, shared));
        }
        at = stat_field(at, 4)?.parse().ok()?;
    }
    None
}

/// Whether an agent was started by this process: between them there are only processes of agents, as the
/// script that starts a binary.
#[must_use]
pub fn is_started_by(agent: u32, starter: u32) -> bool {
    let mut at = agent;
    for _ in 0..GENERATIONS {
        match parent(at) {
            Some(above) if above == starter => return true,
            Some(above) if above > 1 && agent_of(above).is_some_and(|agent| agent != Provider::Unknown) => at = above,
            Some(_) | None => return false,
        }
    }
    false
}

/// A process that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedProcess {
    /// Process id.
    pub pid: u32,
    /// Start in clock ticks since boot.
    pub start_ticks: u64,
}

/// Most requests queued for the watcher.
const REQUESTS: usize = 4096;
/// Interval between checks of a process where pidfd is not available.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Waits for processes to end, on a thread of its own.
pub struct Watcher {
    requests: Option<Sender<EndedProcess>>,
    wake: Wake,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    /// Starts the thread; `ended` is called on it, once for each watched process.
    ///
    /// # Errors
    /// When the thread or its wake-up descriptor cannot be made.
    pub fn start(ended: impl FnMut(EndedProcess) + Send + 'static) -> std::io::Result<Self> {
        let (requests, incoming) = bounded(REQUESTS);
        let (wake, woken) = wake::pair()?;
        let thread =
            std::thread::Builder::new().name("processes".into()).spawn(move || watch(&incoming, &woken, ended))?;
        Ok(Self { requests: Some(requests), wake, thread: Some(thread) })
    }

    /// Watches a process. One that is gone already is reported at once. Never waits: the one who
    /// calls may be the one the reports go to.
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

fn watch(incoming: &Receiver<EndedProcess>, woken: &WakeReceiver, mut ended: impl FnMut(EndedProcess)) {
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
                        .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
                    // Asked after the descriptor was made: now it can only be the right one.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(words: &[&str]) -> Vec<u8> {
        words.join("\0").into_bytes()
    }

    #[test]
    fn tells_agents_by_their_command_line() {
        let who = |words: &[&str]| which_agent(&arguments(words));
        assert_eq!(who(&["/usr/bin/claude", "--resume"]), Some((Provider::Claude, false)));
        assert_eq!(
            who(&["node", "--max-old-space-size=8192", "/usr/lib/gemini.js", "-p"]),
            Some((Provider::Gemini, false))
        );
        assert_eq!(who(&["/opt/codex/codex", "app-server", "--listen", "unix://"]), Some((Provider::Codex, true)));
        assert_eq!(who(&["pi", "--continue"]), Some((Provider::Pi, false)));
        assert_eq!(who(&["bun", "/home/dev/.bun/bin/omp"]), Some((Provider::Pi, false)));
        let package = "/usr/lib/node_modules/@earendil-works/pi-coding-agent/dist/cli.js";
        assert_eq!(who(&["node", package]), Some((Provider::Pi, false)));
        let processes = [
            (1, Provider::Qwen, Some(9)),
            (2, Provider::Qwen, Some(1)),
            (3, Provider::Qwen, Some(2)),
            (4, Provider::Pi, Some(3)),
        ];
        let launchers = processes.map(|(pid, provider, _)| launcher(pid, provider, &processes));
        assert_eq!(launchers, [None, Some(1), Some(1), None]);
        let round = [(1, Provider::Qwen, Some(2)), (2, Provider::Qwen, Some(1))];
        assert_eq!(launcher(1, Provider::Qwen, &round), Some(2));
        let qwen = "/opt/lib/node_modules/@qwen-code/qwen-code/cli.js";
        assert_eq!(who(&["node", "--expose-gc", qwen, "--yolo"]), Some((Provider::Qwen, false)));
        assert_eq!(who(&["node", "/opt/bin/qwen"]), Some((Provider::Qwen, false)));
        assert_eq!(who(&["node", "/usr/bin/pi", "install", "x"]), None);
        assert_eq!(
            who(&["node", "-r", "./x.js", "--import", "y.mjs", "/usr/bin/codex"]),
            Some((Provider::Codex, false))
        );
        assert_eq!(who(&["vim", "claude"]), None);
        assert_eq!(who(&["grep", "codex"]), None);
        assert_eq!(who(&[""]), None);
    }

    #[test]
    fn knows_whose_child_a_process_is() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        assert!(descends_from(child.id(), std::process::id()) && !descends_from(std::process::id(), child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn an_agent_is_found_behind_what_started_it() {
        use std::os::unix::process::CommandExt;
        let dir = tempfile::tempdir().unwrap();
        let agent = dir.path().join("claude");
        std::os::unix::fs::symlink("/bin/sh", &agent).unwrap();
        let mut child = std::process::Command::new("sh")
            .args(["-c", "echo begun; \"$0\" -c 'echo begun; read x; :'; :"])
            .arg(&agent)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
        lines.next().unwrap().unwrap();
        lines.next().unwrap().unwrap();
        assert_eq!(agent_of(child.id()), Some(Provider::Unknown));
        assert_eq!(agent_in_group(child.id()), Some(Provider::Claude));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(agent_in_group(u32::MAX - 1), None);
    }

    #[test]
    fn finds_the_home_an_agent_uses() {
        let environment = b"PATH=/bin\0HOME=/home/a\0CODEX_HOME=/srv/codex\0XHOME=/x\0";
        assert_eq!(homes_in(Provider::Claude, environment), [PathBuf::from("/home/a/.claude")]);
        assert_eq!(homes_in(Provider::Codex, environment), [PathBuf::from("/srv/codex")]);
        assert_eq!(homes_in(Provider::Gemini, environment), [PathBuf::from("/home/a/.gemini")]);
        assert_eq!(homes_in(Provider::Gemini, b"PATH=/bin"), Vec::<PathBuf>::new());
        assert_eq!(homes_in(Provider::Pi, environment), ["/home/a/.pi/agent", "/home/a/.omp/agent"].map(PathBuf::from));
        let told = b"HOME=/home/a\0PI_CODING_AGENT_DIR=/srv/pi\0";
        assert_eq!(homes_in(Provider::Pi, told), [PathBuf::from("/srv/pi")]);
    }

    #[test]
    fn reports_an_ended_process_once_and_a_reused_pid_as_ended() {
        let (told, heard) = bounded(8);
        let watcher = Watcher::start(move |e| told.send(e).unwrap()).unwrap();
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let start = start_ticks(child.id()).unwrap();
        watcher.watch(child.id(), start);
        watcher.watch(child.id(), start);
        watcher.watch(child.id(), start + 1);
        assert_eq!(
            heard.recv_timeout(Duration::from_secs(10)),
            Ok(EndedProcess { pid: child.id(), start_ticks: start + 1 })
        );
        child.kill().unwrap();
        assert_eq!(
            heard.recv_timeout(Duration::from_secs(10)),
            Ok(EndedProcess { pid: child.id(), start_ticks: start })
        );
        child.wait().unwrap();
        drop(watcher);
        assert!(heard.try_recv().is_err());
        assert!(!is_alive(child.id(), start));
    }
}
