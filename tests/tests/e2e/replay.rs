//! Recordings played in virtual time: the shown status compared with the truth. Only files are played, without hooks
//! and terminal, so dialogs of Codex and Gemini are not detected here.

use tests::{
    recording::Recording,
    score::{Score, score},
    transcript::{answer, prompt, session, uuid},
    world::World,
};

/// The minimum a recording must reach: agreement in percent, approvals detected, and the maximum of false approvals.
struct Floor {
    agree: f64,
    hit: usize,
    false_approvals: usize,
}

fn check(name: &str, floor: &Floor) {
    check_with(name, floor, true);
}

fn check_with(name: &str, floor: &Floor, hints: bool) {
    let recording = Recording::load(name);
    let mut world = World::new(recording.about.started_at);
    world.hints = hints;
    world.play(&recording);
    let score = score(&recording, world.shown());
    println!("{}", line(name, &score));
    for (at, state, reason) in world.shown() {
        println!("  {at:8.3} {} {}", state.map_or("none", |s| s.as_str()), reason.as_deref().unwrap_or("-"));
    }
    assert!(score.agree >= floor.agree, "{name}: agreement {:.2} %, at least {} wanted", score.agree, floor.agree);
    assert!(score.hit >= floor.hit, "{name}: {} of {} approvals seen", score.hit, score.windows);
    assert!(score.exit_seen, "{name}: its end was not seen");
    assert!(score.false_approvals <= floor.false_approvals, "{name}: {} false approvals", score.false_approvals);
}

fn line(name: &str, score: &Score) -> String {
    let Score { agree, windows, hit, false_approvals, reason, flaps, exit_seen } = score;
    let reason = reason.map_or("-".to_owned(), |r| format!("{r:.1}"));
    format!(
        "SCORE {name}: agree {agree:.2} recall {hit}/{windows} false {false_approvals} reason {reason} flaps {flaps} exit {exit_seen}"
    )
}

/// Without inotify: changing files are polled twice a second.
#[test]
fn polled_claude_s03() {
    check_with("claude/S03-bash-approve", &Floor { agree: 98.0, hit: 1, false_approvals: 0 }, false);
}

#[test]
fn polled_claude_s12() {
    check_with("claude/S12-subagent", &Floor { agree: 96.0, hit: 1, false_approvals: 0 }, false);
}

#[test]
fn polled_codex_s13() {
    check_with("codex/S13-compact", &Floor { agree: 96.5, hit: 0, false_approvals: 0 }, false);
}

#[test]
fn polled_gemini_s13() {
    check_with("gemini/S13-compress", &Floor { agree: 99.0, hit: 0, false_approvals: 0 }, false);
}

macro_rules! recordings {
    ($($test:ident $name:literal agree $agree:literal seen $hit:literal;)*) => {
        $(#[test]
        fn $test() {
            check($name, &Floor { agree: $agree, hit: $hit, false_approvals: 0 });
        })*

        const NAMES: &[&str] = &[$($name),*];
    };
}

#[test]
fn each_agent_whose_files_are_read_has_a_recording_here() {
    super::providers::assert_rows_of_read_agents(NAMES);
}

recordings! {
    claude_s01 "claude/S01-hello" agree 98.0 seen 0;
    claude_s03 "claude/S03-bash-approve" agree 98.0 seen 1;
    claude_s05 "claude/S05-long-quiet" agree 98.0 seen 1;
    claude_s07 "claude/S07-retries" agree 98.0 seen 0;
    claude_s09 "claude/S09-interrupt" agree 98.0 seen 0;
    claude_s10 "claude/S10-sigkill" agree 98.0 seen 0;
    claude_s11 "claude/S11-question" agree 98.0 seen 0;
    claude_s12 "claude/S12-subagent" agree 98.0 seen 1;
    claude_s13 "claude/S13-compact" agree 98.0 seen 0;
    claude_s14 "claude/S14-resume-fork" agree 97.5 seen 0;
    claude_s15 "claude/S15-edit-write" agree 98.0 seen 2;
    claude_s17 "claude/S17-parallel" agree 98.0 seen 2;
    claude_s18 "claude/S18-plan" agree 98.0 seen 1;
    claude_s24 "claude/S24-webfetch-mcp-elicitation" agree 98.0 seen 3;
    codex_s01 "codex/S01-hello" agree 99.0 seen 0;
    codex_s03 "codex/S03-approve" agree 51.5 seen 0;
    codex_s07a "codex/S07a-retries-then-ok" agree 99.0 seen 0;
    codex_s08 "codex/S08-auth-401" agree 99.0 seen 0;
    codex_s09 "codex/S09-interrupt" agree 98.6 seen 0;
    codex_s12 "codex/S12-subagent" agree 89.7 seen 0;
    codex_s13 "codex/S13-compact" agree 99.0 seen 0;
    codex_s14 "codex/S14-resume-fork" agree 94.6 seen 0;
    codex_s18 "codex/S18-plan" agree 58.0 seen 0;
    codex_s23 "codex/S23-steer-while-running" agree 99.0 seen 0;
    codex_a04 "codex/A04-daemon-tui-killed" agree 99.0 seen 0;
    gemini_s01 "gemini/S01-hello" agree 99.0 seen 0;
    gemini_s03 "gemini/S03-shell-approve" agree 52.9 seen 0;
    gemini_s05 "gemini/S05-long-quiet-command" agree 92.7 seen 0;
    gemini_s09 "gemini/S09-interrupt-stream" agree 99.0 seen 0;
    gemini_s12 "gemini/S12-subagent" agree 70.7 seen 0;
    gemini_s13 "gemini/S13-compress" agree 99.0 seen 0;
    gemini_s14b "gemini/S14b-resume-latest" agree 99.0 seen 0;
    gemini_s15 "gemini/S15-file-edit" agree 33.3 seen 0;
    gemini_s92 "gemini/S92-resume-legacy-json-with-0.61" agree 99.0 seen 0;
    pi_s01 "pi/S01-hello" agree 97.0 seen 0;
    pi_s02 "pi/S02-tools-and-tree" agree 99.0 seen 0;
    pi_s05 "pi/S05-fork" agree 91.5 seen 0;
    pi_o02 "pi/O02-omp-tools" agree 93.5 seen 0;
    qwen_s03 "qwen/S03-shell-approve" agree 50.0 seen 0;
    qwen_s09 "qwen/S09-interrupt-and-error" agree 99.0 seen 0;
    opencode_s01 "opencode/S01-hello" agree 99.0 seen 0;
    opencode_s03 "opencode/S03-shell-approve" agree 75.0 seen 0;
    opencode_s05 "opencode/S05-esc-denies" agree 83.0 seen 0;
    opencode_s09 "opencode/S09-interrupt-and-error" agree 99.0 seen 0;
    opencode_s10 "opencode/S10-kill" agree 79.0 seen 0;
    opencode_s11 "opencode/S11-question" agree 98.0 seen 0;
    opencode_s12 "opencode/S12-subagent" agree 99.0 seen 0;
    opencode_s12b "opencode/S12b-subagent-permission" agree 79.0 seen 0;
    opencode_s15 "opencode/S15-edit" agree 67.0 seen 0;
}

/// `/branch` and `/clear` move a process to another session, as its registry file shows. The previous session stays
/// without a process, even if the process keeps that transcript open.
#[test]
fn a_session_that_its_process_left_stays_exited() {
    let mut world = World::new(1_795_149_430_665);
    let (left, next, pid, start) = (session(1), session(2), 41_000, 500_000);
    let registry = world.home().join(format!(".claude/sessions/{pid}.json"));
    let path = world.home().join(format!(".claude/projects/-proj/{left}.jsonl"));
    let entry = |session: &str, status: &str, at: i64| {
        format!(
            "{{\"pid\":{pid},\"sessionId\":\"{session}\",\"cwd\":\"/\",\"startedAt\":1795149430665,\"procStart\":\"{start}\",\"version\":\"2.1.328\",\"status\":\"{status}\",\"updatedAt\":{at},\"statusUpdatedAt\":{at}}}"
        )
    };
    let wall = world.wall().as_millisecond();
    world.spawn(events::Provider::Claude, pid, start);
    world.write(&registry, &entry(&left, "idle", wall + 1_000));
    world.append(&path, &(prompt(&left, &uuid(1, 1), "/", "go") + &answer(&left, &uuid(1, 2), "/", "done")), Some(pid));
    world.run_to(3_000);
    world.write(&registry, &entry(&next, "idle", wall + 4_000));
    world.run_to(4_000);
    world.append(&path, &answer(&left, &uuid(1, 3), "/", "last words"), Some(pid));
    world.run_to(12_000);
    let (_dir, kept) = world.end();
    let state =
        |id: &str| kept.iter().find(|k| &*k.known.provider_session_id == id).unwrap().state.session.status.state;
    assert_eq!((state(&left), state(&next)), (events::State::Exited, events::State::Waiting));
}
