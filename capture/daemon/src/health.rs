//! Reports the health of each source to the server. Reads state and changes nothing.

use std::{
    collections::HashMap,
    fmt::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::{Instant, UNIX_EPOCH},
};

use agents::Homes;
use api::health::{HOOKS, POLICY, RETENTION, ReadingProgress, STORE, SourceHealth};
use atomic_file::{Links, SETTINGS_MOST, read_regular};
use events::{Provider, Timestamp};
use home::clock;
use hooks::{AGENTS, Fit, HookCommand, HookStatus, InstallState, ProgramSearch, delivery::Spool};
use ingest::{
    Gauges,
    hook_health::{AgentHookHealth, LostDeliveries},
};
use live_view::metrics::encode_family;
use otlp_export::OtlpExport;
use prometheus_client::{
    collector::Collector, encoding::DescriptorEncoder, metrics::counter::ConstCounter, registry::Registry,
};
use protocols::codex_daemon::HealthHandle;
use retention::Retention;
use server::Health;
use tailer::collect::CollectorHandle;

use crate::{
    codex_daemons, notices::Notices, otlp, runs::Runs, search::Search, supervisor::Supervisor,
    telemetry::TelemetryReceiver,
};

/// How long a lost delivery is reported as a problem, ms.
const LOST_MS: i64 = 60 * 60 * 1000;
/// Age from which a delivery in the spool counts as not being processed, ms.
const WAITS_MS: i64 = 30_000;

/// The parts whose health is reported.
pub struct HealthParts {
    /// The collector of files.
    pub control: CollectorHandle,
    /// Names of the directories that the collector reads, in its order.
    pub directories: Vec<&'static str>,
    /// Ingest's metrics.
    pub gauges: Arc<Gauges>,
    /// Telemetry.
    pub telemeter: TelemetryReceiver,
    /// The runs.
    pub runs: Runs,
    /// The hooks.
    pub hooks: HookPaths,
    /// The daemons of Codex.
    pub daemons: HealthHandle,
    /// Notifications.
    pub notices: Notices,
    /// Full-text search.
    pub search: Search,
    /// The export to the OpenTelemetry collector.
    pub otlp: OtlpExport,
    /// Path of the user's policy.
    pub policy: PathBuf,
    /// The removal of old sessions.
    pub retention: Retention,
    /// Knows whether a part of the service has failed.
    pub supervisor: Supervisor,
    /// Since when files are behind.
    pub behind: BehindSince,
}

/// Since when each place has unread data.
#[derive(Debug, Default)]
pub struct BehindSince(Mutex<HashMap<String, Instant>>);

impl BehindSince {
    /// How long a place has been behind, ms; `unread` is its unread data in bytes.
    fn lag_ms(&self, place: &str, unread: u64, now: Instant) -> u64 {
        let mut since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if unread == 0 {
            since.remove(place);
            return 0;
        }
        let begun = *since.entry(place.to_owned()).or_insert(now);
        u64::try_from(now.saturating_duration_since(begun).as_millis()).unwrap_or(u64::MAX)
    }
}

/// Where hooks are installed, and where they deliver.
pub struct HookPaths {
    spool: Spool,
    /// The agents and their homes.
    agents: Vec<(Provider, PathBuf)>,
    command: HookCommand,
    search: ProgramSearch,
}

impl HookPaths {
    /// The hooks of these homes; `program` is the program that installed hooks would run, `search` finds the agents
    /// that run them.
    #[must_use]
    pub fn new(data: &Path, homes: &Homes, program: PathBuf, search: ProgramSearch) -> Self {
        let home = |provider: Provider| {
            let home = homes.of(provider).first()?;
            Some((provider, std::path::absolute(home).ok()?))
        };
        let agents = AGENTS.iter().copied().filter_map(home).collect();
        Self {
            spool: Spool::of(data),
            agents,
            command: HookCommand { program, data_dir: Some(data.to_owned()), approver: None },
            search,
        }
    }

    /// A row for the spool, and one for each agent that has a home here or delivered anything.
    fn rows(&self, gauges: &Gauges, now: Timestamp) -> Vec<SourceHealth> {
        let mut rows = vec![self.spool_row(gauges, now)];
        for (provider, home) in &self.agents {
            let hearing = gauges.heard.of(*provider);
            if home.is_dir() || hearing.deliveries > 0 {
                rows.push(self.agent_row(*provider, home, &hearing, now));
            }
        }
        rows
    }

    fn spool_row(&self, gauges: &Gauges, now: Timestamp) -> SourceHealth {
        let contents = self.spool.contents();
        let lag = contents.oldest.map_or(0, |oldest| now.since_ms(oldest).max(0));
        let dir = self.spool.dir().display();
        let mut troubles = Vec::new();
        if lag > WAITS_MS {
            troubles.push(format!("{} hook deliveries in {dir} are not being processed", contents.waiting));
        }
        let lost = gauges.heard.lost_deliveries();
        if let Some(lost) = &lost
            && now.since_ms(lost.last) < LOST_MS
        {
            let LostDeliveries { count, last, why } = lost;
            troubles.push(format!("hook calls lost: {count} (the last at {last}: {why})"));
        }
        if contents.is_full {
            troubles.push(format!("{dir} is full: further deliveries are refused"));
        }
        if contents.aside > 0 {
            troubles.push(format!(
                "{} hook deliveries could not be decoded and were set aside: {dir}/*.bad (remove them once you no \
                 longer need them)",
                contents.aside
            ));
        }
        SourceHealth {
            lag_ms: Some(lag.unsigned_abs()),
            dropped: lost.map_or(0, |lost| lost.count),
            detail: Some(format!("{} deliveries waiting, {} set aside", contents.waiting, contents.aside)),
            trouble: (!troubles.is_empty()).then(|| troubles.join("; ")),
            ..SourceHealth::active(HOOKS.into())
        }
    }

    fn agent_row(&self, provider: Provider, home: &Path, hearing: &AgentHookHealth, now: Timestamp) -> SourceHealth {
        let row = SourceHealth::active(format!("{provider} {HOOKS}"));
        let row = SourceHealth { last_event_at: hearing.last_delivery, ..row };
        // No program is run: an agent could replace it and have the server run the replacement.
        let installed = || self.search.installed_by_files(provider);
        let status = match HookStatus::read(provider, home, &self.command, installed) {
            Ok(status) => status,
            Err(error) => return SourceHealth { active: false, detail: Some(error.to_string()), ..row },
        };
        let off = !status.hindrances.is_empty();
        let (there, state) = match status.state {
            InstallState::NotInstalled => (false, "not installed"),
            InstallState::Partly if off => (true, "partly installed, but turned off"),
            InstallState::Partly => (true, "partly installed"),
            // `capture hooks status` reports which command is the right one.
            InstallState::Installed | InstallState::OutOfDate if off => (true, "installed, but turned off"),
            InstallState::Installed | InstallState::OutOfDate => (true, "installed"),
        };
        let active = there && !off;
        let calls = match hearing.deliveries {
            0 => "no call since the server started".into(),
            n => format!("{n} calls"),
        };
        let detail = if there || hearing.deliveries > 0 { format!("{state}, {calls}") } else { state.to_owned() };
        let gone = status.programs.iter().find(|(_, starts)| !starts).map(|(program, _)| program);
        let silent = hearing.silent_since(modified(&status.path), now);
        // An agent that the server cannot find or query may still be found in the user's environment.
        let harm = match &status.fit {
            fit @ Fit::DropsSettings { .. } => fit.in_words(),
            Fit::Accepted | Fit::Skips { .. } | Fit::Unchecked { .. } => None,
        };
        let trouble = match (gone, silent) {
            _ if harm.is_some() => harm,
            _ if !active => None,
            (Some(program), _) => Some(format!("{} does not exist or cannot be started", program.display())),
            (None, Some(since)) => Some(format!(
                "installed, but no hook was called although turns have been running since {since}; restart agents \
                 that were started before the hooks were installed, and see `capture hooks status`"
            )),
            (None, None) => None,
        };
        SourceHealth { active, detail: Some(detail), trouble, ..row }
    }
}

/// The health reported by the server.
#[must_use]
pub fn health(observed: HealthParts) -> Health {
    let mut metrics = Registry::default();
    observed.gauges.counters.register(&mut metrics);
    metrics.register_collector(Box::new(HookDeliveries(Arc::clone(&observed.gauges))));
    observed.notices.register(&mut metrics);
    observed.telemeter.register(&mut metrics);
    observed.search.register(&mut metrics);
    otlp::register(&observed.otlp, &mut metrics);
    let observed = Arc::new(observed);
    let ready = Arc::clone(&observed);
    Health {
        trouble: Arc::new(move || trouble(&ready.supervisor, &ready.gauges)),
        sources: Arc::new(move || observed.sources(clock::now())),
        metrics,
    }
}

/// Why events cannot be stored, or which part of the service has failed; `None` if everything works.
fn trouble(supervisor: &Supervisor, gauges: &Gauges) -> Option<String> {
    let ended = || supervisor.failure().map(|ended| ended.to_string());
    let stuck = || {
        gauges
            .stuck
            .load(Ordering::Relaxed)
            .then(|| "nothing is recorded: writing to the database failed; the server's log says why".to_owned())
    };
    ended().or_else(|| gauges.store.not_recording()).or_else(stuck)
}

/// The store's row: whether it records, and whether it is damaged.
fn store_row(gauges: &Gauges) -> SourceHealth {
    let troubles: Vec<String> = gauges.store.not_recording().into_iter().chain(gauges.store.damage()).collect();
    let detail = if gauges.store.not_recording().is_some() { "not writable" } else { "writable" };
    SourceHealth {
        detail: Some(detail.into()),
        errors: gauges.store.damaged_rows(),
        trouble: (!troubles.is_empty()).then(|| troubles.join("; ")),
        ..SourceHealth::active(STORE.into())
    }
}

impl HealthParts {
    fn sources(&self, now: Timestamp) -> Vec<SourceHealth> {
        let mut sources = self.files();
        sources.push(store_row(&self.gauges));
        sources.push(self.search.health());
        sources.extend(otlp::health(&self.otlp));
        sources.extend(self.hooks.rows(&self.gauges, now));
        sources.push(self.runs_row());
        sources.push(policy_row(&self.policy));
        sources.extend(retention_row(&self.retention));
        sources.extend(self.telemeter.health());
        sources.extend(codex_daemons::health(&self.daemons));
        sources
    }

    fn files(&self) -> Vec<SourceHealth> {
        let health = self.control.health();
        let progress = self.control.progress();
        let (done, total) = (progress.bytes_done.load(Ordering::Relaxed), progress.bytes_total.load(Ordering::Relaxed));
        let mut detail = health.watch.to_string();
        let reading = (!progress.is_done()).then_some(ReadingProgress { done_bytes: done, total_bytes: total });
        if let Some(reading) = reading {
            write!(detail, "; reading history: {reading}").ok();
        }
        for trouble in health.errors.iter().take(3) {
            write!(detail, "; {}", trouble.message).ok();
        }
        let now = Instant::now();
        let mut sources = vec![SourceHealth {
            lag_ms: Some(self.behind.lag_ms("files", health.lag_bytes, now)),
            errors: health.errors_total,
            files: health.files,
            reading,
            detail: Some(detail),
            ..SourceHealth::active("files".into())
        }];
        for (index, root) in health.roots.iter().enumerate() {
            let last = self.gauges.last_event_at.get(usize::from(root.provider.code()));
            let last = last.map_or(0, |at| at.load(Ordering::Relaxed));
            let name = self.directories.get(index).copied().unwrap_or(root.provider.as_str());
            let merged = self.gauges.merged.get(usize::from(root.provider.code()));
            sources.push(SourceHealth {
                lag_ms: Some(self.behind.lag_ms(&index.to_string(), root.lag_bytes, now)),
                coalesced: merged.map_or(0, |count| count.load(Ordering::Relaxed)),
                last_event_at: (last > 0).then(|| Timestamp::from_millisecond(last)),
                files: root.files,
                detail: (root.lag_bytes > 0).then(|| format!("{} bytes not read yet", root.lag_bytes)),
                ..SourceHealth::active(name.to_owned())
            });
        }
        sources
    }

    fn runs_row(&self) -> SourceHealth {
        let census = self.runs.census();
        let mut detail = format!("{} active runs connected", census.connected);
        if census.unreachable > 0 {
            write!(detail, ", {} lost before their run ended", census.unreachable).ok();
        }
        SourceHealth { dropped: census.frames_lost, detail: Some(detail), ..SourceHealth::active("runs".into()) }
    }
}

/// The number of hook calls, counted by [`HookHealth`](ingest::hook_health::HookHealth).
#[derive(Debug)]
struct HookDeliveries(Arc<Gauges>);

impl Collector for HookDeliveries {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let deliveries = AGENTS.iter().map(|provider| {
            ([("provider", provider.as_str())], ConstCounter::new(self.0.heard.of(*provider).deliveries))
        });
        let help = "Hook calls that were stored.";
        encode_family(&mut encoder, "capture_hook_deliveries", help, deliveries)
    }
}

/// Whether old sessions are removed automatically; `None` if this is off and the clock is trusted.
fn retention_row(retention: &Retention) -> Option<SourceHealth> {
    let (trouble, removes) = (retention.clock_doubt(), retention.removes_by_itself());
    let detail = if removes { "old sessions are removed once a day" } else { "old sessions are removed on request" };
    let is_shown = removes || trouble.is_some();
    is_shown.then(|| SourceHealth { detail: Some(detail.into()), trouble, ..SourceHealth::active(RETENTION.into()) })
}

/// The policy in force: the file and the hash of its content.
fn policy_row(file: &Path) -> SourceHealth {
    let shown = file.display();
    let detail = match read_regular(file, Links::Followed, SETTINGS_MOST) {
        Ok(Some(content)) => format!("{shown} (blake3 {})", blake3::hash(&content)),
        Ok(None) => format!("{shown} (does not exist: {})", policy_files::WITHOUT_FILE),
        Err(error) => format!("{shown} ({error})"),
    };
    let trouble = policy_files::load(file, None).err();
    SourceHealth {
        detail: Some(detail),
        trouble: trouble.map(|refused| format!("{refused}; every request is left to you")),
        ..SourceHealth::active(POLICY.into())
    }
}

/// A file's modification time.
fn modified(path: &Path) -> Option<Timestamp> {
    let since = std::fs::metadata(path).ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok().map(Timestamp::from_millisecond)
}

#[cfg(test)]
mod tests;
