//! The broker of a session with a server: decisions that need no approval are made in process, everything else is
//! decided by the server as for any agent: by the policy, by allowances for the session, by a person at any client. The
//! user at the session's own terminal is asked too; the first answer decides.
//!
//! Without a server the user at the terminal decides alone, and without a user the call is not run. A call is never
//! allowed because no one could be reached.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agents::AgentAnswer;
use api::approvals::{DecisionRequest, DecisionScope, Verdict};
use client::{ReportError, ServerReporter, delivery::DecisionOutcome, wait_for_decision, wait_for_rules};
use engine::{AskedPermission, CallClass, CallDecision, CallVerdict, SessionMode};
use events::{ApprovalId, Provider};
use executor::{BoxFuture, PermissionBroker, SessionTools};
use hooks::delivery::Delivery;
use protocols::{
    conversation::{PermissionPayload, ProtocolEventKind, RequestEnd},
    runtime::{RuntimeRequest, answer_to, question_input},
};
use serde_json::value::RawValue;
use session_tree::Json;
use tokio::{
    sync::oneshot,
    time::{Instant, sleep, sleep_until, timeout},
};
use tools::Preview;

use crate::{
    SANDBOX_LEVEL,
    broker::{AskerDecision, PermissionAsker, PreviewedCall},
    permission::{InProcess, decision},
    question::{PermissionQuestion, unanswered, unasked},
    status::{SessionStatus, arguments_of, kind_of, subject_of},
};

/// The user at the terminal is not asked about calls decided by a rule. The server reports at once if no rule decides;
/// if it takes longer than this, the user is asked.
const RULES_WITHIN: Duration = Duration::from_secs(1);
/// Interval of checks whether the first attempt to reach a server has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long to wait for that attempt.
const TRIED_WITHIN: Duration = Duration::from_secs(10);
/// Delay before the server is asked again if it did not answer: it may have been restarted.
const AGAIN: Duration = Duration::from_secs(1);
/// Maximum number of times it is asked again.
const AGAIN_TIMES: u32 = 5;
/// The name in the audit record of the user who allows edits for the session.
const BY_TERMINAL: &str = "the user at the agent's terminal";

/// The session, and where to report problems.
pub(crate) struct BrokerPlace {
    /// The data directory.
    pub(crate) data: PathBuf,
    /// The session's id.
    pub(crate) session: String,
    /// Its working directory.
    pub(crate) cwd: String,
    /// Reports a problem to the user.
    pub(crate) warn: fn(&str),
}

/// Decides about the calls of a session.
pub struct ServerBroker {
    asker: Arc<Asker>,
}

/// Asks the server and the local asker: the user at the terminal, or the program that drives the session.
struct Asker {
    in_process: Arc<InProcess>,
    data: PathBuf,
    session: String,
    warn: fn(&str),
    reporter: Mutex<SessionReporter>,
    status: Arc<SessionStatus>,
    person: Option<Arc<dyn PermissionAsker>>,
    tools: Arc<SessionTools>,
    wait: Duration,
}

struct SessionReporter {
    reporter: ServerReporter,
    /// Whether the server was told where the session started, which determines its workspace.
    has_begun: bool,
}

impl ServerBroker {
    /// A broker for a session.
    pub(crate) fn new(
        in_process: InProcess,
        place: BrokerPlace,
        status: Arc<SessionStatus>,
        person: Option<Arc<dyn PermissionAsker>>,
        tools: Arc<SessionTools>,
        wait: Duration,
    ) -> Self {
        let BrokerPlace { data, session, cwd, warn } = place;
        let reporter = ServerReporter::new(data.clone(), Provider::Capture, cwd, std::process::id());
        let reporter = Mutex::new(SessionReporter { reporter, has_begun: false });
        let in_process = Arc::new(in_process);
        Self { asker: Arc::new(Asker { in_process, data, session, warn, reporter, status, person, tools, wait }) }
    }
}

impl PermissionBroker for ServerBroker {
    fn decide(&self, asked: AskedPermission) -> BoxFuture<'static, CallDecision> {
        if let Some(decision) = self.asker.in_process.decide(&asked) {
            self.asker.status.decided(&asked, &decision);
            return Box::pin(std::future::ready(decision));
        }
        let asker = Arc::clone(&self.asker);
        Box::pin(async move {
            let call = PreviewedCall::of(asked, Arc::clone(&asker.tools)).await.with_reason(&asker.in_process);
            match asker.in_process.without_effect(&call) {
                Some(decision) => decision,
                None => {
                    let tools = Arc::clone(&asker.tools);
                    call.as_shown(asker.decide(&call).await, tools).await
                }
            }
        })
    }
}

/// A request delivered to the server. If it is dropped without a decision, it is withdrawn at the server too.
struct DeliveredRequest {
    asker: Arc<Asker>,
    delivery: Arc<Delivery>,
    approval: ApprovalId,
    /// Whether the call has a decision; the server may not know it.
    is_decided: bool,
    /// Whether the server knows that the request is over.
    is_settled: bool,
}

impl DeliveredRequest {
    /// Reports that no answer came in time, before the call ends: the records of the call that the server reads later
    /// do not show that.
    async fn expire(&mut self) {
        self.is_settled = true;
        let (asker, approval) = (Arc::clone(&self.asker), self.approval.clone());
        let told = move || asker.report(ProtocolEventKind::Settled { approval, end: RequestEnd::Expired });
        if let Err(error) = tokio::task::spawn_blocking(told).await {
            (self.asker.warn)(&format!("cannot report to the server that the request was not answered: {error}"));
        }
    }
}

impl Drop for DeliveredRequest {
    fn drop(&mut self) {
        if self.is_settled {
            return;
        }
        let (asker, approval) = (Arc::clone(&self.asker), self.approval.clone());
        // Reports on a thread, since it writes a file and waits for the server. Dropping without a decision means that
        // the turn was ended.
        let end = if self.is_decided { RequestEnd::Over } else { RequestEnd::Withdrawn };
        let told = move || asker.report(ProtocolEventKind::Settled { approval, end });
        if let Err(error) = std::thread::Builder::new().name("settles".to_owned()).spawn(told) {
            (self.asker.warn)(&format!("cannot report to the server that a request has ended: {error}"));
        }
    }
}

/// The next answer.
enum Heard {
    Server(DecisionOutcome),
    Person(Option<AskerDecision>),
    Nobody,
}

impl Asker {
    async fn decide(self: Arc<Self>, call: &PreviewedCall) -> CallDecision {
        if self.has_server().await {
            let until = Instant::now() + self.wait;
            match self.deliver(call).await {
                Ok(mut request) => {
                    let decision = Arc::clone(&self).decide_with_server(call, &mut request, until).await;
                    request.is_decided = true;
                    if decision.verdict == CallVerdict::Unanswered {
                        request.expire().await;
                    }
                    return decision;
                }
                Err(error) => (self.warn)(&format!("cannot report a permission request to the server: {error}")),
            }
        }
        let _waiting = self.status.waits(&call.asked);
        let question = call.clone().without_server(&self.in_process).question(&self.in_process, false);
        if self.person.is_none() {
            return unasked();
        }
        let said = self.ask_person(question.clone(), self.wait).await;
        said.map_or_else(unanswered, |said| self.carried_out(said, &question))
    }

    /// Carries out the decision of the user here, which may also allow edits for the session.
    fn carried_out(&self, said: AskerDecision, question: &PermissionQuestion) -> CallDecision {
        if said.allows_edits(question) {
            self.allow_edits();
        }
        said.decision
    }

    fn allow_edits(&self) {
        self.in_process.allow_edits();
        self.status.mode_granted(SessionMode::AcceptEdits, BY_TERMINAL);
    }

    async fn has_server(&self) -> bool {
        let tried = async {
            loop {
                match self.status.has_server() {
                    Some(is_there) => return is_there,
                    None => sleep(LOOK_EVERY).await,
                }
            }
        };
        timeout(TRIED_WITHIN, tried).await.unwrap_or(false)
    }

    async fn decide_with_server(
        self: Arc<Self>,
        call: &PreviewedCall,
        request: &mut DeliveredRequest,
        until: Instant,
    ) -> CallDecision {
        let asked = &call.asked;
        let mut tries = 0;
        // A rule decides before anyone is asked.
        let early = async { wait_on(&mut Some(self.wait_for(request, left(until), wait_for_rules))).await };
        let early = timeout(RULES_WITHIN, early).await.unwrap_or(DecisionOutcome::Undecided);
        let (mut heard, mut server) = match early {
            DecisionOutcome::Undecided => (None, Some(self.wait_for(request, left(until), wait_for_decision))),
            early @ (DecisionOutcome::Decided(_) | DecisionOutcome::NoServer) => (Some(Heard::Server(early)), None),
        };
        // Until then the server itself reports that.
        let _waiting = heard.is_none().then(|| self.status.waits(asked));
        let question = call.question(&self.in_process, true);
        if heard.is_none() && self.person.is_none() {
            say_who_decides(self.warn, request, asked, &question, until);
        }
        let mut asks = self.person.is_some();
        let mut was_shown = false;
        // Whether the decision that the server confirms also allows edits for the session.
        let mut with_edits = false;
        loop {
            let said = match heard.take() {
                Some(said) => said,
                None => {
                    was_shown |= asks;
                    let person = async {
                        if !asks {
                            return std::future::pending().await;
                        }
                        self.ask_person(question.clone(), left(until)).await
                    };
                    tokio::select! {
                        outcome = wait_on(&mut server) => Heard::Server(outcome),
                        decision = person => Heard::Person(decision),
                        () = sleep_until(until) => Heard::Nobody,
                    }
                }
            };
            match said {
                Heard::Server(DecisionOutcome::Decided(answer)) => {
                    request.is_settled = true;
                    if was_shown {
                        let word = if answer.allow { "allowed" } else { "denied" };
                        (self.warn)(&format!("{word}, as decided through the server"));
                    }
                    if with_edits && answer.allow {
                        self.allow_edits();
                    }
                    return from_server(asked, answer);
                }
                Heard::Server(DecisionOutcome::Undecided) if tries < AGAIN_TIMES && Instant::now() < until => {
                    tries += 1;
                    server = Some(self.wait_later(request, until));
                }
                // Only the user here can decide now.
                Heard::Server(DecisionOutcome::Undecided | DecisionOutcome::NoServer) => server = None,
                // If the rule cannot be saved, nothing is allowed; the question is asked again.
                Heard::Person(Some(AskerDecision { rule: Some(rule), .. })) if !self.keep_rule(&rule) => {}
                Heard::Person(Some(own)) if server.is_none() || own.decision.verdict == CallVerdict::Unanswered => {
                    return self.carried_out(own, &question);
                }
                Heard::Person(Some(own)) => {
                    let allows_edits = own.allows_edits(&question);
                    // Edits are allowed in this process: the server would compare with this exact edit.
                    let scope = if allows_edits { DecisionScope::Once } else { own.scope };
                    match self.decide_there(request, asked, &own, scope).await {
                        // The server answers all waiting clients, including this one.
                        Ok(true) => (asks, was_shown, with_edits) = (false, false, allows_edits),
                        Ok(false) => return self.carried_out(own, &question),
                        // The server does not record the session, according to the user's configuration.
                        Err(ReportError::Refused(error)) if error.status() == Some(404) => {
                            return self.carried_out(own, &question);
                        }
                        // The error contains the reason and the action; the question is asked again.
                        Err(error) => (self.warn)(&error.to_string()),
                    }
                }
                Heard::Person(None) => asks = false,
                Heard::Nobody => return unanswered(),
            }
            if server.is_none() && !asks {
                return unanswered();
            }
        }
    }

    /// Delivers a request. If the future is dropped in between, the request is settled at once.
    async fn deliver(self: &Arc<Self>, call: &PreviewedCall) -> Result<DeliveredRequest, ReportError> {
        let payload = payload_of(call)?;
        let (done, delivered) = oneshot::channel();
        let asker = Arc::clone(self);
        let delivers = move || {
            let delivered = asker.deliver_now(payload);
            // If the call was withdrawn in the meantime, the request is dropped and thereby settled.
            drop(done.send(delivered));
        };
        std::thread::Builder::new().name("delivers".to_owned()).spawn(delivers).map_err(ReportError::Thread)?;
        delivered.await.unwrap_or_else(|_| Err(ReportError::Thread(io::ErrorKind::Interrupted.into())))
    }

    fn deliver_now(self: &Arc<Self>, payload: PermissionPayload) -> Result<DeliveredRequest, ReportError> {
        let mut session = self.reporter();
        if !session.has_begun {
            session.reporter.report(&self.session, ProtocolEventKind::Began)?;
            session.has_begun = true;
        }
        let delivery = session.reporter.request(&self.session, payload)?;
        drop(session);
        let approval = delivery.approval_id();
        let (asker, delivery) = (Arc::clone(self), Arc::new(delivery));
        Ok(DeliveredRequest { asker, delivery, approval, is_decided: false, is_settled: false })
    }

    /// Waits on a separate thread, since it reads from a socket.
    fn wait_for(
        &self,
        request: &DeliveredRequest,
        patience: Duration,
        wait: fn(&Path, &Delivery, Duration) -> DecisionOutcome,
    ) -> oneshot::Receiver<DecisionOutcome> {
        let (done, decided) = oneshot::channel();
        let (data, delivery) = (self.data.clone(), Arc::clone(&request.delivery));
        let waits = move || {
            // The receiver may be gone.
            drop(done.send(wait(&data, &delivery, patience)));
        };
        if let Err(error) = std::thread::Builder::new().name("waits".to_owned()).spawn(waits) {
            (self.warn)(&format!("cannot wait for a decision: {error}"));
        }
        decided
    }

    /// Waits after a delay.
    fn wait_later(self: &Arc<Self>, request: &DeliveredRequest, until: Instant) -> oneshot::Receiver<DecisionOutcome> {
        let (done, decided) = oneshot::channel();
        let (data, delivery) = (self.data.clone(), Arc::clone(&request.delivery));
        tokio::spawn(async move {
            sleep(AGAIN).await;
            let patience = left(until);
            let waits = move || drop(done.send(wait_for_decision(&data, &delivery, patience)));
            drop(std::thread::Builder::new().name("waits".to_owned()).spawn(waits));
        });
        decided
    }

    async fn ask_person(&self, question: PermissionQuestion, wait: Duration) -> Option<AskerDecision> {
        let person = self.person.clone()?;
        person.ask(question, wait).await
    }

    /// Adds rules to the user's policy, and reports the result.
    fn keep_rule(&self, rule: &str) -> bool {
        let added = self.in_process.add_rule(rule);
        (self.warn)(&match &added {
            Ok(file) => format!("saved in {}", file.display()),
            Err(error) => format!("the rule was not saved, and nothing was allowed: {error}"),
        });
        added.is_ok()
    }

    /// Sends the decision of the user here to the server. Returns false if no server can be reached.
    async fn decide_there(
        &self,
        request: &DeliveredRequest,
        asked: &AskedPermission,
        own: &AskerDecision,
        scope: DecisionScope,
    ) -> Result<bool, ReportError> {
        let own = &own.decision;
        let decision = if own.verdict == CallVerdict::Allow { Verdict::Allow } else { Verdict::Deny };
        let answers = own.answer.clone().map(|answer| [(question_of(asked).to_owned(), answer)].into());
        let message = own.reason.clone();
        let decision = DecisionRequest { decision, message, scope, answers, revision: None, rule: false };
        let (data, approval) = (self.data.clone(), request.approval.clone());
        let decided = tokio::task::spawn_blocking(move || client::decide(&data, &approval, &decision)).await;
        decided.unwrap_or(Ok(false))
    }

    fn report(&self, what: ProtocolEventKind) {
        if let Err(error) = self.reporter().reporter.report(&self.session, what) {
            (self.warn)(&format!("cannot report to the server: {error}"));
        }
    }

    fn reporter(&self) -> MutexGuard<'_, SessionReporter> {
        self.reporter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reports how to decide if the user cannot be asked here.
fn say_who_decides(
    warn: fn(&str),
    request: &DeliveredRequest,
    asked: &AskedPermission,
    question: &PermissionQuestion,
    until: Instant,
) {
    let id = printing::style::short(&request.approval);
    let (what, how) = if question.is_question {
        (format!("The agent asks: {}", question.title), format!("answer with `capture approve {id} --answer TEXT`"))
    } else {
        // The title contains the file of an edit.
        let is_named = asked.facts.kind.changes_files();
        let subject = subject_of(asked).filter(|_| !is_named);
        let subject = subject.map(|subject| format!(": {subject}")).unwrap_or_default();
        (format!("{}{subject}", question.title), format!("decide with `capture approve {id}` or `capture deny {id}`"))
    };
    let seconds = left(until).as_secs_f64().ceil();
    warn(&format!("{what}; {how} within {seconds} s"));
}

fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}

/// Waits for the server; never completes without one.
async fn wait_on(server: &mut Option<oneshot::Receiver<DecisionOutcome>>) -> DecisionOutcome {
    match server {
        // If the thread could not be created, there is no result.
        Some(decided) => decided.await.unwrap_or(DecisionOutcome::NoServer),
        None => std::future::pending().await,
    }
}

/// Converts the server's answer to a decision.
fn from_server(asked: &AskedPermission, answer: AgentAnswer) -> CallDecision {
    let AgentAnswer { allow, message, rewrite, answers } = answer;
    if !allow {
        let reason = message.filter(|message| !message.is_empty()).unwrap_or_else(|| "denied by the user".to_owned());
        return decision(CallVerdict::Deny, "server", None, Some(reason));
    }
    let mut decided = decision(CallVerdict::Allow, "server", None, message);
    decided.arguments = rewrite.map(|command| asked.call.arguments.clone().with("command", command));
    decided.answer = answers.and_then(|answers| answer_to(question_of(asked), &answers).map(str::to_owned));
    decided
}

fn question_of(asked: &AskedPermission) -> &str {
    asked.call.arguments.text("question").unwrap_or_default()
}

/// The request as delivered: everything the decision is based on.
fn payload_of(call: &PreviewedCall) -> Result<PermissionPayload, serde_json::Error> {
    let asked = &call.asked;
    let arguments = if asked.facts.kind == CallClass::Question {
        let options = asked.call.arguments.get("options").and_then(Json::as_array).unwrap_or_default();
        let options: Vec<&str> = options.iter().filter_map(Json::as_str).collect();
        question_input(question_of(asked), &options).to_string()
    } else {
        arguments_of(asked)
    };
    let request = RuntimeRequest {
        call: asked.call.model_id.clone(),
        tool: asked.call.tool.clone(),
        kind: kind_of(asked.facts.kind),
        cwd: asked.facts.cwd.clone(),
        paths: asked.facts.paths.clone(),
        url: asked.facts.url.clone(),
        arguments: RawValue::from_string(arguments)?,
        mode: asked.mode.name().to_owned(),
        sandbox: SANDBOX_LEVEL.to_owned(),
        no_effect: match &call.preview {
            Some(Preview::NoChange(why) | Preview::Refused(why)) => Some(why.clone()),
            Some(Preview::WouldChange(_)) | None => None,
        },
    };
    Ok(PermissionPayload { request: request.to_raw()?, item: None, call: Some(request.call), place: Some(request.cwd) })
}
