//! Compaction: requests a summary and replaces the beginning of the conversation by it.
//!
//! The order is sent after the live history, so that the provider reads the history from its cache, or with the
//! flattened conversation if nothing is cached. The order is not an entry: until the compaction itself is appended, the
//! file and the next request are as if it had never been sent.

use session_tree::{FailureKind, Json, NewCompaction, NewEntry, context::text_of};

use crate::{
    answers::is_call,
    cache::{CachePrediction, CacheRules},
    compaction::{self, CompactionCut},
    effect::{CompactionReason, Effect, RequestPurpose, RuntimeFrame, SummaryForm, SummaryRequest},
    input::{AnswerEnd, AnswerFailure, TurnOutcome},
    machine::EngineStep,
    state::{Activity, AnswerInProgress, Compaction, Then},
    window,
};

/// Number of compactions in a row that may save little before none begins by itself.
const IN_VAIN: u32 = 2;
/// Characters of a summary per token, approximately.
const CHARS_PER_TOKEN: u64 = 4;

impl EngineStep<'_> {
    /// A person or a program requests a compaction.
    pub(crate) fn compact(&mut self, focus: Option<String>) {
        if self.state.live.compaction.is_some() || self.state.live.compaction_due.is_some() {
            return self.refuse("compact", "a compaction is already requested");
        }
        if matches!(self.state.live.activity, Activity::Paused { .. }) {
            return self.refuse("compact", "the turn is paused: resume or abort it first");
        }
        self.state.live.compaction_due = Some(focus);
    }

    /// Begins a compaction that was requested, or that is due because the context is almost full.
    pub(crate) fn begin_due_compaction(&mut self) -> bool {
        let due = self.state.live.compaction_due.take();
        if due.is_none() && !self.is_almost_full() {
            return false;
        }
        let reason = if due.is_some() { CompactionReason::Manual } else { CompactionReason::Threshold };
        self.begin_compaction(reason, due.flatten(), None);
        true
    }

    /// Whether the next request of the turn would exceed the threshold of the model's window.
    fn is_almost_full(&self) -> bool {
        let tokens = self.state.recorded.context_tokens;
        let is_above = |window| compaction::settings(Some(window)).is_due(tokens, window);
        self.state.recorded.turn.is_some() && self.may_compact() && self.state.live.model.window.is_some_and(is_above)
    }

    /// Whether a compaction may begin by itself.
    pub(crate) fn may_compact(&self) -> bool {
        let is_effective = self.state.recorded.compactions_in_vain < IN_VAIN;
        self.state.setup.turns.compacts && !self.state.live.compaction_failed && is_effective
    }

    /// The provider refused a request because the conversation no longer fits: compacts it and repeats the request.
    pub(crate) fn compact_too_long(&mut self, said: String) {
        self.begin_compaction(CompactionReason::Overflow, None, Some(said));
    }

    fn begin_compaction(&mut self, reason: CompactionReason, focus: Option<String>, too_long: Option<String>) {
        // A request with the whole conversation and the order would not fit either.
        let form = if too_long.is_some() { SummaryForm::Flattened } else { SummaryForm::Live };
        self.out.push(Effect::Tell(RuntimeFrame::CompactionStarted { reason }));
        self.state.live.compaction = Some(Compaction { reason, focus, form, again: false, too_long, cut: None });
        self.prepare(0);
    }

    /// What the next request is for.
    pub(crate) fn purpose(&self) -> RequestPurpose {
        let Some(compaction) = &self.state.live.compaction else { return RequestPurpose::Turn };
        RequestPurpose::Compaction(SummaryRequest {
            form: compaction.form,
            focus: compaction.focus.clone(),
            again: compaction.again,
            kept_tokens: compaction::settings(self.state.live.model.window).keep_recent_tokens,
        })
    }

    /// Takes what the compaction will keep. Returns whether the prepared request is to be sent.
    pub(crate) fn take_cut(&mut self, cut: Option<Box<CompactionCut>>, expected: &CachePrediction) -> bool {
        let is_cached = matches!(self.state.live.model.cache, CacheRules::None) || expected.read >= expected.write;
        let Some(compaction) = &mut self.state.live.compaction else { return true };
        let Some(cut) = cut else {
            self.fail_compaction("there is nothing to compact yet: the end of the conversation is always kept");
            return false;
        };
        compaction.cut = Some(cut);
        if compaction.form == SummaryForm::Live && !is_cached {
            compaction.form = SummaryForm::Flattened;
            self.prepare(0);
            return false;
        }
        true
    }

    /// The answer to the request for a summary is complete.
    pub(crate) fn summary_ended(&mut self, answer: AnswerInProgress, end: AnswerEnd) {
        let has_calls = answer.content.iter().any(is_call);
        let written = text_of(&Json::Array(answer.content.clone()), "\n");
        let usage = answer.usage.unwrap_or_default().of_message().to_object();
        self.append_ended(&answer, None, None);
        let is_summary = end == AnswerEnd::Stop && !has_calls && !written.trim().is_empty();
        let Some(compaction) = &mut self.state.live.compaction else { return };
        if is_summary && let Some(cut) = compaction.cut.take() {
            self.replace_beginning(*cut, &written, usage.into());
        } else if end == AnswerEnd::Length {
            self.fail_compaction("the summary exceeds the maximum length of an answer");
        } else if !compaction.again && end != AnswerEnd::Refused {
            compaction.again = true;
            self.prepare(0);
        } else {
            self.fail_compaction("the model wrote no summary");
        }
    }

    fn replace_beginning(&mut self, cut: CompactionCut, written: &str, usage: Json) {
        let summary = compaction::summary(&cut, written);
        let summary_tokens = summary.chars().count() as u64 / CHARS_PER_TOKEN;
        let new = NewCompaction {
            summary,
            first_kept: Some(cut.first_kept),
            tokens_before: cut.tokens_before,
            details: Some(cut.details),
            usage: Some(usage),
            from_hook: false,
        };
        let Some(compaction) = self.state.live.compaction.take() else { return };
        self.state.live.context_told = 0;
        self.go_on();
        let then = Then::Compacted(compaction.reason, cut.tokens_before, summary_tokens);
        self.append(NewEntry::Compaction(new), true, then);
    }

    /// The request for a summary failed for good.
    pub(crate) fn summary_failed(&mut self, failure: AnswerFailure) {
        let Some(compaction) = &mut self.state.live.compaction else { return };
        if failure.kind == FailureKind::TooLong && compaction.form == SummaryForm::Live {
            compaction.form = SummaryForm::Flattened;
            return self.prepare(0);
        }
        self.fail_compaction(&failure.message);
    }

    /// Ends the compaction without one. The turn continues, unless its requests no longer fit.
    fn fail_compaction(&mut self, error: &str) {
        let too_long = self.state.live.compaction.as_mut().and_then(|compaction| compaction.too_long.take());
        let is_automatic = |compaction: &Compaction| compaction.reason != CompactionReason::Manual;
        self.state.live.compaction_failed |= self.state.live.compaction.as_ref().is_some_and(is_automatic);
        self.drop_compaction(error);
        match too_long {
            Some(said) => {
                let full = window::too_long(&said, self.state.live.model.window);
                self.end_turn(TurnOutcome::Failed, Some(full));
            }
            None => self.go_on(),
        }
    }

    /// Continues the turn, or waits for a prompt.
    fn go_on(&mut self) {
        let in_turn = self.state.recorded.turn.is_some();
        self.state.live.activity = if in_turn { Activity::Boundary } else { Activity::Idle };
    }

    /// Forgets the compaction in progress or due, and says why.
    pub(crate) fn drop_compaction(&mut self, error: &str) {
        let due = self.state.live.compaction_due.take().map(|_| CompactionReason::Manual);
        let dropped = self.state.live.compaction.take().map(|compaction| compaction.reason);
        if let Some(reason) = dropped.or(due) {
            self.out.push(Effect::Tell(RuntimeFrame::CompactionFailed { reason, error: error.to_owned() }));
        }
    }
}
