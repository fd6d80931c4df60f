//! Identity of the server: the command line connects only to its own server, stops only that process, and starts a
//! server with the configuration its user set up.

use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
    os::unix::net::UnixListener,
    process::{Child, Command, Output, Stdio},
    thread::JoinHandle,
};

use serde_json::{Value, json};
use tests::{eventually, number_from_env, program::Machine};

use super::PROGRAM;

fn said(output: Output) -> (Option<i32>, String) {
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

fn run(machine: &Machine, words: &[&str]) -> (Option<i32>, String) {
    said(machine.command(words).output().unwrap())
}

/// A process that is not the server.
struct Stranger(Child);

impl Stranger {
    fn new() -> Self {
        Self(Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap())
    }

    fn start_ticks(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        stat[stat.rfind(')').unwrap() + 1..].split_whitespace().nth(19).unwrap().parse().unwrap()
    }

    fn lives(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Answers every connection; when asked to end, returns all bytes received.
fn listens(mut accept: impl FnMut() -> Option<Box<dyn ReadWrite>> + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut all = Vec::new();
        while let Some(mut stream) = accept() {
            let mut bytes = [0; 4096];
            let n = stream.read(&mut bytes).unwrap_or(0);
            all.extend_from_slice(&bytes[..n]);
            if bytes[..n].starts_with(b"END") {
                break;
            }
            let body = "{\"sessions\":[]}";
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).ok();
        }
        all
    })
}

trait ReadWrite: Read + Write + Send {}
impl<T: Read + Write + Send> ReadWrite for T {}

/// Leaves the `endpoint.json` of a killed server, with the given changes.
fn left_behind(machine: &Machine, change: impl FnOnce(&mut Value)) {
    let server = machine.serve();
    server.kill();
    let mut endpoint = machine.endpoint().unwrap();
    change(&mut endpoint);
    fs::write(machine.data().join("endpoint.json"), endpoint.to_string()).unwrap();
}

#[test]
fn a_foreign_process_on_the_port_receives_no_token() {
    let machine = Machine::new(PROGRAM);
    machine.configure("autostart = false\n");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut stranger = Stranger::new();
    left_behind(&machine, |endpoint| {
        endpoint["url"] = json!(format!("http://{address}"));
        // A reused pid.
        endpoint["pid"] = json!(stranger.0.id());
        endpoint["start_ticks"] = json!(stranger.start_ticks() - 1);
    });
    let heard = listens(move || listener.accept().ok().map(|(stream, _)| Box::new(stream) as Box<dyn ReadWrite>));
    for words in [&["ps"][..], &["--tcp", "ps"]] {
        let (code, text) = run(&machine, words);
        assert_eq!(code, Some(1), "{words:?}: {text}");
        assert!(text.contains("no server is running"), "{words:?}: {text}");
    }
    // Likewise when the process is the one that the file names and only the port belongs to another process.
    let ticks = stranger.start_ticks();
    let mut endpoint = machine.endpoint().unwrap();
    endpoint["start_ticks"] = json!(ticks);
    fs::write(machine.data().join("endpoint.json"), endpoint.to_string()).unwrap();
    let (code, text) = run(&machine, &["--tcp", "ps"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains(&format!("instead of the server (process {})", stranger.0.id())), "{text}");
    assert!(text.contains("nothing was sent"), "{text}");
    assert!(stranger.lives());
    std::net::TcpStream::connect(address).unwrap().write_all(b"END").unwrap();
    assert_eq!(heard.join().unwrap(), b"END", "something was sent to a stranger");
}

#[test]
fn a_foreign_process_on_the_socket_receives_no_token() {
    let machine = Machine::new(PROGRAM);
    machine.configure("autostart = false\n");
    let stranger = Stranger::new();
    left_behind(&machine, |endpoint| {
        endpoint["pid"] = json!(stranger.0.id());
        endpoint["start_ticks"] = json!(stranger.start_ticks());
    });
    let socket = machine.data().join("capture.sock");
    fs::remove_file(&socket).unwrap();
    let listener = UnixListener::bind(&socket).unwrap();
    let heard = listens(move || listener.accept().ok().map(|(stream, _)| Box::new(stream) as Box<dyn ReadWrite>));
    let (code, text) = run(&machine, &["ps"]);
    assert_eq!(code, Some(1), "{text}");
    let expected = format!("process {} listens on {}", std::process::id(), socket.display());
    assert!(text.contains(&expected), "{text}");
    std::os::unix::net::UnixStream::connect(&socket).unwrap().write_all(b"END").unwrap();
    assert_eq!(heard.join().unwrap(), b"END", "something was sent to a stranger");
}

#[test]
fn serve_stop_does_not_kill_a_process_with_a_reused_pid() {
    let machine = Machine::new(PROGRAM);
    machine.configure("autostart = false\n");
    let mut stranger = Stranger::new();
    for ticks in [0, stranger.start_ticks()] {
        left_behind(&machine, |endpoint| {
            endpoint["pid"] = json!(stranger.0.id());
            endpoint["start_ticks"] = json!(ticks);
        });
        let (code, text) = run(&machine, &["serve", "--stop"]);
        assert_eq!(code, Some(4), "{text}");
        assert!(text.contains("no server is running"), "{text}");
        assert!(stranger.lives());
    }
}

/// After a stop command returns, the next command finds the data directory free.
#[test]
fn a_command_right_after_a_stop_starts_a_server() {
    let machine = Machine::new(PROGRAM);
    let (code, text) = run(&machine, &["ps"]);
    assert_eq!(code, Some(0), "{text}");
    for round in 0..number_from_env("CAPTURE_STOPS", 50) {
        let (code, text) = run(&machine, &["serve", "--stop"]);
        assert_eq!(code, Some(0), "stop {round}: {text}");
        let (code, text) = run(&machine, &["ps"]);
        assert_eq!(code, Some(0), "ps {round}: {text}");
    }
    // Several commands at once start only one server.
    let (code, text) = run(&machine, &["serve", "--stop"]);
    assert_eq!(code, Some(0), "{text}");
    let several: Vec<Child> = (0..4)
        .map(|_| machine.command(&["ps"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap())
        .collect();
    for ps in several {
        let (code, text) = said(ps.wait_with_output().unwrap());
        assert_eq!(code, Some(0), "{text}");
    }
    assert_eq!(run(&machine, &["serve", "--stop"]).0, Some(0));
}

fn policy_of(machine: &Machine) -> String {
    let (_, text) = run(machine, &["doctor", "--json"]);
    let report: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let row = report["checks"].as_array().unwrap().iter().find(|check| check["name"] == "policy").cloned();
    row.unwrap_or_else(|| panic!("{text}"))["detail"].as_str().unwrap().to_owned()
}

/// A server started by a command reads the configuration of the user's server, whatever the environment of the command.
#[test]
fn the_environment_of_a_command_does_not_choose_the_servers_policy() {
    let machine = Machine::new(PROGRAM);
    let config = machine.home().parent().unwrap().join("config/capture");
    fs::create_dir_all(&config).unwrap();
    let mine = config.join("policy.toml");
    fs::write(&mine, "version = 1\npreset = \"ask-everything\"\n").unwrap();
    let evil = machine.project().join("evil");
    fs::create_dir_all(evil.join("capture")).unwrap();
    fs::write(evil.join("capture/policy.toml"), "version = 1\npreset = \"workspace-edits\"\n").unwrap();
    let server = machine.serve();
    assert!(policy_of(&machine).starts_with(mine.to_str().unwrap()), "{}", policy_of(&machine));
    server.stop();
    // From an agent's shell and from any other.
    let evil = format!("XDG_CONFIG_HOME={} XDG_DATA_HOME=/nonexistent HOME=/nonexistent", evil.display());
    let (code, text) = said(machine.agents_shell("claude", &format!("{evil} capture ps")).output().unwrap());
    assert_eq!(code, Some(0), "{text}");
    let hash = blake3(&mine);
    assert_eq!(policy_of(&machine), format!("{} (blake3 {hash})", mine.display()));
    assert_eq!(run(&machine, &["serve", "--stop"]).0, Some(0));
    let anybody = machine.agents_shell("sh", &format!("{evil} capture ps")).output().unwrap();
    assert_eq!(anybody.status.code(), Some(0), "{anybody:?}");
    assert_eq!(policy_of(&machine), format!("{} (blake3 {hash})", mine.display()));
    let environ = fs::read(format!("/proc/{}/environ", machine.endpoint().unwrap()["pid"])).unwrap();
    assert!(!String::from_utf8_lossy(&environ).contains("evil"), "the server's environment is not the recorded one");
    assert_eq!(run(&machine, &["serve", "--stop"]).0, Some(0));
}

#[test]
fn an_agent_cannot_start_a_server_with_another_data_directory() {
    let machine = Machine::new(PROGRAM);
    let elsewhere = machine.project().join("elsewhere");
    for words in ["ps", "serve"] {
        let script = format!("CAPTURE_DATA_DIR={} capture {words}", elsewhere.display());
        let (code, text) = said(machine.agents_shell("codex", &script).output().unwrap());
        assert_eq!(code, Some(5), "{words}: {text}");
        assert!(text.contains("cannot start a server"), "{words}: {text}");
    }
    assert!(!elsewhere.join("endpoint.json").exists());
}

#[test]
fn an_agent_cannot_choose_the_listen_address() {
    let machine = Machine::new(PROGRAM);
    for words in ["serve --expose --listen 0.0.0.0:0", "serve --listen 127.0.0.1:1"] {
        let (code, text) = said(machine.agents_shell("claude", &format!("capture {words}")).output().unwrap());
        assert_eq!(code, Some(5), "{words}: {text}");
        assert!(text.contains("choosing where the server listens is not allowed"), "{words}: {text}");
    }
    assert_eq!(machine.endpoint(), None);
}

/// The hash of a file, as printed by `b3sum`.
fn blake3(file: &std::path::Path) -> String {
    blake3::hash(&fs::read(file).unwrap()).to_hex().to_string()
}

#[test]
fn a_foreground_server_records_its_environment() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let recorded = eventually("the environment is recorded", || {
        serde_json::from_str::<Value>(&fs::read_to_string(machine.data().join("environment.json")).ok()?).ok()
    });
    assert_eq!(recorded["variables"]["HOME"], machine.home().to_str().unwrap());
    assert!(recorded["variables"]["CAPTURE_DATA_DIR"].is_null(), "{recorded}");
    server.stop();
}
