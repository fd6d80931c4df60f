//! Starts sessions in separate processes, which outlive the server and its clients: the program runs itself as the host
//! of the session, receives its instructions on standard input, reports on standard output that it has begun, and
//! connects like every host.

use std::{
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use agents::Agent;
use api::{
    runs::RunState,
    steering::{SessionRequest, StartMode, StartedSession},
};
use events::{Provider, RunId, SessionId};
use home::hosted_session::{HOST_WORDS, HostAnswer, HostSpec};
use live_view::{Refusal, RunTarget, SessionStart};
use tokio::time::{Instant, sleep, timeout};

use crate::runs::Runs;

/// How long a host may take to begin.
const BEGINS_WITHIN: Duration = Duration::from_secs(20);
/// How long its session may then take to become known.
const KNOWN_WITHIN: Duration = Duration::from_secs(5);
/// Interval between checks whether it is known.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Maximum length of the line in which a host reports that it has begun, bytes.
const LINE_BYTES: u64 = 64 << 10;
/// Default time a permission request waits for a decision, seconds.
const WAIT_S: u32 = 600;
/// Longest such time, seconds.
const LONGEST_WAIT_S: u32 = 3_600;
/// Maximum length of the first prompt, bytes.
const PROMPT_BYTES: usize = 1 << 20;

/// Starts sessions. Clones share no state.
#[derive(Debug, Clone)]
pub struct SessionStarter {
    /// Path of the program.
    pub program: PathBuf,
    /// The data directory.
    pub data: PathBuf,
}

impl SessionStarter {
    /// Starts a session and waits until it is known.
    ///
    /// # Errors
    /// When the request is invalid, or the session does not begin.
    pub async fn start(&self, start: SessionStart, runs: &Runs) -> Result<StartedSession, Refusal> {
        let SessionStart { request, who } = start;
        let by = serde_json::to_string(&who).unwrap_or_default();
        let spec = self.spec(request, format!("a client of the server: {by}"), runs)?;
        let (agent, cwd) = (spec.agent, spec.cwd.display().to_string());
        let program = self.program.clone();
        let begun = tokio::task::spawn_blocking(move || begin(&program, &spec));
        let begun = timeout(BEGINS_WITHIN, begun).await;
        let (run, pid) = match begun {
            Ok(Ok(begun)) => begun?,
            Ok(Err(error)) => return Err(Refusal::Failed(error.to_string())),
            Err(_) => {
                let seconds = BEGINS_WITHIN.as_secs();
                return Err(Refusal::Conflict(format!("the session did not begin within {seconds} s")));
            }
        };
        let session_id = session_of(run, runs).await?;
        Ok(StartedSession { session_id, run_id: run, agent, cwd, pid })
    }

    fn spec(&self, request: SessionRequest, by: String, runs: &Runs) -> Result<HostSpec, Refusal> {
        let invalid = |name, reason: &str| Err(Refusal::Invalid { name, reason: reason.to_owned() });
        let SessionRequest { agent, cwd, name, prompt, skill, model, mode, continues, wait_s } = request;
        if skill.is_some() {
            return Err(Refusal::Conflict("skills are not available yet; start the session with a prompt".into()));
        }
        let is_own = agent == Provider::Capture;
        if !is_own && Agent::of(agent).is_none_or(|agent| agent.drive.is_none()) {
            let drivable = Agent::providers_with(|agent| agent.drive.is_some());
            let names: Vec<&str> = drivable.iter().map(|provider| provider.as_str()).collect();
            let reason = format!(
                "cannot start {agent} without a terminal; expected {} or {}",
                names.join(", "),
                Provider::Capture
            );
            return Err(Refusal::Invalid { name: "agent", reason });
        }
        if !is_own && (model.is_some() || mode.is_some() || continues.is_some()) {
            return invalid("agent", "`model`, `mode` and `continues` are for capture's own agent");
        }
        let prompt = prompt.filter(|prompt| !prompt.trim().is_empty());
        if !is_own && prompt.is_none() {
            return invalid("prompt", "this agent needs a first prompt");
        }
        if prompt.as_ref().is_some_and(|prompt| prompt.len() > PROMPT_BYTES) {
            return invalid("prompt", "it is too long");
        }
        let cwd = PathBuf::from(cwd);
        if !cwd.is_absolute() || !cwd.is_dir() {
            return invalid("cwd", "expected the absolute path of a directory");
        }
        let wait_s = wait_s.unwrap_or(WAIT_S);
        if !(1..=LONGEST_WAIT_S).contains(&wait_s) {
            return invalid("wait_s", "expected 1 to 3600");
        }
        if let Some(name) = &name {
            let is_active =
                |run: api::runs::Run| run.state == RunState::Running && run.hello.name.as_deref() == Some(name);
            if name.trim().is_empty() {
                return invalid("name", "it is empty");
            }
            if runs.list().into_iter().any(is_active) {
                return Err(Refusal::Conflict(format!("an active run is already named `{name}`")));
            }
        }
        let is_plan = mode == Some(StartMode::Plan);
        let data = self.data.clone();
        Ok(HostSpec { data, agent, cwd, name, prompt, model, is_plan, continues, wait_s, by })
    }
}

/// Starts the host and waits for its answer. Blocks.
fn begin(program: &Path, spec: &HostSpec) -> Result<(RunId, u32), Refusal> {
    let failed = |error: std::io::Error| Refusal::Failed(format!("cannot start the host of a session: {error}"));
    let mut command = Command::new(program);
    command.args(HOST_WORDS).arg("--data-dir").arg(&spec.data).current_dir(&spec.cwd);
    // The host detaches from the server's terminal itself.
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut host = command.spawn().map_err(failed)?;
    let pid = host.id();
    let answer = speak(&mut host, spec).map_err(failed);
    // Waits for the host's end, because this server is its parent while it runs.
    let waits = move || drop(host.wait());
    std::thread::Builder::new().name("session".to_owned()).spawn(waits).map_err(failed)?;
    match answer? {
        HostAnswer::Begun { run } => Ok((run, pid)),
        HostAnswer::Refused(why) => Err(Refusal::Conflict(why)),
    }
}

fn speak(host: &mut Child, spec: &HostSpec) -> std::io::Result<HostAnswer> {
    let mut line = serde_json::to_string(spec)?;
    line.push('\n');
    let closed = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
    host.stdin.take().ok_or_else(closed)?.write_all(line.as_bytes())?;
    let mut answer = String::new();
    BufReader::new(host.stdout.take().ok_or_else(closed)?.take(LINE_BYTES)).read_line(&mut answer)?;
    Ok(serde_json::from_str(&answer)?)
}

/// Waits until the session of a run is known.
async fn session_of(run: RunId, runs: &Runs) -> Result<SessionId, Refusal> {
    let target = RunTarget::Run(run.to_string());
    let until = Instant::now() + KNOWN_WITHIN;
    loop {
        if let Some(session) = runs.get(&target).ok().and_then(|run| run.session_id) {
            return Ok(session);
        }
        if Instant::now() >= until {
            return Err(Refusal::Conflict(format!(
                "run {run} has started, but capture does not know its session yet; `capture runs` lists the run"
            )));
        }
        sleep(LOOK_EVERY).await;
    }
}
