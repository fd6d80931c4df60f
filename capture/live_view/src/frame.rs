//! Frames: an event or a changed status, encoded once for all streams.

use std::sync::OnceLock;

use bytes::Bytes;
use events::{Kind, SessionId, State};
use tungstenite::Utf8Bytes;

use crate::{entry::SessionEntry, json::Json};

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// An event; the JSON is the event.
    Event(Kind),
    /// The state of a session changed; the JSON is the session.
    Status(State),
    /// An approval was opened or closed; the JSON is the approval.
    Approval,
    /// A finding changed; the JSON is the finding.
    Finding,
    /// Output of an agent that is not stored yet.
    Delta,
}

impl FrameKind {
    /// The name used in the protocol.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Event(_) => "event",
            Self::Status(_) => "status",
            Self::Approval => "approval",
            Self::Finding => "finding",
            Self::Delta => "delta",
        }
    }
}

/// One message for streams. With a position it is committed; without one, it precedes the commit and may be void after
/// a crash.
#[derive(Debug)]
pub struct Frame {
    /// The position it is committed with; `None` before the commit.
    pub position: Option<u64>,
    /// Its session.
    pub session: SessionId,
    /// The kind of the frame.
    pub kind: FrameKind,
    /// The content of the frame.
    pub json: Json,
    /// Order of publication; assigned by the live view.
    pub order: u64,
    sse: OnceLock<Bytes>,
    sse_without_id: OnceLock<Bytes>,
    message: OnceLock<Utf8Bytes>,
}

impl Frame {
    /// A frame for an event, as JSON in the form of the API.
    #[must_use]
    pub fn event(position: Option<u64>, session: SessionId, kind: Kind, json: Json) -> Self {
        Self::new(position, session, FrameKind::Event(kind), json)
    }

    /// A frame for the current state of a session. `position` is that of the last event included in it.
    #[must_use]
    pub fn status(position: Option<u64>, session: SessionId, state: State, json: Json) -> Self {
        Self::new(position, session, FrameKind::Status(state), json)
    }

    /// A frame for the current state of an approval. `position` is that of the last event included in it.
    #[must_use]
    pub fn approval(position: Option<u64>, session: SessionId, json: Json) -> Self {
        Self::new(position, session, FrameKind::Approval, json)
    }

    /// A frame for the current state of a finding. `position` is that of its event.
    #[must_use]
    pub fn finding(position: Option<u64>, session: SessionId, json: Json) -> Self {
        Self::new(position, session, FrameKind::Finding, json)
    }

    /// A frame for current output of an agent; it is never committed.
    #[must_use]
    pub fn delta(session: SessionId, json: Json) -> Self {
        Self::new(None, session, FrameKind::Delta, json)
    }

    /// The status frame of an entry; `None` if the entry has no JSON.
    #[must_use]
    pub fn of_entry(position: Option<u64>, entry: &SessionEntry) -> Option<Self> {
        let json = entry.json.clone()?;
        Some(Self::status(position, entry.id, entry.state, json))
    }

    fn new(position: Option<u64>, session: SessionId, kind: FrameKind, json: Json) -> Self {
        Self {
            position,
            session,
            kind,
            json,
            order: 0,
            sse: OnceLock::new(),
            sse_without_id: OnceLock::new(),
            message: OnceLock::new(),
        }
    }

    /// The frame as a server-sent event. A committed frame has its position as id, unless a later id was already sent
    /// (`id` is false), so that a client never resumes from further back than it has seen. An uncommitted frame has the
    /// epoch and `live` among its fields instead.
    #[must_use]
    pub fn sse(&self, epoch: &Epoch, id: bool) -> Bytes {
        let cell = if id { &self.sse } else { &self.sse_without_id };
        cell.get_or_init(|| {
            let name = self.kind.name();
            let json = self.json.as_str();
            match self.position {
                Some(position) if id => format!("event: {name}\nid: {position}\ndata: {json}\n\n").into(),
                Some(_) => format!("event: {name}\ndata: {json}\n\n").into(),
                None => format!(
                    "event: {name}\ndata: {{\"epoch\":{},\"live\":true,{}\n\n",
                    epoch.json(),
                    json.strip_prefix('{').unwrap_or(json),
                )
                .into(),
            }
        })
        .clone()
    }

    /// The frame as the text of a WebSocket message.
    #[must_use]
    pub fn message(&self, epoch: &Epoch) -> Utf8Bytes {
        self.message
            .get_or_init(|| {
                let (name, epoch, json) = (self.kind.name(), epoch.json(), self.json.as_str());
                match self.position {
                    Some(position) => {
                        format!("{{\"type\":\"{name}\",\"position\":{position},\"epoch\":{epoch},\"data\":{json}}}")
                    }
                    None => format!("{{\"type\":\"{name}\",\"epoch\":{epoch},\"live\":true,\"data\":{json}}}"),
                }
                .into()
            })
            .clone()
    }

    /// Its size in a queue, bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.json.as_str().len()
    }
}

/// Identifies one run of the server. A frame that an earlier run sent before its commit may never have been committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Epoch {
    text: String,
    json: String,
}

impl Epoch {
    /// An epoch with this name.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self { text: text.to_owned(), json: serde_json::Value::from(text).to_string() }
    }

    /// Its name.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The name as a JSON string, including quotes.
    #[must_use]
    pub fn json(&self) -> &str {
        &self.json
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(position: Option<u64>) -> Frame {
        let json = Json::from_text(r#"{"a":1}"#.into());
        Frame::event(position, SessionId::from_bits(1), Kind::UserPrompt, json)
    }

    #[test]
    fn committed_frames_carry_the_position() {
        let epoch = Epoch::new("e\"1");
        let frame = frame(Some(7));
        assert_eq!(frame.sse(&epoch, true), "event: event\nid: 7\ndata: {\"a\":1}\n\n");
        assert_eq!(frame.sse(&epoch, false), "event: event\ndata: {\"a\":1}\n\n");
        assert_eq!(frame.message(&epoch).as_str(), r#"{"type":"event","position":7,"epoch":"e\"1","data":{"a":1}}"#);
    }

    #[test]
    fn frames_before_commit_carry_the_epoch() {
        let epoch = Epoch::new("e");
        let frame = frame(None);
        assert_eq!(frame.sse(&epoch, true), "event: event\ndata: {\"epoch\":\"e\",\"live\":true,\"a\":1}\n\n");
        assert_eq!(frame.message(&epoch).as_str(), r#"{"type":"event","epoch":"e","live":true,"data":{"a":1}}"#);
    }
}
