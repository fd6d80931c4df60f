//! Past times in options, as users type them.

use client::failure::Failed;
use events::{TYPED_TIMES, Timestamp, TypedTime};
use home::clock;
use jiff::tz::TimeZone;

/// The past time given with a flag, if any. A day means its beginning.
///
/// # Errors
/// A usage error if the text is not such a time, or the time is in the future.
pub(super) fn since(flag: &str, text: Option<&str>) -> Result<Option<Timestamp>, Failed> {
    Ok(text.map(|text| past(flag, text)).transpose()?.map(|at| at.start()))
}

/// Like [`since`], but a day means its end, and the time may be in the future.
///
/// # Errors
/// A usage error if the text is not such a time.
pub(super) fn until(flag: &str, text: Option<&str>) -> Result<Option<Timestamp>, Failed> {
    Ok(text.map(|text| read(flag, text, clock::now())).transpose()?.map(|at| at.end()))
}

fn past(flag: &str, text: &str) -> Result<TypedTime, Failed> {
    let now = clock::now();
    let at = read(flag, text, now)?;
    if at.start() > now {
        return Err(Failed::Usage(format!("{flag}: {} is in the future", at.start())));
    }
    Ok(at)
}

fn read(flag: &str, text: &str, now: Timestamp) -> Result<TypedTime, Failed> {
    TypedTime::parse(text, now, &TimeZone::system())
        .ok_or_else(|| Failed::Usage(format!("{flag}: expected {TYPED_TIMES}, got `{text}`")))
}
