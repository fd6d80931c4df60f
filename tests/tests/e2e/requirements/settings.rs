//! Unknown settings in a configuration are errors, and no text of an agent becomes an argument of a program.

use std::fs;

use serde_json::json;
use tests::{
    eventually,
    transcript::{append, prompt, uuid},
};

use super::{RequirementsMachine, held};

/// For each table of the configuration, a file with a key that does not exist.
const UNKNOWN: &[(&str, &str)] = &[
    ("autostrat = true\n", "autostrat"),
    ("[surprise]\n", "surprise"),
    ("[roots]\nclaud = []\n", "claud"),
    ("[status]\nidle_after = 3\n", "idle_after"),
    ("[read]\nwatches = true\n", "watches"),
    ("[store]\nredacted = true\n", "redacted"),
    ("[monitor]\nloops = 3\n", "loops"),
    ("[[actions]]\non = [\"loop\"]\ndo = \"note\"\ntext = \"x\"\nonly = true\n", "only"),
    ("[notify]\nchannel = []\n", "channel"),
    ("[notify]\nchannels = [{ type = \"desktop\", name = \"d\", sound = true }]\n", "sound"),
    (
        "[notify]\nchannels = [{ type = \"webhook\", name = \"w\", url = \"https://e.test/\", secret = \"s\" }]\n",
        "secret",
    ),
    ("[[notify.rules]]\nkinds = [\"loop\"]\n", "kinds"),
    ("[notify.quiet]\nhour = \"1\"\n", "hour"),
];

#[test]
fn an_unknown_configuration_key_is_named_and_stops_commands() {
    let here = RequirementsMachine::new();
    let file = here.root().join("config/capture/config.toml");
    for (text, key) in UNKNOWN {
        here.machine.configure(text);
        for arguments in [&["ps"] as &[&str], &["serve", "--listen", "127.0.0.1:0"], &["run", "--", "true"]] {
            let (code, err) = here.failed(arguments);
            assert!(code.is_some_and(|code| code != 0), "{arguments:?} {text}: {code:?}");
            assert!(err.contains(&format!("`{key}`")), "{arguments:?} {text}: {err}");
            assert!(err.contains(file.to_str().unwrap()), "{arguments:?} {text}: {err}");
        }
    }
    assert!(here.machine.endpoint().is_none(), "a server was started");
    // The same file without the unknown key is valid.
    here.machine.configure("autostart = false\n[notify]\nchannels = []\n");
    let (_, err) = here.failed(&["ps"]);
    assert!(err.contains("no server is running"), "{err}");
}

#[test]
fn doctor_and_serve_stop_work_with_an_invalid_configuration() {
    let here = RequirementsMachine::new();
    let server = here.machine.serve();
    here.machine.configure("autostrat = false\n");
    let doctor = here.machine.command(&["doctor"]).output().unwrap();
    let checks = String::from_utf8(doctor.stdout).unwrap();
    let (failed, others): (Vec<&str>, Vec<&str>) = checks.lines().partition(|line| line.starts_with("✗ "));
    assert_eq!((doctor.status.code(), failed.len()), (Some(1), 1), "{checks}");
    assert!(failed[0].contains("config.toml:1:1: unknown setting `autostrat`"), "{checks}");
    assert!(others.iter().any(|line| line.starts_with("✓ server ")), "{checks}");
    let stop = here.machine.command(&["serve", "--stop"]).output().unwrap();
    assert_eq!(stop.status.code(), Some(0), "{}", String::from_utf8_lossy(&stop.stderr));
    assert!(here.machine.endpoint().is_none());
    drop(server);
}

#[test]
fn an_unknown_key_of_the_policy_is_named_and_nothing_is_allowed() {
    let here = RequirementsMachine::new();
    for (text, key) in [
        ("version = 1\npreset = \"read-only\"\nalways = true\n", "always"),
        (
            "version = 1\npreset = \"read-only\"\n[[rule]]\nname = \"x\"\ndecision = \"allow\"\ncommand = [\"ls\"]\nfor = 1\n",
            "for",
        ),
    ] {
        here.save_policy(text);
        let (code, err) = here.failed(&["policy", "check"]);
        assert!(code.is_some_and(|code| code != 0) && err.contains(&format!("`{key}`")), "{code:?} {err}");
    }
    let _server = here.machine.serve();
    here.begin();
    assert_eq!(here.hook("claude", "0", &here.request("ls")).said(), None);
}

#[test]
fn text_written_by_an_agent_never_becomes_a_program_argument() {
    let here = RequirementsMachine::new();
    let ran = here.root().join("ran.txt");
    // Writes its arguments to a file, one per line.
    let script = "printf '%s\\n' \"$#\" \"$@\" >> \"$0\"";
    here.machine.configure(&format!(
        "autostart = false\n[notify]\nchannels = [{{ type = \"command\", name = \"program\", \
         argv = [\"/bin/sh\", \"-c\", {}, {}, \"fixed\"] }}]\n",
        json!(script),
        json!(ran)
    ));
    let server = here.machine.serve();
    let session = "--data-dir=/nonexistent";
    let cwd = here.machine.project();
    let payload = json!({"session_id": session, "cwd": cwd, "hook_event_name": "PermissionRequest", "tool_name": "--expose",
        "tool_input": {"command": "--listen=0.0.0.0:1; touch flagged", "description": "--help"}});
    let file = here.machine.home().join(".claude/projects/-proj/--help.jsonl");
    append(&file, &prompt("--help", &uuid(1, 1), cwd.to_str().unwrap(), "--version"));
    let hook = here.hook("claude", "60", &payload);
    let id = held(&server)["id"].as_str().unwrap().to_owned();
    let told = eventually("the program gets the approval", || {
        fs::read_to_string(&ran).ok().filter(|text| text.lines().count() >= 2)
    });
    assert_eq!(told, "1\nfixed\n");
    // After `--` it is a name, and a session of that name is found.
    let shown = here.done(&["show", "--json", "--", session]);
    assert!(shown.contains(session), "{shown}");
    let (code, err) = here.failed(&["show", "--", "--nothing-of-the-kind"]);
    assert_eq!(code, Some(4), "{err}");
    here.done(&["deny", &id]);
    assert_eq!(hook.behavior().as_deref(), Some("deny"));
    assert!(!here.root().join("flagged").exists() && !cwd.join("flagged").exists());
    assert_eq!(here.machine.endpoint().unwrap()["pid"], server.pid(), "the server is the one that was started");
}
