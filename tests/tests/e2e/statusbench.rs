//! The status benchmark plays cases, judges the status, and makes recordings.

use std::{fs, path::Path, process::Command};

use events::{Confidence, Provider, Reason, State};
use tests::{
    recording::fixtures,
    statusbench::{
        Mode,
        case::{Case, FolderStep},
        play::{Programs, Shown, play},
        report::judge,
    },
    terminal::ScreenStatus,
};

const BENCH: &str = env!("CARGO_BIN_EXE_statusbench");

fn terminal(name: &str) -> Case {
    Case::load(&fixtures().join("terminal/recordings").join(name)).unwrap()
}

fn at(at: i64, state: State, reason: Option<Reason>, confidence: Confidence) -> Shown {
    Shown { at, state: Some(state), reason, confidence: Some(confidence) }
}

/// The first part of the case, so that the test is short.
fn until(mut case: Case, end: i64) -> Case {
    case.ops.retain(|(at, _)| *at < end);
    case.truth.retain(|t| t.at < end);
    let last = *case.truth.last().unwrap();
    case.truth.push(ScreenStatus { at: end, ..last });
    case.ops.push((end + 2_000, FolderStep::Exit { run: 0, code: Some(0) }));
    case
}

#[test]
fn a_terminal_recording_replayed_through_capture_matches_its_truth() {
    let case = until(terminal("codex/interrupt-then-done"), 5_000);
    let programs = Programs::new(Path::new(BENCH), Some(Path::new(super::PROGRAM))).unwrap();
    let outcome = play(&case, Mode::Pty, &programs);
    let figures = outcome.result.unwrap();
    assert!(figures.score.agree() >= 95.0, "{} {:?}", figures.score, outcome.shown);
    assert_eq!((figures.score.false_approvals, figures.exits), (0, (0, 0)), "{:?}", outcome.shown);
}

/// Neither a file nor a terminal exists, so a dialog can be known only from the called hook.
#[test]
fn a_replay_with_hooks_and_telemetry_detects_the_approval() {
    let case = until(Case::load(&fixtures().join("recordings/claude/S05-long-quiet")).unwrap(), 4_200);
    let programs = Programs::new(Path::new(BENCH), Some(Path::new(super::PROGRAM))).unwrap();
    let mode = Mode::parse("otlp+hooks").unwrap();
    let outcome = play(&case, mode, &programs);
    let figures = outcome.result.unwrap();
    assert_eq!(figures.score.delays.len(), 1, "{} {:?}", figures.score, outcome.shown);
}

#[test]
fn a_mode_is_parsed_from_a_name_or_a_list_of_sources() {
    for (text, spelled) in [
        ("files", "files"),
        ("hooks", "hooks"),
        ("hooks+files", "hooks"),
        ("+hooks", "+hooks"),
        ("otlp+pty", "pty+otlp"),
        ("pty+files+hooks+otlp", "files+hooks+pty+otlp"),
    ] {
        let mode = Mode::parse(text).unwrap();
        assert_eq!(mode.as_str(), spelled);
        assert_eq!(Mode::parse(spelled), Some(mode));
    }
    for text in ["", "+", "files+", "files+all", "screens"] {
        assert_eq!(Mode::parse(text), None, "{text}");
    }
    let case = Case::load(&fixtures().join("recordings/codex/S03-approve")).unwrap();
    let fits = |text: &str| case.fits(Mode::parse(text).unwrap());
    assert!(fits("hooks") && fits("+hooks") && fits("files+hooks+otlp") && !fits("pty") && !fits("files+pty"));
}

/// The public recordings cover the essential cases of each agent, in every mode.
#[test]
fn public_recordings_cover_each_agent_in_every_mode() {
    let dirs = [fixtures().join("recordings"), fixtures().join("terminal/recordings")];
    let cases = Case::load_all(&dirs.each_ref().map(|dir| dir.as_path())).unwrap();
    for provider in [Provider::Claude, Provider::Codex, Provider::Gemini] {
        for mode in Mode::ALL {
            let count = cases.iter().filter(|case| case.provider == provider && case.fits(mode)).count();
            assert!(count >= 6, "{provider} {}: {count}", mode.as_str());
        }
    }
}

#[test]
fn confidence_is_scored_by_the_time_the_status_was_right() {
    let case = terminal("claude/S03-bash-approve");
    // Truth: waiting at 2488, running at 2850, an approval at 3803, running at 8228, waiting at 8504, the end at 13242.
    let shown = vec![
        at(2488, State::Running, None, Confidence::High),
        at(5803, State::WaitingApproval, Some(Reason::Tool), Confidence::Medium),
        at(8228, State::Running, None, Confidence::High),
        at(8504, State::Waiting, None, Confidence::High),
        at(13242, State::Exited, None, Confidence::High),
    ];
    let figures = judge(&case, Mode::Pty, Ok(shown)).result.unwrap();
    // Only the approval and the last waiting phase count, each without its first second.
    assert_eq!(figures.score.time, (3425 + 3738, 2425 + 3738));
    assert_eq!(figures.confidence, [(1000 + 3738, 3738), (2425, 2425), (0, 0)]);
    assert_eq!((figures.score.approvals, figures.score.delays.as_slice()), ((1, 1), [2000].as_slice()));
    let off = 3738.0 * 0.02_f64.powi(2) + 1000.0 * 0.98_f64.powi(2) + 2425.0 * 0.15_f64.powi(2);
    assert!((figures.brier().unwrap() - off / 7163.0).abs() < 1e-9);
}

#[test]
fn paths_and_timestamps_of_a_recording_are_moved_to_the_replay() {
    let dir = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| fs::write(dir.path().join(file), text).unwrap();
    write(
        "recording.json",
        r#"{"provider":"claude","scenario":"x","cwd":"/old/p","home":"/old/h","started_at":1795149658760}"#,
    );
    let data = r#"/old/p 2026-11-20T04:40:59.000Z 1795149658761 1111111111111 17951496587612 2026-11-20 -old-p"#;
    let line = serde_json::json!({"at": 1.5, "op": "append", "path": "a/-old-p/b", "data": data});
    write("timeline.jsonl", &format!("{line}\n{}\n", r#"{"at":2,"op":"later","of":"another"}"#));
    let sent = serde_json::json!({"at": 1.7, "path": "/v1/logs", "payload": {"timeUnixNano": "1795149658761000005"}});
    write("otlp.jsonl", &format!("{sent}\n"));
    write("truth.jsonl", "{\"at\":1,\"state\":\"running\"}\n{\"at\":2,\"state\":\"exited\"}\n");
    let case = Case::load(dir.path()).unwrap();
    assert!(case.fits(Mode::Files) && !case.fits(Mode::Hooks) && !case.fits(Mode::Pty) && !case.fits(Mode::All));
    let moved = case.moved(Path::new("/h"), Path::new("/p"), 1_795_149_658_760 + 60_000);
    let data = "/p 2026-11-20T04:41:59.000Z 1795149718761 1111111111111 17951496587612 2026-11-20 -p";
    let append = FolderStep::Append { path: "a/-p/b".to_owned(), data: data.to_owned() };
    let payload = serde_json::json!({"timeUnixNano": "1795149718761000005"});
    let sent = FolderStep::Otlp { path: "/v1/logs".to_owned(), payload };
    assert_eq!(moved.ops, [(1500, append), (1700, sent), (2000, FolderStep::Other)]);
}

#[test]
fn the_recorder_stores_output_exit_code_and_truth() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("claude/mine");
    let truth = format!("'{BENCH}' truth '{}' waiting_approval tool", to.display());
    let output = Command::new(BENCH)
        .args(["record", "--provider", "claude", "--out", to.to_str().unwrap(), "--", "sh", "-c"])
        .arg(format!("{truth}; printf 'h\\303\\251llo'; exit 3"))
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "h\u{e9}llo");
    let case = Case::load(&to).unwrap();
    assert_eq!((case.provider, case.name.as_str()), (Provider::Claude, "claude/mine"));
    let whats: Vec<&FolderStep> = case.ops.iter().map(|(_, what)| what).collect();
    let out = FolderStep::Out { run: 0, data: "h\u{e9}llo".to_owned() };
    assert_eq!(whats, [&FolderStep::Spawn { run: 0 }, &out, &FolderStep::Exit { run: 0, code: Some(3) }]);
    let truth: Vec<_> = case.truth.iter().map(|t| (t.state, t.reason)).collect();
    assert_eq!(truth, [(Some(State::WaitingApproval), Some(Reason::Tool)), (Some(State::Exited), None)]);
    assert!(
        Command::new(BENCH).args(["truth", to.to_str().unwrap(), "asleep"]).output().unwrap().status.code() == Some(2)
    );
}
