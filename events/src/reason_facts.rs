//! The facts about each reason of a status: one source for the documentation, the page, and the consequences that the
//! other crates draw. A new reason is described here.

use crate::{
    finding::FindingKind,
    need::Need,
    payload::{ApprovalKind, TurnOutcome},
    status::{Reason, State},
};

/// Describes a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReasonFacts {
    /// Its name on the page.
    pub title: &'static str,
    /// The states that have this reason, and its meaning in each.
    pub uses: &'static [ReasonUse],
    /// Whether it is ordinary progress within a turn.
    pub is_progress: bool,
    /// Whether it is the usual reason of its state, which lists leave out.
    pub is_implied: bool,
    /// Whether the status also names what the reason is about, such as the command.
    pub has_subject: bool,
    /// The consequences for a session that is `waiting` for this reason.
    pub waiting: Option<AtRest>,
    /// What a session that is `waiting_approval` for this reason requests.
    pub approval: Option<ApprovalKind>,
}

/// A state that has a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReasonUse {
    /// The state.
    pub state: State,
    /// What the two say about a session: `the agent finished`.
    pub meaning: &'static str,
    /// The records that report it, in Markdown; empty if there are none.
    pub evidence: &'static str,
}

/// The consequences of a reason for which a session is `waiting`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtRest {
    /// What the session needs. One that waits for its first prompt, or for a background command, needs nothing.
    pub need: Option<Need>,
    /// Whether a queued prompt may be sent. A session that the user stopped, or that has a question or a failure, waits
    /// for the user.
    pub accepts_prompt: bool,
    /// Whether a prompt that a user sends now may be typed into the agent's terminal. A question would take it as its
    /// answer.
    pub takes_typed_prompt: bool,
    /// The finding, if the reason alone is sufficient.
    pub finding: Option<FindingKind>,
    /// The outcome of a turn that ended for this reason.
    pub turn_outcome: Option<TurnOutcome>,
    /// Whether an error stopped the agent. The reason then stays until the user acts.
    pub is_of_error: bool,
    /// Whether the reason may date from before a turn that has begun. A question or an error cannot.
    pub may_precede_turn: bool,
    /// Reasons for the end of a turn that another source may report less specifically.
    pub more_specific_than: &'static [Reason],
}

impl Reason {
    /// The facts about this reason.
    #[must_use]
    pub const fn facts(self) -> ReasonFacts {
        match self {
            Self::Thinking => ReasonFacts {
                title: "thinking",
                uses: &[ReasonUse {
                    state: State::Running,
                    meaning: "the model was called and has not answered yet",
                    evidence: "a turn that has not ended, with no unfinished call; Claude Code's registry `busy`; Codex `task_started`",
                }],
                is_progress: true,
                is_implied: false,
                has_subject: false,
                waiting: None,
                approval: None,
            },
            Self::Streaming => ReasonFacts {
                title: "answering",
                uses: &[ReasonUse {
                    state: State::Running,
                    meaning: "the model's answer is arriving",
                    evidence: "our own agent",
                }],
                is_progress: true,
                is_implied: false,
                has_subject: false,
                waiting: None,
                approval: None,
            },
            Self::Tool => ReasonFacts {
                title: "command",
                uses: &[
                    ReasonUse {
                        state: State::Running,
                        meaning: "a tool was called and has not returned yet",
                        evidence: "a call without a result",
                    },
                    ReasonUse {
                        state: State::WaitingApproval,
                        meaning: "a dialog asks for permission to run a command or call a tool",
                        evidence: "Claude Code's registry `waiting`, with the unfinished call",
                    },
                ],
                is_progress: true,
                is_implied: false,
                has_subject: true,
                waiting: None,
                approval: Some(ApprovalKind::Command),
            },
            Self::Retrying => ReasonFacts {
                title: "retrying",
                uses: &[ReasonUse {
                    state: State::Running,
                    meaning: "the model call failed and is being repeated",
                    evidence: "Claude Code `api_error` records, Codex `stream_error`",
                }],
                is_progress: false,
                is_implied: false,
                has_subject: false,
                waiting: None,
                approval: None,
            },
            Self::Compacting => ReasonFacts {
                title: "compacting the context",
                uses: &[ReasonUse {
                    state: State::Running,
                    meaning: "the context is being compacted",
                    evidence: "Codex: a turn without a prompt; our own agent",
                }],
                is_progress: false,
                is_implied: false,
                has_subject: false,
                waiting: None,
                approval: None,
            },
            Self::Subagents => ReasonFacts {
                title: "sub-agents work",
                uses: &[ReasonUse {
                    state: State::Running,
                    meaning: "only sub-agents are working",
                    evidence: "all unfinished calls are sub-agents, or a sub-agent's own transcript shows activity",
                }],
                is_progress: true,
                is_implied: false,
                has_subject: true,
                waiting: None,
                approval: None,
            },
            Self::NewSession => ReasonFacts {
                title: "no prompt yet",
                uses: &[ReasonUse {
                    state: State::Waiting,
                    meaning: "the session has no prompt yet",
                    evidence: "a session without a turn",
                }],
                is_progress: false,
                is_implied: false,
                has_subject: false,
                waiting: Some(AtRest {
                    need: None,
                    accepts_prompt: true,
                    takes_typed_prompt: true,
                    finding: None,
                    turn_outcome: None,
                    is_of_error: false,
                    may_precede_turn: true,
                    more_specific_than: &[],
                }),
                approval: None,
            },
            Self::TurnComplete => ReasonFacts {
                title: "turn complete",
                uses: &[ReasonUse {
                    state: State::Waiting,
                    meaning: "the agent finished",
                    evidence: "Claude Code `end_turn`, `turn_duration`, registry `idle`; Codex `task_complete`; Gemini CLI: the last record is a text without a tool call",
                }],
                is_progress: false,
                is_implied: true,
                has_subject: false,
                waiting: Some(AtRest {
                    need: Some(Need::Prompt),
                    accepts_prompt: true,
                    takes_typed_prompt: true,
                    finding: None,
                    turn_outcome: Some(TurnOutcome::Completed),
                    is_of_error: false,
                    may_precede_turn: true,
                    more_specific_than: &[],
                }),
                approval: None,
            },
            Self::Question => ReasonFacts {
                title: "question",
                uses: &[ReasonUse {
                    state: State::Waiting,
                    meaning: "the agent asked you something",
                    evidence: "Claude Code `AskUserQuestion`, registry `input needed`; Codex `request_user_input`",
                }],
                is_progress: false,
                is_implied: false,
                has_subject: true,
                waiting: Some(AtRest {
                    need: Some(Need::Question),
                    accepts_prompt: false,
                    takes_typed_prompt: false,
                    finding: Some(FindingKind::Question),
                    turn_outcome: None,
                    is_of_error: false,
                    may_precede_turn: false,
                    more_specific_than: &[],
                }),
                approval: None,
            },
            Self::Interrupted => ReasonFacts {
                title: "interrupted",
                uses: &[ReasonUse {
                    state: State::Waiting,
                    meaning: "you stopped the turn",
                    evidence: "Claude Code's interrupt record, Codex `turn_aborted`, Gemini CLI `Request cancelled`",
                }],
                is_progress: false,
                is_implied: false,
                has_subject: false,
                waiting: Some(AtRest {
                    need: Some(Need::Prompt),
                    accepts_prompt: false,
                    takes_typed_prompt: true,
                    finding: None,
                    turn_outcome: Some(TurnOutcome::Interrupted),
                    is_of_error: false,
                    may_precede_turn: false,
                    more_specific_than: &[Self::TurnComplete],
                }),
                approval: None,
            },
            Self::Denied => ReasonFacts {
                title: "permission denied",
                uses: &[ReasonUse {
                    state: State::Waiting,
                    meaning: "you denied a request, and the denial ended the turn",
                    evidence: "the same records as `interrupted`, after a denied call",
                }],
                is_progress: false,
                is_implied: false,
                has_subject: false,
                waiting: Some(AtRest {
                    need: Some(Need::Prompt),
                    accepts_prompt: false,
                    takes_typed_prompt: true,
                    finding: None,
                    turn_outcome: Some(TurnOutcome::Denied),
                    is_of_error: false,
                    may_precede_turn: false,
                    more_specific_than: &[Self::TurnComplete, Self::Interrupted],
                }),
                approval: None,
            },
            Self::Error => ReasonFacts {
                title: "error",
                uses: &[ReasonUse {
                    state: State::Waiting,
                    meaning: "an error other than `auth` and `quota` ended the turn",
                    evidence: "the agent's error record",
                }],
                is_progress: false,
                is_implied: false,
                has_subject: false,
                waiting: Some(AtRest {
                    need: Some(Need::Failure),
                    accepts_prompt: false,
                    takes_typed_prompt: true,
                    finding: Some(FindingKind::Provider),
                    turn_outcome: Some(TurnOutcome::Failed),
                    is_of_error: true,
                    may_precede_turn: false,
                    more_specific_than: &[],
                }),
                approval: None,
            },
            Self::Auth => ReasonFacts {
                title: "not signed in",
                uses: &[ReasonUse {
                    state: State::Waiting,
                    meaning: "you are not signed in, or the key was rejected",
                    evidence: "the agent's error record: 401, 403 and similar",
                }],
                is_progress: false,
                is_implied: false,
                has_subject: false,
                waiting: Some(AtRest {
                    need: Some(Need::Failure),
                    accepts_prompt: false,
                    takes_typed_prompt: true,
                    finding: Some(FindingKind::Auth),
                    turn_outcome: Some(TurnOutcome::Failed),
                    is_of_error: true,
                    may_precede_turn: false,
                    more_specific_than: &[Self::Error],
                }),
                approval: None,
            },
            Self::Quota => ReasonFacts {
                title: "quota used up",
                uses: &[ReasonUse {
                    state: State::Waiting,
                    meaning: "a quota or rate limit ended the turn",
                    evidence: "the agent's error record: 402, 429 and similar",
                }],
                is_progress: false,
                is_implied: false,
                has_subject: false,
                waiting: Some(AtRest {
                    need: Some(Need::Failure),
                    accepts_prompt: false,
                    takes_typed_prompt: true,
                    finding: Some(FindingKind::Quota),
                    turn_outcome: Some(TurnOutcome::Failed),
                    is_of_error: true,
                    may_precede_turn: false,
                    more_specific_than: &[Self::Error],
                }),
                approval: None,
            },
            Self::Background => ReasonFacts {
                title: "background command runs",
                uses: &[ReasonUse {
                    state: State::Waiting,
                    meaning: "the turn is over, and a background command runs",
                    evidence: "Claude Code's registry `shell`",
                }],
                is_progress: false,
                is_implied: false,
                has_subject: false,
                waiting: Some(AtRest {
                    need: None,
                    accepts_prompt: true,
                    takes_typed_prompt: true,
                    finding: None,
                    turn_outcome: None,
                    is_of_error: false,
                    may_precede_turn: true,
                    more_specific_than: &[],
                }),
                approval: None,
            },
            Self::Edit => ReasonFacts {
                title: "edit",
                uses: &[ReasonUse {
                    state: State::WaitingApproval,
                    meaning: "a dialog asks for permission to edit a file",
                    evidence: "as for `tool`",
                }],
                is_progress: false,
                is_implied: false,
                has_subject: false,
                waiting: None,
                approval: Some(ApprovalKind::Edit),
            },
            Self::Plan => ReasonFacts {
                title: "plan",
                uses: &[ReasonUse {
                    state: State::WaitingApproval,
                    meaning: "a dialog asks for permission to carry out a plan",
                    evidence: "as for `tool`",
                }],
                is_progress: false,
                is_implied: false,
                has_subject: false,
                waiting: None,
                approval: Some(ApprovalKind::Plan),
            },
            Self::Mcp => ReasonFacts {
                title: "MCP tool",
                uses: &[ReasonUse {
                    state: State::WaitingApproval,
                    meaning: "a dialog asks for permission to call an MCP tool",
                    evidence: "as for `tool`",
                }],
                is_progress: false,
                is_implied: false,
                has_subject: false,
                waiting: None,
                approval: Some(ApprovalKind::Mcp),
            },
            Self::Fetch => ReasonFacts {
                title: "fetch",
                uses: &[ReasonUse {
                    state: State::WaitingApproval,
                    meaning: "a dialog asks for permission to fetch a URL",
                    evidence: "as for `tool`",
                }],
                is_progress: false,
                is_implied: false,
                has_subject: false,
                waiting: None,
                approval: Some(ApprovalKind::Fetch),
            },
            Self::Trust => ReasonFacts {
                title: "trust",
                uses: &[ReasonUse {
                    state: State::WaitingApproval,
                    meaning: "a dialog asks whether you trust a directory, a hook or a key",
                    evidence: "the screen of a [run](run.md)",
                }],
                is_progress: false,
                is_implied: false,
                has_subject: false,
                waiting: None,
                approval: Some(ApprovalKind::Trust),
            },
            Self::Quiet => ReasonFacts {
                title: "quiet",
                uses: &[ReasonUse {
                    state: State::Idle,
                    meaning: "the turn is over, and nothing has happened for 2 minutes; after an error (`error`, `auth`, `quota`), only once the process has ended",
                    evidence: "the clock",
                }],
                is_progress: false,
                is_implied: true,
                has_subject: false,
                waiting: None,
                approval: None,
            },
            Self::Clean => ReasonFacts {
                title: "ended normally",
                uses: &[ReasonUse {
                    state: State::Exited,
                    meaning: "the process ended normally",
                    evidence: "the process table, between turns or after the agent recorded its end",
                }],
                is_progress: false,
                is_implied: true,
                has_subject: false,
                waiting: None,
                approval: None,
            },
            Self::Failed => ReasonFacts {
                title: "ended with an error",
                uses: &[ReasonUse {
                    state: State::Exited,
                    meaning: "the program of a run ended with an error code",
                    evidence: "the [host](concepts.md#runs) of the run",
                }],
                is_progress: false,
                is_implied: false,
                has_subject: false,
                waiting: None,
                approval: None,
            },
            Self::Killed => ReasonFacts {
                title: "killed",
                uses: &[ReasonUse {
                    state: State::Exited,
                    meaning: "the process ended during a turn, or without recording its end",
                    evidence: "the process table",
                }],
                is_progress: false,
                is_implied: false,
                has_subject: false,
                waiting: None,
                approval: None,
            },
            Self::NoEvidence => ReasonFacts {
                title: "no evidence",
                uses: &[ReasonUse {
                    state: State::Unknown,
                    meaning: "nothing has been reported yet, or a run's program is not a known agent",
                    evidence: "",
                }],
                is_progress: false,
                is_implied: false,
                has_subject: false,
                waiting: None,
                approval: None,
            },
            Self::Lost => ReasonFacts {
                title: "evidence lost",
                uses: &[ReasonUse {
                    state: State::Unknown,
                    meaning: "nothing has happened for 10 minutes during a turn, and the process is unknown",
                    evidence: "the clock",
                }],
                is_progress: false,
                is_implied: false,
                has_subject: false,
                waiting: None,
                approval: None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_consequences_of_a_reason_belong_to_its_states() {
        for &reason in Reason::ALL {
            let facts = reason.facts();
            let has = |state| facts.uses.iter().any(|of| of.state == state);
            assert!(!facts.uses.is_empty(), "{reason}");
            assert_eq!(facts.waiting.is_some(), has(State::Waiting), "{reason}");
            assert_eq!(facts.approval.is_some(), has(State::WaitingApproval), "{reason}");
            assert!(!facts.is_progress || has(State::Running), "{reason}");
        }
    }
}
