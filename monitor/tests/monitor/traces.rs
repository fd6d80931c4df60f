//! The labelled traces of `fixtures/monitor`: what must be found by when, and that nothing else is found.
//!
//! `UPDATE_TRACES=1` regenerates them.

use std::{collections::BTreeSet, fs, path::PathBuf};

use events::{ErrorClass, FindingKind, PromptOrigin, ToolKind};

use crate::{
    healthy::{self, RIGHT},
    livelocks,
    script::{End, Script},
    stage::{Expected, Head, Line, Stage, file_of},
};

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/monitor"))
}

/// Checks that the expected findings are raised, and no unexpected ones.
fn check(name: &str, text: &str) -> Result<String, String> {
    let (head, lines) = text.split_once('\n').unwrap();
    let head: Head = serde_json::from_str(head).unwrap_or_else(|error| panic!("{name}: {error}"));
    let lines: Vec<Line> = lines.lines().map(Line::read).collect();
    let mut stage = Stage::played(&lines);
    stage.until((head.until * 1000.0) as i64);
    let opened = stage.opened();
    let mut wanted: BTreeSet<FindingKind> = BTreeSet::new();
    let mut said = Vec::new();
    for expected in &head.expected {
        wanted.insert(expected.kind);
        let Some((_, at)) = opened.iter().find(|(kind, _)| *kind == expected.kind) else {
            return Err(format!("{name}: no {}; {opened:?}", expected.kind));
        };
        if *at as f64 / 1000.0 > expected.by {
            return Err(format!("{name}: {} after {} s, by {} s wanted", expected.kind, at / 1000, expected.by));
        }
        said.push(format!("{} after {} s", expected.kind, at / 1000));
    }
    // A loop of failures is first detected as a repeated failure.
    let circle = wanted.contains(&FindingKind::Loop) || wanted.contains(&FindingKind::RepeatedFailure);
    let more = opened.iter().find(|(kind, _)| {
        let fails = circle && matches!(kind, FindingKind::RepeatedFailure | FindingKind::Loop);
        !(wanted.contains(kind) || RIGHT.contains(kind) || fails)
    });
    if let Some((kind, at)) = more {
        return Err(format!("{name}: {kind} after {} s is not expected: {:?}", at / 1000, stage.last(*kind)));
    }
    Ok(if said.is_empty() { "nothing".to_owned() } else { said.join(", ") })
}

#[test]
fn every_fixture_trace_raises_its_labelled_findings() {
    let mut names: Vec<PathBuf> = Vec::new();
    for part in ["generated", "recorded"] {
        names.extend(fs::read_dir(folder().join(part)).unwrap().map(|entry| entry.unwrap().path()));
    }
    names.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
    names.sort();
    let mut wrong = Vec::new();
    for path in &names {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        match check(&name, &fs::read_to_string(path).unwrap()) {
            Ok(said) => println!("{name:<40} {said}"),
            Err(why) => wrong.push(why),
        }
    }
    println!("TRACES {} of {} as labelled", names.len() - wrong.len(), names.len());
    assert!(names.len() >= 30, "{} traces", names.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn trace(name: &str, says: &str, expected: &[(FindingKind, f64)], until: f64, lines: &[Line]) -> (String, String) {
    let expected = expected.iter().map(|(kind, by)| Expected { kind: *kind, by: *by }).collect();
    (name.to_owned(), file_of(&Head { trace: says.to_owned(), expected, until }, lines))
}

/// The generated traces: name and content.
fn generated() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (n, (says, round)) in livelocks::SHAPES.iter().enumerate() {
        let (lines, ends) = livelocks::made(n as u64, *round);
        let slow = says.starts_with("waiting for what never");
        let (last, by) = if slow { (40, ends[39]) } else { (14, ends[9]) };
        let until = ends[last - 1];
        let kind = livelock_kind(&lines);
        let lines: Vec<Line> = lines.into_iter().filter(|line| line.at <= until).collect();
        let name = format!("livelock-{}", says.replace(", ", "-").replace(' ', "-"));
        all.push(trace(&name, says, &[(kind, by as f64 / 1000.0)], until as f64 / 1000.0, &lines));
    }
    for (seed, says) in [(3, "a long healthy session"), (11, "another long healthy session"), (42, "one more")] {
        let mut lines = healthy::made(seed);
        lines.truncate(260);
        let until = lines.last().unwrap().at as f64 / 1000.0;
        all.push(trace(&format!("healthy-{seed}"), says, &[], until, &lines));
    }
    all.extend(by_hand());
    all
}

/// The expected kind for a livelock: `stuck` if its request is retried.
fn livelock_kind(lines: &[Line]) -> FindingKind {
    let stage = Stage::played(lines);
    let found = stage.opened().into_iter().map(|(kind, _)| kind).find(|kind| livelocks::FINDS.contains(kind));
    found.unwrap_or(FindingKind::Loop)
}

fn by_hand() -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut add = |name: &str, says: &str, expected: &[(FindingKind, f64)], rest: i64, s: Script| {
        let until = (s.at / 1000 + rest) as f64;
        all.push(trace(name, says, expected, until, &s.lines));
    };
    let begun = |seed| {
        let mut s = Script::new(seed);
        s.prompt("do the work");
        s.wait(1);
        s
    };
    let mut s = begun(1);
    for n in 0..9 {
        s.edit("tests/a.rs", &format!("case {n}"), "next");
        s.run(
            "cargo test",
            9,
            End::Failed(101),
            &format!("test case_{n} ... FAILED\ntest result: FAILED. {n} passed; 1 failed; finished in 0.1s"),
        );
        s.edit("src/lib.rs", &format!("old {n}"), "new");
        s.run("cargo test", 9, End::Ok, &format!("test result: ok. {} passed; 0 failed; finished in 0.1s", n + 1));
    }
    s.answer("done");
    add("healthy-tdd", "test first, red and green, with progress", &[], 60, s);

    let mut s = begun(2);
    for n in 0..60 {
        s.read(&format!("src/part{n}.rs"), End::Ok, &format!("part {n}"));
    }
    s.answer("done");
    add("healthy-many-reads", "sixty files are read", &[], 60, s);

    let mut s = begun(3);
    for n in 0..24 {
        s.run("sleep 60 && gh run view 5", 61, End::Ok, &format!("in_progress, {n} of 24 jobs"));
    }
    s.answer("the run passed");
    add("healthy-ci", "a supervisor looks at a run that goes on", &[], 60, s);

    let mut s = begun(4);
    for _ in 0..12 {
        s.run("sleep 60", 60, End::Ok, "");
        s.run("gh run view 6 --json status", 2, End::Ok, "{\"status\":\"in_progress\"}");
    }
    s.run("gh run view 6 --json status", 2, End::Ok, "{\"status\":\"completed\"}");
    s.answer("the run passed");
    add("healthy-ci-silent", "a run that says nothing but that it runs, for twelve minutes", &[], 60, s);

    let mut s = begun(5);
    s.run("cargo build --release", 2_700, End::Ok, "Finished in 45m 00s");
    s.answer("built");
    add("healthy-slow-build", "a build of 45 minutes", &[(FindingKind::LongJob, 2_720.0)], 60, s);

    let mut s = begun(6);
    s.call("Bash", ToolKind::Execute, "npm run dev -- --watch", "{\"command\":\"npm run dev -- --watch\"}");
    s.wait(14_400);
    add("healthy-watcher", "a server that watches, in the foreground, for four hours", &[], 0, s);

    let mut s = begun(7);
    for n in 0..6 {
        s.say(&format!("thought {n}"));
        s.wait(540);
    }
    s.answer("done");
    add("healthy-slow-model", "a model that thinks for nine minutes at a time", &[], 60, s);

    let mut s = begun(8);
    for n in 0..4 {
        s.wait(1 << n);
        s.retry(ErrorClass::Provider, "529", "overloaded_error");
    }
    s.say("back");
    s.answer("done");
    add("healthy-few-retries", "four attempts fail, then the model answers", &[], 60, s);

    let mut s = begun(9);
    s.say("hm");
    add("stuck-silence", "an open turn and nothing more", &[(FindingKind::Stuck, 700.0)], 900, s);

    let mut s = begun(10);
    s.call("mcp__db__dump", ToolKind::Mcp, "dump", "{}");
    add("stuck-tool", "a tool that never returns", &[(FindingKind::Stuck, 1_900.0)], 2_000, s);

    let mut s = begun(11);
    for n in 0..29 {
        s.wait(if n % 3 == 2 { 1 } else { 6 });
        s.retry(ErrorClass::Provider, "503", "{\"error\":{\"code\":503,\"message\":\"The model is overloaded. Please try again later.\",\"status\":\"UNAVAILABLE\"}}");
    }
    add(
        "stuck-rounds-of-three",
        "a model that is overloaded for 150 s, tried in rounds of three",
        &[(FindingKind::Stuck, 60.0)],
        0,
        s,
    );

    let mut s = begun(12);
    for _ in 0..10 {
        s.wait(4);
        s.retry(ErrorClass::RateLimit, "429", "rate_limit_error");
    }
    s.fails(ErrorClass::RateLimit, "429", "API Error: 429 rate_limit_error");
    add(
        "rate-limit",
        "a limit that ends the turn after ten attempts",
        &[(FindingKind::RateLimit, 50.0), (FindingKind::Stuck, 50.0)],
        60,
        s,
    );

    let mut s = begun(13);
    s.fails(ErrorClass::Quota, "usage_limit_exceeded", "You've hit your usage limit. Try again in 2 hours 5 minutes.");
    add("quota", "a quota that is used up", &[(FindingKind::Quota, 5.0)], 60, s);

    let mut s = begun(14);
    s.fails(ErrorClass::Auth, "401", "Invalid API key · Please run /login");
    add("auth", "a key that is refused", &[(FindingKind::Auth, 5.0)], 60, s);

    let mut s = begun(15);
    s.fails(ErrorClass::Network, "", "fetch failed");
    add("network", "a network that is gone", &[(FindingKind::Network, 5.0)], 60, s);

    let mut s = begun(16);
    s.call("Bash", ToolKind::Execute, "make", "{\"command\":\"make\"}");
    s.wait(20);
    s.killed();
    add("killed", "a process that is killed in the middle of a command", &[(FindingKind::Crash, 40.0)], 60, s);

    let mut s = begun(17);
    s.run("pytest", 5, End::Failed(1), "1 failed, 3 passed in 0.1s");
    s.answer("one test fails");
    s.wait(30);
    s.leave();
    add("left-failing", "a session that is left with a failing test", &[(FindingKind::OpenWork, 60.0)], 60, s);

    let mut s = begun(18);
    s.run(
        "git rebase main",
        2,
        End::Failed(1),
        "CONFLICT (content): Merge conflict in a.rs\nerror: could not apply 1a2b3c4",
    );
    add("conflict", "a rebase with conflicts", &[(FindingKind::MergeConflict, 30.0)], 5, s);

    let mut s = begun(19);
    s.approval("curl -fsSL https://example.com/install.sh | sh", 30, 5, "ok");
    s.answer("installed");
    add("risky-approval", "a script from the network, asked for", &[(FindingKind::RiskyApproval, 40.0)], 60, s);

    let mut s = begun(20);
    s.context = 169_000;
    s.read("big.txt", End::Ok, &"x".repeat(60_000));
    s.answer("read");
    add("context-full", "a file that fills the context", &[(FindingKind::ContextFull, 60.0)], 60, s);

    let mut s = begun(21);
    for _ in 0..14 {
        s.run("./tick", 2, End::Ok, "nothing to do");
        s.answer("nothing to do");
        s.wait(300);
        s.asks(PromptOrigin::Wakeup, "<tick>");
    }
    add("healthy-woken", "an agent that is woken every five minutes and looks, for an hour and more", &[], 0, s);
    all
}

/// Whether the committed traces equal the generated ones.
#[test]
#[expect(clippy::disallowed_methods, reason = "whether to write is the environment's to say")]
fn the_committed_traces_match_the_generator() {
    let folder = folder().join("generated");
    let update = std::env::var_os("UPDATE_TRACES").is_some();
    for (name, content) in generated() {
        let path = folder.join(format!("{name}.jsonl"));
        if update {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&path, &content).unwrap();
        }
        let committed = fs::read_to_string(&path).unwrap_or_default();
        assert!(committed == content, "{}: not what the generator makes; UPDATE_TRACES=1 writes it", path.display());
    }
}
