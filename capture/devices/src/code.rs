//! Codes: typed once, within a minute. Wrong codes void none, or anybody who reaches the port could keep a person from
//! pairing a device: a code has 40 random bits, so that 10,000 guesses a second for the whole minute find one of the eight
//! that may be open with a chance of 1 in 200,000.

use std::{collections::VecDeque, io};

use api::devices::DeviceScope;
use constant_time_eq::constant_time_eq;
use events::Timestamp;

use super::random_bits;

/// How long a code is accepted, ms.
pub const CODE_MS: i64 = 60_000;
/// Maximum number of codes that are open; the oldest makes room.
const OPEN: usize = 8;
/// How many codes that are void are remembered, to say that they were right once.
const VOID: usize = 32;
/// The digits of Crockford's base 32: none looks like another.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// Digits of a code.
const LENGTH: usize = 8;

/// What a code does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Pairs a device.
    Pair(Pairing),
    /// Raises the device with this id.
    Raise(String),
}

/// What device a code pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pairing {
    pub(crate) scope: DeviceScope,
    /// Whether it comes from a process that cannot be identified.
    pub(crate) tunnel: bool,
    /// Whether it comes from a process of the server's own user.
    pub(crate) local: bool,
}

/// The outcome of a code that was entered.
pub(crate) enum Redeemed {
    /// It is right, and void from now on.
    Accepted(Purpose),
    /// It was right once.
    Expired,
    /// It never was.
    Wrong,
}

struct Code {
    digits: [u8; LENGTH],
    purpose: Purpose,
    made_at: Timestamp,
}

impl Code {
    /// Whether it is accepted now. A clock that was put back makes none last longer.
    fn is_open(&self, now: Timestamp) -> bool {
        (0..CODE_MS).contains(&now.since_ms(self.made_at))
    }
}

/// The codes that were made. In memory only.
#[derive(Default)]
pub(crate) struct Codes {
    open: VecDeque<Code>,
    void: VecDeque<[u8; LENGTH]>,
}

impl Codes {
    /// Makes a code; says when it expires.
    pub(crate) fn make(&mut self, purpose: Purpose, now: Timestamp) -> io::Result<(String, Timestamp)> {
        let digits = digits(random_bits()?);
        self.close(now);
        // One code of a device at a time.
        if matches!(purpose, Purpose::Raise(_)) {
            self.void_where(|code| code.purpose == purpose);
        }
        if self.open.len() >= OPEN
            && let Some(oldest) = self.open.pop_front()
        {
            self.remember(oldest.digits);
        }
        self.open.push_back(Code { digits, purpose, made_at: now });
        Ok((shown(digits), now.plus_ms(CODE_MS)))
    }

    /// Looks for a code among those that are meant. Every one is compared, in constant time.
    pub(crate) fn redeem(&mut self, given: &str, now: Timestamp, is_meant: impl Fn(&Purpose) -> bool) -> Redeemed {
        self.close(now);
        let Some(given) = read(given) else { return Redeemed::Wrong };
        let mut right = None;
        for (at, code) in self.open.iter().enumerate().filter(|(_, code)| is_meant(&code.purpose)) {
            if constant_time_eq(&code.digits, &given) {
                right = Some(at);
            }
        }
        if let Some(code) = right.and_then(|at| self.open.remove(at)) {
            self.remember(code.digits);
            return Redeemed::Accepted(code.purpose);
        }
        let was_right = self.void.iter().fold(false, |found, void| found | constant_time_eq(void, &given));
        if was_right { Redeemed::Expired } else { Redeemed::Wrong }
    }

    /// Voids the codes of a device.
    pub(crate) fn forget(&mut self, device: &str) {
        self.void_where(|code| matches!(&code.purpose, Purpose::Raise(id) if id == device));
    }

    fn close(&mut self, now: Timestamp) {
        self.void_where(|code| !code.is_open(now));
    }

    fn void_where(&mut self, is_void: impl Fn(&Code) -> bool) {
        let (void, open): (VecDeque<Code>, VecDeque<Code>) = self.open.drain(..).partition(|code| is_void(code));
        self.open = open;
        for code in void {
            self.remember(code.digits);
        }
    }

    fn remember(&mut self, digits: [u8; LENGTH]) {
        if self.void.len() >= VOID {
            self.void.pop_front();
        }
        self.void.push_back(digits);
    }
}

/// Random bits as digits.
fn digits(bits: [u8; 5]) -> [u8; LENGTH] {
    let value = bits.iter().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
    std::array::from_fn(|at| DIGITS[(value >> (35 - 5 * at) & 31) as usize])
}

/// Random bits as text, in one piece.
pub(crate) fn text(bits: &[u8; 5]) -> String {
    digits(*bits).iter().map(|digit| char::from(*digit)).collect()
}

/// A code as it is shown: in two halves.
fn shown(digits: [u8; LENGTH]) -> String {
    let half = |digits: &[u8]| digits.iter().map(|digit| char::from(*digit)).collect::<String>();
    format!("{}-{}", half(&digits[..LENGTH / 2]), half(&digits[LENGTH / 2..]))
}

/// A code as it was typed: in either case, with hyphens and blanks or without, and with letters that look like digits.
fn read(given: &str) -> Option<[u8; LENGTH]> {
    // What is far too long cannot be a code.
    let typed = given.bytes().take(LENGTH * 4).filter(|byte| !matches!(byte, b'-' | b' '));
    let digits: Vec<u8> = typed
        .map(|byte| match byte.to_ascii_uppercase() {
            b'O' => b'0',
            b'I' | b'L' => b'1',
            digit => digit,
        })
        .collect();
    digits.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_of_a_code_counts() {
        assert_eq!(text(&[0; 5]), "00000000");
        assert_eq!(text(&[0xff; 5]), "ZZZZZZZZ");
        for bit in 0..40 {
            let mut bits = [0_u8; 5];
            bits[bit / 8] = 1 << (bit % 8);
            assert_ne!(text(&bits), "00000000", "{bit}");
        }
        assert_eq!(shown(*b"7K3M9QXT"), "7K3M-9QXT");
    }

    #[test]
    fn a_code_is_read_however_it_is_typed() {
        for given in ["7K3M-9Q1T", "7k3m9q1t", " 7K3M 9QIT ", "7K3M-9QLT"] {
            assert_eq!(read(given), Some(*b"7K3M9Q1T"), "{given}");
        }
        for given in ["", "7K3M-9Q1", "7K3M-9Q1TT", "7K3M-9Q1T, and more of it behind"] {
            assert_eq!(read(given), None, "{given}");
        }
    }
}
