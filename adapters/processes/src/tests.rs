use std::{path::PathBuf, time::Duration};

use crossbeam_channel::bounded;
use events::Provider;

use crate::{
    ancestry::{agent_in_group, agent_of},
    command_line::{agent_of_script, is_headless, resumes, which_agent},
    stat::{descends_from, is_alive, start_ticks},
    table::{homes_in, launcher},
    watcher::{EndedProcess, Watcher},
};

/// Arguments in the format of `/proc`: each word ends with NUL.
fn arguments(words: &[&str]) -> Vec<u8> {
    words.iter().flat_map(|word| word.bytes().chain([0])).collect()
}

#[test]
fn agents_are_identified_by_their_command_line() {
    let who = |words: &[&str]| which_agent(&arguments(words));
    assert_eq!(who(&["/usr/bin/claude", "--resume"]), Some((Provider::Claude, false)));
    assert_eq!(
        who(&["node", "--max-old-space-size=8192", "/usr/lib/gemini.js", "-p"]),
        Some((Provider::Gemini, false))
    );
    assert_eq!(who(&["/opt/codex/codex", "app-server", "--listen", "unix://"]), Some((Provider::Codex, true)));
    assert_eq!(who(&["pi", "--continue"]), Some((Provider::Pi, false)));
    assert_eq!(who(&["bun", "/home/dev/.bun/bin/omp"]), Some((Provider::Pi, false)));
    let package = "/usr/lib/node_modules/@earendil-works/pi-coding-agent/dist/cli.js";
    assert_eq!(who(&["node", package]), Some((Provider::Pi, false)));
    let processes = [
        (1, Provider::Qwen, Some(9)),
        (2, Provider::Qwen, Some(1)),
        (3, Provider::Qwen, Some(2)),
        (4, Provider::Pi, Some(3)),
    ];
    let launchers = processes.map(|(pid, provider, _)| launcher(pid, provider, &processes));
    assert_eq!(launchers, [None, Some(1), Some(1), None]);
    let round = [(1, Provider::Qwen, Some(2)), (2, Provider::Qwen, Some(1))];
    assert_eq!(launcher(1, Provider::Qwen, &round), Some(2));
    let qwen = "/opt/lib/node_modules/@qwen-code/qwen-code/cli.js";
    assert_eq!(who(&["node", "--expose-gc", qwen, "--yolo"]), Some((Provider::Qwen, false)));
    assert_eq!(who(&["node", "/opt/bin/qwen"]), Some((Provider::Qwen, false)));
    assert_eq!(who(&["node", "/usr/bin/pi", "install", "x"]), None);
    assert_eq!(who(&["node", "-r", "./x.js", "--import", "y.mjs", "/usr/bin/codex"]), Some((Provider::Codex, false)));
    assert_eq!(who(&["goose"]), Some((Provider::Goose, false)));
    assert_eq!(who(&["goose", "session"]), Some((Provider::Goose, false)));
    assert_eq!(who(&["/usr/bin/crush"]), Some((Provider::Crush, false)));
    assert_eq!(who(&["crush", "logs"]), None);
    assert_eq!(who(&["vim", "claude"]), None);
    assert_eq!(who(&["grep", "codex"]), None);
    assert_eq!(who(&[""]), None);
}

#[test]
fn resume_invocations_are_recognized_by_command_line() {
    let takes_up = |words: &[&str]| resumes(&arguments(words));
    assert!(takes_up(&["codex", "resume", "--last"]));
    assert!(takes_up(&["node", "/opt/bin/codex", "resume"]));
    assert!(!takes_up(&["codex"]));
    assert!(!takes_up(&["codex", "exec", "resume"]));
    assert!(!takes_up(&["vim", "resume"]));
}

#[test]
fn headless_agents_are_recognized_by_command_line() {
    let headless = |words: &[&str]| is_headless(&arguments(words));
    assert!(headless(&["codex", "exec", "hi"]));
    assert!(headless(&["node", "-r", "./x.js", "/opt/bin/gemini", "-m", "x", "-p", "hi"]));
    assert!(!headless(&["node", "-p", "/opt/bin/gemini", "-m", "x"]), "an option of the interpreter");
    assert!(!headless(&["codex"]));
    assert!(!headless(&["vim", "-p"]));
}

#[test]
fn a_child_process_descends_from_its_parent() {
    let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    assert!(descends_from(child.id(), std::process::id()) && !descends_from(std::process::id(), child.id()));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn an_agent_is_found_behind_the_wrapper_that_started_it() {
    use std::os::unix::process::CommandExt;
    let dir = tempfile::tempdir().unwrap();
    let agent = dir.path().join("claude");
    std::os::unix::fs::symlink("/bin/sh", &agent).unwrap();
    let mut child = std::process::Command::new("sh")
        .args(["-c", "echo begun; \"$0\" -c 'echo begun; read x; :'; :"])
        .arg(&agent)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    lines.next().unwrap().unwrap();
    lines.next().unwrap().unwrap();
    assert_eq!(agent_of(child.id()), Some(Provider::Unknown));
    assert_eq!(agent_in_group(child.id()), Some(Provider::Claude));
    drop(child.stdin.take());
    child.wait().unwrap();
    assert_eq!(agent_in_group(u32::MAX - 1), None);
}

#[test]
fn a_foreground_shell_script_counts_as_the_agent_it_is_named_after() {
    let dir = tempfile::tempdir().unwrap();
    let started = |name: &str| {
        let script = dir.path().join(name);
        std::fs::write(&script, "echo ready\nread line\n").unwrap();
        let mut shell = std::process::Command::new("sh");
        shell.arg(script).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap()
    };
    for (name, agent) in [("claude", Provider::Claude), ("build", Provider::Unknown)] {
        let mut child = started(name);
        std::io::BufRead::lines(std::io::BufReader::new(child.stdout.as_mut().unwrap())).next().unwrap().unwrap();
        assert_eq!(agent_in_group(child.id()), Some(agent), "{name}");
        assert_eq!(agent_of(child.id()), Some(Provider::Unknown), "the script is not the agent's process");
        drop(child.stdin.take());
        child.wait().unwrap();
    }
    assert_eq!(agent_of_script(&arguments(&["/bin/bash", "-e", "/opt/bin/codex", "resume"])), Some(Provider::Codex));
    for no_agent in [&["sh"][..], &["sh", "-c", "echo claude"], &["vim", "claude"], &["claude"]] {
        assert_eq!(agent_of_script(&arguments(no_agent)), None, "{no_agent:?}");
    }
}

#[test]
fn agent_home_is_read_from_the_process_environment() {
    let environment = b"PATH=/bin\0HOME=/home/a\0CODEX_HOME=/srv/codex\0XHOME=/x\0";
    assert_eq!(homes_in(Provider::Claude, environment), [PathBuf::from("/home/a/.claude")]);
    assert_eq!(homes_in(Provider::Codex, environment), [PathBuf::from("/srv/codex")]);
    assert_eq!(homes_in(Provider::Gemini, environment), [PathBuf::from("/home/a/.gemini")]);
    assert_eq!(homes_in(Provider::Gemini, b"PATH=/bin"), Vec::<PathBuf>::new());
    assert_eq!(homes_in(Provider::Pi, environment), ["/home/a/.pi/agent", "/home/a/.omp/agent"].map(PathBuf::from));
    let told = b"HOME=/home/a\0PI_CODING_AGENT_DIR=/srv/pi\0";
    assert_eq!(homes_in(Provider::Pi, told), [PathBuf::from("/srv/pi")]);
}

#[test]
fn the_watcher_reports_an_exit_once_and_a_reused_pid_as_ended() {
    let (told, heard) = bounded(8);
    let watcher = Watcher::start(move |e| told.send(e).unwrap()).unwrap();
    let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let start = start_ticks(child.id()).unwrap();
    watcher.watch(child.id(), start);
    watcher.watch(child.id(), start);
    watcher.watch(child.id(), start + 1);
    assert_eq!(
        heard.recv_timeout(Duration::from_secs(10)),
        Ok(EndedProcess { pid: child.id(), start_ticks: start + 1 })
    );
    child.kill().unwrap();
    assert_eq!(heard.recv_timeout(Duration::from_secs(10)), Ok(EndedProcess { pid: child.id(), start_ticks: start }));
    child.wait().unwrap();
    drop(watcher);
    assert!(heard.try_recv().is_err());
    assert!(!is_alive(child.id(), start));
}
