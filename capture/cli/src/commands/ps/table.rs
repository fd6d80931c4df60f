//! The table of sessions: those that need a person first, sub-agents below their parent.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
};

use comfy_table::{Attribute, Cell, Color, ColumnConstraint, ContentArrangement, Row, Table, TableStyle, Width};
use events::{SessionId, State, Timestamp};
use projections::Session;

use crate::{commands::style, terminal::safe};

/// What the table is written on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paper {
    /// Columns of text; `None` where lines may be as long as they are: in a pipe or a file.
    pub(super) width: Option<usize>,
    /// Whether it shows colours.
    pub(super) colour: bool,
}

/// A column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    State,
    For,
    Agent,
    Session,
    Title,
    Directory,
    Now,
    /// Title and what is going on in one, where there is no room for two.
    What,
}

/// Least width with a column for the agent, columns of text.
const ROOM_FOR_AGENT: usize = 64;
/// Least width with separate columns for the title and what is going on.
const ROOM_FOR_TITLE: usize = 100;
/// Least width with a column for the directory.
const ROOM_FOR_DIRECTORY: usize = 130;

/// Maximum number of characters of a title in a table of limited width.
const TITLE_CHARS: usize = 40;
/// Maximum number of characters of a directory in a table of limited width.
const DIRECTORY_CHARS: usize = 32;
/// Maximum number of characters of any text in a table of unlimited width.
const TEXT_CHARS: usize = 300;

impl Column {
    fn of(width: Option<usize>) -> Vec<Self> {
        use Column::{Agent, Directory, For, Now, Session, State, Title, What};
        match width.unwrap_or(usize::MAX) {
            ROOM_FOR_DIRECTORY.. => vec![State, For, Agent, Session, Title, Directory, Now],
            ROOM_FOR_TITLE.. => vec![State, For, Agent, Session, Title, Now],
            ROOM_FOR_AGENT.. => vec![State, For, Agent, Session, What],
            _ => vec![State, For, Session, What],
        }
    }

    fn heading(self) -> &'static str {
        match self {
            Self::State => "STATE",
            Self::For => "FOR",
            Self::Agent => "AGENT",
            Self::Session => "SESSION",
            Self::Title => "TITLE",
            Self::Directory => "DIRECTORY",
            Self::Now | Self::What => "NOW",
        }
    }

    /// Whether its texts are cut to fit; the others are always whole.
    fn is_cut(self) -> bool {
        matches!(self, Self::Title | Self::Directory | Self::Now | Self::What)
    }
}

/// The table with one line of headings.
pub(super) fn table(sessions: &[Session], now: Timestamp, paper: Paper) -> String {
    let listed: HashSet<SessionId> = sessions.iter().map(|session| session.id).collect();
    let mut children: HashMap<SessionId, Vec<&Session>> = HashMap::new();
    let mut ordered: Vec<&Session> = Vec::new();
    for session in sessions {
        match session.parent_session_id.filter(|parent| listed.contains(parent)) {
            Some(parent) => children.entry(parent).or_default().push(session),
            None => ordered.push(session),
        }
    }
    ordered.sort_by_key(|s| (urgency(s.status.state), Reverse(s.last_event_at)));
    let columns = Column::of(paper.width);
    let mut table = Table::new();
    table.load_style(TableStyle::new());
    match paper.width {
        Some(width) => {
            table.set_content_arrangement(ContentArrangement::Dynamic);
            table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
        }
        None => {
            table.set_content_arrangement(ContentArrangement::Disabled);
        }
    }
    if paper.colour {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    table.set_header(columns.iter().map(|column| column.heading()));
    let is_narrow = paper.width.is_some_and(|width| width < ROOM_FOR_AGENT);
    for session in ordered {
        add(&mut table, &columns, session, "", now, is_narrow);
        let mut below = children.remove(&session.id).unwrap_or_default();
        below.sort_by_key(|s| s.started_at);
        for child in below {
            add(&mut table, &columns, child, "└ ", now, is_narrow);
        }
    }
    let last = columns.len().saturating_sub(1);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, if index == last { 0 } else { 2 }));
        match columns.get(index) {
            Some(column) if column.is_cut() => {}
            // The short columns are never cut; what is left goes to the long ones.
            _ => {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
    }
    if let (Some(width), Some(column)) = (paper.width, table.column_mut(last)) {
        // A text is worth nothing that is narrower than this.
        column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(u16::try_from(width / 4).unwrap_or(20))));
    }
    format!("{}\n", table.trim_fmt())
}

fn add(table: &mut Table, columns: &[Column], session: &Session, indent: &str, now: Timestamp, is_narrow: bool) {
    let cells = columns.iter().map(|column| match column {
        Column::State => {
            let words =
                if is_narrow { style::short_state(&session.status) } else { style::state(&session.status, false) };
            in_colour(Cell::new(format!("{indent}{words}")), session.status.state)
        }
        Column::For => Cell::new(style::age(session.status.since, now)),
        Column::Agent => Cell::new(session.provider.to_string()),
        Column::Session => Cell::new(style::short(&session.id)),
        Column::Title => Cell::new(text(session.title.as_deref(), columns, TITLE_CHARS)),
        Column::Directory => {
            let path = session.cwd.as_deref().map(style::path);
            Cell::new(text(path.as_deref(), columns, DIRECTORY_CHARS))
        }
        Column::Now => Cell::new(text(doing(session), columns, TEXT_CHARS)),
        Column::What => Cell::new(text(Some(&what(session)), columns, TEXT_CHARS)),
    });
    let mut row = Row::from(cells.collect::<Vec<_>>());
    row.max_height(1);
    table.add_row(row);
}

/// A text on one line. Where lines have no limit, nothing is cut but what nobody would read.
fn text(text: Option<&str>, columns: &[Column], most: usize) -> String {
    let is_limited = columns.len() < 7 || most == TEXT_CHARS;
    let most = if is_limited { most } else { TEXT_CHARS.min(most * 2) };
    safe(&projections::shorten::verbatim_line(text.unwrap_or(""), most))
}

/// What is going on. Of a request its subject alone: the state says already that it waits.
fn doing(session: &Session) -> Option<&str> {
    let (current, activity) = (session.summary.current.as_deref(), session.status.activity.as_deref());
    if session.status.state == State::WaitingApproval { activity.or(current) } else { current.or(activity) }
}

/// The most telling of title and activity in few characters.
fn what(session: &Session) -> String {
    let title = session.title.as_deref().unwrap_or_default();
    let activity = match session.status.state {
        State::WaitingApproval | State::Waiting | State::Running | State::Unknown => doing(session),
        State::Idle | State::Exited => None,
    };
    match (session.status.state, activity.unwrap_or_default(), title) {
        (_, "", title) => title.to_owned(),
        (_, activity, "") => activity.to_owned(),
        (State::WaitingApproval, activity, title) => format!("{activity} · {title}"),
        (_, activity, title) => format!("{title} · {activity}"),
    }
}

fn in_colour(cell: Cell, state: State) -> Cell {
    // The dark colours: on a white background the bright yellow cannot be read.
    match state {
        State::Running => cell.fg(Color::DarkGreen),
        State::Waiting => cell.fg(Color::DarkYellow),
        State::WaitingApproval => cell.fg(Color::DarkRed).add_attribute(Attribute::Bold),
        State::Idle | State::Exited => cell.add_attribute(Attribute::Dim),
        State::Unknown => cell.fg(Color::DarkMagenta),
    }
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

#[cfg(test)]
mod tests;
