//! The MCP server over HTTP: its tools query the server that serves them, over its Unix socket.

use std::{path::Path, sync::Arc};

use api::{Client, Connection};
use futures_util::FutureExt;
use mcp::{ControlCheck, HttpEndpoint, WriteTool};
use server::McpAnswer;
use tokio_util::sync::CancellationToken;

use home::config::{McpSettings, McpTool};

/// The handler of MCP messages.
pub(crate) fn answer(data: &Path, settings: &McpSettings, cancel: &CancellationToken) -> McpAnswer {
    let data = data.to_owned();
    let connect = move || match Client::running(&data, Connection::Unix) {
        Ok(Some(client)) => Ok(client),
        Ok(None) => Err("the server is starting or stopping; try again".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    let allowed = settings.allow.iter().copied().map(write_tool).collect();
    let endpoint = Arc::new(HttpEndpoint::new(Box::new(connect), allowed, cancel.clone()));
    Arc::new(move |request, control| {
        let endpoint = Arc::clone(&endpoint);
        let control = ControlCheck::new(move || control());
        async move { endpoint.answer(request, control).await }.boxed()
    })
}

/// The corresponding tool of the MCP server.
const fn write_tool(tool: McpTool) -> WriteTool {
    match tool {
        McpTool::Send => WriteTool::SendPrompt,
        McpTool::Label => WriteTool::SetLabels,
    }
}
