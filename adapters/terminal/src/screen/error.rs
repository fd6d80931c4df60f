//! The error type for screen rules.

use std::{io, path::PathBuf};

/// Why screen rules cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RuleError {
    /// A file cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file contains something that is not a valid rule.
    #[error("{file}:{line}:{column}: {what}")]
    Wrong {
        /// The file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What is wrong.
        what: String,
    },
}
