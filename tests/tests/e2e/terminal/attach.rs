//! Detaching from a run and attaching again, several viewers, and clients that are refused.

use std::{fs, os::unix::fs::symlink, path::PathBuf};

use rustix::process::Signal;
use serde_json::Value;
use tests::{
    eventually,
    terminal_user::{User, signal},
};

use super::TerminalMachine;

/// A program a user works with: it prints each line typed.
const TELLS: &str = "echo ready; while read line; do echo \"got:$line\"; done; exit 3";

/// The description of the only run by its host.
fn description(here: &TerminalMachine) -> Value {
    eventually("a description of the run", || {
        let mut found: Vec<PathBuf> = fs::read_dir(here.machine.data().join("runs"))
            .ok()?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|e| e == "json"))
            .collect();
        assert!(found.len() < 2, "{found:?}");
        serde_json::from_str(&fs::read_to_string(found.pop()?).ok()?).ok()
    })
}

fn run_id(here: &TerminalMachine) -> String {
    description(here)["run"].as_str().unwrap().to_owned()
}

/// Attaches to the run from another terminal, without an agent among the ancestors.
fn attach(here: &TerminalMachine, arguments: &str) -> User {
    here.user(&format!("$PROGRAM attach {arguments}"))
}

fn with_key(here: &TerminalMachine, key: &str) -> User {
    let script = format!("$PROGRAM run --detach-key {key} -- sh -c \"$INNER\"");
    let mut user = User::start_with(&here.machine, &script, &[("INNER", TELLS)]);
    user.expect("ready\r\n");
    user.is_raw_soon();
    user
}

#[test]
fn a_user_can_detach_from_a_run_and_reattach() {
    let here = TerminalMachine::new();
    // The key as a plain byte, and as encoded by the keyboard protocols of kitty and xterm.
    for key in ["\x1d", "\x1b[93;5u", "\x1b[27;5;93~"] {
        let mut user = with_key(&here, "ctrl-]");
        let id = run_id(&here);
        user.types(key);
        let (shown, status) = user.end();
        let shown = String::from_utf8_lossy(&shown).into_owned();
        assert!(status == 0 && shown.contains("attach") && shown.contains(&id), "{status} {shown:?}");
        assert_eq!(user.settings(), user.settings_before());
        let mut again = attach(&here, &id[..20]);
        again.is_raw_soon();
        again.types("hello\n");
        again.expect("got:hello\r\n");
        // The default detach key of `attach`.
        again.types("\x1d");
        again.end();
        assert_eq!(again.settings(), again.settings_before());
        let mut last = attach(&here, &id);
        last.is_raw_soon();
        last.types("\x04");
        assert_eq!(last.end().1, 3);
        assert_eq!(last.settings(), last.settings_before());
        here.is_deserted_soon(&user);
        assert!(!here.machine.data().join(format!("runs/{id}.json")).exists());
        assert!(!here.machine.data().join(format!("runs/{id}.sock")).exists());
    }
}

#[test]
fn an_unconfigured_detach_key_is_sent_to_the_program() {
    let here = TerminalMachine::new();
    let mut user = here.run("stty -icanon -echo min 1; echo ready; head -c 1 | od -An -tx1; exit 2");
    user.expect("ready\r\n");
    user.is_raw_soon();
    user.types("\x1d");
    user.expect("1d\r\n");
    assert_eq!(user.end().1, 2);
}

/// Types a line until the viewer sees its echo: a viewer that has just attached may miss the first ones.
#[track_caller]
fn until_shown(typist: &mut User, line: &str, viewer: &mut User) {
    let told = format!("got:{line}");
    eventually(&format!("{told} is shown to a viewer"), || {
        typist.types(format!("{line}\n"));
        viewer.rest().contains(&told).then_some(())
    });
}

#[test]
fn a_second_terminal_attaches_read_only_with_a_notice() {
    let here = TerminalMachine::new();
    let mut first = here.run(TELLS);
    first.expect("ready\r\n");
    first.is_raw_soon();
    let mut second = attach(&here, &run_id(&here));
    second.expect("another terminal is attached, so this one only watches; `--take` takes");
    second.is_raw_soon();
    until_shown(&mut first, "one", &mut second);
    first.types("\x04");
    assert_eq!(first.end().1, 3);
    assert_eq!(second.end().1, 3);
}

#[test]
fn many_viewers_watch_and_only_one_terminal_types() {
    let here = TerminalMachine::new();
    let mut first = here.run(TELLS);
    first.expect("ready\r\n");
    first.is_raw_soon();
    let id = run_id(&here);
    let mut viewers: Vec<User> = (0..2).map(|_| attach(&here, &format!("--read-only {id}"))).collect();
    for viewer in &mut viewers {
        viewer.is_raw_soon();
        viewer.types("not me\n");
        until_shown(&mut first, "one", viewer);
    }
    let mut taker = attach(&here, &format!("--take {id}"));
    taker.is_raw_soon();
    taker.types("two\n");
    for user in viewers.iter_mut().chain([&mut first, &mut taker]) {
        assert!(!user.expect("got:two").contains("not me"));
    }
    // A viewer that detaches does not affect the others.
    drop(viewers.pop());
    taker.types("three\n");
    taker.expect("got:three");
    taker.types("\x04");
    assert_eq!(taker.end().1, 3);
    assert_eq!(first.end().1, 3);
    viewers[0].end();
    for user in viewers.iter().chain([&first, &taker]) {
        assert_eq!(user.settings(), user.settings_before());
    }
}

/// A viewer that does not read slows neither the program nor the other viewers.
#[test]
fn a_viewer_that_does_not_read_does_not_block_the_program() {
    let here = TerminalMachine::new();
    let mut first =
        here.run("echo ready; read line; head -c 8000000 /dev/zero | tr '\\0' x; echo over; read line; exit 3");
    first.expect("ready\r\n");
    let id = run_id(&here);
    let mut viewer = attach(&here, &format!("--read-only {id}"));
    viewer.is_raw_soon();
    first.is_raw_soon();
    first.types("\n");
    first.expect("over\r\n");
    // It sees the current screen.
    viewer.expect("over");
    first.types("\n");
    assert_eq!(first.end().1, 3);
    viewer.end();
}

/// A process started by an agent must not type into a run, not even into the agent's own.
#[test]
fn attach_is_refused_to_processes_of_an_agent() {
    let here = TerminalMachine::new();
    let agent = here.machine.project().join("claude");
    symlink("/bin/sh", &agent).unwrap();
    let mut first = here.run(TELLS);
    first.expect("ready\r\n");
    let id = run_id(&here);
    for arguments in ["", "--read-only", "--take"] {
        let script = format!("./claude -c '$PROGRAM attach {arguments} {id}; exit $?'");
        let (shown, status) = here.user(&script).end();
        let shown = String::from_utf8_lossy(&shown).into_owned();
        assert!(status == 5 && shown.contains("capture: "), "{arguments}: {status} {shown}");
        assert!(!shown.contains("ready"), "{shown}");
    }
    first.types("\x04");
    assert_eq!(first.end().1, 3);
}

/// A new viewer sees the existing screen, not only new output.
#[test]
fn a_new_viewer_gets_the_current_screen() {
    let here = TerminalMachine::new();
    let mut first =
        here.run("stty -echo; printf '\\033[2J\\033[5;9Hon the screen'; echo; echo ready; read line; exit 3");
    first.expect("ready\r\n");
    let mut viewer = attach(&here, &format!("--read-only {}", run_id(&here)));
    viewer.expect("on the screen");
    viewer.expect("ready");
    first.types("\n");
    assert_eq!(first.end().1, 3);
    viewer.end();
    assert_eq!(viewer.settings(), viewer.settings_before());
}

#[test]
fn attaching_to_an_unknown_or_dead_run_exits_with_4() {
    let here = TerminalMachine::new();
    assert_eq!(attach(&here, "01KAH1DZ7T").end().1, 4);
    // The files of a killed host are not listed as a run.
    let mut user = here.run(TELLS);
    user.expect("ready\r\n");
    let id = run_id(&here);
    signal(here.host(), Signal::KILL);
    user.end();
    assert_eq!(attach(&here, &id).end().1, 4);
    eventually("its description is removed", || {
        (!here.machine.data().join(format!("runs/{id}.json")).exists()).then_some(())
    });
}

#[test]
fn a_detached_run_starts_without_a_terminal() {
    let here = TerminalMachine::new();
    let began = here.machine.project().join("began");
    let script = format!("(echo $TERM; stty size) >{0}.part; mv {0}.part {0}; {TELLS}", began.display());
    let arguments = ["--json", "run", "--detach", "--name", "mine", "--size", "100x30", "--", "sh", "-c", &script];
    let output = here.output(&mut here.machine.command(&arguments));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let described = description(&here);
    for key in ["run", "name", "pid", "socket"] {
        assert_eq!(told[key], described[key], "{key}: {told} {described}");
    }
    assert_eq!(told["name"], "mine");
    let found = eventually("the program begins", || fs::read_to_string(&began).ok());
    assert_eq!(found, "xterm-256color\n30 100\n");
    let mut user = attach(&here, "mine");
    user.is_raw_soon();
    user.types("hello\n");
    user.expect("got:hello\r\n");
    user.types("\x04");
    assert_eq!(user.end().1, 3);
    here.is_deserted_soon(&user);
}

#[test]
fn attaching_to_a_run_from_inside_it_is_refused() {
    let here = TerminalMachine::new();
    let mut user = User::start_with(
        &here.machine,
        "$PROGRAM run --name mine -- sh -c \"$INNER\"",
        &[("INNER", "$PROGRAM attach mine; echo code $?")],
    );
    user.expect("code 5");
    user.end();
}
