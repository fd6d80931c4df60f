//! Tells words apart, in texts and in queries alike.
//!
//! `parseQuery_string` gives the parts `parse`, `query`, `string` at positions of their own, and the whole word
//! `parsequery_string` at the position of its first part. So a part is found by itself, a whole by its exact spelling, and
//! what is joined in any other way, such as a path, as a phrase of its parts. A character of a script without spaces is a
//! part by itself. Tokens are in lower case and without accents.

use std::ops::Range;

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};
use unicode_normalization::char::{decompose_compatible, is_combining_mark};

/// A longer word is not split, and cut to this length, bytes.
const WORD_BYTES: usize = 64;
/// A token, with where it stands in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Its bytes of the text.
    pub(crate) range: Range<usize>,
    /// The position of the (first) part.
    pub(crate) position: usize,
    /// Whether it is a part; else it is the whole of several.
    pub(crate) is_part: bool,
    /// Where its folded text stands in the arena.
    folded: Range<usize>,
}

/// Reads the tokens of a text one after the other.
#[derive(Debug, Default)]
pub(crate) struct Scanner {
    at: usize,
    position: usize,
    /// Tokens of the present word, in order.
    ready: Vec<Piece>,
    taken: usize,
    /// The folded texts of those.
    arena: String,
    parts: Vec<Range<usize>>,
}

/// What a character is to the scanner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Belongs to a word.
    Word,
    /// Is a word by itself.
    Single,
    /// Separates.
    Other,
}

fn class(c: char) -> Class {
    match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => Class::Word,
        c if c.is_ascii() => Class::Other,
        // Han, kana, bopomofo, hangul, and the ideographs of the higher planes.
        '\u{1100}'..='\u{11ff}'
        | '\u{2e80}'..='\u{2fdf}'
        | '\u{3005}'..='\u{3007}'
        | '\u{3021}'..='\u{3029}'
        | '\u{3041}'..='\u{3096}'
        | '\u{309d}'..='\u{309f}'
        | '\u{30a1}'..='\u{30fa}'
        | '\u{30fc}'..='\u{31bf}'
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}' => Class::Single,
        c if c.is_alphanumeric() || is_combining_mark(c) => Class::Word,
        _ => Class::Other,
    }
}

fn char_at(text: &str, at: usize) -> Option<char> {
    match text.as_bytes().get(at) {
        None => None,
        Some(byte) if byte.is_ascii() => Some(char::from(*byte)),
        Some(_) => text.get(at..).and_then(|rest| rest.chars().next()),
    }
}

/// Appends a text in lower case and without accents.
fn fold(text: &str, out: &mut String) {
    if text.is_ascii() {
        let start = out.len();
        out.push_str(text);
        if let Some(added) = out.get_mut(start..) {
            added.make_ascii_lowercase();
        }
        return;
    }
    for c in text.chars() {
        if class(c) == Class::Single {
            out.push(c);
        } else {
            decompose_compatible(c, |c| {
                if !is_combining_mark(c) {
                    out.extend(c.to_lowercase());
                }
            });
        }
    }
}

impl Scanner {
    /// The next token of a text, always the same one.
    pub(crate) fn next(&mut self, text: &str) -> Option<&Piece> {
        while self.taken == self.ready.len() {
            self.ready.clear();
            self.arena.clear();
            self.taken = 0;
            if !self.scan(text) {
                return None;
            }
        }
        self.taken += 1;
        self.ready.get(self.taken - 1)
    }

    /// The token's text, in lower case and without accents. Of the last one only.
    pub(crate) fn folded(&self, piece: &Piece) -> &str {
        self.arena.get(piece.folded.clone()).unwrap_or_default()
    }

    /// Reads the next word; false at the end of the text.
    fn scan(&mut self, text: &str) -> bool {
        let start = loop {
            let Some(c) = char_at(text, self.at) else { return false };
            match class(c) {
                Class::Word => break self.at,
                Class::Single => {
                    let range = self.at..self.at + c.len_utf8();
                    self.at = range.end;
                    self.push(text, range, true);
                    return true;
                }
                Class::Other => self.at += c.len_utf8(),
            }
        };
        while let Some(c) = char_at(text, self.at).filter(|c| class(*c) == Class::Word) {
            self.at += c.len_utf8();
        }
        self.word(text, start..self.at);
        true
    }

    /// The tokens of one word.
    fn word(&mut self, text: &str, word: Range<usize>) {
        if word.len() > WORD_BYTES {
            let mut end = word.start + WORD_BYTES;
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            self.push(text, word.start..end, true);
            return;
        }
        let bytes = text.as_bytes().get(word.clone()).unwrap_or_default();
        let is_part =
            |(at, byte): (usize, &u8)| byte.is_ascii_lowercase() || byte.is_ascii_digit() || at == 0 && *byte != b'_';
        if bytes.iter().enumerate().all(is_part) {
            // Most words.
            self.push(text, word, true);
            return;
        }
        let mut parts = std::mem::take(&mut self.parts);
        parts.clear();
        split(text.get(word.clone()).unwrap_or_default(), word.start, &mut parts);
        if parts.len() > 1 {
            // Without the underscores at its ends.
            let inner = parts.first().map_or(0, |p| p.start)..parts.last().map_or(0, |p| p.end);
            self.push(text, inner, false);
        }
        for part in &parts {
            self.push(text, part.clone(), true);
        }
        self.parts = parts;
    }

    fn push(&mut self, text: &str, range: Range<usize>, is_part: bool) {
        let start = self.arena.len();
        fold(text.get(range.clone()).unwrap_or_default(), &mut self.arena);
        let folded = start..self.arena.len();
        if !folded.is_empty() {
            self.ready.push(Piece { range, position: self.position, is_part, folded });
            self.position += usize::from(is_part);
        }
    }
}

/// The parts of a word: at underscores and where a capital begins a new one.
fn split(word: &str, base: usize, out: &mut Vec<Range<usize>>) {
    #[derive(Clone, Copy, PartialEq)]
    enum LetterCase {
        Upper,
        Other,
    }
    let case = |c: char| if c.is_uppercase() { LetterCase::Upper } else { LetterCase::Other };
    let mut start = None;
    let mut last = LetterCase::Upper;
    let mut chars = word.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c == '_' {
            if let Some(start) = start.take() {
                out.push(base + start..base + at);
            }
            continue;
        }
        let now = case(c);
        match start {
            None => start = Some(at),
            Some(begun) if now == LetterCase::Upper => {
                // `fooBar`, and the last capital of `HTTPServer`.
                let next_is_lower = chars.peek().is_some_and(|(_, next)| next.is_lowercase());
                if last == LetterCase::Other || next_is_lower {
                    out.push(base + begun..base + at);
                    start = Some(at);
                }
            }
            Some(_) => {}
        }
        last = now;
    }
    if let Some(start) = start {
        out.push(base + start..base + word.len());
    }
}

/// The parts of a text in order, folded, and its whole when the text is one word of several parts.
pub(crate) fn parts(text: &str) -> (Vec<String>, Option<String>) {
    let (mut parts, mut wholes) = (Vec::new(), Vec::new());
    let mut scanner = Scanner::default();
    while let Some(piece) = scanner.next(text).cloned() {
        let folded = scanner.folded(&piece).to_owned();
        if piece.is_part {
            parts.push((piece.range, folded));
        } else {
            wholes.push((piece.range, folded));
        }
    }
    let all = parts.first().map_or(0, |(range, _)| range.start)..parts.last().map_or(0, |(range, _)| range.end);
    let whole = wholes.into_iter().find(|(range, _)| *range == all).map(|(_, folded)| folded);
    (parts.into_iter().map(|(_, folded)| folded).collect(), whole)
}

/// The name under which the index knows the tokenizer.
pub(crate) const NAME: &str = "code";

/// The tokenizer of the index.
#[derive(Debug, Clone, Default)]
pub(crate) struct CodeTokenizer;

/// The tokens of a text, for the index.
pub(crate) struct CodeTokens<'a> {
    text: &'a str,
    scanner: Scanner,
    token: Token,
}

impl Tokenizer for CodeTokenizer {
    type TokenStream<'a> = CodeTokens<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> CodeTokens<'a> {
        CodeTokens { text, scanner: Scanner::default(), token: Token::default() }
    }
}

impl TokenStream for CodeTokens<'_> {
    fn advance(&mut self) -> bool {
        let Some(piece) = self.scanner.next(self.text).cloned() else { return false };
        self.token.text.clear();
        self.token.text.push_str(self.scanner.folded(&piece));
        self.token.offset_from = piece.range.start;
        self.token.offset_to = piece.range.end;
        self.token.position = piece.position;
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

#[cfg(test)]
mod tests;
