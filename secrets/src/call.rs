//! Credentials that code passes as literals: `HTTPBasicAuth("me", "…")`, `jwt.sign({ id }, "…")`, `fill("#password",
//! "…")`. The call determines which argument it is; `value` decides whether it is a credential.

use crate::{
    assigned,
    found::{SecretKind, Span},
    text::{line_start, until},
    value,
};

/// Longest argument list of a call that is read, bytes.
const LONGEST: usize = 480;
/// Maximum nesting of calls within the arguments.
const DEEPEST: usize = 4;
/// Bytes before a call that are searched for its receiver.
const BEFORE: usize = 160;

/// The literal of a call that is a credential.
#[derive(Clone, Copy)]
enum CallArgument {
    /// The first one that looks random.
    Key,
    /// The last one, after another that names its owner.
    Second,
    /// The last one, if the line indicates that a secret is typed.
    Typed,
}

const CALLS: &[(&str, CallArgument)] = &[
    ("basicauth(", CallArgument::Second),
    ("basic_auth(", CallArgument::Second),
    ("auth=(", CallArgument::Second),
    (".login(", CallArgument::Second),
    ("getconnection(", CallArgument::Second),
    ("credentials(", CallArgument::Second),
    ("networkcredential(", CallArgument::Second),
    ("passwordauthentication(", CallArgument::Second),
    ("wifi.begin(", CallArgument::Second),
    ("new pdo(", CallArgument::Second),
    ("mysqli(", CallArgument::Second),
    ("mysqli_connect(", CallArgument::Second),
    ("jwt.sign(", CallArgument::Key),
    ("jwt.encode(", CallArgument::Key),
    ("jwt.decode(", CallArgument::Key),
    ("jwt.verify(", CallArgument::Key),
    ("createhmac(", CallArgument::Key),
    ("hmac.new(", CallArgument::Key),
    ("createcipheriv(", CallArgument::Key),
    ("bearer_auth(", CallArgument::Key),
    ("bearerauth(", CallArgument::Key),
    ("client(", CallArgument::Key),
    ("algoliasearch(", CallArgument::Key),
    (".fill(", CallArgument::Typed),
    (".type(", CallArgument::Typed),
    (".sendkeys(", CallArgument::Typed),
    (".send_keys(", CallArgument::Typed),
    (".setvalue(", CallArgument::Typed),
    (".presssequentially(", CallArgument::Typed),
];

/// Trigger words of this detector.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    CALLS.iter().map(|(word, _)| *word)
}

/// The credential among the arguments of the call whose opening is at `start` to `end`.
pub(crate) fn find(bytes: &[u8], start: usize, end: usize) -> Option<Span> {
    let name = &bytes[start..end];
    let (_, argument) = CALLS.iter().find(|(word, _)| word.as_bytes().eq_ignore_ascii_case(name))?;
    let (literals, close) = literals(bytes, end);
    let secret = match argument {
        CallArgument::Key => literals.into_iter().find(|&(from, to)| is_key(&bytes[from..to])),
        CallArgument::Second => literals.into_iter().skip(1).rfind(|&(from, to)| is_password(&bytes[from..to])),
        CallArgument::Typed => {
            let line = bytes[line_start(bytes, start, BEFORE)..close].to_ascii_lowercase();
            let says = [&b"passw"[..], b"passphrase", b"secret", b"token"];
            let is_told = says.iter().any(|word| memchr::memmem::find(&line, word).is_some());
            literals.into_iter().next_back().filter(|&(from, to)| is_told && is_password(&bytes[from..to]))
        }
    };
    secret.map(|(start, end)| Span { start, end, kind: SecretKind::from("code-literal") })
}

/// The quoted arguments from `at` on, and the end of the call.
fn literals(bytes: &[u8], mut at: usize) -> (Vec<(usize, usize)>, usize) {
    let end = until(bytes, at, LONGEST, |b| b == b'\n');
    let mut found = Vec::new();
    let mut depth = 0_usize;
    while at < end {
        let slashes = until(bytes, at, 8, |b| b != b'\\') - at;
        match bytes.get(at + slashes) {
            Some(&quote @ (b'"' | b'\'' | b'`')) => {
                let from = at + slashes + 1;
                let Some(to) = assigned::closing(bytes, from, quote, slashes).filter(|to| *to <= end) else { break };
                found.push((from, to));
                at = to + slashes + 1;
                continue;
            }
            // Deeper nesting is not read, so that hostile text is not read again at each parenthesis.
            Some(b'(') if depth == DEEPEST => return (found, at),
            Some(b'(') => depth += 1,
            Some(b')') if depth == 0 => return (found, at),
            Some(b')') => depth -= 1,
            _ => {}
        }
        at += slashes + 1;
    }
    (found, end)
}

fn is_key(value: &[u8]) -> bool {
    value.len() >= 16 && value::looks_random(value) && !value::is_uuid(value) && is_password(value)
}

fn is_password(value: &[u8]) -> bool {
    let is_address = memchr::memmem::find(value, b"://").is_some()
        || memchr::memchr(b'@', value).is_some_and(|at| value[at..].contains(&b'.'));
    value.len() >= 6
        && value.len() <= 512
        && !is_address
        && !value.iter().any(|b| b.is_ascii_whitespace() || matches!(b, b'(' | b'{' | b'/' | b'[' | b'='))
        && !matches!(value.first(), Some(b'#' | b'.'))
        && (value.iter().any(|b| b.is_ascii_digit() || matches!(b, b'!' | b'$' | b'%' | b'^' | b'&' | b'*'))
            && !value::is_words(value)
            || value.iter().all(u8::is_ascii_alphabetic) && value::has_stray_capitals(value)
            || value::is_mixed(value))
        && !value::is_number(value)
        && !value::is_placeholder(value)
        && !value::is_public(value)
        && !value::is_path(value)
}
