//! Explains a status decision: every claim, how it was weighed, and the rule that decided.
//!
//! The module only describes what [`decide`](super::decide) does; it decides nothing itself.

use events::{Confidence, EventId, Reason, Source, State, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Basis, Candidate, Process, StandingClaim, StatusInputs, claim_candidates, weigh};

/// All claims about a status, and the rule that decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Account {
    /// The rule that decided.
    pub rule: DecidingRule,
    /// Every claim: the deciding one first, then in order of strength.
    pub claims: Vec<WeighedClaim>,
}

/// The rule that decided between the claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Rule")]
pub enum DecidingRule {
    /// The process has ended, which ends every claim.
    ProcessGone,
    /// There was no activity for a long time, which decides.
    Silence,
    /// There is only one claim.
    Alone,
    /// All claims agree.
    Unanimous,
    /// The strongest claim wins.
    Strongest,
    /// Among equally strong claims, the one whose source is closest to the agent wins.
    Closest,
    /// Among equally strong claims of one source, the last one wins.
    Latest,
    /// The newest of equally strong claims wins for the short time that a closer source may need to notice the change.
    First,
}

impl DecidingRule {
    /// The rule in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::ProcessGone => "the process has ended",
            Self::Silence => "there was no activity for a long time",
            Self::Alone => "it is the only claim",
            Self::Unanimous => "all claims agree",
            Self::Strongest => "the strongest claim wins",
            Self::Closest => "among equally strong claims, the one whose source is closest to the agent wins",
            Self::Latest => "among equally strong claims of one source, the latest one wins",
            Self::First => {
                "among equally strong claims, the newest one wins until other sources have had time to notice"
            }
        }
    }
}

/// One claim, as it was weighed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Weighed")]
pub struct WeighedClaim {
    /// The source of the claim.
    pub source: Source,
    /// The sub-agent it is about; absent for the main conversation.
    pub agent: Option<String>,
    /// The state claimed.
    pub state: State,
    /// The reason.
    pub reason: Option<Reason>,
    /// The source's own words.
    pub claim: String,
    /// The confidence with which it counts.
    pub strength: Confidence,
    /// When it was made.
    pub at: Timestamp,
    /// When it begins to count, if not immediately.
    pub from: Option<Timestamp>,
    /// When it expires, if it does; otherwise it applies until it is replaced or withdrawn.
    pub until: Option<Timestamp>,
    /// The event that contains it; absent for the claim of the conversation as a whole.
    pub event: Option<EventId>,
    /// Its outcome.
    pub standing: ClaimStanding,
}

/// The outcome of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Standing")]
pub enum ClaimStanding {
    /// It decides.
    Decides,
    /// It agrees with the deciding claim.
    Agrees,
    /// It disagrees and is weaker.
    Weaker,
    /// It disagrees and is at least as strong, but a rule decides against it.
    Overruled,
    /// It does not count yet.
    NotYet,
    /// It has expired.
    Over,
}

impl ClaimStanding {
    /// Its outcome, in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Decides => "decides",
            Self::Agrees => "agrees",
            Self::Weaker => "weaker",
            Self::Overruled => "overruled",
            Self::NotYet => "not yet",
            Self::Over => "over",
        }
    }
}

/// Explains the decision of [`decide`](super::decide) at the same moment.
#[must_use]
pub fn account(case: &StatusInputs<'_>, now: Timestamp) -> Account {
    let gone = matches!(case.process, Process::Gone { .. });
    let weighing = weigh(case, now);
    let mut counted: Vec<Candidate> = claim_candidates(case, now).chain([weighing.conversation]).collect();
    counted.sort_by_key(|c| std::cmp::Reverse((c.basis == weighing.winner.basis, c.weight())));
    let mut claims: Vec<WeighedClaim> = Vec::with_capacity(case.claims.len() + 2);
    if let Process::Gone { at, how } = case.process {
        claims.push(WeighedClaim {
            source: Source::Process,
            agent: None,
            state: State::Exited,
            reason: Some(how),
            claim: super::end_in_words(how).into(),
            strength: Confidence::High,
            at,
            from: None,
            until: None,
            event: None,
            standing: ClaimStanding::Decides,
        });
    }
    claims.extend(counted.iter().map(|c| {
        let standing = match c {
            _ if gone => ClaimStanding::Overruled,
            c if c.basis == weighing.winner.basis => ClaimStanding::Decides,
            c if c.state == weighing.winner.state => ClaimStanding::Agrees,
            c if c.strength < weighing.winner.strength => ClaimStanding::Weaker,
            _ => ClaimStanding::Overruled,
        };
        weighed(case, c, standing)
    }));
    claims.extend(case.claims.iter().enumerate().filter_map(|(index, claim)| {
        let basis = Basis::Claim(index);
        let standing = if counted.iter().any(|c| c.basis == basis) {
            return None;
        } else if claim.valid_until.is_some_and(|until| until <= now) {
            ClaimStanding::Over
        } else {
            ClaimStanding::NotYet
        };
        Some(from_standing_claim(claim, claim.strength, standing))
    }));
    let rule = if gone { DecidingRule::ProcessGone } else { rule(&weighing.winner, weighing.overtook, &counted) };
    Account { rule, claims }
}

fn rule(winner: &Candidate, overtook: bool, counted: &[Candidate]) -> DecidingRule {
    let silence = match winner.basis {
        Basis::LostTurn | Basis::EndedLongAgo => true,
        Basis::NoPrompt => winner.state == State::Idle,
        Basis::Claim(_) | Basis::OpenTurn | Basis::OpenQuestion | Basis::Ended => false,
    };
    let rivals = || counted.iter().filter(|c| c.state != winner.state);
    if silence {
        DecidingRule::Silence
    } else if counted.len() == 1 {
        DecidingRule::Alone
    } else if overtook {
        DecidingRule::First
    } else if rivals().next().is_none() {
        DecidingRule::Unanimous
    } else if rivals().any(|c| c.weight() == winner.weight()) {
        DecidingRule::Latest
    } else if rivals().any(|c| c.strength == winner.strength) {
        DecidingRule::Closest
    } else {
        DecidingRule::Strongest
    }
}

fn weighed(case: &StatusInputs<'_>, candidate: &Candidate, standing: ClaimStanding) -> WeighedClaim {
    if let Basis::Claim(index) = candidate.basis
        && let Some(claim) = case.claims.get(index)
    {
        return from_standing_claim(claim, candidate.strength, standing);
    }
    WeighedClaim {
        source: candidate.source,
        agent: None,
        state: candidate.state,
        reason: candidate.reason,
        claim: candidate.words(case),
        strength: candidate.strength,
        at: candidate.at,
        from: None,
        until: None,
        event: None,
        standing,
    }
}

fn from_standing_claim(claim: &StandingClaim, strength: Confidence, standing: ClaimStanding) -> WeighedClaim {
    WeighedClaim {
        source: claim.source,
        agent: claim.agent.clone(),
        state: claim.state,
        reason: claim.reason,
        claim: claim.words.clone(),
        strength,
        at: claim.at,
        from: claim.holds_from,
        until: claim.valid_until,
        event: Some(claim.event),
        standing,
    }
}

#[cfg(test)]
mod tests;
