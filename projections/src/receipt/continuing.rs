//! Commands that were still running when their call returned: Codex's `exec_command` then names a session, and
//! `write_stdin` reads the rest of the output and the exit code.

use std::collections::VecDeque;

use events::ToolCall;
use serde::{Deserialize, Serialize};

use super::{LineKind, RunningCheck};
use crate::conversation::OpenCall;

/// Maximum number of commands remembered.
const COMMANDS: usize = 16;
/// The tool that reads on.
const READS_ON: &str = "write_stdin";

/// A command whose end is still to come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ContinuingCommand {
    session: u64,
    /// The number of the turn in which it began.
    turn: u32,
    shown: Option<String>,
    checks: Vec<RunningCheck>,
    line: LineKind,
}

/// The commands of a session whose end is still to come, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ContinuingCommands(VecDeque<ContinuingCommand>);

impl ContinuingCommands {
    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// If a call in a turn reads on from a known command, gives the call what the command runs. What began in an earlier
    /// turn is no check of this one.
    pub(crate) fn called(&self, call: &ToolCall, input: Option<&str>, turn: u32, open: &mut OpenCall) {
        #[derive(Deserialize)]
        struct Input {
            session_id: u64,
        }
        if call.name != READS_ON {
            return;
        }
        let Some(input) = input.and_then(|input| serde_json::from_str::<Input>(input).ok()) else { return };
        let Some(command) = self.0.iter().find(|command| command.session == input.session_id) else { return };
        open.continues = Some(command.session);
        if command.turn != turn {
            open.line = LineKind::Shows;
            return;
        }
        open.shown.clone_from(&command.shown);
        open.checks.clone_from(&command.checks);
        open.line = command.line;
    }

    /// Applies a result in a turn; returns whether the command of the call still runs.
    pub(crate) fn returned(&mut self, call: &OpenCall, turn: u32, text: &str) -> bool {
        let running = running_session(text);
        if let Some(session) = call.continues {
            if running.is_none() {
                self.0.retain(|command| command.session != session);
            }
        } else if let Some(session) = running {
            if self.0.len() == COMMANDS {
                self.0.pop_front();
            }
            let (shown, checks, line) = (call.shown.clone(), call.checks.clone(), call.line);
            self.0.push_back(ContinuingCommand { session, turn, shown, checks, line });
        }
        running.is_some()
    }
}

/// The session of a command that still runs, named in the lines before its output (0.100 to 0.171):
/// `Process running with session ID 16166`.
fn running_session(text: &str) -> Option<u64> {
    let head = text.lines().take(6).take_while(|line| !line.starts_with("Output:"));
    let number = |line: &str| line.strip_prefix("Process running with session ID ")?.trim().parse().ok();
    head.into_iter().find_map(number)
}
