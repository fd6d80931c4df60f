//! Livelocks of many shapes: how many are detected within ten rounds.

use std::collections::BTreeMap;

use events::{ErrorClass, FindingKind, ToolKind};

use crate::{
    script::{Around, End, Script},
    stage::Stage,
};

/// Rounds played of each shape.
const ROUNDS: i64 = 40;
/// Number of rounds within which a loop must be detected.
const WITHIN: usize = 10;
/// The kinds that count as detected.
pub(crate) const FINDS: &[FindingKind] = &[FindingKind::Loop, FindingKind::RepeatedFailure, FindingKind::Stuck];

/// One round of a livelock.
type LoopFound = fn(&mut Script, i64);

/// The shapes, by name.
pub(crate) const SHAPES: &[(&str, LoopFound)] = &[
    ("the same read", |s, _| s.read("src/main.rs", End::Ok, "fn main() {}")),
    ("the same command, which works", |s, _| s.run("git status --short", 1, End::Ok, " M src/main.rs")),
    ("the same command, which fails", |s, n| {
        s.run("make build", 3, End::Failed(2), &format!("main.c:4:5: error: 'x' undeclared (first use in this function)\nmake: *** [main.o] Error 1\nreal 0m{n}.31s"));
    }),
    ("the same command in other dress", |s, n| {
        let dress = ["cargo test", "cd /p && cargo test", "cargo test 2>&1", "cargo test 2>&1 | tail -20"];
        s.run(
            dress[(n % 4) as usize],
            3,
            End::Failed(101),
            "test a ... FAILED\n\ntest result: FAILED. 2 passed; 1 failed; finished in 0.0s",
        );
    }),
    ("three arguments in turn", |s, n| {
        s.read(&format!("src/{}.rs", n % 3), End::Ok, &format!("pub fn f{}() {{}}", n % 3))
    }),
    ("ever new arguments that all fail", |s, n| {
        s.read(&format!("src/module{n}.rs"), End::Failed(1), "<tool_use_error>File does not exist.</tool_use_error>");
    }),
    ("ever new options that all fail", |s, n| {
        s.run(&format!("npm install --retries {n}"), 4, End::Failed(1), &format!("npm error code ERESOLVE\nnpm error ERESOLVE unable to resolve dependency tree\nnpm error log 2026-11-20T04_{n}_00"));
    }),
    ("an edit and back", |s, n| {
        let (old, new) = if n % 2 == 0 { ("x + 1", "x - 1") } else { ("x - 1", "x + 1") };
        s.edit("src/calc.rs", old, new);
    }),
    ("an edit and back, with tests in between", |s, n| {
        let (old, new) = if n % 2 == 0 { ("x + 1", "x - 1") } else { ("x - 1", "x + 1") };
        s.edit("src/calc.rs", old, new);
        s.run(
            "cargo test",
            5,
            End::Failed(101),
            &format!(
                "test {} ... FAILED\ntest result: FAILED. 3 passed; 1 failed; finished in 0.{n}s",
                if n % 2 == 0 { "adds" } else { "subtracts" }
            ),
        );
    }),
    ("a file written one way and another", |s, n| {
        s.write("config.json", if n % 2 == 0 { "{\"a\": 1}" } else { "{\"a\": 2}" })
    }),
    ("a change and git checkout", |s, _| {
        s.edit("src/a.rs", "old()", "new()");
        s.run("git checkout src/a.rs", 1, End::Ok, "Updated 1 path from the index");
    }),
    ("two steps", |s, _| {
        let id = s.call(
            "Edit",
            ToolKind::Edit,
            "src/a.rs",
            r#"{"file_path":"src/a.rs","old_string":"foo","new_string":"bar"}"#,
        );
        s.returns(&id, End::Failed(1), "<tool_use_error>String to replace not found in file.</tool_use_error>");
        s.read("src/a.rs", End::Ok, "fn a() {}");
    }),
    ("three steps", |s, n| {
        s.run("ls src", 1, End::Ok, "a.rs\nb.rs");
        s.read("src/a.rs", End::Ok, "fn a() {}");
        s.run("cargo check", 4, End::Ok, &format!("    Finished `dev` profile in {}.{n}s", n % 7));
    }),
    ("five steps", |s, n| {
        for file in ["a", "b", "c", "d"] {
            s.read(&format!("src/{file}.rs"), End::Ok, file);
        }
        s.run(
            "pytest -q",
            4,
            End::Failed(1),
            &format!("FAILED tests/t.py::test_a - assert 1 == 2\n1 failed, 3 passed in 0.{n}s"),
        );
    }),
    ("a failing test and trivial edits", |s, n| {
        s.edit("src/lib.rs", &format!("// try {n}"), &format!("// try {}", n + 1));
        s.run("cargo test", 5, End::Failed(101), &format!("thread 'adds' (8{n}21) panicked at src/lib.rs:{}:9:\nassertion `left == right` failed\ntest result: FAILED. 2 passed; 1 failed; finished in 0.{n}s", 40 + n));
    }),
    ("a failing test that says something else each time", |s, n| {
        s.edit("src/lib.py", &format!("x = {n}"), &format!("x = {}", n + 1));
        s.run(
            "pytest -q",
            5,
            End::Failed(1),
            &format!("FAILED tests/t.py::test_sum - assert {n} == 42\n1 failed, 7 passed in 0.{n}s"),
        );
    }),
    ("a failing test that says much", |s, n| {
        s.edit("src/lib.rs", &format!("// try {n}"), &format!("// try {}", n + 1));
        let passed: String = (0..60).map(|test| format!("test module::test_number_{test} ... ok\n")).collect();
        s.run("cargo test", 5, End::Failed(101), &format!("   Compiling demo v0.1.0 (/p)\n    Finished `test` profile in {n}.31s\n     Running unittests src/lib.rs (target/debug/deps/demo-1a2b3c4d5e6f7a8b)\n\nrunning 61 tests\n{passed}test adds ... FAILED\n\nfailures:\n    adds\n\ntest result: FAILED. 60 passed; 1 failed; 0 ignored; finished in {n}.02s\n\nerror: test failed, to rerun pass `--lib`"));
    }),
    ("looking without waiting at what never changes", |s, _| s.run("cat /tmp/job.status", 1, End::Ok, "pending")),
    ("waiting for a server that is not there", |s, _| {
        s.run(
            "sleep 5 && curl -fsS localhost:3000/health",
            5,
            End::Failed(7),
            "curl: (7) Failed to connect to localhost port 3000: Connection refused",
        );
    }),
    ("waiting for what never changes", |s, _| s.run("sleep 30 && cat /tmp/job.status", 31, End::Ok, "pending")),
    ("waiting two minutes each for what never changes", |s, _| {
        s.run("sleep 150; cat /tmp/job.status", 151, End::Ok, "pending")
    }),
    ("searches that find nothing", |s, n| s.search(&format!("frobnicate_v{n}"), "No matches found")),
    ("a tool of a server that fails", |s, _| {
        let id = s.call("mcp__db__query", ToolKind::Mcp, "db query", r#"{"sql":"select 1"}"#);
        s.wait(2);
        s.returns(&id, End::Failed(1), "MCP error -32000: Connection closed");
    }),
    ("a request that is tried again", |s, n| {
        s.wait(2 + n);
        s.retry(ErrorClass::Provider, "503", "The model is overloaded. Please try again later.");
    }),
    ("a network that is gone", |s, _| {
        s.wait(20);
        s.retry(ErrorClass::Network, "", "fetch failed");
    }),
    ("ever more time that never is enough", |s, n| {
        let command = format!("timeout {} npm run e2e", 30 * (n + 1));
        s.run(&command, 30, End::Failed(124), &format!("waiting for http://localhost:{} ...", 3000));
    }),
    ("a package by every installer", |s, n| {
        let installer = ["pip install", "pip3 install --no-cache-dir", "python3 -m pip install", "sudo -H pip install"];
        let command = format!("{} torch==2.{n}", installer[(n % 4) as usize]);
        s.run(&command, 4, End::Failed(1), "ERROR: No matching distribution found for torch");
    }),
    ("ever new scripts without what they need", |s, n| {
        s.run(
            &format!("python3 -c \"import yaml; print({n}); f(1 | 2)\""),
            1,
            End::Failed(1),
            "Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\nModuleNotFoundError: No module named 'yaml'",
        );
    }),
];

/// Creates a session that works for a while, then repeats rounds.
pub(crate) fn made(seed: u64, round: LoopFound) -> (Vec<crate::stage::Line>, Vec<i64>) {
    let mut s = Script::new(seed);
    s.prompt("make it work");
    for n in 0..s.between(0, 6) {
        s.read(&format!("docs/{n}.md"), End::Ok, &format!("chapter {n}"));
    }
    let mut ends = Vec::new();
    for n in 0..ROUNDS {
        round(&mut s, n);
        ends.push(s.at);
    }
    (s.lines, ends)
}

/// The round in which it was detected, from 1.
fn found(seed: u64, round: LoopFound, around: Around) -> Option<usize> {
    let (mut lines, ends) = made(seed, round);
    around.put(&mut lines);
    let stage = Stage::played(&lines);
    let at = stage.opened().into_iter().find(|(kind, _)| FINDS.contains(kind)).map(|(_, at)| at)?;
    Some(ends.iter().position(|end| at <= *end).unwrap_or(ends.len()) + 1)
}

#[test]
fn livelocks_are_found_within_ten_repeats() {
    let mut by_shape: BTreeMap<&str, Vec<Option<usize>>> = BTreeMap::new();
    for (name, round) in SHAPES {
        for seed in 0..12 {
            let around = Around::ALL[(seed % 4) as usize];
            by_shape.entry(name).or_default().push(found(seed, *round, around));
        }
    }
    let (mut hit, mut all) = (0, 0);
    for (name, rounds) in &by_shape {
        let soon = rounds.iter().filter(|round| round.is_some_and(|round| round <= WITHIN)).count();
        let worst =
            rounds.iter().map(|round| round.map_or_else(|| "never".into(), |r| format!("{r:>3}"))).max().unwrap();
        println!("{name:<52} {soon:>2} of {} within {WITHIN}, at the latest in round {worst}", rounds.len());
        hit += soon;
        all += rounds.len();
    }
    println!(
        "LIVELOCKS {} shapes, {all} sessions: {hit} within {WITHIN} repeats, {:.1} %",
        by_shape.len(),
        hit as f64 * 100.0 / all as f64
    );
    assert!(hit * 100 >= all * 90, "{hit} of {all}");
    assert!(by_shape.values().flatten().all(Option::is_some), "all are found at last");
}
