//! Signals from the keyboard and from other processes, stopping and continuing, and nested runs.

use rustix::process::Signal;
use tests::{
    PATIENCE, eventually,
    terminal_user::{User, signal, state},
    within,
};

use super::TerminalMachine;

const PROMPT: &str = "prompt> ";

/// An interactive shell at its prompt, alone or under capture.
fn shell(here: &TerminalMachine, before: &str) -> User {
    let script = format!("PS1='{PROMPT}' {before} bash --norc --noprofile --noediting -i");
    let mut user = here.user(&script);
    user.expect(PROMPT);
    user
}

/// P8, also nested: the same within a run.
#[test]
fn a_run_can_be_stopped_with_ctrl_z_and_continued() {
    for before in ["", "$PROGRAM run --"] {
        let here = TerminalMachine::new();
        let mut user = shell(&here, before);
        // Words are split by quotes where they are typed, so that the echo is not mistaken for output.
        user.types("$PROGRAM run -- sh -c 'echo re''ady; read line; echo got:$line; stty size; exit 5'\n");
        user.expect("ready\r\n");
        let program = here.only("the program", |command| command.starts_with("sh -c echo re"));
        for round in 0..3_u16 {
            user.types("\x1a");
            user.expect("Stopped");
            user.expect(PROMPT);
            assert_eq!(state(program), Some('T'), "round {round}");
            user.types("echo al''ive\n");
            user.expect("alive\r\n");
            user.expect(PROMPT);
            user.resize(90 + round, 30 + round);
            user.types("fg\n");
            eventually("the program goes on", || (state(program) != Some('T')).then_some(()));
            user.is_raw_soon();
        }
        user.types("hello\n");
        user.expect("got:hello\r\n");
        user.expect("32 92\r\n");
        user.expect(PROMPT);
        user.types("echo status''=$?\n");
        user.expect("status=5\r\n");
        user.expect(PROMPT);
        user.types("exit 6\n");
        assert_eq!(user.end().1, 6, "{before}");
        assert_eq!(user.settings(), user.settings_before());
        here.is_deserted_soon(&user);
    }
}

/// P8: a viewer detaches, and a program stopped by its user stays stopped.
#[test]
fn a_detaching_viewer_does_not_continue_a_stopped_program() {
    let here = TerminalMachine::new();
    let mut user = shell(&here, "");
    user.types("$PROGRAM run --name one -- sh -c 'echo re''ady; read line; echo got:$line'\n");
    user.expect("ready\r\n");
    let program = here.only("the program", |command| command.starts_with("sh -c echo re"));
    user.types("\x1a");
    user.expect("Stopped");
    user.expect(PROMPT);
    let mut viewer = here.user("$PROGRAM attach --read-only one");
    viewer.is_raw_soon();
    viewer.types("\x1d");
    // The viewer is told that it is detached only after the host has removed it.
    assert_eq!(viewer.end().1, 0);
    assert_eq!(viewer.settings(), viewer.settings_before());
    // The next viewer is admitted only after the host has finished with the previous one.
    let mut next = here.user("$PROGRAM attach --read-only one");
    next.is_raw_soon();
    assert_eq!(state(program), Some('T'));
    user.types("fg\n");
    eventually("the program goes on", || (state(program) != Some('T')).then_some(()));
    user.is_raw_soon();
    user.types("hello\n");
    user.expect("got:hello\r\n");
    next.end();
}

/// P8: in the background the run leaves the terminal alone.
#[test]
fn a_stopped_run_continues_in_the_background() {
    let here = TerminalMachine::new();
    let mut user = shell(&here, "");
    user.types("$PROGRAM run -- sh -c 'echo re''ady; exec sleep 9999'\n");
    user.expect("ready\r\n");
    // Waits for `sleep` itself: a stop while the shell is starting it could be lost.
    let program = here.only("the program", |command| command.starts_with("sleep 9999"));
    user.types("\x1a");
    user.expect("Stopped");
    user.expect(PROMPT);
    user.types("bg\n");
    user.expect(PROMPT);
    eventually("the program goes on", || (state(program) != Some('T')).then_some(()));
    user.types("echo al''ive\n");
    user.expect("alive\r\n");
    user.types("kill %1; wait; echo ov''er\n");
    user.expect("over\r\n");
    user.types("exit\n");
    assert_eq!(user.end().1, 0);
    assert_eq!(user.settings(), user.settings_before());
    here.is_deserted_soon(&user);
}

/// P8: a program that stops itself.
#[test]
fn a_program_that_stops_itself_stops_its_run() {
    let here = TerminalMachine::new();
    let mut user = shell(&here, "");
    user.types("$PROGRAM run -- sh -c 'kill -STOP $$; echo on''ward; exit 3'\n");
    user.expect("Stopped");
    user.expect(PROMPT);
    user.types("fg\n");
    user.expect("onward\r\n");
    user.expect(PROMPT);
    user.types("echo status''=$?; exit\n");
    user.expect("status=3\r\n");
    user.end();
    assert_eq!(user.settings(), user.settings_before());
}

/// P8.
#[test]
fn a_nested_run_behaves_as_without_capture() {
    let here = TerminalMachine::new();
    let inner = "sh -c 'echo inner; stty size; exit 4'";
    let (shown, status) = here.both(&format!("$RUN sh -c \"echo outer; $RUN {inner}; echo code \\$?; exit 6\""));
    assert_eq!((shown.as_str(), status), ("outer\r\ninner\r\n24 80\r\ncode 4\r\n", 6));
}

/// P14.
#[test]
fn a_signal_is_delivered_once() {
    let here = TerminalMachine::new();
    let traps =
        ["INT", "QUIT", "WINCH", "USR1", "USR2"].map(|name| format!("trap 'echo got-{name}' {name}")).join("; ");
    let script = format!(
        "{traps}; trap 'exit 11' TERM; \
         (trap '' INT QUIT USR1 USR2; exec sleep 9999) & s=$!; echo ready; while kill -0 $s; do wait $s; done"
    );
    let mut user = here.run(&script);
    user.expect("ready\r\n");
    user.is_raw_soon();
    let launcher = here.launcher();
    // Each signal is awaited before the next is sent, so that they cannot be confused.
    user.types("\x03");
    user.expect("got-INT\r\n");
    user.types("\x1c");
    user.expect("got-QUIT\r\n");
    user.resize(90, 30);
    user.expect("got-WINCH\r\n");
    for (number, name) in [(Signal::USR1, "USR1"), (Signal::USR2, "USR2"), (Signal::INT, "INT"), (Signal::QUIT, "QUIT")]
    {
        signal(launcher, number);
        user.expect(&format!("got-{name}\r\n"));
    }
    signal(launcher, Signal::TERM);
    let (shown, status) = user.end();
    assert_eq!(status, 11);
    let shown = String::from_utf8_lossy(&shown).into_owned();
    for (name, times) in [("INT", 2), ("QUIT", 2), ("WINCH", 1), ("USR1", 1), ("USR2", 1)] {
        assert_eq!(shown.matches(&format!("got-{name}")).count(), times, "{name}: {shown:?}");
    }
}

/// Input typed before the program reads is not lost.
#[test]
fn input_typed_before_the_program_reads_is_delivered() {
    let here = TerminalMachine::new();
    let mut user = here.run("echo ready; sleep 0.2; read line; echo got:$line; cat");
    user.expect("ready\r\n");
    user.is_raw_soon();
    user.types("first line\nsecond\n");
    user.expect("got:first line\r\n");
    user.expect("second\r\n");
    user.types("\x04");
    assert_eq!(user.end().1, 0);
}

/// Much input for a program that does not read delays only that input.
#[test]
fn ctrl_c_interrupts_a_program_that_does_not_read_its_input() {
    let here = TerminalMachine::new();
    let mut user = here.run("stty -icanon -echo; echo ready; sleep 9999");
    user.expect("ready\r\n");
    user.is_raw_soon();
    // dash loses an interrupt that arrives between its vfork and exec.
    let sleeps = || user.processes().iter().any(|process| process.command == "sleep 9999").then_some(());
    eventually("the shell has started sleep", sleeps);
    user.types(vec![b'x'; 3000]);
    user.types("\x03");
    let ended = within(PATIENCE, || user.rest().contains("ended with 130").then_some(()));
    assert!(ended.is_some(), "{}", user.rest());
    assert_eq!(user.settings(), user.settings_before());
}
