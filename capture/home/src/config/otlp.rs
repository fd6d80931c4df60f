//! `[otlp]`: where and how sessions are exported while they run.

use std::{collections::BTreeMap, path::PathBuf};

use notifier::{channel::Env, secret::SecretSource};
use serde::{Deserialize, Serialize};
use url::Url;

/// Headers reserved for the protocol.
const OWN_HEADERS: [&str; 5] = ["content-type", "content-length", "content-encoding", "host", "transfer-encoding"];

/// Where and how sessions are exported while they run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OtlpSettings {
    /// The collector, for example `http://127.0.0.1:4318`; `/v1/traces` and `/v1/metrics` are appended. If empty,
    /// nothing is sent.
    pub endpoint: String,
    /// Headers of each request. Their values are secrets, so this contains only the place where each is stored.
    pub headers: BTreeMap<String, HeaderSource>,
    /// Additional certificates to trust, PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// Whether to send prompts, answers, inputs and outputs, redacted.
    pub texts: bool,
    /// Whether traces are sent.
    pub traces: bool,
    /// Whether metrics are sent.
    pub metrics: bool,
    /// Interval between exports of spans, seconds.
    pub interval_s: u32,
    /// Interval between exports of metrics, seconds.
    pub metrics_interval_s: u32,
}

/// Where a header's value is stored: exactly one of the two.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HeaderSource {
    /// A file readable only by its owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// A variable of the server's environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<String>,
}

/// Why the settings cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OtlpSettingsError {
    /// The endpoint is not a valid address.
    #[error("otlp.endpoint: expected an address such as `http://127.0.0.1:4318`, {0}")]
    Endpoint(&'static str),
    /// A header is invalid.
    #[error("otlp.headers: `{name}` {why}")]
    Header {
        /// The header's name.
        name: String,
        /// The error.
        why: &'static str,
    },
    /// A path is not absolute.
    #[error("otlp.{key}: expected an absolute path, got `{}`", path.display())]
    Path {
        /// The setting.
        key: &'static str,
        /// The path.
        path: PathBuf,
    },
    /// A number is out of its range.
    #[error("otlp.{key} = {value} is out of range: expected {low} to {high}")]
    Range {
        /// The setting.
        key: &'static str,
        /// The value.
        value: u32,
        /// The minimum.
        low: u32,
        /// The maximum.
        high: u32,
    },
}

impl Default for OtlpSettings {
    fn default() -> Self {
        Self {
            endpoint: String::new(),
            headers: BTreeMap::new(),
            ca_file: None,
            texts: false,
            traces: true,
            metrics: true,
            interval_s: 5,
            metrics_interval_s: 60,
        }
    }
}

impl OtlpSettings {
    /// Whether anything is sent.
    #[must_use]
    pub fn is_on(&self) -> bool {
        !self.endpoint.is_empty() && (self.traces || self.metrics)
    }

    /// Checks the settings. Files and variables are read later, when something is sent.
    ///
    /// # Errors
    /// If a setting cannot be used.
    pub fn check(&self) -> Result<(), OtlpSettingsError> {
        if !self.endpoint.is_empty() {
            self.url()?;
        }
        for (name, source) in &self.headers {
            let bad = |why| Err(OtlpSettingsError::Header { name: name.clone(), why });
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)) {
                return bad("is not the name of a header");
            }
            if OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
                return bad("is set by the protocol");
            }
            if source.file.is_some() == source.env.is_some() {
                return bad("needs either `file` or `env`");
            }
            if let Some(path) = source.file.as_ref().filter(|path| !path.is_absolute()) {
                return Err(OtlpSettingsError::Path { key: "headers", path: path.clone() });
            }
        }
        if let Some(path) = self.ca_file.as_ref().filter(|path| !path.is_absolute()) {
            return Err(OtlpSettingsError::Path { key: "ca_file", path: path.clone() });
        }
        let range = |key, value: u32, low, high| {
            if (low..=high).contains(&value) { Ok(()) } else { Err(OtlpSettingsError::Range { key, value, low, high }) }
        };
        range("interval_s", self.interval_s, 1, 3_600)?;
        range("metrics_interval_s", self.metrics_interval_s, 1, 3_600)
    }

    fn url(&self) -> Result<Url, OtlpSettingsError> {
        let url = Url::parse(&self.endpoint).map_err(|_| OtlpSettingsError::Endpoint("got something else"))?;
        let wrong = match url.scheme() {
            "http" | "https" => None,
            _ => Some("got a scheme other than http and https"),
        };
        let secret = !url.username().is_empty() || url.password().is_some();
        let wrong = wrong
            .or_else(|| secret.then_some("without a user name or a password; use `otlp.headers`"))
            .or_else(|| (url.query().is_some() || url.fragment().is_some()).then_some("without a query"));
        wrong.map_or(Ok(url), |why| Err(OtlpSettingsError::Endpoint(why)))
    }

    /// The URL for a signal, `traces` or `metrics`.
    #[must_use]
    pub fn address(&self, signal: &str) -> String {
        format!("{}/v1/{signal}", self.endpoint.trim_end_matches('/'))
    }

    /// The host and port of the endpoint. The user named it, so it may be on this machine and without TLS.
    #[must_use]
    pub fn host(&self) -> Option<String> {
        let url = self.url().ok()?;
        Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
    }

    /// The headers with their values. If a value cannot be read, nothing is sent.
    ///
    /// # Errors
    /// If a value cannot be read, with a message for the user.
    pub fn read_headers(&self, env: &Env) -> Result<Vec<(String, notifier::secret::Secret)>, String> {
        let read = |(name, source): (&String, &HeaderSource)| {
            let source = match (&source.file, &source.env) {
                (Some(path), _) => SecretSource::File(path.clone()),
                (None, Some(variable)) => SecretSource::Env(variable.clone()),
                (None, None) => return Err(format!("the header {name} has no value")),
            };
            let secret = source.read(&**env).map_err(|error| format!("the header {name}: {error}"))?;
            Ok((name.clone(), secret))
        };
        self.headers.iter().map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> OtlpSettings {
        toml::from_str(text).unwrap()
    }

    fn refused(text: &str) -> String {
        parsed(text).check().unwrap_err().to_string()
    }

    #[test]
    fn an_endpoint_enables_the_otlp_export() {
        let default = OtlpSettings::default();
        assert!(!default.is_on() && !default.texts && default.check().is_ok());
        let on = parsed("endpoint = \"http://127.0.0.1:4318/\"\n[headers]\nx-key = { env = \"KEY\" }\n");
        assert!(on.is_on() && on.check().is_ok());
        assert_eq!(on.address("traces"), "http://127.0.0.1:4318/v1/traces");
        assert_eq!(on.host().unwrap(), "127.0.0.1:4318");
        assert_eq!(parsed("endpoint = \"https://o.example/otlp\"").host().unwrap(), "o.example:443");
        assert!(!parsed("endpoint = \"http://[::1]:4318\"\ntraces = false\nmetrics = false").is_on());
    }

    #[test]
    fn invalid_otlp_settings_are_refused_with_the_reason() {
        for (text, why) in [
            ("endpoint = \"localhost\"", "got something else"),
            ("endpoint = \"ftp://a\"", "scheme"),
            ("endpoint = \"http://me:pw@a\"", "otlp.headers"),
            ("endpoint = \"http://a/?token=x\"", "query"),
            ("[headers]\n\"x y\" = { env = \"A\" }", "`x y` is not the name"),
            ("[headers]\nHost = { env = \"A\" }", "set by the protocol"),
            ("[headers]\nx = {}", "either `file` or `env`"),
            ("[headers]\nx = { env = \"A\", file = \"/b\" }", "either `file` or `env`"),
            ("[headers]\nx = { file = \"b\" }", "absolute path"),
            ("ca_file = \"b\"", "otlp.ca_file"),
            ("interval_s = 0", "otlp.interval_s = 0 is out of range: expected 1 to 3600"),
        ] {
            assert!(refused(text).contains(why), "{text}: {}", refused(text));
        }
        assert!(toml::from_str::<OtlpSettings>("[headers]\nx = \"value\"").is_err(), "a value does not stand there");
    }

    #[test]
    fn a_header_with_an_unset_variable_is_an_error() {
        let on = parsed("endpoint = \"http://127.0.0.1:4318\"\n[headers]\nx-key = { env = \"KEY\" }\n");
        let with: Env = std::sync::Arc::new(|name| (name == "KEY").then(|| "v".into()));
        let [(name, value)] = on.read_headers(&with).unwrap().try_into().unwrap();
        assert_eq!((name.as_str(), value.expose()), ("x-key", "v"));
        let without: Env = std::sync::Arc::new(|_| None);
        assert!(on.read_headers(&without).unwrap_err().contains("KEY is not set"));
    }
}
