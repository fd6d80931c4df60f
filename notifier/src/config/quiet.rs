//! Quiet hours: ranges of the local day.

use std::fmt;

use events::Timestamp;
use serde::{Deserialize, Deserializer};

use crate::notice::{DAY_MS, LocalTime};

/// Quiet hours. Notices held back during them are sent as one digest afterwards.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Quiet {
    /// Ranges of the local day, such as `22:00-07:00`. A range that ends before it begins crosses midnight.
    pub hours: Vec<Hours>,
    /// Whether urgent notices are sent during quiet hours.
    pub urgent_breaks_through: bool,
}

/// A range of the day, including its start and excluding its end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hours {
    from_min: u16,
    to_min: u16,
}

impl Hours {
    /// Parses `22:00-07:00`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (from, to) = text.split_once('-')?;
        let hours = Self { from_min: minute(from.trim())?, to_min: minute(to.trim())? };
        (hours.from_min != hours.to_min).then_some(hours)
    }

    /// Milliseconds until the range ends, if the time of day is in it.
    fn left_ms(self, day_ms: i64) -> Option<i64> {
        let (from, to) = (i64::from(self.from_min) * 60_000, i64::from(self.to_min) * 60_000);
        let (inside, past) = ((to - from).rem_euclid(DAY_MS), (day_ms - from).rem_euclid(DAY_MS));
        // The whole day is from 00:00 to 24:00.
        let inside = if inside == 0 { DAY_MS } else { inside };
        (past < inside).then_some(inside - past)
    }
}

/// `HH:MM`, up to `24:00`.
fn minute(text: &str) -> Option<u16> {
    let (hour, minute) = text.split_once(':')?;
    let number = |text: &str| -> Option<u16> {
        (text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
    };
    let (hour, minute) = (number(hour)?, number(minute)?);
    (hour < 24 && minute < 60 || hour == 24 && minute == 0).then_some(hour * 60 + minute)
}

impl Quiet {
    /// The end of the quiet hours that contain a time; `None` if there are none.
    #[must_use]
    pub fn until(&self, now: LocalTime) -> Option<Timestamp> {
        let mut end: Option<i64> = None;
        // Ranges that touch or overlap count as one.
        for _ in 0..=self.hours.len() {
            let day_ms = (now.day_ms() + end.unwrap_or(0)).rem_euclid(DAY_MS);
            let Some(left) = self.hours.iter().filter_map(|h| h.left_ms(day_ms)).max() else { break };
            end = Some(end.unwrap_or(0) + left);
        }
        end.map(|ms| now.at.plus_ms(ms))
    }
}

impl fmt::Debug for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from_min: a, to_min: b } = self;
        write!(f, "{:02}:{:02}-{:02}:{:02}", a / 60, a % 60, b / 60, b % 60)
    }
}

impl<'de> Deserialize<'de> for Hours {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        Self::parse(&text).ok_or_else(|| {
            serde::de::Error::custom(format!("expected a range of the day such as `22:00-07:00`, got `{text}`"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `now` in minutes of the local day, two hours ahead of UTC.
    fn check(hours: &[&str], now_min: i64, left_min: Option<i64>) {
        let quiet = Quiet { hours: hours.iter().map(|h| Hours::parse(h).unwrap()).collect(), ..Quiet::default() };
        let at = Timestamp::from_millisecond(20_000 * DAY_MS + (now_min - 120) * 60_000);
        let until = quiet.until(LocalTime { at, utc_offset_s: 7200 });
        assert_eq!(until.map(|u| u.since_ms(at) / 60_000), left_min, "{hours:?} at {now_min}");
    }

    #[test]
    fn the_end_of_quiet_hours_follows_from_the_configured_ranges() {
        check(&[], 0, None);
        check(&["22:00-07:00"], 22 * 60 - 1, None);
        check(&["22:00-07:00"], 22 * 60, Some(9 * 60));
        check(&["22:00-07:00"], 0, Some(7 * 60));
        check(&["22:00-07:00"], 7 * 60 - 1, Some(1));
        check(&["22:00-07:00"], 7 * 60, None);
        check(&["12:00-13:00", "13:00-14:00"], 12 * 60, Some(120));
        check(&["00:00-24:00"], 5, Some((24 * 60 - 5) + 24 * 60));
    }

    #[test]
    fn malformed_quiet_hours_are_rejected() {
        for text in ["", "22-7", "25:00-07:00", "22:60-07:00", "22:00-22:00", "2:00-3:00", "+1:00-02:00"] {
            assert_eq!(Hours::parse(text), None, "{text}");
        }
    }
}
