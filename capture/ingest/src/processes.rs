//! Applies what the process table shows: which process runs which session, and that it ended.

use std::sync::Arc;

use events::{
    Annotation, ApprovalKind, Claim, Confidence, Dialog, Reason, SessionId, SessionStarted, Signal, Source, State,
    Timestamp, Topic,
};
use processes::{AgentProcess, EndedProcess};

use super::{
    Ingest, TransactionFailure, WatchedAction, WatchedRequest,
    link::{AWAITED, link},
};

/// How long a command that was seen to start speaks for itself, ms: until the request it answers is closed.
const COMMAND_HOLDS_MS: i64 = 2_000;
/// How long a request waits for a hook of the user that was seen to run, ms; it is reported again before that.
const DECIDES_MS: i64 = 6_000;
/// How long after the end of such a hook a dialog may open, ms.
const DECIDED_MS: i64 = 500;

/// Agents that run without a session. One gets a session of its own when it is seen so in two looks that follow one
/// another.
#[derive(Debug, Default)]
pub(super) struct Unclaimed {
    /// Process ids and start ticks, of this look and the one before it.
    now: Vec<(u32, u64)>,
    before: Vec<(u32, u64)>,
}

impl Unclaimed {
    fn begin_look(&mut self) {
        self.before = std::mem::take(&mut self.now);
    }

    /// An agent has no session; says whether that was so before.
    fn is_seen_again(&mut self, process: (u32, u64)) -> bool {
        self.now.push(process);
        self.before.contains(&process)
    }
}

/// The only request that is pending, when the agent's hook reported it and another hook may answer it before a dialog
/// opens.
fn hook_request(state: &projections::SessionState) -> Option<&projections::Approval> {
    let hooks = agents::Agent::of(state.session.provider)?.hooks.as_ref()?;
    let request = state.only_request().filter(|_| !hooks.answers.dialog_meanwhile)?;
    (request.source == Source::Hook && request.agent_id.is_none()).then_some(request)
}

impl Ingest {
    /// A process ended: so did every session it ran.
    pub(super) fn apply_end(&mut self, ended: EndedProcess) -> Result<(), TransactionFailure> {
        let now = (self.clock)();
        let mut slots: Vec<usize> = self
            .sessions
            .all_loaded()
            .filter(|(_, s)| s.process() == Some((ended.pid, ended.start_ticks)))
            .map(|(slot, _)| slot)
            .collect();
        // Helpers run in the process of the session they help, and end with it.
        let ids: Vec<SessionId> = slots.iter().map(|slot| self.sessions.known(*slot).id).collect();
        let helpers = self.sessions.all_loaded().filter(|(_, s)| {
            s.session.status.state != State::Exited && s.session.parent_session_id.is_some_and(|id| ids.contains(&id))
        });
        let helpers: Vec<usize> = helpers.map(|(slot, _)| slot).filter(|slot| !slots.contains(slot)).collect();
        slots.extend(helpers);
        for slot in slots {
            let signal = Signal::new(
                Claim::ProcessGone { pid: ended.pid, clean: false },
                Confidence::High,
                Some(format!("process {} ended", ended.pid)),
            );
            self.inject(slot, Source::Process, now, "ended", signal.into())?;
        }
        Ok(())
    }

    /// While a session waits for permission, the processes below its agent are watched.
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

    /// An agent that waited for permission runs a command: somebody allowed it, at the agent's own dialog. Of several
    /// requests nothing tells which one it was.
    pub(super) fn apply_command(&mut self, agent: EndedProcess) -> Result<(), TransactionFailure> {
        let Some(slot) = self.asking_session(agent) else { return Ok(()) };
        if self.state(slot)?.pending_command().is_none() {
            return Ok(());
        }
        let now = (self.clock)();
        let claim = Claim::State { state: State::Running, reason: Some(Reason::Tool) };
        let words = format!("process {} runs a command that it did not run when it asked", agent.pid);
        let signal = Signal {
            valid_until: Some(now.plus_ms(COMMAND_HOLDS_MS)),
            ..Signal::new(claim, Confidence::Medium, Some(words))
        };
        self.inject(slot, Source::Process, now, "command", signal.into())
    }

    /// A hook of the user may decide about the request that is pending: there is no dialog while it runs.
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

    /// The only session of an agent's process that waits for permission.
    fn asking_session(&self, agent: EndedProcess) -> Option<usize> {
        let runs = |state: &projections::SessionState| state.process() == Some((agent.pid, agent.start_ticks));
        let asks = |state: &projections::SessionState| runs(state) && !state.session.pending_approvals.is_empty();
        let mut asking = self.sessions.all_loaded().filter(|(_, state)| asks(state)).map(|(slot, _)| slot);
        asking.next().filter(|_| asking.next().is_none())
    }

    /// The agents that run now: finds the sessions they run.
    pub(super) fn apply_agents(&mut self, agents: &[AgentProcess]) -> Result<(), TransactionFailure> {
        let now = (self.clock)();
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
            // One found by its directory that did not know it.
            if found.strength == Confidence::Medium && self.state(found.slot)?.session.cwd.is_none() {
                let value = found.process.cwd.to_string_lossy().into_owned();
                let place = Annotation { topic: Topic::Cwd, value };
                self.inject(found.slot, Source::Process, now, "place", place.into())?;
            }
            let claim = Claim::ProcessAlive { pid, start_ticks };
            self.inject(found.slot, Source::Process, now, "linked", Signal::new(claim, found.strength, words).into())?;
        }
        self.merge_wrappers(agents)?;
        self.await_sessions(agents, now)?;
        self.link_hosts_by_place()
    }

    /// A program that only starts the agent proper, as npm's entry of Codex does, has no session of its
    /// own: one it was given before that was known is the agent's.
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

    /// An agent that runs and has told nothing yet has a session all the same: it waits for its
    /// first prompt, or shows a dialog that comes before it. It is named by its process until the
    /// agent names it.
    fn await_sessions(&mut self, agents: &[AgentProcess], now: Timestamp) -> Result<(), TransactionFailure> {
        self.unclaimed.begin_look();
        for agent in agents.iter().filter(|a| !a.shared && !a.child) {
            // Its session is not captured, so none here has it: it is not without one.
            if self.ignored.holds(&agent.cwd) {
                continue;
            }
            let name = (agent.pid, agent.start_ticks);
            let started = |a: &&AgentProcess| a.child && a.parent == Some(agent.pid) && a.provider == agent.provider;
            let family: Vec<(u32, u64)> = agents.iter().filter(started).map(|a| (a.pid, a.start_ticks)).collect();
            let runs = |process| process == name || family.contains(&process);
            if self.sessions.all_loaded().any(|(_, s)| s.process().is_some_and(runs)) {
                continue;
            }
            if self.seat_agent(agent)? {
                continue;
            }
            if !self.unclaimed.is_seen_again(name) {
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

    /// A session turned out to be run by this process: the one that was named by the process is
    /// the same.
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
