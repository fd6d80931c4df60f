//! Sessions that the server starts: our own agent and others, controlled over HTTP and WebSocket, across server
//! restarts.

use std::{fs, time::Duration};

use serde_json::{Value, json};
use tests::{
    eventually,
    http::Client,
    models::{
        Api,
        script::{Part, Script, Step, call, hold, say},
    },
    owned,
    program::{Machine, Server},
};

use super::{
    own_agent::{House, key, tool},
    owned::{machine, steps},
};

const PATIENCE: Duration = Duration::from_secs(30);

/// A server with the key of the model in its environment.
fn serve(house: &House) -> Server {
    house.machine.serve_with(&format!("OWN_AGENT={}; export OWN_AGENT", key()))
}

fn post(client: &Client, path: &str, body: &Value) -> (u16, Value) {
    let answer = client.post(path, &[], &body.to_string(), PATIENCE).unwrap();
    (answer.status, answer.json())
}

#[track_caller]
fn start(server: &Server, body: &Value) -> Value {
    let (status, started) = post(&server.client, "/api/v1/sessions", body);
    assert_eq!(status, 200, "{started}");
    started
}

fn input(client: &Client, session: &str, body: &Value) -> (u16, Value) {
    post(client, &format!("/api/v1/sessions/{session}/input"), body)
}

/// Waits until a session has this state and reason.
#[track_caller]
fn is_in(client: &Client, session: &str, state: &str, reason: &str) -> Value {
    eventually(&format!("{session} is {state} {reason}"), || {
        let view = client.json(&format!("/api/v1/sessions/{session}"))?;
        (view["status"]["state"] == state && view["status"]["reason"] == reason).then_some(view)
    })
}

fn is_there(pid: &Value) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[track_caller]
fn has_ended(pid: &Value) {
    eventually("its process has ended", || (!is_there(pid)).then_some(()));
}

#[test]
fn a_session_started_over_http_accepts_inputs() {
    let script = Script::default()
        .lane(
            "begin",
            [
                Step::Answer(vec![
                    Part::Say("I look. ".to_owned()),
                    Part::Until("look".to_owned()),
                    Part::Call(tool("read", json!({ "path": "notes.txt" }))),
                ]),
                say("Two lines."),
            ],
        )
        .lane("left", [say("Left it is.")])
        .lane("afterwards", [say("That too.")])
        .lane("wait", [hold("I wait", "never", " on.")])
        .lane("again", [call(tool("bash", json!({ "command": "touch made" }))), say("Done.")]);
    let house = House::new(Api::Anthropic, script);
    let server = serve(&house);
    let cwd = house.machine.project();
    let started = start(&server, &json!({ "cwd": cwd, "name": "helper", "prompt": "begin" }));
    let session = started["session_id"].as_str().unwrap().to_owned();
    assert_eq!(started["agent"], "capture", "{started}");
    let client = &server.client;
    is_in(client, &session, "running", "streaming");

    // While the agent works.
    let refused = input(client, &session, &json!({ "do": "prompt", "text": "x" }));
    assert_eq!((refused.0, &refused.1["error"]["code"]), (409, &json!("conflict")), "{refused:?}");
    let (status, steer) = input(client, &session, &json!({ "do": "steer", "text": "go left" }));
    assert_eq!((status, &steer["outcome"]), (200, &json!("queued")), "{steer}");
    let (status, later) = input(client, &session, &json!({ "do": "follow_up", "text": "and afterwards" }));
    assert_eq!((status, &later["outcome"]), (200, &json!("queued")), "{later}");
    house.model.tell("look");
    // Between two prompts the session is waiting for a moment, too.
    let said = eventually("both messages are answered", || {
        let said = fs::read_to_string(house.file()).ok()?;
        (said.contains("Left it is.") && said.contains("That too.")).then_some(said)
    });
    is_in(client, &session, "waiting", "turn_complete");
    assert!(said.contains(steer["message"].as_str().unwrap()), "the message has the id that was told");

    // Impossible inputs are refused, and possible ones accepted.
    let (status, compact) = input(client, &session, &json!({ "do": "compact" }));
    assert_eq!((status, &compact["outcome"]), (200, &json!("done")), "there is nothing to compact yet: {compact}");
    let (status, model) = input(client, &session, &json!({ "do": "set_model", "model": "nobody/x" }));
    assert_eq!(status, 409, "{model}");
    let (status, model) = input(client, &session, &json!({ "do": "set_model", "model": "mine/claude-haiku-4-5" }));
    assert_eq!((status, &model["outcome"]), (200, &json!("done")), "{model}");
    for bad in [json!({ "do": "fly" }), json!({ "do": "prompt" }), json!({ "do": "abort", "text": "x" }), json!({})] {
        assert_eq!(input(client, &session, &bad).0, 400, "{bad}");
    }
    let typed = input(client, &session, &json!({ "keys": ["esc"] }));
    assert_eq!(typed.0, 409, "{typed:?}");

    // A waiting turn is paused, resumed and ended.
    let (status, landed) = input(client, &session, &json!({ "do": "prompt", "text": "wait" }));
    assert_eq!((status, &landed["outcome"]), (200, &json!("landed")), "{landed}");
    assert!(landed["entry"].is_string(), "{landed}");
    is_in(client, &session, "running", "streaming");
    assert_eq!(input(client, &session, &json!({ "do": "pause" })).0, 200);
    assert_eq!(input(client, &session, &json!({ "do": "abort" })).0, 200);
    is_in(client, &session, "waiting", "interrupted");

    // A prompt queued with `capture queue` is sent to the session.
    let words = ["queue", &session, "again please"];
    let queued = house.machine.command(&words).output().unwrap();
    assert!(queued.status.success(), "{queued:?}");
    // After an interrupt the user decides whether to continue.
    let (status, _) = input(client, &session, &json!({ "do": "prompt", "text": "again" }));
    assert_eq!(status, 200);
    is_in(client, &session, "waiting_approval", "tool");

    // Limits apply immediately: the call is not run although it is allowed.
    let (status, limited) = input(client, &session, &json!({ "do": "limit", "limits": { "calls": 0 } }));
    assert_eq!((status, &limited["outcome"]), (200, &json!("done")), "{limited}");
    let asked = eventually("it is asked", || {
        let list = client.json("/api/v1/approvals?state=pending")?;
        list["approvals"].as_array()?.first().cloned()
    });
    let allow = ["approve", asked["id"].as_str().unwrap()];
    assert!(house.machine.command(&allow).output().unwrap().status.success());
    eventually("the limit is told", || {
        let view = client.json(&format!("/api/v1/sessions/{session}"))?;
        (view["status"]["state"] == "waiting").then_some(())
    });
    assert!(!cwd.join("made").exists());

    let (status, _) = input(client, &session, &json!({ "do": "end" }));
    assert_eq!(status, 200);
    has_ended(&started["pid"]);
    is_in(client, &session, "exited", "clean");
    house.is_clean();
}

#[test]
fn a_session_outlives_the_server_that_started_it() {
    let script =
        Script::default().lane("begin", [hold("I begin", "go", " and end.")]).lane("again", [say("Here I am.")]);
    let house = House::new(Api::Anthropic, script);
    let server = serve(&house);
    let started = start(&server, &json!({ "cwd": house.machine.project(), "prompt": "begin" }));
    let session = started["session_id"].as_str().unwrap().to_owned();
    is_in(&server.client, &session, "running", "streaming");
    server.kill();
    assert!(is_there(&started["pid"]));
    house.model.tell("go");
    let server = serve(&house);
    is_in(&server.client, &session, "waiting", "turn_complete");
    let sent = eventually("it is connected", || {
        let (status, sent) = input(&server.client, &session, &json!({ "do": "prompt", "text": "again" }));
        (status == 200).then_some(sent)
    });
    assert_eq!(sent["run"], started["run_id"], "{sent}");
    eventually("it answers", || fs::read_to_string(house.file()).ok().filter(|text| text.contains("Here I am.")));
    is_in(&server.client, &session, "waiting", "turn_complete");
    assert_eq!(input(&server.client, &session, &json!({ "do": "end" })).0, 200);
    has_ended(&started["pid"]);

    // Another process continues the session.
    let name = house.entries("capture.frozen").len();
    assert_eq!(name, 1);
    let header: Value =
        serde_json::from_str(fs::read_to_string(house.file()).unwrap().lines().next().unwrap()).unwrap();
    let more = json!({ "cwd": house.machine.project(), "continues": header["id"], "prompt": "again", "mode": "plan" });
    let more = start(&server, &more);
    assert_eq!(more["session_id"], session.as_str(), "{more}");
    is_in(&server.client, &session, "waiting", "turn_complete");
    assert_eq!(input(&server.client, &session, &json!({ "do": "end" })).0, 200);
    has_ended(&more["pid"]);
}

#[test]
fn an_invalid_session_start_is_refused_with_the_reason() {
    let house = House::new(Api::Anthropic, Script::default());
    let server = serve(&house);
    let cwd = house.machine.project();
    for (body, status, told) in [
        (json!({ "cwd": "project" }), 400, "absolute"),
        (json!({ "cwd": "/nowhere" }), 400, "cwd"),
        (json!({ "cwd": cwd, "agent": "aider" }), 400, "aider"),
        (json!({ "cwd": cwd, "agent": "claude" }), 400, "prompt"),
        (json!({ "cwd": cwd, "agent": "claude", "prompt": "x", "model": "a/b" }), 400, "own agent"),
        (json!({ "cwd": cwd, "skill": "review" }), 409, "not available yet"),
        (json!({ "cwd": cwd, "wait_s": 0 }), 400, "wait_s"),
        (json!({ "cwd": cwd, "mode": "accept-edits" }), 400, "accept-edits"),
        (json!({ "cwd": cwd, "model": "nobody/x" }), 409, "nobody"),
        (json!({ "cwd": cwd, "continues": "12345" }), 409, "12345"),
    ] {
        let (got, answer) = post(&server.client, "/api/v1/sessions", &body);
        assert_eq!(got, status, "{body} {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(told), "{body} {answer}");
    }
    // An agent is refused as well.
    let socket = house.machine.data().join("capture.sock");
    let token = server.client.token.clone();
    let body = json!({ "cwd": cwd }).to_string();
    let script = format!(
        "/usr/bin/curl -s --unix-socket {} -H 'Authorization: Bearer {token}' -H 'Content-Type: application/json' \
         -d '{body}' http://localhost/api/v1/sessions",
        socket.display()
    );
    let refused = house.machine.agents_shell("claude", &script).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stdout).contains("agents_peer"), "{refused:?}");
    let runs = server.client.json("/api/v1/runs").unwrap();
    assert!(runs["runs"].as_array().unwrap().iter().all(|run| run["state"] != "running"), "{runs}");
}

/// A server whose agents are simulated.
fn serve_simulated(machine: &Machine, agent: &str, all: &[owned::Step]) -> (Server, std::path::PathBuf) {
    let steps = steps(machine, agent, all);
    let server = machine.serve_with(&format!("{}={}; export {0}", owned::STEPS, steps.display()));
    (server, steps)
}

#[test]
fn other_agents_are_started_over_their_protocol() {
    for agent in ["claude", "codex", "gemini"] {
        let machine = machine("");
        let (server, steps) = serve_simulated(&machine, agent, &[owned::Step::Say("I did it.".into())]);
        let body = json!({ "agent": agent, "cwd": machine.project(), "name": agent, "prompt": "do it" });
        let started = start(&server, &body);
        let client = &server.client;
        // The agent chooses the id of its session.
        let run = started["run_id"].as_str().unwrap();
        let session = eventually("the agent's session is known", || {
            let run = client.json(&format!("/api/v1/runs/{run}"))?;
            let session = client.json(&format!("/api/v1/sessions/{}", run["session_id"].as_str()?))?;
            (session["provider_session_id"] == owned::SESSION && session["status"]["state"] == "waiting")
                .then(|| session["id"].as_str().unwrap().to_owned())
        });
        for what in ["steer", "follow_up"] {
            let (status, refused) = input(client, &session, &json!({ "do": what, "text": "x" }));
            assert_eq!(status, 409, "{agent} {refused}");
            assert!(refused["error"]["message"].as_str().unwrap().contains("does not accept"), "{refused}");
        }
        let (status, sent) = input(client, &session, &json!({ "do": "prompt", "text": "and once more" }));
        assert_eq!(status, 200, "{agent} {sent}");
        let heard = format!("{}.heard", steps.display());
        eventually("the agent hears the prompt", || {
            fs::read_to_string(&heard).ok().filter(|text| text.contains("and once more"))
        });
        is_in(client, &session, "running", "thinking");
        let (status, again) = input(client, &session, &json!({ "do": "prompt", "text": "no" }));
        assert_eq!(status, 409, "{agent} {again}");
        let (status, abort) = input(client, &session, &json!({ "do": "abort" }));
        // The simulated Codex does not report a second turn, and only a reported turn can be aborted.
        assert_eq!(status, if agent == "codex" { 409 } else { 200 }, "{agent} {abort}");
        assert_eq!(input(client, &session, &json!({ "do": "end" })).0, 200, "{agent}");
        has_ended(&started["pid"]);
    }
}

#[test]
fn rules_on_a_loop_finding_steer_and_limit_the_session() {
    let reads = || call(tool("read", json!({ "path": "notes.txt" })));
    let script = Script::default()
        .lane("read", [reads(), reads(), reads(), reads(), hold("I go on", "never", ".")])
        .lane("Stop", [say("I stopped.")]);
    let house = House::new(Api::Anthropic, script);
    let rules = "[[actions]]\non = [\"loop\"]\ndo = \"steer\"\ntext = \"Stop reading.\"\n\
        [[actions]]\non = [\"loop\"]\ndo = \"limit\"\nlimits = { calls = 100 }\n\
        [monitor]\nloop_repeats = 4\n";
    let config = house.machine.home().parent().unwrap().join("config/capture/config.toml");
    let before = fs::read_to_string(config).unwrap();
    house.machine.configure(&format!("{before}\n{rules}"));
    let server = serve(&house);
    let started = start(&server, &json!({ "cwd": house.machine.project(), "prompt": "read" }));
    let session = started["session_id"].as_str().unwrap().to_owned();
    // The agent's own loop guard would pause at the fifth call.
    eventually("the rule was carried out", || {
        let events = server.events(&session);
        let noted = |word: &str| {
            events.iter().any(|event| event["data"]["value"].as_str().is_some_and(|value| value.contains(word)))
        };
        (noted("`steer`") && noted("`limit`")).then_some(())
    });
    eventually("the message is not the user's", || {
        fs::read_to_string(house.file())
            .ok()
            .filter(|text| text.contains("\"monitor\"") && text.contains("Stop reading."))
    });
    input(&server.client, &session, &json!({ "do": "end" }));
    has_ended(&started["pid"]);
}

#[test]
fn a_rule_pauses_a_session_and_a_person_resumes_it() {
    let reads = || call(tool("read", json!({ "path": "notes.txt" })));
    let goes_on = Step::Answer(vec![
        Part::Say("I go on. ".to_owned()),
        Part::Until("paused".to_owned()),
        Part::Call(tool("glob", json!({ "pattern": "*.txt" }))),
    ]);
    let script = Script::default()
        .lane("read", [reads(), reads(), reads(), reads(), goes_on, say("I went on.")])
        .lane("more", [say("That too.")]);
    let house = House::new(Api::Anthropic, script);
    let rules = "[[actions]]\non = [\"loop\"]\ndo = \"pause\"\n[monitor]\nloop_repeats = 4\n";
    let config = house.machine.home().parent().unwrap().join("config/capture/config.toml");
    let before = fs::read_to_string(config).unwrap();
    house.machine.configure(&format!("{before}\n{rules}"));
    let server = serve(&house);
    let client = &server.client;
    let started = start(&server, &json!({ "cwd": house.machine.project(), "prompt": "read" }));
    let session = started["session_id"].as_str().unwrap().to_owned();
    eventually("the rule was carried out", || {
        let is_noted = |event: &Value| event["data"]["value"].as_str().is_some_and(|value| value.contains("`pause`"));
        server.events(&session).iter().any(is_noted).then_some(())
    });
    // The session pauses at the next boundary: the model's current answer is completed first.
    house.model.tell("paused");
    is_in(client, &session, "waiting", "interrupted");
    assert!(!fs::read_to_string(house.file()).unwrap().contains("I went on."));
    let (status, resumed) = input(client, &session, &json!({ "do": "resume" }));
    assert_eq!((status, &resumed["outcome"]), (200, &json!("done")), "{resumed}");
    is_in(client, &session, "waiting", "turn_complete");
    assert!(fs::read_to_string(house.file()).unwrap().contains("I went on."));

    // Without a running turn a steering message starts one.
    let (status, steered) = input(client, &session, &json!({ "do": "steer", "text": "more" }));
    assert_eq!(status, 200, "{steered}");
    eventually("it is answered", || fs::read_to_string(house.file()).ok().filter(|text| text.contains("That too.")));
    is_in(client, &session, "waiting", "turn_complete");
    input(client, &session, &json!({ "do": "end" }));
    has_ended(&started["pid"]);
    house.is_clean();
}
