//! Claude Code: transcripts, live registry, sub-agents' metadata. Written against 2.1.328; lines of older versions are
//! supported where they were observed.
//!
//! [`transcript`] reads `projects/<folder>/<session>.jsonl` and the sub-agents' files,
//! [`registry`] the live registry `sessions/<pid>.json`, [`meta`] the sub-agents' `.meta.json`.

pub mod meta;
pub mod record;
pub mod registry;
pub mod transcript;
mod words;

use std::path::{Component, Path};

/// The kind of a file below Claude's configuration directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// `projects/<folder>/<session>.jsonl`
    Transcript,
    /// `projects/<folder>/<session>/subagents/agent-<id>.jsonl`, also deeper (`subagents/workflows/<id>/…`), and in 2.0.x
    /// `projects/<folder>/agent-<id>.jsonl`
    Subagent,
    /// `projects/<folder>/<session>/subagents/agent-<id>.meta.json`, also in subdirectories of `subagents`
    SubagentMeta,
    /// `sessions/<pid>.json`
    Registry,
}

/// Determines the kind of a path relative to the configuration directory; `None` for files that are not read, in
/// particular the peer tokens (`sessions/*.key`).
#[must_use]
pub fn recognize(relative: &Path) -> Option<FileKind> {
    let parts: Vec<&str> = relative
        .components()
        .map(|c| match c {
            Component::Normal(part) => part.to_str(),
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
        })
        .collect::<Option<_>>()?;
    match parts.as_slice() {
        ["projects", _, file] | ["projects", _, _, "subagents", .., file] if is_machinery(file) => None,
        ["projects", _, file] if file.ends_with(".jsonl") => {
            Some(if file.starts_with("agent-") { FileKind::Subagent } else { FileKind::Transcript })
        }
        ["projects", _, _, "subagents", .., file] if file.starts_with("agent-") && file.ends_with(".jsonl") => {
            Some(FileKind::Subagent)
        }
        ["projects", _, _, "subagents", .., file] if file.starts_with("agent-") && file.ends_with(".meta.json") => {
            Some(FileKind::SubagentMeta)
        }
        ["sessions", file] => {
            let pid = file.strip_suffix(".json")?;
            (!pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit())).then_some(FileKind::Registry)
        }
        _ => None,
    }
}

/// Whether a sub-agent's file belongs to Claude Code's own machinery: such a sub-agent repeats the session to summarize
/// or continue it, without a request from the user.
fn is_machinery(file: &str) -> bool {
    ["agent-acompact-", "agent-aprompt_suggestion-", "agent-aside_question-"].iter().any(|name| file.starts_with(name))
}

/// The session that a sub-agent's file is stored under.
fn parent_of(path: &str) -> Option<&str> {
    let mut parts = path.rsplit('/').take(6).skip_while(|part| *part != "subagents");
    parts.nth(1)
}

#[cfg(test)]
mod tests;
