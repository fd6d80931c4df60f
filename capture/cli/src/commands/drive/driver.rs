//! The conversation with the agent: one loop over all events.

mod commands;

use std::{
    ffi::OsString,
    io::Write,
    net::Shutdown,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use agents::AgentAnswer;
use anyhow::Context as _;
use api::approvals::{DecisionRequest, DecisionScope, Verdict};
use client::{DeltaSender, ServerReporter, SessionLink, delivery::DecisionOutcome, failure::with_causes};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use events::{ApprovalId, Confidence, Payload, Provider, SessionId, Source};
use hooks::delivery::Delivery;
use projections::Approval;
use protocols::{
    AgentLine, Codec, Meaning, PermissionRequest, TurnEnd,
    conversation::{self, PermissionPayload, ProtocolEventKind, RequestEnd},
    program::{Program, Streams},
};
use rustix::process::Signal;

use super::{
    events::{DriverEvent, forward_errors, listen, listen_to_server, listen_to_signals, listen_to_user},
    hosted::Hosting,
    output::{DecisionSource, DriveOutput, OutputWriter, ask_for_word, ended, question, request_output},
};
use printing::safe;

/// Maximum number of pending events.
const EVENTS: usize = 256;
/// Time an agent has to exit before it receives a stronger signal.
const GRACE: Duration = Duration::from_secs(5);
/// Time limit for the agent to read a line.
const TAKEN_WITHIN: Duration = Duration::from_secs(30);
/// Delay before the user is asked, within which a rule answers.
const RULES_WITHIN: Duration = Duration::from_millis(300);
/// Maximum number of pending requests; further ones are denied.
const PENDING: usize = 64;
/// Maximum number of decided calls whose outcome is awaited.
const DECIDED: usize = 256;

/// Exit codes as a shell reports them.
const FAILED: u8 = 1;
const BY_INTERRUPT: u8 = 130;
const BY_TERMINATE: u8 = 143;

/// The options of a conversation.
pub(super) struct DriverOptions {
    pub data: PathBuf,
    pub provider: Provider,
    pub cwd: String,
    pub prompt: String,
    /// How long a request waits.
    pub patience: Duration,
    /// Whether to ask the user at our terminal.
    pub asks: bool,
    pub json: bool,
}

/// A request that waits for its decision.
struct WaitingRequest {
    request: PermissionRequest,
    approval: Approval,
    /// When waiting for a decision ends.
    until: Instant,
    /// When to ask the user at this terminal; a rule answers earlier.
    ask_at: Instant,
    /// Whether no server can be reached, so that only the user here may decide.
    alone: bool,
}

/// A decided request, whose outcome is reported when its call ends.
struct DecidedCall {
    call: String,
    session: String,
    approval: ApprovalId,
}

/// The question shown at the user's terminal.
struct AskedUser {
    /// The id of the request.
    id: String,
    /// When the question was shown. A line read before then does not answer it.
    shown_at: Instant,
    /// Whether a single key is not enough to allow the request.
    needs_word: bool,
    /// Whether the user has answered it.
    is_answered: bool,
}

struct Driver {
    /// The connection of a session that the server started.
    link: Option<SessionLink>,
    options: DriverOptions,
    codec: Box<dyn Codec>,
    program: Program,
    input: UnixStream,
    server: ServerReporter,
    deltas: DeltaSender,
    output: OutputWriter,
    events: Sender<DriverEvent>,
    session: Option<String>,
    prompted: bool,
    pending: Vec<WaitingRequest>,
    decided: Vec<DecidedCall>,
    /// The request currently shown to the user at the terminal.
    asked: Option<AskedUser>,
    /// Whether the last question was withdrawn before the user answered it.
    was_withdrawn: bool,
    outcome: Option<TurnEnd>,
    /// The exit code, once a stop was requested.
    stopped: Option<u8>,
    /// When to send the agent the next signal to exit, and which one.
    patience: Option<(Instant, Signal)>,
}

/// Drives the agent until it exits; returns the exit code.
pub(super) fn run(
    options: DriverOptions,
    codec: Box<dyn Codec>,
    words: &[OsString],
    cwd: &Path,
    hosting: Option<Hosting<'_>>,
) -> anyhow::Result<u8> {
    let (events, inbox) = bounded(EVENTS);
    // Set up before the agent starts, so that a signal cannot leave an agent behind.
    listen_to_signals(events.clone()).context("cannot set up signal handling")?;
    let (program, streams) = Program::start(words, cwd).context("cannot start the agent")?;
    let Streams { input, output: from_agent, error } = streams;
    input.set_write_timeout(Some(TAKEN_WITHIN))?;
    let thread = |name: &str| std::thread::Builder::new().name(name.into());
    let read = events.clone();
    thread("agent").spawn(move || listen(from_agent, &read))?;
    let output = OutputWriter::new(options.json);
    let errors = output.clone();
    thread("agent-errors").spawn(move || forward_errors(error, &errors))?;
    if options.asks {
        let typed = events.clone();
        thread("typed").spawn(move || listen_to_user(&typed))?;
    }
    let server = ServerReporter::new(options.data.clone(), options.provider, options.cwd.clone(), program.pid());
    let deltas = DeltaSender::new(options.data.clone(), options.provider);
    let of = (options.provider, options.cwd.as_str());
    let link = hosting.map(|hosting| hosting.connect(&options.data, of, program.pid())).transpose();
    let link = match link.context("cannot connect to the server")? {
        Some((link, requests)) => {
            let wanted = events.clone();
            thread("commands").spawn(move || listen_to_server(requests, &wanted))?;
            Some(link)
        }
        None => None,
    };
    let driver = Driver {
        link,
        options,
        codec,
        program,
        input,
        server,
        deltas,
        output,
        events,
        session: None,
        prompted: false,
        pending: Vec::new(),
        decided: Vec::new(),
        asked: None,
        was_withdrawn: false,
        outcome: None,
        stopped: None,
        patience: None,
    };
    driver.run(&inbox)
}

impl Driver {
    fn run(mut self, inbox: &Receiver<DriverEvent>) -> anyhow::Result<u8> {
        for line in self.codec.begin() {
            self.send(&line);
        }
        loop {
            let heard = match self.next_deadline() {
                Some(next_deadline) => inbox.recv_deadline(next_deadline),
                None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match heard {
                Ok(DriverEvent::Line(AgentLine::Whole(line))) => self.apply_line(&line)?,
                Ok(DriverEvent::Line(AgentLine::Damaged)) => {
                    self.output.write(&DriveOutput::Unrecognized { sort: "a damaged line" })?
                }
                Ok(DriverEvent::Closed) => break,
                Ok(DriverEvent::Waited(request, waited)) => self.on_decision(&request, waited)?,
                Ok(DriverEvent::Typed(line, read_at)) => self.on_typed(&line, read_at)?,
                Ok(DriverEvent::Signal(signal)) => self.on_signal(signal)?,
                Ok(DriverEvent::Request(request)) => self.on_server_request(request)?,
                Err(RecvTimeoutError::Timeout) => self.on_deadline()?,
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.finish()
    }

    /// Finishes after the agent has exited or closed its output.
    fn finish(mut self) -> anyhow::Result<u8> {
        self.output.release()?;
        let mut until = Instant::now() + GRACE;
        let mut signals = [Signal::TERM, Signal::KILL].into_iter();
        let code = loop {
            if let Some(code) = self.program.ended()? {
                break code;
            }
            if Instant::now() >= until {
                let Some(signal) = signals.next() else { break 128 + Signal::KILL.as_raw() };
                self.program.signal(signal);
                until = Instant::now() + GRACE;
            }
            // The channel never receives a message; this only waits.
            crossbeam_channel::after(Duration::from_millis(20)).recv().ok();
        };
        if let Some(session) = &self.session {
            for pending in &self.pending {
                self.report(
                    &pending.request.session,
                    ProtocolEventKind::Settled { approval: pending.approval.id.clone(), end: RequestEnd::Over },
                );
            }
            self.report(session, ProtocolEventKind::Left);
        }
        if let Some(link) = self.link.take() {
            link.end(u8::try_from(code).unwrap_or(FAILED));
        }
        if let Some(code) = self.stopped {
            return Ok(code);
        }
        match &self.outcome {
            Some(TurnEnd::Completed) => Ok(0),
            Some(TurnEnd::Interrupted) => Ok(BY_INTERRUPT),
            Some(TurnEnd::Failed(_)) => Ok(FAILED),
            None => {
                let why = format!("the agent exited with {code} before its turn ended");
                self.output.write(&DriveOutput::Ended { outcome: "gone", message: Some(&why) })?;
                Ok(u8::try_from(code).ok().filter(|code| *code != 0).unwrap_or(FAILED))
            }
        }
    }

    /// The time of the next action that no event triggers.
    fn next_deadline(&self) -> Option<Instant> {
        let waits = self.pending.iter().map(|pending| pending.until);
        let asks = self.options.asks && self.asked.is_none();
        let ask = self.pending.first().filter(|_| asks).map(|pending| pending.ask_at);
        waits.chain(self.patience.map(|(at, _)| at)).chain(ask).min()
    }

    fn on_deadline(&mut self) -> anyhow::Result<()> {
        self.ask_user();
        let now = Instant::now();
        if let Some((at, signal)) = self.patience
            && at <= now
        {
            self.program.signal(signal);
            self.patience = (signal == Signal::TERM).then(|| (now + GRACE, Signal::KILL));
        }
        while let Some(late) = self.pending.iter().find(|pending| pending.until <= now) {
            let id = late.request.id.clone();
            let seconds = self.options.patience.as_secs();
            self.refuse(&id, &format!("no decision within {seconds} seconds, so the request is denied"))?;
        }
        Ok(())
    }

    /// Writes a line to the agent. A failed write does not count as an answer.
    fn send(&mut self, line: &str) {
        let sent = self.input.write_all(line.as_bytes()).and_then(|()| self.input.write_all(b"\n"));
        if sent.is_err() && self.outcome.is_none() && self.patience.is_none() {
            self.patience = Some((Instant::now() + GRACE, Signal::TERM));
        }
    }

    fn apply_line(&mut self, line: &str) -> anyhow::Result<()> {
        for meaning in self.codec.decode_line(line) {
            match meaning {
                Meaning::Send(line) => self.send(&line),
                Meaning::Session(id) => {
                    self.report(&id, ProtocolEventKind::Began);
                    if self.prompted {
                        self.report(&id, ProtocolEventKind::Works);
                    }
                    let provider = self.options.provider.as_str();
                    self.output.write(&DriveOutput::Session { provider, session_id: &id, cwd: &self.options.cwd })?;
                    self.session = Some(id);
                }
                Meaning::Ready => {
                    if let Some(prompt) = self.codec.prompt(&self.options.prompt).filter(|_| !self.prompted) {
                        self.prompted = true;
                        self.send(&prompt);
                        self.report_working();
                    }
                }
                Meaning::Text(text) => {
                    if let Some(session) = &self.session {
                        self.deltas.send(session, &text);
                    }
                    self.output.write(&DriveOutput::Text { text: &text })?;
                }
                Meaning::Called { call, tool } => {
                    self.output.write(&DriveOutput::ToolCall { id: &call, tool: &tool })?
                }
                Meaning::Returned { call, outcome } => {
                    self.output.write(&DriveOutput::ToolResult { id: &call, outcome })?;
                    self.program.reap();
                    if let Some(at) = self.decided.iter().position(|decided| decided.call == call) {
                        let DecidedCall { session, approval, .. } = self.decided.swap_remove(at);
                        self.report(&session, ProtocolEventKind::Returned { approval, outcome });
                    }
                }
                Meaning::Asks(request) => self.on_request(*request)?,
                Meaning::Settled(id) => {
                    if let Some(pending) = self.remove(&id) {
                        self.report_settled(&pending);
                        self.output.write(&DriveOutput::Settled { approval_id: &pending.approval.id })?;
                    }
                }
                Meaning::Ended(outcome) => self.on_turn_end(outcome)?,
                Meaning::Failed(why) => self.output.write(&DriveOutput::Error { message: &why })?,
                Meaning::Unrecognized(sort) => self.output.write(&DriveOutput::Unrecognized { sort: &sort })?,
            }
        }
        Ok(())
    }

    /// Reports an event of a session to the server.
    fn report(&self, session: &str, what: ProtocolEventKind) {
        if let Err(error) = self.server.report(session, what) {
            crate::commands::context::complain(&format!("cannot report to the server: {}", with_causes(&error.into())));
        }
    }

    /// Delivers a request, and returns it in the form the server sees.
    fn request_decision(&self, request: &PermissionRequest) -> anyhow::Result<(Approval, Delivery)> {
        let delivery = self.server.request(&request.session, PermissionPayload::of(request))?;
        Ok((approval(&delivery)?, delivery))
    }

    /// Sends the answer of the user at this terminal to the server as a person's decision. Returns false if no server
    /// can be reached.
    fn decide_there(&self, approval: &ApprovalId, allow: bool) -> anyhow::Result<bool> {
        let decision = if allow { Verdict::Allow } else { Verdict::Deny };
        let (scope, answers) = (DecisionScope::Once, None);
        let request = DecisionRequest { decision, message: None, scope, answers, revision: None, rule: false };
        Ok(client::decide(self.server.data(), approval, &request)?)
    }

    fn report_working(&self) {
        if let Some(session) = self.session.as_deref().filter(|_| self.pending.is_empty() && self.outcome.is_none()) {
            self.report(session, ProtocolEventKind::Works);
        }
    }

    fn on_turn_end(&mut self, outcome: TurnEnd) -> anyhow::Result<()> {
        if self.outcome.is_some() {
            return Ok(());
        }
        self.output.write(&ended(&outcome))?;
        self.outcome = Some(outcome);
        if let Some(session) = &self.session {
            self.report(session, ProtocolEventKind::Rests);
        }
        if self.link.is_some() && self.stopped.is_none() {
            // The server may send more prompts.
            return Ok(());
        }
        // The agent has nothing more to do: close its input, so that it exits.
        self.input.shutdown(Shutdown::Write).ok();
        self.patience = Some((Instant::now() + GRACE, Signal::TERM));
        Ok(())
    }

    /// Handles a permission request: starts waiting for a decision.
    fn on_request(&mut self, request: PermissionRequest) -> anyhow::Result<()> {
        let known = self.pending.iter().any(|pending| pending.request.id == request.id);
        if self.stopped.is_some() || known {
            let line = self.codec.cancel(&request);
            self.send(&line);
            return Ok(());
        }
        if self.pending.len() >= PENDING {
            return self.answer(&request, &denial("too many requests are pending, so this one is denied"));
        }
        let asked = self.request_decision(&request);
        let (approval, delivery) = match asked {
            Ok(asked) => asked,
            Err(error) => {
                let why = "the request could not be decoded or stored, so it is denied";
                self.output.write(&DriveOutput::Error { message: &with_causes(&error) })?;
                return self.answer(&request, &denial(why));
            }
        };
        self.output.write(&request_output(&approval))?;
        let (data, events, patience) = (self.server.data().to_owned(), self.events.clone(), self.options.patience);
        let id = request.id.clone();
        let now = Instant::now();
        std::thread::Builder::new().name("waits".into()).spawn(move || {
            let waited = client::wait_for_decision(&data, &delivery, patience);
            // The conversation may be over.
            events.send(DriverEvent::Waited(id, waited)).ok();
        })?;
        let (until, ask_at) = (now + patience, now + RULES_WITHIN);
        self.pending.push(WaitingRequest { request, approval, until, ask_at, alone: false });
        self.ask_user();
        Ok(())
    }

    /// Shows the user the next request, if there is a user to ask.
    fn ask_user(&mut self) {
        if !self.options.asks || self.asked.is_some() {
            return;
        }
        let Some(next) = self.pending.first().filter(|next| next.ask_at <= Instant::now()) else { return };
        crate::commands::context::flush_typed();
        self.output.hold();
        // The user may answer as soon as the question is visible.
        let shown_at = Instant::now();
        let needs_word = question(&next.approval, self.was_withdrawn);
        self.asked = Some(AskedUser { id: next.request.id.clone(), shown_at, needs_word, is_answered: false });
    }

    fn remove(&mut self, id: &str) -> Option<WaitingRequest> {
        let at = self.pending.iter().position(|pending| pending.request.id == id)?;
        let taken = self.pending.remove(at);
        if let Some(asked) = self.asked.take_if(|asked| asked.id == id) {
            printing::print_error_line("");
            self.was_withdrawn = !asked.is_answered;
            // A lost terminal does not end the conversation.
            self.output.release().ok();
        }
        Some(taken)
    }

    /// Tells the server that the request no longer needs a decision.
    fn report_settled(&self, pending: &WaitingRequest) {
        self.report(
            &pending.request.session,
            ProtocolEventKind::Settled { approval: pending.approval.id.clone(), end: RequestEnd::Over },
        );
    }

    fn on_decision(&mut self, id: &str, waited: DecisionOutcome) -> anyhow::Result<()> {
        let Some(pending) = self.pending.iter_mut().find(|pending| pending.request.id == id) else { return Ok(()) };
        match waited {
            DecisionOutcome::Decided(answer) => self.decide(id, &answer, DecisionSource::Server),
            DecisionOutcome::NoServer if self.options.asks => {
                pending.alone = true;
                Ok(())
            }
            DecisionOutcome::NoServer => {
                self.refuse(id, "capture's server is not running, so the request could not be decided and was denied")
            }
            DecisionOutcome::Undecided if pending.until <= Instant::now() => self.on_deadline(),
            DecisionOutcome::Undecided => self.refuse(id, "the server no longer knows this request, so it was denied"),
        }
    }

    /// Denies a request that was not decided.
    fn refuse(&mut self, id: &str, why: &str) -> anyhow::Result<()> {
        if let Some(pending) = self.pending.iter().find(|pending| pending.request.id == id) {
            self.report_settled(pending);
        }
        self.decide(id, &denial(why), DecisionSource::Nobody)
    }

    fn decide(&mut self, id: &str, answer: &AgentAnswer, decided: DecisionSource) -> anyhow::Result<()> {
        let Some(pending) = self.remove(id) else { return Ok(()) };
        let WaitingRequest { request, approval, .. } = pending;
        let message = answer.message.as_deref();
        self.output.write(&DriveOutput::Decided {
            approval_id: &approval.id,
            allowed: answer.allow,
            decided,
            message,
        })?;
        self.answer(&request, answer)?;
        if decided == DecisionSource::Server
            && let Some(call) = &request.call
            && self.decided.len() < DECIDED
        {
            let (call, session) = (call.clone(), request.session.clone());
            self.decided.push(DecidedCall { call, session, approval: approval.id });
        }
        self.report_working();
        self.ask_user();
        Ok(())
    }

    /// Sends the answer in the agent's format. An allowance the agent's protocol cannot express becomes a denial.
    fn answer(&mut self, request: &PermissionRequest, answer: &AgentAnswer) -> anyhow::Result<()> {
        let words = self.codec.answer(request, answer);
        let why = "the agent's protocol cannot express this permission, so the request is denied";
        if words.is_none() {
            self.output.write(&DriveOutput::Error { message: why })?;
        }
        let words = words.or_else(|| self.codec.answer(request, &denial(why)));
        let line = words.unwrap_or_else(|| self.codec.cancel(request));
        self.send(&line);
        Ok(())
    }

    /// Handles a line that the user types in answer to the shown question.
    fn on_typed(&mut self, line: &str, read_at: Instant) -> anyhow::Result<()> {
        let Some(asked) = &mut self.asked else { return Ok(()) };
        let id = asked.id.clone();
        let Some(pending) = self.pending.iter().find(|pending| pending.request.id == id) else { return Ok(()) };
        if read_at < asked.shown_at {
            return Ok(());
        }
        let line = line.trim();
        if asked.needs_word && line.eq_ignore_ascii_case("y") {
            ask_for_word();
            return Ok(());
        }
        asked.is_answered = true;
        let allow = line.eq_ignore_ascii_case("y") || line.eq_ignore_ascii_case("yes");
        let by_server = if pending.alone { Ok(false) } else { self.decide_there(&pending.approval.id, allow) };
        match by_server {
            // The server passes the decision to the waiting thread of this process.
            Ok(true) => Ok(()),
            Ok(false) => {
                self.settled_here(&id);
                let answer = if allow { allowance() } else { denial("denied by the user") };
                self.decide(&id, &answer, DecisionSource::Terminal)
            }
            Err(error) => {
                printing::print_error_line(&format!("capture: {}", safe(&with_causes(&error))));
                self.asked = None;
                self.ask_user();
                Ok(())
            }
        }
    }

    fn settled_here(&self, id: &str) {
        if let Some(pending) = self.pending.iter().find(|pending| pending.request.id == id) {
            self.report_settled(pending);
        }
    }

    /// The first interrupt stops the turn; any other signal stops the agent.
    fn on_signal(&mut self, signal: Signal) -> anyhow::Result<()> {
        let first = signal == Signal::INT && self.stopped.is_none() && self.outcome.is_none();
        self.stopped = Some(if signal == Signal::INT { BY_INTERRUPT } else { BY_TERMINATE });
        self.withdraw_requests()?;
        let stop = if first { self.codec.interrupt() } else { None };
        match stop {
            Some(line) => self.send(&line),
            // The agent cannot stop the turn in any other way, or was already asked to.
            None if first && self.prompted && self.session.is_some() => {}
            None => {
                let told = self.patience.is_some_and(|(_, next)| next == Signal::KILL);
                self.program.signal(if told { Signal::KILL } else { Signal::TERM });
                self.patience = Some((Instant::now() + GRACE, Signal::KILL));
            }
        }
        Ok(())
    }

    /// Withdraws all requests before the turn is stopped, so that none is allowed afterwards.
    fn withdraw_requests(&mut self) -> anyhow::Result<()> {
        while let Some(id) = self.pending.first().map(|pending| pending.request.id.clone()) {
            let Some(pending) = self.remove(&id) else { break };
            self.report_settled(&pending);
            let line = self.codec.cancel(&pending.request);
            self.send(&line);
            self.output.write(&DriveOutput::Settled { approval_id: &pending.approval.id })?;
        }
        Ok(())
    }
}

/// The request as shown to the user: decoded from the delivery as the server does it.
fn approval(delivery: &Delivery) -> anyhow::Result<Approval> {
    let decoded = conversation::decode(delivery, delivery.at).map_err(|why| anyhow::anyhow!(why))?;
    let asked = decoded
        .events
        .into_iter()
        .find_map(|event| if let Payload::ApprovalRequested(asked) = event.payload { Some(asked) } else { None });
    let asked = asked.context("cannot find the permission request in the agent's message")?;
    let of = (SessionId::mint(delivery.at, delivery.provider, &decoded.session), delivery.provider);
    let mut approval = Approval::of(&asked, of, None, (Source::Protocol, Confidence::High), delivery.at);
    approval.cwd = approval.cwd.or(decoded.cwd);
    Ok(approval)
}

fn denial(why: &str) -> AgentAnswer {
    AgentAnswer { allow: false, message: Some(why.to_owned()), rewrite: None, answers: None }
}

/// A plain allowance by the user at this terminal.
fn allowance() -> AgentAnswer {
    AgentAnswer { allow: true, message: None, rewrite: None, answers: None }
}
