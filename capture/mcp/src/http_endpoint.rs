//! The protocol over HTTP ("streamable HTTP"): each message is a separate request, and there are no sessions.
//!
//! Access is not checked here: the caller of [`HttpEndpoint::answer`] has checked the token, host and origin, and
//! passes who may change something.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{Full, combinators::BoxBody};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
};
use tokio_util::sync::CancellationToken;

use crate::{control_check::ControlCheck, handler::Handler, link::Connect, tools::WriteTool};

/// The body of an answer: JSON, or server-sent events if progress is reported.
pub type McpBody = BoxBody<Bytes, Infallible>;

/// Answers protocol messages that arrive as HTTP requests.
pub struct HttpEndpoint(StreamableHttpService<Handler, NeverSessionManager>);

impl HttpEndpoint {
    /// An endpoint with the reading tools and the given other tools. Pending answers end when the token is cancelled.
    #[must_use]
    pub fn new(connect: Connect, allowed: Vec<WriteTool>, cancel: CancellationToken) -> Self {
        let handler = Handler::new(connect, allowed);
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            // The capture server checks the host and origin itself, and knows the names the user added.
            .disable_allowed_hosts()
            .with_cancellation_token(cancel);
        Self(StreamableHttpService::new(move || Ok(handler.clone()), Arc::default(), config))
    }

    /// Answers a request from whose headers the secrets have been removed.
    pub async fn answer(&self, request: Request<Bytes>, control: ControlCheck) -> Response<McpBody> {
        let mut request = request.map(Full::new);
        request.extensions_mut().insert(control);
        self.0.handle(request).await
    }
}
