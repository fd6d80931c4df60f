//! G1, G8 and G9: a first start until everything is searchable; a search on a warm server; `capture search` as a
//! separate process.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::Command,
    time::Instant,
};

use serde::Deserialize;

use crate::{
    corpus::{Files, World},
    figures::{Better, Goal, Latencies, Report, median, ms, rounded},
    limit::read_all,
    program::{ChildDirs, Program},
};

const ROUNDS: usize = 3;
/// Number of searches per query.
const SEARCHES: usize = 100;
/// Number of runs of the command.
const COMMANDS: usize = 20;
/// agentsview 0.46 on the 1 GB corpus: cold ingest, MB/s, and its fastest search, p95, ms.
const PEER_MBPS: f64 = 40.0;
const PEER_SEARCH_MS: f64 = 9.0;
/// The allowed time of a search, as a fraction of agentsview's.
const PEER_SHARE: f64 = 0.2;
/// cass 0.7: a cold search, ms.
const PEER_COLD_MS: f64 = 169.0;

/// Rare and common words, phrases, fields, prefixes, fuzzy words, each with the time of agentsview 0.46.1 for the same
/// query on a busy machine, ms: the median, if it is above its fastest search. It does not support fields, prefixes and
/// fuzzy words.
const QUERIES: &[(&str, f64)] = &[
    ("zephyrquartz", PEER_SEARCH_MS),
    ("obsidiankite", 20.0),
    ("error", 112.0),
    ("the", 219.0),
    ("%22the%20error%22", 31.0),
    ("agent%3Aclaude%20%22the%20error%22", 31.0),
    ("the%20error", 112.0),
    ("kind%3Aprompt%20error", PEER_SEARCH_MS),
    ("agent%3Aclaude%20error%20-test", PEER_SEARCH_MS),
    ("obsid*", PEER_SEARCH_MS),
    ("obsidiankits~1", PEER_SEARCH_MS),
    ("src%2Fmain.rs", PEER_SEARCH_MS),
    ("error&sort=time", 117.0),
];

#[derive(Deserialize)]
struct Page {
    matches: u64,
    took_us: u64,
}

fn search(program: &Program, query: &str) -> Page {
    let (code, body) = program.get(&format!("/api/v1/search?q={query}"));
    assert_eq!(code, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

pub(crate) fn measure(world: &mut World, report: &mut Report) {
    let Files { paths, bytes } = world.files();
    let mb = bytes as f64 / 1e6;
    read_all(&paths);
    let (mut limits, mut figures, mut peaks) = (Vec::new(), Vec::new(), Vec::new());
    let needles = world.needles();
    for round in 0..ROUNDS {
        let limit = read_all(&paths);
        let data = world.dir();
        let place = world.place(&data);
        let program = Program::start(&place);
        let (at, status) = program.searchable();
        let time = (at - program.started_at).as_secs_f64();
        let peak = program.memory("VmHWM");
        println!(
            "    {mb:.0} MB in {time:.2} s, {:.2} s of CPU, {} texts, index {:.0} MB, peak {peak:.0} MB (anonymous now {:.0} MB)",
            program.cpu(),
            status.texts,
            status.bytes as f64 / 1e6,
            program.memory("RssAnon"),
        );
        let busiest: Vec<String> =
            program.threads().iter().take(5).map(|(name, cpu)| format!("{name} {cpu:.2} s")).collect();
        println!("    of that: {}", busiest.join(", "));
        limits.push(mb / limit.time.as_secs_f64());
        figures.push(mb / time);
        peaks.push(peak);
        for (word, expected) in &needles {
            let found = search(&program, word).matches;
            println!("    {word}: {found} of {expected}, {}", if found == *expected { "right" } else { "WRONG" });
        }
        if round + 1 == ROUNDS {
            warm(&program, report);
            cold(&place, report);
        }
        program.stop();
        fs::remove_dir_all(data).unwrap();
    }
    let rate = median(figures);
    report.goal(Goal {
        name: "G1",
        what: "cold ingest with full text",
        limit: format!("reading alone {} MB/s; agentsview {PEER_MBPS} MB/s", rounded(median(limits))),
        figure: format!("{} MB/s", rounded(rate)),
        value: rate / PEER_MBPS,
        unit: " x agentsview",
        must: Some(6.0),
        stretch: Some(10.0),
        better: Better::More,
    });
    report.goal(Goal {
        name: "G7",
        what: "peak RSS of it, with the index",
        limit: "-".into(),
        figure: format!("worst of {ROUNDS}"),
        value: peaks.into_iter().fold(0.0, f64::max),
        unit: " MB",
        must: Some(200.0),
        stretch: Some(100.0),
        better: Better::Less,
    });
}

/// Searches over one persistent connection.
fn warm(program: &Program, report: &mut Report) {
    for (query, peer_ms) in QUERIES {
        let mut stream = TcpStream::connect(&program.address).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut times = Vec::with_capacity(SEARCHES);
        let mut page = Page { matches: 0, took_us: 0 };
        for round in 0..=SEARCHES {
            let began = Instant::now();
            page = ask(&mut stream, program, query);
            if round > 0 {
                times.push(began.elapsed());
            }
        }
        let times = Latencies::new(times);
        report.goal(Goal {
            name: "G8",
            what: &format!("`{query}` over HTTP, p95"),
            limit: format!("agentsview {peer_ms} ms"),
            figure: format!("{} matches, {times}, in the server {} us", page.matches, page.took_us),
            value: times.at(0.95),
            unit: " ms",
            must: Some(rounded_to_tenths(peer_ms * PEER_SHARE)),
            stretch: Some(1.0),
            better: Better::Less,
        });
    }
}

fn rounded_to_tenths(ms: f64) -> f64 {
    (ms * 10.0).round() / 10.0
}

fn ask(stream: &mut TcpStream, program: &Program, query: &str) -> Page {
    let (address, token) = (&program.address, &program.token);
    let head =
        format!("GET /api/v1/search?q={query} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let mut buffer = [0; 64 << 10];
    loop {
        let read = stream.read(&mut buffer).unwrap();
        assert!(read > 0, "the connection was closed");
        answer.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&answer);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if length.is_some_and(|length: usize| body.len() >= length) {
            return serde_json::from_str(body).unwrap();
        }
    }
}

/// Runs the command from start to exit.
fn cold(place: &ChildDirs<'_>, report: &mut Report) {
    let run = |data: &Path| {
        let began = Instant::now();
        let output = Command::new(env!("CARGO_BIN_EXE_capture"))
            .args(["search", "zephyrquartz", "--data-dir"])
            .arg(data)
            .env_clear()
            .env("HOME", place.home)
            .env("XDG_CONFIG_HOME", place.config)
            .env("PATH", "/usr/bin:/bin")
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        ms(began.elapsed())
    };
    let time = median((0..COMMANDS).map(|_| run(place.data)).collect());
    report.goal(Goal {
        name: "G9",
        what: "capture search as a process, median",
        limit: format!("cass {PEER_COLD_MS} ms"),
        figure: format!("median of {COMMANDS}"),
        value: time,
        unit: " ms",
        must: Some(20.0),
        stretch: Some(10.0),
        better: Better::Less,
    });
}
