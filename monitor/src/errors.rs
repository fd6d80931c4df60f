//! Detects errors of the agent's own requests: not signed in, rate limits, quotas, the network, the provider.
//!
//! An error that ended a turn is reported immediately. An error after which the agent retries is reported if it occurs
//! often within one request, and only if it is of a kind that no retry can fix. It is over when the model answers.

use std::collections::BTreeMap;

use events::{ErrorClass, ErrorReported, Event, EventId, FindingKind, Reason, Severity, Timestamp};
use projections::shorten::one_line;

use crate::{
    findings::{NewFinding, SessionFindings},
    rules::DetectorLimits,
    until::until,
};

/// Length of an error text in a finding, characters.
const WORDS: usize = 160;

/// The kinds of findings that the detector may raise.
pub(crate) const KINDS: &[FindingKind] =
    &[FindingKind::Auth, FindingKind::RateLimit, FindingKind::Quota, FindingKind::Network, FindingKind::Provider];

#[derive(Debug, Default)]
struct ErrorTally {
    count: u32,
    first_at: Option<Timestamp>,
    evidence: Vec<EventId>,
}

/// Errors since the last answer of the model.
#[derive(Debug, Default)]
pub(crate) struct RequestErrors {
    tallies: BTreeMap<FindingKind, ErrorTally>,
    /// An error after which the agent did not retry and the model has not answered yet.
    unanswered: Option<NewFinding>,
    /// The error that ended the last turn.
    ended_turn: Option<NewFinding>,
    /// The reported end of each limit.
    until: BTreeMap<FindingKind, Timestamp>,
}

impl RequestErrors {
    pub(crate) fn apply(
        &mut self,
        event: &Event,
        error: &ErrorReported,
        at: Timestamp,
        rules: &DetectorLimits,
        findings: &mut SessionFindings,
    ) {
        let text = event.text.as_deref().unwrap_or_default();
        let Some((kind, severity)) = kind_of(error) else { return };
        let tally = self.tallies.entry(kind).or_default();
        tally.count = tally.count.saturating_add(1);
        let first_at = *tally.first_at.get_or_insert(at);
        if tally.evidence.len() < 16 {
            tally.evidence.push(event.id);
        }
        // Retries may fix the others; endless retries are `stuck`.
        let often = kind == FindingKind::Quota
            || kind == FindingKind::Auth && tally.count >= rules.auth_errors
            || kind == FindingKind::RateLimit && tally.count >= rules.rate_limit_errors;
        let limited = matches!(kind, FindingKind::RateLimit | FindingKind::Quota);
        let over = limited.then(|| until(text, at)).flatten();
        let words = one_line(text, WORDS);
        let why = if error.ends_turn {
            format!("an error ended the turn: {words}")
        } else if error.retrying || often {
            format!("{} attempts in a row failed: {words}", tally.count)
        } else {
            format!("the last event of the turn was an error: {words}")
        };
        let raise = NewFinding {
            evidence: tally.evidence.clone(),
            count: tally.count,
            until: over,
            subject: error.code.clone(),
            ..NewFinding::new(kind, severity, what_of(kind, error).to_owned(), why, first_at)
        };
        if !error.ends_turn && !often {
            self.unanswered = (!error.retrying).then_some(raise);
            return;
        }
        self.unanswered = None;
        if let Some(over) = over {
            self.until.insert(kind, over);
        }
        self.ended_turn = error.ends_turn.then(|| raise.clone());
        findings.raise(raise, at);
    }

    /// Handles a session that has been waiting because of an error since a time that was not observed.
    pub(crate) fn stands(
        &mut self,
        kind: FindingKind,
        since: Timestamp,
        at: Timestamp,
        findings: &mut SessionFindings,
    ) {
        if KINDS.iter().any(|kind| !findings.is_news(kind.as_str(), since)) {
            return;
        }
        if let Some(raise) = self.ended_turn.clone() {
            findings.raise(raise, at);
        } else if kind != FindingKind::Provider {
            // Nothing is known about other errors.
            let why = "the agent stopped and gave this as the reason".to_owned();
            findings.raise(NewFinding::new(kind, Severity::Error, what(kind).to_owned(), why, since), at);
        }
    }

    /// Handles a report, by any source, that the session waits for this reason.
    pub(crate) fn waits(
        &mut self,
        event: EventId,
        reason: Option<Reason>,
        at: Timestamp,
        findings: &mut SessionFindings,
    ) {
        // A report of the error itself has more detail.
        let Some(kind @ (FindingKind::Auth | FindingKind::Quota)) = reason.and_then(Reason::finding) else { return };
        if findings.has(kind) || kind == FindingKind::Quota && findings.has(FindingKind::RateLimit) {
            return;
        }
        let severity = Severity::Error;
        let why = "the agent stopped and gave this as the reason".to_owned();
        let raise = NewFinding::new(kind, severity, what(kind).to_owned(), why, at);
        findings.raise(NewFinding { evidence: vec![event], ..raise }, at);
    }

    /// Handles an answer of the model.
    pub(crate) fn answered(&mut self, at: Timestamp, findings: &mut SessionFindings) {
        self.ended_turn = None;
        if self.tallies.is_empty() && self.until.is_empty() && !KINDS.iter().any(|kind| findings.is_open(kind.as_str()))
        {
            return;
        }
        self.tallies.clear();
        self.unanswered = None;
        self.until.clear();
        findings.resolve_kinds(KINDS, at, "the model answered");
    }

    /// Handles the end of a turn: an error after which nothing followed has ended it. Returns whether there was such an
    /// error.
    pub(crate) fn turn_ended(&mut self, at: Timestamp, findings: &mut SessionFindings) -> bool {
        self.tallies.clear();
        let raise = self.unanswered.take();
        let failed = raise.is_some();
        if let Some(raise) = raise {
            findings.raise(raise, at);
        }
        failed
    }

    /// Records the end of an error that was stated earlier.
    pub(crate) fn lasts(&mut self, kind: FindingKind, until: Timestamp) {
        self.until.insert(kind, until);
    }

    pub(crate) fn due(&self) -> Option<Timestamp> {
        self.until.values().min().copied()
    }

    pub(crate) fn ring(&mut self, at: Timestamp, findings: &mut SessionFindings) {
        let over: Vec<FindingKind> =
            self.until.iter().filter(|(_, until)| **until <= at).map(|(kind, _)| *kind).collect();
        for kind in over {
            self.until.remove(&kind);
            findings.resolve(kind.as_str(), at, "the limit has expired, according to the agent");
        }
    }
}

fn kind_of(error: &ErrorReported) -> Option<(FindingKind, Severity)> {
    Some(match error.class {
        ErrorClass::Auth => (FindingKind::Auth, Severity::Error),
        ErrorClass::RateLimit => (FindingKind::RateLimit, Severity::Warning),
        ErrorClass::Quota => (FindingKind::Quota, Severity::Error),
        ErrorClass::Network => (FindingKind::Network, Severity::Error),
        ErrorClass::Provider | ErrorClass::Other => (FindingKind::Provider, Severity::Error),
        // Handled by the detector of context use.
        ErrorClass::Context => return None,
    })
}

/// The error code of an answer that the model refused to give.
const REFUSED: &str = "refused";

fn what_of(kind: FindingKind, error: &ErrorReported) -> &'static str {
    if error.code.as_deref() == Some(REFUSED) { "the model refused to answer" } else { what(kind) }
}

fn what(kind: FindingKind) -> &'static str {
    if kind == FindingKind::Auth {
        "the agent is not signed in, or its API key was rejected"
    } else if kind == FindingKind::RateLimit {
        "too many requests: rate limit reached"
    } else if kind == FindingKind::Quota {
        "a quota is exhausted"
    } else if kind == FindingKind::Network {
        "the model is unreachable"
    } else {
        "the model's provider failed"
    }
}
