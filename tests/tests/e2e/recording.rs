//! A run that is recorded, and what is exported of it.

use std::fs;

use tests::program::Machine;

use super::PROGRAM;

#[test]
fn what_a_run_showed_is_recorded_and_exported() {
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
    // A file of that name is not overwritten, and then nothing is run.
    let file = machine.project().join("own.cast");
    fs::write(&file, "mine").unwrap();
    let record = format!("--record={}", file.display());
    let output = machine.command(&["run", "--tty", &record, "--", "touch", "started"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("own.cast"));
    assert!(!machine.home().join("../started").exists());
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
}
