//! Decides which requests are let in. Every check uses only the head of the request, runs before the body is read and
//! the handler chosen, and never waits.

use std::net::{IpAddr, SocketAddr};

use api::{ErrorCode, Route, Scope, devices::COOKIE, part::shown, routes::AnswerKind};
use devices::{Caller, Devices, SignedIn};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use live_view::Peer;
use tokio::time::Instant;

use crate::{
    Config,
    access::{Grants, Tokens, WrongTokens},
    connection::Transport,
    error::ApiError,
    peer::{Client, PeerCheck, TcpCheck, TcpRefusal},
};

/// Header with which a web page of a public network requests access to a private network.
const PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-request-private-network");

/// Header that marks requests of our own page. A page of another origin would need a preflight request to send it.
const OWN_PAGE: HeaderName = HeaderName::from_static("x-capture");
/// Header in which a browser reports which site sent a request.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// A host in the format of the Host header.
fn with_port(name: &str, port: u16) -> String {
    let has_port = name.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    // The colons of a bare IPv6 address are inside brackets.
    if has_port && !name.ends_with(']') { name.to_owned() } else { format!("{name}:{port}") }
}

/// A host without its port, if that is a default port, which browsers omit: the address of a proxy in front of the
/// server.
fn without_default_port(name: &str) -> Option<&str> {
    let has_port = name.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) && !name.ends_with(']');
    if has_port { name.strip_suffix(":443").or_else(|| name.strip_suffix(":80")) } else { Some(name) }
}

/// Lets requests in or refuses them.
pub(crate) struct Gate {
    /// The accepted values of the Host header.
    hosts: Vec<String>,
    /// The accepted names that the user configured; a proxy may serve them over TLS.
    proxied: Vec<String>,
    tokens: Tokens,
    devices: Option<Devices>,
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
        let allowed = config.allowed_hosts.iter();
        let proxied: Vec<String> = allowed
            .flat_map(|name| [Some(with_port(name, port)), without_default_port(name).map(str::to_owned)])
            .flatten()
            .collect();
        hosts.extend(proxied.iter().cloned());
        Self {
            hosts,
            proxied,
            tokens: config.tokens.clone(),
            devices: config.devices.clone(),
            wrong: WrongTokens::default(),
            control_peer: config.control_peer.clone(),
            control_tcp: config.control_tcp.clone(),
        }
    }

    /// Checks the headers that a browser always sets: the host it believes it is talking to, which exposes a rebound
    /// name, and the page that sent the request. There are no browsers on the Unix socket, so the host is ignored there
    /// and an origin is a forgery.
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
                if headers.contains_key(header::ORIGIN) && !self.is_own_origin(headers) {
                    return Err(foreign_origin());
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

    /// Whether the request's single `Origin` is this server's, as browsers name it.
    fn is_own_origin(&self, headers: &HeaderMap) -> bool {
        let Some(origin) = only(headers, &header::ORIGIN) else { return false };
        let is_one_of = |names: &[String], origin: &[u8]| names.iter().any(|own| own.as_bytes() == origin);
        match (origin.strip_prefix(b"http://"), origin.strip_prefix(b"https://")) {
            (Some(origin), _) => is_one_of(&self.hosts, origin),
            (None, Some(origin)) => is_one_of(&self.proxied, origin),
            (None, None) => false,
        }
    }

    /// Checks that our own page sent a request that changes something: the request has our origin, and a header that a
    /// page of another origin cannot send without a preflight request.
    pub(crate) fn check_own_page(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let is_own = self.is_own_origin(headers) && only(headers, &OWN_PAGE) == Some(b"1");
        if is_own { check_fetch_site(headers, &Method::POST) } else { Err(not_own_page()) }
    }

    /// The device of a request's cookie. If the request has a token, the token is used instead.
    fn device(&self, headers: &HeaderMap, transport: &Transport) -> Option<Result<SignedIn, ApiError>> {
        let devices = self.devices.as_ref()?;
        if headers.contains_key(header::AUTHORIZATION) || matches!(transport, Transport::Unix(_)) {
            return None;
        }
        let mut cookies = cookies(headers).peekable();
        cookies.peek()?;
        let value = cookies.next().filter(|_| cookies.next().is_none());
        // If there are two cookies, someone else set one of them.
        Some(value.and_then(|value| devices.sign_in(value)).ok_or_else(ApiError::not_signed_in))
    }

    /// Checks that a device may make a request, and that our own page sent it.
    fn check_device(
        &self,
        device: &SignedIn,
        route: &Route,
        method: &Method,
        headers: &HeaderMap,
        transport: &Transport,
    ) -> Result<(), ApiError> {
        check_fetch_site(headers, method)?;
        if !is_safe(method) {
            self.check_own_page(headers)?;
        } else if is_stream(route) {
            // A page on another port of this machine could open the stream, and the browser would send the cookie.
            let site = only(headers, &FETCH_SITE);
            let is_own =
                self.is_own_origin(headers) || site == Some(b"same-origin") || only(headers, &OWN_PAGE) == Some(b"1");
            if !is_own {
                return Err(not_own_page());
            }
        }
        if !device.covers(route.scope) {
            return Err(uncovered(device, route.scope));
        }
        self.check_device_peer(device, route.scope, transport)
    }

    /// Checks a browser on this machine like any TCP client, with two exceptions, which are safe because no agent has a
    /// cookie: a connection from another user's process, such as a proxy's, is accepted, and a device paired for a
    /// tunnel may connect through a process that cannot be identified, such as sshd.
    pub(crate) fn check_device_peer(
        &self,
        device: &SignedIn,
        scope: Scope,
        transport: &Transport,
    ) -> Result<(), ApiError> {
        if let Transport::Tcp(_, _, Client::User(_)) = transport {
            return Ok(());
        }
        match self.tcp_refusal(scope, transport) {
            None => Ok(()),
            Some(TcpRefusal::Unidentified) if device.device.tunnel => Ok(()),
            Some(refusal) => Err(agents_peer(&refusal.to_string())),
        }
    }

    /// Classifies the client that enters a pairing code; refuses descendants of an agent.
    pub(crate) fn pairing_caller(&self, transport: &Transport) -> Result<Caller, ApiError> {
        match self.tcp_refusal(Scope::Control, transport) {
            Some(TcpRefusal::Agent(why)) => Err(agents_peer(&why)),
            refusal => Ok(match (transport.client(), refusal) {
                (Client::User(_) | Client::Machine(_), _) => Caller::Other,
                (Client::Own | Client::Unnamed, Some(_)) | (Client::Unnamed, None) => Caller::Unidentified,
                (Client::Own, None) => Caller::Own,
            }),
        }
    }

    /// Checks that a request may also change how capture works: its token has the scope `admin`, or its device is
    /// elevated.
    pub(crate) fn check_raised(
        &self,
        device: Option<&SignedIn>,
        headers: &HeaderMap,
        transport: &Transport,
    ) -> Result<(), ApiError> {
        match device {
            Some(device) if device.covers(Scope::Admin) => Ok(()),
            Some(device) => Err(uncovered(device, Scope::Admin)),
            None => self.check_scope(Scope::Admin, headers, transport),
        }
    }

    /// Checks that the client of a connection may act through it.
    pub(crate) fn check_control(
        &self,
        device: Option<&SignedIn>,
        headers: &HeaderMap,
        transport: &Transport,
    ) -> Result<(), ApiError> {
        match device {
            Some(device) if device.covers(Scope::Control) => self.check_device_peer(device, Scope::Control, transport),
            Some(device) => Err(uncovered(device, Scope::Control)),
            None => self.check_scope(Scope::Control, headers, transport),
        }
    }

    /// Counts a wrong code as a wrong token.
    pub(crate) fn wrong_code(&self, transport: &Transport) -> ApiError {
        if self.wrong.note(transport.client(), Instant::now()) {
            too_many_wrong()
        } else {
            ApiError::new(ErrorCode::WrongCode, "the code is wrong")
                .hint("`capture web pair` prints a new code, which is valid for one minute")
        }
    }

    /// Counts an invalid button token as a wrong token.
    pub(crate) fn wrong_button(&self, transport: &Transport) -> ApiError {
        if self.wrong.note(transport.client(), Instant::now()) {
            too_many_wrong()
        } else {
            ApiError::new(ErrorCode::CodeExpired, "this button has expired, or was already pressed")
        }
    }

    /// The scopes that the caller's token and transport grant.
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

    /// The scopes that the token alone grants.
    fn by_token(&self, headers: &HeaderMap, transport: &Transport) -> Result<Grants, ApiError> {
        let Some(token) = bearer(headers) else { return Ok(Grants::NONE) };
        let grants = self.tokens.grants(token);
        if grants == Grants::NONE { Err(self.wrong_token(transport)) } else { Ok(grants) }
    }

    /// Checks that the caller may use a route; returns the signed-in device, if the request has a device's cookie.
    pub(crate) fn check_route(
        &self,
        route: &Route,
        method: &Method,
        headers: &HeaderMap,
        transport: &Transport,
    ) -> Result<Option<SignedIn>, ApiError> {
        if route.scope != Scope::Open
            && let Some(device) = self.device(headers, transport)
        {
            let device = device?;
            self.check_device(&device, route, method, headers, transport)?;
            return Ok(Some(device));
        }
        self.check_scope(route.scope, headers, transport).map(|()| None)
    }

    /// Checks that the caller's token or transport grants this scope.
    pub(crate) fn check_scope(&self, scope: Scope, headers: &HeaderMap, transport: &Transport) -> Result<(), ApiError> {
        if scope == Scope::Open {
            return Ok(());
        }
        if let (Transport::Unix(_), Scope::Read | Scope::Ingest) = (transport, scope) {
            // The socket grants these scopes to every process of our user, so its ancestors are not looked up.
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

    /// An agent's own shell can read the token but must not act with it. The kernel does not report the peer of a TCP
    /// connection, so the peer is searched for, and only for these scopes.
    fn check_tcp_peer(&self, scope: Scope, transport: &Transport) -> Result<(), ApiError> {
        self.tcp_refusal(scope, transport).map_or(Ok(()), |refusal| Err(agents_peer(&refusal.to_string())))
    }

    /// Why the peer of a TCP connection may not use a scope.
    fn tcp_refusal(&self, scope: Scope, transport: &Transport) -> Option<TcpRefusal> {
        let acts = match scope {
            Scope::Control | Scope::Admin => true,
            Scope::Open | Scope::Ingest | Scope::Read => false,
        };
        match (transport, &self.control_tcp) {
            (Transport::Tcp(from, to, _), Some(check)) if acts => check(*from, *to),
            (Transport::Tcp(..) | Transport::Unix(_), _) => None,
        }
    }

    /// Checks that the caller has any access at all, so that strangers do not learn which paths exist.
    pub(crate) fn check_known(&self, headers: &HeaderMap, transport: &Transport) -> Result<(), ApiError> {
        if let Some(device) = self.device(headers, transport) {
            return device.map(|_| ());
        }
        if self.grants(headers, transport)? == Grants::NONE { Err(ApiError::unauthorized()) } else { Ok(()) }
    }

    fn wrong_token(&self, transport: &Transport) -> ApiError {
        if self.wrong.note(transport.client(), Instant::now()) { too_many_wrong() } else { ApiError::wrong_token() }
    }
}

fn too_many_wrong() -> ApiError {
    let seconds = WrongTokens::WINDOW.as_secs();
    let why = format!("too many requests with a wrong token or code; wait {seconds} s");
    ApiError::new(ErrorCode::TooManyWrongTokens, why).header(header::RETRY_AFTER, HeaderValue::from(seconds))
}

/// Whether a method changes nothing.
fn is_safe(method: &Method) -> bool {
    [Method::GET, Method::HEAD, Method::OPTIONS].contains(method)
}

/// Whether the response of a route continues as long as the client stays connected.
fn is_stream(route: &Route) -> bool {
    match route.answer {
        AnswerKind::Events | AnswerKind::JsonOrEvents(_) | AnswerKind::WebSocket | AnswerKind::Upgrade => true,
        AnswerKind::Json(_) | AnswerKind::JsonOrNothing(_) | AnswerKind::Telemetry | AnswerKind::Text(_) => false,
    }
}

/// Refuses requests that the browser attributes to another site's page. A cookie proves nothing here: browsers send it
/// to every port of a host, and pages on other ports belong to the same site. An address the user typed belongs to no
/// site.
fn check_fetch_site(headers: &HeaderMap, method: &Method) -> Result<(), ApiError> {
    match headers.get(FETCH_SITE).map(HeaderValue::as_bytes) {
        None | Some(b"same-origin") => Ok(()),
        Some(b"none") if is_safe(method) => Ok(()),
        Some(_) => Err(foreign_origin()),
    }
}

/// The error for a device whose scope is too small.
fn uncovered(device: &SignedIn, scope: Scope) -> ApiError {
    let id = &device.device.id;
    if scope == Scope::Admin && device.covers(Scope::Control) {
        return ApiError::new(ErrorCode::StepUpRequired, "this needs a second code from the terminal")
            .hint(format!("run `capture web pair --scope admin --device {id}` and enter the code"));
    }
    let (has, needed) = (device.device.scope.as_str(), scope.as_str());
    ApiError::new(ErrorCode::WrongScope, format!("this device is paired for `{has}`, but this route needs `{needed}`"))
        .hint("`capture web pair --scope control` prints a code that pairs the device with more permissions")
}

fn not_own_page() -> ApiError {
    let why = "capture cannot tell whether its own page sent the request";
    ApiError::new(ErrorCode::ForeignOrigin, why).hint("send `Origin` and `X-Capture: 1`")
}

/// The values of a device's cookie in a request: one, unless someone else set another.
fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let pairs = headers.get_all(header::COOKIE).iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b';'));
    pairs.filter_map(|pair| pair.trim_ascii().strip_prefix(COOKIE.as_bytes())?.strip_prefix(b"="))
}

/// The reason for refusing a process that cannot be inspected.
const UNINSPECTED: &str = "capture cannot tell whether an agent started it";

fn agents_peer(why: &str) -> ApiError {
    ApiError::new(
        ErrorCode::AgentsPeer,
        format!("not allowed from this process, since processes started by an agent may not do this: {why}"),
    )
}

/// The error for a token, if one was sent, that does not grant the route's scope.
fn wrong_scope(by_token: Grants, scope: Scope) -> ApiError {
    let has: Vec<_> = by_token.scopes().map(|scope| format!("`{}`", scope.as_str())).collect();
    let needed = scope.as_str();
    let why = match has.as_slice() {
        [] => format!(
            "this route needs a token with the scope `{needed}`; use the one in `tokens/{needed}` in the data directory"
        ),
        has => format!(
            "the token has the scope {}, but this route needs `{needed}`; use the one in `tokens/{needed}` in the data \
             directory",
            has.join(", ")
        ),
    };
    ApiError::new(ErrorCode::WrongScope, why)
}

/// The error for a Host header that is not accepted; its value is shown escaped and shortened.
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

/// The value of a header that must not occur twice.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    values.next().is_none().then(|| value.as_bytes())
}

/// The bearer token; empty if there is another kind of `Authorization`, or two.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    if !headers.contains_key(header::AUTHORIZATION) {
        return None;
    }
    let value = only(headers, &header::AUTHORIZATION).unwrap_or_default();
    let (scheme, token) = value.split_at_checked(7).unwrap_or_default();
    Some(if scheme.eq_ignore_ascii_case(b"bearer ") { token.trim_ascii() } else { b"" })
}
