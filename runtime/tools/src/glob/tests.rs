use std::{fs, time::Duration};

use super::*;

fn place(names: &[&str]) -> (tempfile::TempDir, Workspace, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let top = fs::canonicalize(dir.path()).unwrap();
    for (at, name) in names.iter().enumerate() {
        fs::create_dir_all(top.join(name).parent().unwrap()).unwrap();
        let file = fs::File::create(top.join(name)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + at as u64)).unwrap();
    }
    let workspace = Workspace::new(&top, &top).unwrap();
    (dir, workspace, top)
}

fn run(workspace: &Workspace, root: &Path, pattern: &str) -> String {
    let arguments = GlobArguments { pattern: pattern.into(), path: None };
    glob(workspace, root, &arguments, &Cancel::new().unwrap()).joined_text()
}

#[test]
fn files_are_listed_newest_first() {
    let names = ["a.rs", "src/b.rs", "src/deep/c.rs", "src/d.ts", ".github/ci.yml", ".git/x.rs", "target/e.rs"];
    let (_dir, workspace, top) = place(&names);
    fs::write(top.join(".ignore"), "target\n").unwrap();
    assert_eq!(run(&workspace, &top, "*.rs"), "src/deep/c.rs\nsrc/b.rs\na.rs\n");
    assert_eq!(run(&workspace, &top, "src/*.{rs,ts}"), "src/d.ts\nsrc/b.rs\n");
    assert_eq!(run(&workspace, &top, "./src/**/*.rs"), "src/deep/c.rs\nsrc/b.rs\n");
    assert_eq!(run(&workspace, &top.join("src"), "*.ts"), "src/d.ts\n");
    assert_eq!(run(&workspace, &top, "*.yml"), "no files match\n");
    assert_eq!(run(&workspace, &top, ".github/*.yml"), ".github/ci.yml\n");
    assert_eq!(run(&workspace, &top, ".git/*"), "no files match\n");
}

#[test]
fn a_long_glob_result_is_truncated_and_symlinks_are_not_followed() {
    let names: Vec<String> = (0..1_100).map(|at| format!("f{at:04}")).collect();
    let (_dir, workspace, top) = place(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("outside"), "").unwrap();
    std::os::unix::fs::symlink(other.path(), top.join("link")).unwrap();
    let listed = run(&workspace, &top, "f*");
    assert!(listed.starts_with("f1099\nf1098\n") && listed.contains("[the 1000 newest of 1100;"), "{}", listed.len());
    assert_eq!(run(&workspace, &top, "outside"), "no files match\n");
}
