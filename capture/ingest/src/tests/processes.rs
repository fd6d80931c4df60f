//! Processes: which process runs which session, and the ends of processes.

use std::path::Path;

use super::*;

const NAME: (u32, u64) = (821, 7);

fn agent(cwd: &str, open: &[&str]) -> AgentProcess {
    AgentProcess {
        provider: Provider::Claude,
        pid: NAME.0,
        start_ticks: NAME.1,
        age_ms: 0,
        parent: None,
        child: false,
        cwd: Path::new(cwd).into(),
        shared: false,
        resumes: false,
        headless: false,
        run: None,
        open_files: open.iter().map(PathBuf::from).collect(),
    }
}

fn ended() -> IngestInput {
    IngestInput::Ended(EndedProcess { pid: NAME.0, start_ticks: NAME.1 })
}

fn here(session: &str, seconds: f64, cwd: &str) -> NewEvent {
    started(session, seconds, SessionStarted { cwd: Some(cwd.into()), ..SessionStarted::default() })
}

fn alive(session: &str, record: &str, seconds: f64) -> NewEvent {
    registry(session, record, seconds, Claim::ProcessAlive { pid: NAME.0, start_ticks: NAME.1 })
}

#[test]
fn the_end_of_a_process_ends_its_session() {
    let mut world = World::new();
    world.live("s", vec![alive("s", "alive", 1.0), claims("s", "busy", 1.0, State::Running), prompt("s", "go", 1.0)]);
    world.commit();
    assert_eq!(*world.asked.watched.lock().unwrap(), [NAME]);
    assert_eq!(world.session("s").pid, Some(NAME.0));
    world.until(2.0);
    world.take(IngestInput::Ended(EndedProcess { pid: NAME.0, start_ticks: 8 }));
    world.commit();
    assert_eq!(world.status("s"), "running thinking", "another process of that pid");
    let before = world.told("s").len();
    world.take(ended());
    world.commit();
    assert_eq!(world.status("s"), "exited killed");
    assert_eq!(world.told("s")[before..], ["process 821 ended", "(turn 1 exited)", "(exit killed)", "(exited killed)"]);
    // Its last records are read only now: they open no turn and belong to none.
    let before = world.told("s").len();
    world.live("s", vec![call("s", "last", 2.1)]);
    world.take(ended());
    world.commit();
    assert_eq!(world.status("s"), "exited killed");
    assert_eq!(world.told("s")[before..], ["tool.call"]);
    assert_eq!(world.log().last().unwrap().turn_id, None);
    world.assert_sound();
}

#[test]
fn a_process_that_ends_after_its_registry_entry_is_removed_exited_cleanly() {
    let mut world = World::new();
    world.live("s", vec![alive("s", "alive", 1.0), claims("s", "idle", 1.0, State::Waiting)]);
    world.live("s", vec![registry("s", "removed", 2.0, Claim::Withdrawn)]);
    world.until(2.1);
    world.take(ended());
    world.commit();
    assert_eq!(world.status("s"), "exited clean");
    world.assert_sound();
}

#[test]
fn a_subagent_ends_with_the_process_of_its_parent() {
    let mut world = World::new();
    world.live("s", vec![alive("s", "alive", 1.0), prompt("s", "go", 1.0)]);
    world.live("helper", vec![started("helper", 1.5, helper_of("s")), prompt("helper", "task", 1.5)]);
    world.live("other", vec![prompt("other", "go on", 1.6)]);
    world.until(2.1);
    world.take(ended());
    world.until(2.6);
    assert_eq!((world.status("s").as_str(), world.status("helper").as_str()), ("exited killed", "exited killed"));
    assert_eq!(world.status("other"), "running thinking");
    world.assert_sound();
}

#[test]
fn a_known_process_is_watched_again_after_a_restart() {
    let mut world = World::new();
    world.live("s", vec![alive("s", "alive", 1.0), prompt("s", "go", 1.0)]);
    world.live("t", vec![prompt("t", "go t", 1.0)]);
    world.commit();
    world.asked.watched.lock().unwrap().clear();
    world.start();
    assert_eq!(*world.asked.watched.lock().unwrap(), [NAME]);
    // A resting session still has a process.
    world.live("s", vec![answer("s", "ok", 2.0)]);
    world.until(500.0);
    assert_eq!(world.status("s"), "idle quiet");
    world.asked.watched.lock().unwrap().clear();
    world.start();
    assert_eq!(*world.asked.watched.lock().unwrap(), [NAME]);
    world.take(ended());
    world.commit();
    assert_eq!(world.status("s"), "exited clean");
    world.assert_sound();
}

#[test]
fn status_timers_continue_after_a_restart() {
    let mut world = World::new();
    world.live("s", vec![prompt("s", "go", 1.0), answer("s", "ok", 2.0)]);
    world.commit();
    world.start();
    world.until(500.0);
    assert_eq!(world.status("s"), "idle quiet");
    let idle = world.log().pop().unwrap();
    assert_eq!((idle.created_at, idle.observed_at), (at(122.0), at(500.0)));
    world.assert_sound();
}

#[test]
fn an_agent_is_linked_to_the_session_whose_transcript_is_open() {
    let mut world = World::new();
    world.live("s", vec![here("s", 1.0, "/p"), prompt("s", "go", 1.0)]);
    world.live("t", vec![here("t", 2.0, "/p"), prompt("t", "go t", 2.0)]);
    assert!(world.asked.wanted.load(Ordering::Relaxed) > 0, "a live session's process is looked for");
    world.take(IngestInput::Agents(vec![agent("/elsewhere", &[&path_of("s")])]));
    world.commit();
    assert_eq!((world.session("s").pid, world.session("t").pid), (Some(NAME.0), None));
    assert!(world.told("s").contains(&"process 821 has its transcript open".to_owned()));
    // A repeated report adds no event.
    let before = world.log().len();
    world.take(IngestInput::Agents(vec![agent("/elsewhere", &[&path_of("s")])]));
    world.commit();
    assert_eq!(world.log().len(), before);
    // The agent switches to another session.
    world.until(3.0);
    world.take(IngestInput::Agents(vec![agent("/elsewhere", &[&path_of("t")])]));
    world.until(3.5);
    assert_eq!((world.session("s").pid, world.session("t").pid), (None, Some(NAME.0)));
    assert_eq!(world.status("s"), "exited clean");
    world.assert_sound();
}

#[test]
fn an_agent_is_linked_to_the_latest_session_in_its_directory() {
    let mut world = World::new();
    world.live("s", vec![here("s", 1.0, "/p"), prompt("s", "go", 1.0)]);
    world.live("t", vec![here("t", 2.0, "/p"), prompt("t", "go t", 2.0)]);
    world.live("u", vec![here("u", 3.0, "/q"), prompt("u", "go u", 3.0)]);
    world.take(IngestInput::Agents(vec![agent("/p", &[])]));
    world.commit();
    assert_eq!(
        [world.session("s").pid, world.session("t").pid, world.session("u").pid],
        [None, Some(NAME.0), None],
        "the one heard of last"
    );
    world.assert_sound();
    // Not if the session was silent for long, and not for a process that serves others.
    let mut world = World::new();
    world.live("s", vec![here("s", 1.0, "/p"), prompt("s", "go", 1.0)]);
    world.take(IngestInput::Agents(vec![AgentProcess { shared: true, ..agent("/p", &[]) }]));
    world.until(5_000.0);
    world.take(IngestInput::Agents(vec![agent("/p", &[])]));
    world.commit();
    assert_eq!(world.session("s").pid, None);
}

#[test]
fn an_agent_without_any_output_has_a_session() {
    let mut world = World::new();
    world.take(IngestInput::Agents(vec![agent("/p", &[]), AgentProcess { child: true, pid: 900, ..agent("/p", &[]) }]));
    world.commit();
    assert!(world.log().is_empty(), "it may be about to say something");
    world.take(IngestInput::Agents(vec![agent("/p", &[]), AgentProcess { child: true, pid: 900, ..agent("/p", &[]) }]));
    world.commit();
    let awaited = "process-821-7";
    assert_eq!(world.status(awaited), "waiting new_session");
    assert_eq!((world.session(awaited).cwd.as_deref(), world.session(awaited).pid), (Some("/p"), Some(NAME.0)));
    let before = world.log().len();
    world.take(IngestInput::Agents(vec![agent("/p", &[])]));
    world.commit();
    assert_eq!(world.log().len(), before, "once");
    // The agent names its session.
    world.live("s", vec![alive("s", "alive", 5.0), prompt("s", "go", 5.0)]);
    world.commit();
    assert_eq!(world.session(awaited).merged_into, Some(world.id("s")));
    assert_eq!(world.session("s").pid, Some(NAME.0));
    assert_eq!(world.told(awaited).iter().filter(|t| t.starts_with("merged_into")).count(), 1);
    world.live("s", vec![alive("s", "alive again", 6.0)]);
    world.commit();
    assert_eq!(world.told(awaited).iter().filter(|t| t.starts_with("merged_into")).count(), 1);
    world.assert_sound();
}

#[test]
fn a_session_found_by_its_file_replaces_the_process_placeholder() {
    let mut world = World::new();
    for _ in 0..2 {
        world.take(IngestInput::Agents(vec![agent("/p", &[])]));
    }
    world.until(1.0);
    world.live("s", vec![here("s", 1.0, "/p"), prompt("s", "go", 1.0)]);
    world.take(IngestInput::Agents(vec![agent("/p", &[&path_of("s")])]));
    world.commit();
    assert_eq!(world.session("process-821-7").merged_into, Some(world.id("s")));
    assert_eq!(world.session("s").pid, Some(NAME.0));
    world.assert_sound();
}

#[test]
fn a_launcher_process_has_no_separate_session() {
    let wrapper = || agent("/p", &[]);
    let proper = |open: &[&str]| AgentProcess { child: true, pid: 900, parent: Some(NAME.0), ..agent("/p", open) };
    // The launcher got a session before the agent named its own.
    let mut world = World::new();
    for _ in 0..2 {
        world.take(IngestInput::Agents(vec![wrapper(), proper(&[])]));
    }
    world.until(1.0);
    world.live("s", vec![here("s", 1.0, "/p"), prompt("s", "go", 1.0)]);
    world.take(IngestInput::Agents(vec![wrapper(), proper(&[&path_of("s")])]));
    world.take(IngestInput::Agents(vec![wrapper(), proper(&[&path_of("s")])]));
    world.commit();
    assert_eq!(world.session("process-821-7").merged_into, Some(world.id("s")));
    assert_eq!(world.session("s").pid, Some(900));
    world.assert_sound();
    // The session was known before the processes.
    let mut world = World::new();
    world.live("s", vec![here("s", 1.0, "/p"), prompt("s", "go", 1.0)]);
    for _ in 0..3 {
        world.take(IngestInput::Agents(vec![wrapper(), proper(&[&path_of("s")])]));
    }
    world.commit();
    assert!(world.log().iter().all(|event| &*event.provider_session_id == "s"));
    world.assert_sound();
}

/// Events of a hook that asks for permission to run a command.
fn asks(session: &str, record: &str, seconds: f64) -> Vec<NewEvent> {
    let request = events::ApprovalRequested {
        approval_id: events::ApprovalId::from(record),
        about: Some(events::ApprovalKind::Command),
        command: Some(format!("make {record}")),
        key: Some(record.into()),
        ..events::ApprovalRequested::default()
    };
    let claim = Claim::State { state: State::WaitingApproval, reason: Some(Reason::Tool) };
    let signal = Signal { key: Some(record.into()), ..Signal::new(claim, Confidence::High, None) };
    let hook = |event| NewEvent { source: Source::Hook, ..event };
    vec![hook(new(session, record, 0, seconds, request)), hook(new(session, record, 1, seconds, signal))]
}

fn watched(command: &str) -> WatchedRequest {
    WatchedRequest { agent: NAME, asks_for: WatchedAction::Command(Some(command.into())) }
}

fn command_runs() -> IngestInput {
    let agent = EndedProcess { pid: NAME.0, start_ticks: NAME.1 };
    IngestInput::CommandRuns { agent, command: ::processes::ShellCommand { pid: 900, start_ticks: 8 } }
}

#[test]
fn a_command_starting_while_its_approval_is_pending_resolves_it() {
    let mut world = World::new();
    world.live("s", vec![alive("s", "alive", 1.0), prompt("s", "go", 1.0), call("s", "call", 2.0)]);
    world.commit();
    assert_eq!(world.asked.requests.lock().unwrap().len(), 0, "nothing is asked");
    world.take(command_runs());
    world.commit();
    assert_eq!(world.status("s"), "running tool");
    world.until(3.0);
    world.live("s", asks("s", "A", 3.0));
    world.until(4.0);
    assert_eq!(world.status("s"), "waiting_approval tool");
    assert_eq!(world.asked.requests.lock().unwrap().values().cloned().collect::<Vec<_>>(), [watched("make A")]);
    world.until(10.0);
    world.take(command_runs());
    world.commit();
    assert_eq!(world.status("s"), "running tool");
    world.until(15.0);
    assert_eq!(world.status("s"), "running tool", "for as long as the call is open");
    assert!(world.session("s").pending_approvals.is_empty());
    assert_eq!(world.asked.requests.lock().unwrap().len(), 0);
    world.assert_sound();
}

/// A request of this kind that a user's hook has been deciding since 3.2 s; returns at 6 s.
fn while_a_hook_decides(provider: Provider, kind: events::ApprovalKind) -> World {
    let of = |events: Vec<NewEvent>| events.into_iter().map(|event| NewEvent { provider, ..event }).collect();
    let mut world = World::new();
    world.live("s", of(vec![alive("s", "alive", 1.0), prompt("s", "go", 1.0), call("s", "call", 2.0)]));
    let mut asked = asks("s", "A", 3.0);
    for event in &mut asked {
        match &mut event.payload {
            Payload::ApprovalRequested(request) => request.about = Some(kind),
            Payload::Signal(signal) => signal.holds_from = Some(at(3.5)),
            _ => {}
        }
    }
    world.live("s", of(asked));
    world.until(3.2);
    world.take(hook_decides(true));
    world.until(6.0);
    world
}

fn hook_decides(runs: bool) -> IngestInput {
    IngestInput::HookDecides { agent: EndedProcess { pid: NAME.0, start_ticks: NAME.1 }, runs }
}

#[test]
fn a_codex_request_shows_no_dialog_while_a_user_hook_decides() {
    use events::ApprovalKind::{Command, Edit, Mcp};
    for kind in [Command, Edit, Mcp] {
        let world = || {
            let world = while_a_hook_decides(Provider::Codex, kind);
            assert_eq!(world.status("s"), "running tool");
            world
        };
        // The hook left the decision to the user.
        let mut left = world();
        let watched = left.asked.requests.lock().unwrap().values().next().cloned().unwrap();
        assert_eq!(matches!(watched.asks_for, WatchedAction::Command(_)), kind == Command);
        left.take(hook_decides(false));
        left.until(6.4);
        assert_eq!(left.status("s"), "running tool");
        left.until(7.0);
        assert_eq!(left.status("s"), format!("waiting_approval {}", kind.reason().as_str()));
        assert_eq!(left.session("s").pending_approvals.len(), 1);
        left.assert_sound();
        // The hook allowed the request: the call returns.
        let mut allowed = world();
        allowed.take(hook_decides(false));
        let result = NewEvent { provider: Provider::Codex, ..result("s", "r", "call", 6.2) };
        allowed.live("s", vec![result]);
        allowed.until(9.0);
        assert_eq!(allowed.status("s"), "running thinking");
        assert!(allowed.session("s").pending_approvals.is_empty());
        allowed.assert_sound();
        // The hook was killed along with its server: the dialog is shown once the last report is too old.
        let mut silent = world();
        silent.until(9.3);
        assert_eq!(silent.status("s"), format!("waiting_approval {}", kind.reason().as_str()));
        silent.assert_sound();
    }
}

#[test]
fn a_claude_dialog_is_shown_while_a_user_hook_decides() {
    let mut world = while_a_hook_decides(Provider::Claude, events::ApprovalKind::Command);
    assert_eq!(world.status("s"), "waiting_approval tool");
    world.assert_sound();
}

#[test]
fn a_pending_request_is_watched_again_after_a_restart() {
    let mut world = World::new();
    world.live("s", vec![alive("s", "alive", 1.0), prompt("s", "go", 1.0), call("s", "call", 2.0)]);
    world.live("s", asks("s", "A", 3.0));
    world.until(4.0);
    world.asked.requests.lock().unwrap().clear();
    world.start();
    assert_eq!(world.asked.requests.lock().unwrap().values().cloned().collect::<Vec<_>>(), [watched("make A")]);
    world.take(command_runs());
    world.commit();
    assert_eq!(world.status("s"), "running tool");
    world.assert_sound();
}

#[test]
fn a_running_command_does_not_resolve_an_ambiguous_approval() {
    // Another call is open, or there are two requests.
    for (calls, requests) in [(vec!["a", "b"], vec!["A"]), (vec!["a"], vec!["A", "B"])] {
        let mut world = World::new();
        world.live("s", vec![alive("s", "alive", 1.0), prompt("s", "go", 1.0)]);
        world.live("s", calls.iter().map(|id| call("s", id, 2.0)).collect());
        world.until(3.0);
        world.live("s", requests.iter().flat_map(|id| asks("s", id, 3.0)).collect());
        world.until(4.0);
        assert_eq!(world.asked.requests.lock().unwrap().len(), 0);
        world.take(command_runs());
        world.until(8.0);
        assert_eq!(world.status("s"), "waiting_approval tool");
        world.assert_sound();
    }
}

#[test]
fn a_gemini_chat_is_linked_to_its_process_by_the_directory_hash() {
    let gemini = |event: NewEvent| NewEvent { provider: Provider::Gemini, ..event };
    let process = || IngestInput::Agents(vec![AgentProcess { provider: Provider::Gemini, ..agent("/p", &[]) }]);
    // printf %s /p | sha256sum
    let folder = "00d74baf14ea415c6164614838c91f834c38c3e564444dfa5bc3aa0d2809e265";
    for (folder, joined) in [(folder, true), (&folder[1..], false)] {
        let mut world = World::new();
        world.take(process());
        world.take(process());
        world.commit();
        assert_eq!(world.log().iter().filter(|e| e.payload.kind() == Kind::SessionStarted).count(), 1);
        let path = format!("/h/.gemini/tmp/{folder}/chats/session-2025-11-20T04-38-10828683.json");
        let cursor = Cursor { path, provider_session_id: Some("chat".into()), caught_up: true, ..Cursor::default() };
        world.take(IngestInput::Batch(Box::new(PreparedBatch::new(Batch {
            cursor,
            provider: Provider::Gemini,
            events: vec![gemini(prompt("chat", "go", 1.0))],
            vanished: false,
            modified_at: None,
            backfill: false,
            history: false,
        }))));
        world.until(2.0);
        world.take(process());
        world.commit();
        let chat = world.session("chat");
        assert_eq!((chat.pid, chat.cwd.as_deref()), if joined { (Some(NAME.0), Some("/p")) } else { (None, None) });
        let log = world.log();
        let merged = log.iter().filter(|e| {
            matches!(&e.payload, Payload::Annotation(note) if note.topic == events::Topic::MergedInto && note.value == chat.id.to_string())
        });
        assert_eq!(merged.count(), usize::from(joined), "two rows become one");
        world.assert_sound();
    }
}

#[test]
fn a_silent_session_is_linked_only_to_a_process_older_than_its_events() {
    for (age_ms, is_linked) in [(3_600_000, true), (60_000, false)] {
        let mut world = World::new();
        world.live("s", vec![here("s", 1.0, "/p"), prompt("s", "go", 1.0)]);
        world.commit();
        world.until(1_800.0);
        world.take(IngestInput::Agents(vec![AgentProcess { age_ms, ..agent("/p", &[]) }]));
        world.commit();
        assert_eq!(world.session("s").pid.is_some(), is_linked, "{age_ms}");
    }
}

#[test]
fn an_idle_session_is_linked_to_its_process_again_after_a_restart() {
    for (open, age_ms) in [(vec![path_of("s")], 0), (Vec::new(), 3_600_000)] {
        let mut world = World::new();
        world.past("s", vec![here("s", 1.0, "/p"), prompt("s", "go", 1.0), answer("s", "ok", 2.0)]);
        world.until(900.0);
        assert_eq!(world.status("s"), "idle quiet");
        world.start();
        let open: Vec<&str> = open.iter().map(String::as_str).collect();
        for _ in 0..2 {
            world.take(IngestInput::Agents(vec![AgentProcess { age_ms, ..agent("/p", &open) }]));
        }
        world.commit();
        assert_eq!(world.session("s").pid, Some(NAME.0), "{open:?}");
        assert_eq!(world.read().find("process-821-7").unwrap(), None, "{open:?}: it has no second row");
        world.assert_sound();
    }
}

#[test]
fn an_ended_session_is_active_again_once_an_agent_resumes_it_before_the_first_prompt() {
    let mut world = World::new();
    world.live(
        "s",
        vec![alive("s", "alive", 1.0), here("s", 1.0, "/p"), prompt("s", "go", 1.0), answer("s", "ok", 2.0)],
    );
    world.take(ended());
    world.commit();
    assert!(world.status("s").starts_with("exited"));
    world.until(5.0);
    let wrapper = || AgentProcess { pid: 900, ..agent("/p", &[]) };
    let proper = |open: &[&str]| AgentProcess { pid: 901, child: true, parent: Some(900), ..agent("/p", open) };
    // Its user spends some time choosing a session, so the agent has its own row until then.
    for _ in 0..2 {
        world.take(IngestInput::Agents(vec![wrapper(), proper(&[])]));
    }
    world.commit();
    assert_eq!(world.status("process-900-7"), "waiting new_session");
    world.take(IngestInput::Agents(vec![wrapper(), proper(&[&path_of("s")])]));
    world.commit();
    assert_eq!((world.session("s").pid, world.status("s").as_str()), (Some(901), "waiting turn_complete"));
    assert_eq!(world.session("process-900-7").merged_into, Some(world.id("s")));
    world.assert_sound();
}

#[test]
fn a_stale_scan_of_an_ended_process_does_not_revive_its_session() {
    let mut world = World::new();
    world.live(
        "s",
        vec![alive("s", "alive", 1.0), here("s", 1.0, "/p"), prompt("s", "go", 1.0), answer("s", "ok", 2.0)],
    );
    world.take(ended());
    // A scan from just before its end.
    world.take(IngestInput::Agents(vec![agent("/p", &[&path_of("s")])]));
    world.commit();
    assert!(world.status("s").starts_with("exited"));
    world.assert_sound();
}

/// A scan with a daemon that serves a session, and these clients.
fn served(clients: &[AgentProcess]) -> IngestInput {
    let daemon = AgentProcess { pid: 500, shared: true, ..agent("/", &[&path_of("s")]) };
    IngestInput::Agents(std::iter::once(daemon).chain(clients.iter().cloned()).collect())
}

#[test]
fn a_client_of_a_daemon_is_merged_into_the_daemons_session() {
    let client = || AgentProcess { age_ms: 10_000, ..agent("/p", &[]) };
    let mut world = World::new();
    world.live("s", vec![here("s", 1.0, "/p"), prompt("s", "go", 1.0), answer("s", "ok", 2.0)]);
    world.until(60.0);
    // It began after the last prompt: which session it will have is unknown.
    for _ in 0..2 {
        world.take(served(&[client()]));
    }
    world.commit();
    assert_eq!(world.status("process-821-7"), "waiting new_session");
    world.live("s", vec![prompt("s", "go on", 61.0)]);
    world.take(served(&[client()]));
    world.commit();
    assert_eq!(world.session("process-821-7").merged_into, Some(world.id("s")));
    // A second client in the same directory is not linked to the prompted session.
    for _ in 0..2 {
        world.take(served(&[client(), AgentProcess { pid: 822, ..client() }]));
    }
    world.commit();
    assert_eq!(world.session("process-822-7").merged_into, None);
    assert_eq!(world.status("process-822-7"), "waiting new_session");
    // A client that was started to resume the session.
    let mut world = World::new();
    world.live("s", vec![here("s", 1.0, "/p"), prompt("s", "go", 1.0), answer("s", "ok", 2.0)]);
    world.until(60.0);
    for _ in 0..2 {
        world.take(served(&[AgentProcess { resumes: true, ..client() }]));
    }
    world.commit();
    assert_eq!(world.read().find("process-821-7").unwrap(), None);
    assert_eq!(world.session("s").pid, Some(500));
    world.assert_sound();
}

#[test]
fn an_unused_session_becomes_inactive_after_30_minutes() {
    let said = || vec![here("s", 1.0, "/p"), prompt("s", "go", 1.0), answer("s", "ok", 2.0)];
    let is_active = |world: &mut World, seconds: f64| {
        world.until(seconds);
        let session = world.session("s");
        world.ingest().sessions.is_active(&session, at(seconds))
    };
    // No process is known; a restart makes no difference.
    for restarts in [false, true] {
        let mut world = World::new();
        world.live("s", said());
        assert!(is_active(&mut world, 1_000.0));
        if restarts {
            world.start();
        }
        let due = world.ingest().sessions.next_deadline();
        assert_eq!(due, Some(at(2.0 + 1_800.0)), "30 minutes after its last event");
        assert!(is_active(&mut world, 1_801.0));
        assert!(!is_active(&mut world, 1_803.0));
        assert_eq!(world.ingest().sessions.next_deadline(), None, "once");
    }
    // A daemon keeps the session, and its user is present or has left.
    for (clients, stays) in [(vec![agent("/p", &[])], true), (vec![agent("/q", &[])], false), (Vec::new(), false)] {
        let mut world = World::new();
        world.live("s", said());
        world.until(1_000.0);
        world.take(served(&clients));
        assert!(is_active(&mut world, 1_001.0));
        assert_eq!(is_active(&mut world, 1_810.0), stays, "{clients:?}");
        assert_eq!(world.session("s").pid, Some(500));
        world.assert_sound();
    }
}

/// Gemini CLI restarts itself with more memory.
#[test]
fn a_session_moves_to_the_agent_process_when_its_launcher_exits() {
    let launcher = || agent("/p", &[]);
    let proper =
        |start_ticks| AgentProcess { pid: 900, child: true, parent: Some(NAME.0), start_ticks, ..agent("/p", &[]) };
    // The child began at once; later (a sub-process that the agent itself started); or has ended too.
    for (start_ticks, alive, goes_on) in [(70, true, true), (7_000, true, false), (70, false, false)] {
        let mut world = World::new();
        world.live("s", vec![here("s", 1.0, "/p"), prompt("s", "go", 1.0)]);
        world.take(IngestInput::Agents(vec![launcher(), proper(start_ticks)]));
        world.commit();
        assert_eq!(world.session("s").pid, Some(NAME.0));
        world.asked.alive.lock().unwrap().extend(alive.then_some(900));
        world.take(ended());
        world.until(2.0);
        if goes_on {
            assert_eq!((world.session("s").pid, world.status("s").as_str()), (Some(900), "running thinking"));
            world.take(IngestInput::Ended(EndedProcess { pid: 900, start_ticks }));
            world.until(3.0);
        }
        assert_eq!(world.status("s"), "exited killed", "{start_ticks} {alive}");
        world.assert_sound();
    }
}
