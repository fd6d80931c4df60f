//! Describes the errors in a JSON body in plain words.

use events::fault::{Notation, in_words};
use serde_json::{Error, error::Category};

/// Describes the error in JSON from a client and its position, without the parser's wording.
#[must_use]
pub fn fault(error: &Error) -> String {
    let place =
        if error.line() == 0 { String::new() } else { format!(" (line {}, column {})", error.line(), error.column()) };
    match error.classify() {
        Category::Eof if error.column() == 0 => "it is empty".to_owned(),
        Category::Eof => format!("the JSON ends too early{place}"),
        Category::Syntax | Category::Io => format!("it is not valid JSON{place}"),
        Category::Data => {
            let text = error.to_string();
            // The position follows at the end, and is useless if something is missing.
            let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
            let words = in_words(what, Notation::Json);
            if what.starts_with("missing field ") { words } else { words + &place }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::fault;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read")]
    struct CaptureSwitch {
        enabled: bool,
        columns: Option<u16>,
        keys: Option<Vec<String>>,
    }

    #[test]
    fn body_errors_are_explained_in_json_terms() {
        for (body, why) in [
            ("", "it is empty"),
            ("{", "the JSON ends too early (line 1, column 1)"),
            ("{]", "it is not valid JSON (line 1, column 2)"),
            ("{}", "`enabled` is missing"),
            ("[]", "expected an object, got an array (line 1, column 2)"),
            ("7", "expected an object, got `7` (line 1, column 1)"),
            (r#"{"enabled":1}"#, "expected `true` or `false`, got `1` (line 1, column 12)"),
            (r#"{"enabled":"no"}"#, "expected `true` or `false`, got \"no\" (line 1, column 15)"),
            (r#"{"enabled":null}"#, "expected `true` or `false`, got null (line 1, column 15)"),
            (r#"{"columns":-1}"#, "expected a whole number, 0 or more, got `-1` (line 1, column 13)"),
            (r#"{"keys":{}}"#, "expected an array, got an object (line 1, column 8)"),
            (r#"{"on":true}"#, "unknown field `on`, expected one of `enabled`, `columns`, `keys` (line 1, column 5)"),
        ] {
            assert_eq!(fault(&serde_json::from_str::<CaptureSwitch>(body).unwrap_err()), why, "{body}");
        }
    }
}
