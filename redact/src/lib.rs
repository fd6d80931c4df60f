//! Redacts secrets from text before it is shown, summarised, sent or written anywhere but the store.
//!
//! [`Redactor`] finds secrets and puts `[redacted:KIND]` in their places. Two sources know what a secret looks like:
//! `rules` are Betterleaks' (data, `rules/PROVENANCE.md`), for keys that a vendor gave a form of their own; the
//! other modules know the surroundings: names of settings (`names`, `assigned`), addresses (`address`), headers
//! (`header`), commands and what they print (`command`, `printed`), calls in code (`call`), rows (`inserted`, `table`), keys
//! in blocks (`block`). Text that was written otherwise is read as it was meant, too: escapes (`unescaped`), base64
//! (`encoded`). What only looks like a secret is `value`'s to tell.
//!
//! All work on bytes, so text that is not UTF-8 is redacted too. Nothing here does I/O or reads a clock, and no text is
//! kept. What is found says kind and place, never the secret. A redactor is not a proof: what has no known form and no
//! telling name beside it is not found.

mod address;
mod assigned;
mod block;
mod call;
mod command;
mod encoded;
mod header;
mod inserted;
mod json;
mod names;
mod printed;
mod rules;
mod scan;
mod stream;
mod table;
mod text;
mod triggers;
mod unescaped;
mod value;

use std::{
    borrow::Cow,
    ops::Range,
    sync::{Arc, OnceLock},
};

pub use rules::RulesError;
pub use stream::RedactingStream;

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

    /// Redacts every string of a value in place, and says how many secrets there were. The name a string stands under
    /// is its context: what is called `password` is one, whatever it looks like, unless it is plainly a placeholder.
    pub fn redact_json(&self, value: &mut serde_json::Value) -> usize {
        json::redact(self, None, value)
    }

    /// Begins to redact a text that comes in pieces.
    #[must_use]
    pub fn stream(&self) -> RedactingStream {
        RedactingStream::new(self.clone())
    }
}

#[cfg(test)]
mod tests;
