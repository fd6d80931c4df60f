//! Plays one recording in one mode on a temporary machine, and polls the shown status.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use agents::{Agent, agent::ALL};
use events::{Confidence, Reason, State};
use serde::Deserialize;

use super::{
    Mode, POLL, Source,
    agent::{Files, PART, Part},
    case::{Case, FolderStep},
    report::{Outcome, judge},
    steady_ms, wait_until,
};
use crate::{
    http::Client,
    program::Machine,
    terminal::rank,
    terminal_user::{User, end_all},
};

/// The time from the start of the machine to second 0.
const LEAD_MS: i64 = 1500;
/// How long before its recorded start a process is started, to make up for its startup time.
const START_MS: i64 = 100;
/// The same lead within `capture run`.
const RUN_MS: i64 = 300;
/// How long the status is polled after the last true change.
const AFTER_MS: i64 = 1500;

/// Programs under the names that are looked up: `capture` and each agent. The agents are this program.
#[derive(Debug)]
pub struct Programs {
    dir: tempfile::TempDir,
    capture: PathBuf,
}

impl Programs {
    /// `own` plays the agents, and is also capture unless another program is given.
    ///
    /// # Errors
    /// If the programs cannot be linked or copied.
    pub fn new(own: &Path, capture: Option<&Path>) -> std::io::Result<Self> {
        let dir = tempfile::tempdir()?;
        for name in ALL.iter().map(|agent| agent.programs[0]).chain(["capture"]) {
            let to = dir.path().join(name);
            if fs::hard_link(own, &to).is_err() {
                fs::copy(own, &to)?;
            }
        }
        let capture = capture.map_or_else(|| dir.path().join("capture"), Path::to_path_buf);
        Ok(Self { dir, capture })
    }
}

/// The status shown from this time on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shown {
    /// The time, ms from second 0.
    pub at: i64,
    /// The state; `None` while there was no session.
    pub state: Option<State>,
    /// The reason.
    pub reason: Option<Reason>,
    /// The reported confidence.
    pub confidence: Option<Confidence>,
}

#[derive(Debug, Deserialize)]
struct Sessions {
    sessions: Vec<Session>,
}

#[derive(Debug, Deserialize)]
struct Session {
    parent_session_id: Option<String>,
    status: Status,
}

#[derive(Debug, Deserialize)]
struct Status {
    state: State,
    reason: Option<Reason>,
    confidence: Option<Confidence>,
}

/// Plays and judges all cases, `jobs` at once; `told` is called as each ends.
pub fn play_all(
    cases: &[(&Case, Mode)],
    programs: &Programs,
    jobs: usize,
    told: &(dyn Fn(&Outcome) + Sync),
) -> Vec<Outcome> {
    let todo = Mutex::new(cases.iter());
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let next = todo.lock().unwrap().next();
                    let Some((case, mode)) = next else { return };
                    let outcome = play(case, *mode, programs);
                    told(&outcome);
                    done.lock().unwrap().push(outcome);
                }
            });
        }
    });
    done.into_inner().unwrap()
}

/// Plays and judges one case. A failure is reported in the outcome.
#[must_use]
pub fn play(case: &Case, mode: Mode, programs: &Programs) -> Outcome {
    let shown = std::panic::catch_unwind(|| shown(case, mode, programs)).unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().cloned();
        Err(words.or_else(|| panic.downcast_ref::<&str>().map(|w| (*w).to_owned())).unwrap_or_default())
    });
    judge(case, mode, shown)
}

fn shown(case: &Case, mode: Mode, programs: &Programs) -> Result<Vec<Shown>, String> {
    let machine = Machine::new(&programs.capture.to_string_lossy());
    let server = machine.serve();
    let provider = case.provider.to_string();
    let has_hooks = Agent::of(case.provider).is_some_and(|agent| agent.hooks.is_some());
    if mode.has(Source::Hooks) && has_hooks {
        machine.newest_agents();
        let words = ["hooks", "install", "--agent", &provider, "--yes"];
        let output = machine.command(&words).output().map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(format!("capture hooks install: {}", String::from_utf8_lossy(&output.stderr)));
        }
    }
    let zero = steady_ms() + LEAD_MS;
    let wall = home::clock::now().as_millisecond() + LEAD_MS;
    let case = case.moved(&machine.home(), &machine.project(), wall);
    let end = case.truth.last().map_or(0, |t| t.at) + AFTER_MS;
    let stop = AtomicBool::new(false);
    let client = &server.client;
    let shown = std::thread::scope(|scope| {
        let watching = scope.spawn(|| watch(client, zero, &stop));
        let mut stage = Stage::new(&case, mode, programs, &machine, client, zero);
        let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| stage.play(end)));
        stop.store(true, Ordering::Relaxed);
        stage.clear();
        let shown = watching.join().unwrap();
        played.map_or_else(|panic| std::panic::resume_unwind(panic), |()| shown)
    });
    drop(server);
    end_all(&machine.data());
    Ok(shown)
}

/// Polls until `stop` is set; collects the changes between answers.
fn watch(client: &Client, zero: i64, stop: &AtomicBool) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let asked = steady_ms();
        let patience = Duration::from_secs(5);
        let answer = client.send("GET", "/api/v1/sessions?active=all&limit=200", None, patience);
        // A missing answer changes nothing: the last status remains.
        if let Ok(Ok(answer)) = answer.map(|a| serde_json::from_slice::<Sessions>(&a.body)) {
            let own = answer.sessions.into_iter().filter(|s| s.parent_session_id.is_none()).map(|s| s.status);
            let most = own.min_by_key(|status| rank(Some(status.state)));
            let now = Shown {
                at: steady_ms() - zero,
                state: most.as_ref().map(|s| s.state),
                reason: most.as_ref().and_then(|s| s.reason),
                confidence: most.as_ref().and_then(|s| s.confidence),
            };
            if all.last().is_none_or(|last| Shown { at: now.at, ..*last } != now) {
                all.push(now);
            }
        }
        wait_until(asked + i64::try_from(POLL.as_millis()).unwrap());
    }
    all
}

/// The playing processes and terminals, and the files that none of these processes writes.
struct Stage<'a> {
    case: &'a Case,
    mode: Mode,
    programs: &'a Programs,
    machine: &'a Machine,
    client: &'a Client,
    zero: i64,
    users: BTreeMap<usize, User>,
    agents: Vec<Child>,
    /// The files of a daemon, and those that existed before the first start.
    outside: Files,
}

impl<'a> Stage<'a> {
    fn new(
        case: &'a Case,
        mode: Mode,
        programs: &'a Programs,
        machine: &'a Machine,
        client: &'a Client,
        zero: i64,
    ) -> Self {
        let outside = Files::new(machine.home());
        Self { case, mode, programs, machine, client, zero, users: BTreeMap::new(), agents: Vec::new(), outside }
    }

    fn play(&mut self, end: i64) {
        let lives = lives(self.case);
        let nobodys = |at: i64| !lives.iter().any(|life| life.has(at));
        let mut todo: Vec<(i64, &FolderStep)> = Vec::new();
        for (at, what) in &self.case.ops {
            let from = match what {
                FolderStep::Spawn { .. } => Some(at - if self.mode.has(Source::Pty) { RUN_MS } else { START_MS }),
                FolderStep::In { .. } => self.mode.has(Source::Pty).then_some(*at),
                FolderStep::Append { .. } | FolderStep::Write { .. } | FolderStep::Remove { .. } => {
                    (self.mode.has(Source::Files) && nobodys(*at)).then_some(*at)
                }
                FolderStep::Exit { .. }
                | FolderStep::Out { .. }
                | FolderStep::Hook { .. }
                | FolderStep::Otlp { .. }
                | FolderStep::Other => None,
            };
            todo.extend(from.map(|from| (from, what)));
        }
        todo.sort_by_key(|(at, _)| *at);
        for (at, what) in todo {
            self.look_on(at);
            match what {
                FolderStep::Spawn { run } => {
                    if let Some(life) = lives.iter().find(|life| life.run == *run) {
                        self.start(life);
                    }
                }
                FolderStep::In { run, data } => {
                    if let Some(user) = self.users.get_mut(run) {
                        user.types(data);
                    }
                }
                FolderStep::Append { .. } | FolderStep::Write { .. } | FolderStep::Remove { .. } => {
                    self.outside.apply(what)
                }
                FolderStep::Exit { .. }
                | FolderStep::Out { .. }
                | FolderStep::Hook { .. }
                | FolderStep::Otlp { .. }
                | FolderStep::Other => {}
            }
        }
        self.look_on(end);
    }

    /// Reads the output of the terminals until then, and reaps processes that ended.
    fn look_on(&mut self, until: i64) {
        loop {
            let left = self.zero + until - steady_ms();
            let Ok(left @ 1..) = u64::try_from(left) else { return };
            for agent in &mut self.agents {
                agent.try_wait().ok();
            }
            let patience = Duration::from_millis(left.min(20));
            if self.users.is_empty() {
                std::thread::park_timeout(patience);
            }
            for user in self.users.values_mut() {
                user.looks_on(patience);
            }
        }
    }

    fn start(&mut self, life: &Life) {
        let plays = |what: &FolderStep| match what {
            FolderStep::Out { run, .. } => self.mode.has(Source::Pty) && *run == life.run,
            FolderStep::Append { .. } | FolderStep::Write { .. } | FolderStep::Remove { .. } => {
                self.mode.has(Source::Files)
            }
            FolderStep::Hook { .. } => self.mode.has(Source::Hooks),
            FolderStep::Otlp { .. } => self.mode.has(Source::Otlp),
            FolderStep::Spawn { .. } | FolderStep::Exit { .. } | FolderStep::In { .. } | FolderStep::Other => false,
        };
        let ops = self.case.ops.iter().filter(|(at, what)| life.has(*at) && plays(what)).cloned();
        let of = Agent::of(self.case.provider);
        let settings =
            of.and_then(|agent| Some(format!("{}/{}", agent.home.usual[0], agent.hooks.as_ref()?.settings_file)));
        let part = Part {
            home: self.machine.home(),
            settings: settings.unwrap_or_default(),
            zero: self.zero,
            end: life.end,
            code: life.code,
            terminal: self.mode.has(Source::Pty),
            ops: ops.collect(),
            telemetry: (self.client.address.clone(), self.client.token.clone()),
        };
        let file = self.machine.data().join(format!("part{}.json", life.run));
        fs::write(&file, serde_json::to_string(&part).unwrap()).unwrap();
        let name = self.case.provider.to_string();
        let dir = self.programs.dir.path();
        if self.mode.has(Source::Pty) {
            let script = format!("exec 2>&1; \"$PROGRAM\" run -- {name}");
            let path = format!("{}:/usr/bin:/bin", dir.display());
            let more = [("PATH", path.as_str()), (PART, file.to_str().unwrap())];
            let user = User::start_with(self.machine, &script, &more);
            user.resize(self.case.size.columns, self.case.size.rows);
            self.users.insert(life.run, user);
            return;
        }
        let template = self.machine.command(&[]);
        let mut command = Command::new(dir.join(&name));
        command.env_clear().current_dir(self.machine.project()).env(PART, &file);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        for (name, value) in template.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        self.agents.push(command.spawn().unwrap());
    }

    fn clear(&mut self) {
        self.users.clear();
        for agent in &mut self.agents {
            agent.kill().ok();
            agent.wait().ok();
        }
    }
}

/// The lifetime of one process.
struct Life {
    run: usize,
    from: i64,
    /// The time of the next start.
    until: i64,
    end: i64,
    code: Option<i32>,
}

impl Life {
    fn has(&self, at: i64) -> bool {
        self.from <= at && at < self.until && at <= self.end
    }
}

fn lives(case: &Case) -> Vec<Life> {
    let mut lives: Vec<Life> = Vec::new();
    let last = case.ops.iter().map(|(at, _)| *at).max().unwrap_or_default();
    for (at, what) in &case.ops {
        if let FolderStep::Spawn { run } = what {
            if let Some(before) = lives.last_mut() {
                before.until = *at;
            }
            lives.push(Life { run: *run, from: *at, until: i64::MAX, end: last, code: None });
        } else if let FolderStep::Exit { run, code } = what
            && let Some(life) = lives.iter_mut().find(|life| life.run == *run)
        {
            (life.end, life.code) = (*at, *code);
        }
    }
    lives
}
