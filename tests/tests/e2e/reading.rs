//! The routes for reading sessions.

use std::collections::HashMap;

use serde_json::Value;
use tests::{
    eventually,
    program::{Machine, Server},
    recording::Recording,
    transcript::{answer, append, prompt, session, uuid},
};

use super::PROGRAM;

/// A machine on which this was recorded before the program first ran there.
fn history(recording: &str) -> Machine {
    let machine = Machine::new(PROGRAM);
    Recording::load(recording).lay_down(&machine.home(), &machine.project());
    machine
}

/// The events of all sessions of an agent on the machine, keyed by the agent's ids.
fn all_events(server: &Server, provider: &str) -> HashMap<String, Vec<Value>> {
    let listed = server.client.json(&format!("/api/v1/sessions?active=all&limit=1000&provider={provider}")).unwrap();
    let ids =
        listed["sessions"].as_array().unwrap().iter().map(|s| s["provider_session_id"].as_str().unwrap().to_owned());
    ids.filter(|id| !id.starts_with("process-")).map(|id| (id.clone(), server.events(&id))).collect()
}

fn texts<'e>(events: &'e [Value], kind: &str) -> Vec<&'e str> {
    events.iter().filter(|e| e["kind"] == kind).filter_map(|e| e["text"].as_str()).collect()
}

#[test]
fn session_events_are_numbered_without_gaps_and_paged() {
    let machine = history("claude/S13-compact");
    let server = machine.serve();
    let name = eventually("the session is listed", || {
        let listed = server.client.json("/api/v1/sessions?active=all&provider=claude")?;
        let own = listed["sessions"]
            .as_array()?
            .iter()
            .find(|s| s["cwd"] == machine.project().to_str().unwrap() && s["turns"].as_u64() >= Some(7))?
            .clone();
        Some(own["provider_session_id"].as_str()?.to_owned())
    });
    let one = server.session(&name);
    let id = one["id"].as_str().unwrap();
    assert_eq!(server.client.json(&format!("/api/v1/sessions/{id}")).unwrap(), one, "by our id and by the agent's");
    assert_eq!(one["provider"], "claude");
    assert_eq!(one["transcripts"][0]["issues"], 0);

    let all = server.events(id);
    let sequences: Vec<u64> = all.iter().map(|e| e["sequence"].as_u64().unwrap()).collect();
    assert_eq!(sequences, (1..=all.len() as u64).collect::<Vec<_>>(), "without gaps");
    assert_eq!(one["last_sequence"], all.len());
    let (mut after, mut paged) = (0, Vec::new());
    loop {
        let page = server.client.json(&format!("/api/v1/sessions/{id}/events?after={after}&limit=7")).unwrap();
        let events = page["events"].as_array().unwrap();
        let next = page["next_after"].as_u64().unwrap();
        if events.is_empty() {
            assert_eq!(next, after, "behind the last event");
            break;
        }
        assert!(events.len() <= 7 && events.last().unwrap()["sequence"] == next);
        paged.extend(events.iter().cloned());
        after = next;
    }
    assert_eq!(paged, all);
    let prompts = server.client.json(&format!("/api/v1/sessions/{id}/events?kind=user.prompt")).unwrap();
    let prompts: Vec<&str> =
        prompts["events"].as_array().unwrap().iter().map(|e| e["text"].as_str().unwrap()).collect();
    assert_eq!(prompts.iter().filter(|p| p.starts_with("Turn ")).count(), 7, "{prompts:?}");
    let unknown = server.client.get("/api/v1/sessions/nothing-of-the-kind").unwrap();
    assert_eq!((unknown.status, unknown.json()["error"]["code"].is_string()), (404, true), "{}", unknown.text());
}

#[test]
fn the_wait_route_returns_at_the_state_or_times_out() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let (name, cwd) = (session(1), machine.project().to_str().unwrap().to_owned());
    append(&machine.claude(&name), &prompt(&name, &uuid(1, 1), &cwd, "go"));
    eventually("it runs", || {
        server.client.json(&format!("/api/v1/sessions/{name}")).filter(|s| s["status"]["state"] == "running")
    });
    let wait = |until: &str, ms: u32| {
        server.client.get(&format!("/api/v1/sessions/{name}/wait?until={until}&timeout_ms={ms}")).unwrap()
    };
    let now = wait("running,waiting", 5_000);
    assert_eq!((now.status, &now.json()["status"]["state"]), (200, &"running".into()));
    let never = wait("waiting_approval", 200);
    assert_eq!((never.status, never.json()["error"]["code"].is_string()), (408, true), "{}", never.text());
    let waited = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| wait("waiting", 15_000));
        append(&machine.claude(&name), &answer(&name, &uuid(1, 2), &cwd, "done"));
        waiting.join().unwrap()
    });
    assert_eq!(
        (waited.status, &waited.json()["status"]["reason"]),
        (200, &"turn_complete".into()),
        "{}",
        waited.text()
    );
}

#[test]
fn a_sub_agent_session_has_a_parent_and_separate_events() {
    let machine = history("claude/S12-subagent");
    let server = machine.serve();
    let child = eventually("a helper's session", || {
        let listed = server.client.json("/api/v1/sessions?active=all&provider=claude")?;
        listed["sessions"]
            .as_array()?
            .iter()
            .find(|s| s["parent_session_id"].is_string() && s["turns"].as_u64() > Some(0))
            .cloned()
    });
    let parent = eventually("its parent", || {
        server
            .client
            .json(&format!("/api/v1/sessions/{}", child["parent_session_id"].as_str()?))
            .filter(|p| p["turns"].as_u64() > Some(0))
    });
    assert_eq!(parent["parent_session_id"], Value::Null);
    assert_eq!(parent["cwd"], machine.project().to_str().unwrap());
    let (own, helpers) = (server.events(parent["id"].as_str().unwrap()), server.events(child["id"].as_str().unwrap()));
    let human: Vec<Value> = own.iter().filter(|e| e["data"]["origin"] == "human").cloned().collect();
    assert_eq!(texts(&human, "user.prompt"), ["Delegate this"]);
    assert!(!texts(&helpers, "assistant.message").is_empty() || helpers.iter().any(|e| e["kind"] == "tool.call"));
    let of_parent: Vec<&str> = own.iter().filter(|e| e["derived"] == false).filter_map(|e| e["id"].as_str()).collect();
    assert!(helpers.iter().all(|e| !of_parent.contains(&e["id"].as_str().unwrap())), "an event in both");
}

/// Checks the prompts of every session in a forked history; the order in which files are read must not matter.
fn check_forks(provider: &str, server: &Server, wanted: &[(&str, usize)]) {
    let count = || {
        let events = all_events(server, provider);
        let mut counts: HashMap<String, usize> = HashMap::new();
        for text in events.values().flat_map(|e| texts(e, "user.prompt")) {
            *counts.entry(text.to_owned()).or_default() += 1;
        }
        counts
    };
    eventually("all prompts are read", || {
        let counts = count();
        wanted.iter().all(|(text, n)| counts.get(*text) >= Some(n)).then_some(())
    });
    let counts = count();
    for (text, n) in wanted {
        assert_eq!(counts[*text], *n, "{text:?} in {counts:?}");
    }
    let events = all_events(server, provider);
    let forks: Vec<&str> = events
        .values()
        .flatten()
        .filter(|e| e["kind"] == "session.forked")
        .filter_map(|e| e["data"]["from"].as_str())
        .collect();
    assert!(!forks.is_empty(), "the fork was not reported");
    assert!(forks.iter().all(|from| events.contains_key(*from)), "{forks:?}");
}

#[test]
fn a_claude_fork_does_not_duplicate_history() {
    let machine = history("claude/S14-resume-fork");
    let turns = [
        "Turn one",
        "Turn two after resume",
        "Turn three in the fork",
        "Turn after rewind",
        "Turn in the branch",
        "Turn after clear",
        "Turn after continue",
    ];
    check_forks("claude", &machine.serve(), &turns.map(|text| (text, 1)));
}

#[test]
fn a_codex_fork_does_not_duplicate_history() {
    let machine = history("codex/S14-resume-fork");
    // The last question was typed again after going back to it.
    check_forks("codex", &machine.serve(), &[("first question", 1), ("second question", 1), ("question in fork", 2)]);
}

/// `/branch` and `/clear` continue in the same process, which writes the `session_id` it started with into every line
/// of the model: only copies (with `forkedFrom`, or before the first own line of a fork) belong to another session.
#[test]
fn turns_after_branch_and_clear_belong_to_the_file_they_are_in() {
    let machine = history("claude/S14-resume-fork");
    let server = machine.serve();
    let of = |text: &str| {
        eventually(text, || {
            let events = all_events(&server, "claude");
            events.iter().find_map(|(id, events)| events.iter().any(|e| e["text"] == text).then(|| id[..8].to_owned()))
        })
    };
    let found: Vec<(&str, String)> =
        ["Turn in the branch", "Reply 5.", "Turn after clear", "Reply 6.", "Turn after continue", "Reply 7."]
            .map(|text| (text, of(text)))
            .into();
    let wanted = [
        ("Turn in the branch", "389cf738"),
        ("Reply 5.", "389cf738"),
        ("Turn after clear", "e1a54033"),
        ("Reply 6.", "e1a54033"),
        ("Turn after continue", "e1a54033"),
        ("Reply 7.", "e1a54033"),
    ]
    .map(|(text, id)| (text, id.to_owned()));
    assert_eq!(found, wanted);
}

/// All pages of a conversation, joined.
fn conversation(server: &Server, id: &str, limit: usize, more: &str) -> Vec<Value> {
    let (mut cursor, mut items) = (String::new(), Vec::new());
    loop {
        let path = format!("/api/v1/sessions/{id}/conversation?limit={limit}{more}{cursor}");
        let page = server.client.json(&path).unwrap();
        items.extend(page["items"].as_array().unwrap().iter().cloned());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return items,
        }
    }
}

#[test]
fn a_recorded_session_is_read_as_a_conversation() {
    for (recording, provider) in [
        ("claude/S03-bash-approve", "claude"),
        ("codex/S17-parallel-tools", "codex"),
        ("gemini/S03-shell-approve", "gemini"),
    ] {
        let machine = history(recording);
        let server = machine.serve();
        let (id, events) = eventually("a session with calls", || {
            all_events(&server, provider).into_iter().find(|(_, events)| !texts(events, "tool.result").is_empty())
        });
        let count = |kind: &str| events.iter().filter(|event| event["kind"] == kind).count();
        let items = conversation(&server, &id, 1000, "");
        let of = |kind: &str| items.iter().filter(|item| item["type"] == kind).collect::<Vec<_>>();
        assert_eq!(of("prompt").len(), count("user.prompt"), "{recording}");
        assert_eq!(of("tool_call").len(), count("tool.call"), "{recording}");
        assert_eq!(of("turn_end").len(), count("turn.completed"), "{recording}");
        assert_eq!(of("error").len(), count("error"), "{recording}");
        assert!(of("tool_call").iter().all(|call| call["result"]["outcome"].is_string()), "{recording}: {items:?}");
        assert_eq!(conversation(&server, &id, 1, ""), items, "{recording}: page by page");
        assert_eq!(conversation(&server, &id, 3, "&texts=short"), items, "{recording}");
    }
}

#[test]
fn a_conversation_has_full_texts_on_request_and_exports_without_secrets() {
    let machine = Machine::new(PROGRAM);
    let (id, cwd) = (session(1), machine.project().to_str().unwrap().to_owned());
    let secret = "ghp_x9Kd82LmQp47TzWv61RbYn35HcJs08FgUeAi";
    let long: String = (0..400).map(|n| format!("line {n} of the answer\n")).collect();
    append(&machine.claude(&id), &prompt(&id, &uuid(1, 1), &cwd, &format!("Use the token {secret}, please")));
    append(&machine.claude(&id), &answer(&id, &uuid(1, 2), &cwd, &long));
    let server = machine.serve();
    assert!(server.session(&id)["id"].is_string());
    let items = eventually("the answer is read", || {
        let items = conversation(&server, &id, 100, "");
        items.iter().any(|item| item["type"] == "message").then_some(items)
    });
    let message = items.iter().find(|item| item["type"] == "message").unwrap();
    assert_eq!(message["text_ref"]["length"], long.len());
    assert!(!message["text"].as_str().unwrap().contains("line 200"));
    let items = conversation(&server, &id, 100, "&texts=whole");
    let message = items.iter().find(|item| item["type"] == "message").unwrap();
    assert_eq!((message["text"].as_str().unwrap(), &message["text_ref"]), (&*long, &Value::Null));

    let run = |words: &[&str]| {
        let output = machine.command(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let shown = run(&["show", &id, "--all"]);
    assert!(shown.contains("## Prompt ·") && shown.contains("\nline 200 of the answer\n"), "{shown}");
    assert!(shown.contains("> Use the token"), "{shown}");
    let markdown = run(&["export", &id, "--format", "md"]);
    assert!(markdown.contains("\nline 399 of the answer\n") && !markdown.contains(secret), "{markdown}");
    let lines = run(&["export", &id, "--format", "jsonl"]);
    assert!(!lines.contains(secret), "{lines}");
    let kinds: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].clone()).collect();
    assert_eq!(kinds, ["prompt", "message", "turn_end"]);
    let file = machine.home().join("talk.md");
    let refused = machine.command(&["export", "nothing-like-it", "--format", "md"]).output().unwrap();
    assert!(!refused.status.success() && refused.stdout.is_empty(), "{refused:?}");
    run(&["export", &id, "--format", "md", "--output", file.to_str().unwrap()]);
    assert_eq!(std::fs::read_to_string(file).unwrap(), markdown);
}

/// The sub-agents of a conversation: those attached to calls, and those without a known call.
fn subagents(items: &[Value]) -> (Vec<Value>, Vec<Value>) {
    let of_calls = items.iter().filter_map(|item| item["subagents"].as_array()).flatten().cloned().collect();
    (of_calls, items.iter().filter(|item| item["type"] == "subagent").cloned().collect())
}

#[test]
fn a_sub_agent_is_folded_into_the_tool_call_that_started_it() {
    for (recording, provider) in [
        ("claude/S12-subagent", "claude"),
        ("codex/S12-subagent", "codex"),
        ("gemini/S12-subagent", "gemini"),
        ("opencode/S12-subagent", "opencode"),
    ] {
        let machine = history(recording);
        let server = machine.serve();
        let child = eventually("a sub-agent's session", || {
            let listed = server.client.json(&format!("/api/v1/sessions?active=all&provider={provider}"))?;
            let is_child = |s: &&Value| s["parent_session_id"].is_string() && s["turns"].as_u64() > Some(0);
            listed["sessions"].as_array()?.iter().find(is_child).cloned()
        });
        let (id, parent) = (child["id"].as_str().unwrap(), child["parent_session_id"].as_str().unwrap());
        let items = eventually("the call that started it", || {
            let items = conversation(&server, parent, 1000, "");
            (!subagents(&items).0.is_empty()).then_some(items)
        });
        let (of_calls, alone) = subagents(&items);
        assert_eq!(of_calls.len(), 1, "{recording}: {of_calls:?}");
        assert_eq!((&of_calls[0]["session_id"], alone.len()), (&child["id"], 0), "{recording}: {alone:?}");
        assert_eq!(of_calls[0]["title"], child["title"], "{recording}");
        assert!(
            items.iter().all(|item| item["type"] != "prompt" || item["origin"] != "agent"),
            "{recording}: not opened"
        );
        assert_eq!(conversation(&server, parent, 1, ""), items, "{recording}: page by page");
        let own = conversation(&server, id, 1000, "");
        // Gemini's sub-agents end with a call and no final text.
        let work = own.iter().rev().find_map(|item| match item["type"].as_str() {
            Some("message") => item["text"].as_str(),
            Some("tool_call") => item["result"]["text"].as_str().filter(|text| !text.is_empty()),
            _ => None,
        });
        let work = work.unwrap_or_else(|| panic!("{recording}: {own:?}")).lines().next().unwrap().to_owned();

        let run = |words: &[&str]| {
            let output = machine.command(words).output().unwrap();
            assert!(output.status.success(), "{words:?}: {output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        let head = "\n> **Sub-agent** ".to_owned();
        let folded = run(&["show", parent, "--all"]);
        assert_eq!(folded.matches(&head).count(), 1, "{recording}: {folded}");
        assert!(!folded.contains(&format!("\n> {work}")), "{recording}: {folded}");
        let markdown = run(&["export", parent, "--format", "md"]);
        for text in [run(&["show", parent, "--all", "--subagents"]), markdown] {
            assert_eq!(text.matches(&head).count(), 1, "{recording}: {text}");
            assert!(text.contains(&format!("\n> {work}")), "{recording}: {work}: {text}");
        }
        let page = run(&["export", parent, "--format", "html"]);
        assert_eq!(page.matches("<details class=\"subagent\"").count(), 1, "{recording}");
        assert!(page.contains(&format!("<article id=\"s{id}-e")), "{recording}");
        let mut anchors: Vec<&str> =
            page.split("<article id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        let all = anchors.len();
        anchors.sort_unstable();
        anchors.dedup();
        assert_eq!(anchors.len(), all, "{recording}: each has an address of its own");
        // A session without sub-agents is unchanged.
        assert_eq!(subagents(&own), (Vec::new(), Vec::new()), "{recording}");
    }
}
