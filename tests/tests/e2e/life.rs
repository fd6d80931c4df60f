//! Start and shutdown of the server.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::Stdio,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tests::{
    eventually,
    program::{Machine, ended_well},
    terminal_user::end_all,
    transcript::{append, prompt, session, uuid},
};

use super::PROGRAM;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())).permissions().mode() & 0o777
}

#[test]
fn endpoint_file_exists_only_while_the_server_answers() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let answer = server.client.get("/healthz").unwrap();
    assert_eq!(answer.status, 200, "it answers once endpoint.json is there");
    assert!(server.endpoint["url"].as_str().unwrap().starts_with("http://127.0.0.1:"));
    assert!(!server.endpoint["epoch"].as_str().unwrap().is_empty());
    let epoch = server.endpoint["epoch"].clone();
    let status = server.stop();
    assert!(ended_well(status), "{status}");
    assert!(machine.endpoint().is_none(), "endpoint.json is still there after SIGTERM");
    let server = machine.serve();
    assert_ne!(server.endpoint["epoch"], epoch);
}

/// A signal sent as soon as the server can be found stops it cleanly, as at any later time.
#[test]
fn sigterm_right_after_the_start_stops_the_server_cleanly() {
    let machine = Machine::new(PROGRAM);
    let found = machine.data().join("endpoint.json");
    for round in 1..=10 {
        let (mut child, log) = machine.launch();
        // No pause between the checks: little time passes between the creation of the file and the next steps.
        while !found.exists() {
            assert!(child.try_wait().unwrap().is_none(), "{}", fs::read_to_string(&log).unwrap());
        }
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        let status = eventually("the server ends after SIGTERM", || child.try_wait().unwrap());
        assert!(ended_well(status), "round {round}: {status}");
        assert!(!found.exists(), "round {round}: endpoint.json is still there");
    }
}

#[test]
fn the_endpoint_file_of_a_killed_server_is_replaced() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let pid = server.pid();
    server.kill();
    assert_eq!(machine.endpoint().unwrap()["pid"], pid);
    let server = machine.serve();
    assert_eq!(server.client.get("/healthz").unwrap().status, 200);
}

#[test]
fn a_panicking_thread_stops_the_server_and_is_named_in_the_log() {
    let machine = Machine::new(env!("CARGO_BIN_EXE_faulty-server"));
    let mut server = machine.serve();
    assert_eq!(server.client.get("/healthz").unwrap().status, 200);
    fs::write(machine.data().join("panic"), "").unwrap();
    let id = session(1);
    append(&machine.claude(&id), &prompt(&id, &uuid(1, 1), "/p", "go"));
    let status = eventually("the server ends by itself", || {
        let is_known = server.log().contains("thread `ingest` ended: the clock stands still");
        let health = server.client.get("/healthz").map(|answer| answer.status);
        assert!(!is_known || health.is_err() || health.is_ok_and(|status| status == 503), "it counts as healthy");
        server.ended()
    });
    assert_eq!(status.code(), Some(1), "{}", server.log());
    let log = server.log();
    assert!(log.contains("thread `ingest` ended: the clock stands still"), "{log}");
    assert_eq!(log.matches("` ended").count(), 2, "in the log and as the reason of the end, and nothing else: {log}");
    assert!(machine.endpoint().is_none(), "the rest was stopped in order");
    // The next server continues after the last record that was read.
    fs::remove_file(machine.data().join("panic")).unwrap();
    let server = machine.serve();
    assert_eq!(server.session(&id)["provider"], "claude");
}

/// T23.
#[test]
fn a_second_server_is_refused_with_the_pid_of_the_first() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let (mut second, log) = machine.launch();
    let status = eventually("the second server gives up", || second.try_wait().unwrap());
    let said = fs::read_to_string(log).unwrap();
    assert!(!status.success(), "{status}");
    assert!(said.contains(&format!("pid {}", server.pid())), "{said}");
    assert_eq!(machine.endpoint().unwrap()["pid"], server.pid(), "the first one's endpoint.json stays");
    assert_eq!(server.client.get("/healthz").unwrap().status, 200);
}

#[test]
fn files_of_the_server_are_accessible_only_to_their_owner() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let data = machine.data();
    assert_eq!(mode(&data), 0o700);
    assert_eq!(mode(&data.join("tokens")), 0o700);
    let mut files = 0;
    for dir in [data.clone(), data.join("tokens")] {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                files += 1;
                assert_eq!(mode(&path) & 0o077, 0, "{} is open to others", path.display());
            }
        }
    }
    assert!(files >= 8, "{files} files");
    assert_eq!(mode(Path::new(server.endpoint["socket"].as_str().unwrap())) & 0o077, 0);
    assert_eq!(Path::new(server.endpoint["token_file"].as_str().unwrap()), data.join("tokens/owner"));
}

#[test]
fn each_token_grants_only_the_access_of_its_scope() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let with = |token: &str| {
        let token = if token.is_empty() {
            String::new()
        } else {
            fs::read_to_string(machine.data().join("tokens").join(token)).unwrap()
        };
        tests::http::Client { token, ..server.client.clone() }
    };
    let status = |token: &str, method: &str, path: &str| {
        let body = (method == "PUT").then_some("{\"enabled\":true}");
        with(token).send(method, path, body, tests::PATIENCE).unwrap().status
    };
    assert_eq!(status("", "GET", "/healthz"), 200);
    assert_eq!(status("", "GET", "/api/v1/sessions"), 401);
    assert_eq!(status("read", "GET", "/api/v1/sessions"), 200);
    assert_eq!(status("owner", "GET", "/api/v1/sessions"), 200);
    assert_eq!(status("ingest", "GET", "/api/v1/sessions"), 403);
    assert_eq!(status("read", "PUT", "/api/v1/sessions/none/capture"), 403);
    assert_eq!(status("admin", "PUT", "/api/v1/sessions/none/capture"), 404);
}

/// The list names a directory by the user's symlink to it, while the agent reports the real path.
#[test]
fn sessions_in_an_ignored_directory_are_never_stored() {
    let machine = Machine::new(PROGRAM);
    let real = machine.project().join("real/plans");
    fs::create_dir_all(&real).unwrap();
    symlink(machine.project().join("real"), machine.home().join("work")).unwrap();
    machine.configure(&format!("autostart = false\nignore = [\"{}\"]\n", machine.home().join("work/plans").display()));
    let server = machine.serve();
    let hook = |id: &str, cwd: &Path| {
        let payload =
            json!({"session_id": id, "cwd": cwd, "hook_event_name": "UserPromptSubmit", "prompt": "hush by hook"});
        let mut hook = machine.command(&["hook", "claude"]).stdin(Stdio::piped()).spawn().unwrap();
        hook.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
        assert!(hook.wait().unwrap().success());
    };
    let (hidden, shown) = (session(1), session(2));
    for round in 0..3 {
        for (id, cwd, text) in [(&hidden, &real, "hush"), (&shown, &machine.project(), "go on")] {
            hook(id, cwd);
            append(
                &machine.claude(id),
                &prompt(id, &uuid(9, round), cwd.to_str().unwrap(), &format!("{text} {round}")),
            );
        }
        server.caught_up(&shown, &machine.claude(&shown));
    }
    let run =
        machine.command(&["run", "--detach", "--json", "--", "sleep", "600"]).current_dir(&real).output().unwrap();
    assert!(run.status.success(), "{run:?}");
    eventually("the run is known", || {
        let runs = server.client.json("/api/v1/runs")?;
        (runs["runs"].as_array()?.len() == 1).then_some(())
    });
    eventually("the deliveries of hooks are stored", || {
        (fs::read_dir(machine.data().join("spool")).ok()?.count() == 0).then_some(())
    });
    let listed = machine.command(&["ps", "--all", "--json"]).output().unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let ids: Vec<_> = listed["sessions"].as_array().unwrap().iter().map(|s| s["provider_session_id"].clone()).collect();
    assert_eq!(ids, [json!(shown)], "{listed}");
    assert!(server.stop().success());
    let database = fs::read(machine.data().join("capture.db")).unwrap();
    assert!(!database.windows(4).any(|bytes| bytes == b"hush"));
    end_all(&machine.data());
}

/// The sizes of the logs of a background server, newest first.
fn logs(machine: &Machine) -> Vec<u64> {
    let names = ["serve.log", "serve.log.1", "serve.log.2", "serve.log.3", "serve.log.4"];
    names.iter().map_while(|name| Some(fs::metadata(machine.data().join(name)).ok()?.len())).collect()
}

#[test]
fn the_log_of_a_background_server_is_bounded() {
    const FULL: u64 = 4 << 20;
    let machine = Machine::new(PROGRAM);
    let log = machine.data().join("serve.log");
    let fill = || {
        let line = format!("{}\n", "x".repeat(1023));
        fs::OpenOptions::new().append(true).open(&log).unwrap().write_all(line.repeat(4 << 10).as_bytes()).unwrap();
    };
    for rounds in 1..6 {
        assert!(machine.command(&["ps"]).status().unwrap().success());
        // While the server runs, the next record begins a new file.
        fill();
        assert!(machine.command(&["serve", "--stop"]).status().unwrap().success());
        let sizes = logs(&machine);
        assert_eq!(sizes.len(), (rounds + 1).min(4), "{sizes:?}");
        assert!(
            sizes[0] < 64 << 10 && sizes[1..].iter().all(|size| (FULL..FULL + (64 << 10)).contains(size)),
            "{sizes:?}"
        );
        let newest = fs::read_to_string(&log).unwrap();
        assert!(newest.contains("stopping on a signal"), "{newest}");
        let mode = fs::metadata(&log).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
