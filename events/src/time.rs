//! Time as milliseconds since 1970, in UTC. The wire form is RFC 3339 with milliseconds and `Z`.

use std::{borrow::Cow, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A time, in milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The earliest time; earlier than every recorded one.
    pub const MIN: Self = Self(0);

    /// Creates a time from milliseconds since 1970.
    #[must_use]
    pub const fn from_millisecond(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since 1970.
    #[must_use]
    pub const fn as_millisecond(self) -> i64 {
        self.0
    }

    /// The time `ms` milliseconds later (earlier if negative), clamped to the range.
    #[must_use]
    pub const fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this time; negative if `earlier` is later.
    #[must_use]
    pub const fn since_ms(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Parses an RFC 3339 time. Digits beyond milliseconds are dropped.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        fast_parse(text.as_bytes()).or_else(|| text.parse::<jiff::Timestamp>().ok().map(|t| Self(t.as_millisecond())))
    }
}

/// Parses `YYYY-MM-DDTHH:MM:SS.mmmZ`, the form that agents write, without a general parser.
fn fast_parse(b: &[u8]) -> Option<Timestamp> {
    if b.len() != 24 || b[4] != b'-' || b[7] != b'-' || b[10] != b'T' || b[19] != b'.' || b[23] != b'Z' {
        return None;
    }
    let digits = |from: usize, to: usize| -> Option<i64> {
        b[from..to].iter().try_fold(0_i64, |n, d| d.is_ascii_digit().then(|| n * 10 + i64::from(d - b'0')))
    };
    let (year, month, day) = (digits(0, 4)?, digits(5, 7)?, digits(8, 10)?);
    let (hour, minute, second, ms) = (digits(11, 13)?, digits(14, 16)?, digits(17, 19)?, digits(20, 23)?);
    if b[13] != b':'
        || b[16] != b':'
        || !(1..=12).contains(&month)
        || !(1..=28).contains(&day) && !valid_day(year, month, day)
        || hour > 23
        || minute > 59
        || second > 59
    {
        return None;
    }
    // Days since 1970 by the civil-calendar formula (years start in March).
    let (y, m) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let era = y.div_euclid(400);
    let year_of_era = y - era * 400;
    let day_of_year = (153 * m + 2) / 5 + day - 1;
    let days = era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468;
    Some(Timestamp(((days * 24 + hour) * 60 + minute) * 60_000 + second * 1000 + ms))
}

fn valid_day(year: i64, month: i64, day: i64) -> bool {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    (1..=last).contains(&day)
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(t) => write!(f, "{t:.3}"),
            Err(_) => write!(f, "{}ms", self.0),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = <Cow<'de, str>>::deserialize(d)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom(format!("`{text}` is not an RFC 3339 time")))
    }
}

impl JsonSchema for Timestamp {
    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "date-time" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rfc_3339_timestamps_are_parsed_and_invalid_ones_rejected() {
        let t = Timestamp::parse("2026-11-20T04:37:12.189Z").map(Timestamp::as_millisecond);
        assert_eq!(t, Some(1_795_149_432_189));
        assert_eq!(Timestamp::parse("2026-11-20T05:37:12.189654+01:00").map(Timestamp::as_millisecond), t);
        for bad in ["", "2026-02-30T00:00:00.000Z", "2026-13-01T00:00:00.000Z", "2026-11-20T24:00:00.000Z", "yesterday"]
        {
            assert_eq!(Timestamp::parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn timestamps_round_trip_through_text(ms in 0_i64..253_402_300_799_999) {
            let t = Timestamp::from_millisecond(ms);
            let text = t.to_string();
            prop_assert_eq!(fast_parse(text.as_bytes()), Some(t));
            prop_assert_eq!(text.parse::<jiff::Timestamp>().map(|j| j.as_millisecond()).ok(), Some(ms));
        }
    }
}
