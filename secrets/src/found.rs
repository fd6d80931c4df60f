//! Found secrets: their kind and position.

use std::{ops::Range, sync::Arc};

/// The kind of a secret: `github-pat`, `password`, `private-key`.
pub type SecretKind = Arc<str>;

/// A secret that was found: its kind and its byte range in the original text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSecret {
    /// Its kind.
    pub kind: SecretKind,
    /// Its byte range.
    pub range: Range<usize>,
}

/// A secret in the examined bytes.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) kind: SecretKind,
}
