//! Times in queries.

use std::ops::Range;

use events::{Timestamp, TypedTime};

use super::Clock;

/// The range that a value of `time:` describes, ms: a day, month or year; since an age; a time after a comparison; or
/// `a..b`.
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
    if let TypedTime::Age(at) = TypedTime::parse(text, clock.now, &clock.zone)? {
        return Some(at.as_millisecond()..i64::MAX);
    }
    span(text, clock)
}

/// The range that a single value describes, ms: a moment has a length of 1 ms.
fn span(text: &str, clock: &Clock) -> Option<Range<i64>> {
    let moment = |at: Timestamp| at.as_millisecond()..at.as_millisecond().saturating_add(1);
    Some(match TypedTime::parse(text, clock.now, &clock.zone)? {
        TypedTime::Moment(at) | TypedTime::Age(at) => moment(at),
        TypedTime::Period(period) => period.start.as_millisecond()..period.end.as_millisecond(),
    })
}
