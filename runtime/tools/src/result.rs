//! The result of a call.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::seen::SeenFile;

/// The result of a call: what the model gets, and what the session keeps beside it.
///
/// Secrets are masked, control characters removed and lengths limited already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// What the model gets. Never empty.
    pub content: Vec<Content>,
    /// Whether the call failed. A command that ran and exited with a code is a failure when the code is not 0.
    pub is_error: bool,
    /// What the session keeps.
    pub details: Details,
}

/// A part of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Text.
    Text(String),
    /// An image, at most 5 MiB.
    Image {
        /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
        media_type: &'static str,
        /// The file.
        bytes: Vec<u8>,
    },
}

/// What is known of a call beside its text.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Details {
    /// How the command ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// Files the call itself wrote. What a command changed is not known here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<PathBuf>,
    /// The whole output, when the result has only a part: a file in the directory for outputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputFile>,
    /// The id of the command that goes on in the background.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<String>,
    /// The state of the file the model has seen now. [`Tools::restore`](crate::Tools::restore) takes it after a restart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<SeenFile>,
    /// The change as a unified diff, for people. Secrets are masked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// What the person should know who watches, in sentences: variables that a command may have missed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Whether the text comes from outside and may be written to mislead a model: fetched pages, files outside the
    /// workspace.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
    /// Secrets that were masked.
    #[serde(skip_serializing_if = "is_zero")]
    pub masked: usize,
    /// Control, invisible and direction-changing characters that were removed.
    #[serde(skip_serializing_if = "is_zero")]
    pub removed: usize,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// It exceeded its time limit and was ended.
    TimedOut,
    /// It was cancelled.
    Cancelled,
}

/// A whole output in a file. Secrets are masked in it too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputFile {
    /// The file.
    pub path: PathBuf,
    /// Its size, bytes; at most 64 MiB.
    pub bytes: u64,
    /// What was printed in all, bytes, before masking.
    pub printed_bytes: u64,
    /// blake3 of the file, 64 hexadecimal digits.
    pub hash: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl ToolResult {
    pub(crate) fn text(text: String) -> Self {
        Self { content: vec![Content::Text(text)], is_error: false, details: Details::default() }
    }

    /// The result of a call that failed with this text.
    pub fn error(text: impl Into<String>) -> Self {
        Self { content: vec![Content::Text(text.into())], is_error: true, details: Details::default() }
    }

    /// All its text.
    #[must_use]
    pub fn joined_text(&self) -> String {
        let texts = self.content.iter().filter_map(|part| match part {
            Content::Text(text) => Some(text.as_str()),
            Content::Image { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}
