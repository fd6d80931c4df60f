//! The changes a call would make to files in their current state, for the approver.

/// The effect [`Tools::run`](crate::Tools::run) would have now. A preview changes and records nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Preview {
    /// The content of a file would change: the change as a unified diff. Secrets are masked; control and invisible
    /// characters are as they would be written.
    WouldChange(String),
    /// The call would succeed without changing the disk: the text of its result.
    NoChange(String),
    /// The call would fail without changing the disk: the text of its result.
    Refused(String),
}

impl Preview {
    /// Whether the disk would stay unchanged.
    #[must_use]
    pub const fn is_without_effect(&self) -> bool {
        match self {
            Self::WouldChange(_) => false,
            Self::NoChange(_) | Self::Refused(_) => true,
        }
    }
}
