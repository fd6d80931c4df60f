//! The key that detaches a terminal, as an argument.

use std::str::FromStr;

use terminal::host::keys::DetachKey;

/// A detach key as the user types it.
#[derive(Debug, Clone, Copy)]
pub(super) struct DetachKeyArgument(pub(super) DetachKey);

impl FromStr for DetachKeyArgument {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self)
    }
}
