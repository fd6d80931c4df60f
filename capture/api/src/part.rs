//! Matches ids by a part of them, as users type them.

/// Length of a short id: the last characters of an id, as shown in lists.
pub const SHORT_ID: usize = 8;

/// The hint in errors for an unknown id.
pub const PART_HINT: &str = "3 characters from the start or end of an id are enough";

/// Maximum length of a client's text repeated in an error, characters.
const SHOWN_CHARS: usize = 64;

/// A part of an id as typed: the start or end of the id, or the start of its short id, in any case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdPart(String);

impl IdPart {
    /// Minimum length of a part, bytes.
    pub const SHORTEST: usize = 3;

    /// A part of at least [`SHORTEST`](Self::SHORTEST) bytes; `None` if the text is shorter.
    #[must_use]
    pub fn new(given: &str) -> Option<Self> {
        (given.len() >= Self::SHORTEST).then(|| Self(given.to_ascii_uppercase()))
    }

    /// Whether the id begins or ends with this part, or its short id begins with it.
    #[must_use]
    pub fn fits(&self, id: &str) -> bool {
        let (id, part) = (id.as_bytes(), self.0.as_bytes());
        let begins = |id: &[u8]| id.get(..part.len()).is_some_and(|start| start.eq_ignore_ascii_case(part));
        let short = &id[id.len().saturating_sub(SHORT_ID)..];
        let Some(rest) = id.len().checked_sub(part.len()) else { return false };
        begins(id) || id[rest..].eq_ignore_ascii_case(part) || begins(short)
    }
}

/// A client's text, shortened so that an error can repeat it.
#[must_use]
pub fn shown(given: &str) -> String {
    given.chars().take(SHOWN_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_part_matches_either_end_case_insensitively() {
        let part = IdPart::new;
        for (given, fits) in [("01ab", true), ("XY9", true), ("xy9", true), ("abc", false), ("01ABCxy9é", false)] {
            assert_eq!(part(given).is_some_and(|part| part.fits("01ABCxy9")), fits, "{given}");
        }
        assert_eq!(part("01"), None, "too short");
        assert!(PART_HINT.starts_with(&IdPart::SHORTEST.to_string()));
        for (given, fits) in [("NMA1", true), ("nma", true), ("NMA12KQR", true), ("KQR", true), ("MA12", false)] {
            assert_eq!(part(given).unwrap().fits("01ARZ3NDEKTSV4RRFFNMA12KQR"), fits, "{given} of a short id");
        }
        assert!(!part("é01").unwrap().fits("é"), "longer than the id");
    }
}
