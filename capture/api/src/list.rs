//! The parameters shared by all lists.

use std::{borrow::Cow, fmt, marker::PhantomData, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Maximum number of items on a page.
pub const MAX_LIMIT: usize = 1_000;

/// The number of items on a page: at least 1; values above [`MAX_LIMIT`] mean [`MAX_LIMIT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "usize")]
pub struct Limit(usize);

impl TryFrom<usize> for Limit {
    type Error = &'static str;

    fn try_from(limit: usize) -> Result<Self, Self::Error> {
        if limit == 0 { Err("must be at least 1") } else { Ok(Self(limit.min(MAX_LIMIT))) }
    }
}

impl Limit {
    /// A limit; 0 means 1.
    #[must_use]
    pub fn of(limit: usize) -> Self {
        Self(limit.clamp(1, MAX_LIMIT))
    }

    /// The number of items.
    #[must_use]
    pub const fn get(self) -> usize {
        self.0
    }
}

impl JsonSchema for Limit {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Limit".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1 })
    }
}

/// Several values in one query parameter, separated by commas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommaList<T>(pub Vec<T>);

impl<T> Default for CommaList<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> CommaList<T> {
    /// Whether there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> From<Vec<T>> for CommaList<T> {
    fn from(values: Vec<T>) -> Self {
        Self(values)
    }
}

impl<T: fmt::Display> Serialize for CommaList<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let values: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        serializer.serialize_str(&values.join(","))
    }
}

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for CommaList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Values<T>(PhantomData<T>);
        impl<T: FromStr<Err: fmt::Display>> de::Visitor<'_> for Values<T> {
            type Value = CommaList<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("values separated by commas")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                let values = text.split(',').map(|value| value.trim().parse().map_err(E::custom));
                values.collect::<Result<_, _>>().map(CommaList)
            }
        }
        deserializer.deserialize_str(Values(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for CommaList<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("CommaList_of_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let items = generator.subschema_for::<T>();
        json_schema!({ "type": "array", "items": items })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct ListParameters {
        #[serde(default, skip_serializing_if = "CommaList::is_empty")]
        n: CommaList<u8>,
        limit: Option<Limit>,
    }

    #[test]
    fn comma_separated_values_are_parsed_and_serialized() {
        let query: ListParameters = serde_urlencoded::from_str("n=1,+2,3&limit=7").unwrap();
        assert_eq!(query, ListParameters { n: CommaList(vec![1, 2, 3]), limit: Some(Limit(7)) });
        assert_eq!(serde_urlencoded::to_string(&query).unwrap(), "n=1%2C2%2C3&limit=7");
        assert!(serde_urlencoded::from_str::<ListParameters>("n=1,x").is_err());
    }

    #[test]
    fn a_limit_is_capped_and_zero_is_refused() {
        assert_eq!(Limit::try_from(MAX_LIMIT + 1), Ok(Limit(MAX_LIMIT)));
        assert!(serde_urlencoded::from_str::<ListParameters>("limit=0").is_err());
    }
}
