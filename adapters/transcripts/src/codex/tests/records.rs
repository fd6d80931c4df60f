//! One test for each kind of record.

use super::*;

#[test]
fn session_meta_records_start_new_forked_and_sub_agent_sessions() {
    check(
        r#"@session_meta {"session_id":"t1","id":"t1","cwd":"/p","cli_version":"0.169.0","source":"cli","base_instructions":{"text":"You are"},"git":{"branch":"main"}}"#,
        &["session.started new /p main 0.169.0 - -"],
    );
    // Sub-agents that Codex starts itself are named by their source.
    check(
        r#"@session_meta {"session_id":"root","id":"t1","cwd":"/p","source":{"subagent":"review"}}"#,
        &["session.started subagent /p - - root review"],
    );
    // A fork of an older Codex copies its parent's records, including its session_meta.
    check(
        r#"
        @session_meta {"id":"t2","forked_from_id":"t1","cwd":"/p"}
        @session_meta {"id":"t1","cwd":"/q"}
        "#,
        &["session.started fork /p - - - -", "session.forked t1 at -"],
    );
    check(r#"@session_meta {"cwd":"/p"}"#, &["unrecognized session_meta"]);
}

#[test]
fn the_thread_id_in_session_meta_overrides_the_file_name() {
    let line = br#"{"timestamp":"2026-11-20T04:39:07.462Z","type":"session_meta","payload":{"id":"t9"}}"#;
    let mut decoder = CodexDecoder::new(&format!("rollout-2026-11-20T04-39-05-{THREAD}.jsonl"), None);
    assert_eq!(decoder.session().map(|session| &**session), Some(THREAD));
    let mut out = output("/x");
    feed(&mut decoder, Record { bytes: line, offset: 0, observed_at: Timestamp::MIN }, &mut out);
    assert_eq!(decoder.session().map(|session| &**session), Some("t9"));
    assert_eq!(&*out.events[0].provider_session_id, "t9");
}

#[test]
fn settings_are_reported_only_when_they_change() {
    check(
        r#"
        @session_meta {"id":"t1","cwd":"/p"}
        @turn_context {"cwd":"/p","model":"gpt-6-sol","approval_policy":"on-request","collaboration_mode":{"mode":"default"}}
        @event_msg {"type":"thread_settings_applied","thread_settings":{"cwd":"/p","model":"gpt-6-sol","approval_policy":"on-request","collaboration_mode":{"mode":"plan"}}}
        @turn_context {"cwd":"/q","model":"gpt-6-sol","approval_policy":"never"}
        @event_msg {"type":"thread_name_updated","thread_name":"Touch a file"}
        "#,
        &[
            "session.started new /p - - - -",
            "annotation model gpt-6-sol",
            "annotation permission_mode on-request",
            "annotation permission_mode plan",
            "annotation cwd /q",
            "annotation permission_mode never",
            "annotation title Touch a file",
        ],
    );
}

#[test]
fn user_prompts_are_decoded_in_both_record_formats() {
    check(
        r#"
        @response_item {"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}
        @event_msg {"type":"item_completed","turn_id":"u","item":{"type":"UserMessage","id":"p","content":[{"type":"text","text":"hi"},{"type":"local_image","path":"/a.png"},{"type":"text","text":"there"}]}}
        @event_msg {"type":"item_completed","turn_id":"u","item":{"type":"UserMessage","id":"q","content":[{"type":"text","text":"<environment_context>\n</environment_context>"}]}}
        "#,
        &["user.prompt human 📎 \"hi\\nthere\""],
    );
    // The older form.
    check(
        r##"
        @event_msg {"type":"user_message","message":"hi","images":["data:"],"local_images":[],"text_elements":[]}
        @event_msg {"type":"user_message","message":"# AGENTS.md instructions for /p"}
        @event_msg {"type":"user_message","message":"hi"}
        "##,
        &["user.prompt human 📎 \"hi\"", "user.prompt human \"hi\""],
    );
}

#[test]
fn a_message_without_a_call_ends_the_turn_if_ends_are_not_recorded() {
    // As written by 0.60.1: no task_started and no task_complete; the items of a response are written together.
    check(
        r#"
        @event_msg {"type":"user_message","message":"hi"}
        @event_msg {"type":"agent_message","message":"ho"}
        @event_msg {"type":"token_count","info":null}
        @response_item {"type":"message","role":"assistant","content":[{"type":"output_text","text":"ho"}]}
        @response_item {"type":"message","role":"user","content":[{"type":"input_text","text":"next"}]}
        "#,
        &["user.prompt human \"hi\"", "assistant.message \"ho\"", "signal running thinking", "signal ended completed"],
    );
    // A response without a text is counted while its call waits for permission.
    let usage = |total: u32| {
        format!(
            r#"@event_msg {{"type":"token_count","info":{{"total_token_usage":{{"total_tokens":{total}}},"last_token_usage":{{"input_tokens":10,"output_tokens":1,"total_tokens":11}}}}}}"#
        )
    };
    let lines = [
        r#"@event_msg {"type":"agent_message","message":"ho"}"#,
        &usage(11),
        r#"@event_msg {"type":"user_message","message":"next"}"#,
        &usage(22),
    ];
    assert_eq!(seen(&lines.join("\n")).last().unwrap(), "signal running thinking");
    // If the file records ends, no likely end is emitted.
    let seen = seen(
        r#"
        @event_msg {"type":"task_started","turn_id":"u"}
        @event_msg {"type":"agent_message","message":"ho"}
        @response_item {"type":"message","role":"assistant","content":[{"type":"output_text","text":"ho"}]}
        "#,
    );
    assert!(!seen.iter().any(|line| line.contains("ended")), "{seen:?}");
}

#[test]
fn a_message_recorded_in_both_formats_is_decoded_once() {
    check(
        r#"
        @event_msg {"type":"user_message","message":"hi"}
        @event_msg {"type":"item_completed","turn_id":"u","item":{"type":"UserMessage","id":"p","content":[{"type":"text","text":"hi"}]}}
        @event_msg {"type":"item_completed","turn_id":"u","item":{"type":"AgentMessage","id":"m","content":[{"type":"Text","text":"ho"}]}}
        @event_msg {"type":"agent_message","message":"ho"}
        @event_msg {"type":"item_completed","turn_id":"u","item":{"type":"UserMessage","id":"q","content":[{"type":"text","text":"hi"}]}}
        "#,
        &["user.prompt human \"hi\"", "assistant.message \"ho\"", "user.prompt human \"hi\""],
    );
}

#[test]
fn prompt_origin_is_derived_from_the_turn_trigger() {
    let prompt = r#"@event_msg {"type":"item_completed","turn_id":"u","item":{"type":"UserMessage","id":"p1","content":[{"type":"text","text":"a"}]}}
        @event_msg {"type":"item_completed","turn_id":"u","item":{"type":"UserMessage","id":"p2","content":[{"type":"text","text":"b"}]}}"#;
    for (trigger, origin) in [
        (r#","turn_attribution":{"turn_trigger":"user","initiating_agent_path":null}"#, "human"),
        (r#","turn_attribution":{"turn_trigger":"user","initiating_agent_path":"/root"}"#, "agent"),
        (r#","turn_attribution":{"turn_trigger":"exec","initiating_agent_path":null}"#, "human"),
        (r#","turn_attribution":{"turn_trigger":"schedule"}"#, "wakeup"),
        ("", "human"),
    ] {
        let seen = seen(&format!("@event_msg {{\"type\":\"task_started\",\"turn_id\":\"u\"{trigger}}}\n{prompt}"));
        assert_eq!(seen[1..], [format!("user.prompt {origin} \"a\""), "user.prompt steering \"b\"".to_owned()]);
    }
}

#[test]
fn an_inter_agent_message_that_triggers_a_turn_is_a_prompt() {
    let mail = |trigger: bool, content: &str| {
        format!(
            "@inter_agent_communication_metadata {{\"trigger_turn\":{trigger}}}\n\
             @response_item {{\"type\":\"agent_message\",\"id\":\"m\",\"author\":\"/root\",\"recipient\":\"/root/helper\",\"content\":[{content}]}}"
        )
    };
    let header = r#"{"type":"input_text","text":"Message Type: NEW_TASK\nSender: /root\nPayload:\n"}"#;
    let task = |body: &str| format!("{header},{{\"type\":\"encrypted_content\",\"encrypted_content\":\"{body}\"}}");
    check(&mail(true, &task("Count.")), &["user.prompt wakeup \"Count.\""]);
    check(&mail(false, &task("Count.")), &[]);
    let helper = r#"@session_meta {"id":"t","session_id":"r","thread_source":"subagent"}"#;
    let seen = seen(&format!("{helper}\n{}", mail(true, &task("gAAAAABsecret"))));
    assert_eq!(seen[1], "user.prompt agent \"Message Type: NEW_TASK\\nSender: /root\\nPayload:\\n\"");
}

#[test]
fn messages_and_reasoning_are_decoded_once() {
    check(
        r#"
        @event_msg {"type":"agent_reasoning","text":"**Plan**"}
        @event_msg {"type":"item_completed","item":{"type":"Reasoning","id":"r","summary_text":["**Plan**","more"],"raw_content":[]}}
        @response_item {"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"**Plan**"},{"type":"summary_text","text":"more"}],"encrypted_content":"x"}
        @response_item {"type":"reasoning","id":"s","summary":[],"encrypted_content":"x"}
        @event_msg {"type":"item_completed","item":{"type":"AgentMessage","id":"m","content":[{"type":"Text","text":"Done"}],"phase":"final_answer"}}
        @event_msg {"type":"agent_message","message":"Looking.","phase":"commentary"}
        @response_item {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Looking."}]}
        "#,
        &[
            "assistant.delta \"**Plan**\\n\\nmore\"",
            "assistant.message end_turn \"Done\"",
            "assistant.message \"Looking.\"",
        ],
    );
}

#[test]
fn turn_records_are_decoded_as_starts_and_ends() {
    check(
        r#"
        @event_msg {"type":"task_started","turn_id":"u","turn_attribution":{"turn_trigger":"user"},"trace_id":"00000000000000000000000000000000"}
        @event_msg {"type":"task_complete","turn_id":"u","last_agent_message":"Done","duration_ms":7}
        @event_msg {"type":"task_started","turn_id":"v","trace_id":"1e771fd812a97826e3a2533e1152c84c"}
        @compacted {"message":"","replacement_history":[{"type":"message"}],"window_id":"w"}
        @event_msg {"type":"turn_aborted","turn_id":"v","reason":"interrupted"}
        @event_msg {"type":"turn_aborted","turn_id":"x","reason":"replaced"}
        @event_msg {"type":"thread_rolled_back","num_turns":2}
        "#,
        &[
            "signal running thinking",
            "signal ended completed",
            "signal running compacting",
            "annotation trace 1e771fd812a97826e3a2533e1152c84c",
            "context.compacted manual",
            "signal ended interrupted",
            "signal ended superseded",
            &format!("session.forked {THREAD} at - \"2 turns taken back\""),
        ],
    );
}

#[test]
fn turn_errors_are_classified() {
    for (info, message, expected) in [
        (r#"{"http_connection_failed":{"http_status_code":503}}"#, "unexpected status 503", "provider 503"),
        (
            r#"{"http_connection_failed":{"http_status_code":null}}"#,
            "error sending request",
            "network http_connection_failed",
        ),
        (r#"{"response_too_many_failed_attempts":{"http_status_code":429}}"#, "slow down", "rate_limit 429"),
        (
            r#"{"response_stream_disconnected":{"http_status_code":null}}"#,
            "stream closed",
            "network response_stream_disconnected",
        ),
        (r#""usage_limit_exceeded""#, "You've hit your usage limit.", "quota usage_limit_exceeded"),
        (r#""context_window_exceeded""#, "too long", "context context_window_exceeded"),
        (r#""server_overloaded""#, "busy", "provider server_overloaded"),
        (r#""unauthorized""#, "sign in", "auth unauthorized"),
        (r#""other""#, "unexpected status 401 Unauthorized", "auth 401"),
        ("null", "strange", "other -"),
    ] {
        check(
            &format!(
                r#"@event_msg {{"type":"task_complete","turn_id":"u","error":{{"message":"{message}","codex_error_info":{info}}}}}"#
            ),
            &[&format!("error {expected} ends_turn {message:?}"), "signal ended failed"],
        );
    }
}

#[test]
fn an_error_before_and_at_the_turn_end_is_reported_once() {
    check(
        r#"
        @event_msg {"type":"task_started","turn_id":"u"}
        @event_msg {"type":"stream_error","message":"Reconnecting... 1/5","codex_error_info":{"response_stream_disconnected":{}}}
        @event_msg {"type":"error","message":"stream closed","codex_error_info":{"response_stream_disconnected":{}}}
        @event_msg {"type":"task_complete","turn_id":"u","error":{"message":"stream closed"}}
        "#,
        &[
            "signal running thinking",
            "error network response_stream_disconnected retrying \"Reconnecting... 1/5\"",
            "error network response_stream_disconnected ends_turn \"stream closed\"",
            "signal ended failed",
        ],
    );
}

#[test]
fn usage_is_reported_once_per_response() {
    check(
        r#"
        @event_msg {"type":"token_count","info":null}
        @event_msg {"type":"token_count","info":{"total_token_usage":{"total_tokens":1200},"last_token_usage":{"input_tokens":1140,"cached_input_tokens":200,"output_tokens":60,"reasoning_output_tokens":10,"total_tokens":1200}}}
        @event_msg {"type":"token_count","info":{"total_token_usage":{"total_tokens":1200},"last_token_usage":{"input_tokens":1140,"cached_input_tokens":200,"output_tokens":60,"total_tokens":1200}}}
        @token_usage_record {"response_id":"resp_1","usage":{"input_tokens":100,"cached_input_tokens":30,"cache_write_input_tokens":20,"output_tokens":5,"total_tokens":105}}
        @event_msg {"type":"token_count","info":{"total_token_usage":{"total_tokens":1305},"last_token_usage":{"input_tokens":100,"output_tokens":5}}}
        "#,
        &["usage.reported in 940 out 60 read 200 write 0", "usage.reported in 50 out 5 read 30 write 20"],
    );
}

#[test]
fn quotas_are_reported_when_they_change() {
    let count = |total: u32, limits: &str| {
        format!(
            r#"@event_msg {{"type":"token_count","info":{{"total_token_usage":{{"total_tokens":{total}}},"last_token_usage":{{"input_tokens":10,"output_tokens":4,"reasoning_output_tokens":3}}}},"rate_limits":{limits}}}"#
        ) + "\n"
    };
    let primary = |used: &str| {
        format!(
            r#"{{"primary":{{"used_percent":{used},"window_minutes":300,"resets_at":1779669758}},"secondary":null}}"#
        )
    };
    let in_seconds = |seconds: u32| format!(r#"{{"primary":{{"used_percent":91.5,"resets_in_seconds":{seconds}}}}}"#);
    let lines = [
        count(14, &primary("7.0")),
        // The same response and quota; the same response with a higher quota use; another response.
        count(14, &primary("7.0")),
        count(14, &primary("8.25")),
        count(28, "null"),
        // Older versions: the time is that of the line, and a difference of some seconds is the same reset.
        count(42, &in_seconds(600)),
        count(56, &in_seconds(590)),
        count(70, r#"{"primary":{"used_percent":-1},"secondary":{"used_percent":1e300}}"#),
    ]
    .concat();
    let told: Vec<_> = events_of(&lines)
        .iter()
        .filter_map(|event| match &event.payload {
            Payload::UsageReported(usage) => Some(usage),
            _ => None,
        })
        .map(|usage| {
            let quota = |quota: &events::QuotaReported| {
                assert_eq!(quota.name, "primary");
                (quota.used_permille, quota.window_minutes, quota.resets_at.map(Timestamp::as_millisecond))
            };
            (usage.output_tokens, usage.thinking_tokens, usage.quotas.iter().map(quota).collect::<Vec<_>>())
        })
        .collect();
    let reset = Some(1_779_669_758_000);
    let later = Timestamp::parse("2026-11-20T04:49:07.462Z").map(Timestamp::as_millisecond);
    assert_eq!(
        told,
        [
            (4, 3, vec![(70, Some(300), reset)]),
            (0, 0, vec![(83, Some(300), reset)]),
            (4, 3, vec![]),
            (4, 3, vec![(915, None, later)]),
            (4, 3, vec![]),
            (4, 3, vec![]),
        ]
    );
}

#[test]
fn tool_calls_are_decoded_with_kind_and_title() {
    for (call, expected) in [
        (
            r#""name":"exec_command","arguments":"{\"cmd\":\"cat  README.md\\n\"}""#,
            "exec_command execute [cat README.md]",
        ),
        (
            r#""name":"exec_command","arguments":"{\"cmd\":\"touch x\",\"sandbox_permissions\":\"require_escalated\"}""#,
            "exec_command execute [touch x] may ask",
        ),
        (
            r#""name":"shell","arguments":"{\"command\":[\"bash\",\"-lc\",\"ls\"],\"with_escalated_permissions\":true}""#,
            "shell execute [ls] may ask",
        ),
        (r#""name":"shell","arguments":"{\"command\":[\"git\",\"status\"]}""#, "shell execute [git status]"),
        (r#""name":"write_stdin","arguments":"{\"session_id\":1,\"chars\":\"y\"}""#, "write_stdin execute [y]"),
        (r#""name":"danger","namespace":"mcp__demo","arguments":"{}""#, "mcp__demo.danger mcp [demo.danger]"),
        (r#""name":"mcp__demo__danger","arguments":"{}""#, "mcp__demo__danger mcp [demo.danger]"),
        (r#""name":"view_image","arguments":"{\"path\":\"a.png\"}""#, "view_image read [a.png]"),
        (r#""name":"update_plan","arguments":"{\"plan\":[]}""#, "update_plan other -"),
        (r#""name":"exec_command","arguments":"not json""#, "exec_command execute -"),
        (r#""name":"exec_command","arguments":{"cmd":"ls"}"#, "exec_command execute [ls]"),
    ] {
        let line = format!(r#"@response_item {{"type":"function_call",{call},"call_id":"c"}}"#);
        let seen = seen(&line);
        assert!(seen[0].starts_with(&format!("tool.call {expected} \"")), "{line}\n{seen:?}");
    }
    check(
        r#"@response_item {"type":"custom_tool_call","call_id":"c","name":"apply_patch","input":"*** Begin Patch\n*** Update File: a.rs\n*** Add File: b.rs\n*** End Patch"}"#,
        &[
            "tool.call apply_patch edit [a.rs, b.rs] of a.rs|b.rs \"*** Begin Patch\\n*** Update File: a.rs\\n*** Add File: b.rs\\n*** End Patch\"",
        ],
    );
    check(
        r#"@response_item {"type":"local_shell_call","call_id":"c","status":"completed","action":{"type":"exec","command":["ls"]}}"#,
        &["tool.call local_shell execute [ls] \"{\\\"type\\\":\\\"exec\\\",\\\"command\\\":[\\\"ls\\\"]}\""],
    );
    check(
        r#"@response_item {"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"rust"}}"#,
        &[
            "tool.call web_search fetch [rust] \"{\\\"type\\\":\\\"search\\\",\\\"query\\\":\\\"rust\\\"}\"",
            "tool.result ws_1 ok",
        ],
    );
}

#[test]
fn tool_outputs_are_decoded_with_their_outcome() {
    for (output, expected) in [
        (
            r#""Chunk ID: 1\nWall time: 0.3658 seconds\nProcess exited with code 0\nOriginal token count: 7\nOutput:\nhi""#,
            "ok exit 0",
        ),
        (
            r#""Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 3\nOutput:\nProcess exited with code 0""#,
            "error exit 3",
        ),
        (r#""Exit code: 1\nWall time: 2 seconds\nOutput:\n""#, "error exit 1"),
        (r#""Chunk ID: 1\nWall time: 1.0 seconds\nProcess running with session ID 4\nOutput:\n""#, "ok"),
        (r#""{\"output\":\"Success\",\"metadata\":{\"exit_code\":0,\"duration_seconds\":0.5}}""#, "ok exit 0"),
        (r#""aborted by user after 5.7s""#, "cancelled"),
        (r#""apply_patch verification failed: no such file""#, "error"),
        (
            r#""exec_command failed for `rm x`: CreateProcess { message: \"Rejected(\\\"rejected by user\\\")\" }""#,
            "denied",
        ),
        (
            r#""exec_command failed for `rm x`: CreateProcess { message: \"Rejected(\\\"policy says no\\\")\" }""#,
            "blocked",
        ),
        (r#""user rejected MCP tool call""#, "denied"),
        (r#""the log says: exec_command failed, Rejected(x)""#, "ok"),
        (
            r#"[{"type":"input_text","text":"Script completed\nWall time 2.1 seconds\nOutput:\n"},{"type":"input_text","text":"Process exited with code 9"}]"#,
            "ok",
        ),
        (
            r#"[{"type":"input_text","text":"Script failed\nWall time 0.6 seconds\nOutput:\n"},{"type":"input_text","text":"Script error:\nno"}]"#,
            "error",
        ),
    ] {
        let line = format!(r#"@response_item {{"type":"function_call_output","call_id":"c","output":{output}}}"#);
        let seen = seen(&line);
        assert!(seen[0].starts_with(&format!("tool.result c {expected} \"")), "{line}\n{seen:?}");
    }
}

const SCRIPT: &str = r#"@response_item {"type":"custom_tool_call","call_id":"c","name":"exec","input":"await tools.exec_command({\"cmd\":\"rm x\",\"sandbox_permissions\":\"require_escalated\"})"}"#;

#[test]
fn a_script_result_gets_the_exit_code_of_its_command() {
    let seen = seen(&format!(
        r#"
        @event_msg {{"type":"task_started","turn_id":"u"}}
        {SCRIPT}
        @event_msg {{"type":"item_completed","turn_id":"u","item":{{"type":"CommandExecution","id":"exec-1","command":["/bin/bash","-lc","rm x"],"status":"completed","aggregated_output":"no","exit_code":3}},"started_at_ms":1795149999000}}
        @response_item {{"type":"custom_tool_call_output","call_id":"c","output":[{{"type":"input_text","text":"Script completed\nWall time 2.1 seconds\nOutput:\n"}}]}}
        @event_msg {{"type":"item_completed","turn_id":"u","item":{{"type":"CommandExecution","id":"exec-2","status":"completed","aggregated_output":"late","exit_code":0}},"started_at_ms":1795149999000}}
        "#
    ));
    assert_eq!(
        seen[2..],
        [
            "tool.result c error exit 3 detail",
            "tool.result c error exit 3 \"Script completed\\nWall time 2.1 seconds\\nOutput:\\n\"",
            "tool.result exec-2 ok exit 0 detail \"late\"",
        ]
    );
}

#[test]
fn an_aborted_call_is_denied_if_nothing_ran_and_cancelled_otherwise() {
    let story = |between: &str| {
        let seen = seen(&format!(
            r#"
            @event_msg {{"type":"task_started","turn_id":"u"}}
            {SCRIPT}
            {between}
            @response_item {{"type":"custom_tool_call_output","call_id":"c","output":"aborted by user after 5.7s"}}
            @event_msg {{"type":"turn_aborted","turn_id":"u","reason":"interrupted"}}
            "#
        ));
        seen[seen.len() - 2..].join(" | ")
    };
    let words = "\"aborted by user after 5.7s\"";
    assert_eq!(story(""), format!("tool.result c denied {words} | signal ended denied"));
    let item = |command: &str| {
        format!(
            r#"@event_msg {{"type":"item_completed","turn_id":"u","item":{{"type":"CommandExecution","id":"exec-1","command":["/bin/bash","-lc","{command}"],"status":"completed","exit_code":0}},"started_at_ms":1795149999000}}"#
        )
    };
    assert_eq!(story(&item("cat README.md")), format!("tool.result c denied {words} | signal ended denied"));
    assert_eq!(story(&item("rm x")), format!("tool.result c cancelled {words} | signal ended interrupted"));
}

#[test]
fn an_aborted_question_is_closed() {
    let seen = seen(
        r#"
        @response_item {"type":"function_call","name":"request_user_input","arguments":"{\"questions\":[{\"question\":\"A?\",\"options\":[{\"label\":\"x\"}]},{\"question\":\"B?\"}]}","call_id":"c"}
        @response_item {"type":"function_call_output","call_id":"c","output":"aborted by user after 3.0s"}
        "#,
    );
    assert_eq!(
        seen[1..],
        [
            "question.asked [\"x\"] \"A?\\nB?\"",
            "question.answered",
            "tool.result c cancelled \"aborted by user after 3.0s\""
        ]
    );
}

#[test]
fn older_end_events_become_detail_results() {
    check(
        r#"
        @event_msg {"type":"exec_command_end","call_id":"c","turn_id":"u","exit_code":2,"aggregated_output":"no","duration":{"secs":1,"nanos":5000000}}
        @event_msg {"type":"patch_apply_end","call_id":"d","success":false,"stdout":""}
        @event_msg {"type":"mcp_tool_call_end","call_id":"e","result":{"Err":"no"}}
        "#,
        &["tool.result c error exit 2 detail \"no\"", "tool.result d error detail \"\"", "tool.result e error detail"],
    );
}

#[test]
fn unknown_record_types_are_kept_as_unrecognized() {
    check(
        r#"
        @event_msg {"type":"brand_new","x":1}
        @response_item {"type":"brand_new"}
        @brand_new {"x":1}
        @event_msg {"type":"item_completed","item":{"type":"BrandNew"}}
        @world_state {"full":true}
        @response_item {"type":"ghost_snapshot"}
        "#,
        &[
            "unrecognized event_msg/brand_new",
            "unrecognized response_item/brand_new",
            "unrecognized brand_new",
            "unrecognized event_msg/item_completed/BrandNew",
        ],
    );
}

#[test]
fn tool_kind_and_title_are_extracted_from_scripts() {
    let look = |source: &str| {
        let script = script::scan(source);
        format!(
            "{} [{}]{}",
            script.tool,
            script.title.unwrap_or_default(),
            if script.escalated { " escalated" } else { "" }
        )
    };
    for (source, expected) in [
        (r#"await tools.exec_command({"cmd": "ls -la"});"#, "execute [ls -la]"),
        (r#"await tools.exec_command({cmd: 'it\'s', workdir: "/"});"#, "execute [it's]"),
        ("await tools.exec_command({cmd: `a \\u{41}\nb`});", "execute [a A b]"),
        (
            r#"// tools.apply_patch("x")
            /* "cmd": "no" */ tools.exec_command({"cmd":"yes"})"#,
            "execute [yes]",
        ),
        // Text about permissions in a command is not a permission request of its call.
        (
            r#"tools.exec_command({"cmd":"grep '\"sandbox_permissions\":\"require_escalated\"' x"})"#,
            r#"execute [grep '"sandbox_permissions":"require_escalated"' x]"#,
        ),
        (
            r#"tools.exec_command({"cmd":"a"}); tools.exec_command({"cmd":"b","sandbox_permissions":"require_escalated"})"#,
            "execute [b] escalated",
        ),
        (
            r#"const p = "*** Begin Patch\n*** Delete File: old.rs\n*** End Patch"; await tools.apply_patch(p);"#,
            "edit [old.rs]",
        ),
        (
            r#"const cmd = "ls"; await tools.exec_command({cmd});"#,
            r#"execute [const cmd = "ls"; await tools.exec_command({cmd});]"#,
        ),
        (r#"await tools.mcp__demo__danger({"what":"x"})"#, "mcp [demo.danger]"),
        (r#"await tools.view_image({path:"a.png"})"#, "read [view_image]"),
        (r#"text("no tool")"#, r#"other [text("no tool")]"#),
        (r#"tools.exec_command({"cmd":"never closed"#, "execute [never closed]"),
        ("", "other []"),
    ] {
        assert_eq!(look(source), expected, "{source}");
    }
}

#[test]
fn all_files_of_a_patch_are_named() {
    let check = |lines: &[&str], title: &str, files: &[&str]| {
        let patch = format!("*** Begin Patch\n{}\n*** End Patch\n", lines.join("\n"));
        let seen = patch::Patch::of(&patch);
        assert_eq!(
            (seen.title.as_deref().unwrap_or_default(), &*seen.files),
            (title, &*files.iter().map(|f| (*f).to_owned()).collect::<Vec<_>>()),
            "{patch}"
        );
        // The same patch as a script writes it.
        let script = script::scan(&format!("await tools.apply_patch({});", serde_json::to_string(&patch).unwrap()));
        assert_eq!((script.tool, &script.files), (events::ToolKind::Edit, &seen.files), "{patch}");
    };
    check(&["*** Update File: a.rs", "@@", "-x", "+*** y"], "a.rs", &[]);
    check(&["*** Update File: a.rs", "*** Move to: b, c.rs", "@@"], "a.rs", &["a.rs", "b, c.rs"]);
    check(
        &["*** Update File: a.rs", "@@", "*** Add File: b.rs", "+1", "*** Update File: a.rs"],
        "a.rs, b.rs, a.rs",
        &["a.rs", "b.rs"],
    );
    let five = ["a", "b", "c", "d", "e"].map(|name| format!("*** Delete File: {name}"));
    check(&five.each_ref().map(String::as_str), "a, b, c, d and 1 more", &["a", "b", "c", "d", "e"]);
    let many: String = (0..100).map(|n| format!("*** Add File: {n}\n")).collect();
    assert_eq!(patch::Patch::of(&many).files.len(), 64);
}

proptest::proptest! {
    #[test]
    fn scanning_any_script_does_not_panic(source: String) {
        let _ = script::scan(&source);
        let _ = script::scan(&format!("tools.exec_command({{\"cmd\":\"{source}"));
    }

    #[test]
    fn titles_are_short_lines(text: String) {
        let title = patch::title(&text).unwrap_or_default();
        proptest::prop_assert!(title.len() <= 250 && !title.contains('\n'));
    }
}

#[test]
fn web_searches_without_an_id_get_distinct_results() {
    let search = |url: &str, pattern: &str| {
        format!(
            r#"@response_item {{"type":"web_search_call","status":"completed","action":{{"type":"find_in_page","url":"{url}","pattern":"{pattern}"}}}}"#
        )
    };
    let ended = |id: &str| format!(r#"@event_msg {{"type":"web_search_end","call_id":"{id}","query":"x"}}"#);
    let lines = [ended("ws_1"), search("u", "a"), search("u", "b"), search("u", "c")].join("\n");
    let told = seen(&lines);
    let results: Vec<&String> = told.iter().filter(|line| line.starts_with("tool.result")).collect();
    assert_eq!(results.len(), 3);
    assert_eq!(results[0], "tool.result ws_1 ok");
    assert!(results[1].starts_with("tool.result web_search_call@") && results[1] != results[2], "{results:?}");
    assert!(told[0].starts_with("tool.call web_search fetch [a in u]"), "{told:?}");
}

#[test]
fn an_interrupt_recorded_as_an_error_ends_the_turn_as_interrupted() {
    check(
        r#"
        @event_msg {"type":"task_started","turn_id":"t1"}
        @event_msg {"type":"error","message":"Conversation interrupted - tell the model what to do differently."}
        "#,
        &["signal running thinking", "signal ended interrupted"],
    );
}

#[test]
fn redundant_collaboration_records_are_skipped() {
    for line in [
        r#"@event_msg {"type":"guardian_assessment","id":"g","status":"approved"}"#,
        r#"@event_msg {"type":"collab_agent_spawn_end","call_id":"c"}"#,
        r#"@event_msg {"type":"collab_waiting_end","call_id":"c"}"#,
        r#"@event_msg {"type":"item_completed","turn_id":"t","item":{"type":"Extension","id":"x","kind":"web.search"}}"#,
    ] {
        check(line, &[]);
    }
}

/// A rollout with these calls: input tokens and output tokens up to and including each.
fn with_calls(head: &[&str], second: u32, calls: &[(u64, u64)]) -> Vec<u8> {
    let (mut lines, mut before) = (head.join("\n") + "\n", (0, 0));
    for (n, (input, output)) in calls.iter().enumerate() {
        let total = format!(r#"{{"input_tokens":{input},"output_tokens":{output},"total_tokens":{}}}"#, input + output);
        let (new_input, new_output) = (input - before.0, output - before.1);
        let last = format!(
            r#"{{"input_tokens":{new_input},"output_tokens":{new_output},"total_tokens":{}}}"#,
            new_input + new_output
        );
        let count =
            format!(r#"{{"type":"token_count","info":{{"total_token_usage":{total},"last_token_usage":{last}}}}}"#);
        lines += &format!(
            "{{\"timestamp\":\"2026-11-20T10:00:{:02}.{n:03}Z\",\"type\":\"event_msg\",\"payload\":{count}}}\n",
            second
        );
        before = (*input, *output);
    }
    lines.into_bytes()
}

/// Input and output of all calls in these files, each call counted once.
fn used(files: &[Vec<u8>]) -> (usize, u64, u64) {
    let mut calls = BTreeMap::new();
    for (n, file) in files.iter().enumerate() {
        for event in decode(&format!("rollout-2026-11-20T04-39-0{n}-{THREAD}.jsonl"), file).0 {
            if let Payload::UsageReported(usage) = event.payload {
                calls.insert(format!("{:?}", event.identity), (usage.input_tokens, usage.output_tokens));
            }
        }
    }
    (calls.len(), calls.values().map(|call| call.0).sum(), calls.values().map(|call| call.1).sum())
}

#[test]
fn a_model_call_copied_into_forks_is_counted_once() {
    let meta = |thread: &str, more: &str| format!(r#"{{"type":"session_meta","payload":{{"id":"{thread}"{more}}}}}"#);
    let (parent, other) = (meta("a", ""), meta("x", ""));
    let (names, copies) = (meta("b", r#","forked_from_id":"a""#), meta("b", ""));
    let helper = meta("c", r#","source":{"subagent":{"thread_spawn":{"parent_thread_id":"a"}}}"#);
    let grandchild = meta("d", r#","forked_from_id":"b""#);
    let history = [(1000, 50), (3000, 100), (6000, 150)];
    let then = |call: (u64, u64)| [&history[..], &[call]].concat();
    let original = with_calls(&[&parent], 1, &history);
    let forks = [
        // The fork names its parent, contains its parent's record, or both.
        vec![names.as_str()],
        vec![&copies, &parent],
        vec![&names, &parent],
        vec![&helper, &parent],
        vec![&grandchild, &names, &parent],
    ];
    for fork in &forks {
        let fork = with_calls(fork, 2, &then((6500, 159)));
        assert_eq!(used(&[original.clone(), fork.clone()]), (4, 6500, 159));
        assert_eq!(used(&[fork.clone(), original.clone()]), (4, 6500, 159));
        // A fork continued by a fork of the same thread, and siblings whose parent is gone.
        let sibling = with_calls(&[&helper, &parent], 3, &then((6400, 160)));
        assert_eq!(used(&[fork, sibling]), (5, 6900, 169));
    }
    // Sessions that happen to have the same usage are distinct.
    let stranger = with_calls(&[&other], 1, &history);
    assert_eq!(used(&[original, stranger]), (6, 12_000, 300));
}
