//! The handlers, by subject.

pub(crate) mod admin;
pub(crate) mod agentapi;
pub(crate) mod approvals;
pub(crate) mod attention;
pub(crate) mod check;
pub(crate) mod compat;
pub(crate) mod devices;
pub(crate) mod findings;
pub(crate) mod history;
pub(crate) mod mcp;
pub(crate) mod otlp;
pub(crate) mod prompts;
pub(crate) mod retention;
pub(crate) mod runs;
pub(crate) mod search;
pub(crate) mod sessions;
pub(crate) mod site;
pub(crate) mod status;
pub(crate) mod steering;
pub(crate) mod streams;
pub(crate) mod terminal;
pub(crate) mod timeline;
pub(crate) mod usage;
pub(crate) mod wait;
