use events::EventId;

use super::*;

/// The receipt of one command with this output.
fn receipt_of(command: &str, outcome: ToolOutcome, exit_code: Option<i32>, output: &str) -> Receipt {
    let mut receipt = Receipt::default();
    run(&mut receipt, 1, command, outcome, exit_code, output);
    receipt
}

fn run(receipt: &mut Receipt, event: u128, command: &str, outcome: ToolOutcome, exit_code: Option<i32>, output: &str) {
    let call = FinishedCall { tool: ToolKind::Execute, title: Some(command), exit_code, outcome, text: Some(output) };
    ran(receipt, &call, &open(command), EventId::from_bits(event));
}

/// The open call of a command.
fn open(command: &str) -> OpenCall {
    OpenCall {
        call_id: "call".into(),
        name: "Bash".into(),
        tool: ToolKind::Execute,
        title: Some(command.into()),
        shown: Some(command.into()),
        files: Vec::new(),
        checks: checks_of(command),
        line: LineKind::of(command),
        continues: None,
        may_ask: false,
        at: events::Timestamp::default(),
    }
}

/// The verdicts of a command: `tests passed 3/0, commit failed`.
fn verdicts(command: &str, exit_code: Option<i32>, output: &str) -> String {
    let outcome = if exit_code.is_none_or(|code| code == 0) { ToolOutcome::Ok } else { ToolOutcome::Error };
    let receipt = receipt_of(command, outcome, exit_code, output);
    let shown = |check: &Check| {
        let verdict = match check.verdict {
            CheckVerdict::Passed => "passed",
            CheckVerdict::Failed => "failed",
            CheckVerdict::Unknown => "unknown",
        };
        let counts = check.counts.map(|counts| format!(" {}/{}", counts.passed, counts.failed)).unwrap_or_default();
        format!("{} {verdict}{counts}", check.class.noun())
    };
    receipt.checks.iter().map(shown).collect::<Vec<_>>().join(", ")
}

fn classes(command: &str) -> Vec<CheckClass> {
    checks_of(command).iter().map(|check| check.class).collect()
}

#[test]
fn commands_are_classified_by_their_program_and_not_by_words_in_them() {
    use CheckClass::{Build, Commit, Deploy, Format, Install, Lint, Merge, Push, Tests, Types};
    for (command, class) in [
        ("cargo test", Tests),
        ("cargo +nightly nextest run --workspace", Tests),
        ("cd app && RUST_BACKTRACE=1 cargo test -p x 2>&1 | tail -20", Tests),
        ("npm test", Tests),
        ("npm --prefix web run test:unit -- --run", Tests),
        ("pnpm --filter web test", Tests),
        ("npx -y vitest run", Tests),
        ("uv run --with x pytest -q", Tests),
        ("python3 -m pytest -q", Tests),
        ("python -m unittest", Tests),
        ("timeout 120 go test ./...", Tests),
        ("env A=1 ./gradlew :app:testDebug", Tests),
        ("bundle exec rspec", Tests),
        ("docker compose exec -T web pytest", Tests),
        ("bash -lc 'cd x && make test'", Tests),
        ("node_modules/.bin/jest --ci", Tests),
        ("node --test test/", Tests),
        ("mise run test:ci -- -run TestX -v 2>&1 | tail -3", Tests),
        ("mise run lint", Lint),
        ("env PATH=/x/bin:/bin node --run format:check", Format),
        ("node --run typecheck", Types),
        ("rtk cargo test", Tests),
        ("mix test", Tests),
        ("./scripts/run_tests.sh", Tests),
        ("sh test.sh", Tests),
        ("dotnet test --no-build", Tests),
        ("(cd a && mvn -q clean verify)", Tests),
        ("cargo build --release", Build),
        ("npm run build", Build),
        ("make -j8", Build),
        ("cmake --build build", Build),
        ("docker build -t x .", Build),
        ("npx tsc --noEmit", Types),
        ("cargo check", Types),
        ("pnpm run typecheck", Types),
        ("uv run mypy src", Types),
        ("cargo clippy --all-targets -- -D warnings", Lint),
        ("npm run lint:fix", Lint),
        ("ruff check .", Lint),
        ("cargo fmt --check", Format),
        ("npx prettier --write .", Format),
        ("git commit -m \"$(cat <<'EOF'\ncargo test && npm run build; all 3 pass\n\nEOF\n)\"", Commit),
        ("git -C /repo -c user.name=x commit -am 'test'", Commit),
        ("git push -u origin HEAD", Push),
        ("git merge --no-ff topic", Merge),
        ("gh pr merge 12 --squash", Merge),
        ("npm ci", Install),
        ("pip install -r requirements.txt", Install),
        ("sudo apt-get -y install jq", Install),
        ("kubectl -n prod apply -f x.yaml", Deploy),
        ("npx wrangler deploy", Deploy),
    ] {
        assert_eq!(classes(command), [class], "{command}");
    }
    for command in [
        "echo 'cargo test'",
        "grep -rn 'npm test' docs",
        "cat tests/a.rs",
        "git checkout test",
        "git log --grep 'git push'",
        "rg 'cargo build' .github",
        "ls test",
        "test -f cargo",
        "git push --dry-run",
        "make clean",
        "npm run dev",
        "npm run test:watch",
        "printf 'run: pytest\\n' > ci.yml",
        "cat > run.sh <<'EOF'\nnpm test\ngit push\nEOF",
        "terraform plan",
        "kubectl get pods",
        "pytest --version",
        "f() { cargo test; }",
        "git commit-tree x",
    ] {
        assert_eq!(classes(command), [], "{command}");
    }
    // Parentheses and backticks in a message are no nesting, and an unfinished line is not lost.
    let message = format!("git add -A && git commit -m \"feat: x\n\n{}\"", "- a (b) {c} [d]\n".repeat(40));
    assert_eq!(classes(&message), [Commit]);
    assert_eq!(classes("cd x && git commit -m \"unfinished"), [Commit]);
    assert_eq!(classes("npm test && git add -A && git commit -m x && git push"), [Tests, Commit, Push]);
}

#[test]
fn the_whole_command_is_taken_from_the_input_of_a_call() {
    // Adapters cut a long title.
    let title = format!("git comm{}", "x".repeat(200));
    let call = ToolCall { title: Some(title.clone()), tool: ToolKind::Execute, ..ToolCall::default() };
    let command = |input: &str| command_of(&call, Some(input)).unwrap().into_owned();
    assert_eq!(command(r#"{"command":"git commit\n-m x","timeout":5}"#), "git commit\n-m x");
    assert_eq!(command(r#"{"cmd":"git push"}"#), "git push");
    assert_eq!(command(r#"{"command":["bash","-lc","git push && ls"]}"#), "git push && ls");
    for other in ["not JSON", "{}", r#"{"command":5}"#, r#"{"command":["ls"]}"#] {
        assert_eq!(command(other), title, "{other}");
    }
    assert_eq!(command_of(&call, None).as_deref(), Some(&*title));
    let short = ToolCall { title: Some("git commit".into()), ..call };
    assert_eq!(command_of(&short, Some("{}")).as_deref(), Some("git commit"));
}

#[test]
fn an_exit_code_counts_only_for_the_command_it_belongs_to() {
    for (command, zero, other) in [
        ("cargo build", "passed", "failed"),
        ("cd x && cargo build", "passed", "failed"),
        ("cargo build && echo ok", "passed", "failed"),
        ("set -e; cd x; cargo build", "passed", "failed"),
        ("cargo build || exit 1", "passed", "failed"),
        ("(cd x && cargo build)", "passed", "failed"),
        ("bash -c 'cargo build'", "passed", "failed"),
        ("cargo build > log.txt 2>&1", "passed", "failed"),
        ("set -o pipefail && cargo build | tail -3", "passed", "failed"),
        // Only one of the two outcomes shows something.
        ("./prepare && cargo build", "passed", "unknown"),
        ("cargo build || ./other", "unknown", "failed"),
        // The exit code is that of another command.
        ("cargo build | tail -3", "unknown", "unknown"),
        ("cargo build 2>&1 | tee log", "unknown", "unknown"),
        ("cargo build || true", "unknown", "failed"),
        ("cargo build; echo done", "unknown", "unknown"),
        ("cargo build\nls", "unknown", "unknown"),
        ("! cargo build", "unknown", "unknown"),
        ("if cargo build; then echo ok; fi", "unknown", "unknown"),
        ("for x in a b; do cargo build -p $x; done", "unknown", "unknown"),
        ("cargo build &", "unknown", "unknown"),
        ("cargo build && echo ok || echo failed", "unknown", "unknown"),
        ("while ! cargo build; do sleep 1; done", "unknown", "unknown"),
    ] {
        assert_eq!(verdicts(command, Some(0), "x"), format!("build {zero}"), "{command}");
        assert_eq!(verdicts(command, Some(1), "x"), format!("build {other}"), "{command}");
    }
}

#[test]
fn the_last_lines_of_checkers_decide_behind_a_pipe() {
    for (command, output, expected) in [
        ("cargo build 2>&1 | tail -3", "    Finished `dev` profile [unoptimized] target(s) in 2.1s", "build passed"),
        (
            "cargo check 2>&1 | tail -3",
            "error: could not compile `a` (lib) due to 1 previous error",
            "type check failed",
        ),
        ("./gradlew assemble | tail", "BUILD SUCCESSFUL in 5s", "build passed"),
        ("mvn -q package | tail", "[INFO] BUILD FAILURE", "build failed"),
        ("npx vite build | tail -2", "✓ built in 1.22s", "build passed"),
        ("mypy src | tail -1", "Success: no issues found in 3 source files", "type check passed"),
        ("mypy src | tail -1", "Found 2 errors in 1 file (checked 3 source files)", "type check failed"),
        ("npx tsc | tail -1", "Found 0 errors. Watching for file changes.", "type check unknown"),
        ("mix dialyzer 2>&1 | tail -5", "done (passed successfully)", "type check passed"),
        ("ruff check . | tail -1", "All checks passed!", "lint passed"),
        ("npx eslint . | tail -3", "✖ 3 problems (3 errors, 0 warnings)", "lint failed"),
        ("mix format --check-formatted; mix credo | tail", "found no issues.", "format unknown, lint passed"),
        ("npx prettier --check . | tail -1", "All matched files use Prettier code style!", "format passed"),
        // Either of them may have printed it.
        ("cargo build -p a; cargo build -p b | tail", "    Finished `dev` profile", "build unknown"),
        ("cargo check; cargo clippy | tail", "    Finished `dev` profile", "type check unknown, lint unknown"),
        ("ruff check . | grep passed", "All checks passed!", "lint unknown"),
    ] {
        assert_eq!(verdicts(command, Some(0), output), expected, "{command}");
    }
}

#[test]
fn success_is_not_concluded_from_a_line_that_ends_with_a_search() {
    // Claude Code does not report exit code 1 of such a line as an error.
    for command in ["cargo build && mix dialyzer | grep lib", "cargo build && grep x log", "cargo build && diff a b"] {
        let first = |exit| verdicts(command, exit, "").split(", ").next().unwrap().to_owned();
        assert_eq!(first(None), "build unknown", "{command}");
        assert_eq!(first(Some(0)), "build passed", "{command}");
    }
}

#[test]
fn in_a_chain_a_later_result_shows_that_earlier_commands_succeeded() {
    let command = "cargo fmt && cargo build && cargo test && git commit -qm x && git push";
    assert_eq!(
        verdicts(command, Some(101), "test result: FAILED. 2 passed; 1 failed; 0 ignored"),
        "format passed, build passed, tests failed 2/1",
        "the chain ended at the tests"
    );
    assert_eq!(
        verdicts(
            command,
            Some(1),
            "test result: ok. 3 passed; 0 failed; 0 ignored\n ! [rejected] main -> main (fetch first)"
        ),
        "format passed, build passed, tests passed 3/0, commit passed, push failed"
    );
    assert_eq!(
        verdicts(command, Some(101), "error: could not compile"),
        "format unknown, build unknown, tests unknown, commit unknown, push unknown"
    );
}

#[test]
fn printed_numbers_decide_where_the_exit_code_is_hidden() {
    let passed = "running 3 tests\ntest result: ok. 3 passed; 0 failed; 0 ignored; finished in 0.1s";
    let failed = "test result: FAILED. 2 passed; 1 failed; 0 ignored";
    for command in ["cargo test 2>&1 | tail -5", "cargo test || true", "cargo test; echo $?"] {
        assert_eq!(verdicts(command, Some(0), passed), "tests passed 3/0", "{command}");
        assert_eq!(verdicts(command, Some(0), failed), "tests failed 2/1", "{command}");
        assert_eq!(verdicts(command, Some(0), "Compiling x"), "tests unknown", "{command}");
    }
    // A filter may leave out the failures, and `head` the last suites.
    for command in ["cargo test | grep passed", "cargo test | head -50", "cargo test | grep -v FAILED"] {
        assert_eq!(verdicts(command, Some(0), passed), "tests unknown 3/0", "{command}");
        assert_eq!(verdicts(command, Some(0), failed), "tests failed 2/1", "{command}");
    }
    assert_eq!(verdicts("cargo test | grep 'test result'", Some(0), passed), "tests passed 3/0");
    // Several suites are added up; a failed line counts whatever comes after it.
    let two = format!("{passed}\n{failed}\n{passed}");
    assert_eq!(verdicts("cargo test --no-fail-fast", Some(101), &two), "tests failed 8/1");
    // A failed command is not passed because a part of it printed success.
    assert_eq!(verdicts("cargo test", Some(101), passed), "tests failed 3/0");
    for nothing in [
        "running 0 tests\ntest result: ok. 0 passed; 0 failed; 9 filtered out",
        "?   x  [no test files]",
        "No tests found",
    ] {
        assert!(verdicts("cargo test", Some(0), nothing).starts_with("tests unknown"), "{nothing}");
    }
}

#[test]
fn summaries_of_test_runners_are_read() {
    for (runner, text, passed, failed) in [
        (
            "cargo",
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.01s",
            12,
            0,
        ),
        ("nextest", "     Summary [   0.531s] 12 tests run: 11 passed (1 slow), 1 failed, 3 skipped", 11, 1),
        ("pytest", "========================= 1 failed, 3 passed, 1 warning in 0.12s =========================", 3, 1),
        ("pytest -q", "3 passed in 0.02s", 3, 0),
        ("pytest errors", "=== 2 passed, 1 error in 1.20s ===", 2, 1),
        ("pytest minutes", "==== 300 passed in 75.31s (0:01:15) ====", 300, 0),
        ("unittest", "Ran 5 tests in 0.001s\n\nOK (skipped=1)", 5, 0),
        ("unittest", "Ran 5 tests in 0.001s\n\nFAILED (failures=1, errors=1)", 3, 2),
        (
            "Jest",
            "Test Suites: 1 failed, 2 passed, 3 total\nTests:       1 failed, 5 passed, 6 total\nSnapshots:   0 total",
            5,
            1,
        ),
        ("Vitest", " Test Files  1 failed | 2 passed (3)\n      Tests  2 failed | 5 passed (7)", 5, 2),
        ("Mocha", "  5 passing (20ms)\n  1 failing\n\n  1) a test", 5, 1),
        ("AVA", "  5 tests passed", 5, 0),
        ("node", "# tests 6\n# pass 5\n# fail 1\n# cancelled 0", 5, 1),
        ("node", "ℹ tests 5\nℹ pass 5\nℹ fail 0", 5, 0),
        ("Bun", " 5 pass\n 1 fail\n 9 expect() calls\nRan 6 tests across 1 file.", 5, 1),
        ("Deno", "\u{1b}[32mok\u{1b}[0m | 5 passed | 0 failed (10ms)", 5, 0),
        ("RSpec", "10 examples, 1 failure, 1 pending", 8, 1),
        ("ExUnit", "Finished in 1.2 seconds\n297 tests, 0 failures\n\nRandomized with seed 1", 297, 0),
        ("ExUnit", "3 doctests, 20 tests, 2 failures, 1 skipped", 17, 2),
        ("Minitest", "5 runs, 10 assertions, 1 failures, 1 errors, 0 skips", 3, 2),
        ("PHPUnit", "OK (5 tests, 10 assertions)", 5, 0),
        ("PHPUnit", "FAILURES!\nTests: 5, Assertions: 10, Failures: 1, Errors: 1.", 3, 2),
        (
            "Maven",
            "[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s - in A\n[ERROR] Tests run: 5, Failures: 1, Errors: 0, Skipped: 1",
            3,
            1,
        ),
        ("Gradle", "5 tests completed, 1 failed", 4, 1),
        (".NET", "Passed!  - Failed:     0, Passed:     5, Skipped:     0, Total:     5, Duration: 10 ms", 5, 0),
        (".NET", "Test summary: total: 6, failed: 1, succeeded: 5, skipped: 0, duration: 1.2s", 5, 1),
        ("CTest", "80% tests passed, 1 tests failed out of 5", 4, 1),
        (
            "XCTest",
            "Executed 2 tests, with 0 failures (0 unexpected) in 0.1 (0.1) seconds\nExecuted 5 tests, with 1 failure (0 unexpected) in 0.2 (0.2) seconds",
            4,
            1,
        ),
        ("GoogleTest", "[  PASSED  ] 4 tests.\n[  FAILED  ] 1 test, listed below:", 4, 1),
        ("Zig", "All 5 tests passed.", 5, 0),
        ("Playwright", "  1 failed\n    a.spec.ts\n  5 passed (3.2s)", 5, 1),
    ] {
        let summary = summary::of_tests(text).unwrap_or_else(|| panic!("{runner}: {text}"));
        let counts = summary.counts.unwrap();
        assert_eq!((counts.passed, counts.failed), (passed, failed), "{runner}: {text}");
    }
    for (text, failed) in [
        ("ok  \texample.com/x\t0.012s", false),
        ("ok  \texample.com/x\t(cached)", false),
        ("--- FAIL: TestX (0.00s)\nFAIL\nFAIL\texample.com/x\t0.012s", true),
        ("Result: PASS", false),
        ("00:02 +5: All tests passed!", false),
        ("00:02 +3 -1: Some tests failed.", true),
    ] {
        let found = summary::of_tests(text).map(|summary| (summary.counts, summary.failed));
        assert_eq!(found, Some((None, failed)), "{text}");
    }
    for text in [
        "",
        "ok",
        "3 files changed",
        "5 passing cars",
        "tests",
        "All tests in 3 files were renamed",
        "2 failed attempts",
    ] {
        assert_eq!(summary::of_tests(text), None, "{text}");
    }
}

#[test]
fn a_complete_tap_stream_is_counted() {
    let counts = |text: &str| summary::of_tests(text).and_then(|summary| summary.counts);
    let bats = "1..5\nok 1 install\nnot ok 2 remove\n# (in test file a.bats, line 3)\n#   `false' failed\nok 3 a # skip no root\nok 4 b\nok 5 c\n";
    assert_eq!(counts(bats), Some(TestCounts { passed: 3, failed: 1, skipped: 1 }));
    assert_eq!(counts("ok 1 a\nok 2 b\n1..2\n"), Some(TestCounts { passed: 2, ..TestCounts::default() }));
    for incomplete in
        ["1..3\nok 1 a\nok 2 b\n", "1..2\nok 1 a\nBail out!\nok 2 b\n", "versions 1..5\nok 1 a\n", "1..0\n"]
    {
        assert_eq!(counts(incomplete), None, "{incomplete}");
    }
    assert!(summary::of_tests(bats).unwrap().failed);
}

#[test]
fn tests_run_by_any_script_are_known_by_the_summary_they_print() {
    let output = "== building\n== testing\n===== 12 passed, 1 failed in 3.20s =====";
    assert_eq!(verdicts("./ci.sh", Some(0), output), "tests failed 12/1");
    assert_eq!(verdicts("python manage.py selfcheck", Some(0), "3 passed in 0.02s"), "tests passed 3/0");
    assert_eq!(verdicts("./ci.sh", Some(1), "3 passed in 0.02s"), "tests failed 3/0");
    for command in
        ["cat log.txt", "grep passed log.txt", "gh run view 12 --log", "git show HEAD:log", "tail -5 x | head"]
    {
        assert_eq!(verdicts(command, Some(0), output), "", "{command}");
    }
}

#[test]
fn git_is_judged_by_its_own_lines() {
    let committed = "[main 8cc42b0] Fix it\n 2 files changed, 3 insertions(+)";
    for (command, exit, output, expected) in [
        ("git commit -m x 2>&1 | tail -3", Some(0), committed, "commit passed"),
        ("git add -A && git commit -m x", Some(0), committed, "commit passed"),
        (
            "git commit -m x && git status",
            Some(0),
            "[main 8cc42b0] Fix it\n 1 file changed\nOn branch main\nnothing added to commit but untracked files present",
            "commit passed",
        ),
        ("git commit -qm x && git status", Some(0), "nothing to commit, working tree clean", "commit passed"),
        ("git commit -qm x; git status", Some(0), "nothing to commit, working tree clean", "commit failed"),
        ("rtk git add a && rtk git commit -m x", Some(0), "ok ✓ 1 file changed\nok ✓", "commit passed"),
        ("rtk bun test", Some(2), "error: unrecognized subcommand 'bun'", ""),
        ("git commit -m x | cat", Some(0), "nothing to commit, working tree clean", "commit failed"),
        ("git commit -m x || true", Some(0), "husky - pre-commit hook exited with code 1 (error)", "commit failed"),
        ("git commit -qm x", Some(0), "", "commit passed"),
        ("git commit -m x", Some(1), "fatal: not a git repository", "commit failed"),
        ("git push 2>&1 | tail -1", Some(0), "   8cc42b0..1d2e3f4  main -> main", "push passed"),
        ("git push 2>&1 | tail -1", Some(0), " * [new branch]      topic -> topic", "push passed"),
        ("git push | cat", Some(0), "Everything up-to-date", "push passed"),
        ("git push | cat", Some(0), " ! [rejected]        main -> main (fetch first)", "push failed"),
        ("git push; ls", Some(0), "a", "push unknown"),
        ("git merge x | cat", Some(0), "CONFLICT (content): Merge conflict in a.rs", "merge failed"),
    ] {
        assert_eq!(verdicts(command, exit, output), expected, "{command}");
    }
}

#[test]
fn edits_after_a_check_are_counted_with_their_files() {
    let mut receipt = Receipt::default();
    let test = |receipt: &mut Receipt, event| {
        run(receipt, event, "mix test", ToolOutcome::Ok, None, "297 tests, 0 failures");
    };
    test(&mut receipt, 1);
    let edit = |receipt: &mut Receipt, file: &str, outcome| edited(receipt, &[file.to_owned()], outcome);
    for file in ["a.ex", "a.ex", "b.ex", "b.ex", "a.ex"] {
        edit(&mut receipt, file, ToolOutcome::Ok);
    }
    edit(&mut receipt, "c.ex", ToolOutcome::Error);
    edit(&mut receipt, "d.ex", ToolOutcome::Denied);
    for event in 2..9 {
        run(&mut receipt, event, "git commit -m x", ToolOutcome::Error, Some(1), "hook failed");
    }
    assert_eq!(receipt.words().join(" · "), "tests 297 passed, then 5 edits · commit failed ×7");
    let tests = receipt.check(CheckClass::Tests).unwrap();
    assert_eq!((tests.edits_after, tests.files_after.as_slice()), (5, &["a.ex".to_owned(), "b.ex".to_owned()][..]));
    assert_eq!(receipt.failed_edits, ["c.ex"]);
    let commit = receipt.check(CheckClass::Commit).unwrap();
    assert_eq!((commit.tries, commit.failures, commit.exit_code), (7, 7, Some(1)));
    // A new run resets the edits after it, and a successful edit takes its file off the failed ones.
    test(&mut receipt, 10);
    edit(&mut receipt, "c.ex", ToolOutcome::Ok);
    assert_eq!(receipt.words().join(" · "), "commit failed ×7, then 1 edit · tests 297 passed, then 1 edit");
    assert!(receipt.failed_edits.is_empty());
}

#[test]
fn refused_and_cancelled_commands_do_not_count_as_runs() {
    for outcome in [ToolOutcome::Denied, ToolOutcome::Blocked, ToolOutcome::Cancelled] {
        assert!(receipt_of("cargo test", outcome, None, "").is_empty(), "{outcome}");
    }
    // A time-out or a wrong argument of the tool shows nothing about the tests.
    assert_eq!(verdicts("cargo test", None, "x"), "tests passed", "a failed command is an error");
    let timed_out = receipt_of("cargo test", ToolOutcome::Error, None, "Command timed out after 2m");
    assert_eq!(timed_out.check(CheckClass::Tests).unwrap().verdict, CheckVerdict::Unknown);
    for running in ["Process running with session ID 5", "Command running in background with ID: b1"] {
        assert_eq!(verdicts("cargo test", None, running), "tests unknown");
    }
}

#[test]
fn a_commit_after_a_failed_git_add_is_no_run() {
    let line = "git add dist && git commit -m x";
    for said in [
        "Exit code 1\nThe following paths are ignored by one of your .gitignore files:\ndist\nhint: Use -f",
        "Exit code 128\nfatal: pathspec 'dist' did not match any files",
    ] {
        assert!(receipt_of(line, ToolOutcome::Error, Some(1), said).is_empty(), "{said}");
    }
    let own =
        receipt_of("git commit dist -m x", ToolOutcome::Error, Some(1), "error: pathspec 'dist' did not match any");
    assert_eq!(own.check(CheckClass::Commit).unwrap().verdict, CheckVerdict::Failed);
}

#[test]
fn what_a_line_may_do_unseen_is_known_by_its_programs() {
    use LineKind::{Opaque, Publishes, Shows, Unknown, Unlisted};
    for (line, expected) in [
        ("ls -la | head", Shows),
        ("git status && git log -3", Shows),
        ("cargo test && git push", Unknown),
        ("npm install left-pad", Unknown),
        ("curl -s localhost:80/health", Shows),
        ("git rebase --continue", Publishes),
        ("git ci -m x", Publishes),
        ("gh pr create --fill", Publishes),
        ("gh api -X PUT repos/a/b/pulls/1/merge", Publishes),
        ("gh pr view 3", Shows),
        ("aws s3 sync dist s3://b", Publishes),
        ("npm version patch", Publishes),
        ("uv publish", Publishes),
        ("acme-verify --all", Unlisted),
        ("t", Unlisted),
        ("runhaskell test/Spec.hs", Unlisted),
        ("helm lint chart", Unlisted),
        ("pnpm turbo run lint test", Unlisted),
        ("docker compose build", Unlisted),
        ("echo 'acme-verify --all'", Shows),
        ("git commit -m 'run acme-verify; t'", Unknown),
        ("acme-verify --version", Unknown),
        ("./scripts/all.sh", Opaque),
        ("acme-verify && npm run all", Opaque),
    ] {
        let kind = LineKind::of(line);
        let is_expected = kind == expected || expected == Unknown && kind == Shows;
        assert!(is_expected, "{line}: {kind:?}");
    }
}

#[test]
fn a_linter_that_fixed_everything_or_only_warns_passed() {
    assert_eq!(verdicts("ruff check --fix .", Some(0), "Found 3 errors (3 fixed, 0 remaining)."), "lint passed");
    assert_eq!(verdicts("ruff check .", Some(1), "Found 3 errors."), "lint failed");
    assert_eq!(verdicts("npx eslint .", Some(0), "✖ 3 problems (0 errors, 3 warnings)"), "lint passed");
    assert_eq!(verdicts("npx eslint .", Some(1), "✖ 3 problems (1 error, 2 warnings)"), "lint failed");
    let both = verdicts(
        "npx eslint src && npm test",
        Some(0),
        "✖ 1 problem (0 errors, 1 warning)\nTests: 41 passed, 41 total",
    );
    assert_eq!(both, "lint passed, tests passed 41/0");
}

#[test]
fn a_linter_behind_a_filter_is_judged_by_its_summary() {
    for (command, output, expected) in [
        ("mise run lint 2>&1 | tail -5", "[lint:go] 0 issues.\n[lint:go] Finished in 3.19s", "lint passed"),
        ("mise run lint 2>&1 | tail -5", "[lint:go] 2 issues:\n* goconst: 2", "lint failed"),
        ("golangci-lint run ./... | tail -3", "0 issues.", "lint passed"),
        ("bun run lint | tail -2", "Checked 290 files in 140ms. No fixes applied.", "lint passed"),
        ("bun run lint | tail -2", "Checked 9 files in 1ms. No fixes applied.\nFound 1 error.", "lint failed"),
        ("npx oxlint | cat", "Found 0 warnings and 0 errors.\nFinished in 9ms on 3 files", "lint passed"),
        ("npx oxlint | cat", "Found 3 warnings and 1 error.\nFinished in 9ms on 3 files", "lint failed"),
    ] {
        assert_eq!(verdicts(command, Some(0), output), expected, "{command}: {output}");
    }
}

#[test]
fn tests_that_a_build_or_a_hook_of_git_runs_are_counted() {
    let maven = "Tests run: 31, Failures: 0, Errors: 0, Skipped: 0\n[INFO] BUILD SUCCESS";
    let receipt = receipt_of("mvn clean install", ToolOutcome::Ok, Some(0), maven);
    assert_eq!(receipt.check(CheckClass::Tests).unwrap().counts.unwrap().passed, 31);
    let hook = "Tests: 41 passed, 41 total\n[main 8cc42b0] x\n 1 file changed";
    let receipt = receipt_of("git commit -am x", ToolOutcome::Ok, Some(0), hook);
    assert_eq!(receipt.check(CheckClass::Tests).unwrap().counts.unwrap().passed, 41);
    assert_eq!(receipt.check(CheckClass::Commit).unwrap().verdict, CheckVerdict::Passed);
    assert!(receipt_of("git commit -am x", ToolOutcome::Ok, Some(0), "✔ lint-staged\n[main 8cc42b0] x").unlisted);
}

#[test]
fn of_a_commit_and_a_failed_push_each_is_judged() {
    let line = "git commit -am x && git push";
    let said = "[main 8cc42b0] x\n 1 file changed\nfatal: The current branch f has no upstream branch.";
    assert_eq!(verdicts(line, Some(128), said), "commit passed, push failed");
    let mut receipt = receipt_of("git commit -m x", ToolOutcome::Ok, Some(0), "[main 8cc42b0] x");
    run(&mut receipt, 9, "git commit -m y", ToolOutcome::Error, Some(1), "nothing to commit, working tree clean");
    assert_eq!(receipt.check(CheckClass::Commit).unwrap().verdict, CheckVerdict::Passed);
}

#[test]
fn scratch_files_belong_to_no_project() {
    let cwd = Some("/home/u/app");
    for file in
        ["/tmp/pr.md", "/home/u/.claude/projects/-p/memory/MEMORY.md", "/home/u/app/.claude/settings.local.json"]
    {
        assert!(is_scratch(file, cwd), "{file}");
    }
    for file in ["/home/u/app/src/a.rs", "src/a.rs", "/home/u/app/.claude/commands/a.md", "tmp/a.rs"] {
        assert!(!is_scratch(file, cwd), "{file}");
    }
    assert!(!is_scratch("/tmp/work/a.rs", Some("/tmp/work")));
}

#[test]
fn background_commands_and_open_items_of_the_to_do_list_are_counted() {
    let mut receipt = Receipt::default();
    let call = |name: &str, background| ToolCall {
        name: name.into(),
        tool: ToolKind::Execute,
        background,
        ..ToolCall::default()
    };
    let mut tasks = TaskList::default();
    called(&mut receipt, &call("Bash", true), Some("{}"), &mut tasks);
    let todos = r#"{"todos":[{"content":"a","status":"completed"},{"content":"b","status":"in_progress"},{"content":"c","status":"pending"}]}"#;
    called(&mut receipt, &call("TodoWrite", false), Some(todos), &mut tasks);
    assert_eq!((receipt.background, receipt.todo_left), (1, Some(2)));
    let plan = r#"{"plan":[{"step":"a","status":"completed"}]}"#;
    called(&mut receipt, &call("update_plan", false), Some(plan), &mut tasks);
    assert_eq!(receipt.todo_left, Some(0));
    called(&mut receipt, &call("TodoWrite", false), Some("not JSON"), &mut tasks);
    assert_eq!(receipt.todo_left, Some(0));
}

#[test]
fn a_to_do_list_that_is_changed_task_by_task_is_counted_over_turns() {
    let mut tasks = TaskList::default();
    let mut left = |name: &str, input: &str| {
        let mut receipt = Receipt::default();
        let call = ToolCall { name: name.into(), tool: ToolKind::Other, ..ToolCall::default() };
        called(&mut receipt, &call, Some(input), &mut tasks);
        receipt.todo_left
    };
    assert_eq!(left("TaskUpdate", r#"{"taskId":"9","status":"completed"}"#), None, "of a list that was not seen");
    assert_eq!(left("TaskCreate", r#"{"subject":"a"}"#), Some(0), "the unseen task was closed");
    assert_eq!(left("TaskCreate", r#"{"subject":"b"}"#), Some(1));
    assert_eq!(left("TaskCreate", r#"{"subject":"c"}"#), Some(2));
    assert_eq!(left("TaskUpdate", r#"{"taskId":"1","status":"in_progress"}"#), Some(2));
    assert_eq!(left("TaskUpdate", r#"{"taskId":"1","status":"completed"}"#), Some(1));
    assert_eq!(left("TaskUpdate", r#"{"taskId":"1","status":"completed"}"#), Some(1));
    assert_eq!(left("TaskUpdate", r#"{"taskId":"2","subject":"new words"}"#), None);
    assert_eq!(left("TaskUpdate", r#"{"taskId":"1","status":"pending"}"#), Some(2));
    assert_eq!(left("TaskUpdate", r#"{"taskId":"2","status":"deleted"}"#), Some(1));
}

/// Codex 0.130 to 0.171.
#[test]
fn a_command_that_still_runs_is_judged_when_its_output_is_read_to_the_end() {
    let (mut receipt, mut continuing) = (Receipt::default(), ContinuingCommands::default());
    let mut returns = |open: &OpenCall, outcome, exit_code, text: &str| {
        let call = FinishedCall {
            tool: ToolKind::Execute,
            title: open.title.as_deref(),
            exit_code,
            outcome,
            text: Some(text),
        };
        if !(continuing.returned(open, 3, text) && open.continues.is_some()) {
            ran(&mut receipt, &call, open, EventId::from_bits(1));
        }
        (continuing.clone(), receipt.check(CheckClass::Commit).map(|check| (check.verdict, check.tries)))
    };
    let running = "Chunk ID: 28b923\nWall time: 1.0 seconds\nProcess running with session ID 16166\nOutput:\n";
    let first = open("git add a && git commit -m x");
    let (known, shown) = returns(&first, ToolOutcome::Ok, None, running);
    assert_eq!(shown, Some((CheckVerdict::Unknown, 1)));
    let reads = |session: u64, turn: u32| {
        let call = ToolCall { name: "write_stdin".into(), tool: ToolKind::Execute, ..ToolCall::default() };
        let mut reads = open("[]");
        known.called(&call, Some(&format!(r#"{{"session_id":{session},"chars":""}}"#)), turn, &mut reads);
        reads
    };
    assert_eq!(reads(5, 3).continues, None, "another command");
    assert_eq!((reads(16166, 4).continues, reads(16166, 4).checks.len()), (Some(16166), 0), "of an earlier turn");
    let (_, shown) = returns(&reads(16166, 3), ToolOutcome::Ok, None, running);
    assert_eq!(shown, Some((CheckVerdict::Unknown, 1)), "it still runs");
    let ended = "Chunk ID: 1\nWall time: 1.0 seconds\nProcess exited with code 0\nOutput:\n[main 8cc42b0] x\n";
    let (left, shown) = returns(&reads(16166, 3), ToolOutcome::Ok, Some(0), ended);
    assert_eq!(shown, Some((CheckVerdict::Passed, 1)));
    assert!(left.is_empty());
}

#[test]
fn a_receipt_stays_small() {
    let mut receipt = Receipt::default();
    let long = "x".repeat(500);
    for (n, command) in ["cargo test", "cargo build", "git commit", "git push"].iter().enumerate() {
        let command = format!("{command} {long}");
        run(&mut receipt, n as u128, &command, ToolOutcome::Error, Some(1), "test result: FAILED. 1 passed; 99 failed");
        let files: Vec<String> = (0..50).map(|file| format!("{file}{long}")).collect();
        edited(&mut receipt, &files, ToolOutcome::Ok);
        edited(&mut receipt, &files, ToolOutcome::Error);
    }
    let bytes = serde_json::to_string(&receipt).unwrap().len();
    assert!(bytes < 3_000, "{bytes}");
}

#[test]
fn success_is_not_concluded_from_what_others_printed_or_from_a_part_of_the_output() {
    let ok = "test result: ok. 3 passed; 0 failed; 0 ignored";
    let committed = "error: could not compile `x`\n[main abc1234] x";
    for (command, exit, output) in [
        // A later command of the chain ran, but not because of this one.
        ("cargo build 2>&1 | tail -3 && git commit -m x", Some(0), committed),
        ("! cargo build && git commit -m x", Some(0), committed),
        ("for d in a b; do cargo build && git commit -m x; done", Some(0), committed),
        // Another command printed it.
        (
            "cargo test -p a && cargo test -p b",
            Some(101),
            "test result: ok. 3 passed; 0 failed\nerror: could not compile `b`",
        ),
        ("make unit && npm test && ./deploy.sh", Some(1), "Tests: 5 passed, 5 total\nsh: jest: not found"),
        ("cargo test > log 2>&1; head -20 log", Some(0), ok),
        ("cargo test > new.log 2>&1; cat old.log", Some(0), ok),
        ("cat old.log && cargo build && cargo test", Some(101), ok),
        (
            "git pull --rebase && git push 2>&1 | tail -5",
            Some(0),
            "From x\n   8cc42b0..1d2e3f4  main -> origin/main\nERROR: Permission denied\nfatal: Could not read",
        ),
        (
            "git checkout main && git pull && git merge t | tail -5",
            Some(0),
            "Already up to date.\nerror: Your local changes",
        ),
        // A filter drops the failures.
        ("cargo test | grep 'test result: ok'", Some(0), ok),
        ("cargo test | grep -iv fail", Some(0), ok),
        ("cargo test | grep -m1 'test result'", Some(0), ok),
        // Another line says that the run failed.
        (
            "cargo test 2>&1 | tail -5",
            Some(0),
            "test result: ok. 3 passed; 0 failed\nerror: test failed, to rerun pass `--lib`",
        ),
        ("mvn test | tail -5", Some(0), "Tests run: 5, Failures: 0, Errors: 0, Skipped: 0\n[INFO] BUILD FAILURE"),
        ("npx vitest run | tail -5", Some(0), "      Tests  5 passed (5)\n     Errors  1 error"),
        ("npm test | tail -5", Some(0), "Test Suites: 1 failed, 2 passed, 3 total\nTests:       5 passed, 5 total"),
        ("make test | tail -5", Some(0), "3 passed in 0.1s\nmake: *** [Makefile:3: test] Error 1"),
        ("npx playwright test | tail", Some(0), "  1 interrupted\n  5 did not run"),
        // `set -e` does not end the line here.
        ("set -e; cargo build && echo ok; echo done", Some(0), "x"),
        ("(set -e; ./x); cargo build; echo done", Some(0), "x"),
        ("set +o pipefail; cargo build | tail -3", Some(0), "x"),
        // A part of the output is missing.
        ("cargo test; echo done", Some(0), "<persisted-output>\ntest result: ok. 3 passed; 0 failed"),
        // Other commands may have failed.
        ("which foo && cargo build", Some(1), "x"),
        ("cargo build && ls target/x", Some(2), "x"),
        ("set -o pipefail; cargo clippy 2>&1 | grep error", Some(1), ""),
        ("timeout 60 cargo test", Some(124), ""),
        ("cd missing && cargo test", Some(1), "bash: line 1: cd: missing: No such file or directory"),
    ] {
        let found = verdicts(command, exit, output);
        let first = found.split(", ").find(|check| !check.starts_with("commit")).unwrap_or(&found);
        assert!(first.contains("unknown") || found.is_empty(), "{command}: {found}");
    }
    let refused = "From x\n * [new branch]  t -> origin/t\nfatal: no upstream branch";
    assert_eq!(verdicts("git fetch -p; git push 2>&1 | tail -3", Some(0), refused), "push failed");
    // The words in an output are not the exit code.
    assert_eq!(
        verdicts("npm test", None, "prints exit code 2 on bad input\nTests: 5 passed, 5 total"),
        "tests passed 5/0"
    );
    assert_eq!(verdicts("cargo build", None, "warning: child exited with code 1, retrying"), "build passed");
}

#[test]
fn listings_watch_modes_and_dry_runs_are_not_checks() {
    for command in [
        "pytest --collect-only -q",
        "npx jest --watch",
        "tsc -w",
        "npm run test:unit:watch",
        "make -n test",
        "kubectl apply --dry-run=client -f x",
        "kubectl rollout status x",
        "npm publish --dry-run",
        "gh pr merge 5 --auto",
        "git merge --squash t",
        "mvn -DskipTests verify",
        "cargo nextest list",
    ] {
        assert_eq!(classes(command), [], "{command}");
    }
    use CheckClass::{Commit, Tests};
    for command in [
        "make clean test",
        "make V=1 test",
        "uvx pytest",
        "python3.11 -u -m pytest",
        "cargo.exe test",
        "nx run web:test",
        "pipx run pytest",
    ] {
        assert_eq!(classes(command), [Tests], "{command}");
    }
    assert_eq!(classes("git commit -m 'see --help'"), [Commit]);
    let script = format!("cat > ci.sh <<'EOF'\n{}npm test\nit's\nEOF\ngit commit -m x", "f() { :; }\n".repeat(15));
    assert_eq!(classes(&script), [Commit]);
}

#[test]
fn no_line_takes_long_to_read() {
    for part in [
        "[[ ! ",
        "! ",
        "if ",
        "while ",
        "case a in a) ",
        "(",
        "{ ",
        "$(",
        "`",
        "|a ",
        "for x in a; do ",
        "\"$(",
        "<<a ",
    ] {
        for before in ["cargo test; ", "cargo test # don't\n"] {
            let line = format!("{before}{}", part.repeat(15_000 / part.len()));
            // Without a limit, the parser needs more memory than there is, or hours.
            let _checks = checks_of(&line);
        }
    }
    for numbers in [
        "4294967295 failed, 1 failed in 3s",
        "4294967295 passed, 4294967295 passed in 3s",
        "999999 failed, 999999 failed in 3s",
    ] {
        let _summary = summary::of_tests(&numbers.replace(',', ",999999 failed, ".repeat(90).as_str()));
    }
}

proptest::proptest! {
    #[test]
    fn any_line_and_any_output_are_read(line in "[a-z ;&|()'\"`$<>\\n\\\\{}=!#-]{0,120}", text in "\\PC{0,200}") {
        let _receipt = receipt_of(&format!("cargo test {line}"), ToolOutcome::Ok, Some(0), &text);
        let _receipt = receipt_of(&line, ToolOutcome::Ok, None, &format!("1 passed in 0.1s\n{text}"));
    }

    /// Whatever is around it, a hidden exit code and no printed result are never `passed`.
    #[test]
    fn a_check_without_evidence_is_never_passed(before in "[a-z ]{0,20}", after in "[a-z ]{0,20}", text in "[a-z \n]{0,80}") {
        let command = format!("echo {before}; cargo test | tail -1; echo {after}");
        let receipt = receipt_of(&command, ToolOutcome::Ok, Some(0), &text);
        proptest::prop_assert_eq!(receipt.check(CheckClass::Tests).unwrap().verdict, CheckVerdict::Unknown);
    }
}

#[test]
fn commands_of_a_line_have_the_surroundings_of_their_groups_and_shells() {
    let around = |line: &str, name: &str| {
        let commands = line::commands_of(line).unwrap();
        commands.into_iter().find(|command| command.words[0] == name).unwrap().around
    };
    let none = line::Surroundings::default();
    assert_eq!(around("cd a && b", "b"), none);
    for line in ["a | b", "b < f", "b <<< x", "b <<E\nx\nE", "b <(a)", "a | { b; }", "(b) < f", "a | sh -c 'b'"] {
        assert!(around(line, "b").fed, "{line}");
    }
    for line in ["b | c", "b > f", "b &> f", "(b; c) > f", "{ b; } | c", "bash -c 'b' > f"] {
        assert!(around(line, "b").captured, "{line}");
    }
    assert_eq!(around("b 2>&1", "b"), none);
    assert!(around("timeout 5 bash -c 'b'", "b").limited);
    for line in ["while ! a; do b; done", "until a; do b; done", "while true; do a && break; b; done"] {
        assert!(around(line, "b").endless, "{line}");
    }
    for line in ["while read x; do b; done", "while [ $i -lt 3 ]; do b; i=$((i+1)); done", "for x in 1 2; do b; done"] {
        assert!(!around(line, "b").endless, "{line}");
    }
}
