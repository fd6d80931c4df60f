//! Approvals: permission requests of agents, and their outcome.

use events::{
    ApprovalId, ApprovalKind, ApprovalRequested, ApprovalResolved, ApprovalState, Choice, Confidence, DecidedBy,
    DecidedVia, DeliveryId, Excerpt, Provider, SessionId, Source, Timestamp, ToolOutcome,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A permission request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Approval {
    /// Its id.
    pub id: ApprovalId,
    /// The session it belongs to.
    pub session_id: SessionId,
    /// The agent.
    pub provider: Provider,
    /// The sub-agent that made the request, if it was not the main agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The kind of action the agent asks for; absent if not known.
    pub kind: Option<ApprovalKind>,
    /// Its state.
    pub state: ApprovalState,
    /// The agent's name for the tool.
    pub tool: Option<String>,
    /// The call it is about, by the agent's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// The whole command; absent when it is only known from a screen.
    pub command: Option<String>,
    /// The files it concerns.
    pub paths: Vec<String>,
    /// The URL to be fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The subject in the words of the source; may be cut.
    pub subject: Option<String>,
    /// The question shown to the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The answers a dialog offers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<Choice>,
    /// The tool's input, JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// The beginning and the end of the command, or of the input if there is no command, of a request that is too long
    /// to be stored completely. capture does not allow such a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<Box<Excerpt>>,
    /// Secrets were removed from the request before it was stored; the agent's original still contains them. capture
    /// does not allow such a request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
    /// Whether every byte of the request is known; rules decide only if it is.
    pub exact: bool,
    /// The directory in which the call would run.
    pub cwd: Option<String>,
    /// The agent's own name for the sandbox of the call, `none` without one; absent if the agent does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// The source that reported it.
    pub source: Source,
    /// How certain it is that the agent waits for a decision.
    pub confidence: Confidence,
    /// The delivery of the hook that made the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub delivery: Option<DeliveryId>,
    /// The BLAKE3 hash of the payload passed to the hook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The PATH of the agent, on which it finds its programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search_path: Option<String>,
    /// The key of the claim that was made with the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// When it was requested.
    pub opened_at: Timestamp,
    /// When it was closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<Timestamp>,
    /// How long it was pending, ms; absent while it is still pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_ms: Option<u64>,
    /// Whether it was allowed; absent when not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<bool>,
    /// Who decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<DecidedBy>,
    /// How the decision was delivered to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<DecidedVia>,
    /// The name of the paired device on which a person decided; absent if it was not a paired device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The rule that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The reason, or the message that the agent received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The command that ran instead of the requested one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewrite: Option<String>,
    /// How the requested call ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<ToolOutcome>,
}

/// Longest command in a one-line summary, characters.
const SUBJECT_CHARS: usize = 200;

impl Approval {
    /// Creates a pending approval from its request.
    #[must_use]
    pub fn of(
        asked: &ApprovalRequested,
        (session_id, provider): (SessionId, Provider),
        agent_id: Option<&str>,
        (source, confidence): (Source, Confidence),
        at: Timestamp,
    ) -> Self {
        let dialog = asked.dialog.as_deref();
        let subject = asked
            .command
            .clone()
            .or_else(|| asked.paths.first().cloned())
            .or_else(|| asked.url.clone())
            .or_else(|| dialog.and_then(|d| d.subject.clone()))
            .or_else(|| asked.excerpt.as_ref().map(|excerpt| excerpt.beginning.clone()))
            .map(|subject| crate::shorten::verbatim_line(&subject, SUBJECT_CHARS));
        Self {
            id: asked.approval_id.clone(),
            session_id,
            provider,
            agent_id: agent_id.map(str::to_owned),
            kind: asked.about,
            state: ApprovalState::Pending,
            tool: asked.tool.clone(),
            call_id: asked.call_id.clone(),
            command: asked.command.clone(),
            paths: asked.paths.clone(),
            url: asked.url.clone(),
            subject,
            question: dialog.and_then(|d| d.question.clone()),
            options: dialog.map(|d| d.options.clone()).unwrap_or_default(),
            input: asked.input.clone(),
            excerpt: asked.excerpt.clone(),
            masked: asked.masked,
            exact: asked.input.is_some() && !asked.cut,
            cwd: asked.cwd.clone(),
            sandbox: asked.sandbox.clone(),
            source,
            confidence,
            delivery: asked.delivery,
            digest: asked.digest.clone(),
            search_path: asked.search_path.clone(),
            key: asked.key.clone(),
            opened_at: at,
            closed_at: None,
            waited_ms: None,
            allowed: None,
            by: None,
            via: None,
            device: None,
            rule: None,
            message: None,
            rewrite: None,
            outcome: None,
        }
    }

    /// Whether the agent continued for an unknown reason, so that a key press recorded for this approval explains it.
    #[must_use]
    pub fn was_left_open(&self, via: Option<DecidedVia>) -> bool {
        let unknown = matches!(self.state, ApprovalState::AnsweredElsewhere | ApprovalState::Withdrawn);
        unknown && self.by.is_none() && via == Some(DecidedVia::Keys)
    }

    /// Whether the request was answered, here or elsewhere.
    #[must_use]
    pub const fn was_answered(&self) -> bool {
        match self.state {
            ApprovalState::Allowed | ApprovalState::Denied | ApprovalState::AnsweredElsewhere => true,
            ApprovalState::Pending | ApprovalState::Expired | ApprovalState::Withdrawn => self.by.is_some(),
        }
    }

    /// Applies the decision, or the way the request ended. Returns how long the request waited, ms.
    pub(crate) fn close(&mut self, resolved: &ApprovalResolved, at: Timestamp) -> u64 {
        self.state = resolved.new_state().unwrap_or(ApprovalState::AnsweredElsewhere);
        self.closed_at = Some(at.max(self.opened_at));
        let waited_ms = u64::try_from(at.since_ms(self.opened_at)).unwrap_or(0);
        self.waited_ms = Some(waited_ms);
        self.allowed = resolved.allowed;
        self.by = resolved.by;
        self.via = resolved.via;
        self.device.clone_from(&resolved.device);
        self.rule.clone_from(&resolved.rule);
        self.message.clone_from(&resolved.message);
        self.rewrite.clone_from(&resolved.rewrite);
        waited_ms
    }
}
