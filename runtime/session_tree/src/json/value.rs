//! A JSON value that preserves the order of its keys.

use std::collections::HashMap;

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number.
    Number(serde_json::Number),
    /// A string.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// An object.
    Object(Object),
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}

impl From<bool> for Json {
    fn from(yes: bool) -> Self {
        Self::Bool(yes)
    }
}

impl From<i64> for Json {
    fn from(n: i64) -> Self {
        Self::Number(n.into())
    }
}

impl From<u64> for Json {
    fn from(n: u64) -> Self {
        Self::Number(n.into())
    }
}

impl From<Object> for Json {
    fn from(object: Object) -> Self {
        Self::Object(object)
    }
}

impl From<Vec<Json>> for Json {
    fn from(items: Vec<Json>) -> Self {
        Self::Array(items)
    }
}

/// A JSON object in the order of its keys. A duplicate key keeps its first position and its last value, as with
/// `JSON.parse`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Object(pub(super) Vec<(String, Json)>);

/// Number of keys above which duplicates are found with an index.
const MANY_KEYS: usize = 16;

impl Object {
    /// An object without keys.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Json> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v)
    }

    /// The value of a key, if it is a string.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Json::as_str)
    }

    /// Sets a value: in the key's position if it exists, otherwise at the end.
    pub fn set(&mut self, key: &str, value: impl Into<Json>) {
        let value = value.into();
        match self.0.iter_mut().find(|(k, _)| k == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }

    /// Sets a value if there is one; otherwise leaves the key unchanged.
    pub fn set_some(&mut self, key: &str, value: Option<impl Into<Json>>) {
        if let Some(value) = value {
            self.set(key, value);
        }
    }

    /// Returns the object with a value set, see [`Object::set`].
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Json>) -> Self {
        self.set(key, value);
        self
    }

    /// Returns the object with a value set, if there is one.
    #[must_use]
    pub fn with_some(mut self, key: &str, value: Option<impl Into<Json>>) -> Self {
        self.set_some(key, value);
        self
    }

    /// Removes a key.
    pub fn remove(&mut self, key: &str) -> Option<Json> {
        let at = self.0.iter().position(|(k, _)| k == key)?;
        Some(self.0.remove(at).1)
    }

    /// Keys and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v))
    }

    /// The number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(String, Json)> for Object {
    fn from_iter<I: IntoIterator<Item = (String, Json)>>(pairs: I) -> Self {
        let mut object = Self::new();
        let mut index: HashMap<String, usize> = HashMap::new();
        for (key, value) in pairs {
            if object.len() < MANY_KEYS {
                object.set(&key, value);
                continue;
            }
            if index.is_empty() {
                index = object.0.iter().enumerate().map(|(i, (k, _))| (k.clone(), i)).collect();
            }
            match index.get(&key) {
                Some(at) => object.0[*at].1 = value,
                None => {
                    index.insert(key.clone(), object.len());
                    object.0.push((key, value));
                }
            }
        }
        object
    }
}
