//! The scopes that routes require of the caller's token.

/// The permission a route requires. It is declared only in the route's row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// None, because the answer contains no data.
    Open,
    /// Send events.
    Ingest,
    /// View sessions.
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
