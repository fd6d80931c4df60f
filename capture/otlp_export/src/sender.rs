//! Sends encoded messages to the collector.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use notifier::{AttemptFailure, ChannelContext, RetryHint, Stopper, http::HttpClient};

use home::config::OtlpSettings;

/// Content type of the messages.
const PROTOBUF: &str = "application/x-protobuf";
/// Shortest and longest pause before a failed request is retried.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Longest pause a collector may request.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Aborts the current request from another thread, and prevents later ones.
#[derive(Clone, Default)]
pub(crate) struct RequestStop(Arc<Mutex<StopState>>);

#[derive(Default)]
enum StopState {
    /// No request was made yet.
    #[default]
    Unused,
    /// Aborts requests.
    Running(Stopper),
    Stopped,
}

impl RequestStop {
    pub(crate) fn stop(&self) {
        let state = std::mem::replace(&mut *self.lock(), StopState::Stopped);
        if let StopState::Running(stop) = state {
            stop();
        }
    }

    /// Sets the function that aborts requests from now on; false if requests were already stopped.
    fn put(&self, stopper: Stopper) -> bool {
        let mut state = self.lock();
        let is_stopped = matches!(*state, StopState::Stopped);
        if !is_stopped {
            *state = StopState::Running(stopper);
        }
        !is_stopped
    }

    fn lock(&self) -> MutexGuard<'_, StopState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends to the endpoint of the settings.
pub(crate) struct Sender {
    settings: OtlpSettings,
    context: ChannelContext,
    client: Option<HttpClient>,
    stop: RequestStop,
    /// Number of consecutive failures.
    failures: u32,
}

/// Why a message was not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SendFailure {
    /// It may be retried after this time.
    Later(String, Duration),
    /// It will never be accepted.
    Refused(String),
}

impl Sender {
    pub(crate) const fn new(settings: OtlpSettings, context: ChannelContext, stop: RequestStop) -> Self {
        Self { settings, context, client: None, stop, failures: 0 }
    }

    /// Sends a message of a signal, `traces` or `metrics`; returns the collector's response.
    pub(crate) fn send(&mut self, signal: &str, body: &[u8]) -> Result<Vec<u8>, SendFailure> {
        let answer = self.attempt(signal, body);
        match answer {
            Ok(answer) => {
                self.failures = 0;
                Ok(answer)
            }
            Err(AttemptFailure { error, again: RetryHint::Never }) => {
                self.failures = 0;
                Err(SendFailure::Refused(error))
            }
            Err(AttemptFailure { error, again }) => {
                let (shortest, longest) = PAUSES;
                let doubled = shortest.saturating_mul(1 << self.failures.min(16)).min(longest);
                self.failures = self.failures.saturating_add(1);
                let pause = match again {
                    RetryHint::After(asked) => asked.clamp(shortest, LONGEST_PAUSE),
                    RetryHint::Soon | RetryHint::Never => doubled,
                };
                Err(SendFailure::Later(error, pause))
            }
        }
    }

    fn attempt(&mut self, signal: &str, body: &[u8]) -> Result<Vec<u8>, AttemptFailure> {
        // The user can fix these errors without a restart: a file or its permissions.
        let mendable = |error: String| AttemptFailure { error, again: RetryHint::Soon };
        let headers = self.settings.read_headers(&self.context.env).map_err(mendable)?;
        let client = match &self.client {
            Some(client) => client,
            None => {
                let hosts: Vec<String> = self.settings.host().into_iter().collect();
                let client = HttpClient::new(&hosts, self.settings.ca_file.as_deref(), &self.context);
                let client = client.map_err(mendable)?;
                if !self.stop.put(client.stopper()) {
                    return Err(mendable("capture stops".to_owned()));
                }
                self.client.insert(client)
            }
        };
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
        client.send(&self.settings.address(signal), PROTOBUF, &headers, body)
    }
}
