//! A program in a terminal that is watched: it must not notice, and neither must its user.

use std::{
    fs,
    process::{Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tests::{eventually, program::Machine, pty::Terminal};

use super::PROGRAM;

fn machine() -> Machine {
    let machine = Machine::new(PROGRAM);
    machine.configure("autostart = false\n");
    machine
}

fn run(machine: &Machine, words: &[&str]) -> Command {
    machine.command(&[&["run", "--"], words].concat())
}

/// What the hosts say about their runs.
fn descriptions(machine: &Machine) -> Vec<Value> {
    let Ok(entries) = fs::read_dir(machine.data().join("runs")) else { return Vec::new() };
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .filter_map(|path| serde_json::from_str(&fs::read_to_string(path).ok()?).ok())
        .collect()
}

fn description(machine: &Machine) -> Value {
    eventually("the run is described", || descriptions(machine).into_iter().next())
}

fn kill(pid: &Value, signal: Signal) {
    kill_process(Pid::from_raw(pid.as_i64().unwrap() as i32).unwrap(), signal).unwrap();
}

fn is_alive(pid: &Value) -> bool {
    adapters::process::is_alive(pid.as_u64().unwrap() as u32, 0)
}

#[test]
fn it_ends_as_its_program_does_and_leaves_the_terminal_as_it_was() {
    let machine = machine();
    let check = |words: &[&str], code: i32, seen: &str| {
        let mut terminal = Terminal::new();
        let mut child = terminal.start(&run(&machine, words));
        assert_eq!(terminal.wait(&mut child).code(), Some(code), "{words:?}");
        assert_eq!(String::from_utf8_lossy(&terminal.seen), seen, "{words:?}");
        assert!(terminal.is_as_before(), "{words:?}");
    };
    for code in [0, 1, 77, 255] {
        check(&["sh", "-c", &format!("exit {code}")], code, "");
    }
    check(&["sh", "-c", "stty raw -echo; kill -9 $$"], 137, "");
    check(&["sh", "-c", "kill -TERM $$"], 143, "");
    check(&["there-is-no-such-program"], 127, "capture: there-is-no-such-program: command not found\r\n");
    check(&["/etc/passwd"], 126, "capture: /etc/passwd: Permission denied\r\n");
    for _ in 0..20 {
        check(&["printf", "Bingo"], 0, "Bingo");
    }
    // Whoever keeps the terminal open does not keep the run going.
    check(&["sh", "-c", "trap '' HUP; (sleep 5; echo late) & echo x"], 0, "x\r\n");
}

#[test]
fn the_program_finds_what_it_would_find_alone() {
    let machine = machine();
    // Signals 32 and 33 belong to the C library; its posix_spawn leaves them ignored.
    let script = "env | sort; ls /proc/self/fd; stty -a; ulimit -a; umask; \
                  grep SigBlk /proc/self/status; grep SigIgn /proc/self/status | tail -c 8";
    let mut alone = Terminal::new();
    let mut plain = machine.command(&[]);
    plain.env("FOO", "a b");
    let mut command = Command::new("sh");
    command.args(["-c", script]).env_clear().envs(plain.get_envs().filter_map(|(n, v)| Some((n, v?))));
    command.current_dir(plain.get_current_dir().unwrap());
    let mut child = alone.start(&command);
    alone.wait(&mut child);
    let mut watched = Terminal::new();
    let mut command = run(&machine, &["sh", "-c", script]);
    command.env("FOO", "a b");
    let mut child = watched.start(&command);
    watched.wait(&mut child);
    let lines = |seen: &[u8]| String::from_utf8_lossy(seen).lines().map(str::to_owned).collect::<Vec<_>>();
    let (alone, watched) = (lines(&alone.seen), lines(&watched.seen));
    let more: Vec<&String> = watched.iter().filter(|line| !alone.contains(line)).collect();
    assert!(matches!(more.as_slice(), [one] if one.starts_with("CAPTURE_RUN_ID=")), "{more:?}");
    assert_eq!(alone.len() + 1, watched.len());
}

#[test]
fn streams_that_are_no_terminal_are_left_alone() {
    let machine = machine();
    let output = run(&machine, &["sh", "-c", "cat; echo err >&2; exit 3"]).output().unwrap();
    assert_eq!(
        (output.status.code(), output.stdout.as_slice(), output.stderr.as_slice()),
        (Some(3), &b""[..], &b"err\n"[..])
    );

    let mut terminal = Terminal::new();
    let mut command = terminal.without_input(&run(&machine, &["sh", "-c", "cat; test -t 1 && echo end"]));
    let mut child = command.stdin(Stdio::null()).spawn().unwrap();
    assert_eq!(terminal.wait(&mut child).code(), Some(0));
    assert_eq!(terminal.seen, b"end\r\n");

    // With --tty it has a terminal all the same, and no end of file is typed into it.
    let output = machine.command(&["run", "--tty", "--", "sh", "-c", "stty size; read -t 1 x; echo $?"]);
    let mut command = Command::new("bash");
    command.arg("-c").arg("\"$@\" < /dev/null").arg("bash").arg(output.get_program()).args(output.get_args());
    command.env_clear().envs(output.get_envs().filter_map(|(n, v)| Some((n, v?))));
    let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert!(text.starts_with("40 120\r\n"), "{text:?}");
}

#[test]
fn ctrl_z_stops_it_below_a_shell_and_fg_brings_it_back() {
    let machine = machine();
    let mut terminal = Terminal::new();
    let capture = machine.command(&[]);
    let mut shell = Command::new("bash");
    shell.args(["--norc", "--noprofile", "--noediting", "-i"]).env_clear().env("PS1", "$ ");
    shell.envs(capture.get_envs().filter_map(|(n, v)| Some((n, v?)))).current_dir(machine.project());
    let mut child = terminal.start(&shell);
    terminal.until("$ ");
    terminal.send(&format!("{PROGRAM} run -- sh -c 'stty -icanon -echo; echo begun; cat; exit 5'\n"));
    terminal.until("begun\r\n");
    terminal.send("\x1a");
    terminal.until("Stopped");
    terminal.seen.clear();
    terminal.send("stty -a | grep -o .icanon\n");
    terminal.until(" icanon\r\n");
    terminal.send("fg\n");
    terminal.until("cat; exit 5'\r\n");
    terminal.send("typed");
    terminal.until("typed");
    terminal.send("\x03");
    terminal.until("typed$ ");
    terminal.send("echo ended $?\n");
    terminal.until("ended 130");
    terminal.send("exit\n");
    terminal.wait(&mut child);
}

#[test]
fn a_size_that_changes_reaches_the_program() {
    let machine = machine();
    let mut terminal = Terminal::new();
    let mut child = terminal
        .start(&run(&machine, &["bash", "-c", "trap 'stty size' WINCH; stty size; while :; do read -t 1; done"]));
    terminal.until("24 80");
    for columns in 10..200 {
        terminal.resize(30, columns);
    }
    terminal.until("30 199");
    terminal.resize(0, 0);
    terminal.until("0 0");
    terminal.resize(65535, 65535);
    terminal.until("65535 65535");
    terminal.resize(25, 81);
    terminal.until("25 81");
    terminal.send("\x03");
    assert_eq!(terminal.wait(&mut child).code(), Some(130));
}

#[test]
fn a_run_outlives_its_terminal_and_another_one_is_attached() {
    let machine = machine();
    let mut terminal = Terminal::new();
    let mut command = machine.command(&["run", "--name", "mine", "--", "bash", "--norc", "--noediting", "-i"]);
    command.env("PS1", "$ ");
    let mut launcher = terminal.start(&command);
    let run = description(&machine);
    terminal.until("$ ");
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    eventually("the terminal is put back", || terminal.is_as_before().then_some(()));
    assert!(is_alive(&run["pid"]));

    let mut second = Terminal::new();
    second.resize(10, 40);
    let mut attached = second.start(&machine.command(&["attach", "mine"]));
    second.send("stty size; echo $((40+2))\n");
    second.until("10 40");
    second.until("42");
    let mut third = Terminal::new();
    let mut viewer = third.start(&machine.command(&["attach", run["run"].as_str().unwrap(), "--read-only"]));
    third.send("echo not-$((1+1))\n");
    eventually("what the program writes is seen by the one who watches", || {
        second.send("echo seen-$((1+2))\n");
        second.look();
        third.look().windows(6).any(|part| part == b"seen-3").then_some(())
    });
    third.send("\x1d");
    assert_eq!(third.wait(&mut viewer).code(), Some(0));
    second.send("\x1d");
    assert_eq!(second.wait(&mut attached).code(), Some(0));
    assert!(second.is_as_before() && third.is_as_before() && is_alive(&run["pid"]));
    assert!(!String::from_utf8_lossy(&second.seen).contains("not-2"));

    let mut last = Terminal::new();
    let mut attached = last.start(&machine.command(&["attach", "mine"]));
    last.send("exit 7\n");
    assert_eq!(last.wait(&mut attached).code(), Some(7));
    eventually("the run's files are taken away", || descriptions(&machine).is_empty().then_some(()));
}

#[test]
fn a_run_without_a_terminal_is_found_and_ended() {
    let machine = machine();
    let output = machine
        .command(&["--json", "run", "--detach", "--size", "90x30", "--", "sh", "-c", "sleep 600"])
        .output()
        .unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let run = description(&machine);
    assert_eq!((&told["run"], &told["pid"], &told["socket"]), (&run["run"], &run["pid"], &run["socket"]));
    kill(&run["host_pid"], Signal::TERM);
    eventually("the program is ended", || (!is_alive(&run["pid"])).then_some(()));
    eventually("its files are taken away", || descriptions(&machine).is_empty().then_some(()));
}

#[test]
fn an_agent_cannot_attach() {
    let machine = machine();
    machine.command(&["run", "--detach", "--name", "mine", "--", "cat"]).output().unwrap();
    let run = description(&machine);
    let agent = machine.home().join("claude");
    std::os::unix::fs::symlink("/bin/bash", &agent).unwrap();
    let mut command = machine.command(&[]);
    let environment: Vec<_> = command.get_envs().filter_map(|(n, v)| Some((n.to_owned(), v?.to_owned()))).collect();
    command = Command::new(&agent);
    command.args(["--norc", "-c", &format!("{PROGRAM} attach mine; echo code $?; :")]).env_clear().envs(environment);
    let mut terminal = Terminal::new();
    let mut child = terminal.start(&command);
    terminal.wait(&mut child);
    terminal.until("code 5");
    kill(&run["host_pid"], Signal::TERM);
    eventually("the program is ended", || (!is_alive(&run["pid"])).then_some(()));
}

#[test]
fn a_run_is_not_shown_within_itself() {
    let machine = machine();
    let mut terminal = Terminal::new();
    let script = format!("{PROGRAM} attach mine; echo code $?");
    let mut child = terminal.start(&machine.command(&["run", "--name", "mine", "--", "sh", "-c", &script]));
    terminal.wait(&mut child);
    terminal.until("code 5");
}

#[test]
fn arguments_may_be_long() {
    let machine = machine();
    let long = "é".repeat(60_000);
    let mut terminal = Terminal::new();
    let words =
        ["sh", "-c", "printf %s \"$1$9\" | wc -c", "sh", &long, &long, &long, &long, &long, &long, &long, &long, &long];
    let mut child = terminal.start(&run(&machine, &words));
    terminal.wait(&mut child);
    assert_eq!(String::from_utf8_lossy(&terminal.seen), "240000\r\n");
}

#[test]
fn a_terminal_left_in_disorder_is_put_right() {
    let machine = machine();
    let mut terminal = Terminal::new();
    let mut command = Command::new("sh");
    command.args(["-c", &format!("stty raw -echo; {PROGRAM} fix-tty; stty -a")]).env("HOME", machine.home());
    let mut child = terminal.start(&command);
    terminal.wait(&mut child);
    let text = String::from_utf8_lossy(&terminal.seen).into_owned();
    assert!(text.contains("\x1b[?1049l") && text.contains(" icanon") && text.contains(" echo "), "{text}");
}
