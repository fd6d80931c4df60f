//! The notation of a value.

use crate::text::until;

pub(crate) const LONGEST_VALUE: usize = 8192;

/// The notation of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueForm {
    /// Between quotes.
    Quoted,
    /// Unquoted, in a place that is not source code: an environment, the query of an address, a flag.
    Plain,
    /// Unquoted, in a place that may be source code, so the value may be an identifier or an expression.
    Bare,
}

/// Whether a quote, escaped or not, opens at `at`.
pub(crate) fn opens_quote(bytes: &[u8], at: usize) -> bool {
    let slashes = until(bytes, at, 8, |b| b != b'\\');
    matches!(bytes.get(slashes), Some(b'"' | b'\''))
}
