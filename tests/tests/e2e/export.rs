//! `capture export`: recordings of runs and files, in both versions of asciicast.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use tests::program::Machine;

const RUN: &str = "01KAH1DZ7TT9X2Q0RN8VZ6M4YA";

fn first(part: u32, ms: i64, events: &str) -> String {
    format!(
        "{{\"version\":3,\"term\":{{\"cols\":80,\"rows\":24,\"type\":\"xterm\"}},\"timestamp\":1764000000,\
         \"capture\":{{\"part\":{part},\"started_at_ms\":{},\"repainted\":{}}}}}\n{events}",
        1_764_000_000_000_i64 + ms,
        part > 1
    )
}

struct ExportMachine {
    machine: Machine,
    recordings: PathBuf,
}

impl ExportMachine {
    fn new() -> Self {
        let machine = Machine::new(super::PROGRAM);
        let recordings = machine.data().join("recordings");
        fs::create_dir_all(&recordings).unwrap();
        let write = |name: String, text: String| fs::write(recordings.join(name), text).unwrap();
        write(format!("{RUN}.cast"), first(1, 0, "[0.5, \"o\", \"one\"]\n"));
        write(
            format!("{RUN}.2.cast"),
            first(2, 2000, "[0, \"o\", \"again\"]\n[0.25, \"o\", \"two\"]\n[1, \"x\", \"0\"]\n[0, \"o"),
        );
        write("01KAH1DZ7ZZZZZZZZZZZZZZZZZ.cast".into(), first(1, 0, "[0, \"o\", \"other\"]\nnonsense\n"));
        Self { machine, recordings }
    }

    fn export(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let output: Output = self.machine.command(&[&["export"], arguments].concat()).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }
}

const V2: &str = "{\"version\":2,\"width\":80,\"height\":24,\"timestamp\":1764000000,\"env\":{\"TERM\":\"xterm\"}}\n\
                  [0.500, \"o\",\"one\"]\n[2.250, \"o\",\"two\"]\n[3.250, \"x\",\"0\"]\n";
const V3: &str = "{\"version\":3,\"term\":{\"cols\":80,\"rows\":24,\"type\":\"xterm\"},\"timestamp\":1764000000}\n\
                  [0.500, \"o\",\"one\"]\n[1.750, \"o\",\"two\"]\n[1.000, \"x\",\"0\"]\n";

#[test]
fn a_recorded_run_is_exported_completely_without_a_server() {
    let here = ExportMachine::new();
    let file = here.recordings.join(format!("{RUN}.cast"));
    for what in [RUN, "01KAH1DZ7T", "01kah1dz7t", file.to_str().unwrap()] {
        let (code, out, err) = here.export(&[what, "--format", "asciicast"]);
        assert_eq!((code, out.as_str()), (Some(0), V2), "{what}: {err}");
        assert!(err.contains(".2.cast ends in the middle of a line"), "{err}");
        assert_eq!(here.export(&[what, "--cast-version", "3"]).1, V3);
    }
    assert_eq!(here.machine.endpoint(), None, "no server is needed");
}

#[test]
fn an_export_replaces_a_file_only_with_force_and_atomically() {
    let here = ExportMachine::new();
    let target = here.machine.project().join("out.cast");
    let to = target.to_str().unwrap();
    let (code, out, err) = here.export(&[RUN, "-o", to]);
    assert_eq!((code, out.as_str()), (Some(0), ""), "{err}");
    assert_eq!(fs::read_to_string(&target).unwrap(), V2);
    let (code, _, err) = here.export(&[RUN, "-o", to, "--cast-version", "3"]);
    assert!(code == Some(5) && err.contains("already exists; pass --force to overwrite it"), "{code:?} {err}");
    assert_eq!(fs::read_to_string(&target).unwrap(), V2);
    assert_eq!(here.export(&[RUN, "-o", to, "--cast-version", "3", "--force"]).0, Some(0));
    assert_eq!(fs::read_to_string(&target).unwrap(), V3);
    // An export that fails half-way leaves the existing file unchanged.
    assert_eq!(here.export(&["01KAH1DZ7Z", "-o", to, "--force"]).0, Some(1));
    assert_eq!(fs::read_to_string(&target).unwrap(), V3);
    // A file can be converted onto itself.
    assert_eq!(here.export(&[to, "-o", to, "--force"]).0, Some(0));
    assert_eq!(fs::read_to_string(&target).unwrap(), V2);
    assert_eq!(fs::read_dir(here.machine.project()).unwrap().count(), 1);
}

#[test]
fn a_run_is_exported_by_its_name() {
    let here = ExportMachine::new();
    for (run, said) in [("01KAH2AAAAAAAAAAAAAAAAAAAA", "older"), ("01KAH2BBBBBBBBBBBBBBBBBBBB", "newer")] {
        let header = "{\"version\":2,\"width\":80,\"height\":24,\"title\":\"fix-login\"}";
        fs::write(here.recordings.join(format!("{run}.cast")), format!("{header}\n[0, \"o\", \"{said}\"]\n")).unwrap();
    }
    let (code, out, err) = here.export(&["fix-login"]);
    assert!(code == Some(0) && out.contains("newer") && !out.contains("older"), "{out}{err}");
    let (code, _, err) = here.export(&["fix-logout"]);
    assert!(code == Some(4) && err.contains("no session, recorded run or file `fix-logout`"), "{err}");
    assert!(err.contains("`capture run --record` records a run"), "{err}");
}

#[test]
fn export_errors_have_a_message_and_an_exit_code() {
    let here = ExportMachine::new();
    for (what, expected_code, expected) in [
        ("01KAH1", 4, "matches several runs, for instance 01KAH1DZ7TT9X2Q0RN8VZ6M4YA and 01KAH1DZ7ZZZZ"),
        ("99", 4, "no session, recorded run or file `99`"),
        ("no/such.cast", 4, "no/such.cast: no such file"),
        ("01KAH1DZ7Z", 1, ".cast:3: expected an event `[time, code, data]`"),
        ("home", 1, "home"),
    ] {
        let (code, _, err) = here.export(&[what]);
        assert!(code == Some(expected_code) && err.contains(expected), "{what}: {code:?} {err}");
    }
    for wrong in [&[RUN, "--cast-version", "1"][..], &[RUN, "--force"], &[RUN, "--format", "gif"], &[]] {
        assert_eq!(here.export(wrong).0, Some(2), "{wrong:?}");
    }
    // A full disk is reported as an error; a reader that closes early is not.
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = here.machine.command(&["export", RUN]).stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert!(output.status.code() == Some(1) && !output.stderr.is_empty());
    let mut reader = Command::new("true").stdin(Stdio::piped()).spawn().unwrap();
    let closed = reader.stdin.take().unwrap();
    reader.wait().unwrap();
    let output = here.machine.command(&["export", RUN]).stdout(closed).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
}
