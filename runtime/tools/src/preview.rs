//! What a call would do to files as they are now, for whoever decides about it.

/// What [`Tools::run`](crate::Tools::run) would do now. Making a preview changes and records nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Preview {
    /// A file would have another content: the change as a unified diff. Secrets are masked; control and invisible
    /// characters are in it as they would be written.
    WouldChange(String),
    /// The call would succeed and leave the disk as it is: the text of its result.
    NoChange(String),
    /// The call would fail and leave the disk as it is: the text of its result.
    Refused(String),
}

impl Preview {
    /// Whether the disk would stay as it is.
    #[must_use]
    pub const fn is_without_effect(&self) -> bool {
        match self {
            Self::WouldChange(_) => false,
            Self::NoChange(_) | Self::Refused(_) => true,
        }
    }
}
