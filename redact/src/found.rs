//! What was found: a kind of secret and where it stands.

use std::{ops::Range, sync::Arc};

/// What a secret is: `github-pat`, `password`, `private-key`.
pub type SecretKind = Arc<str>;

/// A secret that was found: its kind and its byte range in the original text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSecret {
    /// Its kind.
    pub kind: SecretKind,
    /// Its byte range.
    pub range: Range<usize>,
}

/// A secret in the bytes that were looked at.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) kind: SecretKind,
}
