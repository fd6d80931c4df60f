//! Past times of options, as people type them.

use client::failure::Failed;
use events::{TYPED_TIMES, Timestamp, TypedTime};
use home::clock;
use jiff::tz::TimeZone;

/// The past moment that was given with a flag, if it was given; of a day its beginning.
///
/// # Errors
/// A usage error when it cannot be read as such a time, or is in the future.
pub(super) fn since(flag: &str, text: Option<&str>) -> Result<Option<Timestamp>, Failed> {
    Ok(text.map(|text| past(flag, text)).transpose()?.map(|at| at.start()))
}

/// Like [`since`], but of a day its end.
///
/// # Errors
/// As [`since`].
pub(super) fn until(flag: &str, text: Option<&str>) -> Result<Option<Timestamp>, Failed> {
    Ok(text.map(|text| past(flag, text)).transpose()?.map(|at| at.end()))
}

fn past(flag: &str, text: &str) -> Result<TypedTime, Failed> {
    let now = clock::now();
    match TypedTime::parse(text, now, &TimeZone::system()) {
        Some(at) if at.start() <= now => Ok(at),
        Some(at) => Err(Failed::Usage(format!("{flag}: {} is in the future", at.start()))),
        None => Err(Failed::Usage(format!("{flag}: expected {TYPED_TIMES}, got `{text}`"))),
    }
}
