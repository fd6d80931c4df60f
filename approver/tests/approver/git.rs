//! The rewritten form of git in a repository whose configuration tries to run something everywhere.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use approver::{PermissionRequest, Policy, Preset, StubFacts, Verdict};

use super::request;

struct Trap {
    dir: tempfile::TempDir,
    /// Facts with a harmless configuration, so that only the rewritten form protects.
    facts: StubFacts,
}

fn git(dir: &Path, words: &[&str]) {
    let output = Command::new("git").args(words).current_dir(dir).envs(clean()).output().unwrap();
    assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn clean() -> [(&'static str, &'static str); 7] {
    [
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_AUTHOR_NAME", "a"),
        ("GIT_AUTHOR_EMAIL", "a@x.test"),
        ("GIT_COMMITTER_NAME", "a"),
        ("GIT_COMMITTER_EMAIL", "a@x.test"),
        ("HOME", "/nonexistent"),
    ]
}

impl Trap {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let work = root.join("w");
        let sub = root.join("sub");
        for path in [&work, &sub] {
            std::fs::create_dir(path).unwrap();
            git(path, &["-c", "init.defaultBranch=main", "init", "-q"]);
            std::fs::write(path.join("a.txt"), "one\n").unwrap();
            git(path, &["add", "."]);
            git(path, &["commit", "-qm", "first"]);
        }
        git(&work, &["-c", "protocol.file.allow=always", "submodule", "add", "-q", sub.to_str().unwrap(), "sub"]);
        std::fs::write(work.join(".gitattributes"), "*.txt diff=trap\n").unwrap();
        git(&work, &["add", "."]);
        git(&work, &["commit", "-qm", "second"]);
        git(&work, &["tag", "-a", "-m", "x", "v1"]);
        std::fs::write(work.join("a.txt"), "two\n").unwrap();
        git(&work, &["stash"]);
        git(&work, &["stash", "apply", "-q"]);
        std::fs::write(work.join("sub/a.txt"), "two\n").unwrap();

        let touch = |name: &str| format!("touch {}/pwned-{name}; cat", root.display());
        let hooks = work.join(".git/hooks");
        for name in ["post-index-change", "reference-transaction", "pre-commit", "fsmonitor-watchman"] {
            let hook = hooks.join(name);
            std::fs::write(&hook, format!("#!/bin/sh\n{}\n", touch(&format!("hook-{name}")))).unwrap();
            Command::new("chmod").arg("+x").arg(&hook).status().unwrap();
        }
        let signer = root.join("signer");
        std::fs::write(&signer, format!("#!/bin/sh\n{}\n", touch("gpg"))).unwrap();
        Command::new("chmod").arg("+x").arg(&signer).status().unwrap();
        for (key, value) in [
            ("core.fsmonitor", touch("fsmonitor")),
            ("core.pager", touch("pager")),
            ("pager.log", touch("pager")),
            ("core.editor", touch("editor")),
            ("core.sshCommand", touch("ssh")),
            ("diff.external", touch("external")),
            ("diff.trap.textconv", touch("textconv")),
            ("diff.trap.command", touch("command")),
            ("gpg.program", signer.display().to_string()),
            ("gpg.ssh.program", signer.display().to_string()),
            ("log.showSignature", "true".into()),
            ("format.pretty", "%G? %s".into()),
            ("diff.submodule", "diff".into()),
            ("diff.ignoreSubmodules", "none".into()),
            ("submodule.sub.ignore", "none".into()),
            ("submodule.recurse", "true".into()),
            ("status.submoduleSummary", "true".into()),
            ("interactive.diffFilter", touch("interactive")),
            ("alias.status", format!("!{}", touch("alias"))),
        ] {
            git(&work, &["config", key, &value]);
        }
        // The submodule has a separate configuration, with a filter that runs when its files are read.
        let sub = work.join("sub");
        std::fs::write(sub.join(".gitattributes"), "*.txt filter=trap diff=trap\n").unwrap();
        for (key, value) in [
            ("filter.trap.clean", touch("sub-filter")),
            ("core.fsmonitor", touch("sub-fsmonitor")),
            ("diff.external", touch("sub-external")),
            ("diff.trap.textconv", touch("sub-textconv")),
        ] {
            git(&sub, &["config", key, &value]);
        }
        let mut facts = StubFacts::usual(&["git", "env", "head"]);
        facts.files.insert(work.join(".git/config"), b"[core]\n\tfilemode = true\n".to_vec());
        facts.files.insert(work.join("a.txt"), b"two\n".to_vec());
        Self { dir, facts }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    fn asked(&self, command: &str) -> PermissionRequest {
        let work = self.root().join("w");
        PermissionRequest { cwd: work.clone(), workspace: work, ..request(command) }
    }

    /// Runs a line in an environment that resembles a terminal and names programs in many variables.
    fn run(&self, line: &str) -> String {
        let touch = |name: &str| format!("touch {}/pwned-env-{name}; cat", self.root().display());
        let output = Command::new("bash")
            .args(["-c", line])
            .current_dir(self.root().join("w"))
            .env("HOME", "/nonexistent")
            .env("GIT_PAGER", touch("pager"))
            .env("PAGER", touch("pager"))
            .env("GIT_PAGER_IN_USE", "1")
            .env("GIT_EXTERNAL_DIFF", touch("external"))
            .env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", "core.fsmonitor")
            .env("GIT_CONFIG_VALUE_0", touch("config-count"))
            .env("GIT_CONFIG_PARAMETERS", format!("'core.fsmonitor'='{}'", touch("parameters")))
            .env("GIT_TRACE", self.root().join("pwned-env-trace"))
            .env("GIT_TRACE2_EVENT", self.root().join("pwned-env-trace2"))
            .env("GIT_SSH_COMMAND", touch("ssh"))
            .env("GIT_EDITOR", touch("editor"))
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    }

    fn sprung(&self) -> Vec<String> {
        let mut all = Vec::new();
        for entry in std::fs::read_dir(self.root()).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if name.starts_with("pwned") {
                std::fs::remove_file(path).unwrap();
                all.push(name);
            }
        }
        all.sort();
        all
    }
}

const COMMANDS: &[&str] = &[
    "git status",
    "git status --short",
    "git status --porcelain",
    "git diff",
    "git diff --stat",
    "git diff HEAD",
    "git diff --cached",
    "git diff HEAD~1 HEAD",
    "git diff -- a.txt",
    "git diff --color-words",
    "git diff --raw",
    "git log",
    "git log -p",
    "git log --stat",
    "git log --oneline -5",
    "git log --graph --all -p",
    "git log -S two",
    "git log -G two -p",
    "git log -L 1,1:a.txt",
    "git log -g",
    "git show",
    "git show --stat",
    "git show HEAD:a.txt",
    "git show HEAD~1",
    "git show v1",
    "git branch -a",
    "git branch -vv",
    "git branch --contains=HEAD",
    "git tag --list",
    "git tag -l",
    "git rev-parse HEAD",
    "git rev-parse --show-toplevel",
    "git ls-files",
    "git ls-files -m",
    "git ls-files -o --exclude-standard",
    "git blame a.txt",
    "git blame -L 1,1 a.txt",
    "git describe --tags --always",
    "git shortlog -sn HEAD",
    "git remote -v",
    "git stash list",
    "git reflog",
    "git grep -n one",
    "git grep -n one HEAD",
    "git cat-file -p HEAD",
    "git cat-file -t HEAD",
    "git ls-tree -r HEAD",
    "git merge-base HEAD HEAD~1",
    "git rev-list --count HEAD",
    "git config --get user.name",
];

#[test]
fn rewritten_git_commands_run_no_program_configured_by_the_repository() {
    let trap = Trap::new();
    // Without the rewrite, the traps are triggered.
    trap.run("git status; git diff; git log -p; git blame a.txt");
    let sprung = trap.sprung();
    for name in ["pwned-env-parameters", "pwned-env-external", "pwned-textconv", "pwned-env-trace", "pwned-sub-filter"]
    {
        assert!(sprung.iter().any(|found| found == name), "{name} is not in {sprung:?}");
    }
    for command in COMMANDS {
        let decision = Policy::preset(Preset::ReadOnly).decide(&trap.asked(command), &trap.facts);
        assert_eq!(decision.verdict, Verdict::Allow, "{command}: {}", decision.reason);
        let output = trap.run(&decision.rewrite.unwrap());
        assert_eq!(trap.sprung(), Vec::<String>::new(), "{command}");
        assert!(
            !output.contains("fatal:") && !output.contains("error:") && !output.contains("usage:"),
            "{command}: {output}"
        );
    }
}

#[test]
fn git_status_is_allowed_in_a_new_or_cloned_repository() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    for (name, words) in [("new", vec!["init", "-q", "new"]), ("cloned", vec!["clone", "-q", "new", "cloned"])] {
        git(&root, &words);
        let mut facts = StubFacts::usual(&["git", "env"]);
        let config = root.join(name).join(".git/config");
        facts.files.insert(config.clone(), std::fs::read(&config).unwrap());
        let work = root.join(name);
        let asked = PermissionRequest { cwd: work.clone(), workspace: work, ..request("git status") };
        let decision = Policy::preset(Preset::ReadOnly).decide(&asked, &facts);
        assert_eq!(decision.verdict, Verdict::Allow, "{}", decision.reason);
    }
}

#[test]
fn git_config_that_may_run_a_program_needs_approval() {
    for (key, value) in [
        ("filter.trap.clean", "x"),
        ("include.path", "x"),
        ("core.worktree", "/"),
        ("diff.trap.textconv", "x"),
        ("alias.status", "!x"),
        ("hook.x.command", "y"),
    ] {
        let trap = Trap::new();
        let config = trap.root().join("w/.git/config");
        std::fs::write(&config, "").unwrap();
        git(&trap.root().join("w"), &["config", key, value]);
        let mut facts = trap.facts.clone();
        facts.files.insert(config.clone(), std::fs::read(&config).unwrap());
        let decision = Policy::preset(Preset::ReadOnly).decide(&trap.asked("git status"), &facts);
        assert_eq!(decision.verdict, Verdict::Ask, "{key}");
        assert!(decision.reason.contains("may run a program"), "{key}: {}", decision.reason);
    }
}

#[test]
fn rewritten_git_status_rejects_a_directory_posing_as_a_bare_repository() {
    let trap = Trap::new();
    let work = trap.root().join("w");
    let posing = work.join("posing");
    std::fs::create_dir(&posing).unwrap();
    git(&posing, &["init", "-q", "--bare", "."]);
    git(&posing, &["config", "core.fsmonitor", &format!("touch {}/pwned-bare; cat", trap.root().display())]);
    git(&posing, &["config", "core.bare", "false"]);
    git(&posing, &["config", "core.worktree", "."]);
    let asked = PermissionRequest { cwd: posing.clone(), ..trap.asked("git status") };
    let decision = Policy::preset(Preset::ReadOnly).decide(&asked, &trap.facts);
    let safe = decision.rewrite.unwrap();
    trap.run("cd posing && env -u GIT_CONFIG_COUNT -u GIT_CONFIG_PARAMETERS git status");
    assert!(trap.sprung().contains(&"pwned-bare".to_owned()), "the trap does not spring");
    let output = trap.run(&format!("cd posing && {safe}"));
    assert_eq!(trap.sprung(), Vec::<String>::new());
    assert!(output.contains("safe.bareRepository"), "{output}");
}

/// A repository with one tracked secret file, and facts with its real index.
fn with_tracked(names: &[&str], version: &str) -> (tempfile::TempDir, StubFacts) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    git(&root, &["-c", "init.defaultBranch=main", "init", "-q"]);
    for name in names {
        std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        std::fs::write(root.join(name), "KEY=x\n").unwrap();
    }
    git(&root, &["add", "-f", "."]);
    git(&root, &["update-index", "--index-version", version]);
    git(&root, &["commit", "-qm", "first"]);
    let mut facts = StubFacts::usual(&["git", "env"]);
    for name in [".git/config", ".git/index"].iter().chain(names) {
        facts.files.insert(root.join(name), std::fs::read(root.join(name)).unwrap());
    }
    (dir, facts)
}

#[test]
fn git_commands_that_could_print_a_tracked_secret_need_approval() {
    let verdict = |command: &str, dir: &tempfile::TempDir, facts: &StubFacts| {
        let root = dir.path().canonicalize().unwrap();
        let asked = PermissionRequest { cwd: root.clone(), workspace: root, ..request(command) };
        Policy::preset(Preset::ReadOnly).decide(&asked, facts)
    };
    let prints = [
        "git diff",
        "git diff HEAD",
        "git diff --cached",
        "git diff HEAD -- .",
        "git diff HEAD -- conf",
        "git log -p",
        "git log -U3",
        "git show",
        "git show HEAD",
        "git show HEAD --stat -p",
        "git log -p -S KEY",
        "git grep KEY HEAD",
        "git cat-file -p HEAD",
    ];
    let bound = [
        "git log",
        "git log --stat",
        "git status",
        "git status -u",
        "git status -uno",
        "git diff --stat",
        "git show HEAD --stat",
        "git log -p -1 -- README.md",
        "git diff HEAD -- src README.md",
        "git diff README.md",
        "git show HEAD:README.md",
        "git show HEAD:./README.md",
        "git blame README.md",
        "git grep KEY -- src",
        "git ls-files",
    ];
    let all = ["README.md", "src/a.rs", "conf/.env.prod"];
    for version in ["2", "4"] {
        let (dir, facts) = with_tracked(&all, version);
        for command in prints {
            assert_eq!(verdict(command, &dir, &facts).verdict, Verdict::Ask, "{command}, version {version}");
        }
        for command in bound {
            let decision = verdict(command, &dir, &facts);
            assert_eq!(decision.verdict, Verdict::Allow, "{command}, version {version}: {}", decision.reason);
        }
    }
    let (dir, facts) = with_tracked(&all[..2], "2");
    for command in prints.iter().chain(&bound).filter(|command| !command.ends_with("conf")) {
        let decision = verdict(command, &dir, &facts);
        assert_eq!(decision.verdict, Verdict::Allow, "{command}: {}", decision.reason);
    }
    // An untracked file may be in a commit; the current files do not show it.
    let mut facts = facts;
    facts.files.insert(dir.path().canonicalize().unwrap().join(".env"), b"KEY=x".to_vec());
    let history = ["git diff HEAD", "git diff --cached", "git log -p", "git show", "git grep KEY HEAD"];
    for command in history {
        let decision = verdict(command, &dir, &facts);
        assert_eq!(decision.verdict, Verdict::Allow, "{command}: {}", decision.reason);
        assert!(decision.rewrite.unwrap().contains(":(top,exclude,icase,glob)**/.env'"), "{command}");
    }
    // A name that the rewritten command does not exclude.
    let wire = dir.path().canonicalize().unwrap().join("wg0.conf");
    let there =
        StubFacts { files: [(wire, b"x".to_vec())].into_iter().chain(facts.files.clone()).collect(), ..facts.clone() };
    for command in history {
        assert_eq!(verdict(command, &dir, &there).verdict, Verdict::Ask, "{command}");
    }
    for command in ["git diff", "git diff README.md", "git diff HEAD -- src", "git log -3"] {
        assert_eq!(verdict(command, &dir, &facts).verdict, Verdict::Allow, "{command}");
    }
}

#[test]
fn git_paths_that_may_match_a_secret_need_approval() {
    let (dir, facts) = with_tracked(&["README.md", "src/a.rs"], "2");
    let root = dir.path().canonicalize().unwrap();
    for (command, verdict) in [
        ("git log -p -- '*nv'", Verdict::Ask),
        ("git log -p -- '.e*'", Verdict::Ask),
        ("git show HEAD -- ':(glob)x'", Verdict::Ask),
        ("git diff -- ':!x'", Verdict::Ask),
        ("git diff -- ':/'", Verdict::Ask),
        ("git diff -- '[.]env'", Verdict::Ask),
        ("git diff -- 'a@{[.]env'", Verdict::Ask),
        ("git grep KEY -- '*'", Verdict::Ask),
        ("git log -L 1,5:.env", Verdict::Ask),
        ("git log -L :f:.env", Verdict::Ask),
        ("git log -L1,5:conf/.env", Verdict::Ask),
        ("git log -L :a:b/.env", Verdict::Ask),
        ("git blame -L 1,2 .env", Verdict::Ask),
        ("git log -L 1,1:README.md", Verdict::Allow),
        ("git blame -L 1,2 README.md", Verdict::Allow),
        ("git grep KEY -- '*.rs'", Verdict::Allow),
        ("git log --oneline -- '*.lock'", Verdict::Allow),
    ] {
        let asked = PermissionRequest { cwd: root.clone(), workspace: root.clone(), ..request(command) };
        let decision = Policy::preset(Preset::ReadOnly).decide(&asked, &facts);
        assert_eq!(decision.verdict, verdict, "{command}: {}", decision.reason);
    }
}

#[test]
fn rewritten_git_commands_do_not_write_the_index() {
    let (dir, facts) = with_tracked(&["README.md"], "2");
    let root = dir.path().canonicalize().unwrap();
    // Only the time of the file changes, which git would record in the index.
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    std::fs::File::options().write(true).open(root.join("README.md")).unwrap().set_modified(old).unwrap();
    let before = std::fs::read(root.join(".git/index")).unwrap();
    for command in ["git diff", "git diff HEAD", "git status", "git diff -- README.md"] {
        let asked = PermissionRequest { cwd: root.clone(), workspace: root.clone(), ..request(command) };
        let safe = Policy::preset(Preset::ReadOnly).decide(&asked, &facts).rewrite.unwrap();
        let done = Command::new("bash").args(["-c", &safe]).current_dir(&root).envs(clean()).status().unwrap();
        assert!(done.success(), "{command}");
        assert!(std::fs::read(root.join(".git/index")).unwrap() == before, "{command}");
    }
}
