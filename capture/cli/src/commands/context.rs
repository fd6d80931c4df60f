//! Code that the commands share: their context, session lookup, and questions at the terminal.

use std::{
    io::{BufRead, Write},
    path::{Path, PathBuf},
};

use api::{
    list::Limit,
    part::PART_HINT,
    routes::{GetSession, ListSessions},
    sessions::{ActiveFilter, SessionsQuery},
};
use client::{Client, Connection, failure::Failed};
use events::RunId;
use home::{config::Config, environment::Environment, paths};
use projections::Session;

use super::output::print_json;

/// The options and the configuration that every command receives.
pub(super) struct Context {
    pub(super) data: PathBuf,
    pub(super) config: Config,
    pub(super) json: bool,
    pub(super) connection: Connection,
}

impl Context {
    pub(super) fn client(&self) -> anyhow::Result<Client> {
        client::connect(&self.data, &self.config, self.connection)
    }

    /// The user's policy file, as read by the server of this data directory.
    pub(super) fn policy_file(&self) -> anyhow::Result<PathBuf> {
        match Environment::recorded(&self.data)? {
            Some(recorded) => Ok(paths::policy_file_in(&recorded.config_dir()?)),
            None => paths::policy_file(),
        }
    }

    /// A client of the running server, if there is one. Starts no server.
    pub(super) fn running(&self) -> anyhow::Result<Option<Client>> {
        Ok(Client::running(&self.data, self.connection)?)
    }

    /// Prints a value for programs: as JSON with the schema version, or filled into the `--format` template.
    pub(super) fn print_json<T: serde::Serialize>(&self, value: &T) -> anyhow::Result<()> {
        print_json(value)
    }
}

/// Refuses an action that changes how capture works if an agent is a detectable ancestor of this process.
pub(super) fn refuse_agents(doing: &str) -> anyhow::Result<()> {
    match processes::agent_descent(std::process::id()) {
        None => Ok(()),
        Some(descent) => Err(Failed::Refused(format!("{doing} is not allowed from this process: {descent}")).into()),
    }
}

/// Prints a line of data.
pub(super) fn print_line(text: &str) -> anyhow::Result<()> {
    Ok(writeln!(printing::stdout(), "{text}")?)
}

/// Asks the user at the terminal for confirmation. Any answer other than yes means no.
pub(super) fn is_agreed(question: &str) -> anyhow::Result<bool> {
    flush_typed();
    let answer = typed(&format!("{question} [y/N] "))?;
    Ok(matches!(answer.as_str(), "y" | "Y" | "yes"))
}

/// Shows a text and asks the user at the terminal whether to proceed. Input typed earlier is discarded. If the text is
/// longer than the screen, the user must type `yes` in full.
pub(super) fn is_agreed_to(shown: &str, question: &str) -> anyhow::Result<bool> {
    write!(printing::stderr(), "{shown}")?;
    let Some(long) = printing::asked::asks_for_word(shown, printing::error_size(), false) else {
        return is_agreed(question);
    };
    flush_typed();
    let answer = typed(&format!("\n{long}{} [yes/No] ", question.trim_start()))?;
    Ok(answer.eq_ignore_ascii_case("yes"))
}

/// Asks on the terminal and returns the line the user types, trimmed.
pub(super) fn typed(question: &str) -> anyhow::Result<String> {
    let mut err = printing::stderr();
    write!(err, "{question}")?;
    err.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(answer.trim().to_owned())
}

/// Discards input typed at the terminal before a question, so that it does not answer the question.
pub(super) fn flush_typed() {
    // Fails if standard input is a pipe or a file, which have no typed-ahead input.
    rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush).ok();
}

/// Finds the session the user names by its id, the agent's id, a run's name, or part of an id.
pub(super) fn find(client: &Client, given: &str) -> anyhow::Result<Session> {
    client.one::<GetSession>(given).map_err(|error| match error.status() {
        Some(404) => {
            Failed::NotFound(format!("no session `{given}`; `capture ps --all` lists all sessions, and {PART_HINT}"))
                .into()
        }
        Some(_) | None => error.into(),
    })
}

/// The run that hosts a session, if a running server lists both.
pub(super) fn run_of_session(data: &Path, given: &str) -> Option<RunId> {
    let client = Client::running(data, Connection::Unix).ok()??;
    client.one::<GetSession>(given).ok()?.run_id
}

/// At most `most` active sessions, the one with the newest event first.
pub(super) fn active_sessions(client: &Client, most: usize) -> anyhow::Result<Vec<Session>> {
    let (active, limit) = (Some(ActiveFilter::Active), Some(Limit::of(most)));
    let query = SessionsQuery { active, limit, ..SessionsQuery::default() };
    Ok(client.get::<ListSessions>("", &query)?.sessions)
}

/// The text without the numbers of system errors: `No such file or directory (os error 2)`.
fn without_numbers(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let mut words = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(')').filter(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit())) {
            Some((_, rest)) => words += rest,
            None => words += &format!(" (os error {part}"),
        }
    }
    words
}

/// Prints an error.
pub(super) fn complain(text: &str) {
    for (index, line) in without_numbers(text).lines().enumerate() {
        let line = printing::safe(line);
        printing::print_error_line(&format!("{}{line}", if index == 0 { "capture: " } else { "  " }));
    }
}
