use events::{
    AssistantMessage, Confidence, Event, EventId, Origin, Payload, Provider, SessionId, Source, State, ToolCall,
    ToolKind, ToolResult,
};
use projections::{SessionState, StatusRules};

use super::*;

fn session(id: u128, title: &str, cwd: &str) -> Session {
    let state = SessionState::new(SessionId::from_bits(id), Provider::Claude, None, at(0), StatusRules::default());
    Session { title: Some(title.into()), began_in: Some(cwd.into()), cwd: Some(cwd.into()), ..state.session }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millisecond(seconds * 1000)
}

fn turn(number: u32, prompt: &str, text: &str, from: i64, to: i64) -> Turn {
    Turn {
        id: EventId::from_bits(number.into()).into(),
        number,
        trigger: events::TurnTrigger::Prompt,
        prompt: Some(prompt.into()),
        text: Some(text.into()),
        messages: 1,
        tool_calls: 2,
        tool_errors: 1,
        failures: BTreeMap::new(),
        test_fix_loops: None,
        work: projections::TurnWork::default(),
        receipt: events::Receipt::default(),
        approvals: 0,
        steering: 0,
        outcome: Some(TurnOutcome::Completed),
        started_at: at(from),
        completed_at: Some(at(to)),
        usage: projections::Usage::default(),
    }
}

fn event(sequence: u64, payload: Payload, text: Option<&str>) -> Event {
    Event {
        position: sequence,
        id: EventId::from_bits(sequence.into()),
        session_id: SessionId::from_bits(1),
        sequence,
        provider: Provider::Claude,
        provider_session_id: "p".into(),
        source: Source::Transcript,
        created_at: at(0),
        observed_at: at(0),
        turn_id: None,
        parent_id: None,
        agent_id: None,
        confidence: Confidence::High,
        severity: None,
        text: text.map(str::to_owned),
        text_ref: None,
        payload,
        origin: Origin::Derived,
        derived: false,
        history: false,
    }
}

const MARKDOWN: ReportFormat<'_> =
    ReportFormat { markup: Markup::Markdown, path: &|path| path.to_owned(), time: &|at| at.to_string() };

#[test]
fn a_standup_counts_an_open_turn_and_shows_its_prompt() {
    let open = OpenTurn { id: EventId::from_bits(7).into(), prompt: Some("clean up".into()), started_at: at(100) };
    let mut one = Session { turn: Some(open.clone()), ..session(1, "Clean up", "/p") };
    one.status.state = State::Running;
    let work = [SessionWork { session: one.clone(), turns: Vec::new(), findings: Vec::new() }];
    let text = standup(&work, at(160), at(200), MARKDOWN);
    assert!(text.starts_with("1 project, 1 session, 1 turn\n"), "{text}");
    assert!(text.contains("- **Clean up** (claude, 1 turn, 40 s)\n  - asked: clean up\n"), "{text}");
    let listed = Turn { id: open.id, completed_at: None, ..turn(1, "clean up", "", 100, 0) };
    let work = SessionWork { session: one.clone(), turns: vec![listed], findings: Vec::new() };
    assert_eq!((work.count(), work.busy_ms(at(160), at(200))), (1, 40_000));
    // The activity of a session that ended, or may have ended, is unknown after its last event.
    one.status.state = State::Unknown;
    one.last_event_at = at(170);
    let lost = SessionWork { session: one, turns: Vec::new(), findings: Vec::new() };
    assert_eq!(lost.busy_ms(at(160), at(200)), 10_000);
}

#[test]
fn a_text_is_escaped_in_markdown_only() {
    let cases = [
        ("rm -rf dist", "rm -rf dist"),
        ("- not a list", "\\- not a list"),
        ("# not a heading, see #12", "\\# not a heading, see \\#12"),
        ("a*b `c` _d_ e_f", "a\\*b \\`c\\` \\_d_ e_f"),
        (r"grep '\[x\]' C:\new", r"grep '\\\[x\\\]' C:\\new"),
    ];
    let terminal = ReportFormat { markup: Markup::Terminal, ..MARKDOWN };
    for (text, markdown) in cases {
        assert_eq!((MARKDOWN.plain(text, 80), terminal.plain(text, 80)), (markdown.to_owned(), text.to_owned()));
    }
    let work = [SessionWork { session: session(1, "a*b", "/p"), turns: vec![], findings: vec![] }];
    assert!(standup(&work, at(0), at(1), terminal).contains("- a*b (claude"));
}

#[test]
fn a_standup_groups_by_project_and_counts() {
    let work = [
        SessionWork {
            session: session(1, "Fix the login bug", "/home/dev/app"),
            turns: vec![
                turn(1, "fix the login", "Done: see *auth.rs*", 0, 60),
                turn(2, "and test it", "12 passed", 100, 160),
            ],
            findings: Vec::new(),
        },
        SessionWork { session: session(2, "Write docs", "/home/dev/site"), turns: vec![], findings: Vec::new() },
    ];
    let text =
        standup(&work, at(30), at(200), ReportFormat { path: &|path| path.replace("/home/dev", "~"), ..MARKDOWN });
    assert!(text.starts_with("2 projects, 2 sessions, 2 turns\n"), "{text}");
    assert!(
        text.contains("## ~/app\n\n- **Fix the login bug** (claude, 2 turns, 4 calls (2 failed), 1 min)\n"),
        "{text}"
    );
    assert!(text.contains("  - asked: and test it\n  - answered: 12 passed\n"), "{text}");
    assert!(text.contains("## ~/site\n\n- **Write docs** (claude, 0 turns, 0 s)"), "{text}");
    assert_eq!(standup(&[], at(0), at(1), MARKDOWN), "Nothing happened in that time.\n");
}

#[test]
fn a_handoff_note_contains_the_full_last_answer() {
    let answer: String = (0..2_000).map(|n| format!("line {n}\n")).collect();
    let mut work = WorkLog::default();
    work.apply(&event(1, AssistantMessage::default().into(), Some(&answer)));
    work.complete(|_| Ok::<_, ()>(None)).unwrap();
    let note = Handoff::new(session(1, "Make it work", "/p"), Vec::new(), work, Vec::new()).text(MARKDOWN);
    assert!(note.ends_with("> line 1998\n> line 1999\n") && note.contains("\n> line 1000\n"), "{note}");
}

#[test]
fn a_handoff_note_lists_the_work_done_and_failed_commands() {
    let call = |id: &str, tool, title: &str| {
        ToolCall { call_id: id.into(), name: "T".into(), tool, title: Some(title.into()), ..ToolCall::default() }.into()
    };
    let result = |id: &str, outcome, exit_code| {
        ToolResult { call_id: id.into(), outcome, exit_code, ..ToolResult::default() }.into()
    };
    let events = [
        event(1, call("a", ToolKind::Edit, "src/a.rs"), None),
        event(2, call("b", ToolKind::Edit, "src/a.rs"), None),
        event(3, call("c", ToolKind::Execute, "cargo test"), None),
        event(4, result("c", ToolOutcome::Error, Some(101)), None),
        event(5, result("a", ToolOutcome::Ok, None), None),
        event(6, result("b", ToolOutcome::Ok, None), None),
        event(7, AssistantMessage::default().into(), Some("Two tests fail.\n# not a heading of ours")),
    ];
    let mut work = WorkLog::default();
    events.iter().for_each(|event| work.apply(event));
    work.complete(|_| Ok::<_, ()>(None)).unwrap();
    let turns = vec![turn(1, "make it <b>work</b>", "tried", 0, 1)];
    let note = Handoff::new(session(1, "Make it work", "/p"), turns, work, Vec::new());
    let text = note.text(MARKDOWN);
    for wanted in [
        "# Make it work\n",
        "- failed: `cargo test` (exit code 101)\n",
        "1. make it \\<b\\>work\\</b\\>\n   - tried\n",
        "- `src/a.rs` (2×)\n",
        "- `cargo test`: error\n",
        "> Two tests fail.\n> # not a heading of ours\n",
    ] {
        assert!(text.contains(wanted), "no {wanted:?} in\n{text}");
    }
}
