//! Every view of the command line at 40, 80, 120 and 200 columns, compared with what is in `views/`.
//!
//! `UPDATE_VIEWS=1` writes the files. Ids, times, process ids and directories of the test are masked by what is as long.

use std::{fs, path::Path};

use regex::Regex;
use serde_json::Value;
use tests::{
    PATIENCE, eventually,
    program::{Machine, Server},
    terminal_user::{User, end_all},
    transcript::session,
    within,
};

use super::{
    PROGRAM,
    first_look::{ENDED, waiting_agents},
};

/// Columns of text.
const WIDTHS: [u16; 4] = [40, 80, 120, 200];

/// What differs from one test to the next, and what stands for it.
struct Mask {
    /// The directory of the test.
    dir: String,
    /// Ids that the program makes up.
    ids: Vec<String>,
    patterns: Vec<(Regex, &'static str)>,
}

impl Mask {
    fn new(machine: &Machine, server: &Server) -> Self {
        let mut ids = Vec::new();
        for (path, list, id) in [
            ("/api/v1/sessions?active=all", "sessions", "id"),
            ("/api/v1/approvals", "approvals", "id"),
            ("/api/v1/runs", "runs", "id"),
            ("/api/v1/runs", "runs", "run_id"),
        ] {
            let rows = server.client.json(path).map(|page| page[list].clone());
            let rows = rows.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
            ids.extend(rows.iter().filter_map(|row| row[id].as_str()).map(str::to_owned));
        }
        let pattern = |text: &str, instead| (Regex::new(text).unwrap(), instead);
        Self {
            dir: machine.home().parent().unwrap().to_str().unwrap().to_owned(),
            ids,
            patterns: vec![
                pattern(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "2026-11-20 04:37:12"),
                pattern(r"\b\d\d:\d\d:\d\d\b", "04:37:12"),
                pattern(r"\b\d{4}-\d\d-\d\dT[0-9:.]+Z", "2026-11-20T04:37:12.000Z"),
                pattern(r"\bf[0-9a-f]{16}\b", "f0000000000000000"),
                pattern(r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b", "00000000000000000000000000"),
                pattern(r"\b(pid|process)( +)\d+", "${1}${2}0"),
                // The directory of the test by its last name.
                pattern(r"\.tmp[0-9A-Za-z]{6}\b", ".tmpxxxxxx"),
                pattern(r"127\.0\.0\.1:\d+", "127.0.0.1:0"),
                // Whether the transcript or the registry was read first decides from when on a session counts as quiet.
                pattern(r"\b[34]\dm\b", "40m"),
                pattern(r"\b\ds\b", "0s"),
                pattern(r"\b\d\ds\b", "0s "),
            ],
        }
    }

    fn apply(&self, text: &str) -> String {
        let mut text = text.replace(&self.dir, &format!("{:x<width$}", "/tmp/test", width = self.dir.len()));
        for id in &self.ids {
            text = text.replace(id, &"0".repeat(id.len())).replace(&id[id.len() - 8..], "00000000");
        }
        for (pattern, instead) in &self.patterns {
            text = pattern.replace_all(&text, *instead).into_owned();
        }
        text.lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
    }
}

/// A view at all widths; those that are alike are one.
fn at_all_widths(view: impl Fn(u16) -> String) -> String {
    let mut shown: Vec<(Vec<String>, String)> = Vec::new();
    for width in WIDTHS {
        let text = view(width);
        match shown.last_mut().filter(|(_, before)| *before == text) {
            Some((widths, _)) => widths.push(width.to_string()),
            None => shown.push((vec![width.to_string()], text)),
        }
    }
    shown.into_iter().map(|(widths, text)| format!("=== {} columns\n{text}", widths.join(", "))).collect()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "whether to write is the environment's to say")]
fn views_are_as_they_were() {
    let update = std::env::var_os("UPDATE_VIEWS").is_some();
    let machine = Machine::new(PROGRAM);
    machine.newest_agents();
    // It would stand beside the approval at the same moment.
    machine.configure("[monitor]\noff = [\"approval_backlog\"]\n");
    let agents = waiting_agents(&machine);
    // The transcripts are read first, then what the agents say of themselves: the other way round the approval would
    // not know yet what it is about.
    let (entries, aside) = (machine.home().join(".claude/sessions"), machine.home().join("aside"));
    fs::rename(&entries, &aside).unwrap();
    let server = machine.serve();
    for n in 1..=4 {
        server.caught_up(&session(n), &machine.claude(&session(n)));
    }
    eventually("the processes of Codex are found", || {
        let rows = server.client.json("/api/v1/sessions?active=true")?;
        (rows["sessions"].as_array()?.iter().filter(|row| row["pid"].is_u64()).count() >= 2).then_some(())
    });
    assert!(server.stop().success());
    fs::remove_dir(&entries).ok();
    fs::rename(&aside, &entries).unwrap();
    let server = machine.serve();
    let are_there = within(PATIENCE, || {
        let rows = server.client.json("/api/v1/sessions?active=true")?;
        let findings = server.client.json("/api/v1/findings")?;
        let linked = rows["sessions"].as_array()?.iter().all(|row| row["pid"].is_u64());
        (linked && rows["sessions"].as_array()?.len() == 6 && findings["findings"].as_array()?.len() == 4).then_some(())
    });
    assert!(are_there.is_some(), "the agents are not all there");
    let started = machine.command(&["run", "--name", "build", "--detach", "--", "sleep", "600"]).output().unwrap();
    assert!(started.status.success(), "{started:?}");
    eventually("the run has a session", || {
        server.client.json("/api/v1/runs")?["runs"][0]["session_id"].as_str().map(str::to_owned)
    });
    let mask = Mask::new(&machine, &server);
    let approval = server.client.json("/api/v1/approvals").unwrap()["approvals"][0]["id"].as_str().unwrap().to_owned();
    let asks = session(1);
    let views: [(&str, &[&str]); 15] = [
        ("runs", &["runs"]),
        ("overview", &[]),
        ("ps", &["ps"]),
        ("ps-all", &["ps", "--all"]),
        ("show", &["show", &asks]),
        ("explain", &["explain", ENDED]),
        ("approvals", &["approvals"]),
        ("approvals-id", &["approvals", &approval]),
        ("findings", &["findings"]),
        ("policy-explain", &["policy", "explain", "cd /srv && git push --force"]),
        ("doctor", &["doctor"]),
        ("hooks-status", &["hooks", "status"]),
        ("standup", &["standup", "--since", "2h"]),
        ("queue", &["queue"]),
        ("config-show", &["config", "show"]),
    ];
    let dir = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/views"));
    let (number, age) = (Regex::new(r"\d+").unwrap(), Regex::new(r" +\d+[sm]  ").unwrap());
    let mut wrong = Vec::new();
    let mut compare = |name: &str, shown: String| {
        let file = dir.join(format!("{name}.txt"));
        if update {
            fs::create_dir_all(dir).unwrap();
            fs::write(&file, &shown).unwrap();
        }
        let expected = fs::read_to_string(&file).unwrap_or_default();
        if expected != shown {
            wrong.push(format!("{}:\n{}", file.display(), diff(&expected, &shown)));
        }
    };
    for (name, arguments) in views {
        let view = |width: u16| {
            let output = machine.command(arguments).env("COLUMNS", width.to_string()).output().unwrap();
            let text = mask.apply(&String::from_utf8(output.stdout).unwrap());
            // How much there is differs from one test to the next.
            match name {
                "doctor" => number.replace_all(&text, "0").into_owned(),
                // Whether an agent's process was found before it counted as quiet decides how old its finding is.
                "findings" => age.replace_all(&text, "  0s  ").into_owned(),
                _ => text,
            }
        };
        compare(name, at_all_widths(view));
    }
    compare("ps-watch", at_all_widths(|width| mask.apply(&watched(&machine, width))));
    end_all(&machine.data());
    drop(agents);
    assert!(wrong.is_empty(), "UPDATE_VIEWS=1 writes them\n{}", wrong.join("\n"));
}

/// The first screen of `ps --watch` on a terminal of this width.
fn watched(machine: &Machine, width: u16) -> String {
    let mut user = User::start(machine, &format!("stty cols {width} rows 24; \"$PROGRAM\" ps --watch"));
    let shown = user.expect("quit") + "quit\n";
    user.is_raw_soon();
    user.types("q");
    user.end();
    let drawn = Regex::new(r"\x1b\[[0-9;?]*[A-Za-z]|\r").unwrap();
    drawn.replace_all(&shown, "").into_owned()
}

fn diff(expected: &str, shown: &str) -> String {
    similar::TextDiff::from_lines(expected, shown).unified_diff().header("expected", "shown").to_string()
}
