//! Converts values like JavaScript: to numbers, to text, and numbers to digits.

use crate::json::value::Json;

/// A number as `JSON.stringify` writes it: the shortest digits, without an exponent from 1e-6 to below 1e21.
pub(super) fn number_text(number: &serde_json::Number) -> String {
    match number.as_f64() {
        Some(n) if number.is_f64() => float_text(n),
        // An integer beyond 2^53 keeps its digits.
        Some(_) | None => number.to_string(),
    }
}

fn float_text(n: f64) -> String {
    if n == 0.0 {
        return "0".to_owned();
    }
    let shortest = format!("{:e}", n.abs());
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let digits = mantissa.replace('.', "");
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or_default());
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let text = match exponent {
        0..21 if exponent + 1 >= count => format!("{digits}{}", zeros(exponent + 1 - count)),
        0..21 => mantissa_at(&digits, exponent),
        -6..0 => format!("0.{}{digits}", zeros(-exponent - 1)),
        _ => format!("{mantissa}e{exponent:+}"),
    };
    if n < 0.0 { format!("-{text}") } else { text }
}

fn mantissa_at(digits: &str, exponent: i32) -> String {
    let (whole, fraction) = digits.split_at(usize::try_from(exponent + 1).unwrap_or_default());
    format!("{whole}.{fraction}")
}

impl Json {
    /// The result of `Number(value)`; NaN if it is not a number.
    #[must_use]
    pub fn to_number(&self) -> f64 {
        match self {
            Self::Null => 0.0,
            Self::Bool(yes) => f64::from(*yes),
            Self::Number(number) => number.as_f64().unwrap_or(f64::NAN),
            Self::String(text) => number_of(text),
            Self::Array(_) => number_of(&self.to_template()),
            Self::Object(_) => f64::NAN,
        }
    }

    /// The result of the template `${value}`.
    #[must_use]
    pub fn to_template(&self) -> String {
        match self {
            Self::String(text) => text.clone(),
            Self::Null | Self::Bool(_) | Self::Number(_) => self.to_text(),
            Self::Array(items) => {
                let text = |item: &Self| if *item == Self::Null { String::new() } else { item.to_template() };
                items.iter().map(text).collect::<Vec<_>>().join(",")
            }
            Self::Object(_) => "[object Object]".to_owned(),
        }
    }
}

fn number_of(text: &str) -> f64 {
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    if text.is_empty() {
        return 0.0;
    }
    for (prefixes, radix) in [(["0x", "0X"], 16), (["0o", "0O"], 8), (["0b", "0B"], 2)] {
        if let Some(digits) = prefixes.iter().find_map(|prefix| text.strip_prefix(prefix)) {
            // A sign is not a digit.
            let digits = if digits.starts_with('+') { "" } else { digits };
            #[expect(clippy::cast_precision_loss, reason = "as JavaScript has it")]
            return u64::from_str_radix(digits, radix).map_or(f64::NAN, |n| n as f64);
        }
    }
    match text.trim_start_matches(['+', '-']) {
        "Infinity" => text.parse().unwrap_or(f64::NAN),
        // Rust also parses `inf` and `nan`.
        digits if digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') => text.parse().unwrap_or(f64::NAN),
        _ => f64::NAN,
    }
}

/// Replaces every out-of-range number in the text by `null`, as JavaScript does when it reads and writes one; `None` if
/// there are none.
pub(super) fn without_infinities(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let (mut out, mut kept, mut at, mut in_string) = (String::new(), 0, 0, false);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if in_string => at += 2,
            b'"' => {
                in_string = !in_string;
                at += 1;
            }
            b'-' | b'0'..=b'9' if !in_string => {
                let rest = &bytes[at..];
                let is_part = |b: &u8| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E');
                let end = at + rest.iter().position(|b| !is_part(b)).unwrap_or(rest.len());
                if text[at..end].parse::<f64>().is_ok_and(f64::is_infinite) {
                    out.push_str(&text[kept..at]);
                    out.push_str("null");
                    kept = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    if kept == 0 {
        return None;
    }
    out.push_str(&text[kept..]);
    Some(out)
}
