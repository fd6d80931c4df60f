//! The time and the random bits of a new entry; the caller passes both.

use std::fmt::Write as _;

/// The time of a write, and randomness for the generated ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Milliseconds since 1970.
    pub now_ms: i64,
    /// Random bits.
    pub random: u128,
}

/// Number of short ids tried before a long one is used.
const TRIES: usize = 100;

/// Generates ids for entries: 8 hexadecimal digits, as in pi.
pub(crate) fn entry_id(stamp: Stamp, is_taken: impl Fn(&str) -> bool) -> String {
    let mut state = fold(stamp.random);
    for _ in 0..TRIES {
        let id = format!("{:08x}", next(&mut state) >> 32);
        if !is_taken(&id) {
            return id;
        }
    }
    uuid(4, u128::from(next(&mut state)) << 64 | u128::from(next(&mut state)))
}

/// The id of a new session: a UUID of version 7.
pub(crate) fn session_id(stamp: Stamp) -> String {
    let ms = u128::from(stamp.now_ms.max(0).unsigned_abs()) & 0xffff_ffff_ffff;
    uuid(7, ms << 80 | stamp.random & ((1 << 80) - 1))
}

fn uuid(version: u128, bits: u128) -> String {
    let bits = bits & !(0xf << 76) & !(0x3 << 62) | version << 76 | 0x2 << 62;
    let hex = format!("{bits:032x}");
    let mut out = String::with_capacity(36);
    for (index, digit) in hex.chars().enumerate() {
        if matches!(index, 8 | 12 | 16 | 20) {
            out.push('-');
        }
        let _ = out.write_char(digit);
    }
    out
}

fn fold(random: u128) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "both halves are used")]
    let (low, high) = (random as u64, (random >> 64) as u64);
    low ^ high.rotate_left(32)
}

/// SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_and_session_ids_have_the_format_of_pi() {
        let stamp = Stamp { now_ms: 1_767_323_060_000, random: 1 << 100 | 7 };
        let id = entry_id(stamp, |_| false);
        assert!(id.len() == 8 && id.bytes().all(|b| b.is_ascii_hexdigit()), "{id}");
        assert_ne!(id, entry_id(stamp, |taken| taken == id));
        assert_eq!(entry_id(stamp, |taken| taken.len() == 8).len(), 36);
        let session = session_id(stamp);
        assert_eq!(session.len(), 36);
        assert!(session.starts_with("019b7ca9-c720-7"), "{session}");
        assert!(matches!(session.as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "{session}");
    }
}
