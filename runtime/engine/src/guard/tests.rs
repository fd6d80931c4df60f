use proptest::prelude::*;

use super::*;

/// A call that was run.
fn identity(tool: &str, arguments: &Object, output: &CallOutput) -> String {
    super::identity(tool, arguments, output, false)
}

fn output(text: &str) -> CallOutput {
    CallOutput { content: vec![text_block(text)], ..CallOutput::default() }
}

/// A call with a result of more than a few words.
fn call(argument: &str, result: &str) -> String {
    let long = format!("{result} {}", "and more ".repeat(12));
    identity("bash", &Object::new().with("command", argument), &output(&long))
}

/// A call that takes this long.
fn timed(command: &str, result: &str, ms: u64, is_error: bool) -> String {
    let details = Some(Object::new().with("ms", ms));
    identity("bash", &Object::new().with("command", command), &CallOutput { details, is_error, ..output(result) })
}

fn verdicts(calls: impl IntoIterator<Item = String>) -> Vec<LoopVerdict> {
    let mut guard = LoopGuard::default();
    let one = |call: String| {
        let told = guard.verdict_with(&call);
        guard.push(&call);
        assert_eq!(told, guard.verdict());
        told
    };
    calls.into_iter().map(one).collect()
}

/// Number of calls after which the turn is paused.
fn stopped(calls: impl IntoIterator<Item = String>) -> Option<usize> {
    verdicts(calls).iter().position(|verdict| *verdict == LoopVerdict::Pause).map(|at| at + 1)
}

#[test]
fn the_third_identical_call_is_noted_and_the_fifth_pauses() {
    use LoopVerdict::{Fine, Note, Pause};
    assert_eq!(verdicts((0..5).map(|_| call("a", "x"))), [Fine, Fine, Note(3), Fine, Pause]);
    let broken = ["a", "a", "b", "a", "a"].map(|name| call(name, name));
    assert_eq!(verdicts(broken), [Fine; 5]);
}

#[test]
fn a_cycle_of_any_period_pauses_after_the_same_number_of_rounds() {
    for period in 1..=PERIOD {
        let calls = (0..200).map(|n| call(&format!("c{}", n % period), &format!("r{}", n % period)));
        assert_eq!(stopped(calls), Some(PAUSE * period), "a cycle of {period}");
    }
}

#[test]
fn progress_is_never_a_loop() {
    assert_eq!(stopped((0..300).map(|n| call("make status", &format!("progress: {n} %")))), None);
    let alternating = (0..300).map(|n| if n % 2 == 0 { call("ls", "x") } else { call("status", &format!("{n} left")) });
    assert_eq!(stopped(alternating), None);
    // Edits differ, and tests may fail in the same way.
    let edits = (0..100).map(|n| {
        let changed = Object::new().with("changed", vec![Json::from("a.py")]);
        let edited = CallOutput { details: Some(changed), ..output("edited a.py: 1 replacement") };
        let arguments = Object::new().with("path", "a.py").with("new", format!("{n}"));
        if n % 2 == 0 { identity("edit", &arguments, &edited) } else { call("make test", "failed") }
    });
    assert_eq!(stopped(edits), None);
    // Different commands without output are not a loop either, however many: files are moved that way.
    let silent = (0..200)
        .map(|n| identity("bash", &Object::new().with("command", format!("mkdir {n}")), &output("(no output)")));
    assert_eq!(stopped(silent), None);
}

#[test]
fn calls_with_varied_arguments_are_a_loop_if_their_results_repeat() {
    let found = stopped((0..200).map(|n| call(&format!("cat a.py # try {n}"), "text")));
    assert_eq!(found, Some(PAUSE_RESULTS));
    let two = stopped((0..200).map(|n| call(&format!("cat {n}"), if n % 2 == 0 { "a" } else { "b" })));
    assert_eq!(two, Some(PAUSE_RESULTS));
    let quiet = |n| identity("bash", &Object::new().with("command", format!("true # {n}")), &output("ok"));
    assert_eq!(stopped((0..200).map(quiet)), Some(PAUSE_RESULTS * QUIET_FACTOR));
    let notes = verdicts((0..10).map(|n| call(&format!("cat a.py # try {n}"), "text")));
    assert_eq!(notes[NOTE_RESULTS - 1], LoopVerdict::NoteResults { calls: NOTE_RESULTS, results: 1 });
}

#[test]
fn a_cycle_of_equal_results_is_noted_once_before_the_pause() {
    for period in 1..=PERIOD {
        let told = verdicts((0..60).map(|n| call(&format!("cat {n}"), &format!("r{}", n % period))));
        let calls = NOTE_RESULTS.max(NOTE * period);
        let end = told.iter().position(|verdict| *verdict == LoopVerdict::Pause).unwrap();
        let notes: Vec<(usize, LoopVerdict)> =
            told.into_iter().enumerate().take(end).filter(|(_, verdict)| *verdict != LoopVerdict::Fine).collect();
        assert_eq!(notes, [(calls - 1, LoopVerdict::NoteResults { calls, results: period })], "a cycle of {period}");
    }
}

#[test]
fn refused_calls_are_a_loop_only_if_they_are_the_same() {
    let refused = |command: &str, text: &str| {
        super::identity("bash", &Object::new().with("command", command), &output(text), true)
    };
    let long = "Permission denied: the session is in the mode `plan`, in which nothing is changed.";
    for text in ["Not run: one too many.", long] {
        let told = verdicts((0..120).map(|n| refused(&format!("touch f{n}"), text)));
        assert!(told.iter().all(|verdict| *verdict == LoopVerdict::Fine), "{told:?}");
        assert_eq!(stopped((0..50).map(|_| refused("touch f", text))), Some(PAUSE));
    }
    // Nor between calls that run.
    let mixed =
        (0..120).map(|n| if n % 2 == 0 { refused(&format!("touch f{n}"), long) } else { call("ls", &format!("{n}")) });
    assert_eq!(stopped(mixed), None);
}

#[test]
fn polling_calls_are_slowed_down_and_never_paused() {
    let waits = |calls: Vec<String>| -> Vec<u64> {
        let verdicts = verdicts(calls);
        assert!(!verdicts.contains(&LoopVerdict::Pause), "{verdicts:?}");
        let wait = |verdict: &LoopVerdict| if let LoopVerdict::Wait(_, ms) = verdict { Some(*ms) } else { None };
        verdicts.iter().filter_map(wait).collect()
    };
    let polls = waits((0..150).map(|_| timed("sleep 30; gh run view 7", "queued", 30_400, true)).collect());
    assert_eq!(polls[..4], [1_000, 2_000, 4_000, 8_000]);
    assert_eq!((polls.len(), polls.last()), (150 - PAUSE + 1, Some(&LONGEST_WAIT_MS)));
    let details = Some(Object::new().with("background", "p1"));
    let look = CallOutput { details, ..output("(no new output)\n[p1: running]") };
    let looks = (0..150).map(|_| identity("process", &Object::new().with("id", "p1"), &look));
    assert_eq!(waits(looks.collect()).len(), 150 - PAUSE + 1);
    let varied = waits((0..100).map(|n| timed(&format!("sleep 5 # {n}"), "queued", 5_000, false)).collect());
    assert!(!varied.is_empty());
    let in_turn =
        |n: usize| if n.is_multiple_of(2) { timed("sleep 9", "x", 9_000, false) } else { call("cat log", "log") };
    assert_eq!(waits((0..40).map(in_turn).collect()).len(), 20 - PAUSE + 1);
}

#[test]
fn a_command_that_only_mentions_sleep_is_a_loop() {
    assert_eq!(stopped((0..50).map(|_| timed("grep sleep a.c", "none", 3, true))), Some(PAUSE));
    // A call that takes long may be waiting and gets more repetitions.
    assert_eq!(stopped((0..50).map(|_| timed("./await-job", "queued", 9_000, false))), Some(PAUSE_SLOW));
    assert_eq!(stopped((0..50).map(|_| timed("make", "failed", 9_000, true))), Some(PAUSE));
}

#[test]
fn a_cycle_with_a_slow_call_gets_the_rounds_of_a_slow_call() {
    for period in 1..=PERIOD {
        let slow = (0..200).map(|n| match n % period {
            0 => timed("./await-job", "queued", 9_000, false),
            at => call(&format!("cat log{at}"), &format!("log {at}")),
        });
        assert_eq!(stopped(slow), Some(PAUSE_SLOW * period), "a cycle of {period}");
        // The arguments differ in each round, so none of the calls waits.
        let varied = (0..200).map(|n| timed(&format!("./try {n}"), &format!("no {}", n % period), 9_000, false));
        assert!(stopped(varied).is_some_and(|at| at <= PAUSE_RESULTS * QUIET_FACTOR), "a cycle of {period}");
    }
}

#[test]
fn the_identity_of_a_call_ignores_argument_order_and_times() {
    let ab = Object::new().with("a", "1").with("b", "2");
    let ba = Object::new().with("b", "2").with("a", "1");
    let of = |tool: &str, arguments: &Object, text: &str| identity(tool, arguments, &output(text));
    assert_eq!(of("bash", &ab, "took 12.5 s at 0xdeadbeef01"), of("bash", &ba, "took 3.25 s at 0xdeadbeef02"));
    assert_ne!(of("bash", &ab, "2 failed: one"), of("bash", &ab, "2 failed: two"));
    assert_ne!(of("bash", &ab, "x"), of("bash", &Object::new().with("a", "1"), "x"));
    assert_ne!(of("read", &ab, "x"), of("grep", &ab, "x"));
}

proptest! {
    /// A run in which a number advances in every round is never paused, whatever else repeats.
    #[test]
    fn a_run_with_progress_is_never_paused(
        period in 1..=PERIOD,
        moving in 0..PERIOD,
        step in 1..5_usize,
        ms in 0..20_000_u64,
    ) {
        let calls = (0..150).map(|n| {
            let name = format!("c{}", n % period);
            let result = if n % period == moving % period { format!("{} of 900 done", n * step) } else { name.clone() };
            timed(&name, &result, ms, false)
        });
        prop_assert_eq!(stopped(calls), None);
    }

    /// A cycle with equal results is paused within five rounds, one with varied arguments within forty calls.
    #[test]
    fn a_cycle_is_paused_within_its_bound(
        period in 1..=PERIOD,
        lead in 0..20_usize,
        varies in any::<bool>(),
        is_quiet in any::<bool>(),
    ) {
        let before = (0..lead).map(|n| call(&format!("before {n}"), &format!("{n}")));
        let cycle = (0..150).map(|n| {
            let argument = if varies { format!("c {n}") } else { format!("c{}", n % period) };
            let result = format!("r{}", n % period);
            if is_quiet { timed(&argument, &result, 1, false) } else { call(&argument, &result) }
        });
        let bound = if varies { PAUSE_RESULTS * QUIET_FACTOR } else { PAUSE * period };
        let found = stopped(before.chain(cycle));
        prop_assert!(found.is_some_and(|at| at <= lead + bound), "{:?}", found);
    }
}
