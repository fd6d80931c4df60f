//! Queries, parsed into a tree.
//!
//! The parser is our own, so that every error names its column and code can be pasted into a query. Start at
//! [`ParsedQuery::parse`].

mod parser;
mod time;

use std::ops::Range;

use events::Timestamp;
use jiff::tz::TimeZone;

pub(crate) use parser::directory;

/// A parsed query.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedQuery(pub(crate) Node);

/// The reference time for parsing a query.
#[derive(Debug, Clone)]
pub struct Clock {
    /// The current time.
    pub now: Timestamp,
    /// The time zone of dates.
    pub zone: TimeZone,
}

/// A query that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}{hint}", place(*column))]
pub struct QueryError {
    /// The error.
    pub what: String,
    /// The column, counted in characters from 1; 0 if the error is in the query as a whole.
    pub column: usize,
    /// Advice, preceded by `; `; may be empty.
    pub hint: String,
}

/// The place of an error, before its message.
fn place(column: usize) -> String {
    if column == 0 { String::new() } else { format!("column {column}: ") }
}

/// A part of a query.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    /// Matches every text.
    All,
    /// One condition.
    Leaf(Field, Condition),
    /// All of these.
    And(Vec<Self>),
    /// At least one of these.
    Or(Vec<Self>),
    /// Everything except this.
    Not(Box<Self>),
}

/// The field a condition applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    Text,
    Session,
    Agent,
    Kind,
    Tool,
    Time,
    Cwd,
    Project,
    Model,
    Outcome,
    File,
}

impl Field {
    /// The fields that a query can name.
    const NAMED: &'static [(&'static str, Self)] = &[
        ("session", Self::Session),
        ("agent", Self::Agent),
        ("kind", Self::Kind),
        ("tool", Self::Tool),
        ("time", Self::Time),
        ("cwd", Self::Cwd),
        ("project", Self::Project),
        ("model", Self::Model),
        ("outcome", Self::Outcome),
        ("file", Self::File),
        ("text", Self::Text),
    ];
}

/// The condition on a field's value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Condition {
    /// These parts in sequence; scores higher if they occur as one word spelled this way.
    Words { parts: Vec<String>, whole: Option<String> },
    /// These parts in sequence, the last one as the beginning of a word.
    Prefix(Vec<String>),
    /// A word that differs from this one in a few letters.
    Fuzzy { word: String, distance: u8 },
    /// Exactly this value.
    Exact(String),
    /// A value that begins with this.
    Begins(String),
    /// From the first time on and before the second.
    During(Range<i64>),
}

impl ParsedQuery {
    /// Parses a query. An empty one matches every text.
    ///
    /// # Errors
    /// When it cannot be parsed; the error names the column.
    pub fn parse(text: &str, clock: &Clock) -> Result<Self, QueryError> {
        parser::parse(text, clock).map(Self)
    }

    /// The conditions on the text whose matches a snippet may show.
    pub(crate) fn shown_conditions(&self) -> Vec<&Condition> {
        fn collect<'a>(node: &'a Node, out: &mut Vec<&'a Condition>) {
            match node {
                Node::Leaf(Field::Text | Field::File, condition) => out.push(condition),
                Node::And(nodes) | Node::Or(nodes) => nodes.iter().for_each(|node| collect(node, out)),
                Node::All | Node::Leaf(..) | Node::Not(_) => {}
            }
        }
        let mut out = Vec::new();
        collect(&self.0, &mut out);
        out
    }
}

#[cfg(test)]
mod tests;
