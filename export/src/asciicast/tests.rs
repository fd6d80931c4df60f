use std::{
    fs,
    io::BufReader,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use events::Timestamp;
use proptest::prelude::*;

use super::{text::Utf8Decoder, *};

const START: i64 = 1_764_000_000_250;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(START + ms)
}

fn settings(dir: &Path, version: CastVersion, max_bytes: u64) -> RecordSettings {
    RecordSettings { path: dir.join("run.cast"), version, max_bytes, keep: 3 }
}

fn header() -> CastHeader {
    let env = [("TERM", "xterm-256color"), ("SHELL", "/bin/bash"), ("TOKEN", "secret")];
    CastHeader {
        columns: 80,
        rows: 24,
        command: Some("claude --resume".into()),
        title: Some("a run".into()),
        env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        ..CastHeader::default()
    }
}

fn event(at_us: u64, code: EventCode, data: &str) -> CastEvent {
    CastEvent { at_us, code, data: data.into() }
}

fn written(version: CastVersion, header: &CastHeader, events: &[CastEvent]) -> String {
    let mut encoder = Encoder::new(version);
    let mut text = encoder.header(header);
    text.extend(events.iter().map(|event| encoder.event(event)));
    text
}

fn read(text: &str) -> Result<(CastHeader, Vec<CastEvent>, bool), ReadError> {
    let mut reader = CastReader::new(BufReader::new(text.as_bytes()), Path::new("a.cast"))?;
    let mut events = Vec::new();
    while let Some(event) = reader.next_event()? {
        events.push(event);
    }
    Ok((reader.header().clone(), events, reader.cut()))
}

fn joined(paths: Vec<PathBuf>) -> (CastHeader, Vec<CastEvent>) {
    let mut joined = JoinedReader::open(paths).unwrap();
    let mut events = Vec::new();
    while let Some(event) = joined.next_event().unwrap() {
        events.push(event);
    }
    (joined.header().clone(), events)
}

fn output(events: &[CastEvent]) -> String {
    events.iter().filter(|e| e.code == EventCode::Output).map(|e| e.data.as_str()).collect()
}

#[test]
fn a_recording_is_written_in_asciicast_v2_and_v3() {
    let dir = tempfile::tempdir().unwrap();
    for (version, expected) in [
        (
            CastVersion::V2,
            concat!(
                r#"{"version":2,"width":80,"height":24,"timestamp":1764000000,"command":"claude --resume","title":"a run","#,
                r#""env":{"SHELL":"/bin/bash","TERM":"xterm-256color"},"#,
                r#""capture":{"part":1,"started_at_ms":1764000000250,"repainted":false}}"#,
                "\n[0.010, \"o\",\"\\u001b[1mHi\\r\\n\"]\n[0.900, \"r\",\"100x30\"]\n[1.000, \"m\",\"approved\"]\n",
                "[1.500, \"o\",\"é\"]\n[1.750, \"x\",\"7\"]\n"
            ),
        ),
        (
            CastVersion::V3,
            concat!(
                r#"{"version":3,"term":{"cols":80,"rows":24,"type":"xterm-256color"},"timestamp":1764000000,"#,
                r#""command":"claude --resume","title":"a run","env":{"SHELL":"/bin/bash"},"#,
                r#""capture":{"part":1,"started_at_ms":1764000000250,"repainted":false}}"#,
                "\n[0.010, \"o\",\"\\u001b[1mHi\\r\\n\"]\n[0.890, \"r\",\"100x30\"]\n[0.100, \"m\",\"approved\"]\n",
                "[0.500, \"o\",\"é\"]\n[0.250, \"x\",\"7\"]\n"
            ),
        ),
    ] {
        let settings = RecordSettings {
            path: dir.path().join(format!("{version:?}.cast")),
            ..settings(dir.path(), version, 1 << 20)
        };
        let path = settings.path.clone();
        let mut recorder = Recorder::create(settings, header(), at(0)).unwrap();
        recorder.output(at(10), b"\x1b[1mHi\r\n").unwrap();
        recorder.resize(at(900), 100, 30).unwrap();
        recorder.mark(at(1000), "approved").unwrap();
        recorder.output(at(1200), b"\xc3").unwrap();
        recorder.output(at(1500), b"\xa9").unwrap();
        recorder.finish(at(1750), Some(7)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn an_asciicast_v3_file_with_all_features_is_read() {
    let v3 = concat!(
        r##"{"version": 3, "term": {"cols": 80, "rows": 24, "type": "xterm-256color", "version": "VTE(7802)", "theme": "##,
        r##"{"fg": "#d0d0d0", "bg": "#212121", "palette": "#151515:#ac4142"}}, "timestamp": 1504467315, "title": "Demo","##,
        r##" "env": {"SHELL": "/bin/zsh"}, "tags": ["a"], "later": [1]}"##,
        "\n# event stream follows the header\n[0.248, \"o\", \"Hello \\u001b[32mWorld!\\n\"]\n\n[3.500, \"m\", \"\"]\r\n",
        "# resized\n[2.050, \"r\", \"90x30\"]\n[0, \"z\", \"new\"]\n[0.887, \"x\", \"0\"]\n"
    );
    let (header, events, cut) = read(v3).unwrap();
    assert_eq!((header.columns, header.rows, header.timestamp), (80, 24, Some(1_504_467_315)));
    assert_eq!(header.env["TERM"], "xterm-256color");
    let expected = [
        event(248_000, EventCode::Output, "Hello \x1b[32mWorld!\n"),
        event(3_748_000, EventCode::Marker, ""),
        event(5_798_000, EventCode::Resize, "90x30"),
        event(5_798_000, EventCode::Other("z".into()), "new"),
        event(6_685_000, EventCode::Exit, "0"),
    ];
    assert_eq!((events.as_slice(), cut), (expected.as_slice(), false));
    let back = written(CastVersion::V3, &header, &events);
    assert!(
        back.starts_with(
            r##"{"version":3,"term":{"cols":80,"rows":24,"type":"xterm-256color","version":"VTE(7802)","##
        )
    );
    assert_eq!(read(&back).unwrap(), (header, events, false));
}

#[test]
fn read_errors_name_the_file_and_the_line() {
    let fine = "{\"version\":2,\"width\":80,\"height\":24}\n";
    for (text, expected) in [
        (String::new(), "a.cast:1: the file is empty"),
        ("hello\n".into(), "a.cast is not an asciicast recording (line 1 is not a header)"),
        (
            "{\"version\":1,\"width\":80,\"height\":24,\"stdout\":[]}\n".into(),
            "a.cast:1: asciicast version 1 is not supported",
        ),
        ("{\"version\":2,\"width\":80}\n".into(), "a.cast:1: the header has no `width` and `height`"),
        ("{\"version\":3,\"width\":80,\"height\":24}\n".into(), "a.cast:1: the header has no `term`"),
        (format!("{fine}[1.0, \"o\", \"a\"]\n[1.0, \"o\"]\n"), "a.cast:3: expected an event"),
        (format!("{fine}[-1, \"o\", \"a\"]\n"), "a.cast:2: -1 is not a valid time"),
        (format!("{fine}[1e300, \"o\", \"a\"]\n"), "a.cast:2: 1000000"),
        (format!("{fine}[\"1\", \"o\", \"a\"]\n"), "a.cast:2: expected an event"),
    ] {
        let error = read(&text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    let mut reader =
        CastReader::new(BufReader::new(&b"{\"version\":2,\"width\":1,\"height\":1}\n\xff\n"[..]), Path::new("a.cast"))
            .unwrap();
    assert!(reader.next_event().unwrap_err().to_string().starts_with("a.cast:2: the line is not UTF-8"));
}

#[test]
fn a_truncated_last_line_is_skipped_and_reported() {
    let whole =
        written(CastVersion::V2, &header(), &[event(0, EventCode::Output, "a"), event(5, EventCode::Output, "bcd")]);
    for cut in 1..10 {
        let (_, events, told) = read(&whole[..whole.len() - 1 - cut]).unwrap();
        assert_eq!((output(&events).as_str(), told), ("a", true));
    }
    // Only the newline is missing.
    assert_eq!(output(&read(&whole[..whole.len() - 1]).unwrap().1), "abcd");
}

#[test]
fn a_full_part_is_followed_by_the_next_and_old_parts_are_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let mut expected = String::new();
    let mut recorder = Recorder::create(settings(dir.path(), CastVersion::V3, 700), header(), at(0)).unwrap();
    for n in 0..60_i64 {
        let line = format!("line {n} ü\r\n");
        // Each write splits a character, so the ends of files do too.
        let (a, b) = line.as_bytes().split_at(line.len() - 3);
        recorder.output(at(n * 100), a).unwrap();
        recorder.output(at(n * 100 + 50), b).unwrap();
        expected.push_str(&line);
        if n == 30 {
            recorder.resize(at(n * 100 + 60), 100, 30).unwrap();
        }
    }
    recorder.finish(at(6000), Some(0)).unwrap();
    let found = parts(&dir.path().join("run.cast")).unwrap();
    assert_eq!(found.len(), 3, "{found:?}");
    for path in &found {
        assert!(fs::metadata(path).unwrap().len() <= 700, "{path:?}");
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert!(!found.contains(&dir.path().join("run.cast")), "the oldest are gone");
    let (header, events) = joined(found.clone());
    let text = output(&events);
    assert!(expected.ends_with(&text) && text.len() > 200, "{text}");
    assert_eq!((header.columns, header.rows), (100, 30));
    // The times are relative to the first existing part.
    let first_ms = header.part.unwrap().started_at_ms - START;
    let last = events.last().unwrap();
    assert_eq!((last.at_us, last.data.as_str()), ((6000 - first_ms) as u64 * 1000, "0"));
    // A part in the middle is missing: the later parts do not continue the earlier ones.
    fs::remove_file(&found[1]).unwrap();
    assert_eq!(parts(&dir.path().join("run.cast")).unwrap(), [found[0].clone()]);
}

#[test]
fn a_later_part_begins_with_a_repaint_of_the_screen() {
    let dir = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::create(settings(dir.path(), CastVersion::V2, 400), header(), at(0))
        .unwrap()
        .repainting(Box::new(|| Some(b"\x1b[2Jscreen".to_vec())));
    for n in 0..20 {
        recorder.output(at(n), format!("{n:10}").as_bytes()).unwrap();
    }
    drop(recorder);
    let found = parts(&dir.path().join("run.cast")).unwrap();
    let last = found.last().unwrap();
    let (header, events, _) = read(&fs::read_to_string(last).unwrap()).unwrap();
    assert!(header.part.unwrap().repainted);
    assert_eq!(events[0], event(0, EventCode::Output, "\x1b[2Jscreen"));
    // In the joined recording, only the first existing part keeps the redrawn screen.
    let (_, events) = joined(found);
    assert_eq!(events.iter().filter(|e| e.data.contains("screen")).count(), 1);
    assert!(output(&events).ends_with(&format!("{:10}{:10}", 18, 19)));
}

#[test]
fn a_size_change_between_parts_becomes_a_resize_event() {
    let dir = tempfile::tempdir().unwrap();
    let part = |part: u32, columns: u16, ms: i64| {
        let part = Some(RecordingPart { part, started_at_ms: START + ms, repainted: false });
        written(
            CastVersion::V2,
            &CastHeader { columns, rows: 24, part, ..CastHeader::default() },
            &[event(1000, EventCode::Output, "a")],
        )
    };
    let first = dir.path().join("run.cast");
    fs::write(&first, part(1, 80, 0)).unwrap();
    fs::write(part_path(&first, 2), part(2, 90, 500)).unwrap();
    let (_, events) = joined(parts(&first).unwrap());
    let expected = [
        event(1000, EventCode::Output, "a"),
        event(500_000, EventCode::Resize, "90x24"),
        event(501_000, EventCode::Output, "a"),
    ];
    assert_eq!(events, expected);
    // A file of another program with a matching name is not joined.
    fs::write(part_path(&first, 2), written(CastVersion::V2, &header(), &[event(1, EventCode::Output, "b")])).unwrap();
    assert_eq!(output(&joined(parts(&first).unwrap()).1), "a");
}

#[test]
fn events_larger_than_the_part_limit_are_recorded_in_full() {
    let dir = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::create(settings(dir.path(), CastVersion::V2, 300), header(), at(0)).unwrap();
    for _ in 0..3 {
        recorder.output(at(1), &[b'x'; 1000]).unwrap();
    }
    recorder.finish(at(2), None).unwrap();
    let (_, events) = joined(parts(&dir.path().join("run.cast")).unwrap());
    assert_eq!(output(&events), "x".repeat(3000));
}

#[test]
fn part_names_are_numbered_before_the_extension() {
    for (first, second) in [("a/run.cast", "a/run.2.cast"), ("run", "run.2"), ("a.b.cast", "a.b.2.cast")] {
        assert_eq!(part_path(Path::new(first), 2), Path::new(second));
        assert_eq!(part_path(Path::new(first), 1), Path::new(first));
    }
    let dir = tempfile::tempdir().unwrap();
    for name in ["run.cast", "run.2.cast", "run.x.cast", "run.3.txt", "other.3.cast", "run.4.cast", "run.1.cast"] {
        fs::write(dir.path().join(name), "").unwrap();
    }
    let found = parts(&dir.path().join("run.cast")).unwrap();
    assert_eq!(found, ["run.cast", "run.2.cast"].map(|name| dir.path().join(name)));
}

#[test]
fn buffered_output_is_flushed_within_a_second() {
    let dir = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::create(settings(dir.path(), CastVersion::V2, 1 << 20), header(), at(0)).unwrap();
    let there = || output(&read(&fs::read_to_string(dir.path().join("run.cast")).unwrap()).unwrap().1);
    assert_eq!((there().as_str(), recorder.next_deadline()), ("", None));
    recorder.output(at(100), b"a").unwrap();
    assert_eq!(recorder.next_deadline(), Some(at(1100)));
    recorder.advance(at(1099)).unwrap();
    assert_eq!(there(), "");
    recorder.advance(at(1100)).unwrap();
    assert_eq!((there().as_str(), recorder.next_deadline()), ("a", None));
    // A steady stream does not postpone the flush.
    for ms in 0..100 {
        recorder.output(at(1200 + ms * 20), b"b").unwrap();
    }
    assert!(there().len() > 50, "{}", there().len());
    // Large output is not buffered for long either.
    recorder.output(at(3190), &vec![b'c'; 1 << 17]).unwrap();
    assert!(there().ends_with('c'));
}

#[test]
fn event_times_never_go_backwards_when_the_clock_does() {
    let dir = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::create(settings(dir.path(), CastVersion::V3, 1 << 20), header(), at(0)).unwrap();
    for (ms, text) in [(1000, "a"), (-5000, "b"), (999, "c"), (1500, "d")] {
        recorder.output(at(ms), text.as_bytes()).unwrap();
    }
    drop(recorder);
    let (_, events) = joined(parts(&dir.path().join("run.cast")).unwrap());
    assert_eq!(events.iter().map(|e| e.at_us / 1000).collect::<Vec<_>>(), [1000, 1000, 1000, 1500]);
}

#[test]
fn a_recording_never_overwrites_a_file_or_follows_a_symlink() {
    let dir = tempfile::tempdir().unwrap();
    let there = dir.path().join("run.cast");
    fs::write(&there, "mine").unwrap();
    let error = Recorder::create(settings(dir.path(), CastVersion::V2, 1000), header(), at(0)).unwrap_err();
    assert!(error.to_string().starts_with(&format!("cannot write {}", there.display())), "{error}");
    fs::remove_file(&there).unwrap();
    std::os::unix::fs::symlink(dir.path().join("elsewhere"), &there).unwrap();
    Recorder::create(settings(dir.path(), CastVersion::V2, 1000), header(), at(0)).unwrap_err();
    assert!(!dir.path().join("elsewhere").exists());
    let nowhere =
        RecordSettings { path: dir.path().join("no/run.cast"), ..settings(dir.path(), CastVersion::V2, 1000) };
    assert!(Recorder::create(nowhere, header(), at(0)).unwrap_err().to_string().contains("no/run.cast"));
}

#[test]
fn a_write_error_is_reported_once_and_ends_the_recording() {
    let dir = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::create(settings(dir.path(), CastVersion::V2, 400), header(), at(0)).unwrap();
    // The next part cannot be created, because its name exists.
    fs::write(dir.path().join("run.2.cast"), "").unwrap();
    let mut errors = Vec::new();
    for n in 0..50 {
        errors.extend(recorder.output(at(n), b"0123456789").err());
    }
    assert_eq!(errors.len(), 1);
    assert!(errors[0].to_string().contains("run.2.cast"), "{}", errors[0]);
    assert!(!recorder.is_open());
    assert_eq!(recorder.next_deadline(), None);
    recorder.finish(at(100), Some(0)).unwrap();
    let (_, events, cut) = read(&fs::read_to_string(dir.path().join("run.cast")).unwrap()).unwrap();
    assert!(!events.is_empty() && !cut);
}

proptest! {
    #[test]
    fn any_split_of_the_bytes_gives_the_same_text(
        pieces in prop::collection::vec(prop_oneof![
            any::<Vec<u8>>(),
            any::<String>().prop_map(String::into_bytes),
            Just("häß漢字🦀".as_bytes()[..7].to_vec()),
            prop::collection::vec(prop_oneof![Just(0xf0), Just(0x9f), Just(0xa6), Just(0x80), Just(0xe0), Just(0xed)], 0..6),
        ], 0..8),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let bytes = pieces.concat();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let (mut text, mut got) = (Utf8Decoder::default(), String::new());
        for cut in cuts.windows(2) {
            got.push_str(&text.decode(&bytes[cut[0]..cut[1]]));
        }
        got.push_str(&text.end());
        prop_assert_eq!(got, String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn converting_between_v2_and_v3_is_lossless(
        events in prop::collection::vec((0_u64..40_000_000, "[oirmxzq]", any::<String>()), 0..20),
        title in any::<Option<String>>(),
        (columns, rows) in (1_u16.., 1_u16..),
    ) {
        let mut now = 0;
        let events: Vec<CastEvent> = events.into_iter().map(|(later, code, data)| {
            now += later;
            CastEvent { at_us: now, code: EventCode::from(code.as_str()), data }
        }).collect();
        let header = CastHeader { columns, rows, title, ..header() };
        let second = written(CastVersion::V2, &header, &events);
        let (third_header, third_events, _) = read(&second).unwrap();
        let third = written(CastVersion::V3, &third_header, &third_events);
        let (last_header, last_events, _) = read(&third).unwrap();
        prop_assert_eq!(&last_events, &events);
        prop_assert_eq!(&last_header, &header);
        prop_assert_eq!(written(CastVersion::V2, &last_header, &last_events), second);
    }

    #[test]
    fn joining_the_parts_gives_the_same_events_as_an_unsplit_recording(
        chunks in prop::collection::vec((0_i64..2000, any::<Vec<u8>>()), 1..40),
        max_bytes in 200_u64..2000,
    ) {
        let record = |max_bytes| {
            let dir = tempfile::tempdir().unwrap();
            let settings = RecordSettings { keep: u32::MAX, ..settings(dir.path(), CastVersion::V3, max_bytes) };
            let mut recorder = Recorder::create(settings, header(), at(0)).unwrap();
            let mut ms = 0;
            for (later, bytes) in &chunks {
                ms += later;
                recorder.output(at(ms), bytes).unwrap();
            }
            recorder.finish(at(ms), Some(0)).unwrap();
            joined(parts(&dir.path().join("run.cast")).unwrap())
        };
        prop_assert_eq!(record(max_bytes), record(u64::MAX));
    }
}
