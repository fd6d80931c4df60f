//! Hosts that run their session themselves: our own agent. They report which session it is, its state, which mode the
//! user granted, and what they decided without asking the user.

use std::sync::Arc;

use events::{
    ApprovalKind, ApprovalRequested, ApprovalState, AuditKind, Confidence, DecidedBy, Dialog, RunId, SessionStarted,
    Source, Timestamp,
};
use host_protocol::{
    claim::{CallDecided, HostEvent},
    frame::{Hello, HostFrame},
};
use projections::Approval;
use serde_json::{Value, json};

use super::{Ingest, TransactionFailure, identity_of};

impl Ingest {
    /// Links a host that names its session to that session from the start.
    pub(super) fn seat_named(&mut self, hello: &Hello, session: &str) -> Result<(), TransactionFailure> {
        let now = (self.clock)();
        let session: Arc<str> = Arc::from(session);
        let known = self.sessions.find_by_provider(hello.provider, &session);
        let slot = match known {
            Some(slot) => slot,
            None => self.resolve(hello.provider, &session, hello.started_at.min(now))?,
        };
        if known.is_none() {
            self.turn_off_if_ignored(slot, &hello.cwd)?;
        }
        if !self.sessions.known(slot).capture {
            return Ok(());
        }
        if known.is_none() {
            let (cwd, cli_version) = (Some(hello.cwd.clone()), hello.version.clone());
            let started = SessionStarted { cwd, cli_version, ..SessionStarted::default() };
            self.inject(slot, Source::Process, now, "run", started.into())?;
        }
        if self.state(slot)?.process() != Some((hello.pid, hello.start_ticks)) {
            self.note_process(slot, hello, format!("process {} runs the session", hello.pid))?;
        }
        self.host_session(hello.run, slot)
    }

    /// Records, once, a decision reported by such a host. Returns whether the frame is one.
    pub(super) fn apply_decision_frame(
        &mut self,
        slot: usize,
        run: RunId,
        frame: &HostFrame,
    ) -> Result<bool, TransactionFailure> {
        let (what, approval, evidence) = match &frame.event {
            HostEvent::ModeGranted { mode, by } => {
                let (approval, evidence) = self.mode_granted(slot, run, frame, (mode, by));
                (AuditKind::Granted, approval, evidence)
            }
            HostEvent::CallDecided(decided) => {
                let (approval, evidence) = self.call_decided(slot, run, frame, decided);
                (AuditKind::Decided, approval, evidence)
            }
            HostEvent::ReadsAllowed { rule, count, since } => {
                let (approval, evidence) = self.reads_allowed(slot, run, frame, (rule.as_deref(), *count, *since));
                (AuditKind::Decided, approval, evidence)
            }
            HostEvent::Claim(_)
            | HostEvent::Withdrawn
            | HostEvent::Notification { .. }
            | HostEvent::Bell
            | HostEvent::Answered { .. }
            | HostEvent::Prompt { .. }
            | HostEvent::Text { .. }
            | HostEvent::Alive
            | HostEvent::Exited { .. }
            | HostEvent::Gap { .. }
            | HostEvent::Unknown => return Ok(false),
        };
        let known = self.sessions.known(slot);
        let (row, is_captured) = (known.row, known.capture);
        if is_captured && self.transaction.writer.learn(identity_of(run, frame), row)? {
            self.record(what, &approval, &evidence)?;
        }
        Ok(true)
    }

    fn mode_granted(&self, slot: usize, run: RunId, frame: &HostFrame, (mode, by): (&str, &str)) -> (Approval, Value) {
        let asked = ApprovalRequested {
            approval_id: identity_of(run, frame).event_id().into(),
            tool: Some("mode".to_owned()),
            dialog: Some(Box::new(Dialog { subject: Some(mode.to_owned()), ..Dialog::default() })),
            ..ApprovalRequested::default()
        };
        let approval = Approval {
            state: ApprovalState::Allowed,
            allowed: Some(true),
            by: Some(DecidedBy::Person),
            ..self.approval_of(slot, &asked, frame.at)
        };
        (approval, json!({ "mode": mode, "who": by, "run": run }))
    }

    fn call_decided(&self, slot: usize, run: RunId, frame: &HostFrame, decided: &CallDecided) -> (Approval, Value) {
        let asked = ApprovalRequested {
            approval_id: identity_of(run, frame).event_id().into(),
            about: decided.about,
            call_id: Some(decided.call.clone()),
            tool: Some(decided.tool.clone()),
            cwd: Some(decided.cwd.clone()),
            dialog: Some(Box::new(Dialog { subject: decided.subject.clone(), ..Dialog::default() })),
            ..ApprovalRequested::default()
        };
        let by = if decided.mode.is_some() { DecidedBy::Grant } else { DecidedBy::Policy };
        let approval = Approval {
            state: if decided.allowed { ApprovalState::Allowed } else { ApprovalState::Denied },
            allowed: Some(decided.allowed),
            by: Some(by),
            rule: decided.rule.clone(),
            message: decided.reason.clone(),
            ..self.approval_of(slot, &asked, frame.at)
        };
        (approval, json!({ "in_process": true, "mode": decided.mode, "run": run }))
    }

    /// One row for many reads; the individual reads are in the session.
    fn reads_allowed(
        &self,
        slot: usize,
        run: RunId,
        frame: &HostFrame,
        (rule, count, since): (Option<&str>, u64, Timestamp),
    ) -> (Approval, Value) {
        let reads = if count == 1 { "1 read".to_owned() } else { format!("{count} reads") };
        let asked = ApprovalRequested {
            approval_id: identity_of(run, frame).event_id().into(),
            about: Some(ApprovalKind::Read),
            dialog: Some(Box::new(Dialog { subject: Some(reads), ..Dialog::default() })),
            ..ApprovalRequested::default()
        };
        let approval = Approval {
            state: ApprovalState::Allowed,
            allowed: Some(true),
            by: Some(DecidedBy::Policy),
            rule: rule.map(str::to_owned),
            ..self.approval_of(slot, &asked, frame.at)
        };
        (approval, json!({ "in_process": true, "reads": count, "since": since, "run": run }))
    }

    fn approval_of(&self, slot: usize, asked: &ApprovalRequested, at: Timestamp) -> Approval {
        let known = self.sessions.known(slot);
        Approval::of(asked, (known.id, known.provider), None, (Source::Runtime, Confidence::High), at)
    }
}
