//! Sets up a session of the built-in agent: its model and key, its file, the broker for its calls, and the connection
//! to the server. The commands implement the front ends, which send prompts and show the results.
//!
//! [`SessionOpener`] assembles the parts of a session. [`permission`] decides in process about calls that need no
//! approval: denials, and plain reads of the workspace. Everything else is decided by the server and by an available
//! [`PermissionAsker`] ([`server_broker::ServerBroker`]), or without a connection by the asker alone
//! ([`broker::LocalBroker`]); otherwise the call is not run. `status` reports the activity of the session to the
//! server.
//!
//! This crate must not parse a command line, read the environment, print, or depend on a front end: the caller passes
//! what is needed, and receives problems through [`SessionPlace::warn`].

pub mod broker;
mod cache_table;
mod clock;
mod commands;
mod instructions;
mod keys;
mod model;
mod model_facts;
mod open;
mod os;
pub mod permission;
mod place;
mod question;
mod refused_request;
pub mod server_broker;
mod sessions;
mod spill;
mod status;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

pub use broker::{AskerDecision, PermissionAsker};
pub use cache_table::{CacheTable, cache_table};
pub use model::ModelCatalog;
pub use model_facts::ModelFacts;
pub use open::{BY_COMMAND, OpenSession, SessionChoice, SessionOpener, SessionOptions, nano_usd};
pub use place::SessionPlace;
pub use question::{PermissionQuestion, QuestionChange, SessionOffer, allowed, answered, denied, unanswered};
use settings::{AgentMode, AgentSettings};
pub use tools::host::{VERB as TOOL_HOST, main as tool_host};

/// How commands are sandboxed: not at all yet.
pub const SANDBOX: &str = "none: commands run with the user's own rights";

/// The component that applies the policy in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PolicyState {
    /// The server; also assumed until it is known that there is none.
    Served,
    /// No server is running: the policy's rules can allow only reading.
    NoServer,
    /// The policy file is refused.
    NotInForce,
}

/// How a mode handles calls, as text for the model.
#[must_use]
pub(crate) const fn rules_of(mode: AgentMode, policy: PolicyState) -> &'static str {
    match (mode, policy) {
        (AgentMode::Plan, PolicyState::NotInForce) => {
            "policy not in force: the user is asked about each read, everything else is denied"
        }
        (_, PolicyState::NotInForce) => "policy not in force: the user is asked about everything",
        (AgentMode::Plan, _) => "only reads run, everything else is denied",
        (AgentMode::Ask, PolicyState::Served | PolicyState::NoServer) => {
            "reads of the workspace and commands that only read it run without asking, unless the user's policy says \
             otherwise; the policy or the user decides about everything else"
        }
        (AgentMode::AcceptEdits, PolicyState::Served | PolicyState::NoServer) => {
            "reads and edits of the workspace and commands that only read it run without asking, unless the user's \
             policy says otherwise; the policy or the user decides about everything else"
        }
    }
}

/// How a mode handles calls, in a few words for the user.
pub(crate) const fn rules_in_short(mode: AgentMode, policy: PolicyState) -> &'static str {
    match (mode, policy) {
        (AgentMode::Plan, PolicyState::NotInForce) => {
            "policy not in force: you are asked about each read, and all other calls are denied"
        }
        (AgentMode::Plan, PolicyState::Served | PolicyState::NoServer) => "only reads",
        (AgentMode::Ask | AgentMode::AcceptEdits, PolicyState::NotInForce) => {
            "policy not in force: you are asked about everything"
        }
        (AgentMode::Ask, PolicyState::NoServer) => "no server: only reads run without asking",
        (AgentMode::AcceptEdits, PolicyState::NoServer) => "no server: only reads and edits run without asking",
        (AgentMode::Ask, PolicyState::Served) => "reads run without asking, your policy or you decide the rest",
        (AgentMode::AcceptEdits, PolicyState::Served) => {
            "reads and edits run without asking, your policy or you decide the rest"
        }
    }
}

/// Number of threads of the runtime; a session's own thread does most of the work.
pub const WORKERS: usize = 2;
/// The sandbox level in a word, for the approver of a request.
pub const SANDBOX_LEVEL: &str = "none";

/// The sessions directory below the data directory.
#[must_use]
pub fn sessions_dir(data: &Path) -> PathBuf {
    data.join("agent/sessions")
}

/// Whether a session of the built-in agent matches this id, part of an id, or file.
#[must_use]
pub fn is_session_known(data: &Path, given: &str) -> bool {
    sessions::is_known(data, given)
}

/// The file of the session of the built-in agent with this id, part of an id, or path.
///
/// # Errors
/// If no session matches, or several do.
pub fn session_file(data: &Path, given: &str) -> Result<PathBuf, RunError> {
    sessions::find(data, given)
}

/// Describes the model of the settings with its address and the source of its key, and returns whether no problem is
/// known. Reads no file and runs no program.
#[must_use]
pub fn model_in_words(settings: &AgentSettings, environment: &[(OsString, OsString)]) -> (bool, String) {
    let Some(name) = &settings.model else {
        return (true, "not set: pass --model, or set agent.model in the configuration".to_owned());
    };
    let provider = match settings.provider(&name.provider) {
        Ok(provider) => provider,
        Err(error) => return (false, format!("{name}: {error}")),
    };
    let has_value = |variable: &str| environment.iter().any(|(name, value)| name == variable && !value.is_empty());
    let missing = provider.key_env.as_ref().filter(|variable| !has_value(variable));
    let source = match missing {
        Some(variable) => format!("the variable {variable}, which should contain the key, is not set here"),
        None => keys::source_in_words(&name.provider, &provider),
    };
    let has_key = provider.key_env.is_some() || provider.key_file.is_some() || !provider.key_command.is_empty();
    match model::address_in_words(settings, &name.provider, environment, has_key) {
        // The key may be set in the environment in which the agent is started.
        Ok(address) => (true, format!("{name} at {address}; {source}")),
        Err(error) => (false, format!("{name}: {error}")),
    }
}

/// Why the agent did not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An invalid setting or argument.
    #[error("{0}")]
    Usage(String),
    /// The session was not found.
    #[error("{0}")]
    NotFound(String),
    /// The action is not allowed.
    #[error("{0}")]
    Refused(String),
    /// An error of the session's file.
    #[error(transparent)]
    Session(#[from] session_tree::SessionError),
    /// Any other error.
    #[error("{0}")]
    Other(String),
}

impl From<std::io::Error> for RunError {
    fn from(error: std::io::Error) -> Self {
        Self::Other(error.to_string())
    }
}
