//! Past times as people type them.

use events::Timestamp;
use jiff::{civil::Time, tz::TimeZone};

/// Reads an RFC 3339 time, `HH:MM` or `HH:MM:SS` of today, or how long ago: `-30s`, `-5m`, `-2h`.
///
/// # Errors
/// When it is none of them, or a time that is not yet.
pub(super) fn past(flag: &str, text: &str, now: Timestamp, zone: &TimeZone) -> Result<Timestamp, String> {
    let at = ago(text, now).or_else(|| Timestamp::parse(text)).or_else(|| today(text, now, zone));
    match at {
        Some(at) if at <= now => Ok(at),
        Some(at) => Err(format!("{flag}: {at} is not yet")),
        None => Err(format!("{flag}: `{text}` is none of an RFC 3339 time, HH:MM[:SS] of today, -30s, -5m, -2h")),
    }
}

fn ago(text: &str, now: Timestamp) -> Option<Timestamp> {
    let text = text.strip_prefix('-')?;
    let unit = text.chars().next_back()?;
    let number = text.strip_suffix(unit)?;
    let number: i64 = number.bytes().all(|b| b.is_ascii_digit()).then(|| number.parse().ok()).flatten()?;
    let ms: i64 = match unit {
        's' => 1000,
        'm' => 60_000,
        'h' => 3_600_000,
        'd' => 86_400_000,
        _ => return None,
    };
    Some(now.plus_ms(number.checked_mul(ms)?.checked_neg()?))
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
            ("-5m", "2026-11-20T11:25:00.000Z"),
            ("-2h", "2026-11-20T09:30:00.000Z"),
            ("-0s", "2026-11-20T11:30:00.000Z"),
            ("13:29", "2026-11-20T11:29:00.000Z"),
            ("00:00:01", "2026-11-19T22:00:01.000Z"),
            ("2026-11-20T12:00:00+02:00", "2026-11-20T10:00:00.000Z"),
            ("2026-11-19T23:59:59.5Z", "2026-11-19T23:59:59.500Z"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(at), "{text}");
        }
        for not_yet in ["13:31", "2026-11-20T11:30:00.001Z"] {
            assert!(read(not_yet).unwrap_err().contains("is not yet"), "{not_yet}");
        }
        for nothing in [
            "",
            "-",
            "-5",
            "-m",
            "-5w",
            "--5m",
            "-5.5m",
            "5m",
            "25:00",
            "13:29:61x",
            "yesterday",
            "-é",
            "-99999999999999999h",
        ] {
            assert!(read(nothing).unwrap_err().contains("none of"), "{nothing}");
        }
    }
}
