//! Tests on real repositories that no allowed command line prints a planted secret. Every allowed line is run.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use approver::{Decision, PermissionRequest, Policy, Preset, RequestKind, Shell, Verdict};
use events::Provider;
use serde::Deserialize;

use super::{OnDisk, workspace_of};

#[derive(Deserialize)]
struct Listed {
    id: String,
    repo: String,
    cmd: String,
}

struct Repositories {
    root: PathBuf,
    facts: OnDisk,
    _dir: tempfile::TempDir,
}

impl Repositories {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/approver/disclosure.sh");
        let made = clean(Command::new("bash").arg(script).arg(&root), &root).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let path = std::env::split_paths("/usr/local/bin:/usr/bin:/bin").collect();
        let facts = OnDisk::new(path, [], Some(root.join("home")));
        Self { root, facts, _dir: dir }
    }

    /// The hash of an object, under which git would print it.
    fn object(&self, repo: &str, name: &str) -> String {
        let mut git = Command::new("git");
        let words = ["-C", self.root.join(repo).to_str().unwrap(), "rev-parse", name].map(str::to_owned);
        let found = clean(git.args(words), &self.root).output().unwrap();
        assert!(found.status.success(), "{repo} {name}");
        String::from_utf8(found.stdout).unwrap().trim().to_owned()
    }

    fn decide(&self, repo: &str, command: &str) -> Decision {
        let cwd = self.root.join(repo);
        let request = PermissionRequest {
            agent: Provider::Unknown,
            kind: RequestKind::Command,
            tool: None,
            command: Some(command.to_owned()),
            workspace: workspace_of(&cwd),
            cwd,
            cwd_is_certain: true,
            paths: Vec::new(),
            url: None,
            labels: BTreeMap::new(),
            glob: None,
            takes_rewrite: true,
            shell: Shell::Unknown,
        };
        Policy::preset(Preset::WorkspaceEdits).decide(&request, &self.facts)
    }

    /// The output of a line.
    fn run(&self, repo: &str, line: &str) -> String {
        let mut bash = Command::new("bash");
        let ran = clean(bash.args(["-c", line]), &self.root).current_dir(self.root.join(repo)).output().unwrap();
        String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned()
    }
}

fn clean<'a>(command: &'a mut Command, root: &Path) -> &'a mut Command {
    command.stdin(Stdio::null()).env_clear().envs([
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("HOME", root.join("home").to_str().unwrap()),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("LANG", "C.UTF-8"),
    ])
}

/// The planted words in a text that are not in the line itself.
fn planted<'a>(text: &'a str, line: &str) -> Vec<&'a str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("PLANTED") && !line.contains(word)).collect()
}

#[test]
fn no_allowed_command_prints_a_planted_secret() {
    let made = Repositories::new();
    let objects = [
        ("@ENV@", made.object("trap", "HEAD:.env")),
        ("@ENVS@", made.object("trap", "HEAD:.env")[..8].to_owned()),
        ("@NPMRC@", made.object("trap", "HEAD:.npmrc")),
        ("@README@", made.object("trap", "HEAD:README.md")),
        ("@TAWS@", made.object("trap", "HEAD:.aws")),
        ("@TKUBE@", made.object("trap", "HEAD:.kube")),
        ("@TSECRETS@", made.object("trap", "HEAD:secrets")),
        ("@BLOB@", made.object("lay", "HEAD:.vault_pass")),
        ("@SHORT@", made.object("lay", "HEAD:.vault_pass")[..8].to_owned()),
        ("@TREE@", made.object("lay", "HEAD:config")),
        ("@OLDBLOB@", made.object("hist", "HEAD~3:.env")),
        ("@OLDTREE@", made.object("hist", "HEAD~3:secrets")),
        ("@OLDROOT@", made.object("hist", "HEAD~3^{tree}")),
        ("@ROOT@", made.root.to_str().unwrap().to_owned()),
    ];
    let mut leaks = Vec::new();
    for line in include_str!("../../../fixtures/approver/disclosure.jsonl").lines() {
        let Listed { id, repo, cmd } = serde_json::from_str(line).unwrap();
        let cmd = objects.iter().fold(cmd, |cmd, (name, hash)| cmd.replace(name, hash));
        for text in [cmd.clone(), shlex::try_join(["bash", "-lc", &cmd]).unwrap()] {
            let decision = made.decide(&repo, &text);
            if decision.verdict != Verdict::Allow {
                continue;
            }
            let shown = made.run(&repo, decision.rewrite.as_deref().unwrap_or(&text));
            let shown = planted(&shown, &text);
            if !shown.is_empty() {
                leaks.push(format!("{id} {repo}: {text}: {shown:?}"));
            }
        }
    }
    assert!(leaks.is_empty(), "{} of them:\n{}", leaks.len(), leaks.join("\n"));
}

#[test]
fn a_search_is_allowed_unless_it_reaches_a_secret() {
    let made = Repositories::new();
    for command in [
        "rg x",
        "rg x src",
        "rg -t rust x",
        "rg -g '*.rs' x",
        "rg -uu x src",
        "rg --files",
        "grep -r --include='*.rs' x .",
        "grep -rn x src",
        "git grep x",
        "git log -p",
        "git show HEAD",
        "git diff",
        "ls -la certs",
    ] {
        let decision = made.decide("ign", command);
        assert_eq!(decision.verdict, Verdict::Allow, "{command}: {}", decision.reason);
    }
    for command in ["rg -uu x", "rg --hidden x", "rg -u x", "rg x certs", "grep -r x .", "cat certs/a.pem"] {
        assert_eq!(made.decide("ign", command).verdict, Verdict::Ask, "{command}");
    }
}

#[test]
fn a_secret_is_found_among_32000_files() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    for part in 0..40 {
        let dir = root.join(format!("d{part}"));
        std::fs::create_dir(&dir).unwrap();
        for file in 0..800 {
            std::fs::write(dir.join(format!("f{file}.rs")), "").unwrap();
        }
    }
    let facts = OnDisk::new(Vec::new(), [], None);
    let search = |dir: &Path| approver::SearchScope {
        dir: dir.to_owned(),
        cwd: dir.to_owned(),
        reader: approver::SearchReader::Everything(approver::GrepFilter::default()),
        named: None,
    };
    assert_eq!(approver::Facts::reached(&facts, &search(&root)), approver::SecretsBelow::Nothing);
    std::fs::write(root.join("d39/.env"), "KEY=x").unwrap();
    let found = approver::SecretsBelow::Secrets(vec![root.join("d39/.env")]);
    assert_eq!(approver::Facts::reached(&facts, &search(&root)), found);
}

#[test]
fn editing_executables_hard_links_or_symlinks_needs_approval() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let made = Repositories::new();
    let work = made.root.join("ign");
    std::fs::write(work.join("src/tool"), "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(work.join("src/tool"), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(made.root.join("outside.rs"), "").unwrap();
    std::fs::hard_link(made.root.join("outside.rs"), work.join("src/second.rs")).unwrap();
    symlink("a.rs", work.join("src/link.rs")).unwrap();
    symlink("src", work.join("through")).unwrap();
    let edit = |path: &str| {
        let request = PermissionRequest {
            agent: Provider::Unknown,
            kind: RequestKind::Edit,
            tool: None,
            command: None,
            workspace: work.clone(),
            cwd: work.clone(),
            cwd_is_certain: true,
            paths: vec![path.into()],
            url: None,
            labels: BTreeMap::new(),
            glob: None,
            takes_rewrite: true,
            shell: Shell::Unknown,
        };
        Policy::preset(Preset::WorkspaceEdits).decide(&request, &made.facts).verdict
    };
    for path in ["src/a.rs", "src/new.rs", "docs/new.md", "./src/a.rs"] {
        assert_eq!(edit(path), Verdict::Allow, "{path}");
    }
    assert_eq!(edit(work.join("src/a.rs").to_str().unwrap()), Verdict::Allow);
    for path in ["src/tool", "src/second.rs", "src/link.rs", "through/a.rs", "through/new.rs", "src", "Makefile"] {
        assert_eq!(edit(path), Verdict::Ask, "{path}");
    }
}
