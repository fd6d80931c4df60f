//! The end of the program, of its process group, of the launcher and of the host. The exit status is what a shell would
//! report, and the terminal settings are restored.

use rustix::process::Signal;
use tests::{
    eventually, number_from_env,
    terminal_user::{User, signal},
};

use super::TerminalMachine;

/// P13: `EVERY=1` tries all codes.
#[test]
fn the_exit_status_is_that_of_the_program() {
    let here = TerminalMachine::new();
    let step = number_from_env("EVERY", 17);
    let codes: Vec<String> = (0..256)
        .filter(|n| n % step == 0 || [1, 2, 126, 127, 128, 129, 130, 254].contains(n))
        .map(|n| n.to_string())
        .collect();
    let (shown, _) =
        here.both(&format!("for code in {}; do $RUN sh -c \"exit $code\"; echo $?; done", codes.join(" ")));
    assert_eq!(shown.lines().collect::<Vec<_>>(), codes);
}

/// P13.
#[test]
fn a_program_ended_by_a_signal_exits_with_128_plus_its_number() {
    let here = TerminalMachine::new();
    let signals = [1, 2, 3, 4, 6, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 31];
    let list = signals.map(|n: i32| n.to_string()).join(" ");
    // A shell also prints a message about the signal when it observes it itself, so only the numbers are compared.
    let script = format!(
        "ulimit -c 0; for n in {list}; do $PROGRAM run -- sh -c \"kill -$n \\$\\$; sleep 9999\"; echo $n=$?; done"
    );
    let mut user = here.user(&script);
    let (shown, _) = user.end();
    let expected: Vec<String> = signals.iter().map(|n| format!("{n}={}", 128 + n)).collect();
    assert_eq!(String::from_utf8_lossy(&shown).lines().collect::<Vec<_>>(), expected);
    assert_eq!(user.settings(), user.settings_before());
}

/// P13.
#[test]
fn a_command_that_cannot_be_started_exits_with_126_or_127() {
    let here = TerminalMachine::new();
    for (command, expected) in [
        ("./nowhere", 127),
        ("no-such-command-anywhere", 127),
        ("''", 127),
        ("./plain", 126),
        ("./", 126),
        ("./plain/below", 126),
    ] {
        let script = format!("echo text >plain; chmod 644 plain; $PROGRAM run -- {command}");
        let mut user = here.user(&script);
        let (shown, status) = user.end();
        let shown = String::from_utf8_lossy(&shown).into_owned();
        assert_eq!(status, expected, "{command}: {shown}");
        assert!(shown.ends_with("\r\n") && shown.contains(command.trim_matches('\'')), "{command}: {shown:?}");
        assert_eq!(user.settings(), user.settings_before(), "{command}");
        here.is_deserted_soon(&user);
    }
}

/// A started run: the terminal is raw and the program is running.
fn started(here: &TerminalMachine, script: &str) -> User {
    let mut user = here.run(&format!("{script}; echo ready; while :; do sleep 9999 & wait; done"));
    user.expect("ready\r\n");
    user.is_raw_soon();
    user
}

/// P3: the program is asked to end, then killed.
#[test]
fn a_program_ignoring_sigterm_is_killed() {
    let here = TerminalMachine::new();
    let mut user = started(&here, "trap '' TERM HUP INT");
    signal(here.launcher(), Signal::TERM);
    assert_eq!(user.end().1, 137);
    assert_eq!(user.settings(), user.settings_before());
    here.is_deserted_soon(&user);
}

/// P7.
#[test]
fn sigterm_to_the_launcher_ends_the_program() {
    let here = TerminalMachine::new();
    let mut user = started(&here, "trap 'echo asked; exit 9' TERM");
    signal(here.launcher(), Signal::TERM);
    let (shown, status) = user.end();
    assert_eq!(status, 9);
    assert!(shown.ends_with(b"asked\r\n"));
    assert_eq!(user.settings(), user.settings_before());
    here.is_deserted_soon(&user);
    let mut user = started(&here, "true");
    signal(here.launcher(), Signal::TERM);
    assert_eq!(user.end().1, 143);
    assert_eq!(user.settings(), user.settings_before());
}

/// P7.
#[test]
fn a_signal_to_the_host_ends_the_program() {
    for asked in [Signal::TERM, Signal::HUP, Signal::INT] {
        let here = TerminalMachine::new();
        let mut user = started(&here, "true");
        signal(here.host(), asked);
        user.end();
        assert_eq!(user.settings(), user.settings_before(), "{asked:?}");
        here.is_deserted_soon(&user);
    }
}

/// P7: the terminal of the launcher is restored however the launcher ended, and the program continues.
#[test]
fn the_terminal_is_restored_when_the_launcher_is_killed() {
    for (how, expected) in [(Signal::KILL, 137), (Signal::HUP, 129)] {
        let here = TerminalMachine::new();
        let mut user = started(&here, "true");
        signal(here.launcher(), how);
        assert_eq!(user.end().1, expected, "{how:?}");
        eventually("the settings are restored", || (user.settings() == user.settings_before()).then_some(()));
        let host = here.host();
        assert!(user.processes().iter().any(|process| process.command.starts_with("sh ")), "the program lives on");
        // A host without a terminal can be ended as well.
        signal(host, Signal::TERM);
        here.is_deserted_soon(&user);
        assert_eq!(user.settings(), user.settings_before());
    }
}

/// P7.
#[test]
fn the_terminal_is_restored_when_the_host_is_killed() {
    let here = TerminalMachine::new();
    let mut user = started(&here, "true");
    signal(here.host(), Signal::KILL);
    let (shown, status) = user.end();
    let shown = String::from_utf8_lossy(&shown).into_owned();
    assert!(status != 0 && shown.contains("capture: "), "{status} {shown:?}");
    assert_eq!(user.settings(), user.settings_before());
    // The program lost its terminal.
    here.is_deserted_soon(&user);
}

/// P7: a terminal that no process is left to restore.
#[test]
fn fix_tty_makes_a_terminal_usable() {
    let here = TerminalMachine::new();
    let mut user =
        here.user("stty raw -echo; printf '\\033[?1049h\\033[?1000h\\033[?2004h\\033[?25l'; $PROGRAM fix-tty");
    let (shown, status) = user.end();
    assert_eq!(status, 0);
    assert!(user.is_cooked());
    for word in ["ECHO", "ISIG", "OPOST", "ICRNL"] {
        assert!(user.settings().contains(word), "{word}: {}", user.settings());
    }
    for undone in ["\x1b[?1049l", "\x1b[?1000", "\x1b[?2004l", "\x1b[?25h"] {
        assert!(String::from_utf8_lossy(&shown).contains(undone), "{undone:?}");
    }
}

/// The terminal is closed: the program continues, or ends with it if requested.
#[test]
fn a_run_survives_a_closed_terminal_unless_on_hangup_is_end() {
    let here = TerminalMachine::new();
    let user = started(&here, "true");
    let host = here.host();
    user.walks_away();
    eventually("the launcher ends", || {
        (!here.processes().iter().any(|process| process.command.contains(" run -- "))).then_some(())
    });
    assert!(here.processes().iter().any(|process| process.pid == host), "the host lives on");
    signal(host, Signal::TERM);
    eventually("all is ended", || here.processes().is_empty().then_some(()));
    let mut user = here.user("$PROGRAM run --on-hangup end -- sh -c 'echo ready; sleep 9999; true'");
    user.expect("ready\r\n");
    user.walks_away();
    eventually("the program goes with it", || here.processes().is_empty().then_some(()));
}
