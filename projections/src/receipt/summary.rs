//! What test runners and git print about their result.
//!
//! The forms are those of the programs' own output: cargo, nextest, pytest, unittest, Jest, Vitest, Mocha, AVA, node,
//! Bun, Deno, go, RSpec, Minitest, ExUnit, PHPUnit, JUnit, Gradle, .NET, CTest, XCTest, Swift Testing, Catch2,
//! GoogleTest, Dart, Zig, Playwright and Perl's prove.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::{CheckClass, TestCounts};

/// Number of bytes examined, from the end.
const TEXT_BYTES: usize = 256 << 10;
/// Maximum number of lines of git's output examined, from the end.
const LINES: usize = 4_000;
/// Maximum number of lines between `Ran 5 tests in 0.1s` and `OK` in unittest's output.
const LINES_TO_OK: usize = 4;
/// Number of bytes examined at the end of a line.
const LINE_BYTES: usize = 400;
/// The largest number that is read as a number of tests.
const MOST_TESTS: u32 = 1_000_000;

/// Words of which every line of a summary, and every line that reports a failure, contains one.
static WORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let words = [
        "passed",
        "passing",
        "fail",
        " pass",
        "ok \t",
        "ok  ",
        "ok (",
        "ran ",
        "tests run:",
        "total:",
        "result: ",
        "executed ",
        // "error" alone is in every fifth line of a compiler's output.
        "error: test",
        "error: could",
        "error: doc",
        "error: uncaught",
        "error command",
        "error! ",
        "npm err",
        "error cs",
        "errors: ",
        "errors  ",
        "0 error",
        "1 error",
        "2 error",
        "3 error",
        "4 error",
        "5 error",
        "6 error",
        "7 error",
        "8 error",
        "9 error",
        "unhandled",
        "internalerror",
        "outside of examples",
        "fatal",
        "not ok",
        "***",
        "panic:",
        "segmentation",
        "traceback",
        "interrupt",
        "cancelled",
        "exception",
        "rejection",
        "snapshots:",
        "coverage",
        "were not run",
        "aborted",
        " todo ",
        " skipped ",
        "invalid",
    ];
    AhoCorasick::builder().ascii_case_insensitive(true).kind(Some(AhoCorasickKind::DFA)).build(words).ok()
});

/// The lines of a text that may be part of a summary. Most lines are not.
fn telling_lines(text: &str) -> impl Iterator<Item = &str> {
    let (mut at, mut awaits_ok) = (0, 0);
    std::iter::from_fn(move || {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        if awaits_ok > 0 {
            awaits_ok -= 1;
        } else {
            let hit = WORDS.as_ref()?.find(rest)?;
            at += rest[..hit.start()].rfind(['\n', '\r']).map_or(0, |end| end + 1);
        }
        let rest = &text[at..];
        let line = &rest[..rest.find(['\n', '\r']).unwrap_or(rest.len())];
        at += line.len() + 1;
        if line.trim_start().starts_with("Ran ") {
            // unittest prints `OK` on a line of its own.
            awaits_ok = LINES_TO_OK;
        }
        Some(line)
    })
}

/// What a text says about tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TestSummary {
    /// The number of tests; `None` if the runner prints none.
    pub(super) counts: Option<TestCounts>,
    /// Whether tests failed.
    pub(super) failed: bool,
    /// Whether another line reports a failure of the whole run, so that the summary alone shows no success.
    pub(super) doubtful: bool,
}

/// Finds the summaries of test runners; `None` if there is none. Several are added up.
pub(super) fn of_tests(text: &str) -> Option<TestSummary> {
    let (mut all, mut found) = (TestSummary::default(), false);
    let (mut counts, mut counted) = (TestCounts::default(), false);
    let (mut suites, mut ran) = (None::<TestCounts>, None::<u32>);
    // Playwright prints the failed tests before the passed ones, on a line of their own.
    let (mut loose, mut has_time) = (0_u32, false);
    let from = text.ceil_char_boundary(text.len().saturating_sub(TEXT_BYTES));
    all.doubtful = from > 0;
    for line in telling_lines(&text[from..]) {
        let line = plain(&line[line.ceil_char_boundary(line.len().saturating_sub(LINE_BYTES))..]);
        if line.is_empty() {
            continue;
        }
        all.doubtful |= reports_failure(&line);
        if let Some(failed) = loose_failures(&line) {
            loose = loose.saturating_add(failed);
            continue;
        }
        has_time |= line.ends_with("s)") || line.ends_with("m)");
        if let Some(of_suite) = xctest(&line) {
            // Printed for each suite, and at the end for all together.
            (suites, found) = (Some(of_suite), true);
            continue;
        }
        if let Some(number) = unittest_ran(&line) {
            ran = Some(number);
            continue;
        }
        if let Some(number) = ran
            && let Some(failed) = unittest(&line)
        {
            (ran, found, counted) = (None, true, true);
            counts.add(TestCounts { passed: number.saturating_sub(failed), failed, skipped: 0 });
            all.failed |= failed > 0;
            continue;
        }
        match line_of_runner(&line) {
            Some(RunnerLine::Counts(of_line)) => {
                (found, counted) = (true, true);
                counts.add(of_line);
            }
            Some(RunnerLine::Verdict { failed }) => {
                found = true;
                all.failed |= failed;
            }
            None => {}
        }
    }
    if let Some(of_suites) = suites {
        counted = true;
        counts.add(of_suites);
    }
    if has_time {
        counts.add(TestCounts { failed: loose, ..TestCounts::default() });
    } else {
        all.doubtful |= loose > 0;
    }
    if !found && let Some(of_stream) = of_tap(&text[from..]) {
        (found, counted) = (true, true);
        counts = of_stream;
        all.doubtful = from > 0;
    }
    all.failed |= counts.failed > 0;
    all.counts = counted.then_some(counts);
    found.then_some(all)
}

/// The counts of a complete TAP stream without a summary: a plan (`1..5`) and as many results. Bats and many others
/// print it.
fn of_tap(text: &str) -> Option<TestCounts> {
    if !text.contains("1..") {
        return None;
    }
    let (mut planned, mut counts) = (None, TestCounts::default());
    for line in text.lines() {
        if let Some(number) = line.strip_prefix("1..") {
            planned = number.split_whitespace().next().and_then(|number| number.parse::<u32>().ok());
        } else if line.starts_with("Bail out!") {
            return None;
        } else if let Some(rest) = line.strip_prefix("not ok ") {
            // A test that is to fail.
            if rest.contains("# TODO") { counts.skipped += 1 } else { counts.failed += 1 }
        } else if let Some(rest) = line.strip_prefix("ok ") {
            if rest.contains("# SKIP") || rest.contains("# skip") { counts.skipped += 1 } else { counts.passed += 1 }
        }
    }
    let all = counts.passed.saturating_add(counts.failed).saturating_add(counts.skipped);
    planned.filter(|planned| *planned == all && all > 0).map(|_| counts)
}

/// Whether a run was empty: no test was found, or all were left out.
pub(super) fn ran_nothing(text: &str, summary: Option<TestSummary>) -> bool {
    if summary.is_some_and(|summary| summary.counts.is_none_or(|counts| counts.passed > 0)) {
        return false;
    }
    // All were skipped.
    if summary.and_then(|summary| summary.counts).is_some_and(|counts| counts.failed == 0 && counts.skipped > 0) {
        return true;
    }
    let text = text.to_ascii_lowercase();
    ["no test files", "no tests to run", "no tests found", "no tests ran", "running 0 tests", "0 passed", "0 tests"]
        .iter()
        .any(|sign| text.contains(sign))
}

/// Whether a line reports that a whole run failed. Tests may print such lines too, so it only makes a success doubtful.
fn reports_failure(line: &str) -> bool {
    const BEGINS: &[&str] = &[
        "error: test failed",
        "error: could not compile",
        "error: doctest failed",
        "error command failed",
        "error: uncaught",
        "error! test suite aborted",
        "npm err!",
        "npm error",
        "build failed",
        "make: ***",
        "gmake: ***",
        "evaluation failed",
        "fail required test coverage",
        "internalerror>",
        "not ok ",
        "fatal:",
        "fatal error",
        "traceback (most recent call last)",
        "panic:",
        "segmentation fault",
        "error cs",
    ];
    const CONTAINS: &[&str] = &[
        "build failure",
        "]: ***",
        " exec failed",
        "tests were not run",
        "uncaught exception",
        "unhandled rejection",
        "unhandled error",
        "keyboardinterrupt",
        "coverage threshold",
        "target failed:",
        "targets failed:",
        "test suite failed to run",
        "error occurred outside of examples",
        "errors occurred outside of examples",
    ];
    let words: Vec<&str> = line.split_whitespace().take(6).collect();
    let counted = match words.as_slice() {
        ["fail"] => true,
        ["errors", number, ..] | ["#" | "ℹ", "cancelled", number] => {
            number.parse::<u32>().is_ok_and(|number| number > 0)
        }
        [number, "error" | "errors"] => number.parse::<u32>().is_ok_and(|number| number > 0),
        ["snapshots:", number, "failed,", ..] => number.parse::<u32>().is_ok_and(|number| number > 0),
        ["test", "suites:", number, "failed,", ..] => number.parse::<u32>().is_ok_and(|number| number > 0),
        ["✖" | "✗", ..] => line.contains(" failed"),
        _ => false,
    };
    counted || BEGINS.iter().any(|sign| line.starts_with(sign)) || CONTAINS.iter().any(|sign| line.contains(sign))
}

/// A number of failed tests on a line of its own: `1 failed`, `2 interrupted`.
fn loose_failures(line: &str) -> Option<u32> {
    let (number, word) = line.split_once(' ')?;
    matches!(word, "failed" | "interrupted").then(|| number.parse().ok().filter(|number| *number <= MOST_TESTS))?
}

enum RunnerLine {
    Counts(TestCounts),
    Verdict { failed: bool },
}

/// A line without colours, in lower case.
fn plain(line: &str) -> String {
    if line.is_ascii() && !line.contains('\u{1b}') {
        return line.trim().to_ascii_lowercase();
    }
    let mut out = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            out.extend(c.to_lowercase());
            continue;
        }
        if chars.next() == Some('[') {
            let _ = chars.by_ref().find(char::is_ascii_alphabetic);
        }
    }
    out.trim().to_owned()
}

/// The number before each of these words.
fn numbers(line: &str) -> impl Iterator<Item = (u32, &str)> {
    let words: Vec<&str> = line
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '|' | '(' | ')' | '=' | '+'))
        .filter(|word| !word.is_empty())
        .collect();
    (1..words.len()).filter_map(move |at| {
        let word = words[at].trim_end_matches(['.', ':', '!']);
        Some((words[at - 1].parse().ok().filter(|number| *number <= MOST_TESTS)?, word))
    })
}

/// The number after a word: `failures: 1`.
fn after(line: &str, word: &str) -> Option<u32> {
    let rest = &line[line.find(word)? + word.len()..];
    let rest = rest.trim_start_matches([':', '=', ' ', '\t']);
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok().filter(|number| *number <= MOST_TESTS)
}

fn starts_with_number(line: &str) -> bool {
    line.starts_with(|c: char| c.is_ascii_digit())
}

/// The counts in a line of the form `1 failed, 5 passed, 2 skipped`.
fn counted(line: &str) -> TestCounts {
    let mut counts = TestCounts::default();
    for (number, word) in numbers(line) {
        match word {
            "passed" | "passing" | "pass" | "succeeded" => counts.passed = counts.passed.saturating_add(number),
            "failed" | "failing" | "fail" | "error" | "errors" | "failure" | "failures" | "errored" | "invalid" => {
                counts.failed = counts.failed.saturating_add(number)
            }
            "skipped" | "ignored" | "pending" | "todo" | "xfailed" | "deselected" | "skips" => {
                counts.skipped = counts.skipped.saturating_add(number)
            }
            _ => {}
        }
    }
    counts
}

/// The counts in a line that names all tests and the failed ones: `10 examples, 1 failure`.
fn of_total(line: &str, totals: &[&str]) -> TestCounts {
    let total: u32 = numbers(line).filter(|(_, word)| totals.contains(word)).map(|(number, _)| number).sum();
    let rest = counted(line);
    let done = rest.failed.saturating_add(rest.skipped);
    TestCounts { passed: total.saturating_sub(done), ..rest }
}

fn line_of_runner(line: &str) -> Option<RunnerLine> {
    use RunnerLine::{Counts, Verdict};
    let has = |word: &str| line.contains(word);
    // cargo: `test result: ok. 12 passed; 0 failed; 1 ignored; …`
    if let Some(rest) = line.strip_prefix("test result: ") {
        let counts = counted(rest);
        let is_cut = counts == TestCounts::default() && rest.starts_with("failed");
        return Some(if is_cut { Verdict { failed: true } } else { Counts(counts) });
    }
    // nextest: `Summary [ 0.5s] 12 tests run: 11 passed, 1 failed, 0 skipped`
    if line.starts_with("summary [") && has("run:") {
        let rest = &line[line.find("run:")? + 4..];
        let mut counts = counted(rest);
        counts.failed += numbers(rest).filter(|(_, word)| *word == "timed").map(|(number, _)| number).sum::<u32>();
        return Some(Counts(counts));
    }
    // pytest: `==== 1 failed, 3 passed in 0.12s ====`, and the same without `=`.
    let bare = line.trim_matches('=').trim();
    let ends_in_time = bare.rsplit_once(" in ").is_some_and(|(_, time)| {
        time.starts_with(|c: char| c.is_ascii_digit()) && (time.contains('s') || time.contains(':'))
    });
    if ends_in_time && (line.starts_with("==") || starts_with_number(line)) && starts_with_number(bare) {
        let counts = counted(bare);
        if counts != TestCounts::default() {
            return Some(Counts(counts));
        }
    }
    // Jest: `Tests: 1 failed, 5 passed, 6 total`
    if line.starts_with("tests:") && has(" total") {
        return Some(Counts(counted(line)));
    }
    // Vitest: `Tests  2 failed | 5 passed (7)`
    if let Some(rest) = line.strip_prefix("tests ")
        && starts_with_number(rest.trim_start())
        && rest.ends_with(')')
    {
        return Some(Counts(counted(rest)));
    }
    // PHPUnit: `Tests: 5, Assertions: 10, Failures: 1.` and `OK (5 tests, 10 assertions)`
    if line.starts_with("tests:") && has("assertions:") {
        let failed = after(line, "failures").unwrap_or(0) + after(line, "errors").unwrap_or(0);
        let skipped = after(line, "skipped").unwrap_or(0);
        let total = after(line, "tests")?;
        return Some(Counts(TestCounts { passed: total.saturating_sub(failed + skipped), failed, skipped }));
    }
    if line.starts_with("ok (") && has(" assertion") {
        return Some(Counts(of_total(line, &["test", "tests"])));
    }
    // RSpec, ExUnit, Minitest: `10 examples, 1 failure`, `297 tests, 0 failures`, `5 runs, 9 assertions, 0 failures, …`
    if starts_with_number(line) && has(" failure") && (has(" example") || has(" test") || has(" run") || has("doctest"))
    {
        // ExUnit counts doctests apart.
        let totals: &[&str] = if has(" test") {
            &["test", "tests"]
        } else {
            &["example", "examples", "run", "runs", "doctest", "doctests"]
        };
        return Some(Counts(of_total(line, totals)));
    }
    // JUnit by Maven: `Tests run: 5, Failures: 1, Errors: 0, Skipped: 0`; lines of single classes also name their time.
    if let Some(at) = line.find("tests run:").filter(|_| has("failures:") && !has("time elapsed")) {
        let line = &line[at..];
        let failed = after(line, "failures")? + after(line, "errors").unwrap_or(0);
        let skipped = after(line, "skipped").unwrap_or(0);
        return Some(Counts(TestCounts {
            passed: after(line, "tests run")?.saturating_sub(failed + skipped),
            failed,
            skipped,
        }));
    }
    // Gradle: `5 tests completed, 1 failed`
    if starts_with_number(line) && has("tests completed") {
        let failed = counted(line).failed;
        let total = numbers(line).find(|(_, word)| *word == "tests").map_or(0, |(number, _)| number);
        return Some(Counts(TestCounts { passed: total.saturating_sub(failed), failed, skipped: 0 }));
    }
    // .NET: `Passed!  - Failed: 0, Passed: 5, Skipped: 0, Total: 5`, `Test summary: total: 5, failed: 0, succeeded: 5`
    if line.starts_with("passed!") || line.starts_with("failed!") || line.starts_with("test summary: total") {
        let passed = after(line, ", passed").or(after(line, "succeeded"))?;
        let failed = after(line, "failed:")?;
        return Some(Counts(TestCounts { passed, failed, skipped: after(line, "skipped").unwrap_or(0) }));
    }
    // CTest: `100% tests passed, 0 tests failed out of 5`
    if has("% tests passed,") && has("failed out of") {
        let failed = numbers(line).find(|(_, word)| *word == "tests").map_or(0, |(number, _)| number);
        let total = after(line, "out of")?;
        return Some(Counts(TestCounts { passed: total.saturating_sub(failed), failed, skipped: 0 }));
    }
    // Deno: `ok | 5 passed | 0 failed (10ms)`
    if (line.starts_with("ok | ") || line.starts_with("failed | ")) && has(" passed") {
        return Some(Counts(counted(line)));
    }
    // AVA: `5 tests passed`, `1 test failed`; Playwright: `5 passed (3.2s)`
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        [number, "test" | "tests", "passed" | "failed"] if number.parse::<u32>().is_ok() => {
            let number = number.parse().unwrap_or(0);
            return Some(Counts(match words[2] {
                "passed" => TestCounts { passed: number, ..TestCounts::default() },
                _ => TestCounts { failed: number, ..TestCounts::default() },
            }));
        }
        // Mocha: `5 passing (20ms)`, `1 failing`
        [number, "passing" | "failing"] if number.parse::<u32>().is_ok() => return Some(Counts(counted(line))),
        [number, "passing", time] if number.parse::<u32>().is_ok() && time.starts_with('(') => {
            return Some(Counts(TestCounts { passed: number.parse().unwrap_or(0), ..TestCounts::default() }));
        }
        [number, "passed", time] if number.parse::<u32>().is_ok() && time.starts_with('(') => {
            return Some(Counts(TestCounts { passed: number.parse().unwrap_or(0), ..TestCounts::default() }));
        }
        // node: `# pass 5`, `ℹ fail 0`
        ["#" | "ℹ", which @ ("pass" | "fail" | "skipped" | "todo"), number] => {
            let number: u32 = number.parse().ok()?;
            return Some(Counts(match *which {
                "pass" => TestCounts { passed: number, ..TestCounts::default() },
                "fail" => TestCounts { failed: number, ..TestCounts::default() },
                _ => TestCounts { skipped: number, ..TestCounts::default() },
            }));
        }
        // Bun: `5 pass`, `1 fail`
        [number, which @ ("pass" | "fail")] if number.parse::<u32>().is_ok() => {
            let number = number.parse().unwrap_or(0);
            return Some(Counts(match *which {
                "pass" => TestCounts { passed: number, ..TestCounts::default() },
                _ => TestCounts { failed: number, ..TestCounts::default() },
            }));
        }
        // go: `ok  pkg  0.1s`, `FAIL  pkg  0.1s`, `--- FAIL: TestX (0.00s)`
        ["ok", package, time, ..] if package.contains(['/', '.']) && (time.ends_with('s') || *time == "(cached)") => {
            return Some(Verdict { failed: false });
        }
        ["fail", package, ..] if package.contains(['/', '.']) => return Some(Verdict { failed: true }),
        ["---", "fail:", ..] => return Some(Verdict { failed: true }),
        // GoogleTest: `[  PASSED  ] 5 tests.`, `[  FAILED  ] 1 test, listed below:`
        ["[", "passed", "]", number, "test." | "tests."] => {
            return Some(Counts(TestCounts { passed: number.parse().ok()?, ..TestCounts::default() }));
        }
        ["[", "failed", "]", number, "test," | "tests,", ..] => {
            return Some(Counts(TestCounts { failed: number.parse().ok()?, ..TestCounts::default() }));
        }
        // Zig: `All 5 tests passed.`
        ["all", number, "tests", "passed."] => {
            return Some(Counts(TestCounts { passed: number.parse().ok()?, ..TestCounts::default() }));
        }
        // prove: `Result: PASS`
        ["result:", verdict @ ("pass" | "fail")] => return Some(Verdict { failed: *verdict == "fail" }),
        _ => {}
    }
    // Swift Testing: `Test run with 5 tests passed after 0.1 seconds.`
    if let Some(at) = line.find("test run with ") {
        let total =
            numbers(&line[at..]).find(|(_, word)| matches!(*word, "test" | "tests")).map(|(number, _)| number)?;
        return Some(if has(" passed") {
            Counts(TestCounts { passed: total, ..TestCounts::default() })
        } else {
            Verdict { failed: true }
        });
    }
    // Catch2, Dart, Flutter, Cypress
    if line.starts_with("all tests passed (") || line.ends_with(": all tests passed!") || has("all specs passed!") {
        return Some(Verdict { failed: false });
    }
    if line.ends_with(": some tests failed.") || line.starts_with("test cases:") && has(" failed") {
        return Some(Verdict { failed: true });
    }
    None
}

/// XCTest: `Executed 5 tests, with 1 failure (0 unexpected) in 0.1 seconds`
fn xctest(line: &str) -> Option<TestCounts> {
    let line = &line[line.find("executed ").filter(|_| line.contains(" failure"))?..];
    let total = numbers(line).find(|(_, word)| matches!(*word, "test" | "tests"))?.0;
    let failed = numbers(line).find(|(_, word)| matches!(*word, "failure" | "failures"))?.0;
    Some(TestCounts { passed: total.saturating_sub(failed), failed, skipped: 0 })
}

/// unittest: `Ran 5 tests in 0.1s`
fn unittest_ran(line: &str) -> Option<u32> {
    let rest = line.strip_prefix("ran ")?;
    let (number, rest) = rest.split_once(' ')?;
    (rest.starts_with("test in ") || rest.starts_with("tests in ")).then(|| number.parse().ok())?
}

/// unittest: `OK`, `OK (skipped=1)` or `FAILED (failures=1, errors=2)`: the number of failed tests.
fn unittest(line: &str) -> Option<u32> {
    if line == "ok" || line.starts_with("ok (") {
        return Some(0);
    }
    line.starts_with("failed (")
        .then(|| after(line, "failures").unwrap_or(0) + after(line, "errors").unwrap_or(0))
        .map(|failed| failed.max(1))
}

/// What builds, type checkers, linters and formatters print last. Lines are compared in lower case, and a line that
/// contains the text counts.
const CHECKER_LINES: &[(CheckClass, bool, &str)] = {
    use CheckClass::{Build, Format, Lint, Types};
    &[
        // Gradle, Maven, .NET, Swift, Vite, webpack and Next.js
        (Build, true, "build successful in "),
        (Build, true, "] build success"),
        (Build, true, "build succeeded."),
        (Build, true, "build complete!"),
        (Build, true, "✓ built in "),
        (Build, true, "compiled successfully"),
        (Build, false, "build failed"),
        (Build, false, "build failure"),
        (Build, false, "failed to compile"),
        // mypy, pyright, dialyzer
        (Types, true, "success: no issues found"),
        (Types, true, "0 errors, 0 warnings"),
        (Types, true, "done (passed successfully)"),
        (Types, false, "done (warnings were emitted)"),
        // ruff, credo, RuboCop, golangci-lint, ESLint, oxlint, Biome
        (Lint, true, "all checks passed!"),
        (Lint, true, "found no issues"),
        (Lint, true, "no offenses detected"),
        (Lint, true, "found 0 warnings and 0 errors"),
        (Lint, true, "no fixes applied."),
        (Lint, true, "summary: 0 issues in 0 files"),
        (Lint, true, "summary: 0 error(s)"),
        (Lint, true, ". fixed "),
        (Lint, false, "✖ "),
        // Prettier, Black, ruff
        (Format, true, "all matched files use prettier code style"),
        (Format, false, "would be reformatted"),
        (Format, false, "code style issues found"),
    ]
};

/// Whether the output of a build, type check, linter or formatter says that it succeeded; `None` if it says nothing.
/// `is_only` says that the line runs no other check.
pub(super) fn of_checker(class: CheckClass, text: &str, is_only: bool) -> Option<bool> {
    /// Number of lines examined, from the end.
    const LAST: usize = 40;
    let mut verdict = None;
    for line in text.lines().rev().take(LAST) {
        let line = plain(line);
        // mypy, ruff and tsc: `Found 2 errors in 1 file.`
        let is_left = !line.contains("0 remaining") && !line.contains("(0 errors");
        let finds = matches!(class, CheckClass::Types | CheckClass::Lint)
            && is_left
            && line.starts_with("found ")
            && numbers(&line).any(|(number, word)| number > 0 && matches!(word, "error" | "errors"));
        // golangci-lint: `0 issues.`, `3 issues:`
        let of_issues = match line.strip_suffix(['.', ':']).and_then(|line| line.strip_suffix(" issues")) {
            Some(rest) if class == CheckClass::Lint => {
                // A task runner puts its name first: `[lint:go] 0 issues.`
                rest.rsplit(' ').next().and_then(|count| count.parse::<u32>().ok()).map(|count| count == 0)
            }
            Some(_) | None => None,
        };
        // cargo prints the same for each of its commands.
        let of_cargo = match class {
            CheckClass::Build | CheckClass::Types | CheckClass::Lint if is_only => {
                let failed = line.contains("error: could not compile");
                (failed || line.starts_with("finished `")).then_some(!failed)
            }
            CheckClass::Build
            | CheckClass::Types
            | CheckClass::Lint
            | CheckClass::Tests
            | CheckClass::Format
            | CheckClass::Commit
            | CheckClass::Push
            | CheckClass::Merge
            | CheckClass::Deploy
            | CheckClass::Install => None,
        };
        let is_of_class = |(of, passed, sign): &&(CheckClass, bool, &str)| {
            // ESLint: `✖ 3 problems (0 errors, 3 warnings)`
            *of == class && line.contains(sign) && (*passed || is_left)
        };
        let of_line = CHECKER_LINES.iter().find(is_of_class);
        match of_line.map(|(_, passed, _)| *passed).or(of_cargo).or(of_issues).or(finds.then_some(false)) {
            Some(false) => return Some(false),
            Some(true) => verdict = Some(true),
            None => {}
        }
    }
    verdict
}

/// Whether the output of a git command says that it succeeded; `None` if it says nothing about that. `alone` says that
/// no other program printed it.
pub(super) fn of_git(class: CheckClass, text: &str, alone: bool) -> Option<bool> {
    let mut verdict = None;
    // A fetch names the repository it reads from, a push the one it writes to.
    let mut fetches = false;
    for line in text.lines().rev().take(LINES).collect::<Vec<_>>().into_iter().rev() {
        let line = line.trim();
        fetches = line.starts_with("From ") || fetches && !line.starts_with("To ");
        let is_error = ["fatal:", "error:", "ERROR:"].iter().any(|sign| line.starts_with(sign));
        let fails = match class {
            CheckClass::Commit => {
                // After the line of a commit, a `git status` printed it.
                let nothing = verdict != Some(true)
                    && ["nothing to commit", "no changes added to commit", "nothing added to commit"]
                        .iter()
                        .any(|sign| line.starts_with(sign));
                nothing || line.contains("hook exited with") || line.starts_with("Aborting commit")
            }
            CheckClass::Push => line.starts_with("! [") || line.contains("failed to push"),
            CheckClass::Merge => line.starts_with("CONFLICT (") || line.starts_with("Automatic merge failed"),
            CheckClass::Tests
            | CheckClass::Build
            | CheckClass::Types
            | CheckClass::Lint
            | CheckClass::Format
            | CheckClass::Deploy
            | CheckClass::Install => return None,
        };
        let works = match class {
            // `[main abc1234] subject`, `[main (root-commit) abc1234] subject`
            CheckClass::Commit => is_commit_line(line),
            CheckClass::Push => {
                line.starts_with("Everything up-to-date") || !fetches && line.contains(" -> ") && is_ref_line(line)
            }
            CheckClass::Merge => {
                line.starts_with("Fast-forward")
                    || line.starts_with("Merge made by")
                    || line.starts_with("Already up to date")
                    || line.contains("Merged pull request")
                    || line.contains("Squashed and merged pull request")
            }
            CheckClass::Tests
            | CheckClass::Build
            | CheckClass::Types
            | CheckClass::Lint
            | CheckClass::Format
            | CheckClass::Deploy
            | CheckClass::Install => false,
        };
        if fails || is_error && alone {
            verdict = Some(false);
        } else if is_error && verdict == Some(true) && class != CheckClass::Commit {
            // Of this command or of another one. After the line of a commit, it is of another one.
            verdict = None;
        } else if works {
            verdict = Some(true);
        }
    }
    verdict
}

fn is_commit_line(line: &str) -> bool {
    let Some((head, _)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) else { return false };
    let hash = head.rsplit(' ').next().unwrap_or_default();
    head.contains(' ') && hash.len() >= 7 && hash.bytes().all(|b| b.is_ascii_hexdigit())
}

/// `abc1234..def5678  main -> main`, `* [new branch] main -> main`, `+ abc...def main -> main (forced update)`
fn is_ref_line(line: &str) -> bool {
    if line.starts_with('!') {
        return false;
    }
    let line = line.trim_start_matches(['*', '+', '-', ' ']);
    line.starts_with("[new ")
        || line.starts_with("[deleted]")
        || line
            .split_whitespace()
            .next()
            .is_some_and(|word| word.contains("..") && word.bytes().all(|b| b.is_ascii_hexdigit() || b == b'.'))
}
