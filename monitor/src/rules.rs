//! The limits of the detectors: `[monitor]` of the configuration.

use std::collections::BTreeMap;

use events::FindingKind;
use serde::{Deserialize, Serialize};

/// The limits of the detectors. Times are milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DetectorLimits {
    /// Kinds that are never raised.
    pub off: Vec<FindingKind>,
    /// A turn is open, no command runs and nothing is heard for so long: `stuck`.
    pub stuck_ms: i64,
    /// The same while a tool is at work that is neither a command nor a sub-agent.
    pub stuck_tool_ms: i64,
    /// So many attempts in a row to reach the model failed: `stuck`.
    pub retries: u32,
    /// Or they go on for so long.
    pub retrying_ms: i64,
    /// A step with the same result was made so often with little else between: `loop`.
    pub loop_repeats: u32,
    /// What is little: of the steps in between, at most so many of 100 are new.
    pub loop_novelty_percent: u32,
    /// So many attempts of one kind, each with other arguments, came to the same failure: `loop`.
    pub loop_attempts: u32,
    /// So often an edit took back an earlier one of the same place: `loop`.
    pub loop_reverts: u32,
    /// Somebody waits and looks again: so often without any change, `loop`,
    pub poll_repeats: u32,
    /// when it also goes on for so long. One that fails each time needs the number only.
    pub poll_ms: i64,
    /// The same command failed in the same way so often: `repeated_failure`.
    pub failures: u32,
    /// So many refusals by the provider within one request are `auth`, also while the agent tries on.
    pub auth_errors: u32,
    /// The same of `rate_limit`.
    pub rate_limit_errors: u32,
    /// An approval is told of when it waits for so long: a rule answers at once.
    pub approval_ms: i64,
    /// So many approvals of a session wait: `approval_backlog`.
    pub backlog: u32,
    /// Or one waits for so long.
    pub backlog_ms: i64,
    /// So much of the context is used, percent: `context_full`.
    pub context_percent: u32,
    /// The context of models, tokens, by the beginning of their names; the longest that fits counts, and
    /// these before those that are known.
    pub context_tokens: BTreeMap<String, u64>,
    /// A command that took so long and is done: `long_job`.
    pub long_job_ms: i64,
    /// A turn is over, and nothing else began for so long: `completion`.
    pub completion_ms: i64,
    /// A session is idle for so long: `idle`.
    pub idle_ms: i64,
    /// So long after the end of a session what it left behind is over.
    pub keep_ms: i64,
    /// At most so many sessions are watched; those that were quiet longest are given up first.
    pub sessions: usize,
}

impl Default for DetectorLimits {
    fn default() -> Self {
        const SECOND: i64 = 1_000;
        const MINUTE: i64 = 60 * SECOND;
        Self {
            off: Vec::new(),
            stuck_ms: 10 * MINUTE,
            stuck_tool_ms: 30 * MINUTE,
            retries: 8,
            retrying_ms: 2 * MINUTE,
            loop_repeats: 5,
            loop_novelty_percent: 34,
            loop_attempts: 7,
            loop_reverts: 3,
            poll_repeats: 8,
            poll_ms: 20 * MINUTE,
            failures: 4,
            auth_errors: 3,
            rate_limit_errors: 5,
            approval_ms: 200,
            backlog: 3,
            backlog_ms: 10 * MINUTE,
            context_percent: 90,
            context_tokens: BTreeMap::new(),
            long_job_ms: 5 * MINUTE,
            completion_ms: SECOND,
            idle_ms: 30 * MINUTE,
            keep_ms: 24 * 60 * MINUTE,
            sessions: 1_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_rule_is_named() {
        let rules: DetectorLimits = serde_json::from_str(r#"{"stuck_ms": 5, "off": ["idle"]}"#).unwrap();
        assert_eq!((rules.stuck_ms, rules.off), (5, vec![FindingKind::Idle]));
        let error = serde_json::from_str::<DetectorLimits>(r#"{"stuk_ms": 5}"#).unwrap_err().to_string();
        assert!(error.contains("stuk_ms"), "{error}");
    }
}
