//! The redactor: removes secrets from texts and bytes.

use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
};

use crate::{found::FoundSecret, rules::RulesError, scan, text};

/// A text without its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redacted<'a> {
    /// The text; borrowed if no secret was found.
    pub text: Cow<'a, str>,
    /// The found secrets, in the order of the text, without overlaps.
    pub found: Vec<FoundSecret>,
}

/// Bytes without their secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedactedBytes<'a> {
    /// The bytes; borrowed if no secret was found.
    pub bytes: Cow<'a, [u8]>,
    /// The found secrets, in the order of the bytes, without overlaps.
    pub found: Vec<FoundSecret>,
}

/// The rules, ready for use. Clones share the same rules.
///
/// Creating a redactor parses the rules; the expression of each rule is compiled at its first use.
#[derive(Debug, Clone)]
pub struct Redactor {
    scanner: Arc<scan::Scanner>,
}

/// The shared redactor of the process, created at its first use; `None` if its rules cannot be read.
#[must_use]
pub fn shared() -> Option<&'static Redactor> {
    static SHARED: OnceLock<Option<Redactor>> = OnceLock::new();
    SHARED.get_or_init(|| Redactor::new().ok()).as_ref()
}

/// Whether bytes contain something that looks like a secret. If the rules cannot be read, this is always true.
#[must_use]
pub fn holds_secret(bytes: &[u8]) -> bool {
    shared().is_none_or(|redactor| !redactor.redact_bytes(bytes).found.is_empty())
}

impl Redactor {
    /// Creates a redactor with the built-in rules.
    ///
    /// # Errors
    /// If the built-in rules cannot be read, which the tests of this crate exclude.
    pub fn new() -> Result<Self, RulesError> {
        Ok(Self { scanner: Arc::new(scan::Scanner::new()?) })
    }

    /// Replaces each secret by `[redacted:KIND]`. The rest is unchanged, and redacting twice has the same result as
    /// once.
    #[must_use]
    pub fn redact<'a>(&self, text: &'a str) -> Redacted<'a> {
        let found = self.scanner.find(text.as_bytes());
        if found.is_empty() {
            return Redacted { text: Cow::Borrowed(text), found };
        }
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        for one in &found {
            out.push_str(text.get(at..one.range.start).unwrap_or_default());
            text::push_mark(&mut out, &one.kind);
            at = one.range.end;
        }
        out.push_str(text.get(at..).unwrap_or_default());
        Redacted { text: Cow::Owned(out), found }
    }

    /// Like [`redact`](Self::redact), for bytes that need not be UTF-8. All other bytes are unchanged.
    #[must_use]
    pub fn redact_bytes<'a>(&self, bytes: &'a [u8]) -> RedactedBytes<'a> {
        let found = self.scanner.find(bytes);
        if found.is_empty() {
            return RedactedBytes { bytes: Cow::Borrowed(bytes), found };
        }
        RedactedBytes { bytes: Cow::Owned(text::replaced(bytes, &found)), found }
    }
}
