//! A key that is never displayed.

use std::fmt;

use zeroize::Zeroizing;

/// A key. Neither `Debug` nor `Display` shows it, and its memory is overwritten when it is dropped.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// A key without surrounding whitespace, such as the newline at the end of a file.
    #[must_use]
    pub fn new(text: String) -> Self {
        let text = Zeroizing::new(text);
        Self(Zeroizing::new(text.trim().to_owned()))
    }

    /// The key, for the header of a request.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Replaces every occurrence of the key in a text: vendors repeat keys in their errors.
    #[must_use]
    pub fn hide_in(&self, text: &str) -> String {
        if self.0.is_empty() { text.to_owned() } else { text.replace(self.expose(), "[key]") }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
