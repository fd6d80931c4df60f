//! Invariants for arbitrary inputs.

use proptest::{collection::vec, prelude::*, sample::select};

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Events(Vec<(u8, u8, u8)>),
    Until(f64),
    Ended,
    Agents(bool),
    Commit,
    Restart,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => vec((0..3_u8, 0..40_u8, 0..12_u8), 1..6).prop_map(Step::Events),
        3 => select(vec![0.0, 0.3, 1.0, 5.0, 130.0, 700.0]).prop_map(Step::Until),
        1 => Just(Step::Ended),
        1 => any::<bool>().prop_map(Step::Agents),
        2 => Just(Step::Commit),
        1 => Just(Step::Restart),
    ]
}

/// One of the events a file may contain: `record` identifies it, so that it can be repeated.
fn make(session: &str, record: u8, what: u8, seconds: f64) -> NewEvent {
    let name = format!("{session}-{record}-{what}");
    match what {
        0 | 1 => prompt(session, &name, seconds),
        2 => answer(session, &name, seconds),
        3 => block(session, &name, seconds, &format!("m{}", record % 4), Some("said"), Stop::ToolUse),
        4 => block(session, &name, seconds, &format!("m{}", record % 4), None, Stop::ToolUse),
        5 => call(session, &name, seconds),
        6 => result(session, &name, &format!("{session}-{record}-5"), seconds),
        7 => claims(session, &name, seconds, State::ALL[usize::from(record) % 5]),
        8 => registry(session, &name, seconds, Claim::ProcessAlive { pid: 821, start_ticks: 7 }),
        9 => registry(session, &name, seconds, Claim::Withdrawn),
        10 => tokens(session, &name, seconds, 5),
        // A record that several sessions may contain, and the start of a sub-agent.
        _ if record.is_multiple_of(2) => prompt(session, &format!("shared-{}", record % 3), seconds),
        _ => started(
            session,
            seconds,
            if session == "helper" {
                helper_of("s")
            } else {
                SessionStarted { cwd: Some("/p".into()), ..SessionStarted::default() }
            },
        ),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_history_produces_a_consistent_log(history in vec((0..3_u8, 0..40_u8, 0..7_u8), 0..20), steps in vec(any_step(), 0..30)) {
        let names = ["s", "t", "helper"];
        let mut world = World::new();
        let mut now = 1_000.0;
        world.until(now);
        for name in names {
            let mut seconds = 0.0;
            let events = history.iter().filter(|(session, ..)| names[usize::from(*session)] == name).map(|(_, record, what)| {
                seconds += 7.0;
                NewEvent { observed_at: at(1_000.0), ..make(name, *record, *what, seconds) }
            });
            let events: Vec<NewEvent> = events.collect();
            if !events.is_empty() {
                world.past(name, events);
            }
        }
        world.until(now);
        world.assert_sound();
        for step in steps {
            match step {
                Step::Events(events) => {
                    let events = events.into_iter().map(|(session, record, what)| make(names[usize::from(session)], record, what, now)).collect();
                    world.live("s", events);
                }
                Step::Until(more) => {
                    now += more;
                    world.until(now);
                }
                Step::Ended => world.take(IngestInput::Ended(EndedProcess { pid: 821, start_ticks: 7 })),
                Step::Agents(open) => {
                    let open_files = if open { vec![PathBuf::from(path_of("s"))] } else { Vec::new() };
                    let agent = AgentProcess { provider: Provider::Claude, pid: 821, start_ticks: 7, age_ms: 0, parent: None, child: false, run: None, cwd: PathBuf::from("/p"), shared: false, resumes: false, headless: false, open_files };
                    world.take(IngestInput::Agents(vec![agent]));
                }
                Step::Commit => world.commit(),
                Step::Restart => {
                    // Rows may be behind their logs.
                    world.ingest().commit();
                    world.start();
                }
            }
        }
        world.until(now);
        world.assert_sound();
        // A restart makes no difference.
        let before = world.log();
        world.start();
        world.until(now);
        prop_assert_eq!(world.log(), before);
        world.assert_sound();
    }
}
