//! Parses numbers that users type. Error messages state what is expected.

use std::{ops::RangeInclusive, str::FromStr};

/// Parses a whole number.
pub(super) fn integer<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "expected a whole number, 0 or more".to_owned())
}

/// Parses a number of rows, at least one.
pub(super) fn count(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| "expected a whole number above 0".to_owned())
}

/// Parses a whole number above 0.
pub(super) fn positive(text: &str) -> Result<u32, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "expected a whole number above 0".to_owned())
}

/// Parses a whole number of seconds within a range.
pub(super) fn seconds(range: RangeInclusive<u32>) -> impl Fn(&str) -> Result<u32, String> + Clone {
    move |text| {
        let wrong = || format!("expected a number of seconds from {} to {}", range.start(), range.end());
        text.parse().ok().filter(|seconds| range.contains(seconds)).ok_or_else(wrong)
    }
}

/// Parses a number of seconds, possibly with a fraction.
pub(super) fn seconds_or_part(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0);
    seconds.ok_or_else(|| "expected a number of seconds".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_number_is_refused_with_the_expected_form() {
        assert_eq!(integer::<usize>("50"), Ok(50));
        for wrong in ["", "-1", "1.5", "x", "99999999999999999999999"] {
            assert_eq!(integer::<usize>(wrong), Err("expected a whole number, 0 or more".into()), "{wrong}");
        }
        assert_eq!(count("1"), Ok(1));
        for wrong in ["", "0", "-1", "1.5", "x"] {
            assert_eq!(count(wrong), Err("expected a whole number above 0".into()), "{wrong}");
        }
        assert_eq!(seconds(0..=3600)("0"), Ok(0));
        for wrong in ["", "3601", "1.5", "x"] {
            let expected = "expected a number of seconds from 0 to 3600";
            assert_eq!(seconds(0..=3600)(wrong), Err(expected.into()), "{wrong}");
        }
        assert_eq!(seconds_or_part("0.5"), Ok(0.5));
        for wrong in ["", "-1", "inf", "NaN", "5s"] {
            assert_eq!(seconds_or_part(wrong), Err("expected a number of seconds".into()), "{wrong}");
        }
    }
}
