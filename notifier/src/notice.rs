//! Notices: one [`Notice`] for each cause that may need a person.

use std::fmt;

use events::{FindingKind, Timestamp};
use serde::{Deserialize, Serialize};

use crate::text;

/// How much a notice matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    #[default]
    Info,
    /// Somebody should look.
    Warning,
    /// Somebody must look now; may break through quiet hours. The severity `error` of a finding.
    #[serde(alias = "error")]
    Urgent,
}

/// Something that may need a person. The caller has redacted all its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// What made it, the same for every notice of one cause: the id of an approval, of a finding.
    pub cause: String,
    /// The kind of finding, by which rules are chosen.
    pub kind: FindingKind,
    /// How much it matters.
    pub severity: Severity,
    /// The id of the session.
    pub session: String,
    /// What people call the session.
    pub session_label: String,
    /// What people call the project; may be empty.
    pub project: String,
    /// One line, which names the tool: `Bash asks for permission`.
    pub title: String,
    /// What it is about: the tool and the command.
    pub body: String,
    /// Link to the details.
    pub url: Option<String>,
    /// The run at whose terminal the session is.
    pub run: Option<String>,
    /// When the cause began.
    pub at: Timestamp,
    /// Buttons that answer it, for channels whose settings ask for them. They are part of nothing else that is sent.
    #[serde(skip)]
    pub buttons: Option<AnswerButtons>,
}

/// Buttons that answer a permission request from a message: each sends a request with a token that is good once and for
/// a few minutes.
#[derive(Clone, PartialEq, Eq)]
pub struct AnswerButtons {
    /// Where the request goes.
    pub url: String,
    /// The token that allows it once; `None` for a request that deserves more than a tap.
    pub allow: Option<String>,
    /// What a message has to say for that button: its title ends with it, or it is a line of the body. What the model or
    /// the repository named stands before it.
    pub sentence: String,
    /// The token that denies it.
    pub deny: String,
}

impl fmt::Debug for AnswerButtons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerButtons").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Notice {
    /// The notice with all its display text made safe and short.
    #[must_use]
    pub fn shown(self) -> Self {
        Self {
            session_label: text::line(&self.session_label, text::NAME_CHARS),
            project: text::line(&self.project, text::NAME_CHARS),
            title: text::line(&self.title, text::TITLE_CHARS),
            body: text::lines(&self.body, text::BODY_CHARS),
            url: self.url.as_deref().and_then(text::link),
            ..self
        }
    }
}

/// Where the user is, as far as a notice is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// At the terminal of the session: they see for themselves.
    AtTerminal,
    /// Somewhere else.
    Away,
    /// Not known; treated as away.
    Unknown,
}

/// A moment, and what the clock on the wall shows then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalTime {
    /// The moment.
    pub at: Timestamp,
    /// Seconds the local time is ahead of UTC.
    pub utc_offset_s: i32,
}

impl LocalTime {
    /// A moment where the local time is UTC.
    #[must_use]
    pub const fn utc(at: Timestamp) -> Self {
        Self { at, utc_offset_s: 0 }
    }

    /// Milliseconds since the last local midnight.
    #[must_use]
    pub const fn day_ms(self) -> i64 {
        self.at.plus_ms(self.utc_offset_s as i64 * 1000).as_millisecond().rem_euclid(DAY_MS)
    }
}

/// Number of milliseconds in a day.
pub(crate) const DAY_MS: i64 = 86_400_000;
