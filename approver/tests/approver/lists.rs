//! The collected lists: no dangerous line is allowed, and few harmless lines are left to the user.

use approver::{Facts, Policy, Preset, StubFacts, Verdict};
use serde::Deserialize;

use super::{facts, request};

#[derive(Deserialize)]
pub(crate) struct Listed {
    pub(crate) id: String,
    pub(crate) cls: String,
    pub(crate) cmd: String,
}

pub(crate) fn bypass() -> Vec<Listed> {
    lines(include_str!("../../../fixtures/approver/bypass.jsonl"))
}

pub(crate) fn benign() -> Vec<Listed> {
    lines(include_str!("../../../fixtures/approver/benign.jsonl"))
}

fn lines(text: &str) -> Vec<Listed> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn verdict(command: &str, facts: &dyn Facts) -> Verdict {
    Policy::preset(Preset::WorkspaceEdits).decide(&request(command), facts).verdict
}

/// The command as the argument of `bash -lc`.
pub(crate) fn wrapped(command: &str) -> String {
    shlex::try_join(["bash", "-lc", command]).unwrap_or_else(|_| command.to_owned())
}

/// Facts with the files that dangerous lines target: secrets, and files that select programs.
pub(crate) fn with_secrets() -> StubFacts {
    let files = [
        ".env",
        "config/server.pem",
        ".azure/accessTokens.json",
        ".docker/config.json",
        ".mcp-auth/tokens.json",
        ".git/config.worktree",
        "rust-toolchain.toml",
        "package.json",
    ];
    files.iter().fold(facts(), |facts, file| facts.with_file(&format!("/home/dev/w/{file}"), "KEY=x"))
}

#[test]
fn nothing_dangerous_is_allowed_however_it_is_wrapped() {
    let facts = with_secrets();
    let mut allowed = Vec::new();
    for Listed { id, cmd, cls } in bypass() {
        for text in [
            cmd.clone(),
            wrapped(&cmd),
            shlex::try_join(["/bin/zsh", "-c", &cmd]).unwrap_or_default(),
            format!("bash <<'EOF'\n{cmd}\nEOF"),
            format!("ls && {cmd}"),
            format!("{cmd} && ls"),
            format!("{cmd} | cat"),
            format!("cat README.md | {cmd}"),
            format!("ls; {cmd}; ls"),
            format!("cd src && {cmd}"),
            format!("{cmd} 2>/dev/null || true"),
        ] {
            if !text.is_empty() && verdict(&text, &facts) == Verdict::Allow {
                allowed.push(format!("{id} {cls} {text:?}"));
            }
        }
    }
    assert!(allowed.is_empty(), "{} allowed:\n{}", allowed.len(), allowed.join("\n"));
}

#[test]
fn few_benign_commands_need_approval() {
    for (form, wrap) in [("plain", false), ("bash -lc", true)] {
        for (source, most) in [("public", 0), ("own", 4)] {
            let mut asked = Vec::new();
            let all: Vec<Listed> = benign().into_iter().filter(|listed| listed.cls == source).collect();
            for Listed { id, cmd, .. } in &all {
                let text = if wrap { wrapped(cmd) } else { cmd.clone() };
                let decision = Policy::preset(Preset::ReadOnly).decide(&request(&text), &facts());
                assert_ne!(decision.verdict, Verdict::Deny, "{id}");
                if decision.verdict == Verdict::Ask {
                    asked.push(format!("{id} {cmd:?}: {}", decision.reason));
                }
            }
            println!("{source}, {form}: {} of {} asked\n{}", asked.len(), all.len(), asked.join("\n"));
            assert!(asked.len() <= most, "{source}, {form}: {} of {}\n{}", asked.len(), all.len(), asked.join("\n"));
        }
    }
}
