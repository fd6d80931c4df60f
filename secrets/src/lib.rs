//! Redacts secrets from text before it is shown, summarised, sent or written anywhere but the store.
//!
//! [`Redactor`] finds secrets and replaces them by `[redacted:KIND]`. There are two kinds of detectors. `rules` are
//! Betterleaks' rules (data, `rules/PROVENANCE.md`) for keys with a vendor's own form. The other modules recognize
//! surroundings: names of settings (`names`, `assigned`), addresses (`address`), headers (`header`), commands and their
//! output (`command`, `printed`), calls in code (`call`), rows (`inserted`, `table`) and keys in blocks (`block`).
//! Encoded text is also searched in its decoded form: escapes (`unescaped`), base64 (`encoded`). `value` distinguishes
//! secrets from text that only looks like one.
//!
//! All detectors work on bytes, so text that is not UTF-8 is redacted too. The crate does no I/O, reads no clock and
//! stores no text. A result contains kind and position, never the secret. Redaction is not complete: a secret without a
//! known form and without a name that suggests it is not found.

mod address;
mod assigned;
mod block;
mod call;
mod command;
mod encoded;
mod found;
mod header;
mod inserted;
mod json;
mod names;
mod printed;
mod redactor;
mod rules;
mod scan;
mod stream;
mod table;
mod text;
mod triggers;
mod unescaped;
mod value;

pub use found::{FoundSecret, SecretKind};
pub use redactor::{Redacted, RedactedBytes, Redactor, holds_secret, shared};
pub use rules::RulesError;
pub use stream::RedactingStream;

#[cfg(test)]
mod tests;
