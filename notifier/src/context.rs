//! What the channels need to know of their surroundings; the caller owns it.

use std::{fmt, sync::Arc, time::Duration};

use events::Timestamp;

#[cfg(feature = "http")]
use outbound::Lookup;

/// Why nothing could be written to a terminal.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum SinkError {
    /// The run does not exist, or has no terminal attached.
    #[error("no terminal is attached to the run")]
    NoTerminal,
    /// The terminal does not accept output.
    #[error("the run's terminal accepts no output: {0}")]
    Busy(String),
}

/// The terminals of runs. What is written is text without controls inside a sequence of ours.
pub trait TerminalSink: Send + Sync {
    /// Writes bytes to the terminal of a run, between the output of its program. Must not block.
    ///
    /// # Errors
    /// When the run has no terminal, or the terminal does not accept output.
    fn write(&self, run: &str, bytes: &[u8]) -> Result<(), SinkError>;
}

/// The browsers that are subscribed to messages (Web Push).
pub trait PushSink: Send + Sync {
    /// A message for each browser, encrypted for it.
    ///
    /// # Errors
    /// Why there is none, in a sentence.
    fn posts(&self, message: &[u8], now: Timestamp) -> Result<Vec<PushPost>, String>;

    /// A push service knows a browser no longer.
    fn gone(&self, endpoint: &str);
}

/// A request to a push service.
#[derive(Clone)]
pub struct PushPost {
    /// Where to; whoever knows it can send to the browser.
    pub endpoint: String,
    /// Further headers.
    pub headers: Vec<(&'static str, String)>,
    /// The encrypted message.
    pub body: Vec<u8>,
}

/// Reads a variable of the environment.
pub type Env = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Reads the clock.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What the channels need to know of the context; the caller owns it.
#[derive(Clone)]
pub struct ChannelContext {
    /// Reads a variable of the environment.
    pub env: Env,
    /// Reads the clock.
    pub clock: Clock,
    /// The terminals of runs; without it nothing is written there.
    pub terminals: Option<Arc<dyn TerminalSink>>,
    /// The browsers that are subscribed; without it none gets anything.
    pub push: Option<Arc<dyn PushSink>>,
    /// How names become addresses.
    #[cfg(feature = "http")]
    pub lookup: Arc<dyn Lookup>,
    /// How long an attempt may take.
    pub attempt: Duration,
}

impl ChannelContext {
    /// How long an attempt may take, unless somebody says otherwise.
    pub const ATTEMPT: Duration = Duration::from_secs(10);

    /// Surroundings without terminals, where names are looked up as the system does it.
    #[must_use]
    pub fn new(env: Env, clock: Clock) -> Self {
        Self {
            env,
            clock,
            terminals: None,
            push: None,
            #[cfg(feature = "http")]
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
