use std::fs;

use engine::{CallFacts, CallId, CallRun, RequestNumber};
use policy::OnDisk;
use session_tree::Object;
use tools::Preview;

use super::*;

/// A workspace, and a policy in force there.
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

    /// Whether a call that changes nothing is answered without a question.
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
fn only_plain_reads_of_the_workspace_need_nobody() {
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
    // A policy that would allow it leaves it to the person too: nobody else records it.
    let allows = "preset = \"workspace-edits\"";
    assert_eq!(house.decide(allows, SessionMode::Ask, CallClass::Edit, "src/main.rs"), "person");
    assert_eq!(house.decide(allows, SessionMode::Ask, CallClass::Command, "."), "person");
}

#[test]
fn commands_that_only_read_need_nobody_unless_a_preset_was_chosen() {
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
fn a_read_that_is_asked_about_says_why() {
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
    assert_eq!(why(rule, CallClass::Read, "src/main.rs").as_deref(), Some("I look first."));
    assert_eq!(why("", CallClass::Read, "src/main.rs"), None, "nobody has to decide it");
    assert_eq!(why("", CallClass::Edit, "src/main.rs"), None);
}

#[test]
fn git_runs_as_the_policy_writes_it() {
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
fn what_changes_nothing_is_answered_where_its_answer_may_be_read() {
    let house = House::new();
    let refused = || Some(Preview::Refused("changed".to_owned()));
    assert!(house.answers("", "src/main.rs", refused()));
    assert!(house.answers("", "src/main.rs", Some(Preview::NoChange("it has this content".to_owned()))));
    // The answer would tell what is in the file.
    for path in [".env", "../elsewhere.txt", "../config/policy.toml"] {
        assert!(!house.answers("", path, refused()), "{path}");
    }
    let rule = |decision: &str| format!("[[rule]]\nname = \"own\"\ndecision = \"{decision}\"\nkind = [\"read\"]\n");
    assert!(!house.answers(&rule("ask"), "src/main.rs", refused()));
    assert!(!house.answers(&rule("deny"), "src/main.rs", refused()));
    assert!(!house.answers("nonsense = true", "src/main.rs", refused()));
    // What would change something is never answered so.
    assert!(!house.answers("", "src/main.rs", Some(Preview::WouldChange("+x".to_owned()))));
    assert!(!house.answers("", "src/main.rs", None));
}

#[test]
fn a_mode_accepts_edits_that_decide_nothing_later() {
    let house = House::new();
    let decide = |kind, path| house.decide("", SessionMode::AcceptEdits, kind, path);
    assert_eq!(decide(CallClass::Edit, "src/main.rs"), "Allow by mode");
    assert_eq!(decide(CallClass::Write, "src/new.rs"), "Allow by mode");
    for path in [".env", ".git/hooks/pre-commit", ".git/config", "../elsewhere.txt", "../config/policy.toml"] {
        assert_eq!(decide(CallClass::Write, path), "person", "{path}");
    }
}

#[test]
fn rules_of_the_user_are_obeyed() {
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
fn without_the_intended_policy_a_person_decides() {
    let house = House::new();
    let (decided, refused) =
        house.decide_with("nonsense = true", SessionMode::AcceptEdits, CallClass::Read, "src/main.rs");
    assert_eq!(decided, "person");
    assert!(refused.unwrap().contains("nonsense"));
    let (decided, _) = house.decide_with("nonsense = true", SessionMode::AcceptEdits, CallClass::Edit, "src/main.rs");
    assert_eq!(decided, "person");
}
