//! Limits for the prompts and messages that the user's rules send, so that a rule and an agent cannot drive each other
//! without end: a rule that reacts to failures would otherwise prompt as long as the agent fails.

use std::collections::VecDeque;

use events::{FindingId, QueuedBy, SessionId, Timestamp};
use projections::Prompt;
use store::{EntityFilter, Reader};

/// The period to which the limits apply, ms.
const PERIOD_MS: i64 = 24 * 3_600_000;
/// Maximum number of prompts to one session in the period.
const PER_SESSION: usize = 3;
/// Maximum number of prompts to all sessions in the period.
const IN_ALL: usize = 20;
/// Number of stored prompts examined after a start.
const EXAMINED: usize = 1_000;

/// A prompt that a rule sent.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SentPrompt {
    session: SessionId,
    /// The finding that triggered the rule; `None` if it was sent before the start.
    finding: Option<FindingId>,
    at: Timestamp,
}

/// The prompts that rules sent in the last 24 hours.
#[derive(Debug, Default)]
pub struct AutomaticPrompts {
    /// Oldest first; `None` until the stored ones are read.
    sent: Option<VecDeque<SentPrompt>>,
}

impl AutomaticPrompts {
    /// Admits another prompt to a session and counts it.
    ///
    /// # Errors
    /// If a limit is reached, or the prompts from before the start cannot be read: the reason, for a person.
    pub fn admit(
        &mut self,
        session: SessionId,
        finding: &FindingId,
        now: Timestamp,
        reader: &Reader,
    ) -> Result<(), String> {
        let sent = match &mut self.sent {
            Some(sent) => sent,
            unread @ None => unread.insert(stored(reader)?),
        };
        sent.retain(|sent| now.since_ms(sent.at) < PERIOD_MS);
        if sent.iter().any(|sent| sent.finding.as_ref() == Some(finding)) {
            return Err("a rule has already sent a prompt for this finding".into());
        }
        if sent.iter().filter(|sent| sent.session == session).count() >= PER_SESSION {
            return Err(format!(
                "rules have sent {PER_SESSION} prompts to this session within 24 hours, which is the maximum"
            ));
        }
        if sent.len() >= IN_ALL {
            return Err(format!(
                "rules have sent {IN_ALL} prompts to all sessions within 24 hours, which is the maximum"
            ));
        }
        sent.push_back(SentPrompt { session, finding: Some(finding.clone()), at: now });
        Ok(())
    }
}

/// The prompts that rules queued before the start.
fn stored(reader: &Reader) -> Result<VecDeque<SentPrompt>, String> {
    let filter = EntityFilter { states: None, session: None, limit: EXAMINED, behind: None };
    let prompts: Vec<Prompt> =
        reader.entities(&filter).map_err(|error| format!("earlier prompts cannot be read: {error}"))?;
    let by_rule = prompts.into_iter().rev().filter(|prompt| prompt.by == QueuedBy::Monitor);
    Ok(by_rule.map(|prompt| SentPrompt { session: prompt.session_id, finding: None, at: prompt.queued_at }).collect())
}

#[cfg(test)]
mod tests;
