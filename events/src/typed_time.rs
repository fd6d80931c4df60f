//! Parses times as people type them, on the command line and in queries. Reads no clock.

use std::ops::Range;

use jiff::{
    SpanRelativeTo, ToSpan as _,
    civil::{Date, DateTime, Time},
    fmt::friendly::SpanParser,
    tz::TimeZone,
};

use crate::time::Timestamp;

/// The accepted forms, for help and errors.
pub const TYPED_TIMES: &str =
    "a day (2026-11-20, today, yesterday), RFC 3339, HH:MM[:SS] today, or an age such as 5m, 2h or 3d";

/// A parsed time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypedTime {
    /// A point in time.
    Moment(Timestamp),
    /// A point in time, given by its age.
    Age(Timestamp),
    /// A day, a month or a year, excluding its end.
    Period(Range<Timestamp>),
}

impl TypedTime {
    /// Parses an RFC 3339 time, also without an offset; `HH:MM` or `HH:MM:SS` of today; `today`, `yesterday`, a day, a
    /// month (`2026-11`) or a year; or an age in jiff's syntax of spans (`30s`, `1h 30m`, `2 days`), optionally
    /// preceded by `-`. Times without an offset are in `zone`. Days of an age have 24 hours. `None` for any other text.
    #[must_use]
    pub fn parse(text: &str, now: Timestamp, zone: &TimeZone) -> Option<Self> {
        let text = text.trim();
        if let Some(at) = Timestamp::parse(text) {
            return Some(Self::Moment(at));
        }
        if let Some(at) = ago(text, now) {
            return Some(Self::Age(at));
        }
        let today = jiff::Timestamp::from_millisecond(now.as_millisecond()).ok()?.to_zoned(zone.clone()).date();
        if let Some((from, to)) = days(text, today) {
            let start_of = |date: Date| Some(date.to_zoned(zone.clone()).ok()?.timestamp().as_millisecond());
            let [from, to] = [from, to].map(|date| start_of(date).map(Timestamp::from_millisecond));
            return Some(Self::Period(from?..to?));
        }
        let time = ["%H:%M:%S", "%H:%M"].iter().find_map(|form| Time::strptime(form, text).ok());
        let at = time.map(|time| today.to_datetime(time)).or_else(|| text.parse::<DateTime>().ok())?;
        let at = at.to_zoned(zone.clone()).ok()?.timestamp().as_millisecond();
        Some(Self::Moment(Timestamp::from_millisecond(at)))
    }

    /// The time, or the beginning of the period.
    #[must_use]
    pub const fn start(&self) -> Timestamp {
        match self {
            Self::Moment(at) | Self::Age(at) => *at,
            Self::Period(period) => period.start,
        }
    }

    /// The time, or the end of the period, which is excluded.
    #[must_use]
    pub const fn end(&self) -> Timestamp {
        match self {
            Self::Moment(at) | Self::Age(at) => *at,
            Self::Period(period) => period.end,
        }
    }
}

/// The first day of the period that a text names, and the first day after it.
fn days(text: &str, today: Date) -> Option<(Date, Date)> {
    let digits = text.split('-').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    let (first, after) = match text {
        "today" => (today, today.tomorrow()),
        "yesterday" => (today.yesterday().ok()?, Ok(today)),
        _ if !digits => return None,
        _ if text.len() == "2026-11-20".len() => {
            let date: Date = text.parse().ok()?;
            (date, date.tomorrow())
        }
        _ if text.len() == "2026-11".len() => {
            let first: Date = format!("{text}-01").parse().ok()?;
            (first, first.checked_add(1.month()))
        }
        _ if text.len() == "2026".len() => {
            let first: Date = format!("{text}-01-01").parse().ok()?;
            (first, first.checked_add(1.year()))
        }
        _ => return None,
    };
    Some((first, after.ok()?))
}

fn ago(text: &str, now: Timestamp) -> Option<Timestamp> {
    // A text with a colon is a time of day, possibly an invalid one.
    let text = text.strip_prefix('-').or_else(|| (!text.contains(':')).then_some(text))?;
    let span = SpanParser::new().parse_span(text).ok().filter(|span| !span.is_negative())?;
    let ago = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    Some(now.plus_ms(i64::try_from(ago.as_millis()).ok()?.checked_neg()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<TypedTime> {
        let now = Timestamp::parse("2026-11-20T11:30:00.000Z").unwrap();
        TypedTime::parse(text, now, &TimeZone::fixed(jiff::tz::offset(2)))
    }

    #[test]
    fn relative_and_absolute_times_are_parsed() {
        for (text, at) in [
            ("-30s", "2026-11-20T11:29:30.000Z"),
            ("5m", "2026-11-20T11:25:00.000Z"),
            ("3d", "2026-11-17T11:30:00.000Z"),
            ("-5m", "2026-11-20T11:25:00.000Z"),
            ("-0s", "2026-11-20T11:30:00.000Z"),
            ("-5.5m", "2026-11-20T11:24:30.000Z"),
            ("-1h 30m", "2026-11-20T10:00:00.000Z"),
            ("-1d", "2026-11-19T11:30:00.000Z"),
            ("-2w", "2026-11-06T11:30:00.000Z"),
            ("13:29", "2026-11-20T11:29:00.000Z"),
            ("00:00:01", "2026-11-19T22:00:01.000Z"),
            ("2026-11-20T12:00:00+02:00", "2026-11-20T10:00:00.000Z"),
            ("2026-11-20T12:00", "2026-11-20T10:00:00.000Z"),
            ("2026-11-19T23:59:59.5Z", "2026-11-19T23:59:59.500Z"),
        ] {
            let read = read(text).unwrap();
            assert_eq!((read.start().to_string().as_str(), read.end().to_string().as_str()), (at, at), "{text}");
        }
        for (text, from, to) in [
            ("today", "2026-11-19T22:00:00.000Z", "2026-11-20T22:00:00.000Z"),
            ("yesterday", "2026-11-18T22:00:00.000Z", "2026-11-19T22:00:00.000Z"),
            ("2026-11-20", "2026-11-19T22:00:00.000Z", "2026-11-20T22:00:00.000Z"),
            ("2026-02", "2026-01-31T22:00:00.000Z", "2026-02-28T22:00:00.000Z"),
            (" 2026 ", "2025-12-31T22:00:00.000Z", "2026-12-31T22:00:00.000Z"),
        ] {
            let read = read(text).unwrap();
            assert_eq!((read.start().to_string().as_str(), read.end().to_string().as_str()), (from, to), "{text}");
        }
    }

    #[test]
    fn malformed_times_are_rejected() {
        for text in [
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
            "tomorrow",
            "-é",
            "-99999999999999999h",
            "2026-13-01",
            "2026-11-31",
            "2026-1-1",
            "99999",
            "0000-00",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
