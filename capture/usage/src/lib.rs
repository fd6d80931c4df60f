//! Computes the usage and quality of sessions: tokens and costs by day, project, model, session and agent; quotas;
//! turns, failures and waiting times.
//!
//! Reads the store and computes sums; stores nothing. Each call that ingest stored is counted once. A cost is the
//! agent's own if it reports one, else that of the price table, else unknown. Start at [`report()`].

mod accounts;
mod overview;
mod quality;
mod quotas;
mod report;

use std::{
    io,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use events::{Provider, SessionId, Timestamp};
use jiff::tz::TimeZone;
use prices::{PriceError, Prices};
use store::{CallFilter, SessionFacts};

pub use overview::{OverviewRequest, overview};
pub use quality::{QualityRequest, quality};
pub use report::{UsageRequest, report};

/// Why the prices cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum PricesError {
    /// The user's file is invalid.
    #[error("{path}: {source}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The location and the cause.
        source: PriceError,
    },
    /// The user's file cannot be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The built-in table is invalid.
    #[error("built-in prices: {0}")]
    Shipped(PriceError),
}

/// Selects sessions and a period.
#[derive(Debug, Clone, Default)]
pub struct SessionPeriod {
    /// Only usage and ends from this time on.
    pub since: Option<Timestamp>,
    /// Only usage and ends before this time.
    pub until: Option<Timestamp>,
    /// Only this session.
    pub session: Option<SessionId>,
    /// Only sessions of these agents; empty means all.
    pub agents: Vec<Provider>,
    /// Only sessions that began in a directory with this name or path.
    pub project: Option<String>,
}

impl SessionPeriod {
    /// The first time of the period, and the first one after it.
    fn bounds(&self) -> (Timestamp, Timestamp) {
        (self.since.unwrap_or(CallFilter::ALL.since), self.until.unwrap_or(CallFilter::ALL.until))
    }

    /// Whether a session belongs to these agents and this project.
    fn has(&self, session: &SessionFacts) -> bool {
        (self.agents.is_empty() || self.agents.contains(&session.provider))
            && self.project.as_ref().is_none_or(|project| is_of_project(session, project))
    }
}

/// Built-in prices, overridden by the user's file if it exists.
///
/// # Errors
/// When the file cannot be read or is invalid.
pub fn prices(own: Option<&Path>) -> Result<Prices, PricesError> {
    static SHIPPED: OnceLock<Result<Prices, PriceError>> = OnceLock::new();
    let shipped = SHIPPED.get_or_init(Prices::shipped).clone().map_err(PricesError::Shipped)?;
    let Some(path) = own else { return Ok(shipped) };
    match atomic_file::read_settings(path) {
        Ok(Some(text)) => shipped.with(&text).map_err(|source| PricesError::Invalid { path: path.to_owned(), source }),
        Ok(None) => Ok(shipped),
        Err(source) => Err(PricesError::Unreadable { path: path.to_owned(), source }),
    }
}

/// The time zone with this name, or the system's.
///
/// # Errors
/// When no time zone has this name.
pub fn time_zone(name: Option<&str>) -> Result<TimeZone, String> {
    match name {
        None => Ok(TimeZone::system()),
        Some(name) => TimeZone::get(name)
            .map_err(|_| "expected the name of a time zone, such as `UTC` or `Europe/Berlin`".to_owned()),
    }
}

/// Whether a session began in a directory with this name, or at or below this path.
fn is_of_project(session: &SessionFacts, project: &str) -> bool {
    let Some(directory) = session.directory.as_deref().map(Path::new) else { return false };
    let wanted = Path::new(project);
    if wanted.is_absolute() { directory.starts_with(wanted) } else { directory.file_name() == Some(wanted.as_os_str()) }
}
