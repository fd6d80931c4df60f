//! Each kind of line and its events.

use super::*;

#[test]
fn user_prompts_are_decoded_with_text_and_attachments() {
    check(
        r#"@user {"message":{"role":"user","content":"Say hello"},"origin":{"kind":"human"}}"#,
        &["user.prompt human \"Say hello\""],
    );
    // Older lines do not name the author.
    check(r#"@user {"message":{"role":"user","content":"Say hello"}}"#, &["user.prompt human \"Say hello\""]);
    check(
        r#"@user {"message":{"role":"user","content":[{"type":"text","text":"look"},{"type":"text","text":"here"}]}}"#,
        &["user.prompt human \"look\\nhere\""],
    );
    check(
        r#"@user {"message":{"role":"user","content":[{"type":"text","text":"look"},{"type":"image","source":{"data":"…"}}]}}"#,
        &["user.prompt human+file \"look\""],
    );
    check(
        r#"@user {"message":{"role":"user","content":[{"type":"image","source":{}}]}}"#,
        &["user.prompt human+file \"(attachment)\""],
    );
}

#[test]
fn a_tool_call_may_ask_depending_on_its_tool_and_permission_mode() {
    let asked = |tool: &str, more: &str| {
        let mode = format!(r#"@user {{{more}"message":{{"role":"user","content":"go"}}}}"#);
        let call = r#"{"type":"tool_use","id":"t","name":"TOOL","input":{}}"#.replace("TOOL", tool);
        let call = format!(r#"@assistant {{{more}"message":{{"id":"m","role":"assistant","content":[{call}]}}}}"#);
        let out = decode(&transcript(OWN), whole_lines(&format!("{mode}\n{call}")).as_bytes());
        let mut calls = out.events.iter().filter_map(|event| match &event.payload {
            Payload::ToolCall(call) => Some(call.may_ask),
            _ => None,
        });
        calls.next().unwrap()
    };
    for (tool, may_ask) in [("Bash", true), ("Write", true), ("WebFetch", true), ("mcp__a__b", true), ("Skill", true)]
        .into_iter()
        .chain([("Read", false), ("Grep", false), ("Task", false), ("AskUserQuestion", false)])
    {
        assert_eq!(asked(tool, ""), may_ask, "{tool}");
    }
    for (mode, bash, write) in [
        ("default", true, true),
        ("acceptEdits", true, false),
        ("bypassPermissions", false, false),
        ("dontAsk", false, false),
    ] {
        let mode = format!(r#""permissionMode":"{mode}","#);
        assert_eq!((asked("Bash", &mode), asked("Write", &mode)), (bash, write), "{mode}");
    }
    assert!(!asked("Bash", r#""entrypoint":"sdk-cli","#), "a program runs it: there is no dialog");
}

#[test]
fn machine_written_user_lines_are_not_human_prompts() {
    let said = |extra: &str, text: &str| format!(r#"@user {{"message":{{"role":"user","content":"{text}"}}{extra}}}"#);
    for machine in [
        said(r#","isMeta":true"#, "whatever"),
        said(r#","isMeta":true"#, "<local-command-caveat>The command below</local-command-caveat>"),
        said(r#","isCompactSummary":true,"isVisibleInTranscriptOnly":true"#, "This session is being continued"),
        said("", "<local-command-stdout>Compacted</local-command-stdout>"),
        said("", "<local-command-stderr>no</local-command-stderr>"),
        said("", "<bash-stdout>a.txt</bash-stdout><bash-stderr></bash-stderr>"),
        said("", "<system-reminder>\\nThe user named this session</system-reminder>"),
        said(r#","origin":{"kind":"task"}"#, "do it"),
    ] {
        check(&machine, &[]);
    }
    // A person may type the same text.
    check(
        &said(r#","origin":{"kind":"human"}"#, "<system-reminder> what is that?"),
        &["user.prompt human \"<system-reminder> what is that?\""],
    );
    check(
        &said("", "<task-notification>\\n<task-id>a1</task-id>\\n<summary>Agent done</summary></task-notification>"),
        &["user.prompt wakeup \"Agent done\""],
    );
    check(&said("", "<task-notification>\\n<task-id>a1</task-id>"), &["user.prompt wakeup \"a1\""]);
    check(
        &said("", "<teammate-message teammate_id=\\\"lead\\\">\\nLook at a < b\\n</teammate-message>"),
        &["user.prompt agent \"Look at a < b\""],
    );
    check(&said("", "<bash-input>ls -l</bash-input>"), &["user.prompt command \"!ls -l\""]);
    check(
        &said("", "<command-name>/clear</command-name>\\n <command-message>clear</command-message>"),
        &["annotation command: /clear"],
    );
    check(
        &said("", "<command-message>x</command-message>\\n<command-name>/x</command-name>"),
        &["annotation command: /x"],
    );
}

/// A user line with the uuid `uuid` that follows the line `parent`.
fn follows(uuid: &str, parent: &str, text: &str, extra: &str) -> String {
    format!(
        r#"{{"parentUuid":"{parent}","isSidechain":false,"type":"user","message":{{"role":"user","content":"{text}"}}{extra},"uuid":"{uuid}","timestamp":"2026-11-20T04:39:01.462Z","cwd":"/p","sessionId":"{OWN}","version":"2.1.328","gitBranch":"main"}}"#
    )
}

#[test]
fn a_slash_command_is_a_prompt_if_it_passes_text_to_the_model() {
    let command = |name: &str, arguments: &str| {
        let text = format!(
            "<command-message>x</command-message>\\n<command-name>{name}</command-name>\\n<command-args>{arguments}</command-args>"
        );
        follows("c", "0", &text, "")
    };
    let expansion = |parent: &str| follows("e", parent, "Review the pull request.", r#","isMeta":true"#);
    let output = follows("o", "c", "<local-command-stdout>Goal set</local-command-stdout>", "");
    check(
        &[command("/review", "PR 12 about the walrus"), expansion("c")].join("\n"),
        &["annotation command: /review PR 12 about the walrus", "user.prompt human \"/review PR 12 about the walrus\""],
    );
    check(
        &[command("/init", ""), expansion("c")].join("\n"),
        &["annotation command: /init", "user.prompt human \"/init\""],
    );
    // Its output may be between the two.
    check(
        &[command("/goal", "free the walrus"), output.clone(), expansion("o")].join("\n"),
        &["annotation command: /goal free the walrus", "user.prompt human \"/goal free the walrus\""],
    );
    // A command that Claude Code runs itself is not a prompt, nor is a text for the model that follows another line.
    check(&[command("/model", "opus"), output].join("\n"), &["annotation command: /model opus"]);
    check(&[command("/model", "opus"), expansion("other")].join("\n"), &["annotation command: /model opus"]);
    let caveat = follows("k", "c", "<local-command-caveat>below</local-command-caveat>", "");
    check(&[command("/model", "opus"), caveat].join("\n"), &["annotation command: /model opus"]);
    // A command is one prompt, however many texts it passes to the model.
    check(
        &[command("/review", "x"), expansion("c"), expansion("c")].join("\n"),
        &["annotation command: /review x", "user.prompt human \"/review x\""],
    );
}

#[test]
fn system_reminders_are_removed_from_prompts() {
    let reminder = r"<system-reminder>\nPlan mode is off\n</system-reminder>";
    let blocks = |texts: &[&str]| {
        let blocks: Vec<String> = texts.iter().map(|text| format!(r#"{{"type":"text","text":"{text}"}}"#)).collect();
        format!(r#"@user {{"message":{{"role":"user","content":[{}]}}}}"#, blocks.join(","))
    };
    let feed = "feed the walrus";
    for line in [
        blocks(&[reminder, feed]),
        blocks(&[feed, reminder]),
        blocks(&[reminder, feed, reminder, reminder]),
        blocks(&[&format!("{reminder}{feed}")]),
        blocks(&[&format!("{reminder}\\n{reminder}\\n{feed}\\n{reminder}")]),
        blocks(&[&format!("<local-command-caveat>x</local-command-caveat>{feed}")]),
    ] {
        check(&line, &["user.prompt human \"feed the walrus\""]);
    }
    check(&blocks(&[reminder]), &[]);
    check(&blocks(&[reminder, reminder]), &[]);
    // A text by a person about the tag is kept.
    let about = "why is <system-reminder>x</system-reminder> there?";
    check(&blocks(&[about]), &[&format!("user.prompt human \"{about}\"")]);
}

#[test]
fn a_summary_sets_the_title_only_of_the_session_with_its_leaf() {
    let summary = |leaf: &str| format!(r#"{{"type":"summary","summary":"Boat Painting","leafUuid":"{leaf}"}}"#);
    let prompt = follows("a", "0", "count the gulls", "");
    let title = "annotation title: Boat Painting";
    let said = "user.prompt human \"count the gulls\"";
    // The summary of another file.
    check(&[summary("z"), prompt.clone()].join("\n"), &[said]);
    check(&summary("z"), &[]);
    // The summary of this file, in either order.
    check(&[summary("a"), prompt.clone()].join("\n"), &[title, said]);
    check(&[prompt, summary("a")].join("\n"), &[title, said]);
}

#[test]
fn each_content_block_of_a_message_is_decoded() {
    let usage = r#""usage":{"input_tokens":10,"cache_creation_input_tokens":120,"cache_read_input_tokens":5000,"output_tokens":42}"#;
    let block = |block: &str| {
        format!(
            r#"@assistant {{"message":{{"id":"msg_1","role":"assistant","model":"claude-opus-5-5","content":[{block}],"stop_reason":"tool_use",{usage}}},"apiBlockIndex":0}}"#
        )
    };
    let script = [
        block(r#"{"type":"thinking","thinking":"I should look","signature":"…"}"#),
        block(r#"{"type":"text","text":"I look."}"#),
        block(r#"{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"ls","description":"List"}}"#),
        block(r#"{"type":"tool_use","id":"toolu_2","name":"Read","input":{"file_path":"/p/a.rs"}}"#),
    ];
    check(
        &script.join("\n"),
        &[
            "assistant.delta msg_1 thinking \"I should look\"",
            "usage.reported msg_1 10 42 5000 120",
            "assistant.message msg_1 tool_use \"I look.\"",
            "assistant.message msg_1 tool_use calls",
            r#"tool.call toolu_1 Bash execute [ls] "{\"command\":\"ls\",\"description\":\"List\"}""#,
            "assistant.message msg_1 tool_use calls",
            r#"tool.call toolu_2 Read read [/p/a.rs] "{\"file_path\":\"/p/a.rs\"}""#,
        ],
    );
    // Older versions write all blocks of a message in one line.
    let one = block(
        r#"{"type":"text","text":"I look."},{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"ls"}}"#,
    );
    assert_eq!(seen(&one).len(), 4);
    // Counts that the model's provider omits are zero.
    let nulls = usage.replace("120", "null").replace("5000", "null");
    check(
        &format!(r#"@assistant {{"message":{{"id":"m","content":"hi","stop_reason":"end_turn",{nulls}}}}}"#),
        &["assistant.message m end_turn \"hi\"", "usage.reported m 10 42 0 0"],
    );
}

#[test]
fn extra_model_calls_of_a_response_report_their_own_usage() {
    let call = |kind: &str, model: &str, input: u64| {
        format!(
            r#"{{"type":"{kind}"{model},"input_tokens":{input},"output_tokens":8,"cache_read_input_tokens":0,"cache_creation_input_tokens":0}}"#
        )
    };
    let calls = [
        call("message", "", 400),
        call("advisor_message", r#","model":"claude-opus-4-7""#, 150_000),
        call("compaction", "", 180_000),
        call("message", "", 600),
    ];
    let line = format!(
        r#"@assistant {{"message":{{"id":"m","model":"claude-opus-5","content":"ok","stop_reason":"end_turn","usage":{{"input_tokens":1000,"output_tokens":100,"speed":"fast","server_tool_use":{{"web_search_requests":100}},"iterations":[{}]}}}}}}"#,
        calls.join(",")
    );
    let expected = [
        "assistant.message m end_turn \"ok\"",
        "usage.reported m 1000 100 0 0",
        "usage.reported m/advisor_message/1 150000 8 0 0",
        "usage.reported m/compaction/2 180000 8 0 0",
        "usage.reported m/web_search 0 0 0 0",
    ];
    let out = decode(&transcript(OWN), whole_lines(&line).as_bytes());
    let models = out.events.iter().filter_map(|event| match &event.payload {
        Payload::UsageReported(usage) => usage.model.clone(),
        _ => None,
    });
    assert_eq!(models.collect::<Vec<_>>(), ["claude-opus-5-fast", "claude-opus-4-7", "claude-opus-5", "claude-opus-5"]);
    check(&line, &expected);
}

#[test]
fn stop_reasons_are_decoded() {
    let stopped = |reason: &str| {
        seen(&format!(
            r#"@assistant {{"message":{{"id":"m","content":[{{"type":"text","text":"x"}}],"stop_reason":{reason}}}}}"#
        ))
    };
    for (reason, stop) in [
        (r#""end_turn""#, "end_turn"),
        (r#""stop_sequence""#, "end_turn"),
        (r#""tool_use""#, "tool_use"),
        (r#""max_tokens""#, "max_tokens"),
        (r#""refusal""#, "refusal"),
        (r#""pause_turn""#, "other"),
        ("null", "-"),
    ] {
        assert_eq!(stopped(reason), [format!("assistant.message m {stop} \"x\"")]);
    }
    check(
        r#"@assistant {"message":{"id":"m","content":[{"type":"text","text":"This is the"}],"stop_reason":null},"isAbortedMidStream":true}"#,
        &["assistant.message m aborted \"This is the\""],
    );
}

#[test]
fn tool_calls_are_decoded_with_kind_and_title() {
    let call = |name: &str, input: &str| {
        let line = format!(
            r#"@assistant {{"message":{{"id":"m","content":[{{"type":"tool_use","id":"t","name":"{name}","input":{input}}}],"stop_reason":"tool_use"}}}}"#
        );
        let said = seen(&line);
        assert_eq!(said[0], "assistant.message m tool_use calls");
        said[1].split(" \"").next().unwrap().to_owned()
    };
    assert_eq!(
        call("Bash", r#"{"command":"make test","run_in_background":true}"#),
        "tool.call t Bash execute [make test] background"
    );
    assert_eq!(call("Edit", r#"{"file_path":"calc.py","old_string":"a"}"#), "tool.call t Edit edit [calc.py]");
    assert_eq!(call("NotebookEdit", r#"{"notebook_path":"n.ipynb"}"#), "tool.call t NotebookEdit edit [n.ipynb]");
    assert_eq!(call("Grep", r#"{"pattern":"fn main"}"#), "tool.call t Grep read [fn main]");
    assert_eq!(
        call("WebFetch", r#"{"url":"https://example.com","prompt":"x"}"#),
        "tool.call t WebFetch fetch [https://example.com]"
    );
    assert_eq!(call("WebSearch", r#"{"query":"rust"}"#), "tool.call t WebSearch fetch [rust]");
    assert_eq!(
        call("Agent", r#"{"description":"Look around","prompt":"…"}"#),
        "tool.call t Agent subagent [Look around]"
    );
    assert_eq!(call("ExitPlanMode", r##"{"plan":"# Plan"}"##), "tool.call t ExitPlanMode plan [-]");
    assert_eq!(call("mcp__demo__ping", "{}"), "tool.call t mcp__demo__ping mcp [demo: ping]");
    assert_eq!(call("Skill", r#"{"skill":"review"}"#), "tool.call t Skill other [review]");
    assert_eq!(call("TodoWrite", r#"{"todos":[]}"#), "tool.call t TodoWrite other [-]");
    // An input of another form only has no title.
    assert_eq!(call("Bash", r#"{"command":["ls"]}"#), "tool.call t Bash execute [-]");
    assert_eq!(call("Bash", r#""ls""#), "tool.call t Bash execute [-]");
}

#[test]
fn tool_results_are_decoded_with_their_outcome() {
    let result = |block: &str, extra: &str| {
        let line = format!(
            r#"@user {{"message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t",{block}}}]}},"session_id":"{OWN}"{extra}}}"#
        );
        let said = seen(&line);
        assert_eq!(said.len(), 1);
        said.into_iter().next().unwrap()
    };
    assert_eq!(result(r#""content":"done","is_error":false"#, ""), "tool.result t ok \"done\"");
    assert_eq!(
        result(r#""content":[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}]"#, ""),
        "tool.result t ok \"a\\nb\""
    );
    assert_eq!(
        result(r#""content":"Exit code 2\nno such file","is_error":true"#, ""),
        "tool.result t error exit 2 \"Exit code 2\\nno such file\""
    );
    assert_eq!(
        result(r#""content":"String to replace not found","is_error":true"#, ""),
        "tool.result t error \"String to replace not found\""
    );
    let refused = r#""content":"The user doesn't want","is_error":true"#;
    assert_eq!(
        result(refused, r#","toolDenialKind":"user-rejected","toolDenialBeforeRun":true"#),
        "tool.result t denied \"The user doesn't want\""
    );
    assert_eq!(
        result(refused, r#","toolDenialKind":"user-rejected""#),
        "tool.result t cancelled \"The user doesn't want\""
    );
    assert_eq!(
        result(refused, r#","toolDenialKind":"permission-rule""#),
        "tool.result t blocked \"The user doesn't want\""
    );
    // The result names the call it belongs to.
    let line =
        r#"@user {"message":{"content":[{"type":"tool_result","tool_use_id":"t"}]},"sourceToolAssistantUUID":"u9"}"#;
    let out = decode(&transcript(OWN), whole_lines(line).as_bytes());
    let call = r#"@assistant {"message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"Bash","input":{}}]}}"#;
    let called = decode(&transcript(OWN), whole_lines(call).replace("\"u1\"", "\"u9\"").as_bytes());
    assert_eq!(out.events.last().unwrap().parent, Some(called.events[2].identity));
}

#[test]
fn a_denied_tool_call_is_distinguished_from_an_interrupt() {
    let stop = |text: &str| {
        format!(
            r#"@user {{"message":{{"role":"user","content":[{{"type":"text","text":"{text}"}}]}},"session_id":"{OWN}"}}"#
        )
    };
    let refused = |before_run: bool| {
        format!(
            r#"@user {{"message":{{"content":[{{"type":"tool_result","tool_use_id":"t","is_error":true}}]}},"toolDenialKind":"user-rejected","toolDenialBeforeRun":{before_run},"session_id":"{OWN}"}}"#
        )
    };
    let for_tool = stop("[Request interrupted by user for tool use]");
    check(&format!("{}\n{for_tool}", refused(true)), &["tool.result t denied", "signal ended denied"]);
    check(&format!("{}\n{for_tool}", refused(false)), &["tool.result t cancelled", "signal ended interrupted"]);
    check(&stop("[Request interrupted by user]"), &["signal ended interrupted"]);
    // A refusal counts once, and not beyond the next prompt.
    let prompt = r#"@user {"message":{"content":"go on"}}"#;
    check(
        &[&refused(true), prompt, &stop("[Request interrupted by user]")].join("\n"),
        &["tool.result t denied", "user.prompt human \"go on\"", "signal ended interrupted"],
    );
}

#[test]
fn questions_and_their_answers_are_decoded() {
    let ask = r#"@assistant {"message":{"id":"m","content":[{"type":"tool_use","id":"q","name":"AskUserQuestion","input":{"questions":[{"question":"Which color?","header":"Color","options":[{"label":"Red","description":"r"},{"label":"Blue"}]}]}}],"stop_reason":"tool_use"}}"#;
    let answer = r#"@user {"message":{"content":[{"type":"tool_result","tool_use_id":"q","content":"Blue"}]}}"#;
    let said = seen(&format!("{ask}\n{answer}"));
    assert!(said[1].starts_with("tool.call q AskUserQuestion question [Which color?]"), "{}", said[1]);
    assert_eq!(said[2], r#"question.asked q ["Red", "Blue"] "Which color?""#);
    assert_eq!(said[3..], ["tool.result q ok \"Blue\"", "question.answered q"]);
    // With a restart between the two.
    let lines = whole_lines(&format!("{ask}\n{answer}"));
    let out = in_reads(&transcript(OWN), lines.as_bytes(), &[0], true);
    assert_eq!(show(out.events.last().unwrap()), "question.answered q");
}

#[test]
fn api_errors_are_classified() {
    let error = |fields: &str| {
        let line = format!(
            r#"@assistant {{"message":{{"id":"x","model":"<synthetic>","content":[{{"type":"text","text":"API Error"}}],"stop_reason":"stop_sequence"}},"isApiErrorMessage":true{fields}}}"#
        );
        let said = seen(&line);
        assert_eq!(said.len(), 1);
        said[0].trim_end_matches(" \"API Error\"").to_owned()
    };
    assert_eq!(error(r#","error":"server_error","apiErrorStatus":529"#), "error provider 529 ends_turn");
    assert_eq!(error(r#","error":"authentication_failed","apiErrorStatus":401"#), "error auth 401 ends_turn");
    assert_eq!(error(r#","error":"rate_limit","apiErrorStatus":429"#), "error rate_limit 429 ends_turn");
    assert_eq!(error(r#","error":"billing_error""#), "error quota billing_error ends_turn");
    assert_eq!(error(r#","error":"unknown","apiErrorStatus":"503""#), "error provider 503 ends_turn");
    assert_eq!(error(r#","error":"invalid_request","apiErrorStatus":400"#), "error context 400 ends_turn");
    assert_eq!(error(r#","error":"network_error","apiErrorStatus":null"#), "error network network_error ends_turn");
    assert_eq!(error(r#","error":{"message":"?"}"#), "error other - ends_turn");
    assert_eq!(error(""), "error other - ends_turn");
    check(
        r#"@system {"subtype":"api_error","content":"Overloaded","error":"server_error"}"#,
        &["error provider server_error retrying \"Overloaded\""],
    );
}

#[test]
fn a_synthetic_no_response_message_becomes_a_notice() {
    let stand_in = |text: &str| {
        format!(
            r#"@assistant {{"message":{{"id":"x","model":"<synthetic>","content":[{{"type":"text","text":"{text}"}}],"stop_reason":"stop_sequence","usage":{{"input_tokens":0,"output_tokens":0}}}},"isApiErrorMessage":false}}"#
        )
    };
    check(&stand_in("No response requested."), &["annotation notice: No response requested."]);
    // Any other synthetic text is shown, and has no cost.
    check(&stand_in("Something else."), &["assistant.message x aborted \"Something else.\"", "signal ended completed"]);
}

#[test]
fn system_lines_are_decoded_by_subtype() {
    check(r#"@system {"subtype":"turn_duration","durationMs":1508,"messageCount":16}"#, &["signal ended completed"]);
    check(
        r#"@system {"subtype":"turn_duration","durationMs":1508,"pendingBackgroundAgentCount":2}"#,
        &["signal ended completed, 2 at work"],
    );
    check(r#"@system {"subtype":"stop_hook_summary","hookCount":1}"#, &[]);
    check(
        r#"@system {"subtype":"compact_boundary","content":"Conversation compacted","compactMetadata":{"trigger":"manual","preTokens":5172,"postTokens":2935}}"#,
        &["context.compacted manual Some(5172) Some(2935)"],
    );
    check(
        r#"@system {"subtype":"compact_boundary","compactMetadata":{"trigger":"new"}}"#,
        &["context.compacted - None None"],
    );
    check(
        r#"@system {"subtype":"local_command","content":"<command-name>/branch</command-name>\n<command-args></command-args>","level":"info"}"#,
        &["annotation command: /branch"],
    );
    check(r#"@system {"subtype":"local_command","content":"<local-command-stdout>ok</local-command-stdout>"}"#, &[]);
    check(
        r#"@system {"subtype":"informational","content":"Auto mode lets Claude","level":"notice"}"#,
        &["annotation notice: Auto mode lets Claude"],
    );
    check(r#"@system {"subtype":"brand_new","content":"x"}"#, &["unrecognized system/brand_new"]);
}

#[test]
fn queue_title_and_permission_mode_lines_are_decoded() {
    let queue = |rest: &str| {
        format!(r#"{{"type":"queue-operation","timestamp":"2026-11-20T04:39:05.094Z","sessionId":"{OWN}",{rest}}}"#)
    };
    check(&queue(r#""operation":"enqueue","content":"and then this""#), &["annotation queue: enqueue: and then this"]);
    check(&queue(r#""operation":"dequeue""#), &["annotation queue: dequeue"]);
    check(&queue(r#""operation":"enqueue","content":"<task-notification>\n<task-id>a1</task-id>""#), &[]);
    let title = r#"{"type":"custom-title","customTitle":"Greetings","sessionId":"s"}"#;
    check(
        &[title, title, r#"{"type":"custom-title","customTitle":"More","sessionId":"s"}"#].join("\n"),
        &["annotation title: Greetings", "annotation title: More"],
    );
    check(r#"{"type":"summary","summary":"Old title"}"#, &["annotation title: Old title"]);
    let mode = |mode: &str| format!(r#"{{"type":"permission-mode","permissionMode":"{mode}","sessionId":"s"}}"#);
    check(
        &[mode("default"), mode("default"), mode("plan"), mode("default")].join("\n"),
        &[
            "annotation permission_mode: default",
            "annotation permission_mode: plan",
            "annotation permission_mode: default",
        ],
    );
    check(r#"{"type":"last-prompt","lastPrompt":"Say hello","leafUuid":"x","sessionId":"s"}"#, &[]);
    check(
        r#"{"type":"last-prompt","leafUuid":"00000000","explicit":true,"sessionId":"s"}"#,
        &[&format!("session.forked from {OWN} at 00000000")],
    );
    check(r#"{"type":"brand-new","value":1}"#, &["unrecognized brand-new"]);
}

#[test]
fn irrelevant_line_types_are_skipped() {
    for kind in [
        "api-request",
        "api-request-shape",
        "api-request-blob",
        "file-history-snapshot",
        "file-history-delta",
        "atis-latch",
        "tools-used",
        "agent-name",
        "mode",
    ] {
        // Even if it is incomplete JSON or has another order of fields.
        check(&format!(r#"{{"type":"{kind}","x":"#), &[]);
        check(&format!(r#"{{"x":1,"type":"{kind}"}}"#), &[]);
    }
    check(
        r#"{"parentUuid":"a","isSidechain":false,"attachment":{"type":"environment","content":"…"},"type":"attachment","uuid":"u","cwd":"/p"}"#,
        &[],
    );
    check(
        r#"{"parentUuid":"a","isSidechain":true,"agentId":"a1","attachment":{"type":"date"},"type":"attachment","uuid":"u","cwd":"/p"}"#,
        &[],
    );
    // The same words in a prompt are a prompt.
    let quoted = r#"@user {"message":{"content":",\"attachment\":{"}}"#;
    check(quoted, &["user.prompt human \",\\\"attachment\\\":{\""]);
}

#[test]
fn session_start_and_changes_of_directory_branch_and_mode_are_decoded() {
    let path = transcript(OWN);
    let line = |cwd: &str, branch: &str, mode: &str| {
        format!(
            r#"{{"type":"user","message":{{"content":"x"}},"uuid":"{cwd}{branch}{mode}","cwd":"{cwd}","gitBranch":"{branch}","version":"2.1.328","permissionMode":"{mode}"}}"#
        )
    };
    let lines = [line("/p", "main", "default"), line("/p", "main", "default"), line("/q", "side", "plan")].join("\n");
    let said: Vec<String> =
        decode(&path, lines.as_bytes()).events.iter().map(show).filter(|s| !s.starts_with("user.prompt")).collect();
    assert_eq!(
        said,
        [
            "session.started unknown /p main 2.1.328 - -",
            "annotation permission_mode: default",
            "annotation cwd: /q",
            "annotation git_branch: side",
            "annotation permission_mode: plan",
        ]
    );
}

#[test]
fn sub_agent_file_lines_belong_to_the_sub_agent_session() {
    let path = format!("/h/.claude/projects/-p/{OWN}/subagents/agent-a11a102d85b7f3f06.jsonl");
    let script = whole_lines(
        r#"
        @user {"agentId":"a11a102d85b7f3f06","message":{"role":"user","content":"Look around"}}
        @assistant {"agentId":"a11a102d85b7f3f06","message":{"id":"m","content":[{"type":"text","text":"I did."}],"stop_reason":"end_turn"}}
        @user {"agentId":"a11a102d85b7f3f06","message":{"role":"user","content":"And now?"}}
        "#,
    );
    let expected = [
        format!("session.started subagent /p main 2.1.328 {OWN} -"),
        "user.prompt agent \"Look around\"".into(),
        "assistant.message m end_turn \"I did.\"".into(),
        "user.prompt human \"And now?\"".into(),
    ];
    for cuts in [&[][..], &[0], &[1], &[0, 1]] {
        let out = in_reads(&path, script.as_bytes(), cuts, true);
        assert_eq!(out.events.iter().map(show).collect::<Vec<_>>(), expected);
        assert!(out.events.iter().all(|e| &*e.provider_session_id == "a11a102d85b7f3f06"), "whatever its lines say");
    }
}

#[test]
fn sub_agent_metadata_yields_session_start_and_title() {
    let mut decoder = meta::MetaDecoder::new(&format!("/h/.claude/projects/-p/{OWN}/subagents/agent-a1.meta.json"));
    let mut out = output("/m");
    let bytes = br#"{"agentType":"general-purpose","description":"Look around","toolUseId":"t","spawnDepth":1,"model":"claude-opus-5-5","finished":true}"#;
    give(&mut decoder, bytes, 0, &mut out);
    give(&mut decoder, bytes, 0, &mut out);
    let shown: Vec<String> = out.events.iter().map(show).collect();
    assert_eq!(
        shown[..2],
        [format!("session.started subagent - - - {OWN} general-purpose"), "annotation title: Look around".into()]
    );
    assert!(out.events.iter().all(|e| &*e.provider_session_id == "a1"));
    // Decoding it again gives the same events.
    assert_eq!(out.events[0].identity, out.events[2].identity);
    assert_eq!(out.events[1].identity, out.events[3].identity);
}

#[test]
fn events_carry_the_time_and_file_position_of_their_line() {
    let script = whole_lines("{\"type\":\"mode\",\"mode\":\"normal\"}\n@system {\"subtype\":\"turn_duration\"}");
    let out = decode(&transcript(OWN), script.as_bytes());
    let end = out.events.last().unwrap();
    assert_eq!(end.created_at, Timestamp::parse("2026-11-20T04:39:02.462Z"));
    assert_eq!(end.observed_at, SEEN_AT);
    let first = script.find('\n').unwrap() as u64 + 1;
    let events::Origin::File { offset, length, generation, path } = &end.origin else { panic!("{:?}", end.origin) };
    assert_eq!(
        (*offset, *length, *generation, &**path),
        (first, script.len() as u64 - first - 1, 1, &*transcript(OWN))
    );
    // An invalid time.
    let odd = script.replace("2026-11-20T04:39:02.462Z", "today");
    assert_eq!(decode(&transcript(OWN), odd.as_bytes()).events.last().unwrap().created_at, None);
}

#[test]
fn a_damaged_line_does_not_stop_the_reading() {
    let good = |n: usize| format!(r#"{{"type":"user","message":{{"content":"{n}"}},"uuid":"{n}"}}"#);
    let lines = [
        good(1),
        r#"{"type":"user","message":{"content":"cut"#.into(),
        good(2),
        "[]".into(),
        r#"{"no":"type"}"#.into(),
        good(3),
    ]
    .join("\n");
    let out = decode(&transcript(OWN), lines.as_bytes());
    assert_eq!(out.issues, 3);
    let said: Vec<String> =
        out.events.iter().map(show).filter(|s| s.starts_with("user.prompt") || s.starts_with("unrec")).collect();
    let mut sorted = said.clone();
    sorted.sort();
    assert_eq!(
        sorted,
        [
            "unrecognized damaged",
            "unrecognized damaged",
            "unrecognized damaged",
            "user.prompt human \"1\"",
            "user.prompt human \"2\"",
            "user.prompt human \"3\""
        ]
    );
}
