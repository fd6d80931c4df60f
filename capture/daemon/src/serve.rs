//! Starts the parts of the service, and stops them in order: sources, ingest, server.

use std::{
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, OnceLock, atomic::Ordering},
    time::Duration,
};

use anyhow::{Context, anyhow};
use api::Endpoint;
use crossbeam_channel::{Receiver, Sender, bounded, select};
use devices::{Devices, push::Subscriptions};
use events::{RunId, SessionId};
use home::{
    clock,
    config::{Config, ProjectRetention, RetentionSettings},
    endpoint, paths, redacted_only, roots,
};
use ingest::{
    Clock, Gauges, Ingest, IngestHandle, IngestInput, IngestLoop, Preparation, PreparedBatch, store_health::StoreFiles,
};
use live_view::LiveView;
use otlp_export::OtlpExport;
use processes::{agent_descent, holders_of_tcp, user_of_tcp};
use protocols::codex_daemon::Daemons;
use retention::{PrunePolicy, PruneRule, Retention, RetentionParts};
use rustix::process::{Resource, Rlimit, setrlimit};
use store::Writer;
use tailer::collect::{Batch, Collector, KnownFiles, Stopped};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::{
    actions::Actions,
    answer_tokens::AnswerTokens,
    approvals::{self, ApprovalBroker},
    automatic_prompts::AutomaticPrompts,
    clocks, codex_daemons,
    control::{self, Daemon},
    deliveries::{self, Deliveries},
    findings::{self, Findings},
    health,
    linker::Linker,
    mcp_endpoint,
    notices::{self, Notices},
    open_files, otlp,
    playback::Recordings,
    prompts::{self, Prompts},
    push::PushedBrowsers,
    runs::Runs,
    search::{self, Search},
    session_starter::SessionStarter,
    settings,
    stored_cursors::StoredCursors,
    supervisor::Supervisor,
    telemetry::TelemetryReceiver,
    tokens,
};

/// The options of `capture serve`.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Whether the user explicitly requested an address that other machines can reach.
    pub exposed: bool,
    /// Host names under which other machines may send requests.
    pub allowed_hosts: Vec<String>,
    /// Whether a command started the server in the background.
    pub background: bool,
    /// The data directory.
    pub data: PathBuf,
    /// The configuration.
    pub config: Config,
}

/// Name of the thread that commits.
const INGEST: &str = "ingest";
/// Name of the thread that moves the write-ahead log into the database.
const CHECKPOINT: &str = "checkpoint";
/// Interval at which a non-empty write-ahead log is moved into the database.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(2);
/// How long a server whose data directory was removed or replaced reports this before it ends.
const LOST_MOST: Duration = Duration::from_secs(60);
/// Size up to which the write-ahead log is left unchanged while nothing is written, bytes; a larger one is truncated.
const WAL_REST_BYTES: u64 = 4 << 20;

/// Serves until the token is cancelled. Calls `taken` once the data directory is locked, before anything else is read.
///
/// # Errors
/// When the store, the sockets or a thread cannot be opened or started, or `taken` fails; and when a thread or task
/// that the service needs ends, with its name.
pub fn run(
    options: &Options,
    taken: impl FnOnce() -> anyhow::Result<()>,
    cancel: &CancellationToken,
) -> anyhow::Result<()> {
    run_with(options, Arc::new(clock::now), taken, cancel)
}

/// Like [`run`], with a clock for ingest other than the system's, for tests.
///
/// # Errors
/// As [`run`].
pub fn run_with(
    options: &Options,
    clock: Clock,
    taken: impl FnOnce() -> anyhow::Result<()>,
    cancel: &CancellationToken,
) -> anyhow::Result<()> {
    forbid_core_dumps();
    let writer = Writer::open(&options.data)?;
    taken()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("http")
        .enable_all()
        .build()
        .context("cannot start the threads of the server")?;
    // From here on, a signal that arrives while the parts are starting also stops them in order.
    let signals = StopSignals::new(&runtime);
    let supervisor = Supervisor::default();
    // The parts stop in order, not when the caller cancels its token.
    let ends = CancellationToken::new();
    let service = RunningService::start(options, writer, clock, &runtime, &ends, supervisor.clone())?;
    tracing::info!(url = %service.endpoint.url, data = %options.data.display(), "the server is listening");
    runtime.block_on(async {
        tokio::select! {
            () = cancel.cancelled() => {}
            () = signals.received() => tracing::info!("stopping on a signal"),
            () = supervisor.failed() => tracing::error!("stopping: a part of the service has failed"),
        }
    });
    service.stop(&runtime, &ends);
    supervisor.failure().map_or(Ok(()), |ended| Err(ended.into()))
}

/// Turns off core dumps: the server's memory contains the tokens, and a crash must not write them to a file.
fn forbid_core_dumps() {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    if let Err(cause) = setrlimit(Resource::Core, none) {
        tracing::warn!(%cause, "cannot turn off core dumps; a crash could write the server's tokens to a file");
    }
}

/// The signals that stop the server. They are caught as soon as this exists.
struct StopSignals([io::Result<Signal>; 3]);

impl StopSignals {
    fn new(runtime: &tokio::runtime::Runtime) -> Self {
        let _within = runtime.enter();
        Self([SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal))
    }

    /// Waits for one of the signals.
    async fn received(self) {
        let [interrupt, terminate, hangup] = self.0;
        tokio::select! {
            () = received(interrupt) => {}
            () = received(terminate) => {}
            () = received(hangup) => {}
        }
    }
}

/// Waits for one signal; never returns if the signal cannot be caught.
async fn received(signal: io::Result<Signal>) {
    match signal {
        Ok(mut signal) => drop(signal.recv().await),
        Err(_) => std::future::pending().await,
    }
}

/// Forwards commits of ingest to the parts that observe them.
struct CommitObservers {
    runs: Runs,
    approvals: ApprovalBroker,
    findings: Findings,
    notices: Notices,
    search: Search,
    otlp: OtlpExport,
}

impl ingest::CommitObserver for CommitObservers {
    fn will_host(&self, run: RunId, session: SessionId) {
        self.runs.will_host(run, session);
    }

    fn hosts(&self, hosted: ingest::HostedSession) {
        self.runs.hosts(hosted);
    }

    fn approval(&self, approval: projections::Approval) {
        self.approvals.changed(approval);
    }

    fn removed(&self, sessions: &[SessionId]) {
        self.approvals.forget(sessions);
    }

    fn finding(&self, finding: events::Finding) {
        self.notices.finding(finding);
    }

    fn standing(&self, sessions: &[SessionId]) {
        self.findings.examine(sessions);
    }

    fn recorded(&self, position: u64) {
        self.search.committed(position);
        self.otlp.committed(position);
    }

    fn committed(&self, _position: u64) {
        self.findings.committed();
    }
}

/// A running service.
struct RunningService {
    endpoint: Endpoint,
    data: PathBuf,
    serving: server::Serving,
    files: tailer::collect::Running,
    inputs: IngestHandle,
    gauges: Arc<Gauges>,
    checkpoints: Sender<()>,
    spool: Sender<()>,
    settings: Sender<()>,
    daemons: Daemons,
    approvals: ApprovalBroker,
    findings: Findings,
    notices: Notices,
    search: Search,
    otlp: OtlpExport,
    retention: Retention,
    supervisor: Supervisor,
}

impl RunningService {
    fn start(
        options: &Options,
        writer: Writer,
        clock: Clock,
        runtime: &tokio::runtime::Runtime,
        cancel: &CancellationToken,
        supervisor: Supervisor,
    ) -> anyhow::Result<Self> {
        let data = &options.data;
        let redacted_only = options.config.store.redacted_only;
        redacted_only::record_setting(data, redacted_only).context("cannot store the setting `store.redacted_only`")?;
        let tokens = tokens::tokens(data)?;
        roots::make_session_directory(data);
        let epoch = format!("{:x}-{:x}", clock::now().as_millisecond(), std::process::id());
        let live_view = LiveView::new(&epoch);
        let gauges = Arc::new(Gauges::default());
        let (inputs, incoming) = ingest::channel(ingest::INPUTS);

        let collect = collect_config(&options.config);
        let homes = roots::homes(&options.config, data)?;
        let directories = transcripts::providers::roots(&homes);
        let names = directories.iter().map(|root| agents::directory::source_name(root.provider, &root.dir)).collect();

        let reader = writer.reader();
        // Read while ingest loads the sessions.
        let cursors = std::thread::Builder::new().name("cursors".to_owned()).spawn({
            let reader = reader.clone();
            move || reader.cursor_summaries()
        })?;
        let database = writer.path().to_owned();
        let files_of_store = StoreFiles::of(&database);
        let runs = Runs::new(inputs.clone(), live_view.clone());
        runs.expect(host_protocol::runs::list(data).into_iter().map(|described| described.run));
        let codex_homes = homes.of(protocols::codex_daemon::PROVIDER).to_vec();
        let program = std::env::current_exe().context("cannot determine the path of the capture program")?;
        let hooks = health::HookPaths::new(data, &homes, program, paths::agent_search());
        let linker = Linker::start(homes, inputs.clone(), &supervisor)?;
        let judge = approvals::OnPolicy { file: paths::policy_file()?, facts: paths::policy_facts(data) };
        let parts = approvals::BrokerParts {
            inputs: inputs.clone(),
            reader: reader.clone(),
            runs: runs.clone(),
            runtime: runtime.handle().clone(),
            judge: Arc::new(judge),
            boundaries: options.config.approvals.boundaries,
        };
        let approvals = ApprovalBroker::start(parts, &supervisor);
        let (findings, monitor) = Findings::new();
        let (notices, told) = Notices::new();
        let (search, unfed) = Search::open(data, reader.clone(), &options.config.search);
        let (otlp, mut exporter) = otlp::exporter(data, &reader, &live_view, &options.config.otlp)?;
        let (checkpoint, due) = bounded::<()>(1);
        let ingest = Ingest::new(ingest::IngestParts {
            writer,
            live_view: live_view.clone(),
            gauges: Arc::clone(&gauges),
            processes: Box::new(linker),
            clock,
            wall: Arc::new(clock::wall),
            uptime: Box::new(clocks::uptime),
            onlooker: Box::new(CommitObservers {
                runs: runs.clone(),
                approvals: approvals.clone(),
                findings: findings.clone(),
                notices: notices.clone(),
                search: search.clone(),
                otlp: otlp.clone(),
            }),
            rules: options.config.rules(),
            ignore: options.config.ignore.clone(),
            redacted_only,
            // One pending request is enough.
            checkpoint: Box::new(move || {
                checkpoint.try_send(()).ok();
            }),
        })?;
        // Ingest is not restarted: its uncommitted inputs would be lost, and its state may be half changed. The next
        // process continues from the stored state.
        let mut ingest = IngestLoop::new(ingest, incoming);
        supervisor.spawn(INGEST, move || ingest.run())?;
        unfed.start(&supervisor)?;
        if otlp.is_on() {
            // It continues where it stopped: spans it has read and not sent are still in memory.
            supervisor.spawn_restarting(otlp_export::THREAD, move || exporter.run())?;
        }
        let (retention, mut eraser) = Retention::new(RetentionParts {
            data: data.clone(),
            reader: reader.clone(),
            inputs: inputs.clone(),
            index: search.index(),
            clocks: Arc::new(clocks::reading),
            policy: prune_policy(&options.config.retention),
        });
        // Unfinished removals are recorded in the store.
        supervisor.spawn_restarting(retention::THREAD, move || eraser.run())?;

        let socket = data.join("capture.sock");
        let mut config = server_config(options, tokens, socket.clone());
        let (devices, problem) = Devices::open(&data.join(paths::DEVICES), Arc::new(clock::now));
        if let Some(problem) = problem {
            tracing::error!(%problem, "no device is signed in; pair the devices again with `capture web pair`");
        }
        let push =
            PushedBrowsers { subscriptions: Subscriptions::new(&data.join(paths::PUSH)), devices: devices.clone() };
        config.devices = Some(devices);
        config.clock = Arc::new(clock::now);
        let telemeter = TelemetryReceiver::new(inputs.clone(), Arc::clone(&gauges));
        let daemons = codex_daemons::follow(codex_homes, inputs.clone(), &supervisor);
        let daemons = daemons.context("cannot start the thread that watches Codex's daemons")?;
        let cursors =
            cursors.join().map_err(|_| anyhow!("the thread that reads the positions of files has failed"))??;
        let known = KnownFiles { summaries: cursors, committed: Arc::new(StoredCursors(reader.clone())) };
        let collector = Collector::new(collect, directories, known);
        let health = health::health(health::HealthParts {
            control: collector.control(),
            directories: names,
            gauges: Arc::clone(&gauges),
            telemeter: telemeter.clone(),
            runs: runs.clone(),
            hooks,
            daemons: daemons.health(),
            notices: notices.clone(),
            search: search.clone(),
            otlp: otlp.clone(),
            policy: paths::policy_file()?,
            retention: retention.clone(),
            supervisor: supervisor.clone(),
            behind: health::BehindSince::default(),
        });
        let parts = prompts::QueueParts { inputs: inputs.clone(), reader: reader.clone(), runs: runs.clone() };
        let prompts = Prompts::start(parts, runtime.handle(), cancel.clone(), &supervisor);
        let actions = Actions {
            rules: options.config.actions.clone(),
            runs: runs.clone(),
            prompts: prompts.clone(),
            inputs: inputs.clone(),
            runtime: runtime.handle().clone(),
            automatic: AutomaticPrompts::default(),
        };
        let parts = findings::MonitorParts {
            inputs: inputs.clone(),
            reader: reader.clone(),
            rules: options.config.monitor.clone(),
            actions,
        };
        monitor.start(parts, &supervisor)?;
        let (buttons, page) = (AnswerTokens::default(), Arc::new(OnceLock::new()));
        let parts = notices::NotifierParts {
            buttons: buttons.clone(),
            push: push.clone(),
            page: Arc::clone(&page),
            inputs: inputs.clone(),
            reader: reader.clone(),
            runs: runs.clone(),
            runtime: runtime.handle().clone(),
            settings: options.config.notify.clone(),
        };
        told.start(parts, &supervisor).context("cannot start the notifier")?;
        let deliveries = Deliveries::new(data, inputs.clone());
        config.control = Arc::new(Daemon::new(control::DaemonParts {
            inputs: inputs.clone(),
            recordings: Recordings::new(runs.clone(), data),
            runs,
            deliveries: deliveries.clone(),
            gauges: Arc::clone(&gauges),
            telemeter,
            approvals: approvals.clone(),
            buttons: buttons.clone(),
            push,
            prompts,
            findings: findings.clone(),
            notices: notices.clone(),
            search: search.clone(),
            retention: retention.clone(),
            starter: SessionStarter { program: std::env::current_exe()?, data: data.to_owned() },
            cancel: cancel.clone(),
        }));
        config.mcp = Some(mcp_endpoint::answer(data, &options.config.mcp, cancel));
        let mut serving = runtime.block_on(server::serve(config, live_view, reader, health, cancel.clone()))?;
        page.set(serving.url()).ok();
        for (name, task) in serving.root_tasks() {
            supervisor.watch_task(name, runtime.handle(), task);
        }

        let sink = {
            let inputs = inputs.clone();
            let keeps_large_texts = options.config.retention.keep_large_texts;
            let preparation = Preparation { is_redacted: redacted_only, keeps_large_texts };
            let sentinel = supervisor.sentinel();
            move |batch: Batch| {
                let _watched = &sentinel;
                inputs.send(IngestInput::Batch(Box::new(PreparedBatch::with(preparation, batch)))).map_err(|_| Stopped)
            }
        };
        let files = collector.start(sink).context("cannot start the threads that read files")?;
        let spool = deliveries.watch(&supervisor)?;
        let followed =
            settings::LiveParts { findings: findings.clone(), notices: notices.clone(), approvals: approvals.clone() };
        let settings = settings::follow(paths::config_file()?, options.config.clone(), followed, &supervisor)?;
        let checkpoints = checkpoint_thread(database, due, files_of_store, Arc::clone(&gauges), &supervisor)?;
        let endpoint = Endpoint {
            url: serving.url(),
            pid: std::process::id(),
            start_ticks: processes::start_ticks(std::process::id()).unwrap_or_default(),
            epoch,
            socket,
            token_file: endpoint::token_file(data),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            background: options.background,
        };
        endpoint::publish(&endpoint, data)?;
        supervisor.started();
        Ok(Self {
            endpoint,
            data: data.clone(),
            serving,
            files,
            inputs,
            gauges,
            checkpoints,
            spool,
            settings,
            daemons,
            approvals,
            findings,
            notices,
            search,
            otlp,
            retention,
            supervisor,
        })
    }

    /// Stops the sources first, then their pending work, then the server.
    fn stop(self, runtime: &tokio::runtime::Runtime, cancel: &CancellationToken) {
        let supervisor = self.supervisor;
        supervisor.stop();
        endpoint::withdraw(&self.endpoint, &self.data);
        self.gauges.ending.store(true, Ordering::Relaxed);
        self.files.stop();
        self.daemons.stop();
        drop(self.spool);
        supervisor.join(deliveries::THREAD);
        drop(self.settings);
        supervisor.join(settings::THREAD);
        self.approvals.stop();
        runtime.block_on(self.approvals.stopped());
        self.findings.stop();
        supervisor.join(findings::THREAD);
        self.notices.stop();
        supervisor.join(notices::THREAD);
        self.retention.stop();
        supervisor.join(retention::THREAD);
        self.inputs.send(IngestInput::Stop).ok();
        supervisor.join(INGEST);
        self.search.stop();
        supervisor.join(search::THREAD);
        self.otlp.stop();
        supervisor.join(otlp_export::THREAD);
        drop(self.checkpoints);
        supervisor.join(CHECKPOINT);
        cancel.cancel();
        runtime.block_on(self.serving.stopped());
    }
}

/// The server's addresses and access rules.
fn server_config(options: &Options, tokens: server::Tokens, socket: PathBuf) -> server::Config {
    let mut config = server::Config::new(tokens);
    config.listen = options.listen;
    config.exposure = if options.exposed { server::Exposure::Network } else { server::Exposure::Loopback };
    config.allowed_hosts.clone_from(&options.allowed_hosts);
    config.socket = Some(socket);
    config.rules = options.config.rules();
    config.redact = Some(Arc::new(redact::value));
    config.prices_file = paths::prices_file().ok();
    config.host_protocol = host_protocol::frame::PROTOCOL;
    // An agent's own shell must not approve its requests or change what is captured.
    config.control_peer = Some(Arc::new(|peer| {
        let Some(pid) = peer.pid.and_then(|pid| u32::try_from(pid).ok()) else {
            return Some("the process cannot be identified".into());
        };
        agent_descent(pid).map(|descent| descent.to_string())
    }));
    config.control_tcp = Some(Arc::new(|from, to| {
        let at_the_other_end = if from.ip().is_loopback() { holders_of_tcp(from, to) } else { return None };
        if at_the_other_end.is_empty() {
            return Some(server::TcpRefusal::Unidentified);
        }
        let descent = at_the_other_end.into_iter().find_map(agent_descent);
        descent.map(|descent| server::TcpRefusal::Agent(descent.to_string()))
    }));
    config.tcp_user = Some(Arc::new(user_of_tcp));
    config.limits.clients = within_open_files(config.limits.clients, open_files::raise_limit());
    config
}

/// Lowers the limits of clients to what the limit of open files allows, and logs a warning.
fn within_open_files(wanted: server::ClientLimits, files: usize) -> server::ClientLimits {
    let limits = wanted.within(files);
    if limits != wanted {
        tracing::warn!(
            requests = limits.requests,
            streams = limits.streams,
            "the limit of open files, {files}, allows fewer connections than the usual {} for requests and {} for \
            streams; those need a hard limit of {} (`ulimit -Hn`, `LimitNOFILE=`)",
            wanted.requests,
            wanted.streams,
            wanted.files()
        );
    }
    limits
}

fn collect_config(config: &Config) -> tailer::collect::CollectorConfig {
    let mut collect = tailer::collect::CollectorConfig::new(clocks::both);
    collect.limits.line_bytes = u64::from(config.read.max_line_mib) << 20;
    collect.hot_poll = Duration::from_millis(u64::from(config.read.hot_poll_ms));
    if !config.read.watch {
        collect.watches = 0;
    }
    collect
}

/// Moves the write-ahead log into the database on a separate thread, so that no commit waits.
///
/// It also checks that the files of the store still exist: data written to removed files is lost.
fn checkpoint_thread(
    database: PathBuf,
    due: Receiver<()>,
    files: StoreFiles,
    gauges: Arc<Gauges>,
    supervisor: &Supervisor,
) -> anyhow::Result<Sender<()>> {
    let (stop, stopped) = bounded::<()>(1);
    let (own, mut lost_for) = (supervisor.clone(), Duration::ZERO);
    // It keeps no state, so restarting it loses nothing.
    supervisor.spawn_restarting(CHECKPOINT, move || {
        let log = database.with_extension("db-wal");
        let mut before = None;
        loop {
            select! {
                recv(stopped) -> _ => break,
                recv(due) -> asked => {
                    if asked.is_err() {
                        // Ingest has ended, and this thread will be stopped next.
                        stopped.recv().ok();
                        break;
                    }
                    if files.change().is_none()
                        && let Err(error) = gauges.checkpoints.run(|| Writer::checkpoint(&database, false))
                    {
                        tracing::debug!(%error, "checkpoint postponed");
                    }
                    continue;
                }
                default(CHECKPOINT_EVERY) => {}
            }
            if let Some(change) = files.change() {
                lost_for += CHECKPOINT_EVERY;
                if lost_for > LOST_MOST {
                    own.give_up(CHECKPOINT, change);
                    return;
                }
                gauges.store.lost(change);
                continue;
            }
            let now = std::fs::metadata(&log).ok().map(|file| (file.len(), file.modified().ok()));
            let is_written = std::mem::replace(&mut before, now) != now;
            let size = now.map_or(0, |(size, _)| size);
            let done = if is_written {
                if size < ingest::LARGE_LOG {
                    continue;
                }
                // The size of the file does not shrink when the log is restarted.
                Writer::log_use_of(&database).and_then(|log| {
                    let is_much = log.left() >= ingest::LARGE_LOG;
                    if is_much { gauges.checkpoints.run(|| Writer::checkpoint(&database, false)) } else { Ok(()) }
                })
            } else if size < WAL_REST_BYTES {
                continue;
            } else {
                Writer::truncate_log(&database)
            };
            if let Err(error) = done {
                tracing::debug!(%error, "checkpoint postponed");
            }
        }
        if files.change().is_none()
            && let Err(error) = Writer::checkpoint(&database, true)
        {
            tracing::debug!(%error, "cannot truncate the write-ahead log");
        }
    })?;
    Ok(stop)
}

/// Converts the settings to the policy of the part that removes sessions.
fn prune_policy(settings: &RetentionSettings) -> PrunePolicy {
    let age = |days: u32| (days > 0).then_some(i64::from(days) * 86_400_000);
    let size = (settings.larger_than_mib > 0).then_some(u64::from(settings.larger_than_mib) << 20);
    let project = |project: &ProjectRetention| PruneRule {
        older_than_ms: age(project.older_than_days),
        larger_than_bytes: None,
        project: Some(project.directory.clone()),
    };
    PrunePolicy {
        all: PruneRule { older_than_ms: age(settings.older_than_days), larger_than_bytes: size, project: None },
        projects: settings.projects.iter().map(project).collect(),
    }
}
