use super::*;
use events::{ApprovalRequested, Confidence, Provider, SessionId, Source, Timestamp};

fn approval(cwd: &Path, command: &str, paths: &[&str]) -> Approval {
    let asked = ApprovalRequested {
        command: Some(command.into()),
        paths: paths.iter().map(|p| (*p).to_owned()).collect(),
        cwd: Some(cwd.to_str().unwrap().into()),
        ..ApprovalRequested::default()
    };
    let of = (SessionId::from_bits(1), Provider::Claude);
    Approval::of(&asked, of, None, (Source::Hook, Confidence::High), Timestamp::MIN)
}

#[test]
fn each_script_and_target_file_is_marked_once() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.sh"), "one").unwrap();
    let asked = approval(dir.path(), "bash ./a.sh 'a.sh'; ls >b.txt", &["new.txt"]);
    let before = marks(&asked);
    let names: Vec<_> = before.iter().map(|m| (m.path.strip_prefix(dir.path()).unwrap().to_owned(), m.size)).collect();
    assert_eq!(names, [("new.txt".into(), None), ("a.sh".into(), Some(3))], "each once, however it is named");
    assert_eq!(marks(&asked), before);
    std::fs::write(dir.path().join("a.sh"), "two").unwrap();
    assert_ne!(marks(&asked), before);
}

#[test]
fn non_regular_files_are_skipped_without_blocking() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    assert_eq!(marks(&approval(dir.path(), "cat fifo .", &[])), []);
    assert_eq!(marks(&approval(Path::new("relative"), "cat a", &["b"])), []);
}

#[test]
fn a_file_is_marked_however_the_command_writes_its_path() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("my dir")).unwrap();
    for (command, name) in [
        ("sh \"run all.sh\"", "run all.sh"),
        ("bash -c 'sh \"run all.sh\"'", "run all.sh"),
        ("sh a,b.sh", "a,b.sh"),
        ("sh k=v.sh", "k=v.sh"),
        ("sh g''.sh", "g.sh"),
        ("make -fx.mk", "x.mk"),
        ("frob @g.sh", "g.sh"),
        ("frob g.sh:main", "g.sh"),
        ("frob --with=g.sh,other", "g.sh"),
        ("cd \"my dir\" && sh x.sh", "my dir/x.sh"),
        ("env -C \"my dir\" sh x.sh", "my dir/x.sh"),
        ("make -C'my dir' -f x.sh", "my dir/x.sh"),
        ("cat <in.txt>out.txt", "in.txt"),
    ] {
        let file = dir.path().join(name);
        std::fs::write(&file, "one").unwrap();
        let marked = marks(&approval(dir.path(), command, &[]));
        assert!(marked.iter().any(|mark| mark.path == file), "{command}: {marked:?}");
        std::fs::remove_file(file).unwrap();
    }
}

#[test]
fn files_are_resolved_in_the_directory_the_command_changes_to() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
    let script = dir.path().join("a/b/x.sh");
    std::fs::write(&script, "one").unwrap();
    let commands = [
        "cd \"a/b\" && sh 'x.sh'",
        "sh -c 'cd a/b && sh x.sh'",
        "cd a/b && sh x.sh",
        "cd a && cd b; sh x.sh",
        "cd 'a' && (cd \"b\" && sh x.sh)",
        "env -C a/b sh x.sh",
        "env --chdir=a/b sh x.sh",
        "make -Ca/b -f x.sh",
    ];
    for command in commands {
        let asked = approval(dir.path(), command, &[]);
        let before = marks(&asked);
        assert!(before.iter().any(|mark| mark.path == script), "{command}: {before:?}");
        assert!(!has_more_files(&asked, &before), "{command}");
    }
    for unknown in ["cd && sh x.sh", "cd - && sh x.sh", "pushd a; sh x.sh", "cd a; cd b; cd c; cd d; sh x.sh"] {
        assert!(has_more_files(&approval(dir.path(), unknown, &[]), &[]), "{unknown}");
    }
}
