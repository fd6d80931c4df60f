//! Requests to the capture server that block.

use crate::tools::ToolError;

/// Runs a request to the capture server beside the protocol, which goes on meanwhile.
pub(crate) async fn blocking<T: Send + 'static>(
    request: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    tokio::task::spawn_blocking(request).await.unwrap_or(Err(ToolError::Failed))
}
