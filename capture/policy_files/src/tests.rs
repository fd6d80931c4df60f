use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
};

use approver::{Facts, FileContent, GrepFilter, SearchReader, SearchScope, SecretsBelow};

use super::*;

fn home() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    for name in ["config", "work", "bin"] {
        fs::create_dir(root.join(name)).unwrap();
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(0o700)).unwrap();
    }
    (dir, root)
}

fn put(path: &Path, text: &str, mode: u32) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

const READS: &str = "version = 1\npreset = \"read-only\"\n";

#[test]
fn only_a_policy_file_that_no_one_else_can_write_applies() {
    let (_dir, root) = home();
    let file = root.join("config/policy.toml");
    assert!(load(&file, None).is_ok(), "a missing file asks about everything");
    put(&file, READS, 0o600);
    assert!(in_force(&file, &root.join("work")).refused.is_none());
    put(&file, READS, 0o660);
    assert!(matches!(load(&file, None), Err(Refused::WritableByOthers(path)) if path == file));
    put(&file, READS, 0o644);
    fs::set_permissions(root.join("config"), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(load(&file, None), Err(Refused::WritableByOthers(path)) if path == root.join("config")));
}

#[test]
fn a_policy_below_a_directory_writable_by_others_is_refused() {
    let (_dir, root) = home();
    let file = root.join("above/capture/policy.toml");
    put(&file, READS, 0o600);
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    mode(&root.join("above/capture"), 0o700);
    mode(&root.join("above"), 0o755);
    assert!(load(&file, None).is_ok());
    for open in [0o777, 0o775] {
        mode(&root.join("above"), open);
        assert!(matches!(load(&file, None), Err(Refused::WritableByOthers(path)) if path == root.join("above")));
    }
    mode(&root.join("above"), 0o1777);
    assert!(load(&file, None).is_ok(), "in a sticky one others cannot put another in its place");
    // The directories of a link's target count too.
    mode(&root.join("above"), 0o777);
    let link = root.join("config/policy.toml");
    symlink(&file, &link).unwrap();
    assert!(matches!(load(&link, None), Err(Refused::WritableByOthers(_))));
}

#[test]
fn a_policy_file_inside_the_workspace_is_refused() {
    let (_dir, root) = home();
    let inside = root.join("work/policy.toml");
    put(&inside, READS, 0o600);
    assert!(matches!(load(&inside, Some(&root.join("work"))), Err(Refused::InWorkspace(_))));
    let link = root.join("config/policy.toml");
    symlink(&inside, &link).unwrap();
    assert!(matches!(load(&link, Some(&root.join("work"))), Err(Refused::InWorkspace(_))));
    // An error that applies everywhere is reported instead.
    put(&inside, "version = 1\nnot a rule", 0o600);
    assert!(matches!(load(&inside, Some(&root.join("work"))), Err(Refused::Broken(_))));
    put(&inside, READS, 0o666);
    assert!(matches!(load(&link, Some(&root.join("work"))), Err(Refused::WritableByOthers(_))));
    fs::remove_file(&inside).unwrap();
    assert!(matches!(load(&link, None), Err(Refused::Unreadable(..))), "a link to nowhere");
    assert!(matches!(load(&link, Some(&root.join("work"))), Err(Refused::Unreadable(..))), "a link to nowhere");
}

#[test]
fn a_broken_file_means_ask_everything() {
    let (_dir, root) = home();
    let file = root.join("config/policy.toml");
    put(&file, "version = 1\npresett = \"read-only\"\n", 0o600);
    let found = in_force(&file, &root.join("work"));
    let told = found.refused.unwrap().to_string();
    assert!(told.contains("policy.toml:2:1") && told.contains("presett"), "{told}");
    put(&file, READS, 0o600);
    put(
        &root.join("work/.capture/policy.toml"),
        "version = 1\n[[rule]]\nname = \"x\"\ndecision = \"allow\"\ncommand = [\"rm\"]\n",
        0o644,
    );
    assert!(in_force(&file, &root.join("work")).refused.is_some(), "a repository allows nothing");
}

#[test]
fn policy_facts_are_read_from_the_file_system() {
    let (_dir, root) = home();
    let work = root.join("work");
    put(&root.join("bin/tool"), "#!/bin/sh\n", 0o755);
    put(&root.join("bin/text"), "x", 0o644);
    symlink(root.join("bin/tool"), work.join("tool")).unwrap();
    symlink("/nonexistent/x", work.join("nowhere")).unwrap();
    symlink("/etc", work.join("out")).unwrap();
    put(&work.join("a/.env"), "x", 0o600);
    put(&work.join("b/c.txt"), "text", 0o600);
    let facts = OnDisk::new(vec![root.join("bin")], [root.join("config")], None);
    assert_eq!(facts.program("tool").last(), Some(&root.join("bin/tool")));
    assert!(facts.program("text").is_empty() && facts.program("../bin/tool").is_empty());
    let through = OnDisk::new(vec![work.clone()], [], None).program("tool");
    assert!(through.iter().any(|file| file.starts_with(&work)), "where it was found counts too: {through:?}");
    assert!(OnDisk::new(vec![".".into(), root.join("bin")], [], None).program("tool").is_empty());

    assert_eq!(facts.canonical(&work.join("new/file")), Some(work.join("new/file")));
    assert_eq!(facts.canonical(&work.join("out/passwd")), Some("/etc/passwd".into()));
    assert_eq!(facts.canonical(&work.join("nowhere")), None);
    assert_eq!(facts.canonical(&work.join("nowhere/x")), None);
    assert_eq!(facts.canonical(&work.join("missing/../x")), None);
    assert_eq!(facts.canonical(Path::new("x")), None);

    assert_eq!(facts.read(&work.join("b/c.txt"), 4), FileContent::Bytes(b"text".to_vec()));
    assert_eq!(facts.read(&work.join("b/c.txt"), 3), FileContent::Unreadable);
    assert_eq!(facts.read(&work.join("none"), 3), FileContent::Missing);
    assert_eq!(facts.read(&work, 3), FileContent::Unreadable);
    assert_eq!(facts.read(&work.join("tool"), 99), FileContent::Unreadable, "a link");

    let below = |dir: &Path| {
        let reader = SearchReader::Everything(GrepFilter::default());
        facts.reached(&SearchScope { dir: dir.to_owned(), cwd: dir.to_owned(), reader, named: None })
    };
    assert_eq!(below(&work), SecretsBelow::Secrets(vec![work.join("a/.env")]));
    assert_eq!(below(&work.join("b")), SecretsBelow::Nothing);
    assert!(facts.is_private(&root.join("config/x")) && !facts.is_private(&work));
    assert_eq!(facts.names(&work.join("a"), 1), Some(vec![".env".into()]));
    assert_eq!((facts.names(&work, 1), facts.names(&work.join("none"), 1)), (None, None));
}

#[test]
fn unsafe_file_names_count_as_secrets_if_another_program_uses_the_names() {
    let (_dir, root) = home();
    let work = root.join("work");
    for file in ["a/plain.rs", "b/two words.rs", "c/-x", "d/line\n.rs", "e/end ", "f/plain.rs"] {
        put(&work.join(file), "x", 0o600);
    }
    std::os::unix::fs::symlink("plain.rs", work.join("f/link.rs")).unwrap();
    let facts = OnDisk::new(vec![], [], None);
    let odd = |dir: &str, split: bool, links: bool| {
        let reader = SearchReader::Everything(GrepFilter::default());
        let dir = work.join(dir);
        let named = Some(approver::NamedFiles { split, links, read: true });
        facts.reached(&SearchScope { cwd: dir.clone(), dir, reader, named }) != SecretsBelow::Nothing
    };
    assert_eq!((odd("a", true, true), odd("b", true, false), odd("b", false, false)), (false, true, false));
    assert!(odd("c", false, false) && odd("d", false, false) && odd("e", false, false));
    assert_eq!((odd("f", true, true), odd("f", true, false)), (true, false));
}

#[test]
fn the_workspace_is_the_root_of_the_repository() {
    let (_dir, root) = home();
    put(&root.join("work/.git/config"), "", 0o600);
    put(&root.join("work/src/x"), "", 0o600);
    assert_eq!(workspace_of(&root.join("work/src")), root.join("work"));
    put(&root.join("bin/.git"), "gitdir: elsewhere\n", 0o600);
    assert_eq!(workspace_of(&root.join("bin")), root.join("bin"));
}

#[test]
fn only_a_valid_rule_is_appended_to_the_policy_file() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("capture/policy.toml");
    let rule = "[[rule]]\nname = \"date\"\ndecision = \"allow\"\ncommand = [\"date\"]\n";
    assert_eq!(append(&file, rule).unwrap(), file);
    let first = std::fs::read_to_string(&file).unwrap();
    assert!(first.starts_with(STARTER.trim_end()) && first.ends_with(rule), "{first}");
    let wrong = append(&file, "[[rule]]\nname = \"x\"\ndecision = \"perhaps\"\n");
    assert!(matches!(wrong, Err(AppendError::Invalid(_))), "{wrong:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), first);
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    assert!(matches!(append(&file, rule), Err(AppendError::Refused(Refused::WritableByOthers(_)))));
}
