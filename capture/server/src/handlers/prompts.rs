//! Queued prompts, and test messages for notification channels.

use api::{
    prompts::PromptPage,
    routes::{CancelPrompt, ListPrompts, QueuePrompt, TestChannel},
};
use events::QueuedState;
use live_view::Refusal;
use projections::Prompt;
use store::EntityFilter;

use crate::{
    answer::HandlerResult,
    call::Call,
    error::ApiError,
    lookup::{named, target},
    page::{self, Cursor},
};

use super::findings::by_id;

/// The word for a queued prompt in errors, and the command that lists prompts.
const PROMPT: (&str, &str) = ("queued prompt", "capture queue --all");
/// Maximum length of a prompt, bytes.
const PROMPT_BYTES: usize = 64 * 1024;

/// `GET /api/v1/prompts`
pub(crate) async fn list(call: Call<ListPrompts>) -> HandlerResult {
    let (app, query) = (&call.app, &call.query);
    let states = query.state.map(|state| state..=state);
    let limit = page::limit(query.limit);
    let behind = Cursor::read(query.cursor.as_deref())?.map(Into::into);
    let session = named(app, query.session.as_deref()).await?;
    let as_of = app.live_view.mark().position;
    let filter = EntityFilter { states, session, limit: limit + 1, behind };
    let mut prompts: Vec<Prompt> = app.read(move |reader| reader.entities(&filter)).await?;
    let next_cursor = page::cut(&mut prompts, limit, Cursor::of);
    call.answer(&PromptPage { as_of, prompts, next_cursor })
}

/// `POST /api/v1/sessions/{id}/prompts`
pub(crate) async fn queue(mut call: Call<QueuePrompt>) -> HandlerResult {
    let text = call.body().await?.text.trim().to_owned();
    if text.is_empty() || text.len() > PROMPT_BYTES {
        return Err(ApiError::value("a prompt must have 1 to 65,536 bytes"));
    }
    if text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
        return Err(ApiError::value("a prompt must not contain control characters other than newlines and tabs"));
    }
    let session = target(&call).await?;
    let prompt = call.app.ask(call.app.control.queue_prompt(session, text)).await?;
    call.answer(&prompt)
}

/// `POST /api/v1/prompts/{id}/cancel`
pub(crate) async fn cancel(call: Call<CancelPrompt>) -> HandlerResult {
    let prompt: Prompt = by_id(&call.app, &call.segment, PROMPT).await?;
    if let Some(how) = ended(&prompt) {
        return Err(Refusal::Conflict(format!("prompt {} was already {how}", prompt.id)).into());
    }
    let prompt = call.app.ask(call.app.control.cancel_prompt(prompt.id)).await?;
    call.answer(&prompt)
}

/// How a prompt ended; `None` while it is queued.
fn ended(prompt: &Prompt) -> Option<String> {
    match (prompt.state, &prompt.why) {
        (QueuedState::Queued, _) => None,
        (QueuedState::Delivering, _) => Some("being typed".into()),
        (QueuedState::Delivered, _) => Some("delivered".into()),
        (QueuedState::Unclear, _) => Some("typed; capture does not know whether it was submitted".into()),
        (QueuedState::Cancelled, Some(why)) => Some(format!("dropped: {why}")),
        (QueuedState::Cancelled, None) => Some("cancelled".into()),
    }
}

/// `POST /api/v1/notify/test`
pub(crate) async fn test_channel(mut call: Call<TestChannel>) -> HandlerResult {
    let channel = call.body().await?.channel;
    let receipt = call.app.ask(call.app.control.test_channel(channel)).await?;
    call.answer(&receipt)
}
