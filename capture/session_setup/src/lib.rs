//! Composes a session of our own agent: which model with which key, which session, who decides about its calls, and the
//! connection to the server. The front ends, which give it prompts and show what comes of them, are the commands' own.
//!
//! [`SessionOpener`] puts the parts of a session together. What a call may do is decided in process by [`permission`] as
//! far as that needs nobody: denials, and plain reads of the workspace. Everything else is decided by the server and by
//! whoever can be asked here, a [`PermissionAsker`] ([`server_broker::ServerBroker`]); without a connection by the latter
//! alone ([`broker::LocalBroker`]); or it is not done. What the session does is said to the server (`status`).
//!
//! Must not parse a command line, read the environment, print, or know how a front end speaks: the caller passes what it
//! needs, and is told what went wrong by [`SessionPlace::warn`].

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

/// How commands are kept from doing harm: not at all, yet.
pub const SANDBOX: &str = "none: commands run with the user's own rights";

/// Who applies the policy in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PolicyState {
    /// The server; or it is not known yet that there is none.
    Served,
    /// No server is running: rules allow nothing but reads.
    NoServer,
    /// The policy file is refused.
    NotInForce,
}

/// What a mode does with calls, for the model.
#[must_use]
pub(crate) const fn rules_of(mode: AgentMode, policy: PolicyState) -> &'static str {
    match (mode, policy) {
        (AgentMode::Plan, PolicyState::NotInForce) => {
            "policy not in force: each read is asked, everything else is denied"
        }
        (_, PolicyState::NotInForce) => "policy not in force: everything is asked",
        (AgentMode::Plan, _) => "only reads are done, everything else is denied",
        (AgentMode::Ask, PolicyState::Served | PolicyState::NoServer) => {
            "reads of the workspace and commands that only read it are done unasked, if the user's policy does not say \
             otherwise; everything else is up to the policy and the user"
        }
        (AgentMode::AcceptEdits, PolicyState::Served | PolicyState::NoServer) => {
            "reads and edits of the workspace and commands that only read it are done unasked, if the user's policy does \
             not say otherwise; everything else is up to the policy and the user"
        }
    }
}

/// The same in a few words, for the person.
pub(crate) const fn rules_in_short(mode: AgentMode, policy: PolicyState) -> &'static str {
    match (mode, policy) {
        (AgentMode::Plan, PolicyState::NotInForce) => "policy not in force: each read is asked, the rest is denied",
        (AgentMode::Plan, PolicyState::Served | PolicyState::NoServer) => "only reads",
        (AgentMode::Ask | AgentMode::AcceptEdits, PolicyState::NotInForce) => {
            "policy not in force: everything is asked"
        }
        (AgentMode::Ask, PolicyState::NoServer) => "no server: only reads run unasked",
        (AgentMode::AcceptEdits, PolicyState::NoServer) => "no server: only reads and edits run unasked",
        (AgentMode::Ask, PolicyState::Served) => "reads run unasked, your policy or you decide the rest",
        (AgentMode::AcceptEdits, PolicyState::Served) => {
            "reads and edits run unasked, your policy or you decide the rest"
        }
    }
}

/// Threads of the runtime; a session's own thread does most of the work.
pub const WORKERS: usize = 2;
/// The same in a word, for whoever decides about a request.
pub const SANDBOX_LEVEL: &str = "none";

/// Where sessions are, below the data directory.
#[must_use]
pub fn sessions_dir(data: &Path) -> PathBuf {
    data.join("agent/sessions")
}

/// Whether a session of our own agent has this id, this part of an id, or this file.
#[must_use]
pub fn is_session_known(data: &Path, given: &str) -> bool {
    sessions::is_known(data, given)
}

/// The file of the session of our own agent with this id or part of an id, or of this path.
///
/// # Errors
/// There is none, or several.
pub fn session_file(data: &Path, given: &str) -> Result<PathBuf, RunError> {
    sessions::find(data, given)
}

/// The model of the settings, where it is reached and where its key comes from, in words, and whether nothing is known
/// to be wrong with them. Reads no file and runs no program.
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
        Some(variable) => format!("the variable {variable}, which is to hold the key, is not set here"),
        None => keys::source_in_words(&name.provider, &provider),
    };
    let has_key = provider.key_env.is_some() || provider.key_file.is_some() || !provider.key_command.is_empty();
    match model::address_in_words(settings, &name.provider, environment, has_key) {
        // The key may be set where the agent is started.
        Ok(address) => (true, format!("{name} at {address}; {source}")),
        Err(error) => (false, format!("{name}: {error}")),
    }
}

/// Why the agent did not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Something that was written or typed cannot be meant.
    #[error("{0}")]
    Usage(String),
    /// The session was not found.
    #[error("{0}")]
    NotFound(String),
    /// It is not allowed.
    #[error("{0}")]
    Refused(String),
    /// The session's file.
    #[error(transparent)]
    Session(#[from] session_tree::SessionError),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl From<std::io::Error> for RunError {
    fn from(error: std::io::Error) -> Self {
        Self::Other(error.to_string())
    }
}
