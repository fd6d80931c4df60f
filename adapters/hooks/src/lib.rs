//! Our entries in the agents' settings: which events they cover, the command they run, and how a settings file is
//! changed safely.
//!
//! Owns the plan of a change ([`Plan`]) and what is there now ([`HookStatus`]), which events a version of an
//! agent accepts ([`accepted_events`]) and which version that is ([`ProgramSearch`]). What differs between agents
//! is stated in [`agents::hooks`]. An entry of ours is known by the mark at the end of its command
//! ([`command::MARK`]) and by nothing else. [`ConfiguredCommands`] are those of others in the same settings.
//!
//! Never rewrites a file: `text` puts text into what is there and takes it out again, so that
//! everything else stays byte for byte. Never asks, prints or decides whether to go on. What the
//! agents then send to those commands is stored in the spool and decoded in [`delivery`].

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

mod backup;
mod byte_order;
pub mod command;
mod configured;
pub mod delivery;
mod error;
mod facts;
mod file;
mod plan;
mod program;
mod settings;
mod status;
#[cfg(test)]
mod tests;
mod text;
mod versions;

pub use self::{
    command::{APPROVER, HookCommand, UnwritablePath},
    configured::ConfiguredCommands,
    error::Error,
    facts::{AGENTS, catalogue, facts, place},
    file::LARGEST,
    plan::{AppliedPlan, Plan, RequestedChange},
    program::{Installed, ProgramSearch, VersionUnknown},
    status::{EventState, HookStatus, InstallState},
    versions::{Fit, Unsupported, accepted_events, reports_requests},
};
