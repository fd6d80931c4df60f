use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use events::Provider;

use super::*;
use crate::{Kind, Shell, Stated};

fn request(command: &str) -> Request {
    Request {
        agent: Provider::Claude,
        kind: Kind::Command,
        tool: Some("Bash".into()),
        command: Some(command.into()),
        cwd: "/home/dev/w".into(),
        cwd_is_certain: true,
        workspace: "/home/dev/w".into(),
        paths: Vec::new(),
        url: None,
        labels: BTreeMap::new(),
        takes_rewrite: true,
        shell: Shell::Bash,
    }
}

fn facts() -> Stated {
    Stated::usual(&["ls", "cat", "grep", "rg", "git", "env", "cargo", "make", "rm", "timeout", "bash", "wc", "find"])
        .with_file("/home/dev/w/.git/config", "[core]\n\tbare = true\n")
        .with_link("/home/dev/w/out", "/etc")
}

fn file(kind: Kind, path: &str) -> Request {
    Request { kind, command: None, paths: vec![path.into()], ..request("") }
}

fn fetch(url: &str) -> Request {
    Request { kind: Kind::Fetch, command: None, url: Some(url.into()), ..request("") }
}

fn policy(rules: &str) -> Policy {
    Policy::parse(&format!("version = 1\n{rules}"), Path::new("policy.toml")).unwrap_or_else(|e| panic!("{e}"))
}

#[track_caller]
fn check(policy: &Policy, request: &Request, verdict: Verdict, rule: &str) {
    let decision = policy.decide(request, &facts());
    assert_eq!((decision.verdict, decision.rule.as_str()), (verdict, rule), "{request:?}: {}", decision.reason);
}

#[test]
fn presets() {
    let (none, reads, edits) = (
        Policy::preset(Preset::AskEverything),
        Policy::preset(Preset::ReadOnly),
        Policy::preset(Preset::WorkspaceEdits),
    );
    check(&none, &request("ls"), Verdict::Ask, "default");
    check(&reads, &request("ls | wc -l"), Verdict::Allow, "read-only/tools");
    check(&reads, &request("ls | make"), Verdict::Ask, "default");
    check(&reads, &file(Kind::Read, "src/main.rs"), Verdict::Allow, "read-only/files");
    check(&reads, &file(Kind::Read, ".env"), Verdict::Ask, "default");
    check(&reads, &file(Kind::Read, "out/passwd"), Verdict::Ask, "default");
    check(&reads, &file(Kind::Edit, "src/main.rs"), Verdict::Ask, "default");
    check(&edits, &file(Kind::Edit, "src/main.rs"), Verdict::Allow, "workspace-edits/edits");
    check(&edits, &file(Kind::Write, "/home/dev/w/new.txt"), Verdict::Allow, "workspace-edits/edits");
    check(&edits, &request("ls"), Verdict::Allow, "read-only/tools");
    for path in [
        "/etc/hosts",
        "../x",
        "out/x",
        ".git/hooks/pre-commit",
        "AGENTS.md",
        ".claude/settings.json",
        ".env",
        "a/../.git/config",
        ".",
    ] {
        check(&edits, &file(Kind::Write, path), Verdict::Ask, "default");
    }
    check(&edits, &Request { paths: vec![], ..file(Kind::Write, "") }, Verdict::Ask, "default");
    check(&edits, &fetch("https://docs.rs/"), Verdict::Ask, "default");
}

#[test]
fn what_runs_later_is_not_edited() {
    let edits = Policy::preset(Preset::WorkspaceEdits);
    for path in [
        "Makefile",
        "build.rs",
        "crates/x/build.rs",
        "CMakeLists.txt",
        "app/build.gradle.kts",
        "gradlew",
        "setup.py",
        "pyproject.toml",
        "Cargo.toml",
        "Cargo.lock",
        ".cargo/config.toml",
        "justfile",
        "Taskfile.yml",
        "package.json",
        "web/package.json",
        "Rakefile",
        "noxfile.py",
        "tox.ini",
        "tests/conftest.py",
        ".config/nextest.toml",
        "jest.config.ts",
        "vitest.config.mts",
        "playwright.config.js",
        "pytest.ini",
        "package-lock.json",
        "requirements-dev.txt",
        "go.mod",
        ".github/workflows/ci.yml",
        ".gitlab-ci.yml",
        ".husky/pre-commit",
        "lefthook.yml",
        ".pre-commit-config.yaml",
        ".vscode/tasks.json",
        ".idea/runConfigurations/x.xml",
        ".claude/settings.json",
        ".mcp.json",
        "CLAUDE.md",
        "AGENTS.md",
        ".envrc",
        "node_modules/x/index.js",
        "vendor/bin/phpunit",
        ".venv/bin/python",
        "scripts/deploy.sh",
        "bin/run",
        "Dockerfile",
        "docker-compose.yml",
        "MAKEFILE",
        "a/../Makefile",
        ".eslintrc.cjs",
        "vite.config.ts",
        "target/debug/build/x",
        "pom.xml",
        "flake.nix",
        "deno.json",
        "Gemfile",
        "composer.json",
        "mix.exs",
        "WORKSPACE",
        "defs.bzl",
    ] {
        check(&edits, &file(Kind::Edit, path), Verdict::Ask, "default");
        check(&edits, &file(Kind::Write, path), Verdict::Ask, "default");
    }
    for path in [
        "src/main.rs",
        "src/bin/tool.rs",
        "docs/a.md",
        "app/models/user.rb",
        "web/src/App.tsx",
        "tests/test_a.py",
        "data/x.csv",
        "README.md",
        "notes.txt",
        "config/labels.json",
    ] {
        check(&edits, &file(Kind::Edit, path), Verdict::Allow, "workspace-edits/edits");
    }
    let own =
        policy("[[rule]]\nname = \"manifest\"\ndecision = \"allow\"\nkind = \"edit\"\npaths = [\"Cargo.toml\"]\n");
    check(&own, &file(Kind::Edit, "Cargo.toml"), Verdict::Allow, "manifest");
}

#[test]
fn secrets_are_known_by_many_names() {
    let reads = Policy::preset(Preset::ReadOnly);
    for path in [
        "secrets/x",
        ".mcp.json",
        "k8s/secret.yaml",
        "client_secret.json",
        "gcp-key.json",
        ".vault_pass",
        ".dev.vars",
        "env.production",
        "wp-config.php",
        "config/master.key",
        "config/credentials.yml.enc",
        "terraform.tfvars",
        "x.tfstate.backup",
        "kubeconfig",
        ".docker/config.json",
        "id_ed25519",
        "x.jks",
        "x.p12",
        "x.kdbx",
        ".zsh_history",
        ".mozilla/firefox/x/logins.json",
        ".codex/auth.json",
        "app/local_settings.py",
        ".netrc",
        ".pgpass",
        ".my.cnf",
        ".htpasswd",
        "wg0.conf",
        "x.ovpn",
        "my-service-account.json",
        "api_key.txt",
        "password.txt",
        ".npmrc",
        ".pypirc",
        ".m2/settings.xml",
        "firebase-adminsdk-x.json",
        "token.json",
        "cookies.txt",
        "storage_state.json",
        ".git-credentials",
        "rclone.conf",
        ".env~",
        "x.pem.bak",
        "SECRETS.YML",
        "secrets.auto.tfvars.json",
        "prod.secret.exs",
        ".streamlit/secrets.toml",
    ] {
        let asked = file(Kind::Read, path);
        assert_eq!(reads.decide(&asked, &facts()).verdict, Verdict::Ask, "{path}");
    }
    for path in [
        "src/secret.rs",
        "src/token.ts",
        "docs/secrets.md",
        "src/credentials.go",
        "src/password_field.tsx",
        "keyboard.json",
        "config.json",
        "src/env.rs",
        "packages/secret-store/src/index.ts",
    ] {
        let asked = file(Kind::Read, path);
        assert_eq!(reads.decide(&asked, &facts()).verdict, Verdict::Allow, "{path}");
    }
}

#[test]
fn the_first_rule_that_matches_counts_and_the_preset_is_below() {
    let policy = policy(
        "preset = \"read-only\"\n[[rule]]\nname = \"no ls\"\ndecision = \"deny\"\ncommand = [\"ls\"]\n[[rule]]\nname = \"tests\"\ndecision = \"allow\"\ncommand = [\"cargo\", \"test\", \"...\"]\n",
    );
    check(&policy, &request("ls"), Verdict::Deny, "no ls");
    check(&policy, &request("cat x"), Verdict::Allow, "read-only/tools");
    check(&policy, &request("cargo test --workspace -p x"), Verdict::Allow, "tests");
    check(&policy, &request("cargo test 'a b'"), Verdict::Ask, "default");
    check(&policy, &request("cargo testx"), Verdict::Ask, "default");
    check(&policy, &request("cat x && cargo test && ls"), Verdict::Deny, "no ls");
    check(&policy, &request("cat x && cargo build && cargo test"), Verdict::Ask, "default");
    check(&policy, &request("cargo test $(x)"), Verdict::Ask, "default");
    check(&policy, &request("./cargo test"), Verdict::Ask, "default");
    check(&policy, &request("ls $(x)"), Verdict::Deny, "no ls");
}

#[test]
fn what_denies_is_found_however_it_is_written() {
    let policy = policy(
        "[[rule]]\nname = \"rm\"\ndecision = \"deny\"\ncommand = [\"rm\", \"...\"]\n[[rule]]\nname = \"push\"\ndecision = \"deny\"\ncommand = [\"git\", \"push\"]\n",
    );
    for text in [
        "rm x",
        "/bin/rm x",
        "r\\m x",
        "'rm' x",
        "r''m x",
        "timeout 5 rm x",
        "bash -c 'rm x'",
        "ls; rm x",
        "ls $(rm x)",
        "ls\nrm x",
        "if true; then rm x; fi",
        "X=1 rm x",
        "bash -c \"r\\m $x\"",
        "git -C x push",
        "git push --force",
        "RM x",
    ] {
        assert_eq!(policy.decide(&request(text), &facts()).verdict, Verdict::Deny, "{text}");
    }
    for text in ["ls rm", "git log push-x", "git status", "lsrm"] {
        assert_eq!(policy.decide(&request(text), &facts()).verdict, Verdict::Ask, "{text}");
    }
}

#[test]
fn addresses() {
    let policy = policy(
        "[[rule]]\nname = \"docs\"\ndecision = \"allow\"\ndomain = \"docs.rs\"\n[[rule]]\nname = \"py\"\ndecision = \"allow\"\ndomain = \"*.python.org\"\n[[rule]]\nname = \"evil\"\ndecision = \"deny\"\ndomain = \"evil.test\"\n",
    );
    check(&policy, &fetch("https://docs.rs/x"), Verdict::Allow, "docs");
    check(&policy, &fetch("https://docs.python.org/3/"), Verdict::Allow, "py");
    for url in [
        "http://docs.rs/",
        "https://docs.rs:8443/",
        "https://x@docs.rs/",
        "https://docs.rs.other.test/",
        "https://python.org.other.test/",
        "https://127.0.0.1/",
        "https://xdocs.rs/",
        "https://python.org/",
        "https://docs.rs\\@other.test/",
        "https://other.test/docs.rs",
        "docs.rs",
        "https://docs.rs./",
        "https://dоcs.rs/",
    ] {
        check(&policy, &fetch(url), Verdict::Ask, "default");
    }
    for url in ["https://evil.test/", "http://a:b@EVIL.test:1/", "https://docs.rs/?x=evil.test"] {
        let verdict = policy.decide(&fetch(url), &facts()).verdict;
        assert!(verdict == Verdict::Deny || url.contains("docs.rs"), "{url}");
    }
    check(&policy, &request("wget https://evil.test/x"), Verdict::Deny, "evil");
}

#[test]
fn conditions() {
    let policy = policy(
        "[[rule]]\nname = \"codex\"\ndecision = \"allow\"\ncommand = [\"make\", \"*\"]\nagent = \"codex\"\n[[rule]]\nname = \"lab\"\ndecision = \"allow\"\nkind = \"mcp\"\ntool = \"mcp__github__get_*\"\nlabels = { team = \"a\" }\n[[rule]]\nname = \"docs\"\ndecision = \"allow\"\nkind = [\"edit\", \"write\"]\npaths = [\"docs/**\"]\n",
    );
    check(&policy, &request("make x"), Verdict::Ask, "default");
    check(&policy, &Request { agent: Provider::Codex, ..request("make x") }, Verdict::Allow, "codex");
    check(&policy, &Request { agent: Provider::Codex, ..request("make -f") }, Verdict::Ask, "default");
    let mcp = Request { kind: Kind::Mcp, tool: Some("mcp__github__get_issue".into()), ..request("") };
    check(&policy, &mcp, Verdict::Ask, "default");
    check(&policy, &Request { labels: [("team".into(), "a".into())].into(), ..mcp }, Verdict::Allow, "lab");
    check(&policy, &file(Kind::Edit, "docs/a/b.md"), Verdict::Allow, "docs");
    check(&policy, &file(Kind::Edit, "docs/../src/x"), Verdict::Ask, "default");
    check(&policy, &file(Kind::Edit, "docs/AGENTS.md"), Verdict::Ask, "default");
}

#[test]
fn a_repository_can_only_be_stricter() {
    let add = |rules: &str| {
        Policy::preset(Preset::ReadOnly)
            .with_repository(&format!("version = 1\n{rules}"), Path::new(".capture/policy.toml"))
    };
    let policy = add("[[rule]]\nname = \"x\"\ndecision = \"ask\"\ncommand = [\"ls\"]\n").unwrap();
    check(&policy, &request("ls"), Verdict::Ask, "repository/x");
    check(&policy, &request("cat x"), Verdict::Allow, "read-only/tools");
    let error = add("[[rule]]\nname = \"x\"\ndecision = \"allow\"\ncommand = [\"ls\"]\n").unwrap_err();
    assert!(error.message.contains("only deny or ask") && error.line == 2, "{error}");
    assert!(add("preset = \"read-only\"\n").is_err());
    let own = "[[rule]]\nname = \"no\"\ndecision = \"deny\"\ncommand = [\"ls\"]\n";
    let both = self::policy(own)
        .with_repository(
            "version = 1\n[[rule]]\nname = \"x\"\ndecision = \"ask\"\ncommand = [\"ls\"]\n",
            Path::new("p"),
        )
        .unwrap();
    check(&both, &request("ls"), Verdict::Deny, "no");
}

#[test]
fn errors_name_the_place() {
    for (text, line, column, says) in [
        ("version = 1\nwhatever = 2\n", 2, 1, "whatever"),
        ("version = 2\n", 1, 11, "version 1"),
        ("version = 1\n[[rule]]\nname = \"a\"\ndecision = \"maybe\"\n", 4, 12, "maybe"),
        ("version = 1\n\n[[rule]]\nname = \"a\"\ndecision = \"allow\"\n", 3, 1, "too much"),
        ("version = 1\n[[rule]]\nname = \"a\"\ndecision = \"allow\"\ncommand = [\"*\"]\n", 2, 1, "program"),
        (
            "version = 1\n[[rule]]\nname = \"a\"\ndecision = \"allow\"\nkind = \"read\"\ncommand = [\"ls\"]\n",
            2,
            1,
            "does not fit",
        ),
        (
            "version = 1\n[[rule]]\nname = \"a\"\ndecision = \"deny\"\nknown = \"read\"\n",
            2,
            1,
            "only for rules that allow",
        ),
        ("version = 1\n[[rule]]\nname = \"a\"\ndecision = \"allow\"\ndomain = \"https://x.y\"\n", 2, 1, "host"),
        ("version = 1\npreset = \"no\"\n", 2, 10, "no preset"),
    ] {
        let error = Policy::parse(text, Path::new("p.toml")).expect_err(text);
        assert!(error.message.contains(says), "{error}");
        assert_eq!((error.line, error.column), (line, column), "{error}");
    }
}

#[test]
fn always_means_just_this() {
    for request in [
        request("make 'a b' '--x=[1]'"),
        request("cargo test && make x"),
        request("bash -lc 'make x'"),
        file(Kind::Edit, "src/[a].rs"),
        file(Kind::Read, "a b"),
        fetch("https://docs.rs/x"),
        Request { kind: Kind::Mcp, tool: Some("mcp__a__[b]".into()), ..request("") },
    ] {
        let text = rule_for(&request).unwrap_or_else(|| panic!("{request:?}"));
        let policy = policy(&text);
        assert_eq!(policy.decide(&request, &facts()).verdict, Verdict::Allow, "{text}");
        let other = Request { cwd: "/home/dev/w/src".into(), ..request.clone() };
        assert_eq!(policy.decide(&other, &facts()).verdict, Verdict::Ask, "{text}");
        assert_eq!(
            policy.decide(&Request { agent: Provider::Gemini, ..request }, &facts()).verdict,
            Verdict::Ask,
            "{text}"
        );
    }
    let policy = policy(&rule_for(&request("make a")).unwrap());
    for text in ["make", "make b", "make a b", "make a; ls", "make a $x", "make 'a b'"] {
        assert_eq!(policy.decide(&request(text), &facts()).verdict, Verdict::Ask, "{text}");
    }
    for text in ["make $x", "make '*'", "make ...", "cd x && make", ""] {
        assert_eq!(rule_for(&request(text)), None, "{text}");
    }
    assert_eq!(rule_for(&fetch("http://docs.rs/")), None);
}

#[test]
fn git_needs_its_safe_form() {
    let policy = Policy::preset(Preset::ReadOnly);
    let facts = facts();
    let facts = Stated {
        files: [(PathBuf::from("/home/dev/w/.git/config"), b"[core]\n\tfilemode = true\n".to_vec())].into(),
        ..facts
    }
    .with_file("/home/dev/w/a b", "");
    let decision = policy.decide(&request("git diff 'a b' | wc -l"), &facts);
    assert_eq!(decision.verdict, Verdict::Allow, "{}", decision.reason);
    let rewrite = decision.rewrite.unwrap();
    assert!(
        rewrite.starts_with("env -u ")
            && rewrite.ends_with("'a b' | wc -l")
            && rewrite.contains(" diff --no-ext-diff "),
        "{rewrite}"
    );
    let without = Request { takes_rewrite: false, ..request("git diff") };
    assert_eq!(policy.decide(&without, &facts).verdict, Verdict::Ask);
    assert_eq!(policy.decide(&request("git diff"), &self::facts()).verdict, Verdict::Ask, "core.bare is not harmless");
    let wrapped = policy.decide(&request("bash -lc 'git log -5'"), &facts).rewrite.unwrap();
    assert!(wrapped.starts_with("bash -lc '") || wrapped.starts_with("bash -lc \""), "{wrapped}");
}

#[test]
fn git_goes_only_where_its_repository_is() {
    let reads = Policy::preset(Preset::ReadOnly);
    let facts = Stated { files: BTreeMap::new(), ..facts() }
        .with_file("/home/dev/w/.git/config", "")
        .with_file("/home/dev/w/src/a.rs", "")
        .with_file("/home/dev/w/other/.git/config", "");
    for text in
        ["cd src && git status", "git -C src status", "git --no-pager log", "cd /home/dev/w && git log --oneline"]
    {
        let decision = reads.decide(&request(text), &facts);
        assert_eq!(decision.verdict, Verdict::Allow, "{text}: {}", decision.reason);
    }
    for text in [
        "cd other && git status",
        "git -C other status",
        "cd missing && git status",
        "git -C missing status",
        "git -C .. status",
        "git -C /etc status",
        "git -C src -C . status",
        "git -C '' status",
        "git --git-dir=src status",
        "git -c core.pager=x -C src status",
    ] {
        assert_eq!(reads.decide(&request(text), &facts).verdict, Verdict::Ask, "{text}");
    }
}

#[test]
fn an_account_tells_every_rule() {
    let account = Policy::preset(Preset::ReadOnly).explain(&request("bash -lc 'ls | make'"), &facts());
    assert_eq!(account.wrapper, ["bash", "-lc"]);
    assert_eq!(account.parts.len(), 2);
    assert!(account.parts[0].tried[0].matched && !account.parts[1].tried[0].matched);
    assert!(account.parts[1].tried[0].why.contains("`make`"), "{account:?}");
    let account = Policy::preset(Preset::ReadOnly).explain(&request("ls $x"), &facts());
    assert!(account.not_understood.unwrap().contains("variable"));
}

#[test]
fn a_program_that_the_workspace_chooses_is_asked_about() {
    let mut facts = facts();
    facts.programs.insert("cat".into(), "/home/dev/.asdf/shims/cat".into());
    let reads = Policy::preset(Preset::ReadOnly);
    assert_eq!(reads.decide(&request("cat x"), &facts).verdict, Verdict::Allow);
    let chosen = facts.clone().with_file("/home/dev/w/.tool-versions", "cat path:evil\n");
    assert_eq!(reads.decide(&request("cat x"), &chosen).verdict, Verdict::Ask);
    assert_eq!(reads.decide(&request("ls x"), &chosen).verdict, Verdict::Allow);
    let mut facts = self::facts();
    for name in ["rustc", "node", "npm", "python3", "ruby", "go"] {
        facts.programs.insert(name.into(), format!("/usr/bin/{name}").into());
    }
    // Whatever it holds: TOML and JSON have escapes.
    for (command, file) in [
        ("cargo --version", "rust-toolchain.toml"),
        ("rustc -V", "rust-toolchain"),
        ("cargo -V", ".tool-versions"),
        ("cargo -V", "mise.toml"),
        ("cargo -V", ".mise.toml"),
        ("node --version", ".nvmrc"),
        ("node --version", ".node-version"),
        ("node -v", "package.json"),
        ("npm --version", "package.json"),
        ("python3 --version", ".python-version"),
        ("ruby --version", ".ruby-version"),
        ("go version", "go.mod"),
    ] {
        let below = Request { cwd: "/home/dev/w/a/b".into(), ..request(command) };
        assert_eq!(reads.decide(&below, &facts).verdict, Verdict::Allow, "{command}");
        for dir in ["", "a/", "a/b/"] {
            let facts = facts.clone().with_file(&format!("/home/dev/w/{dir}{file}"), "");
            assert_eq!(reads.decide(&below, &facts).verdict, Verdict::Ask, "{command} {dir}{file}");
        }
        let above = facts.clone().with_file(&format!("/home/dev/{file}"), "");
        assert_eq!(reads.decide(&below, &above).verdict, Verdict::Allow, "{command}");
    }
}

#[test]
fn ripgrep_reads_what_an_ignore_file_brings_back() {
    let reads = Policy::preset(Preset::ReadOnly);
    let facts = facts().with_file("/home/dev/w/.env", "KEY=x");
    assert_eq!(reads.decide(&request("rg KEY"), &facts).verdict, Verdict::Allow);
    for text in ["rg --hidden KEY", "rg -uu KEY", "rg -g '*' KEY", "grep -r KEY", "grep -rn KEY ."] {
        assert_eq!(reads.decide(&request(text), &facts).verdict, Verdict::Ask, "{text}");
    }
    let back = facts.with_file("/home/dev/w/.gitignore", "target\n!.env\n");
    assert_eq!(reads.decide(&request("rg KEY"), &back).verdict, Verdict::Ask);
}

#[test]
fn a_cd_is_followed_where_it_is_sure() {
    let reads = Policy::preset(Preset::ReadOnly);
    let facts = facts().with_file("/home/dev/w/a/b/c", "x");
    let verdict = |text: &str| reads.decide(&request(text), &facts).verdict;
    for text in ["cd a && ls", "cd a/b && cat c | wc -l", "cd /home/dev/w/a && ls .", "cd a"] {
        assert_eq!(verdict(text), Verdict::Allow, "{text}");
    }
    for text in [
        "cd a/.. && ls",
        "cd a && cat ../../x",
        "cd a && cat ../x",
        "cd a; ls",
        "cd a || ls",
        "ls && cd a",
        "cd out && ls",
        "cd a && cd b",
        "cd a | ls",
        "cd && ls",
        "cd - && ls",
        "cd +1 && ls",
        "cd -1 && ls",
        "cd '~' && ls",
        "cd '' && ls",
        "cd a && git status",
        "cd a b && ls",
        "cd -P a && ls",
    ] {
        assert_eq!(verdict(text), Verdict::Ask, "{text}");
    }
}

#[test]
fn a_workspace_that_means_nothing_allows_nothing() {
    for workspace in ["/", "/home", "/home/dev"] {
        let request = Request { workspace: workspace.into(), ..request("ls") };
        assert_eq!(Policy::preset(Preset::ReadOnly).decide(&request, &facts()).verdict, Verdict::Ask, "{workspace}");
    }
}

#[test]
fn a_rule_for_a_directory_binds_every_command() {
    let rules = "[[rule]]\nname = \"here\"\ndecision = \"allow\"\ncommand = [\"make\", \"...\"]\ncwd = \"/home/dev/w\"\n[[rule]]\nname = \"sub\"\ndecision = \"allow\"\ncommand = [\"cargo\", \"test\"]\ncwd = \"/home/dev/w/sub\"\n[[rule]]\nname = \"cd\"\ndecision = \"allow\"\ncommand = [\"cd\", \"*\"]\n[[rule]]\nname = \"pushd\"\ndecision = \"allow\"\ncommand = [\"pushd\", \"*\"]\n[[rule]]\nname = \"builtin\"\ndecision = \"allow\"\ncommand = [\"builtin\", \"...\"]\n";
    let allows = policy(rules);
    for (text, verdict) in [
        ("make x", Verdict::Allow),
        ("bash -lc 'make x'", Verdict::Allow),
        ("cd sub && make x", Verdict::Ask),
        ("cd /home/dev/w/sub && make x", Verdict::Ask),
        ("cd sub; make x", Verdict::Ask),
        ("pushd sub && make x", Verdict::Ask),
        ("builtin cd sub && make x", Verdict::Ask),
        ("cargo test", Verdict::Ask),
        ("cd sub && cargo test", Verdict::Allow),
        ("cd sub && cargo test && make", Verdict::Ask),
    ] {
        assert_eq!(allows.decide(&request(text), &facts()).verdict, verdict, "{text}");
    }
    let denies = policy(
        "[[rule]]\nname = \"no\"\ndecision = \"deny\"\ncommand = [\"make\"]\ncwd = \"/home/dev/w/sub\"\n[[rule]]\nname = \"yes\"\ndecision = \"allow\"\ncommand = [\"make\"]\n",
    );
    for text in ["cd sub && make", "cd sub; make", "cd sub && make $x", "make -C sub $x", "pushd sub && make"] {
        assert_eq!(denies.decide(&request(text), &facts()).verdict, Verdict::Deny, "{text}");
    }
    assert_eq!(denies.decide(&request("make"), &facts()).verdict, Verdict::Allow);
}

#[test]
fn a_directory_that_nobody_told_is_not_relied_on() {
    let told = |command: &str| Request { cwd_is_certain: false, ..request(command) };
    let mut facts = facts().with_file("/home/dev/w/.git/config", "").with_file("/home/dev/w/a/x", "");
    for name in ["echo", "tree", "du", "date", "node"] {
        facts.programs.insert(name.into(), format!("/usr/bin/{name}").into());
    }
    let reads = Policy::preset(Preset::ReadOnly);
    for text in [
        "ls",
        "ls src",
        "cat README.md",
        "git status",
        "git diff",
        "find",
        "find . -name x",
        "grep -r x",
        "rg x",
        "tree",
        "du -sh",
        "cd a && ls",
        "cd /home/dev/w/a && ls",
        "cd /home/dev/w && cat a/x",
        "test -f x",
        "cargo --version",
        "node -v",
    ] {
        assert_eq!(
            reads.decide(&request(text), &facts).verdict,
            Verdict::Allow,
            "{text}: {}",
            reads.decide(&request(text), &facts).reason
        );
        assert_eq!(reads.decide(&told(text), &facts).verdict, Verdict::Ask, "{text}");
    }
    for text in ["cat /home/dev/w/README.md", "ls /home/dev/w/a | wc -l", "echo x", "date", "find /home/dev/w -name x"]
    {
        assert_eq!(
            reads.decide(&told(text), &facts).verdict,
            Verdict::Allow,
            "{text}: {}",
            reads.decide(&told(text), &facts).reason
        );
    }
    let file = |path: &str| Request { cwd_is_certain: false, ..file(Kind::Read, path) };
    assert_eq!(reads.decide(&file("a/x"), &facts).verdict, Verdict::Ask);
    assert_eq!(reads.decide(&file("/home/dev/w/a/x"), &facts).verdict, Verdict::Allow);
    let own = policy(
        "[[rule]]\nname = \"any\"\ndecision = \"allow\"\ncommand = [\"make\"]\n[[rule]]\nname = \"here\"\ndecision = \"allow\"\ncommand = [\"cargo\", \"test\"]\ncwd = \"/home/dev/w\"\n[[rule]]\nname = \"docs\"\ndecision = \"allow\"\nkind = \"read\"\npaths = [\"a/**\"]\n[[rule]]\nname = \"no\"\ndecision = \"deny\"\ncommand = [\"rm\"]\ncwd = \"/elsewhere\"\n",
    );
    for (asked, verdict) in [
        (told("make"), Verdict::Allow),
        (told("cargo test"), Verdict::Ask),
        (request("cargo test"), Verdict::Allow),
        (file("a/x"), Verdict::Ask),
        (file("/home/dev/w/a/x"), Verdict::Allow),
        (told("rm x"), Verdict::Deny),
        (request("rm x"), Verdict::Ask),
    ] {
        assert_eq!(own.decide(&asked, &facts).verdict, verdict, "{asked:?}");
    }
    assert_eq!(rule_for(&told("make")), None);
}

#[test]
fn what_a_directory_holds_is_read_with_it() {
    let reads = Policy::preset(Preset::ReadOnly);
    let facts = facts()
        .with_file("/home/dev/w/a/.env", "KEY=x")
        .with_file("/home/dev/w/b/c", "x")
        .with_file("/home/dev/w/[id].ts", "x")
        .with_file("/home/dev/w/.azure/tokens", "x")
        .with_file("/home/dev/w/.docker/config.json", "x")
        .with_file("/home/dev/w/.mcp-auth/x", "x");
    for (path, verdict) in [
        ("b", Verdict::Allow),
        ("b/c", Verdict::Allow),
        ("[id].ts", Verdict::Allow),
        ("a", Verdict::Ask),
        (".", Verdict::Ask),
        ("a/*", Verdict::Ask),
        ("**/.e?v", Verdict::Ask),
        ("~/x", Verdict::Ask),
        ("~x", Verdict::Ask),
        (".git/config", Verdict::Ask),
        (".git/config.worktree", Verdict::Ask),
        (".git/modules/x/config", Verdict::Ask),
        (".git/worktrees/x/config.worktree", Verdict::Ask),
        (".git/FETCH_HEAD", Verdict::Ask),
        (".git/credentials", Verdict::Ask),
        (".git/HEAD", Verdict::Allow),
    ] {
        let decision = reads.decide(&file(Kind::Read, path), &facts);
        assert_eq!(decision.verdict, verdict, "{path}: {}", decision.reason);
    }
    for text in [
        "grep -r x .azure",
        "grep -r x .docker",
        "grep -r x .mcp-auth",
        "grep -r x .git",
        "rg x .azure",
        "rg x .git",
        "rg x .docker",
        "cat '~/x'",
        "cat .git/config.worktree",
    ] {
        assert_eq!(reads.decide(&request(text), &facts).verdict, Verdict::Ask, "{text}");
    }
    assert_eq!(reads.decide(&request("grep -r x b"), &facts).verdict, Verdict::Allow);
    for (config, verdict) in [
        ("[remote \"o\"]\n\turl = https://x.test/a\n", Verdict::Allow),
        ("[remote \"o\"]\n\turl = https://key@x.test/a\n", Verdict::Ask),
        ("[http \"https://x.test/\"]\n\textraheader = AUTHORIZATION: basic x\n", Verdict::Ask),
    ] {
        let facts = self::facts().with_file("/home/dev/w/.git/config", config);
        assert_eq!(reads.decide(&request("grep -rn x ."), &facts).verdict, verdict, "{config}");
        assert_eq!(reads.decide(&request("rg --hidden x"), &facts).verdict, verdict, "{config}");
        assert_eq!(reads.decide(&request("rg x"), &facts).verdict, Verdict::Allow, "{config}");
    }
}

#[test]
fn a_pattern_is_what_it_may_mean() {
    let reads = Policy::preset(Preset::ReadOnly);
    let mut facts = facts()
        .with_file("/home/dev/w/src/a.rs", "x")
        .with_file("/home/dev/w/src/b.rs", "x")
        .with_file("/home/dev/w/src/deep/c.rs", "x")
        .with_file("/home/dev/w/conf/a.toml", "x")
        .with_file("/home/dev/w/conf/.env", "x")
        .with_file("/home/dev/w/keys/b.PEM", "x")
        .with_file("/home/dev/w/keys/a.rs", "x")
        .with_link("/home/dev/w/links/a.rs", "/etc/passwd");
    for name in ["head", "tail", "diff", "uniq", "xxd", "sort", "touch"] {
        facts.programs.insert(name.into(), format!("/usr/bin/{name}").into());
    }
    for text in [
        "ls src/*.rs",
        "wc -l src/*.rs",
        "cat src/*.rs | wc -l",
        "head -n 5 src/a*",
        "grep -n x src/*.rs src/deep/*",
        "bash -lc 'wc -l src/*.rs'",
        "cat keys/*.rs",
        "cat conf/*.toml",
    ] {
        let decision = reads.decide(&request(text), &facts);
        assert_eq!(decision.verdict, Verdict::Allow, "{text}: {}", decision.reason);
    }
    for text in [
        "ls *.rs",
        "ls ./*.rs",
        "ls /home/dev/w/src/*",
        "ls ../*",
        "ls src/../*",
        "ls .git/*",
        "ls */*.rs",
        "ls src/**",
        "ls src/.*",
        "grep -r x src/..*",
        "ls src/?.rs",
        "ls src/[ab].rs",
        "ls src/*.none",
        "ls none/*",
        "ls -src/*",
        "cat conf/*",
        "cat keys/*",
        "cat keys/*.pem",
        "cat links/*",
        "cat links/*.rs",
        "grep links/* x",
        "cat src/'*'.rs src/*$x",
        "cat x=src/*",
        "xxd src/*.rs",
        "uniq src/*.rs",
        "diff src/*.rs",
        "sort src/*.rs",
        "touch src/*.rs",
        "src/*.rs",
        "bash -c src/*.rs",
        "ls src/*.rs >src/*",
        "git diff src/*.rs",
    ] {
        assert_eq!(reads.decide(&request(text), &facts).verdict, Verdict::Ask, "{text}");
    }
    let own = policy(
        "preset = \"read-only\"\n[[rule]]\nname = \"no\"\ndecision = \"deny\"\npaths = [\"src/b.rs\"]\n[[rule]]\nname = \"make\"\ndecision = \"allow\"\ncommand = [\"make\", \"...\"]\n[[rule]]\nname = \"exactly\"\ndecision = \"allow\"\ncommand = [\"touch\", \"src/*.rs\"]\n",
    );
    for (text, verdict) in [
        ("cat src/*.rs", Verdict::Deny),
        ("cat src/a*", Verdict::Allow),
        ("make src/*.rs", Verdict::Ask),
        ("touch src/*.rs", Verdict::Ask),
        ("touch 'src/*.rs'", Verdict::Allow),
    ] {
        assert_eq!(own.decide(&request(text), &facts).verdict, verdict, "{text}");
    }
    assert_eq!(rule_for(&request("make src/*.rs")), None);
    let git = facts.clone().with_file("/home/dev/w/.git/config", "");
    let safe = reads.decide(&request("git status && ls src/*.rs"), &git).rewrite.unwrap();
    assert!(safe.ends_with(" && ls src/*.rs"), "{safe}");
}
