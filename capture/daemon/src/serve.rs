//! Putting the parts together, and taking them apart in order: sources, ingest, server.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    thread::JoinHandle,
    time::Duration,
};

use anyhow::Context;
use crossbeam_channel::{Sender, bounded};
use events::{RunId, SessionId};
use processes::{descends_from_agent, holders_of_tcp, user_of_tcp};
use protocols::codex_daemon::Daemons;
use rustix::process::{Resource, Rlimit, setrlimit};
use server::{Board, Command, Refusal};
use store::Writer;
use tailer::collect::{Batch, Collector, Stopped};
use tokio_util::sync::CancellationToken;

use crate::{
    actions::Actions,
    approvals::{self, Approvals},
    clock,
    config::Config,
    daemons,
    deliveries::Deliveries,
    endpoint::{self, Endpoint},
    findings::{self, Findings},
    health,
    ingest::{self, Gauges, Ingest, IngestHandle, Input, Prepared},
    linker::Linker,
    notices::{self, Notices},
    open_files, places,
    policy::OnDisk,
    prompts::{self, Prompts},
    redacted_only, redaction, roots,
    runs::Runs,
    telemetry::Telemeter,
};

/// What `capture serve` was told.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Whether an address other machines can reach was asked for in so many words.
    pub exposed: bool,
    /// The data directory.
    pub data: PathBuf,
    /// The configuration.
    pub config: Config,
}

/// Commands that may wait for the program.
const COMMANDS: usize = 64;
/// The write-ahead log is moved into the database this often while there is something in it.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(2);

/// Serves until the token is cancelled. `taken` is called once the data directory is ours, before
/// anything else is read.
///
/// # Errors
/// When the store, the sockets or a thread cannot be had, or `taken` fails.
pub fn run(
    options: &Options,
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
        .context("cannot start the runtime")?;
    let service = Service::start(options, writer, &runtime, cancel)?;
    tracing::info!(url = %service.endpoint.url, data = %options.data.display(), "capture is serving");
    runtime.block_on(async {
        tokio::select! {
            () = cancel.cancelled() => {}
            () = signalled() => tracing::info!("asked to end"),
        }
    });
    service.stop(&runtime, cancel);
    Ok(())
}

/// The memory of a server holds the tokens: a crash must not write them to a file.
fn forbid_core_dumps() {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    if let Err(cause) = setrlimit(Resource::Core, none) {
        tracing::warn!(%cause, "cannot turn off core dumps; a crash of the server may write its tokens to a file");
    }
}

/// Waits for a signal that asks to end.
async fn signalled() {
    use tokio::signal::unix::{SignalKind, signal};
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let mut streams: Vec<_> = kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect();
    let waits = streams.iter_mut().map(|s| Box::pin(s.recv()));
    let mut waits: Vec<_> = waits.collect();
    std::future::poll_fn(|context| {
        let ready = waits.iter_mut().any(|wait| std::future::Future::poll(wait.as_mut(), context).is_ready());
        if ready { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

/// Who is told what ingest commits.
struct Onlookers {
    runs: Runs,
    approvals: Approvals,
    findings: Findings,
    notices: Notices,
}

impl ingest::Onlooker for Onlookers {
    fn hosts(&self, run: RunId, session: SessionId) {
        self.runs.hosts(run, session);
    }

    fn approval(&self, approval: projections::Approval) {
        self.approvals.changed(approval);
    }

    fn finding(&self, finding: events::Finding) {
        self.notices.finding(finding);
    }

    fn committed(&self, _position: u64) {
        self.findings.committed();
    }
}

/// A service at work.
struct Service {
    endpoint: Endpoint,
    data: PathBuf,
    serving: server::Serving,
    files: tailer::collect::Running,
    inputs: IngestHandle,
    ingest: JoinHandle<()>,
    gauges: Arc<Gauges>,
    checkpoints: Option<(Sender<()>, JoinHandle<()>)>,
    spool: Option<(Sender<()>, JoinHandle<()>)>,
    daemons: Daemons,
    approvals: (Approvals, JoinHandle<()>),
    findings: (Findings, JoinHandle<()>),
    notices: (Notices, JoinHandle<()>),
}

impl Service {
    fn start(
        options: &Options,
        writer: Writer,
        runtime: &tokio::runtime::Runtime,
        cancel: &CancellationToken,
    ) -> anyhow::Result<Self> {
        let data = &options.data;
        let redacted_only = options.config.store.redacted_only;
        redacted_only::keep(data, redacted_only).context("cannot note what may be written")?;
        let tokens = endpoint::tokens(data)?;
        let epoch = format!("{:x}-{:x}", clock::now().as_millisecond(), std::process::id());
        let board = Board::new(&epoch);
        let gauges = Arc::new(Gauges::default());
        let (inputs, incoming) = ingest::channel(ingest::INPUTS);

        let collect = collect_config(&options.config);
        let homes = roots::homes(&options.config, data)?;
        let collector = Collector::new(collect, transcripts::providers::roots(&homes), writer.cursors()?);
        let control = collector.control();

        let reader = writer.reader();
        let database = writer.path().to_owned();
        let runs = Runs::new(inputs.clone());
        let codex_homes = homes.of(protocols::codex_daemon::PROVIDER).to_vec();
        let program = std::env::current_exe().context("cannot find the program itself")?;
        let hooks = health::Hooks::new(data, &homes, program, places::agent_search());
        let linker = Linker::start(homes, inputs.clone()).context("cannot start a thread")?;
        let (approvals, desk) = Approvals::new();
        let (findings, monitor) = Findings::new();
        let (notices, told) = Notices::new();
        let ingest = Ingest::new(ingest::Parts {
            writer,
            board: board.clone(),
            gauges: Arc::clone(&gauges),
            processes: Box::new(linker),
            clock: Arc::new(clock::now),
            onlooker: Box::new(Onlookers {
                runs: runs.clone(),
                approvals: approvals.clone(),
                findings: findings.clone(),
                notices: notices.clone(),
            }),
            rules: options.config.rules(),
            ignore: options.config.ignore.clone(),
            redacted_only,
        })?;
        let ingest = std::thread::Builder::new()
            .name("ingest".into())
            .spawn(move || ingest.run(incoming))
            .context("cannot start a thread")?;

        let (commands, asked) = tokio::sync::mpsc::channel(COMMANDS);
        let mut config = server::Config::new(tokens);
        config.listen = options.listen;
        config.exposure = if options.exposed { server::Exposure::Network } else { server::Exposure::Loopback };
        let socket = data.join("capture.sock");
        config.socket = Some(socket.clone());
        config.commands = Some(commands);
        config.rules = options.config.rules();
        config.redact = Some(Arc::new(redaction::value));
        config.host_protocol = terminal::host::frame::PROTOCOL;
        // An agent's own shell can neither approve itself nor change what is captured.
        config.control_peer = Some(Arc::new(|peer| {
            peer.pid.and_then(|pid| u32::try_from(pid).ok()).is_some_and(|pid| !descends_from_agent(pid))
        }));
        config.control_tcp = Some(Arc::new(|from, to| {
            let at_the_other_end = if from.ip().is_loopback() { holders_of_tcp(from, to) } else { return true };
            !at_the_other_end.is_empty() && !at_the_other_end.into_iter().any(descends_from_agent)
        }));
        config.tcp_user = Some(Arc::new(user_of_tcp));
        config.limits.clients = config.limits.clients.within(open_files::raise_limit());
        let desk = desk.start(
            &approvals,
            approvals::Parts {
                inputs: inputs.clone(),
                reader: reader.clone(),
                runs: runs.clone(),
                runtime: runtime.handle().clone(),
                judge: Arc::new(approvals::OnPolicy { file: places::policy_file()?, facts: OnDisk::recorded(data) }),
            },
        );
        let desk = desk.context("cannot start a thread")?;
        let telemeter = Telemeter::new(inputs.clone(), Arc::clone(&gauges));
        let daemons = daemons::follow(codex_homes, inputs.clone()).context("cannot start a thread")?;
        let health = health::health(health::Observed {
            control,
            gauges: Arc::clone(&gauges),
            telemeter: telemeter.clone(),
            runs: runs.clone(),
            hooks,
            daemons: daemons.health(),
            notices: notices.clone(),
            policy: places::policy_file()?,
        });
        let parts = prompts::Parts { inputs: inputs.clone(), reader: reader.clone(), runs: runs.clone() };
        let prompts = Prompts::start(parts, runtime.handle(), cancel.clone());
        let actions = Actions {
            rules: options.config.actions.clone(),
            runs: runs.clone(),
            prompts: prompts.clone(),
            inputs: inputs.clone(),
            runtime: runtime.handle().clone(),
        };
        let monitor = monitor.start(findings::Parts {
            inputs: inputs.clone(),
            reader: reader.clone(),
            rules: options.config.monitor.clone(),
            actions,
        });
        let monitor = monitor.context("cannot start a thread")?;
        let told = told.start(notices::Parts {
            inputs: inputs.clone(),
            reader: reader.clone(),
            runs: runs.clone(),
            runtime: runtime.handle().clone(),
            settings: options.config.notify.clone(),
        });
        let told = told.context("cannot start the notifier")?;
        let serving = runtime.block_on(server::serve(config, board, reader, health, cancel.clone()))?;
        let deliveries = Deliveries::new(data, inputs.clone());
        let hands = Hands {
            inputs: inputs.clone(),
            runs,
            deliveries: deliveries.clone(),
            telemeter,
            approvals: approvals.clone(),
            prompts,
            findings: findings.clone(),
            notices: notices.clone(),
        };
        runtime.spawn(carry_out(asked, hands, cancel.clone()));

        let sink = {
            let inputs = inputs.clone();
            let prepare = if redacted_only { Prepared::redacted } else { Prepared::new };
            move |batch: Batch| inputs.send(Input::Batch(Box::new(prepare(batch)))).map_err(|_| Stopped)
        };
        let files = collector.start(sink).context("cannot start a thread")?;
        let spool = Some(deliveries.watch().context("cannot start a thread")?);
        let checkpoints = Some(checkpoint_thread(database)?);
        let endpoint = Endpoint {
            url: serving.url(),
            pid: std::process::id(),
            start_ticks: processes::start_ticks(std::process::id()).unwrap_or_default(),
            epoch,
            socket,
            token_file: endpoint::token_file(data),
        };
        endpoint.store(data)?;
        Ok(Self {
            endpoint,
            data: data.clone(),
            serving,
            files,
            inputs,
            ingest,
            gauges,
            checkpoints,
            spool,
            daemons,
            approvals: (approvals, desk),
            findings: (findings, monitor),
            notices: (notices, told),
        })
    }

    /// Sources first, then what they still have under way, then the server.
    fn stop(mut self, runtime: &tokio::runtime::Runtime, cancel: &CancellationToken) {
        self.endpoint.remove(&self.data);
        self.gauges.ending.store(true, Ordering::Relaxed);
        self.files.stop();
        self.daemons.stop();
        if let Some((stop, thread)) = self.spool.take() {
            drop(stop);
            thread.join().ok();
        }
        let (approvals, desk) = self.approvals;
        approvals.stop();
        desk.join().ok();
        let (findings, monitor) = self.findings;
        findings.stop();
        monitor.join().ok();
        let (notices, told) = self.notices;
        notices.stop();
        told.join().ok();
        self.inputs.send(Input::Stop).ok();
        if self.ingest.join().is_err() {
            tracing::error!("the ingest thread panicked; what was not committed is read again at the next start");
        }
        if let Some((stop, thread)) = self.checkpoints.take() {
            drop(stop);
            thread.join().ok();
        }
        cancel.cancel();
        runtime.block_on(self.serving.stopped());
    }
}

fn collect_config(config: &Config) -> tailer::collect::Config {
    let mut collect = tailer::collect::Config::new(clock::both);
    collect.limits.line_bytes = u64::from(config.read.max_line_mib) << 20;
    collect.hot_poll = Duration::from_millis(u64::from(config.read.hot_poll_ms));
    if !config.read.watch {
        collect.watches = 0;
    }
    collect
}

/// Who carries out the server's commands.
struct Hands {
    inputs: IngestHandle,
    runs: Runs,
    deliveries: Deliveries,
    telemeter: Telemeter,
    approvals: Approvals,
    prompts: Prompts,
    findings: Findings,
    notices: Notices,
}

/// Hands the server's commands to ingest.
async fn carry_out(mut asked: tokio::sync::mpsc::Receiver<Command>, hands: Hands, cancel: CancellationToken) {
    let Hands { inputs, runs, deliveries, telemeter, approvals, prompts, findings, notices } = hands;
    // The conversations with hosts and the questions to them end with this task.
    let mut tasks = tokio::task::JoinSet::new();
    loop {
        let command = tokio::select! {
            command = asked.recv() => match command {
                Some(command) => command,
                None => break,
            },
            Some(_) = tasks.join_next() => continue,
        };
        match command {
            Command::Host { connection, peer } => {
                tasks.spawn(runs.clone().attend(connection, peer, cancel.clone()));
            }
            Command::Delivery { id, reply } => {
                let deliveries = deliveries.clone();
                // It reads a file, and a full channel blocks.
                tasks.spawn(async move {
                    let taken = tokio::task::spawn_blocking(move || deliveries.take(id)).await;
                    let gone = || Refusal::Failed("ingest takes nothing more".into());
                    reply.send(if taken.unwrap_or(false) { Ok(()) } else { Err(gone()) }).ok();
                });
            }
            Command::Hold { delivery, people, digest, whole, reply } => {
                approvals.hold(approvals::Held { delivery, people, digest, reply }, whole);
            }
            Command::Approvals { ask, reply } => approvals.ask(ask, reply),
            Command::Findings { ask, reply } => findings.ask(ask, reply),
            Command::TestChannel { channel, reply } => notices.test(channel, reply),
            Command::Prompts { ask, reply } => prompts.ask(ask, reply),
            Command::Runs { reply } => {
                reply.send(runs.list()).ok();
            }
            Command::Run { target, ask, reply } => {
                let runs = runs.clone();
                tasks.spawn(async move {
                    // The client may have gone away meanwhile.
                    reply.send(runs.ask(target, ask).await).ok();
                });
            }
            Command::Telemetry { message, reply } => {
                let telemeter = telemeter.clone();
                // As many at once as the server lets in.
                tasks.spawn_blocking(move || telemeter.take(&message, reply));
            }
            Command::SetCapture { session, enabled, reply } => {
                let answer = found(session, reply);
                // A reply that is dropped tells the client that ingest has stopped.
                inputs.send_async(Input::SetCapture(session, enabled, answer)).await.ok();
            }
            Command::Label { session, labels, reply } => {
                let label = |(key, value): (String, Option<String>)| match value {
                    Some(value) => format!("{key}={value}"),
                    None => key,
                };
                let labels = labels.into_iter().map(label).collect();
                inputs.send_async(Input::Label(session, labels, found(session, reply))).await.ok();
            }
        }
    }
}

/// Tells a client whether the session it named is there.
fn found(
    session: events::SessionId,
    reply: tokio::sync::oneshot::Sender<Result<(), Refusal>>,
) -> Box<dyn FnOnce(Result<bool, String>) + Send> {
    Box::new(move |known| {
        let result = match known {
            Ok(true) => Ok(()),
            Ok(false) => Err(Refusal::NotFound(format!("there is no session {session}"))),
            Err(error) => Err(Refusal::Failed(error)),
        };
        // The client may have gone away meanwhile.
        reply.send(result).ok();
    })
}

/// Moves the write-ahead log into the database on a thread of its own, so that no commit waits.
fn checkpoint_thread(database: PathBuf) -> anyhow::Result<(Sender<()>, JoinHandle<()>)> {
    let (stop, stopped) = bounded::<()>(1);
    let thread = std::thread::Builder::new()
        .name("checkpoint".into())
        .spawn(move || {
            let log = database.with_extension("db-wal");
            let mut last_size = 0;
            while let Err(crossbeam_channel::RecvTimeoutError::Timeout) = stopped.recv_timeout(CHECKPOINT_EVERY) {
                let size = std::fs::metadata(&log).map_or(0, |m| m.len());
                let growing = std::mem::replace(&mut last_size, size) != size;
                if growing && size < WAL_MOST_BYTES || !growing && size < WAL_REST_BYTES {
                    continue;
                }
                if let Err(error) = Writer::checkpoint(&database, false) {
                    tracing::debug!(%error, "checkpoint put off");
                }
            }
            if let Err(error) = Writer::checkpoint(&database, true) {
                tracing::debug!(%error, "the write-ahead log stays");
            }
        })
        .context("cannot start a thread")?;
    Ok((stop, thread))
}

/// A write-ahead log that still grows is left alone up to this size, so that a burst is written
/// once and not twice while it lasts, bytes.
const WAL_MOST_BYTES: u64 = 512 << 20;
/// A write-ahead log of this size may rest while nothing is written, bytes.
const WAL_REST_BYTES: u64 = 4 << 20;

/// The log file of a server started in the background.
#[must_use]
pub fn log_file(data: &Path) -> PathBuf {
    data.join("serve.log")
}
