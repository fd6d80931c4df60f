//! The client: typed requests to the server of a data directory.
//!
//! Requests go over the server's Unix socket, or over TCP if the user asked for that. The owner's token is sent only to
//! a server that proved its identity: the process that `endpoint.json` names, with the recorded start time, of our own
//! user (`transport`).

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
/// Time limit for all other answers.
const WITHIN: Duration = Duration::from_secs(30);
/// Maximum size of an answer, bytes.
const ANSWER_BYTES: u64 = 1 << 30;
/// Maximum amount of memory allocated for an answer before it is read, bytes.
const PREPARED_BYTES: u64 = 16 << 20;
/// Maximum size of an error response, bytes.
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

/// A client of a data directory's server.
pub struct Client {
    agent: ureq::Agent,
    endpoint: Endpoint,
    /// The prefix of request paths.
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
    /// The address in `endpoint.json` is invalid.
    #[error("endpoint.json: `{url}` is not a valid URL: {source}")]
    Address {
        /// The address.
        url: String,
        /// The error.
        source: std::net::AddrParseError,
    },
    /// The owner's token cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Token {
        /// The file of the token.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The server cannot be reached, or is not the one `endpoint.json` names.
    #[error("cannot connect to the server (process {pid}): {source}")]
    Connect {
        /// The server's process.
        pid: u32,
        /// The system's error.
        source: io::Error,
    },
    /// The server does not answer.
    #[error("the server (process {pid}) did not answer: {source}")]
    Silent {
        /// The server's process.
        pid: u32,
        /// The error.
        source: Box<ureq::Error>,
    },
    /// The answer was cut short.
    #[error("the answer to {path} was cut short: {source}")]
    BrokeOff {
        /// The path of the request.
        path: String,
        /// The error.
        source: Box<ureq::Error>,
    },
    /// This version cannot decode the answer.
    #[error(
        "cannot decode the server's answer to {path}; if its version differs, run `capture serve --restart`: {source}"
    )]
    Unexpected {
        /// The path of the request.
        path: String,
        /// The error.
        source: serde_json::Error,
    },
    /// The server refused the request.
    #[error("{message}{}", in_parentheses(.hint.as_deref()))]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The error code, for programs; empty if the server sent none.
        code: String,
        /// The error message, for users.
        message: String,
        /// How to fix the problem.
        hint: Option<String>,
    },
}

fn in_parentheses(hint: Option<&str>) -> String {
    hint.map(|hint| format!(" ({hint})")).unwrap_or_default()
}

impl ClientError {
    /// The HTTP status, if the server refused the request.
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

/// The host in requests over a Unix socket, which the server ignores.
const UNIX_URL: &str = "http://localhost";

impl Client {
    /// Connects to the running server; `None` if there is none.
    ///
    /// # Errors
    /// If `endpoint.json` or the token cannot be read, if another process listens at the server's address, or if the
    /// server does not answer.
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
            // The server redirects from a session's former id to its current one.
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

    /// Checks that the server answers.
    fn ping(&self) -> Result<(), ClientError> {
        let request = self.agent.get(self.url(OperationId::Healthz.route().path));
        let answer = request.config().timeout_global(Some(ANSWER_WITHIN)).build().call();
        answer.map(|_| ()).map_err(|error| self.silent(error))
    }

    /// The server's addresses and process.
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

    /// Requests the answer of a route; `segment` is the value of the path's variable segment, or "" if it has none.
    ///
    /// # Errors
    /// If the server refuses, does not answer, or sends an unexpected answer.
    pub fn get<O: Operation<Answer: DeserializeOwned>>(
        &self,
        segment: &str,
        query: &O::Query,
    ) -> Result<O::Answer, ClientError> {
        let path = path_of(O::ID.route(), segment, query);
        parse(&path, &self.text(&path, Some(WITHIN))?)
    }

    /// Requests the answer of a route without parameters.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn one<O: Operation<Query = NoQuery, Answer: DeserializeOwned>>(
        &self,
        segment: &str,
    ) -> Result<O::Answer, ClientError> {
        self.get::<O>(segment, &NoQuery {})
    }

    /// Like [`get`](Self::get), with another time limit, for a route that answers when something happens.
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

    /// Sends a body to a route and returns its answer.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn send<O>(&self, segment: &str, body: &O::Body) -> Result<O::Answer, ClientError>
    where
        O: Operation<Query = NoQuery, Body: BodyForm + Serialize, Answer: DeserializeOwned>,
    {
        self.send_within::<O>(segment, body, WITHIN)
    }

    /// Like [`send`](Self::send), with another time limit.
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

    /// Deletes the object that a route names.
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

    /// Opens a stream of server-sent events, and yields pairs of event name and data.
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
    // Reserve memory, because a string that grows with a long answer is copied again and again.
    let length = body.content_length().unwrap_or_default().min(PREPARED_BYTES);
    let mut text = String::with_capacity(usize::try_from(length).unwrap_or_default());
    let read = body.with_config().limit(ANSWER_BYTES).reader().read_to_string(&mut text);
    read.map_err(|error| broke_off(error.into()))?;
    Ok(text)
}

/// Returns a successful response, or the error that the server reports.
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

/// Whether no process listens: the server is about to listen, or has just stopped.
fn is_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}
