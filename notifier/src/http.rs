//! Sends HTTP POST requests, only to addresses that were checked.
//!
//! A name is resolved once for each request, every address it has is held against the list of what
//! may not be reached ([`guard`]), and the connection is made to the addresses that were checked:
//! a name that changes its mind in between changes nothing. Redirects are not followed, proxies
//! of the environment not used, connections not kept. Only `https` goes out, but to the hosts the
//! user allows.

use std::{fmt, io, net::SocketAddr, path::Path, sync::Arc, time::Duration};

use rustls::crypto::ring;
use ureq::{
    Agent, Error, http,
    tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem},
    unversioned::{
        resolver::{ResolvedSocketAddrs, Resolver},
        transport::{Connector, NextTimeout, RustlsConnector, TcpConnector},
    },
};
use url::Url;

pub use crate::lookup::{Lookup, SystemLookup};
use crate::{
    attempt::{AttemptFailure, RetryHint, Stopper},
    config::AllowedHost,
    context::ChannelContext,
};

pub mod guard;

/// Bytes a request may have.
const REQUEST_BYTES: usize = 256 * 1024;
/// Bytes of the head of an answer.
const ANSWER_HEAD_BYTES: usize = 16 * 1024;
/// Bytes of the body of an answer that are read.
const ANSWER_BYTES: u64 = 64 * 1024;
/// Maximum number of addresses of a name; all are checked.
const ADDRESSES: usize = 16;
/// Bytes of a file of certificates.
const CA_BYTES: u64 = 1024 * 1024;

/// Sends POST requests.
pub struct HttpClient {
    agent: Agent,
    allowed: Arc<[AllowedHost]>,
}

/// An address was not allowed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct RefusedAddress(String);

impl HttpClient {
    /// Prepares a client that reaches `allow_hosts` beside the public network, and trusts the
    /// certificates of the system and of `ca_file`.
    ///
    /// # Errors
    /// When a host is not written as `host` or `host:port`, or the certificates cannot be read.
    pub fn new(allow_hosts: &[String], ca_file: Option<&Path>, context: &ChannelContext) -> Result<Self, String> {
        let allowed: Vec<AllowedHost> =
            allow_hosts.iter().map(|h| AllowedHost::parse(h)).collect::<Result<_, _>>().map_err(|e| e.to_string())?;
        let allowed: Arc<[AllowedHost]> = allowed.into();
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::from(roots(ca_file)?))
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
            .user_agent("capture-notifier")
            .timeout_global(Some(context.attempt))
            .build();
        let resolver = CheckedResolver { lookup: context.lookup.clone(), allowed: allowed.clone() };
        // The connector of ureq without its proxies.
        let connector = ().chain(TcpConnector::default()).chain(RustlsConnector::default());
        Ok(Self { agent: Agent::with_parts(config, connector, resolver), allowed })
    }

    /// Sends a body of JSON. An answer of 200 to 299 is good, of the rest some are worth another attempt.
    pub(crate) fn post(&self, url: &str, headers: &[(&str, String)], body: &[u8]) -> Result<(), AttemptFailure> {
        if body.len() > REQUEST_BYTES {
            return Err(AttemptFailure::never(format!("the request body is too large ({} bytes)", body.len())));
        }
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        // What else is said is of no use, and may not end.
        self.request(url, "application/json", &headers, body).map(drop)
    }

    /// Sends a body of this type, and gives the body of a good answer; of one that is too long, nothing.
    ///
    /// # Errors
    /// When the address may not be reached, nobody answers, or the answer is not one of 200 to 299.
    pub fn send(
        &self,
        url: &str,
        content_type: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Vec<u8>, AttemptFailure> {
        let mut answer = self.request(url, content_type, headers, body)?;
        Ok(answer.body_mut().with_config().limit(ANSWER_BYTES).read_to_vec().unwrap_or_default())
    }

    /// Makes a request whose answer is good; its body is not read yet.
    fn request(
        &self,
        url: &str,
        content_type: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<http::Response<ureq::Body>, AttemptFailure> {
        let url = self.admit(url).map_err(AttemptFailure::never)?;
        let mut request = self.agent.post(url.as_str()).header("content-type", content_type);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.send(body).map_err(|error| failure(&error))?;
        let after = answer.headers().get("retry-after").and_then(|v| v.to_str().ok()).map(str::to_owned);
        judge(answer.status(), after.as_deref())?;
        Ok(answer)
    }

    /// What ends the requests under way.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        let agent = self.agent.clone();
        Box::new(move || agent.shutdown())
    }

    fn admit(&self, text: &str) -> Result<Url, &'static str> {
        // The address is not repeated in what is said: it may hold a token.
        let url = Url::parse(text).map_err(|_| "invalid URL")?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err("the URL contains a user name or a password");
        }
        match url.scheme() {
            "https" => Ok(url),
            "http" if self.allowed.iter().any(|host| host.covers(&url)) => Ok(url),
            "http" => Err("the URL is not https, and its host is not in notify.allow_hosts"),
            _ => Err("the URL is not https"),
        }
    }
}

/// What an answer means.
fn judge(status: http::StatusCode, retry_after: Option<&str>) -> Result<(), AttemptFailure> {
    if status.is_success() {
        return Ok(());
    }
    if status.is_redirection() {
        return Err(AttemptFailure::never(format!("the server answered {status}; redirects are not followed")));
    }
    let error = format!("the server answered {status}");
    let again = status.is_server_error() || [408, 425, 429].contains(&status.as_u16());
    match retry_after.and_then(|text| text.trim().parse().ok()) {
        _ if !again => Err(AttemptFailure::never(error)),
        Some(seconds) => Err(AttemptFailure { error, again: RetryHint::After(Duration::from_secs(seconds)) }),
        None => Err(AttemptFailure::soon(error)),
    }
}

/// What went wrong, in words without the address.
#[expect(clippy::wildcard_enum_match_arm, reason = "the enum is ureq's, and grows")]
fn failure(error: &Error) -> AttemptFailure {
    match error {
        Error::Other(other) if other.is::<RefusedAddress>() => AttemptFailure::never(other),
        Error::Timeout(what) => AttemptFailure::soon(format!("timed out ({what})")),
        Error::Io(error) => match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(tls) => AttemptFailure::never(format!("TLS failed: {tls}")),
            None => AttemptFailure::soon(format!("cannot connect: {error}")),
        },
        Error::Rustls(error) => AttemptFailure::never(format!("TLS failed: {error}")),
        Error::Tls(what) => AttemptFailure::never(format!("TLS failed: {what}")),
        Error::HostNotFound => AttemptFailure::soon("the host name does not resolve"),
        Error::ConnectionFailed => AttemptFailure::soon("no connection"),
        Error::Protocol(_) | Error::LargeResponseHeader(..) => AttemptFailure::soon("the answer is not valid HTTP"),
        // What else there is may repeat the address.
        _ => AttemptFailure::never("the request failed"),
    }
}

/// Resolves a name and checks all it resolves to.
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
        // One that may not be reached spoils the rest: which of them is taken is not ours to say.
        for address in &addresses {
            if let Some(why) = guard::refusal(address.ip(), near) {
                return Err(refused(format!(
                    "{host} resolves to {}, which is {why}; refusing to send there",
                    address.ip()
                )));
            }
        }
        let mut resolved = self.empty();
        addresses.into_iter().take(ADDRESSES).for_each(|address| resolved.push(address));
        if resolved.is_empty() { Err(Error::HostNotFound) } else { Ok(resolved) }
    }
}

/// Looks a name up on a thread of its own, which ends with the resolver's own patience: the system
/// has no call that ends sooner. `None` when it took too long.
fn look_up(lookup: Arc<dyn Lookup>, host: String, port: u16, within: Duration) -> Option<io::Result<Vec<SocketAddr>>> {
    let (tell, told) = crossbeam_channel::bounded(1);
    let spawned = std::thread::Builder::new().name("notify-lookup".to_owned()).spawn(move || {
        // Nobody listens any more when it took too long.
        let _ = tell.send(lookup.addresses(&host, port));
    });
    match spawned {
        Ok(_) => told.recv_timeout(within).ok(),
        Err(error) => Some(Err(error)),
    }
}

/// The certificates that are trusted.
fn roots(ca_file: Option<&Path>) -> Result<Vec<Certificate<'static>>, String> {
    let mut roots: Vec<Certificate<'static>> = rustls_native_certs::load_native_certs()
        .certs
        .iter()
        .map(|der| Certificate::from_der(der.as_ref()).to_owned())
        .collect();
    if let Some(path) = ca_file {
        let cannot = |error: &dyn fmt::Display| format!("cannot read certificates in {}: {error}", path.display());
        let length = std::fs::metadata(path).map_err(|e| cannot(&e))?.len();
        if length > CA_BYTES {
            return Err(cannot(&"too long"));
        }
        let pem = std::fs::read(path).map_err(|e| cannot(&e))?;
        let before = roots.len();
        for item in parse_pem(&pem) {
            if let PemItem::Certificate(certificate) = item.map_err(|e| cannot(&e))? {
                roots.push(certificate);
            }
        }
        if roots.len() == before {
            return Err(cannot(&"there are none"));
        }
    }
    Ok(roots)
}

#[cfg(test)]
mod tests;
