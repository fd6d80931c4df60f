//! No list or argument of the command line is truncated silently.

use std::{
    fs::OpenOptions,
    io::Write,
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use tests::{
    PATIENCE, eventually,
    program::Machine,
    terminal_user::status_number,
    transcript::{answer, append, prompt, session, uuid},
};

use super::PROGRAM;

fn ps(machine: &Machine, more: &[&str]) -> Value {
    let output = machine.command(&[&["ps", "--json"], more].concat()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn listed(machine: &Machine, more: &[&str]) -> usize {
    ps(machine, more)["sessions"].as_array().unwrap().len()
}

#[test]
fn ps_lists_sessions_of_every_state_across_pages() {
    const SESSIONS: usize = 1_050;
    let machine = Machine::new(PROGRAM);
    for n in 1..=SESSIONS as u64 {
        let (name, cwd) = (session(n), "/work".to_owned());
        let mut file = OpenOptions::new().create_new(true).write(true).open(machine.claude(&name)).unwrap();
        file.write_all(prompt(&name, &uuid(n, 1), &cwd, "question").as_bytes()).unwrap();
        file.write_all(answer(&name, &uuid(n, 2), &cwd, "answer").as_bytes()).unwrap();
    }
    let server = machine.serve();
    eventually("all is read", || {
        let more = server.client.json("/api/v1/sessions?active=all&limit=1000")?["next_cursor"].as_str()?.to_owned();
        let rest = server.client.json(&format!("/api/v1/sessions?active=all&limit=1000&cursor={more}"))?;
        (rest["sessions"].as_array()?.len() == SESSIONS - 1_000).then_some(())
    });
    let all = ps(&machine, &["--all"]);
    assert_eq!((all["sessions"].as_array().unwrap().len(), &all["next_cursor"]), (SESSIONS, &Value::Null));
    assert_eq!(listed(&machine, &["--all", "--limit", "1020"]), 1_020);
    assert_eq!(listed(&machine, &["--all", "--limit", "3"]), 3);
    assert!(ps(&machine, &["--all", "--limit", "3"])["next_cursor"].is_string());
    let states = || -> Vec<String> {
        let all = ps(&machine, &["--all"]);
        let of = |session: &Value| session["status"]["state"].as_str().map(str::to_owned);
        all["sessions"].as_array().unwrap().iter().filter_map(of).collect()
    };
    // The states of the last sessions may change once more in the meantime.
    eventually("each list has the sessions in its state", || {
        let states = states();
        let is_right = |state: &&str| {
            listed(&machine, &["--state", state]) == states.iter().filter(|other| other == state).count()
        };
        ["running", "waiting", "idle", "exited", "unknown"].iter().all(is_right).then_some(())
    });
    let states = states();
    // These states are in none of the lists of active sessions.
    let old = states.iter().filter(|state| matches!(state.as_str(), "exited" | "idle" | "unknown")).count();
    assert!(old > 1_000, "{states:?}");
}

#[test]
fn a_request_exceeding_the_label_limit_is_refused_entirely() {
    let machine = Machine::new(PROGRAM);
    let name = session(1);
    append(&machine.claude(&name), &prompt(&name, &uuid(1, 1), "/work", "question"));
    let server = machine.serve();
    server.caught_up(&name, &machine.claude(&name));
    let put = |labels: &Value| {
        let path = format!("/api/v1/sessions/{name}/labels");
        server.client.send("PUT", &path, Some(&json!({ "labels": labels }).to_string()), PATIENCE).unwrap()
    };
    let many =
        |from: usize, to: usize| (from..to).map(|n| (format!("k{n}"), json!("v"))).collect::<serde_json::Map<_, _>>();
    assert_eq!(put(&Value::Object(many(0, 32))).status, 200);
    let refused = put(&Value::Object(many(31, 33)));
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (409, &json!("conflict")), "{}", refused.text());
    assert_eq!(server.session(&name)["labels"].as_object().unwrap().len(), 32);
    let swapped = put(&json!({ "k0": null, "k32": "v" }));
    assert_eq!(swapped.status, 200, "{}", swapped.text());
    let refused = machine.command(&["label", &name, "one=more"]).output().unwrap();
    assert_ne!(refused.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("at most 32 labels"), "{refused:?}");
}

#[test]
fn notes_are_written_listed_and_found() {
    let machine = Machine::new(PROGRAM);
    let name = session(1);
    append(&machine.claude(&name), &prompt(&name, &uuid(1, 1), "/work", "question"));
    let server = machine.serve();
    server.caught_up(&name, &machine.claude(&name));
    let run = |words: &[&str]| {
        let output = machine.command(words).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(run(&["note", &name]).1, "no notes\n");
    let (code, text, _) = run(&["note", &name, "waits", "for the quokka"]);
    assert!(code == Some(0) && text.ends_with("  waits for the quokka\n"), "{text}");
    assert_eq!(run(&["note", &name, "two\nlines \u{202e}"]).0, Some(0));
    let (_, text, _) = run(&["note", &name]);
    assert!(text.contains("two\n  lines") && !text.contains('\u{202e}'), "{text}");
    let notes: Value = serde_json::from_str(&run(&["note", &name, "--json"]).1).unwrap();
    let texts: Vec<_> = notes["notes"].as_array().unwrap().iter().map(|note| note["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["waits for the quokka", "two\nlines \u{202e}"]);
    tests::eventually("searches find it", || run(&["search", "quokka"]).1.contains("quokka").then_some(()));

    let path = format!("/api/v1/sessions/{name}/notes");
    let post = |text: &str| {
        let body = json!({ "text": text }).to_string();
        server.client.send("POST", &path, Some(&body), PATIENCE).unwrap().status
    };
    assert_eq!([post(" "), post(&"x".repeat(2_001)), post(&"é".repeat(2_000))], [400, 400, 200]);
    let (code, _, said) = run(&["note", "nobody", "text"]);
    assert!(code != Some(0) && said.contains("nobody"), "{said}");
}

#[test]
fn a_command_whose_output_pipe_is_closed_reports_no_error() {
    let machine = Machine::new(PROGRAM);
    let name = session(1);
    append(&machine.claude(&name), &prompt(&name, &uuid(1, 1), "/work", &"question ".repeat(20_000)));
    let server = machine.serve();
    server.caught_up(&name, &machine.claude(&name));
    for arguments in [
        &["ps", "--json"][..],
        &["ps"],
        &["show", &name, "--json"],
        &["events", &name, "--json"],
        &["audit", "show"],
        &["doctor"],
    ] {
        // The reading end is closed before the command writes anything.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command: Command = machine.command(arguments);
        let output = command.stdout(Stdio::from(writer)).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("panicked") && output.status.code() != Some(101), "{arguments:?}: {said}");
        assert!(!said.contains("Broken pipe"), "{arguments:?}: {said}");
    }
}

#[test]
fn memory_used_by_an_import_is_released() {
    const SESSIONS: u64 = 24;
    const ANSWERS: u64 = 40;
    const ANSWER_BYTES: usize = 60_000;
    let machine = Machine::new(PROGRAM);
    machine.configure("[search]\nenabled = false\n");
    let last = |n| (session(n), machine.claude(&session(n)));
    for n in 1..=SESSIONS {
        let (name, path) = last(n);
        let text: String = (0..ANSWER_BYTES / 8).map(|word| format!("{:07} ", word as u64 * n)).collect();
        let lines = (2..2 + ANSWERS).map(|line| answer(&name, &uuid(n, line), "/work", &text));
        append(&path, &(prompt(&name, &uuid(n, 1), "/work", "question") + &lines.collect::<String>()));
    }
    let server = machine.serve();
    let memory = || status_number(server.pid().try_into().unwrap(), "RssAnon").unwrap();
    let mut most = 0;
    eventually("all is read", || {
        most = most.max(memory());
        let page = server.client.json("/api/v1/sessions?active=all")?;
        (page["sessions"].as_array()?.len() as u64 == SESSIONS).then_some(())
    });
    for n in 1..=SESSIONS {
        let (name, path) = last(n);
        server.caught_up(&name, &path);
        most = most.max(memory());
    }
    println!("{most} KiB at most");
    // The memory of a server that has read as many sessions with hardly any text.
    let bare = Machine::new(PROGRAM);
    bare.configure("[search]\nenabled = false\n");
    for n in 1..=SESSIONS {
        append(&bare.claude(&session(n)), &prompt(&session(n), &uuid(n, 1), "/work", "question"));
    }
    let bare_server = bare.serve();
    for n in 1..=SESSIONS {
        bare_server.caught_up(&session(n), &bare.claude(&session(n)));
    }
    let least = status_number(bare_server.pid().try_into().unwrap(), "RssAnon").unwrap();
    println!("{least} KiB without texts");
    let limit = least + (most.saturating_sub(least)) / 3;
    eventually("the memory of the import is given back", || (memory() <= limit).then_some(()));
}
