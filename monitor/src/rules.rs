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
    /// Silence in an open turn without a running command that raises `stuck`.
    pub stuck_ms: i64,
    /// Silence that raises `stuck` while a tool other than a command or a sub-agent runs.
    pub stuck_tool_ms: i64,
    /// Running time of a command whose words show that it will not end that raises `stuck`.
    pub hang_ms: i64,
    /// Running time of a command whose output shows what it waits for that raises `stuck`.
    pub prompt_ms: i64,
    /// Failed attempts in a row to reach the model that raise `stuck`.
    pub retries: u32,
    /// Time of failing attempts to reach the model that raises `stuck`.
    pub retrying_ms: i64,
    /// Repetitions of a step with the same result, with few new steps between, that raise `loop`.
    pub loop_repeats: u32,
    /// Maximum share of new steps within a loop, percent.
    pub loop_novelty_percent: u32,
    /// Attempts of one kind with different arguments and the same failure that raise `loop`.
    pub loop_attempts: u32,
    /// Edits that revert an earlier edit of the same text that raise `loop`.
    pub loop_reverts: u32,
    /// Polls without any change before `loop` is raised.
    pub poll_repeats: u32,
    /// Minimum time that these polls span before `loop` is raised; for polls that all fail, only their number counts.
    /// Also the running time of a command that waits in a loop that raises `stuck`.
    pub poll_ms: i64,
    /// Identical failures of one command that raise `repeated_failure`.
    pub failures: u32,
    /// Authentication errors within one request that raise `auth` while the agent still retries.
    pub auth_errors: u32,
    /// Rate-limit errors within one request that raise `rate_limit` while the agent still retries.
    pub rate_limit_errors: u32,
    /// Time a request must be pending before `approval` is raised, so that rules can answer first.
    pub approval_ms: i64,
    /// Pending approvals of a session that raise `approval_backlog`.
    pub backlog: u32,
    /// Time one approval must be pending to raise `approval_backlog`.
    pub backlog_ms: i64,
    /// Used share of the context that raises `context_full`, percent.
    pub context_percent: u32,
    /// Context sizes in tokens, by the beginning of the model's name. The longest match counts, and these override the
    /// built-in sizes.
    pub context_tokens: BTreeMap<String, u64>,
    /// Duration of a finished command that raises `long_job`.
    pub long_job_ms: i64,
    /// Quiet time after a finished turn that raises `completion`.
    pub completion_ms: i64,
    /// Time a session must be idle to raise `idle`.
    pub idle_ms: i64,
    /// Time after the end of a session at which its remaining findings are resolved.
    pub keep_ms: i64,
    /// Time within which two sessions at work edit the same file to raise `shared_files`.
    pub shared_files_ms: i64,
    /// Time within which a quota stops two sessions of an agent to raise `shared_quota`.
    pub shared_quota_ms: i64,
    /// Sessions that wait for the user at the same time that raise `several_blocked`.
    pub blocked: u32,
    /// Time each of them must have waited.
    pub blocked_ms: i64,
    /// Maximum number of sessions watched; the one quiet for longest is dropped first.
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
            hang_ms: 3 * MINUTE,
            prompt_ms: MINUTE,
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
            shared_files_ms: 10 * MINUTE,
            shared_quota_ms: 60 * MINUTE,
            blocked: 3,
            blocked_ms: MINUTE,
            sessions: 1_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_detector_setting_is_rejected_by_name() {
        let rules: DetectorLimits = serde_json::from_str(r#"{"stuck_ms": 5, "off": ["idle"]}"#).unwrap();
        assert_eq!((rules.stuck_ms, rules.off), (5, vec![FindingKind::Idle]));
        let error = serde_json::from_str::<DetectorLimits>(r#"{"stuk_ms": 5}"#).unwrap_err().to_string();
        assert!(error.contains("stuk_ms"), "{error}");
    }
}
