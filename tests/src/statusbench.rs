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

/// Something a recording has and a program can be told by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Transcripts and the live registry.
    Files,
    /// The hooks that `capture hooks install` set up.
    Hooks,
    /// Terminal and keys, under `capture run`.
    Pty,
    /// Telemetry.
    Otlp,
}

impl Source {
    /// All of them.
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

/// Some of the sources, and at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sources(u8);

impl Sources {
    const HOOKS: Self = Self(Source::Files.bit() | Source::Hooks.bit());
    const ALL: Self = Self(15);

    /// As they are spelled, by their bits.
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

/// What is played of a recording. Four combinations of its sources have names of their own.
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
    /// Just these, and only recordings that have each of them.
    Of(Sources),
}

impl Mode {
    /// Those with names.
    pub const ALL: [Self; 4] = [Self::Files, Self::Hooks, Self::Pty, Self::All];

    /// As it is spelled.
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

    /// The mode of that name, or of sources joined by `+` in any order; `+hooks` are hooks alone.
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

    /// Whether this is played, where the recording has it.
    #[must_use]
    pub const fn has(self, source: Source) -> bool {
        self.sources().has(source)
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
