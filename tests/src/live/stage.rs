//! The environment of a scenario: a machine with a temporary home, capture serving on it, a scripted model, and a user
//! at a terminal in which the agent runs under `capture run`. While it waits, the stage continuously reads the terminal
//! and queries capture; the scenario declares the truth ([`Stage::is`]).

pub mod decisions;
mod opening;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use events::{Confidence, Reason, State, Timestamp};
use host_protocol::screen::Size;
use regex::Regex;
use rustix::process::Signal;
use serde_json::Value;
use terminal::screen::{Observer, ScreenRules};

use super::{
    Agent, Hooks, Installed, Key, Setting,
    judge::{JudgedStatus, TOLERANCE_MS, Truth, WrongMs, first_wrong, times, wrong_ms},
};
use crate::{
    http::Client,
    models::{
        AnswerProgress, Model,
        script::{Script, say},
    },
    program::{Machine, Server, events},
    terminal_user::{Process, User, end_all, signal},
};

/// How long an agent may take for any step.
const AGENT: Duration = Duration::from_secs(40);
/// How long to wait for capture.
const CAPTURE: Duration = Duration::from_secs(6);
/// How long a state is left unchanged, so that capture could report something wrong.
const STAY: Duration = Duration::from_millis(1500);
/// The interval between two reads of the terminal and of capture's status.
const LOOK: Duration = Duration::from_millis(15);
/// The pause between the last letter of a prompt and Enter: without it Enter counts as part of a paste.
const BEFORE_ENTER: Duration = Duration::from_millis(400);
/// After this time Enter is pressed again: a key may be lost while an agent is busy.
const AGAIN: Duration = Duration::from_secs(3);

/// How long capture may take to find a daemon that has just started.
const DAEMON_FOUND: Duration = Duration::from_secs(6);
/// The prompt with which a daemon starts.
const DAEMON_STARTS: &str = "the start of the daemon";
/// How long the server is observed at the end, and the CPU time it may use then, ms.
const IDLE: Duration = Duration::from_secs(2);
const IDLE_BUSY_MS: u64 = 400;

/// Ctrl-U, which deletes the typed line.
const CLEAR_LINE: &str = "\x15";

/// The states of a session under observation.
const STATES: [State; 3] = [State::Running, State::Waiting, State::WaitingApproval];
/// Kinds of events that are counted.
const PROMPTED: &str = "user.prompt";
const CALLED: &str = "tool.call";

const SIZE: Size = Size { rows: 40, columns: 120 };

/// The result of a step; an error says why the scenario cannot continue.
pub type Played<T = ()> = Result<T, String>;

/// The outcome of a scenario.
#[derive(Debug)]
pub struct Outcome {
    /// The deviations, in order of time.
    pub wrong: Vec<String>,
    /// The time from a dialog on the screen to `waiting_approval`, ms; negative if hooks reported it earlier.
    pub delay: Option<i64>,
    /// The number of incorrect states in the history that were too short to count as wrong.
    pub flaps: usize,
    /// How long the status was wrong, by confidence.
    pub wrong_ms: WrongMs,
    /// The duration of decisions.
    pub times: Times,
    /// Details for debugging: truth, history, the model's notes, the screen.
    pub details: String,
}

/// The duration of decisions, ms.
#[derive(Debug, Clone, Default)]
pub struct Times {
    /// From each request, or its dialog, until the agent acts on the decision.
    pub asked: Vec<i64>,
    /// From each decision of the user until the agent acts on it.
    pub told: Vec<i64>,
}

impl Outcome {
    fn failed(words: String) -> Self {
        Self {
            wrong: vec![words],
            delay: None,
            flaps: 0,
            wrong_ms: WrongMs::default(),
            times: Times::default(),
            details: String::new(),
        }
    }
}

/// The environment of a scenario.
pub struct Stage<'a> {
    /// The agent under test.
    pub agent: &'a dyn Agent,
    /// The machine on which the agent runs.
    pub machine: &'a Machine,
    /// The capture server.
    pub server: &'a Server,
    /// The scripted model.
    pub model: &'a Model,
    setting: Setting,
    user: User,
    screen: Observer,
    /// The pattern of a dialog, whether one is on the screen, and how many there were.
    dialog: Regex,
    has_dialog: bool,
    dialogs: usize,
    /// The agent draws dialogs that need no answer: whether capture reports them is not judged.
    blinks: bool,
    truth: Vec<Truth>,
    said: Vec<JudgedStatus>,
    /// The expected number of sessions.
    expected: usize,
    /// Since when there have been more sessions than expected, ms.
    several_since: Option<i64>,
    session: Option<Value>,
    delay: Option<i64>,
    flaps: usize,
    wrong_ms: WrongMs,
    times: Times,
    wrong: Vec<String>,
    prompts: usize,
    calls: usize,
}

impl std::fmt::Debug for Stage<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stage").field("truth", &self.truth).field("wrong", &self.wrong).finish_non_exhaustive()
    }
}

/// Plays a scenario with an agent and reports its outcome.
#[must_use]
pub fn play(
    installed: &Installed,
    capture: &Path,
    setting: &Setting,
    script: Script,
    scenario: &dyn Fn(&mut Stage) -> Played,
) -> Outcome {
    let played = AssertUnwindSafe(|| played(installed, capture, setting, script, scenario));
    catch_unwind(played).unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().cloned();
        Outcome::failed(words.or_else(|| panic.downcast_ref::<&str>().map(|w| (*w).to_owned())).unwrap_or_default())
    })
}

fn played(
    installed: &Installed,
    capture: &Path,
    setting: &Setting,
    script: Script,
    scenario: &dyn Fn(&mut Stage) -> Played,
) -> Outcome {
    let agent = installed.agent;
    let mut machine = Machine::new(&capture.to_string_lossy());
    if setting.git {
        // The server must find the same programs as the agent.
        machine.find_first("bin");
    }
    let _ending = EndsAll(machine.data());
    if let Err(error) = opening::furnish(&machine, setting) {
        return Outcome::failed(format!("the machine: {error}"));
    }
    let server = machine.serve();
    let script = if setting.daemon { script.lane(DAEMON_STARTS, [say("It is up.")]) } else { script };
    let model = match Model::start(agent.api(), script) {
        Ok(model) => model,
        Err(error) => return Outcome::failed(format!("no model: {error}")),
    };
    let mut setting = *setting;
    let user = match opening::start(installed, &machine, &model, &mut setting) {
        Ok(user) => user,
        Err(words) => return Outcome::failed(words),
    };
    let screen = Observer::new(SIZE, agent.provider(), Arc::new(ScreenRules::embedded()), home::clock::now());
    let dialog = match Regex::new(agent.dialog()) {
        Ok(dialog) => dialog,
        Err(error) => return Outcome::failed(error.to_string()),
    };
    let mut stage = Stage {
        agent,
        machine: &machine,
        server: &server,
        model: &model,
        setting,
        user,
        screen,
        dialog,
        has_dialog: false,
        dialogs: 0,
        blinks: false,
        truth: Vec::new(),
        said: Vec::new(),
        expected: 1,
        several_since: None,
        session: None,
        delay: None,
        flaps: 0,
        wrong_ms: WrongMs::default(),
        times: Times::default(),
        wrong: Vec::new(),
        prompts: 0,
        calls: 0,
    };
    if let Err(words) = scenario(&mut stage) {
        stage.wrong.push(words);
    } else {
        stage.judge();
    }
    let details = stage.details();
    let Stage { wrong, delay, flaps, wrong_ms, times, .. } = stage;
    Outcome { wrong, delay, flaps, wrong_ms, times, details }
}

/// Ends all processes of a machine, however a scenario ends.
struct EndsAll(PathBuf);

impl Drop for EndsAll {
    fn drop(&mut self) {
        end_all(&self.0);
    }
}

impl Stage<'_> {
    /// Waits until the agent accepts prompts.
    ///
    /// # Errors
    /// If it does not.
    pub fn is_ready(&mut self) -> Played {
        self.sees(self.agent.ready())?;
        // Without a terminal a session may become known only with its first prompt.
        if self.setting.run {
            self.is(State::Waiting, None);
            self.is_said()?;
        }
        if self.setting.daemon {
            // The daemon starts with the first prompt, and capture does not connect to it before it has started.
            self.prompts(&format!("Please do {DAEMON_STARTS}"), DAEMON_STARTS)?;
            let ended = self.model_did(DAEMON_STARTS, 0, AnswerProgress::Ended)?;
            self.pauses(DAEMON_FOUND);
            // Nothing up to here is judged.
            self.wrong.clear();
            self.truth.clear();
            self.said.drain(..self.said.len().saturating_sub(1));
            self.is_since(ended.max(now()), State::Waiting, None);
        }
        Ok(())
    }

    /// Types a prompt and waits until the model receives it, in this lane.
    ///
    /// # Errors
    /// If it does not.
    pub fn prompts(&mut self, text: &str, lane: &str) -> Played {
        self.prompts += 1;
        self.user.types(text);
        let shown = Regex::new(&regex::escape(text)).map_err(|error| error.to_string())?;
        if self.within(AGAIN, |stage| shown.is_match(&stage.text()).then_some(())).is_none() {
            // Input typed while an agent starts may be lost (Gemini CLI 0.30).
            self.user.types(CLEAR_LINE);
            self.user.types(text);
            self.sees(shown.as_str())?;
        }
        self.pauses(BEFORE_ENTER);
        for _ in 0..3 {
            let entered = now();
            self.user.types("\r");
            let asked = self.within(AGAIN, |stage| stage.model.when(lane, 0, AnswerProgress::Asked));
            if asked.is_some() {
                self.is_since(entered, State::Running, None);
                return self.is_said();
            }
        }
        Err(format!("the model was not asked; {}", self.picture()))
    }

    /// Waits for a dialog that asks for permission and sets the truth accordingly.
    ///
    /// # Errors
    /// If none appears.
    pub fn sees_dialog(&mut self) -> Played {
        self.calls += 1;
        let drawn = self.sees(self.agent.dialog())?;
        self.is_since(drawn, State::WaitingApproval, Some(Reason::Tool));
        self.is_said()?;
        let first = |said: &&JudgedStatus| said.state == State::WaitingApproval;
        let delay = self.said.iter().find(first).map(|said| said.at - drawn);
        self.delay = self.delay.or(delay);
        self.stays()
    }

    /// Sets the truth and presses a key.
    ///
    /// # Errors
    /// If capture does not report the new state.
    pub fn presses(&mut self, key: Key, state: State, reason: Option<Reason>) -> Played {
        self.is(state, reason);
        self.user.types(self.agent.key(key));
        self.is_said()
    }

    /// Counts calls that show no dialog for permission.
    pub fn calls(&mut self, calls: usize) {
        self.calls += calls;
    }

    /// Waits until the screen matches a pattern; returns the time, ms.
    ///
    /// # Errors
    /// If it never does.
    pub fn sees(&mut self, pattern: &str) -> Played<i64> {
        let pattern = Regex::new(&format!("(?s){pattern}")).map_err(|error| error.to_string())?;
        let seen = self.within(AGENT, |stage| pattern.is_match(&stage.text()).then(now));
        seen.ok_or_else(|| format!("the agent does not show {pattern}; {}", self.picture()))
    }

    /// Waits until an answer of the model has made this progress; returns the time, ms.
    ///
    /// # Errors
    /// If it never does.
    pub fn model_did(&mut self, lane: &str, step: usize, did: AnswerProgress) -> Played<i64> {
        let when = self.within(AGENT, |stage| stage.model.when(lane, step, did));
        let when = when.ok_or_else(|| format!("step {step} of {lane:?} was not {did:?}; {}", self.picture()))?;
        Ok(when.as_millisecond())
    }

    /// Waits until the agent stops reading from the model, or shows that it was interrupted: Codex 0.150 continues to
    /// read.
    ///
    /// # Errors
    /// If neither happens.
    pub fn stops(&mut self, lane: &str, step: usize) -> Played {
        let shown = Regex::new("(?i)interrupted|request cancelled").map_err(|error| error.to_string())?;
        let stopped = |stage: &mut Self| {
            let gone = stage.model.when(lane, step, AnswerProgress::Gone).is_some();
            (gone || shown.is_match(&stage.text())).then_some(())
        };
        self.within(AGENT, stopped).ok_or_else(|| format!("the agent does not stop; {}", self.picture()))
    }

    /// Sets the truth: this state began between two times, ms.
    pub fn is_between(&mut self, from: i64, by: i64, state: State, reason: Option<Reason>) {
        self.truth.push(Truth { from, by, state, reason });
    }

    /// Sets the truth: this state begins now.
    pub fn is(&mut self, state: State, reason: Option<Reason>) {
        self.is_since(now(), state, reason);
    }

    /// Sets the truth: this state began at this time, ms.
    pub fn is_since(&mut self, at: i64, state: State, reason: Option<Reason>) {
        self.truth.push(Truth { from: at, by: at, state, reason });
    }

    /// Waits until capture reports the truth, and records the delay.
    ///
    /// # Errors
    /// If it never does.
    pub fn is_said(&mut self) -> Played {
        let Some(truth) = self.truth.last().copied() else { return Ok(()) };
        if self.within(CAPTURE, |stage| stage.said.last().filter(|said| truth.is_said(said)).map(|_| ())).is_none() {
            let said = self.said.last().map_or_else(|| "nothing".to_owned(), JudgedStatus::to_string);
            self.wrong.push(format!("{truth} is not said within {CAPTURE:?} but {said}"));
            return Ok(());
        }
        let since = self.said.iter().rev().take_while(|said| truth.is_said(said)).last().map(|said| said.at);
        if let Some(late @ TOLERANCE_MS..) = since.map(|since| since - truth.by) {
            self.wrong.push(format!("{truth} is said {late} ms late"));
        }
        Ok(())
    }

    /// Leaves the state unchanged for a while.
    ///
    /// # Errors
    /// Never; it returns a result so that it can be chained like the others.
    pub fn stays(&mut self) -> Played {
        self.pauses(STAY);
        Ok(())
    }

    fn pauses(&mut self, time: Duration) {
        self.within(time, |_| None::<()>);
    }

    /// Kills the program that `capture run` started, like `kill -9`. The agent has ended once none of its processes
    /// remains, which may take a moment if there are several.
    ///
    /// # Errors
    /// If capture knows no process of the agent, or some remain.
    pub fn kills(&mut self) -> Played {
        // An agent that is only observed has no run.
        let (path, pointer) =
            if self.setting.run { ("/api/v1/runs", "/runs/0/pid") } else { ("/api/v1/sessions", "/sessions/0/pid") };
        let told = self.server.client.json(path).ok_or("the processes are not told")?;
        let pid = told.pointer(pointer).and_then(Value::as_i64).and_then(|pid| i32::try_from(pid).ok());
        let pid = pid.ok_or_else(|| format!("no process of the agent is known: {told}"))?;
        let agents: Vec<Process> = self.user.processes().into_iter().filter(|p| self.is_of_the_agent(p)).collect();
        let killed = now();
        signal(pid, Signal::KILL);
        // Older versions of Gemini CLI restart themselves: both processes are the agent.
        if !self.setting.run {
            agents.iter().for_each(|agent| signal(agent.pid, Signal::KILL));
        }
        let gone = self.within(AGENT, |stage| {
            let left = stage.user.processes();
            (!agents.iter().any(|agent| left.contains(agent))).then(now)
        });
        let gone = gone.ok_or_else(|| format!("the agent goes on: {:?}", self.user.processes()))?;
        self.truth.push(Truth { from: killed, by: gone, state: State::Exited, reason: Some(Reason::Killed) });
        self.is_said()
    }

    /// Whether a process belongs to the agent; all others are capture's.
    fn is_of_the_agent(&self, process: &Process) -> bool {
        let capture = self.machine.command(&[]).get_program().to_string_lossy().into_owned();
        !process.command.starts_with(&capture)
    }

    /// Observes until `ask` returns a value; `None` if it does not in time.
    fn within<T>(&mut self, patience: Duration, mut ask: impl FnMut(&mut Self) -> Option<T>) -> Option<T> {
        let deadline = Instant::now() + patience;
        loop {
            self.look();
            if let Some(answer) = ask(self) {
                return Some(answer);
            }
            if Instant::now() >= deadline {
                return None;
            }
            std::thread::park_timeout(LOOK);
        }
    }

    /// Reads the terminal and queries capture.
    fn look(&mut self) {
        let shown = self.user.rest();
        // An incomplete character stays for the next read.
        let shown = shown.trim_end_matches(char::REPLACEMENT_CHARACTER);
        if !shown.is_empty() {
            self.user.expect(shown);
            self.screen.output(shown.as_bytes(), home::clock::now());
            let replies = self.screen.take_replies();
            self.user.types(replies);
        }
        self.screen.advance(home::clock::now());
        if !shown.is_empty() {
            let has = self.dialog.is_match(&self.text());
            self.dialogs += usize::from(has && !self.has_dialog);
            self.has_dialog = has;
        }
        let Some(sessions) = sessions(&self.server.client) else { return };
        let at = now();
        self.several_since = if sessions.len() > self.expected { self.several_since.or(Some(at)) } else { None };
        if self.several_since.is_some_and(|since| at - since > 2 * TOLERANCE_MS) {
            self.several_since = None;
            self.wrong.push(format!("there are {} sessions", sessions.len()));
        }
        let Some(session) = sessions.into_iter().min_by_key(|s| crate::terminal::rank(state_of(s))) else { return };
        if let Some(state) = state_of(&session) {
            let status = &session["status"];
            let confidence = word(&status["confidence"]).unwrap_or(Confidence::Low);
            let now = JudgedStatus { at, state, reason: word(&status["reason"]), confidence };
            if self.said.last().is_none_or(|last| JudgedStatus { at, ..*last } != now) {
                self.said.push(now);
            }
        }
        self.session = Some(session);
    }

    fn text(&self) -> String {
        self.screen.picture().lines.join("\n")
    }

    fn picture(&self) -> String {
        let lines = self.screen.picture().lines;
        let lines: Vec<&str> = lines.iter().map(String::as_str).filter(|line| !line.trim().is_empty()).collect();
        format!("it shows\n{}", lines.join("\n"))
    }

    /// Compares all reported statuses with the truth.
    fn judge(&mut self) {
        let end = now();
        let blinks = self.blinks;
        let counts = |said: &&JudgedStatus| !blinks || said.state != State::WaitingApproval;
        let said: Vec<JudgedStatus> = self.said.iter().filter(counts).copied().collect();
        if let Some(wrong) = first_wrong(&self.truth, &said, end) {
            self.wrong.push(format!("sessions: {wrong}"));
        }
        self.wrong_ms = wrong_ms(&self.truth, &said, end);
        let history: Vec<JudgedStatus> = self.history().into_iter().map(|(said, _)| said).collect();
        let told: Vec<JudgedStatus> = history.iter().filter(counts).copied().collect();
        // The history records that work began, but not how its reason changed, so the reason is not judged.
        let without =
            |truth: &Truth| Truth { reason: truth.reason.filter(|_| truth.state != State::Running), ..*truth };
        let truth: Vec<Truth> = self.truth.iter().map(without).collect();
        if let Some(wrong) = first_wrong(&truth, &told, end) {
            self.wrong.push(format!("history: {wrong}"));
        }
        let asked = times(states(&truth), State::WaitingApproval);
        for (who, said) in [("sessions", &self.said), ("history", &history)] {
            let seen = times(said.iter().map(|said| said.state), State::WaitingApproval);
            if seen != asked && !self.blinks {
                self.wrong.push(format!("{who}: {seen} approvals were seen, there were {asked}"));
            }
        }
        let more = |state| {
            let said = times(history.iter().map(|said| said.state), state);
            said.saturating_sub(times(states(&truth), state))
        };
        self.flaps = STATES.map(more).iter().sum();
        let count = sessions(&self.server.client).unwrap_or_default().len();
        if count != self.expected {
            self.wrong.push(format!("there are {count} sessions at the end"));
        }
        for (kind, wanted) in [(PROMPTED, self.prompts), (CALLED, self.calls)] {
            let counted = self.events(|event| is_one_of(event, kind)).len();
            if counted != wanted {
                self.wrong.push(format!("{counted} events {kind}, there were {wanted}"));
            }
        }
        if self.model.notes().iter().any(|note| note.lane.is_empty()) {
            self.wrong.push("the script has no answer to what the model was asked".to_owned());
        }
        let heard = self.events(|event| event["source"] == "hook").len();
        let busy = self.server.busy_ms(IDLE);
        if busy > IDLE_BUSY_MS {
            let idle = IDLE.as_millis();
            self.wrong.push(format!("the server was busy for {busy} ms of {idle} ms in which nothing happened"));
        }
        let hooks = self.setting.hooks != Hooks::None;
        if hooks != (heard > 0) {
            self.wrong.push(format!("{heard} events of hooks, which are {}installed", if hooks { "" } else { "not " }));
        }
    }

    fn events(&self, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
        let id = self.session.as_ref().and_then(|session| session["id"].as_str()).unwrap_or_default();
        let all = events(&self.server.client, id).unwrap_or_default();
        all.into_iter().filter(|event| wanted(event)).collect()
    }

    fn history(&self) -> Vec<(JudgedStatus, String)> {
        let id = self.session.as_ref().and_then(|session| session["id"].as_str()).unwrap_or_default();
        let path = format!("/api/v1/sessions/{id}/status/history?limit=1000");
        let changes = self.server.client.json(&path).and_then(|all| all.as_array().cloned()).unwrap_or_default();
        let said = |change: &Value| {
            let at = Timestamp::parse(change["at"].as_str()?)?.as_millisecond();
            let confidence = word(&change["confidence"]).unwrap_or(Confidence::Low);
            let said = JudgedStatus { at, state: word(&change["to"])?, reason: word(&change["reason"]), confidence };
            let evidence = change["evidence"].as_array().into_iter().flatten().filter_map(Value::as_str);
            Some((said, evidence.collect::<Vec<_>>().join(", ")))
        };
        changes.iter().filter_map(said).collect()
    }

    fn details(&self) -> String {
        let zero = self.truth.first().map_or(0, |truth| truth.by);
        let row = |at: i64, what: String| format!("  {:8.3}  {what}\n", (at - zero) as f64 / 1000.0);
        let notes = self.model.notes();
        let notes =
            notes.iter().map(|n| row(n.at.as_millisecond(), format!("{:?} step {} of {:?}", n.did, n.step, n.lane)));
        let counted = |kind: &str| {
            let events = self.events(|event| is_one_of(event, kind));
            events.iter().map(|event| format!("  {event}\n")).collect::<String>()
        };
        format!(
            "true:\n{}said in sessions:\n{}said in the history:\n{}the model:\n{}counted:\n{}{}{}{}\n",
            self.truth.iter().map(|truth| row(truth.by, truth.to_string())).collect::<String>(),
            self.said.iter().map(|said| row(said.at, format!("{said}   {}", said.confidence))).collect::<String>(),
            self.history().into_iter().map(|(m, why)| row(m.at, format!("{m}   because {why}"))).collect::<String>(),
            notes.collect::<String>(),
            counted(PROMPTED),
            counted(CALLED),
            self.decided(),
            self.picture(),
        )
    }
}

fn states(truth: &[Truth]) -> impl Iterator<Item = State> {
    truth.iter().map(|truth| truth.state)
}

/// The sessions started by the user, as capture lists them.
fn sessions(client: &Client) -> Option<Vec<Value>> {
    let answer = client.send("GET", "/api/v1/sessions?active=all&limit=50", None, CAPTURE).ok()?;
    let page: Value = serde_json::from_slice(&answer.body).ok()?;
    let all = page["sessions"].as_array()?.iter();
    Some(all.filter(|s| s["parent_session_id"].is_null() && s["merged_into"].is_null()).cloned().collect())
}

/// Counts only those prompts that the user typed.
fn is_one_of(event: &Value, kind: &str) -> bool {
    event["kind"] == kind && (kind != PROMPTED || event["data"]["origin"] == "human")
}

fn state_of(session: &Value) -> Option<State> {
    word(&session["status"]["state"])
}

fn word<T: serde::de::DeserializeOwned>(value: &Value) -> Option<T> {
    serde_json::from_value(value.clone()).ok()
}

pub(super) fn now() -> i64 {
    home::clock::now().as_millisecond()
}
