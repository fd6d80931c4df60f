use events::{Provider, SessionId};
use projections::{ItemText, SessionState, StatusRules};

use super::*;

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
