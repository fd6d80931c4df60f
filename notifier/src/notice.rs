//! Notices: one [`Notice`] for each cause that may need the user.

use std::fmt;

use events::{FindingKind, Timestamp};
use serde::{Deserialize, Serialize};

use crate::text;

/// The severity of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// For information.
    #[default]
    Info,
    /// The user should look.
    Warning,
    /// The user must look now; may break through quiet hours. The severity `error` of a finding.
    #[serde(alias = "error")]
    Urgent,
}

/// A cause that may need the user. The caller has redacted all its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// Its cause, the same for every notice about it: the id of an approval or of a finding.
    pub cause: String,
    /// The kind of finding, by which rules are chosen.
    pub kind: FindingKind,
    /// Its severity.
    pub severity: Severity,
    /// The id of the session.
    pub session: String,
    /// The displayed name of the session.
    pub session_label: String,
    /// The displayed name of the project; may be empty.
    pub project: String,
    /// One line, which names the tool: `Bash asks for permission`.
    pub title: String,
    /// The subject: the tool and the command.
    pub body: String,
    /// Link to the details.
    pub url: Option<String>,
    /// The run that hosts the session.
    pub run: Option<String>,
    /// When the cause began.
    pub at: Timestamp,
    /// Buttons that answer it, for channels whose settings request them. They appear in no other message.
    #[serde(skip)]
    pub buttons: Option<AnswerButtons>,
}

/// Buttons that answer a permission request from a message. Each sends a request with a single-use token that is valid
/// for a few minutes.
#[derive(Clone, PartialEq, Eq)]
pub struct AnswerButtons {
    /// The address of the request.
    pub url: String,
    /// The token that allows the request once; `None` for a request that needs more care than a tap.
    pub allow: Option<String>,
    /// The text that a message must contain for that button: its title ends with it, or it is a line of the body. Names
    /// chosen by the model or the repository precede it.
    pub sentence: String,
    /// The token that denies the request.
    pub deny: String,
}

impl fmt::Debug for AnswerButtons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerButtons").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Notice {
    /// The notice with all text shortened and made safe to display.
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

/// The user's presence, as it concerns a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// At the terminal of the session, so the user sees the cause directly.
    AtTerminal,
    /// Somewhere else.
    Away,
    /// Not known; treated as away.
    Unknown,
}

/// A time, and the local time at that moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalTime {
    /// The time.
    pub at: Timestamp,
    /// Seconds the local time is ahead of UTC.
    pub utc_offset_s: i32,
}

impl LocalTime {
    /// A time at which the local time is UTC.
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
