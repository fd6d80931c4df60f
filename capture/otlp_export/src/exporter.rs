//! The sending thread, and its handle.

use std::{
    collections::VecDeque,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender as ChannelSender, bounded};
use events::{Provider, State, Timestamp};
use export::otlp::{
    metrics::{ApprovalWaits, MetricsSnapshot, encode_request},
    rejected_spans,
};
use home::config::OtlpSettings;
use notifier::ChannelContext;
use store::{ReadError, Reader};

use crate::{
    BACKLOG_MS,
    counts::{ExportCounts, SharedCounts},
    position::{PositionFile, SentPosition},
    sender::{RequestStop, SendFailure, Sender},
    spans::{SpanMessage, SpanReader},
};

/// Name of the thread.
pub const THREAD: &str = "otlp";
/// Minimum interval between writes of the position.
const NOTE_EVERY: Duration = Duration::from_secs(5);

/// Counts sessions by agent and state.
pub type SessionCounts = Arc<dyn Fn() -> Vec<(Provider, State, u64)> + Send + Sync>;

/// The parts the thread needs.
pub struct ExporterParts {
    /// The data directory.
    pub data: PathBuf,
    /// The store.
    pub reader: Reader,
    /// The user's settings.
    pub settings: OtlpSettings,
    /// Clock, environment and names of hosts.
    pub context: ChannelContext,
    /// Counts the sessions.
    pub sessions: SessionCounts,
    /// The version of capture.
    pub version: &'static str,
}

/// A handle on the thread; clones share it.
#[derive(Clone)]
pub struct OtlpExport(Arc<ExportShared>);

struct ExportShared {
    settings: OtlpSettings,
    committed: AtomicU64,
    counts: SharedCounts,
    stop: ChannelSender<()>,
    request: RequestStop,
}

impl fmt::Debug for OtlpExport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OtlpExport").field("endpoint", &self.0.settings.endpoint).finish_non_exhaustive()
    }
}

impl OtlpExport {
    /// Records that the store has committed up to this position. Never waits.
    pub fn committed(&self, position: u64) {
        self.0.committed.fetch_max(position, Ordering::Relaxed);
    }

    /// Whether the export is on.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.settings.is_on()
    }

    /// The endpoint.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.0.settings.endpoint
    }

    /// The counts of sent and lost spans.
    #[must_use]
    pub fn counts(&self) -> ExportCounts {
        self.0.counts.read()
    }

    /// Stops the thread and aborts its current request. Unsent spans are sent after the next start.
    pub fn stop(&self) {
        self.0.stop.try_send(()).ok();
        self.0.request.stop();
    }
}

/// The state of the thread.
pub struct Exporter {
    shared: Arc<ExportShared>,
    stop: Receiver<()>,
    spans: SpanReader,
    sender: Sender,
    context: ChannelContext,
    sessions: SessionCounts,
    version: &'static str,
    file: PositionFile,
    sent: SentPosition,
    noted: Instant,
    /// Messages not accepted yet, and the position of the log they extend to.
    pending: VecDeque<SpanMessage>,
    pending_until: u64,
    /// When traces may be sent again after a failure.
    next_traces: Instant,
    pub(crate) next_metrics: Instant,
    began: Timestamp,
    waits: ApprovalWaits,
}

impl Exporter {
    /// Creates the thread's state and its handle. Must be called before ingest begins to write: data already in the
    /// store is not sent, unless an export to this endpoint had begun before the last stop.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn new(parts: ExporterParts) -> Result<(OtlpExport, Self), ReadError> {
        let ExporterParts { data, reader, settings, context, sessions, version } = parts;
        let (stop, stopped) = bounded(1);
        let position = reader.position()?;
        let now = (context.clock)();
        let log: String = reader.log_id()?.iter().map(|byte| format!("{byte:02x}")).collect();
        let file = PositionFile::in_directory(&data);
        let known = file.read().filter(|sent| {
            sent.log == log && sent.endpoint == settings.endpoint && sent.position <= position && sent.since <= now
        });
        let sent =
            known.unwrap_or_else(|| SentPosition { log, endpoint: settings.endpoint.clone(), position, since: now });
        let spans = SpanReader::new(reader, settings.texts, version);
        let shared = Arc::new(ExportShared {
            settings: settings.clone(),
            committed: AtomicU64::new(position),
            counts: SharedCounts::default(),
            stop,
            request: RequestStop::default(),
        });
        let exporter = Self {
            shared: Arc::clone(&shared),
            stop: stopped,
            spans,
            sender: Sender::new(settings, context.clone(), shared.request.clone()),
            context,
            sessions,
            version,
            file,
            pending_until: sent.position,
            sent,
            noted: Instant::now(),
            pending: VecDeque::new(),
            next_traces: Instant::now(),
            next_metrics: Instant::now(),
            began: now,
            waits: ApprovalWaits::default(),
        };
        Ok((OtlpExport(shared), exporter))
    }

    /// Sends until it is stopped.
    pub fn run(&mut self) {
        let every = Duration::from_secs(self.shared.settings.interval_s.into());
        self.note();
        while let Err(RecvTimeoutError::Timeout) = self.stop.recv_timeout(every) {
            self.round();
        }
        self.note();
    }

    pub(crate) fn round(&mut self) {
        if self.shared.settings.traces && Instant::now() >= self.next_traces {
            let until = self.shared.committed.load(Ordering::Relaxed);
            // A session that cannot be exported must not end the service, which would repeat at each start.
            if catch_unwind(AssertUnwindSafe(|| self.traces(until))).is_err() {
                self.skip(until);
            }
        }
        if self.shared.settings.metrics && Instant::now() >= self.next_metrics {
            self.next_metrics = Instant::now() + Duration::from_secs(self.shared.settings.metrics_interval_s.into());
            self.metrics();
        }
        let behind = self.shared.committed.load(Ordering::Relaxed).saturating_sub(self.sent.position);
        self.shared.counts.update(|counts| counts.behind = behind);
    }

    /// Skips to this position, as if everything up to it had been sent.
    fn skip(&mut self, until: u64) {
        self.pending.clear();
        self.spans = self.spans.fresh();
        (self.sent.position, self.pending_until) = (until, until);
        let why = "a bug in capture: events committed so far are not sent".to_owned();
        self.shared.counts.update(|counts| counts.trouble = Some(why));
        self.note();
    }

    /// Sends everything committed since the last round, up to this position.
    fn traces(&mut self, until: u64) {
        while self.stop.is_empty() && self.flush() && self.sent.position < until {
            let now = (self.context.clock)();
            let since = self.sent.since.max(now.plus_ms(-BACKLOG_MS));
            match self.spans.read(self.sent.position, until, since) {
                Ok(batch) => {
                    self.shared.counts.update(|counts| counts.expired += batch.expired);
                    for (provider, state, wait_ms) in batch.waits {
                        self.waits.add(provider, state, wait_ms);
                    }
                    (self.pending, self.pending_until) = (batch.messages.into(), batch.until);
                }
                Err(error) => {
                    let error = format!("cannot read the database: {error}");
                    self.shared.counts.update(|counts| counts.trouble = Some(error));
                    return;
                }
            }
        }
    }

    /// Sends pending messages; false if the collector must be tried again later.
    fn flush(&mut self) -> bool {
        while let Some(message) = self.pending.front() {
            let spans = message.spans;
            match self.sender.send("traces", &message.body) {
                Ok(answer) => {
                    let rejected = rejected_spans(&answer);
                    self.shared.counts.update(|counts| {
                        let lost = rejected.as_ref().map_or(0, |(lost, _)| *lost).min(spans);
                        counts.sent += spans - lost;
                        counts.rejected += lost;
                        counts.trouble = rejected.map(|(_, why)| format!("the collector rejected spans: {why}"));
                    });
                }
                Err(SendFailure::Refused(why)) => {
                    tracing::warn!(spans, why, "the OpenTelemetry collector refused spans; they are dropped");
                    self.shared.counts.update(|counts| {
                        counts.rejected += spans;
                        counts.failed_requests += 1;
                        counts.trouble = Some(why);
                    });
                }
                Err(SendFailure::Later(why, pause)) => {
                    self.next_traces = Instant::now() + pause;
                    self.failed(why);
                    return false;
                }
            }
            self.pending.pop_front();
        }
        self.sent.position = self.pending_until;
        if self.noted.elapsed() >= NOTE_EVERY {
            self.note();
        }
        true
    }

    /// Sends the current metrics. A failed request is not repeated: the next snapshot includes its data.
    fn metrics(&mut self) {
        let sessions = (self.sessions)();
        let dropped = self.shared.counts.read().dropped();
        let body = encode_request(MetricsSnapshot {
            since: self.began,
            at: (self.context.clock)(),
            sessions: &sessions,
            waits: &self.waits,
            dropped: &dropped,
            version: self.version,
        });
        match self.sender.send("metrics", &body) {
            Ok(_) if self.pending.is_empty() => self.shared.counts.update(|counts| counts.trouble = None),
            Ok(_) => {}
            Err(SendFailure::Refused(why) | SendFailure::Later(why, _)) => self.failed(why),
        }
    }

    fn failed(&self, why: String) {
        self.shared.counts.update(|counts| {
            if counts.trouble.is_none() {
                tracing::warn!(why, "cannot send to the OpenTelemetry collector");
            }
            counts.failed_requests += 1;
            counts.trouble = Some(why);
        });
    }

    /// Saves the position.
    pub(crate) fn note(&mut self) {
        self.noted = Instant::now();
        if let Err(error) = self.file.write(&self.sent) {
            tracing::warn!(%error, "cannot store how far sessions were sent; some are sent again after a restart");
        }
    }
}
