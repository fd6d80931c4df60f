//! The desk itself: one thread, one message after another.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use agents::Answer;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use events::{
    ApprovalKind, ApprovalResolved, ApprovalState, Confidence, DecidedBy, DecidedVia, Dialog, RunId, SessionId, Source,
};
use hooks::delivery::{
    Delivery,
    answer::{has_words, shows_dialog_meanwhile, takes_allowance},
    decode::call_of,
};
use projections::{Approval, Session};
use protocols as protocol;
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};
use server::{ApprovalAsk, Decision, DecisionScope, Refusal, Verdict};
use store::{KeptFilter, Reader};
use terminal::host::frame::{Answered, DialogAnswer};
use tokio::sync::oneshot;

use super::{
    Approvals, Held, Judge, Judged, Parts, Told,
    files::{FILES, FileMark, expands, marks},
};
use crate::{
    handing::as_json,
    ingest::{Decide, IngestHandle, Input, Record, Undecided},
    runs::Runs,
};

type Reply = oneshot::Sender<Result<String, Refusal>>;

/// Hooks that wait at once; more are told nothing.
const HOLDS: usize = 256;
/// Among so many of the last closed ones a part of an id is looked for.
const LOOKED_AT: usize = 1_000;
/// A command on a screen that is cut is known by so much of its beginning, bytes.
const CUT_BYTES: usize = 24;
/// Grants that are remembered at once.
const GRANTS: usize = 1_024;

/// An approval that is pending.
struct Open {
    approval: Approval,
    /// The files it is about, as they were when it was asked.
    files: Vec<FileMark>,
    /// Whether the files are those of when it was asked, and not of a later start.
    looked_at: bool,
    /// What the policy said, when it was asked.
    judged: Option<Judged>,
    /// A decision is on its way.
    busy: bool,
}

/// Where a decision goes when it is committed.
pub(super) struct Way {
    /// What the hook that waits is told.
    answer: Option<Answer>,
    /// Who decided and wants to know.
    person: Option<Reply>,
    /// The same request is to be allowed again.
    grant: Option<Grant>,
}

/// Keys that are to be pressed for a person.
pub(super) struct Pressing {
    approval: Approval,
    decision: Decision,
    run: RunId,
    mark: String,
    person: Reply,
    evidence: Value,
}

/// The same request again: all that makes it the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Grant {
    session: SessionId,
    kind: Option<ApprovalKind>,
    tool: Option<String>,
    input: Option<String>,
    cwd: Option<String>,
    files: Vec<FileMark>,
}

impl Grant {
    /// Only what is known to the byte can be the same, the files it is about included.
    fn of(approval: &Approval, files: &[FileMark]) -> Option<Self> {
        let repeatable = !matches!(approval.kind, Some(ApprovalKind::Question | ApprovalKind::Plan) | None)
            && !has_more_files(approval, files);
        (approval.exact && repeatable).then(|| Self {
            session: approval.session_id,
            kind: approval.kind,
            tool: approval.tool.clone(),
            input: approval.input.clone(),
            cwd: approval.cwd.clone(),
            files: files.to_vec(),
        })
    }
}

/// Whether it may run or change files that are not among these.
fn has_more_files(approval: &Approval, files: &[FileMark]) -> bool {
    files.len() >= FILES || expands(approval.command.as_deref().unwrap_or_default())
}

/// An approval as it is shown to whoever asks.
#[derive(Serialize)]
struct View<'a> {
    #[serde(flatten)]
    approval: &'a Approval,
    /// How a decision made here would reach the agent; absent when it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<DecidedVia>,
    #[serde(skip_serializing_if = "<[FileMark]>::is_empty")]
    files: &'a [FileMark],
    /// It may run or change files that are not among these.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more_files: bool,
    /// What the policy says.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<PolicyView<'a>>,
    /// A rule that would allow just this again.
    #[serde(skip_serializing_if = "Option::is_none")]
    suggested_rule: Option<String>,
}

#[derive(Serialize)]
struct PolicyView<'a> {
    decision: &'static str,
    rule: &'a str,
    reason: &'a str,
}

pub(super) struct Desk {
    inputs: IngestHandle,
    reader: Reader,
    runs: Runs,
    runtime: tokio::runtime::Handle,
    judge: Arc<dyn Judge>,
    own: Approvals,
    open: HashMap<String, Open>,
    holds: HashMap<String, Held>,
    grants: HashSet<Grant>,
}

impl Desk {
    pub(super) fn new(parts: Parts, own: Approvals) -> Self {
        let Parts { inputs, reader, runs, runtime, judge } = parts;
        Self {
            inputs,
            reader,
            runs,
            runtime,
            judge,
            own,
            open: HashMap::new(),
            holds: HashMap::new(),
            grants: HashSet::new(),
        }
    }

    pub(super) fn run(mut self, inbox: &Receiver<Told>, sweep: Duration) {
        self.take_up();
        loop {
            match inbox.recv_timeout(sweep) {
                Ok(Told::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(told) => self.take(told),
                Err(RecvTimeoutError::Timeout) => self.sweep(),
            }
        }
    }

    /// What was pending before the start is pending still.
    fn take_up(&mut self) {
        let pending = ApprovalState::Pending;
        let filter = KeptFilter::<Approval> { states: Some(pending..=pending), session: None, limit: 1_000 };
        match self.reader.kept(&filter) {
            Ok(pending) => {
                for approval in pending {
                    // Hooks that wait come back, and say so.
                    self.tell_wait(&approval, false);
                    self.opened(approval, false);
                }
            }
            Err(error) => tracing::warn!(%error, "the pending approvals cannot be read"),
        }
    }

    /// Forgets hooks that wait no longer.
    fn sweep(&mut self) {
        let gone: Vec<Held> = self.holds.extract_if(|_, hold| hold.reply.is_closed()).map(|(_, hold)| hold).collect();
        for hold in gone {
            if let Some(open) = self.delivered(&hold.delivery.to_string()) {
                self.tell_wait(&open.approval, false);
            }
        }
    }

    /// The pending approval that this delivery asks for.
    fn delivered(&self, delivery: &str) -> Option<&Open> {
        self.open.values().find(|open| open.approval.delivery.as_deref() == Some(delivery))
    }

    /// Has it told that a hook waits for a person, or no more, where nothing of the agent shows it.
    fn tell_wait(&self, approval: &Approval, on: bool) {
        if via_of(approval) == DecidedVia::Protocol || !shows_dialog_meanwhile(approval.provider) {
            self.inputs.send(Input::Waits(approval.session_id, approval.id.clone(), on)).ok();
        }
    }

    fn take(&mut self, told: Told) {
        match told {
            Told::Changed(approval) => self.changed(*approval),
            Told::Before(held, whole) => self.forbid(held, &whole),
            Told::Hold(held) => self.hold(held),
            Told::Asked { ask, reply } => self.asked(ask, reply),
            Told::Decided { id, outcome, way } => self.decided(&id, outcome.map(|a| *a), *way),
            Told::Press { id, pressing } => self.press(id, pressing),
            Told::Pressed { id, pressing, outcome } => self.pressed(&id, *pressing, outcome),
            Told::Stop => {}
        }
    }

    fn opened(&mut self, approval: Approval, looked_at: bool) {
        let files = marks(&approval);
        self.open.insert(approval.id.clone(), Open { approval, files, looked_at, judged: None, busy: false });
    }

    fn changed(&mut self, approval: Approval) {
        if approval.state == ApprovalState::Pending {
            let delivery = approval.delivery.clone();
            let id = approval.id.clone();
            if !self.open.contains_key(&id) {
                self.opened(approval, true);
            }
            if delivery.is_some_and(|delivery| self.holds.contains_key(&delivery)) {
                self.consider(&id);
            }
            return;
        }
        self.open.remove(&approval.id);
        // What was decided here is answered when the decision says so.
        if approval.by.is_none()
            && let Some(hold) = approval.delivery.as_ref().and_then(|delivery| self.holds.remove(delivery))
        {
            hold.reply.send(None).ok();
        }
    }

    fn hold(&mut self, held: Held) {
        let delivery = held.delivery.to_string();
        self.sweep();
        if self.holds.len() >= HOLDS {
            held.reply.send(None).ok();
            return;
        }
        self.holds.insert(delivery.clone(), held);
        if let Some(id) = self.delivered(&delivery).map(|open| open.approval.id.clone()) {
            self.consider(&id);
        }
    }

    /// A call of a tool that the agent has not asked anybody for yet. Only what a rule denies is
    /// answered; all else is the agent's own to decide.
    fn forbid(&self, held: Held, whole: &RawValue) {
        let Held { delivery, reply, .. } = held;
        let Some((session, mut approval)) = called(delivery, whole) else {
            reply.send(None).ok();
            return;
        };
        let session = self.reader.find(&session).ok().flatten().and_then(|id| self.session(id));
        approval.session_id = session.as_ref().map_or(approval.session_id, |session| session.id);
        let judged = self.judge.judge(&approval, session.as_ref());
        if judged.allow != Some(false) {
            reply.send(None).ok();
            return;
        }
        let answer = refusal(Some(&told_by(&judged.rule, &judged.reason)));
        let text = serde_json::to_string(&answer).ok();
        let evidence = json!({ "rule": judged.rule, "reason": judged.reason, "answer": answer });
        // Told only when it is recorded.
        self.record("forbidden", &approval, evidence, Box::new(move || drop(reply.send(text))));
    }

    /// Whether somebody waits for the answer to this approval.
    fn is_held(&self, approval: &Approval) -> bool {
        let hold = approval.delivery.as_ref().and_then(|delivery| self.holds.get(delivery));
        // What was delivered has to be what the hook will answer for.
        hold.is_some_and(|hold| !hold.reply.is_closed() && approval.digest.as_deref() == Some(&hold.digest))
    }

    fn session(&self, id: SessionId) -> Option<Session> {
        self.reader.session(id).ok().flatten()
    }

    /// Somebody waits: what do a grant and the policy say?
    fn consider(&mut self, id: &str) {
        let Some(open) = self.open.get(id).filter(|open| !open.busy) else { return };
        let approval = open.approval.clone();
        if !self.is_held(&approval) {
            return;
        }
        if Grant::of(&approval, &open.files).is_some_and(|grant| self.grants.contains(&grant)) {
            let resolved = ApprovalResolved {
                approval_id: id.to_owned(),
                allowed: Some(true),
                by: Some(DecidedBy::Grant),
                via: Some(via_of(&approval)),
                message: Some("allowed before, for this session".into()),
                ..ApprovalResolved::default()
            };
            let way = Way { answer: Some(allowance(None, None)), person: None, grant: None };
            return self.decide(&approval, resolved, Value::Null, way);
        }
        let judged = match &open.judged {
            Some(judged) => judged.clone(),
            None => self.judged(&approval),
        };
        // No rule decides on what is not known to the byte, whatever it says.
        let sure = approval.exact && approval.confidence == Confidence::High;
        let allow = judged.allow.filter(|allow| !allow || sure);
        let Some(allow) = allow else {
            let first = self.open.get_mut(id).is_some_and(|open| open.judged.replace(judged.clone()).is_none());
            if first {
                let evidence = json!({ "rule": judged.rule, "reason": judged.reason });
                self.record("asked", &approval, evidence, Box::new(|| {}));
            }
            let delivery = approval.delivery.clone().unwrap_or_default();
            if self.holds.get(&delivery).is_some_and(|hold| hold.people) {
                self.tell_wait(&approval, true);
            } else if let Some(hold) = self.holds.remove(&delivery) {
                hold.reply.send(None).ok();
            }
            return;
        };
        let evidence = json!({ "files": open.files, "source": approval.source, "confidence": approval.confidence });
        let resolved = ApprovalResolved {
            approval_id: id.to_owned(),
            allowed: Some(allow),
            by: Some(DecidedBy::Policy),
            via: Some(via_of(&approval)),
            rule: Some(judged.rule.clone()),
            message: Some(judged.reason.clone()),
            rewrite: judged.rewrite.clone(),
            ..ApprovalResolved::default()
        };
        let answer =
            if allow { allowance(judged.rewrite, None) } else { refusal(Some(&told_by(&judged.rule, &judged.reason))) };
        self.decide(&approval, resolved, evidence, Way { answer: Some(answer), person: None, grant: None });
    }

    /// What the policy says, held against what the agent can be told.
    fn judged(&self, approval: &Approval) -> Judged {
        let session = self.session(approval.session_id);
        let judged = self.judge.judge(approval, session.as_ref());
        let unanswerable = judged.allow.is_some_and(|allow| {
            let told = if allow { allowance(judged.rewrite.clone(), None) } else { refusal(None) };
            allow && matches!(approval.kind, None | Some(ApprovalKind::Question)) || !tells(approval, &told)
        });
        if unanswerable {
            let reason = "it would be allowed, and the agent cannot be told so".to_owned();
            return Judged { allow: None, rewrite: None, reason, ..judged };
        }
        judged
    }

    /// Has a decision committed; whoever it is for is told then.
    fn decide(&mut self, approval: &Approval, resolved: ApprovalResolved, evidence: Value, way: Way) {
        if let Some(open) = self.open.get_mut(&approval.id) {
            open.busy = true;
        }
        let (own, id) = (self.own.clone(), approval.id.clone());
        let done = Box::new(move |outcome: Result<Approval, Undecided>| {
            own.tell(Told::Decided { id, outcome: outcome.map(Box::new), way: Box::new(way) });
        });
        let decide = Decide::new(approval.session_id, resolved, evidence, done);
        // Ingest is gone only when the server ends; then nobody is answered.
        self.inputs.send(Input::Decide(Box::new(decide))).ok();
    }

    fn record(&self, what: &'static str, approval: &Approval, evidence: Value, done: Box<dyn FnOnce() + Send>) {
        let record = Record { what, approval: Box::new(approval.clone()), evidence, done };
        self.inputs.send(Input::Record(Box::new(record))).ok();
    }

    /// A decision is committed.
    fn decided(&mut self, id: &str, outcome: Result<Approval, Undecided>, way: Way) {
        let Way { answer, person, grant } = way;
        let approval = match outcome {
            Ok(approval) => approval,
            Err(undecided) => {
                if let Some(open) = self.open.remove(id)
                    && let Some(hold) = open.approval.delivery.as_ref().and_then(|d| self.holds.remove(d))
                {
                    hold.reply.send(None).ok();
                }
                if let Some(person) = person {
                    person.send(Err(closed(undecided))).ok();
                }
                return;
            }
        };
        self.open.remove(id);
        if let Some(answer) = answer {
            let hold = approval.delivery.as_ref().and_then(|delivery| self.holds.remove(delivery));
            let text = serde_json::to_string(&answer).ok();
            let delivered = hold.is_some_and(|hold| hold.reply.send(text).is_ok());
            let what = if delivered { "delivered" } else { "undelivered" };
            self.record(what, &approval, json!({ "answer": answer }), Box::new(|| {}));
            if !delivered && let Some(person) = person {
                let why = "whoever waited for it went away before it could be told; answer it where the agent asks";
                person.send(Err(Refusal::Conflict(why.into()))).ok();
                return;
            }
        }
        if let Some(grant) = grant.filter(|_| self.grants.len() < GRANTS) {
            self.grants.insert(grant);
        }
        if let Some(person) = person {
            person.send(self.view(&approval)).ok();
        }
    }

    fn asked(&mut self, ask: ApprovalAsk, reply: Reply) {
        let answer = match ask {
            ApprovalAsk::List { state, session, limit } => self.list(state, session, limit),
            ApprovalAsk::One(given) => self.find(&given).and_then(|approval| self.view(&approval)),
            ApprovalAsk::Decide(given, decision) => match self.find(&given) {
                Ok(approval) => return self.person(&approval, *decision, reply),
                Err(why) => Err(why),
            },
        };
        // The one who asked may have gone away.
        reply.send(answer).ok();
    }

    fn list(&self, state: Option<ApprovalState>, session: Option<SessionId>, limit: usize) -> Result<String, Refusal> {
        let filter = KeptFilter::<Approval> { states: state.map(|state| state..=state), session, limit };
        let approvals = self.reader.kept(&filter).map_err(|error| Refusal::Failed(error.to_string()))?;
        #[derive(Serialize)]
        struct List<'a> {
            approvals: Vec<View<'a>>,
        }
        let approvals = approvals.iter().map(|approval| self.view_of(approval, false)).collect();
        as_json(&List { approvals })
    }

    /// The approval a person means: its id, or the end or beginning of it, among those that are pending
    /// before the last that are closed.
    fn find(&self, given: &str) -> Result<Approval, Refusal> {
        let failed = |error: store::ReadError| Refusal::Failed(error.to_string());
        let wanted = given.to_ascii_uppercase();
        if let Some(approval) = self.reader.one::<Approval>(&wanted).map_err(failed)? {
            return Ok(approval);
        }
        let shown = given.chars().take(64).collect::<String>();
        let fits = |id: &str| wanted.len() >= 4 && (id.starts_with(&wanted) || id.ends_with(&wanted));
        let mut fitting: Vec<Approval> =
            self.open.values().map(|open| &open.approval).filter(|a| fits(&a.id)).cloned().collect();
        if fitting.is_empty() {
            let filter = KeptFilter { states: None, session: None, limit: LOOKED_AT };
            fitting = self.reader.kept(&filter).map_err(failed)?;
            fitting.retain(|a| fits(&a.id));
        }
        match (fitting.pop(), fitting.is_empty()) {
            (Some(approval), true) => Ok(approval),
            (Some(_), false) => Err(Refusal::Conflict(format!("`{shown}` fits several approvals"))),
            (None, _) => Err(Refusal::NotFound(format!("there is no approval `{shown}`"))),
        }
    }

    /// How a decision made now would reach the agent.
    fn way_of(&self, approval: &Approval) -> Option<DecidedVia> {
        if approval.state != ApprovalState::Pending {
            return None;
        }
        if self.is_held(approval) {
            return can_be_told(approval).then(|| via_of(approval));
        }
        self.dialog_of(approval).ok().map(|_| DecidedVia::Keys)
    }

    fn view_of<'a>(&'a self, approval: &'a Approval, whole: bool) -> View<'a> {
        let open = self.open.get(&approval.id);
        let session = (whole && open.is_some()).then(|| self.session(approval.session_id)).flatten();
        View {
            approval,
            answer: self.way_of(approval),
            files: open.map_or(&[], |open| &open.files),
            more_files: open.is_some_and(|open| has_more_files(approval, &open.files)),
            policy: open.and_then(|open| open.judged.as_ref()).map(|judged| PolicyView {
                decision: match judged.allow {
                    Some(true) => "allow",
                    Some(false) => "deny",
                    None => "ask",
                },
                rule: &judged.rule,
                reason: &judged.reason,
            }),
            // A rule would not be bound to what a file holds.
            suggested_rule: (whole && open.is_some_and(|open| open.files.is_empty()))
                .then(|| self.judge.rule_for(approval, session.as_ref()))
                .flatten(),
        }
    }

    fn view(&self, approval: &Approval) -> Result<String, Refusal> {
        as_json(&self.view_of(approval, true))
    }

    /// A person decides.
    fn person(&mut self, approval: &Approval, decision: Decision, reply: Reply) {
        let dialog = match self.prepare(approval, &decision) {
            Ok(dialog) => dialog,
            Err(why) => {
                reply.send(Err(why)).ok();
                return;
            }
        };
        let files = self.open.get(&approval.id).map_or(&[][..], |open| &open.files);
        let evidence = evidence(&decision, files);
        let Some((run, mark)) = dialog else {
            let grant = (decision.scope == DecisionScope::Session).then(|| Grant::of(approval, files)).flatten();
            let resolved = resolved(approval, &decision, via_of(approval));
            let answer = answered(&decision);
            return self.decide(approval, resolved, evidence, Way { answer: Some(answer), person: Some(reply), grant });
        };
        let pressing =
            Pressing { approval: approval.clone(), decision, run, mark, person: reply, evidence: evidence.clone() };
        if let Some(open) = self.open.get_mut(&approval.id) {
            open.busy = true;
        }
        // Nothing is pressed before it is recorded that it will be.
        let (own, id) = (self.own.clone(), approval.id.clone());
        let done = Box::new(move || own.tell(Told::Press { id, pressing: Box::new(pressing) }));
        self.record("attempted", approval, evidence, done);
    }

    /// Whether this can be decided here and now: `None` when a hook waits for it, else the dialog that
    /// is to be answered by keys.
    fn prepare(&mut self, approval: &Approval, decision: &Decision) -> Result<Option<(RunId, String)>, Refusal> {
        let conflict = |why: &str| Err(Refusal::Conflict(why.to_owned()));
        if approval.state != ApprovalState::Pending {
            return Err(closed(Undecided::Closed(approval.state)));
        }
        let held = self.is_held(approval);
        let Some(open) = self.open.get_mut(&approval.id) else {
            return conflict("it is not known here any more; look again");
        };
        if open.busy {
            return conflict("a decision on it is on its way");
        }
        let allow = decision.verdict == Verdict::Allow;
        if allow && !std::mem::replace(&mut open.looked_at, true) {
            return conflict("the server was started anew since it was asked: look at it, and decide again");
        }
        let now = marks(approval);
        if allow && now != open.files {
            let changed = now.iter().find(|mark| !open.files.contains(mark)).or_else(|| open.files.first());
            let path = changed.map(|mark| mark.path.display().to_string()).unwrap_or_default();
            open.files = now;
            return Err(Refusal::Conflict(format!("{path} changed since it was asked: look at it, and decide again")));
        }
        let question = approval.kind == Some(ApprovalKind::Question);
        if question && allow && decision.answers.is_none() {
            return conflict("it is a question: give its answers");
        }
        if decision.answers.is_some() && !question {
            return conflict("it is no question that could be answered");
        }
        if decision.scope == DecisionScope::Session && Grant::of(approval, &open.files).is_none() {
            return conflict("it cannot be told whether another request would be the same; allow it once");
        }
        if held && can_be_told(approval) {
            if tells(approval, &answered(decision)) {
                return Ok(None);
            }
            return conflict(match via_of(approval) {
                DecidedVia::Protocol => "the agent's protocol has no words for such an answer",
                DecidedVia::Hook | DecidedVia::Keys => {
                    "the agent takes no such answer from its hook: answer it where it asks"
                }
            });
        }
        if decision.answers.is_some() || decision.scope == DecisionScope::Session {
            return conflict("no hook of the agent waits for it, and keys can only say yes or no, once");
        }
        self.dialog_of(approval).map(Some).map_err(Refusal::Conflict)
    }

    /// The dialog on the screen of a run that asks just this.
    fn dialog_of(&self, approval: &Approval) -> Result<(RunId, String), String> {
        let nobody = "nobody waits for it here: answer it where the agent asks \
                      (`capture run` and `capture hooks install --approver` let it be answered from here)";
        let Some(run) = self.runs.run_of(approval.session_id) else { return Err(nobody.into()) };
        let Some(dialog) = self.runs.dialog_of(run) else { return Err("its dialog is not on the screen".into()) };
        let Some(mark) = dialog.mark.clone() else {
            return Err("its dialog is not one that is answered by keys".into());
        };
        let alone = self.open.values().filter(|o| o.approval.session_id == approval.session_id).count() < 2;
        if is_same(approval, &dialog, alone) {
            Ok((run, mark))
        } else {
            Err("the dialog on the screen asks something else at the moment".into())
        }
    }

    /// It is recorded that keys will be pressed: presses them.
    fn press(&mut self, id: String, pressing: Box<Pressing>) {
        let answer = match pressing.decision.verdict {
            Verdict::Allow => DialogAnswer::AllowOnce,
            Verdict::Deny => DialogAnswer::Deny,
        };
        let (runs, own) = (self.runs.clone(), self.own.clone());
        self.runtime.spawn(async move {
            let outcome = runs.answer(pressing.run, pressing.mark.clone(), answer).await;
            own.tell(Told::Pressed { id, pressing, outcome });
        });
    }

    /// Keys were pressed, or not.
    fn pressed(&mut self, id: &str, pressing: Pressing, outcome: Result<Answered, Refusal>) {
        let Pressing { approval, decision, person, evidence, .. } = pressing;
        if let Some(open) = self.open.get_mut(id) {
            open.busy = false;
        }
        let refused = match outcome {
            Ok(answered) if answered.applied => {
                let evidence = json!({ "who": evidence, "keys": answered });
                let resolved = resolved(&approval, &decision, DecidedVia::Keys);
                let way = Way { answer: None, person: Some(person), grant: None };
                return self.decide(&approval, resolved, evidence, way);
            }
            Ok(answered) => {
                let why = "keys were pressed, and the dialog is still there; look at the terminal".to_owned();
                self.record("unclear", &approval, json!({ "keys": answered }), Box::new(|| {}));
                Refusal::Conflict(why)
            }
            Err(why) => {
                self.record("refused", &approval, json!({ "why": why.to_string() }), Box::new(|| {}));
                why
            }
        };
        person.send(Err(refused)).ok();
    }
}

/// What a hook that is called before every tool tells of: the agent's id of the session, and the call
/// as a request.
fn called(id: RunId, whole: &RawValue) -> Option<(String, Approval)> {
    let delivery: Delivery = serde_json::from_str(whole.get()).ok()?;
    let (session, asked) = call_of(&delivery).filter(|_| delivery.id == id)?;
    let of = (SessionId::mint(delivery.at, delivery.provider, &session), delivery.provider);
    Some((session, Approval::of(&asked, of, None, (Source::Hook, Confidence::High), delivery.at)))
}

/// By which way somebody waits for the decision on a request that was told.
fn via_of(approval: &Approval) -> DecidedVia {
    if approval.source == Source::Protocol { DecidedVia::Protocol } else { DecidedVia::Hook }
}

/// Whether the agent can be told both a yes and a no.
fn can_be_told(approval: &Approval) -> bool {
    via_of(approval) == DecidedVia::Protocol || takes_allowance(approval.provider)
}

/// Whether there are words for this, in the answer of the agent's hook or in its protocol.
fn tells(approval: &Approval, answer: &Answer) -> bool {
    if via_of(approval) == DecidedVia::Protocol {
        return protocol::has_words(approval.provider, approval.tool.as_deref(), approval.input.as_deref(), answer);
    }
    has_words(approval.provider, approval.tool.as_deref(), approval.input.as_deref(), answer)
}

const fn allowance(rewrite: Option<String>, answers: Option<BTreeMap<String, String>>) -> Answer {
    Answer { allow: true, message: None, rewrite, answers }
}

fn refusal(message: Option<&str>) -> Answer {
    Answer { allow: false, message: message.map(str::to_owned), rewrite: None, answers: None }
}

/// What a hook is told of a person's decision.
fn answered(decision: &Decision) -> Answer {
    match decision.verdict {
        Verdict::Allow => allowance(None, decision.answers.clone()),
        Verdict::Deny => refusal(decision.message.as_deref()),
    }
}

/// What an agent is told when a rule denies.
fn told_by(rule: &str, reason: &str) -> String {
    format!("{reason} (rule `{rule}` of the user's policy; do not try to get around it)")
}

fn resolved(approval: &Approval, decision: &Decision, via: DecidedVia) -> ApprovalResolved {
    ApprovalResolved {
        approval_id: approval.id.clone(),
        allowed: Some(decision.verdict == Verdict::Allow),
        by: Some(DecidedBy::Person),
        via: Some(via),
        message: decision.message.clone(),
        ..ApprovalResolved::default()
    }
}

/// Who decided, and on what grounds.
fn evidence(decision: &Decision, files: &[FileMark]) -> Value {
    json!({ "who": decision.who, "scope": decision.scope, "answers": decision.answers, "files": files })
}

fn closed(undecided: Undecided) -> Refusal {
    match undecided {
        Undecided::Unknown => Refusal::NotFound("there is no such approval any more".into()),
        Undecided::Closed(state) => Refusal::Conflict(format!("it is closed already: {state}")),
    }
}

/// Whether the dialog asks what the approval says, but for how many blanks there are between words. A
/// command that the screen says is cut is known by its beginning when nothing else is asked for in the
/// session.
fn is_same(approval: &Approval, dialog: &Dialog, alone: bool) -> bool {
    if dialog.about.is_some() && approval.kind.is_some() && !is_same_kind(dialog.about, approval.kind) {
        return false;
    }
    let bare = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = dialog.subject.as_deref().map(bare).unwrap_or_default();
    let asked = approval.command.as_deref().or_else(|| approval.paths.first().map(String::as_str));
    let asked = asked.or(approval.url.as_deref()).or(approval.subject.as_deref()).map(bare).unwrap_or_default();
    if shown.is_empty() {
        return false;
    }
    if approval.paths.is_empty() {
        let cut = shown.strip_suffix('…').filter(|cut| alone && cut.len() >= CUT_BYTES);
        shown == asked || cut.is_some_and(|cut| asked.starts_with(cut))
    } else {
        // A file is shown by its name or by the end of its path.
        asked == shown || asked.ends_with(&format!("/{shown}"))
    }
}

fn is_same_kind(a: Option<ApprovalKind>, b: Option<ApprovalKind>) -> bool {
    let of = |kind| if kind == Some(ApprovalKind::Write) { Some(ApprovalKind::Edit) } else { kind };
    of(a) == of(b)
}

#[cfg(test)]
mod tests;
