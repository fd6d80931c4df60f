//! The real program on a temporary machine: home, data directory and environment are temporary; only PATH is inherited
//! from the environment of the caller.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use agents::Agent;
use events::Provider;
use hooks::AGENTS;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::{eventually, http::Client, within};

/// A temporary machine: home directories and a data directory.
#[derive(Debug)]
pub struct Machine {
    dir: tempfile::TempDir,
    program: PathBuf,
    path: String,
}

/// A running server. Dropping it kills it.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// A client with the owner's token.
    pub client: Client,
    /// The contents of `endpoint.json`.
    pub endpoint: Value,
    log: PathBuf,
}

impl Machine {
    /// A machine with empty homes on which `program` is run.
    #[must_use]
    pub fn new(program: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for below in [
            "home/.claude/projects/-proj",
            "home/.claude/sessions",
            "home/.codex/sessions/2026/11/20",
            "home/.gemini/tmp",
            "agents",
            "proj",
            "run",
            "config",
        ] {
            fs::create_dir_all(dir.path().join(below)).unwrap();
        }
        Self { dir, program: PathBuf::from(program), path: String::new() }.with_path()
    }

    fn with_path(mut self) -> Self {
        self.path = format!("{}:/usr/bin:/bin", self.agents().display());
        self
    }

    /// The directory on the PATH in which agents' programs are found first. It is empty at first.
    #[must_use]
    pub fn agents(&self) -> PathBuf {
        self.dir.path().join("agents")
    }

    /// Puts a script on the PATH as this agent's program.
    pub fn agent_script(&self, agent: Provider, script: &str) {
        let path = self.agents().join(agent.as_str());
        let beside = path.with_extension("new");
        fs::write(&beside, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&beside, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(beside, path).unwrap();
    }

    /// Puts an agent on the PATH that only reports this version.
    pub fn agent_version(&self, agent: Provider, version: &str) {
        let printed = Agent::of(agent).unwrap().version.printed.as_ref().unwrap();
        let answer = format!("{}{version}{}", printed.before[0], printed.behind);
        self.agent_script(agent, &format!("[ \"$*\" = --version ] && echo '{answer}'"));
    }

    /// Puts every agent with hooks on the PATH, each in the newest known version.
    pub fn newest_agents(&self) {
        for agent in AGENTS.iter().copied() {
            let facts = hooks::facts(agent).unwrap();
            self.agent_version(agent, &facts.versions.newest.to_string());
        }
    }

    /// Puts an agent on the PATH that is installed elsewhere.
    ///
    /// # Errors
    /// If one exists already, or no link can be created.
    pub fn link_agent(&self, agent: Provider, program: &Path) -> std::io::Result<()> {
        std::os::unix::fs::symlink(program, self.agents().join(agent.as_str()))
    }

    /// The home directory of the agents' user.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// A project's directory.
    #[must_use]
    pub fn project(&self) -> PathBuf {
        self.dir.path().join("proj")
    }

    /// The data directory.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// The path of Claude's transcript of this session.
    #[must_use]
    pub fn claude(&self, session: &str) -> PathBuf {
        self.home().join(format!(".claude/projects/-proj/{session}.jsonl"))
    }

    /// Puts this directory of the home first on the PATH.
    pub fn find_first(&mut self, below_home: &str) {
        self.path = format!("{}:{}", self.home().join(below_home).display(), self.path);
    }

    /// Writes the configuration.
    pub fn configure(&self, toml: &str) {
        fs::create_dir_all(self.dir.path().join("config/capture")).unwrap();
        fs::write(self.dir.path().join("config/capture/config.toml"), toml).unwrap();
    }

    /// Writes the user's policy.
    pub fn policy(&self, toml: &str) {
        fs::create_dir_all(self.dir.path().join("config/capture")).unwrap();
        fs::write(self.policy_file(), toml).unwrap();
    }

    /// The path of the user's policy, whether or not it exists.
    #[must_use]
    pub fn policy_file(&self) -> PathBuf {
        self.dir.path().join("config/capture/policy.toml")
    }

    /// The program with these arguments, ready to run.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        let at = |below: &str| self.dir.path().join(below);
        let mut command = Command::new(&self.program);
        command.args(arguments).env_clear().current_dir(self.dir.path()).stdin(Stdio::null());
        command
            .env("HOME", at("home"))
            .env("CAPTURE_DATA_DIR", at("data"))
            .env("LANG", "C.UTF-8")
            // A pager would wait for a key.
            .env("PAGER", "cat")
            .env("PATH", &self.path);
        command
            .env("XDG_CONFIG_HOME", at("config"))
            .env("XDG_DATA_HOME", at("home/.local/share"))
            .env("XDG_RUNTIME_DIR", at("run"))
            .env("XDG_STATE_HOME", at("state"));
        command
    }

    /// A shell under the name of an agent, ready to run this script: its child processes count as started by an agent.
    /// In the script `capture` is the program and `$CAPTURE_DATA_DIR` the data directory.
    #[must_use]
    pub fn agents_shell(&self, agent: &str, script: &str) -> Command {
        let bin = self.dir.path().join("bin");
        fs::create_dir_all(&bin).unwrap();
        for (name, target) in [(agent, Path::new("/bin/sh")), ("capture", &self.program)] {
            // A second shell finds the link of the first one.
            std::os::unix::fs::symlink(target, bin.join(name)).ok();
        }
        let file = self.dir.path().join(format!("{agent}-script"));
        fs::write(&file, script).unwrap();
        let mut command = self.command(&[]);
        let path = format!("{}:{}", bin.display(), self.path);
        let mut shell = Command::new(bin.join(agent));
        shell.arg(file).env_clear().current_dir(self.dir.path()).stdin(Stdio::null());
        shell.envs(command.env("PATH", path).get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell
    }

    /// Starts a server without waiting for it.
    #[must_use]
    pub fn launch(&self) -> (Child, PathBuf) {
        self.launch_with(|command| command)
    }

    fn launch_with(&self, prepare: impl FnOnce(Command) -> Command) -> (Child, PathBuf) {
        let log = self.dir.path().join("serve.log");
        let out = fs::OpenOptions::new().create(true).append(true).open(&log).unwrap();
        let data = self.data();
        let command = self.command(&["serve", "--listen", "127.0.0.1:0", "--data-dir", data.to_str().unwrap()]);
        let mut command = prepare(command);
        let child = command
            .stdout(out.try_clone().unwrap())
            .stderr(out)
            .spawn()
            .unwrap_or_else(|e| panic!("{}: {e}", self.program.display()));
        (child, log)
    }

    /// Starts a server and waits until it answers.
    #[must_use]
    pub fn serve(&self) -> Server {
        self.answering(self.launch())
    }

    /// Starts a server from a shell that first runs this script, and waits until it answers.
    #[must_use]
    pub fn serve_with(&self, script: &str) -> Server {
        self.answering(self.launch_with(|command| {
            let mut shell = Command::new("/bin/sh");
            shell.arg("-c").arg(format!("{script}; exec \"$0\" \"$@\"")).arg(command.get_program());
            shell.args(command.get_args()).env_clear().current_dir(self.dir.path()).stdin(Stdio::null());
            shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
            shell
        }))
    }

    fn answering(&self, (mut child, log): (Child, PathBuf)) -> Server {
        let pid = child.id();
        let endpoint = within(crate::PATIENCE, || {
            if let Some(status) = child.try_wait().unwrap() {
                panic!("the server ended with {status}:\n{}", fs::read_to_string(&log).unwrap_or_default());
            }
            self.endpoint().filter(|e| e["pid"] == pid)
        });
        let endpoint = endpoint
            .unwrap_or_else(|| panic!("no endpoint.json of {pid}:\n{}", fs::read_to_string(&log).unwrap_or_default()));
        let client = Self::client(&endpoint);
        Server { child, client, endpoint, log }
    }

    /// The current contents of `endpoint.json`.
    #[must_use]
    pub fn endpoint(&self) -> Option<Value> {
        serde_json::from_str(&fs::read_to_string(self.data().join("endpoint.json")).ok()?).ok()
    }

    /// A client of the currently running server.
    #[must_use]
    pub fn any_client(&self) -> Option<Client> {
        let endpoint = self.endpoint()?;
        let token = fs::read_to_string(endpoint["token_file"].as_str()?).ok()?;
        Some(Client {
            address: endpoint["url"].as_str()?.trim_start_matches("http://").to_owned(),
            token: token.trim().to_owned(),
        })
    }

    fn client(endpoint: &Value) -> Client {
        let token = fs::read_to_string(endpoint["token_file"].as_str().unwrap()).unwrap();
        Client {
            address: endpoint["url"].as_str().unwrap().trim_start_matches("http://").trim_end_matches('/').to_owned(),
            token: token.trim().to_owned(),
        }
    }
}

impl Server {
    /// The server's process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it at once (SIGKILL).
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to stop (SIGTERM) and waits until it has ended.
    pub fn stop(mut self) -> ExitStatus {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        eventually("the server ends after SIGTERM", || self.child.try_wait().unwrap())
    }

    /// Its exit status, if it has ended on its own.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Its standard error, including earlier servers on this machine.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits for the session with this provider's id.
    #[must_use]
    pub fn session(&self, provider_id: &str) -> Value {
        eventually(&format!("session {provider_id}"), || self.client.json(&format!("/api/v1/sessions/{provider_id}")))
    }

    /// Every event of a session.
    #[must_use]
    pub fn events(&self, id: &str) -> Vec<Value> {
        events(&self.client, id).expect("the server answers")
    }

    /// Waits until this transcript has been read completely.
    pub fn caught_up(&self, provider_id: &str, path: &Path) {
        let size = fs::metadata(path).unwrap().len();
        eventually(&format!("{} is read to {size}", path.display()), || {
            let session = self.client.json(&format!("/api/v1/sessions/{provider_id}"))?;
            let transcript =
                session["transcripts"].as_array()?.iter().find(|t| t["path"] == path.to_str().unwrap())?.clone();
            (transcript["offset"] == size).then_some(())
        });
    }

    /// The CPU time it uses while no client queries it, ms, in steps of 10.
    #[must_use]
    pub fn busy_ms(&self, within: Duration) -> u64 {
        let before = self.worked_ms();
        std::thread::park_timeout(within);
        self.worked_ms() - before
    }

    fn worked_ms(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        // User and system time in ticks, a hundred per second.
        fields[11..13].iter().map(|ticks| ticks.parse::<u64>().unwrap() * 10).sum()
    }

    /// The peak of its memory, KiB.
    #[must_use]
    pub fn peak_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.child.kill().ok();
            self.child.wait().ok();
        }
    }
}

/// Every event of a session, in order, page by page; `None` if the server stopped in the meantime.
#[must_use]
pub fn events(client: &Client, id: &str) -> Option<Vec<Value>> {
    let mut all = Vec::new();
    let mut after = 0;
    loop {
        let page = client.json(&format!("/api/v1/sessions/{id}/events?after={after}&limit=1000"))?;
        let events = page["events"].as_array()?;
        if events.is_empty() {
            return Some(all);
        }
        after = page["next_after"].as_u64()?;
        all.extend(events.iter().cloned());
    }
}

/// Whether a process ended without a signal and with code 0.
#[must_use]
pub fn ended_well(status: ExitStatus) -> bool {
    status.signal().is_none() && status.code() == Some(0)
}

/// A short pause, so that injected faults occur at different times; no test depends on its length.
pub fn a_moment(ms: u64) {
    std::thread::park_timeout(Duration::from_millis(ms));
}
