//! Passwords in addresses: `postgres://user:PASSWORD@host`, `https://TOKEN@host`.

use crate::{
    found::{SecretKind, Span},
    text::until,
    value,
};

const LONGEST: usize = 2048;

/// Placeholders for passwords in examples.
const EXAMPLES: &[&[u8]] = &[
    b"password",
    b"pass",
    b"passwd",
    b"pwd",
    b"secret",
    b"pw",
    b"p",
    b"postgres",
    b"root",
    b"guest",
    b"test",
    b"user",
    b"mypassword",
    b"pass123",
    b"password123",
    b"x-oauth-basic",
    b"token",
    b"...",
];

/// The password of the address whose `://` is at `at`.
pub(crate) fn find(bytes: &[u8], at: usize) -> Option<Span> {
    let from = at + 3;
    let end = until(bytes, from, LONGEST, |b| {
        b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'`' | b'<' | b'>' | b'|' | b'\\') || b == 0
    });
    let all = &bytes[from..end];
    let host = all.iter().position(|b| matches!(b, b'/' | b'?' | b'#')).unwrap_or(all.len());
    let user_end = match memchr::memrchr(b'@', &all[..host]) {
        Some(user_end) => user_end,
        // A password that contains a slash: the part that looks like a port is not one.
        None => {
            let colon = memchr::memchr(b':', &all[..host])?;
            let port = &all[colon + 1..host];
            if port.is_empty() || port.iter().all(u8::is_ascii_digit) {
                return None;
            }
            memchr::memchr(b'@', all)?
        }
    };
    let user = &all[..user_end];
    match memchr::memchr(b':', user) {
        Some(colon) => {
            let password = &user[colon + 1..];
            let name = &user[..colon];
            let is_example =
                EXAMPLES.iter().any(|e| e.eq_ignore_ascii_case(password)) || !name.is_empty() && name == password;
            if is_example {
                // `https://TOKEN:x-oauth-basic@host`
                return token(name, from);
            }
            let is_secret = password.len() >= 3
                && !value::is_placeholder(password)
                && !password.iter().any(|b| matches!(b, b'{' | b'}' | b'(' | b'$') && password.len() < 4);
            // Of a pair of keys both are random.
            let start = if token(name, from).is_some() { from } else { from + colon + 1 };
            is_secret.then(|| Span { start, end: from + user_end, kind: SecretKind::from("url-password") })
        }
        None => token(user, from),
    }
}

fn token(user: &[u8], from: usize) -> Option<Span> {
    (user.len() >= 16 && value::looks_random(user) && !value::is_placeholder(user)).then(|| Span {
        start: from,
        end: from + user.len(),
        kind: SecretKind::from("url-token"),
    })
}
