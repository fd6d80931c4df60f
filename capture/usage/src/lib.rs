//! Answers what sessions used and how well they went: tokens and costs by day, project, model, session and agent; quotas;
//! turns, failures and waiting times.
//!
//! Reads the store and sums up; stores nothing. Calls are counted where ingest stored them, once each. A cost is the
//! agent's own where it reports one, else that of the price table, else unknown. Start at [`report()`].

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

/// Why the prices cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PricesError {
    /// The user's file is not valid.
    #[error("{path}: {source}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: PriceError,
    },
    /// The user's file cannot be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The shipped table is not valid.
    #[error("the shipped prices: {0}")]
    Shipped(PriceError),
}

/// Which sessions, and which time.
#[derive(Debug, Clone, Default)]
pub struct SessionPeriod {
    /// Only what was used or ended from this time on.
    pub since: Option<Timestamp>,
    /// Only what was used or ended before this time.
    pub until: Option<Timestamp>,
    /// Only this session.
    pub session: Option<SessionId>,
    /// Only sessions of these agents; all when there are none.
    pub agents: Vec<Provider>,
    /// Only sessions that began in a directory with this name or path.
    pub project: Option<String>,
}

impl SessionPeriod {
    /// The first time, and the first one behind the period.
    fn bounds(&self) -> (Timestamp, Timestamp) {
        (self.since.unwrap_or(CallFilter::ALL.since), self.until.unwrap_or(CallFilter::ALL.until))
    }

    /// Whether a session is of these agents and of this project.
    fn has(&self, session: &SessionFacts) -> bool {
        (self.agents.is_empty() || self.agents.contains(&session.provider))
            && self.project.as_ref().is_none_or(|project| is_of_project(session, project))
    }
}

/// The shipped prices, with those of the user's file where it is there.
///
/// # Errors
/// When the file cannot be read or is not valid.
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

/// The time zone with this name, or that of the system.
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

/// Whether a session began in a directory with this name, or in this one or below it.
fn is_of_project(session: &SessionFacts, project: &str) -> bool {
    let Some(directory) = session.directory.as_deref().map(Path::new) else { return false };
    let wanted = Path::new(project);
    if wanted.is_absolute() { directory.starts_with(wanted) } else { directory.file_name() == Some(wanted.as_os_str()) }
}
