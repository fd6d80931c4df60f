//! What the program observes: its streams, its environment, its position among the processes.

use std::{io::Write, process::Stdio};

use rustix::process::Signal;
use tests::{eventually, terminal_user::signal};

use super::TerminalMachine;

/// P9.
#[test]
fn redirected_streams_are_passed_to_the_program_unchanged() {
    let here = TerminalMachine::new();
    for script in [
        "$RUN sh -c 'cat; echo end' </dev/null",
        "printf 'a\\nb' | $RUN cat",
        "printf '' | $RUN cat",
        "$RUN sh -c 'echo out; echo err >&2' >file; cat file",
        "$RUN sh -c 'echo out; echo err >&2' 2>file; cat file",
        "$RUN sh -c 'echo out; echo err >&2' </dev/null >file 2>&1; cat file",
        "$RUN sh -c 'echo out; echo err >&2' | cat >file; cat file",
        "$RUN sh -c 'for n in 0 1 2; do test -t $n && echo $n; done' | cat",
        "$RUN sh -c 'for n in 0 1 2; do test -t $n && echo $n; done' </dev/null",
        "$RUN sh -c 'echo to-tty >/dev/tty' >file </dev/null",
        "{ $RUN yes; echo $? >code; } | head -n 1; cat code",
        "$RUN sh -c 'echo x; exit 3' >/dev/full",
        "$RUN head -c 3000000 /dev/zero | wc -c",
        "head -c 3000000 /dev/zero | $RUN wc -c",
    ] {
        here.both(script);
    }
}

/// P9: a closed stream behaves like one without input or output; our runtime opens it that way.
#[test]
fn closed_streams_do_not_block_a_run() {
    let here = TerminalMachine::new();
    for (closed, expected) in [(">&-", ""), ("2>&-", "x\r\n"), ("<&-", "x\r\n"), ("<&- >&- 2>&-", "")] {
        let mut user = here.user(&format!("$PROGRAM run -- sh -c 'cat; echo x; exit 3' {closed}"));
        // With output elsewhere the terminal is not made raw: a pager may be reading from it.
        if closed == "2>&-" {
            user.is_raw_soon();
        }
        if !closed.starts_with('<') {
            user.types("\x04");
        }
        let (shown, status) = user.end();
        assert_eq!(status, 3, "{closed}");
        assert_eq!(String::from_utf8_lossy(&shown), expected, "{closed}");
    }
}

/// P9: without any terminal.
#[test]
fn pipes_are_passed_through_without_a_terminal() {
    let here = TerminalMachine::new();
    let mut command = here.machine.command(&["run", "--", "sh", "-c", "cat; echo err >&2; exit 9"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"typed\x03\x04\xff without end").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(9));
    assert_eq!(output.stdout, b"typed\x03\x04\xff without end");
    assert_eq!(output.stderr, b"err\n");
    let output = here.output(&mut here.machine.command(&["run", "--", "sh", "-c", "kill -TERM $$"]));
    assert_eq!(output.status.code(), Some(143));
    let output = here.output(&mut here.machine.command(&["run", "--", "./nowhere"]));
    assert_eq!(output.status.code(), Some(127));
    // The reader closes the pipe early.
    let mut command = here.machine.command(&["run", "--", "yes"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(141));
}

/// A terminal can be requested without having one.
#[test]
fn run_tty_provides_a_terminal_when_there_is_none() {
    let here = TerminalMachine::new();
    let script = "for n in 0 1 2; do test -t $n && echo $n; done; stty size; exit 3";
    let output = here.output(&mut here.machine.command(&["run", "--tty", "--size", "90x33", "--", "sh", "-c", script]));
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!((shown.as_str(), output.status.code()), ("0\r\n1\r\n2\r\n33 90\r\n", Some(3)));
    // At the end of an input that is no terminal nothing is typed, neither a newline nor an end of file.
    let script = "read line && echo typed; echo over";
    let mut child =
        here.machine.command(&["run", "--tty", "--", "sh", "-c", script]).stdin(Stdio::null()).spawn().unwrap();
    let program = here.only("the program", |command| command.starts_with("sh -c read"));
    signal(program, Signal::KILL);
    let code = eventually("the launcher ends", || child.try_wait().unwrap());
    assert_eq!(code.code(), Some(137));
}

/// P15.
#[test]
fn the_environment_gains_only_the_run_id() {
    let here = TerminalMachine::new();
    let sorted = |run: &str| {
        let mut user = here.user(&format!("{run} env"));
        let (shown, status) = user.end();
        assert_eq!(status, 0);
        let text = String::from_utf8_lossy(&shown).replace('\r', "");
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.retain(|line| !line.starts_with("_=") && !line.starts_with("SCRIPT=") && !line.starts_with("RUN="));
        lines.sort();
        lines
    };
    let alone = sorted("");
    let (more, same): (Vec<String>, Vec<String>) =
        sorted("$PROGRAM run --").into_iter().partition(|line| line.starts_with("CAPTURE_RUN_ID="));
    assert_eq!(same, alone);
    assert_eq!((more.len(), more[0].len()), (1, "CAPTURE_RUN_ID=".len() + 26), "{more:?}");
}

/// P15.
#[test]
fn process_attributes_are_the_same_as_without_capture() {
    let here = TerminalMachine::new();
    for script in [
        // No descriptor of capture is inherited: 3 is the one that `ls` opens.
        "$RUN ls /proc/self/fd",
        "$RUN grep -E 'Sig(Blk|Cgt)|Threads|NoNewPrivs|Umask' /proc/self/status",
        // All but the last seven digits depend on the C library.
        "$RUN grep SigIgn /proc/self/status | grep -oE '.{7}$'",
        "trap '' INT QUIT USR1; $RUN grep SigIgn /proc/self/status | grep -oE '.{7}$'",
        "umask 027; $RUN sh -c 'umask; ulimit -n; nice; pwd'",
        "cd /; $RUN pwd",
        "$RUN stty -a",
        "stty -echo ixany erase ^K; $RUN stty -g; stty echo -ixany erase ^H",
        "stty rows 33 cols 77; $RUN stty size; stty rows 24 cols 80",
        // In the foreground of its own terminal.
        "$RUN sh -c 'read -r a b c d group e f front rest </proc/self/stat; test $group = $front && echo front'",
        "$RUN sh -c 'tty | grep -c /dev/pts/; echo x >/dev/tty'",
        "mkdir gone; cd gone; rmdir ../gone; $RUN sh -c 'echo still'",
        "$RUN sh -c 'echo \"$0\" \"$@\"' a 'b c' '' --help -x",
    ] {
        here.both(script);
    }
}

#[test]
fn no_capture_executes_the_program_directly() {
    let here = TerminalMachine::new();
    let script = "sh -c 'echo $$; exec $PROGRAM run --no-capture -- sh -c \"echo \\$\\$; env | grep -c ^CAPTURE_RUN_ID; exit 5\"'";
    let mut user = here.user(script);
    let (shown, status) = user.end();
    let shown = String::from_utf8_lossy(&shown).into_owned();
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!((lines.len(), status), (3, 5), "{shown}");
    assert_eq!((lines[0], lines[2]), (lines[1], "0"), "the same process, {shown}");
    assert!(!here.machine.data().join("runs").exists());
    let mut user = here.user("$PROGRAM run --no-capture -- ./nowhere");
    assert_eq!(user.end().1, 127);
}

/// An invalid configuration is reported before anything starts.
#[test]
fn run_with_an_invalid_configuration_starts_nothing() {
    let here = TerminalMachine::new();
    here.machine.configure("no_such_key = 1\n");
    let output = here.output(&mut here.machine.command(&["run", "--", "touch", "started"]));
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no_such_key"));
    assert!(!here.machine.project().join("../started").exists());
}

#[test]
fn long_arguments_are_passed_unchanged() {
    let here = TerminalMachine::new();
    here.both("long=$(printf '%060000d' 0); $RUN sh -c 'printf %s \"$1$9\" | wc -c' sh $long $long $long $long $long $long $long $long $long");
}
