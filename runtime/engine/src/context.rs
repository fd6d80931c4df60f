//! The session context: what a model has to know that is not the same in every session.
//!
//! It stands in a message, never in the system prompt, so that every session of one version of the program shares the
//! prefix of its requests. It is written at the beginning of a turn, when the date, the model or the mode is another
//! one than the last time. That what is said of the files may be a day old is intended: a prefix is never changed.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use session_tree::{Json, NewEntry};

use crate::entries::{CONTEXT_TYPE, to_json};

/// What the session context says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFacts {
    /// The date where the person is, as `2026-11-23`.
    pub date: String,
    /// The working directory.
    pub cwd: String,
    /// The operating system.
    pub system: String,
    /// How commands are kept from doing harm, in a sentence.
    pub sandbox: String,
    /// Which calls are done unasked, which need an answer and which are denied, in a sentence.
    pub permission: String,
    /// Instructions that apply here, the most general first. Within the limit of size, and without secrets, already.
    pub instructions: Vec<InstructionFile>,
}

/// A file with instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionFile {
    /// Whose instructions they are.
    pub origin: InstructionOrigin,
    /// Its path.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// Whose instructions a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionOrigin {
    /// The user's own, for every repository.
    User,
    /// Those of the repository.
    Repository,
}

/// When the context was written, and for what: the `details` of its entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ContextKey {
    pub(crate) date: String,
    pub(crate) model: String,
    /// What was said of permission, which differs between the modes of one session.
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
