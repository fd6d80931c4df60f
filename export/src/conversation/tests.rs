use events::{ErrorClass, TextRef};

use super::*;

const FORMAT: ConversationFormat<'_> =
    ConversationFormat { lines: Some(4), thinking: true, time: &|at| format!("[{}]", at.as_millisecond()) };

fn written(body: ItemBody) -> String {
    let at = Timestamp::from_millisecond(5);
    item(&ConversationItem { sequence: 1, at, turn_id: None, agent_id: None, body }, FORMAT)
}

fn text(text: &str) -> ItemText {
    ItemText { text: text.into(), text_ref: None }
}

fn call(output: &str, outcome: ToolOutcome, exit_code: Option<i32>) -> ItemBody {
    ItemBody::ToolCall {
        call_id: "c".into(),
        name: "Bash".into(),
        tool: ToolKind::Execute,
        title: Some("echo `date`".into()),
        input: text("{}"),
        result: Some(CallResult { outcome, exit_code, duration_ms: Some(65_000), text: text(output) }),
        subagents: Vec::new(),
    }
}

#[test]
fn prompts_are_quoted_and_answers_stay_as_they_are() {
    let prompt = ItemBody::Prompt { origin: PromptOrigin::Human, text: text("a\n\n# b\n"), attachments: 2 };
    assert_eq!(written(prompt), "## Prompt · [5]\n\n> a\n> \n> # b\n>\n> (2 attachments)\n\n");
    let message =
        ItemBody::Message { model: None, thinking: Some("hm".into()), text: text("# Done\n\n- a\n"), stop: None };
    assert_eq!(written(message), "**Thinking**\n\n> hm\n\n# Done\n\n- a\n\n");
}

#[test]
fn a_tool_call_shows_its_outcome_and_fences_its_output_safely() {
    assert_eq!(
        written(call("a\n```\nb", ToolOutcome::Error, Some(2))),
        "**Bash** `` echo `date` `` · exit code 2 · 1 min 5 s\n\n````text\na\n```\nb\n````\n\n"
    );
    let long = written(call("1\n2\n3\n4\n5\n6\n7", ToolOutcome::Ok, None));
    assert!(long.contains("```text\n1\n2\n… 3 lines …\n6\n7\n```\n"), "{long}");
    let five = written(call("1\n2\n3\n4\n5", ToolOutcome::Ok, Some(0)));
    assert!(five.contains("```text\n1\n2\n3\n4\n5\n```\n"), "one line more is shown rather than counted: {five}");
    let open = ItemBody::ToolCall {
        call_id: "c".into(),
        name: String::new(),
        tool: ToolKind::Edit,
        title: None,
        input: text("{\"path\":1}"),
        result: None,
        subagents: Vec::new(),
    };
    assert_eq!(written(open), "**(a call that capture did not see)** · no result\n\n```json\n{\"path\":1}\n```\n\n");
}

#[test]
fn an_edit_is_written_as_a_diff_and_unparsed_input_as_json() {
    let edit = |input: &str| {
        written(ItemBody::ToolCall {
            call_id: "c".into(),
            name: "Edit".into(),
            tool: ToolKind::Edit,
            title: Some("a.py".into()),
            input: text(input),
            result: None,
            subagents: Vec::new(),
        })
    };
    let shown = edit(r#"{"file_path":"a.py","old_string":"```\nx","new_string":"```\ny","replace_all":false}"#);
    assert_eq!(shown, "**Edit** `a.py` · no result\n\n````diff\n ```\n-x\n+y\n````\n\n");
    let whole = edit(r#"{"file_path":"a.py","content":"1\n2\n3\n4\n5\n6\n7\n"}"#);
    assert!(whole.contains("```diff\n+1\n+2\n… 3 lines …\n+6\n+7\n```\n"), "{whole}");
    let unseen = edit(r#"{"file_path":"a.py","old_string":"","new_string":"\u001b[2J\r\u202eb\n"}"#);
    assert!(unseen.contains("```diff\n+\\u{1b}[2J\\u{d}\n+\\u{202e}b\n```\n"), "{unseen}");
    assert!(edit(r#"{"file_path":"a.py"}"#).contains("```json\n{\"file_path\":\"a.py\"}\n```\n"));
}

#[test]
fn a_shortened_text_is_marked_as_incomplete() {
    let part = TextRef { hash: "00".into(), length: 9_000, stored: false };
    let body = ItemBody::Error {
        class: ErrorClass::Quota,
        code: Some("429".into()),
        text: ItemText { text: "no … more".into(), text_ref: Some(part) },
    };
    assert_eq!(written(body), "**Error** (quota 429)\n\n> no … more\n\n(the middle of 9000 bytes is left out)\n\n");
}

#[test]
fn approvals_and_turn_ends_are_written_as_one_line() {
    let approval = |state, by| ItemBody::Approval {
        approval_id: events::EventId::from_bits(1).into(),
        call_id: None,
        subject: Some("rm -r build".into()),
        state,
        by,
        closed_at: None,
    };
    for (state, by, words) in [
        (ApprovalState::Pending, None, "waits for an answer"),
        (ApprovalState::Denied, Some(DecidedBy::Person), "denied by the user"),
        (ApprovalState::Allowed, Some(DecidedBy::Policy), "allowed by a rule"),
        (ApprovalState::Allowed, Some(DecidedBy::Grant), "allowed by an earlier decision of the user"),
        (ApprovalState::AnsweredElsewhere, None, "answered in the agent"),
    ] {
        assert_eq!(written(approval(state, by)), format!("**Approval** `rm -r build` · {words}\n\n"));
    }
    let end = |outcome| ItemBody::TurnEnd { outcome, number: 3, duration_ms: 12_345 };
    assert_eq!(written(end(TurnOutcome::Completed)), "*Turn 3 took 12 s*\n\n");
    assert_eq!(written(end(TurnOutcome::Interrupted)), "*Turn 3 was interrupted after 12 s*\n\n");
    assert_eq!(
        written(end(TurnOutcome::TakenBack)),
        "*The user took turn 3 back: the conversation continues without it*\n\n"
    );
}

#[test]
fn durations_are_written_with_at_most_two_units() {
    for (ms, words) in [(400, "0.4 s"), (59_999, "59 s"), (185_000, "3 min 5 s"), (7_440_000, "2 h 4 min")] {
        assert_eq!(duration(ms), words);
    }
}

#[test]
fn colour_codes_are_removed_and_other_escape_sequences_kept() {
    let coloured = "\u{1b}[1;32m   Compiling\u{1b}[0m a \u{1b}[38:5:9mred\u{1b}[m \u{1b}[2J \u{1b}[31";
    assert_eq!(without_colours(coloured), "   Compiling a red \u{1b}[2J \u{1b}[31");
    assert_eq!(without_colours("plain \u{1b}]0;t\u{7}"), "plain \u{1b}]0;t\u{7}");
    assert!(written(call(coloured, ToolOutcome::Ok, None)).contains("   Compiling a red"));
}

#[test]
fn a_subagent_is_written_as_one_heading_line() {
    let at = Timestamp::from_millisecond(5);
    let subagent = Subagent {
        session_id: events::SessionId::from_bits(1),
        agent_type: Some("general-purpose".into()),
        title: Some("Check\nthe notes".into()),
        state: events::State::Idle,
        turns: 1,
        started_at: at,
        last_event_at: at,
    };
    let id = subagent.session_id;
    assert_eq!(
        subagent_heading(&subagent),
        format!("**Sub-agent** general-purpose · Check the notes · idle · 1 turn · session {id}\n\n")
    );
    assert_eq!(written(ItemBody::Subagent(subagent)), "");
}

proptest::proptest! {
    #[test]
    fn text_without_colour_codes_stays_as_it_is(text in "(?s)[^\u{1b}]{0,40}") {
        assert_eq!(without_colours(&text), text);
        assert_eq!(without_colours(&format!("\u{1b}[1m{text}\u{1b}[0m")), text);
    }
}
