//! Sessions for other programs: `capture export --format otlp` and `capture dataset`.

use std::fs;

use serde_json::Value;
use tests::{
    program::{Machine, Server},
    transcript::{answer, append, prompt, session, uuid},
};

use super::PROGRAM;

/// Assembled at run time so that no file contains the whole secret.
fn secret() -> String {
    ["ghp_", "x7Kd93LmQp2RtYv8", "WzAc5EfGh1Jk4NbS6uXo"].concat()
}

/// A session of two turns, the first with a secret and a path below the home.
fn with_a_session(machine: &Machine) -> (Server, String) {
    let server = machine.serve();
    let (id, cwd) = (session(1), machine.project());
    let (path, cwd) = (machine.claude(&id), cwd.to_str().unwrap());
    let file = machine.home().join("notes.txt");
    append(&path, &prompt(&id, &uuid(1, 1), cwd, &format!("use {} for {}", secret(), file.display())));
    append(&path, &answer(&id, &uuid(1, 2), cwd, "first answer"));
    append(&path, &prompt(&id, &uuid(1, 3), cwd, "and the second\ntask"));
    append(&path, &answer(&id, &uuid(1, 4), cwd, "second answer"));
    server.caught_up(&id, &path);
    let ours = server.session(&id)["id"].as_str().unwrap().to_owned();
    (server, ours)
}

fn prints(machine: &Machine, arguments: &[&str]) -> String {
    let output = machine.command(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn an_otlp_export_contains_texts_only_on_request_and_no_secrets() {
    let machine = Machine::new(PROGRAM);
    let (_server, id) = with_a_session(&machine);
    let text = prints(&machine, &["export", &id, "--format", "otlp"]);
    assert!(!text.contains("answer") && !text.contains("notes.txt"), "{text}");
    let scopes: Vec<Value> =
        lines(&text).iter().map(|line| line["resourceSpans"][0]["scopeSpans"][0].clone()).collect();
    assert!(scopes.iter().all(|scope| scope["schemaUrl"].as_str().unwrap().ends_with("/1.41.0")), "{text}");
    let spans: Vec<&Value> = scopes.iter().flat_map(|scope| scope["spans"].as_array().unwrap()).collect();
    let named = |name: &str| spans.iter().filter(|span| span["name"] == name).count();
    assert_eq!((named("session"), named("invoke_agent claude")), (1, 2), "{text}");
    let trace = &spans[0]["traceId"];
    assert!(trace.as_str().unwrap().len() == 32 && spans.iter().all(|span| span["traceId"] == *trace));

    let text = prints(&machine, &["export", &id, "--format", "otlp", "--texts"]);
    assert!(text.contains("second answer") && text.contains("[redacted:") && !text.contains(&secret()[4..]), "{text}");
    let file = machine.project().join("session.otlp.jsonl");
    prints(&machine, &["export", &id, "--format", "otlp", "--texts", "-o", file.to_str().unwrap()]);
    assert_eq!(fs::read_to_string(file).unwrap(), text, "again the same");
}

#[test]
fn an_html_export_contains_no_secrets() {
    let machine = Machine::new(PROGRAM);
    let (_server, id) = with_a_session(&machine);
    let page = prints(&machine, &["export", &id, "--format", "html"]);
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"), "{page}");
    assert!(page.contains("second answer") && page.contains("[redacted:") && !page.contains(&secret()[4..]), "{page}");
    assert_eq!(page.matches("<article id=\"e").count(), page.matches("</article>").count());
}

#[test]
fn a_dataset_has_one_turn_per_line_without_secrets_or_home_paths() {
    let machine = Machine::new(PROGRAM);
    let (_server, id) = with_a_session(&machine);
    let text = prints(&machine, &["dataset", "--out", "-"]);
    let records = lines(&text);
    assert_eq!(records.len(), 2, "{text}");
    assert!(records.iter().all(|record| record["version"] == 1 && record["session"] == id.as_str()));
    let steps = records[0]["steps"].as_array().unwrap();
    assert_eq!((&steps[0]["type"], &steps[1]["type"]), (&"prompt".into(), &"message".into()), "{text}");
    let asked = steps[0]["text"].as_str().unwrap();
    assert!(asked.contains("[redacted:") && asked.ends_with("for ~/notes.txt"), "{asked}");
    assert!(!text.contains(&secret()[4..]) && !text.contains(machine.home().to_str().unwrap()), "{text}");
    assert_eq!(records[1]["outcome"], "completed", "{text}");

    let dir = machine.project().join("dataset");
    let to = dir.to_str().unwrap();
    prints(&machine, &["dataset", "--agent", "claude", "--out", to]);
    assert_eq!(fs::read_to_string(dir.join(format!("{id}.jsonl"))).unwrap(), text);
    let again = machine.command(&["dataset", "--out", to]).output().unwrap();
    assert!(!again.status.success() && String::from_utf8_lossy(&again.stderr).contains("--force"), "not overwritten");
    prints(&machine, &["dataset", "--out", to, "--force"]);
    assert_eq!(prints(&machine, &["dataset", "--agent", "codex", "--out", "-"]), "");
    assert_eq!(prints(&machine, &["dataset", "--since", "2026-11-22T00:00:00Z", "--out", "-"]), "", "older than that");
}
