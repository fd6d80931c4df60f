//! Faults of the store: damaged, removed, replaced, unwritable, or written by a newer version.

use std::{fs, path::Path, time::Duration};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use store::Writer;
use tests::{
    eventually,
    program::{Machine, Server},
    transcript::{answer, append, prompt, session, uuid},
    within,
};

use super::PROGRAM;

/// The page size of the database.
const PAGE: usize = 4_096;

/// A session with a prompt and its answer.
fn written(machine: &Machine, number: u64) -> String {
    let (name, cwd) = (session(number), machine.project().to_str().unwrap().to_owned());
    append(&machine.claude(&name), &prompt(&name, &uuid(number, 1), &cwd, "the question"));
    append(&machine.claude(&name), &answer(&name, &uuid(number, 2), &cwd, "the answer"));
    name
}

fn texts(server: &Server, name: &str) -> Vec<String> {
    let events = server.events(name);
    let texts = events.iter().filter_map(|event| event["text"].as_str().map(str::to_owned));
    texts.collect()
}

fn replaced(path: &Path, what: &str, by: &[u8]) -> usize {
    assert_eq!(what.len(), by.len());
    let mut bytes = fs::read(path).unwrap();
    let starts: Vec<usize> = bytes
        .windows(what.len())
        .enumerate()
        .filter(|(_, found)| *found == what.as_bytes())
        .map(|(at, _)| at)
        .collect();
    for at in &starts {
        bytes[*at..][..by.len()].copy_from_slice(by);
    }
    fs::write(path, bytes).unwrap();
    starts.len()
}

fn health(server: &Server) -> (u16, String) {
    let answer = server.client.get("/healthz").unwrap();
    (answer.status, answer.text())
}

fn command(machine: &Machine, arguments: &[&str]) -> (Option<i32>, String) {
    let output = machine.command(arguments).output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    (output.status.code(), text)
}

#[test]
fn a_damaged_view_and_snapshot_are_rebuilt_from_the_log() {
    let machine = Machine::new(PROGRAM);
    let (damaged, whole) = (written(&machine, 1), written(&machine, 2));
    let server = machine.serve();
    for name in [&damaged, &whole] {
        server.caught_up(name, &machine.claude(name));
    }
    let before = server.session(&damaged);
    assert!(server.stop().success());
    let field = format!("\"provider_session_id\":\"{damaged}\"");
    let nonsense = vec![0xff; field.len()];
    assert!(replaced(&machine.data().join("capture.db"), &field, &nonsense) >= 2, "view and snapshot");
    let server = machine.serve();
    let after = server.session(&damaged);
    for field in ["id", "title", "turns", "status", "usage", "last_sequence"] {
        assert_eq!(after[field], before[field], "{field}");
    }
    // All sessions continue.
    let cwd = machine.project().to_str().unwrap().to_owned();
    for (number, name) in [(1, &damaged), (2, &whole)] {
        append(&machine.claude(name), &prompt(name, &uuid(number, 3), &cwd, "and then"));
        server.caught_up(name, &machine.claude(name));
        assert_eq!(texts(&server, name), ["the question", "the answer", "and then"]);
    }
    assert_eq!(health(&server), (200, "ok\n".into()));
    let (code, doctor) = command(&machine, &["doctor", "--deep"]);
    assert!(doctor.contains("rows that cannot be read are skipped: 1"), "{doctor}");
    assert!(doctor.contains("every page checked"), "{doctor}");
    assert_eq!(code, Some(1));
}

#[test]
fn an_unrepairable_database_is_rebuilt_and_reported() {
    let machine = Machine::new(PROGRAM);
    let name = written(&machine, 1);
    let server = machine.serve();
    server.caught_up(&name, &machine.claude(&name));
    let id = server.session(&name)["id"].clone();
    assert_eq!(command(&machine, &["label", &name, "team=web"]).0, Some(0));
    assert!(server.stop().success());
    machine.serve().kill();
    // The page with the file positions.
    let path = machine.data().join("capture.db");
    let mut bytes = fs::read(&path).unwrap();
    let cursor = b"\"generation\":";
    let page = bytes
        .chunks(PAGE)
        .position(|page| page.windows(cursor.len()).any(|found| found == cursor))
        .expect("a position is stored");
    bytes[page * PAGE..][..64].fill(0xa5);
    fs::write(&path, bytes).unwrap();
    fs::remove_file(machine.data().join("capture.db-wal")).ok();

    let server = machine.serve();
    server.caught_up(&name, &machine.claude(&name));
    assert!(server.log().contains("the database was rebuilt"), "{}", server.log());
    let session = server.session(&name);
    assert_eq!((&session["id"], &session["labels"]["team"]), (&id, &"web".into()));
    assert_eq!(texts(&server, &name), ["the question", "the answer"], "each once");
    let aside = machine.data().join("capture.db.damaged-1");
    assert!(aside.exists());
    let (code, doctor) = command(&machine, &["doctor"]);
    assert!(code == Some(1) && doctor.contains("capture.db.damaged-1"), "{doctor}");
    fs::remove_file(aside).unwrap();
    assert!(!command(&machine, &["doctor"]).1.contains("damaged"), "it was seen");
}

#[test]
fn a_removed_or_replaced_data_directory_is_reported_within_5_seconds() {
    for replace in [false, true] {
        let machine = Machine::new(PROGRAM);
        let server = machine.serve();
        assert_eq!(health(&server).0, 200);
        // Moved away at once: the server may create a file while the directory is being emptied.
        let old = machine.data().with_extension("old");
        fs::rename(machine.data(), &old).unwrap();
        if replace {
            fs::create_dir(machine.data()).unwrap();
        } else {
            fs::remove_dir_all(&old).ok();
        }
        let said = within(Duration::from_secs(5), || Some(health(&server)).filter(|(status, _)| *status == 503));
        let what = if replace { "replaced" } else { "removed" };
        assert_eq!(said.unwrap().1, format!("not ready: nothing is recorded: the data directory was {what}\n"));
        let logged = format!("the data directory was {what}");
        eventually("the log says it", || server.log().contains(&logged).then_some(()));
        assert!(!machine.data().join("capture.db").exists(), "nothing is written there");
    }
}

#[test]
fn a_database_of_a_newer_capture_is_refused_and_left_alone() {
    let machine = Machine::new(PROGRAM);
    assert!(tests::program::ended_well(machine.serve().stop()));
    let path = machine.data().join("capture.db");
    let mut bytes = fs::read(&path).unwrap();
    // SQLite's `user_version`.
    bytes[60..64].copy_from_slice(&900_u32.to_be_bytes());
    fs::write(&path, &bytes).unwrap();
    let data = machine.data();
    let (code, said) = command(&machine, &["serve", "--listen", "127.0.0.1:0", "--data-dir", data.to_str().unwrap()]);
    assert_eq!(code, Some(1));
    assert!(said.contains("schema version 900") && said.contains("use the newer capture"), "{said}");
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

/// The server's files cannot grow, as on a full disk.
#[test]
fn an_unwritable_store_is_reported_within_2_seconds() {
    let machine = Machine::new(PROGRAM);
    let name = written(&machine, 1);
    let server = machine.serve_with("trap '' XFSZ");
    server.caught_up(&name, &machine.claude(&name));
    let limit = |bytes: Option<u64>| {
        let pid = Pid::from_raw(i32::try_from(server.pid()).unwrap());
        prlimit(pid, Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
    };
    limit(Some(1));
    let cwd = machine.project().to_str().unwrap().to_owned();
    append(&machine.claude(&name), &prompt(&name, &uuid(1, 3), &cwd, "meanwhile"));
    let said = within(Duration::from_secs(2), || Some(health(&server)).filter(|(status, _)| *status == 503));
    let (_, said) = said.expect("within 2 s");
    assert!(said.starts_with("not ready: nothing is recorded: "), "{said}");
    let (code, ps) = command(&machine, &["ps"]);
    assert_eq!(code, Some(0), "{ps}");
    assert!(ps.contains("capture: store: nothing is recorded: "), "{ps}");
    let (code, doctor) = command(&machine, &["doctor"]);
    assert!(code == Some(1) && doctor.contains("nothing is recorded: "), "{doctor}");
    limit(None);
    server.caught_up(&name, &machine.claude(&name));
    assert_eq!(texts(&server, &name), ["the question", "the answer", "meanwhile"]);
    eventually("it is well again", || (health(&server).0 == 200).then_some(()));
    assert!(!command(&machine, &["ps"]).1.contains("nothing is recorded"));
}

/// Another program locks the database for a long time: the server reports it and waits.
#[test]
fn a_locked_database_is_reported_and_waited_for() {
    let machine = Machine::new(PROGRAM);
    let name = written(&machine, 1);
    let server = machine.serve();
    server.caught_up(&name, &machine.claude(&name));
    // The same database through another directory, whose lock is free.
    let beside = machine.home().join("beside");
    fs::create_dir(&beside).unwrap();
    std::os::unix::fs::symlink(machine.data().join("capture.db"), beside.join("capture.db")).unwrap();
    let mut holder = Writer::open(&beside).unwrap();
    holder.begin().unwrap();
    let cwd = machine.project().to_str().unwrap().to_owned();
    append(&machine.claude(&name), &prompt(&name, &uuid(1, 3), &cwd, "meanwhile"));
    let said = eventually("it says so", || Some(health(&server)).filter(|(status, _)| *status == 503));
    assert_eq!(said.1, "not ready: nothing is recorded: another program has locked the database\n");
    assert!(command(&machine, &["ps"]).1.contains("another program has locked the database"));
    assert_eq!(texts(&server, &name), ["the question", "the answer"], "reading goes on");
    holder.rollback();
    drop(holder);
    server.caught_up(&name, &machine.claude(&name));
    assert_eq!(texts(&server, &name), ["the question", "the answer", "meanwhile"]);
    eventually("it is well again", || (health(&server).0 == 200).then_some(()));
}

/// Root may write despite permissions, so the directory is on a read-only file system.
#[test]
fn a_read_only_data_directory_is_refused_and_named() {
    let machine = Machine::new(PROGRAM);
    machine.serve().stop();
    let data = machine.data();
    let template = machine.command(&[]);
    let script = "mount --bind \"$D\" \"$D\" && mount -o remount,bind,ro \"$D\" && exec \"$0\" \"$@\"";
    let namespace = |program: &std::ffi::OsStr, arguments: &[&str]| {
        let mut command = std::process::Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "--", "sh", "-c", script]).arg(program).args(arguments);
        command.env_clear().envs(template.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("D", &data).env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin").output()
    };
    if !namespace("true".as_ref(), &[]).is_ok_and(|output| output.status.success()) {
        println!("skipped: mount namespaces cannot be made here");
        return;
    }
    let output =
        namespace(PROGRAM.as_ref(), &["serve", "--listen", "127.0.0.1:0", "--data-dir", data.to_str().unwrap()]);
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(data.to_str().unwrap()), "{said}");
    assert!(said.to_lowercase().contains("read-only file system"), "{said}");
}

/// After a burst the write-ahead log is truncated.
#[test]
fn the_write_ahead_log_is_truncated_when_the_server_is_idle() {
    let machine = Machine::new(PROGRAM);
    let (name, cwd) = (session(1), machine.project().to_str().unwrap().to_owned());
    let mut random = tests::Random::new(7);
    for n in 0..400 {
        // Text that cannot be compressed.
        let text: String = (0..20_000).map(|_| char::from(33 + random.below(90) as u8)).collect();
        append(&machine.claude(&name), &prompt(&name, &uuid(1, n), &cwd, &text));
    }
    let server = machine.serve();
    server.caught_up(&name, &machine.claude(&name));
    let size = |name: &str| fs::metadata(machine.data().join(name)).map_or(0, |file| file.len());
    eventually("the log is in the database, and empty", || {
        (size("capture.db") > 4 << 20 && size("capture.db-wal") == 0).then_some(())
    });
}
