//! Recordings played in virtual time: the shown status against the truth. Files alone: no hooks,
//! no terminal, so a dialog of Codex or Gemini is not seen here.

use tests::{
    recording::Recording,
    score::{Score, score},
    world::World,
};

/// What a recording must come to at least: agreement in percent, approvals seen, false approvals
/// at most.
struct Floor {
    agree: f64,
    hit: usize,
    false_approvals: usize,
}

fn check(name: &str, floor: &Floor) {
    let recording = Recording::load(name);
    let mut world = World::new(recording.about.started_at);
    world.play(&recording);
    let score = score(&recording, world.shown());
    println!("{}", line(name, &score));
    for (at, state, reason) in world.shown() {
        println!("  {at:8.3} {} {}", state.map_or("none", |s| s.as_str()), reason.as_deref().unwrap_or("-"));
    }
    assert!(score.agree >= floor.agree, "{name}: agreement {:.2} %, at least {} wanted", score.agree, floor.agree);
    assert!(score.hit >= floor.hit, "{name}: {} of {} approvals seen", score.hit, score.windows);
    assert!(score.false_approvals <= floor.false_approvals, "{name}: {} false approvals", score.false_approvals);
}

fn line(name: &str, score: &Score) -> String {
    let Score { agree, windows, hit, false_approvals, reason, flaps, exit_seen } = score;
    let reason = reason.map_or("-".to_owned(), |r| format!("{r:.1}"));
    format!("SCORE {name}: agree {agree:.2} recall {hit}/{windows} false {false_approvals} reason {reason} flaps {flaps} exit {exit_seen}")
}

macro_rules! recordings {
    ($($test:ident $name:literal agree $agree:literal seen $hit:literal;)*) => {
        $(#[test]
        fn $test() {
            check($name, &Floor { agree: $agree, hit: $hit, false_approvals: 0 });
        })*
    };
}

recordings! {
    claude_s01 "claude/S01-hello" agree 0.0 seen 0;
    claude_s03 "claude/S03-bash-approve" agree 0.0 seen 0;
    claude_s05 "claude/S05-long-quiet" agree 0.0 seen 0;
    claude_s07 "claude/S07-retries" agree 0.0 seen 0;
    claude_s09 "claude/S09-interrupt" agree 0.0 seen 0;
    claude_s10 "claude/S10-sigkill" agree 0.0 seen 0;
    claude_s11 "claude/S11-question" agree 0.0 seen 0;
    claude_s12 "claude/S12-subagent" agree 0.0 seen 0;
    claude_s13 "claude/S13-compact" agree 0.0 seen 0;
    claude_s14 "claude/S14-resume-fork" agree 0.0 seen 0;
    claude_s15 "claude/S15-edit-write" agree 0.0 seen 0;
    claude_s17 "claude/S17-parallel" agree 0.0 seen 0;
    claude_s18 "claude/S18-plan" agree 0.0 seen 0;
    claude_s24 "claude/S24-webfetch-mcp-elicitation" agree 0.0 seen 0;
    codex_s01 "codex/S01-hello" agree 0.0 seen 0;
    codex_s03 "codex/S03-approve" agree 0.0 seen 0;
    codex_s07a "codex/S07a-retries-then-ok" agree 0.0 seen 0;
    codex_s08 "codex/S08-auth-401" agree 0.0 seen 0;
    codex_s09 "codex/S09-interrupt" agree 0.0 seen 0;
    codex_s12 "codex/S12-subagent" agree 0.0 seen 0;
    codex_s13 "codex/S13-compact" agree 0.0 seen 0;
    codex_s14 "codex/S14-resume-fork" agree 0.0 seen 0;
    codex_s18 "codex/S18-plan" agree 0.0 seen 0;
    codex_s23 "codex/S23-steer-while-running" agree 0.0 seen 0;
    codex_a04 "codex/A04-daemon-tui-killed" agree 0.0 seen 0;
    gemini_s01 "gemini/S01-hello" agree 0.0 seen 0;
    gemini_s03 "gemini/S03-shell-approve" agree 0.0 seen 0;
    gemini_s05 "gemini/S05-long-quiet-command" agree 0.0 seen 0;
    gemini_s09 "gemini/S09-interrupt-stream" agree 0.0 seen 0;
    gemini_s12 "gemini/S12-subagent" agree 0.0 seen 0;
    gemini_s13 "gemini/S13-compress" agree 0.0 seen 0;
    gemini_s14b "gemini/S14b-resume-latest" agree 0.0 seen 0;
    gemini_s15 "gemini/S15-file-edit" agree 0.0 seen 0;
    gemini_s92 "gemini/S92-resume-legacy-json-with-0.61" agree 0.0 seen 0;
}
