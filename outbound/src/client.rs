//! The client: it resolves names, and connects only to addresses that the guard permits.

use std::{fmt, io, net::SocketAddr, path::Path, sync::Arc, time::Duration};

use atomic_file::{Links, read_regular};
use rustls::crypto::ring;
use ureq::{
    Agent, Body, Error, http,
    tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem},
    unversioned::{
        resolver::{ResolvedSocketAddrs, Resolver},
        transport::{Connector, NextTimeout, RustlsConnector, TcpConnector},
    },
};
use url::Url;

use crate::{AllowedHost, guard, lookup::Lookup};

/// Maximum size of the head of a response, bytes.
const ANSWER_HEAD_BYTES: usize = 16 * 1024;
/// Maximum number of addresses per name; all are checked.
const ADDRESSES: usize = 16;
/// Maximum size of a file of certificates, bytes.
const CA_BYTES: u64 = 1024 * 1024;

/// The settings of a client.
#[derive(Debug, Clone)]
pub struct ClientSettings<'a> {
    /// The `User-Agent` it sends.
    pub user_agent: &'a str,
    /// Hosts that may be reached without TLS, on this machine and in private networks.
    pub allowed: Arc<[AllowedHost]>,
    /// Which hosts may be reached without TLS.
    pub plain_http: PlainHttp,
    /// A file of certificates that are trusted in addition to the system's.
    pub ca_file: Option<&'a Path>,
    /// Resolves names to addresses.
    pub lookup: Arc<dyn Lookup>,
    /// Time limit of a request, from start to end.
    pub timeout: Duration,
}

/// Which hosts may be reached without TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainHttp {
    /// Hosts that the user allows by name.
    AllowedHosts,
    /// All hosts that may be contacted at all.
    Everywhere,
}

/// Sends requests.
#[derive(Debug)]
pub struct OutboundClient {
    agent: Agent,
    allowed: Arc<[AllowedHost]>,
    plain_http: PlainHttp,
}

/// The reason why a request failed. The text contains no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct RequestError {
    /// The reason, as text for people.
    pub text: String,
    /// Whether another attempt may succeed.
    pub temporary: bool,
}

/// Ends the running requests of a client; may be called from another thread.
pub type Stopper = Box<dyn FnOnce() + Send + Sync>;

/// An address was not allowed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct RefusedAddress(String);

impl OutboundClient {
    /// Creates a client.
    ///
    /// # Errors
    /// If the file of certificates cannot be used.
    pub fn new(settings: &ClientSettings<'_>) -> Result<Self, String> {
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::from(roots(settings.ca_file)?))
            .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
            .build();
        let config = Agent::config_builder()
            .tls_config(tls)
            .http_status_as_error(false)
            .proxy(None)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .max_idle_connections(0)
            .max_response_header_size(ANSWER_HEAD_BYTES)
            .user_agent(settings.user_agent)
            .timeout_global(Some(settings.timeout))
            .build();
        let resolver = CheckedResolver { lookup: settings.lookup.clone(), allowed: settings.allowed.clone() };
        // ureq's connector without its proxies.
        let connector = ().chain(TcpConnector::default()).chain(RustlsConnector::default());
        Ok(Self {
            agent: Agent::with_parts(config, connector, resolver),
            allowed: settings.allowed.clone(),
            plain_http: settings.plain_http,
        })
    }

    /// Parses a URL and checks its text. The request checks the addresses of its host.
    ///
    /// # Errors
    /// The reason why it may not be requested; the URL is not repeated.
    pub fn admit(&self, text: &str) -> Result<Url, &'static str> {
        let url = Url::parse(text).map_err(|_| "invalid URL")?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err("the URL contains a user name or a password");
        }
        match (url.scheme(), self.plain_http) {
            ("https", _) | ("http", PlainHttp::Everywhere) => Ok(url),
            ("http", _) if self.allowed.iter().any(|host| host.covers(&url)) => Ok(url),
            ("http", _) => Err("the URL is not https, and its host is not in allow_hosts"),
            (_, PlainHttp::Everywhere) => Err("the URL is neither http nor https"),
            (_, PlainHttp::AllowedHosts) => Err("the URL is not https"),
        }
    }

    /// Posts a body of this type. Returns the answer, whose body is not read yet.
    ///
    /// # Errors
    /// If no answer arrives. An answer with an error status is returned, not an error.
    pub fn post(
        &self,
        url: &Url,
        content_type: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<http::Response<Body>, RequestError> {
        let mut request = self.agent.post(url.as_str()).header("content-type", content_type);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send(body).map_err(|error| failure(&error))
    }

    /// Requests a URL. Returns the answer; the caller reads its body within the same time limit.
    ///
    /// # Errors
    /// If no answer arrives. An answer with an error status is returned, not an error.
    pub fn get(&self, url: &Url, accept: &str) -> Result<http::Response<Body>, RequestError> {
        self.agent.get(url.as_str()).header("accept", accept).call().map_err(|error| failure(&error))
    }

    /// A function that ends the running requests. The client cannot be used afterwards.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        let agent = self.agent.clone();
        Box::new(move || agent.shutdown())
    }
}

fn permanent(text: impl fmt::Display) -> RequestError {
    RequestError { text: text.to_string(), temporary: false }
}

fn temporary(text: impl fmt::Display) -> RequestError {
    RequestError { text: text.to_string(), temporary: true }
}

/// The cause of the failure, as text without the address.
#[expect(clippy::wildcard_enum_match_arm, reason = "the enum is ureq's, and grows")]
fn failure(error: &Error) -> RequestError {
    match error {
        Error::Other(other) if other.is::<RefusedAddress>() => permanent(other),
        Error::Timeout(what) => temporary(format!("timed out ({what})")),
        Error::Io(error) => match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(tls) => permanent(format!("TLS failed: {tls}")),
            None => temporary(format!("cannot connect: {error}")),
        },
        Error::Rustls(error) => permanent(format!("TLS failed: {error}")),
        Error::Tls(what) => permanent(format!("TLS failed: {what}")),
        Error::HostNotFound => temporary("the host name does not resolve"),
        Error::ConnectionFailed => temporary("no connection"),
        Error::Protocol(_) | Error::LargeResponseHeader(..) => temporary("the answer is not valid HTTP"),
        // The texts of other errors may contain the address.
        _ => permanent("the request failed"),
    }
}

/// Resolves a name and checks all its addresses.
#[derive(Debug)]
struct CheckedResolver {
    lookup: Arc<dyn Lookup>,
    allowed: Arc<[AllowedHost]>,
}

impl Resolver for CheckedResolver {
    fn resolve(
        &self,
        uri: &http::Uri,
        _: &ureq::config::Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let refused = |text: String| Error::Other(Box::new(RefusedAddress(text)));
        let url = Url::parse(&uri.to_string()).map_err(|_| refused("invalid URL".to_owned()))?;
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return Err(refused("the URL has no host".to_owned()));
        };
        let near = self.allowed.iter().any(|allowed| allowed.covers(&url));
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let addresses = look_up(self.lookup.clone(), host.clone(), port, *timeout.after)
            .ok_or(Error::Timeout(timeout.reason))?
            .map_err(Error::Io)?;
        // One forbidden address rejects the name, because the client does not control which address is used.
        for address in &addresses {
            if let Some(why) = guard::refusal(address.ip(), near) {
                return Err(refused(format!(
                    "{host} resolves to {}, which is {why}; capture refuses to connect to it",
                    address.ip()
                )));
            }
        }
        let mut resolved = self.empty();
        addresses.into_iter().take(ADDRESSES).for_each(|address| resolved.push(address));
        if resolved.is_empty() { Err(Error::HostNotFound) } else { Ok(resolved) }
    }
}

/// Resolves a name on a separate thread, which ends when the resolver returns or times out: the system has no call that
/// can be cancelled. `None` if it took longer than `within`.
fn look_up(lookup: Arc<dyn Lookup>, host: String, port: u16, within: Duration) -> Option<io::Result<Vec<SocketAddr>>> {
    let (tell, told) = crossbeam_channel::bounded(1);
    let spawned = std::thread::Builder::new().name("lookup".to_owned()).spawn(move || {
        // After a timeout the receiver is gone.
        let _ = tell.send(lookup.addresses(&host, port));
    });
    match spawned {
        Ok(_) => told.recv_timeout(within).ok(),
        Err(error) => Some(Err(error)),
    }
}

/// The trusted certificates.
fn roots(ca_file: Option<&Path>) -> Result<Vec<Certificate<'static>>, String> {
    let mut roots: Vec<Certificate<'static>> = rustls_native_certs::load_native_certs()
        .certs
        .iter()
        .map(|der| Certificate::from_der(der.as_ref()).to_owned())
        .collect();
    if let Some(path) = ca_file {
        let cannot = |error: &dyn fmt::Display| format!("cannot read certificates in {}: {error}", path.display());
        let pem = read_regular(path, Links::Followed, CA_BYTES).map_err(|e| cannot(&e))?;
        let pem = pem.ok_or_else(|| cannot(&"there is no such file"))?;
        let before = roots.len();
        for item in parse_pem(&pem) {
            if let PemItem::Certificate(certificate) = item.map_err(|e| cannot(&e))? {
                roots.push(certificate);
            }
        }
        if roots.len() == before {
            return Err(cannot(&"it contains none"));
        }
    }
    Ok(roots)
}
