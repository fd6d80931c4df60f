//! `capture doctor`

use std::{io::Write, path::Path};

use api::{
    health::{POLICY, SourceHealth, Sources},
    routes::HealthSources,
};
use client::failure::{Failed, with_causes};
use events::{Provider, Timestamp};
use home::{
    clock,
    environment::{self, Environment},
    paths::{self, log_file},
    roots,
};
use printing::style;
use processes::UnseenAgent;
use serde::Serialize;
use store::DatabaseCheck;
use terminal::screen::ScreenRules;

use super::{agent, context::Context, hooks};
use printing::safe;

/// Whether a source needs no attention. Inactive sources are those that are not configured.
fn is_well(source: &SourceHealth) -> bool {
    source.errors == 0 && source.trouble.is_none()
}

/// The label of a row. The label of an agent's directory may contain more than the agent's name.
fn title(check: &DoctorCheck) -> &str {
    let provider = check.name.parse::<Provider>().ok();
    provider.map_or(check.name.as_str(), |provider| agents::directory::title(provider, Path::new(&check.detail)))
}

/// The state of a source, in one line.
fn in_words(source: &SourceHealth, now: Timestamp) -> String {
    let files = (source.files > 0 || source.detail.is_none()).then(|| match source.files {
        1 => "1 file".to_owned(),
        files => format!("{files} files"),
    });
    let last = source.last_event_at.map(|at| format!("last event {} ago", style::age(at, now)));
    let parts: Vec<_> = files.into_iter().chain(last).collect();
    // If the policy has an error, the error names the file, and the hash of its content adds nothing.
    let detail = source.detail.clone().filter(|_| source.name != POLICY || source.trouble.is_none());
    let parts = [Some(parts.join(", ")).filter(|p| !p.is_empty()), detail, source.trouble.clone()];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

#[derive(Serialize)]
struct DoctorCheck {
    name: String,
    ok: bool,
    detail: String,
    /// Whether the row is neither a success nor a failure: the subject does not exist, or the row is a remark.
    #[serde(skip)]
    is_note: bool,
}

/// The checks so far.
struct DoctorChecks(Vec<DoctorCheck>);

impl DoctorChecks {
    fn add(&mut self, name: &str, ok: bool, detail: String) {
        let is_note = matches!(name, SANDBOX | MODEL) || detail.contains(ABSENT);
        self.0.push(DoctorCheck { name: name.into(), ok, detail, is_note });
    }
}

#[derive(Serialize)]
struct DoctorReport {
    ok: bool,
    checks: Vec<DoctorCheck>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Also check every page of the database, which is slow if the database is large.
    #[arg(long)]
    deep: bool,
}

/// The row for our own agent's default model and the source of its API key.
const MODEL: &str = "agent model";
/// The row for the sandbox of our own agent's commands. It is a note, not a check.
const SANDBOX: &str = "agent sandbox";

/// The text for a directory that no agent has created.
const ABSENT: &str = "(does not exist yet)";

/// Column at which the detail of a check begins.
const DETAIL_COLUMN: usize = 19;

/// Checks the database; returns one line of text and whether the database is sound.
fn database(data: &Path) -> (bool, String) {
    let path = data.join("capture.db");
    if !path.exists() {
        return (true, format!("{} (does not exist yet)", path.display()));
    }
    let found = |faults: Vec<String>| format!("{}: {}", path.display(), faults.join("; "));
    match store::check::full(&path) {
        Ok(DatabaseCheck::Whole) => (true, format!("{}: every page checked", path.display())),
        Ok(DatabaseCheck::Unfinished) => (false, format!("{}: the check was interrupted", path.display())),
        Ok(DatabaseCheck::Rows(faults) | DatabaseCheck::Damaged(faults)) => (false, found(faults)),
        Err(error) => (false, error.to_string()),
    }
}

/// Names the running agents that capture does not observe; `None` if there are none.
fn unseen(agents: &[UnseenAgent]) -> Option<String> {
    let name = |agent: &UnseenAgent| format!("{} (process {}, {})", agent.provider, agent.pid, agent.why.words());
    let names: Vec<String> = agents.iter().map(name).collect();
    (!names.is_empty())
        .then(|| format!("{}; to see their sessions, mount their files here and list the directory under [roots] in the configuration", names.join(", ")))
}

/// Runs all checks. If the configuration is unusable, `wrong` is the error and the context has the defaults.
pub(super) fn run(context: &Context, arguments: &Arguments, wrong: Option<&anyhow::Error>) -> anyhow::Result<()> {
    let mut checks = DoctorChecks(Vec::new());
    let config = paths::config_file()?;
    match wrong {
        Some(error) => {
            checks.add("configuration", false, format!("{}; the other checks use the defaults", with_causes(error)))
        }
        None if config.exists() => checks.add("configuration", true, config.display().to_string()),
        None => checks.add("configuration", true, format!("{} (does not exist: using defaults)", config.display())),
    }
    checks.add("data", true, context.data.display().to_string());
    if arguments.deep {
        let (whole, detail) = database(&context.data);
        checks.add("database", whole, detail);
    }
    let rules = paths::screen_rules_dir()?;
    match ScreenRules::load(Some(&rules)) {
        Ok(_) if rules.is_dir() => checks.add("screen rules", true, format!("built in, and {}", rules.display())),
        Ok(_) => checks.add("screen rules", true, "built in".into()),
        Err(error) => checks.add("screen rules", false, format!("{error}; runs use the built-in ones")),
    }
    let homes = roots::homes(&context.config, &context.data)?;
    for root in transcripts::providers::roots(&homes) {
        let there = root.dir.is_dir();
        checks.add(
            root.provider.as_str(),
            true,
            format!("{}{}", root.dir.display(), if there { "" } else { " (does not exist yet)" }),
        );
    }
    let (is_usable, model) = agent::arguments::model_in_words(&context.config.agent);
    checks.add(MODEL, is_usable, model);
    checks.add(SANDBOX, true, session_setup::SANDBOX.to_owned());
    let own = Environment::of_process().config_dir()?;
    if let Some(recorded) = Environment::recorded(&context.data)?
        && recorded.config_dir()? != own
    {
        checks.add(
            "configuration",
            false,
            format!(
                "the server reads its configuration and policy from {} (recorded in {}), not from {}; to change that, \
                 run `capture serve` here once",
                recorded.config_dir()?.display(),
                environment::file(&context.data).display(),
                own.display()
            ),
        );
    }
    for (provider, ok, words) in hooks::accepted(context)? {
        checks.add(&format!("{provider} settings"), ok, words);
    }
    let running = context.running()?;
    if running.is_none() {
        // A running server reports the file it reads.
        let policy = context.policy_file()?;
        match policy_files::load(&policy, None) {
            Ok(_) if policy.exists() => checks.add("policy", true, policy.display().to_string()),
            Ok(_) => checks.add(
                "policy",
                true,
                format!("{} (does not exist: {})", policy.display(), policy_files::WITHOUT_FILE),
            ),
            Err(refused) => checks.add("policy", false, format!("{refused}; every request is left to you")),
        }
    }
    match running {
        None if context.config.autostart => {
            checks.add("server", true, "not running; the next command starts it".into())
        }
        None => checks.add("server", false, "not running, and autostart is off: start it with `capture serve`".into()),
        Some(client) => {
            let endpoint = client.endpoint();
            checks.add("server", true, format!("{} (pid {})", endpoint.url, endpoint.pid));
            let Sources { sources } = client.one::<HealthSources>("")?;
            for source in &sources {
                // An agent may have several directories, of which only some are used.
                let is_used = |other: &SourceHealth| other.name == source.name && other.files > 0;
                let is_unused = source.files == 0 && sources.iter().any(is_used);
                let last_event_at = source.last_event_at.filter(|_| !is_unused);
                let own = SourceHealth { last_event_at, ..source.clone() };
                let has_nothing = own.files == 0 && own.last_event_at.is_none() && own.detail.is_none();
                let is_note = !source.active || has_nothing && own.trouble.is_none();
                let detail = in_words(&own, clock::now());
                let (name, ok) = (source.name.clone(), is_well(source));
                checks.0.push(DoctorCheck { name, ok, detail, is_note });
            }
        }
    }
    if let Some(words) = unseen(&processes::unseen_agents()) {
        checks.add("not observed", true, words);
    }
    checks.add("log", true, log_file(&context.data).display().to_string());
    let DoctorChecks(checks) = checks;
    let report = DoctorReport { ok: checks.iter().all(|c| c.ok), checks };
    if context.json {
        context.print_json(&report)?;
    } else {
        let mut out = printing::stdout();
        for check in &report.checks {
            let mark = match (check.ok, check.is_note) {
                (false, _) => "✗",
                (true, true) => "·",
                (true, false) => "✓",
            };
            let line = format!("{mark} {:<16} {}", title(check), safe(&check.detail));
            writeln!(out, "{}", printing::prose(&line, DETAIL_COLUMN))?;
        }
    }
    match report.checks.iter().filter(|check| !check.ok).count() {
        0 => Ok(()),
        1 => Err(Failed::Other("1 check failed".into()).into()),
        failed => Err(Failed::Other(format!("{failed} checks failed")).into()),
    }
}

#[cfg(test)]
mod tests {
    use events::Provider;
    use processes::Unseen;

    use super::*;

    #[test]
    fn unobserved_agents_are_listed_with_the_reason() {
        assert_eq!(unseen(&[]), None);
        let agents = [
            UnseenAgent { provider: Provider::Claude, pid: 812, why: Unseen::OtherUser },
            UnseenAgent { provider: Provider::Gemini, pid: 900, why: Unseen::Container },
        ];
        assert_eq!(
            unseen(&agents).unwrap(),
            "claude (process 812, of another user), gemini (process 900, in a container); to see their sessions, \
             mount their files here and list the directory under [roots] in the configuration"
        );
    }
}
