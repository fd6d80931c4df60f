//! Runs: the reports of their hosts, and the sessions they concern.

use std::{path::Path, sync::atomic::AtomicU64};

use events::{Choice, Dialog, Topic};
use host_protocol::{
    claim::{HostEvent, ScreenClaim},
    frame::{Hello, HostFrame},
};

use super::*;

const PID: u32 = 900;

fn run(n: u128) -> RunId {
    RunId::from_bits(n)
}

fn hello(n: u128, provider: Provider, cwd: &str) -> Hello {
    Hello {
        run: run(n),
        name: None,
        command: vec![provider.to_string()],
        provider,
        version: None,
        cwd: cwd.into(),
        pid: PID + n as u32,
        start_ticks: 7,
        host_pid: 1,
        started_at: at(0.0),
        terminal: true,
        size: Some((40, 120)),
        socket: None,
        recording: None,
        answers: true,
        session: None,
        takes: Vec::new(),
        draws: true,
    }
}

fn name(n: u128) -> String {
    format!("run-{}", run(n))
}

fn says(state: State, reason: Option<Reason>, subject: Option<&str>) -> HostEvent {
    let dialog = subject.map(|subject| {
        let options = vec![Choice { label: "Yes".into(), key: Some("1".into()), selected: true, ..Choice::default() }];
        Box::new(Dialog { subject: Some(subject.into()), options, ..Dialog::default() })
    });
    HostEvent::Claim(ScreenClaim {
        state,
        reason,
        strength: Confidence::High,
        words: format!("a rule says {state}"),
        dialog,
    })
}

impl World {
    fn hello(&mut self, hello: Hello) {
        self.take(IngestInput::Host(HostInput::Hello(Box::new(hello))));
        self.commit();
    }

    /// Sends a frame of a run at that time; returns the acknowledged number.
    fn frame(&mut self, n: u128, number: u64, seconds: f64, event: HostEvent) -> u64 {
        let acked = Arc::new(AtomicU64::new(0));
        let stored = {
            let acked = Arc::clone(&acked);
            Box::new(move |n| acked.store(n, Ordering::Relaxed))
        };
        let frame = HostFrame { n: number, at: at(seconds), event };
        self.take(IngestInput::Host(HostInput::Frame { run: run(n), frame, stored }));
        assert_eq!(acked.load(Ordering::Relaxed), 0, "not acknowledged before its commit");
        self.commit();
        acked.load(Ordering::Relaxed)
    }

    fn registered(&mut self, session: &str, record: &str, seconds: f64, pid: u32) {
        let claim = Claim::ProcessAlive { pid, start_ticks: 7 };
        self.live(session, vec![registry(session, record, seconds, claim)]);
        self.commit();
    }
}

#[test]
fn a_run_has_a_session_as_soon_as_its_host_registers() {
    let mut world = World::new();
    world.hello(hello(1, Provider::Codex, "/p"));
    let session = world.session(&name(1));
    assert_eq!((session.run_id, session.pid, session.cwd.as_deref()), (Some(run(1)), Some(901), Some("/p")));
    assert_eq!(world.status(&name(1)), "waiting new_session");
    assert_eq!(world.frame(1, 1, 0.5, says(State::WaitingApproval, Some(Reason::Trust), Some("/p"))), 1);
    assert_eq!(world.status(&name(1)), "waiting_approval trust");
    assert_eq!(world.session(&name(1)).status.activity.as_deref(), Some("/p"));
    assert_eq!(world.session(&name(1)).pending_approvals.len(), 1);
    world.frame(1, 2, 0.6, HostEvent::Exited { code: Some(3), signal: None });
    assert_eq!(world.status(&name(1)), "exited failed");
    world.assert_sound();
}

#[test]
fn an_unknown_program_stays_unknown_but_shows_whether_it_writes() {
    let mut world = World::new();
    world.hello(hello(1, Provider::Unknown, "/p"));
    assert_eq!(world.status(&name(1)), "unknown no_evidence");
    let writes = ScreenClaim {
        state: State::Unknown,
        reason: Some(Reason::NoEvidence),
        strength: Confidence::Low,
        words: "writes output".into(),
        dialog: None,
    };
    world.frame(1, 1, 0.5, HostEvent::Claim(writes));
    world.until(9_000.0);
    assert_eq!(world.status(&name(1)), "unknown no_evidence");
    let session = world.session(&name(1));
    assert_eq!(session.status.activity.as_deref(), Some("writes output"));
    assert_eq!(session.status.confidence, Confidence::Low);
    world.frame(1, 2, 9_000.5, HostEvent::Exited { code: Some(0), signal: None });
    assert_eq!(world.status(&name(1)), "exited clean");
    world.assert_sound();
}

#[test]
fn a_derived_event_has_the_source_and_confidence_of_its_evidence() {
    let mut world = World::new();
    world.hello(hello(1, Provider::Codex, "/p"));
    let asks = says(State::WaitingApproval, Some(Reason::Tool), Some("touch x"));
    let HostEvent::Claim(claim) = asks else { panic!() };
    world.frame(1, 1, 0.5, HostEvent::Claim(ScreenClaim { strength: Confidence::Medium, ..claim }));
    let log = world.log();
    let derived: Vec<_> = log.iter().filter(|e| e.derived).collect();
    let last = derived[derived.len() - 2..].iter().map(|e| (e.payload.kind().as_str(), e.source, e.confidence));
    let by_screen = |kind| (kind, Source::Pty, Confidence::Medium);
    assert_eq!(last.collect::<Vec<_>>(), [by_screen("status.changed"), by_screen("approval.requested")]);
}

#[test]
fn a_frame_delivered_twice_is_one_event() {
    let mut world = World::new();
    world.hello(hello(1, Provider::Codex, "/p"));
    world.frame(1, 1, 0.5, says(State::Running, None, None));
    let before = world.log().len();
    assert_eq!(world.frame(1, 1, 0.5, says(State::Running, None, None)), 1, "acknowledged again");
    assert_eq!(world.log().len(), before);
    // The host registers again after a server restart.
    world.start();
    world.hello(hello(1, Provider::Codex, "/p"));
    world.frame(1, 1, 0.5, says(State::Running, None, None));
    assert_eq!(world.log().len(), before);
    assert_eq!(world.status(&name(1)), "running thinking");
    world.assert_sound();
}

#[test]
fn consecutive_dialogs_are_separate_approvals() {
    let mut world = World::new();
    world.hello(hello(1, Provider::Claude, "/p"));
    world.frame(1, 1, 0.5, says(State::WaitingApproval, Some(Reason::Tool), Some("touch a")));
    let first = world.session(&name(1)).pending_approvals;
    world.frame(1, 2, 0.9, says(State::WaitingApproval, Some(Reason::Tool), Some("touch b")));
    let second = world.session(&name(1));
    assert_ne!(first, second.pending_approvals);
    assert_eq!(second.status.activity.as_deref(), Some("touch b"));
}

#[test]
fn the_session_named_by_the_agent_replaces_that_of_the_run() {
    let mut world = World::new();
    world.hello(hello(1, Provider::Claude, "/p"));
    world.frame(1, 1, 0.5, says(State::Running, Some(Reason::Thinking), None));
    world.registered("s", "alive", 1.0, 901);
    let (own, named) = (world.session(&name(1)), world.session("s"));
    assert_eq!((own.merged_into, named.run_id), (Some(named.id), Some(run(1))));
    assert_eq!(world.status("s"), "running thinking", "what the screen says is the session's now");
    world.frame(1, 2, 1.5, says(State::WaitingApproval, Some(Reason::Tool), None));
    assert_eq!(world.status("s"), "waiting_approval tool");
    world.assert_sound();
}

#[test]
fn run_followers_are_notified_of_each_stored_session_once() {
    let mut world = World::new();
    world.hello(hello(1, Provider::Claude, "/p"));
    world.frame(1, 1, 0.5, says(State::Running, Some(Reason::Thinking), None));
    world.registered("s", "alive", 1.0, 901);
    // The host reconnects: the same session, and nothing to store.
    world.hello(hello(1, Provider::Claude, "/p"));
    let (own, named) = (world.session(&name(1)).id, world.session("s").id);
    let first = HostedSession { run: run(1), session: own, merged: None };
    let second = HostedSession { run: run(1), session: named, merged: Some(own) };
    assert_eq!(*world.hosted.told.lock().unwrap(), [(first, true), (second, true)]);
}

#[test]
fn an_agent_process_inside_a_run_belongs_to_the_run() {
    let mut world = World::new();
    world.hello(hello(1, Provider::Unknown, "/p"));
    assert_eq!(world.status(&name(1)), "unknown no_evidence", "what an unknown program does is not known");
    world.asked.runs.lock().unwrap().insert(950, run(1));
    world.registered("s", "alive", 1.0, 950);
    assert_eq!(world.session("s").run_id, Some(run(1)));
    assert_eq!(world.session(&name(1)).merged_into, None, "the shell is not the agent it started");
    world.registered("other", "alive", 1.0, 951);
    assert_eq!(world.session("other").run_id, None);
}

/// At startup, Claude Code 2.0.60 lets two sub-agents answer "Warmup" in their own files; the session's file appears
/// with the first prompt.
#[test]
fn warmup_subagents_before_the_first_prompt_create_no_second_session() {
    let mut world = World::new();
    world.hello(hello(1, Provider::Claude, "/p"));
    world.frame(1, 1, 1.0, says(State::Waiting, Some(Reason::NewSession), None));
    let here = || SessionStarted { cwd: Some("/p".into()), ..helper_of("s") };
    for helper in ["a7", "b8"] {
        let asked = NewEvent { source: Source::Transcript, ..prompt(helper, &format!("Warmup of {helper}"), 1.2) };
        world.live(helper, vec![started(helper, 1.2, here()), asked, answer(helper, &format!("{helper} ok"), 1.3)]);
    }
    world.until(2.0);
    world.take(IngestInput::Agents(Vec::new()));
    world.commit();
    let session = world.session("s");
    assert_eq!((session.run_id, session.cwd.as_deref()), (Some(run(1)), Some("/p")));
    assert!(world.session(&name(1)).merged_into.is_some(), "the run's own session is the same");
    assert_eq!(world.status("s"), "waiting new_session");
    world.live("s", vec![prompt("s", "go", 5.0)]);
    world.commit();
    assert_eq!(world.told("s").iter().filter(|told| told.contains("user.prompt")).count(), 1);
    world.assert_sound();
}

#[test]
fn a_run_follows_its_agent_to_the_next_session() {
    let mut world = World::new();
    world.hello(hello(1, Provider::Claude, "/p"));
    world.registered("s", "alive", 1.0, 901);
    world.frame(1, 1, 1.1, says(State::Waiting, Some(Reason::TurnComplete), None));
    world.registered("t", "moved", 2.0, 901);
    assert_eq!(world.session("t").run_id, Some(run(1)));
    world.frame(1, 2, 2.1, says(State::Running, Some(Reason::Thinking), None));
    assert_eq!(world.status("t"), "running thinking");
    assert_ne!(world.status("s"), "running thinking", "the one that was left is not what the screen shows");
    world.assert_sound();
}

fn daemon(open: &str) -> AgentProcess {
    AgentProcess {
        provider: Provider::Claude,
        pid: 500,
        start_ticks: 3,
        age_ms: 0,
        parent: None,
        child: false,
        cwd: Path::new("/").into(),
        shared: true,
        resumes: false,
        headless: false,
        run: None,
        open_files: vec![PathBuf::from(open)],
    }
}

#[test]
fn the_session_of_a_daemon_continues_after_its_run_exits() {
    let mut world = World::new();
    world.hello(hello(1, Provider::Claude, "/p"));
    world.hello(hello(2, Provider::Claude, "/p"));
    world.until(5.0);
    world.frame(2, 1, 5.0, says(State::Running, Some(Reason::Thinking), None));
    let here = SessionStarted { cwd: Some("/p".into()), ..SessionStarted::default() };
    world.live("s", vec![started("s", 5.1, here), prompt("s", "go", 5.1)]);
    world.take(IngestInput::Agents(vec![daemon(&path_of("s"))]));
    world.commit();
    let session = world.session("s");
    assert_eq!((session.pid, session.run_id), (Some(500), Some(run(2))), "the one that began to work then");
    world.until(6.0);
    world.frame(2, 2, 6.0, HostEvent::Exited { code: None, signal: Some(9) });
    world.take(IngestInput::Ended(EndedProcess { pid: 902, start_ticks: 7 }));
    world.commit();
    assert_eq!(world.status("s"), "running thinking", "its daemon goes on");
    world.take(IngestInput::Ended(EndedProcess { pid: 500, start_ticks: 3 }));
    world.commit();
    assert!(world.status("s").starts_with("exited"));
    world.assert_sound();
}

/// npm's entry point of Codex starts the actual agent, which notices the loss of its terminal and ends its turn.
#[test]
fn an_agents_exit_reason_is_that_of_its_run() {
    for (signal, code, how) in [(Some(9), None, "killed"), (None, Some(3), "failed"), (None, Some(0), "clean")] {
        for host_first in [true, false] {
            let mut world = World::new();
            world.hello(hello(1, Provider::Claude, "/p"));
            let proper = AgentProcess { pid: 950, shared: false, run: Some(run(1)), ..daemon(&path_of("s")) };
            world.live("s", vec![prompt("s", "go", 1.0)]);
            world.asked.runs.lock().unwrap().insert(950, run(1));
            world.take(IngestInput::Agents(vec![proper]));
            world.commit();
            assert_eq!((world.session("s").pid, world.session("s").run_id), (Some(950), Some(run(1))));
            world.live("s", vec![answer("s", "ok", 2.0)]);
            world.until(2.1);
            let exited = HostEvent::Exited { code, signal };
            let gone = IngestInput::Ended(EndedProcess { pid: 950, start_ticks: 3 });
            if host_first {
                world.frame(1, 1, 2.1, exited);
                world.take(gone);
            } else {
                world.take(gone);
                world.frame(1, 1, 2.1, exited);
            }
            world.commit();
            assert_eq!(world.status("s"), format!("exited {how}"), "host first: {host_first}");
            world.assert_sound();
        }
    }
}

#[test]
fn a_run_resuming_a_daemons_session_hosts_it_before_the_first_prompt() {
    let mut world = World::new();
    let here = SessionStarted { cwd: Some("/p".into()), ..SessionStarted::default() };
    world.live("s", vec![started("s", 1.0, here), prompt("s", "go", 1.0), answer("s", "ok", 2.0)]);
    world.until(60.0);
    world.hello(Hello { started_at: at(60.0), ..hello(1, Provider::Claude, "/p") });
    let user = AgentProcess { pid: 901, start_ticks: 7, shared: false, cwd: "/p".into(), ..daemon("/none") };
    let user = AgentProcess { resumes: true, run: Some(run(1)), ..user };
    world.take(IngestInput::Agents(vec![daemon(&path_of("s")), user]));
    world.commit();
    assert_eq!((world.session("s").pid, world.session("s").run_id), (Some(500), Some(run(1))));
    assert_eq!(world.session(&name(1)).merged_into, Some(world.id("s")));
    world.assert_sound();
}

#[test]
fn a_one_prompt_run_ends_its_session_when_it_exits() {
    let mut world = World::new();
    let command = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let asked = Hello { command: command(&["gemini", "-p", "go"]), ..hello(2, Provider::Gemini, "/q") };
    world.hello(asked);
    assert!(world.session(&name(2)).headless);
    world.hello(Hello {
        command: ["claude", "-p", "go"].map(str::to_owned).to_vec(),
        ..hello(1, Provider::Claude, "/p")
    });
    let here = SessionStarted { cwd: Some("/p".into()), ..SessionStarted::default() };
    world.live("s", vec![started("s", 0.5, here), prompt("s", "go", 0.5), answer("s", "ok", 0.9)]);
    world.frame(1, 1, 1.0, HostEvent::Exited { code: Some(0), signal: None });
    let session = world.session("s");
    assert_eq!((session.run_id, session.headless), (Some(run(1)), false), "Claude Code's files tell it themselves");
    assert_eq!(world.status("s"), "exited clean");
    world.assert_sound();
}

/// An agent may ask about its hooks before it opens the session.
#[test]
fn a_run_whose_command_resumes_a_session_hosts_it_at_once() {
    let takes_up = |session: &str| Hello {
        command: ["claude", "--resume", session].map(str::to_owned).to_vec(),
        started_at: at(60.0),
        ..hello(1, Provider::Claude, "/p")
    };
    let mut world = World::new();
    world.live("s", vec![started("s", 1.0, SessionStarted::default()), prompt("s", "go", 1.0), answer("s", "ok", 2.0)]);
    world.until(60.0);
    world.hello(takes_up("s"));
    world.frame(1, 1, 60.5, says(State::WaitingApproval, Some(Reason::Trust), Some("1 hook is new")));
    assert_eq!((world.session("s").run_id, world.session("s").pid), (Some(run(1)), Some(901)));
    assert_eq!(world.status("s"), "waiting_approval trust");
    assert_eq!(world.read().sessions(&store::SessionFilter { before: None, limit: 9 }).unwrap().len(), 1);
    world.assert_sound();
    // The session is unknown, or another process runs it.
    let mut world = World::new();
    world.hello(takes_up("never-seen"));
    assert_eq!(world.session(&name(1)).run_id, Some(run(1)));
    let mut world = World::new();
    world.registered("s", "alive", 1.0, 700);
    world.hello(takes_up("s"));
    assert_eq!((world.session("s").run_id, world.session("s").pid), (None, Some(700)));
    world.assert_sound();
}

#[test]
fn late_host_frames_keep_their_timestamps() {
    let mut world = World::new();
    world.hello(hello(1, Provider::Codex, "/p"));
    world.until(60.0);
    world.frame(1, 1, 10.0, says(State::Running, None, None));
    world.frame(1, 2, 20.0, says(State::Waiting, Some(Reason::TurnComplete), None));
    assert_eq!(world.status(&name(1)), "waiting turn_complete");
    assert_eq!(world.session(&name(1)).status.since, at(20.0));
    world.assert_sound();
}

#[test]
fn the_claim_of_a_lost_host_is_dropped() {
    let mut world = World::new();
    world.hello(hello(1, Provider::Codex, "/p"));
    world.frame(1, 1, 0.5, says(State::WaitingApproval, Some(Reason::Tool), None));
    world.take(IngestInput::Host(HostInput::Lost(run(1))));
    world.commit();
    assert_eq!(world.status(&name(1)), "waiting new_session");
}

#[test]
fn answers_typed_and_notifications_are_stored_as_annotations() {
    let mut world = World::new();
    world.hello(hello(1, Provider::Codex, "/p"));
    world.frame(1, 1, 0.5, HostEvent::Answered { meaning: "Yes".into() });
    world.frame(1, 2, 0.6, HostEvent::Notification { text: "done".into() });
    assert_eq!(world.frame(1, 3, 0.7, HostEvent::Bell), 3);
    let remarks: Vec<(Source, Topic, String)> = world
        .log()
        .into_iter()
        .filter_map(|event| match event.payload {
            Payload::Annotation(note) => Some((event.source, note.topic, note.value)),
            _ => None,
        })
        .filter(|(_, topic, _)| matches!(topic, Topic::Input | Topic::Notice))
        .collect();
    assert_eq!(remarks, [(Source::Input, Topic::Input, "Yes".into()), (Source::Pty, Topic::Notice, "done".into())]);
}

#[test]
fn a_run_in_an_uncaptured_directory_stores_nothing() {
    let mut world = World::new();
    world.hello(hello(1, Provider::Codex, "/secret/x"));
    assert_eq!(world.frame(1, 1, 0.5, says(State::Running, None, None)), 1);
    assert!(world.log().is_empty());
}
