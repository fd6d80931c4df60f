use std::{
    fs, io,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::PathBuf,
};

use super::*;
use crate::{arguments::ReadArguments, cancel::Cancel, limits, result::Content};

struct Place {
    files: Files,
    top: PathBuf,
    _dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(dir.path()).unwrap();
        Self { files: Files::new(Workspace::new(&top, &top).unwrap()), top, _dir: dir }
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.top.join(name), content).unwrap();
        self.top.join(name)
    }

    fn read(&self, name: &str, offset: Option<u64>, limit: Option<u64>) -> ToolResult {
        let arguments = ReadArguments { path: name.into(), offset, limit };
        read(&self.files, &self.top.join(name), &arguments, &Cancel::new().unwrap())
    }

    fn edit(&self, name: &str, old: &str, new: &str) -> ToolResult {
        let edits = vec![Replacement { old: old.into(), new: new.into(), all: None }];
        self.files.edit(&self.top.join(name), &EditArguments { path: name.into(), edits })
    }

    fn write(&self, name: &str, content: &str) -> ToolResult {
        self.files.write(&self.top.join(name), &WriteArguments { path: name.into(), content: content.into() })
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.top.join(name)).unwrap()
    }
}

#[track_caller]
fn failed(result: &ToolResult, part: &str) {
    assert!(result.is_error && result.joined_text().contains(part), "{result:?}");
    assert!(result.details.changed.is_empty());
}

#[test]
fn numbers_in_file_records_are_exact_in_javascript() {
    let place = Place::new();
    place.put("a", "one\n");
    let seen = serde_json::to_value(place.read("a", None, None).details.seen.unwrap()).unwrap();
    let numbers: Vec<i64> = seen.as_object().unwrap().values().filter_map(serde_json::Value::as_i64).collect();
    assert_eq!(numbers.len(), 2, "{seen}");
    assert!(numbers.iter().all(|number| number.unsigned_abs() < 1 << 53), "{seen}");
}

#[track_caller]
fn done(result: &ToolResult) {
    assert!(!result.is_error, "{result:?}");
}

#[test]
fn a_file_is_read_with_its_line_numbers() {
    let place = Place::new();
    place.put("a", "one\r\ntwo\nthree");
    let result = place.read("a", None, None);
    assert_eq!(result.joined_text(), "     1\tone\n     2\ttwo\n     3\tthree\n");
    let seen = result.details.seen.unwrap();
    assert!(seen.whole && seen.lines == [(1, 3)] && seen.bytes == 14);
    let result = place.read("a", Some(2), Some(1));
    assert_eq!(result.joined_text(), "     2\ttwo\n[lines 2-2 of 3; continue with offset 3]");
    failed(&place.read("a", Some(4), None), "it has only 3 lines, so none at offset 4");
    place.put("empty", "");
    assert_eq!(place.read("empty", None, None).joined_text(), "(the file is empty)");
    failed(&place.read("none", None, None), "cannot open none");
    fs::create_dir(place.top.join("dir")).unwrap();
    failed(&place.read("dir", None, None), "list it with glob");
}

#[test]
fn long_files_and_lines_are_truncated() {
    let place = Place::new();
    let lines: String = (1..=5_000).map(|line| format!("line {line}\n")).collect();
    place.put("long", &lines);
    let result = place.read("long", None, None);
    let text = result.joined_text();
    assert!(
        text.ends_with("  2000\tline 2000\n[lines 1-2000 of 5000; continue with offset 2001]"),
        "{}",
        &text[text.len() - 99..]
    );
    assert!(!result.details.seen.unwrap().whole);
    // A file read in parts has finally been read whole.
    place.read("long", Some(2_001), None);
    assert!(place.read("long", Some(4_001), None).details.seen.unwrap().whole);
    place.put("wide", format!("{}\nb\n", "x".repeat(3_000)));
    let text = place.read("wide", None, None).joined_text();
    assert!(text.contains("x… [line cut: 3000 characters]\n     2\tb\n"), "{text}");
    // 50 KiB, and the offset at which to continue.
    place.put("fat", format!("{}\n", "y".repeat(1_500)).repeat(100));
    let result = place.read("fat", None, None);
    assert!(result.joined_text().len() < limits::READ_BYTES + 100);
    assert!(result.joined_text().contains("of 100; continue with offset 34]"), "{}", result.joined_text().len());
    assert!(!result.details.seen.unwrap().whole);
}

#[test]
fn a_range_of_lines_can_be_read_from_a_huge_file() {
    let place = Place::new();
    let path = place.top.join("huge");
    let file = fs::File::create(&path).unwrap();
    let mut out = io::BufWriter::new(&file);
    for line in 1..=900_000 {
        io::Write::write_all(&mut out, format!("this is line number {line}\n").as_bytes()).unwrap();
    }
    drop(out);
    assert!(fs::metadata(&path).unwrap().len() > limits::FILE_BYTES);
    let result = place.read("huge", Some(700_001), Some(2));
    assert_eq!(
        result.joined_text(),
        "700001\tthis is line number 700001\n700002\tthis is line number 700002\n[lines 700001-700002; continue with offset 700003]"
    );
    assert_eq!(result.details.seen, None);
    let last = place.read("huge", Some(900_000), None).joined_text();
    assert_eq!(last, "900000\tthis is line number 900000\n");
    failed(&place.read("huge", Some(900_002), None), "it has only 900000 lines");
    failed(&place.edit("huge", "number 5\n", "x"), "longer than 10 MiB");
    failed(&place.write("huge", "x"), "longer than 10 MiB");
    // Refusing 10 GB of holes is cheap.
    file.set_len(10 << 30).unwrap();
    failed(&place.read("huge", Some(10_000_000), None), "more than 256 MiB into the file");
}

#[test]
fn binary_files_are_refused_and_images_returned() {
    let place = Place::new();
    place.put("program", b"\x7fELF\x02\x01\x01\0\0");
    failed(&place.read("program", None, None), "is a binary file (ELF program or library, 9 bytes)");
    place.put("data", b"ab\0cd");
    failed(&place.read("data", None, None), "of unknown type");
    failed(&place.edit("data", "ab", "x"), "binary file");
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    place.put("a.png", png);
    let result = place.read("a.png", None, None);
    assert_eq!(result.content[1], Content::Image { media_type: "image/png", bytes: png.to_vec() });
    let file = fs::File::create(place.top.join("big.png")).unwrap();
    io::Write::write_all(&mut &file, png).unwrap();
    file.set_len(limits::IMAGE_BYTES + 1).unwrap();
    failed(&place.read("big.png", None, None), "the limit is 5 MiB");
    // Latin-1 is text.
    place.put("latin", b"caf\xe9\n");
    assert_eq!(place.read("latin", None, None).joined_text(), "     1\tcaf\u{fffd}\n");
}

#[test]
fn secrets_are_masked_when_read_and_preserved_when_edited() {
    let place = Place::new();
    let key = "AKIAQ3EGUVT5XB2N7WKM";
    let content = format!("a = 1\naws_access_key_id = {key}\nb = 2\n");
    place.put("env", &content);
    let result = place.read("env", None, None);
    let text = result.joined_text();
    assert!(!text.contains(key) && text.contains("     2\taws_access_key_id = [redacted:"), "{text}");
    assert!(text.ends_with("     3\tb = 2\n") && result.details.masked == 1, "{text}");
    // Masked text must not be written back.
    let masked: String = text.lines().map(|line| format!("{}\n", line.split_once('\t').unwrap().1)).collect();
    failed(&place.write("env", &masked.replace("b = 2", "b = 3")), "stands for a secret");
    failed(&place.write("new", &masked), "stands for a secret");
    let line = masked.lines().nth(1).unwrap().to_owned();
    failed(&place.edit("env", "a = 1", &format!("a = 1\n{line}")), "stands for a secret");
    let edited = place.edit("env", "b = 2", "b = 3");
    done(&edited);
    assert!(place.text("env").contains(key));
    assert!(!edited.details.diff.unwrap().contains(key));
    // A key of several lines does not change the line numbers.
    let block = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn\nx/ygWyF8PbnGy0AHB7MhgHcTz6sE\n-----END RSA PRIVATE KEY-----\n";
    place.put("key", format!("x\n{block}y\n"));
    let text = place.read("key", None, None).joined_text();
    assert!(!text.contains("MIIEpAIB") && !text.contains("PbnGy0") && text.ends_with("     6\ty\n"), "{text}");
}

#[test]
fn an_edit_keeps_permissions_and_owner_of_the_file() {
    let place = Place::new();
    let path = place.put("run.sh", "#!/bin/sh\necho a\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
    let owner = fs::metadata(&path).unwrap().uid();
    done(&place.read("run.sh", None, None));
    let result = place.edit("run.sh", "echo a", "echo b");
    done(&result);
    assert_eq!(result.joined_text(), "edited run.sh: 1 replacement (lines 2)");
    assert_eq!(result.details.changed, std::slice::from_ref(&path));
    assert!(result.details.diff.as_ref().unwrap().contains("-echo a\n+echo b\n"), "{result:?}");
    let after = fs::metadata(&path).unwrap();
    assert_eq!((after.permissions().mode() & 0o7777, after.uid()), (0o751, owner));
    assert_eq!(place.text("run.sh"), "#!/bin/sh\necho b\n");
    // After the tool's own change, the next edit and a write are made.
    done(&place.edit("run.sh", "echo b", "echo c"));
    done(&place.write("run.sh", "#!/bin/sh\n"));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o751);
    assert_eq!(fs::read_dir(&place.top).unwrap().count(), 1, "no draft is left");
}

#[test]
fn a_tolerant_edit_reports_the_resulting_change() {
    let place = Place::new();
    place.put("a", "fn a() {\r\n    begin();  \r\n}\r\n");
    done(&place.read("a", None, None));
    let result = place.edit("a", "    begin();\n}", "    finish();\n}");
    done(&result);
    assert!(
        result.joined_text().contains("`old` was found except for line ends and trailing blanks. The change:\n"),
        "{result:?}"
    );
    assert_eq!(place.text("a"), "fn a() {\r\n    finish();\r\n}\r\n");
}

#[test]
fn a_file_that_changed_since_is_not_overwritten() {
    let place = Place::new();
    place.put("a", "one\ntwo\n");
    done(&place.read("a", None, None));
    place.put("a", "one\n2\nthree\n");
    for result in [place.write("a", "x"), place.edit("a", "one", "1")] {
        // The first refusal shows the change, and then the file counts as seen.
        if result.is_error {
            failed(&result, "changed since it was read; nothing was written. What changed:");
            assert!(result.joined_text().contains("-two\n+2\n+three\n"), "{result:?}");
        }
    }
    assert_eq!(place.text("a"), "1\n2\nthree\n");
    // After a restart only the hash is known.
    let seen = place.read("a", None, None).details.seen.unwrap();
    let files = Files::new(Workspace::new(&place.top, &place.top).unwrap());
    files.seen().record(seen, None);
    place.put("a", "other");
    let arguments = WriteArguments { path: "a".into(), content: "x".into() };
    failed(&files.write(&place.top.join("a"), &arguments), "Read it again");
    // Equal content counts as the same file, regardless of its modification time.
    place.put("a", "1\n2\nthree\n");
    done(&files.write(&place.top.join("a"), &arguments));
}

#[test]
fn a_file_that_was_not_read_completely_is_not_overwritten() {
    let place = Place::new();
    place.put("a", "one\ntwo\n");
    failed(&place.write("a", "x"), "was not read");
    failed(&place.edit("a", "one \ntwo", "x"), "was not read");
    done(&place.edit("a", "one\n", "1\n"));
    failed(&place.write("a", "x"), "only a part");
    done(&place.read("a", Some(2), None));
    place.files.seen().clear();
    done(&place.read("a", Some(2), None));
    failed(&place.write("a", "x"), "only a part of a was read");
    done(&place.read("a", Some(1), Some(1)));
    done(&place.write("a", "x"));
    assert_eq!(place.text("a"), "x");
    // An empty file has nothing to lose.
    place.put("empty", "");
    done(&place.write("empty", "x"));
}

#[test]
fn new_files_are_made_with_their_directories() {
    let place = Place::new();
    let result = place.write("a/b/c.txt", "1\n2\n");
    done(&result);
    assert_eq!(result.joined_text(), "created a/b/c.txt (2 lines, 4 bytes)");
    assert_eq!(place.text("a/b/c.txt"), "1\n2\n");
    let mode = fs::metadata(place.top.join("a/b/c.txt")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, fs::metadata(place.put("d", "")).unwrap().permissions().mode() & 0o777);
    assert!(result.details.seen.unwrap().whole);
    done(&place.edit("a/b/c.txt", "2", "3"));
}

#[test]
fn edits_through_hard_links_and_symlinks_are_refused() {
    let place = Place::new();
    let path = place.put("a", "one\n");
    fs::hard_link(&path, place.top.join("b")).unwrap();
    done(&place.read("a", None, None));
    failed(&place.edit("a", "one", "two"), "has 2 hard links");
    failed(&place.write("a", "two"), "has 2 hard links");
    assert_eq!(place.text("b"), "one\n");
    // A link that replaces the file is not followed.
    let other = place.put("other", "other\n");
    fs::remove_file(&path).unwrap();
    symlink(&other, &path).unwrap();
    failed(&place.edit("a", "other", "x"), "symbolic link");
    failed(&place.write("a", "x"), "symbolic link");
    assert_eq!(fs::read_to_string(other).unwrap(), "other\n");
}
