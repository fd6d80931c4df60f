//! `capture ps`, `capture status`

mod table;

use std::{fmt::Write as _, time::Duration};

use api::{
    findings::AttentionList,
    health::{HOOKS, ReadingProgress, STORE, SourceHealth, Sources},
    list::Limit,
    routes::{HealthSources, ListAttention, ListSessions},
    sessions::{ActiveFilter, SessionPage, SessionsQuery},
};
use client::Client;
use events::{Provider, State};
use home::clock;
use printing::style;
use projections::Session;

pub(super) use self::table::Needs;
use self::table::{Paper, table};
use super::{
    context::{Context, find},
    meanings,
    number::count,
    watch::{ListText, STATUS, Watched, show, watch},
};
use printing::safe;

#[derive(Debug, Clone, clap::Args)]
pub(super) struct Arguments {
    /// Only this session: its id, the agent's id, the name of its run, or at least 3 characters from the start or end
    /// of its id.
    session: Option<String>,
    /// Include sessions that ended, and idle or unknown ones without an event in the last 30 minutes.
    #[arg(long, short)]
    all: bool,
    /// Keep the list on the screen and update it.
    #[arg(long, short)]
    watch: bool,
    /// Only sessions in these states.
    #[arg(long, value_delimiter = ',', value_name = "STATE", value_parser = super::words::one_of_explained(State::ALL, State::as_str, meanings::of_state))]
    state: Vec<State>,
    /// Only sessions of these agents.
    #[arg(long, alias = "provider", value_delimiter = ',', value_name = "AGENT", value_parser = super::words::one_of_explained(Provider::ALL, Provider::as_str, meanings::of_agent))]
    agent: Vec<Provider>,
    /// Only sessions in this directory.
    #[arg(long, value_name = "DIR")]
    cwd: Option<String>,
    /// Maximum number of sessions [default: 200, or no limit with --all or --state].
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    limit: Option<usize>,
}

impl Arguments {
    fn query(&self) -> SessionsQuery {
        SessionsQuery {
            state: self.state.clone().into(),
            provider: self.agent.clone().into(),
            parent: None,
            cwd: self.cwd.clone(),
            active: Some(if self.is_everything() { ActiveFilter::All } else { ActiveFilter::Active }),
            cursor: None,
            limit: None,
        }
    }

    /// Whether the list includes sessions that ended or are silent. A filter by state applies to all sessions.
    fn is_everything(&self) -> bool {
        self.all || !self.state.is_empty()
    }

    /// Reads pages until there are enough sessions.
    fn list(&self, client: &Client) -> anyhow::Result<SessionPage> {
        let most = self.limit.unwrap_or(if self.is_everything() { usize::MAX } else { MOST });
        let mut query = SessionsQuery { limit: Some(Limit::of(most)), ..self.query() };
        let mut all = client.get::<ListSessions>("", &query)?;
        while all.sessions.len() < most
            && let Some(cursor) = all.next_cursor.take()
        {
            query = SessionsQuery { cursor: Some(cursor), limit: Some(Limit::of(most - all.sessions.len())), ..query };
            let next = client.get::<ListSessions>("", &query)?;
            all.sessions.extend(next.sessions);
            all.next_cursor = next.next_cursor;
        }
        Ok(all)
    }
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let client = context.client()?;
    let list = SessionList { client: &client, json: context.json, all: arguments.all, arguments: arguments.clone() };
    if !arguments.watch {
        let sources = settled_sources(&client)?;
        let page = list.list()?;
        if let Some(trouble) = trouble(&sources) {
            printing::print_error_line(&format!("capture: {}; see `capture doctor`", safe(&trouble)));
        }
        let is_reading = print_progress(&sources);
        return match context.json {
            true => context.print_json(&page),
            false if is_reading && page.page.sessions.is_empty() => {
                show(&format!("{}\n", nothing(arguments, Found::SoFar)))
            }
            false => show(&render(&page, arguments, paper())),
        };
    }
    watch(context, &client, STATUS, list)
}

/// Sessions as a table on standard output.
pub(super) fn table_of(sessions: &[Session], needs: &Needs) -> String {
    table(sessions, needs, clock::now(), paper())
}

/// What the active sessions need from the user, as listed by `capture next`.
pub(super) fn needs(client: &Client) -> anyhow::Result<Needs> {
    let AttentionList { items, .. } = client.one::<ListAttention>("")?;
    Ok(Needs::new(items))
}

/// Sessions and their needs.
#[derive(Debug, serde::Serialize)]
struct ListedSessions {
    #[serde(flatten)]
    page: SessionPage,
    #[serde(skip)]
    needs: Needs,
}

/// The width and colours of standard output.
fn paper() -> Paper {
    Paper { width: printing::width(), colour: style::colours() }
}

/// The list of sessions in watch mode.
struct SessionList<'a> {
    client: &'a Client,
    /// Whether the output is for programs, which query the sessions' needs themselves.
    json: bool,
    /// The arguments from the command line.
    all: bool,
    arguments: Arguments,
}

impl Watched<ListedSessions> for SessionList<'_> {
    fn list(&self) -> anyhow::Result<ListedSessions> {
        let page = match &self.arguments.session {
            Some(given) => {
                let session = find(self.client, given)?;
                SessionPage { as_of: 0, sessions: vec![session], next_cursor: None }
            }
            None => self.arguments.list(self.client)?,
        };
        let needs = if self.json { Needs::default() } else { needs(self.client)? };
        Ok(ListedSessions { page, needs })
    }

    fn render(&self, listed: &ListedSessions) -> ListText {
        ListText::new(&render(listed, &self.arguments, paper()), usize::from(!listed.page.sessions.is_empty()))
    }

    fn keys(&self) -> &'static str {
        if self.arguments.all { "a active ones · " } else { "a all · " }
    }

    fn on_key(&mut self, key: char) -> bool {
        let is_switch = key == 'a' && self.arguments.session.is_none();
        if is_switch {
            self.arguments.all = !self.arguments.all;
            // A list requested with `--all` may be long; one shown by a key press is limited.
            self.arguments.limit = self.arguments.limit.or(if self.all { None } else { Some(MOST) });
        }
        is_switch
    }
}

/// Maximum number of sessions that are listed by default.
const MOST: usize = 200;
/// Age of the server's process from which the list is shown even if history is still being read, ms.
const SETTLES_MS: i64 = 850;
/// Age of the server's process at which it has detected the running agents, ms.
const FINDS_AGENTS_MS: i64 = 700;
/// Interval between polls of a server that has just started.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Returns the health of all sources. Waits for a server that has just started until it has read recent history and
/// detected the running agents, so that the first list is right, but no longer than [`SETTLES_MS`].
pub(super) fn settled_sources(client: &Client) -> anyhow::Result<Vec<SourceHealth>> {
    loop {
        let Sources { sources } = client.one::<HealthSources>("")?;
        let enough_ms = if how_far(&sources).is_some() { SETTLES_MS } else { FINDS_AGENTS_MS };
        let left_ms = enough_ms.saturating_sub(server_age_ms(client));
        let Some(left) = u64::try_from(left_ms).ok().filter(|left| *left > 0).map(Duration::from_millis) else {
            return Ok(sources);
        };
        // The channel never receives a message; this only waits.
        crossbeam_channel::after(left.min(LOOK_EVERY)).recv().ok();
    }
}

/// Prints the progress of reading history, if it continues; returns whether it does.
pub(super) fn print_progress(sources: &[SourceHealth]) -> bool {
    let how_far = how_far(sources);
    if let Some(how_far) = how_far {
        // The total is not known until the first files are found.
        let known = if how_far.total_bytes < 1_000_000 { String::new() } else { format!(": {how_far}") };
        printing::print_error_line(&format!(
            "capture: reading history{known} (older sessions appear as they are read)"
        ));
    }
    how_far.is_some()
}

fn server_age_ms(client: &Client) -> i64 {
    match client.endpoint().start_ticks {
        // Written by a release that did not record the start time.
        0 => i64::MAX,
        start_ticks => processes::age_ms(start_ticks),
    }
}

/// The progress of reading history; `None` when it is complete.
fn how_far(sources: &[SourceHealth]) -> Option<ReadingProgress> {
    sources.iter().find_map(|source| source.reading)
}

/// Problems with recording, in one line.
fn trouble(sources: &[SourceHealth]) -> Option<String> {
    let records = |source: &&SourceHealth| source.name == STORE || source.name.ends_with(HOOKS);
    let troubles = sources.iter().filter(records).filter_map(|source| {
        let trouble = source.trouble.as_ref()?;
        Some(format!("{}: {trouble}", source.name))
    });
    let troubles: Vec<String> = troubles.collect();
    (!troubles.is_empty()).then(|| troubles.join("; "))
}

fn render(listed: &ListedSessions, arguments: &Arguments, paper: Paper) -> String {
    let page = &listed.page;
    if page.sessions.is_empty() {
        return format!("{}\n", nothing(arguments, Found::All));
    }
    let mut text = table(&page.sessions, &listed.needs, clock::now(), paper);
    if page.next_cursor.is_some() {
        let _ = writeln!(text, "… and more: --limit N lists more than {}", page.sessions.len());
    }
    text
}

/// Which sessions the server has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    All,
    /// Those read so far.
    SoFar,
}

/// Explains why the list is empty.
fn nothing(arguments: &Arguments, found: Found) -> String {
    let mut filters = Vec::new();
    if !arguments.state.is_empty() {
        let states: Vec<&str> = arguments.state.iter().map(|state| state.as_str()).collect();
        filters.push(format!("in state {}", states.join(" or ")));
    }
    if !arguments.agent.is_empty() {
        let agents: Vec<&str> = arguments.agent.iter().map(|agent| agent.as_str()).collect();
        filters.push(format!("of {}", agents.join(" or ")));
    }
    if let Some(cwd) = &arguments.cwd {
        filters.push(format!("in {}", safe(cwd)));
    }
    if found == Found::SoFar {
        filters.push("so far".to_owned());
    }
    match (arguments.is_everything(), filters.is_empty()) {
        (true, true) => "no sessions yet: start an agent, or `capture run -- AGENT`".to_owned(),
        (true, false) => format!("no sessions {}", filters.join(" ")),
        (false, true) => "no active sessions (--all lists the others)".to_owned(),
        (false, false) => format!("no active sessions {} (--all lists the others)", filters.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct CommandLine {
        #[command(flatten)]
        arguments: Arguments,
    }

    #[test]
    fn an_empty_list_states_its_filters_and_whether_it_is_complete() {
        for (line, all, so_far) in [
            ("ps", "no active sessions (--all lists the others)", "no active sessions so far (--all lists the others)"),
            ("ps --all", "no sessions yet: start an agent, or `capture run -- AGENT`", "no sessions so far"),
            ("ps --state idle --cwd /w", "no sessions in state idle in /w", "no sessions in state idle in /w so far"),
        ] {
            let arguments = CommandLine::parse_from(line.split(' ')).arguments;
            assert_eq!(nothing(&arguments, Found::All), all);
            assert_eq!(nothing(&arguments, Found::SoFar), so_far);
        }
    }
}
