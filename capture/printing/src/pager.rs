//! The pager, which shows long output a screen at a time, as in git.
//!
//! Standard output becomes the pager's input for the rest of the command. Output to it still counts as output to a
//! terminal: it is escaped, coloured and fitted to the terminal's width.

use std::{
    io::{self, IsTerminal, Write},
    os::fd::OwnedFd,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::variable;
use signal_hook::{SigId, consts::SIGINT};

/// Set while standard output leads to a pager.
static PAGED: AtomicBool = AtomicBool::new(false);

/// Whether a user sees standard output: it is a terminal, or a pager on one.
pub fn is_seen() -> bool {
    io::stdout().is_terminal() || PAGED.load(Ordering::Relaxed)
}

/// Whether there is a user to ask.
pub fn is_with_a_person() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// A running pager. Dropping it waits until the user has left it.
#[derive(Debug)]
pub struct Pager {
    child: Child,
    /// The terminal.
    before: OwnedFd,
    interrupt: Option<SigId>,
}

impl Pager {
    /// Starts the user's pager and makes it standard output. `None` without a terminal, or if it cannot be started; the
    /// output is then not paged.
    #[must_use]
    pub fn start() -> Option<Self> {
        if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
            return None;
        }
        let mut command = Self::command()?;
        let before = rustix::io::dup(io::stdout()).ok()?;
        let mut child = command.stdin(Stdio::piped()).spawn().ok()?;
        let input = child.stdin.take()?;
        rustix::stdio::dup2_stdout(&input).ok()?;
        // The pager handles Ctrl-C: it reads to the end or exits.
        let interrupt = signal_hook::flag::register(SIGINT, Arc::new(AtomicBool::new(false))).ok();
        PAGED.store(true, Ordering::Relaxed);
        Some(Self { child, before, interrupt })
    }

    /// `$CAPTURE_PAGER` or `$PAGER`, through a shell; otherwise `less`, if it is installed.
    fn command() -> Option<Command> {
        let chosen = variable("CAPTURE_PAGER").or_else(|| variable("PAGER"));
        let mut command = match chosen {
            Some(line) if line.as_os_str() == "cat" => return None,
            Some(line) => {
                let mut shell = Command::new("/bin/sh");
                shell.arg("-c").arg(line);
                shell
            }
            None => Command::new("less"),
        };
        if variable("LESS").is_none() {
            // Exit immediately if one screen is enough, show colours, and do not clear the screen.
            command.env("LESS", "FRX");
        }
        if variable("LV").is_none() {
            command.env("LV", "-c");
        }
        Some(command)
    }
}

impl Drop for Pager {
    fn drop(&mut self) {
        // If the reader has left, the rest is not needed.
        io::stdout().flush().ok();
        // This ends the pager's input, and the pager exits once its user has finished reading.
        rustix::stdio::dup2_stdout(&self.before).ok();
        self.child.wait().ok();
        PAGED.store(false, Ordering::Relaxed);
        if let Some(id) = self.interrupt.take() {
            signal_hook::low_level::unregister(id);
        }
    }
}
