//! Prompts that wait to be delivered, and messages to people that are tried out. Capture does both.

use std::sync::Arc;

use projections::Prompt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::KeptFilter;

use crate::{
    Command, PromptAsk,
    app::App,
    body,
    call::{Call, Reply},
    error::ApiError,
};

use super::{
    admin::ask,
    findings::{MAX_LIMIT, named},
    sessions::target,
};

const DEFAULT_LIMIT: usize = 100;
/// A prompt has at most so many bytes.
const PROMPT_BYTES: usize = 64 * 1024;

/// `GET /api/v1/prompts`
pub(crate) fn list(app: &App, call: Call) -> Reply {
    #[derive(Serialize)]
    struct Page {
        prompts: Vec<Prompt>,
    }
    let app = Arc::clone(app);
    Reply::later(async move {
        let query = call.query();
        let states = query.value::<events::QueuedState>("state")?.map(|state| state..=state);
        let limit = query.limit(DEFAULT_LIMIT, MAX_LIMIT)?;
        let session = named(&app, query.value("session")?).await?;
        let prompts = app.read(move |reader| reader.kept(&KeptFilter { states, session, limit })).await?;
        body::json_of(&Page { prompts })
    })
}

/// What is to be queued.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Queued {
    /// The prompt.
    text: String,
}

/// `POST /api/v1/sessions/{id}/prompts`
pub(crate) fn queue(app: &App, mut call: Call) -> Reply {
    let app = Arc::clone(app);
    Reply::later(async move {
        let Queued { text } = call.json(&app).await?;
        let text = text.trim().to_owned();
        if text.is_empty() || text.len() > PROMPT_BYTES {
            return Err(ApiError::body("a prompt has between 1 and 65,536 bytes"));
        }
        if text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
            return Err(ApiError::body("a prompt has no control characters but newlines and tabs"));
        }
        let what = PromptAsk::Queue { session: target(&app, &call).await?, text };
        Ok(body::json(ask(&app, |reply| Command::Prompts { ask: what, reply }).await?))
    })
}

/// `POST /api/v1/prompts/{id}/cancel`
pub(crate) fn cancel(app: &App, call: Call) -> Reply {
    let app = Arc::clone(app);
    Reply::later(async move {
        let what = PromptAsk::Cancel(call.segment()?.into_owned());
        Ok(body::json(ask(&app, |reply| Command::Prompts { ask: what, reply }).await?))
    })
}

/// `POST /api/v1/notify/test`
pub(crate) fn test_channel(app: &App, mut call: Call) -> Reply {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wanted {
        channel: String,
    }
    let app = Arc::clone(app);
    Reply::later(async move {
        let Wanted { channel } = call.json(&app).await?;
        Ok(body::json(ask(&app, |reply| Command::TestChannel { channel, reply }).await?))
    })
}
