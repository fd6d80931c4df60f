//! A program that is killed while writing loses no entry whose write was confirmed.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use session_tree::{NewEntry, Object, Session, Stamp};

/// Number of entries the writer would write if it were not killed.
const MANY: u32 = 50_000;

fn stamp(n: u32) -> Stamp {
    Stamp { now_ms: 1_767_323_045_000 + i64::from(n), random: u128::from(n) * 0x9e37_79b9_7f4a_7c15 }
}

fn said(n: u32) -> NewEntry {
    NewEntry::Message(Object::new().with("role", "user").with("content", format!("é{n} ").repeat(50)))
}

/// The writer: prints the id of each written entry. Run by the test below, in its own directory.
#[test]
#[ignore = "runs as a process that is killed"]
fn writer() {
    // Does nothing in a non-empty directory, so that running all ignored tests writes into no one's directory.
    if std::fs::read_dir(".").unwrap().next().is_some() {
        return;
    }
    let mut session = Session::create(Path::new("."), "/proj", None, stamp(0));
    for n in 1..MANY {
        let id = session.append(said(n), stamp(n)).unwrap().id().unwrap().to_owned();
        println!("written {} {id}", session.path().display());
    }
}

#[test]
fn confirmed_entries_survive_a_kill_of_the_writer() {
    for entries in [1, 2, 60, 400] {
        let directory = tempfile::TempDir::new().unwrap();
        let mut writer = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "writer", "--ignored", "--nocapture"])
            .current_dir(directory.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(writer.stdout.take().unwrap()).lines().map(Result::unwrap);
        // The first line starts with output of the test harness.
        let told = lines.filter_map(|line| line.split_once("written ").map(|(_, told)| told.to_owned()));
        let told: Vec<String> = told.take(entries).collect();
        writer.kill().unwrap();
        writer.wait().unwrap();

        let (path, _) = told[0].split_once(' ').unwrap();
        let path = directory.path().join(path);
        let mut session = Session::open(&path, "/proj", stamp(MANY)).unwrap();
        let there = session.tree().entries().len();
        assert!(there >= entries, "{there} of {entries}");
        for (entry, told) in session.tree().entries().iter().zip(&told) {
            assert!(told.ends_with(entry.id().unwrap()), "{told}");
        }
        session.append(said(0), stamp(MANY + 1)).unwrap();
        assert_eq!(session.tree().leaf_path().len(), there + 1);
    }
}
