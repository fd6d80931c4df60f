//! The public benchmark: plays recordings through the real program, in real time and from outside,
//! and says how often the status it shows is right.
//!
//! A process named like the agent plays each run ([`agent`]), a server of its own watches, and
//! `GET /api/v1/sessions?active=all` is polled every [`POLL`] ([`play`]). The judge is the one of
//! [`crate::terminal`]. What is played is a [`case`]; figures are put together in [`report`], new
//! recordings are made by [`record`]. `fixtures/recordings/FORMAT.md` documents the format.
//!
//! Times are milliseconds from second 0 of a recording; between processes, of the monotonic clock.

pub mod agent;
pub mod case;
pub mod play;
pub mod record;
pub mod report;

use std::time::Duration;

/// How often the server is asked.
pub const POLL: Duration = Duration::from_millis(50);

/// What is played of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Transcripts and the live registry; no terminal, not started by capture.
    Files,
    /// Files, and the hooks that `capture hooks install` set up.
    Hooks,
    /// Started by `capture run`: terminal and keys alone.
    Pty,
    /// Terminal, files, hooks, telemetry: what the recording has.
    All,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Files, Self::Hooks, Self::Pty, Self::All];

    /// As it is spelled.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Hooks => "hooks",
            Self::Pty => "pty",
            Self::All => "all",
        }
    }

    /// The mode of that name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == text)
    }

    /// Whether the agent has a terminal.
    #[must_use]
    pub const fn has_terminal(self) -> bool {
        matches!(self, Self::Pty | Self::All)
    }

    /// Whether files are written.
    #[must_use]
    pub const fn has_files(self) -> bool {
        matches!(self, Self::Files | Self::Hooks | Self::All)
    }

    /// Whether hooks are installed and run.
    #[must_use]
    pub const fn has_hooks(self) -> bool {
        matches!(self, Self::Hooks | Self::All)
    }
}

/// Now, ms of the monotonic clock, the same in every process.
#[must_use]
pub fn steady_ms() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec * 1000 + now.tv_nsec / 1_000_000
}

/// Waits until that moment of the monotonic clock.
pub fn wait_until(steady: i64) {
    loop {
        let left = steady - steady_ms();
        let Ok(left @ 1..) = u64::try_from(left) else { return };
        std::thread::park_timeout(Duration::from_millis(left));
    }
}
