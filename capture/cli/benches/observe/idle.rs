//! G6: the cost of capture while nothing happens.

use std::time::{Duration, Instant};

use crate::{
    corpus::World,
    figures::{Better, Goal, Report, rounded},
    program::{ChildDirs, Program, pause},
};

const SETTLE: Duration = Duration::from_secs(6);
const IDLE: Duration = Duration::from_secs(30);

pub(crate) fn measure(world: &mut World, report: &mut Report) {
    let (home, empty) = (world.dir(), world.dir());
    let program = Program::start(&ChildDirs { home: &home, data: &empty, config: &home });
    pause(SETTLE);
    let floor = program.memory("VmRSS");
    program.stop();

    let data = world.ingested();
    let place = world.place(&data);
    // The first start repairs files that were not closed cleanly; the second one is typical.
    let program = Program::start(&place);
    program.settled();
    program.stop();
    let program = Program::start(&place);
    let sessions = program.metric("capture_sessions") as f64;
    pause(SETTLE);
    let (cpu, start) = (program.cpu_of_threads(), Instant::now());
    pause(IDLE);
    let share = 100.0 * (program.cpu_of_threads() - cpu) / start.elapsed().as_secs_f64();
    let rss = program.memory("VmRSS");
    println!(
        "    {sessions} sessions, RSS {} MB (anonymous {}, files {}; peak {}), with an empty home {} MB",
        rounded(rss),
        rounded(program.memory("RssAnon")),
        rounded(program.memory("RssFile")),
        rounded(program.memory("VmHWM")),
        rounded(floor)
    );
    program.stop();
    let each = 1000.0 * (rss - floor) / sessions;
    for (what, value, unit, must, stretch) in [
        ("idle, CPU", share, " %", Some(0.1), None),
        ("idle, RSS", rss, " MB", Some(50.0), Some(33.0)),
        ("idle, RSS per 1,000 sessions above that of an empty home", each, " MB", Some(15.0), None),
    ] {
        report.goal(Goal {
            name: "G6",
            what,
            limit: "-".into(),
            figure: format!("{sessions} sessions"),
            value,
            unit,
            must,
            stretch,
            better: Better::Less,
        });
    }
}
