//! Times in the formats of session files: ISO 8601 in entries, milliseconds since 1970 in messages.
//!
//! Parses the ISO 8601 texts that `new Date(text)` parses, so that the same bytes give the same numbers. A text without
//! a zone is read as UTC. Must not read a clock.

use crate::json::Json;

const DAY_MS: i64 = 86_400_000;

/// Milliseconds since 1970 of an ISO 8601 text; `None` if it is invalid.
#[must_use]
pub fn parse_iso(text: &str) -> Option<i64> {
    let text = text.trim();
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let days = parse_date(date)?;
    let of_day = time.map_or(Some(0), parse_time)?;
    days.checked_mul(DAY_MS)?.checked_add(of_day)
}

/// Milliseconds since 1970 of a `timestamp` of any type, as `new Date(value).getTime()` returns them.
#[must_use]
pub(crate) fn of_json(value: Option<&Json>) -> Option<i64> {
    match value? {
        Json::Null | Json::Bool(false) => Some(0),
        Json::Bool(true) => Some(1),
        // No loss: a date outside the range of i64 is invalid.
        #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
        Json::Number(number) => number.as_f64().filter(|n| n.abs() <= 8.64e15).map(|n| n.trunc() as i64),
        Json::String(text) => parse_iso(text),
        Json::Array(_) | Json::Object(_) => None,
    }
}

/// The ISO 8601 text of a time in UTC, to the millisecond.
#[must_use]
pub fn to_iso(ms: i64) -> String {
    let (days, of_day) = (ms.div_euclid(DAY_MS), ms.rem_euclid(DAY_MS));
    let (year, month, day) = date_of(days);
    let (hour, minute, second) = (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", of_day % 1000)
}

fn parse_date(text: &str) -> Option<i64> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => (1, text),
    };
    let mut parts = digits.split('-');
    let year = parts.next().filter(|y| y.len() == 4 || (y.len() == 6 && digits.len() < text.len()))?;
    let year = sign * number(year)?;
    let month = parts.next().map_or(Some(1), two)?;
    let day = parts.next().map_or(Some(1), two)?;
    let known = parts.next().is_none() && (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day);
    known.then(|| days_of(year, month, day))
}

/// Milliseconds since midnight in UTC; negative or beyond a day depending on the zone.
fn parse_time(text: &str) -> Option<i64> {
    let zone_at = text.find(['Z', 'z', '+', '-']);
    let (clock, zone) = zone_at.map_or((text, ""), |at| text.split_at(at));
    let mut parts = clock.trim_end().split(':');
    let (hour, minute) = (two(parts.next()?)?, two(parts.next()?)?);
    let (second, ms) = match parts.next() {
        None => (0, 0),
        Some(rest) => {
            let (second, fraction) = rest.split_once('.').unwrap_or((rest, "0"));
            (two(second)?, fraction_ms(fraction)?)
        }
    };
    let of_day = hour * 3_600_000 + minute * 60_000 + second * 1000 + ms;
    let known = parts.next().is_none() && minute < 60 && second < 60 && of_day <= DAY_MS;
    known.then_some(of_day)?.checked_sub(zone_ms(zone)?)
}

fn zone_ms(text: &str) -> Option<i64> {
    let sign = match text.as_bytes().first() {
        None => return Some(0),
        Some(b'Z' | b'z') => return (text.len() == 1).then_some(0),
        Some(b'-') => -1,
        Some(_) => 1,
    };
    let (hour, minute) = match text[1..].split_once(':') {
        Some((hour, minute)) => (two(hour)?, two(minute)?),
        None => (two(text.get(1..3)?)?, two(text.get(3..)?)?),
    };
    (hour < 24 && minute < 60).then_some(sign * (hour * 3_600_000 + minute * 60_000))
}

fn fraction_ms(digits: &str) -> Option<i64> {
    number(digits)?;
    number(&format!("{digits:0<3}")[..3])
}

fn two(text: &str) -> Option<i64> {
    if text.len() == 2 { number(text) } else { None }
}

fn number(text: &str) -> Option<i64> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    // Excess digits are cut: only fractions have them.
    text.get(..text.len().min(18))?.parse().ok()
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970 of a date; years start in March, so that the leap day is the last day.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The date of a number of days since 1970.
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<i64>) {
        assert_eq!(parse_iso(text), expected, "{text}");
    }

    #[test]
    fn timestamps_are_parsed_as_in_javascript() {
        check("1970-01-01T00:00:00.000Z", Some(0));
        check("2026-01-02T03:04:20.000Z", Some(1_767_323_060_000));
        check("2026-01-02T03:04:20.5+01:00", Some(1_767_319_460_500));
        check("2024-02-29", Some(1_709_164_800_000));
        check("2026", Some(1_767_225_600_000));
        check("1969-12-31T23:59:59.999Z", Some(-1));
        check("2026-02-29", None);
        check("2026-01-02T25:00:00Z", None);
        check("", None);
        check("not a date", None);
        check("é", None);
    }

    #[test]
    fn iso_timestamps_round_trip() {
        for ms in [0, 1, -1, 1_767_323_060_123, 951_782_400_000, -62_135_596_800_000] {
            assert_eq!(parse_iso(&to_iso(ms)), Some(ms), "{}", to_iso(ms));
        }
    }
}
