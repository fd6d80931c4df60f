//! Masks the parts of a text that differ between two runs of the same command: clock times, dates, durations,
//! addresses, ids.

/// Units of durations that may directly follow a number.
const ATTACHED: [&str; 9] = ["ns", "us", "µs", "ms", "s", "m", "min", "h", "d"];
/// Units of durations that may follow a number and a space.
const APART: [&str; 16] = [
    "ns", "us", "µs", "ms", "s", "sec", "secs", "second", "seconds", "min", "mins", "minute", "minutes", "hour",
    "hours", "days",
];
const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
/// Lengths of the groups of a UUID.
const UUID: [usize; 5] = [8, 4, 4, 4, 12];
/// Replaces masked text.
const MASK: char = '#';

/// Replaces each time, date, duration, address and hexadecimal id with [`MASK`]. Other numbers stay.
pub(super) fn masked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut before) = (text, ' ');
    while let Some(first) = rest.chars().next() {
        // Matches do not start inside a word or number.
        let is_start = !(before.is_alphanumeric() || before == '.' && first.is_ascii_digit());
        let length = if is_start { masked_length(rest, before) } else { 0 };
        if length > 0 {
            out.push(MASK);
            before = MASK;
            rest = &rest[length..];
        } else {
            out.push(first);
            before = first;
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

/// Number of bytes to mask at the start of a text; `before` is the preceding character.
fn masked_length(text: &str, before: char) -> usize {
    let found =
        [address(text), uuid(text), date(text), named_date(text), clock(text, before), duration(text), hex(text)];
    found.into_iter().flatten().max().unwrap_or_default()
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

fn hex_digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_hexdigit).count()
}

/// Whether a word or number ends at this index.
fn ends(text: &str, at: usize) -> bool {
    text.get(at..).is_some_and(|rest| rest.chars().next().is_none_or(|c| !c.is_alphanumeric()))
}

/// `0x7f3a…`
fn address(text: &str) -> Option<usize> {
    let length = hex_digits(text.strip_prefix("0x")?) + 2;
    (length > 2 && ends(text, length)).then_some(length)
}

/// Eight or more hexadecimal digits, both letters and decimal digits.
fn hex(text: &str) -> Option<usize> {
    let length = hex_digits(text);
    let word = &text.as_bytes()[..length];
    let is_mixed = word.iter().any(u8::is_ascii_digit) && word.iter().any(u8::is_ascii_alphabetic);
    (length >= 8 && is_mixed && ends(text, length)).then_some(length)
}

fn uuid(text: &str) -> Option<usize> {
    let mut at = 0;
    for (n, group) in UUID.into_iter().enumerate() {
        at += usize::from(n > 0 && text.as_bytes().get(at) == Some(&b'-'));
        if hex_digits(text.get(at..)?) != group {
            return None;
        }
        at += group;
    }
    (at == UUID.iter().sum::<usize>() + 4 && ends(text, at)).then_some(at)
}

/// A number within the bounds, of one or two digits, and its length.
fn small(text: &str, bounds: std::ops::RangeInclusive<u32>) -> Option<usize> {
    let length = digits(text);
    let number = text.get(..length)?.parse().ok()?;
    ((1..=2).contains(&length) && bounds.contains(&number)).then_some(length)
}

/// `2026-11-29`, `2026/11/29`, `29.11.2026`; optionally followed by `T` and the time.
fn date(text: &str) -> Option<usize> {
    let first = digits(text);
    let sign = text.get(first..)?.chars().next().filter(|sign| matches!(sign, '-' | '/' | '.'))?;
    let (month_at, is_year_first) = (first + 1, first == 4);
    let bounds = if is_year_first { 1..=12 } else { 1..=31 };
    if !is_year_first {
        small(text, bounds.clone())?;
    }
    let month = small(text.get(month_at..)?, 1..=12)?;
    let last_at = month_at + month + 1;
    if !text.get(month_at + month..)?.starts_with(sign) {
        return None;
    }
    let last = text.get(last_at..)?;
    let end = last_at + if is_year_first { small(last, 1..=31)? } else { Some(digits(last)).filter(|n| *n == 4)? };
    if let Some(time) = text.get(end..).and_then(|rest| rest.strip_prefix('T'))
        && let Some(length) = clock(time, ' ')
    {
        return Some(end + 1 + length);
    }
    ends(text, end).then_some(end)
}

/// `Sun`, `Nov 29`, `29 Nov`, each optionally followed by a year.
fn named_date(text: &str) -> Option<usize> {
    let word = |text: &str| text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let is_in = |text: &str, names: &[&str]| names.iter().any(|name| text.eq_ignore_ascii_case(name));
    let behind = |at: usize| text.get(at..).and_then(|rest| rest.strip_prefix(' '));
    let length = word(text);
    if length > 0 {
        let name = &text[..length];
        if is_in(name, &WEEKDAYS) {
            return Some(length);
        }
        let blanks = text[length..].bytes().take_while(|b| *b == b' ').count();
        let day = small(text.get(length + blanks..)?, 1..=31)?;
        let end = length + blanks + day;
        return (is_in(name, &MONTHS) && (1..=2).contains(&blanks) && ends(text, end)).then(|| with_year(text, end));
    }
    let day = small(text, 1..=31)?;
    let month = behind(day)?;
    let end = day + 1 + word(month);
    is_in(&month[..word(month)], &MONTHS).then(|| with_year(text, end))
}

fn with_year(text: &str, end: usize) -> usize {
    let year = text.get(end..).and_then(|rest| rest.strip_prefix(' ')).unwrap_or_default();
    if digits(year) == 4 && ends(year, 4) && (year.starts_with("19") || year.starts_with("20")) { end + 5 } else { end }
}

/// `9:05`, `21:03:12.5`, optionally with a zone. A number after a colon is a line number.
fn clock(text: &str, before: char) -> Option<usize> {
    if before == ':' {
        return None;
    }
    let mut at = small(text, 0..=23)?;
    let pair = |at: usize| {
        let rest = text.get(at..)?.strip_prefix(':')?;
        (digits(rest) == 2 && small(rest, 0..=60).is_some()).then_some(at + 3)
    };
    at = pair(at)?;
    if let Some(end) = pair(at) {
        at = end;
    }
    if let Some(fraction) = text.get(at..)?.strip_prefix(['.', ',']).filter(|rest| digits(rest) > 0) {
        at += 1 + digits(fraction);
    }
    let zone = text.get(at..)?;
    at += match zone.chars().next() {
        Some('Z') => 1,
        Some('+' | '-') if digits(&zone[1..]) == 4 => 5,
        Some('+' | '-') if digits(&zone[1..]) == 2 && zone.get(3..4) == Some(":") => 6,
        Some(_) | None => 0,
    };
    // `12:34:56:78` and `10:20: error` are positions in a file.
    let is_place = text.get(at..)?.starts_with(':');
    (ends(text, at) && !is_place).then_some(at)
}

/// `1.25 s`, `3ms`, `2h3m4s`, `12 minutes`.
fn duration(text: &str) -> Option<usize> {
    let number = |text: &str| {
        let whole = digits(text);
        let fraction = text.get(whole..).and_then(|rest| rest.strip_prefix('.')).map_or(0, digits);
        (whole > 0).then_some(if fraction > 0 { whole + 1 + fraction } else { whole })
    };
    let unit = |text: &str| text.chars().take_while(|c| c.is_alphabetic()).map(char::len_utf8).sum::<usize>();
    let mut at = 0;
    while let Some(length) = number(&text[at..]) {
        let from = at + length;
        let behind = unit(&text[from..]);
        if behind == 0 || !ATTACHED.contains(&&text[from..from + behind]) {
            break;
        }
        at = from + behind;
    }
    if at > 0 {
        return ends(text, at).then_some(at);
    }
    let from = number(text)?;
    let rest = text.get(from..)?.strip_prefix(' ')?;
    let length = unit(rest);
    let end = from + 1 + length;
    (APART.contains(&&rest[..length]) && ends(text, end)).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn same(a: &str, b: &str) {
        assert_eq!(masked(a), masked(b));
    }

    #[track_caller]
    fn differ(a: &str, b: &str) {
        assert_ne!(masked(a), masked(b));
    }

    #[test]
    fn times_dates_and_durations_are_left_out() {
        same("took 12.5 s", "took 3.25 s");
        same("took 12ms, 2h3m4s", "took 5ms, 1h0m9s");
        same("real\t0m1.234s", "real\t0m2.001s");
        same("12 tests in 3 minutes", "12 tests in 7 minutes");
        same("at 21:03:12", "at 9:05");
        same("[21:03:12.123] up", "[21:04:00.001] up");
        same("2026-11-29T21:03:12.5Z ok", "2026-12-01T00:00:00Z ok");
        same("2026-11-29T21:03:12+01:00 ok", "2026-11-29T21:04:12+01:00 ok");
        same("2026-11-29 21:03", "2025/01/02 03:04");
        same("29.11.2026", "1.2.2027");
        same("Sun Nov 29 20:48:00 UTC 2026", "Mon Nov 30 20:49:10 UTC 2026");
        same("29 Nov 2026", "30 Nov 2026");
    }

    #[test]
    fn addresses_and_ids_are_left_out() {
        same("at 0xdeadbeef01", "at 0x7f00aa");
        same("commit 9f8e7d6c5b", "commit 0a23456789");
        same("run 123e4567-e89b-12d3-a456-426614174000", "run 00000000-e89b-12d3-a456-4266141740ff");
    }

    #[test]
    fn other_numbers_stay() {
        differ("progress: 10 %", "progress: 20 %");
        differ("step 3 of 9", "step 4 of 9");
        differ("12 failed", "11 failed");
        differ("12345678 bytes", "22345678 bytes");
        differ("src/a.rs:12:34: error", "src/a.rs:13:40: error");
        differ("v1.2.3", "v1.2.4");
        differ("10 megabytes", "20 megabytes");
        differ("1.5 %", "1.6 %");
        differ("10/20", "11/20");
        differ("1 day", "2 dogs");
        differ("10 success", "11 success");
        assert_eq!(masked("ä 5 ö 3µs"), "ä 5 ö #");
    }
}
