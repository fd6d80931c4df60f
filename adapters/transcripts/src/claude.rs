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
    /// `projects/<folder>/<session>/subagents/agent-<id>.jsonl`
    Subagent,
    /// `projects/<folder>/<session>/subagents/agent-<id>.meta.json`
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
        ["projects", _, file] if file.ends_with(".jsonl") => Some(FileKind::Transcript),
        ["projects", _, _, "subagents", file] if file.starts_with("agent-") && file.ends_with(".jsonl") => {
            Some(FileKind::Subagent)
        }
        ["projects", _, _, "subagents", file] if file.starts_with("agent-") && file.ends_with(".meta.json") => {
            Some(FileKind::SubagentMeta)
        }
        ["sessions", file] => {
            let pid = file.strip_suffix(".json")?;
            (!pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit())).then_some(FileKind::Registry)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
