//! The program's bytes reach the terminal unchanged and complete, at any amount and speed.

use std::{
    fs,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use tests::{
    PATIENCE, Random, eventually, number_from_env,
    terminal_user::{signal, state, status_number},
    within,
};

use super::TerminalMachine;

/// Maximum memory a host may use above its memory at rest, KiB.
const ROOM_KIB: u64 = 32 << 10;
/// Longer than the host would wait for a blocked terminal if it did not wait for it at the end.
const LATE: Duration = Duration::from_secs(4);

/// P1: the last output before the end. `RUNS=1000` for a longer test.
#[test]
fn the_last_bytes_before_exit_are_shown() {
    let here = TerminalMachine::new();
    for n in 0..number_from_env("RUNS", 50) {
        let (shown, status) = here.user("$PROGRAM run -- printf Bingo").end();
        assert_eq!((String::from_utf8_lossy(&shown).as_ref(), status), ("Bingo", 0), "run {n}");
    }
}

/// P1: a large output.
#[test]
fn a_million_bytes_printed_before_exit_are_shown() {
    let here = TerminalMachine::new();
    for n in 0..number_from_env("RUNS", 5) {
        let (shown, status) = here.run("head -c 1048576 /dev/zero | tr '\\0' x; exit 7").end();
        assert_eq!((shown.len(), status), (1 << 20, 7), "run {n}");
        assert!(shown.iter().all(|b| *b == b'x'));
    }
}

/// P2.
#[test]
fn a_flood_of_output_uses_bounded_memory_and_ends_on_ctrl_c() {
    let here = TerminalMachine::new();
    let mut user = here.run("echo ready; read line; exec yes flood");
    user.expect("ready\r\n");
    let (launcher, host) = (here.launcher(), here.host());
    let at_rest = [launcher, host].map(|pid| status_number(pid, "VmRSS").unwrap());
    user.types("\n");
    let (mut read, enough) = (0, number_from_env("FLOOD_MIB", 32) << 20);
    while read < enough {
        read += user.skip();
    }
    for (pid, at_rest) in [launcher, host].into_iter().zip(at_rest) {
        let most = status_number(pid, "VmHWM").unwrap();
        assert!(most < at_rest + ROOM_KIB, "{pid}: {at_rest} KiB at rest, {most} KiB at most");
    }
    user.types("\x03");
    assert_eq!(user.end().1, 130);
}

/// P11.
#[test]
fn a_terminal_that_does_not_read_blocks_the_program() {
    const BYTES: usize = 24 << 20;
    let here = TerminalMachine::new();
    let mut user = here.run(&format!("echo ready; read line; head -c {BYTES} /dev/zero | tr '\\0' x; echo over"));
    user.expect("ready\r\n");
    let host = here.host();
    let at_rest = status_number(host, "VmRSS").unwrap();
    user.types("\n");
    user.expect("\n");
    // The output is not read. The host is idle once it stops reading as well.
    let writer = here.only("tr", |command| command.starts_with("tr "));
    let (mut last, mut same) = (0, 0);
    eventually("the program is held up", || {
        let io = fs::read_to_string(format!("/proc/{writer}/io")).ok()?;
        let written = io.lines().find_map(|line| line.strip_prefix("wchar: ")).unwrap().parse().unwrap();
        same = if written == last && written > 0 { same + 1 } else { 0 };
        last = written;
        (same == 20).then_some(())
    });
    assert!(last < BYTES as u64 / 2, "{last} bytes are somewhere");
    let most = status_number(host, "VmHWM").unwrap();
    assert!(most < at_rest + ROOM_KIB, "{at_rest} KiB at rest, {most} KiB at most");
    let (shown, status) = user.end();
    let blank = shown.iter().filter(|b| **b == b'x').count();
    assert_eq!((blank, status), (BYTES, 0));
    assert!(shown.ends_with(b"xover\r\n"));
}

/// P11: output that waits for a blocked terminal is neither lost nor reordered.
#[test]
fn a_terminal_that_pauses_gets_every_byte_in_order() {
    let here = TerminalMachine::new();
    let mut user = here.run("echo ready; read line; seq 100000 899999; exit 5");
    user.expect("ready\r\n");
    user.types("\n");
    user.expect("\n");
    let writer = here.only("seq", |command| command.starts_with("seq "));
    for pause in 0..4 {
        let (mut last, mut same) = (0, 0);
        eventually(&format!("the program is held up, pause {pause}"), || {
            let io = fs::read_to_string(format!("/proc/{writer}/io")).ok()?;
            let written: u64 = io.lines().find_map(|line| line.strip_prefix("wchar: ")).unwrap().parse().unwrap();
            same = if written == last && written > 0 { same + 1 } else { 0 };
            last = written;
            (same == 5).then_some(())
        });
        user.read_up_to((pause + 1) * 300_001);
    }
    let (shown, status) = user.end();
    let numbers = (100_000..900_000).flat_map(|n| format!("{n}\r\n").into_bytes());
    let expected: Vec<u8> = b"ready\r\n\r\n".iter().copied().chain(numbers).collect();
    let differs = shown.iter().zip(&expected).position(|(a, b)| a != b);
    assert_eq!((shown.len(), differs, status), (expected.len(), None, 5));
}

/// P1: the terminal is blocked until long after the end.
#[test]
fn the_last_bytes_reach_a_terminal_that_reads_them_late() {
    // More than a terminal buffers without a reader (68 KiB at most), and no more than the host queues.
    const BYTES: usize = 71_000;
    let here = TerminalMachine::new();
    let mut user = here.run(&format!("echo ready; read line; head -c {BYTES} /dev/zero | tr '\\0' x; exit 6"));
    user.expect("ready\r\n");
    let host = here.host();
    // From here on nothing is read.
    user.types("\n");
    eventually("the program has ended", || {
        (!user.processes().iter().any(|process| process.command.starts_with("sh -c echo ready"))).then_some(())
    });
    let since = Instant::now();
    eventually("time passes", || (since.elapsed() > LATE).then_some(()));
    assert!(state(host).is_some(), "the host waits for the terminal");
    let (shown, status) = user.end();
    assert_eq!((shown.iter().filter(|b| **b == b'x').count(), status), (BYTES, 6));
}

/// P10.
#[test]
fn non_text_bytes_are_passed_unchanged() {
    let here = TerminalMachine::new();
    let mut random = Random::new(7);
    let mut endless_osc = b"\x1b]0;".to_vec();
    endless_osc.resize(1 << 20, b't');
    let samples: &[(&str, Vec<u8>)] = &[
        ("every byte", (0..=255).cycle().take(4096).collect()),
        ("at random", (0..300_000).map(|_| random.below(256) as u8).collect()),
        (
            "split and broken UTF-8",
            "漢字🦀é".as_bytes().repeat(50).chunks(5).flat_map(|c| [c, b"\xc3\xff"].concat()).collect(),
        ),
        (
            "C1 and string sequences",
            b"\x9b31mred\x9c\x90q#0~\x9d0;t\x07\x1b_apc\x1b\\\x1b^pm\x1b\\\x1bPq\x18\x1a\x1b".repeat(20),
        ),
        ("an OSC without end", endless_osc.clone()),
        ("a DCS without end", [b"\x1bP".as_slice(), &endless_osc[4..]].concat()),
        ("silly parameters", b"\x1b[99999999999;;;;1;2;3m\x1b[0;0r\x1b[65535;65535H\x1b[?1049h\x1b[?1049l".repeat(30)),
    ];
    // Queries that a terminal would answer are not answered by capture either.
    let questions = b"\x1b[c\x1b[6n\x1b[?u\x1b]11;?\x07\x1b[>q".repeat(3);
    for (name, bytes) in samples.iter().chain([&("questions", questions)]) {
        fs::write(here.machine.project().join("sample"), bytes).unwrap();
        let (shown, status) = here.both("$RUN sh -c 's=$(stty -g); stty raw -echo; cat sample; stty $s'");
        assert_eq!(status, 0, "{name}");
        assert!(!shown.is_empty());
    }
    // One byte at a time.
    fs::write(here.machine.project().join("sample"), &samples[2].1).unwrap();
    here.both("$RUN dd if=sample bs=1 status=none");
}

/// P5.
#[test]
fn output_is_intact_and_the_last_size_applies_after_many_resizes() {
    let here = TerminalMachine::new();
    let script = "i=0; while [ $i -lt 3000 ]; do echo \"漢字かな交じり文 e\u{301} 🦀🦀 $i\"; i=$((i+1)); done; \
                  echo ready; while read line; do stty size; done; exit 4";
    let mut user = here.run(script);
    user.expect("字");
    let silly = [(1, 1), (0, 0), (65535, 65535), (2, 1), (1, 2), (3, 65535), (65535, 3), (80, 0), (0, 24), (200, 50)];
    for (columns, rows) in silly.iter().cycle().take(1000) {
        user.resize(*columns, *rows);
    }
    user.resize(101, 37);
    let told = user.expect("ready\r\n");
    let shown: Vec<&str> = told.lines().collect();
    assert_eq!(shown.len(), 3000);
    for (n, line) in shown.iter().enumerate().skip(1) {
        assert_eq!(*line, format!("漢字かな交じり文 e\u{301} 🦀🦀 {n}"));
    }
    let last = within(PATIENCE, || {
        user.types("\n");
        user.rest().contains("37 101\r\n").then_some(())
    });
    assert!(last.is_some(), "{}", user.rest());
    signal(here.launcher(), Signal::WINCH);
    user.types("\x04");
    assert_eq!(user.end().1, 4);
}

/// P4.
#[test]
fn a_process_holding_the_terminal_open_does_not_delay_the_exit() {
    let here = TerminalMachine::new();
    for holder in ["setsid sleep 9999", "sleep 9999", "(trap '' HUP TERM; exec sleep 9999)"] {
        let mut user = here.run(&format!("{holder} & echo done; exit 3"));
        let (shown, status) = user.end();
        assert_eq!((String::from_utf8_lossy(&shown).as_ref(), status), ("done\r\n", 3), "{holder}");
        assert_eq!(user.settings(), user.settings_before());
        // A process that does not ignore the hangup ends with the terminal.
        if holder == "sleep 9999" {
            here.is_deserted_soon(&user);
        } else {
            let pid = here.only("the holder", |command| command.starts_with("sleep"));
            signal(pid, Signal::KILL);
            here.is_deserted_soon(&user);
        }
    }
}
