//! Sends HTTP POST requests over `outbound`: only to checked addresses, without redirects, and only over `https`,
//! except to hosts that the user allows.

use std::{path::Path, sync::Arc, time::Duration};

use outbound::{AllowedHost, Body, ClientSettings, OutboundClient, PlainHttp, RequestError, http};

use crate::{
    attempt::{AttemptFailure, RetryHint, Stopper},
    context::ChannelContext,
};

/// Maximum size of a request, bytes.
const REQUEST_BYTES: usize = 256 * 1024;
/// Maximum number of bytes read from the body of a response.
const ANSWER_BYTES: u64 = 64 * 1024;

/// Sends POST requests.
pub struct HttpClient(OutboundClient);

impl From<RequestError> for AttemptFailure {
    fn from(error: RequestError) -> Self {
        if error.temporary { Self::soon(error) } else { Self::never(error) }
    }
}

impl HttpClient {
    /// Creates a client that reaches `allow_hosts` in addition to the public network, and trusts the certificates of
    /// the system and of `ca_file`.
    ///
    /// # Errors
    /// If a host is not written as `host` or `host:port`, or the certificates cannot be read.
    pub fn new(allow_hosts: &[String], ca_file: Option<&Path>, context: &ChannelContext) -> Result<Self, String> {
        let invalid = |host: &String| format!("`{host}` is not `host` or `host:port`");
        let allowed: Vec<AllowedHost> = allow_hosts
            .iter()
            .map(|host| AllowedHost::parse(host).map_err(|_| invalid(host)))
            .collect::<Result<_, _>>()?;
        let settings = ClientSettings {
            user_agent: "capture-notifier",
            allowed: allowed.into(),
            plain_http: PlainHttp::AllowedHosts,
            ca_file,
            lookup: Arc::clone(&context.lookup),
            timeout: context.attempt,
        };
        OutboundClient::new(&settings).map(Self)
    }

    /// Sends a JSON body. An answer of 200 to 299 is success; some of the others justify another attempt.
    pub(crate) fn post(&self, url: &str, headers: &[(&str, String)], body: &[u8]) -> Result<(), AttemptFailure> {
        if body.len() > REQUEST_BYTES {
            return Err(AttemptFailure::never(format!("the request body is too large ({} bytes)", body.len())));
        }
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        // The body of the answer is not needed, and may never end.
        self.request(url, "application/json", &headers, body).map(drop)
    }

    /// Sends a body of this type, and returns the body of a successful answer; an empty one if it is too long.
    ///
    /// # Errors
    /// If the address must not be reached, there is no answer, or the answer is not one of 200 to 299.
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

    /// Makes a request and checks the status of the response; its body is not read yet.
    fn request(
        &self,
        url: &str,
        content_type: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<http::Response<Body>, AttemptFailure> {
        let url = self.0.admit(url).map_err(AttemptFailure::never)?;
        let answer = self.0.post(&url, content_type, headers, body)?;
        let after = answer.headers().get("retry-after").and_then(|v| v.to_str().ok()).map(str::to_owned);
        judge(answer.status(), after.as_deref())?;
        Ok(answer)
    }

    /// Sends a body of this type and returns the status of the answer, whatever it is.
    pub(crate) fn status(
        &self,
        url: &str,
        content_type: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<(u16, Result<(), AttemptFailure>), AttemptFailure> {
        let url = self.0.admit(url).map_err(AttemptFailure::never)?;
        let answer = self.0.post(&url, content_type, headers, body)?;
        let after = answer.headers().get("retry-after").and_then(|v| v.to_str().ok()).map(str::to_owned);
        Ok((answer.status().as_u16(), judge(answer.status(), after.as_deref())))
    }

    /// A function that ends the running requests.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        self.0.stopper()
    }
}

/// Converts the status of a response to a result.
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

#[cfg(test)]
mod tests;
