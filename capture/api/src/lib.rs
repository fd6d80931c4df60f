//! The HTTP interface: routes, request and answer types, errors, the OpenAPI document, and a client.
//!
//! The table in [`routes`] states every route: path, method, scope, and the types of its query, body and
//! answer. The server builds its router from it, [`openapi`] writes the document from it, and
//! [`client::Client`] sends typed requests by it. Additions to the wire form are additive: fields may be
//! added, and clients ignore what they do not know.

pub mod agentapi;
pub mod approvals;
pub mod body;
pub mod client;
pub mod compat;
pub mod devices;
pub mod endpoint;
pub mod error;
pub mod findings;
pub mod health;
pub mod history;
pub mod hooks;
pub mod list;
pub mod mcp;
pub mod openapi;
pub mod overview;
pub mod part;
pub mod prompts;
pub mod push;
pub mod query;
pub mod retention;
pub mod routes;
pub mod runs;
pub mod scope;
pub mod search;
pub mod sessions;
pub mod steering;
pub mod usage;

pub use client::{Client, ClientError, Connection};
pub use endpoint::Endpoint;
pub use error::{ErrorBody, ErrorCode, ErrorText};
pub use routes::{Operation, OperationId, Route};
pub use scope::Scope;
