//! Behaviour of the thread when the store cannot be read.

use std::{path::Path, sync::Arc};

use events::{Confidence, Event, EventId, Origin, Provider, SessionStarted, Source, UserPrompt};
use ingest::Inputs;
use store::Writer;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    automatic_prompts::AutomaticPrompts,
    prompts::{Prompts, QueueParts},
    runs::Runs,
};

/// The thread's state, with the database of this directory.
fn thread(dir: &Path, runtime: &tokio::runtime::Runtime) -> (MonitorThread, Inputs) {
    let (inputs, incoming) = ingest::channel(16);
    let (reader, runs) =
        (Reader::new(dir.join("capture.db")), Runs::new(inputs.clone(), live_view::LiveView::new("test")));
    let parts = QueueParts { inputs: inputs.clone(), reader: reader.clone(), runs: runs.clone() };
    let prompts = Prompts::start(parts, runtime.handle(), CancellationToken::new(), &Supervisor::default());
    let actions = Actions {
        rules: Vec::new(),
        runs,
        prompts,
        inputs: inputs.clone(),
        runtime: runtime.handle().clone(),
        automatic: AutomaticPrompts::default(),
    };
    let rules = monitor::DetectorLimits::default();
    let parts = MonitorParts { inputs, reader, rules: rules.clone(), actions };
    (MonitorThread::new(parts, Monitor::new(rules), ImportedSessions::default(), clock::now()), incoming)
}

fn event(n: u64, payload: impl Into<Payload>) -> Event {
    let at = Timestamp::from_millisecond(1_000 * n as i64);
    Event {
        position: n,
        id: EventId::from_bits(u128::from(n)),
        session_id: session(),
        sequence: n,
        provider: Provider::Claude,
        provider_session_id: Arc::from("s"),
        source: Source::Transcript,
        created_at: at,
        observed_at: at,
        turn_id: None,
        parent_id: None,
        agent_id: None,
        confidence: Confidence::High,
        severity: None,
        derived: false,
        history: false,
        text: None,
        text_ref: None,
        payload: payload.into(),
        origin: Origin::Derived,
    }
}

fn session() -> SessionId {
    SessionId::mint(Timestamp::from_millisecond(5), Provider::Claude, "s")
}

#[test]
fn a_thread_that_could_not_read_the_store_later_starts_at_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(dir.path()).unwrap();
    let mut write = |n: u64, payload: Payload| {
        writer.begin().unwrap();
        let known = writer.sessions().unwrap().first().map(|known| known.row);
        let row = known.unwrap_or_else(|| writer.add_session(session(), Provider::Claude, "s").unwrap());
        writer.append(row, &event(n, payload), None).unwrap();
        writer.commit().unwrap();
    };
    write(1, SessionStarted::default().into());
    write(2, UserPrompt::default().into());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let (mut thread, incoming) = thread(elsewhere.path(), &runtime);
    for _ in 0..2 {
        assert!(thread.follow().is_err());
        assert_eq!(thread.position, None, "nothing counts as read");
    }
    std::os::unix::fs::symlink(dir.path().join("capture.db"), elsewhere.path().join("capture.db")).unwrap();
    thread.follow().unwrap();
    assert_eq!(thread.position, Some(2), "what was there before does not count as new");
    write(3, UserPrompt::default().into());
    thread.follow().unwrap();
    assert_eq!((thread.position, thread.known.len(), thread.touched.len()), (Some(3), 1, 0));
    assert_eq!(incoming.try_iter().count(), 0);
}

#[test]
fn a_restart_keeps_a_boundary_that_is_older_than_the_history_that_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(dir.path()).unwrap();
    let mut write = |events: &[Event]| {
        writer.begin().unwrap();
        let known = writer.sessions().unwrap().first().map(|known| known.row);
        let row = known.unwrap_or_else(|| writer.add_session(session(), Provider::Claude, "s").unwrap());
        events.iter().for_each(|event| writer.append(row, event, None).unwrap());
        writer.commit().unwrap();
    };
    let mut before = vec![
        event(1, SessionStarted::default()),
        Event { text: Some("don't push".into()), ..event(2, UserPrompt { stated: true, ..UserPrompt::default() }) },
    ];
    before.extend((3..LOOK_BACK as u64 + 50).map(|n| event(n, events::Heartbeat::default())));
    write(&before);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let (mut thread, incoming) = thread(dir.path(), &runtime);
    thread.follow().unwrap();
    let next = LOOK_BACK as u64 + 50;
    let call = events::ToolCall {
        call_id: "c".into(),
        name: "Bash".into(),
        tool: events::ToolKind::Execute,
        title: Some("git push".into()),
        ..events::ToolCall::default()
    };
    let result = events::ToolResult { call_id: "c".into(), exit_code: Some(0), ..events::ToolResult::default() };
    write(&[event(next, call), event(next + 1, result)]);
    thread.follow().unwrap();
    let found: Vec<String> = incoming
        .try_iter()
        .filter_map(|input| match input {
            IngestInput::Derived(DerivedRecord { what: DerivedKind::Finding(finding), .. }) => Some(finding.what),
            _ => None,
        })
        .collect();
    let old: Vec<String> = thread.old.values().map(|(_, finding)| finding.what.clone()).collect();
    assert_eq!([found, old].concat(), ["`git push` ran although you said: do not push"]);
}
