//! Decides how to react to a failed request. Its tools never ran: calls run only once an answer is complete.

use session_tree::FailureKind;

use crate::{
    ids::RequestNumber,
    input::AnswerFailure,
    limits::{RETRY_AFTER_MS, STALL_RETRIES},
};

/// The delay before the first retry, in milliseconds; it doubles with each retry.
const FIRST_MS: u64 = 500;
/// The longest delay if the provider does not name one, in milliseconds.
const LONGEST_MS: u64 = 60_000;

/// The reaction to a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryDecision {
    /// The request is retried after these milliseconds.
    Repeat(u64),
    /// The turn is paused for these milliseconds.
    Pause(u64),
    /// The turn ends.
    GiveUp,
}

/// Decides after `retries` of at most `most` retries.
pub(crate) fn decide(
    failure: &AnswerFailure,
    session: &str,
    request: RequestNumber,
    retries: u32,
    most: u32,
) -> RetryDecision {
    let limit = match (failure.should_retry, failure.kind) {
        (Some(false), _) => 0,
        (_, FailureKind::Overloaded | FailureKind::Rate | FailureKind::Network) => most,
        (_, FailureKind::Stalled | FailureKind::Unknown) => STALL_RETRIES.min(most),
        // A quota without a reset time does not recover.
        (_, FailureKind::Quota) if failure.retry_after_ms.is_some() => most,
        (Some(true), _) => STALL_RETRIES.min(most),
        (
            None,
            FailureKind::Quota
            | FailureKind::Auth
            | FailureKind::TooLong
            | FailureKind::NoModel
            | FailureKind::BadRequest
            | FailureKind::Refused,
        ) => 0,
    };
    match failure.retry_after_ms {
        _ if retries >= limit => RetryDecision::GiveUp,
        Some(wait_ms) if wait_ms > RETRY_AFTER_MS => RetryDecision::Pause(wait_ms),
        Some(wait_ms) => RetryDecision::Repeat(wait_ms),
        None => RetryDecision::Repeat(jittered(session, request, retries)),
    }
}

/// A delay between half of the maximum for this retry and the whole of it. It differs between sessions, so that
/// sessions that failed together do not retry together.
fn jittered(session: &str, request: RequestNumber, retries: u32) -> u64 {
    let longest = FIRST_MS.saturating_mul(1 << retries.min(16)).min(LONGEST_MS);
    let mut hasher = blake3::Hasher::new();
    hasher.update(session.as_bytes());
    hasher.update(&request.0.to_le_bytes());
    hasher.update(&retries.to_le_bytes());
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    longest / 2 + u64::from_le_bytes(bytes) % (longest - longest / 2 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::RETRIES;

    #[track_caller]
    fn check(kind: FailureKind, retry_after_ms: Option<u64>, retries: u32, expected: RetryDecision) {
        let failure = AnswerFailure { kind, retry_after_ms, should_retry: None, message: String::new() };
        let decided = decide(&failure, "s", RequestNumber(1), retries, RETRIES);
        assert_eq!(decided, expected, "{kind:?} {retry_after_ms:?} {retries}");
    }

    #[test]
    fn failure_kind_and_provider_hints_decide_whether_to_retry() {
        use RetryDecision::{GiveUp, Pause, Repeat};
        check(FailureKind::Rate, Some(7000), 0, Repeat(7000));
        check(FailureKind::Rate, Some(RETRY_AFTER_MS + 1), 0, Pause(RETRY_AFTER_MS + 1));
        check(FailureKind::Quota, Some(5), 0, Repeat(5));
        check(FailureKind::Quota, None, 0, GiveUp);
        check(FailureKind::Rate, Some(1), RETRIES, GiveUp);
        for kind in [
            FailureKind::Auth,
            FailureKind::NoModel,
            FailureKind::BadRequest,
            FailureKind::TooLong,
            FailureKind::Refused,
        ] {
            check(kind, Some(1), 0, GiveUp);
        }
        check(FailureKind::Stalled, None, STALL_RETRIES, GiveUp);
        let of = |kind, should_retry| {
            let failure = AnswerFailure { kind, retry_after_ms: Some(9), should_retry, message: String::new() };
            decide(&failure, "s", RequestNumber(1), 0, RETRIES)
        };
        assert_eq!(of(FailureKind::BadRequest, Some(true)), Repeat(9));
        assert_eq!(of(FailureKind::Overloaded, Some(false)), GiveUp);
        let failure = AnswerFailure {
            kind: FailureKind::Overloaded,
            retry_after_ms: Some(9),
            should_retry: Some(true),
            message: String::new(),
        };
        assert_eq!(decide(&failure, "s", RequestNumber(1), 0, 0), GiveUp, "retries are off");
    }

    #[test]
    fn retry_delays_grow_and_are_jittered() {
        let of = |request, retries| jittered("s", RequestNumber(request), retries);
        for retries in 0..40 {
            let longest = LONGEST_MS.min(FIRST_MS << retries.min(20));
            assert!((1..50).all(|request| (longest / 2..=longest).contains(&of(request, retries))));
        }
        let many: std::collections::BTreeSet<u64> = (1..50).map(|request| of(request, 8)).collect();
        assert!(many.len() > 40, "{many:?}");
        assert!(many.last().is_some_and(|longest| *longest > LONGEST_MS / 4 * 3));
        assert_ne!(of(1, 8), jittered("another", RequestNumber(1), 8));
    }

    #[test]
    fn the_retries_together_last_several_minutes() {
        let total_ms: u64 = (0..RETRIES).map(|retries| jittered("s", RequestNumber(u64::from(retries)), retries)).sum();
        assert!((180_000..=370_000).contains(&total_ms), "{total_ms}");
    }
}
