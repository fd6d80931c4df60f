//! Tools that change something. Only those the user allowed are offered, and the server refuses them to agents.

use std::collections::BTreeMap;

use api::{
    prompts::PromptRequest,
    routes::{LabelSession, QueuePrompt},
    sessions::Labels,
};
use events::{PromptId, QueuedState, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ToolError, sessions::find};
use crate::{
    link::Link,
    text::{clean, maybe_line},
};

/// Maximum length of a reason, characters.
const LINE: usize = 300;

/// The prompt to queue.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PromptArguments {
    /// The session: its id, the agent's id, the name of its run, or at least 3 characters from the start or end of its
    /// id.
    session: String,
    /// The prompt: 1 to 65,536 bytes, without control characters other than newlines and tabs.
    text: String,
}

/// The queued prompt.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PromptAnswer {
    /// Its id.
    #[schemars(with = "String")]
    id: PromptId,
    /// The session.
    session: SessionId,
    /// Its state.
    state: QueuedState,
    /// Why it is in that state, if that is not obvious.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// The labels to change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LabelsArguments {
    /// The session: its id, the agent's id, the name of its run, or at least 3 characters from the start or end of its
    /// id.
    session: String,
    /// Values by key; `null` removes a label. At most 32, each key and value at most 100 characters.
    labels: BTreeMap<String, Option<String>>,
}

/// The labels of the session.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LabelsAnswer {
    /// The session.
    session: SessionId,
    /// Its labels after the change.
    labels: BTreeMap<String, String>,
}

pub(super) fn prompt(link: &Link, arguments: PromptArguments) -> Result<PromptAnswer, ToolError> {
    let id = find(link, &arguments.session)?.id.to_string();
    let request = PromptRequest { text: arguments.text };
    let queued = link.write(|client| client.send::<QueuePrompt>(&id, &request))?;
    Ok(PromptAnswer {
        id: queued.id,
        session: queued.session_id,
        state: queued.state,
        why: maybe_line(queued.why.as_deref(), LINE),
    })
}

pub(super) fn labels(link: &Link, arguments: LabelsArguments) -> Result<LabelsAnswer, ToolError> {
    let session = find(link, &arguments.session)?;
    let id = session.id.to_string();
    let request = Labels { labels: arguments.labels };
    link.write(|client| client.send::<LabelSession>(&id, &request))?;
    let labels = find(link, &id)?.labels;
    Ok(LabelsAnswer { session: session.id, labels: labels.iter().map(|(k, v)| (clean(k), clean(v))).collect() })
}
