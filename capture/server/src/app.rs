//! The state shared by all handlers.

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use api::runs::{Input, InputSent};
use devices::Devices;
use events::Timestamp;
use live_view::{Control, Json, LiveView, Reply, RunTarget, SessionEntry};
use projections::StatusRules;
use prometheus_client::registry::Registry;
use serde::Serialize;
use store::{ReadError, Reader};
use tokio::{
    sync::{Semaphore, watch},
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Config, Health, Limits,
    address::url_of,
    answer,
    config::{McpAnswer, Redact, ServerClock},
    error::ApiError,
    gate::Gate,
    leases::Leases,
    metrics::{self, Tally},
    snapshot::LastSnapshot,
};

/// Maximum number of concurrent reads of the store: more would only queue for the disk and occupy threads.
const STORE_READS: usize = 4;

/// Maximum number of compressed streams; further streams are sent uncompressed. Each takes about 0.3 MB.
const COMPRESSED_STREAMS: usize = 64;

/// How long a read of the store waits for the commit of events that lists already show.
const COMMIT_WITHIN: Duration = Duration::from_millis(250);

/// The server's parts. A handle: clones share them.
pub(crate) type App = Arc<Parts>;

pub(crate) struct Parts {
    /// Decides which requests are let in.
    pub(crate) gate: Gate,
    /// The URL `http://ADDRESS` through which this machine reaches the server.
    pub(crate) url: String,
    /// The paired browsers.
    pub(crate) devices: Option<Devices>,
    pub(crate) live_view: LiveView,
    pub(crate) health: Health,
    /// The requests that the daemon carries out for the server.
    pub(crate) control: Arc<dyn Control>,
    /// Answers the Model Context Protocol.
    pub(crate) mcp: Option<McpAnswer>,
    pub(crate) limits: Limits,
    /// The protocol that hosts of runs use after the upgrade.
    pub(crate) host_protocol: &'static str,
    /// The limits of the status rules.
    pub(crate) rules: StatusRules,
    /// The user's prices of models.
    pub(crate) prices_file: Option<PathBuf>,
    /// Removes secrets from answers.
    redact: Option<Redact>,
    pub(crate) tally: Tally,
    clock: ServerClock,
    /// The metrics of `/metrics`.
    pub(crate) metrics: Registry,
    /// Ends streams, WebSockets and connections.
    pub(crate) cancel: CancellationToken,
    /// Notified when a device is revoked, so that its open connections end at once.
    pub(crate) revocations: watch::Sender<()>,
    /// Owns every task.
    pub(crate) tasks: TaskTracker,
    /// The last full snapshot, shared because many clients request the same one.
    pub(crate) last_snapshot: Mutex<Option<LastSnapshot>>,
    /// Which views of terminals may resize them.
    pub(crate) leases: Mutex<Leases>,
    /// Permits for telemetry bodies in memory.
    pub(crate) telemetry: Arc<Semaphore>,
    /// Permits for compressed streams, each of which uses memory.
    pub(crate) compressed: Arc<Semaphore>,
    reader: Reader,
    reads: Semaphore,
}

impl Parts {
    pub(crate) fn new(
        live_view: LiveView,
        reader: Reader,
        mut health: Health,
        config: &Config,
        address: SocketAddr,
        cancel: CancellationToken,
    ) -> App {
        let tally = Tally::default();
        let metrics = metrics::registry(&mut health, &live_view, &tally);
        Arc::new(Self {
            gate: Gate::new(address, config),
            url: url_of(address),
            devices: config.devices.clone(),
            live_view,
            health,
            control: Arc::clone(&config.control),
            mcp: config.mcp.clone(),
            limits: config.limits,
            host_protocol: config.host_protocol,
            rules: config.rules,
            prices_file: config.prices_file.clone(),
            redact: config.redact.clone(),
            tally,
            metrics,
            cancel,
            revocations: watch::Sender::new(()),
            tasks: TaskTracker::new(),
            clock: Arc::clone(&config.clock),
            last_snapshot: Mutex::default(),
            leases: Mutex::default(),
            compressed: Arc::new(Semaphore::new(COMPRESSED_STREAMS)),
            telemetry: Arc::new(Semaphore::new(config.limits.telemetry_at_once)),
            reader,
            reads: Semaphore::new(STORE_READS),
        })
    }

    /// The current time.
    pub(crate) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Commits events that lists show but the store lacks; otherwise answers from the store would miss them.
    pub(crate) async fn commit_shown(&self) {
        if self.live_view.is_ahead() {
            timeout(COMMIT_WITHIN, self.control.commit_shown()).await.ok();
        }
    }

    /// Reads the store on a blocking thread.
    pub(crate) async fn read<T, F>(&self, what: F) -> Result<T, ApiError>
    where
        T: Send + 'static,
        F: FnOnce(&Reader) -> Result<T, ReadError> + Send + 'static,
    {
        self.commit_shown().await;
        let permit = match timeout(self.limits.read, self.reads.acquire()).await {
            Ok(Ok(permit)) => permit,
            Ok(Err(_)) | Err(_) => return Err(ApiError::unavailable("the database is busy; retry")),
        };
        let reader = self.reader.clone();
        let answer = self.tasks.spawn_blocking(move || what(&reader)).await;
        drop(permit);
        match answer {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(cause)) => Err(ApiError::internal(&cause)),
            Err(cause) => Err(ApiError::internal(&cause)),
        }
    }

    /// The JSON of these sessions. Rows without JSON are read from the store; sessions found in neither are omitted.
    pub(crate) async fn session_jsons(&self, rows: Vec<Arc<SessionEntry>>) -> Result<Vec<Json>, ApiError> {
        if rows.iter().all(|row| row.json.is_some()) {
            return Ok(rows.iter().filter_map(|row| row.json.clone()).collect());
        }
        let found = self
            .read(move |reader| {
                let missing: Vec<_> = rows.iter().filter(|row| row.json.is_none()).map(|row| row.id).collect();
                let mut stored = reader.session_jsons(&missing)?.into_iter();
                let json_of =
                    |row: &Arc<SessionEntry>| row.json.clone().or_else(|| stored.next().flatten().map(Json::from_text));
                Ok(rows.iter().map(json_of).collect::<Vec<_>>())
            })
            .await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Waits for the daemon's answer, at most as long as a read may take.
    pub(crate) async fn ask<T>(&self, reply: Reply<T>) -> Result<T, ApiError> {
        self.ask_within(reply, self.limits.read).await
    }

    /// Types into a run. Text may wait for the run's prompt.
    pub(crate) async fn send_input(&self, target: RunTarget, input: Input) -> Result<InputSent, ApiError> {
        let within = self.limits.read + Duration::from_millis(input.prompt_within_ms());
        tokio::select! {
            () = self.cancel.cancelled() => Err(ApiError::unavailable("the server is stopping")),
            sent = self.ask_within(self.control.send_input(target, input), within) => sent,
        }
    }

    async fn ask_within<T>(&self, reply: Reply<T>, within: Duration) -> Result<T, ApiError> {
        match timeout(within, reply).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(live_view::Refusal::Unavailable.into()),
        }
    }

    /// A JSON response with secrets removed.
    pub(crate) fn redacted<T: Serialize>(&self, answer: &T) -> answer::HandlerResult {
        let Some(redact) = &self.redact else { return answer::json_of(answer) };
        let mut value = serde_json::to_value(answer).map_err(|cause| ApiError::internal(&cause))?;
        redact(&mut value);
        answer::json_of(&value)
    }

    /// Runs a conversation with a client until it ends. When the server stops, the client has `limits.shutdown` to
    /// close; the connection of a client that does not read is dropped.
    pub(crate) async fn attend(&self, conversation: impl Future<Output = ()>) {
        let overdue = async {
            self.cancel.cancelled().await;
            sleep(self.limits.shutdown).await;
        };
        tokio::select! {
            () = conversation => {}
            () = overdue => {}
        }
    }

    /// Queries the health of the sources on a blocking thread.
    pub(crate) async fn sources(&self) -> Result<Vec<api::health::SourceHealth>, ApiError> {
        let sources = Arc::clone(&self.health.sources);
        self.tasks.spawn_blocking(move || sources()).await.map_err(|cause| ApiError::internal(&cause))
    }
}
