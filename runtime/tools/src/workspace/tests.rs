use std::os::unix::fs::symlink;

use super::*;

/// A workspace `w` beside a directory `o`, both with files.
fn place() -> (tempfile::TempDir, Workspace, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let top = fs::canonicalize(dir.path()).unwrap();
    fs::create_dir_all(top.join("w/src")).unwrap();
    fs::create_dir_all(top.join("o")).unwrap();
    fs::write(top.join("w/src/a"), "a").unwrap();
    fs::write(top.join("o/secret"), "s").unwrap();
    symlink("../o", top.join("w/out")).unwrap();
    symlink("src/a", top.join("w/in")).unwrap();
    symlink("nowhere", top.join("w/dangling")).unwrap();
    let workspace = Workspace::new(&top.join("w"), &top.join("w/src")).unwrap();
    (dir, workspace, top)
}

#[test]
fn paths_are_resolved_before_the_workspace_check() {
    let (_dir, workspace, top) = place();
    let check = |text: &str, path: &str, exists: bool, inside: bool| {
        let resolved = workspace.resolve(text).unwrap();
        assert_eq!(resolved, ResolvedPath { path: top.join(path), exists }, "{text}");
        assert_eq!(workspace.contains(&resolved.path), inside, "{text}");
    };
    check("a", "w/src/a", true, true);
    check("../in", "w/src/a", true, true);
    check("./../src//a", "w/src/a", true, true);
    check("new", "w/src/new", false, true);
    check("new/dir/file", "w/src/new/dir/file", false, true);
    check("../out/secret", "o/secret", true, false);
    check("../out/new", "o/new", false, false);
    check("../../o/secret", "o/secret", true, false);
    check(&top.join("o").display().to_string(), "o", true, false);
    assert!(workspace.resolve("../dangling").unwrap_err().contains("leads nowhere"));
    assert!(workspace.resolve("../dangling/x").unwrap_err().contains("leads nowhere"));
    assert!(workspace.resolve("new/../x").unwrap_err().contains("`..` follows"));
    assert!(workspace.resolve("a/b").is_err());
    // A directory whose name has the same prefix is a different one.
    fs::create_dir(top.join("w2")).unwrap();
    check("../../w2", "w2", true, false);
}

#[test]
fn a_symlink_created_after_path_resolution_is_not_followed() {
    let (_dir, workspace, top) = place();
    let file = workspace.resolve("a").unwrap().path;
    assert!(workspace.open_file(&file).is_ok());
    // The file becomes a link, or a directory on its path does.
    fs::remove_file(&file).unwrap();
    symlink(top.join("o/secret"), &file).unwrap();
    assert!(workspace.open_file(&file).unwrap_err().to_string().contains("symbolic link was put there"));
    fs::remove_file(&file).unwrap();
    fs::remove_dir(top.join("w/src")).unwrap();
    symlink("../o", top.join("w/src")).unwrap();
    assert!(workspace.open_file(&top.join("w/src/secret")).is_err());
    assert!(workspace.open_parent(&top.join("w/src/new"), true).is_err());
    // The same outside the workspace.
    assert!(workspace.open_file(&top.join("o/secret")).is_ok());
    symlink("secret", top.join("o/link")).unwrap();
    assert!(workspace.open_file(&top.join("o/link")).is_err());
    // An unresolved path is not opened, wherever it leads.
    assert!(workspace.open_file(&top.join("w/../o/secret")).is_err());
}

#[test]
fn only_regular_files_are_opened() {
    let (_dir, workspace, top) = place();
    let fifo = top.join("w/fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    // Without waiting for a writer.
    assert!(workspace.open_file(&fifo).unwrap_err().to_string().contains("not a regular file"));
    assert!(workspace.open_file(Path::new("/dev/zero")).is_err());
    assert_eq!(workspace.open_file(&top.join("w")).unwrap_err().kind(), io::ErrorKind::IsADirectory);
}
