//! The process table: finds agents among the processes, and reports when they end.
//!
//! [`ProcessTable`] scans `/proc` for agents of our own user; [`Watcher`] waits for processes to end (with pidfd, which
//! costs nothing while they run). A pid may be reused, so it is always stored together with the start time of its
//! process.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

mod ancestry;
mod below;
mod command_line;
mod commands;
mod descent;
pub mod local_socket;
mod os;
mod path_search;
mod reap;
mod stat;
mod table;
mod tcp;
mod tcp_user;
mod terminal;
#[cfg(test)]
mod tests;
mod unseen;
pub mod wake;
mod watcher;

pub use ancestry::{agent_in_group, agent_of, is_started_by, nearest_agent};
pub use below::{descendants, left_of};
pub use command_line::agent_of_words;
pub use commands::{ShellCommand, executed_commands, shell_commands_below, simple_command};
pub use descent::{
    Descent, agent_descent, descends_from_agent, mark_child, mark_program, program_mark, seal_if_agents,
};
pub use os::READS_PROCESSES;
pub use path_search::{check_executable, find_program};
pub use reap::reap_adopted;
pub use stat::{age_ms, descends_from, has_children, is_alive, parent, start_ticks, working_directory};
pub use table::{AgentProcess, ProcessTable, run_of};
pub use tcp::{holders_of_tcp, listener_of_tcp};
pub use tcp_user::user_of_tcp;
pub use terminal::{terminal_of, variable_of};
pub use unseen::{Unseen, UnseenAgent, unseen_agents};
pub use watcher::{EndedProcess, Watcher};
