//! Ids, with one type for each kind. Most are 128 bits, shown as 26 characters of Crockford's base 32 (the ULID
//! alphabet); the others are short texts. Some are derived from the object they name, so that a store that is rebuilt
//! from the same transcripts has the same ids; others are made of a time and random bits.

use std::{
    borrow::{Borrow, Cow},
    convert::Infallible,
    fmt,
    str::FromStr,
    sync::Arc,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{provider::Provider, time::Timestamp};

const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// The reason why a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not an id (26 characters of 0-9 A-Z)")]
pub struct ParseIdError {
    /// The text as given, cut to 64 characters.
    pub given: String,
}

/// Bytes in their external form: lower-case hexadecimal.
#[derive(Debug, Clone, Copy)]
pub struct Hex<'a>(pub &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

fn encode(value: u128, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut text = [0_u8; 26];
    let mut rest = value;
    for slot in text.iter_mut().rev() {
        *slot = ALPHABET[(rest & 31) as usize];
        rest >>= 5;
    }
    f.write_str(std::str::from_utf8(&text).unwrap_or_default())
}

fn decode(text: &str) -> Result<u128, ParseIdError> {
    let bad = || ParseIdError { given: text.chars().take(64).collect() };
    if text.len() != 26 {
        return Err(bad());
    }
    let mut value: u128 = 0;
    for (i, byte) in text.bytes().enumerate() {
        let byte = byte.to_ascii_uppercase();
        let digit = ALPHABET.iter().position(|a| *a == byte).ok_or_else(bad)? as u128;
        if i == 0 && digit > 7 {
            return Err(bad());
        }
        value = (value << 5) | digit;
    }
    Ok(value)
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(u128);

        impl $name {
            /// Creates the id from its 128 bits.
            #[must_use]
            pub const fn from_bits(bits: u128) -> Self {
                Self(bits)
            }

            /// The 128 bits.
            #[must_use]
            pub const fn bits(self) -> u128 {
                self.0
            }

            /// Creates the id from 16 big-endian bytes.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(u128::from_be_bytes(bytes))
            }

            /// The 16 big-endian bytes, which sort like the text.
            #[must_use]
            pub const fn to_bytes(self) -> [u8; 16] {
                self.0.to_be_bytes()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                encode(self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;
            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                decode(text).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = <Cow<'de, str>>::deserialize(d)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "pattern": "^[0-7][0-9A-HJKMNP-TV-Z]{25}$" })
            }
        }
    };
}

/// Defines an [`id!`] that is created from a time and random bits.
macro_rules! minted {
    ($(#[$doc:meta])* $name:ident) => {
        id! { $(#[$doc])* $name }

        impl $name {
            /// Creates an id: 48 bits of the time, 80 random bits.
            #[must_use]
            pub fn mint(at: Timestamp, random: [u8; 10]) -> Self {
                Self(by_age(at, random.iter().fold(0, |bits, byte| (bits << 8) | u128::from(*byte))))
            }
        }
    };
}

/// 48 bits of the time, followed by 80 other bits.
fn by_age(at: Timestamp, bits: u128) -> u128 {
    let ms = (at.as_millisecond().max(0) as u128) & 0xffff_ffff_ffff;
    (ms << 80) | (bits & ((1 << 80) - 1))
}

/// Defines an id that is a text: cheap to clone, and equal to its text in JSON and in the schema.
macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, text: &str) -> bool {
                *self.0 == *text
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, text: &&str) -> bool {
                *self.0 == **text
            }
        }

        impl FromStr for $name {
            type Err = Infallible;
            fn from_str(text: &str) -> Result<Self, Infallible> {
                Ok(text.into())
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                String::json_schema(generator)
            }
        }
    };
}

id! {
    /// Identifies a session: one conversation of one agent. Starts with the time it was first seen, so ids sort by age.
    SessionId
}
id! {
    /// Identifies an event. Equal to the [`Identity`] of the record from which it was made.
    EventId
}
id! {
    /// Identifies a turn. Equal to the id of the event that opened it.
    TurnId
}
minted! {
    /// Identifies a run: a process that capture started. Created when it starts; sorts by age.
    RunId
}
minted! {
    /// Identifies a delivery: one call of a hook, or one message of an agent's protocol. Created by the process that
    /// submits it; sorts by age.
    DeliveryId
}
minted! {
    /// Identifies a prompt in a session's queue. Created when it is queued; sorts by age.
    PromptId
}

impl SessionId {
    /// Creates the id of a session: 48 bits of the time it was first seen, 80 bits derived from the provider's id.
    #[must_use]
    pub fn mint(first_seen: Timestamp, provider: Provider, provider_session_id: &str) -> Self {
        Self(by_age(first_seen, Identity::of(provider, "session", &[provider_session_id.as_bytes()]).bits()))
    }
}

text_id! {
    /// Identifies a permission request. Derived from the delivery that makes the request, or from the event that first
    /// showed its dialog.
    ApprovalId
}
text_id! {
    /// Identifies a finding. Derived from its session, its key and the time it began.
    FindingId
}
text_id! {
    /// Identifies a message of the notifier: the same for every attempt to send it. Derived from its channel and its
    /// notices.
    MessageId
}

/// Identifies a record, so that it is recognized when it is read again: (provider, record id, block).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity(u128);

impl Identity {
    /// Hashes the parts of an identity; `space` separates different kinds of record ids.
    #[must_use]
    pub fn of(provider: Provider, space: &str, parts: &[&[u8]]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(provider.as_str().as_bytes());
        hasher.update(&[0]);
        hasher.update(space.as_bytes());
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        let mut bits = [0_u8; 16];
        bits.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        Self(u128::from_be_bytes(bits))
    }

    /// The identity of one block of a record with an id.
    #[must_use]
    pub fn record(provider: Provider, record: &str, block: u32) -> Self {
        Self::of(provider, "record", &[record.as_bytes(), &block.to_le_bytes()])
    }

    /// The identity of the `occurrence`-th copy of this one, for records without an id, of which a session may contain
    /// several equal ones. Occurrence 0 is the identity itself.
    #[must_use]
    pub fn occurrence(self, occurrence: u32) -> Self {
        Self(self.0 ^ (u128::from(occurrence).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)))
    }

    /// The 128 bits.
    #[must_use]
    pub const fn bits(self) -> u128 {
        self.0
    }

    /// Creates an identity from its bits.
    #[must_use]
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// The id of the event that has this identity.
    #[must_use]
    pub const fn event_id(self) -> EventId {
        EventId(self.0)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity(")?;
        encode(self.0, f)?;
        write!(f, ")")
    }
}

impl From<EventId> for ApprovalId {
    fn from(id: EventId) -> Self {
        id.to_string().into()
    }
}

impl From<EventId> for TurnId {
    fn from(id: EventId) -> Self {
        Self(id.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ids_round_trip_through_text_in_either_case(bits: u128) {
            let id = EventId::from_bits(bits);
            prop_assert_eq!(id.to_string().parse::<EventId>(), Ok(id));
            prop_assert_eq!(id.to_string().to_lowercase().parse::<EventId>(), Ok(id));
        }

        #[test]
        fn id_text_sorts_in_the_same_order_as_its_bytes(a: u128, b: u128) {
            let (a, b) = (EventId::from_bits(a), EventId::from_bits(b));
            prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
            prop_assert_eq!(a.cmp(&b), a.to_bytes().cmp(&b.to_bytes()));
        }

        #[test]
        fn minted_ids_sort_by_age(a in 0_i64..1 << 48, b in 0_i64..1 << 48, random: ([u8; 10], [u8; 10])) {
            let mint = |ms, random| DeliveryId::mint(Timestamp::from_millisecond(ms), random);
            let (first, second) = (mint(a, random.0), mint(b, random.1));
            prop_assert_eq!(first.cmp(&second), (a, random.0).cmp(&(b, random.1)));
        }
    }

    proptest! {
        #[test]
        fn a_text_id_serializes_compares_and_hashes_like_its_text(text: String, other: String) {
            let id = MessageId::from(text.as_str());
            prop_assert_eq!(id.to_string(), text.as_str());
            prop_assert_eq!(text.parse::<MessageId>(), Ok(id.clone()));
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(serde_json::to_string(&id).unwrap(), json.as_str());
            prop_assert_eq!(serde_json::from_str::<MessageId>(&json).unwrap(), id.clone());
            prop_assert_eq!(id.cmp(&MessageId::from(other.as_str())), text.cmp(&other));
            // A set finds it by its text.
            prop_assert_eq!(HashSet::from([id]).contains(text.as_str()), true);
        }
    }

    #[test]
    fn malformed_session_ids_are_rejected() {
        for bad in ["", "01J", "81J0000000000000000000000Z", "0000000000000000000000000U", "é"] {
            assert!(bad.parse::<SessionId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_identity_depends_on_how_its_parts_are_divided() {
        let p = Provider::Claude;
        assert_ne!(Identity::of(p, "a", &[b"xy", b"z"]), Identity::of(p, "a", &[b"x", b"yz"]));
        assert_ne!(Identity::record(p, "u", 0), Identity::record(p, "u", 1));
        assert_ne!(Identity::record(p, "u", 0), Identity::record(Provider::Codex, "u", 0));
        assert_ne!(Identity::record(p, "u", 0), Identity::record(p, "u", 0).occurrence(1));
    }
}
