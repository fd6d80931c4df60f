//! The notation of a value.

use crate::text::until;

pub(crate) const LONGEST_VALUE: usize = 8192;

/// The notation of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueForm {
    /// Between quotes.
    Quoted,
    /// Unquoted, in a place where values are not words of a program: an environment, the query of an address, a flag.
    Plain,
    /// Unquoted, in a place where it may be a word of a program.
    Bare,
}

/// Whether a quote, escaped or not, opens at `at`.
pub(crate) fn opens_quote(bytes: &[u8], at: usize) -> bool {
    let slashes = until(bytes, at, 8, |b| b != b'\\');
    matches!(bytes.get(slashes), Some(b'"' | b'\''))
}
