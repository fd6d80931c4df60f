//! The public benchmark: plays recordings through the real program, in real time and from outside, and measures how
//! often its status is right.
//!
//! For each run a process named like the agent plays the recording ([`agent`]), a dedicated server observes it, and
//! `GET /api/v1/sessions?active=all` is polled every [`POLL`] ([`play`]). The judge is that of [`crate::terminal`]. The
//! input is a [`case`]; [`report`] summarizes the figures, and [`record`] makes new recordings.
//! `fixtures/recordings/FORMAT.md` documents the format.
//!
//! Times are milliseconds from second 0 of a recording; between processes, of the monotonic clock.

pub mod agent;
pub mod case;
pub mod play;
pub mod record;
pub mod report;

use std::time::Duration;

/// How often the server is polled.
pub const POLL: Duration = Duration::from_millis(50);

/// A part of a recording from which a program can derive the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Transcripts and the live registry.
    Files,
    /// The hooks that `capture hooks install` set up.
    Hooks,
    /// Terminal output and keys, under `capture run`.
    Pty,
    /// Telemetry.
    Otlp,
}

impl Source {
    /// All sources.
    const ALL: [Self; 4] = [Self::Files, Self::Hooks, Self::Pty, Self::Otlp];

    fn parse(text: &str) -> Option<Self> {
        match text {
            "files" => Some(Self::Files),
            "hooks" => Some(Self::Hooks),
            "pty" => Some(Self::Pty),
            "otlp" => Some(Self::Otlp),
            _ => None,
        }
    }

    const fn bit(self) -> u8 {
        match self {
            Self::Files => 1,
            Self::Hooks => 2,
            Self::Pty => 4,
            Self::Otlp => 8,
        }
    }
}

/// A non-empty set of sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sources(u8);

impl Sources {
    const HOOKS: Self = Self(Source::Files.bit() | Source::Hooks.bit());
    const ALL: Self = Self(15);

    /// The spellings, indexed by the bits.
    const NAMES: [&'static str; 16] = [
        "",
        "files",
        "+hooks",
        "files+hooks",
        "pty",
        "files+pty",
        "hooks+pty",
        "files+hooks+pty",
        "otlp",
        "files+otlp",
        "hooks+otlp",
        "files+hooks+otlp",
        "pty+otlp",
        "files+pty+otlp",
        "hooks+pty+otlp",
        "files+hooks+pty+otlp",
    ];

    const fn has(self, source: Source) -> bool {
        self.0 & source.bit() != 0
    }
}

/// The sources of a recording that are played. Four combinations have names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Transcripts and the live registry; no terminal, not started by capture.
    Files,
    /// Files, and the hooks that `capture hooks install` set up.
    Hooks,
    /// Started by `capture run`: only terminal output and keys.
    Pty,
    /// Terminal, files, hooks and telemetry, as recorded.
    All,
    /// Exactly these sources, and only recordings that have all of them.
    Of(Sources),
}

impl Mode {
    /// The modes with names.
    pub const ALL: [Self; 4] = [Self::Files, Self::Hooks, Self::Pty, Self::All];

    /// The spelling of the mode.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Hooks => "hooks",
            Self::Pty => "pty",
            Self::All => "all",
            Self::Of(sources) => Sources::NAMES[(sources.0 & Sources::ALL.0) as usize],
        }
    }

    /// The mode with this name, or the mode of exactly the sources that are joined by `+`, in any order; `+hooks` means
    /// only hooks.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(named) = Self::ALL.into_iter().find(|mode| mode.as_str() == text) {
            return Some(named);
        }
        let words = text.strip_prefix('+').unwrap_or(text).split('+');
        let bits = words.map(Source::parse).try_fold(0, |all, source| Some(all | source?.bit()))?;
        let named = Self::ALL.into_iter().filter(|mode| *mode != Self::All);
        Some(named.into_iter().find(|mode| mode.sources() == Sources(bits)).unwrap_or(Self::Of(Sources(bits))))
    }

    const fn sources(self) -> Sources {
        match self {
            Self::Files => Sources(Source::Files.bit()),
            Self::Hooks => Sources::HOOKS,
            Self::Pty => Sources(Source::Pty.bit()),
            Self::All => Sources::ALL,
            Self::Of(sources) => sources,
        }
    }

    /// Whether this source is played if the recording has it.
    #[must_use]
    pub const fn has(self, source: Source) -> bool {
        self.sources().has(source)
    }
}

/// The current time, ms of the monotonic clock, which is the same in every process.
#[must_use]
pub fn steady_ms() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec * 1000 + now.tv_nsec / 1_000_000
}

/// Waits until this time of the monotonic clock.
pub fn wait_until(steady: i64) {
    loop {
        let left = steady - steady_ms();
        let Ok(left @ 1..) = u64::try_from(left) else { return };
        std::thread::park_timeout(Duration::from_millis(left));
    }
}
