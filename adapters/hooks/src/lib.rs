//! Our entries in the agents' settings: which events they cover, the command they run, and how a settings file is
//! changed safely.
//!
//! This crate plans changes ([`Plan`]), reads the current state ([`HookStatus`]), and determines which events a version
//! of an agent accepts ([`accepted_events`]) and which version is installed ([`ProgramSearch`]). The differences
//! between agents are in [`agents::hooks`]. Our entries are identified only by the mark at the end of their command
//! ([`command::MARK`]). [`ConfiguredCommands`] are the other commands in the same settings.
//!
//! A file is never reformatted: `text` inserts text into it and removes it again, so that everything else stays byte
//! for byte. The crate never prompts, prints, or decides whether to continue. The reports that agents then send to
//! these commands are stored in the spool and decoded in [`delivery`].

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
