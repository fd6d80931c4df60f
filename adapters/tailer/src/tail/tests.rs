use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    os::unix::fs::{MetadataExt, symlink},
    path::PathBuf,
};

use super::{disk::ReadRefusal, *};
pub(crate) use faults::{Fault, Faulty};
pub(crate) use ingest::{Ingest, LINES, WHOLE, ago, note, note_of, now, plain};

mod faults;
pub(crate) mod ingest;
pub(crate) mod rows;

/// A file, a tail, and the ingest that commits its reads.
struct Case {
    home: tempfile::TempDir,
    reader: TailReader,
    spec: FileSpec,
    tail: Tail,
    ingest: Ingest,
    steady: Duration,
}

fn case() -> Case {
    case_of(LINES, ReadLimits::default())
}

fn case_of(spec: FileSpec, limits: ReadLimits) -> Case {
    let home = tempfile::tempdir().unwrap();
    let tail = Tail::new(RootedPath::new(home.path().to_str().unwrap(), "f"), Provider::Unknown, spec, None);
    Case { home, reader: TailReader::new(limits), spec, tail, ingest: Ingest::default(), steady: Duration::ZERO }
}

impl Case {
    fn path(&self) -> PathBuf {
        self.home.path().join("f")
    }

    fn write(&self, content: impl AsRef<[u8]>) {
        fs::write(self.path(), content).unwrap();
    }

    fn append(&self, content: impl AsRef<[u8]>) {
        let mut file = OpenOptions::new().append(true).create(true).open(self.path()).unwrap();
        file.write_all(content.as_ref()).unwrap();
    }

    fn try_look(&mut self) -> Result<TailRead, TailError> {
        self.steady += Duration::from_secs(3);
        let mut last;
        loop {
            last = self.tail.read(&mut self.reader, now(self.steady))?;
            let events = std::mem::take(&mut last.events);
            self.ingest.commit(events, self.tail.cursor(), last.vanished);
            if !last.more {
                return Ok(last);
            }
        }
    }

    fn look(&mut self) -> Vec<String> {
        let had = self.ingest.order.len();
        self.try_look().unwrap();
        self.ingest.order[had..].to_vec()
    }

    /// Kills the tail and starts again from the committed cursor.
    fn restart(&mut self) {
        let cursor = self.ingest.cursors.get(self.path().to_str().unwrap()).cloned();
        self.tail = Tail::new(self.tail.place().clone(), Provider::Unknown, self.spec, cursor);
    }

    fn generation(&self) -> u32 {
        self.tail.cursor().generation
    }
}

#[test]
fn tail_t1_a_line_is_read_only_once_its_newline_arrives() {
    let mut case = case();
    let line = note(1, "one");
    for byte in line.bytes().take(line.len() - 1) {
        case.append([byte]);
        assert!(case.look().is_empty());
        assert_eq!(case.tail.cursor().offset, 0);
    }
    case.append("\n");
    assert_eq!(case.look(), ["one"]);
    assert_eq!(case.tail.cursor().offset, line.len() as u64);
    assert_eq!(case.ingest.origins, [(case.path().display().to_string(), 1, 0, line.len() as u64 - 1)]);
}

#[test]
fn tail_t1_a_growing_partial_line_is_not_reread_each_time() {
    let mut case = case();
    let (disk, log) = Faulty::new(Fault::None);
    case.reader = TailReader::on(ReadLimits::default(), Box::new(disk));
    case.append("{\"id\":\"1\",\"v\":\"");
    for _ in 0..64 {
        case.append(vec![b'x'; 100_000]);
        assert!(case.look().is_empty());
    }
    assert!(log.bytes() < 30_000_000, "{} bytes were read for a line of 6.4 MB", log.bytes());
    case.append("\"}\n");
    assert_eq!(case.look(), ["x".repeat(6_400_000)]);
    assert_eq!(case.reader.buffer.bytes.len(), 256 * 1024);
}

#[test]
fn tail_t2_restarts_at_any_offset_lose_and_duplicate_no_record() {
    let text: String = (0..8).map(|n| if n % 3 == 0 { plain("same") } else { note(n, &format!("v{n}")) }).collect();
    for first in 0..text.len() {
        for second in [first, first + 1, (first + 40).min(text.len())] {
            let second = second.min(text.len());
            let mut case = case();
            case.append(&text[..first]);
            case.look();
            case.restart();
            case.append(&text[first..second]);
            case.look();
            case.restart();
            case.append(&text[second..]);
            case.look();
            let expected = ["same", "v1", "v2", "same", "v4", "v5", "same", "v7"];
            assert_eq!(case.ingest.order(), expected, "cut at {first} and {second}");
        }
    }
}

#[test]
fn tail_t3_t4_t5_reading_continues_after_damaged_lines() {
    let mut case = case();
    let (one, two, three) = (note(1, "one"), note(2, "two"), note(3, "three"));
    case.append(&one[..9]);
    case.append(&two);
    case.append(vec![0; 70_000]);
    case.append(three.trim_end());
    case.append("\r\n\n\r\n\u{feff}");
    case.append(note(4, "a\u{2028}b"));
    case.append(b"{\"id\":\"5\",\"v\":\"\xff\"}\n{\"id\":\"6\",\"v\":\"\\ud800\"}\n");
    let mut seen = case.look();
    // `feed` decides the order of the two parts of one line.
    seen[..2].sort();
    assert_eq!(seen, ["damaged:{\"id\":\"1\"", "two", "three", "a\u{2028}b", "\u{fffd}", "\u{fffd}"]);
    assert_eq!(case.tail.cursor().issues, 4);
    case.append(note(7, "seven"));
    assert_eq!(case.look(), ["seven"]);
}

#[test]
fn tail_t6_short_reads_change_nothing() {
    let text = format!("{}{}{}", note(1, "grüße"), plain("→"), note(2, &"ab".repeat(300)));
    for size in 1..64 {
        let mut case = case();
        case.reader = TailReader::on(ReadLimits::default(), Box::new(Faulty::new(Fault::Short(size)).0));
        case.append(&text);
        assert_eq!(case.look(), ["grüße", "→", &"ab".repeat(300)], "reads of {size}");
    }
}

#[test]
fn tail_t7_a_300_mib_line_is_read_in_a_256_kib_buffer() {
    let mut case = case();
    let (disk, _) = Faulty::new(Fault::Giant(300 << 20));
    let rest = note(1, "after") + &note(2, "last");
    case.append(&rest);
    case.reader = TailReader::on(ReadLimits::default(), Box::new(disk));
    let (mut peak, mut reads) = (0, 0);
    loop {
        let mut look = case.tail.read(&mut case.reader, now(Duration::ZERO)).unwrap();
        peak = peak.max(case.reader.buffer.bytes.len());
        reads += 1;
        case.ingest.commit(std::mem::take(&mut look.events), case.tail.cursor(), false);
        if !look.more {
            break;
        }
    }
    assert!(peak <= 256 * 1024, "{peak}");
    assert!(reads > 10, "the line came in slices: {reads}");
    let [stub, after @ ..] = &case.ingest.order()[..] else { panic!() };
    assert!(stub.starts_with("oversized:"), "{stub}");
    assert_eq!(after, ["after", "last"]);
    assert_eq!(case.tail.cursor().issues, 1);
    let (_, _, offset, length) = case.ingest.origins[0];
    assert_eq!((offset, length), (0, 300 << 20));
}

#[test]
fn tail_t7_only_lines_above_the_limit_become_stubs() {
    let limits = ReadLimits { line_bytes: 400_000, ..ReadLimits::default() };
    for length in [399_998_usize, 400_000, 400_001, 655_359, 655_360, 655_361, 900_000, 2_000_000] {
        for pieces in [1, 3] {
            let mut case = case_of(LINES, limits);
            let overhead = note(1, "").len() - 1;
            let line = note(1, &"x".repeat(length - overhead));
            for piece in line.as_bytes().chunks(line.len() / pieces + 1) {
                case.append(piece);
                case.look();
            }
            case.append(note(2, "next"));
            case.look();
            let hash = blake3::hash(line.trim_end().as_bytes()).to_hex();
            let expected =
                if length > 400_000 { format!("oversized:{}", &hash[..32]) } else { "x".repeat(length - overhead) };
            assert_eq!(case.ingest.order(), [expected.as_str(), "next"], "{length} in {pieces}");
            case.restart();
            case.append(note(3, "more"));
            assert_eq!(case.look(), ["more"], "the marks fit after {length} in {pieces}");
            assert_eq!(case.generation(), 1);
        }
    }
}

#[test]
fn tail_t8_hostile_records_and_panics_are_issues() {
    let mut case = case();
    case.append(format!("{}\n", "[".repeat(100_000)));
    case.append("{\"id\":\"1\",\"v\":1e400}\n{\"id\":\"2\",\"v\":\"panic\"}\n");
    case.append(note(3, "fine"));
    let seen = case.look();
    assert_eq!(seen.len(), 4);
    assert!(seen[2].starts_with("damaged:") && seen[3] == "fine");
    assert_eq!(case.tail.cursor().issues, 3);
}

#[test]
fn tail_t9_a_rewrite_of_any_length_starts_a_new_generation() {
    for (name, again) in
        [("shorter", note(8, "b")), ("same", note(9, "two")), ("longer", note(7, "bb") + &note(6, "bbb"))]
    {
        for restart in [false, true] {
            let mut case = case();
            case.write(note(1, "one"));
            case.look();
            case.write("");
            case.write(&again);
            if restart {
                case.restart();
            }
            assert_eq!(case.look().len(), again.lines().count(), "{name}");
            assert_eq!(case.generation(), 2, "{name}");
            assert_eq!(case.tail.cursor().decoder_state.as_deref(), Some(again.lines().count().to_string().as_str()));
        }
    }
}

#[test]
fn tail_t9_a_rewrite_beyond_the_head_is_detected_near_the_offset() {
    let mut case = case();
    let head: String = (0..200).map(|n| note(n, &format!("v{n}"))).collect();
    assert!(head.len() > 4096);
    case.write(head.clone() + &note("x", "old"));
    assert_eq!(case.look().len(), 201);
    let newer = "newer".repeat(20);
    case.write(head + &note("y", "new") + &note("z", &newer));
    assert_eq!(case.look(), ["new", &newer]);
    assert_eq!((case.generation(), case.ingest.repeats), (2, 200));
}

#[test]
fn tail_t9_a_partial_line_that_was_shortened_is_scanned_again() {
    let mut case = case();
    let half = format!("{{\"id\":\"1\",\"v\":\"{}", "x".repeat(400_000));
    case.append(&half);
    assert!(case.look().is_empty());
    case.write(format!("{}\"}}\n", &half[..300_000]));
    assert!(case.look() == [&half[15..300_000]]);
}

#[test]
fn tail_a_copy_renamed_over_the_file_starts_a_new_generation() {
    let mut case = case();
    case.write(note(1, "one"));
    case.look();
    case.restart();
    fs::copy(case.path(), case.home.path().join("copy")).unwrap();
    fs::rename(case.home.path().join("copy"), case.path()).unwrap();
    case.append(note(2, "two"));
    assert_eq!(case.look(), ["two"]);
    assert_eq!((case.generation(), case.ingest.repeats), (2, 1));
}

#[test]
fn tail_a_record_held_back_by_the_decoder_is_flushed_at_end_of_file() {
    let mut case = case();
    case.append(note(1, "one") + &note(2, "held"));
    assert_eq!(case.look(), ["one", "held"]);
    case.append(note(3, "held"));
    assert_eq!(case.look(), ["held"]);
}

#[test]
fn tail_t10_a_file_rewritten_during_a_read_is_read_again() {
    let mut case = case();
    case.write((0..50).map(|n| note(n, &format!("a{n}"))).collect::<String>());
    case.look();
    case.append(note("lost?", "x"));
    // The file is truncated and rewritten between the check of its size and the read.
    let (disk, _) = Faulty::new(Fault::RewriteBeforeRead {
        nth: 1,
        content: (0..80).map(|n| note(1000 + n, &format!("b{n}"))).collect(),
        path: case.path(),
    });
    case.reader = TailReader::on(ReadLimits::default(), Box::new(disk));
    case.restart();
    let seen = case.look();
    assert_eq!(seen.len(), 80);
    assert!(seen.iter().all(|value| value.starts_with('b')), "{seen:?}");
}

#[test]
fn tail_t11_a_rotated_file_is_read_to_its_end_first() {
    let mut case = case();
    case.write(note(1, "one"));
    case.look();
    case.append(note(2, "two"));
    fs::rename(case.path(), case.home.path().join("f.1")).unwrap();
    assert_eq!(case.look(), ["two", "removed"]);
    assert_eq!(case.ingest.vanished.len(), 1);
    case.write(note(3, "three"));
    assert_eq!(case.look(), ["three"]);
    // The file is replaced by a rename while lines are unread.
    case.append(note(4, "four"));
    fs::write(case.home.path().join("new"), note(5, "five")).unwrap();
    fs::rename(case.home.path().join("new"), case.path()).unwrap();
    assert_eq!(case.look(), ["four", "five"]);
    assert_eq!(case.generation(), 3);
}

#[test]
fn tail_t11_a_file_renamed_away_and_back_is_continued() {
    let mut case = case();
    case.write(note(1, "one"));
    case.look();
    fs::rename(case.path(), case.home.path().join("aside")).unwrap();
    assert_eq!(case.look(), ["removed"]);
    assert!(!case.try_look().unwrap().vanished, "said once");
    fs::rename(case.home.path().join("aside"), case.path()).unwrap();
    case.append(note(2, "two"));
    assert_eq!(case.look(), ["two"]);
    assert_eq!((case.generation(), case.ingest.repeats), (1, 0));
}

#[test]
fn tail_t12_a_new_file_with_a_reused_inode_is_read_from_the_start() {
    let mut reused = 0;
    let mut case = case();
    for n in 0..300 {
        case.write(note(n, &format!("v{n:03}")));
        assert_eq!(case.look(), [format!("v{n:03}")], "file {n}");
        let inode = fs::metadata(case.path()).unwrap().ino();
        fs::remove_file(case.path()).unwrap();
        case.tail.open = None;
        File::create(case.path()).unwrap();
        reused += usize::from(fs::metadata(case.path()).unwrap().ino() == inode);
    }
    println!("{reused} of 300 inodes were given out again");
}

#[test]
fn tail_t13_records_repeated_by_compaction_are_not_duplicated() {
    let mut case = case();
    let history: String = (0..40).map(|n| note(n, &format!("v{n}"))).collect();
    case.append(&history);
    for copy in 0..5 {
        case.append(&history);
        case.append(note(format!("c{copy}"), "compacted"));
        case.look();
    }
    assert_eq!((case.ingest.order.len(), case.ingest.repeats), (45, 200));
}

#[test]
fn tail_repeated_records_without_ids_survive_restarts_without_duplicates() {
    let limits = ReadLimits { batch_bytes: 16, ..ReadLimits::default() };
    let mut case = case_of(LINES, limits);
    case.append(plain("a").repeat(5) + &plain("b") + &plain("a"));
    // The process is killed in the middle of the first pass.
    for _ in 0..2 {
        let mut look = case.tail.read(&mut case.reader, now(Duration::ZERO)).unwrap();
        assert!(look.more && !case.tail.cursor().caught_up);
        case.ingest.commit(std::mem::take(&mut look.events), case.tail.cursor(), false);
    }
    case.restart();
    assert_eq!((case.tail.cursor().offset, case.tail.cursor().generation), (0, 1));
    case.look();
    assert_eq!(case.ingest.order(), ["a", "a", "a", "a", "a", "b", "a"]);
    // For a record appended later, ingest determines the occurrence.
    case.restart();
    case.append(plain("a"));
    assert_eq!(case.look(), ["a"]);
    // Read again from the start: no new events.
    case.tail = Tail::new(case.tail.place().clone(), Provider::Unknown, LINES, None);
    assert!(case.look().is_empty());
}

/// The ways in which a file gets new content under its name, in steps that may each be observed.
fn rewritten_in_steps(case: &mut Case, treatment: &str, content: &str, look: bool) {
    let seen = |case: &mut Case| {
        if look {
            case.look();
        }
    };
    match treatment {
        "emptied" => case.write(""),
        "removed" => fs::remove_file(case.path()).unwrap(),
        "replaced" => {
            fs::remove_file(case.path()).unwrap();
            case.write("");
        }
        other => unreachable!("{other}"),
    }
    seen(case);
    // Cut anywhere, even within a line.
    for piece in content.as_bytes().chunks(11) {
        case.append(piece);
        seen(case);
    }
}

#[test]
fn tail_t9_a_stepwise_rewrite_does_not_duplicate_records_without_ids() {
    let first = plain("a").repeat(3) + &plain("b") + &plain("a");
    let longer = first.clone() + &plain("c") + &plain("a");
    for treatment in ["emptied", "removed", "replaced"] {
        for look in [false, true] {
            for restart in [false, true] {
                let name = format!("{treatment}, look {look}, restart {restart}");
                let mut case = case();
                case.write(&first);
                case.look();
                if restart {
                    case.restart();
                }
                rewritten_in_steps(&mut case, treatment, &longer, look);
                case.look();
                let records = case.ingest.order.iter().filter(|record| *record != "removed");
                assert_eq!(records.collect::<Vec<_>>(), ["a", "a", "a", "b", "a", "c", "a"], "{name}");
                case.append(plain("a"));
                assert_eq!(case.look(), ["a"], "{name}");
            }
        }
    }
}

#[test]
fn tail_t9_a_restart_while_the_file_is_empty_yields_no_duplicates() {
    let mut case = case();
    case.write(plain("a").repeat(3));
    case.look();
    case.write("");
    case.look();
    case.restart();
    case.append(plain("a").repeat(4));
    assert_eq!(case.look(), ["a"]);
}

#[test]
fn tail_t14_a_copy_read_while_being_written_yields_no_duplicates() {
    let mut case = case();
    let content = plain("a").repeat(3) + &plain("b");
    case.write(&content);
    case.look();
    // The same records under another name: a new file without a cursor.
    fs::remove_file(case.path()).unwrap();
    case.tail = Tail::new(case.tail.place().clone(), Provider::Unknown, LINES, None);
    for piece in content.as_bytes().chunks(7) {
        case.append(piece);
        case.look();
    }
    assert_eq!(case.ingest.order(), ["a", "a", "a", "b"]);
}

#[test]
fn tail_t15_only_regular_files_of_the_user_are_read() {
    let mut case = case();
    let refused = |case: &mut Case| match case.try_look() {
        Err(TailError::Refused { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    let secret = tempfile::tempdir().unwrap();
    fs::write(secret.path().join("f"), note(1, "secret")).unwrap();
    symlink(secret.path().join("f"), case.path()).unwrap();
    assert_eq!(refused(&mut case), ReadRefusal::Symlink);
    fs::remove_file(case.path()).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, case.path(), rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    assert_eq!(refused(&mut case), ReadRefusal::NotRegular);
    fs::remove_file(case.path()).unwrap();
    fs::create_dir(case.path()).unwrap();
    assert_eq!(refused(&mut case), ReadRefusal::NotRegular);
    fs::remove_dir(case.path()).unwrap();
    case.write(note(1, "theirs"));
    if std::os::unix::fs::chown(case.path(), Some(12345), None).is_ok() {
        assert_eq!(refused(&mut case), ReadRefusal::Owner(12345));
        std::os::unix::fs::chown(case.path(), Some(0), None).unwrap();
    } else {
        println!("skipped: another user's file needs root");
    }
    assert_eq!(case.look(), ["theirs"]);
}

#[test]
fn tail_t15_a_directory_swapped_for_a_symlink_is_never_followed() {
    let home = tempfile::tempdir().unwrap();
    let secret = tempfile::tempdir().unwrap();
    let real = home.path().join("d");
    fs::create_dir(&real).unwrap();
    fs::write(real.join("f"), note(1, "ours")).unwrap();
    fs::write(secret.path().join("f"), note(2, "secret")).unwrap();
    symlink(secret.path(), home.path().join("link")).unwrap();
    let place = RootedPath::new(home.path().to_str().unwrap(), "d/f");
    let mut reader = TailReader::new(ReadLimits::default());
    let mut ingest = Ingest::default();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                for (from, to) in [("d", "aside"), ("link", "d"), ("d", "link"), ("aside", "d")] {
                    fs::rename(home.path().join(from), home.path().join(to)).unwrap();
                }
            }
        });
        let mut refused = 0;
        for n in 0..5000 {
            let mut tail = Tail::new(place.clone(), Provider::Unknown, LINES, None);
            match tail.read(&mut reader, now(Duration::ZERO)) {
                Ok(look) => ingest.commit(look.events, tail.cursor(), false),
                Err(TailError::Refused { .. }) => refused += 1,
                Err(error) => panic!("{error}"),
            }
            if n > 1000 && refused > 50 && !ingest.order.is_empty() {
                break;
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        println!("{refused} reads were refused");
    });
    assert!(ingest.order.iter().all(|value| value == "ours"), "{:?}", ingest.order);
}

#[test]
fn tail_t18_t21_an_io_error_at_any_call_loses_no_record() {
    use rustix::io::Errno;
    for errno in [Errno::IO, Errno::STALE, Errno::ACCESS] {
        for nth in 0..12 {
            for caught_up in [false, true] {
                let mut case = case_of(LINES, ReadLimits { batch_bytes: 40, ..ReadLimits::default() });
                case.append(plain("a") + &note(1, "one"));
                if caught_up {
                    case.look();
                    case.restart();
                }
                case.append(plain("a").repeat(3) + &note(2, "two"));
                let (disk, log) = Faulty::new(Fault::Fail { nth, errno });
                case.reader = TailReader::on(case.reader.limits, Box::new(disk));
                // Complete records before the error are sent first.
                assert!(case.try_look().is_ok() || log.failed(), "{errno} at call {nth}");
                case.look();
                assert_eq!(case.ingest.order(), ["a", "one", "a", "a", "a", "two"], "{errno} at call {nth}");
                assert_eq!(case.generation(), 1);
            }
        }
    }
}

#[test]
fn tail_t20_appends_are_read_whatever_the_file_modification_time() {
    let mut case = case();
    let frozen = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    let future = ago(Duration::ZERO) + Duration::from_secs(86_400);
    for (n, time) in [frozen, frozen, future, frozen].into_iter().enumerate() {
        case.append(note(n, &format!("v{n}")));
        File::options().append(true).open(case.path()).unwrap().set_modified(time).unwrap();
        assert_eq!(case.look(), [format!("v{n}")]);
    }
}

#[test]
fn tail_whole_files_are_read_once_complete() {
    let mut case = case_of(WHOLE, ReadLimits { whole_bytes: 1000, ..ReadLimits::default() });
    let step = |case: &mut Case, seconds: f64| {
        case.steady += Duration::from_secs_f64(seconds);
        let mut look = case.tail.read(&mut case.reader, now(case.steady));
        if let Ok(look) = &mut look {
            let events = std::mem::take(&mut look.events);
            case.ingest.commit(events, case.tail.cursor(), look.vanished);
        }
        look
    };
    case.write(note(1, "one").trim_end());
    assert!(step(&mut case, 0.0).unwrap().moved);
    assert_eq!((case.tail.cursor().offset, case.generation()), (case.tail.cursor().size, 1));
    // Truncated for rewriting, half written, complete.
    case.write("");
    assert!(step(&mut case, 1.0).unwrap().unsettled);
    case.write("{\"id\":\"2\",");
    assert!(step(&mut case, 0.5).unwrap().unsettled);
    case.write(note(2, "two"));
    assert!(step(&mut case, 0.5).unwrap().moved);
    assert_eq!(case.tail.cursor().issues, 0);
    // It stays half written: one issue.
    case.write("{\"id\":\"3\",");
    assert!(step(&mut case, 1.0).is_ok());
    assert!(matches!(step(&mut case, 2.1), Err(TailError::Malformed { .. })));
    assert!(!step(&mut case, 1.0).unwrap().unsettled);
    assert_eq!(case.tail.cursor().issues, 1);
    case.write("x".repeat(1001));
    assert!(matches!(step(&mut case, 1.0), Err(TailError::TooLarge { size: 1001, cap: 1000, .. })));
    // Replaced, then removed, then created again.
    fs::write(case.home.path().join("g"), plain("three")).unwrap();
    fs::rename(case.home.path().join("g"), case.path()).unwrap();
    step(&mut case, 1.0).unwrap();
    assert_eq!(case.generation(), 2);
    step(&mut case, 1.0).unwrap();
    fs::remove_file(case.path()).unwrap();
    assert!(step(&mut case, 1.0).unwrap().vanished);
    assert!(!step(&mut case, 1.0).unwrap().vanished);
    case.write(note(4, "four"));
    step(&mut case, 1.0).unwrap();
    assert_eq!(case.ingest.order(), ["one", "two", "three", "removed", "four"]);
    assert_eq!(case.tail.cursor().decoder_state.as_deref(), Some("1"), "a new decoder");
}

/// Compresses the parts as one frame each.
fn packed(parts: &[&str]) -> Vec<u8> {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    parts.iter().flat_map(|part| compress_to_vec(part.as_bytes(), CompressionLevel::Fastest)).collect()
}

const COMPRESSED: FileSpec = FileSpec { format: FileFormat::Compressed, ..LINES };

#[test]
fn a_compressed_file_is_decoded_once_and_again_after_a_change() {
    let limits = ReadLimits { batch_bytes: 40, ..ReadLimits::default() };
    let mut case = case_of(COMPRESSED, limits);
    let content: String = (0..50).map(|n| note(n, &format!("v{n}"))).collect::<String>() + &plain("a").repeat(2);
    case.write(packed(&[&content]));
    let mut expected: Vec<String> = (0..50).map(|n| format!("v{n}")).collect();
    expected.extend(["a".to_owned(), "a".to_owned()]);
    assert_eq!(case.look(), expected);
    assert_eq!((case.generation(), case.tail.cursor().offset), (1, content.len() as u64));
    assert!(case.tail.cursor().caught_up);
    for restart in [false, true] {
        if restart {
            case.restart();
        }
        assert!(case.look().is_empty());
        assert_eq!((case.generation(), case.ingest.repeats), (1, 0), "it is not decoded again");
    }
    // Compressed again with more content, in two frames.
    case.write(packed(&[&content, &plain("a")]));
    assert_eq!(case.look(), ["a"]);
    assert_eq!(case.generation(), 2);
}

#[test]
fn compressing_a_file_already_read_yields_no_new_records() {
    let content: String = (0..20).map(|n| note(n, &format!("v{n}"))).collect::<String>() + &plain("a").repeat(3);
    let mut case = case();
    case.write(&content);
    assert_eq!(case.look().len(), 23);
    case.spec = COMPRESSED;
    case.tail = Tail::new(case.tail.place().clone(), Provider::Unknown, COMPRESSED, None);
    case.write(packed(&[&content]));
    assert!(case.look().is_empty());
}

#[test]
fn an_incomplete_compressed_file_is_an_error_until_it_is_complete() {
    let content: String = (0..2_000).map(|n| note(n, &format!("value {n}"))).collect();
    let whole = packed(&[&content]);
    let mut case = case_of(COMPRESSED, ReadLimits::default());
    case.write(&whole[..whole.len() / 2]);
    let error = loop {
        match case.try_look() {
            Ok(look) => assert!(look.more || !case.tail.cursor().caught_up),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("cannot decompress it after byte"), "{error}");
    assert!(case.try_look().is_ok(), "it is looked at again only after a change");
    case.write(&whole);
    case.look();
    assert_eq!(case.ingest.order.len(), 2_000);
    // The file is not compressed.
    case.write("{}\n");
    assert!(case.try_look().unwrap_err().to_string().contains("cannot decompress it after byte 0"));
}

#[test]
fn a_line_above_the_limit_of_a_compressed_file_becomes_a_stub() {
    let limits = ReadLimits { line_bytes: 100, ..ReadLimits::default() };
    let mut case = case_of(COMPRESSED, limits);
    case.write(packed(&[&(note(1, "one") + &note(2, &"x".repeat(3_000_000)) + &note(3, "three"))]));
    let seen = case.look();
    assert_eq!(seen.len(), 3, "{seen:?}");
    assert_eq!((seen[0].as_str(), seen[2].as_str()), ("one", "three"));
}
