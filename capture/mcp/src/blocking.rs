//! Blocking requests to the capture server.

use crate::tools::ToolError;

/// Runs a request to the capture server on another thread, while the protocol continues.
pub(crate) async fn blocking<T: Send + 'static>(
    request: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    tokio::task::spawn_blocking(request).await.unwrap_or(Err(ToolError::Failed))
}
