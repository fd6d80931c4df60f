//! The files that a request reaches, and which of them are allowed.

use super::*;

#[test]
fn editing_files_that_run_later_requires_asking() {
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
        check(&edits, &file(RequestKind::Edit, path), Verdict::Ask, "default");
        check(&edits, &file(RequestKind::Write, path), Verdict::Ask, "default");
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
        check(&edits, &file(RequestKind::Edit, path), Verdict::Allow, "workspace-edits/edits");
    }
    let own =
        policy("[[rule]]\nname = \"manifest\"\ndecision = \"allow\"\nkind = \"edit\"\npaths = [\"Cargo.toml\"]\n");
    check(&own, &file(RequestKind::Edit, "Cargo.toml"), Verdict::Allow, "manifest");
}

#[test]
fn reading_a_secret_file_requires_asking() {
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
        let asked = file(RequestKind::Read, path);
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
        let asked = file(RequestKind::Read, path);
        assert_eq!(reads.decide(&asked, &facts()).verdict, Verdict::Allow, "{path}");
    }
}

#[test]
fn ripgrep_requires_asking_if_an_ignore_rule_reincludes_a_secret() {
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
fn cd_is_followed_only_if_its_target_is_certain() {
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
        "cd out && ls",
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
fn commands_after_a_cd_must_be_safe_in_both_directories() {
    let reads = Policy::preset(Preset::ReadOnly);
    let facts = facts().with_file("/home/dev/w/a/b/c", "x");
    let verdict = |text: &str| reads.decide(&request(text), &facts).verdict;
    for (text, right) in [
        ("cd a; ls", Verdict::Allow),
        ("cd a\nls", Verdict::Allow),
        ("cd a && cd b && ls", Verdict::Allow),
        ("(cd a && ls); ls", Verdict::Allow),
        ("cd a && cat ../x", Verdict::Ask),
        ("cd a; cat ../x", Verdict::Ask),
        ("for d in a b; do cd $d; ls; done", Verdict::Ask),
        ("cd out; ls", Verdict::Ask),
        ("(cd out; ls)", Verdict::Ask),
        ("cd a | ls; ls", Verdict::Ask),
    ] {
        assert_eq!(verdict(text), right, "{text}");
    }
}

#[test]
fn a_home_or_root_directory_as_workspace_allows_nothing() {
    for workspace in ["/", "/home", "/home/dev"] {
        let request = PermissionRequest { workspace: workspace.into(), ..request("ls") };
        assert_eq!(Policy::preset(Preset::ReadOnly).decide(&request, &facts()).verdict, Verdict::Ask, "{workspace}");
    }
}

#[test]
fn an_uncertain_working_directory_requires_absolute_paths() {
    let told = |command: &str| PermissionRequest { cwd_is_certain: false, ..request(command) };
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
    let file = |path: &str| PermissionRequest { cwd_is_certain: false, ..file(RequestKind::Read, path) };
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
fn reading_a_directory_is_judged_by_its_contents() {
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
        let decision = reads.decide(&file(RequestKind::Read, path), &facts);
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
fn a_glob_is_judged_by_the_files_it_may_match() {
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

#[test]
fn captures_own_searches_are_judged_by_what_they_read() {
    let facts = facts()
        .with_file("/home/dev/w/src/main.rs", "fn main() {}")
        .with_file("/home/dev/w/.env", "KEY=1")
        .with_file("/home/dev/keys/id_rsa", "key");
    let reads = Policy::preset(Preset::ReadOnly);
    let search = |agent, tool: &str, glob: Option<&str>, path: &str| {
        let (tool, glob) = (Some(tool.to_owned()), glob.map(str::to_owned));
        let request = PermissionRequest { agent, tool, glob, ..file(RequestKind::Read, path) };
        reads.decide(&request, &facts).verdict
    };
    for (tool, glob) in [("grep", None), ("grep", Some("*.rs")), ("grep", Some("./src/*")), ("glob", None)] {
        assert_eq!(search(Provider::Capture, tool, glob, "."), Verdict::Allow, "{tool} {glob:?}");
        assert_eq!(search(Provider::Claude, tool, glob, "."), Verdict::Ask, "another agent's tool {tool}");
    }
    for glob in [".*", ".env", "**/.env", "{.env,x}", "{x,.env}", "?env", "[.]env", "{a/.,**/*}", "././.env", "a/./**"]
    {
        assert_eq!(search(Provider::Capture, "grep", Some(glob), "."), Verdict::Ask, "{glob}");
    }
    assert_eq!(search(Provider::Capture, "grep", None, ".env"), Verdict::Ask);
    assert_eq!(search(Provider::Capture, "grep", None, "/home/dev/keys"), Verdict::Ask, "outside of the workspace");
    assert_eq!(search(Provider::Capture, "glob", None, "/home/dev/keys"), Verdict::Ask, "outside of the workspace");
}
