//! Splits texts and queries into words.
//!
//! `parseQuery_string` yields the parts `parse`, `query` and `string` at separate positions, and the whole word
//! `parsequery_string` at the position of its first part. So a part is found alone, a whole by its exact spelling, and
//! anything joined in another way, such as a path, as a phrase of its parts. A character of a script without spaces,
//! with its marks, is a separate part, and so is an emoji. Tokens are in lower case and without accents.

use std::ops::Range;

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};
use unicode_normalization::char::{decompose_compatible, is_combining_mark};

/// Longer words are not split and are cut to this length, bytes.
const WORD_BYTES: usize = 64;
/// A token and its place in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Its byte range in the text.
    pub(crate) range: Range<usize>,
    /// The position of the (first) part.
    pub(crate) position: usize,
    /// Whether it is a part; otherwise it is a whole of several parts.
    pub(crate) is_part: bool,
    letters: Letters,
}

/// The processing a token's letters need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Letters {
    /// None.
    Lower,
    /// Only ASCII, with capitals.
    Ascii,
    /// Any characters.
    Any,
}

impl Piece {
    /// Writes its text in lower case and without accents.
    pub(crate) fn fold(&self, text: &str, out: &mut String) {
        out.clear();
        let own = text.get(self.range.clone()).unwrap_or_default();
        match self.letters {
            Letters::Lower => out.push_str(own),
            Letters::Ascii => {
                out.push_str(own);
                out.make_ascii_lowercase();
            }
            Letters::Any => fold(own, out),
        }
    }
}

/// Yields the tokens of a text one after the other.
#[derive(Debug, Default)]
pub(crate) struct Scanner {
    at: usize,
    position: usize,
    /// Tokens of the current word that were not returned yet, in reverse order.
    ready: Vec<Piece>,
    parts: Vec<Range<usize>>,
    folded: String,
}

/// The class of a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Part of a word.
    Word,
    /// A word of one character.
    Single,
    /// A separator.
    Other,
}

/// Properties of the bytes of a word, as bits.
mod bits {
    pub(super) const SMALL: u8 = 1;
    pub(super) const CAPITAL: u8 = 2;
    pub(super) const UNDERSCORE: u8 = 4;
    pub(super) const NOT_ASCII: u8 = 8;
}

/// The bits of each byte; 0 is a separator.
const BITS: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'a'..=b'z' | b'0'..=b'9' => bits::SMALL,
            b'A'..=b'Z' => bits::CAPITAL,
            b'_' => bits::UNDERSCORE,
            0x80.. => bits::NOT_ASCII,
            _ => 0,
        };
        byte += 1;
    }
    table
};

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
        | '\u{20000}'..='\u{3ffff}'
        // Thai, Lao, Myanmar and Khmer, without their digits and currency signs.
        | '\u{e01}'..='\u{e3a}'
        | '\u{e40}'..='\u{e4e}'
        | '\u{e81}'..='\u{ecf}'
        | '\u{edc}'..='\u{edf}'
        | '\u{1000}'..='\u{103f}'
        | '\u{1050}'..='\u{108f}'
        | '\u{1780}'..='\u{17d3}'
        // Emoji. Of the older symbols only those with emoji presentation by default: user interfaces contain many of
        // the others.
        | '\u{1f000}'..='\u{1faff}'
        | '\u{2600}'..='\u{26ff}'
        | '\u{2705}'
        | '\u{2728}'
        | '\u{274c}'
        | '\u{2753}'..='\u{2755}'
        | '\u{2757}'
        | '\u{2764}'
        | '\u{2b50}'
        | '\u{2b55}' => Class::Single,
        // Variation selectors, which choose the presentation of the previous character.
        '\u{fe00}'..='\u{fe0f}' => Class::Other,
        c if c.is_alphanumeric() || is_combining_mark(c) => Class::Word,
        _ => Class::Other,
    }
}

fn char_at(text: &str, at: usize) -> Option<char> {
    text.get(at..).and_then(|rest| rest.chars().next())
}

/// Appends a text in lower case and without accents.
fn fold(text: &str, out: &mut String) {
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
    /// The next token; every call must pass the same text.
    pub(crate) fn next(&mut self, text: &str) -> Option<Piece> {
        loop {
            if let Some(piece) = self.ready.pop() {
                return Some(piece);
            }
            let (word, seen) = self.word(text)?;
            let is_plain = matches!(seen, bits::SMALL | bits::CAPITAL)
                || seen == bits::SMALL | bits::CAPITAL && is_capitalized(text, &word);
            if is_plain && word.len() <= WORD_BYTES {
                // The most common case.
                self.position += 1;
                let letters = if seen == bits::SMALL { Letters::Lower } else { Letters::Ascii };
                return Some(Piece { range: word, position: self.position - 1, is_part: true, letters });
            }
            let letters = if seen & bits::NOT_ASCII == 0 { Letters::Ascii } else { Letters::Any };
            self.split(text, word, letters);
        }
    }

    /// Finds the next word and the bits of its bytes.
    fn word(&mut self, text: &str) -> Option<(Range<usize>, u8)> {
        let bytes = text.as_bytes();
        let bits_at = |at: usize| bytes.get(at).map(|byte| BITS[usize::from(*byte)]);
        let start = loop {
            match bits_at(self.at)? {
                0 => self.at += 1,
                bits::NOT_ASCII => {
                    let c = char_at(text, self.at)?;
                    match class(c) {
                        Class::Word => break self.at,
                        Class::Single => {
                            let range = self.at..self.at + c.len_utf8();
                            self.at = range.end;
                            return Some((range, bits::NOT_ASCII));
                        }
                        Class::Other => self.at += c.len_utf8(),
                    }
                }
                _ => break self.at,
            }
        };
        let mut seen = 0;
        while let Some(bits) = bits_at(self.at) {
            match bits {
                0 => break,
                bits::NOT_ASCII => match char_at(text, self.at).filter(|c| class(*c) == Class::Word) {
                    Some(c) => self.at += c.len_utf8(),
                    None => break,
                },
                _ => self.at += 1,
            }
            seen |= bits;
        }
        Some((start..self.at, seen))
    }

    /// Prepares the tokens of a word that may have several.
    fn split(&mut self, text: &str, word: Range<usize>, letters: Letters) {
        if word.len() > WORD_BYTES {
            let end = floor(text, word.start + WORD_BYTES);
            self.push(text, word.start..end, true, letters);
            return;
        }
        let mut parts = std::mem::take(&mut self.parts);
        parts.clear();
        split(text.get(word.clone()).unwrap_or_default(), word.start, &mut parts);
        if parts.len() > 1 {
            // Without leading and trailing underscores.
            let inner = parts.first().map_or(0, |p| p.start)..parts.last().map_or(0, |p| p.end);
            self.push(text, inner, false, letters);
        }
        for part in &parts {
            self.push(text, part.clone(), true, letters);
        }
        self.parts = parts;
        self.ready.reverse();
    }

    fn push(&mut self, text: &str, range: Range<usize>, is_part: bool, letters: Letters) {
        let piece = Piece { range, position: self.position, is_part, letters };
        if letters == Letters::Any {
            // Folding removes some tokens completely.
            piece.fold(text, &mut self.folded);
        }
        if letters != Letters::Any || !self.folded.is_empty() {
            self.ready.push(piece);
            self.position += usize::from(is_part);
        }
    }
}

/// Whether an ASCII word has no capital after its first letter.
fn is_capitalized(text: &str, word: &Range<usize>) -> bool {
    let bytes = text.as_bytes().get(word.start + 1..word.end).unwrap_or_default();
    !bytes.iter().any(u8::is_ascii_uppercase)
}

/// The nearest character boundary at or before `at`.
pub(crate) fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default()
}

/// The parts of a word, split at underscores and where a capital begins a new part.
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
                // As in `fooBar`, or the last capital of `HTTPServer`.
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

/// The folded parts of a text in order, and its whole if the text is one word of several parts.
pub(crate) fn parts(text: &str) -> (Vec<String>, Option<String>) {
    let (mut parts, mut wholes) = (Vec::new(), Vec::new());
    let mut scanner = Scanner::default();
    while let Some(piece) = scanner.next(text) {
        let mut folded = String::new();
        piece.fold(text, &mut folded);
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

/// The name of the tokenizer in the index.
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
        let Some(piece) = self.scanner.next(self.text) else { return false };
        piece.fold(self.text, &mut self.token.text);
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
