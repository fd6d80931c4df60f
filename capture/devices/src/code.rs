//! Codes, which are typed once, within a minute. Wrong codes void none, or anyone who reaches the port could keep the
//! user from pairing a device. A code has 40 random bits: 10,000 guesses per second for the whole minute find one of
//! the up to eight open codes with a probability of 1 in 200,000.

use std::{collections::VecDeque, io};

use api::devices::DeviceScope;
use constant_time_eq::constant_time_eq;
use events::Timestamp;

use super::random_bits;

/// How long a code is valid, ms.
pub const CODE_MS: i64 = 60_000;
/// Maximum number of open codes; the oldest is voided first.
const OPEN: usize = 8;
/// Number of voided codes remembered, to report that they were once valid.
const VOID: usize = 32;
/// The digits of Crockford's base 32, which are easy to distinguish.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// Number of digits in a code.
const LENGTH: usize = 8;

/// The purpose of a code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Pairs a device.
    Pair(Pairing),
    /// Elevates the device with this id.
    Raise(String),
}

/// The properties of the device a code pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pairing {
    pub(crate) scope: DeviceScope,
    /// Whether the device connects through a process that cannot be identified.
    pub(crate) tunnel: bool,
    /// Whether the device connects from a process of the server's own user.
    pub(crate) local: bool,
}

/// The outcome of entering a code.
pub(crate) enum Redeemed {
    /// The code is right, and is now void.
    Accepted(Purpose),
    /// The code was valid once.
    Expired,
    /// The code was never valid.
    Wrong,
}

struct Code {
    digits: [u8; LENGTH],
    purpose: Purpose,
    made_at: Timestamp,
}

impl Code {
    /// Whether the code is valid now. Setting the clock back does not extend its validity.
    fn is_open(&self, now: Timestamp) -> bool {
        (0..CODE_MS).contains(&now.since_ms(self.made_at))
    }
}

/// The codes, in memory only.
#[derive(Default)]
pub(crate) struct Codes {
    open: VecDeque<Code>,
    void: VecDeque<[u8; LENGTH]>,
}

impl Codes {
    /// Creates a code; returns it with its expiry time.
    pub(crate) fn make(&mut self, purpose: Purpose, now: Timestamp) -> io::Result<(String, Timestamp)> {
        let digits = digits(random_bits()?);
        self.close(now);
        // A device has at most one code at a time.
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

    /// Looks for a code among those with the right purpose. Each is compared in constant time.
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

/// Converts random bits to digits.
fn digits(bits: [u8; 5]) -> [u8; LENGTH] {
    let value = bits.iter().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
    std::array::from_fn(|at| DIGITS[(value >> (35 - 5 * at) & 31) as usize])
}

/// Random bits as text, without a hyphen.
pub(crate) fn text(bits: &[u8; 5]) -> String {
    digits(*bits).iter().map(|digit| char::from(*digit)).collect()
}

/// A code as displayed, in two halves.
fn shown(digits: [u8; LENGTH]) -> String {
    let half = |digits: &[u8]| digits.iter().map(|digit| char::from(*digit)).collect::<String>();
    format!("{}-{}", half(&digits[..LENGTH / 2]), half(&digits[LENGTH / 2..]))
}

/// Parses a typed code: in either case, with or without hyphens and blanks, and with letters that look like digits.
fn read(given: &str) -> Option<[u8; LENGTH]> {
    // A much longer text cannot be a code.
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
    fn a_code_is_parsed_despite_case_spacing_and_lookalike_letters() {
        for given in ["7K3M-9Q1T", "7k3m9q1t", " 7K3M 9QIT ", "7K3M-9QLT"] {
            assert_eq!(read(given), Some(*b"7K3M9Q1T"), "{given}");
        }
        for given in ["", "7K3M-9Q1", "7K3M-9Q1TT", "7K3M-9Q1T, and more of it behind"] {
            assert_eq!(read(given), None, "{given}");
        }
    }
}
