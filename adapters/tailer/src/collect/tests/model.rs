//! A model of the changes of a file: in every case, all complete content at the time of a check is committed once,
//! unaltered.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Op {
    /// Whole lines with ids are appended.
    Append(u8),
    /// A line above the cap is appended.
    Giant,
    /// Lines without ids are appended.
    Plain(u8),
    /// The first part of a line is appended, or more of it.
    Half,
    /// The rest of that line is appended.
    Finish,
    /// The file is truncated and rewritten with lines of about this percentage of the old length.
    Rewrite(u8),
    /// Another file replaces it under the same name.
    Replace(u8),
    /// The file is renamed, and a new one gets its old name.
    Rotate(u8),
    /// The file is removed, and created again immediately.
    Recreate(u8),
    /// The file is removed.
    Remove,
    /// The file is copied to another name and truncated.
    CopyTruncate,
    /// The content of the file is appended again.
    Again,
    /// The collector checks the file.
    Look,
    /// The collector checks the file, and is killed after some batches, before the next one is committed.
    Kill(u8),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        6 => (1..6_u8).prop_map(Op::Append),
        1 => Just(Op::Giant),
        2 => (1..4_u8).prop_map(Op::Plain),
        2 => Just(Op::Half),
        2 => Just(Op::Finish),
        2 => prop_oneof![Just(50), Just(100), Just(100), Just(150)].prop_map(Op::Rewrite),
        1 => (0..4_u8).prop_map(Op::Replace),
        1 => (0..4_u8).prop_map(Op::Rotate),
        2 => (0..4_u8).prop_map(Op::Recreate),
        1 => Just(Op::Remove),
        1 => Just(Op::CopyTruncate),
        1 => Just(Op::Again),
        8 => Just(Op::Look),
        3 => (0..6_u8).prop_map(Op::Kill),
    ];
    prop::collection::vec(op, 1..40)
}

/// The world: one file, its names, and the records that must and may have been seen.
struct World {
    case: Case,
    /// The incomplete line.
    half: String,
    lines: u32,
    names: u32,
    must: BTreeSet<String>,
    may: BTreeSet<String>,
}

impl World {
    fn new() -> Self {
        let limits = ReadLimits { batch_bytes: 150, line_bytes: 400, ..ReadLimits::default() };
        let case = case_of(CollectorConfig { limits, open_files: 2, ..config() });
        Self { case, half: String::new(), lines: 0, names: 0, must: BTreeSet::new(), may: BTreeSet::new() }
    }

    fn path(&self) -> PathBuf {
        self.case.path("f.jsonl")
    }

    fn line(&mut self) -> String {
        self.lines += 1;
        note(self.lines, &format!("v{}{}", self.lines, "~".repeat(self.lines as usize * 7 % 90)))
    }

    fn some(&mut self, count: u8) -> String {
        (0..count).map(|_| self.line()).collect()
    }

    /// Ends an incomplete line first, so that the text is not joined to it.
    fn append(&mut self, text: &str) {
        if !std::mem::take(&mut self.half).is_empty() {
            self.case.append("f.jsonl", "\n");
        }
        self.case.append("f.jsonl", text);
    }

    fn write(&mut self, text: &str) {
        self.half.clear();
        fs::write(self.path(), text).unwrap();
    }

    /// All complete records in the current files. A cut line is not one.
    fn whole(&self) -> BTreeSet<String> {
        let mut whole = BTreeSet::new();
        for entry in fs::read_dir(self.case.path("")).unwrap() {
            let text = fs::read_to_string(entry.unwrap().path()).unwrap();
            let ended = text.rfind('\n').map_or("", |end| &text[..end]);
            for line in ended.lines().filter(|line| line.trim_end().ends_with('}')) {
                whole.insert(if line.len() > 400 {
                    format!("oversized:{}", &blake3::hash(line.as_bytes()).to_hex()[..32])
                } else {
                    line.rsplit('"').nth(1).unwrap().to_owned()
                });
            }
        }
        whole
    }

    fn do_it(&mut self, op: &Op) {
        match op {
            Op::Append(count) => {
                let text = self.some(*count);
                self.append(&text);
            }
            Op::Giant => {
                self.lines += 1;
                let line = note(self.lines, &"g".repeat(450 + self.lines as usize));
                self.append(&line);
            }
            Op::Plain(count) => {
                let text = plain("p").repeat(usize::from(*count));
                self.append(&text);
            }
            Op::Half => {
                if self.half.is_empty() {
                    self.half = self.line();
                }
                let (now, rest) = self.half.split_at(self.half.len() / 2);
                self.case.append("f.jsonl", now);
                self.half = rest.to_owned();
            }
            Op::Finish => {
                let rest = std::mem::take(&mut self.half);
                self.case.append("f.jsonl", &rest);
            }
            Op::Rewrite(percent) => {
                let old = fs::metadata(self.path()).map_or(100, |meta| meta.len());
                let length = (old * u64::from(*percent) / 100) as usize;
                let line = self.line();
                let mut text = line;
                while text.len() + 60 < length {
                    text += &self.line();
                }
                // Same length to the byte, so that only times and content differ.
                if text.len() < length {
                    text.insert_str(text.len() - 1, &" ".repeat(length - text.len()));
                    let end = text.trim_end().len();
                    text.truncate(end);
                    while text.len() + 1 < length {
                        text.push(' ');
                    }
                    text.push('\n');
                }
                self.write("");
                self.write(&text);
            }
            Op::Replace(count) => {
                let text = self.some(*count);
                fs::write(self.case.home.path().join("new"), text).unwrap();
                fs::rename(self.case.home.path().join("new"), self.path()).unwrap();
                self.half.clear();
            }
            Op::Rotate(count) => {
                self.names += 1;
                let aside = self.case.path(&format!("rotated{}.jsonl", self.names));
                let _ = fs::rename(self.path(), aside);
                let text = self.some(*count);
                self.write(&text);
            }
            Op::Recreate(count) => {
                let text = self.some(*count);
                let _ = fs::remove_file(self.path());
                self.write(&text);
            }
            Op::Remove => {
                let _ = fs::remove_file(self.path());
                self.half.clear();
            }
            Op::CopyTruncate => {
                self.names += 1;
                let aside = self.case.path(&format!("copy{}.jsonl", self.names));
                if fs::copy(self.path(), aside).is_ok() {
                    self.write("");
                }
            }
            Op::Again => {
                let text = fs::read_to_string(self.path()).unwrap_or_default();
                let ended = text.rfind('\n').map_or(0, |end| end + 1);
                self.append(&text[..ended]);
            }
            Op::Look => self.look(),
            Op::Kill(batches) => {
                self.case.batches_left = usize::from(*batches);
                self.case.steady += seconds(5.0);
                let _ = self.case.settle();
                self.case.batches_left = usize::MAX;
                self.case.restart();
            }
        }
        self.may.extend(self.whole());
    }

    fn look(&mut self) {
        self.case.steady += seconds(5.0);
        let whole = self.whole();
        self.case.settle().unwrap();
        self.must.extend(whole);
    }
}

/// How often each record was committed.
fn committed(case: &Case) -> BTreeMap<String, usize> {
    let mut committed = BTreeMap::new();
    for value in &case.ingest.borrow().order {
        *committed.entry(value.clone()).or_insert(0) += 1;
    }
    committed
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tail_model_no_record_is_lost_duplicated_or_altered(ops in ops()) {
        let mut world = World::new();
        for op in &ops {
            world.do_it(op);
        }
        world.look();
        world.look();
        let committed = committed(&world.case);
        for record in &world.must {
            prop_assert!(committed.contains_key(record), "{record} is lost");
        }
        for (record, times) in &committed {
            let one_of_its_own = record.starts_with('v') || record.starts_with("oversized");
            prop_assert!(!one_of_its_own || *times == 1, "{record} was committed {times} times");
            let known = world.may.contains(record) || record == "removed" || record.starts_with("damaged");
            prop_assert!(known, "{record} was never written");
        }
    }

    /// Without rewriting, records without ids are counted exactly, despite cuts and kills.
    #[test]
    fn tail_model_records_without_ids_are_committed_exactly_once(ops in ops()) {
        let mut world = World::new();
        let mut plains = 0;
        for op in &ops {
            if let Op::Plain(count) = op {
                plains += usize::from(*count);
            }
            if matches!(op, Op::Append(_) | Op::Plain(_) | Op::Half | Op::Finish | Op::Look | Op::Kill(_) | Op::Giant) {
                world.do_it(op);
            }
        }
        world.look();
        let committed = committed(&world.case);
        prop_assert_eq!(committed.get("p").copied().unwrap_or(0), plains);
        for record in &world.must {
            prop_assert!(committed.contains_key(record), "{} is lost", record);
        }
    }
}
