//! Applies claims: a claim changes the conversation, or applies until it is replaced or withdrawn.

use events::{Claim, Event, Reason, Signal, Source, State, Timestamp, TurnOutcome};

use super::{Conclusion, STANDING_CLAIMS, SessionState};
use crate::{
    conversation::{OpenCall, Phase, end_reason},
    shorten::{Shown, one_line, verbatim_line},
    status::{Process, StandingClaim, is_momentary},
};

/// How long before a message the hook of one of its calls may arrive, ms.
const BEFORE_MESSAGE_MS: i64 = 1_000;
/// How long after the end of a turn another source may report its outcome more precisely, ms.
const CORRECTED_MS: i64 = 3_000;
/// Longest subject of a dialog, characters.
const SUBJECT_CHARS: usize = 200;

impl SessionState {
    pub(super) fn apply_signal(&mut self, event: &Event, signal: &Signal, at: Timestamp, out: &mut Vec<Conclusion>) {
        let words = || signal.words.as_deref().map(|words| Shown::of(words).as_str().to_owned()).unwrap_or_default();
        match &signal.claim {
            Claim::TurnEnded { outcome, pending_subagents } => {
                self.conversation_at = at;
                let certain = signal.strength == events::Confidence::High;
                if self.turn.is_some() && signal.holds_from.is_some() {
                    // While a call is open, a text is not the end of the turn. In history, the lines of one message may
                    // be far apart although they were written at once.
                    let likely = self.conversation.calls.is_empty() && !self.goes_on(at);
                    let waits = event.history || signal.strength == events::Confidence::Low;
                    self.likely_end = likely.then_some((at, *outcome));
                    self.likely_end_from = signal.holds_from.filter(|_| likely && waits).map(|from| from.max(at));
                } else if self.turn.is_some() && signal.strength == events::Confidence::Low {
                    self.likely_end = (!self.goes_on(at)).then_some((at, *outcome));
                    self.likely_end_from = None;
                } else if self.turn.is_some() {
                    self.end_turn(*outcome, None, *pending_subagents, certain, at, out);
                } else if let Phase::Ended { pending_subagents: pending, certain: sure, .. } =
                    &mut self.conversation.phase
                {
                    *pending = *pending_subagents;
                    *sure |= certain;
                    self.correct_end(*outcome, at, out);
                } else if self.conversation.is_open() {
                    self.conversation.phase =
                        Phase::Ended { outcome: *outcome, class: None, pending_subagents: *pending_subagents, certain };
                }
            }
            Claim::State { state, reason } if event.source == Source::Transcript && event.agent_id.is_none() => {
                // A claim of the transcript changes the conversation; it does not count as a second source.
                self.conversation_at = at;
                let doubts = *state == State::Running && signal.strength == events::Confidence::Low;
                self.conversation.doubted_at = doubts.then_some(at);
                match (state, &mut self.conversation.phase) {
                    (State::Running, Phase::Open { doing }) => *doing = reason.unwrap_or(Reason::Thinking),
                    (State::Running, phase) => *phase = Phase::Open { doing: reason.unwrap_or(Reason::Thinking) },
                    (State::Waiting, Phase::Open { .. }) => {
                        if self.turn.is_some() {
                            self.end_turn(
                                TurnOutcome::Completed,
                                None,
                                0,
                                signal.strength == events::Confidence::High,
                                at,
                                out,
                            );
                        } else {
                            self.conversation.phase = Phase::Ended {
                                outcome: TurnOutcome::Completed,
                                class: None,
                                pending_subagents: 0,
                                certain: false,
                            };
                        }
                    }
                    _ => {}
                }
            }
            Claim::State { .. } if event.source == Source::Telemetry && self.has_newer_claim(event, at) => {}
            Claim::State { .. } if event.source == Source::Registry && self.has_newer_entry(event) => {}
            Claim::State { state, reason } => {
                let said_at = self.said_before(event, signal).unwrap_or_else(|| event.created_at.min(at));
                self.withdraw(event.source, event.agent_id.as_deref(), signal.key.as_deref());
                if !is_momentary(event.source) && event.agent_id.is_none() {
                    self.claims.retain(|h| {
                        let older = h.said_at.unwrap_or(h.at) < said_at;
                        !(is_momentary(h.source) && h.agent.is_none() && h.state != *state && older)
                    });
                }
                let is_late = *state == State::WaitingApproval && self.is_answered_already(event, at);
                if is_late || signal.valid_until.is_some_and(|until| until <= self.clock) {
                    return;
                }
                if self.claims.len() == STANDING_CLAIMS {
                    self.claims.remove(0);
                }
                let dialog = signal.dialog.as_deref();
                let subject = dialog.and_then(|d| d.subject.as_deref().or(d.question.as_deref()));
                self.claims.push(StandingClaim {
                    source: event.source,
                    agent: event.agent_id.as_deref().map(str::to_owned),
                    state: *state,
                    reason: *reason,
                    strength: signal.strength,
                    at,
                    valid_until: signal.valid_until,
                    holds_from: signal.holds_from.or_else(|| {
                        // A protocol claim with a key comes from the client that was asked, so it is not an already
                        // answered dialog.
                        let told = event.source == Source::Protocol && signal.key.is_some();
                        let asks = *state == State::WaitingApproval && event.agent_id.is_none() && !told;
                        asks.then(|| self.dialog_counts_from(event.source, at)).flatten()
                    }),
                    said_at: Some(said_at),
                    key: signal.key.clone(),
                    words: words(),
                    dialog: signal.dialog.clone(),
                    subject: subject.map(|s| verbatim_line(s, SUBJECT_CHARS)),
                    shown: subject.map(|s| one_line(s, SUBJECT_CHARS)),
                    event: event.id,
                });
                if event.source == Source::Registry {
                    self.goodbye_at = None;
                }
                if self.likely_end.is_some_and(|(end, _)| self.goes_on(end)) {
                    self.likely_end = None;
                    self.likely_end_from = None;
                }
                let ready = *state == State::Waiting
                    && event.agent_id.is_none()
                    && signal.strength == events::Confidence::High
                    && *reason != Some(Reason::Question);
                if ready && event.source == Source::Pty {
                    self.end_typed_turn(at, out);
                }
                self.ready_at = (ready && self.turn.is_some()).then_some(at);
            }
            Claim::ProcessAlive { pid, .. } if self.is_left_behind(event, *pid) => {}
            // A late report about a process that was already seen to end.
            Claim::ProcessAlive { pid, start_ticks }
                if self.parting.is_some() && self.process() == Some((*pid, *start_ticks)) => {}
            Claim::ProcessAlive { pid, start_ticks } => {
                // A process that another source found must not outrank a registry entry.
                self.conclude_parting(at, out);
                self.process_at = (event.source == Source::Registry).then_some(event.created_at);
                self.process = Process::Alive { pid: *pid, start_ticks: *start_ticks };
                self.session.pid = Some(*pid);
                self.goodbye_at = None;
            }
            Claim::ProcessGone { pid, clean } => {
                if !self.has_ended() && self.process().is_none_or(|(known, _)| known == *pid) {
                    // An agent that could have said goodbye and did not was killed. For an agent without a registry, it
                    // depends on whether the process ended in the middle of a turn.
                    let registered = self.claims.iter().any(|h| h.source == Source::Registry);
                    let how = if *clean || self.goodbye_at.is_some() {
                        Some(Reason::Clean)
                    } else {
                        registered.then_some(Reason::Killed)
                    };
                    self.part(how, at, out);
                }
            }
            Claim::Withdrawn if event.source == Source::Registry && self.process().is_some() => {
                // A goodbye: the process ends within moments. Its last claim applies until then.
                self.goodbye_at = Some(at);
            }
            Claim::Withdrawn => {
                self.withdraw(event.source, event.agent_id.as_deref(), signal.key.as_deref());
                if matches!(event.source, Source::Hook | Source::Protocol) && signal.key.is_some() {
                    self.request_answered(event.source, signal.key.as_deref());
                }
            }
        }
    }

    /// Corrects the outcome of the last turn: sources notice an end one after another, and not all of them report an
    /// interrupt, or that a refusal caused it.
    fn correct_end(&mut self, told: TurnOutcome, at: Timestamp, out: &mut Vec<Conclusion>) {
        // The dialog may have opened after an end that was only likely.
        let asked = self.was_asked(at);
        let told = self.end_at_dialog(told, true, at);
        let Phase::Ended { outcome, .. } = &mut self.conversation.phase else { return };
        let Some(turn) = self.recent.back_mut() else { return };
        let now = turn.completed_at.is_some_and(|ended| at.since_ms(ended) < CORRECTED_MS);
        if (now || asked) && end_reason(told, None).is_more_specific_than(end_reason(*outcome, None)) {
            *outcome = told;
            turn.outcome = Some(told);
            let turn = turn.clone();
            if told == TurnOutcome::Denied {
                self.correct_approval(turn.id, at, out);
            }
            self.corrected = Some(turn);
        }
    }

    /// Whether a hook reported a tool or a request around the likely end of the turn: agents may write a message before
    /// its calls.
    fn goes_on(&self, end: Timestamp) -> bool {
        let calls = |h: &&StandingClaim| h.state == State::WaitingApproval || h.reason == Some(Reason::Tool);
        let hooks = self.claims.iter().filter(|h| h.source == Source::Hook && h.agent.is_none());
        hooks.filter(calls).any(|h| h.said_at.unwrap_or(h.at) >= end.plus_ms(-BEFORE_MESSAGE_MS))
    }

    /// Drops the claims that this source made under this key. A claim without a key is the source's latest, and also
    /// replaces the source's short-lived claims.
    pub(super) fn withdraw(&mut self, source: Source, agent: Option<&str>, key: Option<&str>) {
        self.claims.retain(|h| {
            let is_replaced = h.key.as_deref() == key || key.is_none() && h.valid_until.is_some();
            h.source != source || h.agent.as_deref() != agent || !is_replaced
        });
    }

    /// Drops the claims that wait for permission for a call that returned.
    pub(super) fn answered(&mut self, call: Option<&OpenCall>, by: Timestamp) {
        let last = self.conversation.calls.is_empty();
        self.claims.retain(|h| {
            let asks = is_momentary(h.source) && h.state == State::WaitingApproval;
            let its_own = h.subject.is_some() && call.is_some_and(|c| c.title == h.subject);
            !(asks && (last || its_own) && h.said_at.unwrap_or(h.at) <= by)
        });
    }

    /// When a continuous source first claimed that the agent works, if it repeats the claim and only its confidence
    /// rose. Claims that other sources made in between are newer.
    fn said_before(&self, event: &Event, signal: &Signal) -> Option<Timestamp> {
        let Claim::State { state: State::Running, reason } = &signal.claim else { return None };
        let again = |h: &&StandingClaim| {
            (h.source, h.agent.as_deref(), h.key.as_deref())
                == (event.source, event.agent_id.as_deref(), signal.key.as_deref())
                && (h.state, h.reason) == (State::Running, *reason)
                && h.strength < signal.strength
        };
        let before = self.claims.iter().find(again).filter(|_| !is_momentary(event.source))?;
        Some(before.said_at.unwrap_or(before.at))
    }

    /// Whether a registry entry belongs to a process that ran the session before the current one: a killed process
    /// leaves its entry behind, and the order in which the entries are read is not certain.
    fn is_left_behind(&self, event: &Event, pid: u32) -> bool {
        let other = self.process().is_some_and(|(known, _)| known != pid);
        event.source == Source::Registry && other && self.process_at.is_some_and(|at| event.created_at < at)
    }

    /// Whether the registry already made a later claim about the session, in the entry of another process.
    fn has_newer_entry(&self, event: &Event) -> bool {
        let newer = |h: &StandingClaim| h.said_at.is_some_and(|said_at| event.created_at < said_at);
        self.claims.iter().filter(|h| h.source == Source::Registry && h.agent.is_none()).any(newer)
    }

    /// Whether this source already made a claim about a later moment.
    fn has_newer_claim(&self, event: &Event, at: Timestamp) -> bool {
        let same = |h: &&StandingClaim| h.source == event.source && h.agent.as_deref() == event.agent_id.as_deref();
        self.claims.iter().filter(same).any(|h| h.at > at)
    }
}
