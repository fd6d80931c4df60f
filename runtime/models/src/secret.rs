//! A key that shows itself to nobody.

use std::fmt;

use zeroize::Zeroizing;

/// A key. Neither `Debug` nor `Display` shows it, and its memory is overwritten when it is dropped.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes a key; blanks around it, as files end with one, are not part of it.
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

    /// A text with every occurrence of the key replaced: vendors repeat keys in their errors.
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
