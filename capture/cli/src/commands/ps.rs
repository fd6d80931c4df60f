//! `capture ps`, `capture status`

use std::time::Duration;

use api::{
    health::{SourceHealth, Sources},
    list::Limit,
    routes::{HealthSources, ListSessions},
    sessions::{ActiveFilter, SessionPage, SessionsQuery},
};
use comfy_table::{Attribute, Cell, Color, ColumnConstraint, ContentArrangement, Row, Table, TableStyle};
use events::{Provider, State};
use projections::Session;

use super::{
    Context, find, style,
    watch::{STATUS, clear, show, watch},
};
use crate::{
    client::Client,
    terminal::{self, safe},
};
use daemon::{
    clock,
    health::{HOOKS, READING, STORE},
};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Only this session.
    session: Option<String>,
    /// Include sessions that ended or have been silent for a long time.
    #[arg(long, short)]
    all: bool,
    /// Keep the list on screen and up to date.
    #[arg(long, short)]
    watch: bool,
    /// Only sessions in these states.
    #[arg(long, value_delimiter = ',', value_name = "STATE", value_parser = super::one_of(State::ALL, State::as_str))]
    state: Vec<State>,
    /// Only sessions of these agents.
    #[arg(long, value_delimiter = ',', value_name = "AGENT", value_parser = super::one_of(Provider::ALL, Provider::as_str))]
    provider: Vec<Provider>,
    /// Only sessions in this directory.
    #[arg(long, value_name = "DIR")]
    cwd: Option<String>,
    /// Maximum number of sessions [default: 200, with --all or --state all of them].
    #[arg(long)]
    limit: Option<usize>,
}

impl Arguments {
    fn query(&self) -> SessionsQuery {
        SessionsQuery {
            state: self.state.clone().into(),
            provider: self.provider.clone().into(),
            cwd: self.cwd.clone(),
            active: Some(if self.is_everything() { ActiveFilter::All } else { ActiveFilter::Active }),
            cursor: None,
            limit: None,
        }
    }

    /// Whether sessions that ended or are silent are meant too: a state is looked for wherever it is.
    fn is_everything(&self) -> bool {
        self.all || !self.state.is_empty()
    }

    /// Reads page after page, until there are enough sessions.
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
    let list = || -> anyhow::Result<SessionPage> {
        match &arguments.session {
            Some(given) => {
                find(&client, given).map(|session| SessionPage { as_of: 0, sessions: vec![session], next_cursor: None })
            }
            None => arguments.list(&client),
        }
    };
    if !arguments.watch {
        let mut page = list()?;
        // Right after a first start there is nothing yet; what is live is read first.
        for _ in 0..FIRST_LOOKS {
            if !page.sessions.is_empty() || how_far(&client)?.is_none() {
                break;
            }
            crossbeam_channel::after(LOOK_EVERY).recv().ok();
            page = list()?;
        }
        let Sources { sources } = client.one::<HealthSources>("")?;
        if let Some(trouble) = trouble(&sources) {
            terminal::print_error_line(&format!("capture: {}; see `capture doctor`", safe(&trouble)));
        }
        if let Some(how_far) = how_far(&client)? {
            terminal::print_error_line(&format!(
                "capture: {READING}{} (older sessions appear as they are read)",
                safe(&how_far)
            ));
        }
        return if context.json { context.print_json(&page) } else { show(&render(&page, arguments)) };
    }
    clear()?;
    watch(context, &client, STATUS, list, |page| render(page, arguments))
}

/// Maximum number of sessions that are listed by default.
const MOST: usize = 200;
/// Maximum number of times that an empty list is requested again while history is read.
const FIRST_LOOKS: u32 = 20;
/// Interval between requests of an empty list while history is read.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The progress of reading history; `None` when it is complete.
fn how_far(client: &Client) -> anyhow::Result<Option<String>> {
    let Sources { sources } = client.one::<HealthSources>("")?;
    let reading = sources.iter().find_map(|s| s.detail.as_deref()?.split_once(READING));
    Ok(reading.map(|(_, how_far)| how_far.split(';').next().unwrap_or_default().to_owned()))
}

/// What is wrong with what is recorded, in one line.
fn trouble(sources: &[SourceHealth]) -> Option<String> {
    let records = |source: &&SourceHealth| source.name == STORE || source.name.ends_with(HOOKS);
    let troubles = sources.iter().filter(records).filter_map(|source| {
        let trouble = source.trouble.as_ref()?;
        Some(format!("{}: {trouble}", source.name))
    });
    let troubles: Vec<String> = troubles.collect();
    (!troubles.is_empty()).then(|| troubles.join("; "))
}

fn render(page: &SessionPage, arguments: &Arguments) -> String {
    if page.sessions.is_empty() {
        let hint = if !arguments.state.is_empty() {
            "no sessions in this state"
        } else if arguments.all {
            "no sessions yet"
        } else {
            "no active sessions (--all shows the others)"
        };
        return format!("{hint}\n");
    }
    let more = if page.next_cursor.is_some() { "… more; use --limit\n" } else { "" };
    format!("{}\n{more}", table(&page.sessions).trim_fmt())
}

/// Width of the list without a terminal, columns.
const PAPER: u16 = 160;
/// Smallest width at which the directory is shown, columns.
const ROOM_FOR_DIRECTORY: u16 = 110;

/// The table of sessions: those that need a person first, sub-agents below their parent.
fn table(sessions: &[Session]) -> Table {
    let (now, colour) = (clock::now(), style::colours());
    let mut ordered: Vec<&Session> = sessions.iter().filter(|s| !has_parent_among(s, sessions)).collect();
    ordered.sort_by_key(|s| (urgency(s.status.state), std::cmp::Reverse(s.last_event_at)));
    let mut table = Table::new();
    table.load_style(TableStyle::new()).set_content_arrangement(ContentArrangement::Dynamic);
    if !colour {
        table.force_no_tty();
    }
    let width = table.width().unwrap_or(PAPER);
    table.set_width(width);
    let directory = width >= ROOM_FOR_DIRECTORY;
    let header = ["STATE", "FOR", "AGENT", "SESSION", "TITLE", "DIRECTORY", "NOW"];
    table.set_header(header.into_iter().filter(|name| directory || *name != "DIRECTORY"));
    for session in ordered {
        add(&mut table, session, "", now, directory);
        let mut helpers: Vec<&Session> = sessions.iter().filter(|s| s.parent_session_id == Some(session.id)).collect();
        helpers.sort_by_key(|s| s.started_at);
        for helper in helpers {
            add(&mut table, helper, "└ ", now, directory);
        }
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        // The short columns are never cut; what is left goes to the long ones.
        if index < 4 {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    table
}

fn add(table: &mut Table, session: &Session, indent: &str, now: events::Timestamp, directory: bool) {
    let cut = |text: &str, limit| safe(&projections::shorten::one_line(text, limit));
    let state = Cell::new(format!("{indent}{}", style::state(&session.status, false)));
    let state = match session.status.state {
        State::Running => state.fg(Color::Green),
        State::Waiting => state.fg(Color::Yellow),
        State::WaitingApproval => state.fg(Color::Red).add_attribute(Attribute::Bold),
        State::Idle | State::Exited => state.add_attribute(Attribute::Dim),
        State::Unknown => state.fg(Color::Magenta),
    };
    let mut rest = vec![
        style::age(session.status.since, now),
        session.provider.to_string(),
        style::short(&session.id),
        cut(session.title.as_deref().unwrap_or(""), 32),
    ];
    if directory {
        rest.push(cut(&session.cwd.as_deref().map(style::path).unwrap_or_default(), 28));
    }
    rest.push(cut(session.summary.current.as_deref().or(session.status.activity.as_deref()).unwrap_or(""), 120));
    let mut row = Row::from(std::iter::once(state).chain(rest.into_iter().map(Cell::new)).collect::<Vec<_>>());
    row.max_height(1);
    table.add_row(row);
}

fn has_parent_among(session: &Session, sessions: &[Session]) -> bool {
    session.parent_session_id.is_some_and(|parent| sessions.iter().any(|s| s.id == parent))
}

fn urgency(state: State) -> u8 {
    match state {
        State::WaitingApproval => 0,
        State::Waiting => 1,
        State::Running => 2,
        State::Unknown => 3,
        State::Idle => 4,
        State::Exited => 5,
    }
}
