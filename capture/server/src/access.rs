//! Scopes, and the tokens that grant them.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::Mutex,
    time::Duration,
};

use api::Scope;
use constant_time_eq::constant_time_eq;
use live_view::locks::lock;
use tokio::time::Instant;

use crate::peer::Client;

/// A set of scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Grants(u8);

impl Grants {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const INGEST: Self = Self(1);
    pub(crate) const READ: Self = Self(2);
    pub(crate) const CONTROL: Self = Self(4);
    pub(crate) const ADMIN: Self = Self(8);
    const OWNER: Self = Self(15);

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The scopes in the set.
    pub(crate) fn scopes(self) -> impl Iterator<Item = Scope> {
        let all = [Scope::Ingest, Scope::Read, Scope::Control, Scope::Admin];
        all.into_iter().filter(move |scope| self.cover(*scope))
    }

    pub(crate) const fn cover(self, scope: Scope) -> bool {
        let needed = match scope {
            Scope::Open => return true,
            Scope::Ingest => Self::INGEST,
            Scope::Read => Self::READ,
            Scope::Control => Self::CONTROL,
            Scope::Admin => Self::ADMIN,
        };
        self.0 & needed.0 != 0
    }
}

/// A secret that grants scopes. It is never printed.
#[derive(Clone)]
pub struct Token(Box<str>);

/// Why a text cannot be a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The text is too easy to guess.
    #[error("a token needs at least 32 characters; this one has {length}")]
    Short {
        /// The length of the text.
        length: usize,
    },
    /// The text contains characters that cannot be sent in a header.
    #[error("a token may contain only printable ASCII characters without spaces")]
    Characters,
}

impl Token {
    /// Checks and wraps a token: 256 bits as base 64 or hexadecimal.
    ///
    /// # Errors
    /// If the text is shorter than 32 characters or cannot be sent in a header.
    pub fn new(text: &str) -> Result<Self, TokenError> {
        if !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(TokenError::Characters);
        }
        if text.len() < 32 {
            return Err(TokenError::Short { length: text.len() });
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// The tokens of an installation, by scope.
#[derive(Debug, Clone)]
pub struct Tokens {
    /// Grants all scopes.
    pub owner: Token,
    /// Grants only `ingest`: sending events.
    pub ingest: Token,
    /// Grants only `read`: viewing.
    pub read: Token,
    /// Grants only `control`: acting on sessions.
    pub control: Token,
    /// Grants only `admin`: changing how capture works.
    pub admin: Token,
}

impl Tokens {
    /// The scopes a presented token grants. It is compared with every token, in constant time.
    pub(crate) fn grants(&self, presented: &[u8]) -> Grants {
        [
            (&self.owner, Grants::OWNER),
            (&self.ingest, Grants::INGEST),
            (&self.read, Grants::READ),
            (&self.control, Grants::CONTROL),
            (&self.admin, Grants::ADMIN),
        ]
        .into_iter()
        .fold(Grants::NONE, |sum, (token, grants)| {
            if constant_time_eq(token.0.as_bytes(), presented) { sum.and(grants) } else { sum }
        })
    }
}

/// Counts wrong tokens for each client separately, so that another user's attempts do not affect the owner. Wrong
/// tokens never cause a right token to be refused.
#[derive(Debug, Default)]
pub(crate) struct WrongTokens(Mutex<HashMap<Client, VecDeque<Instant>>>);

impl WrongTokens {
    pub(crate) const ALLOWED: usize = 20;
    pub(crate) const WINDOW: Duration = Duration::from_secs(10);

    /// Maximum number of clients counted separately; further clients share a count.
    const CLIENTS: usize = 256;

    /// Counts another wrong token of a client; returns true if the client recently sent too many.
    pub(crate) fn note(&self, client: Client, now: Instant) -> bool {
        let mut clients = lock(&self.0);
        if clients.len() >= Self::CLIENTS && !clients.contains_key(&client) {
            clients.retain(|_, seen| seen.back().is_some_and(|t| now - *t < Self::WINDOW));
        }
        let shared = clients.len() >= Self::CLIENTS && !clients.contains_key(&client);
        // Our own user always has a separate count.
        let client = if shared && client != Client::Own { Client::Unnamed } else { client };
        let seen = clients.entry(client).or_default();
        while seen.len() > Self::ALLOWED || seen.front().is_some_and(|t| now - *t >= Self::WINDOW) {
            seen.pop_front();
        }
        seen.push_back(now);
        seen.len() > Self::ALLOWED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(letter: char) -> Token {
        Token::new(&letter.to_string().repeat(43)).unwrap()
    }

    #[test]
    fn each_token_opens_its_scope_only() {
        let tokens =
            Tokens { owner: token('o'), ingest: token('i'), read: token('r'), control: token('c'), admin: token('a') };
        let of = |letter: char| tokens.grants(letter.to_string().repeat(43).as_bytes());
        assert_eq!(of('i'), Grants::INGEST);
        assert_eq!(of('r'), Grants::READ);
        assert_eq!(of('c'), Grants::CONTROL);
        assert_eq!(of('a'), Grants::ADMIN);
        for scope in [Scope::Open, Scope::Read, Scope::Admin] {
            assert!(of('o').cover(scope));
        }
        assert_eq!(of('x'), Grants::NONE);
        assert_eq!(tokens.grants(b""), Grants::NONE);
        assert_eq!(tokens.grants("o".repeat(42).as_bytes()), Grants::NONE);
    }

    #[test]
    fn weak_tokens_are_refused() {
        assert_eq!(Token::new("").err(), Some(TokenError::Short { length: 0 }));
        assert_eq!(Token::new(&"x".repeat(31)).err(), Some(TokenError::Short { length: 31 }));
        assert_eq!(Token::new(&"x y".repeat(20)).err(), Some(TokenError::Characters));
        assert_eq!(format!("{:?}", token('s')), "Token(…)");
    }

    #[test]
    fn the_21st_wrong_token_within_ten_seconds_is_over_the_limit() {
        let (wrong, start) = (WrongTokens::default(), Instant::now());
        let note = |ms| wrong.note(Client::Own, start + Duration::from_millis(ms));
        for n in 0..20 {
            assert!(!note(n), "{n}");
        }
        assert!(note(9_999));
        assert!(note(9_999));
        assert!(!note(10_030));
    }

    #[test]
    fn wrong_tokens_are_counted_per_client() {
        let (wrong, now) = (WrongTokens::default(), Instant::now());
        for n in 0..=WrongTokens::ALLOWED {
            assert_eq!(wrong.note(Client::User(7), now), n == WrongTokens::ALLOWED);
        }
        assert!(!wrong.note(Client::User(8), now));
        assert!(!wrong.note(Client::Own, now));
        // An unlimited number of new clients shares one count, and the owner still has a separate one.
        let told = (0..10_000_u32).filter(|n| wrong.note(Client::Machine(n.to_be_bytes().into()), now)).count();
        assert!(told > 9_000, "{told}");
        assert!(wrong.0.lock().unwrap().len() <= WrongTokens::CLIENTS + 2);
        assert!(!wrong.note(Client::Own, now));
    }
}
