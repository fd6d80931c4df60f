//! Recorded runs, and their exports.

use std::{collections::BTreeMap, fs};

use serde_json::{Value, json};
use tests::program::Machine;

use super::PROGRAM;

#[test]
fn the_output_of_a_run_is_recorded_and_exported() {
    let machine = Machine::new(PROGRAM);
    machine.configure("autostart = false\n");
    let script = "printf 'h\\303\\251llo\\n'; exit 3";
    let run = |more: &[&str]| {
        let words = [&["run", "--tty", "--record"], more, &["--", "sh", "-c", script]].concat();
        machine.command(&words).output().unwrap()
    };
    let output = run(&[]);
    assert_eq!((output.status.code(), String::from_utf8(output.stdout).unwrap().as_str()), (Some(3), "héllo\r\n"));
    let recordings: Vec<_> =
        fs::read_dir(machine.data().join("recordings")).unwrap().map(|e| e.unwrap().path()).collect();
    let [recording] = recordings.as_slice() else { panic!("{recordings:?}") };
    assert_eq!(std::os::unix::fs::MetadataExt::mode(&fs::metadata(recording).unwrap()) & 0o777, 0o600);
    let id = recording.file_stem().unwrap().to_str().unwrap();
    let exported = machine.command(&["export", id, "--format", "asciicast", "--cast-version", "2"]).output().unwrap();
    let text = String::from_utf8(exported.stdout).unwrap();
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (&lines[0]["version"], &lines[0]["width"], &lines[0]["height"]),
        (&2.into(), &120.into(), &40.into()),
        "{text}"
    );
    let shown: String = lines[1..].iter().filter(|l| l[1] == "o").filter_map(|l| l[2].as_str()).collect();
    assert_eq!(shown, "héllo\r\n");
    assert_eq!(lines.last().unwrap()[2], "3", "{text}");
    // An existing file of that name is not overwritten; the command fails without running anything.
    let file = machine.project().join("own.cast");
    fs::write(&file, "mine").unwrap();
    let record = format!("--record={}", file.display());
    let output = machine.command(&["run", "--tty", &record, "--", "touch", "started"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("own.cast"));
    assert!(!machine.home().join("../started").exists());
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
}

/// The texts of the rows that a frame contains.
fn rows(frame: &Value) -> BTreeMap<String, String> {
    let text = |spans: &Value| spans.as_array().unwrap().iter().map(|span| span[0].as_str().unwrap()).collect();
    frame["lines"].as_object().unwrap().iter().map(|(row, spans)| (row.clone(), text(spans))).collect()
}

#[test]
fn recording_frames_can_be_read_from_any_time() {
    let machine = Machine::new(PROGRAM);
    // A recording of a run that the server no longer knows.
    let (run, dir) = ("01M7ZZZZZZZZZZZZZZZZZZZZZZ", machine.data().join("recordings"));
    fs::create_dir_all(&dir).unwrap();
    let events = [
        r#"{"version":2,"width":20,"height":4,"timestamp":1700000000}"#,
        r#"[0.1,"o","one\r\n"]"#,
        r#"[0.11,"o","\u001b[31mtwo\u001b[0m"]"#,
        r#"[0.5,"i","x"]"#,
        r#"[0.9,"r","30x5"]"#,
        r#"[1.2,"o","\r\nthree"]"#,
    ];
    fs::write(dir.join(format!("{run}.cast")), events.join("\n")).unwrap();
    let server = machine.serve();
    let json = |path: &str| server.client.json(&format!("/api/v1/runs/{run}/recording{path}")).unwrap();
    let info = json("");
    assert_eq!(
        info,
        json!({ "started_at": "2023-11-14T22:13:20.000Z", "duration_ms": 1_200, "ended": true, "dropped_ms": 0 })
    );
    let all = json("/frames");
    let frames = all["frames"].as_array().unwrap();
    let told: Vec<_> = frames.iter().map(|frame| (frame["at_ms"].as_u64().unwrap(), rows(frame))).collect();
    let row = |number: &str, text: &str| (number.to_owned(), text.to_owned());
    let empty = (0..4).map(|number| row(&number.to_string(), ""));
    assert_eq!(told[0], (0, empty.collect()), "the whole screen first");
    assert_eq!(told[1], (110, BTreeMap::from([row("0", "one"), row("1", "two")])), "what is close together is one");
    assert_eq!(frames[1]["lines"]["1"][0][1], 1, "red");
    assert_eq!((told[2].0, &frames[2]["cols"], &frames[2]["rows"]), (900, &30.into(), &5.into()));
    assert_eq!(told[3], (1_200, BTreeMap::from([row("2", "three")])));
    assert_eq!((frames.len(), &all["next_ms"]), (4, &Value::Null));

    // In pages, each beginning with the whole screen, and starting from the middle.
    let page = json("/frames?limit=2");
    assert_eq!((page["frames"].as_array().unwrap().len(), &page["next_ms"]), (2, &500.into()));
    let page = json("/frames?limit=2&from_ms=500");
    assert_eq!(rows(&page["frames"][0])["0"], "one");
    assert_eq!((&page["frames"][1]["cols"], &page["next_ms"]), (&30.into(), &1_200.into()));
    let middle = json("/frames?from_ms=1000");
    assert_eq!((&middle["frames"][0]["cols"], rows(&middle["frames"][0])["1"].as_str()), (&30.into(), "two"));
    let behind = json("/frames?from_ms=999999");
    assert_eq!((rows(&behind["frames"][0])["2"].as_str(), &behind["next_ms"]), ("three", &Value::Null));

    for (path, status) in [
        (format!("/api/v1/runs/{run}/recording/frames?limit=0"), 400),
        ("/api/v1/runs/01M7YYYYYYYYYYYYYYYYYYYYYY/recording".to_owned(), 404),
        ("/api/v1/runs/..%2F..%2Fetc/recording".to_owned(), 404),
    ] {
        assert_eq!(server.client.get(&path).unwrap().status, status, "{path}");
    }
}
