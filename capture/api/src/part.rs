//! Matches ids by a part of them, as people type them.

/// Longest text of a client that an error repeats, characters.
const SHOWN_CHARS: usize = 64;

/// A part of an id, as somebody typed it: its beginning or its end, in whatever case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdPart(String);

impl IdPart {
    /// A part of at least `shortest` bytes; `None` when it is shorter.
    #[must_use]
    pub fn new(given: &str, shortest: usize) -> Option<Self> {
        (given.len() >= shortest).then(|| Self(given.to_ascii_uppercase()))
    }

    /// Whether this id begins or ends with it.
    #[must_use]
    pub fn fits(&self, id: &str) -> bool {
        let (id, part) = (id.as_bytes(), self.0.as_bytes());
        let Some(rest) = id.len().checked_sub(part.len()) else { return false };
        id[..part.len()].eq_ignore_ascii_case(part) || id[rest..].eq_ignore_ascii_case(part)
    }
}

/// What a client gave, cut to a length that an error can repeat.
#[must_use]
pub fn shown(given: &str) -> String {
    given.chars().take(SHOWN_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_fits_at_either_end_in_any_case() {
        let part = |given| IdPart::new(given, 3);
        for (given, fits) in [("01ab", true), ("XY9", true), ("xy9", true), ("abc", false), ("01ABCxy9é", false)] {
            assert_eq!(part(given).is_some_and(|part| part.fits("01ABCxy9")), fits, "{given}");
        }
        assert_eq!(part("01"), None, "too short");
        assert!(!part("é01").unwrap().fits("é"), "longer than the id");
    }
}
