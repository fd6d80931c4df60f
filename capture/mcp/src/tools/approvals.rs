//! Permission requests, read-only.

use api::{
    approvals::{ApprovalView, ApprovalsQuery, PolicyDecision},
    routes::{GetApproval, ListApprovals},
};
use events::{ApprovalId, ApprovalKind, ApprovalState, Provider, SessionId, Timestamp};
use printing::asked::extra_fields;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    ToolError,
    sessions::{find, limited},
};
use crate::{
    link::Link,
    text::{NOTE, TextPart, clean, line, maybe_line},
};

/// Default and maximum number of requests in an answer.
const APPROVALS: (usize, usize) = (20, 50);
/// Maximum length of a command in a list, and of a single request, characters.
const COMMAND: usize = 600;
const WHOLE_COMMAND: usize = 32_000;
/// Maximum length of a line, characters.
const LINE: usize = 400;
/// Maximum number of paths of a request.
const PATHS: usize = 20;

/// Which permission requests to list.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ApprovalsArguments {
    /// The id of one request, or at least 3 characters from its start or end. The answer has up to 32,000 characters of
    /// its command.
    approval: Option<String>,
    /// Only requests in this state (default: every state).
    state: Option<ApprovalState>,
    /// Only requests of this session. Any of its ids is accepted.
    session: Option<String>,
    /// Requests in the answer (default 20, at most 50).
    limit: Option<usize>,
    /// The `next_cursor` of the previous answer.
    cursor: Option<String>,
}

/// Permission requests.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ApprovalsAnswer {
    /// How to read the texts of this answer.
    note: &'static str,
    /// The requests.
    approvals: Vec<ApprovalRow>,
    /// Continues the list; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A permission request.
#[derive(Debug, Serialize, JsonSchema)]
struct ApprovalRow {
    /// Its id.
    id: ApprovalId,
    /// The session.
    session: SessionId,
    /// The agent.
    agent: Provider,
    /// Its state.
    state: ApprovalState,
    /// The kind of action the request asks for: a command, an edit, a question, …
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<ApprovalKind>,
    /// The agent's name for the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// The command; cut in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<TextPart>,
    /// The whole input of a tool that is not a command, JSON; absent in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<TextPart>,
    /// Names of the request's further fields, which change how the command would run, for instance outside the sandbox.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    with: Vec<String>,
    /// Why a heuristic considers the request risky.
    #[serde(skip_serializing_if = "Option::is_none")]
    risk: Option<String>,
    /// The user's words in a prompt that forbids what the pending request asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    forbidden: Option<String>,
    /// What it is about in one line; absent for commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    /// The files it concerns, at most 20.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    paths: Vec<String>,
    /// The directory in which the call would run.
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    /// The decision of the user's policy: `allow`, `deny` or `ask`.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<PolicyDecision>,
    /// When it was requested.
    opened_at: Timestamp,
    /// When it was closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    closed_at: Option<Timestamp>,
    /// Whether it was allowed; absent when not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed: Option<bool>,
}

pub(super) fn list(link: &Link, arguments: &ApprovalsArguments) -> Result<ApprovalsAnswer, ToolError> {
    if let Some(given) = arguments.approval.as_deref().filter(|given| !given.is_empty()) {
        let view = link.read(|client| client.one::<GetApproval>(given))?;
        let input = view.approval.input.as_deref().filter(|_| view.approval.command.is_none());
        let input = input.and_then(|input| TextPart::of(input, 0, WHOLE_COMMAND));
        let approvals = vec![ApprovalRow { input, ..row(&view, WHOLE_COMMAND) }];
        return Ok(ApprovalsAnswer { note: NOTE, approvals, next_cursor: None });
    }
    let session = match &arguments.session {
        Some(given) => Some(find(link, given)?.id.to_string()),
        None => None,
    };
    let query = ApprovalsQuery {
        state: arguments.state,
        session,
        cursor: arguments.cursor.clone(),
        limit: Some(limited(arguments.limit, APPROVALS)),
    };
    let page = link.read(|client| client.get::<ListApprovals>("", &query))?;
    let approvals = page.approvals.iter().map(|view| row(view, COMMAND)).collect();
    Ok(ApprovalsAnswer { note: NOTE, approvals, next_cursor: page.next_cursor })
}

fn row(view: &ApprovalView, most: usize) -> ApprovalRow {
    let approval = &view.approval;
    let subject = approval.subject.as_deref().filter(|_| approval.command.is_none());
    ApprovalRow {
        id: approval.id.clone(),
        session: approval.session_id,
        agent: approval.provider,
        state: approval.state,
        kind: approval.kind,
        tool: approval.tool.as_deref().map(clean),
        command: approval.command.as_deref().and_then(|command| TextPart::of(command, 0, most)),
        input: None,
        with: extra_fields(approval),
        risk: maybe_line(view.risk.as_deref(), LINE),
        forbidden: maybe_line(view.boundary.as_ref().map(|boundary| boundary.said.as_str()), LINE),
        subject: maybe_line(subject, LINE),
        paths: approval.paths.iter().take(PATHS).map(|path| line(path, LINE)).collect(),
        cwd: maybe_line(approval.cwd.as_deref(), LINE),
        policy: view.policy.as_ref().map(|policy| policy.decision),
        opened_at: approval.opened_at,
        closed_at: approval.closed_at,
        allowed: approval.allowed,
    }
}
