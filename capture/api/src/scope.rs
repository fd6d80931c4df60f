//! The scopes: what a route requires of the caller's token.

/// The permission a route requires. Declared in the route's row of the table and nowhere else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// None: the answer holds no data.
    Open,
    /// Send events.
    Ingest,
    /// See sessions.
    Read,
    /// Act on sessions.
    Control,
    /// Change what is captured.
    Admin,
}

impl Scope {
    /// The name in the OpenAPI document.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "none",
            Self::Ingest => "ingest",
            Self::Read => "read",
            Self::Control => "control",
            Self::Admin => "admin",
        }
    }
}
