//! Real output of tools, and the class of each failure.

use super::*;

/// Command, exit code, output, and expected class.
type StatusInputs = (&'static str, Option<i32>, &'static str, Option<FailureKind>);

fn run((command, exit_code, text, _): &StatusInputs, outcome: ToolOutcome) -> Option<FailureKind> {
    classify(&FinishedCall {
        tool: ToolKind::Execute,
        title: Some(command),
        exit_code: *exit_code,
        outcome,
        text: Some(text),
    })
}

use FailureKind::*;

const FAILED: &[StatusInputs] = &[
    // cargo
    (
        "cargo test",
        Some(101),
        "running 3 tests\ntest a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b stdout ----\nthread 'b' panicked at src/lib.rs:9:5:\nassertion `left == right` failed\n  left: 2\n right: 3\n\ntest result: FAILED. 2 passed; 1 failed; 0 ignored; finished in 0.01s\n\nerror: test failed, to rerun pass `--lib`",
        Some(TestFailure),
    ),
    (
        "cargo build",
        Some(101),
        "error[E0308]: mismatched types\n --> src/main.rs:4:18\n  |\n4 |     let x: u32 = \"a\";\nerror: could not compile `demo` (bin \"demo\") due to 1 previous error",
        Some(TypeError),
    ),
    (
        "cargo test",
        Some(101),
        "error[E0425]: cannot find value `y` in this scope\nerror: could not compile `demo` (lib test) due to 1 previous error",
        Some(TypeError),
    ),
    (
        "cargo nextest run",
        Some(100),
        "     Summary [   0.412s] 12 tests run: 11 passed, 1 failed, 0 skipped\n        FAIL [   0.003s] demo tests::b\nerror: test run failed",
        Some(TestFailure),
    ),
    (
        "cargo build",
        Some(101),
        "error: no matching package named `sered` found\nlocation searched: crates.io index\nrequired by package `demo v0.1.0`",
        Some(MissingDependency),
    ),
    (
        "cargo build",
        Some(101),
        "error: failed to select a version for the requirement `tokio = \"^9\"`",
        Some(MissingDependency),
    ),
    (
        "cargo fetch",
        Some(101),
        "warning: spurious network error (3 tries remaining): [6] Could not resolve hostname (Could not resolve host: index.crates.io)\nerror: failed to get `anyhow`",
        Some(Network),
    ),
    (
        "cargo nextes run",
        Some(101),
        "error: no such command: `nextes`\n\n\tDid you mean `nextest`?",
        Some(MissingDependency),
    ),
    (
        "cargo build",
        Some(101),
        "error: failed to write /t/target/debug/deps/x.rmeta: No space left on device (os error 28)",
        Some(Disk),
    ),
    (
        "cargo build",
        Some(101),
        "error: linking with `cc` failed: exit status: 1\n  = note: /usr/bin/ld: cannot find -lssl: No such file or directory",
        Some(MissingDependency),
    ),
    // pytest, python, pip
    (
        "pytest -q",
        Some(1),
        "F..                                                   [100%]\n=== FAILURES ===\n____ test_add ____\n>       assert add(1, 2) == 4\nE       assert 3 == 4\ntests/test_calc.py:5: AssertionError\n=== short test summary info ===\nFAILED tests/test_calc.py::test_add - assert 3 == 4\n1 failed, 2 passed in 0.05s",
        Some(TestFailure),
    ),
    ("python -m pytest tests", Some(1), "===== 3 failed, 40 passed, 2 skipped in 12.30s =====", Some(TestFailure)),
    (
        "pytest",
        Some(2),
        "ERROR collecting tests/test_x.py\nImportError while importing test module\nE   ModuleNotFoundError: No module named 'requests'\n!!!! Interrupted: 1 error during collection !!!!\n1 error in 0.10s",
        Some(MissingDependency),
    ),
    (
        "python -m unittest",
        Some(1),
        "FAIL: test_upper (test_s.S)\nAssertionError: 'FOO' != 'Foo'\nRan 3 tests in 0.001s\n\nFAILED (failures=1)",
        Some(TestFailure),
    ),
    (
        "python app.py",
        Some(1),
        "Traceback (most recent call last):\n  File \"app.py\", line 3, in <module>\n    print(1 + 'a')\nTypeError: unsupported operand type(s) for +: 'int' and 'str'",
        Some(TypeError),
    ),
    (
        "python app.py",
        Some(1),
        "  File \"app.py\", line 2\n    def f(:\n          ^\nSyntaxError: invalid syntax",
        Some(TypeError),
    ),
    ("python app.py", Some(1), "ModuleNotFoundError: No module named 'numpy'", Some(MissingDependency)),
    (
        "mypy .",
        Some(1),
        "app.py:3: error: Argument 1 to \"f\" has incompatible type \"str\"; expected \"int\"  [arg-type]\nFound 1 error in 1 file (checked 3 source files)",
        Some(TypeError),
    ),
    (
        "pip install nonexist",
        Some(1),
        "ERROR: Could not find a version that satisfies the requirement nonexist (from versions: none)\nERROR: No matching distribution found for nonexist",
        Some(MissingDependency),
    ),
    (
        "pip install requests",
        Some(1),
        "WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError': Failed to establish a new connection: [Errno -3] Temporary failure in name resolution",
        Some(Network),
    ),
    (
        "pip install x",
        Some(1),
        "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
        Some(Disk),
    ),
    (
        "pip install x",
        Some(1),
        "ERROR: Could not install packages due to an OSError: [Errno 13] Permission denied: '/usr/lib/python3/dist-packages/x'",
        Some(Permission),
    ),
    (
        "python s.py",
        Some(1),
        "requests.exceptions.SSLError: HTTPSConnectionPool(host='x', port=443): [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed",
        Some(Network),
    ),
    // node
    (
        "npx jest",
        Some(1),
        "FAIL src/sum.test.js\n  ● adds\n    expect(received).toBe(expected)\nTests:       1 failed, 4 passed, 5 total\nTest Suites: 1 failed, 1 passed, 2 total",
        Some(TestFailure),
    ),
    (
        "npx jest",
        Some(1),
        "FAIL src/a.test.js\n  ● Test suite failed to run\n    Cannot find module './sum' from 'src/a.test.js'\nTests:       0 total",
        Some(MissingDependency),
    ),
    (
        "npx vitest run",
        Some(1),
        " FAIL  src/a.test.ts > adds\nAssertionError: expected 3 to be 4\n Test Files  1 failed (1)\n      Tests  1 failed | 2 passed (3)",
        Some(TestFailure),
    ),
    (
        "npx mocha",
        Some(1),
        "  2 passing (8ms)\n  1 failing\n\n  1) adds:\n      AssertionError [ERR_ASSERTION]: 3 == 4",
        Some(TestFailure),
    ),
    (
        "npx tsc --noEmit",
        Some(2),
        "src/a.ts(3,7): error TS2322: Type 'string' is not assignable to type 'number'.",
        Some(TypeError),
    ),
    (
        "npx tsc",
        Some(2),
        "src/a.ts:1:20 - error TS2307: Cannot find module 'left-pad' or its corresponding type declarations.",
        Some(TypeError),
    ),
    (
        "npm test",
        Some(1),
        "npm error Missing script: \"test\"\nnpm error To see a list of scripts, run:",
        Some(MissingDependency),
    ),
    (
        "npm install",
        Some(1),
        "npm error code ERESOLVE\nnpm error ERESOLVE unable to resolve dependency tree",
        Some(MissingDependency),
    ),
    (
        "npm install lft-pad",
        Some(1),
        "npm error code E404\nnpm error 404 Not Found - GET https://registry.npmjs.org/lft-pad\nnpm error 404  'lft-pad@*' is not in this registry.",
        Some(MissingDependency),
    ),
    (
        "npm install",
        Some(1),
        "npm error code ENOTFOUND\nnpm error network request to https://registry.npmjs.org/x failed, reason: getaddrinfo ENOTFOUND registry.npmjs.org",
        Some(Network),
    ),
    (
        "npm install",
        Some(243),
        "npm error code EACCES\nnpm error syscall mkdir\nnpm error path /usr/lib/node_modules\nnpm error errno -13",
        Some(Permission),
    ),
    (
        "npm install",
        Some(228),
        "npm error code ENOSPC\nnpm error syscall write\nnpm error nospc ENOSPC: no space left on device, write",
        Some(Disk),
    ),
    (
        "npm publish",
        Some(1),
        "npm error code ENEEDAUTH\nnpm error need auth This command requires you to be logged in to https://registry.npmjs.org/",
        Some(Auth),
    ),
    (
        "npm publish",
        Some(1),
        "npm error code E403\nnpm error 403 403 Forbidden - PUT https://registry.npmjs.org/x",
        Some(Auth),
    ),
    (
        "npm install",
        Some(1),
        "npm error code E429\nnpm error 429 Too Many Requests - GET https://registry.npmjs.org/x",
        Some(RateLimit),
    ),
    (
        "node a.js",
        Some(1),
        "Error: Cannot find module 'express'\nRequire stack:\n- /proj/a.js",
        Some(MissingDependency),
    ),
    (
        "node a.js",
        Some(1),
        "TypeError: Cannot read properties of undefined (reading 'x')\n    at Object.<anonymous> (/proj/a.js:1:3)",
        Some(TypeError),
    ),
    ("node a.js", Some(1), "Error: listen EACCES: permission denied 0.0.0.0:80", Some(Permission)),
    ("node a.js", Some(1), "Error: connect ECONNREFUSED 127.0.0.1:5432", Some(Network)),
    // go
    (
        "go test ./...",
        Some(1),
        "--- FAIL: TestAdd (0.00s)\n    add_test.go:8: got 3, want 4\nFAIL\nFAIL\texample.com/add\t0.002s\nFAIL",
        Some(TestFailure),
    ),
    (
        "go build ./...",
        Some(1),
        "# example.com/add\n./add.go:4:9: cannot use \"a\" (untyped string constant) as int value in return statement",
        Some(TypeError),
    ),
    (
        "go test ./...",
        Some(1),
        "./add_test.go:6:12: undefined: Sub\nFAIL\texample.com/add [build failed]\nFAIL",
        Some(TypeError),
    ),
    (
        "go build",
        Some(1),
        "main.go:3:8: no required module provides package github.com/x/y; to add it:\n\tgo get github.com/x/y",
        Some(MissingDependency),
    ),
    (
        "go mod download",
        Some(1),
        "go: github.com/x/y@v1.0.0: Get \"https://proxy.golang.org/x\": dial tcp: lookup proxy.golang.org: no such host",
        Some(Network),
    ),
    // git
    (
        "git merge feature",
        Some(1),
        "Auto-merging a.txt\nCONFLICT (content): Merge conflict in a.txt\nAutomatic merge failed; fix conflicts and then commit the result.",
        Some(MergeConflict),
    ),
    (
        "git rebase main",
        Some(1),
        "CONFLICT (modify/delete): b.rs deleted in HEAD and modified in 1a2b3c.\nerror: could not apply 1a2b3c... wip\nhint: Resolve all conflicts manually",
        Some(MergeConflict),
    ),
    (
        "git push",
        Some(128),
        "git@github.com: Permission denied (publickey).\nfatal: Could not read from remote repository.",
        Some(Auth),
    ),
    (
        "git push",
        Some(128),
        "remote: Support for password authentication was removed on August 13, 2021.\nfatal: Authentication failed for 'https://github.com/x/y.git/'",
        Some(Auth),
    ),
    (
        "git fetch",
        Some(128),
        "fatal: unable to access 'https://github.com/x/y.git/': Could not resolve host: github.com",
        Some(Network),
    ),
    (
        "git clone https://x/y",
        Some(128),
        "error: RPC failed; curl 56 GnuTLS recv error\nfatal: the remote end hung up unexpectedly\nfatal: early EOF",
        Some(Network),
    ),
    (
        "git push",
        Some(1),
        "remote: error: GH006: Protected branch update failed for refs/heads/main.\n ! [remote rejected] main -> main (protected branch hook declined)",
        Some(Permission),
    ),
    ("git checkout nosuch", Some(1), "error: pathspec 'nosuch' did not match any file(s) known to git", Some(Other)),
    (
        "git clone git@github.com:x/y",
        Some(128),
        "Host key verification failed.\nfatal: Could not read from remote repository.",
        Some(Auth),
    ),
    // docker
    (
        "docker ps",
        Some(1),
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
        Some(Network),
    ),
    (
        "docker ps",
        Some(1),
        "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock",
        Some(Permission),
    ),
    (
        "docker pull x/y",
        Some(1),
        "Error response from daemon: pull access denied for x/y, repository does not exist or may require 'docker login'",
        Some(Auth),
    ),
    (
        "docker pull x",
        Some(1),
        "Error response from daemon: toomanyrequests: You have reached your pull rate limit.",
        Some(RateLimit),
    ),
    (
        "docker pull x:9",
        Some(1),
        "Error response from daemon: manifest for x:9 not found: manifest unknown: manifest unknown",
        Some(MissingDependency),
    ),
    ("docker build .", Some(1), "ERROR: failed to solve: write /layer.tar: no space left on device", Some(Disk)),
    // ssh, curl, apt, system
    ("ssh host", Some(255), "ssh: connect to host host port 22: Connection refused", Some(Network)),
    ("ssh host", Some(255), "user@host: Permission denied (publickey,password).", Some(Auth)),
    ("curl -fsS https://x", Some(6), "curl: (6) Could not resolve host: x", Some(Network)),
    (
        "curl -fsS https://x",
        Some(28),
        "curl: (28) Operation timed out after 5001 milliseconds with 0 bytes received",
        Some(Network),
    ),
    ("curl -fsS https://x", Some(22), "curl: (22) The requested URL returned error: 401", Some(Auth)),
    ("curl -fsS https://x", Some(22), "curl: (22) The requested URL returned error: 429", Some(RateLimit)),
    ("apt-get install foo", Some(100), "E: Unable to locate package foo", Some(MissingDependency)),
    (
        "apt-get install jq",
        Some(100),
        "E: Could not open lock file /var/lib/dpkg/lock-frontend - open (13: Permission denied)\nE: Unable to acquire the dpkg frontend lock, are you root?",
        Some(Permission),
    ),
    ("mkdir /etc/x", Some(1), "mkdir: cannot create directory '/etc/x': Permission denied", Some(Permission)),
    ("touch /ro/x", Some(1), "touch: cannot touch '/ro/x': Read-only file system", Some(Permission)),
    ("cp a b", Some(1), "cp: error writing 'b': No space left on device", Some(Disk)),
    ("cp a b", Some(1), "cp: error reading 'a': Input/output error", Some(Disk)),
    ("foo --bar", Some(127), "bash: foo: command not found", Some(MissingDependency)),
    ("./foo", Some(127), "", Some(MissingDependency)),
    ("./foo", Some(126), "", Some(Permission)),
    (
        "make",
        Some(2),
        "main.c:1:10: fatal error: zlib.h: No such file or directory\n    1 | #include <zlib.h>\nmake: *** [main.o] Error 1",
        Some(MissingDependency),
    ),
    (
        "make",
        Some(2),
        "main.c:4:5: error: 'x' undeclared (first use in this function)\nmake: *** [main.o] Error 1",
        Some(TypeError),
    ),
    (
        "make",
        Some(2),
        "/usr/bin/ld: main.o: undefined reference to `foo'\ncollect2: error: ld returned 1 exit status",
        Some(TypeError),
    ),
    (
        "mvn test",
        Some(1),
        "[ERROR] Tests run: 3, Failures: 1, Errors: 0\n[ERROR] There are test failures.",
        Some(TestFailure),
    ),
    ("bundle exec rspec", Some(1), "10 examples, 2 failures", Some(TestFailure)),
    ("psql -c x", Some(2), "psql: error: FATAL:  password authentication failed for user \"app\"", Some(Auth)),
    (
        "aws s3 ls",
        Some(253),
        "Unable to locate credentials. You can configure credentials by running \"aws configure\".",
        Some(Auth),
    ),
    ("gh pr list", Some(4), "To get started with GitHub CLI, please run:  gh auth login", Some(Auth)),
    ("gh api x", Some(1), "gh: API rate limit exceeded for user ID 1. (HTTP 403)", Some(RateLimit)),
    ("ls nosuch", Some(2), "ls: cannot access 'nosuch': No such file or directory", Some(Other)),
    ("false", Some(1), "", Some(Other)),
    // Not a failure: there is no match.
    ("grep -rn needle src", Some(1), "", None),
    ("cd src && rg needle", Some(1), "", None),
    ("git diff --quiet", Some(1), "", None),
    ("which nosuch", Some(1), "", None),
];

#[test]
fn failed_commands_are_classified_by_their_output() {
    assert!(FAILED.len() >= 60, "{}", FAILED.len());
    let wrong: Vec<String> = FAILED
        .iter()
        .filter_map(|case| {
            let found = run(case, ToolOutcome::Error);
            (found != case.3).then(|| format!("{}: {:?} is {found:?}, not {:?}", case.0, case.2, case.3))
        })
        .collect();
    println!("{} of {} cases", FAILED.len() - wrong.len(), FAILED.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The command succeeded, according to the agent.
const WORKED: &[StatusInputs] = &[
    ("cargo test 2>&1 | tail -5", Some(0), "test result: FAILED. 2 passed; 1 failed; 0 ignored", Some(TestFailure)),
    ("cargo test", Some(0), "test result: ok. 3 passed; 0 failed; 0 ignored; finished in 0.01s", None),
    ("pytest -q | tail -1", None, "1 failed, 2 passed in 0.05s", Some(TestFailure)),
    ("pytest -q", None, "12 passed in 0.05s", None),
    ("cargo build 2>&1 | tail", Some(0), "error[E0308]: mismatched types", Some(TypeError)),
    ("npx tsc --noEmit || true", Some(0), "src/a.ts(3,7): error TS2322: Type 'string'", Some(TypeError)),
    ("git merge x || true", Some(0), "CONFLICT (content): Merge conflict in a.txt", Some(MergeConflict)),
    ("cat build.log", Some(0), "error[E0308]: mismatched types", None),
    ("grep -rn ENOSPC docs", Some(0), "docs/a.md:3: ENOSPC means no space left on device", None),
    ("cat README.md", Some(0), "If it says `permission denied`, run it again. 3 failed attempts in total", None),
    ("git log -1", Some(0), "fix what failed", None),
];

#[test]
fn failures_hidden_by_a_successful_exit_code_are_detected() {
    for case in WORKED {
        assert_eq!(run(case, ToolOutcome::Ok), case.3, "{}: {}", case.0, case.2);
    }
}

#[test]
fn a_blocked_call_is_a_permission_failure_but_a_denied_one_is_not() {
    let case = &("rm x", Some(1), "The user doesn't want to proceed", None);
    assert_eq!(run(case, ToolOutcome::Denied), None);
    assert_eq!(run(case, ToolOutcome::Cancelled), None);
    assert_eq!(run(case, ToolOutcome::Blocked), Some(Permission));
}

#[test]
fn an_exit_code_in_the_output_text_is_used() {
    assert_eq!(run(&("./x", None, "Exit code 127\n", None), ToolOutcome::Error), Some(MissingDependency));
    assert_eq!(run(&("grep a b", None, "Exit code: 1\nOutput:\n", None), ToolOutcome::Error), None);
}

#[test]
fn both_ends_of_a_long_output_are_examined() {
    let noise = "lorem ipsum\n".repeat(100_000);
    for text in [format!("error: No space left on device\n{noise}"), format!("{noise}No space left on device\n")] {
        let returned = FinishedCall {
            tool: ToolKind::Execute,
            title: Some("make"),
            exit_code: Some(2),
            outcome: ToolOutcome::Error,
            text: Some(&text),
        };
        assert_eq!(classify(&returned), Some(Disk));
    }
    assert!(ends_of(&"é".repeat(100_000)).len() <= HEAD_BYTES + TAIL_BYTES + 4);
}

#[test]
fn agent_errors_are_classified_by_class_code_and_text() {
    let of = |class, code: Option<&str>, text| {
        let error = ErrorReported { class, code: code.map(str::to_owned), ends_turn: true, retrying: false };
        classify_error(&error, text)
    };
    let cases = [
        (ErrorClass::Auth, Some("401"), None, Auth),
        (ErrorClass::RateLimit, Some("429"), None, RateLimit),
        (ErrorClass::Quota, None, None, RateLimit),
        (ErrorClass::Network, None, None, Network),
        (ErrorClass::Provider, Some("529"), None, ProviderCrash),
        (ErrorClass::Context, None, None, Other),
        (ErrorClass::Other, Some("503"), None, ProviderCrash),
        (ErrorClass::Other, Some("403"), None, Auth),
        (ErrorClass::Other, None, Some("fetch failed: ECONNRESET"), Network),
        (ErrorClass::Other, None, Some("something"), Other),
    ];
    for (class, code, text, kind) in cases {
        assert_eq!(of(class, code, text), kind, "{class} {code:?} {text:?}");
    }
}

#[test]
fn commands_that_run_tests_are_recognized() {
    for yes in [
        "cargo test -p x",
        "cargo nextest run",
        "cd a && npm test",
        "npm run test:unit",
        "go test ./...",
        "python -m pytest",
        ".venv/bin/pytest",
        "make check",
        "cargo +nightly test",
        "npm test",
        "python3 -m pytest -q",
        "go test ./...",
        "make check; ./test",
        "./test",
        "bash test.sh",
    ] {
        assert!(runs_tests(yes), "{yes}");
    }
    for no in [
        "cargo build",
        "cargo check",
        "ls test",
        "cat tests/a.rs",
        "echo test",
        "git checkout test",
        "ls",
        "cat latest.txt",
        "git attest",
        "test -f a",
        "ls ./test",
    ] {
        assert!(!runs_tests(no), "{no}");
    }
}

proptest::proptest! {
    /// Signs that overlap or contain each other are all found.
    #[test]
    fn single_pass_matching_equals_matching_each_pattern(
        parts in proptest::collection::vec((0..TABLES.len(), 0..64_usize, "[a-z :\n]{0,3}", 0..4_usize), 0..6),
    ) {
        let mut text = String::new();
        for (table, sign, between, cut) in parts {
            let signs = TABLES[table].1;
            let sign = signs[sign % signs.len()];
            // Sometimes without its end.
            text.push_str(sign.get(..sign.len() - cut % sign.len()).unwrap_or(sign));
            text.push_str(&between);
        }
        let found = FoundTables::of(&text);
        proptest::prop_assert_eq!(found, FoundTables::one_by_one(&text));
        for (table, _) in TABLES {
            proptest::prop_assert_eq!(table.has_sign_in(&text), found.contains(*table), "{:?}", table);
        }
    }
}
