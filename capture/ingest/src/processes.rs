//! Applies process table changes: which process runs which session, and the ends of processes.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
    sync::Arc,
};

use events::{
    Annotation, ApprovalKind, Claim, Confidence, Dialog, Payload, Provider, Reason, SessionExited, SessionId,
    SessionStarted, Signal, Source, State, Timestamp, Topic,
};
use processes::{AgentProcess, EndedProcess};

use super::{
    Ingest, TransactionFailure, WatchedAction, WatchedRequest,
    hosts::{BEFORE_MS, is_awaited},
    link::{AWAITED, has_open, is_recent, link},
};

/// How long the start of a command counts as evidence, ms: until the request it answers is closed.
const COMMAND_HOLDS_MS: i64 = 2_000;
/// How long a request waits for a running hook of the user, ms; the hook is reported again before that.
const DECIDES_MS: i64 = 6_000;
/// How long after the end of such a hook a dialog may open, ms.
const DECIDED_MS: i64 = 500;

/// Running agents without a session. An agent gets its own session after two consecutive scans without one.
#[derive(Debug, Default)]
pub(super) struct Unclaimed {
    /// Process ids and start ticks, from this scan and the previous one.
    now: Vec<(u32, u64)>,
    before: Vec<(u32, u64)>,
    /// Agents of the last scan that were started by an agent of the same kind.
    children: Vec<AgentProcess>,
}

impl Unclaimed {
    fn begin_look(&mut self) {
        self.before = std::mem::take(&mut self.now);
    }

    /// Records that an agent has no session; returns whether the previous scan found the same.
    fn is_seen_again(&mut self, process: (u32, u64)) -> bool {
        self.now.push(process);
        self.before.contains(&process)
    }
}

/// Longest time between the start of a launcher and of the agent it launches, clock ticks.
const STARTED_TICKS: u64 = 1_000;

/// Whether a daemon runs the session.
fn is_served(state: &projections::SessionState, agents: &[AgentProcess]) -> bool {
    agents.iter().any(|agent| agent.shared && state.process() == Some((agent.pid, agent.start_ticks)))
}

/// The only pending request, if the agent's hook reported it and another hook may answer it before a dialog opens.
fn hook_request(state: &projections::SessionState) -> Option<&projections::Approval> {
    let hooks = agents::Agent::of(state.session.provider)?.hooks.as_ref()?;
    let request = state.only_request().filter(|_| !hooks.answers.dialog_meanwhile)?;
    (request.source == Source::Hook && request.agent_id.is_none()).then_some(request)
}

impl Ingest {
    /// Applies the end of a process: every session it ran ends too.
    pub(super) fn apply_end(&mut self, ended: EndedProcess) -> Result<(), TransactionFailure> {
        let now = (self.clock)();
        let mut slots: Vec<usize> = self
            .sessions
            .all_loaded()
            .filter(|(_, s)| s.process() == Some((ended.pid, ended.start_ticks)))
            .map(|(slot, _)| slot)
            .collect();
        // Sub-agents run in their parent's process and end with it.
        let ids: Vec<SessionId> = slots.iter().map(|slot| self.sessions.known(*slot).id).collect();
        let helpers = self.sessions.all_loaded().filter(|(_, s)| {
            s.session.status.state != State::Exited && s.session.parent_session_id.is_some_and(|id| ids.contains(&id))
        });
        let helpers: Vec<usize> = helpers.map(|(slot, _)| slot).filter(|slot| !slots.contains(slot)).collect();
        slots.extend(helpers);
        for slot in slots {
            if self.goes_on(slot, ended, now)? {
                continue;
            }
            let gone: Payload = match self.hosts.failed_with(self.sessions.known(slot).id, now) {
                Some(how) => SessionExited { reason: Some(how), code: None }.into(),
                None => Signal::new(
                    Claim::ProcessGone { pid: ended.pid, clean: false },
                    Confidence::High,
                    Some(format!("process {} ended", ended.pid)),
                )
                .into(),
            };
            self.inject(slot, Source::Process, now, "ended", gone)?;
        }
        Ok(())
    }

    /// Handles the end of a launcher whose agent continues: Gemini CLI restarts itself with more memory, and only the
    /// directory links the session to one of the two processes. Returns whether this is the case.
    fn goes_on(&mut self, slot: usize, ended: EndedProcess, now: Timestamp) -> Result<bool, TransactionFailure> {
        let Some(state) = self.sessions.loaded(slot) else { return Ok(false) };
        let session = &state.session;
        let proper = self.unclaimed.children.iter().find(|child| {
            child.parent == Some(ended.pid)
                && child.provider == session.provider
                && child.cwd.to_str() == session.cwd.as_deref()
                && child.start_ticks.saturating_sub(ended.start_ticks) < STARTED_TICKS
                && self.processes.is_alive(child.pid, child.start_ticks)
        });
        let Some((pid, start_ticks)) = proper.map(|child| (child.pid, child.start_ticks)) else { return Ok(false) };
        let has_own = |state: &projections::SessionState| state.process() == Some((pid, start_ticks));
        if state.is_claimed_by(Source::Registry) || self.sessions.all_loaded().any(|(_, other)| has_own(other)) {
            return Ok(false);
        }
        let words = Some(format!("process {pid}, which process {} started, is still running", ended.pid));
        let claim = Claim::ProcessAlive { pid, start_ticks };
        self.inject(slot, Source::Process, now, "goes-on", Signal::new(claim, Confidence::Medium, words).into())?;
        Ok(true)
    }

    /// Watches the processes below the agent while the session waits for permission.
    pub(super) fn watch_request(&mut self, slot: usize) {
        let Some(state) = self.sessions.loaded(slot) else { return };
        let asks_for = match (state.pending_command(), hook_request(state)) {
            (Some(command), _) => Some(WatchedAction::Command(command.command.clone())),
            (None, Some(_)) => Some(WatchedAction::Other),
            (None, None) => None,
        };
        let request = state.process().zip(asks_for).map(|(agent, asks_for)| WatchedRequest { agent, asks_for });
        self.processes.watch_request(self.sessions.known(slot).id, request);
    }

    /// An agent that waited for permission runs a command: the user allowed it in the agent's own dialog. With several
    /// requests it is unknown which one was allowed.
    pub(super) fn apply_command(&mut self, agent: EndedProcess) -> Result<(), TransactionFailure> {
        let Some(slot) = self.asking_session(agent) else { return Ok(()) };
        if self.state(slot)?.pending_command().is_none() {
            return Ok(());
        }
        let now = (self.clock)();
        let claim = Claim::State { state: State::Running, reason: Some(Reason::Tool) };
        let words = format!("process {} runs a command that it started after its request", agent.pid);
        let signal = Signal {
            valid_until: Some(now.plus_ms(COMMAND_HOLDS_MS)),
            ..Signal::new(claim, Confidence::Medium, Some(words))
        };
        self.inject(slot, Source::Process, now, "command", signal.into())
    }

    /// A hook of the user may decide the pending request: no dialog is open while the hook runs.
    pub(super) fn apply_deciding_hook(&mut self, agent: EndedProcess, runs: bool) -> Result<(), TransactionFailure> {
        let Some(slot) = self.asking_session(agent) else { return Ok(()) };
        let now = (self.clock)();
        let Some(request) = hook_request(self.state(slot)?) else { return Ok(()) };
        let about = request.kind.unwrap_or(ApprovalKind::Command);
        let dialog = Dialog { about: Some(about), subject: request.subject.clone(), ..Dialog::default() };
        let claim = Claim::State { state: State::WaitingApproval, reason: Some(about.reason()) };
        let words = if runs { "your own hook is deciding about the request" } else { "your own hook has ended" };
        let signal = Signal {
            holds_from: Some(now.plus_ms(if runs { DECIDES_MS } else { DECIDED_MS })),
            key: request.key.clone(),
            dialog: Some(Box::new(dialog)),
            ..Signal::new(claim, Confidence::High, Some(words.into()))
        };
        self.inject(slot, Source::Hook, now, "decides", signal.into())
    }

    /// The session of an agent's process that waits for permission, if there is exactly one.
    fn asking_session(&self, agent: EndedProcess) -> Option<usize> {
        let runs = |state: &projections::SessionState| state.process() == Some((agent.pid, agent.start_ticks));
        let asks = |state: &projections::SessionState| runs(state) && !state.session.pending_approvals.is_empty();
        let mut asking = self.sessions.all_loaded().filter(|(_, state)| asks(state)).map(|(slot, _)| slot);
        asking.next().filter(|_| asking.next().is_none())
    }

    /// Applies the list of running agents: finds the sessions they run.
    pub(super) fn apply_agents(&mut self, agents: &[AgentProcess]) -> Result<(), TransactionFailure> {
        let now = (self.clock)();
        self.load_sessions_of(agents, now)?;
        let links = link(self.sessions.all_loaded(), agents, now);
        for found in links {
            let (pid, start_ticks) = (found.process.pid, found.process.start_ticks);
            for slot in found.left {
                let words = Some(format!("process {pid} switched to another session"));
                let signal = Signal::new(Claim::ProcessGone { pid, clean: true }, Confidence::Medium, words);
                self.inject(slot, Source::Process, now, "left", signal.into())?;
            }
            let words = Some(match found.strength {
                Confidence::High => format!("process {pid} has its transcript open"),
                Confidence::Medium | Confidence::Low => format!("process {pid} runs in its directory"),
            });
            // The session was linked by directory without knowing its own.
            if found.strength == Confidence::Medium && self.state(found.slot)?.session.cwd.is_none() {
                let value = found.process.cwd.to_string_lossy().into_owned();
                let place = Annotation { topic: Topic::Cwd, value };
                self.inject(found.slot, Source::Process, now, "place", place.into())?;
            }
            if found.strength == Confidence::High {
                self.note_headless(found.slot, found.process.headless, now)?;
            }
            let claim = Claim::ProcessAlive { pid, start_ticks };
            self.inject(found.slot, Source::Process, now, "linked", Signal::new(claim, found.strength, words).into())?;
        }
        self.merge_wrappers(agents)?;
        self.await_sessions(agents, now)?;
        self.find_unattended(agents, now)?;
        self.link_hosts_by_place()
    }

    /// Records whether the session is headless, according to the command line of its process. For agents whose files
    /// contain this, only until such a file exists.
    pub(super) fn note_headless(
        &mut self,
        slot: usize,
        headless: bool,
        now: Timestamp,
    ) -> Result<(), TransactionFailure> {
        let session = &self.state(slot)?.session;
        let told_by_files = agents::Agent::of(session.provider).is_none_or(|agent| agent.tells_headless)
            && !super::hosts::is_awaited(session.provider_session_id.as_deref());
        if session.headless == headless || told_by_files {
            return Ok(());
        }
        let told = SessionStarted { headless: Some(headless), ..SessionStarted::default() };
        self.inject(slot, Source::Process, now, "headless", told.into())
    }

    /// Loads sessions that these agents may run and that are not in memory because they rest and had no known process:
    /// sessions whose transcripts are open, and for an agent without a session, those of its directory.
    fn load_sessions_of(&mut self, agents: &[AgentProcess], now: Timestamp) -> Result<(), TransactionFailure> {
        for agent in agents {
            let files = agent.open_files.iter().filter_map(|file| file.to_str());
            for file in files.filter(|file| transcripts::is_transcript(agent.provider, file)) {
                let Some(id) = self.transaction.writer.session_of_file(file)? else { continue };
                if let Some(slot) = self.sessions.find_by_provider(agent.provider, &Arc::from(id)) {
                    self.state(slot)?;
                }
            }
            let name = (agent.pid, agent.start_ticks);
            if agent.shared || agent.child || self.sessions.all_loaded().any(|(_, s)| s.process() == Some(name)) {
                continue;
            }
            let rows = self.publisher.live_view.newest_in(agent.provider, &agent.cwd.to_string_lossy());
            for (id, last_event_at) in rows {
                if is_recent(last_event_at, agent, now)
                    && let Some(slot) = self.sessions.find(id)
                {
                    self.state(slot)?;
                }
            }
        }
        Ok(())
    }

    /// A launcher, such as npm's entry point of Codex, has no session of its own: a session assigned to it before it
    /// was recognized belongs to the agent it started.
    fn merge_wrappers(&mut self, agents: &[AgentProcess]) -> Result<(), TransactionFailure> {
        for agent in agents.iter().filter(|agent| agent.child) {
            let runs =
                |(_, s): &(usize, &projections::SessionState)| s.process() == Some((agent.pid, agent.start_ticks));
            let slot = self.sessions.all_loaded().find(runs).map(|(slot, _)| slot);
            let wrapper = agents.iter().find(|a| Some(a.pid) == agent.parent && a.provider == agent.provider);
            if let (Some(slot), Some(wrapper)) = (slot, wrapper) {
                self.merge_awaited(slot, wrapper.pid, wrapper.start_ticks)?;
            }
        }
        Ok(())
    }

    /// Creates sessions for running agents that have written nothing yet: they wait for their first prompt, or show a
    /// dialog that precedes it. Such a session is named after the process until the agent names it.
    fn await_sessions(&mut self, agents: &[AgentProcess], now: Timestamp) -> Result<(), TransactionFailure> {
        self.unclaimed.begin_look();
        self.unclaimed.children = agents.iter().filter(|agent| agent.child).cloned().collect();
        let mut joined = HashSet::new();
        for agent in agents.iter().filter(|a| !a.child) {
            // The agent has a session that is not captured, so it must not count as an agent without one.
            if self.ignored.holds(&agent.cwd) {
                continue;
            }
            let name = (agent.pid, agent.start_ticks);
            let started = |a: &&AgentProcess| a.child && a.parent == Some(agent.pid) && a.provider == agent.provider;
            let family: Vec<&AgentProcess> = std::iter::once(agent).chain(agents.iter().filter(started)).collect();
            let runs = |state: &projections::SessionState| {
                family.iter().any(|a| state.process() == Some((a.pid, a.start_ticks)))
            };
            let own = || self.sessions.all_loaded().filter(|(_, state)| runs(state));
            let has_session = own().next().is_some();
            let is_named = |slot| !is_awaited(Some(&self.sessions.known(slot).provider_session_id));
            if !agent.shared && own().any(|(slot, _)| is_named(slot)) {
                continue;
            }
            let again = self.unclaimed.is_seen_again(name);
            if again && self.take_up(&family, now)? || agent.shared {
                continue;
            }
            if self.join_daemon(agent, agents, &mut joined, now)? || has_session || self.seat_agent(agent)? || !again {
                continue;
            }
            let id: Arc<str> = Arc::from(format!("{AWAITED}{}-{}", agent.pid, agent.start_ticks));
            let slot = self.resolve(agent.provider, &id, now)?;
            let started =
                SessionStarted { cwd: Some(agent.cwd.to_string_lossy().into_owned()), ..SessionStarted::default() };
            self.inject(slot, Source::Process, now, "awaited", started.into())?;
            let claim = Claim::ProcessAlive { pid: agent.pid, start_ticks: agent.start_ticks };
            let words = Some(format!("process {} is running and has written nothing yet", agent.pid));
            self.inject(
                slot,
                Source::Process,
                now,
                "awaited-process",
                Signal::new(claim, Confidence::Medium, words).into(),
            )?;
        }
        Ok(())
    }

    /// Links an agent that resumed an ended session and has not written to it yet: the agent, or a process it started,
    /// has the transcript open. Returns whether one was found.
    fn take_up(&mut self, family: &[&AgentProcess], now: Timestamp) -> Result<bool, TransactionFailure> {
        let taken_up = family.iter().find_map(|process| {
            let is_it = |(_, state): &(usize, &projections::SessionState)| {
                let session = &state.session;
                let is_free = session.parent_session_id.is_none() && state.process().is_none();
                session.provider == process.provider && is_free && has_open(state, process)
            };
            self.sessions.all_loaded().find(is_it).map(|(slot, _)| (slot, *process))
        });
        let Some((slot, process)) = taken_up else { return Ok(false) };
        let claim = Claim::ProcessAlive { pid: process.pid, start_ticks: process.start_ticks };
        let words = Some(format!("process {} has its transcript open", process.pid));
        self.inject(slot, Source::Process, now, "taken-up", Signal::new(claim, Confidence::High, words).into())?;
        for process in family {
            self.merge_awaited(slot, process.pid, process.start_ticks)?;
        }
        Ok(true)
    }

    /// Links an agent that works through a daemon to one of the daemon's sessions: a session in the agent's directory
    /// that was prompted since the agent began, or that the agent was started to resume, and that no other agent
    /// `joined`. Returns whether one was found.
    fn join_daemon(
        &mut self,
        agent: &AgentProcess,
        agents: &[AgentProcess],
        joined: &mut HashSet<usize>,
        now: Timestamp,
    ) -> Result<bool, TransactionFailure> {
        let began = now.plus_ms(-agent.age_ms);
        let fitting = self.sessions.all_loaded().filter(|(slot, state)| {
            let session = &state.session;
            let prompted = session.last_user_prompt_at.unwrap_or(session.last_event_at);
            !joined.contains(slot)
                && is_served(state, agents)
                && session.provider == agent.provider
                && session.parent_session_id.is_none()
                && agent.cwd.to_str() == session.cwd.as_deref()
                && (agent.resumes || prompted.plus_ms(BEFORE_MS) >= began)
        });
        let newest = fitting.max_by_key(|(_, state)| state.session.last_event_at);
        let Some((slot, _)) = newest else { return Ok(false) };
        joined.insert(slot);
        self.merge_awaited(slot, agent.pid, agent.start_ticks)?;
        if let Some(run) = agent.run {
            self.host_served(run, slot)?;
        }
        Ok(true)
    }

    /// Finds sessions that a daemon keeps after their user left: in each directory, as many sessions count as attended,
    /// newest first, as agents run there.
    fn find_unattended(&mut self, agents: &[AgentProcess], now: Timestamp) -> Result<(), TransactionFailure> {
        let mut served: Vec<&projections::Session> = self
            .sessions
            .all_loaded()
            .filter(|(_, state)| state.session.parent_session_id.is_none() && is_served(state, agents))
            .map(|(_, state)| &state.session)
            .collect();
        served.sort_by_key(|session| Reverse(session.last_event_at));
        let mut there: HashMap<(Provider, &str), usize> = HashMap::new();
        for agent in agents.iter().filter(|agent| !agent.shared && !agent.child) {
            if let Some(cwd) = agent.cwd.to_str() {
                *there.entry((agent.provider, cwd)).or_default() += 1;
            }
        }
        let mut unattended = HashSet::new();
        for session in served {
            let cwd = session.cwd.as_deref().unwrap_or_default();
            match there.get_mut(&(session.provider, cwd)).filter(|left| **left > 0) {
                Some(left) => *left -= 1,
                None => drop(unattended.insert(session.id)),
            }
        }
        for slot in self.sessions.set_unattended(unattended) {
            self.state(slot)?;
            self.sessions.mark(slot);
            self.sessions.schedule(slot, now);
        }
        Ok(())
    }

    /// This process turned out to run the session: merges the session named after the process into it.
    pub(super) fn merge_awaited(&mut self, slot: usize, pid: u32, start_ticks: u64) -> Result<(), TransactionFailure> {
        let known = self.sessions.known(slot).clone();
        if known.provider_session_id.starts_with(AWAITED) {
            return Ok(());
        }
        let id: Arc<str> = Arc::from(format!("{AWAITED}{pid}-{start_ticks}"));
        let Some(awaited) = self.sessions.find_by_provider(known.provider, &id) else { return Ok(()) };
        if self.state(awaited)?.session.merged_into.is_some() {
            return Ok(());
        }
        let note = Annotation { topic: Topic::MergedInto, value: known.id.to_string() };
        self.inject(awaited, Source::Runtime, (self.clock)(), "merged", note.into())
    }
}
