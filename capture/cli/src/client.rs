//! The command line's side of the HTTP interface.
//!
//! Requests go over the server's Unix socket, or over TCP when the user asked for that. The owner's
//! token is sent only to a server that proved itself: the process that `endpoint.json` names, with the
//! start time it gives, of our own user (`transport`). `start` starts a server when there is none.

mod start;
mod stop;
mod transport;

use std::{
    io::{BufRead, BufReader},
    path::Path,
    time::Duration,
};

use anyhow::Context;
use serde::{Deserialize, de::DeserializeOwned};

use self::transport::{Address, NoResolver, Route, RouteConnector};
use crate::commands::Failed;
use daemon::{config::Config, endpoint::Endpoint};

/// A server that is asked whether it is there must answer within this time.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// How to reach the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// Over its Unix socket.
    #[default]
    Unix,
    /// Over its TCP port on this machine.
    Tcp,
}

/// Talks to the server of a data directory.
pub struct Client {
    agent: ureq::Agent,
    endpoint: Endpoint,
    /// What the paths of requests are appended to.
    base: String,
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

/// The host of requests over a Unix socket, where nobody looks at it.
const UNIX_URL: &str = "http://localhost";

impl Client {
    /// Connects to the running server, or starts one in the background where the configuration
    /// allows it.
    ///
    /// # Errors
    /// When there is none and none can be started.
    pub fn connect(data: &Path, config: &Config, transport: Transport) -> anyhow::Result<Self> {
        if let Some(client) = Self::running(data, transport)? {
            return Ok(client);
        }
        if !config.autostart {
            return Err(Failed::Other(
                "no server is running; start one with `capture serve` (autostart is off)".into(),
            )
            .into());
        }
        start::start(data, transport)
    }

    /// Connects to the server that runs now; `None` when there is none.
    ///
    /// # Errors
    /// When `endpoint.json` or the token cannot be read, when another process listens where the
    /// server should, or when the server does not answer.
    pub fn running(data: &Path, transport: Transport) -> anyhow::Result<Option<Self>> {
        let Some(endpoint) = Endpoint::load(data)?.filter(Endpoint::is_alive) else { return Ok(None) };
        let route = Route::to(&endpoint, transport)?;
        let stream = match route.open() {
            Ok(stream) => stream,
            Err(error) if is_nobody(&error) => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot connect to the server (process {})", endpoint.pid));
            }
        };
        let token = std::fs::read_to_string(&endpoint.token_file)
            .with_context(|| format!("cannot read {}", endpoint.token_file.display()))?;
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            // The server redirects from the former id of a session to the one it has now.
            .redirect_auth_headers(ureq::config::RedirectAuthHeaders::SameHost)
            .build();
        let agent = ureq::Agent::with_parts(config, RouteConnector::new(route, stream), NoResolver);
        let base = match transport {
            Transport::Unix => UNIX_URL.to_owned(),
            Transport::Tcp => endpoint.url.clone(),
        };
        let client = Self { agent, endpoint, base, token: token.trim().to_owned() };
        client.ping()?;
        Ok(Some(client))
    }

    /// Asks for a sign of life.
    fn ping(&self) -> anyhow::Result<()> {
        let asked = self.agent.get(self.url("/healthz"));
        asked.config().timeout_global(Some(ANSWER_WITHIN)).build().call().with_context(|| self.silent())?;
        Ok(())
    }

    /// Where the server is.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    fn silent(&self) -> String {
        format!("the server (process {}) does not answer", self.endpoint.pid)
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
        self.send(self.agent.post(self.url(path)), path, body)
    }

    /// Puts JSON in its place and takes a JSON answer.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn put<T: DeserializeOwned>(&self, path: &str, body: &impl serde::Serialize) -> anyhow::Result<T> {
        self.send(self.agent.put(self.url(path)), path, body)
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
            .with_context(|| self.silent())?;
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
        let request = self.agent.get(self.url(path)).header("Authorization", format!("Bearer {}", self.token));
        let response = request.config().timeout_global(within).build().call().with_context(|| self.silent())?;
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

impl Route {
    /// The way to the server that this file names.
    fn to(endpoint: &Endpoint, transport: Transport) -> anyhow::Result<Self> {
        let address = match transport {
            Transport::Unix => Address::Unix(endpoint.socket.clone()),
            Transport::Tcp => {
                let address = endpoint.url.strip_prefix("http://").unwrap_or(&endpoint.url);
                Address::Tcp(address.parse().with_context(|| format!("`{}` has no address", endpoint.url))?)
            }
        };
        Ok(Self { address, pid: endpoint.pid })
    }
}

/// Whether nobody listens: the server is about to listen, or has just stopped.
fn is_nobody(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused)
}
