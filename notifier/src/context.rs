//! The environment of the channels, which the caller owns.

use std::{fmt, sync::Arc, time::Duration};

use events::Timestamp;

use outbound::Lookup;

/// The reason why nothing could be written to a terminal.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum SinkError {
    /// The run does not exist, or has no terminal attached.
    #[error("no terminal is attached to the run")]
    NoTerminal,
    /// The terminal does not accept output.
    #[error("the run's terminal accepts no output: {0}")]
    Busy(String),
}

/// The terminals of runs. Everything written to them is text without control characters, inside a sequence built by
/// this crate.
pub trait TerminalSink: Send + Sync {
    /// Writes bytes to the terminal of a run, between the output of its program. Must not block.
    ///
    /// # Errors
    /// If the run has no terminal, or the terminal does not accept output.
    fn write(&self, run: &str, bytes: &[u8]) -> Result<(), SinkError>;
}

/// The browsers that are subscribed to messages (Web Push).
pub trait PushSink: Send + Sync {
    /// A message for each browser, encrypted for it.
    ///
    /// # Errors
    /// The reason why there is none, as a sentence.
    fn posts(&self, message: &[u8], now: Timestamp) -> Result<Vec<PushPost>, String>;

    /// Called when a push service no longer knows a browser.
    fn gone(&self, endpoint: &str);
}

/// A request to a push service.
#[derive(Clone)]
pub struct PushPost {
    /// The address of the push service. Anyone who knows it can send to the browser.
    pub endpoint: String,
    /// Additional headers.
    pub headers: Vec<(&'static str, String)>,
    /// The encrypted message.
    pub body: Vec<u8>,
}

/// Reads a variable of the environment.
pub type Env = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Reads the clock.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The environment of the channels, which the caller owns.
#[derive(Clone)]
pub struct ChannelContext {
    /// Reads a variable of the environment.
    pub env: Env,
    /// Reads the clock.
    pub clock: Clock,
    /// The terminals of runs; without it, nothing is written to them.
    pub terminals: Option<Arc<dyn TerminalSink>>,
    /// The subscribed browsers; without it, they get nothing.
    pub push: Option<Arc<dyn PushSink>>,
    /// Resolves names to addresses.
    pub lookup: Arc<dyn Lookup>,
    /// Time limit of an attempt.
    pub attempt: Duration,
}

impl ChannelContext {
    /// Default time limit of an attempt.
    pub const ATTEMPT: Duration = Duration::from_secs(10);

    /// An environment without terminals, in which the system resolves names.
    #[must_use]
    pub fn new(env: Env, clock: Clock) -> Self {
        Self {
            env,
            clock,
            terminals: None,
            push: None,
            lookup: Arc::new(outbound::SystemLookup),
            attempt: Self::ATTEMPT,
        }
    }
}

impl fmt::Debug for ChannelContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings").field("attempt", &self.attempt).finish_non_exhaustive()
    }
}
