//! Decodes a hook's payload into claims about the moment the hook was called.
//!
//! A hook reports a moment and never its end, so its claims are momentary: a newer report of a continuously observing
//! source ends them. Work is claimed with medium strength (a dialog of a parallel call may be open at the same time),
//! ends and requests with high strength. The conversation itself (prompts, calls and answers) is in the transcript and
//! is not repeated here.
//!
//! Formats: recorded from Claude Code 2.1.328, Codex 0.169.0, Gemini CLI 0.61.0 and Qwen Code 0.24.4.

use std::sync::Arc;

use agents::hooks::HookPayload;
use events::{
    ApprovalKind, ApprovalRequested, Claim, Confidence, Dialog, Identity, NewEvent, Origin, Payload, Provider, Reason,
    Repeat, SessionStarted, Signal, Source, StartKind, State, Timestamp,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    Delivery,
    permission::{PATHS, PermissionDetails, SUBJECT_CHARS},
};

/// Delay in ms before a permission request counts: another hook may answer it before a dialog opens.
const CONFIRMED_MS: i64 = 500;
/// How long a submitted prompt certainly counts as being worked on, in ms: a hook may refuse it, and later events are
/// more specific.
const BEGINS_MS: i64 = 1_000;
/// The key of the claim that a prompt was submitted.
const BEGINS_KEY: &str = "prompt";
/// How long a sub-agent counts as working after its hook, in ms: its end may call no hook.
const SUBAGENT_MS: i64 = 60_000;
/// A decoded delivery.
#[derive(Debug, Clone, PartialEq)]
pub struct DecodedDelivery {
    /// The agent's own id of the session.
    pub session: Arc<str>,
    /// Its working directory.
    pub cwd: Option<String>,
    /// The events, in the order in which to add them.
    pub events: Vec<NewEvent>,
}

/// The fields used, of all agents.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct HookPayloadFields {
    hook_event_name: String,
    session_id: String,
    cwd: Option<String>,
    agent_id: Option<String>,
    source: Option<String>,
    model: Option<String>,
    tool_name: Option<String>,
    tool_input: HookToolInput,
    mcp_server: Option<serde::de::IgnoredAny>,
    notification_type: Option<String>,
    message: Option<String>,
    details: Details,
    background_tasks: Vec<Task>,
    trigger: Option<String>,
    error: Option<serde::de::IgnoredAny>,
}

/// The fields that identify the target of a tool.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct HookToolInput {
    command: Option<CommandText>,
    file_path: Option<String>,
    notebook_path: Option<String>,
    path: Option<String>,
    dir_path: Option<String>,
    url: Option<String>,
    plan: Option<String>,
    questions: Vec<QuestionInput>,
    question: Option<String>,
    prompt: Option<String>,
}

/// A command as a text or a list of words.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum CommandText {
    One(String),
    Many(Vec<String>),
    Else(serde::de::IgnoredAny),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct QuestionInput {
    question: Option<String>,
}

/// The details of a Gemini CLI notification.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    r#type: Option<String>,
    command: Option<String>,
    file_path: Option<String>,
    tool_name: Option<String>,
    server_name: Option<String>,
    urls: Vec<String>,
}

impl Details {
    /// The address that is fetched, if there is exactly one.
    fn only_url(&self) -> Option<String> {
        let [url] = self.urls.as_slice() else { return None };
        Some(url.clone())
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Task {
    r#type: Option<String>,
    status: Option<String>,
}

/// Decodes a delivery.
///
/// # Errors
/// If the payload is not an object with an event and a session.
pub fn decode(delivery: &Delivery, now: Timestamp) -> Result<DecodedDelivery, String> {
    match delivery.source {
        Source::Hook => {}
        Source::Protocol => return Err("expected a delivery from a hook, got one from a protocol".into()),
        Source::Registry
        | Source::Runtime
        | Source::Pty
        | Source::Transcript
        | Source::Telemetry
        | Source::Input
        | Source::Process => return Err("unexpected source: expected `hook` or `protocol`".into()),
    }
    let called: HookPayloadFields = serde_json::from_str(delivery.payload.get()).map_err(|error| error.to_string())?;
    if called.hook_event_name.is_empty() || called.session_id.is_empty() {
        return Err("missing event name or session id".into());
    }
    let said = match delivery.provider {
        // Qwen Code has the same events as Claude Code.
        Provider::Claude | Provider::Qwen => claude(&called),
        Provider::Codex => codex(&called),
        Provider::Gemini => gemini(&called),
        Provider::Pi
        | Provider::Capture
        | Provider::Opencode
        | Provider::Aider
        | Provider::Crush
        | Provider::Goose
        | Provider::Amp
        | Provider::Unknown => Vec::new(),
    };
    let session: Arc<str> = Arc::from(called.session_id.as_str());
    let agent: Option<Arc<str>> = called.agent_id.as_deref().map(Arc::from);
    let mut payloads: Vec<(Payload, bool)> = Vec::new();
    if called.hook_event_name == "SessionStart" {
        let started = SessionStarted {
            how: match called.source.as_deref() {
                Some("resume") => StartKind::Resume,
                Some("fork") => StartKind::Fork,
                Some("startup" | "clear") => StartKind::New,
                Some(_) | None => StartKind::Unknown,
            },
            cwd: called.cwd.clone(),
            model: called.model.clone(),
            ..SessionStarted::default()
        };
        payloads.push((started.into(), false));
    }
    for said in said {
        // An idle sub-agent implies nothing about its parent.
        let rests = agent.is_some() && matches!(said, HookClaim::Rests(_));
        let said = if rests { HookClaim::Nothing } else { said };
        if let Some(about) = said.asks_for() {
            payloads.push((called.request(delivery, about).into(), true));
        }
        payloads.push((said.signal(delivery, &called, agent.is_some()).into(), true));
    }
    let events = events_of(delivery, &session, agent.as_ref(), payloads, now);
    Ok(DecodedDelivery { session: Arc::clone(&session), cwd: called.cwd.clone(), events })
}

/// The weaker form of an event from an agent whose hooks do not report permission requests, if it has one: a reported
/// tool may be waiting for a dialog.
#[must_use]
pub fn without_requests(event: &NewEvent) -> Option<NewEvent> {
    let Payload::Signal(signal) = &event.payload else { return None };
    let is_tool = matches!(signal.claim, Claim::State { state: State::Running, reason: Some(Reason::Tool) });
    let payload = Signal { strength: Confidence::Low, ..signal.clone() }.into();
    is_tool.then(|| NewEvent { payload, ..event.clone() })
}

/// Turns the payloads of a delivery into events identified by the delivery; the flag marks those of a sub-agent.
pub fn events_of(
    delivery: &Delivery,
    session: &Arc<str>,
    agent: Option<&Arc<str>>,
    payloads: Vec<(Payload, bool)>,
    now: Timestamp,
) -> Vec<NewEvent> {
    let origin: Arc<str> = Arc::from(delivery.id.to_string());
    let event = |(index, (payload, of_agent)): (usize, (Payload, bool))| NewEvent {
        provider: delivery.provider,
        provider_session_id: Arc::clone(session),
        identity: Identity::of(
            Provider::Capture,
            "delivery",
            &[&delivery.id.to_bytes(), &(index as u64).to_le_bytes()],
        ),
        repeat: Repeat::Unique,
        source: delivery.source,
        created_at: Some(delivery.at),
        observed_at: now,
        parent: None,
        agent_id: agent.cloned().filter(|_| of_agent),
        confidence: Confidence::High,
        severity: None,
        text: None,
        payload,
        origin: Origin::Delivery { id: Arc::clone(&origin) },
    };
    payloads.into_iter().enumerate().map(event).collect()
}

/// The permission details of a tool call, from its name and input in the form of the agent's hooks. `None` if the input
/// is not an object with fields of the known types.
pub fn details_of_tool(provider: Provider, tool: &str, input: &RawValue) -> Option<PermissionDetails> {
    let tool_input: HookToolInput = serde_json::from_str(input.get()).ok()?;
    let called = HookPayloadFields { tool_name: Some(tool.to_owned()), tool_input, ..HookPayloadFields::default() };
    let about = if tool == "AskUserQuestion" { ApprovalKind::Question } else { called.about() };
    Some(PermissionDetails { input: Some(input.get().to_owned()), ..called.permission_details(provider, about) })
}

/// The tool call that a hook reports before the agent asks for permission: the agent's id of the session, and the call
/// as a request. `None` if the hook reports none.
#[must_use]
pub fn call_of(delivery: &Delivery) -> Option<(String, ApprovalRequested)> {
    let called: HookPayloadFields = serde_json::from_str(delivery.payload.get()).ok()?;
    let asking = super::answer::asking_event(delivery.provider) == Some(called.hook_event_name.as_str());
    let before = asking && super::answer::asks_before_rules(delivery.provider);
    before.then(|| (called.session_id.clone(), called.request(delivery, called.about())))
}

/// A claim that follows from a hook.
enum HookClaim {
    /// The session is working.
    Works(Reason),
    /// A prompt was submitted just now.
    Begins,
    /// The turn is over, and sub-agents it started continue.
    LeavesSubagents,
    /// The session is waiting, for this reason.
    Rests(Reason),
    /// The agent asks for permission; `certain` if a dialog is already open.
    Asks { about: ApprovalKind, certain: bool },
    /// The agent asks the user a question; `certain` if it is already on the screen.
    Questions { certain: bool },
    /// The request for this tool was answered.
    Answered,
    /// The last claim is over, and the hook does not report what follows.
    Nothing,
}

impl HookClaim {
    /// The permission asked for; a notification that repeats a request is not a second one.
    const fn asks_for(&self) -> Option<ApprovalKind> {
        match *self {
            Self::Asks { about, certain: false } => Some(about),
            Self::Questions { certain: false } => Some(ApprovalKind::Question),
            Self::Asks { .. }
            | Self::Questions { .. }
            | Self::Works(_)
            | Self::Begins
            | Self::LeavesSubagents
            | Self::Rests(_)
            | Self::Answered
            | Self::Nothing => None,
        }
    }

    fn signal(&self, delivery: &Delivery, called: &HookPayloadFields, of_agent: bool) -> Signal {
        let later = |certain: bool| (!certain).then(|| delivery.at.plus_ms(CONFIRMED_MS));
        let state = |state, reason| Claim::State { state, reason: Some(reason) };
        let (claim, strength, holds_from, keyed) = match *self {
            // The work of a sub-agent means that its parent is running; the parent's own events are more specific.
            Self::Works(_) if of_agent => (state(State::Running, Reason::Subagents), Confidence::Medium, None, false),
            Self::Works(reason) => (state(State::Running, reason), Confidence::Medium, None, false),
            Self::Begins => (state(State::Running, Reason::Thinking), Confidence::High, None, false),
            // The conversation reports that the turn is over, and so does this hook.
            Self::LeavesSubagents => (state(State::Running, Reason::Subagents), Confidence::High, None, false),
            Self::Rests(reason) => (state(State::Waiting, reason), Confidence::High, None, false),
            Self::Asks { about, certain } => {
                (state(State::WaitingApproval, about.reason()), Confidence::High, later(certain), true)
            }
            Self::Questions { certain } => {
                (state(State::Waiting, Reason::Question), Confidence::High, later(certain), true)
            }
            Self::Answered => (Claim::Withdrawn, Confidence::High, None, true),
            Self::Nothing => (Claim::Withdrawn, Confidence::High, None, false),
        };
        let asks = matches!(self, Self::Asks { .. } | Self::Questions { .. });
        Signal {
            claim,
            strength,
            valid_until: match self {
                Self::Begins => Some(delivery.at.plus_ms(BEGINS_MS)),
                Self::Works(_) if of_agent => Some(delivery.at.plus_ms(SUBAGENT_MS)),
                Self::Works(_)
                | Self::LeavesSubagents
                | Self::Rests(_)
                | Self::Asks { .. }
                | Self::Questions { .. }
                | Self::Answered
                | Self::Nothing => None,
            },
            words: Some(called.words()),
            holds_from,
            key: match self {
                Self::Begins => Some(BEGINS_KEY.to_owned()),
                Self::Works(_)
                | Self::LeavesSubagents
                | Self::Rests(_)
                | Self::Asks { .. }
                | Self::Questions { .. }
                | Self::Answered
                | Self::Nothing => called.key_of(delivery.provider).filter(|_| keyed),
            },
            dialog: asks.then(|| {
                let about = if let Self::Asks { about, .. } = self { Some(*about) } else { None };
                Box::new(Dialog { about, subject: called.subject(), ..Dialog::default() })
            }),
        }
    }
}

impl HookPayloadFields {
    fn tool(&self) -> &str {
        self.tool_name.as_deref().unwrap_or_default()
    }

    /// The type of a notification without one, derived from its text: Claude Code 1.0.100.
    fn older_notification(&self) -> Option<&'static str> {
        let text = self.message.as_deref()?;
        if text.starts_with("Claude needs your permission") {
            return Some("permission_prompt");
        }
        (text == "Claude is waiting for your input").then_some("idle_prompt")
    }

    fn words(&self) -> String {
        let what = [self.tool_name.as_deref(), self.notification_type.as_deref(), self.trigger.as_deref()];
        let mut words = self.hook_event_name.clone();
        for what in what.into_iter().flatten().chain(self.details.r#type.as_deref()) {
            words.push(' ');
            words.push_str(what);
        }
        words
    }

    /// The key of the hook's claims.
    fn key_of(&self, provider: Provider) -> Option<String> {
        payload_of(provider).is_none_or(|facts| facts.keyed_requests).then(|| self.key()).flatten()
    }

    /// The request as an approval, with the exact bytes of the input.
    fn request(&self, delivery: &Delivery, about: ApprovalKind) -> ApprovalRequested {
        let asked = PermissionDetails {
            input: input_of(&delivery.payload).map(str::to_owned),
            cwd: self.cwd.clone(),
            key: self.key_of(delivery.provider),
            ..self.permission_details(delivery.provider, about)
        };
        asked.into_event(delivery)
    }

    /// The details of the call, to the extent that the tool's name and input contain them.
    fn permission_details(&self, provider: Provider, about: ApprovalKind) -> PermissionDetails {
        // The `command` of any other tool is not a shell command line.
        let shell = about == ApprovalKind::Command && self.is_shell(provider);
        let has_details = payload_of(provider).is_some_and(|facts| facts.shell_details.is_some());
        let command = match &self.tool_input.command {
            _ if !shell => None,
            Some(CommandText::One(command)) => Some(command.clone()),
            None if has_details => self.details.command.clone(),
            // Nor is a list of words; the approver has the whole input.
            Some(CommandText::Many(_) | CommandText::Else(_)) | None => None,
        };
        PermissionDetails {
            about: Some(about).filter(|about| *about != ApprovalKind::Command || shell),
            tool: self.tool_name.clone().or_else(|| self.details.tool_name.clone()),
            command,
            paths: self.paths(),
            url: self.tool_input.url.clone().or_else(|| self.details.only_url()),
            subject: self.subject(),
            ..PermissionDetails::default()
        }
    }

    /// The files a tool accesses; a patch names them in its text. `None` if not all are known: too many, or named
    /// ambiguously.
    fn paths(&self) -> Option<Vec<String>> {
        let input = &self.tool_input;
        if self.tool() == "apply_patch" {
            let Some(CommandText::One(patch)) = &input.command else { return None };
            return patched(patch);
        }
        let named = [&input.file_path, &input.notebook_path, &input.path, &input.dir_path, &self.details.file_path];
        Some(named.into_iter().flatten().cloned().collect())
    }

    /// The key of a request: the same for the request and the result of its call.
    fn key(&self) -> Option<String> {
        let subject = self.subject();
        if self.tool_name.is_none() && subject.is_none() {
            return None;
        }
        // A request does not name its call, so its subject identifies it.
        let key = Identity::of(
            Provider::Capture,
            "request",
            &[self.tool().as_bytes(), subject.as_deref().unwrap_or_default().as_bytes()],
        );
        Some(key.event_id().to_string())
    }

    fn subject(&self) -> Option<String> {
        let input = &self.tool_input;
        let command = match &input.command {
            Some(CommandText::One(command)) => Some(command.clone()),
            Some(CommandText::Many(words)) => Some(words.join(" ")),
            Some(CommandText::Else(_)) | None => None,
        };
        let question = input.questions.first().and_then(|q| q.question.clone()).or_else(|| input.question.clone());
        let details = &self.details;
        let mcp = details.tool_name.as_ref().map(|tool| match &details.server_name {
            Some(server) => format!("{tool} of {server}"),
            None => tool.clone(),
        });
        let named = command
            .or_else(|| details.command.clone())
            .or_else(|| input.file_path.clone().or_else(|| details.file_path.clone()).or_else(|| input.path.clone()))
            .or_else(|| input.url.clone())
            .or_else(|| Some(details.urls.join(" ")).filter(|urls| !urls.is_empty()))
            .or(question)
            .or_else(|| input.plan.clone())
            .or(mcp)
            .or_else(|| self.tool_name.clone().filter(|name| name.starts_with("mcp")));
        // The request for a patch of Codex lacks the trailing line end that its result has (0.169.0).
        named.map(|text| text.trim_end().chars().take(SUBJECT_CHARS).collect())
    }

    /// Whether the tool is the agent's shell.
    fn is_shell(&self, provider: Provider) -> bool {
        payload_of(provider).is_some_and(|facts| {
            facts.shell_tools.contains(&self.tool())
                || facts.shell_details.is_some_and(|kind| self.details.r#type.as_deref() == Some(kind))
        })
    }

    /// The kind of permission a request for this tool asks for.
    fn about(&self) -> ApprovalKind {
        match self.tool() {
            "Edit" | "MultiEdit" | "NotebookEdit" | "apply_patch" | "replace" | "edit" => ApprovalKind::Edit,
            "Write" | "write_file" => ApprovalKind::Write,
            "Read" | "Glob" | "Grep" | "LS" | "NotebookRead" | "read_file" | "list_directory" => ApprovalKind::Read,
            "WebFetch" | "WebSearch" => ApprovalKind::Fetch,
            "ExitPlanMode" => ApprovalKind::Plan,
            "web_fetch" | "google_web_search" => ApprovalKind::Fetch,
            "exit_plan_mode" => ApprovalKind::Plan,
            "ask_user" => ApprovalKind::Question,
            name if name.starts_with("mcp_") || self.mcp_server.is_some() => ApprovalKind::Mcp,
            _ => ApprovalKind::Command,
        }
    }
}

pub(super) fn payload_of(provider: Provider) -> Option<HookPayload> {
    crate::facts::facts(provider).map(|hooks| hooks.payload)
}

/// The files named in a Codex patch. Its parser trims the lines that begin a part: a line that looks like one once
/// trimmed must be recognised.
fn patched(patch: &str) -> Option<Vec<String>> {
    const NAMES: [&str; 4] = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
    const OTHERS: [&str; 4] = ["*** Begin Patch", "*** End Patch", "*** End of File", "*** Environment ID: "];
    let mut paths = Vec::new();
    for line in patch.lines() {
        let bare = line.trim();
        if let Some(path) = NAMES.iter().find_map(|name| bare.strip_prefix(name)) {
            paths.push(path.trim().to_owned());
        } else if bare.starts_with("***") && !OTHERS.iter().any(|other| bare.starts_with(other)) {
            return None;
        }
    }
    (paths.len() <= PATHS && !paths.is_empty()).then_some(paths)
}

/// The tool's input as delivered.
fn input_of(payload: &RawValue) -> Option<&str> {
    #[derive(Deserialize)]
    struct ToolInputField<'p> {
        #[serde(borrow)]
        tool_input: Option<&'p RawValue>,
    }
    serde_json::from_str::<ToolInputField<'_>>(payload.get()).ok()?.tool_input.map(RawValue::get)
}

fn claude(called: &HookPayloadFields) -> Vec<HookClaim> {
    let running = |task: &&Task| task.status.as_deref() == Some("running");
    match called.hook_event_name.as_str() {
        "SessionStart" if called.source.as_deref() == Some("compact") => Vec::new(),
        "SessionStart" => vec![HookClaim::Rests(Reason::NewSession)],
        "UserPromptSubmit" => vec![HookClaim::Works(Reason::Thinking), HookClaim::Begins],
        "PreToolUse" => vec![HookClaim::Works(Reason::Tool)],
        "PostToolUse" | "PostToolUseFailure" | "PermissionDenied" => {
            vec![HookClaim::Answered, HookClaim::Works(Reason::Thinking)]
        }
        "PermissionRequest" if called.tool() == "AskUserQuestion" => vec![HookClaim::Questions { certain: false }],
        "PermissionRequest" => vec![HookClaim::Asks { about: called.about(), certain: false }],
        "Notification" => match called.notification_type.as_deref().or_else(|| called.older_notification()) {
            Some("permission_prompt") => vec![HookClaim::Asks { about: called.about(), certain: true }],
            Some("elicitation_dialog") => vec![HookClaim::Questions { certain: true }],
            Some("elicitation_response") => vec![HookClaim::Answered, HookClaim::Works(Reason::Thinking)],
            Some("idle_prompt") => vec![HookClaim::Rests(Reason::TurnComplete)],
            Some(_) | None => Vec::new(),
        },
        "Elicitation" => vec![HookClaim::Questions { certain: false }],
        "ElicitationResult" => vec![HookClaim::Answered, HookClaim::Works(Reason::Thinking)],
        // The turn is over, and work it started continues.
        "Stop" if called.background_tasks.iter().filter(running).any(|t| t.r#type.as_deref() == Some("subagent")) => {
            vec![HookClaim::LeavesSubagents]
        }
        "Stop" if called.background_tasks.iter().any(|t| running(&t)) => vec![HookClaim::Rests(Reason::Background)],
        "Stop" => vec![HookClaim::Rests(Reason::TurnComplete)],
        "StopFailure" => vec![HookClaim::Rests(Reason::Error)],
        "SubagentStart" => vec![HookClaim::Works(Reason::Subagents)],
        "SubagentStop" | "PostCompact" | "SessionEnd" => vec![HookClaim::Nothing],
        "PreCompact" => vec![HookClaim::Works(Reason::Compacting)],
        _ => Vec::new(),
    }
}

fn codex(called: &HookPayloadFields) -> Vec<HookClaim> {
    match called.hook_event_name.as_str() {
        // Fires with the first prompt, not at the start.
        "SessionStart" => Vec::new(),
        "UserPromptSubmit" => vec![HookClaim::Works(Reason::Thinking), HookClaim::Begins],
        // The only hook a question has.
        "PreToolUse" if called.tool() == "request_user_input" => vec![HookClaim::Questions { certain: false }],
        "PreToolUse" => vec![HookClaim::Works(Reason::Tool)],
        "PermissionRequest" => vec![HookClaim::Asks { about: called.about(), certain: false }],
        "PostToolUse" => vec![HookClaim::Answered, HookClaim::Works(Reason::Thinking)],
        "SubagentStart" => vec![HookClaim::Works(Reason::Subagents)],
        "SubagentStop" | "PostCompact" | "SessionEnd" => vec![HookClaim::Nothing],
        "PreCompact" => vec![HookClaim::Works(Reason::Compacting)],
        "Stop" => vec![HookClaim::Rests(Reason::TurnComplete)],
        "Interrupt" => vec![HookClaim::Rests(Reason::Interrupted)],
        _ => Vec::new(),
    }
}

fn gemini(called: &HookPayloadFields) -> Vec<HookClaim> {
    match called.hook_event_name.as_str() {
        "SessionStart" => vec![HookClaim::Rests(Reason::NewSession)],
        "BeforeAgent" => vec![HookClaim::Works(Reason::Thinking), HookClaim::Begins],
        // Fires before the policy is evaluated, so it does not mean that a dialog is open.
        "BeforeTool" => vec![HookClaim::Works(Reason::Tool)],
        "AfterTool" => vec![HookClaim::Works(Reason::Thinking)],
        "AfterAgent" => vec![HookClaim::Rests(Reason::TurnComplete)],
        "Notification" if called.notification_type.as_deref() == Some("ToolPermission") => {
            // Fires up to 0.6 s before the dialog is drawn, which waits for the hook.
            let asks = |about| vec![HookClaim::Asks { about, certain: false }];
            match called.details.r#type.as_deref() {
                Some("ask_user") => vec![HookClaim::Questions { certain: false }],
                Some("edit") => asks(ApprovalKind::Edit),
                Some("mcp") => asks(ApprovalKind::Mcp),
                Some("info") => asks(ApprovalKind::Fetch),
                Some("exit_plan_mode") => asks(ApprovalKind::Plan),
                Some(_) | None => asks(ApprovalKind::Command),
            }
        }
        "SessionEnd" => vec![HookClaim::Nothing],
        _ => Vec::new(),
    }
}
