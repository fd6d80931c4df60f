use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use events::Provider;

use super::*;
use crate::{RequestKind, Shell, StubFacts, Verdict};

mod paths;
mod shapes;
mod spelling;

fn request(command: &str) -> PermissionRequest {
    PermissionRequest {
        agent: Provider::Claude,
        kind: RequestKind::Command,
        tool: Some("Bash".into()),
        command: Some(command.into()),
        cwd: "/home/dev/w".into(),
        cwd_is_certain: true,
        workspace: "/home/dev/w".into(),
        paths: Vec::new(),
        url: None,
        labels: BTreeMap::new(),
        glob: None,
        takes_rewrite: true,
        shell: Shell::Bash,
    }
}

fn facts() -> StubFacts {
    StubFacts::usual(&["ls", "cat", "grep", "rg", "git", "env", "cargo", "make", "rm", "timeout", "bash", "wc", "find"])
        .with_file("/home/dev/w/.git/config", "[core]\n\tbare = true\n")
        .with_link("/home/dev/w/out", "/etc")
}

fn file(kind: RequestKind, path: &str) -> PermissionRequest {
    PermissionRequest { kind, command: None, paths: vec![path.into()], ..request("") }
}

fn fetch(url: &str) -> PermissionRequest {
    PermissionRequest { kind: RequestKind::Fetch, command: None, url: Some(url.into()), ..request("") }
}

fn policy(rules: &str) -> Policy {
    Policy::parse(&format!("version = 1\n{rules}"), Path::new("policy.toml")).unwrap_or_else(|e| panic!("{e}"))
}

#[track_caller]
fn check(policy: &Policy, request: &PermissionRequest, verdict: Verdict, rule: &str) {
    let decision = policy.decide(request, &facts());
    assert_eq!((decision.verdict, decision.rule.as_str()), (verdict, rule), "{request:?}: {}", decision.reason);
}

#[test]
fn each_preset_allows_only_the_requests_it_covers() {
    let (none, reads, edits) = (
        Policy::preset(Preset::AskEverything),
        Policy::preset(Preset::ReadOnly),
        Policy::preset(Preset::WorkspaceEdits),
    );
    check(&none, &request("ls"), Verdict::Ask, "default");
    check(&reads, &request("ls | wc -l"), Verdict::Allow, "read-only/tools");
    check(&reads, &request("ls | make"), Verdict::Ask, "default");
    check(&reads, &file(RequestKind::Read, "src/main.rs"), Verdict::Allow, "read-only/files");
    check(&reads, &file(RequestKind::Read, ".env"), Verdict::Ask, "default");
    check(&reads, &file(RequestKind::Read, "out/passwd"), Verdict::Ask, "default");
    check(&reads, &file(RequestKind::Edit, "src/main.rs"), Verdict::Ask, "default");
    check(&edits, &file(RequestKind::Edit, "src/main.rs"), Verdict::Allow, "workspace-edits/edits");
    check(&edits, &file(RequestKind::Write, "/home/dev/w/new.txt"), Verdict::Allow, "workspace-edits/edits");
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
        check(&edits, &file(RequestKind::Write, path), Verdict::Ask, "default");
    }
    check(&edits, &PermissionRequest { paths: vec![], ..file(RequestKind::Write, "") }, Verdict::Ask, "default");
    check(&edits, &fetch("https://docs.rs/"), Verdict::Ask, "default");
}

#[test]
fn the_first_matching_rule_decides_before_the_preset() {
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
fn deny_rules_match_commands_in_any_spelling() {
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
fn domain_rules_match_the_exact_https_host() {
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
fn rule_conditions_limit_agent_tool_labels_and_paths() {
    let policy = policy(
        "[[rule]]\nname = \"codex\"\ndecision = \"allow\"\ncommand = [\"make\", \"*\"]\nagent = \"codex\"\n[[rule]]\nname = \"lab\"\ndecision = \"allow\"\nkind = \"mcp\"\ntool = \"mcp__github__get_*\"\nlabels = { team = \"a\" }\n[[rule]]\nname = \"docs\"\ndecision = \"allow\"\nkind = [\"edit\", \"write\"]\npaths = [\"docs/**\"]\n",
    );
    check(&policy, &request("make x"), Verdict::Ask, "default");
    check(&policy, &PermissionRequest { agent: Provider::Codex, ..request("make x") }, Verdict::Allow, "codex");
    check(&policy, &PermissionRequest { agent: Provider::Codex, ..request("make -f") }, Verdict::Ask, "default");
    let mcp = PermissionRequest { kind: RequestKind::Mcp, tool: Some("mcp__github__get_issue".into()), ..request("") };
    check(&policy, &mcp, Verdict::Ask, "default");
    check(&policy, &PermissionRequest { labels: [("team".into(), "a".into())].into(), ..mcp }, Verdict::Allow, "lab");
    check(&policy, &file(RequestKind::Edit, "docs/a/b.md"), Verdict::Allow, "docs");
    check(&policy, &file(RequestKind::Edit, "docs/../src/x"), Verdict::Ask, "default");
    check(&policy, &file(RequestKind::Edit, "docs/AGENTS.md"), Verdict::Ask, "default");
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
fn policy_errors_name_line_and_column() {
    for (text, line, column, says) in [
        ("preset = \"read-only\"\n", 1, 1, "`version` is missing; begin the file with `version = 1`"),
        ("version = 1\nwhatever = 2\n", 2, 1, "whatever"),
        ("version = 2\n", 1, 11, "version 2 is not supported (expected 1)"),
        (
            "version = 1\n[[rule]]\nname = \"a\"\ndecision = \"maybe\"\n",
            4,
            12,
            "`decision` must be allow, ask or deny, not `maybe`",
        ),
        (
            "version = 1\n\n[[rule]]\nname = \"a\"\ndecision = \"allow\"\n",
            3,
            1,
            "rule `a` allows everything: add at least one of",
        ),
        ("version = 1\n[rule]\nname = \"a\"\n", 2, 1, "write `[[rule]]`, not `[rule]`"),
        (
            "version = 1\n[[rule]]\nname = \"a\"\ndecision = \"deny\"\ncommand = \"git push\"\n",
            5,
            11,
            "expected a list of words, such as [\"git\", \"push\"], got \"",
        ),
        ("version = 1\n[[rule]]\nname = \"a\"\ndecision = \"allow\"\ncommand = [\"*\"]\n", 2, 1, "program"),
        (
            "version = 1\n[[rule]]\nname = \"a\"\ndecision = \"allow\"\nkind = \"read\"\ncommand = [\"ls\"]\n",
            2,
            1,
            "cannot be used with",
        ),
        (
            "version = 1\n[[rule]]\nname = \"a\"\ndecision = \"deny\"\nknown = \"read\"\n",
            2,
            1,
            "only allowed in rules that allow",
        ),
        ("version = 1\n[[rule]]\nname = \"a\"\ndecision = \"allow\"\ndomain = \"https://x.y\"\n", 2, 1, "host"),
        ("version = 1\npreset = \"no\"\n", 2, 10, "expected a preset"),
        ("version = 1\nx = \n", 2, 5, "`x` has no value"),
        ("version = 1\nx = 3\n", 2, 1, "unknown setting `x`, expected one of `version`, `preset`, `rule`"),
        (
            "version = 1\n[[rule]]\nname = \"a\"\ndecision = \"ask\"\nkind = \"bash\"\n",
            5,
            8,
            "`kind` must be command, read, edit, write, mcp, fetch, plan, question or trust, or a list of them, not `bash`",
        ),
        (
            "version = 1\n[[rule]]\nname = \"a\"\ndecision = \"ask\"\nagent = [\"claude\"]\n",
            5,
            9,
            "`agent` must be the name of one agent, such as \"claude\", not a list",
        ),
        (
            "version = 1\n[[rule]]\nname = \"a\"\ndecision = \"allow\"\nkind = \"fetch\"\n",
            2,
            1,
            "rule `a` would allow too much: limit it with `domain`",
        ),
    ] {
        let error = Policy::parse(text, Path::new("p.toml")).expect_err(text);
        assert!(error.message.contains(says), "{error}");
        assert_eq!((error.line, error.column), (line, column), "{error}");
    }
}

#[test]
fn an_always_allow_rule_allows_only_the_same_request() {
    for request in [
        request("make 'a b' '--x=[1]'"),
        request("cargo test && make x"),
        request("bash -lc 'make x'"),
        file(RequestKind::Edit, "src/[a].rs"),
        file(RequestKind::Read, "a b"),
        fetch("https://docs.rs/x"),
        PermissionRequest { kind: RequestKind::Mcp, tool: Some("mcp__a__[b]".into()), ..request("") },
    ] {
        let text = rule_for(&request).unwrap_or_else(|| panic!("{request:?}"));
        let policy = policy(&text);
        assert_eq!(policy.decide(&request, &facts()).verdict, Verdict::Allow, "{text}");
        let other = PermissionRequest { cwd: "/home/dev/w/src".into(), ..request.clone() };
        assert_eq!(policy.decide(&other, &facts()).verdict, Verdict::Ask, "{text}");
        assert_eq!(
            policy.decide(&PermissionRequest { agent: Provider::Gemini, ..request }, &facts()).verdict,
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
fn a_rule_for_a_file_has_the_name_of_the_file() {
    let name = |request: &PermissionRequest| {
        let rule = rule_for(request).unwrap();
        let line = rule.lines().find(|line| line.starts_with("name = ")).unwrap().to_owned();
        line.trim_start_matches("name = ").trim_matches('"').rsplit_once(' ').unwrap().0.to_owned()
    };
    assert_eq!(name(&file(RequestKind::Write, "/home/dev/w/src/greet.py")), "always write greet.py");
    assert_eq!(name(&file(RequestKind::Edit, "src/a \"b\".rs")), "always edit a b .rs");
    assert_eq!(name(&request("make test")), "always make test");
    let (one, other) = (file(RequestKind::Edit, "a/x"), file(RequestKind::Edit, "b/x"));
    assert_ne!(rule_for(&one).unwrap().lines().nth(1), rule_for(&other).unwrap().lines().nth(1));
}

#[test]
fn git_is_allowed_only_if_rewritten_to_its_safe_form() {
    let policy = Policy::preset(Preset::ReadOnly);
    let facts = facts();
    let facts = StubFacts {
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
    let without = PermissionRequest { takes_rewrite: false, ..request("git diff") };
    assert_eq!(policy.decide(&without, &facts).verdict, Verdict::Ask);
    assert_eq!(policy.decide(&request("git diff"), &self::facts()).verdict, Verdict::Ask, "core.bare is not harmless");
    let wrapped = policy.decide(&request("bash -lc 'git log -5'"), &facts).rewrite.unwrap();
    assert!(wrapped.starts_with("bash -lc '") || wrapped.starts_with("bash -lc \""), "{wrapped}");
}

#[test]
fn git_is_allowed_only_in_the_workspace_repository() {
    let reads = Policy::preset(Preset::ReadOnly);
    let facts = StubFacts { files: BTreeMap::new(), ..facts() }
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
fn the_explanation_lists_every_rule_tried() {
    let account = Policy::preset(Preset::ReadOnly).explain(&request("bash -lc 'ls | make'"), &facts());
    assert_eq!(account.wrapper, ["bash", "-lc"]);
    assert_eq!(account.parts.len(), 2);
    let tools = |part: usize| account.parts[part].tried.iter().find(|tried| tried.rule == "read-only/tools").unwrap();
    assert!(tools(0).matched && !tools(1).matched);
    assert!(tools(1).why.contains("`make`"), "{account:?}");
    let first: Vec<_> = account.parts[1].tried.iter().map(|tried| tried.decision).collect();
    assert_eq!(first.first(), Some(&Verdict::Deny), "what a preset denies comes first");
    let account = Policy::preset(Preset::ReadOnly).explain(&request("ls $x"), &facts());
    assert!(account.not_understood.unwrap().contains("variable"));
}

#[test]
fn a_program_version_selected_by_the_workspace_requires_asking() {
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
    // Regardless of their content, because TOML and JSON have escapes.
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
        let below = PermissionRequest { cwd: "/home/dev/w/a/b".into(), ..request(command) };
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
fn a_rule_with_cwd_applies_to_each_command_of_the_line() {
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
