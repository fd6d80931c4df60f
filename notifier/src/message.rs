//! Messages: an [`OutgoingMessage`] to one channel, about one or several notices.

use events::{MessageId, Timestamp};
use serde::Serialize;

use crate::{config::rule::Loudness, notice::Notice, text};

/// Maximum number of notices named in a list.
const LISTED: usize = 15;
/// Maximum number of characters of a line of a list.
const LISTED_CHARS: usize = 160;

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageForm {
    /// One notice.
    Single,
    /// Several notices that arrived at about the same time.
    Group,
    /// The notices held back during quiet hours.
    Digest,
    /// A repeated notice, with the number of the repeat.
    Repeat(u32),
    /// Requested to check whether the channel works.
    Test,
}

/// One message for one channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingMessage {
    /// The id; it is the same for every attempt, and for the same message after a restart.
    pub id: MessageId,
    /// The name of its channel.
    pub channel: String,
    /// Its kind.
    pub form: MessageForm,
    /// Its loudness.
    pub loudness: Loudness,
    /// All its notices, oldest first; safe to display.
    pub notices: Vec<Notice>,
    /// One line; names the session.
    pub title: String,
    /// The text below it.
    pub body: String,
    /// When the decision to send it was made.
    pub at: Timestamp,
}

impl OutgoingMessage {
    /// Composes a message. The notices must be safe to display ([`Notice::shown`]).
    #[must_use]
    pub fn new(channel: &str, form: MessageForm, loudness: Loudness, notices: Vec<Notice>, at: Timestamp) -> Self {
        let (title, body) = words(form, &notices);
        let id = id(channel, form, &notices);
        Self { id, channel: channel.to_owned(), form, loudness, notices, title, body, at }
    }

    /// A message for testing a channel.
    #[must_use]
    pub fn test(channel: &str, at: Timestamp) -> Self {
        let mut message = Self::new(channel, MessageForm::Test, Loudness::Normal, Vec::new(), at);
        message.id = hash(&[channel, "test", &at.to_string()]);
        message
    }

    /// The causes of its notices.
    #[must_use]
    pub fn causes(&self) -> Vec<String> {
        self.notices.iter().map(|n| n.cause.clone()).collect()
    }

    /// The address with details: for a single notice its own, for several the one that they share.
    #[must_use]
    pub fn url(&self) -> Option<&str> {
        let first = self.notices.first()?.url.as_deref()?;
        self.notices.iter().all(|n| n.url.as_deref() == Some(first)).then_some(first)
    }
}

/// The id is derived from the notices, the form and the channel, so that a receiver that got the message before a crash
/// recognizes it.
fn id(channel: &str, form: MessageForm, notices: &[Notice]) -> MessageId {
    let (form, repeat) = match form {
        MessageForm::Single => ("single", 0),
        MessageForm::Group => ("group", 0),
        MessageForm::Digest => ("digest", 0),
        MessageForm::Repeat(n) => ("repeat", n),
        MessageForm::Test => ("test", 0),
    };
    let repeat = repeat.to_string();
    let mut parts = vec![channel, form, repeat.as_str()];
    let times: Vec<String> = notices.iter().map(|n| n.at.as_millisecond().to_string()).collect();
    for (notice, at) in notices.iter().zip(&times) {
        parts.extend([notice.cause.as_str(), at.as_str()]);
    }
    hash(&parts)
}

fn hash(parts: &[&str]) -> MessageId {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    format!("msg_{}", &hasher.finalize().to_hex()[..32]).into()
}

fn words(form: MessageForm, notices: &[Notice]) -> (String, String) {
    match (form, notices) {
        (MessageForm::Test, _) => {
            ("capture: test of notifications".to_owned(), "This channel works. Nothing needs you.".to_owned())
        }
        (MessageForm::Repeat(_), [one]) => {
            (text::cut(&format!("Still: {}", title(one)), text::TITLE_CHARS), one.body.clone())
        }
        (_, [one]) => (title(one), one.body.clone()),
        (MessageForm::Digest, all) => (format!("{} during quiet hours", counted(all)), list(all)),
        (MessageForm::Single | MessageForm::Group | MessageForm::Repeat(_), all) => (counted(all), list(all)),
    }
}

/// `api (shop): Bash asks for permission`.
fn title(notice: &Notice) -> String {
    let Notice { session_label, project, title, .. } = notice;
    let whose = match (session_label.as_str(), project.as_str()) {
        ("", "") => return title.clone(),
        (label, project) if project.is_empty() || project == label => label.to_owned(),
        ("", project) => project.to_owned(),
        (label, project) => format!("{label} ({project})"),
    };
    text::cut(&format!("{whose}: {title}"), text::TITLE_CHARS)
}

/// `5 notifications about 3 sessions: api, web, docs`.
fn counted(notices: &[Notice]) -> String {
    let mut labels: Vec<&str> = Vec::new();
    let mut sessions: Vec<&str> = Vec::new();
    for notice in notices {
        if !sessions.contains(&notice.session.as_str()) {
            sessions.push(&notice.session);
            labels.push(&notice.session_label);
        }
    }
    let of = if sessions.len() == 1 { "1 session".to_owned() } else { format!("{} sessions", sessions.len()) };
    text::cut(&format!("{} notifications about {of}: {}", notices.len(), labels.join(", ")), text::TITLE_CHARS)
}

fn list(notices: &[Notice]) -> String {
    let mut lines: Vec<String> = notices
        .iter()
        .take(LISTED)
        .map(|notice| {
            let about = notice.body.lines().next().unwrap_or_default();
            let line = if about.is_empty() { title(notice) } else { format!("{} — {about}", title(notice)) };
            text::cut(&format!("• {line}"), LISTED_CHARS)
        })
        .collect();
    if notices.len() > LISTED {
        lines.push(format!("and {} more", notices.len() - LISTED));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::notice;

    #[test]
    fn a_title_names_session_and_tool_and_a_list_is_bounded() {
        let one = OutgoingMessage::new(
            "d",
            MessageForm::Single,
            Loudness::Loud,
            vec![notice("a", "approval")],
            Timestamp::MIN,
        );
        assert_eq!(
            (one.title.as_str(), one.body.as_str()),
            ("api (shop): Bash asks for permission", "Bash: cargo test a")
        );
        let many: Vec<Notice> = (0..40).map(|n| notice(&n.to_string(), "approval")).collect();
        let group = OutgoingMessage::new("d", MessageForm::Group, Loudness::Loud, many, Timestamp::MIN);
        assert_eq!(group.title, "40 notifications about 1 session: api");
        assert_eq!(group.body.lines().count(), 16);
        assert!(
            group.body.ends_with("and 25 more")
                && group.body.starts_with("• api (shop): Bash asks for permission — Bash: ")
        );
        assert_eq!(group.causes().len(), 40);
    }

    #[test]
    fn the_message_id_depends_on_channel_and_cause() {
        let make = |channel: &str, cause: &str| {
            OutgoingMessage::new(
                channel,
                MessageForm::Single,
                Loudness::Loud,
                vec![notice(cause, "approval")],
                Timestamp::MIN,
            )
            .id
        };
        assert_eq!(make("d", "a"), make("d", "a"));
        assert_ne!(make("d", "a"), make("d", "b"));
        assert_ne!(make("d", "a"), make("e", "a"));
    }
}
