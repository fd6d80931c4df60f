//! `[[actions]]`: actions triggered by findings.

use std::collections::BTreeMap;

use api::steering::SessionLimits;
use events::FindingKind;
use serde::Deserialize;

/// A user's rule: `[[actions]]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// The kinds of findings that trigger it; none if empty.
    pub on: Vec<FindingKind>,
    /// Apply only to sessions with all these labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The action.
    #[serde(rename = "do")]
    pub kind: ActionKind,
    /// The prompt to queue, the message, or the note.
    #[serde(default)]
    pub text: Option<String>,
    /// The limits to set; they replace the session's.
    #[serde(default)]
    pub limits: Option<SessionLimits>,
}

/// The possible actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionKind {
    /// Interrupt the agent if it runs under `capture run` and is working.
    Interrupt,
    /// Add a prompt to the session's queue.
    Queue,
    /// Add a note to the session.
    Note,
    /// Send a message into the running turn of capture's own agent.
    Steer,
    /// Pause the turn of capture's own agent at its next boundary.
    Pause,
    /// Set limits of a session of capture's own agent.
    Limit,
}

impl ActionKind {
    /// Its name in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "interrupt",
            Self::Queue => "queue",
            Self::Note => "note",
            Self::Steer => "steer",
            Self::Pause => "pause",
            Self::Limit => "limit",
        }
    }
}

impl Action {
    /// Whether the action can be carried out.
    ///
    /// # Errors
    /// If a text is missing, or one is given that the action does not use.
    pub fn check(&self) -> anyhow::Result<()> {
        let text = self.text.as_deref().is_some_and(|text| !text.trim().is_empty());
        match self.kind {
            ActionKind::Interrupt | ActionKind::Pause | ActionKind::Limit => {
                anyhow::ensure!(self.text.is_none(), "actions: `interrupt`, `pause` and `limit` take no `text`");
            }
            ActionKind::Queue | ActionKind::Note | ActionKind::Steer => {
                anyhow::ensure!(text, "actions: `queue`, `note` and `steer` need a `text`");
            }
        }
        let has_limits = self.limits.is_some_and(|limits| limits != SessionLimits::default());
        anyhow::ensure!(
            has_limits == (self.kind == ActionKind::Limit) && (has_limits || self.limits.is_none()),
            "actions: `limit` needs `limits` with at least one of `tokens`, `cost_usd`, `minutes` and `calls`, and \
             only `limit` accepts them"
        );
        anyhow::ensure!(!self.on.is_empty(), "actions: `on` must name at least one kind of finding");
        Ok(())
    }
}

#[cfg(test)]
mod tests;
