//! Connections to the hosts of vendors.

use std::{net::IpAddr, sync::Arc, time::Duration};

use reqwest::{
    Proxy, Url,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
    redirect,
};
use rustls::{ClientConfig, RootCertStore, crypto::ring};

use super::{Exchange, Patience, sending::SendingBody};
use crate::{EncodedRequest, Secret};

/// Timeout for connecting.
const CONNECT: Duration = Duration::from_secs(10);

/// Options shared by all requests.
#[derive(Debug, Clone, Default)]
pub struct ClientOptions {
    /// The proxy for every host but loopback, such as `http://proxy:3128`.
    pub proxy: Option<Secret>,
    /// Certificates to trust in addition to those of the system, in DER.
    pub more_roots: Vec<Vec<u8>>,
    /// The `User-Agent`.
    pub user_agent: String,
}

/// A provider's host.
#[derive(Debug, Clone)]
pub struct ModelEndpoint {
    url: Url,
    headers: HeaderMap,
    key: Option<Secret>,
    /// The timeouts of its answers.
    pub patience: Patience,
}

/// Why a client or an endpoint is invalid.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The URL is not an HTTP URL.
    #[error("the base URL is not valid: {0}")]
    Url(String),
    /// A key would be sent unencrypted.
    #[error("the base URL is http and its host is not a loopback address, so others could read the key; use https")]
    Plaintext,
    /// A header cannot be sent.
    #[error("the header `{0}` cannot be sent: it contains characters that HTTP does not allow")]
    Header(String),
    /// The URL of the proxy is invalid.
    #[error("the URL of the proxy is not valid")]
    Proxy,
    /// TLS cannot be set up.
    #[error("TLS cannot be prepared: {0}")]
    Tls(String),
}

/// Sends requests. Clones share their connections.
#[derive(Debug, Clone)]
pub struct ModelClient {
    http: reqwest::Client,
}

impl ModelEndpoint {
    /// A host, with the key of the provider. `base` is the URL before the path of a request, such as
    /// `https://api.openai.com/v1`.
    ///
    /// # Errors
    /// If the URL is invalid, or is `http` to a host other than loopback with a key.
    pub fn new(base: &str, key: Option<Secret>) -> Result<Self, ClientError> {
        // The error does not repeat parts that may contain a secret.
        let url = Url::parse(base).map_err(|error| ClientError::Url(error.to_string()))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(ClientError::Url("it contains a user name or a password".to_owned()));
        }
        match url.scheme() {
            "https" => {}
            "http" if key.is_none() || is_loopback(&url) => {}
            "http" => return Err(ClientError::Plaintext),
            _ => return Err(ClientError::Url("it is neither https nor http".to_owned())),
        }
        Ok(Self { url, headers: HeaderMap::new(), key, patience: Patience::default() })
    }

    /// Adds a header, which is treated like a key.
    ///
    /// # Errors
    /// If it cannot be sent, or the URL is `http` to a host other than loopback.
    pub fn with_header(mut self, name: &str, value: &Secret) -> Result<Self, ClientError> {
        if self.url.scheme() == "http" && !self.is_loopback() {
            return Err(ClientError::Plaintext);
        }
        self.headers.insert(header_name(name)?, secret_value(name, value)?);
        Ok(self)
    }

    /// The address of requests, without query and fragment.
    #[must_use]
    pub fn address(&self) -> String {
        let mut url = self.url.clone();
        url.set_query(None);
        url.set_fragment(None);
        url.as_str().trim_end_matches('/').to_owned()
    }

    /// Whether the host is loopback.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.url)
    }

    pub(super) fn key(&self) -> Option<&Secret> {
        self.key.as_ref()
    }

    fn url_of(&self, request: &EncodedRequest) -> Result<Url, ClientError> {
        let base = self.url.as_str().trim_end_matches('/');
        // Users configure Anthropic's and Gemini's base URLs with or without a version.
        let version = request.path.split('/').nth(1).unwrap_or_default();
        let has_version = version.starts_with('v') && base.rsplit('/').next() == Some(version);
        let path = if has_version { &request.path[version.len() + 1..] } else { request.path.as_str() };
        Url::parse(&format!("{base}{path}")).map_err(|error| ClientError::Url(error.to_string()))
    }

    fn headers_of(&self, request: &EncodedRequest) -> Result<HeaderMap, ClientError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(reqwest::header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        for (name, value) in request.headers() {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        if let Some(key) = &self.key {
            let (name, value) = request.key_header(key);
            headers.insert(HeaderName::from_static(name), secret_value(name, &value)?);
        }
        for (name, value) in &self.headers {
            headers.insert(name.clone(), value.clone());
        }
        Ok(headers)
    }
}

impl ModelClient {
    /// Sets up a client.
    ///
    /// # Errors
    /// If the proxy or a certificate is invalid.
    pub fn new(options: &ClientOptions) -> Result<Self, ClientError> {
        Self::build(options, tls(&options.more_roots)?)
    }

    /// Sets up a client for loopback only. This is faster, because no certificates are read.
    ///
    /// # Errors
    /// If TLS cannot be set up.
    pub fn loopback(user_agent: &str) -> Result<Self, ClientError> {
        let options = ClientOptions { user_agent: user_agent.to_owned(), ..ClientOptions::default() };
        Self::build(&options, with_roots(RootCertStore::empty())?)
    }

    fn build(options: &ClientOptions, tls: ClientConfig) -> Result<Self, ClientError> {
        let builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT)
            .tcp_nodelay(true)
            .user_agent(options.user_agent.as_str())
            // Ignores proxies from the environment.
            .no_proxy();
        let builder = match &options.proxy {
            None => builder,
            Some(proxy) => {
                let address: Url = proxy.expose().parse().map_err(|_| ClientError::Proxy)?;
                let choose = move |url: &Url| (!is_loopback(url)).then(|| address.clone());
                builder.proxy(Proxy::custom(choose))
            }
        };
        // The error of the builder may contain the proxy's address.
        let http = builder.build().map_err(|_| ClientError::Tls("the HTTP client cannot be built".to_owned()))?;
        Ok(Self { http })
    }

    /// Prepares a request and its answer; [`Exchange::next`] sends it. `tag` is that of [`crate::Decoder::new`].
    ///
    /// # Errors
    /// If the URL or a header is invalid.
    pub fn exchange(
        &self,
        endpoint: &ModelEndpoint,
        request: &EncodedRequest,
        tag: &str,
    ) -> Result<Exchange, ClientError> {
        let url = endpoint.url_of(request)?;
        let headers = endpoint.headers_of(request)?;
        let body = reqwest::Body::wrap(SendingBody::new(&request.body));
        let sending = self.http.post(url).headers(headers).body(body);
        Ok(Exchange::new(sending, request.api, tag, endpoint))
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn header_name(name: &str) -> Result<HeaderName, ClientError> {
    name.parse().map_err(|_| ClientError::Header(name.to_owned()))
}

fn secret_value(name: &str, value: &Secret) -> Result<HeaderValue, ClientError> {
    let mut value = HeaderValue::from_str(value.expose()).map_err(|_| ClientError::Header(name.to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

/// TLS with the certificates of the system.
fn tls(more_roots: &[Vec<u8>]) -> Result<ClientConfig, ClientError> {
    let mut roots = RootCertStore::empty();
    // Unreadable system certificates are ignored.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    for root in more_roots {
        roots.add(root.clone().into()).map_err(|error| ClientError::Tls(error.to_string()))?;
    }
    with_roots(roots)
}

fn with_roots(roots: RootCertStore) -> Result<ClientConfig, ClientError> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .map_err(|error| ClientError::Tls(error.to_string()))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
