//! The Model Context Protocol over HTTP. Its messages are JSON-RPC 2.0, as the protocol specifies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A message of the Model Context Protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpMessage {
    /// Always `2.0`.
    pub jsonrpc: String,
    /// Its other fields, which depend on the kind of message.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}
