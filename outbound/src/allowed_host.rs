//! Hosts that may be reached without TLS and in private networks.

use serde::Serialize;

/// A host that the user allows to be reached without TLS, and on this machine or a private network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AllowedHost {
    host: String,
    port: Option<u16>,
}

/// The text is not a host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("is not `host` or `host:port`")]
pub struct InvalidHost;

impl AllowedHost {
    /// Parses `host`, `host:port` or `[::1]:port`.
    ///
    /// # Errors
    /// If the text has another form.
    pub fn parse(text: &str) -> Result<Self, InvalidHost> {
        let url = url::Url::parse(&format!("http://{text}/")).map_err(|_| InvalidHost)?;
        let plain = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        let (Some(host), true, true) = (url.host_str(), plain, url.username().is_empty() && url.password().is_none())
        else {
            return Err(InvalidHost);
        };
        // The parser drops `:80`, because it is the default port.
        let port = url.port().or_else(|| text.ends_with(":80").then_some(80));
        Ok(Self { host: host.to_ascii_lowercase(), port })
    }

    /// Whether a URL refers to this host and port.
    #[must_use]
    pub fn covers(&self, url: &url::Url) -> bool {
        let usual = match url.scheme() {
            "https" => 443,
            _ => 80,
        };
        url.host_str() == Some(self.host.as_str()) && url.port_or_known_default() == Some(self.port.unwrap_or(usual))
    }
}
