use std::fs;

use engine::{CallFacts, CallId, CallRun, RequestNumber};
use policy_files::OnDisk;
use session_tree::Object;
use tools::Preview;

use super::*;

/// A workspace with a policy in force.
struct House {
    dir: tempfile::TempDir,
}

impl House {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for below in ["work/src", "config", "home"] {
            fs::create_dir_all(dir.path().join(below)).unwrap();
        }
        fs::write(dir.path().join("work/src/main.rs"), "fn main() {}\n").unwrap();
        fs::write(dir.path().join("work/.env"), "TOKEN=ghp_x7Kd93LmQp2RtYv8WzAc5EfGh1Jk4NbS6uXo\n").unwrap();
        fs::write(dir.path().join("elsewhere.txt"), "text\n").unwrap();
        Self { dir }
    }

    fn decide(&self, rules: &str, mode: SessionMode, kind: CallClass, path: &str) -> String {
        let (decided, refused) = self.decide_with(rules, mode, kind, path);
        assert_eq!(refused, None);
        decided
    }

    /// Whether a call that changes nothing is answered without asking.
    fn answers(&self, rules: &str, path: &str, preview: Option<Preview>) -> bool {
        let root = self.dir.path().canonicalize().unwrap();
        let file = root.join("config/policy.toml");
        fs::write(&file, format!("version = 1\n{rules}")).unwrap();
        let facts = OnDisk::new(vec!["/usr/bin".into()], [root.join("config")], Some(root.join("home")));
        let (in_process, _) = InProcess::new(&file, &root.join("work"), Arc::new(facts));
        let asked = self.asked(SessionMode::Ask, CallClass::Edit, path);
        let decided = in_process.without_effect(&PreviewedCall { asked, preview, why: None });
        assert!(decided.iter().all(|decided| decided.verdict == CallVerdict::NoEffect));
        decided.is_some()
    }

    fn asked(&self, mode: SessionMode, kind: CallClass, path: &str) -> AskedPermission {
        let workspace = self.dir.path().canonicalize().unwrap().join("work");
        AskedPermission {
            call: CallRun {
                call: CallId { request: RequestNumber(1), index: 0 },
                model_id: "c".to_owned(),
                tool: "tool".to_owned(),
                arguments: Object::new().with("command", "ls"),
            },
            facts: CallFacts {
                kind,
                cwd: workspace.to_string_lossy().into_owned(),
                paths: vec![workspace.join(path).to_string_lossy().into_owned()],
                ..CallFacts::default()
            },
            mode,
        }
    }

    /// The decision, and why the policy is not in force.
    fn decide_with(&self, rules: &str, mode: SessionMode, kind: CallClass, path: &str) -> (String, Option<String>) {
        self.decided(rules, &self.asked(mode, kind, path))
    }

    fn decided(&self, rules: &str, asked: &AskedPermission) -> (String, Option<String>) {
        let root = self.dir.path().canonicalize().unwrap();
        let (workspace, file) = (root.join("work"), root.join("config/policy.toml"));
        fs::write(&file, format!("version = 1\n{rules}")).unwrap();
        let facts = OnDisk::new(vec!["/usr/bin".into()], [root.join("config")], Some(root.join("home")));
        let (in_process, refused) = InProcess::new(&file, &workspace, Arc::new(facts));
        let decided = match in_process.decide(asked) {
            None => "person".to_owned(),
            Some(decision) => format!("{:?} by {}", decision.verdict, decision.by),
        };
        (decided, refused)
    }
}

#[test]
fn ask_mode_allows_only_reads_of_the_workspace_without_secrets() {
    let house = House::new();
    for (kind, path, decided) in [
        (CallClass::Read, "src/main.rs", "Allow by policy"),
        (CallClass::Read, "src", "Allow by policy"),
        (CallClass::Read, ".env", "person"),
        // A search would print the secret.
        (CallClass::Read, ".", "person"),
        (CallClass::ReadOutside, "../elsewhere.txt", "person"),
        (CallClass::Edit, "src/main.rs", "person"),
        (CallClass::Write, "src/new.rs", "person"),
        (CallClass::Command, ".", "Allow by policy"),
        (CallClass::Fetch, ".", "person"),
        (CallClass::Question, ".", "person"),
        (CallClass::Other, ".", "person"),
        (CallClass::Note, ".", "Allow by session"),
    ] {
        assert_eq!(house.decide("", SessionMode::Ask, kind, path), decided, "{kind:?} {path}");
    }
    // A policy that would allow the call also leaves it to the user: nothing else records it.
    let allows = "preset = \"workspace-edits\"";
    assert_eq!(house.decide(allows, SessionMode::Ask, CallClass::Edit, "src/main.rs"), "person");
    assert_eq!(house.decide(allows, SessionMode::Ask, CallClass::Command, "."), "person");
}

#[test]
fn read_only_commands_are_allowed_unless_a_preset_or_rule_intervenes() {
    let house = House::new();
    let decide = |rules: &str, command: &str| {
        let mut asked = house.asked(SessionMode::Ask, CallClass::Command, ".");
        asked.call.arguments = Object::new().with("command", command);
        house.decided(rules, &asked).0
    };
    for command in ["ls", "pwd", "wc -l src/main.rs", "cat src/main.rs | head -3", "grep -rn main src"] {
        assert_eq!(decide("", command), "Allow by policy", "{command}");
    }
    for command in
        ["touch a", "cat .env", "cat ../elsewhere.txt", "cargo test", "ls > list", "git push", "curl example.com"]
    {
        assert_eq!(decide("", command), "person", "{command}");
    }
    for rules in ["preset = \"ask-everything\"\n", "preset = \"denials\"\n"] {
        assert_eq!(decide(rules, "ls"), "person", "{rules}");
    }
    let rule =
        |decision: &str| format!("[[rule]]\nname = \"own\"\ndecision = \"{decision}\"\ncommand = [\"ls\", \"...\"]\n");
    assert_eq!(decide(&rule("ask"), "ls"), "person", "a rule of the user comes first");
    assert_eq!(decide(&rule("deny"), "ls"), "Deny by policy");
    assert_eq!(decide(&rule("ask"), "pwd"), "Allow by policy");
    assert_eq!(decide("nonsense = true", "ls"), "person", "a policy that cannot be read might have denied it");
}

#[test]
fn a_question_about_a_read_gives_the_reason_for_asking() {
    let house = House::new();
    fs::write(house.dir.path().join("work/big.txt"), "a".repeat(5_000_000)).unwrap();
    let why = |rules: &str, kind, path: &str| {
        let root = house.dir.path().canonicalize().unwrap();
        let file = root.join("config/policy.toml");
        fs::write(&file, format!("version = 1\n{rules}")).unwrap();
        let facts = OnDisk::new(vec!["/usr/bin".into()], [root.join("config")], Some(root.join("home")));
        let (in_process, _) = InProcess::new(&file, &root.join("work"), Arc::new(facts));
        let asked = house.asked(SessionMode::Ask, kind, path);
        in_process.decide(&asked).is_none().then(|| in_process.why_asked(&asked)).flatten()
    };
    let big = why("", CallClass::Read, "big.txt").unwrap();
    assert!(big.ends_with("big.txt` is too large to search for secrets."), "{big}");
    let rule = "[[rule]]\nname = \"own\"\ndecision = \"ask\"\nkind = [\"read\"]\nreason = \"I look first.\"\n";
    assert_eq!(why(rule, CallClass::Read, "src/main.rs").as_deref(), Some("I look first (rule own)"));
    assert_eq!(why("", CallClass::Read, "src/main.rs"), None, "nobody has to decide it");
    assert_eq!(why("", CallClass::Edit, "src/main.rs"), None);
}

#[test]
fn an_allowed_git_command_is_rewritten_with_safe_options() {
    let house = House::new();
    let root = house.dir.path().canonicalize().unwrap();
    for below in ["objects", "refs", "hooks"] {
        fs::create_dir_all(root.join("work/.git").join(below)).unwrap();
    }
    fs::write(root.join("work/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(root.join("work/.git/config"), "[core]\n\trepositoryformatversion = 0\n").unwrap();
    let file = root.join("config/policy.toml");
    fs::write(&file, "version = 1\n").unwrap();
    let facts = OnDisk::new(vec!["/usr/bin".into()], [root.join("config")], Some(root.join("home")));
    let (in_process, _) = InProcess::new(&file, &root.join("work"), Arc::new(facts));
    for command in ["git status", "git log -p", "ls && git diff"] {
        let mut asked = house.asked(SessionMode::Ask, CallClass::Command, ".");
        asked.call.arguments = Object::new().with("command", command).with("timeout_s", 5_u64);
        let decided = in_process.decide(&asked).unwrap();
        assert_eq!(decided.verdict, CallVerdict::Allow, "{command}");
        let arguments = decided.arguments.unwrap();
        let rewritten = arguments.text("command").unwrap();
        assert!(rewritten.contains("core.hooksPath=/dev/null"), "{command}: {rewritten}");
        assert_eq!(arguments.get("timeout_s"), asked.call.arguments.get("timeout_s"));
    }
}

#[test]
fn a_call_without_effect_is_answered_only_if_the_file_may_be_read() {
    let house = House::new();
    let refused = || Some(Preview::Refused("changed".to_owned()));
    assert!(house.answers("", "src/main.rs", refused()));
    assert!(house.answers("", "src/main.rs", Some(Preview::NoChange("it has this content".to_owned()))));
    // The answer would reveal the content of the file.
    for path in [".env", "../elsewhere.txt", "../config/policy.toml"] {
        assert!(!house.answers("", path, refused()), "{path}");
    }
    let rule = |decision: &str| format!("[[rule]]\nname = \"own\"\ndecision = \"{decision}\"\nkind = [\"read\"]\n");
    assert!(!house.answers(&rule("ask"), "src/main.rs", refused()));
    assert!(!house.answers(&rule("deny"), "src/main.rs", refused()));
    assert!(!house.answers("nonsense = true", "src/main.rs", refused()));
    // A call that would change something always needs a decision.
    assert!(!house.answers("", "src/main.rs", Some(Preview::WouldChange("+x".to_owned()))));
    assert!(!house.answers("", "src/main.rs", None));
}

#[test]
fn accept_edits_mode_asks_for_secrets_git_internals_and_paths_outside() {
    let house = House::new();
    let decide = |kind, path| house.decide("", SessionMode::AcceptEdits, kind, path);
    assert_eq!(decide(CallClass::Edit, "src/main.rs"), "Allow by mode");
    assert_eq!(decide(CallClass::Write, "src/new.rs"), "Allow by mode");
    for path in [".env", ".git/hooks/pre-commit", ".git/config", "../elsewhere.txt", "../config/policy.toml"] {
        assert_eq!(decide(CallClass::Write, path), "person", "{path}");
    }
}

#[test]
fn user_rules_take_precedence_over_the_defaults_and_the_mode() {
    let house = House::new();
    let rule =
        |decision: &str, kind: &str| format!("[[rule]]\nname = \"own\"\ndecision = \"{decision}\"\nkind = {kind}\n");
    for (rules, mode, kind, decided) in [
        (rule("deny", "[\"read\"]"), SessionMode::Ask, CallClass::Read, "Deny by policy"),
        (rule("ask", "[\"read\"]"), SessionMode::Ask, CallClass::Read, "person"),
        (rule("deny", "[\"edit\"]"), SessionMode::AcceptEdits, CallClass::Edit, "Deny by policy"),
        (rule("ask", "[\"edit\"]"), SessionMode::AcceptEdits, CallClass::Edit, "person"),
        (rule("deny", "[\"command\"]"), SessionMode::Ask, CallClass::Command, "Deny by policy"),
    ] {
        assert_eq!(house.decide(&rules, mode, kind, "src/main.rs"), decided, "{rules}");
    }
}

#[test]
fn an_invalid_policy_leaves_every_decision_to_the_user() {
    let house = House::new();
    let (decided, refused) =
        house.decide_with("nonsense = true", SessionMode::AcceptEdits, CallClass::Read, "src/main.rs");
    assert_eq!(decided, "person");
    assert!(refused.unwrap().contains("nonsense"));
    let (decided, _) = house.decide_with("nonsense = true", SessionMode::AcceptEdits, CallClass::Edit, "src/main.rs");
    assert_eq!(decided, "person");
}

/// The decisions after edits were allowed for the session, and whether that was offered for the call.
fn after_session_edits(house: &House, rules: &str, asked: &AskedPermission) -> (String, bool) {
    let root = house.dir.path().canonicalize().unwrap();
    let file = root.join("config/policy.toml");
    fs::write(&file, format!("version = 1\n{rules}")).unwrap();
    let facts = OnDisk::new(vec!["/usr/bin".into()], [root.join("config")], Some(root.join("home")));
    let (in_process, _) = InProcess::new(&file, &root.join("work"), Arc::new(facts));
    let is_offered = in_process.offers_edits(asked);
    in_process.allow_edits();
    let decided = match in_process.decide(asked) {
        None => "person".to_owned(),
        Some(decision) => format!("{:?} by {}", decision.verdict, decision.by),
    };
    (decided, is_offered)
}

#[test]
fn allowing_edits_for_the_session_allows_later_workspace_edits() {
    let house = House::new();
    for (kind, path) in [(CallClass::Edit, "src/main.rs"), (CallClass::Write, "src/new.rs"), (CallClass::Edit, "a.txt")]
    {
        let asked = house.asked(SessionMode::Ask, kind, path);
        assert_eq!(after_session_edits(&house, "", &asked), ("Allow by allowance".to_owned(), true), "{path}");
    }
}

#[test]
fn allowing_edits_for_the_session_excludes_protected_paths() {
    let house = House::new();
    let root = house.dir.path().canonicalize().unwrap();
    std::os::unix::fs::symlink(root.join("config"), root.join("work/link")).unwrap();
    std::os::unix::fs::symlink(root.join("work/.env"), root.join("work/notes.txt")).unwrap();
    for path in [
        // Secrets, also by a link.
        ".env",
        "notes.txt",
        "id_rsa",
        // Files that determine which programs run later.
        ".git/hooks/pre-commit",
        ".git/config",
        ".claude/settings.json",
        ".claude/settings.local.json",
        ".codex/config.toml",
        ".gemini/settings.json",
        ".mcp.json",
        ".vscode/tasks.json",
        ".envrc",
        // Outside the workspace, also by a link.
        "../elsewhere.txt",
        "../config/policy.toml",
        "link/policy.toml",
        "../home/.bashrc",
    ] {
        for kind in [CallClass::Edit, CallClass::Write] {
            let asked = house.asked(SessionMode::Ask, kind, path);
            assert_eq!(after_session_edits(&house, "", &asked), ("person".to_owned(), false), "{kind:?} {path}");
        }
    }
    // Calls of other kinds still need approval.
    for kind in [CallClass::ReadOutside, CallClass::Fetch, CallClass::Other, CallClass::Question] {
        let asked = house.asked(SessionMode::Ask, kind, "src/main.rs");
        assert_eq!(after_session_edits(&house, "", &asked), ("person".to_owned(), false), "{kind:?}");
    }
    let mut command = house.asked(SessionMode::Ask, CallClass::Command, ".");
    command.call.arguments = Object::new().with("command", "touch a");
    assert_eq!(after_session_edits(&house, "", &command), ("person".to_owned(), false));
    // The mode is stricter.
    let planned = house.asked(SessionMode::Plan, CallClass::Edit, "src/main.rs");
    assert_eq!(after_session_edits(&house, "", &planned), ("person".to_owned(), false));
}

#[test]
fn allowing_edits_for_the_session_does_not_override_the_policy() {
    let house = House::new();
    let asked = house.asked(SessionMode::Ask, CallClass::Edit, "src/main.rs");
    let rule = |decision: &str| format!("[[rule]]\nname = \"own\"\ndecision = \"{decision}\"\nkind = [\"edit\"]\n");
    assert_eq!(after_session_edits(&house, &rule("ask"), &asked), ("person".to_owned(), false));
    assert_eq!(after_session_edits(&house, &rule("deny"), &asked), ("Deny by policy".to_owned(), false));
    assert_eq!(after_session_edits(&house, "nonsense = true", &asked), ("person".to_owned(), false));
}

#[test]
fn no_rule_is_offered_for_a_dangerous_command_or_a_broken_policy() {
    let house = House::new();
    let root = house.dir.path().canonicalize().unwrap();
    let file = root.join("config/policy.toml");
    let rule = |rules: &str, command: &str| {
        fs::write(&file, format!("version = 1\n{rules}")).unwrap();
        let facts = OnDisk::new(vec!["/usr/bin".into()], [root.join("config")], Some(root.join("home")));
        let (in_process, _) = InProcess::new(&file, &root.join("work"), Arc::new(facts));
        let mut asked = house.asked(SessionMode::Ask, CallClass::Command, ".");
        asked.call.arguments = Object::new().with("command", command);
        in_process.rule_for(&asked)
    };
    assert!(rule("", "make test").is_some());
    assert_eq!(rule("nonsense = true", "make test"), None, "the policy is not in force");
    for command in ["rm -rf /", "rm -rf ~/work", "git push --force", "sudo make install"] {
        assert_eq!(rule("", command), None, "{command}");
    }
}

#[test]
fn a_question_names_the_rule_or_preset_that_left_it_open() {
    let house = House::new();
    let root = house.dir.path().canonicalize().unwrap();
    let file = root.join("config/policy.toml");
    let why = |rules: &str, command: &str, has_server: bool| {
        fs::write(&file, format!("version = 1\n{rules}")).unwrap();
        let facts = OnDisk::new(vec!["/usr/bin".into()], [root.join("config")], Some(root.join("home")));
        let (in_process, _) = InProcess::new(&file, &root.join("work"), Arc::new(facts));
        let mut asked = house.asked(SessionMode::Ask, CallClass::Command, ".");
        asked.call.arguments = Object::new().with("command", command);
        if has_server { in_process.why_asked(&asked) } else { in_process.why_asked_without_server(&asked) }
    };
    assert_eq!(why("", "make test", true), None, "that is how it is without a policy");
    let preset = why("preset = \"denials\"\n", "make test", true).unwrap();
    assert!(preset.starts_with("The preset denials of your policy does not allow it. "), "{preset}");
    let ask =
        "[[rule]]\nname = \"own\"\ndecision = \"ask\"\ncommand = [\"make\", \"...\"]\nreason = \"I look first.\"\n";
    assert_eq!(why(ask, "make test", true).unwrap(), "I look first (rule own)");
    assert!(why("nonsense = true", "make test", true).unwrap().contains("not in force"));
    let allow = "[[rule]]\nname = \"own\"\ndecision = \"allow\"\ncommand = [\"make\", \"test\"]\n";
    let unserved = why(allow, "make test", false).unwrap();
    assert!(unserved.contains("(own)") && unserved.contains("`capture serve`"), "{unserved}");
    assert_eq!(why(allow, "make all", false), None);
    assert!(why("nonsense = true", "make test", false).unwrap().contains("not in force"));
}

#[test]
fn policy_explain_agrees_with_the_decision_for_a_command() {
    let house = House::new();
    let root = house.dir.path().canonicalize().unwrap();
    let facts = OnDisk::new(vec!["/usr/bin".into()], [root.join("config")], Some(root.join("home")));
    for rules in [
        "",
        "preset = \"ask-everything\"\n",
        "preset = \"read-only\"\n",
        "[[rule]]\nname = \"own\"\ndecision = \"ask\"\ncommand = [\"ls\"]\n",
        "[[rule]]\nname = \"own\"\ndecision = \"deny\"\ncommand = [\"ls\"]\n",
    ] {
        let file = root.join("config/policy.toml");
        fs::write(&file, format!("version = 1\n{rules}")).unwrap();
        let (in_process, _) = InProcess::new(&file, &root.join("work"), Arc::new(facts.clone()));
        for command in ["ls", "cat src/main.rs", "cat .env", "touch a"] {
            let mut asked = house.asked(SessionMode::Ask, CallClass::Command, ".");
            asked.call.arguments = Object::new().with("command", command);
            let request = in_process.request(&asked, RequestKind::Command);
            let explained = explain_command(&in_process.loaded().policy, &request, &facts).decision.verdict;
            let decided = in_process.decide(&asked).map(|decision| decision.verdict);
            match decided {
                Some(CallVerdict::Allow) => assert_eq!(explained, Verdict::Allow, "{rules} {command}"),
                Some(_) => assert_eq!(explained, Verdict::Deny, "{rules} {command}"),
                // Commands allowed by a preset of the user are left to the server, which applies it.
                None if rules.contains("read-only") => {}
                None => assert_eq!(explained, Verdict::Ask, "{rules} {command}"),
            }
        }
    }
}
