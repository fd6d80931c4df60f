//! The command line's side of the HTTP interface, and starting a server when there is none.

use std::{
    fs::{File, OpenOptions},
    io::{BufRead, BufReader},
    os::unix::{
        fs::{DirBuilderExt, OpenOptionsExt},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::Context;
use serde::{Deserialize, de::DeserializeOwned};

use crate::{commands::Failed, config::Config, endpoint::Endpoint, serve::log_file};

/// A server in the background must answer within this time.
const START_WITHIN: Duration = Duration::from_secs(15);
/// It is asked this often until then.
const ASK_EVERY: Duration = Duration::from_millis(20);

/// Talks to the server of a data directory.
pub struct Client {
    agent: ureq::Agent,
    endpoint: Endpoint,
    token: String,
}

#[derive(Deserialize)]
struct ErrorBody {
    error: ErrorText,
}

#[derive(Deserialize)]
struct ErrorText {
    message: String,
    #[serde(default)]
    hint: Option<String>,
}

impl Client {
    /// Connects to the running server, or starts one in the background where the configuration
    /// allows it.
    ///
    /// # Errors
    /// When there is none and none can be started.
    pub fn connect(data: &Path, config: &Config) -> anyhow::Result<Self> {
        if let Some(client) = Self::running(data)? {
            return Ok(client);
        }
        if !config.autostart {
            return Err(Failed::Other(
                "no server is running; start one with `capture serve` (autostart is off)".into(),
            )
            .into());
        }
        start(data)
    }

    /// Connects to the server that runs now; `None` when there is none.
    ///
    /// # Errors
    /// When `endpoint.json` or the token cannot be read.
    pub fn running(data: &Path) -> anyhow::Result<Option<Self>> {
        let Some(endpoint) = Endpoint::load(data)? else { return Ok(None) };
        if !adapters::process::is_alive(endpoint.pid, 0) {
            return Ok(None);
        }
        let token = std::fs::read_to_string(&endpoint.token_file)
            .with_context(|| format!("cannot read {}", endpoint.token_file.display()))?;
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(5)))
            .build()
            .into();
        let client = Self { agent, endpoint, token: token.trim().to_owned() };
        Ok(client.answers().then_some(client))
    }

    fn answers(&self) -> bool {
        let asked = self
            .agent
            .get(format!("{}/healthz", self.endpoint.url))
            .config()
            .timeout_global(Some(Duration::from_secs(2)))
            .build()
            .call();
        asked.is_ok()
    }

    /// Where the server is.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Asks for a JSON answer.
    ///
    /// # Errors
    /// [`Failed::NotFound`] for 404, [`Failed::TimedOut`] for 408, [`Failed::Refused`] for 401,
    /// 403 and 409, and else what the server or the connection said.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        let text = self.text(path, Some(Duration::from_secs(30)))?;
        serde_json::from_str(&text)
            .with_context(|| format!("the server's answer to {path} is not what this version expects"))
    }

    /// Sends JSON and takes a JSON answer.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn post<T: DeserializeOwned>(&self, path: &str, body: &impl serde::Serialize) -> anyhow::Result<T> {
        self.send(self.agent.post(format!("{}{path}", self.endpoint.url)), path, body)
    }

    /// Puts JSON in its place and takes a JSON answer.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn put<T: DeserializeOwned>(&self, path: &str, body: &impl serde::Serialize) -> anyhow::Result<T> {
        self.send(self.agent.put(format!("{}{path}", self.endpoint.url)), path, body)
    }

    fn send<T: DeserializeOwned>(
        &self,
        request: ureq::RequestBuilder<ureq::typestate::WithBody>,
        path: &str,
        body: &impl serde::Serialize,
    ) -> anyhow::Result<T> {
        let response = request
            .header("Authorization", format!("Bearer {}", self.token))
            .header("Content-Type", "application/json")
            .config()
            .timeout_global(Some(Duration::from_secs(30)))
            .build()
            .send(serde_json::to_string(body)?)
            .with_context(|| format!("the server at {} does not answer", self.endpoint.url))?;
        let text = self.good(response)?.body_mut().read_to_string().context("the answer broke off")?;
        serde_json::from_str(&text)
            .with_context(|| format!("the server's answer to {path} is not what this version expects"))
    }

    /// Asks for an answer as text.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn text(&self, path: &str, within: Option<Duration>) -> anyhow::Result<String> {
        let mut response = self.call(path, within)?;
        response
            .body_mut()
            .with_config()
            .limit(1 << 30)
            .read_to_string()
            .with_context(|| format!("the answer to {path} broke off"))
    }

    /// Asks for a stream of server-sent events; gives (event, data) one after another.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn stream(
        &self,
        path: &str,
    ) -> anyhow::Result<impl Iterator<Item = std::io::Result<(String, String)>> + use<>> {
        let response = self.call(path, None)?;
        let mut lines = BufReader::new(response.into_body().into_reader()).lines();
        Ok(std::iter::from_fn(move || {
            let (mut event, mut data) = (String::new(), String::new());
            loop {
                match lines.next()? {
                    Err(error) => return Some(Err(error)),
                    Ok(line) if line.is_empty() && !data.is_empty() => return Some(Ok((event, data))),
                    Ok(line) => {
                        if let Some(name) = line.strip_prefix("event: ") {
                            name.clone_into(&mut event);
                        } else if let Some(text) = line.strip_prefix("data: ") {
                            data.push_str(text);
                        }
                    }
                }
            }
        }))
    }

    fn call(&self, path: &str, within: Option<Duration>) -> anyhow::Result<ureq::http::Response<ureq::Body>> {
        let request = self
            .agent
            .get(format!("{}{path}", self.endpoint.url))
            .header("Authorization", format!("Bearer {}", self.token));
        let response = request
            .config()
            .timeout_global(within)
            .build()
            .call()
            .with_context(|| format!("the server at {} does not answer", self.endpoint.url))?;
        self.good(response)
    }

    /// The answer when it is a good one; else what it says is wrong.
    fn good(&self, mut response: ureq::http::Response<ureq::Body>) -> anyhow::Result<ureq::http::Response<ureq::Body>> {
        let status = response.status().as_u16();
        if status < 300 {
            return Ok(response);
        }
        let body = response.body_mut().with_config().limit(1 << 20).read_to_string().unwrap_or_default();
        let message = match serde_json::from_str::<ErrorBody>(&body) {
            Ok(ErrorBody { error: ErrorText { message, hint: Some(hint) } }) => format!("{message} ({hint})"),
            Ok(ErrorBody { error }) => error.message,
            Err(_) => format!("the server answered {status}"),
        };
        Err(match status {
            404 => Failed::NotFound(message),
            408 => Failed::TimedOut(message),
            401 | 403 | 409 => Failed::Refused(message),
            _ => Failed::Other(message),
        }
        .into())
    }
}

/// Starts a server in the background. Only one of several callers does; the others wait for it.
fn start(data: &Path) -> anyhow::Result<Client> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(data)
        .with_context(|| format!("cannot make {}", data.display()))?;
    let lock = data.join("start.lock");
    let lock = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&lock)
        .with_context(|| format!("cannot open {}", lock.display()))?;
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).context("cannot wait for another start")?;
    if let Some(client) = Client::running(data)? {
        return Ok(client);
    }
    let log = log_file(data);
    let output = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&log)
        .with_context(|| format!("cannot write {}", log.display()))?;
    let mut child = background(data, &output)?;
    let begun = Instant::now();
    loop {
        if let Some(client) = Client::running(data)? {
            return Ok(client);
        }
        if let Some(status) = child.try_wait()? {
            return Err(Failed::Other(format!("the server ended at once ({status}): {}", last_line(&log))).into());
        }
        anyhow::ensure!(
            begun.elapsed() < START_WITHIN,
            "the server does not answer after {} s; see {}",
            START_WITHIN.as_secs(),
            log.display()
        );
        // Nobody sends on this channel: it is a wait.
        crossbeam_channel::after(ASK_EVERY).recv().ok();
    }
}

fn background(data: &Path, output: &File) -> anyhow::Result<std::process::Child> {
    let program = std::env::current_exe().context("cannot find the program itself")?;
    let mut command = Command::new(program);
    command.arg("serve").arg("--data-dir").arg(data).current_dir("/").stdin(Stdio::null());
    command.stdout(output.try_clone()?).stderr(output.try_clone()?).process_group(0);
    command.spawn().context("cannot start the server")
}

fn last_line(log: &PathBuf) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().last().unwrap_or("it said nothing").to_owned()
}
