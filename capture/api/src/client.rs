//! The client: typed requests to the server of a data directory.
//!
//! Requests go over the server's Unix socket, or over TCP when the user asked for that. The owner's token is
//! sent only to a server that proved itself: the process that `endpoint.json` names, with the start time it
//! gives, of our own user (`transport`).

mod transport;

use std::{
    fmt,
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
    time::Duration,
};

use atomic_file::read_settings;
use serde::{Serialize, de::DeserializeOwned};

use self::transport::{Address, NoResolver, RouteConnector};
use crate::{
    Endpoint, ErrorBody, OperationId,
    endpoint::EndpointError,
    query,
    routes::{BodyForm, NoQuery, Operation, Route},
};

/// Time limit for the server's answer to a ping.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Time limit for any other answer.
const WITHIN: Duration = Duration::from_secs(30);
/// Longest answer that is read, bytes.
const ANSWER_BYTES: u64 = 1 << 30;
/// Longest answer that memory is prepared for before it is read, bytes.
const PREPARED_BYTES: u64 = 16 << 20;
/// Longest report of an error that is read, bytes.
const ERROR_BYTES: u64 = 1 << 20;

/// How to reach the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Connection {
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

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// `endpoint.json` cannot be used.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The address in `endpoint.json` cannot be used.
    #[error("endpoint.json: `{url}` is not a valid URL: {source}")]
    Address {
        /// What it says.
        url: String,
        /// What is wrong with it.
        source: std::net::AddrParseError,
    },
    /// The owner's token cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Token {
        /// Its file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The server cannot be reached, or is not the one `endpoint.json` names.
    #[error("cannot connect to the server (process {pid}): {source}")]
    Connect {
        /// Its process.
        pid: u32,
        /// What the system said.
        source: io::Error,
    },
    /// The server does not answer.
    #[error("the server (process {pid}) did not answer: {source}")]
    Silent {
        /// Its process.
        pid: u32,
        /// What happened.
        source: Box<ureq::Error>,
    },
    /// The answer was cut short.
    #[error("the answer to {path} was cut short: {source}")]
    BrokeOff {
        /// What was asked for.
        path: String,
        /// What happened.
        source: Box<ureq::Error>,
    },
    /// The answer is not what this version expects.
    #[error(
        "cannot decode the server's answer to {path}; if its version differs, run `capture serve --restart`: {source}"
    )]
    Unexpected {
        /// What was asked for.
        path: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The server refused.
    #[error("{message}{}", in_parentheses(.hint.as_deref()))]
    Refused {
        /// The HTTP status.
        status: u16,
        /// What went wrong, for programs; empty when the server did not say.
        code: String,
        /// What went wrong, for people.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
}

fn in_parentheses(hint: Option<&str>) -> String {
    hint.map(|hint| format!(" ({hint})")).unwrap_or_default()
}

impl ClientError {
    /// The HTTP status, when the server refused.
    #[must_use]
    pub const fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            Self::Endpoint(_)
            | Self::Address { .. }
            | Self::Token { .. }
            | Self::Connect { .. }
            | Self::Silent { .. }
            | Self::BrokeOff { .. }
            | Self::Unexpected { .. } => None,
        }
    }
}

/// The host of requests over a Unix socket, where nobody looks at it.
const UNIX_URL: &str = "http://localhost";

impl Client {
    /// Connects to the server that runs now; `None` when there is none.
    ///
    /// # Errors
    /// When `endpoint.json` or the token cannot be read, when another process listens where the
    /// server should, or when the server does not answer.
    pub fn running(data: &Path, connection: Connection) -> Result<Option<Self>, ClientError> {
        let Some(endpoint) = Endpoint::load(data)?.filter(Endpoint::is_alive) else { return Ok(None) };
        let route = route_to(&endpoint, connection)?;
        let stream = match route.open() {
            Ok(stream) => stream,
            Err(error) if is_nobody(&error) => return Ok(None),
            Err(source) => return Err(ClientError::Connect { pid: endpoint.pid, source }),
        };
        let token = read_settings(&endpoint.token_file)
            .and_then(|token| token.ok_or_else(|| std::io::ErrorKind::NotFound.into()))
            .map_err(|source| ClientError::Token { path: endpoint.token_file.clone(), source })?;
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            // The server redirects from the former id of a session to the one it has now.
            .redirect_auth_headers(ureq::config::RedirectAuthHeaders::SameHost)
            .build();
        let agent = ureq::Agent::with_parts(config, RouteConnector::new(route, stream), NoResolver);
        let base = match connection {
            Connection::Unix => UNIX_URL.to_owned(),
            Connection::Tcp => endpoint.url.clone(),
        };
        let client = Self { agent, endpoint, base, token: token.trim().to_owned() };
        client.ping()?;
        Ok(Some(client))
    }

    /// Asks for a sign of life.
    fn ping(&self) -> Result<(), ClientError> {
        let request = self.agent.get(self.url(OperationId::Healthz.route().path));
        let answer = request.config().timeout_global(Some(ANSWER_WITHIN)).build().call();
        answer.map(|_| ()).map_err(|error| self.silent(error))
    }

    /// Where the server is.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    fn silent(&self, source: ureq::Error) -> ClientError {
        ClientError::Silent { pid: self.endpoint.pid, source: Box::new(source) }
    }

    /// Gets the answer of a route; `segment` is the value of the variable segment of its path, "" without one.
    ///
    /// # Errors
    /// When the server refuses, does not answer, or answers what is not expected.
    pub fn get<O: Operation<Answer: DeserializeOwned>>(
        &self,
        segment: &str,
        query: &O::Query,
    ) -> Result<O::Answer, ClientError> {
        let path = path_of(O::ID.route(), segment, query);
        parse(&path, &self.text(&path, Some(WITHIN))?)
    }

    /// Gets the answer of a route without parameters.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn one<O: Operation<Query = NoQuery, Answer: DeserializeOwned>>(
        &self,
        segment: &str,
    ) -> Result<O::Answer, ClientError> {
        self.get::<O>(segment, &NoQuery {})
    }

    /// As [`get`](Self::get), for a route that answers when something happens, with a bound of its own.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_within<O: Operation<Answer: DeserializeOwned>>(
        &self,
        segment: &str,
        query: &O::Query,
        within: Duration,
    ) -> Result<O::Answer, ClientError> {
        let path = path_of(O::ID.route(), segment, query);
        parse(&path, &self.text(&path, Some(within))?)
    }

    /// Sends a body to a route and gets its answer.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn send<O>(&self, segment: &str, body: &O::Body) -> Result<O::Answer, ClientError>
    where
        O: Operation<Query = NoQuery, Body: BodyForm + Serialize, Answer: DeserializeOwned>,
    {
        self.send_within::<O>(segment, body, WITHIN)
    }

    /// As [`send`](Self::send), with another time limit.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn send_within<O>(&self, segment: &str, body: &O::Body, within: Duration) -> Result<O::Answer, ClientError>
    where
        O: Operation<Query = NoQuery, Body: BodyForm + Serialize, Answer: DeserializeOwned>,
    {
        let route = O::ID.route();
        let path = path_of(route, segment, &NoQuery {});
        let url = self.url(&path);
        let request = if route.method == http::Method::PUT { self.agent.put(url) } else { self.agent.post(url) };
        let text =
            serde_json::to_string(body).map_err(|source| ClientError::Unexpected { path: path.clone(), source })?;
        let response = request
            .header("Authorization", format!("Bearer {}", self.token))
            .header("Content-Type", "application/json")
            .config()
            .timeout_global(Some(within))
            .build()
            .send(text)
            .map_err(|error| self.silent(error))?;
        parse(&path, &read(&path, good(response)?)?)
    }

    /// Deletes what a route names.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn delete<O: Operation<Answer: DeserializeOwned>>(
        &self,
        segment: &str,
        query: &O::Query,
    ) -> Result<O::Answer, ClientError> {
        let path = path_of(O::ID.route(), segment, query);
        let response = self
            .agent
            .delete(self.url(&path))
            .header("Authorization", format!("Bearer {}", self.token))
            .config()
            .timeout_global(Some(WITHIN))
            .build()
            .call()
            .map_err(|error| self.silent(error))?;
        parse(&path, &read(&path, good(response)?)?)
    }

    /// Opens a stream of server-sent events; gives (event, data) one after another.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn stream<O: Operation>(
        &self,
        segment: &str,
        query: &O::Query,
    ) -> Result<impl Iterator<Item = io::Result<(String, String)>> + use<O>, ClientError> {
        let response = self.call(&path_of(O::ID.route(), segment, query), None)?;
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

    fn text(&self, path: &str, within: Option<Duration>) -> Result<String, ClientError> {
        read(path, self.call(path, within)?)
    }

    fn call(&self, path: &str, within: Option<Duration>) -> Result<Response, ClientError> {
        let request = self.agent.get(self.url(path)).header("Authorization", format!("Bearer {}", self.token));
        let response = request.config().timeout_global(within).build().call();
        good(response.map_err(|error| self.silent(error))?)
    }
}

type Response = ureq::http::Response<ureq::Body>;

fn path_of(route: &Route, segment: &str, query: &impl Serialize) -> String {
    route.path_of(segment) + &query::write(query)
}

fn parse<T: DeserializeOwned>(path: &str, text: &str) -> Result<T, ClientError> {
    serde_json::from_str(text).map_err(|source| ClientError::Unexpected { path: path.to_owned(), source })
}

fn read(path: &str, mut response: Response) -> Result<String, ClientError> {
    let broke_off = |error: ureq::Error| ClientError::BrokeOff { path: path.to_owned(), source: Box::new(error) };
    let body = response.body_mut();
    // A long answer that grows in a text of no length is copied again and again.
    let length = body.content_length().unwrap_or_default().min(PREPARED_BYTES);
    let mut text = String::with_capacity(usize::try_from(length).unwrap_or_default());
    let read = body.with_config().limit(ANSWER_BYTES).reader().read_to_string(&mut text);
    read.map_err(|error| broke_off(error.into()))?;
    Ok(text)
}

/// The answer when it is a good one; else what it says is wrong.
fn good(mut response: Response) -> Result<Response, ClientError> {
    let status = response.status().as_u16();
    if status < 300 {
        return Ok(response);
    }
    let body = response.body_mut().with_config().limit(ERROR_BYTES).read_to_string().unwrap_or_default();
    Err(match serde_json::from_str::<ErrorBody>(&body) {
        Ok(ErrorBody { error }) => {
            ClientError::Refused { status, code: error.code, message: error.message, hint: error.hint }
        }
        Err(_) => {
            let message = format!("the server answered {status}");
            ClientError::Refused { status, code: String::new(), message, hint: None }
        }
    })
}

fn route_to(endpoint: &Endpoint, connection: Connection) -> Result<transport::Route, ClientError> {
    let address = match connection {
        Connection::Unix => Address::Unix(endpoint.socket.clone()),
        Connection::Tcp => {
            let address = endpoint.url.strip_prefix("http://").unwrap_or(&endpoint.url);
            let wrong = |source| ClientError::Address { url: endpoint.url.clone(), source };
            Address::Tcp(address.parse().map_err(wrong)?)
        }
    };
    Ok(transport::Route { address, pid: endpoint.pid })
}

/// Whether nobody listens: the server is about to listen, or has just stopped.
fn is_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}
