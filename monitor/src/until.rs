//! Parses the end of a limit from an error's text: `try again in 3m 20s`, `retryDelay: "34s"`,
//! `resets at 2026-11-20T14:00:00Z`. A time of day counts only if the text says that it is UTC, because the user's time
//! zone is unknown here.

use events::Timestamp;

/// Longest plausible limit, ms.
const LONGEST_MS: i64 = 40 * 24 * 3_600_000;
/// Maximum number of bytes of a text that are examined.
const LOOKED_AT: usize = 4 << 10;

/// The end of the limit according to a text.
pub(crate) fn until(text: &str, now: Timestamp) -> Option<Timestamp> {
    let text = crate::text::head(text, LOOKED_AT).to_ascii_lowercase();
    let found =
        moment(&text).or_else(|| epoch(&text)).or_else(|| span(&text, now)).or_else(|| time_of_day(&text, now))?;
    let ahead = found.since_ms(now);
    (ahead > 0 && ahead <= LONGEST_MS).then_some(found)
}

fn moment(text: &str) -> Option<Timestamp> {
    let mut rest = text.char_indices();
    rest.find_map(|(at, c)| {
        let token = text.get(at..).filter(|_| c == '2' && !text[..at].ends_with(|c: char| c.is_ascii_digit()))?;
        let end = token
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | ':' | '.' | '+')))
            .unwrap_or(token.len());
        let token = token[..end].trim_end_matches(['.', ':', '-']);
        (token.len() >= 20 && token.as_bytes()[10] == b't')
            .then(|| Timestamp::parse(&token.to_ascii_uppercase()))
            .flatten()
    })
}

/// Seconds or milliseconds since 1970, if the text mentions a reset.
fn epoch(text: &str) -> Option<Timestamp> {
    let speaks = ["reset", "limit reached", "retry"].iter().any(|sign| text.contains(sign));
    text.split(|c: char| !c.is_ascii_digit()).filter(|_| speaks).find_map(|digits| {
        let number: i64 = digits.parse().ok()?;
        match digits.len() {
            10 => Some(Timestamp::from_millisecond(number * 1_000)),
            13 => Some(Timestamp::from_millisecond(number)),
            _ => None,
        }
    })
}

/// `in 5 days 3 hours`, `after 18h31m10s`, `retry-after: 30`, `retrydelay":"34.07s"`.
fn span(text: &str, now: Timestamp) -> Option<Timestamp> {
    const BEFORE: &[(&str, bool)] = &[
        ("try again in", false),
        ("retry in", false),
        ("reset in", false),
        ("resets in", false),
        ("reset after", false),
        ("retry after", true),
        ("retry-after", true),
        ("retry_after", true),
        ("retrydelay", true),
        ("resets_in_seconds", true),
        ("available in", false),
        ("wait", false),
    ];
    BEFORE.iter().find_map(|(sign, bare)| {
        let rest = &text[text.find(sign)? + sign.len()..];
        let rest = rest.trim_start_matches(|c: char| !c.is_ascii_digit() && !c.is_ascii_alphabetic());
        let rest = rest.strip_prefix("seconds").map_or(rest, |rest| rest.trim_start_matches([' ', ':', '=']));
        duration(rest, *bare).map(|ms| now.plus_ms(ms))
    })
}

/// Consecutive numbers with units; a number without a unit counts as seconds if `bare`.
fn duration(text: &str, bare: bool) -> Option<i64> {
    let mut rest = text;
    let mut total = 0.0_f64;
    let mut any = false;
    for _ in 0..6 {
        rest = rest.trim_start_matches([' ', ',', '~']);
        rest = rest.strip_prefix("and ").unwrap_or(rest);
        let digits = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        let Ok(number) = rest[..digits].parse::<f64>() else { break };
        rest = rest[digits..].trim_start_matches(' ');
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let unit = match &rest[..letters] {
            "ms" | "milliseconds" => 1.0,
            "s" | "sec" | "secs" | "second" | "seconds" => 1e3,
            "m" | "min" | "mins" | "minute" | "minutes" => 6e4,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3.6e6,
            "d" | "day" | "days" => 8.64e7,
            _ if bare && !any => return Some((number * 1e3) as i64),
            _ => break,
        };
        rest = &rest[letters..];
        total += number * unit;
        any = true;
    }
    any.then_some(total as i64)
}

/// `resets 3pm (UTC)`, `resets at 14:30 UTC`: the next occurrence of that time.
fn time_of_day(text: &str, now: Timestamp) -> Option<Timestamp> {
    let rest = &text[text.find("reset")?..];
    let end = rest.find("utc")?;
    let minutes = rest[..end].split(|c: char| !(c.is_ascii_alphanumeric() || c == ':')).find_map(clock)?;
    const DAY: i64 = 86_400_000;
    let midnight = now.as_millisecond().div_euclid(DAY) * DAY;
    let at = midnight + minutes * 60_000;
    Some(Timestamp::from_millisecond(if at <= now.as_millisecond() { at + DAY } else { at }))
}

/// `3pm`, `3:30pm`, `14:30`: minutes of the day.
fn clock(word: &str) -> Option<i64> {
    let (word, half) = match (word.strip_suffix("am"), word.strip_suffix("pm")) {
        (Some(word), _) => (word, Some(0)),
        (_, Some(word)) => (word, Some(12)),
        (None, None) => (word, None),
    };
    let (hours, minutes) = word.split_once(':').unwrap_or((word, "0"));
    if half.is_none() && !word.contains(':') {
        return None;
    }
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    let hours = half.map_or(hours, |half| hours % 12 + half);
    ((0..24).contains(&hours) && (0..60).contains(&minutes)).then_some(hours * 60 + minutes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reset_times_are_parsed_from_limit_messages() {
        // 2026-11-20T04:37:12Z
        let now = Timestamp::from_millisecond(1_795_149_432_000);
        let seconds = |n: i64| Some(now.plus_ms(n * 1_000));
        for (text, over) in [
            ("Rate limit reached. Please try again in 20s.", seconds(20)),
            ("Please try again in 1.5s", Some(now.plus_ms(1_500))),
            (
                "You've hit your usage limit. Try again in 5 days 3 hours 27 minutes.",
                seconds(5 * 86_400 + 3 * 3_600 + 27 * 60),
            ),
            ("quota will reset after 18h31m10s.", seconds(18 * 3_600 + 31 * 60 + 10)),
            ("\"retryDelay\": \"34.074824224s\"", Some(now.plus_ms(34_074))),
            ("429 Too Many Requests, retry-after: 30", seconds(30)),
            ("Claude AI usage limit reached|1795153032", seconds(3_600)),
            ("limit resets at 2026-11-20T05:37:12Z", seconds(3_600)),
            ("limit resets at 2026-11-20T05:37:12.000Z.", seconds(3_600)),
            ("You've hit your limit · resets 5am (UTC)", seconds(22 * 60 + 48)),
            ("resets at 4:30pm utc", seconds(11 * 3_600 + 52 * 60 + 48)),
            ("resets 3am (UTC)", seconds(22 * 3_600 + 22 * 60 + 48)),
            ("You've hit your limit · resets 5am (Europe/Berlin)", None),
            ("error 529", None),
            ("try again later", None),
            ("try again in 400 days", None),
            ("", None),
        ] {
            assert_eq!(until(text, now), over, "{text}");
        }
    }
}
