use events::{PromptOrigin, Provider, SessionId, TurnOutcome};
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
    "![a](javascript:alert`1`) [b]( jAvAsCrIpT:alert(1) ) <javascript:alert(1)> [c](data:text/html,x \"t\") [d](//x)",
    "[e]: vbscript:x\n\n[e] [f](java\tscript:x) [g](&#106;avascript:x) [h](file:///etc/passwd) `<script>`",
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
fn hostile_session_text_adds_no_html_elements() {
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
            let known = ["article", "h2", "a", "time", "pre", "details", "summary", "b", "code", "span"];
            let known = known.contains(&name) || ["div", "p", "br"].contains(&name);
            assert!(known && !tag.contains(" on"), "{tag}: {text}");
            assert!(!tag.contains("href") || tag == "a href=\"#e12\"", "{tag}");
        }
        assert!(!page.contains(['\u{202e}', '\0', '\u{1b}', '\u{e0041}']), "{page}");
        let begin = begin(&session(text), OPTIONS);
        let names: Vec<&str> = tags(&begin).iter().map(|tag| tag.split(' ').next().unwrap()).collect();
        assert_eq!(names.iter().filter(|name| ["script", "img", "svg", "a"].contains(name)).count(), 0, "{begin}");
    }
}

/// Compares the HTML of an answer.
#[track_caller]
fn check_answer(markdown: &str, expected: &str) {
    let html = written(ItemBody::Message { model: None, thinking: None, text: said(markdown), stop: None });
    let (_, shown) = html.split_once("<div class=\"md\">").unwrap();
    assert_eq!(shown, format!("{expected}</div>\n</article>\n"), "{markdown}");
}

#[test]
fn markdown_in_answers_is_rendered_as_html() {
    check_answer(
        "# Plan\n\none *two* **three** ~~four~~\nfive",
        "<h3>Plan</h3>\n<p>one <em>two</em> <strong>three</strong> <del>four</del><br>\nfive</p>\n",
    );
    check_answer("- a\n  1. b\n- [x] c", "<ul><li>a<ol><li>b</li>\n</ol>\n</li>\n<li>☑ c</li>\n</ul>\n");
    check_answer("7. g\n8. h", "<ol start=\"7\"><li>g</li>\n<li>h</li>\n</ol>\n");
    check_answer(
        "```rust\nlet a = \"<b>\";\n```",
        "<pre class=\"input\"><code>let a = &quot;&lt;b&gt;&quot;;\n</code></pre>\n",
    );
    check_answer(
        "use `a<b>`\n\n---\n> q",
        "<p>use <code>a&lt;b&gt;</code></p>\n<hr>\n<blockquote><p>q</p>\n</blockquote>\n",
    );
    check_answer(
        "| a | b |\n|---|---|\n| 1 | <i> |\n",
        "<div class=\"table\"><table><tr><th>a</th><th>b</th></tr>\n<tr><td>1</td><td>&lt;i&gt;</td></tr>\n</table></div>\n",
    );
    check_answer(
        "a <b onclick=x>bold</b>\n\n<div>\nblock\n</div>",
        "<p>a &lt;b onclick=x&gt;bold&lt;/b&gt;</p>\n<pre class=\"text\">&lt;div&gt;\nblock\n&lt;/div&gt;</pre>\n",
    );
}

#[test]
fn links_show_their_target_and_only_web_and_mail_links_are_active() {
    let followed = |address: &str, words: &str| format!("<a rel=\"noreferrer\" href=\"{address}\">{words}</a>");
    let behind = |address: &str| format!(" <span class=\"address\">({address})</span>");
    let a = "https://example.org/?a=1&amp;b=2";
    check_answer(
        "[docs](https://example.org/?a=1&b=2 \"title\")",
        &format!("<p>{}{}</p>\n", followed(a, "docs"), behind(a)),
    );
    check_answer("<https://example.org/?a=1&b=2>", &format!("<p>{}</p>\n", followed(a, a)));
    check_answer("<me@example.org>", &format!("<p>{}</p>\n", followed("mailto:me@example.org", "me@example.org")));
    // The text of a link may be misleading.
    check_answer(
        "[https://bank.example](http://evil.example)",
        &format!(
            "<p>{}{}</p>\n",
            followed("http://evil.example", "https://bank.example"),
            behind("http://evil.example")
        ),
    );
    for address in
        ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "//example.org", "src/lib.rs", "vbscript:x"]
    {
        check_answer(&format!("[a]({address})"), &format!("<p>a{}</p>\n", behind(address)));
    }
    // An image is not loaded, and no address contains a secret.
    check_answer("![alt](https://example.org/p.png)", &format!("<p>alt{}</p>\n", behind("https://example.org/p.png")));
    check_answer(
        "[a](https://example.org/hunter2)",
        &format!("<p>a{}</p>\n", behind("https://example.org/[redacted]")),
    );
    check_answer("hun\\_ter hunt\\er2 hunter&#50;", "<p>hun_ter hunt\\er2 [redacted]</p>\n");
}

proptest::proptest! {
    #[test]
    fn any_markdown_renders_to_balanced_allowlisted_html(markdown in "([#>*_`~|\\[\\]()!<\\-+\\\\&;:/a1 \\n\\t]|https:|javascript:|on){0,80}") {
        let html = written(ItemBody::Message { model: None, thinking: None, text: said(&format!("x{markdown}")), stop: None });
        let (_, shown) = html.split_once("<div class=\"md\">").unwrap();
        let mut open = vec!["article", "div"];
        for tag in tags(shown) {
            let name = tag.trim_start_matches('/').split(' ').next().unwrap();
            match tag.strip_prefix('/') {
                Some(closed) => proptest::prop_assert_eq!(open.pop(), Some(closed), "{}", shown),
                None if ["br", "hr"].contains(&name) => {}
                None => open.push(name),
            }
            let attributes = tag.strip_prefix(name).unwrap_or_default();
            let is_ours = attributes.is_empty()
                || attributes.starts_with(" rel=\"noreferrer\" href=\"https:")
                || attributes.starts_with(" start=\"")
                || [" class=\"input\"", " class=\"text\"", " class=\"table\"", " class=\"address\""].contains(&attributes);
            proptest::prop_assert!(is_ours, "{tag}: {shown}");
        }
        proptest::prop_assert!(open.is_empty(), "{shown}");
    }
}

#[test]
fn deeply_nested_or_very_long_markdown_is_still_shown() {
    let deep = |n: usize| format!("{}end", "> ".repeat(n));
    let html = written(ItemBody::Message { model: None, thinking: None, text: said(&deep(5_000)), stop: None });
    assert!(html.matches("<blockquote>").count() <= 24 && html.contains("end"));
    let long = format!("# {}", "a".repeat(300 << 10));
    let html = written(ItemBody::Message { model: None, thinking: None, text: said(&long), stop: None });
    assert!(html.contains("<pre class=\"text\"># aaa"));
}

#[test]
fn the_page_allows_only_its_own_script_and_loads_nothing() {
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
fn calls_are_collapsed_and_edits_are_rendered_as_diffs() {
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
    let input = serde_json::json!({"file_path": "/a.rs", "content": "a\u{1b}[2J\u{202e}b\u{61c}\r\n"});
    let html = written(call(ToolKind::Edit, "Edit", &input.to_string()));
    assert!(html.contains("<span class=\"new\">+a\\u{1b}[2J\\u{202e}b\\u{61c}\\u{d}</span>"), "{html}");
    let html = written(call(ToolKind::Edit, "Edit", "*** Begin Patch"));
    assert!(html.contains("<pre class=\"input\">*** Begin Patch"), "{html}");
}

#[test]
fn a_subagent_is_collapsed_and_its_items_have_prefixed_ids() {
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
        let answer = ItemBody::Message { model: None, thinking: Some(text.clone()), text: said(&text), stop: None };
        for (sequence, body) in [(2 * sequence, call(ToolKind::Execute, &text, &text)), (2 * sequence + 1, answer)] {
            page += &item(&ConversationItem { sequence, at, turn_id: None, agent_id: None, body }, OPTIONS);
        }
    }
    page += &end();
    let shown = document(dir.path(), &page, "#e2");
    assert!(!shown.contains("<title>pwned"), "{shown}");
    assert_eq!(shown.matches("<details open").count(), 1, "the one that is addressed: {shown}");
    for element in ["<img", "<svg", "<iframe", "<link", "href=\"javascript", "href=\"data", "href=\"file"] {
        assert!(!shown.to_lowercase().contains(element), "{element}: {shown}");
    }
    assert_eq!(told(&address, asked), 0, "somebody asked the canary");
}

#[test]
#[ignore = "needs chromium"]
fn the_page_fits_the_width_of_a_phone() {
    const WIDTH: u32 = 390;
    let dir = tempfile::tempdir().unwrap();
    let wide = "W".repeat(3_000);
    assert!(width_within(dir.path(), &format!("<!doctype html><pre>{wide}</pre>"), WIDTH) > WIDTH, "it is measured");
    let at = Timestamp::from_millisecond(5);
    let edit = serde_json::json!({"file_path": wide, "old_string": wide, "new_string": "x"}).to_string();
    let row = "| a | bb | ccc | dddd | eeeee | ffffff | ggggggg | hhhhhhhh | iiiiiiiii | jjjjjjjjjj |\n";
    let table = format!("{row}{}\n{row}", "|---".repeat(10) + "|");
    let markdown = format!(
        "# {wide}\n\n- {wide}\n  > `{wide}`\n\n[{wide}](https://{wide}.org)\n\n```\n{wide}\n```\n\n{table}| {wide} |\n"
    );
    let bodies = [
        ItemBody::Prompt { origin: PromptOrigin::Human, text: said(&wide), attachments: 2 },
        ItemBody::Message { model: None, thinking: Some(wide.clone()), text: said(&wide), stop: None },
        ItemBody::Message { model: None, thinking: None, text: said(&markdown), stop: None },
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
    // Unfolded, so that the page is as wide as possible.
    let page = (begin(&session(&wide), OPTIONS) + &items + &end()).replace("<details>", "<details open>");
    let width = width_within(dir.path(), &page, WIDTH);
    assert!(width <= WIDTH, "{width}");
}
