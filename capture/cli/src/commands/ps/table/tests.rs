use serde_json::json;

use super::*;

fn session(n: u32, fields: serde_json::Value) -> Session {
    let state = fields.get("state").cloned().unwrap_or(json!("running"));
    let text = |name: &str| fields.get(name).cloned().unwrap_or(serde_json::Value::Null);
    let time = "2026-11-20T10:00:00.000Z";
    serde_json::from_value(json!({
        "id": format!("01KAB{n:0>21}"), "provider": fields.get("provider").cloned().unwrap_or(json!("claude")),
        "provider_session_id": null, "run_id": null, "parent_session_id": fields.get("parent").cloned(),
        "title": text("title"), "cwd": text("cwd"), "git_branch": null, "model": null, "pid": null,
        "started_at": time, "last_event_at": time, "last_user_prompt_at": null, "last_assistant_output_at": null,
        "status": {"state": state, "reason": text("reason"), "since": time, "confidence": fields.get("confidence").cloned().unwrap_or(json!("high")),
                   "activity": text("activity"), "evidence": [], "disagreements": []},
        "pending_approvals": [], "turn": null, "turns": 1,
        "usage": serde_json::to_value(projections::Usage::default()).unwrap(),
        "summary": {"current": text("now"), "recent": null, "last_prompt": null, "checks": text("checks")},
        "transcripts": [], "health": "ok", "last_sequence": 1
    }))
    .unwrap()
}

fn sessions() -> Vec<Session> {
    let parent = session(
        3,
        json!({"provider": "codex", "title": "Rename the crate", "cwd": "/srv/app",
        "reason": "tool", "now": "running cargo test --workspace", "activity": "cargo test --workspace"}),
    );
    vec![
        session(
            1,
            json!({"state": "idle", "title": "日本語のタイトルがここにあります。とても長いので切られます", "cwd": "/srv/tools",
            "now": "done: everything is green"}),
        ),
        session(
            2,
            json!({"state": "waiting_approval", "reason": "tool", "provider": "gemini",
            "title": "Migrate the database to the new schema without losing a row", "cwd": "/srv/db",
            "activity": "psql -f migrate.sql", "now": "waiting for approval to run psql -f migrate.sql"}),
        ),
        session(4, json!({"parent": parent.id, "title": "look for callers", "cwd": "/srv/app", "now": "working"})),
        parent,
    ]
}

fn drawn(width: Option<usize>) -> String {
    let now = moment();
    table(&sessions(), &Needs::default(), now, Paper { width, colour: false })
}

#[test]
fn the_table_is_drawn_for_40_columns() {
    assert_eq!(
        drawn(Some(40)),
        "\
STATE        FOR  SESSION   NOW
▲ approval   3m   00000002  psql -f…
● running    3m   00000003  Rename the…
└ ● running  3m   00000004  look for…
○ idle       3m   00000001  日本語のタ…
"
    );
}

#[test]
fn the_table_is_drawn_for_80_columns() {
    assert_eq!(
        drawn(Some(80)),
        "\
STATE        FOR  AGENT   SESSION   DIRECTORY  NOW
▲ approval   3m   gemini  00000002  db         psql -f migrate.sql · Migrate th…
● running    3m   codex   00000003  app        Rename the crate · running cargo…
└ ● running  3m   claude  00000004  app        look for callers · working
○ idle       3m   claude  00000001  tools      日本語のタイトルがここにあります…
"
    );
}

#[test]
fn the_table_is_drawn_for_120_columns() {
    assert_eq!(
        drawn(Some(120)),
        "\
STATE                    FOR  AGENT   SESSION   DIRECTORY  TITLE                          NOW
▲ waiting_approval tool  3m   gemini  00000002  db         Migrate the database to the…   psql -f migrate.sql
● running tool           3m   codex   00000003  app        Rename the crate               running cargo test --workspace
└ ● running              3m   claude  00000004  app        look for callers               working
○ idle                   3m   claude  00000001  tools      日本語のタイトルがここにあり…  done: everything is green
"
    );
}

#[test]
fn the_table_is_drawn_for_200_columns() {
    assert_eq!(
        drawn(Some(200)),
        "\
STATE                    FOR  AGENT   SESSION   DIRECTORY   TITLE                                                        NOW
▲ waiting_approval tool  3m   gemini  00000002  /srv/db     Migrate the database to the new schema without losing a row  psql -f migrate.sql
● running tool           3m   codex   00000003  /srv/app    Rename the crate                                             running cargo test --workspace
└ ● running              3m   claude  00000004  /srv/app    look for callers                                             working
○ idle                   3m   claude  00000001  /srv/tools  日本語のタイトルがここにあります。とても長いので切られます   done: everything is green
"
    );
}

#[test]
fn the_table_marks_doubtful_stuck_and_unseen_sessions() {
    let asks = session(
        5,
        json!({"provider": "codex", "title": "Push it", "cwd": "/srv/app", "reason": "tool", "confidence": "low",
        "now": "running git push --force"}),
    );
    let stuck =
        session(6, json!({"title": "Fix the build", "cwd": "/srv/app", "reason": "thinking", "now": "thinking"}));
    let done = session(7, json!({"state": "idle", "title": "Write the docs", "cwd": "/srv/docs"}));
    let seen = session(8, json!({"state": "idle", "title": "Old work", "cwd": "/srv/docs"}));
    let item = |session: &Session, need, what: Option<&str>| AttentionItem {
        session_id: session.id,
        provider: session.provider,
        title: None,
        cwd: None,
        need,
        since: moment(),
        risky: false,
        what: what.map(str::to_owned),
        why: None,
        approvals: Vec::new(),
        findings: Vec::new(),
    };
    let needs = Needs::new(vec![
        item(&stuck, Need::Stuck, Some("no sign of life for 12 min")),
        item(&done, Need::Prompt, Some("done: Write the docs")),
    ]);
    let text = table(&[asks, seen, done, stuck], &needs, moment(), Paper { width: Some(80), colour: false });
    assert_eq!(
        text,
        "\
STATE        FOR  AGENT   SESSION   DIRECTORY  NOW
● running    3m   claude  00000006  app        stuck: no sign of life for 12 mi…
◆ done       3m   claude  00000007  docs       Write the docs
● running ?  3m   codex   00000005  app        Push it · may be asking: running…
○ idle       3m   claude  00000008  docs       Old work
"
    );
}

#[test]
fn what_the_checks_of_a_turn_showed_comes_before_what_the_agent_says() {
    let of = |state: &str, reason: &str, now: &str| {
        let fields = json!({"state": state, "reason": reason, "title": "Fix it", "now": now,
            "checks": "tests 297 passed, then 5 edits · commit failed ×7"});
        let session = session(1, fields);
        (doing(&session, &Needs::default()), what(&session, &Needs::default()))
    };
    let checks = "tests 297 passed, then 5 edits · commit failed ×7";
    let (doing, what) = of("waiting", "turn_complete", "done: All tests pass");
    assert_eq!(doing, format!("{checks} · done: All tests pass"));
    assert_eq!(what, format!("Fix it · {checks} · done: All tests pass"));
    assert_eq!(of("idle", "turn_complete", "done: All tests pass").1, format!("Fix it · {checks}"));
    assert_eq!(of("waiting", "question", "asks: which one?").0, "asks: which one?");
}

#[test]
fn a_finished_subagent_is_shown_as_done() {
    let parent = session(5, json!({"title": "Rename the crate", "cwd": "/srv/app", "now": "waiting for it"}));
    let helper = |id: u32, state: &str, reason: &str| {
        let mut helper = session(id, json!({"state": state, "reason": reason, "title": "look", "cwd": "/srv/app"}));
        helper.parent_session_id = Some(parent.id);
        helper
    };
    let done = helper(6, "waiting", "turn_complete");
    let asks = helper(7, "waiting_approval", "tool");
    let text =
        table(&[parent.clone(), done, asks], &Needs::default(), moment(), Paper { width: Some(120), colour: false });
    let states: Vec<&str> = text.lines().skip(1).map(|line| line.split("  ").next().unwrap()).collect();
    assert_eq!(states, ["● running", "└ ○ done", "└ ▲ waiting_approval tool"], "{text}");
}

#[test]
fn piped_output_is_not_truncated() {
    let text = drawn(None);
    assert!(text.contains("Migrate the database to the new schema without losing a row"), "{text}");
    assert!(text.contains("psql -f migrate.sql"), "{text}");
    assert!(!text.contains('…'), "{text}");
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in 40..=300 {
        for line in drawn(Some(width)).lines() {
            let columns = unicode_width(line);
            assert!(columns <= width, "{columns} columns of {width}: {line}");
        }
    }
}

#[test]
fn the_table_uses_no_bright_colours() {
    let now = moment();
    let text = table(&sessions(), &Needs::default(), now, Paper { width: Some(120), colour: true });
    assert!(text.contains("\x1b[38;5;1m"), "{text:?}");
    // The bright colours are 8 to 15.
    for bright in 8..=15 {
        assert!(!text.contains(&format!("38;5;{bright}m")), "{text:?}");
    }
}

/// The width of a text in which only CJK characters are wide.
fn unicode_width(line: &str) -> usize {
    line.chars().map(|c| if ('\u{2e80}'..='\u{ffef}').contains(&c) { 2 } else { 1 }).sum()
}

fn moment() -> Timestamp {
    serde_json::from_value(json!("2026-11-20T10:03:00.000Z")).unwrap()
}
