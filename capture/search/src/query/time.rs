//! Times in queries.

use std::ops::Range;

use events::Timestamp;
use jiff::{
    SpanRelativeTo, ToSpan as _,
    civil::{Date, DateTime, Time},
    fmt::friendly::SpanParser,
};

use super::Clock;

/// The range that a value of `time:` names, ms: a day, a month or a year by itself, from an age on, a time behind a
/// comparison, or `a..b`.
pub(super) fn range(text: &str, clock: &Clock) -> Option<Range<i64>> {
    let text = text.trim();
    if let Some((from, to)) = text.split_once("..") {
        let from = if from.is_empty() { i64::MIN } else { span(from, clock)?.start };
        let to = if to.is_empty() { i64::MAX } else { span(to, clock)?.end };
        return Some(from..to);
    }
    for (sign, from_start, after) in [(">=", true, true), ("<=", false, false), (">", false, true), ("<", true, false)]
    {
        if let Some(value) = text.strip_prefix(sign) {
            let span = span(value.trim(), clock)?;
            let edge = if from_start { span.start } else { span.end };
            return Some(if after { edge..i64::MAX } else { i64::MIN..edge });
        }
    }
    let span = span(text, clock)?;
    Some(if age(text, clock).is_some() { span.start..i64::MAX } else { span })
}

/// What a value names, ms: a moment has 1 ms.
fn span(text: &str, clock: &Clock) -> Option<Range<i64>> {
    let moment = |at: i64| at..at.saturating_add(1);
    if let Some(at) = Timestamp::parse(text).map(Timestamp::as_millisecond).or_else(|| age(text, clock)) {
        return Some(moment(at));
    }
    let today = jiff::Timestamp::from_millisecond(clock.now.as_millisecond()).ok()?.to_zoned(clock.zone.clone()).date();
    let start_of = |date: Date| Some(date.to_zoned(clock.zone.clone()).ok()?.timestamp().as_millisecond());
    let days = |from: Date, to: Date| Some(start_of(from)?..start_of(to)?);
    let digits = text.split('-').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    match text {
        "today" => return days(today, today.tomorrow().ok()?),
        "yesterday" => return days(today.yesterday().ok()?, today),
        _ if digits && text.len() == 10 => {
            let date: Date = text.parse().ok()?;
            return days(date, date.tomorrow().ok()?);
        }
        _ if digits && text.len() == 7 => {
            let first: Date = format!("{text}-01").parse().ok()?;
            return days(first, first.checked_add(1.month()).ok()?);
        }
        _ if digits && text.len() == 4 => {
            let first: Date = format!("{text}-01-01").parse().ok()?;
            return days(first, first.checked_add(1.year()).ok()?);
        }
        _ => {}
    }
    let time = ["%H:%M:%S", "%H:%M"].iter().find_map(|form| Time::strptime(form, text).ok());
    let at = time.map(|time| today.to_datetime(time)).or_else(|| text.parse::<DateTime>().ok())?;
    let at = at.to_zoned(clock.zone.clone()).ok()?.timestamp().as_millisecond();
    Some(moment(at))
}

/// The moment that long ago: `30s`, `24h`, `7d`.
fn age(text: &str, clock: &Clock) -> Option<i64> {
    if text.contains(':') {
        return None;
    }
    let span = SpanParser::new().parse_span(text).ok().filter(|span| !span.is_negative())?;
    let ago = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    clock.now.as_millisecond().checked_sub(i64::try_from(ago.as_millis()).ok()?)
}
