use events::{Claim, Payload, Source};

use super::{decode::decode, *};

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(1_795_149_432_000 + ms)
}

fn delivery(provider: Provider, payload: &str) -> Delivery {
    Delivery {
        id: DeliveryId::mint(at(0), [7; 10]),
        provider,
        source: Source::Hook,
        at: at(0),
        agent: Some(Agent { pid: 42, start_ticks: 7, shared: false }),
        run: None,
        search_path: None,
        redacted_from: None,
        payload: RawValue::from_string(payload.to_owned()).unwrap(),
    }
}

/// The claims of a payload in short form: `state reason strength [@from] [key] [until] [agent] [subject]`.
fn said(provider: Provider, event: &str, more: &str) -> Vec<String> {
    let payload = format!("{{\"hook_event_name\":\"{event}\",\"session_id\":\"s\",\"cwd\":\"/p\"{more}}}");
    let decoded = decode(&delivery(provider, &payload), at(5)).unwrap();
    assert_eq!((&*decoded.session, decoded.cwd.as_deref()), ("s", Some("/p")));
    decoded
        .events
        .iter()
        .filter(|event| !matches!(event.payload, Payload::ApprovalRequested(_)))
        .map(|event| {
            assert_eq!((event.source, event.created_at, event.observed_at), (Source::Hook, Some(at(0)), at(5)));
            let signal = match &event.payload {
                Payload::Signal(signal) => signal,
                other => return other.kind().to_string(),
            };
            let mut short = match &signal.claim {
                Claim::State { state, reason } => format!("{state} {} {}", reason.unwrap(), signal.strength),
                Claim::Withdrawn => "withdrawn".into(),
                other => panic!("{other:?}"),
            };
            if let Some(from) = signal.holds_from {
                short += &format!(" @{}", from.since_ms(at(0)));
            }
            if signal.key.is_some() {
                short += " keyed";
            }
            if let Some(until) = signal.valid_until {
                short += &format!(" until {}", until.since_ms(at(0)));
            }
            if let Some(agent) = &event.agent_id {
                short += &format!(" of {agent}");
            }
            if let Some(subject) = signal.dialog.as_deref().and_then(|d| d.subject.as_deref()) {
                short += &format!(": {subject}");
            }
            short
        })
        .collect()
}

const BASH: &str = r#","tool_name":"Bash","tool_input":{"command":"touch x","description":"Create a file"}"#;

/// At first a prompt is certainly being worked on; a hook of the user may refuse it.
const BEGINS: [&str; 2] = ["running thinking medium", "running thinking high keyed until 1000"];

#[test]
fn claude_code_hook_payloads_decode_to_claims() {
    let claude = |event: &str, more: &str| said(Provider::Claude, event, more);
    assert_eq!(claude("SessionStart", r#","source":"startup""#), ["session.started", "waiting new_session high"]);
    assert_eq!(claude("SessionStart", r#","source":"compact""#), ["session.started"]);
    assert_eq!(claude("UserPromptSubmit", r#","prompt":"Say hello""#), BEGINS);
    assert_eq!(claude("PreToolUse", BASH), ["running tool medium"]);
    assert_eq!(claude("PermissionRequest", BASH), ["waiting_approval tool high @500 keyed: touch x"]);
    assert_eq!(claude("PostToolUse", BASH), ["withdrawn keyed", "running thinking medium"]);
    let edit = r#","tool_name":"Edit","tool_input":{"file_path":"/p/calc.py","old_string":"a"}"#;
    assert_eq!(claude("PermissionRequest", edit), ["waiting_approval edit high @500 keyed: /p/calc.py"]);
    let fetch = r#","tool_name":"WebFetch","tool_input":{"url":"https://example.com/page","prompt":"?"}"#;
    assert_eq!(
        claude("PermissionRequest", fetch),
        ["waiting_approval fetch high @500 keyed: https://example.com/page"]
    );
    let mcp = r#","tool_name":"mcp__lab__ping","tool_input":{"msg":"hi"},"mcp_server":{"name":"lab"}"#;
    assert_eq!(claude("PermissionRequest", mcp), ["waiting_approval mcp high @500 keyed: mcp__lab__ping"]);
    let plan = r##","tool_name":"ExitPlanMode","tool_input":{"plan":"# Plan"}"##;
    assert_eq!(claude("PermissionRequest", plan), ["waiting_approval plan high @500 keyed: # Plan"]);
    let question = r#","tool_name":"AskUserQuestion","tool_input":{"questions":[{"question":"Which color?"}]}"#;
    assert_eq!(claude("PermissionRequest", question), ["waiting question high @500 keyed: Which color?"]);
    let helper = format!("{BASH},\"agent_id\":\"a1\"");
    assert_eq!(claude("PreToolUse", &helper), ["running subagents medium until 60000 of a1"]);
    assert_eq!(claude("PermissionRequest", &helper), ["waiting_approval tool high @500 keyed of a1: touch x"]);
    assert_eq!(claude("SubagentStop", r#","agent_id":"a1""#), ["withdrawn of a1"]);
    assert_eq!(claude("Notification", r#","notification_type":"permission_prompt""#), ["waiting_approval tool high"]);
    assert_eq!(claude("Notification", r#","notification_type":"auth_success""#), Vec::<String>::new());
    // The form of 1.0.100.
    let older = r#","message":"Claude needs your permission to use Bash""#;
    assert_eq!(claude("Notification", older), ["waiting_approval tool high"]);
    let rests = r#","message":"Claude is waiting for your input""#;
    assert_eq!(claude("Notification", rests), ["waiting turn_complete high"]);
    assert_eq!(claude("Notification", r#","message":"Something else""#), Vec::<String>::new());
    assert_eq!(claude("Stop", r#","background_tasks":[]"#), ["waiting turn_complete high"]);
    let working = r#","background_tasks":[{"type":"subagent","status":"running"}]"#;
    assert_eq!(claude("Stop", working), ["running subagents high"]);
    for event in ["Stop", "StopFailure", "SubagentStop"] {
        let of_agent = r#","agent_id":"a1","agent_type":"Explore","stop_hook_active":false"#;
        assert_eq!(claude(event, of_agent), ["withdrawn of a1"], "{event}");
    }
    let shell = r#","background_tasks":[{"type":"shell","status":"running"}]"#;
    assert_eq!(claude("Stop", shell), ["waiting background high"]);
    assert_eq!(claude("PreCompact", r#","trigger":"manual""#), ["running compacting medium"]);
    assert_eq!(claude("SomethingNew", ""), Vec::<String>::new());
}

/// The request of a payload: kind, tool, command, paths, URL, input, and whether it is cut.
#[track_caller]
fn requests(provider: Provider, event: &str, more: &str, expected: &str) {
    let payload = format!("{{\"hook_event_name\":\"{event}\",\"session_id\":\"s\",\"cwd\":\"/p\"{more}}}");
    let delivery = delivery(provider, &payload);
    let decoded = decode(&delivery, at(5)).unwrap();
    let asked: Vec<String> = decoded
        .events
        .iter()
        .filter_map(|event| if let Payload::ApprovalRequested(asked) = &event.payload { Some(asked) } else { None })
        .map(|asked| {
            assert_eq!((asked.delivery, asked.cwd.as_deref()), (Some(delivery.id), Some("/p")));
            let mut line = asked.about.map(|a| a.to_string()).unwrap_or_default();
            for (name, value) in
                [("tool", &asked.tool), ("$", &asked.command), ("url", &asked.url), ("input", &asked.input)]
            {
                line += &value.as_ref().map(|v| format!(" {name} {v}")).unwrap_or_default();
            }
            line += &asked.paths.iter().map(|path| format!(" path {path}")).collect::<String>();
            line + if asked.cut { " cut" } else { "" }
        })
        .collect();
    assert_eq!(asked.join("; "), expected);
}

#[test]
fn permission_requests_are_decoded_for_each_agent() {
    let claude = |more: &str, expected| requests(Provider::Claude, "PermissionRequest", more, expected);
    claude(BASH, r#"command tool Bash $ touch x input {"command":"touch x","description":"Create a file"}"#);
    claude(
        r#","tool_name":"Write","tool_input":{"file_path":"/p/a"}"#,
        r#"write tool Write input {"file_path":"/p/a"} path /p/a"#,
    );
    claude(
        r#","tool_name":"WebFetch","tool_input":{"url":"https://a/b"}"#,
        r#"fetch tool WebFetch url https://a/b input {"url":"https://a/b"}"#,
    );
    claude(
        r#","tool_name":"AskUserQuestion","tool_input":{"questions":[{"question":"Which?"}]}"#,
        r#"question tool AskUserQuestion input {"questions":[{"question":"Which?"}]}"#,
    );
    // A list of words is not a shell command line.
    claude(
        r#","tool_name":"Bash","tool_input":{"command":["a","b"]}"#,
        r#"command tool Bash input {"command":["a","b"]}"#,
    );
    requests(
        Provider::Codex,
        "PermissionRequest",
        r#","tool_name":"apply_patch","tool_input":{"command":"*** Begin Patch\n*** Update File: a\n*** Move to: ../b\n@@\n+ *** Add File: c\n*** End Patch"}"#,
        r#"edit tool apply_patch input {"command":"*** Begin Patch\n*** Update File: a\n*** Move to: ../b\n@@\n+ *** Add File: c\n*** End Patch"} path a path ../b"#,
    );
    requests(Provider::Codex, "PreToolUse", BASH, "");
    requests(
        Provider::Gemini,
        "Notification",
        r#","notification_type":"ToolPermission","details":{"type":"exec","command":"echo hi"}"#,
        "command $ echo hi",
    );
    // A reminder is not a second request.
    requests(Provider::Claude, "Notification", r#","notification_type":"permission_prompt""#, "");
    // Duplicate fields are an error.
    let twice = r#"{"hook_event_name":"PermissionRequest","session_id":"s","tool_name":"Bash","tool_input":{"command":"ls","command":"rm"}}"#;
    assert!(decode(&delivery(Provider::Claude, twice), at(5)).is_err());
}

#[test]
fn an_oversized_request_is_stored_as_an_excerpt_with_its_size() {
    let asked = |tool: &str, field: &str, text: &str| {
        let payload = serde_json::json!({
            "hook_event_name": "PermissionRequest", "session_id": "s", "cwd": "/p", "tool_name": tool,
            "tool_input": { "file_path": "/p/run.sh", field: text },
        });
        let decoded = decode(&delivery(Provider::Claude, &payload.to_string()), at(5)).unwrap();
        let asked = decoded.events.into_iter().find_map(|event| match event.payload {
            Payload::ApprovalRequested(asked) => Some(*asked),
            _ => None,
        });
        asked.unwrap()
    };
    for (tool, field) in [("Bash", "command"), ("Write", "content")] {
        for filler in ["x=1\n", "é\n"] {
            let text = format!("echo first\n{}rm -rf ~ # last", filler.repeat(50_000));
            let whole = asked(tool, field, &text);
            assert!(!whole.cut && whole.excerpt.is_none() && whole.input.unwrap().contains("# last"));

            let text = format!("echo first\n{}rm -rf ~ # last", filler.repeat(200_000));
            let long = asked(tool, field, &text);
            assert!(long.cut && long.command.is_none() && long.input.is_none());
            let excerpt = long.excerpt.unwrap();
            assert!(excerpt.beginning.contains("echo first") && excerpt.end.contains("rm -rf ~ # last"));
            assert!(excerpt.bytes >= text.len() as u64, "{} of {}", excerpt.bytes, text.len());
            assert!((60_000..=65_536).contains(&excerpt.kept()), "{}", excerpt.kept());
        }
    }
}

#[test]
fn a_command_input_is_plain_only_if_its_known_switches_are_false() {
    let is_plain = |provider, input: &str| permission::is_only_a_command(provider, input);
    for (provider, switch) in [
        (Provider::Qwen, "is_background"),
        (Provider::Gemini, "is_background"),
        (Provider::Claude, "run_in_background"),
        (Provider::Claude, "dangerouslyDisableSandbox"),
    ] {
        assert!(is_plain(provider, &format!(r#"{{"command":"ls","description":"d","{switch}":false}}"#)), "{switch}");
        for value in ["true", "null", "0", r#""false""#] {
            assert!(!is_plain(provider, &format!(r#"{{"command":"ls","{switch}":{value}}}"#)), "{switch} {value}");
        }
    }
    assert!(is_plain(Provider::Codex, r#"{"command":"ls","timeout":5}"#));
    for more in ["is_background", "directory", "sandbox", "with_escalated_permissions"] {
        assert!(!is_plain(Provider::Codex, &format!(r#"{{"command":"ls","{more}":false}}"#)), "{more}");
    }
    assert!(!is_plain(Provider::Claude, "[]") && !is_plain(Provider::Claude, ""));
}

#[test]
fn a_trailing_newline_of_a_patch_does_not_change_its_key() {
    // As recorded from Codex 0.169.0: only the result has the trailing line end of the patch.
    let key = |event: &str, end: &str| {
        let payload = format!(
            r#"{{"hook_event_name":"{event}","session_id":"s","tool_name":"apply_patch","tool_input":{{"command":"*** Begin Patch\n*** Update File: README.md\n@@\n-42\n+43\n*** End Patch{end}"}}}}"#
        );
        let decoded = decode(&delivery(Provider::Codex, &payload), at(5)).unwrap();
        let mut keys = decoded.events.iter().filter_map(|event| match &event.payload {
            Payload::Signal(signal) => signal.key.clone(),
            _ => None,
        });
        keys.next().unwrap()
    };
    assert_eq!(key("PermissionRequest", ""), key("PostToolUse", "\\n"));
}

#[test]
fn codex_hook_payloads_decode_to_claims() {
    let codex = |event: &str, more: &str| said(Provider::Codex, event, more);
    assert_eq!(codex("UserPromptSubmit", ""), BEGINS);
    assert_eq!(codex("PermissionRequest", BASH), ["waiting_approval tool high @500 keyed: touch x"]);
    let question = r#","tool_name":"request_user_input","tool_input":{"questions":[{"question":"Tabs?"}]}"#;
    assert_eq!(codex("PreToolUse", question), ["waiting question high @500 keyed: Tabs?"]);
    assert_eq!(codex("PostToolUse", question), ["withdrawn keyed", "running thinking medium"]);
    assert_eq!(codex("Interrupt", ""), ["waiting interrupted high"]);
    assert_eq!(codex("Stop", ""), ["waiting turn_complete high"]);
}

#[test]
fn gemini_cli_hook_payloads_decode_to_claims() {
    let gemini = |event: &str, more: &str| said(Provider::Gemini, event, more);
    let asks = |details: &str| {
        gemini("Notification", &format!(",\"notification_type\":\"ToolPermission\",\"details\":{details}"))
    };
    assert_eq!(gemini("BeforeAgent", r#","prompt":"say hello""#), BEGINS);
    assert_eq!(asks(r#"{"type":"exec","command":"echo hi"}"#), ["waiting_approval tool high @500: echo hi"]);
    assert_eq!(asks(r#"{"type":"edit","filePath":"/p/new.txt"}"#), ["waiting_approval edit high @500: /p/new.txt"]);
    assert_eq!(
        asks(r#"{"type":"mcp","serverName":"labsrv","toolName":"lookup"}"#),
        ["waiting_approval mcp high @500: lookup of labsrv"]
    );
    assert_eq!(asks(r#"{"type":"info","urls":["http://a/b"]}"#), ["waiting_approval fetch high @500: http://a/b"]);
    assert_eq!(asks(r#"{"type":"exit_plan_mode"}"#), ["waiting_approval plan high @500"]);
    assert_eq!(asks(r#"{"type":"ask_user"}"#), ["waiting question high @500"]);
    assert_eq!(gemini("AfterTool", r#","tool_name":"read_file""#), ["running thinking medium"]);
    assert_eq!(gemini("AfterAgent", ""), ["waiting turn_complete high"]);
}

#[test]
fn a_permission_request_and_its_result_share_a_key() {
    let key = |event: &str, more: &str| {
        let payload = format!("{{\"hook_event_name\":\"{event}\",\"session_id\":\"s\"{more}}}");
        let decoded = decode(&delivery(Provider::Claude, &payload), at(0)).unwrap();
        let claims = decoded.events.iter().map(|event| &event.payload);
        let mut keys = claims.filter_map(|p| if let Payload::Signal(signal) = p { signal.key.clone() } else { None });
        keys.next().unwrap()
    };
    assert_eq!(key("PermissionRequest", BASH), key("PostToolUse", BASH));
    assert_ne!(key("PermissionRequest", BASH), key("PermissionRequest", &BASH.replace("touch x", "touch y")));
}

#[test]
fn payloads_without_an_event_name_or_session_id_are_refused() {
    for payload in [
        "null",
        "[]",
        "{}",
        r#"{"hook_event_name":"Stop"}"#,
        r#"{"session_id":"s"}"#,
        r#"{"hook_event_name":1,"session_id":"s"}"#,
    ] {
        assert!(decode(&delivery(Provider::Claude, payload), at(0)).is_err(), "{payload}");
    }
    // Other fields may have any type.
    let odd =
        r#"{"hook_event_name":"PreToolUse","session_id":"s","tool_input":{"command":{"deep":[1]}},"tool_name":"X"}"#;
    assert!(decode(&delivery(Provider::Claude, odd), at(0)).is_ok());
}

#[test]
fn the_spool_keeps_deliveries_until_they_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::of(dir.path());
    assert!(spool.waiting().is_empty());
    let mut first = delivery(Provider::Codex, r#"{"a":1}"#);
    first.id = DeliveryId::mint(at(5), [1; 10]);
    let mut second = delivery(Provider::Codex, r#"{"a":2}"#);
    second.id = DeliveryId::mint(at(6), [0; 10]);
    spool.put(&second).unwrap();
    spool.put(&first).unwrap();
    assert!(spool.put(&first).is_err() || spool.waiting().len() == 2);
    assert_eq!(spool.waiting(), [first.id, second.id], "oldest first");
    let got = spool.get(second.id).unwrap().unwrap();
    assert_eq!((got.provider, got.at, got.payload.get()), (Provider::Codex, second.at, r#"{"a":2}"#));
    spool.remove(second.id);
    assert!(spool.get(second.id).unwrap().is_none());
    // An invalid delivery is renamed, and a link is not followed.
    let path = dir.path().join(format!("spool/{}.json", second.id));
    fs::write(&path, "half a").unwrap();
    assert!(spool.get(second.id).is_err());
    spool.reject(second.id);
    std::os::unix::fs::symlink(dir.path().join(format!("spool/{}.json", first.id)), &path).unwrap();
    assert!(spool.get(second.id).is_err());
    fs::remove_file(&path).unwrap();
    assert_eq!(spool.waiting(), [first.id]);
    let contents = spool.contents();
    assert!(contents.oldest.is_some());
    assert_eq!(
        SpoolUsage { oldest: None, ..contents },
        SpoolUsage { waiting: 1, oldest: None, aside: 1, is_full: false }
    );
}

#[test]
fn a_full_spool_refuses_deliveries_until_old_drafts_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::of(dir.path());
    let mine = delivery(Provider::Claude, "{}");
    spool.put(&mine).unwrap();
    assert!(!spool.contents().is_full);
    let draft = spool.dir().join(".x.json.abc.part");
    fs::File::create(&draft).unwrap().set_len(SPOOL_BYTES).unwrap();
    assert!(spool.contents().is_full);
    let refused = spool.put(&mine).unwrap_err().to_string();
    assert!(refused.contains("too many hook deliveries are waiting"), "{refused}");
    let made = changed(&draft).unwrap();
    spool.remove_drafts(made.plus_ms(DRAFT_AGE_MS));
    assert!(draft.exists(), "it may still be written");
    spool.remove_drafts(made.plus_ms(DRAFT_AGE_MS + 1));
    assert!(!draft.exists());
    spool.put(&mine).unwrap();
    assert_eq!(spool.waiting().len(), 1);
}
