//! The session context: facts the model needs that differ between sessions.
//!
//! It is sent in a message, never in the system prompt, so that all sessions of one version of the program share the
//! prefix of their requests. It is written at the start of a turn if the date, the model or the mode has changed since
//! the last time. The text of the files may therefore be a day old; this is intended, since a prefix is never changed.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use session_tree::{Json, NewEntry};

use crate::entries::{CONTEXT_TYPE, to_json};

/// The contents of the session context.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFacts {
    /// The user's local date, as `2026-11-23`.
    pub date: String,
    /// The working directory.
    pub cwd: String,
    /// The operating system.
    pub system: String,
    /// How commands are sandboxed, in a sentence.
    pub sandbox: String,
    /// Which calls run without asking, which need an answer and which are denied, in a sentence.
    pub permission: String,
    /// Instructions that apply here, the most general first; already within the size limit and without secrets.
    pub instructions: Vec<InstructionFile>,
}

/// A file with instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionFile {
    /// The origin of the instructions.
    pub origin: InstructionOrigin,
    /// Its path.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// The origin of an instruction file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionOrigin {
    /// The user, for every repository.
    User,
    /// The repository.
    Repository,
}

/// The date, model and permissions for which the context was written: the `details` of its entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ContextKey {
    pub(crate) date: String,
    pub(crate) model: String,
    /// The sentence about permissions, which differs between the modes of a session.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) permission: String,
}

/// The entry with the context.
pub(crate) fn entry(facts: &SessionFacts, key: &ContextKey) -> NewEntry {
    NewEntry::CustomMessage {
        custom_type: CONTEXT_TYPE.to_owned(),
        content: Json::from(text(facts, &key.model)),
        display: false,
        details: Some(to_json(key)),
    }
}

fn text(facts: &SessionFacts, model: &str) -> String {
    let mut text = String::from("Session context, written by the program and not by the user.\n");
    for (name, value) in [
        ("Date", facts.date.as_str()),
        ("Working directory", &facts.cwd),
        ("System", &facts.system),
        ("Sandbox", &facts.sandbox),
        ("Permission", &facts.permission),
        ("Model", model),
    ] {
        if !value.is_empty() {
            let _ = writeln!(text, "{name}: {value}");
        }
    }
    for file in &facts.instructions {
        let whose = match file.origin {
            InstructionOrigin::User => "user",
            InstructionOrigin::Repository => "repository",
        };
        let _ = write!(text, "\nInstructions of the {whose} in {}:\n{}\n", file.path, file.text.trim_end());
    }
    text
}
