//! The table of sessions: those that need the user first, sub-agents below their parent.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
};

use comfy_table::{Attribute, Cell, Color, ColumnConstraint, ContentArrangement, Row, Table, TableStyle, Width};
use events::{Confidence, Need, Reason, SessionId, State, Timestamp};
use printing::style;
use projections::{AttentionItem, Session};

use printing::safe;

/// The output a table is written to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paper {
    /// Width in columns of text; `None` in a pipe or file, where lines may have any length.
    pub(super) width: Option<usize>,
    /// Whether the output supports colours.
    pub(super) colour: bool,
}

/// What sessions need from the user.
#[derive(Debug, Default)]
pub(in crate::commands) struct Needs(HashMap<SessionId, AttentionItem>);

impl Needs {
    pub(super) fn new(items: Vec<AttentionItem>) -> Self {
        Self(items.into_iter().map(|item| (item.session_id, item)).collect())
    }

    pub(in crate::commands) fn of(&self, session: &Session) -> Option<Need> {
        self.0.get(&session.id).map(|item| item.need)
    }

    /// The summary of a finding about a session whose state does not show that it needs attention.
    pub(in crate::commands) fn hidden(&self, session: &Session) -> Option<String> {
        let item = self.0.get(&session.id).filter(|item| matches!(item.need, Need::Stuck | Need::Failure))?;
        let is_hidden = !matches!(session.status.state, State::Waiting | State::WaitingApproval);
        let what = item.what.as_deref().or(item.why.as_deref()).filter(|_| is_hidden)?;
        Some(format!("{}: {what}", item.need.as_str()))
    }
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
    /// Title and activity in one column, if there is no room for two.
    What,
}

/// Minimum width for an agent column, columns of text.
const ROOM_FOR_AGENT: usize = 64;
/// Minimum width for a directory column.
const ROOM_FOR_DIRECTORY: usize = 72;
/// Minimum width for separate title and activity columns, and for the reasons of states.
const ROOM_FOR_TITLE: usize = 110;

/// Minimum width for full paths and long titles.
const ROOM_FOR_PATHS: usize = 160;

/// Maximum number of characters of a title in a table of limited width.
const TITLE_CHARS: usize = 36;
/// Maximum number of characters of a directory in a table of limited width.
const DIRECTORY_CHARS: usize = 18;
/// Maximum number of characters of any text.
const TEXT_CHARS: usize = 300;

impl Column {
    fn of(width: Option<usize>) -> Vec<Self> {
        use Column::{Agent, Directory, For, Now, Session, State, Title, What};
        match width.unwrap_or(usize::MAX) {
            ROOM_FOR_TITLE.. => vec![State, For, Agent, Session, Directory, Title, Now],
            ROOM_FOR_DIRECTORY.. => vec![State, For, Agent, Session, Directory, What],
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

    /// Whether the column's texts are cut to fit; other columns are always shown in full.
    fn is_cut(self) -> bool {
        matches!(self, Self::Title | Self::Directory | Self::Now | Self::What)
    }
}

/// The table with one heading line.
pub(super) fn table(sessions: &[Session], needs: &Needs, now: Timestamp, paper: Paper) -> String {
    let listed: HashSet<SessionId> = sessions.iter().map(|session| session.id).collect();
    let mut children: HashMap<SessionId, Vec<&Session>> = HashMap::new();
    let mut ordered: Vec<&Session> = Vec::new();
    for session in sessions {
        match session.parent_session_id.filter(|parent| listed.contains(parent)) {
            Some(parent) => children.entry(parent).or_default().push(session),
            None => ordered.push(session),
        }
    }
    ordered.sort_by_key(|s| (urgency(s, needs), Reverse(s.last_event_at)));
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
    let is_narrower = |than: usize| paper.width.is_some_and(|width| width < than);
    let (is_short, is_wide) = (is_narrower(ROOM_FOR_TITLE), !is_narrower(ROOM_FOR_PATHS));
    let shape = RowShape { columns: &columns, now, is_short, is_wide };
    for session in ordered {
        add(&mut table, &shape, session, needs, "");
        let mut below = children.remove(&session.id).unwrap_or_default();
        below.sort_by_key(|s| s.started_at);
        for child in below {
            add(&mut table, &shape, child, needs, "└ ");
        }
    }
    let last = columns.len().saturating_sub(1);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, if index == last { 0 } else { 2 }));
        match columns.get(index) {
            Some(column) if column.is_cut() => {}
            // The short columns are never cut; the long ones share the rest.
            _ => {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
    }
    if let (Some(width), Some(column)) = (paper.width, table.column_mut(last)) {
        // A text narrower than this would be useless.
        column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(u16::try_from(width / 4).unwrap_or(20))));
    }
    format!("{}\n", table.trim_fmt())
}

/// The settings shared by all rows.
struct RowShape<'a> {
    columns: &'a [Column],
    now: Timestamp,
    /// Whether to show states without their reasons.
    is_short: bool,
    /// Whether there is room for full directories and titles.
    is_wide: bool,
}

fn add(table: &mut Table, shape: &RowShape<'_>, session: &Session, needs: &Needs, indent: &str) {
    let RowShape { columns, now, is_short, is_wide } = *shape;
    let need = needs.of(session);
    let cells = columns.iter().map(|column| match column {
        Column::State => {
            let status = &session.status;
            // The turn is over, and the user has not looked at its result yet.
            let is_unseen = status.state == State::Idle && need == Some(Need::Prompt);
            // A sub-agent gets no prompts from the user, and its parent has the result.
            let is_over = session.parent_session_id.is_some()
                && (status.state, status.reason) == (State::Waiting, Some(Reason::TurnComplete));
            let words = match is_unseen {
                _ if is_over => "○ done".to_owned(),
                true => "◆ done".to_owned(),
                false if is_short => style::short_state(status),
                false => style::state(status, false),
            };
            let doubt = if is_doubtful(session) { " ?" } else { "" };
            let seen_as = is_over.then_some(State::Idle).or(is_unseen.then_some(State::Waiting));
            let state = seen_as.unwrap_or(status.state);
            in_colour(Cell::new(format!("{indent}{words}{doubt}")), state, doubt.is_empty())
        }
        Column::For => Cell::new(style::age(session.status.since, now)),
        Column::Agent => Cell::new(session.provider.to_string()),
        Column::Session => Cell::new(style::short(&session.id)),
        Column::Title => {
            let most = if is_wide { 2 * TITLE_CHARS } else { TITLE_CHARS };
            Cell::new(text(session.title.as_deref().unwrap_or_default(), most))
        }
        Column::Directory => {
            let path = session.cwd.as_deref().map(style::path);
            let path = path.as_deref().unwrap_or_default();
            // The last component distinguishes directories best.
            let last = path.rsplit('/').find(|name| !name.is_empty()).unwrap_or(path);
            Cell::new(if is_wide { text(path, 2 * DIRECTORY_CHARS) } else { text(last, DIRECTORY_CHARS) })
        }
        Column::Now => Cell::new(text(&doing(session, needs), TEXT_CHARS)),
        Column::What => Cell::new(text(&what(session, needs), TEXT_CHARS)),
    });
    let mut row = Row::from(cells.collect::<Vec<_>>());
    row.max_height(1);
    table.add_row(row);
}

/// A text on one line.
fn text(text: &str, most: usize) -> String {
    safe(&projections::shorten::verbatim_line(text, most))
}

/// The current activity. For a request only its subject, because the state already shows that it waits.
fn doing(session: &Session, needs: &Needs) -> String {
    if let Some(hidden) = needs.hidden(session) {
        return hidden;
    }
    let (current, activity) = (session.summary.current.as_deref(), session.status.activity.as_deref());
    let is_approval = session.status.state == State::WaitingApproval;
    let doing = if is_approval { activity.or(current) } else { current.or(activity) }.unwrap_or_default();
    // A call without a result may be a dialog that capture cannot see.
    let may_ask = is_doubtful(session) && session.status.reason == Some(Reason::Tool);
    match &session.summary.checks {
        _ if may_ask => format!("may be asking: {doing}"),
        // What the agent did comes before what it says it did.
        Some(checks) if doing.starts_with("done") => format!("{checks} · {doing}"),
        Some(_) | None => doing.to_owned(),
    }
}

/// Whether the state has low confidence.
fn is_doubtful(session: &Session) -> bool {
    let says = matches!(session.status.state, State::Running | State::Waiting | State::WaitingApproval);
    says && session.status.confidence == Confidence::Low
}

/// The more informative of title and activity, shortened.
fn what(session: &Session, needs: &Needs) -> String {
    let title = session.title.as_deref().unwrap_or_default();
    if let Some(hidden) = needs.hidden(session) {
        return if title.is_empty() { hidden } else { format!("{hidden} · {title}") };
    }
    let activity = match session.status.state {
        State::WaitingApproval | State::Waiting | State::Running | State::Unknown => doing(session, needs),
        State::Idle | State::Exited => session.summary.checks.clone().unwrap_or_default(),
    };
    match (session.status.state, activity.as_str(), title) {
        (_, "", title) => title.to_owned(),
        (_, activity, "") => activity.to_owned(),
        (State::WaitingApproval, activity, title) => format!("{activity} · {title}"),
        (_, activity, title) => format!("{title} · {activity}"),
    }
}

fn in_colour(cell: Cell, state: State, is_sure: bool) -> Cell {
    if !is_sure {
        return cell.fg(Color::DarkMagenta);
    }
    // The dark colours, because bright yellow is unreadable on a white background.
    match state {
        State::Running => cell.fg(Color::DarkGreen),
        State::Waiting => cell.fg(Color::DarkYellow),
        State::WaitingApproval => cell.fg(Color::DarkRed).add_attribute(Attribute::Bold),
        State::Idle | State::Exited => cell.add_attribute(Attribute::Dim),
        State::Unknown => cell.fg(Color::DarkMagenta),
    }
}

fn urgency(session: &Session, needs: &Needs) -> u8 {
    let by_state = match session.status.state {
        State::WaitingApproval => 0,
        State::Waiting => 2,
        State::Running => 3,
        State::Unknown => 4,
        State::Idle => 5,
        State::Exited => 6,
    };
    match needs.of(session) {
        Some(Need::Approval | Need::Question) => 0,
        Some(Need::Failure | Need::Stuck) => by_state.min(1),
        Some(Need::Prompt) => by_state.min(2),
        None => by_state,
    }
}

#[cfg(test)]
mod tests;
