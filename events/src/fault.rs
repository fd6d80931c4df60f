//! Errors in values written by people or programs, in plain words. serde's messages contain the names of this program's
//! types, which users do not know.

/// The notation of the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    /// JSON, written by a program.
    Json,
    /// TOML, written by a person: a configuration or a file of rules.
    Toml,
}

impl Notation {
    const fn list(self) -> &'static str {
        match self {
            Self::Json => "an array",
            Self::Toml => "a list",
        }
    }

    const fn table(self) -> &'static str {
        match self {
            Self::Json => "an object",
            Self::Toml => "a table",
        }
    }

    const fn field(self) -> &'static str {
        match self {
            Self::Json => "field",
            Self::Toml => "setting",
        }
    }
}

/// Translates a message of serde.
#[must_use]
pub fn in_words(message: &str, notation: Notation) -> String {
    let wrong = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
    if let Some((got, expected)) = wrong.and_then(|wrong| wrong.split_once(", expected ")) {
        let expected = match expected {
            "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or more",
            "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
            "f32" | "f64" => "a number",
            "a boolean" => "`true` or `false`",
            "a sequence" => notation.list(),
            "a map" => notation.table(),
            "a string" | "path string" | "string or table" => "a string",
            // Types of this program.
            other if other.starts_with("struct ") || other.starts_with("internally tagged enum ") => notation.table(),
            other => other,
        };
        let got = match got {
            "map" => notation.table(),
            "sequence" => notation.list(),
            // `string "abc"`, or a word with the value in backquotes: only the value is kept.
            got => {
                got.split_once(' ').filter(|(_, value)| value.starts_with(['"', '`'])).map_or(got, |(_, value)| value)
            }
        };
        return format!("expected {expected}, got {got}");
    }
    // A list in place of a table; serde would assign its elements to the fields in order.
    if message.starts_with("invalid length ") && message.contains("expected struct ") {
        return format!("expected {}, got {}", notation.table(), notation.list());
    }
    if let Some(rest) = message.strip_prefix("unknown field ") {
        return format!("unknown {} {rest}", notation.field());
    }
    if let Some(rest) = message.strip_prefix("unknown variant ") {
        return format!("unknown value {rest}");
    }
    match message.strip_prefix("missing field ") {
        Some(name) => format!("{name} is missing"),
        None if message == "wanted string or table" => "expected a string".to_owned(),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serde_errors_are_worded_in_the_terms_of_json_or_toml() {
        for (message, json, toml) in [
            ("invalid type: integer `1`, expected a boolean", "expected `true` or `false`, got `1`", ""),
            ("invalid value: integer `-1`, expected u16", "expected a whole number, 0 or more, got `-1`", ""),
            (
                "invalid type: map, expected a sequence",
                "expected an array, got an object",
                "expected a list, got a table",
            ),
            (
                "invalid type: string \"x\", expected struct Quiet",
                "expected an object, got \"x\"",
                "expected a table, got \"x\"",
            ),
            (
                "unknown field `x`, expected `a` or `b`",
                "unknown field `x`, expected `a` or `b`",
                "unknown setting `x`, expected `a` or `b`",
            ),
            ("unknown variant `x`, expected `a`", "unknown value `x`, expected `a`", ""),
            (
                "invalid length 0, expected struct Body with 3 elements",
                "expected an object, got an array",
                "expected a table, got a list",
            ),
            ("missing field `name`", "`name` is missing", ""),
            ("anything else", "anything else", ""),
        ] {
            assert_eq!(in_words(message, Notation::Json), json);
            assert_eq!(in_words(message, Notation::Toml), if toml.is_empty() { json } else { toml });
        }
    }
}
