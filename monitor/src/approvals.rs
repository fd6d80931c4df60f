//! Raises findings for pending approvals and questions.
//!
//! An approval is opened by its request. It is closed only by the reducer, by capture itself, or by the end of the
//! session; the content of a transcript never closes it.

use std::collections::BTreeMap;

use events::{
    ApprovalId, ApprovalKind, ApprovalRequested, ApprovalResolved, ApprovalState, Event, EventId, FindingKind,
    Severity, Source, Timestamp,
};
use projections::{Session, shorten::one_line};

use crate::{
    findings::{NewFinding, SessionFindings},
    risk::{RiskRequest, risk},
    rules::DetectorLimits,
};

/// Maximum number of pending approvals watched in a session.
const PENDING: usize = 64;
/// Length of a finding's subject, characters.
const SUBJECT: usize = 160;

/// The key of the finding about several approvals.
const BACKLOG: &str = "approval_backlog";
/// The key of the finding about a question.
pub(crate) const QUESTION: &str = "question";

#[derive(Debug)]
struct WatchedApproval {
    kind: Option<ApprovalKind>,
    tool: Option<String>,
    subject: Option<String>,
    risk: Option<&'static str>,
    event: Option<EventId>,
    sequence: u64,
    opened_at: Timestamp,
    /// Whether a finding was raised, or would have been.
    rung: bool,
    long: bool,
}

impl WatchedApproval {
    fn asks_a_question(&self) -> bool {
        self.kind == Some(ApprovalKind::Question)
    }
}

/// The pending approvals of a session.
#[derive(Debug, Default)]
pub(crate) struct ApprovalWatch {
    pending: BTreeMap<ApprovalId, WatchedApproval>,
    /// When the last approval was closed.
    over_at: Option<Timestamp>,
}

/// How long a hook may delay a request before the request is raised regardless of the status, ms.
const WITH_A_HOOK_MS: i64 = 10_000;

fn key(approval: &ApprovalId) -> String {
    format!("approval:{approval}")
}

impl ApprovalWatch {
    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }

    /// When the last approval was closed: calls that were made before that time had to wait for it.
    pub(crate) fn over_at(&self) -> Option<Timestamp> {
        self.over_at
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    pub(crate) fn requested(&mut self, event: &Event, asked: &ApprovalRequested, at: Timestamp) {
        let dialog = asked.dialog.as_deref();
        let subject = asked
            .command
            .as_deref()
            .or_else(|| asked.paths.first().map(String::as_str))
            .or(asked.url.as_deref())
            .or_else(|| dialog.and_then(|d| d.subject.as_deref()))
            .map(|subject| one_line(subject, SUBJECT));
        // The text on a screen may be cut, but there is no other.
        let is_command = asked.about == Some(ApprovalKind::Command);
        let seen = dialog.and_then(|d| d.subject.as_deref()).filter(|_| is_command);
        let excerpt = asked.excerpt.as_ref().filter(|_| is_command).map(|excerpt| excerpt.joined());
        let risk = risk(&RiskRequest {
            command: asked.command.as_deref().or(excerpt.as_deref()).or(seen),
            paths: &asked.paths,
            url: asked.url.as_deref(),
        });
        let tool = asked.tool.as_deref().map(|tool| one_line(tool, SUBJECT));
        if let Some(known) = self.pending.get_mut(&asked.approval_id) {
            // The same approval with more detail.
            known.kind = asked.about.or(known.kind);
            known.subject = subject.or_else(|| known.subject.take());
            known.risk = known.risk.or(risk);
            return;
        }
        if self.pending.len() == PENDING {
            return;
        }
        let pending = WatchedApproval {
            kind: asked.about,
            tool,
            subject,
            risk,
            event: Some(event.id),
            sequence: event.sequence,
            opened_at: at,
            rung: false,
            long: false,
        };
        self.pending.insert(asked.approval_id.clone(), pending);
    }

    /// Closes an approval, on the report of a source that may close it.
    pub(crate) fn resolved(
        &mut self,
        event: &Event,
        resolved: &ApprovalResolved,
        at: Timestamp,
        rules: &DetectorLimits,
        findings: &mut SessionFindings,
    ) {
        let trusted = event.derived || event.source == Source::Runtime;
        if !trusted || resolved.outcome.is_some() && resolved.new_state().is_none() {
            return;
        }
        let how = match resolved.new_state() {
            Some(ApprovalState::Pending) => return,
            Some(ApprovalState::Allowed) => "it was allowed",
            Some(ApprovalState::Denied) => "it was denied",
            Some(ApprovalState::AnsweredElsewhere) => "it was answered in the agent's own dialog",
            Some(ApprovalState::Expired) => {
                "the request was not answered in time, or capture cannot tell whether the agent is still waiting"
            }
            Some(ApprovalState::Withdrawn) => "the agent withdrew the request",
            None => "it was closed",
        };
        self.close(&resolved.approval_id, how, at, rules, findings);
    }

    fn close(
        &mut self,
        approval: &ApprovalId,
        how: &str,
        at: Timestamp,
        rules: &DetectorLimits,
        findings: &mut SessionFindings,
    ) {
        self.over_at = Some(at);
        if let Some(pending) = self.pending.remove(approval)
            && pending.asks_a_question()
        {
            findings.resolve(QUESTION, at, how);
        }
        findings.resolve(&key(approval), at, how);
        self.count(at, rules, findings);
    }

    /// Closes all approvals, because the process has ended.
    pub(crate) fn gone(&mut self, at: Timestamp, findings: &mut SessionFindings) {
        self.pending.clear();
        findings.resolve_kinds(
            &[FindingKind::Approval, FindingKind::RiskyApproval, FindingKind::ApprovalBacklog, FindingKind::Question],
            at,
            "the session ended",
        );
    }

    /// Compares the approvals with the reducer's state, mainly after a restart.
    pub(crate) fn check(
        &mut self,
        session: &Session,
        at: Timestamp,
        rules: &DetectorLimits,
        findings: &mut SessionFindings,
    ) {
        let open = findings.open().filter_map(|finding| finding.approval_id.clone());
        let known = self.pending.iter().filter(|(_, p)| p.sequence <= session.last_sequence).map(|(id, _)| id.clone());
        let mut over: Vec<ApprovalId> = open.filter(|id| !self.pending.contains_key(id)).chain(known).collect();
        over.retain(|id| !session.pending_approvals.contains(id));
        for id in over {
            self.close(&id, "it is no longer pending", at, rules, findings);
        }
        for id in &session.pending_approvals {
            if self.pending.len() < PENDING && !self.pending.contains_key(id) {
                let subject = session.status.activity.as_deref().map(|activity| one_line(activity, SUBJECT));
                let risk = risk(&RiskRequest { command: subject.as_deref(), ..RiskRequest::default() });
                let pending = WatchedApproval {
                    kind: None,
                    tool: None,
                    subject,
                    risk,
                    event: None,
                    sequence: session.last_sequence,
                    opened_at: session.status.since.min(at),
                    rung: false,
                    long: false,
                };
                self.pending.insert(id.clone(), pending);
            }
        }
    }

    /// The next deadline. `waits`: whether the session is known to wait for the user.
    pub(crate) fn due(&self, waits: bool, rules: &DetectorLimits) -> Option<Timestamp> {
        let after_ms = raised_after_ms(waits, rules);
        let soon = self.pending.values().filter(|p| !p.rung).map(|p| p.opened_at.plus_ms(after_ms));
        let long = self.pending.values().filter(|p| !p.long).map(|p| p.opened_at.plus_ms(rules.backlog_ms));
        soon.chain(long).min()
    }

    pub(crate) fn ring(&mut self, waits: bool, at: Timestamp, rules: &DetectorLimits, findings: &mut SessionFindings) {
        let after_ms = raised_after_ms(waits, rules);
        for (id, pending) in &mut self.pending {
            if !pending.rung && pending.opened_at.plus_ms(after_ms) <= at {
                pending.rung = true;
                findings.raise(raise_of(id, pending), at);
            }
            if !pending.long && pending.opened_at.plus_ms(rules.backlog_ms) <= at {
                pending.long = true;
            }
        }
        self.count(at, rules, findings);
    }

    /// Raises or resolves the backlog: too many pending approvals, or one pending for too long.
    fn count(&self, at: Timestamp, rules: &DetectorLimits, findings: &mut SessionFindings) {
        let waiting = || self.pending.values().filter(|p| p.rung && !p.asks_a_question());
        let count = u32::try_from(waiting().count()).unwrap_or(u32::MAX);
        let longest = waiting().map(|p| at.since_ms(p.opened_at)).max().unwrap_or(0);
        if count < rules.backlog.max(2) && !waiting().any(|p| p.long) {
            return findings.resolve(BACKLOG, at, "fewer approvals are pending");
        }
        let what = match count {
            1 => format!("an approval has been pending for {}", lasted(longest)),
            _ => format!("{count} approvals are pending"),
        };
        let why = match count {
            1 => "it has not been decided yet".to_owned(),
            _ => format!("{count} are pending, the oldest for {}", lasted(longest)),
        };
        let first_at = waiting().map(|p| p.opened_at).min().unwrap_or(at);
        let evidence = waiting().filter_map(|p| p.event).collect();
        let raise = NewFinding::new(FindingKind::ApprovalBacklog, Severity::Warning, what, why, first_at);
        findings.raise(NewFinding { evidence, count, ..raise }, at);
    }
}

/// The time after which a request is raised. While the session does not wait yet, a hook of its agent has the request
/// and may answer it.
fn raised_after_ms(waits: bool, rules: &DetectorLimits) -> i64 {
    if waits { rules.approval_ms } else { rules.approval_ms.max(WITH_A_HOOK_MS) }
}

fn raise_of(id: &ApprovalId, pending: &WatchedApproval) -> NewFinding {
    let tool = pending.tool.as_deref().unwrap_or(match pending.kind {
        Some(ApprovalKind::Command) => "a command",
        Some(ApprovalKind::Edit | ApprovalKind::Write) => "an edit",
        Some(ApprovalKind::Plan) => "a plan",
        Some(ApprovalKind::Mcp) => "an MCP tool",
        Some(ApprovalKind::Fetch) => "a fetch",
        Some(ApprovalKind::Trust) => "trust",
        Some(ApprovalKind::Read) => "a read",
        Some(ApprovalKind::Question) => "a question",
        None => "something",
    });
    let subject = match &pending.subject {
        // The subject is the directory or its settings, not a tool.
        Some(subject) if pending.kind == Some(ApprovalKind::Trust) => format!("trust ({subject})"),
        Some(subject) => format!("{tool}: {subject}"),
        None => tool.to_owned(),
    };
    let first_at = pending.opened_at;
    let raise = if pending.asks_a_question() {
        let why = "the agent asked a question and is waiting for the answer".to_owned();
        NewFinding::new(FindingKind::Question, Severity::Warning, format!("asks {subject}"), why, first_at)
    } else if let Some(risk) = pending.risk {
        let why = format!("the agent is waiting for permission, and {risk}");
        let raise = NewFinding::new(
            FindingKind::RiskyApproval,
            Severity::Error,
            format!("asks permission for {subject}"),
            why,
            first_at,
        );
        NewFinding { key: key(id), ..raise }
    } else {
        let why = "the agent is waiting for permission".to_owned();
        let raise = NewFinding::new(
            FindingKind::Approval,
            Severity::Warning,
            format!("asks permission for {subject}"),
            why,
            first_at,
        );
        NewFinding { key: key(id), ..raise }
    };
    let evidence = pending.event.into_iter().collect();
    NewFinding { approval_id: Some(id.clone()), subject: Some(subject), evidence, ..raise }
}
/// A duration as text.
fn lasted(ms: i64) -> String {
    match ms / 1_000 {
        s @ ..60 => format!("{s} s"),
        s @ 60..3_600 => format!("{} min", s / 60),
        s => format!("{} h {} min", s / 3_600, s % 3_600 / 60),
    }
}
