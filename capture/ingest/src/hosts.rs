//! Applies reports of the terminal hosts of runs: which session a run hosts, what its screen claims, and that it ended.
//!
//! A run has a session from the start, identified by the run until the agent's own session is known. When the agent's
//! session appears, matched by process or by directory, the run's session is merged into it; when the agent switches to
//! another session (`/clear`, resume), the run follows.

mod session;

use std::{collections::HashMap, sync::Arc};

use events::{
    Annotation, Claim, Confidence, Heartbeat, Identity, NewEvent, Origin, Payload, Provider, Reason, Repeat, RunId,
    SessionExited, SessionId, SessionStarted, Signal, Source, State, Timestamp, Topic, UserPrompt,
};
use host_protocol::{
    claim::{HostEvent, ScreenClaim},
    frame::{Hello, HostFrame},
};
use live_view::Delta;
use processes::AgentProcess;
use store::KnownSession;

use super::{Ingest, LATE_MS, TransactionFailure, link::AWAITED_RUN, sessions::Sessions};

/// Longest time by which a session may begin before the run it belongs to, ms.
pub(super) const BEFORE_MS: i64 = 2_000;
/// Maximum number of runs whose host is awaited.
const AWAITED: usize = 64;
/// Longest time between a prompt and the first work on the screen that belongs to it, ms.
const TOGETHER_MS: i64 = 3_000;
/// Longest time between the ends of a launcher and of the agent it started, ms.
const ENDS_TOGETHER_MS: i64 = 3_000;

/// The reason for withdrawing our own agent's claims about its session.
const LINK_GONE: &str = "the process that runs the session is no longer connected";

/// Inputs from the hosts of runs.
pub enum HostInput {
    /// A host connected, or its description changed.
    Hello(Box<Hello>),
    /// A host reported an event in a run.
    Frame {
        /// The run.
        run: RunId,
        /// The report.
        frame: HostFrame,
        /// Called with the frame's number when the frame is stored.
        stored: Box<dyn Fn(u64) + Send>,
    },
    /// A host disconnected and did not reconnect.
    Lost(RunId),
}

/// A run now hosts a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostedSession {
    /// The run.
    pub run: RunId,
    /// Its session.
    pub session: SessionId,
    /// The session it hosted before, which was merged into this one.
    pub merged: Option<SessionId>,
}

/// The runs whose hosts are connected.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    runs: HashMap<RunId, Host>,
    /// Sessions reported by a hook from within a run whose host has not connected yet.
    awaited: HashMap<RunId, SessionId>,
    /// Sessions whose run failed while the session's own process was still running; the reason and the time.
    failed: HashMap<SessionId, (Reason, Timestamp)>,
}

/// A run whose host is connected.
#[derive(Debug)]
struct Host {
    hello: Hello,
    session: Option<SessionId>,
    /// The claim of its screen.
    claim: Option<ScreenClaim>,
    /// When its screen last began to show work.
    running_at: Timestamp,
    exited: bool,
}

impl Host {
    /// Whether the host runs the session itself and reports its state.
    fn is_session(&self) -> bool {
        self.hello.session.is_some()
    }

    /// The source of the host's claims.
    fn source(&self) -> Source {
        if self.is_session() { Source::Runtime } else { Source::Pty }
    }
}

impl Hosts {
    /// Records a host that connected or whose description changed. Keeps the state of its run, except the session if
    /// another agent runs there now. Returns the session.
    fn connect(&mut self, hello: &Hello) -> Option<SessionId> {
        let (session, claim, running_at, exited) = match self.runs.remove(&hello.run) {
            Some(host) if host.hello.provider == hello.provider => {
                (host.session, host.claim, host.running_at, host.exited)
            }
            Some(host) => (None, host.claim, host.running_at, host.exited),
            None => (None, None, Timestamp::MIN, false),
        };
        self.runs.insert(hello.run, Host { hello: hello.clone(), session, claim, running_at, exited });
        session
    }

    /// Applies a frame of a host. Returns the run's session and the process the host started.
    fn apply(&mut self, run: RunId, frame: &HostFrame) -> Option<(Option<SessionId>, u32)> {
        let host = self.runs.get_mut(&run)?;
        match &frame.event {
            HostEvent::Claim(claim) => {
                if claim.state == State::Running && host.claim.as_ref().is_none_or(|c| c.state != State::Running) {
                    host.running_at = frame.at;
                }
                host.claim = Some(claim.clone());
            }
            HostEvent::Withdrawn => host.claim = None,
            HostEvent::Exited { .. } => {
                host.claim = None;
                host.exited = true;
            }
            HostEvent::Notification { .. }
            | HostEvent::Bell
            | HostEvent::Answered { .. }
            | HostEvent::Prompt { .. }
            | HostEvent::Text { .. }
            | HostEvent::Alive
            | HostEvent::ModeGranted { .. }
            | HostEvent::CallDecided(_)
            | HostEvent::ReadsAllowed { .. }
            | HostEvent::Gap { .. }
            | HostEvent::Unknown => {}
        }
        Some((host.session, host.hello.pid))
    }

    /// Records how the program of a session's run ended while another process runs the session: a daemon, or a process
    /// that the program started and that ends with it.
    fn end_before(&mut self, session: SessionId, how: Reason, at: Timestamp) {
        self.failed.retain(|_, (_, before)| at.since_ms(*before) < ENDS_TOGETHER_MS);
        if how != Reason::Clean {
            self.failed.insert(session, (how, at));
        }
    }

    /// Why the session's run failed, if it failed shortly before the session's own process ended.
    pub(super) fn failed_with(&mut self, session: SessionId, now: Timestamp) -> Option<Reason> {
        self.failed.remove(&session).filter(|(_, at)| now.since_ms(*at) < ENDS_TOGETHER_MS).map(|(how, _)| how)
    }

    /// After a rollback: forgets the runs' sessions, which are then looked up again.
    pub(super) fn forget_sessions(&mut self) {
        self.runs.values_mut().for_each(|host| host.session = None);
    }

    /// The runs whose session was forgotten and not found again.
    fn without_session(&self) -> Vec<(RunId, Provider)> {
        let lost = self.runs.iter().filter(|(_, host)| host.session.is_none() && !host.exited);
        lost.map(|(run, host)| (*run, host.hello.provider)).collect()
    }

    /// The run that started a process.
    fn of_process(&self, pid: u32) -> Option<RunId> {
        self.runs.iter().find(|(_, host)| host.hello.pid == pid).map(|(run, _)| *run)
    }

    /// Matches runs whose agent works in another process (a daemon) to sessions by place and time: same directory,
    /// begun or continued since the run started, and if several runs match, the one whose screen began to show work
    /// when the prompt was submitted.
    fn by_place(&self, sessions: &Sessions) -> Vec<(RunId, usize)> {
        let name_of = |id| Some(Arc::clone(&sessions.known(sessions.find(id)?).provider_session_id));
        let waiting: Vec<(&RunId, &Host)> = self
            .runs
            .iter()
            .filter(|(_, host)| !host.exited && is_awaited(host.session.and_then(name_of).as_deref()))
            .collect();
        let mut links = Vec::new();
        for (slot, state) in sessions.all_loaded() {
            let session = &state.session;
            if session.run_id.is_some()
                || session.parent_session_id.is_some()
                || session.merged_into.is_some()
                || session.status.state == State::Exited
                || is_awaited(session.provider_session_id.as_deref())
            {
                continue;
            }
            let prompted = session.last_user_prompt_at.unwrap_or(session.last_event_at);
            let fits = |(_, Host { hello, .. }): &&(&RunId, &Host)| {
                hello.provider == session.provider
                    && session.cwd.as_deref() == Some(&hello.cwd)
                    && prompted.plus_ms(BEFORE_MS) >= hello.started_at
            };
            let mut fitting: Vec<_> = waiting.iter().filter(fits).collect();
            if fitting.len() > 1 {
                fitting.retain(|(_, host)| host.running_at.since_ms(prompted).abs() <= TOGETHER_MS);
            }
            if let [(run, _)] = fitting.as_slice() {
                links.push((**run, slot, prompted));
            }
        }
        // If several sessions match one run, the one prompted last wins.
        links.sort_by_key(|(run, _, prompted)| (*run, std::cmp::Reverse(*prompted)));
        links.dedup_by_key(|(run, ..)| *run);
        links.into_iter().map(|(run, slot, _)| (run, slot)).collect()
    }
}

impl Ingest {
    pub(super) fn apply_host(&mut self, input: &HostInput) -> Result<(), TransactionFailure> {
        match input {
            HostInput::Hello(hello) => self.apply_hello(hello),
            HostInput::Frame { run, frame, .. } => self.apply_frame(*run, frame),
            HostInput::Lost(run) => {
                if let Some(host) = self.hosts.runs.remove(run)
                    && let (Some(session), Some(_)) = (host.session, &host.claim)
                {
                    let why = if host.is_session() { LINK_GONE } else { "the terminal host of its run is gone" };
                    self.withdraw_claim(session, host.source(), why)?;
                }
                Ok(())
            }
        }
    }

    fn apply_hello(&mut self, hello: &Hello) -> Result<(), TransactionFailure> {
        let session = self.hosts.connect(hello);
        if let Some(named) = &hello.session {
            return self.seat_named(hello, named);
        }
        let seated = session.is_some_and(|id| self.sessions.find(id).is_some());
        if !seated {
            self.seat(hello.run, hello.provider)?;
        }
        match self.hosts.awaited.remove(&hello.run).and_then(|id| self.sessions.find(id)) {
            Some(slot) => self.link_host_by_environment(slot, hello.run),
            None => Ok(()),
        }
    }

    /// Finds the session a run hosts, or creates one named after the run.
    fn seat(&mut self, run: RunId, provider: Provider) -> Result<(), TransactionFailure> {
        let Some(hello) = self.hosts.runs.get(&run).map(|host| host.hello.clone()) else { return Ok(()) };
        if let Some(named) = &hello.session {
            return self.seat_named(&hello, named);
        }
        let process = (hello.pid, hello.start_ticks);
        let known = self.sessions.all_loaded().filter(|(_, s)| {
            s.session.provider == provider
                && s.session.merged_into.is_none()
                && s.session.parent_session_id.is_none()
                && s.session.status.state != State::Exited
        });
        let known = known.filter(|(_, s)| s.process() == Some(process) || s.session.run_id == Some(run));
        // A session named by the agent takes precedence over one named after the run or the process.
        let known =
            known.max_by_key(|(_, s)| (!is_awaited(s.session.provider_session_id.as_deref()), s.session.last_event_at));
        if let Some((slot, _)) = known {
            return self.host_session(run, slot);
        }
        let now = (self.clock)();
        if let Some(slot) = self.taken_up(&hello, provider)? {
            self.note_process(slot, &hello, format!("process {} resumes the session", hello.pid))?;
            return self.host_session(run, slot);
        }
        let id: Arc<str> = Arc::from(format!("{AWAITED_RUN}{run}"));
        let fresh = self.sessions.find_by_provider(provider, &id).is_none();
        let slot = self.resolve(provider, &id, hello.started_at.min(now))?;
        if fresh {
            self.turn_off_if_ignored(slot, &hello.cwd)?;
        }
        if !self.sessions.known(slot).capture {
            return Ok(());
        }
        if fresh {
            let started = SessionStarted {
                cwd: Some(hello.cwd.clone()),
                cli_version: hello.version.clone(),
                ..SessionStarted::default()
            };
            self.inject(slot, Source::Process, now, "run", started.into())?;
            let title = Annotation {
                topic: Topic::Title,
                value: hello.name.clone().unwrap_or_else(|| hello.command.join(" ")),
            };
            self.inject(slot, Source::Process, now, "run-title", title.into())?;
            self.note_process(slot, &hello, format!("process {} of run {run}", hello.pid))?;
            if provider == Provider::Unknown {
                let claim = Claim::State { state: State::Unknown, reason: Some(Reason::NoEvidence) };
                let words = Some("runs a program that is not a known agent".into());
                let signal = Signal::new(claim, Confidence::Low, words);
                self.inject(slot, Source::Pty, now, "run-alive", signal.into())?;
            }
        }
        self.host_session(run, slot)
    }

    /// Records that the program of a run is the process of this session.
    fn note_process(&mut self, slot: usize, hello: &Hello, words: String) -> Result<(), TransactionFailure> {
        let claim = Claim::ProcessAlive { pid: hello.pid, start_ticks: hello.start_ticks };
        let signal = Signal::new(claim, Confidence::High, Some(words));
        self.inject(slot, Source::Process, (self.clock)(), "run-process", signal.into())
    }

    /// The session that a run's command line resumes, unless another process runs it.
    fn taken_up(&mut self, hello: &Hello, provider: Provider) -> Result<Option<usize>, TransactionFailure> {
        let named = agents::Agent::of(provider).and_then(|agent| agent.resumed(&hello.command));
        let Some(slot) = named.and_then(|id| self.sessions.find_by_provider(provider, &Arc::from(id))) else {
            return Ok(None);
        };
        let state = self.state(slot)?;
        // Agents find a session only in the directory where it began.
        let is_here = state.session.cwd.as_deref().is_none_or(|cwd| cwd == hello.cwd);
        let is_free = state.process().is_none() && state.session.merged_into.is_none() && is_here;
        Ok(Some(slot).filter(|slot| is_free && self.sessions.known(*slot).capture))
    }

    /// Finds sessions again for the hosts whose session was forgotten.
    pub(super) fn seat_hosts(&mut self) -> Result<(), TransactionFailure> {
        for (run, provider) in self.hosts.without_session() {
            self.seat(run, provider)?;
        }
        Ok(())
    }

    /// Makes the run host this session.
    fn host_session(&mut self, run: RunId, slot: usize) -> Result<(), TransactionFailure> {
        let known = self.sessions.known(slot).clone();
        let Some(host) = self.hosts.runs.get_mut(&run) else { return Ok(()) };
        let before = host.session.replace(known.id);
        if before == Some(known.id) {
            return Ok(());
        }
        let (claim, source) = (host.claim.clone(), host.source());
        let words = host.hello.command.iter().skip(1).map(String::as_str);
        let headless = agents::Agent::of(host.hello.provider).map(|agent| agent.is_headless(words));
        let process = (host.hello.pid, host.hello.start_ticks);
        let claim = claim.filter(|claim| !self.is_moot_claim(run, slot, claim));
        let now = (self.clock)();
        if self.state(slot)?.session.run_id != Some(run) {
            let named = Annotation { topic: Topic::Run, value: run.to_string() };
            self.inject(slot, Source::Process, now, "run-id", named.into())?;
        }
        if let Some(headless) = headless
            && self.state(slot)?.process().is_none_or(|known| known == process)
        {
            self.note_headless(slot, headless, now)?;
        }
        if let Some(claim) = &claim {
            self.inject(slot, source, now, "run-claim", signal_of(claim).into())?;
        }
        self.publisher.onlooker.will_host(run, known.id);
        let merged = match before.and_then(|id| self.sessions.find(id)) {
            Some(before) => self.leave_session(before, &known, claim.is_some().then_some(source), now)?,
            None => None,
        };
        let hosted = HostedSession { run, session: known.id, merged };
        if let Some(hosted) = self.transaction.put_hosted(hosted) {
            self.publisher.onlooker.hosts(hosted);
        }
        Ok(())
    }

    /// A run now hosts another session than `before`. Returns the previous session if it was merged into the new one.
    fn leave_session(
        &mut self,
        before: usize,
        hosted: &KnownSession,
        claimed_by: Option<Source>,
        now: Timestamp,
    ) -> Result<Option<SessionId>, TransactionFailure> {
        let left = self.sessions.known(before).clone();
        if left.provider == hosted.provider && is_awaited(Some(&left.provider_session_id)) {
            let note = Annotation { topic: Topic::MergedInto, value: hosted.id.to_string() };
            self.inject(before, Source::Runtime, now, "merged", note.into())?;
            return Ok(Some(left.id));
        }
        if let Some(source) = claimed_by {
            self.withdraw_claim(left.id, source, "its run switched to another session")?;
        }
        Ok(None)
    }

    /// Whether a claim only describes the output of an unknown program, which says nothing about the agent behind it.
    fn is_moot_claim(&self, run: RunId, slot: usize, claim: &ScreenClaim) -> bool {
        claim.reason == Some(Reason::NoEvidence)
            && self.sessions.known(slot).provider != Provider::Unknown
            && self.hosts.runs.get(&run).is_some_and(|host| host.hello.provider == Provider::Unknown)
    }

    fn withdraw_claim(&mut self, session: SessionId, source: Source, why: &str) -> Result<(), TransactionFailure> {
        let Some(slot) = self.sessions.find(session) else { return Ok(()) };
        self.inject(slot, source, (self.clock)(), "screen-gone", withdrawn(why).into())
    }

    fn apply_frame(&mut self, run: RunId, frame: &HostFrame) -> Result<(), TransactionFailure> {
        if matches!(frame.event, HostEvent::Exited { .. }) {
            self.link_before_end(run)?;
        }
        let Some((session, pid)) = self.hosts.apply(run, frame) else { return Ok(()) };
        let Some(slot) = session.and_then(|id| self.sessions.find(id)) else { return Ok(()) };
        let annotation = |topic, value: &str| Some(Annotation { topic, value: value.to_owned() }.into());
        let host = self.hosts.runs.get(&run);
        let (claims_by, is_session) = host.map_or((Source::Pty, false), |host| (host.source(), host.is_session()));
        if is_session && self.apply_decision_frame(slot, run, frame)? {
            return Ok(());
        }
        let (source, payload): (Source, Option<Payload>) = match &frame.event {
            HostEvent::Claim(claim) if self.is_moot_claim(run, slot, claim) => (Source::Pty, None),
            HostEvent::Claim(claim) => (claims_by, Some(signal_of(claim).into())),
            HostEvent::Withdrawn if is_session => (claims_by, Some(withdrawn(LINK_GONE).into())),
            HostEvent::Withdrawn => (Source::Pty, Some(withdrawn("the screen no longer shows a known state").into())),
            HostEvent::Notification { text } => (Source::Pty, annotation(Topic::Notice, text)),
            HostEvent::Answered { meaning } => (Source::Input, annotation(Topic::Input, meaning)),
            HostEvent::Gap { frames } => {
                (Source::Pty, annotation(Topic::Notice, &format!("{frames} messages from the terminal host were lost")))
            }
            HostEvent::Exited { code, signal } => {
                let runs_it = self.state(slot)?.process().is_none_or(|(known, _)| known == pid);
                let how = match (code, signal) {
                    (_, Some(_)) => Reason::Killed,
                    (Some(0) | None, None) => Reason::Clean,
                    (Some(_), None) => Reason::Failed,
                };
                if runs_it {
                    (Source::Process, Some(SessionExited { reason: Some(how), code: *code }.into()))
                } else {
                    // Another process runs the session: a daemon continues with it, other processes end shortly.
                    self.hosts.end_before(self.sessions.known(slot).id, how, frame.at);
                    (Source::Pty, Some(withdrawn("its terminal is gone").into()))
                }
            }
            HostEvent::Prompt { .. } => (Source::Pty, Some(UserPrompt::default().into())),
            HostEvent::Text { .. } => (Source::Pty, annotation(Topic::Screen, "text that became visible")),
            HostEvent::Alive => (Source::Pty, Some(Heartbeat {}.into())),
            HostEvent::Bell
            | HostEvent::Unknown
            | HostEvent::ModeGranted { .. }
            | HostEvent::CallDecided(_)
            | HostEvent::ReadsAllowed { .. } => (Source::Pty, None),
        };
        let Some(payload) = payload else { return Ok(()) };
        self.deliver(slot, run, frame, source, payload)
    }

    /// Adds a host's report to the log, once.
    fn deliver(
        &mut self,
        slot: usize,
        run: RunId,
        frame: &HostFrame,
        source: Source,
        payload: Payload,
    ) -> Result<(), TransactionFailure> {
        let known = self.sessions.known(slot).clone();
        if !known.capture {
            return Ok(());
        }
        let identity = identity_of(run, frame);
        if !self.transaction.writer.learn(identity, known.row)? {
            return Ok(());
        }
        if let HostEvent::Text { text } = &frame.event
            && !self.redacted_only
        {
            let (session, provider, text) = (known.id, known.provider, text.clone());
            let delta = Delta { session, provider, source: Source::Pty, text, joined: 0 };
            self.publisher.live_view.offer_delta(delta);
        }
        let now = (self.clock)();
        // Conversation text read off the screen has low confidence.
        let (confidence, text) = match &frame.event {
            HostEvent::Prompt { text } | HostEvent::Text { text } => (Confidence::Low, Some(text.clone())),
            HostEvent::Alive => (Confidence::Low, None),
            HostEvent::Claim(_)
            | HostEvent::Withdrawn
            | HostEvent::Notification { .. }
            | HostEvent::Bell
            | HostEvent::Answered { .. }
            | HostEvent::Exited { .. }
            | HostEvent::ModeGranted { .. }
            | HostEvent::CallDecided(_)
            | HostEvent::ReadsAllowed { .. }
            | HostEvent::Gap { .. }
            | HostEvent::Unknown => (Confidence::High, None),
        };
        let new = NewEvent {
            provider: known.provider,
            provider_session_id: Arc::clone(&known.provider_session_id),
            identity,
            repeat: Repeat::Unique,
            source,
            created_at: Some(frame.at),
            observed_at: now,
            parent: None,
            agent_id: None,
            confidence,
            severity: None,
            text,
            payload,
            origin: Origin::Delivery { id: Arc::from(format!("{run}/{}", frame.n)) },
        };
        self.add(slot, &new, now.since_ms(frame.at) > LATE_MS)
    }

    /// A session's process became known: if a run started that process, the run hosts the session.
    pub(super) fn link_host(&mut self, slot: usize, pid: u32) -> Result<(), TransactionFailure> {
        if self.hosts.runs.is_empty()
            || self.sessions.loaded(slot).is_some_and(|s| s.session.parent_session_id.is_some())
        {
            return Ok(());
        }
        if is_awaited(Some(&self.sessions.known(slot).provider_session_id)) {
            return Ok(());
        }
        let run = self.hosts.of_process(pid);
        let run = run.or_else(|| self.processes.run_of(pid)).filter(|run| self.hosts.runs.contains_key(run));
        match run {
            Some(run) => self.host_session(run, slot),
            None => Ok(()),
        }
    }

    /// A hook was called inside a run by a program that is not a known agent, such as a wrapper script: the run hosts
    /// the session, unless it already hosts one that an agent named.
    pub(super) fn link_host_by_environment(&mut self, slot: usize, run: RunId) -> Result<(), TransactionFailure> {
        let Some(host) = self.hosts.runs.get(&run) else {
            // The run's host has not connected yet.
            if self.hosts.awaited.len() >= AWAITED {
                self.hosts.awaited.clear();
            }
            self.hosts.awaited.insert(run, self.sessions.known(slot).id);
            return Ok(());
        };
        if host.exited {
            return Ok(());
        }
        let hosted = host.session.and_then(|id| self.sessions.find(id));
        let named = hosted.is_some_and(|slot| !is_awaited(Some(&self.sessions.known(slot).provider_session_id)));
        let state = self.state(slot)?;
        if named || state.process().is_some() || state.session.parent_session_id.is_some() {
            return Ok(());
        }
        self.host_session(run, slot)
    }

    /// The agent of a run works through a daemon: the run hosts the daemon's session, unless it already hosts one that
    /// an agent named.
    pub(super) fn host_served(&mut self, run: RunId, slot: usize) -> Result<(), TransactionFailure> {
        let Some(host) = self.hosts.runs.get(&run).filter(|host| !host.exited) else { return Ok(()) };
        let hosted = host.session.and_then(|id| self.sessions.find(id));
        let is_named = |slot| !is_awaited(Some(&self.sessions.known(slot).provider_session_id));
        if hosted.is_some_and(is_named) { Ok(()) } else { self.host_session(run, slot) }
    }

    /// Handles an agent inside a run that has not named a session yet. Returns whether the agent is inside a connected
    /// run.
    pub(super) fn seat_agent(&mut self, agent: &AgentProcess) -> Result<bool, TransactionFailure> {
        let Some((run, host)) = agent.run.and_then(|run| self.hosts.runs.get(&run).map(|host| (run, host))) else {
            return Ok(false);
        };
        let seated = host.session.and_then(|id| self.sessions.find(id)).map(|slot| self.sessions.known(slot).provider);
        if seated != Some(agent.provider) && !host.exited {
            self.seat(run, agent.provider)?;
        }
        Ok(true)
    }

    /// A short run may end before its session was matched: links it to a session that no other process runs.
    fn link_before_end(&mut self, run: RunId) -> Result<(), TransactionFailure> {
        let process = self.hosts.runs.get(&run).map(|host| (host.hello.pid, host.hello.start_ticks));
        let found = self.hosts.by_place(&self.sessions).into_iter().find(|(of, _)| *of == run);
        if let Some((_, slot)) = found
            && self.state(slot)?.process().is_none_or(|known| Some(known) == process)
        {
            self.host_session(run, slot)?;
        }
        Ok(())
    }

    /// Matches runs whose agent works in another process to their sessions.
    pub(super) fn link_hosts_by_place(&mut self) -> Result<(), TransactionFailure> {
        for (run, slot) in self.hosts.by_place(&self.sessions) {
            self.host_session(run, slot)?;
        }
        Ok(())
    }
}

/// Whether a session is named after its run or process because the agent has not named it yet.
pub(super) fn is_awaited(name: Option<&str>) -> bool {
    name.is_some_and(|name| name.starts_with(AWAITED_RUN) || name.starts_with(super::link::AWAITED))
}

/// Identity of a frame, the same for each delivery.
fn identity_of(run: RunId, frame: &HostFrame) -> Identity {
    Identity::of(Provider::Capture, "host", &[&run.to_bytes(), &frame.n.to_le_bytes()])
}

fn withdrawn(words: &str) -> Signal {
    Signal::new(Claim::Withdrawn, Confidence::Medium, Some(words.to_owned()))
}

fn signal_of(claim: &ScreenClaim) -> Signal {
    Signal {
        claim: Claim::State { state: claim.state, reason: claim.reason },
        strength: claim.strength,
        valid_until: None,
        words: Some(claim.words.clone()),
        dialog: claim.dialog.clone(),
        key: None,
        holds_from: None,
    }
}
