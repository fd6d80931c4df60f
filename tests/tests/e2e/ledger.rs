//! The ledger under kill -9 (T2, T9, T11, T12, T13, T22, S1): writers append, cut, rewrite, rotate and repeat history,
//! and old sessions are imported, while the program is killed and restarted. Every record that stayed in a file is in
//! the log once, as it was written.
//!
//! A writer waits until the log has all records of its file before it removes any, so no record may be lost.
//! `KILLS=1000` for the long run, `SEED` for another sequence; `tests/kills` runs it.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant, UNIX_EPOCH},
};

use serde_json::Value;
use tests::{
    Random, eventually, number_from_env,
    program::{Machine, a_moment, events},
    transcript::{answer, append, codex_head, codex_words, prompt, session, uuid},
    within,
};

use super::PROGRAM;

/// How long the log may take to catch up with a file, kills included.
const CATCH_UP: Duration = Duration::from_secs(30);
/// Modification time of imported sessions: 2026-10-20.
const WRITTEN_AT: Duration = Duration::from_secs(1_792_454_400);
/// The longest pause between two imports, ms.
const IMPORT_PAUSE_MS: u64 = 4_000;
const CODEX_SESSION: &str = "01a18444-5331-76d0-931f-fe2783107086";

#[derive(Default)]
struct Tally {
    records: AtomicU64,
    cuts: AtomicU64,
    rewrites: AtomicU64,
    rotations: AtomicU64,
    replacements: AtomicU64,
    repeats: AtomicU64,
    halves: AtomicU64,
    imports: AtomicU64,
}

impl Tally {
    fn note(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// A writer of one Claude transcript, and its side of the ledger.
struct Writer {
    number: u64,
    machine: Arc<Machine>,
    path: PathBuf,
    session: String,
    cwd: String,
    random: Random,
    next: u64,
    /// Texts of all records that were ever complete in the file.
    written: Vec<String>,
    /// Lines currently in the file.
    lines: Vec<String>,
    /// The second half of a record whose first half is in the file, its text and its whole line.
    half: Option<(String, String, String)>,
    /// How often each text occurs in the part of the log read so far.
    logged: HashMap<String, usize>,
    after: u64,
    tally: Arc<Tally>,
}

impl Writer {
    fn new(number: u64, machine: &Arc<Machine>, seed: u64, tally: &Arc<Tally>) -> Self {
        let session = session(number);
        Self {
            number,
            path: machine.claude(&session),
            session,
            cwd: machine.project().to_str().unwrap().to_owned(),
            machine: Arc::clone(machine),
            random: Random::new(seed ^ (number << 20)),
            next: 0,
            written: Vec::new(),
            lines: Vec::new(),
            half: None,
            logged: HashMap::new(),
            after: 0,
            tally: Arc::clone(tally),
        }
    }

    /// A new record: its text and its line.
    fn record(&mut self, pad: usize) -> (String, String) {
        let n = self.next;
        self.next += 1;
        let text = format!("w{} n{n} {}", self.number, "x".repeat(pad));
        let id = uuid(self.number, n);
        let line = if n % 3 == 2 {
            answer(&self.session, &id, &self.cwd, &text)
        } else {
            prompt(&self.session, &id, &self.cwd, &text)
        };
        (text, line)
    }

    fn some_record(&mut self) -> (String, String) {
        let pad = if self.random.below(20) == 0 { 700 } else { self.random.below(60) as usize };
        self.record(pad)
    }

    fn whole(&mut self, text: String, line: String) {
        Tally::note(&self.tally.records);
        self.written.push(text);
        self.lines.push(line);
    }

    /// Completes a half record, so that the file ends with a line.
    fn complete(&mut self) {
        if let Some((rest, text, line)) = self.half.take() {
            append(&self.path, &rest);
            self.whole(text, line);
        }
    }

    fn step(&mut self) {
        match self.random.below(16) {
            0..=7 => self.append_some(),
            8..=9 => self.write_half(),
            10 => self.repeat_history(),
            11 => self.cut(),
            12 => self.rewrite(),
            13 => self.rotate(),
            14 => self.replace(),
            _ => self.remove_and_make(),
        }
    }

    fn append_some(&mut self) {
        self.complete();
        for _ in 0..=self.random.below(5) {
            let (text, line) = self.some_record();
            append(&self.path, &line);
            self.whole(text, line);
        }
    }

    fn write_half(&mut self) {
        self.complete();
        let (text, line) = self.some_record();
        let at = 1 + self.random.below(line.len() as u64 - 2) as usize;
        append(&self.path, &line[..at]);
        self.half = Some((line[at..].to_owned(), text, line));
        Tally::note(&self.tally.halves);
    }

    /// T13: compaction writes old records again.
    fn repeat_history(&mut self) {
        self.complete();
        let count = 1 + self.random.below(5) as usize;
        let again: String = self.lines.iter().rev().take(count).rev().cloned().collect();
        append(&self.path, &again);
        Tally::note(&self.tally.repeats);
    }

    /// T9: truncated to zero, then written shorter or longer than before.
    fn cut(&mut self) {
        self.caught_up();
        self.lines.clear();
        let records: Vec<(String, String)> = (0..=self.random.below(4)).map(|_| self.some_record()).collect();
        fs::File::options().write(true).truncate(true).open(&self.path).unwrap();
        if self.random.below(2) == 0 {
            a_moment(self.random.below(30));
        }
        for (text, line) in records {
            append(&self.path, &line);
            self.whole(text, line);
        }
        Tally::note(&self.tally.cuts);
    }

    /// T9: other records of the same total length, written in place.
    fn rewrite(&mut self) {
        self.caught_up();
        let size = fs::metadata(&self.path).unwrap().len() as usize;
        let (text, bare) = self.record(0);
        let Some(pad) = size.checked_sub(bare.len()).filter(|pad| *pad < 1_000_000) else {
            // The file is shorter than one record, so none is written; its number is used up.
            return;
        };
        self.next -= 1;
        let (_, line) = self.record(pad);
        assert_eq!(line.len(), size);
        let text = format!("{text}{}", "x".repeat(pad));
        fs::write(&self.path, &line).unwrap();
        self.lines.clear();
        self.whole(text, line);
        Tally::note(&self.tally.rewrites);
    }

    /// T11: the file is renamed, and a new file replaces it.
    fn rotate(&mut self) {
        self.caught_up();
        fs::rename(&self.path, self.path.with_extension("jsonl.1")).unwrap();
        self.lines.clear();
        if self.random.below(2) == 0 {
            a_moment(self.random.below(30));
        }
        self.append_some();
        Tally::note(&self.tally.rotations);
    }

    /// T11: like an editor: the old contents and more are written to a new file, which is renamed over the old one.
    fn replace(&mut self) {
        self.complete();
        let (text, line) = self.some_record();
        let beside = self.path.with_extension("new");
        fs::write(&beside, self.lines.concat() + &line).unwrap();
        fs::rename(&beside, &self.path).unwrap();
        self.whole(text, line);
        Tally::note(&self.tally.replacements);
    }

    /// T12: the file system may reuse the inode at once.
    fn remove_and_make(&mut self) {
        self.caught_up();
        fs::remove_file(&self.path).unwrap();
        self.lines.clear();
        self.append_some();
        Tally::note(&self.tally.rotations);
    }

    /// Waits until the log contains every record that was ever complete in the file.
    fn caught_up(&mut self) {
        self.complete();
        if self.written.is_empty() {
            self.append_some();
        }
        let wanted = self.written.clone();
        let done = within(CATCH_UP, || {
            self.read_log();
            wanted.iter().rev().all(|text| self.logged.contains_key(&key(text))).then_some(())
        });
        if done.is_none() {
            let missing: Vec<&str> = wanted
                .iter()
                .filter(|t| !self.logged.contains_key(&key(t)))
                .map(|t| t.split(" x").next().unwrap_or_default())
                .collect();
            panic!(
                "lost by {}: {missing:?}; the file has {} bytes",
                self.path.display(),
                fs::metadata(&self.path).map_or(0, |m| m.len())
            );
        }
    }

    /// Reads the events added to the log since the last call.
    fn read_log(&mut self) {
        let Some(client) = self.machine.any_client() else { return };
        let kinds = "user.prompt,assistant.message,assistant.delta";
        loop {
            let Some(page) = client.json(&format!(
                "/api/v1/sessions/{}/events?after={}&limit=1000&kind={kinds}",
                self.session, self.after
            )) else {
                return;
            };
            let Some(events) = page["events"].as_array().filter(|e| !e.is_empty()) else { return };
            for event in events {
                *self.logged.entry(key(event["text"].as_str().unwrap_or_default())).or_default() += 1;
            }
            self.after = page["next_after"].as_u64().unwrap();
        }
    }
}

/// The part of a text that names its record; the log truncates long texts.
fn key(text: &str) -> String {
    text.splitn(3, ' ').take(2).collect::<Vec<_>>().join(" ")
}

/// Appends to a rollout whose records have no ids; equal lines are different records.
fn write_codex(path: &Path, cwd: &str, seed: u64, stop: &AtomicBool) -> BTreeMap<String, usize> {
    let mut random = Random::new(seed ^ 0xc0de);
    let mut written: BTreeMap<String, usize> = BTreeMap::new();
    let mut all = codex_head(CODEX_SESSION, cwd);
    append(path, &all);
    let mut n = 0;
    while !stop.load(Ordering::Relaxed) {
        let text = if random.below(3) == 0 { format!("same {}", random.below(4)) } else { format!("codex {n}") };
        n += 1;
        let line = codex_words(&text);
        all.push_str(&line);
        match random.below(12) {
            0 => {
                let beside = path.with_extension("new");
                fs::write(&beside, &all).unwrap();
                fs::rename(&beside, path).unwrap();
            }
            1..=3 => {
                let at = 1 + random.below(line.len() as u64 - 2) as usize;
                append(path, &line[..at]);
                a_moment(random.below(40));
                append(path, &line[at..]);
            }
            _ => append(path, &line),
        }
        *written.entry(text).or_default() += 1;
        a_moment(random.below(60));
    }
    written
}

/// Copies whole old sessions next to the others, as restoring a home directory does.
fn import(machine: &Machine, seed: u64, tally: &Tally, stop: &AtomicBool) -> Vec<(String, Vec<String>)> {
    let mut random = Random::new(seed ^ 0x01d);
    let cwd = machine.project().to_str().unwrap().to_owned();
    let mut imported = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let number = 1_000 + imported.len() as u64;
        let name = session(number);
        let texts: Vec<String> = (0..20 + random.below(80))
            .map(|n| format!("i{number} n{n} {}", "y".repeat(random.below(60) as usize)))
            .collect();
        let line = |(n, text): (usize, &String)| prompt(&name, &uuid(number, n as u64), &cwd, text);
        let lines: String = texts.iter().enumerate().map(line).collect();
        let dir = machine.home().join(format!(".claude/projects/-old-{}", number % 7));
        fs::create_dir_all(&dir).unwrap();
        let beside = machine.project().join(&name);
        fs::write(&beside, lines).unwrap();
        let file = fs::File::options().write(true).open(&beside).unwrap();
        file.set_modified(UNIX_EPOCH + WRITTEN_AT).unwrap();
        fs::rename(&beside, dir.join(format!("{name}.jsonl"))).unwrap();
        tally.records.fetch_add(texts.len() as u64, Ordering::Relaxed);
        Tally::note(&tally.imports);
        imported.push((name, texts));
        a_moment(random.below(IMPORT_PAUSE_MS));
    }
    imported
}

/// The texts in the log of a session that differ from the written ones.
fn altered(machine: &Machine, session: &str, written: &BTreeMap<String, String>) -> Option<Vec<String>> {
    let client = machine.any_client()?;
    let mut altered = Vec::new();
    for event in events(&client, session)? {
        let Some(text) = event["text"].as_str() else { continue };
        let Some(wanted) = written.get(&key(text)) else { continue };
        let whole = match event["text_ref"]["hash"].as_str() {
            Some(hash) => client.get(&format!("/api/v1/texts/{hash}")).ok()?.text(),
            None => text.to_owned(),
        };
        if whole != *wanted {
            altered.push(format!("{session}: {:?} has {} bytes of {}", key(text), whole.len(), wanted.len()));
        }
    }
    Some(altered)
}

/// How often each text occurs in the log of a session.
fn logged(machine: &Machine, session: &str) -> Option<BTreeMap<String, usize>> {
    let all: Vec<Value> = events(&machine.any_client()?, session)?;
    let sequences: Vec<u64> = all.iter().map(|e| e["sequence"].as_u64().unwrap()).collect();
    assert_eq!(sequences, (1..=all.len() as u64).collect::<Vec<_>>(), "sequences of {session} are without gaps");
    let mut texts = BTreeMap::new();
    for event in all
        .iter()
        .filter(|e| ["user.prompt", "assistant.message", "assistant.delta"].contains(&e["kind"].as_str().unwrap()))
    {
        *texts.entry(key(event["text"].as_str().unwrap_or_default())).or_default() += 1;
    }
    Some(texts)
}

fn compare(who: &str, wanted: &BTreeMap<String, usize>, found: &BTreeMap<String, usize>) -> (Vec<String>, Vec<String>) {
    let (mut lost, mut doubled) = (Vec::new(), Vec::new());
    for text in wanted.keys().chain(found.keys()).collect::<std::collections::BTreeSet<_>>() {
        let (want, have) = (wanted.get(text).copied().unwrap_or(0), found.get(text).copied().unwrap_or(0));
        match have.cmp(&want) {
            std::cmp::Ordering::Less => lost.push(format!("{who}: {text:?} {have} of {want}")),
            std::cmp::Ordering::Greater => doubled.push(format!("{who}: {text:?} {have} of {want}")),
            std::cmp::Ordering::Equal => {}
        }
    }
    (lost, doubled)
}

#[test]
fn no_record_is_lost_duplicated_or_altered_by_random_server_kills() {
    let kills = number_from_env("KILLS", 50);
    let seed = number_from_env("SEED", 1) as u64;
    let machine = Arc::new(Machine::new(PROGRAM));
    let rollout =
        machine.home().join(format!(".codex/sessions/2026/11/20/rollout-2026-11-20T04-38-54-{CODEX_SESSION}.jsonl"));
    let tally = Arc::new(Tally::default());
    let stop = Arc::new(AtomicBool::new(false));
    let began = Instant::now();

    let writers: Vec<_> = (1..=3)
        .map(|number| {
            let (mut writer, stop) = (Writer::new(number, &machine, seed, &tally), Arc::clone(&stop));
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    writer.step();
                    a_moment(writer.random.below(25));
                }
                writer.complete();
                writer
            })
        })
        .collect();
    let codex = {
        let (rollout, cwd, stop) = (rollout, machine.project().to_str().unwrap().to_owned(), Arc::clone(&stop));
        std::thread::spawn(move || write_codex(&rollout, &cwd, seed, &stop))
    };

    let importer = {
        let (machine, tally, stop) = (Arc::clone(&machine), Arc::clone(&tally), Arc::clone(&stop));
        std::thread::spawn(move || import(&machine, seed, &tally, &stop))
    };

    let mut random = Random::new(seed ^ 0x6b11);
    let mut server = machine.serve();
    for _ in 0..kills {
        // Some servers are killed while they start, the others at work.
        if random.below(5) == 0 {
            server.kill();
            let (mut child, _) = machine.launch();
            a_moment(random.below(120));
            child.kill().unwrap();
            child.wait().unwrap();
        } else {
            a_moment(random.below(500));
            server.kill();
        }
        server = machine.serve();
    }
    stop.store(true, Ordering::Relaxed);
    let writers: Vec<Writer> = writers.into_iter().map(|w| w.join().expect("a writer")).collect();
    let mut wanted: Vec<(String, BTreeMap<String, usize>)> =
        writers.iter().map(|w| (w.session.clone(), w.written.iter().map(|text| (key(text), 1)).collect())).collect();
    wanted.push((CODEX_SESSION.to_owned(), codex.join().expect("the codex writer")));
    let codex_records = wanted.last().map_or(0, |(_, texts)| texts.values().sum::<usize>() as u64);
    let mut written: BTreeMap<String, String> =
        writers.iter().flat_map(|w| &w.written).map(|text| (key(text), text.clone())).collect();
    written.extend(wanted[3].1.keys().map(|text| (text.clone(), text.clone())));
    for (session, texts) in importer.join().expect("the importer") {
        wanted.push((session, texts.iter().map(|text| (key(text), 1)).collect()));
        written.extend(texts.into_iter().map(|text| (key(&text), text)));
    }

    let has_all = |machine: &Machine| {
        wanted
            .iter()
            .all(|(session, wanted)| {
                logged(machine, session).is_some_and(|found| wanted.iter().all(|(text, n)| found.get(text) >= Some(n)))
            })
            .then_some(())
    };
    within(CATCH_UP, || has_all(&machine));
    // One more start: records that the server reads again must not appear as new.
    server.stop();
    let server = machine.serve();
    let probe = session(9);
    append(&machine.claude(&probe), &prompt(&probe, &uuid(9, 1), "/", "probe"));
    server.caught_up(&probe, &machine.claude(&probe));

    let (mut lost, mut doubled, mut changed) = (Vec::new(), Vec::new(), Vec::new());
    for (session, wanted) in &wanted {
        let found = eventually("the log", || logged(&machine, session));
        let (l, d) = compare(session, wanted, &found);
        lost.extend(l);
        doubled.extend(d);
        changed.extend(eventually("the texts", || altered(&machine, session, &written)));
    }
    let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    println!(
        "LEDGER kills {kills} in {:.1} s: {} records, {} imports, {} cut short, {} rewritten, {} rotated or removed, {} \
         replaced, {} repeated, {} halves: {} lost, {} doubled, {} altered",
        began.elapsed().as_secs_f64(),
        of(&tally.records) + codex_records,
        of(&tally.imports),
        of(&tally.cuts),
        of(&tally.rewrites),
        of(&tally.rotations),
        of(&tally.replacements),
        of(&tally.repeats),
        of(&tally.halves),
        lost.len(),
        doubled.len(),
        changed.len(),
    );
    let well = lost.is_empty() && doubled.is_empty() && changed.is_empty();
    assert!(well, "lost {lost:#?}\ndoubled {doubled:#?}\naltered {changed:#?}");
}
