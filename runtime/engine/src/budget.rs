//! The spending limits of a session, checked before each request and each call.

use crate::{input::PauseReason, machine::EngineStep};

impl EngineStep<'_> {
    /// When the time limit will be reached if the turn runs.
    pub(crate) fn time_is_up_at_ms(&self) -> Option<u64> {
        let limit_ms = self.state.limits().wall_ms?;
        let clock = &self.state.live.clock;
        let left_ms = limit_ms.saturating_sub(self.state.recorded.wall_ms.saturating_add(clock.before_ms));
        clock.since_ms.map(|since_ms| since_ms.saturating_add(left_ms))
    }

    pub(crate) fn is_out_of_time(&self) -> bool {
        self.time_is_up_at_ms().is_some_and(|at_ms| at_ms <= self.time.mono_ms)
    }

    /// Whether the limit of calls has been reached.
    pub(crate) fn limit_of_calls(&self) -> bool {
        self.state.limits().calls.is_some_and(|limit| self.state.recorded.calls_started >= limit)
    }

    /// The limit that has been reached, if any.
    pub(crate) fn limit_reached(&self) -> Option<PauseReason> {
        let (limits, spent) = (self.state.limits(), self.state.recorded.spent());
        let reached = |limit: Option<u64>, spent: Option<u64>| limit.is_some_and(|limit| spent.unwrap_or(0) >= limit);
        if limits.cost_nano_usd.is_some() && !self.state.live.model.is_priced {
            Some(PauseReason::PriceUnknown)
        } else if reached(limits.tokens, spent.tokens) {
            Some(PauseReason::TokenLimit)
        } else if reached(limits.cost_nano_usd, spent.cost_nano_usd) {
            Some(PauseReason::CostLimit)
        } else if self.is_out_of_time() {
            Some(PauseReason::TimeLimit)
        } else {
            self.limit_of_calls().then_some(PauseReason::CallLimit)
        }
    }
}
