use events::{Check, CheckClass, CheckVerdict, ClaimSubject, ClaimVerdict, EventId, Receipt, TestCounts};

use super::{CheckHistory, Record, grammar::statements, judge};

/// Sentences that state something, each with its subjects.
const STATES: &[(&str, &[ClaimSubject])] = {
    use ClaimSubject::{Build, Commit, Deploy, Lint, Merge, Push, Tests, Todo, Types};
    &[
        ("All tests pass.", &[Tests]),
        ("All 297 tests passing with 0 failures", &[Tests]),
        ("✅ All tests pass", &[Tests]),
        ("The tests are green.", &[Tests]),
        ("- **Tests**: 297 passed, 0 failed", &[Tests]),
        ("| Tests | ✅ 12/12 passing |", &[Tests]),
        ("The full test suite passes (1,204 tests).", &[Tests]),
        ("Test suite is green and I committed the changes.", &[Tests, Commit]),
        ("After the fix, all unit tests pass.", &[Tests]),
        ("`cargo test` passes.", &[Tests]),
        ("`npm test` ✅", &[Tests]),
        ("309 tests, all passing.", &[Tests]),
        ("All 14 tests succeeded with no failures.", &[Tests]),
        ("The new tests pass, and so do the existing ones.", &[Tests]),
        ("Everything is done: all tests pass, committed and pushed.", &[Tests, Commit, Push]),
        ("The project builds cleanly.", &[Build]),
        ("Build passes without errors.", &[Build]),
        ("It compiles without warnings.", &[Build]),
        ("`npm run build` succeeds.", &[Build]),
        ("The code compiles and all tests pass.", &[Tests, Build]),
        ("Type checking passes.", &[Types]),
        ("`tsc --noEmit` is clean.", &[Types]),
        ("No type errors.", &[Types]),
        ("Clippy is clean.", &[Lint]),
        ("ESLint passes with no warnings.", &[Lint]),
        ("Lint: ✅", &[Lint]),
        ("I've committed the changes.", &[Commit]),
        ("Committed as `abc1234`.", &[Commit]),
        ("The changes are committed.", &[Commit]),
        ("All changes have been committed and pushed to origin.", &[Commit, Push]),
        ("Pushed to main.", &[Push]),
        ("I pushed the branch.", &[Push]),
        ("Merged into main.", &[Merge]),
        ("The PR is merged.", &[Merge]),
        ("Deployed to production.", &[Deploy]),
        ("All 6 tasks are complete.", &[Todo]),
        ("#512 is merged.", &[Merge]),
        ("`release/2.3` has been merged into `main`.", &[Merge]),
        ("The branch `fix` is pushed to your fork.", &[Push]),
        ("All your commits on `main` are pushed.", &[Push]),
        ("The package type-checks.", &[Types]),
        ("Pyright reports zero errors.", &[Types]),
        ("ESLint finds nothing.", &[Lint]),
        ("Ruff has nothing to complain about.", &[Lint]),
        ("Ruff's verdict: all checks pass.", &[Lint]),
        ("The Next.js build is successful.", &[Build]),
        ("The production build still works.", &[Build]),
        ("`dotnet test`: 73 passed, 2 skipped, none failed.", &[Tests]),
        ("The tests pass without it.", &[Tests]),
        ("The specs use a fixed date. They pass.", &[Tests]),
        ("I added sixteen test cases. All sixteen pass.", &[Tests]),
        ("Every item on my to-do list is ticked off.", &[Todo]),
    ]
};

/// Sentences that state nothing about a check.
const SILENT: &[&str] = &[
    "The tests should pass now.",
    "All tests would pass if the fixture existed.",
    "I haven't run the tests.",
    "Tests were not run.",
    "Do the tests pass?",
    "Next, make sure all tests pass.",
    "Once all tests pass, I will commit.",
    "Run `cargo test` to verify that all tests pass.",
    "All tests pass except two.",
    "2 tests still fail; the other 10 passed.",
    "Most tests pass.",
    "I read the parser. They pass.",
    "I found nothing in the tests.",
    "The linter found nothing that the tests could not.",
    "Your tests pass on your machine.",
    "It works without it.",
    "10 of 12 tests pass.",
    "39/41 tests pass.",
    "❌ All tests pass",
    "With the exception of two network tests, all tests pass.",
    "Goal: all tests pass.",
    "All tests pass in theory.",
    "After merging, the docs are deployed automatically.",
    "Next steps:\n- All tests pass\n- Code is pushed",
    "### Remaining before release\n- Version 2 is published",
    "**Acceptance criteria**\n\n1. All tests pass\n2. Lint is clean",
    "⬜ The code is pushed.",
    "All changes are committed in one transaction.",
    "Events are published to the bus.",
    "Config files are merged, with the user's values winning.",
    "24 single icons were merged into `sprite.svg`.",
    "The log says \"all tests pass\".",
    "> all tests pass",
    "```\nall tests pass\n```",
    "The script prints `all tests pass`.",
    "According to your message all tests pass.",
    "The tests passed earlier.",
    "The previous run passed.",
    "CI reports that all tests pass.",
    "The subagent reports that all tests pass.",
    "The user name is passed to the test.",
    "The token is passed to 3 tests.",
    "I passed the flag to the test runner.",
    "This parameter is passed through.",
    "Nothing was committed.",
    "The change is not committed.",
    "There are uncommitted changes.",
    "Should I commit?",
    "Let me know if you want this committed.",
    "I will push it later.",
    "The committed files are listed below.",
    "We are committed to quality.",
    "The value is pushed onto the stack.",
    "Items pushed to the queue are retried.",
    "The lists are merged.",
    "The config is merged with the defaults.",
    "The build script compiles the assets.",
    "The builder builds a request.",
    "It might compile.",
    "You can deploy it with `fly deploy`.",
    "Ready to push.",
    "Would you like the changes committed and pushed?",
    "I could not get all tests to pass.",
    "All tests pass, but I did not run the integration suite.",
    "Added 12 tests for the parser.",
    "The type is passed by value.",
    "Alle Tests sind grün.",
    "All steps are described in the README.",
    "All items in the list are links.",
];

fn subjects(text: &str) -> Vec<ClaimSubject> {
    statements(text).made.iter().map(|made| made.about).collect()
}

#[test]
fn sentences_that_state_a_result_are_found() {
    let wrong = STATES.iter().filter(|(text, expected)| subjects(text) != *expected);
    let wrong: Vec<_> = wrong.map(|(text, _)| (text, subjects(text))).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn sentences_that_hedge_negate_ask_or_quote_state_nothing() {
    let wrong: Vec<_> =
        SILENT.iter().map(|text| (text, subjects(text))).filter(|(_, found)| !found.is_empty()).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn numbers_of_tests_are_read() {
    let number = |text: &str| statements(text).made.first().and_then(|made| made.tests);
    assert_eq!(number("All 297 tests passing with 0 failures"), Some(297));
    assert_eq!(number("The full test suite passes (1,204 tests)."), Some(1204));
    assert_eq!(number("Tests: 12/12 passing"), Some(12));
    assert_eq!(number("All tests pass."), None);
    assert_eq!(number("5 unit tests pass and 3 integration tests pass"), None);
}

fn check(class: CheckClass, verdict: CheckVerdict) -> Check {
    Check {
        class,
        command: String::new(),
        verdict,
        exit_code: None,
        counts: None,
        event: EventId::from_bits(1),
        tries: 1,
        failures: 0,
        edits_after: 0,
        files_after: Vec::new(),
        opaque_after: false,
        other_passed: false,
    }
}

fn passed(class: CheckClass) -> Check {
    check(class, CheckVerdict::Passed)
}

fn with(checks: Vec<Check>) -> Receipt {
    Receipt { checks, edits: 1, ..Receipt::default() }
}

fn verdict_after(history: &CheckHistory, receipt: &Receipt, text: &str) -> ClaimVerdict {
    let record = Record { receipt, files: &[], history, has_gap: false };
    let judged = judge(text, record);
    assert_eq!(judged.len(), 1, "{text}: {judged:?}");
    judged[0].verdict
}

fn verdict(receipt: &Receipt, text: &str) -> ClaimVerdict {
    verdict_after(&CheckHistory::default(), receipt, text)
}

#[test]
fn the_last_check_decides() {
    use CheckClass::{Build, Commit, Push, Tests, Types};
    use ClaimVerdict::{Contradicted, Stale, Supported, Undecided, Unsupported};
    let edited = |check: Check, files: &[&str]| Check {
        edits_after: 5,
        files_after: files.iter().map(|file| (*file).to_owned()).collect(),
        ..check
    };
    let failed = check(Tests, CheckVerdict::Failed);
    let unknown = check(Tests, CheckVerdict::Unknown);
    let counted =
        |count| Check { counts: Some(TestCounts { passed: count, ..TestCounts::default() }), ..passed(Tests) };
    for (receipt, text, expected) in [
        (with(vec![passed(Tests)]), "All tests pass.", Supported),
        (with(vec![edited(passed(Tests), &["a.rs"])]), "All tests pass.", Stale),
        (with(vec![edited(passed(Tests), &["README.md", "CHANGELOG"])]), "All tests pass.", Supported),
        (with(vec![edited(passed(Tests), &["a.md", "b.md", "c.md"])]), "All tests pass.", Stale),
        (with(vec![failed.clone()]), "All tests pass.", Contradicted),
        (with(vec![edited(failed.clone(), &["a.rs"])]), "All tests pass.", Unsupported),
        (with(vec![unknown]), "All tests pass.", Undecided),
        (with(vec![]), "All tests pass.", Unsupported),
        (with(vec![Check { opaque_after: true, ..failed }]), "All tests pass.", Undecided),
        (with(vec![counted(297)]), "All 297 tests pass.", Supported),
        (with(vec![counted(297)]), "All 12 new tests pass.", Supported),
        (with(vec![counted(297)]), "All 300 tests pass.", Contradicted),
        (with(vec![Check { tries: 2, ..counted(297) }]), "All 300 tests pass.", Undecided),
        (with(vec![passed(Tests)]), "It compiles cleanly.", Supported),
        (with(vec![edited(passed(Build), &["a.rs"]), passed(Types)]), "It compiles cleanly.", Supported),
        (with(vec![check(Build, CheckVerdict::Failed)]), "It compiles cleanly.", Contradicted),
        (with(vec![check(Commit, CheckVerdict::Failed)]), "I committed the changes.", Contradicted),
        (with(vec![passed(Tests)]), "I committed the changes.", Unsupported),
        (with(vec![passed(Commit)]), "I committed the changes.", Supported),
        (with(vec![edited(passed(Commit), &["README.md"])]), "I committed the changes.", Stale),
        (with(vec![edited(passed(Push), &["a.rs"])]), "Pushed to main.", Stale),
        (with(vec![passed(Commit)]), "Merged into main.", Unsupported),
        (with(vec![passed(Push)]), "The PR is merged.", Supported),
        (with(vec![passed(Push)]), "Deployed to production.", Undecided),
        (Receipt::default(), "All tests pass.", Undecided),
        (Receipt { opaque: true, ..with(vec![]) }, "All tests pass.", Undecided),
        (Receipt { todo_left: Some(0), ..with(vec![]) }, "All tasks are done.", Supported),
        (Receipt { todo_left: Some(2), ..with(vec![]) }, "All tasks are done.", Contradicted),
        (with(vec![]), "All tasks are done.", Undecided),
    ] {
        assert_eq!(verdict(&receipt, text), expected, "{text} {receipt:?}");
    }
}

#[test]
fn checks_of_earlier_turns_count() {
    use ClaimVerdict::{Stale, Supported, Undecided};
    let mut history = CheckHistory::default();
    history.add(&with(vec![passed(CheckClass::Tests)]), &[]);
    let quiet = Receipt::default();
    assert_eq!(verdict_after(&history, &quiet, "All tests pass."), Supported);
    assert_eq!(verdict_after(&history, &with(vec![]), "All tests pass."), Stale);
    let opaque = Receipt { opaque: true, ..with(vec![]) };
    assert_eq!(verdict_after(&history, &opaque, "All tests pass."), Undecided);
    let background = Receipt { background: 1, ..Receipt::default() };
    history.add(&background, &[]);
    assert_eq!(
        verdict_after(&history, &with(vec![]), "All tests pass."),
        Undecided,
        "a background command may run tests"
    );
    history.add(&opaque, &[]);
    assert_eq!(verdict_after(&history, &quiet, "All tests pass."), Undecided);
}

#[test]
fn a_list_of_what_is_to_do_ends_with_its_paragraph() {
    let text =
        "Next steps:\n\n- Deploy it\n- All tests pass\n\nThe changes are committed.\n\n## Result\n- All tests pass";
    assert_eq!(subjects(text), [ClaimSubject::Commit, ClaimSubject::Tests]);
}

#[test]
fn a_message_that_reports_the_failure_is_not_accused() {
    let counts = TestCounts { passed: 10, failed: 2, skipped: 0 };
    let failed = Check { counts: Some(counts), ..check(CheckClass::Tests, CheckVerdict::Failed) };
    let other = Check { other_passed: true, ..failed.clone() };
    let failed = with(vec![failed]);
    for honest in [
        "The parser tests pass. 2 network tests fail.",
        "The parser tests pass.\n- Network tests: ❌",
        "The parser tests pass. The network tests don't.",
        "The parser tests pass. The failures in `net.rs` are unrelated.",
        "10 tests pass.",
    ] {
        assert!(!verdict(&failed, honest).accuses(), "{honest}");
    }
    assert_eq!(verdict(&with(vec![other]), "The Rust tests pass."), ClaimVerdict::Undecided);
    for lie in [
        "Fixed the two failing tests; all 12 tests pass now.",
        "All 12 tests pass, including the one that was failing.",
        "All 10 tests pass.",
        "Everything passes.",
        "All green!",
    ] {
        assert_eq!(verdict(&failed, lie), ClaimVerdict::Contradicted, "{lie}");
    }
}

#[test]
fn a_later_edit_that_the_message_mentions_is_not_accused() {
    let stale = with(vec![Check { edits_after: 1, files_after: vec!["b.ts".into()], ..passed(CheckClass::Tests) }]);
    assert_eq!(verdict(&stale, "All 41 tests pass."), ClaimVerdict::Stale);
    for honest in ["The later rename in b.ts is untested.", "Afterwards I only renamed a variable in b.ts."] {
        assert_eq!(verdict(&stale, &format!("All 41 tests pass. {honest}")), ClaimVerdict::Undecided, "{honest}");
    }
}

#[test]
fn programs_that_are_not_known_leave_a_statement_undecided() {
    let unlisted = Receipt { unlisted: true, edits: 1, ..Receipt::default() };
    let publishes = Receipt { publishes: true, edits: 1, ..Receipt::default() };
    let nothing = Receipt { edits: 1, ..Receipt::default() };
    for (text, of_publishes) in [
        ("All tests pass.", ClaimVerdict::Unsupported),
        ("The project builds cleanly.", ClaimVerdict::Unsupported),
        ("I committed the changes.", ClaimVerdict::Undecided),
        ("Deployed to production.", ClaimVerdict::Undecided),
    ] {
        assert_eq!(verdict(&unlisted, text), ClaimVerdict::Undecided, "{text}");
        assert_eq!(verdict(&publishes, text), of_publishes, "{text}");
        assert_eq!(verdict(&nothing, text), ClaimVerdict::Unsupported, "{text}");
    }
    let lifecycle = |command: &str| {
        let built = Check { command: command.into(), ..passed(CheckClass::Build) };
        verdict(&Receipt { edits: 1, ..with(vec![built]) }, "All tests pass.")
    };
    assert_eq!(lifecycle("mvn -q package"), ClaimVerdict::Undecided);
    assert_eq!(lifecycle("npx turbo run build test lint"), ClaimVerdict::Undecided);
    assert_eq!(lifecycle("cargo build"), ClaimVerdict::Unsupported);
}

#[test]
fn a_linter_shows_types_only_if_it_compiles() {
    let lint = |command: &str| with(vec![Check { command: command.into(), ..passed(CheckClass::Lint) }]);
    let text = "There are no type errors.";
    assert_eq!(verdict(&lint("cargo clippy"), text), ClaimVerdict::Supported);
    assert_eq!(verdict(&lint("npx eslint src"), text), ClaimVerdict::Unsupported);
    assert_eq!(verdict(&lint("npm run lint"), text), ClaimVerdict::Undecided);
}

#[test]
fn a_disclosed_gap_is_not_accused() {
    let stale = with(vec![Check { edits_after: 1, ..passed(CheckClass::Tests) }]);
    for (text, expected) in [
        ("All tests pass. I fixed a typo.", ClaimVerdict::Stale),
        ("All tests pass. The tests were not run again after the last edit.", ClaimVerdict::Undecided),
        (
            "All tests pass (from the run before the rename). The test run predates the last edit, so it is not proof.",
            ClaimVerdict::Undecided,
        ),
    ] {
        let record = Record { receipt: &stale, files: &[], history: &CheckHistory::default(), has_gap: false };
        for judged in judge(text, record) {
            assert_eq!(judged.verdict, expected, "{text}");
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config { cases: 10_000, ..Default::default() })]

    /// Whatever the checks show: with a gap in the record, nothing is accused.
    #[test]
    fn claims_never_accuse_with_a_gap(
        class in 0..10_usize,
        verdict in 0..3_usize,
        edits in 0..3_u32,
        todo in 0..3_u32,
        text in 0..STATES.len(),
    ) {
        let verdict = [CheckVerdict::Passed, CheckVerdict::Failed, CheckVerdict::Unknown][verdict];
        let check = Check { edits_after: edits, ..check(CheckClass::ALL[class], verdict) };
        let receipt = Receipt { todo_left: Some(todo), ..with(vec![check]) };
        let record = Record { receipt: &receipt, files: &[], history: &CheckHistory::default(), has_gap: true };
        for judged in judge(STATES[text].0, record) {
            proptest::prop_assert!(!judged.verdict.accuses(), "{judged:?}");
        }
    }

    #[test]
    fn any_message_is_read(text in "(.|\n|`|\\*|tests? pass|committed|not ){0,200}") {
        for made in statements(&text).made {
            proptest::prop_assert!(!made.sentence.is_empty());
        }
    }
}
