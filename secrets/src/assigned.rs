//! Values with a name that suggests a secret: `password: …`, `API_KEY=…`, `"token": "…"`, `--secret …`, `<password>…`,
//! `?sig=…`.
//!
//! A word of a name (`triggers`) starts the detector. It reads the whole name around the word, the separator between
//! name and value, and the value (`read`). `names` interprets the name, `value` the value; [`is_secret`] combines both.

mod form;
mod read;
mod weigh;

use crate::{
    found::{SecretKind, Span},
    names::{self, NameMeaning, NameWeight},
    printed::behind_break,
    text::{goes_on, is_escaped_break, line_start, skip_blanks, until},
    value,
};

pub(crate) use form::ValueForm;
use form::{LONGEST_VALUE, opens_quote};
use read::behind_type;
pub(crate) use read::{closing, read};
pub(crate) use weigh::is_secret;

const LONGEST_NAME: usize = 80;
/// Bytes at the end of a long bare value that are still searched for names.
const NEAR_END: usize = 512;

/// The bounds of the name around one of its words, which begins at `hit`.
pub(crate) fn name_around(bytes: &[u8], hit: usize) -> (usize, usize) {
    let part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
    let least = hit.saturating_sub(LONGEST_NAME);
    let mut start = hit;
    while start > least && part(bytes[start - 1]) {
        start -= 1;
    }
    if start > 0 && start < hit && is_escaped_break(bytes, start - 1) {
        start += 1;
    }
    let end = until(bytes, hit, LONGEST_NAME, |b| !part(b));
    (start, end)
}

/// The value of the name from `start` to `end`, if it is a secret.
///
/// `seen` is the end of the last bare value that was too long to be a secret: names inside it are ignored.
pub(crate) fn find(bytes: &[u8], start: usize, end: usize, seen: &mut usize) -> Option<Span> {
    // The kind in a redaction mark is not the name of the following value.
    if start < *seen || bytes[..start].ends_with(b"[redacted:") {
        return None;
    }
    let meaning = |name: &[u8]| meaning_of(bytes, start, name);
    let Some((at, form)) = joined(bytes, start, end) else {
        let meaning = meaning(&bytes[start..end])?;
        let before =
            before_name(bytes, start).filter(|(from, to)| is_secret(meaning, &bytes[*from..*to], ValueForm::Quoted));
        return before.map(|(from, to)| span(from, to, meaning)).or_else(|| value_after(bytes, end, meaning));
    };
    let meaning = meaning(&bytes[start..end])?;
    let (from, to, form) = read(bytes, at, form)?;
    let value = &bytes[from..to];
    if is_secret(meaning, value, form) {
        return Some(span(from, to, meaning));
    }
    if form == ValueForm::Quoted {
        return None;
    }
    if to - from >= LONGEST_VALUE / 2 {
        *seen = to - NEAR_END;
    }
    // `password: str = "…"`: a type follows the colon.
    if let Some((from, to)) = behind_type(bytes, from) {
        return is_secret(meaning, &bytes[from..to], ValueForm::Quoted).then(|| span(from, to, meaning));
    }
    among_arguments(bytes, from, meaning)
}

/// The meaning of a name. The word before `key` specifies it: `API key`, `secret key`.
fn meaning_of(bytes: &[u8], start: usize, name: &[u8]) -> Option<NameMeaning> {
    if name.eq_ignore_ascii_case(b"key") && start > 1 && bytes[start - 1] == b' ' {
        let word = bytes[..start - 1].iter().rev().take(16).take_while(|b| b.is_ascii_alphabetic()).count();
        let before = bytes[start - 1 - word..start - 1].to_ascii_lowercase();
        return names::meaning(&[&before[..], b"_key"].concat());
    }
    names::meaning(name)
}

/// A random value in a sentence: `your API key is …`, `user token \`…\` expired`.
fn value_after(bytes: &[u8], end: usize, meaning: NameMeaning) -> Option<Span> {
    if meaning.weight == NameWeight::Little {
        return None;
    }
    let mut at = skip_blanks(bytes, end);
    if at == end {
        return None;
    }
    if let Some(word) = [&b"is "[..], b"was ", b"of ", b"value "].iter().find(|word| goes_on(bytes, at, word)) {
        at = skip_blanks(bytes, at + word.len());
    }
    let at = until(bytes, at, 6, |b| !matches!(b, b'"' | b'\'' | b'`' | b'\\' | b'(' | b'*'));
    let to = until(bytes, at, 512, |b| {
        !(b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'+' | b'/' | b'=' | b'.' | b'~'))
    });
    let value = bytes[at..to].strip_suffix(b".").unwrap_or(&bytes[at..to]);
    let is_drawn = value.len() >= 20
        && value::looks_random(value)
        && !value::is_uuid(value)
        && !value::is_path(value)
        && !value.contains(&b'/')
        && !value::is_public(value)
        && !is_assignment(value);
    (is_drawn && !value::is_placeholder(value) && !value::is_words(value)).then(|| span(at, at + value.len(), meaning))
}

/// Whether it consists of a name, a sign and a value, which are read separately.
fn is_assignment(value: &[u8]) -> bool {
    let sign = value.iter().position(|b| *b == b'=');
    sign.is_some_and(|sign| sign > 0 && value[sign..].iter().any(u8::is_ascii_alphanumeric))
}

/// A random value among the arguments of the call that begins at `from`: `env('NAME', '…')`.
fn among_arguments(bytes: &[u8], from: usize, meaning: NameMeaning) -> Option<Span> {
    if meaning.weight == NameWeight::Little {
        return None;
    }
    let name = until(bytes, from, 40, |b| !(b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':')));
    if name == from || bytes.get(name) != Some(&b'(') {
        return None;
    }
    let end = until(bytes, name, 400, |b| matches!(b, b'\n' | b')' | b';'));
    let mut at = name + 1;
    while at < end {
        let open = until(&bytes[..end], at, 400, |b| matches!(b, b'"' | b'\''));
        let &quote = bytes[..end].get(open)?;
        let close = until(&bytes[..end], open + 1, 400, |b| b == quote);
        let value = &bytes[open + 1..close];
        let is_drawn = value.len() >= 8
            && value.iter().any(u8::is_ascii_digit)
            && !value::is_words(value)
            && !value::is_path(value);
        if is_drawn && is_secret(meaning, value, ValueForm::Quoted) {
            return Some(span(open + 1, close, meaning));
        }
        at = close + 1;
    }
    None
}

fn span(start: usize, end: usize, meaning: NameMeaning) -> Span {
    Span { start, end, kind: SecretKind::from(meaning.kind) }
}

/// The start of the value that is joined to a name, and its notation if it is not quoted.
fn joined(bytes: &[u8], start: usize, end: usize) -> Option<(usize, ValueForm)> {
    let before = start.checked_sub(1).map_or(b'\n', |i| bytes[i]);
    let slashes = until(bytes, end, 8, |b| b != b'\\');
    let is_quoted = matches!(bytes.get(slashes), Some(b'"' | b'\'' | b'`')) && matches!(before, b'"' | b'\'' | b'`');
    let mut at = if is_quoted { slashes + 1 } else { end };
    if bytes.get(at) == Some(&b']') {
        at += 1;
    }
    let tight = at;
    at = skip_blanks(bytes, at);
    let is_flag = bytes[start..end].starts_with(b"-");
    let in_query = matches!(before, b'?' | b'&');
    let plain = |yes: bool| if yes { ValueForm::Plain } else { ValueForm::Bare };
    // In Markdown: `**Password:** …`, `**Password**: …`.
    if goes_on(bytes, at, b"**:") || goes_on(bytes, at, b":** ") {
        return Some((at + 3, ValueForm::Bare));
    }
    // One of several: `Unseal Key 1: …`.
    let number = until(bytes, at, 2, |b| !b.is_ascii_digit());
    if at > end && number > at && bytes.get(number) == Some(&b':') {
        return Some((number + 1, ValueForm::Bare));
    }
    if let Some(value) = fallback(bytes, at, is_quoted) {
        return Some((value, ValueForm::Bare));
    }
    if let Some(value) = in_element(bytes, start, at) {
        return Some((value, ValueForm::Plain));
    }
    if is_flag && let Some(value) = on_next_line(bytes, start, at) {
        return Some((value, ValueForm::Plain));
    }
    let next = *bytes.get(at)?;
    let second = bytes.get(at + 1).copied().unwrap_or_default();
    let third = bytes.get(at + 2).copied().unwrap_or_default();
    match (next, second) {
        (b'(', b'"' | b'\'' | b'\\') if opens_quote(bytes, at + 1) => {
            names::ends_telling(&bytes[start..end]).then_some((at + 1, ValueForm::Bare))
        }
        (b':', b':') => None,
        // A part of a resource identifier: `arn:…:secret:…`.
        (b':', _) if before == b':' => None,
        (b':' | b'+' | b'?', b'=') => Some((at + 2, ValueForm::Bare)),
        (b'?', b':') => Some((at + 2, ValueForm::Bare)),
        (b'=', b'=') | (b'!', b'=') => Some((if third == b'=' { at + 3 } else { at + 2 }, ValueForm::Bare)),
        (b'=', b'>') | (b'-', b'>') | (b'<', b'-') => Some((at + 2, ValueForm::Bare)),
        (b'=', _) => {
            let is_tight = at == tight && !matches!(second, b' ' | b'\t');
            let in_line = is_tight && (is_flag || in_query || begins_setting(bytes, start));
            Some((at + 1, plain(in_line)))
        }
        (b':', _) => Some((at + 1, ValueForm::Bare)),
        (b'%', b'3') if matches!(third, b'D' | b'd' | b'A' | b'a') => Some((at + 3, ValueForm::Plain)),
        (b'>', _) if is_quoted || before == b'<' => Some((in_cdata(bytes, at + 1), ValueForm::Plain)),
        // A row of a table: `| DB_PASSWORD | … |`.
        (b'|', b' ') if bytes[line_start(bytes, start, 64)..start].contains(&b'|') => Some((at + 1, ValueForm::Bare)),
        (b',' | b'\n' | b'\r' | b'/' | b'}' | b'{' | b'\\', _) | (b'a'..=b'z' | b'V', _)
            if at > end || is_quoted || matches!(next, b'\n' | b',' | b'\\') =>
        {
            named_apart(bytes, at, is_quoted)
                .or_else(|| {
                    let value = skip_blanks(bytes, at + 1);
                    let is_pair = next == b',' && is_quoted && bytes[end..at].iter().all(|b| *b != b']');
                    (is_pair && opens_quote(bytes, value) && !is_key(bytes, value)).then_some((value, ValueForm::Bare))
                })
                .or_else(|| if at == end { None } else { bare(bytes, start, end, at, is_flag) })
        }
        _ if at == end => None,
        _ => bare(bytes, start, end, at, is_flag),
    }
}

/// The position after the opening of a CDATA section of XML, if one begins at `at`.
fn in_cdata(bytes: &[u8], at: usize) -> usize {
    const OPENS: &[u8] = b"<![CDATA[";
    if goes_on(bytes, at, OPENS) { at + OPENS.len() } else { at }
}

/// The position of the value of an element with attributes, `<password type="x">…`, or of the element after one that
/// contains a name: `<key>password</key> <string>…`, `<name>db.password</name> <value>…`. `at` is after the name.
fn in_element(bytes: &[u8], start: usize, at: usize) -> Option<usize> {
    let prefix = bytes[..start].iter().rev().take(24).take_while(|b| b.is_ascii_alphanumeric() || **b == b':').count();
    let before = bytes[..start - prefix].last();
    if before == Some(&b'<') && bytes.get(at).is_some_and(u8::is_ascii_alphabetic) && !goes_on(bytes, at, b"=") {
        let close = until(bytes, at, 240, |b| matches!(b, b'>' | b'<' | b'\n'));
        let has_attributes = bytes[at..close].contains(&b'=') && !bytes[..close].ends_with(b"/");
        return (has_attributes && bytes.get(close) == Some(&b'>')).then(|| in_cdata(bytes, close + 1));
    }
    if before == Some(&b'>') && goes_on(bytes, at, b"</") {
        let close = until(bytes, at, 48, |b| b == b'>' || b == b'\n');
        let open = behind_gap(bytes, close + 1, |b| b.is_ascii_whitespace());
        let value = until(bytes, open, 48, |b| b == b'>' || b == b'\n');
        let is_next = bytes.get(open) == Some(&b'<') && bytes.get(open + 1).is_some_and(u8::is_ascii_alphabetic);
        return (is_next && bytes.get(value) == Some(&b'>')).then(|| in_cdata(bytes, value + 1));
    }
    None
}

/// The position of a flag's value if it is the next item of a list over several lines: `- --password` and `- …`,
/// `"--password",` and `"…"`. `at` is after the flag and its quote.
fn on_next_line(bytes: &[u8], start: usize, at: usize) -> Option<usize> {
    let sign = if bytes.get(at) == Some(&b',') { at + 1 } else { at };
    let next = behind_gap(bytes, sign, |b| b.is_ascii_whitespace());
    if !bytes[sign..next].iter().any(|b| matches!(b, b'\n' | b'\\')) {
        return None;
    }
    if sign > at {
        return opens_quote(bytes, next).then_some(next);
    }
    let quote = bytes[..start].iter().rev().take(8).take_while(|b| matches!(b, b'"' | b'\'' | b'\\')).count();
    let is_item = bytes[..start - quote].ends_with(b"- ");
    // After a line break, the dash of the item may already follow.
    let value = if goes_on(bytes, next, b"- ") { next + 2 } else { next };
    let is_value = is_item && bytes[..value].ends_with(b"- ") && bytes.get(value) != Some(&b'-');
    is_value.then_some(value)
}

/// The quoted value before its name: `<add value="…" key="password"/>`, `{"value": "…", "name": …}`.
fn before_name(bytes: &[u8], start: usize) -> Option<(usize, usize)> {
    const MOST: usize = 400;
    let edge = |b: &u8| matches!(b, b'"' | b'\'' | b'\\' | b'=' | b':' | b' ');
    let least = start.saturating_sub(MOST);
    let signs = bytes[least..start].iter().rev().take_while(|b| edge(b)).count();
    let before = &bytes[least..start - signs];
    if signs < 2
        || !(before.ends_with(b"key")
            || before.ends_with(b"name")
            || before.ends_with(b"Key")
            || before.ends_with(b"Name"))
    {
        return None;
    }
    let opens = before.iter().rposition(|b| matches!(b, b'<' | b'{' | b'>' | b'}'))?;
    let word = opens + memchr::memmem::find(&before[opens..], b"value")?;
    let quote = least + until(before, word + 5, 12, |b| !edge(&b)).saturating_sub(1);
    let slashes = bytes[..quote].iter().rev().take_while(|b| **b == b'\\').count();
    let &sign = bytes.get(quote).filter(|b| matches!(b, b'"' | b'\''))?;
    let close = closing(bytes, quote + 1, sign, slashes)?;
    (close < start).then_some((quote + 1, close))
}

/// Whether a setting of an environment begins here: at the start of a line, or after `export`, `-e` or a blank.
fn begins_setting(bytes: &[u8], start: usize) -> bool {
    match start.checked_sub(1).map(|i| bytes[i]) {
        None | Some(b'\n' | b' ' | b'\t' | b'+' | b'"' | b'\'' | b';' | b',' | b':') => true,
        Some(b'n' | b'r' | b't') => start >= 2 && bytes[start - 2] == b'\\',
        // The separator of a listing: `12→NAME=…`.
        Some(before) => before >= 0x80,
    }
}

/// Whether the quoted word at `at` is a key.
fn is_key(bytes: &[u8], at: usize) -> bool {
    let slashes = until(bytes, at, 8, |b| b != b'\\') - at;
    let Some(&quote) = bytes.get(at + slashes) else { return false };
    let close = until(bytes, at + slashes + 1, LONGEST_NAME, |b| b == quote || b == b'\n' || b == b'\\');
    let behind = until(bytes, close, 8, |b| !matches!(b, b'\\' | b' ') && b != quote);
    bytes.get(behind) == Some(&b':')
}

/// The position of the quoted value that replaces an unset one: `env.SECRET || "…"`, `getenv("SECRET") or "…"`.
fn fallback(bytes: &[u8], at: usize, is_quoted: bool) -> Option<usize> {
    let at = if is_quoted && bytes.get(at) == Some(&b')') { skip_blanks(bytes, at + 1) } else { at };
    // A pair of Kotlin: `"token" to "…"`.
    if is_quoted && goes_on(bytes, at, b"to ") && opens_quote(bytes, skip_blanks(bytes, at + 3)) {
        return Some(skip_blanks(bytes, at + 3));
    }
    let word = [&b"||="[..], b"||", b"??=", b"??", b"or ", b"?:"].into_iter().find(|word| goes_on(bytes, at, word))?;
    let value = skip_blanks(bytes, at + word.len());
    opens_quote(bytes, value).then_some(value)
}

/// `"name": "DB_PASSWORD", "value": "…"`, also over several lines and as attributes.
fn named_apart(bytes: &[u8], at: usize, is_quoted: bool) -> Option<(usize, ValueForm)> {
    let gap = |b: u8| b.is_ascii_whitespace() || matches!(b, b',' | b'"' | b'\'' | b'\\' | b'}' | b'{');
    let mut at = behind_gap(bytes, at, gap);
    let words = [&b"value"[..], b"default", b"content="];
    let mut word = words.into_iter().find(|word| goes_on(bytes, at, word));
    // Other attributes in between: `type = string`, ` id="x"`.
    for _ in 0..4 {
        if word.is_some() || !is_quoted {
            break;
        }
        at = behind_attribute(bytes, at)?;
        at = behind_gap(bytes, at, gap);
        word = words.into_iter().find(|word| goes_on(bytes, at, word));
    }
    let word = word.map(|word| word.strip_suffix(b"=").unwrap_or(word))?;
    let mut at = until(bytes, at + word.len(), 8, |b| !matches!(b, b'"' | b'\'' | b'\\'));
    at = skip_blanks(bytes, at);
    matches!(bytes.get(at), Some(b':' | b'='))
        .then_some((at + 1, if is_quoted { ValueForm::Bare } else { ValueForm::Plain }))
}

/// The position after blanks, quotes and commas, and after line breaks with the prefix of a diff or a listing.
fn behind_gap(bytes: &[u8], at: usize, gap: impl Fn(u8) -> bool) -> usize {
    let mut at = until(bytes, at, 64, |b| !gap(b));
    for _ in 0..4 {
        if at > 0 && is_escaped_break(bytes, at - 1) {
            at += 1;
        }
        let next = until(bytes, behind_break(bytes, at), 64, |b| !gap(b));
        if next == at {
            break;
        }
        at = next;
    }
    at
}

/// The position after an attribute and its value: `type = string`, `id="x"`.
fn behind_attribute(bytes: &[u8], at: usize) -> Option<usize> {
    let name = until(bytes, at, 32, |b| !(b.is_ascii_lowercase() || matches!(b, b'_' | b'-')));
    let sign = skip_blanks(bytes, name);
    if name == at || bytes.get(sign) != Some(&b'=') {
        return None;
    }
    let from = skip_blanks(bytes, sign + 1);
    let slashes = until(bytes, from, 8, |b| b != b'\\') - from;
    match bytes.get(from + slashes) {
        Some(&quote @ (b'"' | b'\'')) => closing(bytes, from + slashes + 1, quote, slashes).map(|to| to + slashes + 1),
        Some(_) => Some(until(bytes, from, 64, |b| b.is_ascii_whitespace() || matches!(b, b'\\' | b'>'))),
        None => None,
    }
}

/// A value with only a blank before it: `--password …`, `ENV TOKEN …`, `password 'x'`, `login me password …`.
fn bare(bytes: &[u8], start: usize, end: usize, at: usize, is_flag: bool) -> Option<(usize, ValueForm)> {
    let line = line_start(bytes, start, 200);
    let before = &bytes[line..start];
    let name = &bytes[start..end];
    if is_flag {
        return (bytes.get(at) != Some(&b'-')).then_some((at, ValueForm::Plain));
    }
    if matches!(bytes[at], b'"' | b'\'')
        && (name.eq_ignore_ascii_case(b"password")
            || name.eq_ignore_ascii_case(b"passphrase")
            // A keyword of Lisp: `:db-password "…"`.
            || before.ends_with(b":"))
    {
        return Some((at, ValueForm::Bare));
    }
    // `[sudo] password for me: …`
    if goes_on(bytes, at, b"for ") && names::meaning(name).is_some_and(|m| m.weight == NameWeight::All) {
        let whom = until(bytes, at + 4, 64, |b| b.is_ascii_whitespace() || b == b':');
        return (bytes.get(whom) == Some(&b':') && bytes.get(whom + 1) == Some(&b' '))
            .then_some((whom + 2, ValueForm::Bare));
    }
    for word in [&b"is "[..], b"was ", b"to ", b"ist "] {
        if goes_on(bytes, at, word) && names::meaning(name).is_some_and(|m| m.weight == NameWeight::All) {
            let value = skip_blanks(bytes, at + word.len());
            let to = until(bytes, value, 64, |b| b.is_ascii_whitespace());
            let said = &bytes[value..to];
            // A sentence continues with words; a password in a sentence is seldom a word.
            return said.iter().any(u8::is_ascii_digit).then_some((value, ValueForm::Bare));
        }
    }
    let commands = [&b"ENV "[..], b"ARG ", b" set ", b"setx ", b"SET ", b"put ", b"config set ", b"machine "];
    let is_set =
        commands.iter().any(|word| before.ends_with(word) || before.ends_with(&word[1..]) && before.len() < word.len())
            || memchr::memmem::find(before, b"config set ").is_some();
    let word = until(bytes, at, 64, |b| b.is_ascii_whitespace());
    let in_netrc = name == b"password" && before_login(bytes, start) && !value::is_words(&bytes[at..word]);
    let is_redis = name == b"requirepass" || name == b"masterauth";
    (is_set || in_netrc || is_redis).then_some((at, ValueForm::Plain))
}

fn before_login(bytes: &[u8], start: usize) -> bool {
    let near = &bytes[start.saturating_sub(160)..start];
    memchr::memmem::find(near, b"login ").is_some() || memchr::memmem::find(near, b"user ").is_some()
}
