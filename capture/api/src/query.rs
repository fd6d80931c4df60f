//! Encodes and decodes query strings.

use std::{borrow::Cow, collections::HashSet};

use serde::{Serialize, de::DeserializeOwned};

/// An invalid query parameter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {reason}")]
pub struct BadParameter {
    /// The name of the parameter.
    pub name: String,
    /// Why it is invalid.
    pub reason: String,
}

/// Parses a query string. Unknown parameters and empty values are ignored; if a name occurs several times, the first
/// value counts.
///
/// # Errors
/// If a parameter is invalid or a required one is missing.
pub fn read<T: DeserializeOwned>(query: Option<&str>) -> Result<T, BadParameter> {
    let given = query.unwrap_or_default();
    if given.is_empty() {
        // Most requests have no query.
        return deserialize("");
    }
    let mut names: HashSet<Cow<'_, str>> = HashSet::new();
    let pairs: Vec<(Cow<'_, str>, Cow<'_, str>)> =
        parse(given).filter(|(name, value)| !value.is_empty() && names.insert(name.clone())).collect();
    let text = serde_urlencoded::to_string(pairs)
        .map_err(|error| BadParameter { name: "query".into(), reason: error.to_string() })?;
    deserialize(&text)
}

fn deserialize<T: DeserializeOwned>(text: &str) -> Result<T, BadParameter> {
    let deserializer = serde_urlencoded::Deserializer::new(parse(text));
    serde_path_to_error::deserialize(deserializer).map_err(|error| {
        let path = error.path().to_string();
        let reason = error.into_inner().to_string();
        match missing(&reason) {
            Some(name) => BadParameter { name, reason: "is required".into() },
            None => BadParameter { name: if path == "." { "query".into() } else { path }, reason: in_words(&reason) },
        }
    })
}

fn parse(text: &str) -> form_urlencoded::Parse<'_> {
    form_urlencoded::parse(text.as_bytes())
}

/// Serde's message in terms a client understands.
fn in_words(reason: &str) -> String {
    match reason {
        "invalid digit found in string" => "expected a whole number, 0 or more".to_owned(),
        "number too large to fit in target type" => "the number is too large".to_owned(),
        "provided string was not `true` or `false`" => "expected `true` or `false`".to_owned(),
        other => match other.strip_prefix("unknown variant ") {
            Some(rest) => format!("unknown value {rest}"),
            None => other.to_owned(),
        },
    }
}

/// The field that serde reports as missing.
fn missing(reason: &str) -> Option<String> {
    Some(reason.strip_prefix("missing field `")?.strip_suffix('`')?.to_owned())
}

/// Writes a query string with its `?`; empty if there are no parameters.
#[must_use]
pub fn write(query: &impl Serialize) -> String {
    match serde_urlencoded::to_string(query) {
        Ok(text) if !text.is_empty() => format!("?{text}"),
        Ok(_) | Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::list::Limit;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Parameters {
        needed: u8,
        limit: Option<Limit>,
        text: Option<String>,
    }

    #[test]
    fn the_first_nonempty_value_of_a_parameter_wins() {
        let query: Parameters = read(Some("needed=&needed=1&needed=2&other=x&text=a%20b%26")).unwrap();
        assert_eq!(query, Parameters { needed: 1, limit: None, text: Some("a b&".into()) });
        assert_eq!(read::<Parameters>(Some(&write(&query)[1..])), Ok(query));
    }

    #[test]
    fn errors_name_the_parameter() {
        let error = |query| read::<Parameters>(Some(query)).unwrap_err().to_string();
        assert_eq!(error("needed=1&limit=0"), "limit: must be at least 1");
        assert_eq!(error("needed=x"), "needed: expected a whole number, 0 or more");
        assert_eq!(error("limit=1"), "needed: is required");
    }
}
