//! Patterns of names, matched as they are written.
//!
//! The tables contain thousands of patterns. Automata for all of them need megabytes and milliseconds to build, in
//! every process that decides; these patterns need little more than their text. A pattern is examined only if a part of
//! the path can match its end, and is then compared from the front.
//!
//! The syntax is that of globs in which `*` does not match `/`: `**/` at the beginning and in the middle, `/**` at the
//! end, `*`, and `[abc0-9]`.

use std::collections::HashMap;

/// A set of patterns.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    patterns: Vec<Box<str>>,
    /// Patterns by the name at their end.
    names: PatternIndex,
    /// Patterns for everything below a directory, by the directory's name.
    directories: PatternIndex,
}

/// A byte at one end of a name, and the next byte if it is known.
type Ends = (u8, Option<u8>);

/// Indices of patterns, by the name at their end.
#[derive(Debug, Default)]
struct PatternIndex {
    exact: HashMap<Box<str>, Vec<u32>>,
    /// By the first bytes.
    first: HashMap<Ends, Vec<u32>>,
    /// By the last bytes, in reverse order, if the first byte is not known.
    last: HashMap<Ends, Vec<u32>>,
    other: Vec<u32>,
}

impl Patterns {
    pub(super) fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut new = Self::default();
        for text in texts {
            let number = u32::try_from(new.patterns.len()).unwrap_or(u32::MAX);
            let text = text.to_lowercase();
            let index = if text.ends_with("/**") { &mut new.directories } else { &mut new.names };
            index.add(named(&text), number);
            new.patterns.push(text.into());
        }
        new
    }

    /// Whether one of the patterns matches a path. The path is in lower case.
    pub(super) fn is_match(&self, path: &str) -> bool {
        let mut parts = path.split('/');
        let name = parts.next_back().unwrap_or_default();
        let is_meant = |number: &u32, part: &str| {
            let pattern = usize::try_from(*number).ok().and_then(|number| self.patterns.get(number));
            // The name alone decides in most cases.
            pattern.is_some_and(|pattern| {
                name_matches(named(pattern).as_bytes(), part.as_bytes()) && matches(pattern.as_bytes(), path.as_bytes())
            })
        };
        self.names.candidates(name).any(|number| is_meant(number, name))
            || parts.any(|part| self.directories.candidates(part).any(|number| is_meant(number, part)))
    }
}

impl PatternIndex {
    fn add(&mut self, name: &str, number: u32) {
        let is_literal = |byte: &u8| !matches!(byte, b'*' | b'[' | b']');
        let literal = |byte: Option<u8>| byte.filter(is_literal);
        let mut bytes = name.bytes();
        let (first, second) = (literal(bytes.next()), literal(bytes.next()));
        let mut bytes = name.bytes().rev();
        let (last, before) = (literal(bytes.next()), literal(bytes.next()));
        let list = if name.bytes().all(|byte| is_literal(&byte)) {
            self.exact.entry(name.into()).or_default()
        } else if let Some(first) = first {
            self.first.entry((first, second)).or_default()
        } else if let Some(last) = last {
            self.last.entry((last, before)).or_default()
        } else {
            &mut self.other
        };
        list.push(number);
    }

    /// The patterns that may end with this name.
    fn candidates<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a u32> {
        fn of(list: &HashMap<Ends, Vec<u32>>, mut bytes: impl Iterator<Item = u8>) -> [Option<&Vec<u32>>; 2] {
            let (Some(byte), next) = (bytes.next(), bytes.next()) else { return [None, None] };
            [list.get(&(byte, None)), next.and_then(|next| list.get(&(byte, Some(next))))]
        }
        let (first, last) = (of(&self.first, name.bytes()), of(&self.last, name.bytes().rev()));
        let found = [self.exact.get(name)].into_iter().chain(first).chain(last);
        found.flatten().flatten().chain(&self.other)
    }
}

/// The name at the end of a pattern, or the directory's name.
fn named(pattern: &str) -> &str {
    let pattern = pattern.strip_suffix("/**").unwrap_or(pattern);
    pattern.rsplit('/').next().unwrap_or(pattern)
}

/// Whether a pattern matches the path.
pub(super) fn matches(pattern: &[u8], path: &[u8]) -> bool {
    // Whether the rest matches below any of the directories, from this one on.
    let below = |rest: &[u8], path: &[u8]| {
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        slashes.map(|(at, _)| at + 1).any(|at| matches(rest, &path[at..]))
    };
    match pattern {
        [] => path.is_empty(),
        b"/**" => path.first() == Some(&b'/'),
        [b'/', b'*', b'*', b'/', rest @ ..] => path.first() == Some(&b'/') && below(rest, path),
        [b'*', b'*', b'/', rest @ ..] => matches(rest, path) || below(rest, path),
        [b'/', rest @ ..] => path.strip_prefix(b"/").is_some_and(|path| matches(rest, path)),
        _ => {
            let name = |bytes: &[u8]| bytes.iter().position(|byte| *byte == b'/').unwrap_or(bytes.len());
            let (pattern, rest) = pattern.split_at(name(pattern));
            let (part, path) = path.split_at(name(path));
            name_matches(pattern, part) && matches(rest, path)
        }
    }
}

/// Whether the part of a pattern between two slashes matches a name.
fn name_matches(mut pattern: &[u8], mut name: &[u8]) -> bool {
    // The pattern after the last `*`, and the part of the name that is compared with it.
    let mut again: Option<(&[u8], &[u8])> = None;
    loop {
        let next = match (pattern, name) {
            ([], []) => return true,
            ([b'*', rest @ ..], _) => {
                again = Some((rest, name));
                Some((rest, name))
            }
            ([b'[', rest @ ..], [byte, behind @ ..]) => {
                let end = rest.iter().position(|byte| *byte == b']');
                end.filter(|end| is_in(&rest[..*end], *byte)).map(|end| (&rest[end + 1..], behind))
            }
            ([literal, rest @ ..], [byte, behind @ ..]) if literal == byte => Some((rest, behind)),
            _ => None,
        };
        (pattern, name) = match (next, again) {
            (Some(next), _) => next,
            // The `*` matches one byte more.
            (None, Some((rest, [_, behind @ ..]))) => {
                again = Some((rest, behind));
                (rest, behind)
            }
            (None, _) => return false,
        };
    }
}

/// Whether a character class contains a byte.
fn is_in(class: &[u8], byte: u8) -> bool {
    match class {
        [from, b'-', to, rest @ ..] => (*from..=*to).contains(&byte) || is_in(rest, byte),
        [one, rest @ ..] => *one == byte || is_in(rest, byte),
        [] => false,
    }
}

#[cfg(test)]
mod tests;
