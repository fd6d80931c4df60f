//! Decides which requests are let in. Every check uses only the head of the request, before its body is read and before
//! a handler is chosen; nothing here waits.

use std::net::{IpAddr, SocketAddr};

use api::{ErrorCode, Scope, part::shown};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use tokio::time::Instant;

use crate::{
    Config,
    access::{Grants, Tokens, WrongTokens},
    call::Transport,
    error::ApiError,
    peer::{Peer, PeerCheck, TcpCheck},
};

/// Header with which a web page of a public network requests access to a private one.
const PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-request-private-network");

/// A host as the Host header names it.
fn with_port(name: &str, port: u16) -> String {
    let has_port = name.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    // The colons of a bare IPv6 address stand between brackets.
    if has_port && !name.ends_with(']') { name.to_owned() } else { format!("{name}:{port}") }
}

/// Lets in or turns away.
pub(crate) struct Gate {
    /// What the Host header may say.
    hosts: Vec<String>,
    tokens: Tokens,
    wrong: WrongTokens,
    control_peer: Option<PeerCheck>,
    control_tcp: Option<TcpCheck>,
}

impl Gate {
    pub(crate) fn new(address: SocketAddr, config: &Config) -> Self {
        let port = address.port();
        let mut hosts = vec![format!("127.0.0.1:{port}"), format!("localhost:{port}"), format!("[::1]:{port}")];
        let ip = address.ip();
        if !ip.is_loopback() && !ip.is_unspecified() {
            hosts.push(match ip {
                IpAddr::V4(_) => format!("{ip}:{port}"),
                IpAddr::V6(_) => format!("[{ip}]:{port}"),
            });
        }
        hosts.extend(config.allowed_hosts.iter().map(|name| with_port(name, port)));
        Self {
            hosts,
            tokens: config.tokens.clone(),
            wrong: WrongTokens::default(),
            control_peer: config.control_peer.clone(),
            control_tcp: config.control_tcp.clone(),
        }
    }

    /// Checks what a browser cannot help saying: the host it thinks it talks to (a rebound name
    /// gives itself away) and the page that asks. On the Unix socket there are no browsers, so the
    /// host says nothing and an origin is a forgery.
    pub(crate) fn check_origin(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        transport: &Transport,
    ) -> Result<(), ApiError> {
        if uri.authority().is_some() || !uri.path().starts_with('/') {
            return Err(ApiError::new(ErrorCode::BadTarget, "the request target must be a path"));
        }
        match transport {
            Transport::Tcp(..) => {
                let host = only(headers, &header::HOST)
                    .is_some_and(|host| self.hosts.iter().any(|own| own.as_bytes().eq_ignore_ascii_case(host)));
                if !host {
                    return Err(wrong_host(only(headers, &header::HOST)));
                }
                if headers.contains_key(header::ORIGIN) {
                    let own = only(headers, &header::ORIGIN)
                        .and_then(|origin| origin.strip_prefix(b"http://"))
                        .is_some_and(|origin| self.hosts.iter().any(|own| own.as_bytes() == origin));
                    if !own {
                        return Err(foreign_origin());
                    }
                }
            }
            Transport::Unix(_) => {
                if headers.contains_key(header::ORIGIN) {
                    return Err(foreign_origin());
                }
            }
        }
        if *method == Method::OPTIONS && headers.contains_key(PRIVATE_NETWORK) {
            let why = "web pages from other networks may not call this server";
            return Err(ApiError::new(ErrorCode::PrivateNetwork, why));
        }
        Ok(())
    }

    /// What the caller may do, by its token and the way it came.
    pub(crate) fn grants(&self, headers: &HeaderMap, transport: &Transport) -> Result<Grants, ApiError> {
        let by_token = self.by_token(headers, transport)?;
        Ok(match transport {
            Transport::Tcp(..) => by_token,
            Transport::Unix(peer) => {
                let may_control = self.peer_refusal(*peer).is_none();
                let by_token =
                    if may_control { by_token } else { by_token.without(Grants::CONTROL.and(Grants::ADMIN)) };
                by_token.and(Grants::INGEST).and(Grants::READ)
            }
        })
    }

    /// Why this process may not use the scopes `control` and `admin`.
    fn peer_refusal(&self, peer: Peer) -> Option<String> {
        self.control_peer.as_ref().and_then(|check| check(peer))
    }

    /// What the token alone opens.
    fn by_token(&self, headers: &HeaderMap, transport: &Transport) -> Result<Grants, ApiError> {
        let Some(token) = bearer(headers) else { return Ok(Grants::NONE) };
        let grants = self.tokens.grants(token);
        if grants == Grants::NONE { Err(self.wrong_token(transport)) } else { Ok(grants) }
    }

    /// Checks that the caller may use a route of this scope.
    pub(crate) fn check_scope(&self, scope: Scope, headers: &HeaderMap, transport: &Transport) -> Result<(), ApiError> {
        if scope == Scope::Open {
            return Ok(());
        }
        if let (Transport::Unix(_), Scope::Read | Scope::Ingest) = (transport, scope) {
            // The socket opens these to every process of our user: whom it descends from is not looked up.
            return self.by_token(headers, transport).map(|_| ());
        }
        let grants = self.grants(headers, transport)?;
        if grants.cover(scope) {
            self.check_tcp_peer(scope, transport)
        } else if grants == Grants::NONE {
            Err(ApiError::unauthorized())
        } else if let Transport::Unix(peer) = transport
            && self.by_token(headers, transport)?.cover(scope)
        {
            Err(agents_peer(&self.peer_refusal(*peer).unwrap_or_else(|| UNINSPECTED.into())))
        } else {
            Err(wrong_scope(self.by_token(headers, transport)?, scope))
        }
    }

    /// An agent's own shell can read the token, but must not act with it. The kernel does not name
    /// the peer of a TCP connection, so it is looked for, and for these scopes only.
    fn check_tcp_peer(&self, scope: Scope, transport: &Transport) -> Result<(), ApiError> {
        let acts = match scope {
            Scope::Control | Scope::Admin => true,
            Scope::Open | Scope::Ingest | Scope::Read => false,
        };
        match (transport, &self.control_tcp) {
            (Transport::Tcp(from, to, _), Some(check)) if acts => {
                check(*from, *to).map_or(Ok(()), |why| Err(agents_peer(&why)))
            }
            (Transport::Tcp(..) | Transport::Unix(_), _) => Ok(()),
        }
    }

    /// Checks that the caller has any right at all: strangers are not told which paths exist.
    pub(crate) fn check_known(&self, headers: &HeaderMap, transport: &Transport) -> Result<(), ApiError> {
        if self.grants(headers, transport)? == Grants::NONE { Err(ApiError::unauthorized()) } else { Ok(()) }
    }

    fn wrong_token(&self, transport: &Transport) -> ApiError {
        if self.wrong.note(transport.client(), Instant::now()) {
            ApiError::new(
                ErrorCode::TooManyWrongTokens,
                format!("too many requests with a wrong token; wait {} s", WrongTokens::WINDOW.as_secs()),
            )
            .header(header::RETRY_AFTER, HeaderValue::from(WrongTokens::WINDOW.as_secs()))
        } else {
            ApiError::wrong_token()
        }
    }
}

/// Why a process may not act when nothing is known about it.
const UNINSPECTED: &str = "capture cannot tell whether an agent started it";

fn agents_peer(why: &str) -> ApiError {
    ApiError::new(
        ErrorCode::AgentsPeer,
        format!("not allowed from this process, since processes started by an agent may not do this: {why}"),
    )
}

/// The scopes of the token that was sent, if any, do not include the one of the route.
fn wrong_scope(by_token: Grants, scope: Scope) -> ApiError {
    let has: Vec<_> = by_token.scopes().map(|scope| format!("`{}`", scope.as_str())).collect();
    let needed = scope.as_str();
    let why = match has.as_slice() {
        [] => format!(
            "this route needs a token with the scope `{needed}` ; use the one in `tokens/{needed}` in the data directory"
        ),
        has => format!(
            "the token has the scope {}, but this route needs `{needed}`; use the one in `tokens/{needed}` in the data \
             directory",
            has.join(", ")
        ),
    };
    ApiError::new(ErrorCode::WrongScope, why)
}

/// The Host header of a request is not one of ours; what it says is shown escaped and cut.
fn wrong_host(given: Option<&[u8]>) -> ApiError {
    let given = given.map(|host| shown(&host.escape_ascii().to_string()));
    let why = given.map_or_else(
        || "the request needs exactly one Host header".to_owned(),
        |host| format!("the Host header, `{host}`, does not name this server"),
    );
    ApiError::new(ErrorCode::WrongHost, why).hint("to use another name, start the server with `--allowed-host NAME`")
}

fn foreign_origin() -> ApiError {
    ApiError::new(ErrorCode::ForeignOrigin, "web pages from other origins may not call this server")
}

/// The value of a header that must not come twice.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    values.next().is_none().then(|| value.as_bytes())
}

/// The bearer token; empty when there is an `Authorization` of another kind, or two.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    if !headers.contains_key(header::AUTHORIZATION) {
        return None;
    }
    let value = only(headers, &header::AUTHORIZATION).unwrap_or_default();
    let (scheme, token) = value.split_at_checked(7).unwrap_or_default();
    Some(if scheme.eq_ignore_ascii_case(b"bearer ") { token.trim_ascii() } else { b"" })
}
