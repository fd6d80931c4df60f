//! What the user forbade in the prompts of a session, held against its permission requests.
//!
//! The prompts are read from the store for each request, so a restart of the server loses no boundary. A boundary can
//! only deny: without one, and if it is uncertain whether a request breaks one, the request is decided as before.

use std::{collections::HashMap, sync::PoisonError};

use api::approvals::BoundaryView;
use events::{ApprovalKind, ApprovalState, Kind, Payload, SessionId, ToolKind, ToolOutcome};
use home::config::BoundaryMode;
use live_view::Refusal;
use monitor::{Boundaries, BoundaryRequest};
use projections::Approval;
use store::{ReadError, Reader};

use super::{ApprovalBroker, BrokerState, judge::Judged};
use crate::findings::PROMPTS;

/// Number of last calls and results among which a person's answers are looked for.
const CALLS: usize = 5_000;

/// The name under which the decisions of boundaries are recorded.
pub(super) const RULE: &str = "boundary";

/// The boundary that a request breaks, according to the prompts of its session or of the session that started it.
pub(super) fn broken_by(reader: &Reader, approval: &Approval) -> Result<Option<BoundaryView>, ReadError> {
    let is_file = matches!(approval.kind, Some(ApprovalKind::Edit | ApprovalKind::Write));
    if !is_file && approval.command.is_none() {
        return Ok(None);
    }
    let Some(session) = reader.session(approval.session_id)? else { return Ok(None) };
    let prompted = session.parent_session_id.unwrap_or(session.id);
    let mut boundaries = Boundaries::default();
    for event in reader.last_events(prompted, PROMPTS, &[Kind::UserPrompt, Kind::SessionExited])? {
        boundaries.apply(&event);
    }
    let request = BoundaryRequest {
        command: approval.command.as_deref(),
        files: if is_file { &approval.paths } else { &[] },
        cwd: approval.cwd.as_deref(),
        began_in: session.began_in.as_deref(),
    };
    if boundaries.broken_by(&request).is_none() {
        return Ok(None);
    }
    lift_answered(reader, prompted, &mut boundaries)?;
    Ok(boundaries.broken_by(&request).map(|boundary| BoundaryView {
        said: redact::text(&boundary.said).into_owned(),
        at: boundary.at,
        event: boundary.event,
    }))
}

/// Lifts the boundaries that the person's answers to questions and plans of the agent may be about.
fn lift_answered(reader: &Reader, session: SessionId, boundaries: &mut Boundaries) -> Result<(), ReadError> {
    let mut questions: HashMap<String, ToolKind> = HashMap::new();
    for event in reader.last_events(session, CALLS, &[Kind::ToolCall, Kind::ToolResult])? {
        #[expect(clippy::wildcard_enum_match_arm, reason = "exactly two kinds were requested")]
        match event.payload {
            Payload::ToolCall(call) if matches!(call.tool, ToolKind::Question | ToolKind::Plan) => {
                questions.insert(call.call_id, call.tool);
            }
            Payload::ToolResult(result) if result.outcome == ToolOutcome::Ok && !result.detail => {
                if let Some(tool) = questions.remove(&result.call_id) {
                    boundaries.answered(tool, event.text.as_deref().unwrap_or_default(), event.created_at);
                }
            }
            _ => {}
        }
    }
    Ok(())
}

impl ApprovalBroker {
    /// Applies a changed setting.
    pub fn configure(&self, boundaries: BoundaryMode) {
        *self.shared.boundaries.lock().unwrap_or_else(PoisonError::into_inner) = boundaries;
    }

    /// The denial of a request by a boundary, if boundaries deny.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(super) async fn denied_by_boundary(
        &self,
        approval: &Approval,
    ) -> Result<Option<(Judged, BoundaryView)>, Refusal> {
        if self.shared.boundary_mode() == BoundaryMode::Show {
            return Ok(None);
        }
        let (shared, approval) = (self.shared.clone(), approval.clone());
        let denied = self.shared.judging.run(move || shared.denied_by_boundary(&approval)).await?;
        denied.map_err(|error| Refusal::Failed(error.to_string()))
    }

    /// The boundary that a pending request breaks, to show it.
    pub(super) async fn boundary_of(&self, approval: &Approval) -> Option<BoundaryView> {
        if approval.state != ApprovalState::Pending {
            return None;
        }
        let approval = approval.clone();
        match self.read(move |reader| broken_by(reader, &approval)).await {
            Ok(boundary) => boundary,
            Err(error) => {
                tracing::warn!(%error, "cannot compare a permission request with the prompts of its session");
                None
            }
        }
    }
}

impl BrokerState {
    fn boundary_mode(&self) -> BoundaryMode {
        *self.boundaries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The denial of a request by a boundary, if boundaries deny.
    pub(super) fn denied_by_boundary(&self, approval: &Approval) -> Result<Option<(Judged, BoundaryView)>, ReadError> {
        if self.boundary_mode() == BoundaryMode::Show {
            return Ok(None);
        }
        let broken = broken_by(&self.reader, approval)?;
        Ok(broken.map(|boundary| {
            let reason = format!("the user wrote “{}”, and did not allow it since", boundary.said);
            (Judged { allow: Some(false), rewrite: None, rule: RULE.to_owned(), reason }, boundary)
        }))
    }
}
