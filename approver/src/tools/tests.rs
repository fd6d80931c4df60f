use super::table::{GIT, TABLES, TOOLS, by_name};

#[test]
fn the_tables_exclude_unsafe_programs_and_git_subcommands() {
    assert!(TOOLS.len() > 60, "{}", TOOLS.len());
    assert!(GIT.contains_key("status") && TOOLS.contains_key("ls"));
    for name in [
        "bash", "sh", "env", "xargs", "make", "tee", "curl", "perl", "cp", "mv", "rm", "less", "man", "vi", "ssh",
        "sudo", "timeout",
    ] {
        assert!(!TOOLS.contains_key(name), "{name}");
    }
    for name in ["push", "commit", "checkout", "fetch", "clone", "ls-remote", "archive", "difftool", "submodule"] {
        assert!(!GIT.contains_key(name), "{name}");
    }
}

#[test]
fn no_name_is_in_two_tables() {
    let mut seen = std::collections::BTreeSet::new();
    for (file, text) in TABLES {
        for (name, _) in by_name(file, text) {
            assert!(seen.insert(name.clone()), "{name}");
        }
    }
}
