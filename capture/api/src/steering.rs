//! Starting sessions, and sending them input.

use events::{Provider, RunId, SessionId};
pub use host_protocol::frame::{CommandOutcome, OutcomeKind, SessionCommand, SessionLimits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::runs::Input;

/// Input for a session: `do` with the fields of the action or, for a run with a terminal, exactly one of `text`, `keys`
/// and `interrupt`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionInputRequest {
    /// The action. capture's own agent supports all actions, agents in `capture run` only `prompt` and `abort`.
    #[serde(rename = "do", default, skip_serializing_if = "Option::is_none")]
    pub action: Option<SessionAction>,
    /// The text of `prompt`, `steer` and `follow_up`. Without `do`, the text is typed once the run is at a prompt: a
    /// newline at its end presses Enter, and text with a newline inside is sent as a paste.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The model of `set_model`: `PROVIDER/MODEL`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The limits of `limit`; they replace the earlier ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<SessionLimits>,
    /// Presses Enter after the text, if the screen still shows the same prompt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub submit: bool,
    /// Keys by name, pressed one after another: `enter`, `esc`, `ctrl-c`, `up`, `y`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<String>>,
    /// Interrupts the program.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupt: bool,
    /// Types the text at once, whatever the screen shows; it may answer a dialog.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    /// How long the text waits for the prompt, ms (default 30000, at most 3600000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// The actions that `do` can request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionAction {
    /// Begin a turn; refused while one is running.
    Prompt,
    /// Add a message to the running turn, at the next boundary between tools and requests; if no turn is running, begin
    /// one.
    Steer,
    /// Answer a message after the running turn.
    FollowUp,
    /// End the turn now.
    Abort,
    /// Stop at the next boundary.
    Pause,
    /// Continue after a pause.
    Resume,
    /// Replace the beginning of the conversation by a summary, at the next boundary between tools and requests.
    Compact,
    /// Use another model, from the next request on.
    SetModel,
    /// Set other limits.
    Limit,
    /// End the process of a session that the server started.
    End,
}

/// The parsed form of an input request.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionInputKind {
    /// A command for the session.
    Command(SessionCommand),
    /// Input to type.
    Typed(Input),
}

impl SessionInputRequest {
    /// Converts the request to its parsed form.
    ///
    /// # Errors
    /// If a field is missing or does not belong to the request.
    pub fn kind(self) -> Result<SessionInputKind, String> {
        let Self { action, text, model, limits, submit, keys, interrupt, force, timeout_ms } = self;
        let Some(action) = action else {
            if model.is_some() || limits.is_some() {
                return Err("`model` and `limits` need `do`".to_owned());
            }
            return Ok(SessionInputKind::Typed(Input { text, submit, keys, interrupt, force, timeout_ms }));
        };
        if submit || keys.is_some() || interrupt || force || timeout_ms.is_some() {
            let typing = "`submit`, `keys`, `interrupt`, `force` and `timeout_ms`";
            return Err(format!("{typing} cannot be combined with `do`"));
        }
        let is_text_needed = matches!(action, SessionAction::Prompt | SessionAction::Steer | SessionAction::FollowUp);
        let unused = [
            ("text", text.is_some() && !is_text_needed),
            ("model", model.is_some() && action != SessionAction::SetModel),
            ("limits", limits.is_some() && action != SessionAction::Limit),
        ];
        if let Some((name, _)) = unused.iter().find(|(_, is_unused)| *is_unused) {
            return Err(format!("`{name}` cannot be combined with this `do`"));
        }
        let text = || text.filter(|text| !text.trim().is_empty()).ok_or_else(|| "`text` is missing".to_owned());
        Ok(SessionInputKind::Command(match action {
            SessionAction::Prompt => SessionCommand::Prompt { text: text()? },
            SessionAction::Steer => SessionCommand::Steer { text: text()? },
            SessionAction::FollowUp => SessionCommand::FollowUp { text: text()? },
            SessionAction::Abort => SessionCommand::Abort,
            SessionAction::Pause => SessionCommand::Pause,
            SessionAction::Resume => SessionCommand::Resume,
            SessionAction::Compact => SessionCommand::Compact,
            SessionAction::SetModel => SessionCommand::SetModel { model: model.ok_or("`model` is missing")? },
            SessionAction::Limit => SessionCommand::Limit { limits: limits.ok_or("`limits` is missing")? },
            SessionAction::End => SessionCommand::End,
        }))
    }
}

/// Input that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionInputTaken {
    /// The run of the session.
    pub run: RunId,
    /// Always true.
    pub sent: bool,
    /// The position of the log before it was accepted, to pass as `after` to `GET /api/v1/sessions/{id}/wait`.
    #[serde(default)]
    pub position: u64,
    /// The outcome; absent for typed input.
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<CommandOutcome>,
}

/// A session to start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionRequest {
    /// The agent: `capture` (default), or one that `capture agent drive` supports.
    #[serde(default = "own", skip_serializing_if = "is_own")]
    pub agent: Provider,
    /// The working directory; absolute.
    pub cwd: String,
    /// A name for the session's run; no other active run may have this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The first prompt. Other agents than `capture` need one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The first skill; not available yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// The model of capture's own agent: `PROVIDER/MODEL` (default: the configured model).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The mode of capture's own agent, `plan` or `ask` (default).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<StartMode>,
    /// The session of capture's own agent to continue: its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<String>,
    /// How long a permission request waits for a decision, seconds (default 600, at most 3,600).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_s: Option<u32>,
}

/// The modes in which the API can start a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StartMode {
    /// Only reads; everything else is denied.
    Plan,
    /// The policy and people decide.
    Ask,
}

const fn own() -> Provider {
    Provider::Capture
}

fn is_own(agent: &Provider) -> bool {
    *agent == Provider::Capture
}

/// A session that was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StartedSession {
    /// Its id. If the agent has not reported its own session id yet, this session is later merged into the agent's
    /// session, and this id redirects to that session.
    pub session_id: SessionId,
    /// The run of its process.
    pub run_id: RunId,
    /// The agent.
    pub agent: Provider,
    /// The working directory.
    pub cwd: String,
    /// The process, which outlives the server and its clients.
    pub pid: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(body: &str) -> Result<SessionInputKind, String> {
        serde_json::from_str::<SessionInputRequest>(body).unwrap().kind()
    }

    #[test]
    fn session_input_with_mismatched_fields_is_refused() {
        let command = |body: &str| match kind(body).unwrap() {
            SessionInputKind::Command(command) => command.name(),
            SessionInputKind::Typed(_) => "typed",
        };
        assert_eq!(command(r#"{"do":"steer","text":"left"}"#), "steer");
        assert_eq!(command(r#"{"do":"limit","limits":{"calls":3}}"#), "limit");
        assert_eq!(command(r#"{"text":"left","submit":true}"#), "typed");
        for (body, why) in [
            (r#"{"do":"prompt"}"#, "`text` is missing"),
            (r#"{"do":"prompt","text":" "}"#, "`text` is missing"),
            (r#"{"do":"abort","text":"x"}"#, "`text` cannot be combined with this `do`"),
            (r#"{"do":"set_model"}"#, "`model` is missing"),
            (r#"{"do":"abort","interrupt":true}"#, "cannot be combined with `do`"),
            (r#"{"model":"a/b"}"#, "need `do`"),
        ] {
            assert!(kind(body).unwrap_err().contains(why), "{body}");
        }
        for name in SessionCommand::NAMES {
            assert!(serde_json::from_value::<SessionAction>(name.into()).is_ok(), "{name}");
        }
    }
}
