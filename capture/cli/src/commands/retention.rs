//! `capture forget`, `prune`, `backup` and `restore`: removes data, and copies it elsewhere.

use std::{io::IsTerminal, path::PathBuf, time::Duration};

use api::{
    retention::{ByteSize, PruneRequest, RemovalQuery, RemovalReport, RemovedSession},
    routes::{ForgetSession, GetRetention, PruneSessions},
};
use client::{Client, failure::Failed};
use home::clock;
use printing::style;

use events::SessionId;

use super::{
    context::{Context, find, is_agreed, print_line, refuse_agents},
    watch::show,
    when,
};
use printing::safe;

#[derive(Debug, clap::Args)]
pub(super) struct ForgetArguments {
    /// The sessions: their ids, the agents' ids, names of runs, or at least 3 characters from the start or end of an id.
    #[arg(required = true, value_name = "SESSION")]
    sessions: Vec<String>,
    #[command(flatten)]
    how: How,
}

#[derive(Debug, clap::Args)]
pub(super) struct PruneArguments {
    /// Remove sessions without an event since this time, or for this long, such as 90d.
    #[arg(long, value_name = "AGE")]
    older_than: Option<String>,
    /// Remove the oldest sessions until the database is at most this size, such as 500MB or 5GB.
    #[arg(long, value_name = "SIZE")]
    larger_than: Option<ByteSize>,
    /// Only sessions that began in this directory or below it. Without another condition, all of these are removed.
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Remove sessions by age even though this machine's clock jumped. Check first that the clock is right.
    #[arg(long)]
    clock_is_right: bool,
    #[command(flatten)]
    how: How,
}

#[derive(Debug, clap::Args)]
struct How {
    /// Only list the sessions that would be removed.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(long, short)]
    yes: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct BackupArguments {
    /// The file to write.
    file: PathBuf,
    /// Overwrite the file if it exists.
    #[arg(long)]
    force: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct RestoreArguments {
    /// The backup.
    file: PathBuf,
    /// Do not ask for confirmation.
    #[arg(long, short)]
    yes: bool,
}

/// Longest wait for the deletion to finish, and the interval between polls.
const ERASED_WITHIN: Duration = Duration::from_secs(300);
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub(super) fn forget(context: &Context, arguments: &ForgetArguments) -> anyhow::Result<()> {
    refuse_agents("forgetting sessions")?;
    let client = context.client()?;
    let ids: Vec<String> = arguments
        .sessions
        .iter()
        .map(|given| Ok(find_removable(&client, given)?.to_string()))
        .collect::<anyhow::Result<_>>()?;
    let remove = |dry_run| -> anyhow::Result<RemovalReport> {
        let query = RemovalQuery { dry_run: Some(dry_run) };
        let mut reports: Vec<RemovalReport> = Vec::new();
        for id in &ids {
            if reports.iter().flat_map(|report| &report.sessions).any(|gone| gone.id.to_string() == *id) {
                // It was removed with its parent.
                continue;
            }
            match client.delete::<ForgetSession>(id, &query) {
                Ok(report) => reports.push(report),
                Err(error) if reports.is_empty() || dry_run => return Err(error.into()),
                Err(error) => {
                    let done = reports.iter().map(|report| report.sessions.len() as u64).sum();
                    return Err(Failed::Other(format!("removed {}, but not {id}: {error}", sessions(done))).into());
                }
            }
        }
        Ok(RemovalReport::all(reports))
    };
    carry_out(context, &client, &arguments.how, "Forget", remove)
}

/// Finds the session the user names, including a pruned one.
fn find_removable(client: &Client, given: &str) -> anyhow::Result<SessionId> {
    let unlisted = match find(client, given) {
        Ok(session) => return Ok(session.id),
        Err(error) => error,
    };
    match client.delete::<ForgetSession>(given, &RemovalQuery { dry_run: Some(true) }) {
        Ok(plan) => plan.sessions.first().map(|session| session.id).ok_or(unlisted),
        Err(error) if error.status() == Some(404) => Err(unlisted),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn prune(context: &Context, arguments: &PruneArguments) -> anyhow::Result<()> {
    refuse_agents("removing sessions")?;
    let since = when::since("--older-than", arguments.older_than.as_deref())?;
    let now = clock::now();
    let older_than_s = since.map(|at| now.since_ms(at).max(0) as u64 / 1_000);
    let project = arguments.project.as_ref().map(std::path::absolute).transpose()?;
    let request = PruneRequest {
        older_than_s,
        larger_than_bytes: arguments.larger_than.map(|ByteSize(bytes)| bytes),
        project: project.map(|dir| dir.to_string_lossy().into_owned()),
        clock_is_right: arguments.clock_is_right,
        dry_run: false,
    };
    if request == (PruneRequest { clock_is_right: arguments.clock_is_right, ..PruneRequest::default() }) {
        return Err(Failed::Usage("expected --older-than, --larger-than or --project".into()).into());
    }
    let client = context.client()?;
    let remove = |dry_run| Ok(client.send::<PruneSessions>("", &PruneRequest { dry_run, ..request.clone() })?);
    carry_out(context, &client, &arguments.how, "Remove", remove)
}

/// Lists what will be removed, asks, removes it, and waits until it is erased.
fn carry_out(
    context: &Context,
    client: &Client,
    how: &How,
    verb: &str,
    remove: impl Fn(bool) -> anyhow::Result<RemovalReport>,
) -> anyhow::Result<()> {
    if how.dry_run || !how.yes {
        let plan = remove(true)?;
        if how.dry_run && context.json {
            return context.print_json(&plan);
        }
        if how.dry_run || plan.sessions.is_empty() {
            return show(&in_words(&plan, "would remove"));
        }
        confirm(context, &format!("{}{verb} this permanently?", in_words(&plan, "to be removed:")))?;
    }
    let report = remove(false)?;
    let until = std::time::Instant::now() + ERASED_WITHIN;
    let left = loop {
        let left = client.one::<GetRetention>("")?;
        if left.erasing == 0 || left.trouble.is_some() || std::time::Instant::now() > until {
            break left;
        }
        // The channel never receives a message; this only waits.
        crossbeam_channel::after(LOOK_EVERY).recv().ok();
    };
    if context.json {
        context.print_json(&report)?
    } else {
        show(&in_words(&report, "removed"))?
    }
    if left.erasing == 0 {
        return Ok(());
    }
    let why = left
        .trouble
        .map_or_else(|| "; the server is erasing it".to_owned(), |why| format!(": {why}; the server tries again"));
    Err(Failed::Other(format!("the sessions are removed, but some of their data is not erased yet{why}")).into())
}

fn confirm(context: &Context, question: &str) -> anyhow::Result<()> {
    if context.json || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        let why = "cannot ask for confirmation without a terminal; pass --yes to confirm";
        return Err(Failed::Refused(why.into()).into());
    }
    if is_agreed(question)? { Ok(()) } else { Err(Failed::Refused("nothing was changed".into()).into()) }
}

fn sessions(count: u64) -> String {
    format!("{count} session{}", if count == 1 { "" } else { "s" })
}

fn in_words(report: &RemovalReport, verb: &str) -> String {
    let row = |session: &RemovedSession| {
        let title = session.title.as_deref().unwrap_or("(no title)");
        let notes = [
            (session.is_running, ", running: capture will not record its further activity"),
            (session.was_pruned, ", pruned before"),
        ];
        let notes: String = notes.iter().filter(|(holds, _)| *holds).map(|(_, note)| *note).collect();
        let (id, at) = (style::short(&session.id), style::local(session.last_event_at));
        format!("  {id}  {}  {at}  {}{notes}\n", session.provider, safe(title))
    };
    let rows: String = report.sessions.iter().map(row).collect();
    let files: String = report.files.iter().map(|file| format!("  file {}\n", safe(file))).collect();
    let elsewhere = report.backups_elsewhere.iter();
    let elsewhere: String =
        elsewhere.map(|file| format!("  a backup that still contains this data: {}\n", safe(file))).collect();
    let (sessions, size) = (sessions(report.sessions.len() as u64), ByteSize(report.bytes));
    format!("{verb} {sessions}, {} events, about {size}\n{rows}{files}{elsewhere}", report.events)
}

pub(super) fn backup(context: &Context, arguments: &BackupArguments) -> anyhow::Result<()> {
    let file = std::path::absolute(&arguments.file)?;
    // Have the server store everything its lists show.
    if let Some(client) = context.running()? {
        client.one::<GetRetention>("")?;
    }
    if !arguments.force && file.symlink_metadata().is_ok() {
        let there = format!("{} already exists; pass --force to overwrite it", safe(&file.display().to_string()));
        return Err(Failed::Other(there).into());
    }
    let facts = store::backup(&context.data.join("capture.db"), &file, arguments.force)?;
    ::retention::backups::record(&context.data, &file)?;
    let size = ByteSize(facts.bytes);
    let words = format!("{}: {}, {} events, {size}", file.display(), sessions(facts.sessions), facts.events);
    if context.json {
        let value = serde_json::json!({ "file": file, "bytes": facts.bytes, "sessions": facts.sessions, "events": facts.events });
        return context.print_json(&value);
    }
    print_line(&safe(&words))
}

pub(super) fn restore(context: &Context, arguments: &RestoreArguments) -> anyhow::Result<()> {
    refuse_agents("restoring a backup")?;
    if context.running()?.is_some() {
        return Err(Failed::Refused("the server is running; stop it first: `capture serve --stop`".into()).into());
    }
    let facts = store::inspect(&arguments.file)?;
    if !arguments.yes {
        let words = format!("{}, {} events", sessions(facts.sessions), facts.events);
        confirm(
            context,
            &format!(
                "Replace the database in {} with this backup ({words})?",
                safe(&context.data.display().to_string())
            ),
        )?;
    }
    let restored = store::restore(&context.data, &arguments.file)?;
    // The index belongs to the replaced database and is rebuilt.
    match std::fs::remove_dir_all(context.data.join("index")) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        Ok(()) | Err(_) => {}
    }
    if context.json {
        return context
            .print_json(&serde_json::json!({ "sessions": restored.facts.sessions, "events": restored.facts.events }));
    }
    print_line(&format!("restored {}, {} events", sessions(restored.facts.sessions), restored.facts.events))
}
