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
