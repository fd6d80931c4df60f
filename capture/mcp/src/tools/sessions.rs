//! Sessions: the list, a single session, and its summary.

use std::collections::{BTreeMap, HashMap};

use api::{
    list::Limit,
    routes::{GetSession, GetWork, ListAttention, ListSessions, SummarizeSession},
    sessions::{ActiveFilter, SessionsQuery},
};
use events::{Confidence, Need, Provider, Reason, RunId, SessionId, Source, State, Timestamp, ToolOutcome};
use projections::{AttentionItem, FailureKind, Session, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ToolError;
use crate::{
    link::Link,
    text::{NOTE, TextPart, clean, line, maybe_line},
};

/// Default and maximum number of sessions in an answer.
const SESSIONS: (usize, usize) = (20, 50);
/// Maximum length of a line about a session, characters.
const LINE: usize = 240;
/// Maximum length of a path, characters.
const PATH: usize = 400;
/// Maximum number of files and commands in a summary.
const WORK_ROWS: usize = 50;
/// Maximum length of the last answer in a summary, characters.
const ANSWER: usize = 4_000;

/// Which sessions to list.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ListArguments {
    /// Only sessions in these states (all sessions are searched, not only active ones).
    state: Vec<State>,
    /// Only sessions of these agents.
    agent: Vec<Provider>,
    /// Only sessions with exactly this working directory, an absolute path.
    cwd: Option<String>,
    /// Also list sessions that ended or have been idle for long (default: only active sessions).
    all: bool,
    /// Sessions in the answer (default 20, at most 50).
    limit: Option<usize>,
    /// The `next_cursor` of the previous answer.
    cursor: Option<String>,
}

/// Which session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionArguments {
    /// The session: its id, the agent's id, the name of its run, or at least 3 characters from the start or end of its
    /// id.
    pub(super) session: String,
}

/// Sessions.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionList {
    /// How to read the texts of this answer.
    note: &'static str,
    /// The sessions.
    sessions: Vec<SessionRow>,
    /// Continues the list; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// The main facts about a session.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionRow {
    /// The session's id.
    id: SessionId,
    /// The agent.
    agent: Provider,
    /// What it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// Its state.
    state: State,
    /// Why it is in that state.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    /// How sure capture is of the state.
    confidence: Confidence,
    /// Time at which it entered that state.
    since: Timestamp,
    /// What it does, in one line: the command, the tool, the question.
    #[serde(skip_serializing_if = "Option::is_none")]
    activity: Option<String>,
    /// What it needs from a person. It may need something even while it runs: `stuck` if it makes no progress or
    /// repeats itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    needs: Option<Need>,
    /// The reason for that need, in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    needs_because: Option<String>,
    /// The last prompt, in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_prompt: Option<String>,
    /// What the checks of the last finished turn showed: `tests 297 passed, then 5 edits · commit failed ×7`. Absent while
    /// a turn is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    checks: Option<String>,
    /// Its working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    /// Its git branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    git_branch: Option<String>,
    /// Its model.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// Permission requests that wait for an answer.
    pending_approvals: usize,
    /// Turns so far.
    turns: u32,
    /// When it began.
    started_at: Timestamp,
    /// When its last event happened.
    last_event_at: Timestamp,
}

/// A session with its details.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionDetails {
    /// How to read the texts of this answer.
    note: &'static str,
    /// The session.
    session: SessionRow,
    /// The agent's own id of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_session_id: Option<String>,
    /// The run that hosts it; if present, prompts can be queued for the session.
    #[schemars(with = "Option<String>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<RunId>,
    /// The parent session, if this is a sub-agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_session_id: Option<SessionId>,
    /// Its labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    /// Version of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_version: Option<String>,
    /// Permission mode, in the agent's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_mode: Option<String>,
    /// Process id, while it is alive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    /// The claims that decided its state.
    evidence: Vec<Claim>,
    /// Tokens so far.
    tokens: Usage,
    /// Failed tool calls and errors so far, by kind.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    failures: BTreeMap<FailureKind, u32>,
    /// How long it waited for permissions so far, milliseconds.
    approval_wait_ms: u64,
    /// Sequence of its last event, in the same numbering as `after` of `read_conversation`.
    last_sequence: u64,
}

/// A claim about a session's state.
#[derive(Debug, Serialize, JsonSchema)]
struct Claim {
    /// Its source.
    source: Source,
    /// The claim as text.
    claim: String,
    /// When it was made.
    at: Timestamp,
}

/// What a session is about and what it did.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SummaryAnswer {
    /// How to read the texts of this answer.
    note: &'static str,
    /// The session's id.
    id: SessionId,
    /// What it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// Its state.
    state: State,
    /// What it does now, in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    current: Option<String>,
    /// What it did last, in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    recent: Option<String>,
    /// The last prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_prompt: Option<String>,
    /// What the checks of the last finished turn showed: `tests 297 passed, then 5 edits · commit failed ×7`. Absent while
    /// a turn is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    checks: Option<String>,
    /// The files it changed and how often, at most 50, from its last 20,000 events.
    files: BTreeMap<String, u32>,
    /// The last commands it ran, at most 50, oldest first.
    commands: Vec<CommandRow>,
    /// Its last answer, cut if it is long; `read_conversation` with `last` returns all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_answer: Option<TextPart>,
    /// When its last event happened.
    last_event_at: Timestamp,
}

/// A command that was run.
#[derive(Debug, Serialize, JsonSchema)]
struct CommandRow {
    /// The command, in one line.
    command: String,
    /// How it ended; absent while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<ToolOutcome>,
    /// Its exit code, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
}

/// What sessions need from the user.
pub(super) struct Needs(HashMap<SessionId, AttentionItem>);

impl Needs {
    pub(super) fn read(link: &Link) -> Result<Self, ToolError> {
        let list = link.read(|client| client.one::<ListAttention>(""))?;
        Ok(Self(list.items.into_iter().map(|item| (item.session_id, item)).collect()))
    }
}

impl SessionRow {
    pub(super) fn of(session: &Session, needs: &Needs) -> Self {
        let need = needs.0.get(&session.id);
        Self {
            id: session.id,
            agent: session.provider,
            title: maybe_line(session.title.as_deref(), LINE),
            state: session.status.state,
            reason: session.status.reason,
            confidence: session.status.confidence,
            since: session.status.since,
            activity: maybe_line(session.status.activity.as_deref(), LINE),
            needs: need.map(|item| item.need),
            needs_because: need.and_then(|item| maybe_line(item.why.as_deref(), LINE)),
            last_prompt: maybe_line(session.summary.last_prompt.as_deref(), LINE),
            checks: maybe_line(session.summary.checks.as_deref(), LINE),
            cwd: maybe_line(session.cwd.as_deref(), PATH),
            git_branch: maybe_line(session.git_branch.as_deref(), LINE),
            model: maybe_line(session.model.as_deref(), LINE),
            pending_approvals: session.pending_approvals.len(),
            turns: session.turns,
            started_at: session.started_at,
            last_event_at: session.last_event_at,
        }
    }
}

/// The requested limit, within its bounds.
pub(super) fn limited(given: Option<usize>, (default, most): (usize, usize)) -> Limit {
    Limit::of(given.unwrap_or(default).min(most))
}

/// The session the caller names.
pub(super) fn find(link: &Link, given: &str) -> Result<Session, ToolError> {
    if given.is_empty() {
        return Err(ToolError::Argument("session: must not be empty".into()));
    }
    Ok(link.read(|client| client.one::<GetSession>(given))?)
}

pub(super) fn list(link: &Link, arguments: &ListArguments) -> Result<SessionList, ToolError> {
    let query = SessionsQuery {
        state: arguments.state.clone().into(),
        provider: arguments.agent.clone().into(),
        cwd: arguments.cwd.clone(),
        parent: None,
        active: arguments.all.then_some(ActiveFilter::All),
        cursor: arguments.cursor.clone(),
        limit: Some(limited(arguments.limit, SESSIONS)),
    };
    let page = link.read(|client| client.get::<ListSessions>("", &query))?;
    let needs = Needs::read(link)?;
    let sessions = page.sessions.iter().map(|session| SessionRow::of(session, &needs)).collect();
    Ok(SessionList { note: NOTE, sessions, next_cursor: page.next_cursor })
}

pub(super) fn details(link: &Link, arguments: &SessionArguments) -> Result<SessionDetails, ToolError> {
    let session = find(link, &arguments.session)?;
    let evidence = session.status.evidence.iter();
    Ok(SessionDetails {
        note: NOTE,
        session: SessionRow::of(&session, &Needs::read(link)?),
        agent_session_id: maybe_line(session.provider_session_id.as_deref(), LINE),
        run_id: session.run_id,
        parent_session_id: session.parent_session_id,
        labels: session.labels.iter().map(|(key, value)| (clean(key), clean(value))).collect(),
        agent_version: maybe_line(session.cli_version.as_deref(), LINE),
        permission_mode: maybe_line(session.permission_mode.as_deref(), LINE),
        pid: session.pid,
        evidence: evidence.map(|one| Claim { source: one.source, claim: line(&one.claim, LINE), at: one.at }).collect(),
        tokens: session.usage,
        failures: session.failures.clone(),
        approval_wait_ms: session.approval_wait_ms,
        last_sequence: session.last_sequence,
    })
}

pub(super) fn summary(link: &Link, arguments: &SessionArguments) -> Result<SummaryAnswer, ToolError> {
    let id = find(link, &arguments.session)?.id.to_string();
    let summary = link.read(|client| client.one::<SummarizeSession>(&id))?;
    let work = link.read(|client| client.one::<GetWork>(&id))?;
    let newest = work.commands.len().saturating_sub(WORK_ROWS);
    let commands = work.commands.iter().skip(newest).map(|ran| CommandRow {
        command: line(&ran.command, LINE),
        outcome: ran.outcome,
        exit_code: ran.exit_code,
    });
    Ok(SummaryAnswer {
        note: NOTE,
        id: summary.id,
        title: maybe_line(summary.title.as_deref(), LINE),
        state: summary.state,
        current: maybe_line(summary.current.as_deref(), LINE),
        recent: maybe_line(summary.recent.as_deref(), LINE),
        last_prompt: maybe_line(summary.last_prompt.as_deref(), ANSWER),
        checks: maybe_line(summary.checks.as_deref(), LINE),
        files: work.files.iter().take(WORK_ROWS).map(|(path, count)| (line(path, PATH), *count)).collect(),
        commands: commands.collect(),
        last_answer: work.last_text.as_deref().and_then(|text| TextPart::of(text, 0, ANSWER)),
        last_event_at: summary.last_event_at,
    })
}
