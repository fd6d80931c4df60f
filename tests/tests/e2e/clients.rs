//! Connections of other users of the machine and of our own user: no flood of connections blocks the user's own
//! commands and hooks.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    os::unix::{fs::DirBuilderExt, process::CommandExt},
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};
use tests::{
    eventually,
    program::{Machine, Server},
    terminal_user::{end_all, status_number},
};

use super::PROGRAM;

const SESSION: &str = "5a6b7c8d-0000-4000-8000-000000000001";
/// The user `nobody` of Linux.
const NOBODY: u32 = 65_534;
/// Most memory an idle stream may use, bytes.
const STREAM_BYTES: u64 = 20_000;

struct ClientsMachine {
    machine: Machine,
    server: Server,
}

impl Drop for ClientsMachine {
    fn drop(&mut self) {
        end_all(&self.machine.data());
    }
}

impl ClientsMachine {
    fn new() -> Self {
        let machine = Machine::new(PROGRAM);
        machine.configure("autostart = false\n");
        let policy = machine.home().parent().unwrap().join("config/capture/policy.toml");
        fs::DirBuilder::new().recursive(true).mode(0o700).create(policy.parent().unwrap()).unwrap();
        fs::write(policy, "version = 1\npreset = \"read-only\"\n").unwrap();
        let server = machine.serve();
        let here = Self { machine, server };
        let start = json!({"hook_event_name": "SessionStart", "source": "startup"});
        assert_eq!(here.hook("0", start), "");
        here
    }

    fn hook(&self, wait: &str, mut payload: Value) -> String {
        payload["session_id"] = json!(SESSION);
        payload["cwd"] = json!(self.machine.project());
        let mut hook = self.machine.command(&["hook", "claude", "--approver", wait]);
        let mut hook = hook.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        hook.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
        let output = hook.wait_with_output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    }

    /// The server answers a command, and a hook's request that a rule allows.
    #[track_caller]
    fn answers_us(&self) {
        let output = self.machine.command(&["ps", "--all", "--json"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let page: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(page["sessions"].as_array().unwrap().len(), 1, "{page}");
        let asked =
            json!({"hook_event_name": "PermissionRequest", "tool_name": "Bash", "tool_input": {"command": "ls -la"}});
        let said = self.hook("30", asked);
        assert!(said.contains("\"allow\""), "{said}");
    }

    fn files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.server.pid())).unwrap().count()
    }

    fn address(&self) -> &str {
        &self.server.client.address
    }
}

/// Connections of another user, none of which ever sends a complete request head; dropping the value closes them.
struct Flood(Child);

impl Flood {
    /// `None` if this process may not switch to another user.
    fn start(address: &str, connections: usize) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let port = address.rsplit_once(':').unwrap().1;
        let script = format!(
            "ulimit -n 4096; for n in $(seq {connections}); do exec {{fd}}<>/dev/tcp/127.0.0.1/{port} || exit 1; done; \
             echo open; read -r _"
        );
        let mut flood = Command::new("bash");
        flood.args(["-c", &script]).env_clear().env("PATH", "/usr/bin:/bin").current_dir("/").uid(NOBODY).gid(NOBODY);
        let mut flood = flood.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(flood.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "open\n");
        Some(Self(flood))
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn a_flood_of_another_users_connections_does_not_block_ours() {
    let here = ClientsMachine::new();
    let before = here.files();
    let Some(_flood) = Flood::start(here.address(), 1_000) else {
        println!("skipped: only root can become another user");
        return;
    };
    here.answers_us();
    let held = here.files().saturating_sub(before);
    println!("1000 half-open connections of another user hold {held} files of the server");
    assert!(held <= 16 + 8, "{held}");
}

#[test]
fn wrong_tokens_of_another_user_do_not_rate_limit_ours() {
    let here = ClientsMachine::new();
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can become another user");
        return;
    }
    let (host, port) = here.address().rsplit_once(':').unwrap();
    let script = format!(
        "for n in $(seq 25); do exec {{fd}}<>/dev/tcp/{host}/{port}; printf 'GET /api/v1/sessions HTTP/1.1\\r\\n\
         Host: {host}:{port}\\r\\nAuthorization: Bearer wrong\\r\\nConnection: close\\r\\n\\r\\n' >&$fd; \
         read -r line <&$fd; echo \"$line\"; exec {{fd}}>&-; done"
    );
    let mut theirs = Command::new("bash");
    theirs.args(["-c", &script]).env_clear().env("PATH", "/usr/bin:/bin").current_dir("/").uid(NOBODY).gid(NOBODY);
    let told = String::from_utf8(theirs.output().unwrap().stdout).unwrap();
    assert_eq!((told.matches(" 401 ").count(), told.matches(" 429 ").count()), (20, 5), "{told}");
    let mut ours = TcpStream::connect(here.address()).unwrap();
    let request = format!(
        "GET /api/v1/sessions HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer wrong\r\nConnection: close\r\n\r\n",
        here.address()
    );
    ours.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    ours.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
}

#[test]
fn streams_up_to_their_limit_leave_room_for_commands_and_hooks() {
    let here = ClientsMachine::new();
    // As many connections as this process may open, up to the server's limit.
    rustix::process::setrlimit(
        rustix::process::Resource::Nofile,
        rustix::process::Rlimit {
            current: rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum,
            ..rustix::process::getrlimit(rustix::process::Resource::Nofile)
        },
    )
    .unwrap();
    let open = || -> Option<TcpStream> {
        let mut stream = TcpStream::connect(here.address()).ok()?;
        let (address, token) = (here.address(), &here.server.client.token);
        write!(stream, "GET /api/v1/stream HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n")
            .ok()?;
        let mut head = [0; 12];
        stream.read_exact(&mut head).ok()?;
        assert!([&b"HTTP/1.1 200"[..], b"HTTP/1.1 503"].contains(&&head[..]), "{}", String::from_utf8_lossy(&head));
        (&head == b"HTTP/1.1 200").then_some(stream)
    };
    let memory = || status_number(here.server.pid().try_into().unwrap(), "RssAnon").unwrap();
    let before = memory();
    let mut streams = Vec::new();
    while let Some(stream) = open() {
        streams.push(stream);
        assert!(streams.len() < 10_000, "there is no limit");
    }
    println!("{} streams were let in", streams.len());
    assert!(streams.len() > 100, "{}", streams.len());
    here.answers_us();
    let used = memory().saturating_sub(before);
    let each = used * 1024 / streams.len() as u64;
    println!("{used} KiB for them, {each} bytes each");
    assert!(each < STREAM_BYTES, "{each} bytes a stream");
    drop(streams);
    eventually("the memory of streams that ended is given back", || {
        (memory().saturating_sub(before) <= used / 4).then_some(())
    });
}
