//! Why rules of screens cannot be used.

use std::{io, path::PathBuf};

/// Why rules cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RuleError {
    /// A file cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file contains something that is not a valid rule.
    #[error("{file}:{line}:{column}: {what}")]
    Wrong {
        /// Which file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What is wrong.
        what: String,
    },
}
