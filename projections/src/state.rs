//! The reducer of one session: applies events, and returns the conclusions drawn from them.
//!
//! [`SessionState::fold`] applies a committed event, and [`SessionState::advance`] the time. Both return
//! [`Conclusion`]s: turns, status changes and exits, which capture writes into the log as derived events. A later fold
//! ignores these, because it draws the same conclusions again.

mod apply;
mod approvals;
mod signals;
mod typed;

pub use apply::LABELS;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use events::{
    ApprovalId, Block, Claim, Confidence, Event, Payload, Provider, Reason, SessionId, Source, State, StatusChanged,
    TextRef, Timestamp, ToolKind, Topic, TurnId, TurnOutcome, UsageReported,
};
use serde::{Deserialize, Serialize};

use crate::{
    Account, Approval, OpenTurn, Session, SessionHealth, SessionStatus, Summary, Turn, Usage,
    claims::CheckHistory,
    conversation::Conversation,
    receipt::{self, ContinuingCommands, LineKind, TaskList},
    rules::StatusRules,
    status::{self, Process, StandingClaim, StatusInputs},
    summary,
    test_loops::TestLoops,
    title::TitleSource,
};

/// How long after the end of a process was noticed its last output may still be read, ms.
const LAST_WORDS_MS: i64 = 1_500;
/// How long after the end of a process in the middle of a turn the last lines of its file may still be unread, ms.
const LAST_LINES_MS: i64 = 400;

/// If a live record is dated more than this before it was read, its date comes from another clock, ms.
const OTHER_CLOCK_MS: i64 = 3_600_000;

/// Longest prompt or title kept with a session, characters.
const PROMPT_CHARS: usize = 400;
/// Longest text kept with a turn, bytes. Sessions in memory have ten of them each.
const TURN_TEXT_BYTES: usize = 1_024;
/// Longest text kept unchanged while its turn is open, bytes.
const OPEN_TEXT_BYTES: usize = 16 << 10;
/// Longest text that is folded as a whole, bytes.
const WHOLE_TEXT_BYTES: u64 = 256 << 10;
/// Number of finished turns kept with a session; the store keeps all turns.
const RECENT_TURNS: usize = 10;
/// Number of responses whose token counts may still grow.
const GROWING_RESPONSES: usize = 4;
/// Maximum number of standing claims in a session; the oldest is dropped for a new one.
const STANDING_CLAIMS: usize = 32;

/// A conclusion of capture, to be stored as a derived event.
#[derive(Debug, Clone, PartialEq)]
pub struct Conclusion {
    /// When the conclusion became true.
    pub at: Timestamp,
    /// The turn it concerns.
    pub turn_id: Option<TurnId>,
    /// The payload of the derived event.
    pub payload: Payload,
    /// A finished turn, to be stored.
    pub turn: Option<Turn>,
    /// An approval that was opened or closed, to be stored.
    pub approval: Option<Box<Approval>>,
    /// The source that decided it, and its confidence.
    pub basis: Option<(Source, Confidence)>,
}

const fn is_zero(ms: &i64) -> bool {
    *ms == 0
}

/// The reduced state of one session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionState {
    /// The view of the session.
    pub session: Session,
    rules: StatusRules,
    /// The latest time seen: of an event or of `advance`.
    clock: Timestamp,
    #[serde(rename = "talk")]
    conversation: Conversation,
    #[serde(rename = "talk_at")]
    conversation_at: Timestamp,
    /// How long nothing was observed since then because the machine slept, ms.
    #[serde(default, skip_serializing_if = "is_zero")]
    asleep_ms: i64,
    #[serde(rename = "held")]
    claims: Vec<StandingClaim>,
    process: Process,
    /// When the process began with the session, if a registry entry names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    process_at: Option<Timestamp>,
    goodbye_at: Option<Timestamp>,
    /// Set if the process ended in the middle of a turn whose last lines may not have been read yet.
    #[serde(default)]
    parting: Option<Parting>,
    ready_at: Option<Timestamp>,
    /// A likely end of the turn; dropped at the next activity.
    likely_end: Option<(Timestamp, TurnOutcome)>,
    /// When the likely end counts, if its source asks to wait longer than usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    likely_end_from: Option<Timestamp>,
    /// The latest time of a conclusion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    concluded_at: Option<Timestamp>,
    turn: Option<Turn>,
    /// The last text of the open turn, unchanged: secrets are searched for once, when the turn ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turn_text: Option<String>,
    turn_message: Option<String>,
    /// The id of the model's last message, which may still get more blocks.
    last_message: Option<String>,
    /// Prompts that capture typed for rules and that the agent has not recorded yet, oldest first.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    typed: VecDeque<typed::TypedPrompt>,
    /// The commands whose end is still to come.
    #[serde(default, skip_serializing_if = "ContinuingCommands::is_empty")]
    continuing: ContinuingCommands,
    /// The agent's to-do list.
    #[serde(default, skip_serializing_if = "TaskList::is_empty")]
    tasks: TaskList,
    /// The checks of the finished turns.
    #[serde(default, skip_serializing_if = "CheckHistory::is_empty")]
    checks: CheckHistory,
    /// The last turns, newest last.
    recent: VecDeque<Turn>,
    /// The token counts of the last responses, newest last.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    counted: VecDeque<CountedResponse>,
    #[serde(default)]
    title_from: TitleSource,
    /// Whether the open turn began with a prompt that was only observed being typed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    typed_turn: bool,
    started: bool,
    /// Approvals: the pending ones, and the most recently closed ones.
    #[serde(default)]
    approvals: Vec<Approval>,
    /// The pending approvals whose request is no longer visible anywhere, and since when.
    #[serde(default)]
    unseen: BTreeMap<ApprovalId, Timestamp>,
    /// Whether the last call that the user stopped was refused; `false` if it had been allowed before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refused: Option<bool>,
    /// When a dialog that was seen before its call was read gets the description of that call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    named_from: Option<Timestamp>,
    /// The failed and the running tests.
    #[serde(default, skip_serializing_if = "TestLoops::is_empty")]
    test_loops: TestLoops,
    /// The last turn, if its outcome was corrected after it was concluded.
    #[serde(skip)]
    corrected: Option<Turn>,
}

/// A process that ended in the middle of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Parting {
    at: Timestamp,
    /// The reason, if a source reported one.
    how: Option<Reason>,
}

/// The tokens counted for one response of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct CountedResponse {
    message_id: String,
    usage: Usage,
}

impl SessionState {
    /// Creates a session without any event.
    #[must_use]
    pub fn new(
        id: SessionId,
        provider: Provider,
        provider_session_id: Option<Arc<str>>,
        at: Timestamp,
        rules: StatusRules,
    ) -> Self {
        Self {
            session: Session {
                id,
                provider,
                provider_session_id: provider_session_id.map(|p| p.to_string()),
                run_id: None,
                parent_session_id: None,
                merged_into: None,
                forked_from: None,
                title: None,
                cwd: None,
                began_in: None,
                git_branch: None,
                labels: std::collections::BTreeMap::new(),
                marks: None,
                model: None,
                cli_version: None,
                permission_mode: None,
                headless: false,
                pid: None,
                started_at: at,
                last_event_at: at,
                last_user_prompt_at: None,
                last_assistant_output_at: None,
                status: SessionStatus {
                    state: State::Unknown,
                    reason: Some(Reason::NoEvidence),
                    since: at,
                    confidence: events::Confidence::Low,
                    activity: None,
                    evidence: Vec::new(),
                    disagreements: Vec::new(),
                },
                pending_approvals: Vec::new(),
                approval_wait_ms: 0,
                turn: None,
                turns: 0,
                usage: Usage::default(),
                failures: BTreeMap::new(),
                summary: Summary::default(),
                transcripts: Vec::new(),
                health: SessionHealth::Ok,
                last_sequence: 0,
            },
            rules,
            clock: Timestamp::MIN,
            conversation: Conversation::default(),
            conversation_at: at,
            asleep_ms: 0,
            claims: Vec::new(),
            process: Process::Unseen,
            process_at: None,
            goodbye_at: None,
            parting: None,
            ready_at: None,
            likely_end: None,
            likely_end_from: None,
            concluded_at: None,
            turn: None,
            turn_text: None,
            turn_message: None,
            last_message: None,
            typed: VecDeque::new(),
            continuing: ContinuingCommands::default(),
            tasks: TaskList::default(),
            checks: CheckHistory::default(),
            recent: VecDeque::new(),
            counted: VecDeque::new(),
            title_from: TitleSource::Nothing,
            typed_turn: false,
            started: false,
            approvals: Vec::new(),
            unseen: BTreeMap::new(),
            refused: None,
            corrected: None,
            named_from: None,
            test_loops: TestLoops::default(),
        }
    }

    /// Sets the limits; they are not part of the log.
    pub fn set_rules(&mut self, rules: StatusRules) {
        self.rules = rules;
    }

    /// The process that runs the session, if it is known and running: (pid, start ticks).
    #[must_use]
    pub fn process(&self) -> Option<(u32, u64)> {
        match self.process {
            Process::Alive { pid, start_ticks } => Some((pid, start_ticks)),
            Process::Unseen | Process::Gone { .. } => None,
        }
    }

    /// The provider's id of the last message. A further block with this id is not a new message.
    #[must_use]
    pub fn last_message(&self) -> Option<&str> {
        self.last_message.as_deref()
    }

    /// The growth of a response that was already counted; `None` if it has not grown, or is not among the last
    /// responses.
    #[must_use]
    pub fn usage_growth(&self, usage: &UsageReported) -> Option<UsageReported> {
        let counted = self.counted.iter().find(|c| Some(&c.message_id) == usage.message_id.as_ref())?.usage;
        let growth = UsageReported {
            input_tokens: usage.input_tokens.saturating_sub(counted.input_tokens),
            output_tokens: usage.output_tokens.saturating_sub(counted.output_tokens),
            cache_read_tokens: usage.cache_read_tokens.saturating_sub(counted.cache_read_tokens),
            cache_write_tokens: usage.cache_write_tokens.saturating_sub(counted.cache_write_tokens),
            cache_write_hour_tokens: usage.cache_write_hour_tokens.saturating_sub(counted.cache_write_hour_tokens),
            thinking_tokens: usage.thinking_tokens.saturating_sub(counted.thinking_tokens),
            // The cost was reported with the first count of the response.
            cost_nano_usd: usage.cost_nano_usd.map(|_| 0),
            ..usage.clone()
        };
        let tokens = [growth.input_tokens, growth.output_tokens, growth.cache_read_tokens, growth.cache_write_tokens];
        tokens.iter().any(|tokens| *tokens > 0).then_some(growth)
    }

    /// Whether tokens of the same response were already counted; only the last responses are known.
    #[must_use]
    pub fn is_counted(&self, usage: &UsageReported) -> bool {
        usage.message_id.is_some() && self.counted.iter().any(|c| Some(&c.message_id) == usage.message_id.as_ref())
    }

    /// The last claim of the sub-agent with this provider id for this session.
    #[must_use]
    pub fn claim_of_agent(&self, agent: &str) -> Option<State> {
        self.claims.iter().find(|h| h.agent.as_deref() == Some(agent)).map(|h| h.state)
    }

    /// Whether a claim of this source about the session still applies.
    #[must_use]
    pub fn is_claimed_by(&self, source: Source) -> bool {
        self.claims.iter().any(|h| h.source == source)
    }

    /// The open turn so far; its text is set when it ends.
    #[must_use]
    pub fn open_turn(&self) -> Option<&Turn> {
        self.turn.as_ref()
    }

    /// The last finished turns, oldest first.
    pub fn recent_turns(&self) -> impl DoubleEndedIterator<Item = &Turn> {
        self.recent.iter()
    }

    /// The turn to which an event belongs, before it is folded: the open turn, or for an event that opens a turn, the
    /// turn it will open. The event's own `turn_id` is ignored.
    #[must_use]
    pub fn turn_of(&self, event: &Event) -> Option<TurnId> {
        let at = self.clock_of(event);
        let ends = self.turn_ends_by(at) || self.is_of_another_process(event, at);
        let open = self.turn.as_ref().filter(|_| !ends).map(|t| t.id);
        let opens = match (open, &event.payload) {
            (_, Payload::UserPrompt(_)) if is_restated(event) => false,
            (Some(_), Payload::UserPrompt(prompt)) => !self.steers(prompt.origin),
            (Some(_), _) => false,
            // A prompt opens a turn even if it is read after the end of the process.
            (None, Payload::UserPrompt(_)) => true,
            (None, payload) => {
                self.opens_turn(payload).is_some() && (!self.has_ended() || self.is_revived_by(event, at))
            }
        };
        if opens { Some(event.id.into()) } else { open }
    }

    /// Whether time alone ends the open turn by `at`.
    fn turn_ends_by(&self, at: Timestamp) -> bool {
        self.ready_at.is_some_and(|ready| ready.plus_ms(self.rules.ready_grace_ms) <= at)
            || self.likely_end_due().is_some_and(|due| due <= at)
            || self.last_words_due().is_some_and(|due| due <= at)
            || self.parting_due().is_some_and(|due| due <= at)
    }

    /// When the likely end of the turn counts, unless activity follows.
    fn likely_end_due(&self) -> Option<Timestamp> {
        let (end, _) = self.likely_end?;
        Some(self.likely_end_from.unwrap_or_else(|| end.plus_ms(self.rules.likely_end_ms)))
    }

    /// When a turn whose prompt was read after the end of the process counts as cut off, unless its end is read before.
    fn last_words_due(&self) -> Option<Timestamp> {
        let Process::Gone { at, .. } = self.process else { return None };
        self.turn.as_ref().map(|_| self.conversation_at.max(at).plus_ms(LAST_WORDS_MS))
    }

    /// When the end of a process in the middle of a turn counts.
    fn parting_due(&self) -> Option<Timestamp> {
        self.parting.map(|parting| parting.at.plus_ms(LAST_LINES_MS))
    }

    /// Whether a prompt was sent after the process ended whose last lines may be unread: another process runs the
    /// session.
    fn is_of_another_process(&self, event: &Event, at: Timestamp) -> bool {
        let is_prompt = matches!(event.payload, Payload::UserPrompt(_)) && !is_restated(event);
        is_prompt && self.parting.is_some_and(|parting| happened_at(event, at) > parting.at)
    }

    /// Ends the turn with its likely outcome when a later event shows that the turn will not continue.
    fn end_as_likely(&mut self, out: &mut Vec<Conclusion>) {
        if self.likely_end_from.take().is_some()
            && let Some((end, outcome)) = self.likely_end.take()
            && self.turn.is_some()
        {
            // The end must not precede later conclusions.
            let end = self.concluded_at.map_or(end, |last| end.max(last));
            self.end_turn(outcome, None, 0, false, end, out);
        }
    }

    /// When the process ended, if its end counts by `at`.
    fn gone_by(&self, at: Timestamp) -> Option<Timestamp> {
        match self.process {
            Process::Gone { at, .. } => Some(at),
            Process::Unseen | Process::Alive { .. } => {
                self.parting.filter(|_| self.parting_due().is_some_and(|due| due <= at)).map(|parting| parting.at)
            }
        }
    }

    /// Whether the process ended, even if its end does not count yet.
    fn has_ended(&self) -> bool {
        self.is_gone() || self.parting.is_some()
    }

    /// Whether the process is known to have ended. A session may count as exited although its process was never seen.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(self.process, Process::Gone { .. })
    }

    /// Whether an event shows that a session whose process ended is running again. Output of the old process that is
    /// read only after its end does not count.
    fn is_revived_by(&self, event: &Event, at: Timestamp) -> bool {
        let Some(gone_at) = self.gone_by(at) else { return false };
        // Telemetry arrives late, and its last batch is sent when the process ends.
        let late = event.source == Source::Telemetry || at.since_ms(gone_at) < LAST_WORDS_MS;
        let is_prompt = matches!(event.payload, Payload::UserPrompt(_));
        let last_words = late && !is_prompt;
        // The last answer is often written in the millisecond in which the process ends.
        let happened = happened_at(event, at);
        let is_later = happened > gone_at || is_prompt && happened == gone_at;
        speaks(&event.payload) && !last_words && is_later
    }

    /// The whole text with which an event must be folded, if the event itself contains only its beginning and end: the
    /// text of a prompt, an answer or a question, the input of a command, and the output of a check. Titles, turns and receipts are made from
    /// it. The result depends only on the log, so that the fold of the log is the live state.
    #[must_use]
    pub fn whole_text_of<'e>(&self, event: &'e Event) -> Option<&'e TextRef> {
        let text = event.text_ref.as_ref().filter(|text| text.stored && text.length <= WHOLE_TEXT_BYTES)?;
        #[expect(clippy::wildcard_enum_match_arm, reason = "of others the text is not kept with a session")]
        let is_kept = match &event.payload {
            Payload::ToolCall(call) => receipt::may_contain_check(call, event.text.as_deref()),
            Payload::ToolResult(result) if !result.detail => self.checks_with(&result.call_id, event.text.as_deref()),
            Payload::UserPrompt(_) | Payload::AssistantMessage(_) | Payload::QuestionAsked(_) => true,
            Payload::AssistantDelta(delta) => delta.block == Block::Text,
            _ => false,
        };
        is_kept.then_some(text)
    }

    /// Whether the output of a call, of which `cut` is the beginning and the end, is that of a check.
    fn checks_with(&self, call_id: &str, cut: Option<&str>) -> bool {
        let call = self.conversation.calls.iter().find(|call| call.call_id == call_id);
        call.is_some_and(|call| {
            let is_command = call.tool == ToolKind::Execute;
            let may_end = || call.line != LineKind::Shows && cut.is_some_and(receipt::may_end_in_summary);
            is_command && (!call.checks.is_empty() || may_end())
        })
    }

    /// Applies one event of the log, in order, with the whole text that [`Self::whole_text_of`] names. Derived events
    /// only advance the sequence.
    pub fn fold(&mut self, event: &Event) -> Vec<Conclusion> {
        self.session.last_sequence = self.session.last_sequence.max(event.sequence);
        if event.derived {
            self.note_typed(event);
            return self.advance(event.created_at);
        }
        let at = self.clock_of(event);
        if !self.started {
            self.session.started_at = at;
            self.session.last_event_at = at;
            self.session.status.since = at;
            self.conversation_at = at;
            self.started = true;
        }
        let mut out = self.advance(at);
        let before = out.len();
        self.clock = self.clock.max(at);
        // Marks and sleep reports do not change the order of lists.
        if !is_no_sign(&event.payload) {
            self.session.last_event_at = self.session.last_event_at.max(at);
        }
        if self.is_of_another_process(event, at) {
            self.conclude_parting(at, &mut out);
        }
        if self.is_revived_by(event, at) {
            self.process = Process::Unseen;
        }
        // History may be read after something newer (such as a claim of the registry). Facts from history keep their
        // own times, although no decision is made in the past.
        let last = (self.conversation_at, self.session.last_user_prompt_at, self.session.last_assistant_output_at);
        let was_open = self.conversation.is_open();
        self.apply(event, time_of(event), &mut out);
        if was_open != self.conversation.is_open() {
            // A prompt may be written only after its turn ended, so its own date counts. If the source's clock is
            // unusable, the order cannot be determined.
            self.outdate(if was_open { happened_at(event, at) } else { event.created_at.min(at) });
        }
        self.conversation_at = self.conversation_at.max(last.0);
        if self.conversation_at > last.0 {
            self.asleep_ms = 0;
        }
        self.session.last_user_prompt_at = self.session.last_user_prompt_at.max(last.1);
        self.session.last_assistant_output_at = self.session.last_assistant_output_at.max(last.2);
        self.settle(at, &mut out);
        self.note_nameless(event);
        let told_by = (event.source, strength_of(event));
        out[before..].iter_mut().for_each(|c| c.basis = c.basis.or(Some(told_by)));
        self.note_conclusions(&out);
        out
    }

    /// The event's time in the order of decisions, which never decreases.
    fn clock_of(&self, event: &Event) -> Timestamp {
        time_of(event).max(self.clock)
    }

    /// Advances the time to `now`.
    pub fn advance(&mut self, now: Timestamp) -> Vec<Conclusion> {
        let mut out = Vec::new();
        // Each step ends when something changes; the bound limits the steps if the clock jumps.
        for _ in 0..2 * STANDING_CLAIMS {
            let Some(due) = self.next_deadline().filter(|due| *due <= now) else { break };
            let due = due.max(self.clock);
            self.clock = due;
            if self.goodbye_at.is_some_and(|at| at.plus_ms(self.rules.goodbye_grace_ms) <= due) {
                self.goodbye_at = None;
                self.claims.retain(|h| h.source != Source::Registry);
            }
            if self.ready_at.is_some_and(|at| at.plus_ms(self.rules.ready_grace_ms) <= due) {
                self.ready_at = None;
                if self.turn.is_some() {
                    self.end_turn(TurnOutcome::TimedOut, None, 0, false, due, &mut out);
                }
            }
            if self.likely_end_due().is_some_and(|likely| likely <= due) {
                self.end_as_likely(&mut out);
                if let Some((_, outcome)) = self.likely_end.take() {
                    self.end_turn(outcome, None, 0, false, due, &mut out);
                }
                self.outdate(due);
            }
            if self.parting_due().is_some_and(|last| last <= due) {
                self.conclude_parting(due, &mut out);
            }
            if self.last_words_due().is_some_and(|last| last <= due) {
                self.end_turn(TurnOutcome::Exited, None, 0, true, due, &mut out);
            }
            self.claims.retain(|h| h.valid_until.is_none_or(|until| until > due));
            if self.named_from.is_some_and(|from| from <= due) {
                self.name_dialog(due, &mut out);
            }
            self.settle(due, &mut out);
            let decides = status::decided_by(&self.case(), due);
            out.iter_mut().for_each(|c| c.basis = c.basis.or(Some(decides)));
            self.note_conclusions(&out);
        }
        out
    }

    fn note_conclusions(&mut self, conclusions: &[Conclusion]) {
        self.concluded_at = self.concluded_at.max(conclusions.iter().map(|conclusion| conclusion.at).max());
    }

    /// The next time at which [`advance`](Self::advance) would change something; `None` if only an event can.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let goodbye = self.goodbye_at.map(|at| at.plus_ms(self.rules.goodbye_grace_ms));
        let ready = self.ready_at.map(|at| at.plus_ms(self.rules.ready_grace_ms));
        let likely = self.likely_end_due();
        if !self.is_decided() {
            return None;
        }
        let case = self.case();
        goodbye
            .into_iter()
            .chain(ready)
            .chain(likely)
            .chain(self.last_words_due())
            .chain(self.parting_due())
            .chain(self.named_from)
            .chain(self.approvals_due())
            .chain(status::next_change(&case, &self.session.status, self.clock))
            .min()
    }

    /// A turn began or ended: claims from before that moment no longer apply.
    fn outdate(&mut self, by: Timestamp) {
        let open = self.conversation.is_open();
        self.claims.retain(|h| {
            let contrary = match h.state {
                State::Running | State::WaitingApproval => !open,
                State::Waiting | State::Idle => open || h.reason == Some(Reason::Question),
                State::Exited | State::Unknown => true,
            };
            !(status::is_momentary(h.source) && contrary && h.said_at.unwrap_or(h.at) <= by)
        });
    }

    fn case(&self) -> StatusInputs<'_> {
        StatusInputs {
            conversation: &self.conversation,
            conversation_at: self.conversation_at,
            asleep_ms: self.asleep_ms,
            may_have_ended: self.likely_end_from.is_some(),
            claims: &self.claims,
            process: self.process,
            rules: self.rules,
        }
    }

    /// Whether any evidence about the session exists; until then its state is unknown.
    fn is_decided(&self) -> bool {
        !self.session.status.evidence.is_empty()
    }

    /// Decides the status again and records a change. Cheap while nothing changes.
    fn settle(&mut self, at: Timestamp, out: &mut Vec<Conclusion>) {
        let corrected = self.corrected.take();
        let (state, reason) = status::verdict(&self.case(), at);
        let first = !self.is_decided();
        let before = &self.session.status;
        if !first && state == before.state && (state == State::Running || reason == before.reason) {
            self.session.status.reason = reason;
            self.settle_approvals(at, out);
            return;
        }
        let mut status = status::decide(&self.case(), at);
        let from = (!first).then_some(before.state);
        status.since = if first { status.since.min(at) } else { status.since.clamp(before.since.min(at), at) };
        let basis = Some(status::decided_by(&self.case(), at));
        let evidence = status.evidence.iter().map(|e| format!("{}: {}", e.source, e.claim)).collect();
        let turn_id = self.turn.as_ref().map(|t| t.id);
        let payload = StatusChanged {
            from,
            to: status.state,
            reason: status.reason,
            activity: status.activity.clone(),
            evidence,
        }
        .into();
        out.push(Conclusion { at, turn_id, payload, turn: corrected, approval: None, basis });
        self.session.status = status;
        self.settle_approvals(at, out);
    }

    /// The current session, with updated evidence, activity and summary.
    pub fn view(&mut self) -> &Session {
        if self.is_decided() {
            let status = status::decide(&self.case(), self.clock);
            let since = self.session.status.since;
            self.session.status = SessionStatus { since, ..status };
        }
        // A session whose process ended has no open turn, even if its last lines may still be read.
        let open = self.turn.as_ref().filter(|_| !self.is_gone());
        self.session.turn = open.map(|t| OpenTurn { id: t.id, prompt: t.prompt.clone(), started_at: t.started_at });
        self.session.summary = summary::summarize(&self.session, self.turn.as_ref(), &self.recent);
        &self.session
    }

    /// The status at a time, and its explanation. Call [`advance`](Self::advance) for that time first; times before the
    /// last event or advance are not reported.
    #[must_use]
    pub fn account(&self, at: Timestamp) -> (SessionStatus, Account) {
        let (case, now) = (self.case(), at.max(self.clock));
        let status = if self.is_decided() {
            SessionStatus { since: self.session.status.since, ..status::decide(&case, now) }
        } else {
            self.session.status.clone()
        };
        (status, status::account(&case, now))
    }

    /// The time at which an event counts for queries about past times: for a live event, the time it was observed; for
    /// an event that was read later, its own time.
    #[must_use]
    pub fn moment_of(event: &Event) -> Timestamp {
        if event.derived { event.created_at } else { time_of(event) }
    }
}

/// When an event happened: by our clock if it is live; by its own date if it is history or telemetry, which agents send
/// seconds late.
fn time_of(event: &Event) -> Timestamp {
    if event.history || event.source == Source::Telemetry {
        event.created_at.min(event.observed_at).max(Timestamp::MIN)
    } else {
        event.observed_at
    }
}

/// When an event happened according to its source, at the latest at `at`. If the clock of the source is far behind
/// ours, as in a container or a copy, the result is `at`.
fn happened_at(event: &Event, at: Timestamp) -> Timestamp {
    let told = event.created_at.min(at);
    if !event.history && at.since_ms(told) > OTHER_CLOCK_MS { at } else { told }
}

/// The confidence of an event's content.
fn strength_of(event: &Event) -> Confidence {
    // Only signals have a strength that differs from the event's confidence.
    if let Payload::Signal(signal) = &event.payload { signal.strength } else { event.confidence }
}

/// Whether a prompt is repeated history and not a new turn.
pub(crate) fn is_restated(event: &Event) -> bool {
    // A prompt that was only observed being typed has low confidence too, but it is not a repetition.
    matches!(event.payload, Payload::UserPrompt(_))
        && event.confidence == events::Confidence::Low
        && event.source != Source::Pty
}

/// Whether an event is no activity of the session: a mark set by the user, or a report that the machine slept.
fn is_no_sign(payload: &Payload) -> bool {
    matches!(payload, Payload::Annotation(note) if matches!(note.topic, Topic::Mark | Topic::Asleep))
}

/// Whether an event shows that the agent or the user is active in the session.
fn speaks(payload: &Payload) -> bool {
    match payload {
        Payload::UserPrompt(_)
        | Payload::AssistantMessage(_)
        | Payload::AssistantDelta(_)
        | Payload::ToolCall(_)
        | Payload::ToolResult(_)
        | Payload::QuestionAsked(_)
        | Payload::Heartbeat(_)
        | Payload::ApprovalRequested(_) => true,
        Payload::Signal(signal) => matches!(signal.claim, Claim::State { .. } | Claim::ProcessAlive { .. }),
        Payload::SessionStarted(_)
        | Payload::SessionExited(_)
        | Payload::TurnStarted(_)
        | Payload::TurnCompleted(_)
        | Payload::ApprovalResolved(_)
        | Payload::StatusChanged(_)
        | Payload::Error(_)
        | Payload::QuestionAnswered(_)
        | Payload::UsageReported(_)
        | Payload::ContextCompacted(_)
        | Payload::SessionForked(_)
        | Payload::Annotation(_)
        | Payload::Finding(_)
        | Payload::Notification(_)
        | Payload::QueuedPrompt(_)
        | Payload::Unrecognized(_) => false,
    }
}

impl Usage {
    /// Adds other tokens.
    pub fn add_all(&mut self, other: &Self) {
        let sums = [
            (&mut self.input_tokens, other.input_tokens),
            (&mut self.output_tokens, other.output_tokens),
            (&mut self.cache_read_tokens, other.cache_read_tokens),
            (&mut self.cache_write_tokens, other.cache_write_tokens),
            (&mut self.cache_write_hour_tokens, other.cache_write_hour_tokens),
            (&mut self.thinking_tokens, other.thinking_tokens),
        ];
        for (sum, tokens) in sums {
            *sum = sum.saturating_add(tokens);
        }
    }

    /// The same counts, each limited to `most`.
    #[must_use]
    pub fn at_most(self, most: u64) -> Self {
        Self {
            input_tokens: self.input_tokens.min(most),
            output_tokens: self.output_tokens.min(most),
            cache_read_tokens: self.cache_read_tokens.min(most),
            cache_write_tokens: self.cache_write_tokens.min(most),
            cache_write_hour_tokens: self.cache_write_hour_tokens.min(most),
            thinking_tokens: self.thinking_tokens.min(most),
        }
    }

    /// Adds the tokens of one response.
    pub fn add(&mut self, usage: &UsageReported) {
        self.add_all(&Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cache_read_tokens: usage.cache_read_tokens,
            cache_write_tokens: usage.cache_write_tokens,
            cache_write_hour_tokens: usage.cache_write_hour_tokens,
            thinking_tokens: usage.thinking_tokens,
        });
    }
}

#[cfg(test)]
mod tests;
