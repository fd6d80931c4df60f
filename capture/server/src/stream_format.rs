//! The format of a stream: frames, the messages of older clients, or those of agentapi.

use axum::extract::ws::Utf8Bytes;
use bytes::Bytes;

use crate::{agentapi::AgentApiStream, app::App, compat::CompatStream, error::ApiError, tail::Item};

/// The format of a stream's messages.
pub(crate) enum StreamFormat {
    /// Frames; `last_id` is the last SSE id sent.
    Frames { last_id: u64 },
    /// See [`crate::compat`].
    Compat(CompatStream),
    /// See [`crate::agentapi`]; server-sent events only.
    AgentApi(AgentApiStream),
}

impl StreamFormat {
    pub(crate) const fn frames() -> Self {
        Self::Frames { last_id: 0 }
    }

    /// An item as server-sent events; empty if it has no counterpart in this format.
    pub(crate) async fn sse(&mut self, app: &App, item: &Item) -> Result<Bytes, ApiError> {
        match self {
            Self::Frames { last_id } => Ok(match item {
                Item::Snapshot(snapshot) => {
                    *last_id = snapshot.as_of;
                    snapshot.sse()
                }
                Item::Frame(frame) => {
                    let id = frame.position.filter(|position| *position >= *last_id);
                    *last_id = id.unwrap_or(*last_id);
                    frame.sse(app.live_view.epoch(), id.is_some())
                }
                Item::TooSlow => Bytes::new(),
            }),
            Self::Compat(stream) => {
                let mut out = String::new();
                for messages in stream.translate(app, item).await? {
                    out.extend(["event: ", messages.name, "\ndata: ", &messages.json, "\n\n"]);
                }
                Ok(out.into())
            }
            Self::AgentApi(stream) => Ok(stream.translate(app, item).await?.into()),
        }
    }

    /// An item as WebSocket messages.
    pub(crate) async fn messages(&mut self, app: &App, item: &Item, out: &mut Vec<Utf8Bytes>) -> Result<(), ApiError> {
        match self {
            Self::Frames { .. } => match item {
                Item::Snapshot(snapshot) => out.push(snapshot.message(app.live_view.epoch())),
                Item::Frame(frame) => out.push(shared_text(frame.message(app.live_view.epoch()).into())?),
                Item::TooSlow => {}
            },
            Self::Compat(stream) => {
                out.extend(stream.translate(app, item).await?.into_iter().map(|messages| messages.json.into()));
            }
            Self::AgentApi(_) => {}
        }
        Ok(())
    }
}

/// Converts shared bytes to the text type of messages without copying.
fn shared_text(text: Bytes) -> Result<Utf8Bytes, ApiError> {
    Utf8Bytes::try_from(text).map_err(|error| ApiError::internal(&error))
}
