//! Our own agent is never silent and never stuck: the messages it prints when something stops it, and the ways to
//! continue, with scripted models as strict as the vendors' APIs.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::Stdio,
};

use rustix::process::Signal;
use serde_json::{Value, json};
use tests::{
    models::{
        Api,
        script::{Call, Part, Script, Step, call, say},
    },
    terminal_user::{User, signal},
};

use super::own_agent::{House, key, tool};

const APIS: [Api; 4] = [Api::Anthropic, Api::Responses, Api::Chat, Api::Gemini];

#[test]
fn a_session_with_an_interrupted_answer_continues_in_every_api() {
    for api in APIS {
        let half = Step::Answer(vec![
            Part::Think("Let me see.".to_owned()),
            Part::Say("The first point.".to_owned()),
            Part::Until("never".to_owned()),
            Part::Say("The end.".to_owned()),
        ]);
        let script = Script::default().lane("explain", [half]).lane("on", [say("The second."), say("The third.")]);
        let house = House::new(api, script);
        let mut child = house.command(&["run", "--json", "explain"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        lines.find(|line| line.contains(r#""type":"text""#)).unwrap();
        signal(i32::try_from(child.id()).unwrap(), Signal::INT);
        lines.for_each(drop);
        assert_eq!(child.wait().unwrap().code(), Some(130), "{api:?}");
        for _ in 0..2 {
            let run = house.run(&["--continue", "go on"]);
            assert_eq!(run.code, Some(0), "{api:?} {run:?}");
        }
        house.is_clean();
    }
}

#[test]
fn duplicate_tool_call_ids_are_accepted_by_every_api() {
    for api in APIS {
        let again = || {
            let read = tool("read", json!({ "path": "notes.txt" }));
            call(Call { id: Some("dup1".to_owned()), ..read })
        };
        let script = Script::default()
            .lane("read", [again(), again(), say("Read.")])
            .lane("more", [again(), say("Read again.")])
            .lane("once", [say("Once.")]);
        let house = House::new(api, script);
        for words in [&["read"][..], &["--continue", "more"]] {
            let run = house.run(words);
            assert_eq!(run.code, Some(0), "{api:?} {run:?}");
        }
        // As in a file written by another program, or by a version that did not distinguish the two.
        let text = fs::read_to_string(house.file()).unwrap();
        let lines: Vec<String> = text
            .lines()
            .map(|line| {
                let mut entry: Value = serde_json::from_str(line).unwrap();
                let message = &mut entry["message"];
                if message["role"] == "toolResult" {
                    message["toolCallId"] = "dup1".into();
                }
                for block in message["content"].as_array_mut().into_iter().flatten() {
                    if block["type"] == "toolCall" {
                        block["id"] = "dup1".into();
                    }
                }
                entry.to_string()
            })
            .collect();
        fs::write(house.file(), lines.join("\n") + "\n").unwrap();
        let run = house.run(&["--continue", "once"]);
        assert_eq!((run.code, run.out.as_str()), (Some(0), "Once.\n"), "{api:?} {run:?}");
        house.is_clean();
    }
}

#[test]
fn foreign_lines_in_a_session_file_are_reported_and_the_history_is_kept() {
    let script = Script::default().lane("notes", [say("Two lines.")]).lane("again", [say("Still two.")]);
    let house = House::new(Api::Anthropic, script);
    assert_eq!(house.run(&["Read the notes"]).code, Some(0));
    let mut file = fs::File::options().append(true).open(house.file()).unwrap();
    file.write_all(b"{\"type\":\"note\"}\n").unwrap();
    let run = house.run(&["--continue", "again"]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "Still two.\n"), "{run:?}");
    let path = house.file();
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(run.err.contains(name) && run.err.contains("does not continue the conversation before it"), "{run:?}");
    let text = fs::read_to_string(&path).unwrap();
    let answer = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let read = answer.filter(|entry| entry["data"]["phase"] == "sent").map(|entry| entry["data"]["blocks"].as_u64());
    let blocks: Vec<u64> = read.flatten().collect();
    assert!(blocks[1] > blocks[0] + 1, "the model gets what was said before: {blocks:?}");
    house.is_clean();
}

#[test]
fn stopped_background_commands_are_reported_to_the_user_and_the_model() {
    let serve = tool("bash", json!({ "command": "sleep 600", "background": true }));
    let script = Script::default().lane("serve", [call(serve), say("It runs.")]).lane("again", [say("Gone.")]);
    let house = House::new(Api::Anthropic, script);
    let mut user = house.at_terminal("serve");
    user.expect("p1 (sleep 600) was stopped; background commands end with each");
    assert_eq!(user.end().1, 0);
    assert!(!house.runs("600"));
    assert_eq!(house.run(&["--continue", "again"]).code, Some(0));
    let text = fs::read_to_string(house.file()).unwrap();
    assert_eq!(text.matches("previous process: p1 (`sleep 600`)").count(), 1, "{text}");
    house.is_clean();
}

#[test]
fn a_missing_variable_is_reported_with_the_setting_that_passes_it() {
    let migrate = tool("bash", json!({ "command": "echo \"$APP_DATABASE_URL is not set\" >&2; exit 1" }));
    let script = Script::default().lane("migrate", [call(migrate), say("It failed.")]);
    let house = House::new(Api::Anthropic, script);
    let words = "\"$PROGRAM\" agent run migrate";
    let more = [("OWN_AGENT", key()), ("APP_DATABASE_URL", "postgres://me:hunter2@db/x".to_owned())];
    let more: Vec<(&str, &str)> = more.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let mut user = User::start_with(&house.machine, words, &more);
    user.expect("or say what to do instead: ");
    user.types("y\n");
    let shown = user.expect("in the configuration passes it");
    // The line is wrapped between words.
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("agent.pass = [\"APP_DATABASE_URL\"]") && !shown.contains("hunter2"), "{shown}");
    user.end();
    let results = house.model.results("migrate");
    assert!(
        results[0].contains("APP_DATABASE_URL is set but not passed") && !results[0].contains("hunter2"),
        "{results:?}"
    );
    house.is_clean();
}

#[test]
fn the_first_line_shows_session_model_and_mode() {
    let script = Script::default().lane("plan", [say("Here.")]).lane("ask", [say("There.")]);
    let house = House::new(Api::Anthropic, script);
    let first = house.run(&["plan", "--mode", "plan", "--max-turns", "7"]);
    assert_eq!(first.code, Some(0), "an option behind the prompt counts: {first:?}");
    let lines: Vec<&str> = first.err.lines().collect();
    let name = house.file().file_stem().unwrap().to_str().unwrap().to_owned();
    let id = &name[name.len() - 8..];
    let [line] = lines[..] else { panic!("{lines:?}") };
    assert!(line.starts_with(&format!("capture: {id} · mine/claude-sonnet-4-5 at http://127.0.0.1:")), "{line}");
    assert!(line.ends_with(" · plan (only reads) · no sandbox · at most 7 answers a prompt"), "{line}");
    let next = house.run(&["--session", id, "ask"]);
    assert_eq!(next.code, Some(0), "{next:?}");
    assert!(next.err.starts_with(&format!("capture: continues {id} (1 turn) · ")), "{}", next.err);
    let quiet = house.run(&["--continue", "ask", "-q"]);
    assert_eq!((quiet.out.as_str(), quiet.err.as_str()), ("There.\n", ""));
    let text = fs::read_to_string(house.file()).unwrap();
    assert!(
        text.contains("Permission: mode plan: only reads") && text.contains("Permission: mode ask: reads"),
        "{text}"
    );
    house.is_clean();
}

#[test]
fn without_a_policy_doctor_and_policy_explain_the_own_agents_default() {
    let house = House::new(Api::Anthropic, Script::default());
    let printed = |words: &[&str]| {
        let output = house.machine.command(words).current_dir(house.machine.project()).output().unwrap();
        String::from_utf8(output.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let rule = "does not exist: capture's own agent reads the workspace without asking; you decide everything else";
    assert!(printed(&["doctor"]).contains(rule));
    assert!(printed(&["policy", "check"]).contains(rule));
    let own = |command: &str| printed(&["policy", "test", "--agent", "capture", command]);
    assert!(own("cat notes.txt").starts_with("allow: "), "{}", own("cat notes.txt"));
    assert!(own("touch made").starts_with("ask: ") && own("cat .env").starts_with("ask: "));
    assert!(printed(&["policy", "test", "--agent", "claude", "cat notes.txt"]).starts_with("ask: "));
    assert!(printed(&["policy", "test", "cat notes.txt"]).starts_with("ask: "));
    let _server = house.machine.serve();
    assert!(printed(&["doctor"]).contains(rule), "{}", printed(&["doctor"]));
}
