//! Tokens that answer a permission request from a message. Each is valid once, for a few minutes, for one decision on
//! one revision of the request. They are kept only in memory.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use api::approvals::Verdict;
use events::{ApprovalId, Timestamp, id::Hex};

/// How long a token is valid, ms.
const GOOD_MS: i64 = 15 * 60_000;
/// Maximum number of requests that have tokens; the oldest one is dropped to make room.
const REQUESTS: usize = 256;

/// The tokens. Clones share the table.
#[derive(Clone, Default)]
pub struct AnswerTokens(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    /// Keyed by the hash of the token, so that lookup time does not depend on how much of a wrong token matches.
    tokens: HashMap<blake3::Hash, AnswerToken>,
}

#[derive(Clone)]
struct AnswerToken {
    approval: ApprovalId,
    revision: String,
    verdict: Verdict,
    made_at: Timestamp,
}

/// What a token decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenDecision {
    /// The request.
    pub approval: ApprovalId,
    /// The revision of the request for which the token was made.
    pub revision: String,
    /// Whether the request is allowed once or denied.
    pub verdict: Verdict,
}

impl AnswerTokens {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a token that allows a request once and one that denies it.
    ///
    /// # Errors
    /// When the system cannot provide random bytes.
    pub fn make(&self, approval: &ApprovalId, revision: &str, now: Timestamp) -> io::Result<(String, String)> {
        let (allow, deny) = (token()?, token()?);
        let mut table = self.table();
        table.tokens.retain(|_, token| token.is_good(now));
        while table.tokens.len() >= 2 * REQUESTS {
            let oldest = table.tokens.values().min_by_key(|token| token.made_at).map(|token| token.approval.clone());
            let Some(oldest) = oldest else { break };
            table.tokens.retain(|_, token| token.approval != oldest);
        }
        for (text, verdict) in [(&allow, Verdict::Allow), (&deny, Verdict::Deny)] {
            let revision = revision.to_owned();
            let token = AnswerToken { approval: approval.clone(), revision, verdict, made_at: now };
            table.tokens.insert(blake3::hash(text.as_bytes()), token);
        }
        Ok((allow, deny))
    }

    /// Redeems a token. Afterwards neither of its request's tokens is valid.
    pub fn redeem(&self, token: &str, now: Timestamp) -> Option<TokenDecision> {
        let mut table = self.table();
        let found = table.tokens.get(&blake3::hash(token.as_bytes())).cloned()?;
        table.tokens.retain(|_, other| other.approval != found.approval);
        let AnswerToken { approval, revision, verdict, .. } = found.clone();
        found.is_good(now).then_some(TokenDecision { approval, revision, verdict })
    }
}

impl AnswerToken {
    fn is_good(&self, now: Timestamp) -> bool {
        (0..GOOD_MS).contains(&now.since_ms(self.made_at))
    }
}

fn token() -> io::Result<String> {
    let mut bits = [0_u8; 24];
    if home::clock::fill_random(&mut bits)? < bits.len() {
        return Err(io::Error::other("too few random bytes"));
    }
    Ok(Hex(&bits).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millisecond(1_795_000_000_000 + ms)
    }

    #[test]
    fn redeeming_a_token_invalidates_both_tokens_of_its_approval() {
        let tokens = AnswerTokens::default();
        let (id, other) = (ApprovalId::from("A1"), ApprovalId::from("A2"));
        let (allow, deny) = tokens.make(&id, "r", at(0)).unwrap();
        let (kept, _) = tokens.make(&other, "r", at(0)).unwrap();
        assert_eq!(tokens.redeem("nobody's", at(1)), None);
        let decided = TokenDecision { approval: id, revision: "r".into(), verdict: Verdict::Deny };
        assert_eq!(tokens.redeem(&deny, at(1)), Some(decided));
        assert_eq!((tokens.redeem(&deny, at(2)), tokens.redeem(&allow, at(2))), (None, None));
        assert_eq!(tokens.redeem(&kept, at(2)).unwrap().verdict, Verdict::Allow);
    }

    #[test]
    fn tokens_expire_after_15_minutes() {
        let tokens = AnswerTokens::default();
        for (after, is_good) in [(GOOD_MS - 1, true), (GOOD_MS, false), (-1, false)] {
            let (allow, _) = tokens.make(&"A1".into(), "r", at(0)).unwrap();
            assert_eq!(tokens.redeem(&allow, at(after)).is_some(), is_good, "{after}");
        }
    }

    #[test]
    fn the_oldest_tokens_are_dropped_above_the_limit() {
        let tokens = AnswerTokens::default();
        let (oldest, _) = tokens.make(&"A".into(), "r", at(0)).unwrap();
        for n in 0..REQUESTS {
            tokens.make(&format!("B{n}").as_str().into(), "r", at(1)).unwrap();
        }
        assert!(tokens.redeem(&oldest, at(2)).is_none());
        assert!(tokens.table().tokens.len() <= 2 * REQUESTS);
    }
}
