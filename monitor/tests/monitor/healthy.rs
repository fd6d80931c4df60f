//! Healthy sessions: how often findings are raised although nothing is wrong.

use std::collections::BTreeMap;

use events::{ErrorClass, FindingKind, PromptOrigin, ToolKind};

use crate::{
    script::{Around, End, Script},
    stage::{Line, Stage},
};

/// Findings that are correct in a healthy session if their cause occurred.
pub(crate) const RIGHT: &[FindingKind] = &[
    FindingKind::Approval,
    FindingKind::ApprovalBacklog,
    FindingKind::Question,
    FindingKind::Completion,
    FindingKind::LongJob,
    FindingKind::Idle,
];

/// Number of sessions played for the figures; each lasts some hours.
const SESSIONS: u64 = 92;
/// First of the held-out seeds, which were not used while the rules were written.
const HELD_OUT: u64 = 7_000_000;

/// Creates a session of a few hours in which nothing is wrong.
pub(crate) fn made(seed: u64) -> Vec<Line> {
    let mut s = Script::new(seed);
    let turns = s.between(6, 16);
    for turn in 0..turns {
        s.prompt(&format!("task {turn}"));
        for _ in 0..s.between(1, 5) {
            let what = s.dice(18);
            activity(&mut s, what, turn);
        }
        s.answer("done");
        let pause = match s.dice(6) {
            0 => s.between(1_800, 5_400),
            1 | 2 => s.between(200, 900),
            _ => s.between(5, 120),
        };
        s.wait(pause);
    }
    s.leave();
    s.lines
}

fn activity(s: &mut Script, what: u64, turn: i64) {
    let tag = s.dice(1 << 40);
    match what {
        // Reads files, with some searches that find nothing.
        0 | 1 => {
            for n in 0..s.between(5, 40) {
                if s.dice(5) == 0 {
                    s.search(&format!("name_{tag}_{n}"), "No matches found");
                } else {
                    s.read(&format!("src/{tag}/{n}.rs"), End::Ok, &format!("pub fn f{n}_{tag}() {{}}"));
                }
            }
        }
        // Reads one file repeatedly, between edits of it.
        2 => {
            for n in 0..s.between(4, 12) {
                s.read("src/lib.rs", End::Ok, &format!("version {n} of {tag}"));
                s.edit("src/lib.rs", &format!("a{n}{tag}"), &format!("b{n}{tag}"));
            }
        }
        // Test first: failing, a few tries, passing.
        3..=5 => {
            for n in 0..s.between(2, 7) {
                s.edit(&format!("tests/{n}.rs"), "", &format!("fn case_{n}_{tag}() {{}}"));
                for _ in 0..s.between(1, 3) {
                    let secs = s.between(2, 30);
                    s.run("cargo test", secs, End::Failed(101), &format!("test case_{n}_{tag} ... FAILED\n\ntest result: FAILED. {n} passed; 1 failed; finished in 0.{secs}s"));
                    s.edit("src/lib.rs", &format!("x{n}{tag}{}", s.at), "y");
                }
                s.run(
                    "cargo test",
                    5,
                    End::Ok,
                    &format!("test result: ok. {} passed; 0 failed; finished in 0.2s", n + 1),
                );
            }
        }
        // A failing suite that improves step by step.
        6 => {
            let mut failed = s.between(4, 15);
            while failed > 0 {
                s.run(
                    "npx jest",
                    12,
                    End::Failed(1),
                    &format!(
                        "Tests:       {failed} failed, {} passed, 40 total\nTime:        {failed}.2 s",
                        40 - failed
                    ),
                );
                s.edit("src/a.ts", &format!("fix {failed} {tag}"), "better");
                failed -= s.between(1, 3);
            }
            s.run("npx jest", 12, End::Ok, "Tests:       40 passed, 40 total\nTime:        9 s");
        }
        // A slow build.
        7 => {
            let secs = s.between(120, 2_400);
            s.run(
                "cargo build --release",
                secs,
                End::Ok,
                &format!("    Finished `release` profile in {secs}.0s {tag}"),
            );
        }
        // Waits for the CI, which reports its progress.
        8 => {
            for n in 0..s.between(5, 25) {
                s.run("sleep 60 && gh run view 17", 62, End::Ok, &format!("in_progress  {n} of 25 jobs done"));
            }
            s.run("sleep 60 && gh run view 17", 62, End::Ok, "completed success");
        }
        // Waits for the CI, which only reports that it is running.
        9 => {
            for _ in 0..s.between(3, 15) {
                s.run("sleep 45", 45, End::Ok, "");
                s.run("gh run view 18 --json status", 2, End::Ok, "{\"status\":\"in_progress\"}");
            }
            s.run("gh run view 18 --json status", 2, End::Ok, "{\"status\":\"completed\"}");
        }
        // Checks on a server in the background.
        10 => {
            for _ in 0..s.between(3, 8) {
                let id = s.call("BashOutput", ToolKind::Other, "bash_1", r#"{"bash_id":"bash_1"}"#);
                s.returns(&id, End::Ok, "<status>running</status>");
                let n = s.dice(1 << 30);
                s.edit("src/page.tsx", &format!("a{n}"), "b");
            }
        }
        // Follows a log for a while.
        11 => {
            let secs = s.between(30, 600);
            s.run("timeout 600 tail -f server.log", secs, End::Ok, &format!("log of {tag}"));
        }
        // Asks for permission.
        12 => {
            for n in 0..s.between(1, 4) {
                let waits = s.between(1, 400);
                s.approval(&format!("npm run step-{n}"), waits, 5, &format!("done {n} {tag}"));
            }
        }
        // The model fails temporarily.
        13 => {
            for n in 0..s.between(1, 5) {
                s.wait(2 << n);
                let (class, code) = [
                    (ErrorClass::RateLimit, "429"),
                    (ErrorClass::Provider, "529"),
                    (ErrorClass::Provider, "500"),
                    (ErrorClass::Network, ""),
                ][(n % 4) as usize];
                s.retry(class, code, "please try again later");
            }
            s.say("back again");
        }
        // Thinks for a long time.
        14 => {
            let secs = s.between(60, 480);
            s.wait(secs);
            s.say(&format!("thought about {tag}"));
        }
        // Checks the state of the work between other steps.
        15 => {
            for n in 0..s.between(4, 14) {
                s.edit(&format!("src/{tag}{n}.rs"), "a", "b");
                s.run("git status --short", 1, End::Ok, " M src/lib.rs");
                s.run("cargo fmt --check", 1, End::Ok, "");
            }
        }
        // Checks whether the tests notice a bug: adds one and fixes it.
        16 => {
            s.edit("src/lib.rs", &format!("keep{tag}"), "break");
            s.run(
                "pytest -q",
                9,
                End::Failed(1),
                &format!("FAILED tests/t.py::test_{tag} - assert 0\n1 failed, 9 passed in 0.3s"),
            );
            s.edit("src/lib.rs", "break", &format!("keep{tag}"));
            s.run("pytest -q", 9, End::Ok, "10 passed in 0.3s");
        }
        // Works through a list, woken each time.
        _ => {
            for n in 0..s.between(2, 6) {
                s.run("./deploy status", 2, End::Ok, &format!("step {n} of {turn}-{tag}"));
                s.answer("waiting for the next step");
                let secs = s.between(60, 600);
                s.wait(secs);
                s.asks(PromptOrigin::Wakeup, "<task-notification>");
            }
            s.say("all steps are done");
        }
    }
}

/// The outcome of some sessions.
struct Played {
    hours: f64,
    events: usize,
    /// Seed, kind and text of findings that should not have been raised.
    wrong: Vec<(u64, FindingKind, String)>,
    found: BTreeMap<FindingKind, usize>,
}

fn play(seeds: std::ops::Range<u64>) -> Played {
    let (mut hours, mut events) = (0.0, 0);
    let mut wrong = Vec::new();
    let mut found: BTreeMap<FindingKind, usize> = BTreeMap::new();
    for seed in seeds {
        let mut lines = made(seed);
        Around::ALL[(seed % 4) as usize].put(&mut lines);
        let mut stage = Stage::new();
        stage.looks = false;
        stage.play(&lines);
        hours += lines.last().map_or(0.0, |line| line.at as f64 / 3_600_000.0);
        events += lines.len();
        for (kind, _) in stage.opened() {
            *found.entry(kind).or_default() += 1;
            if !RIGHT.contains(&kind) {
                let last = stage.last(kind).unwrap();
                wrong.push((seed, kind, format!("{}: {}", last.what, last.why)));
            }
        }
    }
    Played { hours, events, wrong, found }
}

fn check(name: &str, seeds: std::ops::Range<u64>, at_least: f64) {
    let Played { hours, events, wrong, found } = play(seeds);
    for (seed, kind, what) in wrong.iter().take(20) {
        println!("  seed {seed}: {kind}: {what}");
    }
    let found: Vec<String> = found.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    let rate = wrong.len() as f64 * 100.0 / hours;
    println!(
        "HEALTHY {name}: {hours:.0} session-hours, {events} events, {} false findings, {rate:.2} in 100 hours; found {}",
        wrong.len(),
        found.join(", ")
    );
    assert!(hours >= at_least, "{hours}");
    assert!(rate <= 1.0, "{rate:.2} false findings in 100 hours");
}

#[test]
fn known_healthy_sessions_have_few_false_findings() {
    check("looked at", 0..SESSIONS / 4, 100.0);
}

#[test]
fn held_out_healthy_sessions_have_few_false_findings() {
    check("held out", HELD_OUT..HELD_OUT + SESSIONS, 500.0);
}
