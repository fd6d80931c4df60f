//! The HTTP interface: routes, request and answer types, errors, the OpenAPI document, and a client.
//!
//! The table in [`routes`] defines every route: path, method, scope, and the types of its query, body and answer. From
//! this table, the server builds its router, [`openapi`] generates the document, and [`client::Client`] builds typed
//! requests. Changes to the wire format are additive: fields may be added, and clients ignore unknown fields.

pub mod agentapi;
pub mod approvals;
pub mod body;
pub mod check;
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
