//! Full-text search from outside: new text is found after a moment, without secrets, also after damage to the index.

use std::{
    fs,
    time::{Duration, Instant},
};

use serde_json::Value;
use tests::{
    PATIENCE, eventually,
    program::{Machine, Server},
    transcript::{answer, append, prompt, session, uuid},
    within,
};

use super::PROGRAM;

/// Assembled at run time so that no file contains the whole secret.
fn secret() -> String {
    ["ghp_", "x7Kd93LmQp2RtYv8", "WzAc5EfGh1Jk4NbS6uXo"].concat()
}

fn search(server: &Server, query: &str) -> Option<Value> {
    server.client.json(&format!("/api/v1/search?{query}"))
}

/// Waits for a page with this many matches.
fn found(server: &Server, query: &str, matches: u64) -> Value {
    within(PATIENCE, || search(server, query).filter(|page| page["matches"] == matches)).unwrap_or_else(|| {
        let (page, index) = (search(server, query), server.client.json("/api/v1/search/index"));
        panic!("{query}: not {matches} matches but {page:?}, index {index:?}")
    })
}

fn says(machine: &Machine, arguments: &[&str]) -> (bool, String) {
    let output = machine.command(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text)
}

#[test]
fn new_transcript_lines_are_searchable_within_seconds() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let (id, cwd) = (session(1), machine.project());
    let (path, cwd) = (machine.claude(&id), cwd.to_str().unwrap());
    append(&path, &prompt(&id, &uuid(1, 1), cwd, "where is the zanzibar constant"));
    let page = found(&server, "q=zanzibar", 1);
    assert!(page["indexed"].as_u64() <= page["total"].as_u64());

    let mut waits = Vec::new();
    for n in 2..8 {
        append(&path, &prompt(&id, &uuid(1, 2 * n), cwd, &format!("look for quokka{n}")));
        let began = Instant::now();
        found(&server, &format!("q=quokka{n}"), 1);
        waits.push(began.elapsed());
        append(&path, &answer(&id, &uuid(1, 2 * n + 1), cwd, "done"));
    }
    waits.sort_unstable();
    println!("from a line to a hit: {waits:?}");
    // The machine may be busy, so the limit is generous and applies to the median.
    assert!(waits[2] < Duration::from_secs(3), "{waits:?}");

    let hit = &found(&server, "q=zanzibar", 1)["hits"][0];
    assert_eq!((hit["kind"].as_str(), hit["agent"].as_str()), (Some("prompt"), Some("claude")));
    assert_eq!(hit["turn"], 1);
    assert_eq!(hit["snippet"]["text"], "where is the zanzibar constant");
    assert_eq!(hit["snippet"]["highlights"], serde_json::json!([[13, 21]]));
    let source = &hit["source"];
    let (offset, length) = (source["offset"].as_u64().unwrap() as usize, source["length"].as_u64().unwrap() as usize);
    let file = fs::read_to_string(source["path"].as_str().unwrap()).unwrap();
    assert!(file[offset..offset + length].contains("zanzibar"));
    let owner = server.session(&id);
    assert_eq!(hit["session_id"], owner["id"]);
    found(&server, &format!("q=quokka*&session={id}"), 6);
    found(&server, "q=quokka*&agent=codex", 0);

    let (ok, text) = says(&machine, &["search", "zanzibar"]);
    assert!(ok && text.contains("where is the zanzibar constant") && text.contains("1 match"), "{text}");
    let (ok, text) = says(&machine, &["search", "kind:answer done", "--format", "{{ session_id }}"]);
    assert!(ok && text.lines().all(|line| line == owner["id"]), "{text}");
}

#[test]
fn a_query_that_does_not_parse_names_the_column() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let answer = server.client.get("/api/v1/search?q=agent:nobody").unwrap();
    assert_eq!(answer.status, 400);
    let error = answer.json()["error"].clone();
    assert_eq!(error["code"], "bad_parameter");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("q: column 7: unknown agent `nobody`"), "{message}");
    let (ok, text) = says(&machine, &["search", "foo (bar"]);
    assert!(!ok && text.contains("column 5: the `(` is not closed"), "{text}");
    assert_eq!(server.client.get("/api/v1/search").unwrap().status, 400);
}

#[test]
fn search_redacts_secrets_and_rebuilds_a_damaged_index() {
    // Without the finding that is raised if the end of the turn is read live.
    const MESSAGES: &str = "q=wombatville&kind=prompt,answer&sort=time";
    let machine = Machine::new(PROGRAM);
    let mut server = machine.serve();
    let (id, cwd) = (session(1), machine.project());
    let (path, cwd) = (machine.claude(&id), cwd.to_str().unwrap());
    append(&path, &prompt(&id, &uuid(1, 1), cwd, &format!("deploy with {} to wombatville", secret())));
    append(&path, &answer(&id, &uuid(1, 2), cwd, "deployed to wombatville"));
    for damage in 0..4 {
        let page = found(&server, MESSAGES, 2);
        assert!(!page.to_string().contains(&secret()[4..]), "{page}");
        assert!(page.to_string().contains("[redacted:"), "{page}");
        // The index may be replaced between the two searches.
        let text = eventually("the command finds it", || {
            Some(says(&machine, &["search", "wombatville"]).1).filter(|text| text.contains("redacted"))
        });
        assert!(!text.contains(&secret()[4..]), "{text}");
        let index = machine.data().join("index");
        match damage {
            0 => {
                // On a busy machine the server may ask to try again.
                eventually("the rebuild begins", || says(&machine, &["search", "--rebuild"]).0.then_some(()));
                continue;
            }
            1 => {
                assert!(server.stop().success());
                fs::remove_dir_all(index).unwrap();
            }
            2 => {
                server.kill();
                fs::write(index.join("meta.json"), "x").unwrap();
            }
            _ => server.kill(),
        }
        server = machine.serve();
    }
    found(&server, MESSAGES, 2);
    eventually("the index is ready", || {
        server.client.json("/api/v1/search/index").filter(|status| status["state"] == "ready")
    });
    let (ok, text) = says(&machine, &["search", "--status"]);
    assert!(ok && text.starts_with("ready: "), "{text}");
    let sources = server.client.json("/api/v1/health/sources").unwrap();
    let row = sources["sources"].as_array().unwrap().iter().find(|row| row["name"] == "search").unwrap().clone();
    assert!(row["active"] == true && row["trouble"].is_null(), "{row}");
    assert!(server.client.get("/metrics").unwrap().text().contains("capture_search_texts"));
}
