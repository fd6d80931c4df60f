//! The timeline: notable events of all sessions by time, which have their own index.

use events::{Event, Kind, Provider, SessionId, Severity, Timestamp};
use rusqlite::ToSql;

use crate::{
    error::ReadError,
    reader::{Reader, clamp},
};

/// The events of the timeline: one bit for each kind, plus failures of any kind. The index `events_notable` must
/// contain exactly the same expression, otherwise SQLite would not use it.
const NOTABLE: &str = "((59616310 >> e.kind & 1) <> 0 OR e.marks & 8 <> 0)";

/// The kinds whose events are all on the timeline. Of other kinds, only failures are.
pub const NOTABLE_KINDS: &[Kind] = &[
    Kind::SessionStarted,
    Kind::SessionExited,
    Kind::TurnCompleted,
    Kind::UserPrompt,
    Kind::ApprovalRequested,
    Kind::ApprovalResolved,
    Kind::Error,
    Kind::QuestionAsked,
    Kind::QuestionAnswered,
    Kind::ContextCompacted,
    Kind::SessionForked,
    Kind::Finding,
    Kind::Notification,
    Kind::QueuedPrompt,
];

/// The kinds whose events are all failures.
const FAILURE_KINDS: &[Kind] = &[Kind::Error, Kind::Finding];

/// Actual and possible failures of any kind.
const FAILURE: &str = "(e.marks & 8 <> 0 OR e.kind IN (13, 23))";

/// Whether an event is on the timeline, as [`Reader::timeline`] selects it.
#[must_use]
pub fn is_notable(event: &Event) -> bool {
    has_failed(event) || NOTABLE_KINDS.contains(&event.payload.kind())
}

/// Whether an event reports an actual or possible failure, as [`TimelineFilter::failures`] selects it.
#[must_use]
pub fn is_failure(event: &Event) -> bool {
    has_failed(event) || FAILURE_KINDS.contains(&event.payload.kind())
}

fn has_failed(event: &Event) -> bool {
    event.severity.is_some_and(|severity| severity >= Severity::Warning)
}

/// Selects a part of the timeline.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimelineFilter {
    /// Only events before this one: its time and position.
    pub before: Option<(Timestamp, u64)>,
    /// Only events at this time or later.
    pub since: Option<Timestamp>,
    /// Only events before this time.
    pub until: Option<Timestamp>,
    /// Only events of these kinds; empty means all notable events.
    pub kinds: Vec<Kind>,
    /// Only sessions of these agents; empty means all.
    pub providers: Vec<Provider>,
    /// Only this session.
    pub session: Option<SessionId>,
    /// Only sessions whose working directory is this one or below it.
    pub cwd: Option<String>,
    /// Only actual and possible failures.
    pub failures: bool,
    /// Maximum number of events.
    pub limit: usize,
}

impl Reader {
    /// Notable events of all sessions, newest first.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn timeline(&self, filter: &TimelineFilter) -> Result<Vec<Event>, ReadError> {
        let mut tail = format!("WHERE {NOTABLE}");
        let mut parameters: Vec<Box<dyn ToSql>> = Vec::new();
        let mut add = |condition: &str, values: Vec<Box<dyn ToSql>>| {
            tail += condition;
            parameters.extend(values);
        };
        if let Some((at, position)) = filter.before {
            let at = at.as_millisecond();
            add(" AND (e.created_at, e.position) < (?, ?)", vec![Box::new(at), Box::new(clamp(position))]);
        }
        if let Some(since) = filter.since {
            add(" AND e.created_at >= ?", vec![Box::new(since.as_millisecond())]);
        }
        if let Some(until) = filter.until {
            add(" AND e.created_at < ?", vec![Box::new(until.as_millisecond())]);
        }
        if !filter.kinds.is_empty() {
            add(&format!(" AND e.kind IN ({})", codes(filter.kinds.iter().map(|kind| kind.code()))), vec![]);
        }
        if !filter.providers.is_empty() {
            let codes = codes(filter.providers.iter().map(|provider| provider.code()));
            // The `+` keeps SQLite from reading and sorting all events of an agent's sessions.
            add(&format!(" AND +s.provider IN ({codes})"), vec![]);
        }
        if let Some(session) = filter.session {
            add(" AND s.id = ?", vec![Box::new(session.to_bytes().to_vec())]);
        }
        if let Some(cwd) = &filter.cwd {
            let cwd = cwd.trim_end_matches('/').to_owned();
            let below = format!("{cwd}/");
            add(
                " AND s.key IN (SELECT key FROM sessions, (SELECT ? AS cwd, ? AS below) WHERE json_valid(view) \
                 AND (json_extract(view, '$.cwd') = cwd OR substr(json_extract(view, '$.cwd'), 1, length(below)) = below))",
                vec![Box::new(cwd), Box::new(below)],
            );
        }
        if filter.failures {
            add(&format!(" AND {FAILURE}"), vec![]);
        }
        tail += " ORDER BY e.created_at DESC, e.position DESC LIMIT ?";
        parameters.push(Box::new(clamp(filter.limit as u64)));
        let parameters: Vec<&dyn ToSql> = parameters.iter().map(AsRef::as_ref).collect();
        self.select(&tail, &parameters)
    }
}

fn codes(codes: impl Iterator<Item = u8>) -> String {
    codes.map(|code| code.to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_lists_exactly_the_notable_and_failure_kinds() {
        let bits = NOTABLE_KINDS.iter().fold(0_u64, |bits, kind| bits | 1 << kind.code());
        assert_eq!(NOTABLE, format!("(({bits} >> e.kind & 1) <> 0 OR e.marks & 8 <> 0)"));
        let failures = codes(FAILURE_KINDS.iter().map(|kind| kind.code()));
        assert_eq!(FAILURE, format!("(e.marks & 8 <> 0 OR e.kind IN ({failures}))"));
    }

    #[test]
    fn the_failure_bit_is_set_for_warning_and_higher_severities() {
        for severity in Severity::ALL {
            let is_marked = (i64::from(severity.code()) << 2) & 8 != 0;
            assert_eq!(is_marked, *severity >= Severity::Warning, "{severity:?}");
        }
    }

    #[test]
    fn the_timeline_query_uses_the_notable_events_index() {
        let mut connection = rusqlite::Connection::open_in_memory().unwrap();
        crate::schema::migrate(&mut connection).unwrap();
        let plan =
            format!("EXPLAIN QUERY PLAN SELECT e.position FROM events e WHERE {NOTABLE} ORDER BY e.created_at DESC");
        let plan: String = connection.query_row(&plan, [], |row| row.get(3)).unwrap();
        assert!(plan.contains("events_notable"), "{plan}");
    }
}
