//! Claude Code: transcripts, live registry, helpers' metadata. Written against 2.1.328; older
//! lines are understood as far as they were seen.
//!
//! [`transcript`] reads `projects/<folder>/<session>.jsonl` and the sub-agents' files,
//! [`registry`] the live registry `sessions/<pid>.json`, [`meta`] the sub-agents' `.meta.json`.

pub mod meta;
pub mod record;
pub mod registry;
pub mod transcript;
mod words;

use std::path::{Component, Path};

/// What a file below Claude's configuration directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// `projects/<folder>/<session>.jsonl`
    Transcript,
    /// `projects/<folder>/<session>/subagents/agent-<id>.jsonl`, also deeper (`subagents/workflows/<id>/…`), and in 2.0.x
    /// `projects/<folder>/agent-<id>.jsonl`
    Subagent,
    /// `projects/<folder>/<session>/subagents/agent-<id>.meta.json`, also deeper
    SubagentMeta,
    /// `sessions/<pid>.json`
    Registry,
}

/// Says what a path relative to the configuration directory is; `None` for what is not read,
/// the peer tokens (`sessions/*.key`) above all.
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

/// Whether a sub-agent's file is that of the agent's own machinery: it repeats the session to sum it up or to go on with
/// it, and nobody asked for it.
fn is_machinery(file: &str) -> bool {
    ["agent-acompact-", "agent-aprompt_suggestion-", "agent-aside_question-"].iter().any(|name| file.starts_with(name))
}

/// The session below which the file of a sub-agent stands.
fn parent_of(path: &str) -> Option<&str> {
    let mut parts = path.rsplit('/').take(6).skip_while(|part| *part != "subagents");
    parts.nth(1)
}

#[cfg(test)]
mod tests;
