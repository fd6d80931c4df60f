//! Measures the cost of wrapping a program's terminal: G10 (throughput of a flood) and G11 (delay of a key's echo),
//! each next to the bare terminal and the peers `script`, `asciinema` and `tmux`, if installed, in the same run. A pty
//! acts as the user's terminal.
//!
//! Run with `cargo bench -p capture --bench terminal -- g10 g11`; `BENCH_MB` and `BENCH_KEYS` set the amounts. No time
//! is asserted.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a measuring program, not a service"
)]

#[path = "observe/figures.rs"]
mod figures;

use std::{
    fs,
    io::{Read, Write},
    path::Path,
    time::{Duration, Instant},
};

use figures::{Better, Goal, Latencies, Report, median};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// Number of rounds per median.
const ROUNDS: usize = 5;
const SIZE: PtySize = PtySize { rows: 40, cols: 120, pixel_width: 0, pixel_height: 0 };

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |name: &str| asked.is_empty() || asked.iter().any(|a| a == name);
    let dir = tempfile::tempdir().unwrap();
    let mut report = Report::default();
    if wanted("g10") {
        throughput(dir.path(), &mut report);
    }
    if wanted("g11") {
        echo(dir.path(), &mut report);
    }
    report.table();
}

fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

/// One way to run a shell command in a terminal.
struct Way {
    name: &'static str,
    words: fn(&str, &Path) -> Vec<String>,
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

const BARE: Way = Way { name: "bare", words: |command, _| words(&["sh", "-c", command]) };
const OURS: Way = Way {
    name: "capture",
    words: |command, _| words(&[env!("CARGO_BIN_EXE_capture"), "run", "--", "sh", "-c", command]),
};
const SCRIPT: Way = Way { name: "script", words: |command, _| words(&["script", "-qec", command, "/dev/null"]) };
const ASCIINEMA: Way = Way {
    name: "asciinema",
    words: |command, dir| {
        let cast = dir.join("peer.cast");
        words(&["asciinema", "rec", "-q", "--overwrite", "-c", command, cast.to_str().unwrap()])
    },
};
const TMUX: Way = Way {
    name: "tmux",
    words: |command, dir| {
        let socket = dir.join("tmux");
        words(&["tmux", "-f", "/dev/null", "-S", socket.to_str().unwrap(), "new-session", command])
    },
};

/// The ways installed here.
fn ways() -> Vec<&'static Way> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let installed = |name: &str| std::env::split_paths(&paths).any(|dir| dir.join(name).is_file());
    let mut ways = vec![&BARE, &OURS];
    for peer in [&SCRIPT, &ASCIINEMA, &TMUX] {
        if installed(peer.name) {
            ways.push(peer);
        } else {
            println!("{} is not installed and is left out", peer.name);
        }
    }
    ways
}

/// A program in a terminal.
struct Terminal {
    master: Box<dyn MasterPty + Send>,
    child: Box<dyn Child + Send + Sync>,
}

impl Terminal {
    fn start(way: &Way, command: &str, dir: &Path) -> Self {
        let pair = native_pty_system().openpty(SIZE).unwrap();
        let mut builder = CommandBuilder::from_argv((way.words)(command, dir).into_iter().map(Into::into).collect());
        builder.env_clear();
        for (name, value) in [("TERM", "xterm-256color"), ("LANG", "C.UTF-8"), ("SHELL", "/bin/sh")] {
            builder.env(name, value);
        }
        builder.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        for name in ["HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "CAPTURE_DATA_DIR"] {
            let at = dir.join(name);
            fs::create_dir_all(&at).unwrap();
            builder.env(name, at);
        }
        let config = dir.join("XDG_CONFIG_HOME/capture");
        fs::create_dir_all(&config).unwrap();
        fs::write(config.join("config.toml"), "autostart = false\n").unwrap();
        builder.cwd(dir);
        let child = pair.slave.spawn_command(builder).unwrap();
        Self { master: pair.master, child }
    }
}

/// Measures each way once per round, so that other load on the machine affects all of them; returns the medians.
fn taken_in_turn(mut measure: impl FnMut(&'static Way) -> f64) -> Vec<(&'static str, f64)> {
    let ways = ways();
    let mut figures: Vec<Vec<f64>> = vec![Vec::new(); ways.len()];
    for _ in 0..ROUNDS {
        for (way, figures) in ways.iter().zip(&mut figures) {
            figures.push(measure(way));
        }
    }
    ways.iter().zip(figures).map(|(way, figures)| (way.name, median(figures))).collect()
}

/// The throughput of a flood for each way, MB/s.
fn throughput(dir: &Path, report: &mut Report) {
    let megabytes = number("BENCH_MB", 200);
    let flood = dir.join("flood.log");
    build_log(&flood, megabytes << 20);
    let command = format!("cat {}", flood.display());
    let figures = taken_in_turn(|way| {
        let rate = flood_once(way, &command, dir, megabytes);
        println!("g10 {}: {rate:.1} MB/s", way.name);
        rate
    });
    let of = |name: &str| figures.iter().find(|(n, _)| *n == name).map(|(_, rate)| *rate);
    let ours = of("capture").unwrap();
    for (peer, must, stretch) in [
        ("script", Some(0.9), None),
        ("asciinema", Some(1.3), None),
        ("tmux", Some(1.5), None),
        ("bare", None, Some(0.8)),
    ] {
        let Some(theirs) = of(peer) else { continue };
        report.goal(Goal {
            name: "G10",
            what: &format!("`capture run -- cat` of {megabytes} MB, against {peer}"),
            limit: format!("{theirs:.1} MB/s"),
            figure: format!("{ours:.1} MB/s"),
            value: ours / theirs,
            unit: "x",
            must,
            stretch,
            better: Better::More,
        });
    }
}

fn flood_once(way: &Way, command: &str, dir: &Path, megabytes: usize) -> f64 {
    let begun = Instant::now();
    let mut terminal = Terminal::start(way, command, dir);
    let mut reader = terminal.master.try_clone_reader().unwrap();
    let drain = std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        let mut bytes = 0_u64;
        while let Ok(n) = reader.read(&mut buffer) {
            if n == 0 {
                break;
            }
            bytes += n as u64;
        }
        bytes
    });
    terminal.child.wait().unwrap();
    let took = begun.elapsed();
    drop(terminal);
    let seen = drain.join().unwrap();
    // tmux shows only what fits its client; the others pass everything on.
    assert!(way.name == "tmux" || seen >= (megabytes << 20) as u64, "{}: only {seen} bytes came", way.name);
    (megabytes << 20) as f64 / 1e6 / took.as_secs_f64()
}

/// Lines like the output of a build, some with colours.
fn build_log(path: &Path, bytes: usize) {
    let mut text = String::with_capacity(bytes + 256);
    let mut n = 0_u64;
    while text.len() < bytes {
        n += 1;
        let colour = if n.is_multiple_of(4) { "\x1b[1;32m   Compiling\x1b[0m" } else { "   Compiling" };
        text += &format!("{colour} package-{n} v0.{}.{} (/home/dev/project/crates/package-{n})\n", n % 90, n % 13);
    }
    fs::write(path, text).unwrap();
}

/// The delay of a key's echo for each way.
fn echo(dir: &Path, report: &mut Report) {
    let keys = number("BENCH_KEYS", 1000);
    let figures = taken_in_turn(|way| {
        let times = Latencies::new(echo_once(way, dir, keys));
        println!("g11 {}: {} keys, {times}", way.name, times.count());
        1000.0 * times.at(0.5)
    });
    let of = |name: &str| figures.iter().find(|(n, _)| *n == name).map(|(_, p50)| *p50);
    let (ours, bare) = (of("capture").unwrap(), of("bare").unwrap());
    for peer in ["script", "asciinema", "tmux"] {
        let Some(theirs) = of(peer) else { continue };
        let goal = (peer == "script").then_some((1.25, 1.0));
        report.goal(Goal {
            name: "G11",
            what: &format!("echo of a key, p50, against {peer} (bare {bare:.0} us)"),
            limit: format!("{theirs:.0} us"),
            figure: format!("{ours:.0} us"),
            value: ours / theirs,
            unit: "x",
            must: goal.map(|g| g.0),
            stretch: goal.map(|g| g.1),
            better: Better::Less,
        });
    }
}

fn echo_once(way: &Way, dir: &Path, keys: usize) -> Vec<Duration> {
    let mut terminal = Terminal::start(way, "stty raw -echo; printf READY; exec cat", dir);
    let mut reader = terminal.master.try_clone_reader().unwrap();
    let mut writer = terminal.master.take_writer().unwrap();
    let mut buffer = vec![0; 1 << 16];
    let mut seen = Vec::new();
    while !seen.windows(5).any(|w| w == b"READY") {
        let n = reader.read(&mut buffer).unwrap();
        assert!(n > 0, "{}: it ended too soon", way.name);
        seen.extend_from_slice(&buffer[..n]);
    }
    let mut times = Vec::with_capacity(keys);
    for n in 0..keys {
        // People pause between keys, and keys that arrive together are echoed together.
        std::thread::park_timeout(Duration::from_millis(2));
        let key = b'a' + (n % 26) as u8;
        let typed = Instant::now();
        writer.write_all(&[key]).unwrap();
        loop {
            let got = reader.read(&mut buffer).unwrap();
            assert!(got > 0, "{}: it ended while keys were typed", way.name);
            if buffer[..got].contains(&key) {
                break;
            }
        }
        times.push(typed.elapsed());
    }
    terminal.child.kill().ok();
    drop((reader, writer, terminal.master));
    terminal.child.wait().unwrap();
    times
}
