//! An encoded request.

use crate::{Api, MarkerPlace, RequestBody, Secret};

/// A request for one answer. Each attempt sends the same bytes.
#[derive(Debug, Clone)]
pub struct EncodedRequest {
    /// The API.
    pub api: Api,
    /// The path and query after the base URL, such as `/v1/messages`.
    pub path: String,
    /// The body.
    pub body: RequestBody,
    /// The markers that could be placed, as requested, in the order of the body.
    pub markers: Vec<MarkerPlace>,
    /// Number of blocks of the transcript's chain in the request.
    pub blocks: usize,
}

impl EncodedRequest {
    /// Headers that every request of the API has, without the key.
    #[must_use]
    pub fn headers(&self) -> &'static [(&'static str, &'static str)] {
        match self.api {
            // https://platform.claude.com/docs/en/api/versioning
            Api::Anthropic => &[("anthropic-version", "2023-06-01")],
            Api::Responses | Api::Chat | Api::Gemini => &[],
        }
    }

    /// The header that contains the key: its name and value.
    #[must_use]
    pub fn key_header(&self, key: &Secret) -> (&'static str, Secret) {
        match self.api {
            Api::Anthropic => ("x-api-key", key.clone()),
            Api::Responses | Api::Chat => ("authorization", bearer(key)),
            // python-genai, `_api_client.py`: `x-goog-api-key`, never the query, which is logged.
            Api::Gemini => ("x-goog-api-key", key.clone()),
        }
    }
}

fn bearer(key: &Secret) -> Secret {
    Secret::new(format!("Bearer {}", key.expose()))
}
