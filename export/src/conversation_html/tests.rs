use events::{PromptOrigin, Provider, SessionId};
use projections::{ItemText, SessionState, StatusRules};

use super::*;
use crate::browser::{canary, document, told, width_within};

const HOSTILE: &[&str] = &[
    "<script>document.title='pwned'</script>",
    "</pre></script><img src=x onerror=\"document.title='pwned'\">",
    "[a](javascript:alert(1)) <a href='javascript:alert(1)'>a</a>",
    "\" onmouseover=\"alert(1)",
    "</title></style><svg onload=alert(1)>",
    "<!-- --> ]]> &lt;script&gt;",
    "a\u{202e}b\u{0}c\u{1b}]52;c\u{7}\u{e0041}\u{2028}",
];

const OPTIONS: HtmlOptions<'_> = HtmlOptions {
    redact: &|text| text.replace("hunter2", "[redacted]"),
    time: &|at| format!("[{}]", at.as_millisecond()),
    subagent: None,
};

fn said(text: &str) -> ItemText {
    ItemText { text: text.into(), text_ref: None }
}

fn written(body: ItemBody) -> String {
    let at = Timestamp::from_millisecond(5);
    item(&ConversationItem { sequence: 12, at, turn_id: None, agent_id: Some("<b>".into()), body }, OPTIONS)
}

fn call(tool: ToolKind, text: &str, input: &str) -> ItemBody {
    ItemBody::ToolCall {
        call_id: text.into(),
        name: text.into(),
        tool,
        title: Some(text.into()),
        input: said(input),
        result: Some(CallResult { outcome: ToolOutcome::Error, exit_code: None, duration_ms: None, text: said(text) }),
        subagents: Vec::new(),
    }
}

/// The names of the elements of a page, and their attributes.
fn tags(page: &str) -> Vec<&str> {
    page.split('<').skip(1).map(|rest| rest.split('>').next().unwrap()).collect()
}

fn session(title: &str) -> Session {
    let at = Timestamp::from_millisecond(1_000);
    let state = SessionState::new(SessionId::from_bits(1), Provider::Claude, None, at, StatusRules::default());
    Session { title: Some(title.into()), cwd: Some(title.into()), model: Some(title.into()), ..state.session }
}

#[test]
fn nothing_a_session_says_is_more_than_text() {
    for text in HOSTILE {
        let prompt = |origin| ItemBody::Prompt { origin, text: said(text), attachments: 1 };
        let edit = serde_json::json!({"file_path": text, "old_string": text, "new_string": "x"}).to_string();
        let bodies = [
            prompt(PromptOrigin::Human),
            ItemBody::Message { model: None, thinking: Some((*text).into()), text: said(text), stop: None },
            call(ToolKind::Execute, text, text),
            call(ToolKind::Edit, text, &edit),
            ItemBody::Question { text: said(text), options: vec![(*text).into()], answer: Some(said(text)) },
            ItemBody::Compaction { trigger: None, text: said(text) },
        ];
        let page: String = bodies.into_iter().map(written).collect();
        for tag in tags(&page) {
            let name = tag.trim_start_matches('/').split(' ').next().unwrap();
            let known =
                ["article", "h2", "a", "time", "pre", "details", "summary", "b", "code", "span"].contains(&name);
            assert!(known && !tag.contains(" on"), "{tag}: {text}");
            assert!(!tag.contains("href") || tag == "a href=\"#e12\"", "{tag}");
        }
        assert!(!page.contains(['\u{202e}', '\0', '\u{1b}', '\u{e0041}']), "{page}");
        let begin = begin(&session(text), OPTIONS);
        let names: Vec<&str> = tags(&begin).iter().map(|tag| tag.split(' ').next().unwrap()).collect();
        assert_eq!(names.iter().filter(|name| ["script", "img", "svg", "a"].contains(name)).count(), 0, "{begin}");
    }
}

#[test]
fn the_page_runs_its_own_script_and_asks_nobody() {
    let page = begin(&session("t"), OPTIONS) + &end();
    let policy = page.split("content=\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
    assert_eq!(page.matches("<script>").count(), 1);
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("src="), "{page}");
    for forbidden in ["innerHTML", "insertAdjacent", "document.write", "eval("] {
        assert!(!SCRIPT.contains(forbidden));
    }
    assert!(!SCRIPT.contains("</") && !STYLE.contains("</"));
}

#[test]
fn calls_are_folded_and_edits_are_differences() {
    let html = written(call(ToolKind::Execute, "ls hunter2", "{}"));
    assert!(html.starts_with("<article id=\"e12\" class=\"call failed\"><h2><a href=\"#e12\">"), "{html}");
    assert!(
        html.contains("<details><summary><b>ls [redacted]</b>") && html.contains("<pre class=\"output\">"),
        "{html}"
    );
    let input = serde_json::json!({"file_path": "/a.rs", "old_string": "one\ntwo\n", "new_string": "one\nhunter2\n"});
    let html = written(call(ToolKind::Edit, "Edit", &input.to_string()));
    assert!(
        html.contains(
            "<span class=\"same\"> one</span>\n<span class=\"old\">-two</span>\n<span class=\"new\">+[redacted]</span>"
        ),
        "{html}"
    );
    assert!(!html.contains("hunter2") && !html.contains("old_string"), "{html}");
    let html = written(call(ToolKind::Edit, "Edit", "*** Begin Patch"));
    assert!(html.contains("<pre class=\"input\">*** Begin Patch"), "{html}");
}

#[test]
fn a_sub_agent_is_folded_and_its_items_have_addresses_of_their_own() {
    let id = SessionId::from_bits(7);
    let at = Timestamp::from_millisecond(5);
    let subagent = Subagent {
        session_id: id,
        agent_type: Some("<script>".into()),
        title: Some("hunter2".into()),
        state: events::State::Idle,
        turns: 2,
        started_at: at,
        last_event_at: at,
    };
    let html = begin_subagent(&subagent, OPTIONS);
    assert!(html.starts_with(&format!("<details class=\"subagent\" id=\"s{id}\"><summary>")), "{html}");
    assert!(html.contains("&lt;script&gt; · [redacted] · idle · 2 turns") && !html.contains("<script"), "{html}");
    let body = ItemBody::Compaction { trigger: None, text: said("short") };
    let one = ConversationItem { sequence: 12, at, turn_id: None, agent_id: None, body };
    let html = item(&one, HtmlOptions { subagent: Some(id), ..OPTIONS });
    assert!(html.starts_with(&format!("<article id=\"s{id}-e12\"")) && html.contains(&format!("href=\"#s{id}-e12\"")));
}

#[test]
#[ignore = "needs chromium"]
fn hostile_texts_make_no_request_and_run_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (address, asked) = canary();
    let at = Timestamp::from_millisecond(5);
    let mut page = begin(&session("</title><script>document.title='pwned'</script>"), OPTIONS);
    let items = HOSTILE.iter().map(|text| (*text).to_owned()).chain([
        format!("<img src=http://{address}/i><link rel=stylesheet href=http://{address}/c>"),
        format!("<meta http-equiv=refresh content=\"0;url=http://{address}/r\"><iframe src=http://{address}/f>"),
        format!("![p](http://{address}/p.png)"),
        // Wider than a telephone.
        "W".repeat(3_000),
    ]);
    for (sequence, text) in (1..).zip(items) {
        let body = call(ToolKind::Execute, &text, &text);
        page += &item(&ConversationItem { sequence, at, turn_id: None, agent_id: None, body }, OPTIONS);
    }
    page += &end();
    let shown = document(dir.path(), &page, "#e2");
    assert!(!shown.contains("<title>pwned"), "{shown}");
    assert_eq!(shown.matches("<details open").count(), 1, "the one that is addressed: {shown}");
    for element in ["<img", "<svg", "<iframe", "<link", "href=\"javascript"] {
        assert!(!shown.contains(element), "{element}: {shown}");
    }
    assert_eq!(told(&address, asked), 0, "somebody asked the canary");
}

#[test]
#[ignore = "needs chromium"]
fn the_page_fits_a_telephone() {
    const WIDTH: u32 = 390;
    let dir = tempfile::tempdir().unwrap();
    let wide = "W".repeat(3_000);
    assert!(width_within(dir.path(), &format!("<!doctype html><pre>{wide}</pre>"), WIDTH) > WIDTH, "it is measured");
    let at = Timestamp::from_millisecond(5);
    let edit = serde_json::json!({"file_path": wide, "old_string": wide, "new_string": "x"}).to_string();
    let bodies = [
        ItemBody::Prompt { origin: PromptOrigin::Human, text: said(&wide), attachments: 2 },
        ItemBody::Message { model: None, thinking: Some(wide.clone()), text: said(&wide), stop: None },
        call(ToolKind::Execute, &wide, &wide),
        call(ToolKind::Edit, &wide, &edit),
        ItemBody::Question { text: said(&wide), options: vec![wide.clone()], answer: Some(said(&wide)) },
        ItemBody::TurnEnd { outcome: TurnOutcome::Interrupted, number: 1, duration_ms: 7 },
    ];
    let items: String = (1..)
        .zip(bodies)
        .map(|(sequence, body)| {
            item(&ConversationItem { sequence, at, turn_id: None, agent_id: Some("a".into()), body }, OPTIONS)
        })
        .collect();
    // Unfolded, as the widest.
    let page = (begin(&session(&wide), OPTIONS) + &items + &end()).replace("<details>", "<details open>");
    let width = width_within(dir.path(), &page, WIDTH);
    assert!(width <= WIDTH, "{width}");
}
