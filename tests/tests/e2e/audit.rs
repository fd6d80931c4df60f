//! `capture audit verify` from outside: an intact record, a broken one, and an unreadable one.

use std::fs;

use store::{AuditHead, HEAD_FILE, Writer, write_head};
use tests::program::Machine;

use super::PROGRAM;

/// A machine whose record has `rows` rows, and the head of the record.
fn recorded(rows: u64) -> (Machine, AuditHead) {
    let machine = Machine::new(PROGRAM);
    machine.configure("autostart = false\n");
    let mut writer = Writer::open(&machine.data()).unwrap();
    writer.begin().unwrap();
    let heads: Vec<_> = (0..rows).map(|n| writer.audit(&format!("{{\"n\":{n}}}")).unwrap()).collect();
    writer.commit().unwrap();
    let head = heads.last().copied().unwrap_or_default();
    write_head(&machine.data(), head).unwrap();
    drop(writer);
    Writer::checkpoint(&machine.data().join("capture.db"), true).unwrap();
    (machine, head)
}

/// The exit code and the whole output.
fn verify(machine: &Machine, more: &[&str]) -> (Option<i32>, String) {
    let output = machine.command(&[&["audit", "verify"], more].concat()).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[test]
fn audit_verify_distinguishes_intact_broken_and_unreadable_records() {
    let (machine, head) = recorded(3);
    let told = format!("{}:{}", head.sequence, head.hash);
    let (code, said) = verify(&machine, &[]);
    assert_eq!(code, Some(0));
    assert!(said.contains(&format!("3 rows, last row {told}")), "{said}");
    assert_eq!(verify(&machine, &["--head", &told]).0, Some(0));
    let (code, said) = verify(&machine, &["--head", "3"]);
    assert_eq!(
        (code, said.contains("expected SEQUENCE:HASH with a hash of 64 hex digits, got `3`")),
        (Some(2), true),
        "{said}"
    );
    let (code, said) = verify(&machine, &["--head", &format!("4:{}", head.hash)]);
    assert_eq!((code, said.contains("rows 4 to 4 are missing at the end")), (Some(1), true), "{said}");
    let (code, said) = verify(&machine, &["--json", "--head", &format!("2:{}", head.hash)]);
    assert_eq!((code, said.contains("\"whole\":false")), (Some(1), true), "{said}");

    let kept = machine.data().join(HEAD_FILE);
    fs::write(&kept, "{\"sequence\":3").unwrap();
    let (code, said) = verify(&machine, &[]);
    assert_eq!((code, said.contains("does not name the last row of the audit record")), (Some(1), true), "{said}");
    fs::remove_file(&kept).unwrap();
    let (code, said) = verify(&machine, &[]);
    assert_eq!((code, said.contains("audit.head, which names the last row, is missing")), (Some(1), true), "{said}");
    fs::create_dir(&kept).unwrap();
    let (code, said) = verify(&machine, &[]);
    assert_eq!((code, said.contains("cannot verify the audit record: cannot read")), (Some(7), true), "{said}");
}

#[test]
fn audit_verify_reports_a_damaged_or_missing_database() {
    let (machine, _) = recorded(3);
    let database = machine.data().join("capture.db");
    let mut bytes = fs::read(&database).unwrap();
    bytes[16_384..].fill(0x5a);
    fs::write(&database, bytes).unwrap();
    let (code, said) = verify(&machine, &[]);
    assert_eq!((code, said.contains("the database file is damaged")), (Some(7), true), "{said}");
    fs::write(&database, "no database at all, but some text").unwrap();
    let (code, said) = verify(&machine, &[]);
    assert_eq!((code, said.contains("the database file is damaged")), (Some(7), true), "{said}");

    fs::remove_file(&database).unwrap();
    let (code, said) = verify(&machine, &[]);
    assert_eq!(
        (code, said.contains("the audit record is missing: audit.head exists, but capture.db does not")),
        (Some(1), true),
        "{said}"
    );
    fs::remove_file(machine.data().join(HEAD_FILE)).unwrap();
    assert_eq!(verify(&machine, &[]).0, Some(4));
}

#[test]
fn audit_show_of_an_unknown_approval_exits_with_4() {
    let (machine, _) = recorded(3);
    for more in [&[][..], &["--json"]] {
        let output = machine.command(&[&["audit", "show", "zzz"], more].concat()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(4), &b""[..]), "{said}");
        assert!(said.contains("no permission request `zzz`; `capture audit show` lists the last rows"), "{said}");
    }
    assert_eq!(machine.command(&["audit", "show"]).output().unwrap().status.code(), Some(0), "all of it");
}
