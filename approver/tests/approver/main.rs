//! Tests the approver from outside: lists of command lines, properties, and comparisons with bash and git.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod bash;
mod develop;
mod git;
mod lists;
mod properties;

use std::collections::BTreeMap;

use approver::{PermissionRequest, RequestKind, Shell, StubFacts};
use events::Provider;

pub(crate) const WORKSPACE: &str = "/home/dev/w";

/// A request for a command line in the workspace.
pub(crate) fn request(command: &str) -> PermissionRequest {
    PermissionRequest {
        agent: Provider::Codex,
        kind: RequestKind::Command,
        tool: Some("Bash".into()),
        command: Some(command.into()),
        cwd: WORKSPACE.into(),
        cwd_is_certain: true,
        workspace: WORKSPACE.into(),
        paths: Vec::new(),
        url: None,
        labels: BTreeMap::new(),
        glob: None,
        takes_rewrite: true,
        shell: Shell::Unknown,
    }
}

/// A machine that has every program of the lists, so that none is refused because its program is missing.
pub(crate) fn facts() -> StubFacts {
    let mut names: Vec<&str> = include_str!("../../../fixtures/approver/bypass.jsonl")
        .split(|c: char| !(c.is_ascii_alphanumeric() || "_.+-".contains(c)))
        .chain(
            include_str!("../../../fixtures/approver/benign.jsonl")
                .split(|c: char| !(c.is_ascii_alphanumeric() || "_.+-".contains(c))),
        )
        .filter(|word| !word.is_empty())
        .collect();
    names.extend([
        "env", "bash", "sh", "zsh", "timeout", "nice", "xargs", "rm", "cp", "mv", "mkdir", "touch", "tee", "sed",
    ]);
    StubFacts::usual(&names)
        .with_file(
            "/home/dev/w/.git/config",
            "[core]\n\tfilemode = true\n[remote \"origin\"]\n\turl = https://x.test/a.git\n",
        )
        .with_file("/home/dev/w/README.md", "hello\n")
        .with_file("/home/dev/w/Cargo.toml", "[package]\n")
        .with_file("/home/dev/w/src/main.rs", "fn main() {}\n")
        .with_file("/home/dev/w/evilrepo/.git/config", "[core]\n\tfsmonitor = touch pwned\n")
        .with_link("/home/dev/w/link-out", "/etc")
        .with_link("/home/dev/w/link-env", "/home/dev/w/.env")
}
