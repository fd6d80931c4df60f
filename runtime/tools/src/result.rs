//! The result of a call.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::seen::SeenFile;

/// The result of a call: the content for the model, and the details for the session.
///
/// Secrets are already masked, control characters removed and lengths limited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// The content for the model. Never empty.
    pub content: Vec<Content>,
    /// Whether the call failed. A command that exited with a code other than 0 failed.
    pub is_error: bool,
    /// The details stored in the session.
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

/// Facts about a call other than its text.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Details {
    /// How the command ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// Files the call itself wrote. Changes made by a command are not known here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<PathBuf>,
    /// The full output if the result has only a part: a file in the directory for outputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputFile>,
    /// The id of a command that continues in the background.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<String>,
    /// The state of the file as the model has now seen it. Passed to [`Tools::restore`](crate::Tools::restore) after a
    /// restart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<SeenFile>,
    /// The change as a unified diff for the user. Secrets are masked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Notes for the user, in sentences: variables that a command may have missed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Whether the text is from an external source and may try to mislead a model: fetched pages, files outside the
    /// workspace.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
    /// Number of masked secrets.
    #[serde(skip_serializing_if = "is_zero")]
    pub masked: usize,
    /// Number of control, invisible and direction-changing characters removed.
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

/// A full output in a file. Secrets are masked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputFile {
    /// The file.
    pub path: PathBuf,
    /// Its size, in bytes; at most 64 MiB.
    pub bytes: u64,
    /// Total bytes printed, before masking.
    pub printed_bytes: u64,
    /// BLAKE3 of the file, 64 hexadecimal digits.
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
