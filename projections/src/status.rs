//! Decides a session's status from claims: its state, the reason, and the sources that disagree.
//!
//! The rules: if the process has ended, every claim ends. Among the current claims, the strongest wins; among equally
//! strong claims, the one whose source is closest to the agent. A winner without a reason gets the reason of the
//! conversation. Claims with another state are recorded as disagreements. Silence leads only to `idle` (no open turn
//! and no prompt known to be ready) and `unknown` (an open turn that no source reports any more).

mod account;

use events::{Confidence, Dialog, EventId, Reason, Source, State, Timestamp, ToolKind};
use serde::{Deserialize, Serialize};

use crate::{
    conversation::{Conversation, Phase, approval_reason},
    rules::StatusRules,
    session::{Evidence, SessionStatus},
    shorten::verbatim_line,
};

pub use account::{Account, ClaimStanding, DecidingRule, WeighedClaim, account};

/// A claim of one source that applies until it is replaced, withdrawn or expires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandingClaim {
    /// The source of the claim.
    pub source: Source,
    /// The sub-agent it is about, if it is not about the main conversation.
    pub agent: Option<String>,
    /// The state.
    pub state: State,
    /// The reason.
    pub reason: Option<Reason>,
    /// The confidence.
    pub strength: Confidence,
    /// When it began.
    pub at: Timestamp,
    /// When it expires, if it does.
    pub valid_until: Option<Timestamp>,
    /// When it begins to count, if not immediately.
    #[serde(default)]
    pub holds_from: Option<Timestamp>,
    /// When its source made it, by the clock of the source.
    #[serde(default)]
    pub said_at: Option<Timestamp>,
    /// Distinguishes it from other claims of the same source at the same time.
    #[serde(default)]
    pub key: Option<String>,
    /// The source's text, without secrets.
    pub words: String,
    /// The subject of the dialog from which the claim was read, if any; verbatim, for comparing it with calls.
    #[serde(default)]
    pub subject: Option<String>,
    /// The subject without secrets, for people.
    #[serde(default)]
    pub shown: Option<String>,
    /// The dialog from which it was read.
    #[serde(default)]
    pub dialog: Option<Box<Dialog>>,
    /// The event that contains the claim.
    pub event: EventId,
}

/// The known state of the process that runs a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Process {
    /// Never seen.
    #[default]
    Unseen,
    /// Alive when last checked.
    Alive {
        /// Process id.
        pid: u32,
        /// Start in clock ticks since boot.
        start_ticks: u64,
    },
    /// Gone.
    Gone {
        /// When.
        at: Timestamp,
        /// clean, failed or killed.
        how: Reason,
    },
}

/// All inputs of the status decision.
#[derive(Debug)]
pub struct StatusInputs<'a> {
    /// The conversation.
    pub conversation: &'a Conversation,
    /// When its last event happened.
    pub conversation_at: Timestamp,
    /// Time since then in which nothing was observed because the machine slept, ms.
    pub asleep_ms: i64,
    /// Whether the open turn counts as ended if no further event follows.
    pub may_have_ended: bool,
    /// Other sources' claims.
    pub claims: &'a [StandingClaim],
    /// The process.
    pub process: Process,
    /// Limits.
    pub rules: StatusRules,
}

/// Closeness to the agent: what the agent reports about itself outranks observations.
const fn rank(source: Source) -> u8 {
    match source {
        Source::Registry => 9,
        Source::Runtime => 8,
        Source::Hook => 7,
        Source::Protocol => 6,
        Source::Pty => 5,
        Source::Transcript => 4,
        Source::Telemetry => 3,
        Source::Input => 2,
        Source::Process => 1,
    }
}

/// The basis of a candidate; its text is created only when it is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Basis {
    Claim(usize),
    NoPrompt,
    OpenTurn,
    OpenQuestion,
    LostTurn,
    Ended,
    EndedLongAgo,
}

/// Whether a claim of this source describes only the moment at which it is made. Such a source does not report when the
/// claim ceases to be true, so a continuous source that reports something else later takes precedence. A continuous
/// source withdraws its claim when it is no longer true.
pub(crate) const fn is_momentary(source: Source) -> bool {
    match source {
        Source::Hook | Source::Telemetry | Source::Input => true,
        Source::Registry | Source::Runtime | Source::Protocol | Source::Pty | Source::Transcript | Source::Process => {
            false
        }
    }
}

#[derive(Clone, Copy)]
struct Candidate {
    source: Source,
    state: State,
    reason: Option<Reason>,
    strength: Confidence,
    at: Timestamp,
    said_at: Timestamp,
    basis: Basis,
}

impl Candidate {
    fn weight(&self) -> (Confidence, u8) {
        (self.strength, rank(self.source))
    }

    fn evidence(&self, case: &StatusInputs<'_>) -> Evidence {
        Evidence { source: self.source, claim: self.words(case), at: self.at, strength: self.strength }
    }

    fn words(&self, case: &StatusInputs<'_>) -> String {
        let asker =
            || case.conversation.likely_asker().map(|c| verbatim_line(c.shown.as_deref().unwrap_or(&c.name), 80));
        let outcome = match &case.conversation.phase {
            Phase::Ended { outcome, .. } => outcome.as_str(),
            Phase::Silent | Phase::Open { .. } => "over",
        };
        match self.basis {
            Basis::Claim(index) => case.claims.get(index).map(|h| h.words.clone()).unwrap_or_default(),
            Basis::NoPrompt => "no prompt yet".into(),
            Basis::OpenTurn => match (asker(), may_ask(case)) {
                (Some(call), true) => {
                    format!("a call that the agent may ask about has no result, so a dialog may be open: {call}")
                }
                (Some(call), false) => format!("open call: {call}"),
                (None, _) => "open turn".into(),
            },
            Basis::OpenQuestion => "question without an answer".into(),
            Basis::LostTurn => "open turn, long silence, no known process".into(),
            Basis::Ended => format!("turn {outcome}"),
            Basis::EndedLongAgo => format!("turn {outcome}, then silence"),
        }
    }
}

fn claim_candidates<'a>(case: &'a StatusInputs<'_>, now: Timestamp) -> impl Iterator<Item = Candidate> + 'a {
    let holds = move |h: &StandingClaim| {
        h.valid_until.is_none_or(|until| now < until) && counts_from(case, h).is_none_or(|from| from <= now)
    };
    // A continuous source would have noticed by now if a claim that was only likely at first were true.
    let watched = case.claims.iter().any(|h| {
        h.agent.is_none() && h.strength == Confidence::High && !is_momentary(h.source) && h.source != Source::Transcript
    });
    let strength = move |h: &StandingClaim| {
        if is_doubted(case, h, now) {
            return h.strength.min(Confidence::Medium);
        }
        if watched && h.holds_from.is_some() && h.source != Source::Registry {
            h.strength.min(Confidence::Medium)
        } else {
            h.strength
        }
    };
    let state = move |h: &StandingClaim| {
        let said =
            if is_about_question(case, h) { (State::Waiting, Some(Reason::Question)) } else { (h.state, h.reason) };
        at_rest(case, said)
    };
    case.claims.iter().enumerate().filter(move |(_, h)| holds(h)).map(move |(index, h)| Candidate {
        source: h.source,
        state: state(h).0,
        reason: state(h).1,
        strength: strength(h),
        at: h.at,
        said_at: h.said_at.unwrap_or(h.at),
        basis: Basis::Claim(index),
    })
}

/// The state and reason at rest. A session that a program runs is idle instead of waiting, because no user can type a
/// prompt into it. A session that a client drives over the protocol (shown by a claim from there) waits like any other.
fn at_rest(case: &StatusInputs<'_>, said: (State, Option<Reason>)) -> (State, Option<Reason>) {
    let driven = || case.claims.iter().any(|h| matches!(h.source, Source::Runtime | Source::Protocol));
    if case.conversation.headless && said.0 == State::Waiting && said.1 != Some(Reason::Question) && !driven() {
        (State::Idle, Some(Reason::Quiet))
    } else {
        said
    }
}

/// How long the registry's claim that work began is doubted while a screen shows a ready prompt, ms: some commands of
/// an agent make it busy for a moment.
const FLASH_MS: i64 = 300;

const fn is_work_of_registry(claim: &StandingClaim) -> bool {
    matches!((claim.source, claim.state), (Source::Registry, State::Running))
}

/// When a claim begins to count, if not at once.
fn counts_from(case: &StatusInputs<'_>, claim: &StandingClaim) -> Option<Timestamp> {
    let is_ready = |h: &StandingClaim| {
        let screen = h.source == Source::Pty && h.agent.is_none() && h.valid_until.is_none();
        screen && h.state == State::Waiting && h.strength == Confidence::High && h.at <= claim.at
    };
    let doubted = is_work_of_registry(claim) && !case.conversation.is_open() && case.claims.iter().any(is_ready);
    claim.holds_from.max(doubted.then(|| claim.at.plus_ms(FLASH_MS)))
}

/// Whether the registry's dialog is a question: some agent versions use one word for questions and permissions.
fn is_about_question(case: &StatusInputs<'_>, claim: &StandingClaim) -> bool {
    let blurred = claim.source == Source::Registry && claim.state == State::WaitingApproval && claim.reason.is_none();
    let calls = &case.conversation.calls;
    let asked = !calls.is_empty() && calls.iter().all(|call| call.tool == ToolKind::Question);
    let shown = |h: &StandingClaim| {
        h.source == Source::Pty
            && (h.state, h.reason, h.strength) == (State::Waiting, Some(Reason::Question), Confidence::High)
    };
    blurred && (asked || case.claims.iter().any(shown))
}

/// When work claimed by a momentary source becomes less credible: the source may be gone without reporting the end.
fn doubted_at(case: &StatusInputs<'_>, claim: &StandingClaim) -> Option<Timestamp> {
    let works = is_momentary(claim.source) && claim.state == State::Running && claim.strength == Confidence::High;
    works.then(|| claim.at.max(case.conversation_at).plus_ms(case.rules.quiet_ms))
}

fn is_doubted(case: &StatusInputs<'_>, claim: &StandingClaim, now: Timestamp) -> bool {
    doubted_at(case, claim).is_some_and(|at| at <= now)
}

/// Whether a source watches the session but cannot read its state.
fn is_unreadable(case: &StatusInputs<'_>) -> bool {
    case.claims.iter().any(|h| h.state == State::Unknown && h.reason == Some(Reason::NoEvidence))
}

/// The result of weighing all claims.
struct Weighing {
    winner: Candidate,
    /// The candidate of the conversation.
    conversation: Candidate,
    /// Whether the winner was only the first to notice a change, and a closer source disagrees.
    overtook: bool,
}

fn weigh(case: &StatusInputs<'_>, now: Timestamp) -> Weighing {
    let others_speak = claim_candidates(case, now).any(|c| c.state != State::Unknown);
    let own = conversation(case, others_speak, now);
    let ranked = claim_candidates(case, now).fold(own, |best, c| if c.weight() >= best.weight() { c } else { best });
    // Sources notice a change one after another. The first report is believed as long as the closest source may need to
    // notice the change too.
    let first = claim_candidates(case, now)
        .filter(|c| c.strength == ranked.strength && c.said_at > ranked.said_at)
        .filter(|c| now.since_ms(c.at) < case.rules.confirm_ms && rank(c.source) >= rank(Source::Pty))
        .max_by_key(|c| c.said_at);
    let first = first.filter(|_| ranked.basis != Basis::OpenQuestion);
    Weighing {
        winner: first.unwrap_or(ranked),
        conversation: own,
        overtook: first.is_some_and(|c| c.state != ranked.state),
    }
}

fn why(case: &StatusInputs<'_>, winner: &Candidate, now: Timestamp) -> Option<Reason> {
    let state = winner.state;
    // A source that sees the agent and reports its activity knows better.
    let open = winner.reason.is_none() || !matches!(winner.basis, Basis::Claim(_));
    if state == State::Running && open && is_retrying(case, now) {
        return Some(Reason::Retrying);
    }
    let (own_state, own_reason) = case.conversation.verdict();
    if let Some(reason) = winner.reason {
        let closer = own_reason.filter(|told| own_state == state && told.is_more_specific_than(reason));
        let works = || if state == State::Running { works_for_it(case, reason, now) } else { None };
        return closer.or_else(works).or(Some(reason));
    }
    Some(match state {
        State::WaitingApproval => case.conversation.likely_asker().map_or(Reason::Tool, |c| approval_reason(c.tool)),
        State::Waiting => own_reason.filter(|_| own_state == State::Waiting).unwrap_or(Reason::TurnComplete),
        State::Running => own_reason.filter(|_| own_state == State::Running).unwrap_or(Reason::Thinking),
        State::Idle => Reason::Quiet,
        State::Exited => Reason::Clean,
        State::Unknown => Reason::NoEvidence,
    })
}

/// The reason is [`Reason::Subagents`] instead of [`Reason::Tool`] if a sub-agent works and the conversation has no
/// other call.
fn works_for_it(case: &StatusInputs<'_>, reason: Reason, now: Timestamp) -> Option<Reason> {
    let holds = |h: &&StandingClaim| h.agent.is_some() && h.valid_until.is_none_or(|until| now < until);
    let at_work = |h: &StandingClaim| h.state == State::Running && h.reason == Some(Reason::Subagents);
    let others = case.conversation.calls.iter().any(|call| call.tool != ToolKind::Subagent);
    (reason == Reason::Tool && !others && case.claims.iter().filter(holds).any(at_work)).then_some(Reason::Subagents)
}

/// Whether a source reports that the agent repeats its request to the model, and the conversation has not moved since:
/// transcripts do not contain failed attempts.
fn is_retrying(case: &StatusInputs<'_>, now: Timestamp) -> bool {
    let (_, reason) = case.conversation.verdict();
    let holds = |h: &&StandingClaim| {
        h.agent.is_none() && h.valid_until.is_none_or(|until| now < until) && h.at >= case.conversation_at
    };
    let retries = |h: &StandingClaim| h.state == State::Running && h.reason == Some(Reason::Retrying);
    reason == Some(Reason::Thinking) && case.claims.iter().filter(holds).any(retries)
}

/// The end of a process, as text for the evidence.
fn end_in_words(how: Reason) -> &'static str {
    if how == Reason::Clean { "process ended normally" } else { "process is gone" }
}

/// Only state and reason, which are needed after every event.
#[must_use]
pub fn verdict(case: &StatusInputs<'_>, now: Timestamp) -> (State, Option<Reason>) {
    if let Process::Gone { how, .. } = case.process {
        return (State::Exited, Some(how));
    }
    let Weighing { winner, .. } = weigh(case, now);
    (winner.state, why(case, &winner, now))
}

/// The source whose claim decides, and the strength of that claim.
#[must_use]
pub fn decided_by(case: &StatusInputs<'_>, now: Timestamp) -> (Source, Confidence) {
    if let Process::Gone { .. } = case.process {
        return (Source::Process, Confidence::High);
    }
    let Weighing { winner, .. } = weigh(case, now);
    (winner.source, winner.strength)
}

/// The whole decision, with evidence. `since` comes from the oldest claim that agrees and has the same strength.
#[must_use]
pub fn decide(case: &StatusInputs<'_>, now: Timestamp) -> SessionStatus {
    if let Process::Gone { at, how } = case.process {
        let words = end_in_words(how);
        return SessionStatus {
            state: State::Exited,
            reason: Some(how),
            since: at,
            confidence: Confidence::High,
            activity: None,
            evidence: vec![Evidence { source: Source::Process, claim: words.into(), at, strength: Confidence::High }],
            disagreements: Vec::new(),
        };
    }
    let Weighing { winner, conversation, .. } = weigh(case, now);
    let mut candidates: Vec<Candidate> = claim_candidates(case, now).chain([conversation]).collect();
    candidates.sort_by_key(|c| std::cmp::Reverse(c.weight()));
    let state = winner.state;
    let reason = why(case, &winner, now);
    let agrees = |c: &&Candidate| c.state == state;
    let objects = |c: &&Candidate| c.state != state && !matches!(c.state, State::Unknown | State::Idle);
    SessionStatus {
        state,
        reason,
        since: candidates
            .iter()
            .filter(|c| agrees(c) && c.strength >= winner.strength)
            .map(|c| c.at)
            .min()
            .unwrap_or(now),
        confidence: winner.strength,
        activity: activity(case, state, reason),
        evidence: candidates.iter().filter(agrees).map(|c| c.evidence(case)).collect(),
        disagreements: candidates.iter().filter(objects).map(|c| c.evidence(case)).collect(),
    }
}

/// Whether the agent may be asking permission for an open call, which its records do not show. A headless agent never asks.
fn may_ask(case: &StatusInputs<'_>) -> bool {
    !case.conversation.headless && case.conversation.calls.iter().any(|call| call.may_ask)
}

/// Whether a hook reported a tool without being certain that it runs: no source reports the dialogs of this agent.
fn may_ask_unseen(case: &StatusInputs<'_>) -> bool {
    case.claims.iter().any(|h| {
        (h.source, h.state, h.reason) == (Source::Hook, State::Running, Some(Reason::Tool))
            && h.strength == Confidence::Low
            && h.agent.is_none()
    })
}

/// Whether an error stopped an agent whose process is alive: the error remains the reason until the user acts.
fn is_stopped(case: &StatusInputs<'_>) -> bool {
    let stopped =
        case.conversation.verdict().1.and_then(|of| of.facts().waiting).is_some_and(|waiting| waiting.is_of_error);
    stopped && matches!(case.process, Process::Alive { .. })
}

/// When a silent turn counts as lost. No source can report anything while the machine sleeps.
fn lost_at(case: &StatusInputs<'_>) -> Timestamp {
    case.conversation_at.plus_ms(case.asleep_ms).plus_ms(case.rules.lost_after_ms)
}

/// The candidate of the conversation, including its silence.
fn conversation(case: &StatusInputs<'_>, others_speak: bool, now: Timestamp) -> Candidate {
    let (state, reason) = at_rest(case, case.conversation.verdict());
    let silent_ms = now.since_ms(case.conversation_at);
    let lost_at = lost_at(case);
    let lost = !others_speak && !matches!(case.process, Process::Alive { .. }) && now >= lost_at;
    let idle = !others_speak && silent_ms >= case.rules.idle_after_ms;
    let candidate = |state, reason, strength, basis| Candidate {
        source: Source::Transcript,
        state,
        reason,
        strength,
        at: case.conversation_at,
        said_at: case.conversation_at,
        basis,
    };
    let nobody_knows =
        || Candidate { at: lost_at, ..candidate(State::Unknown, Some(Reason::Lost), Confidence::Low, Basis::LostTurn) };
    let rest = |basis| Candidate {
        at: case.conversation_at.plus_ms(case.rules.idle_after_ms),
        ..candidate(State::Idle, Some(Reason::Quiet), Confidence::Medium, basis)
    };
    match &case.conversation.phase {
        Phase::Silent if idle && !is_unreadable(case) => rest(Basis::NoPrompt),
        Phase::Silent => candidate(state, reason, Confidence::Low, Basis::NoPrompt),
        Phase::Open { .. } if lost => nobody_knows(),
        Phase::Open { .. } if state == State::Waiting => {
            candidate(state, reason, Confidence::High, Basis::OpenQuestion)
        }
        Phase::Open { .. } => {
            let strength = match (may_ask(case), case.conversation.calls.is_empty()) {
                (true, _) => Confidence::Low,
                (false, true) if case.may_have_ended => Confidence::Low,
                (false, true) if silent_ms < case.rules.quiet_ms => Confidence::High,
                (false, false) if may_ask_unseen(case) => Confidence::Low,
                (false, _) => Confidence::Medium,
            };
            // No event followed the doubtful report.
            let doubted = case.conversation.doubted_at.is_some_and(|at| at >= case.conversation_at);
            candidate(state, reason, if doubted { Confidence::Low } else { strength }, Basis::OpenTurn)
        }
        Phase::Ended { pending_subagents, .. } if *pending_subagents > 0 => {
            if lost {
                nobody_knows()
            } else {
                candidate(state, reason, Confidence::Medium, Basis::Ended)
            }
        }
        // An agent run by a program ends with its turn; capture may not have seen its process.
        Phase::Ended { .. } if idle && case.conversation.headless && matches!(case.process, Process::Unseen) => {
            Candidate { state: State::Exited, reason: Some(Reason::Clean), ..rest(Basis::EndedLongAgo) }
        }
        Phase::Ended { .. } if idle && !is_stopped(case) => rest(Basis::EndedLongAgo),
        Phase::Ended { certain, .. } => {
            candidate(state, reason, if *certain { Confidence::High } else { Confidence::Medium }, Basis::Ended)
        }
    }
}

/// The next time at which time alone would change the decision. `clock` is the time of the last decision. A limit that
/// has passed counts once.
#[must_use]
pub fn next_change(case: &StatusInputs<'_>, status: &SessionStatus, clock: Timestamp) -> Option<Timestamp> {
    if matches!(case.process, Process::Gone { .. }) {
        return None;
    }
    let claims = case.claims.iter().filter_map(|h| h.valid_until);
    let begins = case.claims.iter().filter_map(|h| counts_from(case, h)).filter(|from| *from > clock);
    let several = case.claims.len() > 1;
    let confirmed = case.claims.iter().filter(|_| several).map(|h| h.at.plus_ms(case.rules.confirm_ms));
    let confirmed = confirmed.filter(|at| *at > clock);
    let others_speak = case.claims.iter().any(|h| h.state != State::Unknown);
    let alive = matches!(case.process, Process::Alive { .. });
    let silence = match &case.conversation.phase {
        _ if others_speak || is_stopped(case) => None,
        Phase::Silent | Phase::Ended { pending_subagents: 0, .. } => {
            Some(case.conversation_at.plus_ms(case.rules.idle_after_ms))
        }
        Phase::Open { .. } | Phase::Ended { .. } if alive => None,
        Phase::Open { .. } | Phase::Ended { .. } => Some(lost_at(case)),
    };
    let decided = matches!(status.state, State::Idle | State::Unknown | State::Exited);
    let silence = silence.filter(|at| *at > clock || !decided);
    // A quiet turn is less credible, so that a claim of medium strength may win.
    let doubt = match &case.conversation.phase {
        Phase::Open { .. } if case.conversation.calls.is_empty() && !case.claims.is_empty() => {
            Some(case.conversation_at.plus_ms(case.rules.quiet_ms))
        }
        Phase::Silent | Phase::Open { .. } | Phase::Ended { .. } => None,
    };
    let doubted = case.claims.iter().filter_map(|h| doubted_at(case, h)).filter(|at| *at > clock);
    claims.chain(begins).chain(doubted).chain(confirmed).chain(silence).chain(doubt.filter(|at| *at > clock)).min()
}

/// One line about the current activity.
fn activity(case: &StatusInputs<'_>, state: State, reason: Option<Reason>) -> Option<String> {
    let own = case.conversation;
    if state == State::Unknown && reason == Some(Reason::NoEvidence) {
        return case.claims.iter().rev().find(|h| h.state == state).map(|h| verbatim_line(&h.words, 120));
    }
    if state != State::WaitingApproval && !reason.is_some_and(|reason| reason.facts().has_subject) {
        return None;
    }
    // The dialog on the screen shows the subject; with several open calls, choosing one is a guess.
    let shown = case.claims.iter().rev().filter(|h| h.state == state && state != State::Running);
    if let Some(subject) = shown.filter_map(|h| h.shown.as_deref()).next() {
        return Some(verbatim_line(subject, 120));
    }
    let call = if reason == Some(Reason::Question) {
        own.calls.iter().find(|c| c.tool == events::ToolKind::Question)
    } else {
        own.likely_asker()
    }?;
    Some(verbatim_line(call.shown.as_deref().unwrap_or(&call.name), 120))
}
