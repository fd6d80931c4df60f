//! Ignored directories: nothing from their sessions is stored, whatever the source.

use std::os::unix::fs::symlink;

use hooks::delivery::Delivery;
use host_protocol::frame::Hello;
use serde_json::value::RawValue;

use super::*;

fn agent(cwd: &str) -> IngestInput {
    IngestInput::Agents(vec![AgentProcess {
        provider: Provider::Claude,
        pid: 821,
        start_ticks: 7,
        age_ms: 0,
        parent: None,
        child: false,
        cwd: cwd.into(),
        shared: false,
        resumes: false,
        headless: false,
        run: None,
        open_files: Vec::new(),
    }])
}

fn here(session: &str, cwd: &str) -> NewEvent {
    started(session, 1.0, SessionStarted { cwd: Some(cwd.into()), ..SessionStarted::default() })
}

fn hook(seconds: f64, cwd: Option<&str>) -> IngestInput {
    let cwd = cwd.map(|cwd| format!(",\"cwd\":\"{cwd}\"")).unwrap_or_default();
    let payload = format!("{{\"session_id\":\"s\",\"hook_event_name\":\"UserPromptSubmit\",\"prompt\":\"x\"{cwd}}}");
    let delivery = Delivery {
        id: DeliveryId::mint(at(seconds), [seconds as u8; 10]),
        provider: Provider::Claude,
        source: Source::Hook,
        at: at(seconds),
        agent: None,
        run: None,
        search_path: None,
        redacted_from: None,
        payload: RawValue::from_string(payload).unwrap(),
    };
    IngestInput::Delivery(Box::new(HookInput::new(delivery, at(seconds), Box::new(|_| ()))))
}

#[test]
fn an_ignored_directory_is_recognized_through_symlinks() {
    let mut world = World::new();
    let root = world.dir.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join("real/secret/plans")).unwrap();
    symlink(root.join("real"), root.join("link")).unwrap();
    for (session, below) in [("s", "real/secret/plans"), ("t", "link/secret"), ("u", "real/secret")] {
        world.live(session, vec![here(session, root.join(below).to_str().unwrap()), prompt(session, "one", 1.0)]);
    }
    world.live("v", vec![here("v", root.join("real").to_str().unwrap()), prompt("v", "one v", 1.0)]);
    world.commit();
    assert!(!world.told("v").is_empty());
    let captured = world.log().into_iter().filter(|e| e.session_id != world.id("v")).count();
    assert_eq!(captured, 0);
}

#[test]
fn an_agent_in_an_ignored_directory_has_no_session() {
    let mut world = World::new();
    for seconds in [1.0, 3.0, 5.0] {
        world.until(seconds);
        world.take(agent("/secret/plans"));
        world.commit();
    }
    assert_eq!(world.log().len(), 0);
    let filter = store::SessionFilter { before: None, limit: 9 };
    assert_eq!(world.read().views(&filter).unwrap().len(), 0);
    // In another directory it has a session.
    for seconds in [7.0, 9.0] {
        world.until(seconds);
        world.take(agent("/secretary"));
        world.commit();
    }
    assert_eq!(world.read().views(&filter).unwrap().len(), 1);
}

#[test]
fn a_session_without_events_is_not_captured_in_an_ignored_directory() {
    let mut world = World::new();
    // Known as the parent of a sub-agent in another directory; after a start its state is not in memory.
    world.past("helper", vec![started("helper", 1.5, helper_of("s")), prompt("helper", "task", 1.5)]);
    world.commit();
    world.start();
    world
        .live("s", vec![prompt("s", "before it says where", 2.0), here("s", "/secret/plans"), prompt("s", "one", 3.0)]);
    world.commit();
    assert_eq!(world.told("s"), [""; 0]);
    // A session that is already captured stays captured, even in an ignored directory.
    world.live("t", vec![here("t", "/p"), prompt("t", "one t", 4.0)]);
    world.commit();
    world.start();
    world.live("t", vec![here("t", "/secret"), prompt("t", "two t", 5.0)]);
    world.commit();
    assert!(world.told("t").iter().any(|told| told.contains("two t")), "{:?}", world.told("t"));
}

#[test]
fn a_later_hook_naming_an_ignored_directory_stops_capture() {
    let mut world = World::new();
    world.until(1.0);
    world.take(hook(1.0, None));
    world.commit();
    let before = world.log().len();
    world.until(2.0);
    world.take(hook(2.0, Some("/secret/plans")));
    world.until(3.0);
    world.take(hook(3.0, None));
    world.commit();
    assert_eq!(world.log().len(), before);
}

#[test]
fn a_run_in_an_ignored_directory_stores_nothing() {
    let mut world = World::new();
    let hello = Hello {
        run: RunId::from_bits(1),
        name: Some("plans".into()),
        command: vec!["claude".into()],
        provider: Provider::Claude,
        version: None,
        cwd: "/secret/plans".into(),
        pid: 821,
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
    };
    for seconds in [1.0, 3.0, 5.0] {
        world.until(seconds);
        world.take(IngestInput::Host(HostInput::Hello(Box::new(hello.clone()))));
        world.take(agent("/secret/plans"));
        world.live("s", vec![here("s", "/secret/plans"), prompt("s", &format!("p{seconds}"), seconds)]);
        world.commit();
    }
    assert_eq!(world.log().len(), 0);
}
