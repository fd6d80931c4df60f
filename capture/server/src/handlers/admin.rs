//! Requests that change how sessions are captured. They are forwarded to the daemon.

use api::{
    routes::{AddNote, CaptureSession, LabelSession, ListNotes, MarkSession},
    sessions::{CaptureAnswer, Note, Notes},
};
use events::{Kind, Payload, SessionId, Topic};

use crate::{answer::HandlerResult, app::App, call::Call, error::ApiError, lookup::target};

/// `PUT /api/v1/sessions/{id}/capture`
pub(crate) async fn set_capture(mut call: Call<CaptureSession>) -> HandlerResult {
    let enabled = call.body().await?.enabled;
    let session = target(&call).await?;
    call.app.ask(call.app.control.set_capture(session, enabled)).await?;
    call.answer(&CaptureAnswer { id: session, enabled })
}

/// Maximum number of characters of a label's key, and of its value.
const LABEL_CHARS: usize = 100;
/// Maximum number of labels per request.
const LABELS: usize = 32;

/// Maximum number of characters of a note.
const NOTE_CHARS: usize = 2_000;
/// Number of most recent annotations searched for notes.
const ANNOTATIONS: usize = 5_000;

/// `GET /api/v1/sessions/{id}/notes`
pub(crate) async fn notes(call: Call<ListNotes>) -> HandlerResult {
    let session = target(&call).await?;
    call.answer(&notes_of(&call.app, session).await?)
}

/// `POST /api/v1/sessions/{id}/notes`
pub(crate) async fn add_note(mut call: Call<AddNote>) -> HandlerResult {
    let text = call.body().await?.text.trim().to_owned();
    if text.is_empty() || text.chars().count() > NOTE_CHARS {
        return Err(ApiError::value(format!("a note must have 1 to {NOTE_CHARS} characters")));
    }
    let session = target(&call).await?;
    call.app.ask(call.app.control.note(session, text)).await?;
    call.answer(&notes_of(&call.app, session).await?)
}

async fn notes_of(app: &App, session: SessionId) -> Result<Notes, ApiError> {
    let events = app.read(move |reader| reader.last_events(session, ANNOTATIONS, &[Kind::Annotation])).await?;
    let note = |event: events::Event| {
        let Payload::Annotation(note) = event.payload else { return None };
        (note.topic == Topic::Note).then_some(Note { sequence: event.sequence, at: event.created_at, text: note.value })
    };
    Ok(Notes { notes: events.into_iter().filter_map(note).collect() })
}

/// `PUT /api/v1/sessions/{id}/labels`
pub(crate) async fn label(mut call: Call<LabelSession>) -> HandlerResult {
    let given = call.body().await?;
    let plain = |text: &str| text.chars().count() <= LABEL_CHARS && !text.chars().any(char::is_control);
    let key = |key: &str| !key.is_empty() && plain(key) && !key.contains('=');
    let right = |(name, value): (&String, &Option<String>)| key(name) && value.as_deref().is_none_or(plain);
    if given.labels.len() > LABELS || !given.labels.iter().all(right) {
        return Err(ApiError::value(
            "a label is a key (without `=`) and a value of at most 100 characters each; a request can have at most 32 labels",
        ));
    }
    let session = target(&call).await?;
    call.app.ask(call.app.control.label(session, given.labels.clone())).await?;
    call.answer(&given)
}

/// `PUT /api/v1/sessions/{id}/marks`
pub(crate) async fn mark(mut call: Call<MarkSession>) -> HandlerResult {
    let changes = call.body().await?.changes();
    let session = target(&call).await?;
    if !changes.is_empty() {
        call.app.ask(call.app.control.mark(session, changes)).await?;
    }
    let marked = call.app.read(move |reader| reader.session(session)).await?;
    let marked = marked.ok_or_else(|| ApiError::session(&session.to_string()))?;
    call.answer(&marked.marks.unwrap_or_default())
}
