//! Tests the details of permission requests, and that modified requests do not pass as complete.

use events::{ApprovalRequested, DeliveryId, Payload, Source, Timestamp};
use proptest::prelude::*;

use super::*;
use crate::conversation::{PermissionPayload, ProtocolEvent, ProtocolEventKind, decode};
use hooks::delivery::Delivery;

const CWD: &str = "/home/dev/proj";

fn approval(provider: Provider, request: &PermissionRequest) -> ApprovalRequested {
    let at = Timestamp::from_millisecond(1_795_149_432_000);
    let told = ProtocolEvent {
        session_id: request.session.clone(),
        cwd: CWD.into(),
        what: ProtocolEventKind::Asks(PermissionPayload::of(request)),
    };
    let payload = told.payload().unwrap();
    let id = DeliveryId::mint(at, [7; 10]);
    let delivery = Delivery {
        id,
        provider,
        source: Source::Protocol,
        at,
        agent: None,
        run: None,
        search_path: None,
        redacted_from: None,
        payload,
    };
    // As read from the spool.
    let delivery: Delivery = serde_json::from_str(&serde_json::to_string(&delivery).unwrap()).unwrap();
    let decoded = decode(&delivery, at).unwrap();
    assert_eq!(&*decoded.session, request.session);
    assert!(decoded.events.iter().all(|event| event.source == Source::Protocol));
    let asked = decoded.events.into_iter().find_map(|event| match event.payload {
        Payload::ApprovalRequested(asked) => Some(asked),
        _ => None,
    });
    let asked = asked.unwrap();
    assert_eq!((&asked.digest, &asked.approval_id), (&Some(delivery.digest()), &delivery.approval_id()));
    *asked
}

/// A request in short: `kind tool command paths cwd exact`.
#[track_caller]
fn check(provider: Provider, request: &PermissionRequest, expected: &str, input: &str) {
    let asked = approval(provider, request);
    let short = format!(
        "{} {} {:?} {:?} in {} {}",
        asked.about.map_or("?", |about| about.as_str()),
        asked.tool.as_deref().unwrap_or("?"),
        asked.command.as_deref().unwrap_or_default(),
        asked.paths,
        asked.cwd.as_deref().unwrap_or("?"),
        if asked.cut { "cut" } else { "whole" },
    );
    assert_eq!(short, expected);
    assert_eq!(asked.input.as_deref().unwrap(), input);
}

#[test]
fn approval_requests_are_decoded_for_each_agent() {
    let claude = &requests("claude-allow")[0];
    let input = r#"{"command": "touch made.txt && echo done", "description": "Create a file"}"#;
    let command = "\"touch made.txt && echo done\" []";
    check(Provider::Claude, claude, &format!("command Bash {command} in ? cut"), input);
    // The callback before the call reported the directory.
    let placed = PermissionRequest { place: Some("/home/dev/proj/sub".into()), ..claude.clone() };
    check(Provider::Claude, &placed, &format!("command Bash {command} in /home/dev/proj/sub whole"), input);

    let codex = requests("codex");
    let line = r#""/bin/bash -lc 'echo hi; touch /var/home/devapp'""#;
    let actions = r#"[{"type": "unknown", "command": "echo hi; touch /var/home/devapp"}]"#;
    let offers = r#"["accept", {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["echo", "hi"]}}, "cancel"]"#;
    let input = format!(
        r#"{{"availableDecisions":{offers},"command":{line},"commandActions":{actions},"cwd":"{CWD}","environmentId":"local","kind":"command","proposedExecpolicyAmendment":["echo", "hi"],"reason":"May I touch a file?"}}"#
    );
    check(Provider::Codex, &codex[0], &format!("command Bash {line} [] in {CWD} whole"), &input);
    let changes = r#"{"changes":[{"path": "/var/home/devoutside.md", "kind": {"type": "add"}, "diff": "hello\n"}],"type":"fileChange"}"#;
    let files = r#"edit apply_patch "" ["/var/home/devoutside.md"] in ? whole"#;
    check(Provider::Codex, &codex[2], files, changes);
    // Additional wishes of the request are shown with the change.
    let wider = with(&codex[2], |line| {
        line["params"]["grantRoot"] = json!("/");
        line["params"]["reason"] = json!("retry without sandbox?");
    });
    let beside = r#""grantRoot":"/","reason":"retry without sandbox?","type":"fileChange""#;
    let changes = changes.replace(r#""type":"fileChange""#, beside);
    check(Provider::Codex, &wider, &files.replace("whole", "cut"), &changes);

    let gemini = requests("gemini");
    let shell = &approval(Provider::Gemini, &gemini[0]);
    assert_eq!(
        (shell.command.as_deref(), shell.cut, shell.cwd.as_deref()),
        (Some("touch acp-shell.txt"), false, Some(CWD))
    );
    let edit = &approval(Provider::Gemini, &gemini[2]);
    assert_eq!((&edit.paths[..], edit.cut), (&["/home/dev/proj/acp.txt".to_owned()][..], false));
    assert!(edit.input.as_deref().unwrap().contains(r#""newText": "x\n""#));

    // It names the command and the file, but not the directory; no rule decides.
    let opencode = requests("opencode");
    let short = |request| {
        let asked = approval(Provider::Opencode, request);
        (asked.about.map(|about| about.as_str()), asked.command, asked.paths, asked.cut)
    };
    let shell = (Some("command"), Some("touch made; echo ok".to_owned()), Vec::new(), true);
    let write = (Some("edit"), None, vec!["/home/dev/proj/new.txt".to_owned()], true);
    assert_eq!((short(&opencode[0]), short(&opencode[1])), (shell, write));
}

/// A request modified by `change`.
fn with(request: &PermissionRequest, change: impl FnOnce(&mut Value)) -> PermissionRequest {
    let mut line: Value = serde_json::from_str(request.line.get()).unwrap();
    change(&mut line);
    PermissionRequest { line: crate::codec::raw(&line.to_string()).unwrap(), ..request.clone() }
}

#[test]
fn ambiguous_requests_are_not_treated_as_complete() {
    let codex = requests("codex");
    let whole = |provider, request: &PermissionRequest| !approval(provider, request).cut;
    let plain =
        |request: &PermissionRequest| is_plain(Provider::Codex, &approval(Provider::Codex, request).input.unwrap());
    assert!(plain(&codex[0]));
    for (name, value) in [
        ("kind", json!("writeStdin")),
        ("networkApprovalContext", json!({"host": "example.com"})),
        ("additionalPermissions", json!({"network": {"enabled": true}})),
        ("environmentId", json!("remote")),
    ] {
        assert!(!plain(&with(&codex[0], |line| line["params"][name] = value)), "{name}");
    }
    assert!(!whole(Provider::Codex, &with(&codex[0], |line| line["params"]["cwd"] = Value::Null)));
    assert!(!whole(Provider::Codex, &with(&codex[2], |line| line["params"]["grantRoot"] = json!("/"))));
    assert!(!whole(Provider::Codex, &PermissionRequest { item: None, ..codex[2].clone() }));
    assert_eq!(
        approval(Provider::Codex, &with(&codex[0], |line| line["params"]["kind"] = json!("writeStdin"))).about,
        None
    );

    let shell = &requests("gemini")[0];
    let words =
        |text: &str| with(shell, |line| line["params"]["toolCall"]["content"][0]["content"]["text"] = json!(text));
    assert!(whole(Provider::Gemini, &words("[current working directory /home/dev/proj]")));
    assert!(!whole(Provider::Opencode, &words("[current working directory /home/dev/proj]")), "the model's words");
    for text in [
        "[in /etc] (x)",
        "[current working directory /home/dev/proj/sub]",
        "",
        "(x) [background]",
        "[current working directory /home/dev/proj] (x) [background]",
    ] {
        assert!(!whole(Provider::Gemini, &words(text)), "{text}");
    }
    let kind = |kind: &str| with(shell, |line| line["params"]["toolCall"]["kind"] = json!(kind));
    for other in ["other", "fetch", "read", "edit", "think"] {
        assert!(!whole(Provider::Gemini, &kind(other)), "{other}");
    }
}

#[test]
fn an_approval_is_sent_only_if_a_single_allow_once_is_offered() {
    let codex = &requests("codex")[0];
    let offers = |all: Value| with(codex, |line| line["params"]["availableDecisions"] = all);
    let speaks = app_server::AppServer::new("/p");
    assert_eq!(speaks.answer(&offers(json!(["acceptForSession", "cancel"])), &ALLOW), None);
    assert!(speaks.answer(&offers(json!(["acceptForSession", "cancel"])), &deny("")).unwrap().contains("decline"));
    let rewrite = AgentAnswer { rewrite: Some("ls".into()), ..ALLOW };
    assert_eq!(speaks.answer(codex, &rewrite), None);

    let gemini = &requests("gemini")[0];
    let options = |all: Value| with(gemini, |line| line["params"]["options"] = all);
    let speaks = acp::Acp::new("/p");
    let always = json!([{"optionId": "a", "name": "Always", "kind": "allow_always"}]);
    assert_eq!(speaks.answer(&options(always.clone()), &ALLOW), None);
    assert!(speaks.answer(&options(always), &deny("")).unwrap().contains("cancelled"));
    let two = json!([{"optionId": "a", "kind": "allow_once"}, {"optionId": "b", "kind": "allow_once"}]);
    assert_eq!(speaks.answer(&options(two), &ALLOW), None, "it is not known which of the two is meant");
    assert_eq!(speaks.answer(gemini, &rewrite), None);
}

#[test]
fn claude_code_answers_carry_rewritten_commands_and_question_answers() {
    let request = &requests("claude-allow")[0];
    let speaks = stream_json::StreamJson::default();
    let response = |request: &PermissionRequest, given: &AgentAnswer| {
        let line: Value = serde_json::from_str(&speaks.answer(request, given)?).unwrap();
        Some(line["response"]["response"].clone())
    };
    let safe = AgentAnswer { rewrite: Some("git --no-pager status".into()), ..ALLOW };
    let changed = json!({"command": "git --no-pager status", "description": "Create a file"});
    assert_eq!(response(request, &safe).unwrap(), json!({"behavior": "allow", "updatedInput": changed}));
    let question = with(request, |line| {
        line["request"]["tool_name"] = json!("AskUserQuestion");
        line["request"]["input"] = json!({"questions": [{"question": "Which?"}]});
    });
    assert_eq!(response(&question, &ALLOW), None, "an allowance without answers is none");
    let answers = Some([("Which?".to_owned(), "Red".to_owned())].into());
    let told = response(&question, &AgentAnswer { answers: answers.clone(), ..ALLOW }).unwrap();
    assert_eq!(told["updatedInput"]["answers"], json!({"Which?": "Red"}));
    assert_eq!(response(request, &AgentAnswer { answers, ..ALLOW }), None);
    assert!(speaks.cancel(request).contains(r#""behavior":"deny""#));
}

#[test]
fn the_pre_tool_hook_supplies_the_directory_of_the_call() {
    let mut codec = stream_json::StreamJson::default();
    let before = json!({"type": "control_request", "request_id": "h", "request": {"subtype": "hook_callback", "callback_id": "capture-place",
        "input": {"session_id": "s", "cwd": "/p/sub", "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {}, "tool_use_id": "t"}, "tool_use_id": "t"}});
    let heard = codec.decode_line(&before.to_string());
    // No decision: the agent applies its own rules.
    let [Meaning::Send(line)] = &heard[..] else { panic!("{heard:?}") };
    assert!(line.contains(r#""response":{}"#), "{line}");
    codec.decode_line(r#"{"type":"system","subtype":"init","session_id":"s"}"#);
    let ask = |call: &str| {
        json!({"type": "control_request", "request_id": "r",
        "request": {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls"}, "tool_use_id": call}})
    };
    let place = |codec: &mut stream_json::StreamJson, call| match codec.decode_line(&ask(call).to_string()).pop() {
        Some(Meaning::Asks(request)) => request.place,
        other => panic!("{other:?}"),
    };
    assert_eq!(place(&mut codec, "t").as_deref(), Some("/p/sub"));
    assert_eq!(place(&mut codec, "other"), None);
}

proptest! {
    #[test]
    fn the_line_splitter_gives_the_same_lines_for_any_chunking(cuts in proptest::collection::vec(0_usize..4000, 0..40)) {
        let (_, lines) = written("codex");
        let text = lines.join("\n") + "\n";
        let mut cuts = cuts;
        cuts.sort_unstable();
        let (mut cutter, mut got, mut from) = (LineSplitter::default(), Vec::new(), 0);
        for cut in cuts.into_iter().chain([text.len()]) {
            let cut = cut.min(text.len()).max(from);
            got.extend(cutter.push(&text.as_bytes()[from..cut]));
            from = cut;
        }
        let wanted: Vec<AgentLine> = lines.iter().map(|line| AgentLine::Whole((*line).to_owned())).collect();
        prop_assert_eq!(got, wanted);
    }

    #[test]
    fn unknown_fields_change_no_decision(name in "[a-z]{1,12}_", value in "[a-z]{0,8}", which in 0_usize..3) {
        let (recording, provider, inside) = [
            ("claude-allow", Provider::Claude, "request"),
            ("codex", Provider::Codex, "params"),
            ("gemini", Provider::Gemini, "params"),
        ][which];
        let request = &requests(recording)[0];
        let other = with(request, |line| {
            line[&name] = json!(value);
            line[inside][&name] = json!({"behavior": "allow", "decision": value});
        });
        let speaks = codec_of(provider, "/p");
        for given in [ALLOW, deny("no")] {
            let wanted: Value = serde_json::from_str(&speaks.answer(request, &given).unwrap()).unwrap();
            let got: Value = serde_json::from_str(&speaks.answer(&other, &given).unwrap()).unwrap();
            prop_assert_eq!(got, wanted);
        }
    }

    #[test]
    fn arbitrary_lines_never_make_a_codec_panic_or_approve(line in ".{0,200}", id in "[a-z0-9\"{}]{0,6}") {
        for provider in [Provider::Claude, Provider::Codex, Provider::Gemini] {
            let mut codec = codec_of(provider, "/p");
            let made = format!(r#"{{"id":{id},"type":"control_request","request_id":"x","method":"x","request":{{"subtype":"x"}},"params":{{}}}}"#);
            for line in [&line, &made] {
                for meaning in codec.decode_line(line) {
                    if let Meaning::Send(sent) = meaning {
                        prop_assert!(sent.contains("error"), "{}", sent);
                    }
                }
            }
        }
    }
}
