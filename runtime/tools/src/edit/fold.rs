//! Texts as the tolerant passes compare them, with a mapping back to the original bytes.

/// A text without the parts a pass ignores. Each byte maps to a range of the original.
#[derive(Debug)]
pub(super) struct Folded {
    pub(super) text: Vec<u8>,
    /// Where the original bytes of each byte begin.
    begins: Vec<usize>,
    /// Where the original bytes of each byte end.
    ends: Vec<usize>,
}

/// The differences a comparison ignores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fold {
    /// Line ends, and blanks before them.
    LineEnds,
    /// Line ends, blanks before them, and the difference between typographic and plain characters.
    Typography,
}

impl Folded {
    pub(super) fn of(original: &[u8], fold: Fold) -> Self {
        let mut folded = Self { text: Vec::with_capacity(original.len()), begins: Vec::new(), ends: Vec::new() };
        let mut at = 0;
        for piece in original.split_inclusive(|byte| *byte == b'\n') {
            let content = without_end(piece);
            folded.push_content(content, at, fold);
            if piece.ends_with(b"\n") {
                folded.push(b"\n", at + content.len(), at + piece.len());
            }
            at += piece.len();
        }
        folded
    }

    fn push(&mut self, bytes: &[u8], begin: usize, end: usize) {
        for byte in bytes {
            self.text.push(*byte);
            self.begins.push(begin);
            self.ends.push(end);
        }
    }

    fn push_content(&mut self, content: &[u8], start: usize, fold: Fold) {
        if fold == Fold::LineEnds || content.is_ascii() {
            for (at, byte) in content.iter().enumerate() {
                self.push(&[*byte], start + at, start + at + 1);
            }
            return;
        }
        let mut at = start;
        for chunk in content.utf8_chunks() {
            for c in chunk.valid().chars() {
                let mut buffer = [0; 4];
                let end = at + c.len_utf8();
                match plain(c) {
                    Some(plain) => self.push(&[plain], at, end),
                    None => self.push(c.encode_utf8(&mut buffer).as_bytes(), at, end),
                }
                at = end;
            }
            for byte in chunk.invalid() {
                self.push(&[*byte], at, at + 1);
                at += 1;
            }
        }
        // A folded blank may be a trailing one.
        while self.text.last() == Some(&b' ') && self.begins.last().is_some_and(|begin| *begin >= start) {
            self.text.pop();
            self.begins.pop();
            self.ends.pop();
        }
    }

    /// The folded range within a range of the original.
    pub(super) fn within(&self, start: usize, end: usize) -> (usize, usize) {
        (self.begins.partition_point(|begin| *begin < start), self.ends.partition_point(|own| *own <= end))
    }

    /// The original bytes of a folded range.
    pub(super) fn original(&self, start: usize, end: usize) -> Option<std::ops::Range<usize>> {
        Some(*self.begins.get(start)?..*self.ends.get(end.checked_sub(1)?)?)
    }
}

/// A line without its end and trailing blanks.
pub(super) fn without_end(line: &[u8]) -> &[u8] {
    let line = match line.strip_suffix(b"\n") {
        Some(content) => content.strip_suffix(b"\r").unwrap_or(content),
        None => line,
    };
    let blanks = line.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    &line[..line.len() - blanks]
}

/// The plain form of a typographic character. The list is from Codex (`codex-rs/apply-patch/src/seek_sequence.rs`).
pub(super) const fn plain(c: char) -> Option<u8> {
    match c {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => Some(b'-'),
        '\u{2018}'..='\u{201b}' => Some(b'\''),
        '\u{201c}'..='\u{201f}' => Some(b'"'),
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => Some(b' '),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_in_folded_text_map_back_to_the_original_bytes() {
        let original = "a\u{201c}b \t\r\nc\u{a0}\r\n  d  ".as_bytes();
        let folded = Folded::of(original, Fold::Typography);
        assert_eq!(folded.text, b"a\"b\nc\n  d");
        assert_eq!(folded.original(1, 2), Some(1..4));
        assert_eq!(folded.original(3, 4), Some(5..9));
        assert_eq!(folded.original(0, 9), Some(0..original.len() - 2));
        let folded = Folded::of(original, Fold::LineEnds);
        assert_eq!(folded.text, "a\u{201c}b\nc\u{a0}\n  d".as_bytes());
        assert_eq!(folded.original(0, 1), Some(0..1));
        // Bytes that are not text fold to themselves.
        assert_eq!(Folded::of(b"\xff\xe2\x80 \n", Fold::Typography).text, b"\xff\xe2\x80\n");
    }
}
