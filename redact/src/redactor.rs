//! The redactor: texts and bytes without their secrets.

use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
};

use crate::{found::FoundSecret, rules::RulesError, scan, text};

/// A text without its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redacted<'a> {
    /// The text: borrowed when nothing was found.
    pub text: Cow<'a, str>,
    /// What was found, in the order of the text; no two overlap.
    pub found: Vec<FoundSecret>,
}

/// Bytes without their secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedactedBytes<'a> {
    /// The bytes: borrowed when nothing was found.
    pub bytes: Cow<'a, [u8]>,
    /// What was found, in the order of the bytes; no two overlap.
    pub found: Vec<FoundSecret>,
}

/// The rules, ready to be used. A clone is a handle on the same ones.
///
/// Making one parses the rules; the expression of each is compiled when it is needed first.
#[derive(Debug, Clone)]
pub struct Redactor {
    scanner: Arc<scan::Scanner>,
}

/// The one redactor of the process, made when it is needed first; `None` when its rules cannot be read.
#[must_use]
pub fn shared() -> Option<&'static Redactor> {
    static SHARED: OnceLock<Option<Redactor>> = OnceLock::new();
    SHARED.get_or_init(|| Redactor::new().ok()).as_ref()
}

/// Whether bytes hold what looks like a secret. Without the rules everything does.
#[must_use]
pub fn holds_secret(bytes: &[u8]) -> bool {
    shared().is_none_or(|redactor| !redactor.redact_bytes(bytes).found.is_empty())
}

impl Redactor {
    /// Makes a redactor with the built-in rules.
    ///
    /// # Errors
    ///
    /// When the built-in rules cannot be read, which the tests of this crate exclude.
    pub fn new() -> Result<Self, RulesError> {
        Ok(Self { scanner: Arc::new(scan::Scanner::new()?) })
    }

    /// Puts `[redacted:KIND]` in the place of each secret. The rest is unchanged; done twice it is as done once.
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

    /// As [`redact`](Self::redact), for bytes that need not be UTF-8. What is not a secret comes out byte for byte.
    #[must_use]
    pub fn redact_bytes<'a>(&self, bytes: &'a [u8]) -> RedactedBytes<'a> {
        let found = self.scanner.find(bytes);
        if found.is_empty() {
            return RedactedBytes { bytes: Cow::Borrowed(bytes), found };
        }
        RedactedBytes { bytes: Cow::Owned(text::replaced(bytes, &found)), found }
    }
}
