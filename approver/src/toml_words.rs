//! Errors in TOML files written by people, in plain words: the position, and what was expected.

use events::fault::{Notation, in_words};

/// The position and the reason of an error of the TOML reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TomlFault {
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted from 1, in characters.
    pub column: usize,
    /// The error message.
    pub message: String,
}

impl TomlFault {
    /// Explains an error that occurred while this text was read.
    #[must_use]
    pub fn of(text: &str, error: &toml::de::Error) -> Self {
        let at = error.span().map_or(0, |span| span.start);
        let message =
            without_value(text, at).unwrap_or_else(|| in_words(&error.message().replace('\n', " "), Notation::Toml));
        Self::at(text, at, message)
    }

    /// A fault at a byte offset in the text.
    #[must_use]
    pub fn at(text: &str, at: usize, message: String) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Self { line, column, message }
    }
}

/// Explains an error after `key = ` with nothing following on the line.
fn without_value(text: &str, at: usize) -> Option<String> {
    let (before, after) = (text.get(..at)?, text.get(at..)?);
    let line = before.rsplit('\n').next()?;
    let key = line.trim_end().strip_suffix('=')?.trim();
    let rest = after.lines().next().unwrap_or_default().trim();
    (!key.is_empty() && (rest.is_empty() || rest.starts_with('#'))).then(|| format!("`{key}` has no value"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, wanted: &str) {
        let error = toml::from_str::<toml::Table>(text).unwrap_err();
        let fault = TomlFault::of(text, &error);
        assert_eq!(format!("{}:{}: {}", fault.line, fault.column, fault.message), wanted, "{text}");
    }

    #[test]
    fn a_key_without_a_value_is_named() {
        check("a = 1\nx = \n", "2:5: `x` has no value");
        check("x =", "1:4: `x` has no value");
        check("x = # later\n", "1:5: `x` has no value");
    }
}
