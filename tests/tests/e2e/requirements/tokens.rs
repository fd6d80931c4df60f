//! Where tokens may appear and where not.

use std::{
    collections::BTreeSet,
    fs,
    io::{Read, Write},
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Output,
};

use serde_json::json;
use tests::{PATIENCE, eventually, http::Client, program::Machine, terminal_user::processes};

use super::{PROGRAM, RequirementsMachine, SESSION, below};

const NAMES: [&str; 5] = ["owner", "ingest", "read", "control", "admin"];

fn token(data: &Path, name: &str) -> String {
    fs::read_to_string(data.join("tokens").join(name)).unwrap().trim().to_owned()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn tokens_have_256_bits_and_are_new_for_each_installation() {
    let mut all = BTreeSet::new();
    for _ in 0..2 {
        let machine = Machine::new(PROGRAM);
        let _server = machine.serve();
        let dir = machine.data().join("tokens");
        assert_eq!(mode(&dir), 0o700);
        let files: BTreeSet<String> =
            fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        assert_eq!(files, NAMES.map(str::to_owned).into());
        for name in NAMES {
            let token = token(&machine.data(), name);
            assert_eq!(mode(&dir.join(name)), 0o600, "{name}");
            assert!(token.len() == 64 && token.bytes().all(|b| b.is_ascii_hexdigit()), "{name}");
            assert!(token.bytes().collect::<BTreeSet<_>>().len() > 4, "{name} is hardly random: {token}");
            all.insert(token);
        }
    }
    assert_eq!(all.len(), 2 * NAMES.len(), "two tokens are the same");
}

/// Writes its environment and its command line to a file.
const CHILD: &str = "tr '\\0' '\\n' < /proc/self/environ > \"$0\"; tr '\\0' '\\n' < /proc/$$/cmdline >> \"$0\"";

struct Used {
    here: RequirementsMachine,
    /// The output of commands, both streams.
    printed: Vec<(String, Vec<u8>)>,
}

impl Used {
    fn note(&mut self, arguments: &[&str]) {
        let Output { stdout, stderr, .. } = self.here.output(arguments);
        self.printed.push((arguments.join(" "), [stdout, stderr].concat()));
    }
}

/// A machine on which nearly every operation that handles a token ran once, with full logging.
fn used() -> Used {
    let here = RequirementsMachine::new();
    let (root, data) = (here.root(), here.machine.data());
    let child = root.join("child.txt");
    here.machine.configure(&format!(
        "[notify]\nchannels = [{{ type = \"command\", name = \"program\", argv = [\"/bin/sh\", \"-c\", {}, {}] }}]\n",
        json!(CHILD),
        json!(child)
    ));
    // The background server inherits the log filter, so it logs everything.
    let output = here.machine.command(&["ps"]).env("CAPTURE_LOG", "trace").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut used = Used { here, printed: Vec::new() };
    let client = used.here.machine.any_client().unwrap();
    for name in NAMES {
        let own = token(&data, name);
        let with = Client { token: own.clone(), ..client.clone() };
        for path in ["/api/v1/sessions", "/metrics", "/api/v1/nothing", "/openapi.json"] {
            let answer = with.get(path).unwrap();
            used.printed.push((path.to_owned(), [answer.headers.join("\n").into_bytes(), answer.body].concat()));
        }
        // A token in the wrong place must appear neither in the log nor in the answer.
        let mut stream = TcpStream::connect(&client.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = format!(
            "POST /api/v1/notify/test?token={own} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nCookie: t={own}\r\n\
             Authorization: Bearer {own}x\r\nContent-Type: {own}\r\nContent-Length: 2\r\n\r\n{{}}",
            client.address
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        used.printed.push((format!("{name} in the wrong place"), answer));
    }
    used.here.begin();
    assert_eq!(used.here.hook("claude", "0", &used.here.request("ls")).said(), None);
    let inner = root.join("run.txt");
    used.note(&[
        "run",
        "--detach",
        "--record",
        "--name",
        "one",
        "--",
        "sh",
        "-c",
        &format!("{CHILD}; sleep 8888"),
        inner.to_str().unwrap(),
    ]);
    eventually("the program of the run has started", || inner.exists().then_some(()));
    for arguments in [
        &["doctor"] as &[&str],
        &["ps", "--all", "--json"],
        &["show", SESSION],
        &["events", SESSION, "--json"],
        &["approvals", "--all", "--json"],
        &["approve", "NOSUCHONE"],
        &["audit", "export"],
        &["notify", "test", "program"],
        &["screen", "one"],
        &["handoff", SESSION],
        &["hooks", "install", "--yes", "--approver"],
        &["hooks", "status", "--json"],
    ] {
        used.note(arguments);
    }
    eventually("the program that is notified has run", || child.exists().then_some(()));
    used
}

#[test]
fn tokens_appear_only_in_their_files() {
    let used = used();
    let (root, data) = (used.here.root(), used.here.machine.data());
    let tokens = NAMES.map(|name| (name, token(&data, name)));
    let mut found = Vec::new();
    let mut look = |what: &str, bytes: &[u8]| {
        for (name, token) in &tokens {
            if bytes.windows(token.len()).any(|window| window == token.as_bytes()) {
                found.push(format!("the token `{name}` is in {what}"));
            }
        }
    };
    let mut files = 0;
    below(&root, &mut |path, about| {
        if about.is_file() && !path.starts_with(data.join("tokens")) {
            files += 1;
            look(&path.display().to_string(), &fs::read(path).unwrap_or_default());
        }
    });
    assert!(files > 15, "{files} files");
    let log = fs::read_to_string(data.join("serve.log")).unwrap();
    assert!(log.contains("TRACE") || log.contains("DEBUG"), "the log is as full as it gets: {log}");
    let running = processes(&data);
    assert!(running.iter().any(|p| p.command.contains(" serve")), "{running:?}");
    assert!(running.iter().any(|p| p.command.contains("run-host")), "{running:?}");
    for process in &running {
        for file in ["cmdline", "environ"] {
            let bytes = fs::read(format!("/proc/{}/{file}", process.pid)).unwrap_or_default();
            look(&format!("{file} of `{}`", process.command), &bytes);
        }
    }
    for (what, bytes) in &used.printed {
        look(&format!("what `{what}` printed"), bytes);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    // The only exception; it also proves that the search finds tokens.
    let settings = used.here.done(&["telemetry", "env", "claude"]);
    let inside: Vec<&str> =
        tokens.iter().filter(|(_, token)| settings.contains(token)).map(|(name, _)| *name).collect();
    assert_eq!(inside, ["ingest"]);
}

#[test]
fn core_dumps_of_the_server_are_disabled() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let limits = fs::read_to_string(format!("/proc/{}/limits", server.pid())).unwrap();
    let core = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().take(2).collect::<Vec<_>>(), ["0", "0"], "soft and hard limit");
}
