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
fn until(flag: &str, text: Option<&str>) -> Result<Option<Timestamp>, Failed> {
    Ok(text.map(|text| read(flag, text, clock::now())).transpose()?.map(|at| at.end()))
}

/// The period given with `--since` and `--until`.
///
/// # Errors
/// A usage error as for [`since`] and [`until`], or if the period ends before it begins.
pub(super) fn period(
    since_text: Option<&str>,
    until_text: Option<&str>,
) -> Result<(Option<Timestamp>, Option<Timestamp>), Failed> {
    let (from, to) = (since("--since", since_text)?, until("--until", until_text)?);
    match (from, to) {
        (Some(from), Some(to)) if to <= from => {
            Err(Failed::Usage(format!("the period ends ({to}) before it begins ({from}): swap --since and --until")))
        }
        period => Ok(period),
    }
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
