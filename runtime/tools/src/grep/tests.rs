use std::{fs, os::unix::fs::symlink, path::PathBuf};

use super::*;

fn place(files: &[(&str, &[u8])]) -> (tempfile::TempDir, Workspace, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let top = fs::canonicalize(dir.path()).unwrap();
    for (name, content) in files {
        fs::create_dir_all(top.join(name).parent().unwrap()).unwrap();
        fs::write(top.join(name), content).unwrap();
    }
    let workspace = Workspace::new(&top, &top).unwrap();
    (dir, workspace, top)
}

fn arguments(pattern: &str) -> GrepArguments {
    GrepArguments { pattern: pattern.into(), path: None, glob: None, mode: None, context: None, limit: None }
}

fn run(workspace: &Workspace, root: &Path, arguments: &GrepArguments) -> String {
    grep(workspace, root, arguments, &Cancel::new().unwrap()).joined_text()
}

const FILES: &[(&str, &[u8])] = &[
    ("a.rs", b"fn one() {}\nfn two() {}\nlet x = 1;\n"),
    ("src/b.rs", b"// one\r\nnothing\r\n"),
    ("c.txt", b"one\n"),
    (".hidden", b"one\n"),
    ("bin", b"one\0two\n"),
    ("ignored/d.rs", b"one\n"),
    (".ignore", b"ignored\n"),
];

#[test]
fn grep_prints_matching_lines_grouped_by_file() {
    let (_dir, workspace, top) = place(FILES);
    assert_eq!(
        run(&workspace, &top, &arguments("one")),
        "a.rs\n     1:\tfn one() {}\n\nc.txt\n     1:\tone\n\nsrc/b.rs\n     1:\t// one"
    );
    assert_eq!(run(&workspace, &top, &arguments("absent")), "no matches");
    let only = GrepArguments { glob: Some("*.txt".into()), ..arguments("one") };
    assert_eq!(run(&workspace, &top, &only), "c.txt\n     1:\tone");
    let around = GrepArguments { context: Some(1), glob: Some("a.rs".into()), ..arguments("two") };
    assert_eq!(run(&workspace, &top, &around), "a.rs\n     1 \tfn one() {}\n     2:\tfn two() {}\n     3 \tlet x = 1;");
    assert_eq!(run(&workspace, &top.join("ignored/d.rs"), &arguments("one")), "ignored/d.rs\n     1:\tone");
    assert!(run(&workspace, &top.join("src"), &arguments("^// o.e")).contains("src/b.rs"));
}

#[test]
fn grep_lists_files_or_counts_up_to_a_limit() {
    let (_dir, workspace, top) = place(FILES);
    let mode = |mode, limit| GrepArguments { mode: Some(mode), limit, ..arguments("fn|one") };
    assert_eq!(run(&workspace, &top, &mode(GrepMode::Files, None)), "a.rs\nc.txt\nsrc/b.rs");
    assert_eq!(run(&workspace, &top, &mode(GrepMode::Count, None)), "a.rs: 2\nc.txt: 1\nsrc/b.rs: 1");
    let limited = run(&workspace, &top, &mode(GrepMode::Files, Some(1)));
    assert_eq!(limited, "a.rs\n[stopped at the limit of matches; narrow the search]");
    let lines = run(&workspace, &top, &GrepArguments { limit: Some(1), ..arguments("fn") });
    assert!(
        lines.starts_with("a.rs\n     1:\tfn one() {}") && lines.contains("limit of matches") && !lines.contains("two"),
        "{lines}"
    );
}

#[test]
fn a_search_is_limited_in_output_file_size_and_time() {
    let wide = format!("{}\n", "x".repeat(450)).repeat(300);
    let (_dir, workspace, top) = place(&[("wide", wide.as_bytes()), ("huge", b"x\n")]);
    let found = run(&workspace, &top, &arguments("x"));
    assert!(
        found.len() < limits::RESULT_BYTES + 100 && found.ends_with("[cut at 30 KiB; narrow the search]"),
        "{}",
        found.len()
    );
    // Files above the size limit are skipped.
    fs::File::options().write(true).open(top.join("huge")).unwrap().set_len(limits::FILE_BYTES + 1).unwrap();
    let files = GrepArguments { mode: Some(GrepMode::Files), ..arguments("x") };
    assert_eq!(run(&workspace, &top, &files), "wide");
    let late = grep_within(&workspace, &top, &arguments("x"), &Cancel::new().unwrap(), Duration::ZERO);
    assert!(late.joined_text().contains("not all files were searched"), "{late:?}");
    let cancel = Cancel::new().unwrap();
    cancel.cancel();
    assert!(grep(&workspace, &top, &arguments("x"), &cancel).is_error);
}

#[test]
fn grep_masks_secrets_and_does_not_follow_symlinks() {
    let (_dir, workspace, top) = place(&[("env", b"aws_access_key_id = AKIAQ3EGUVT5XB2N7WKM\n")]);
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("outside"), "aws elsewhere\n").unwrap();
    symlink(other.path(), top.join("dir")).unwrap();
    symlink(other.path().join("outside"), top.join("file")).unwrap();
    let result = grep(&workspace, &top, &arguments("aws"), &Cancel::new().unwrap());
    let text = result.joined_text();
    assert!(text.contains("[redacted:") && !text.contains("EGUVT5XB2N7WKM") && !text.contains("elsewhere"), "{text}");
    assert_eq!(result.details.masked, 1);
}
