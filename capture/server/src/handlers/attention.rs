//! Items that need the user's attention.

use api::{findings::AttentionList, list::MAX_LIMIT, routes::ListAttention};
use events::{Finding, FindingState};
use live_view::SessionFilter;
use projections::{Session, attention};
use store::EntityFilter;

use crate::{answer::HandlerResult, call::Call, error::ApiError};

/// `GET /api/v1/attention`
pub(crate) async fn list(call: Call<ListAttention>) -> HandlerResult {
    let app = &call.app;
    app.commit_shown().await;
    let as_of = app.live_view.mark().position;
    let active = SessionFilter {
        states: Vec::new(),
        providers: Vec::new(),
        cwd: None,
        relative_of: None,
        active: true,
        after: None,
        limit: usize::MAX,
    };
    let (rows, _) = app.live_view.list(&active);
    let parts = app.session_jsons(rows).await?;
    let sessions: Result<Vec<Session>, _> = parts.iter().map(|part| serde_json::from_slice(&part.bytes())).collect();
    let sessions = sessions.map_err(|cause| ApiError::internal(&cause))?;
    let states = Some(FindingState::Open..=FindingState::Open);
    let filter = EntityFilter { states, session: None, behind: None, limit: MAX_LIMIT };
    let findings: Vec<Finding> = app.read(move |reader| reader.entities(&filter)).await?;
    call.answer(&AttentionList { as_of, items: attention(&sessions, &findings) })
}
