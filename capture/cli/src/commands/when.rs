//! Parses past times as people type them.

use client::failure::Failed;
use events::Timestamp;
use home::clock;
use jiff::{SpanRelativeTo, civil::Time, fmt::friendly::SpanParser, tz::TimeZone};

/// The past time that was given with a flag, if it was given, as [`past`] reads it in the system's time zone.
///
/// # Errors
/// A usage error when it cannot be read as such a time.
pub(super) fn given(flag: &str, text: Option<&str>) -> Result<Option<Timestamp>, Failed> {
    let at = text.map(|text| past(flag, text, clock::now(), &TimeZone::system()));
    at.transpose().map_err(Failed::Usage)
}

/// Reads an RFC 3339 time, `HH:MM` or `HH:MM:SS` of today, or an age: `30s`, `5m`, `1h30m`, `2d`, also with a `-` before
/// it.
///
/// # Errors
/// When it is none of them, or a time that is not yet.
pub(super) fn past(flag: &str, text: &str, now: Timestamp, zone: &TimeZone) -> Result<Timestamp, String> {
    let at = Timestamp::parse(text).or_else(|| today(text, now, zone)).or_else(|| ago(text, now));
    match at {
        Some(at) if at <= now => Ok(at),
        Some(at) => Err(format!("{flag}: {at} is in the future")),
        None => Err(format!(
            "{flag}: expected an RFC 3339 time, HH:MM[:SS] today, or an age such as 5m, 2h or 3d, \
            got `{text}`"
        )),
    }
}

/// A time that long ago, as jiff reads spans: `5m`, `1h 30m`, `2 days`. Days have 24 hours.
fn ago(text: &str, now: Timestamp) -> Option<Timestamp> {
    // What has a colon is a time of day, perhaps an impossible one.
    let text = text.strip_prefix('-').or_else(|| (!text.contains(':')).then_some(text))?;
    let span = SpanParser::new().parse_span(text).ok().filter(|span| !span.is_negative())?;
    let ago = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    Some(now.plus_ms(i64::try_from(ago.as_millis()).ok()?.checked_neg()?))
}

fn today(text: &str, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    let time = ["%H:%M:%S", "%H:%M"].iter().find_map(|form| Time::strptime(form, text).ok())?;
    let today = jiff::Timestamp::from_millisecond(now.as_millisecond()).ok()?.to_zoned(zone.clone()).date();
    let at = today.to_datetime(time).to_zoned(zone.clone()).ok()?;
    Some(Timestamp::from_millisecond(at.timestamp().as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        let now = Timestamp::parse("2026-11-20T11:30:00.000Z").unwrap();
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        past("--at", text, now, &zone).map(|at| at.to_string())
    }

    #[test]
    fn times_people_type() {
        for (text, at) in [
            ("-30s", "2026-11-20T11:29:30.000Z"),
            ("5m", "2026-11-20T11:25:00.000Z"),
            ("3d", "2026-11-17T11:30:00.000Z"),
            ("-5m", "2026-11-20T11:25:00.000Z"),
            ("-2h", "2026-11-20T09:30:00.000Z"),
            ("-0s", "2026-11-20T11:30:00.000Z"),
            ("-5.5m", "2026-11-20T11:24:30.000Z"),
            ("-1h 30m", "2026-11-20T10:00:00.000Z"),
            ("-1d", "2026-11-19T11:30:00.000Z"),
            ("-2w", "2026-11-06T11:30:00.000Z"),
            ("13:29", "2026-11-20T11:29:00.000Z"),
            ("00:00:01", "2026-11-19T22:00:01.000Z"),
            ("2026-11-20T12:00:00+02:00", "2026-11-20T10:00:00.000Z"),
            ("2026-11-19T23:59:59.5Z", "2026-11-19T23:59:59.500Z"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(at), "{text}");
        }
        for not_yet in ["13:31", "2026-11-20T11:30:00.001Z"] {
            assert!(read(not_yet).unwrap_err().contains("is in the future"), "{not_yet}");
        }
        for nothing in [
            "",
            "-",
            "-5",
            "-m",
            "-5mo",
            "-5m ago",
            "--5m",
            "5",
            "25:00",
            "25:00:00",
            "13:29:61x",
            "yesterday",
            "-é",
            "-99999999999999999h",
        ] {
            assert!(read(nothing).unwrap_err().contains("expected an RFC 3339"), "{nothing}");
        }
    }
}
