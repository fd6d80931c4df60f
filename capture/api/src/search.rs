//! Full-text search over all sessions.

use std::{fmt, str::FromStr};

use events::{EventId, Provider, SessionId, Timestamp, TurnId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::list::{CommaList, Limit};

macro_rules! kinds {
    ($($(#[doc = $about:literal])+ $name:ident = $text:literal / $code:literal;)*) => {
        /// The kind of a text.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum TextKind {
            $($(#[doc = $about])+ $name,)*
        }

        impl TextKind {
            /// All kinds.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The name in all interfaces.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The number of the kind in the index.
            #[must_use]
            pub const fn code(self) -> u64 {
                match self { $(Self::$name => $code,)* }
            }

            /// The kind with this number.
            #[must_use]
            pub const fn from_code(code: u64) -> Option<Self> {
                match code { $($code => Some(Self::$name),)* _ => None }
            }
        }
    };
}

kinds! {
    /// A prompt of a person or another agent.
    Prompt = "prompt" / 1;
    /// An answer of the agent.
    Answer = "answer" / 2;
    /// The readable part of the model's thinking.
    Thinking = "thinking" / 3;
    /// The input of a tool: a command, a path, a text to write.
    Call = "call" / 4;
    /// What a tool returned.
    Output = "output" / 5;
    /// An error that the agent reported.
    Error = "error" / 6;
    /// A question of the agent to the user.
    Question = "question" / 7;
    /// The summary that replaced a compacted conversation.
    Summary = "summary" / 8;
    /// The title of a session.
    Title = "title" / 9;
    /// A remark of the agent or the user, or a line of the agent's screen.
    Note = "note" / 10;
    /// A permission request, or the decision about it.
    Approval = "approval" / 11;
    /// A finding: a failure, a limit, a session that is stuck.
    Finding = "finding" / 12;
}

impl fmt::Display for TextKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for TextKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == text).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|kind| kind.as_str()).collect();
            format!("unknown kind `{}`; expected one of {}", crate::part::shown(text), names.join(", "))
        })
    }
}

/// The order of hits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchSort {
    /// The best match first.
    #[default]
    Relevance,
    /// The newest first.
    Time,
}

/// What to search for. At least `q` or one filter is required.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SearchQuery {
    /// Words, `"phrases"`, `field:value`, `prefix*`, `fuzzy~1`, `AND`, `OR`, `NOT`, `-word` and parentheses.
    pub q: Option<String>,
    /// Only this session. Any of its ids is accepted.
    pub session: Option<String>,
    /// Only sessions of these agents.
    #[serde(skip_serializing_if = "CommaList::is_empty")]
    pub agent: CommaList<Provider>,
    /// Only texts of these kinds.
    #[serde(skip_serializing_if = "CommaList::is_empty")]
    pub kind: CommaList<TextKind>,
    /// Only calls and outputs of this tool, by its name or kind.
    pub tool: Option<String>,
    /// Only sessions that began in a directory with this name.
    pub project: Option<String>,
    /// Only texts of sessions that were working in this directory or below it; an absolute path.
    pub cwd: Option<String>,
    /// Only texts from this time on.
    pub since: Option<Timestamp>,
    /// Only texts before this time.
    pub until: Option<Timestamp>,
    /// The order (default `relevance`).
    pub sort: Option<SearchSort>,
    /// The `next_cursor` of the previous page.
    pub cursor: Option<String>,
    /// Hits on a page (default 20, at most 1000).
    pub limit: Option<Limit>,
}

/// A page of hits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchPage {
    /// The hits.
    pub hits: Vec<SearchHit>,
    /// Number of texts that match.
    pub matches: u64,
    /// Whether more texts than `matches` may match, because matches of a phrase are counted only up to 1,000.
    #[serde(default)]
    pub at_least: bool,
    /// The position of the log up to which texts are searchable.
    pub indexed: u64,
    /// The last committed position of the log; larger than `indexed` while the index is built.
    pub total: u64,
    /// How long the search took, microseconds.
    pub took_us: u64,
    /// Continues the list; `null` on the last page.
    pub next_cursor: Option<String>,
}

/// A text that matches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchHit {
    /// The session.
    pub session_id: SessionId,
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The agent.
    pub agent: Provider,
    /// The kind of the text.
    pub kind: TextKind,
    /// When it was written.
    pub at: Timestamp,
    /// The event it belongs to.
    pub id: EventId,
    /// The position of that event in the log.
    pub position: u64,
    /// Its sequence within the session.
    pub sequence: u64,
    /// The turn it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    /// The number of that turn within the session, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// The location of its record in a file of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceRange>,
    /// How well it matches; comparable within one search only.
    pub score: f32,
    /// The part of the text that matches.
    pub snippet: Snippet,
}

/// The bytes of a record in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceRange {
    /// The file, absolute.
    pub path: String,
    /// Where the record begins, bytes.
    pub offset: u64,
    /// Its length, bytes.
    pub length: u64,
}

/// A part of a text, without secrets, on one line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Snippet {
    /// The text; `…` marks omissions.
    pub text: String,
    /// The matches: ranges of `text`, bytes, in order and without overlaps.
    pub highlights: Vec<[usize; 2]>,
}

/// The state of the index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IndexState {
    /// Everything is searchable except the last moments.
    Ready,
    /// Texts are being added.
    #[default]
    Building,
    /// Nothing can be added at the moment; `trouble` says why.
    Paused,
}

/// The state and progress of the index.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IndexStatus {
    /// Its state.
    pub state: IndexState,
    /// The position of the log up to which texts are searchable.
    pub indexed: u64,
    /// The last committed position of the log.
    pub total: u64,
    /// Number of searchable texts.
    pub texts: u64,
    /// Its size on the disk, bytes.
    pub bytes: u64,
    /// Why nothing can be added at the moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_kinds_round_trip_through_name_and_code() {
        for kind in TextKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(*kind));
            assert_eq!(TextKind::from_code(kind.code()), Some(*kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
        assert!("x".parse::<TextKind>().unwrap_err().contains("expected one of prompt, answer"));
    }
}
