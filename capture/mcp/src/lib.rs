//! A Model Context Protocol server: over standard input and output for `capture mcp`, over HTTP for the capture server.
//!
//! Its tools read the capture server's data through [`api::Client`] like every other program, so that an agent can
//! follow the sessions of others. Tools that change something exist only if the user named them, need the scope
//! `control`, and are refused by the server to processes that an agent started. No tool decides a permission request.
//!
//! The protocol works without a capture server: the first tool call connects. Every answer is redacted, bounded, and
//! states that texts of sessions are data. `tools` contains the tools; their schemas are generated from the types of
//! their arguments and answers.

mod blocking;
mod control_check;
mod handler;
mod http_endpoint;
mod link;
mod text;
mod tools;

use std::io;

use rmcp::{ServiceExt, service::ServerInitializeError, transport::stdio};

pub use control_check::ControlCheck;
pub use http_endpoint::{HttpEndpoint, McpBody};
pub use link::{Connect, LinkError};
pub use tools::WriteTool;

/// Why the protocol ended early.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The serving threads cannot be started.
    #[error("cannot start the MCP server: {0}")]
    Runtime(#[source] io::Error),
    /// The client does not speak the protocol.
    #[error("the MCP client did not complete the handshake: {0}")]
    Handshake(#[source] Box<ServerInitializeError>),
}

/// Serves the protocol on standard input and output until the input ends.
///
/// # Errors
/// If the server cannot be started, or the client does not speak the protocol.
pub fn serve(connect: Connect, allowed: Vec<WriteTool>) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(ServeError::Runtime)?;
    let served = runtime.block_on(async {
        let handler = handler::Handler::new(connect, allowed);
        match handler.serve(stdio()).await {
            Ok(service) => {
                // An error here means a cancelled thread; the protocol is over either way.
                service.waiting().await.ok();
                Ok(())
            }
            // A client that closes the input before sending anything needs no answer.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(ServeError::Handshake(Box::new(error))),
        }
    });
    // A request to the capture server may still be pending, but its answer is no longer needed.
    runtime.shutdown_background();
    served
}
