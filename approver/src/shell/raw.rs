//! Checks the characters of a command line before it is parsed, and removes its comments.
//!
//! Outside quotes, it accepts only characters to which no shell gives a special meaning, and the supported operators.
//! Each refusal names the character.

use crate::shell::{command::MAX_BYTES, possible::nests_too_deep};

/// Maximum nesting of substitutions and groups.
const MAX_DEPTH: usize = 6;

/// A line without its comments and with its continued lines joined.
#[derive(Debug)]
pub(super) struct CleanText {
    pub(super) text: String,
    /// The bodies of here-documents, in order.
    pub(super) documents: Vec<String>,
}

/// Checks the characters of a line.
///
/// # Errors
/// A sentence that names the first unsupported construct.
pub(super) fn check(text: &str) -> Result<CleanText, String> {
    if text.len() > MAX_BYTES {
        return Err(format!("The command is longer than {MAX_BYTES} bytes."));
    }
    if nests_too_deep(text) {
        return refuse("groups or loops that are nested too deep");
    }
    if let Some(c) = text.chars().find(|c| !c.is_ascii()) {
        return Err(format!("The command line has a character that is not ASCII (U+{:04X}).", u32::from(c)));
    }
    if let Some(c) = text.chars().find(|c| c.is_ascii_control() && !matches!(c, '\n' | '\t')) {
        return Err(format!("The command line has a control character (U+{:04X}).", u32::from(c)));
    }
    let mut scan = CharScan {
        rest: text.as_bytes(),
        before: b'\n',
        out: Vec::new(),
        waiting: Vec::new(),
        documents: Vec::new(),
        depth: 0,
    };
    scan.list(false)?;
    if !scan.waiting.is_empty() {
        return refuse("a here-document without its end marker");
    }
    let text = String::from_utf8(scan.out).map_err(|_| "The command line is not text.")?;
    Ok(CleanText { text, documents: scan.documents })
}

struct CharScan<'a> {
    rest: &'a [u8],
    /// The byte before the current character.
    before: u8,
    out: Vec<u8>,
    /// Here-documents whose bodies begin on the next line.
    waiting: Vec<WaitingDocument>,
    documents: Vec<String>,
    depth: usize,
}

/// A here-document whose body has not been reached yet.
struct WaitingDocument {
    end: Vec<u8>,
    without_tabs: bool,
    literal: bool,
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n')
}

impl CharScan<'_> {
    fn next(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    fn peek(&self) -> u8 {
        self.rest.first().copied().unwrap_or(b' ')
    }

    fn take(&mut self) {
        if let Some(byte) = self.next() {
            self.out.push(byte);
            self.before = byte;
        }
    }

    /// Scans commands, up to the end or to the parenthesis that closes a substitution.
    fn list(&mut self, nested: bool) -> Result<(), String> {
        let mut open = 0_usize;
        while let Some(byte) = self.next() {
            match byte {
                b'(' if self.begins() && self.peek() != b'(' => open += 1,
                b')' if open > 0 => open -= 1,
                b')' if nested => {
                    self.out.push(byte);
                    self.before = byte;
                    return Ok(());
                }
                b'#' if self.begins() => {
                    while !matches!(self.rest.first(), None | Some(b'\n')) {
                        self.next();
                    }
                    continue;
                }
                b'\\' if self.peek() == b'\n' && is_blank(self.before) => {
                    self.next();
                    continue;
                }
                _ => {
                    self.step(byte, nested)?;
                    continue;
                }
            }
            if open > MAX_DEPTH {
                return refuse("groups that are nested too deep");
            }
            self.out.push(byte);
            self.before = byte;
        }
        if nested || open > 0 { refuse("an unterminated parenthesis") } else { Ok(()) }
    }

    fn begins(&self) -> bool {
        is_blank(self.before) || matches!(self.before, b'|' | b'&' | b';' | b'(')
    }

    fn ends(&self) -> bool {
        is_blank(self.peek()) || matches!(self.peek(), b'|' | b'&' | b';' | b')')
    }

    fn step(&mut self, byte: u8, nested: bool) -> Result<(), String> {
        let (begins, ends) = (self.begins(), self.ends());
        self.out.push(byte);
        match byte {
            b'\'' => self.single_quotes()?,
            b'"' => self.double_quotes()?,
            b'\\' => match self.next() {
                Some(next) if next != b'\n' => self.out.push(next),
                Some(_) | None => return refuse("a trailing backslash"),
            },
            b'\n' => self.documents()?,
            b'<' if self.peek() == b'<' => self.document(nested)?,
            b'$' => self.dollar()?,
            _ => self.unquoted(byte, begins, ends)?,
        }
        self.before = byte;
        Ok(())
    }

    fn single_quotes(&mut self) -> Result<(), String> {
        while let Some(byte) = self.next() {
            self.out.push(byte);
            if byte == b'\'' {
                return Ok(());
            }
        }
        refuse("an unterminated quote")
    }

    fn double_quotes(&mut self) -> Result<(), String> {
        while let Some(byte) = self.next() {
            self.out.push(byte);
            match byte {
                b'"' => return Ok(()),
                b'`' => return refuse("a command substitution in backquotes"),
                b'!' if !is_blank(self.peek()) => {
                    return refuse("a `!` in double quotes, which an interactive shell replaces");
                }
                // At the end of the quotes it is literal: the end of a line in a pattern.
                b'$' if self.peek() != b'"' => self.dollar()?,
                b'\\' => match self.next() {
                    Some(next) if next != b'\n' => self.out.push(next),
                    Some(_) | None => return refuse("a line that is continued in quotes"),
                },
                _ => {}
            }
        }
        refuse("an unterminated quote")
    }

    /// Handles the text after a `$`: a plain variable, the exit status, a substitution.
    fn dollar(&mut self) -> Result<(), String> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        match self.peek() {
            b'?' => self.take(),
            b'(' if self.rest.get(1) == Some(&b'(') => return refuse("arithmetic"),
            b'(' => {
                self.take();
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    return refuse("substitutions that are nested too deep");
                }
                self.list(true)?;
                self.depth -= 1;
            }
            b'{' => {
                let body = self.rest.iter().skip(1).take_while(|byte| is_name(**byte)).count();
                let plain = body > 0 && !self.rest[1].is_ascii_digit() && self.rest.get(body + 1) == Some(&b'}');
                if !plain {
                    return refuse("an expansion other than a plain variable");
                }
                (0..body + 2).for_each(|_| self.take());
            }
            byte if is_name(byte) && !byte.is_ascii_digit() => {
                while is_name(self.peek()) && !self.rest.is_empty() {
                    self.take();
                }
            }
            b'\'' | b'"' => return refuse("a quote with `$`"),
            _ => return refuse("an expansion (`$`)"),
        }
        Ok(())
    }

    /// Handles the beginning of a here-document, or a here-string.
    fn document(&mut self, nested: bool) -> Result<(), String> {
        self.take();
        if self.peek() == b'<' {
            self.take();
            return Ok(());
        }
        if nested {
            return refuse("a here-document in a substitution");
        }
        let without_tabs = self.peek() == b'-';
        if without_tabs {
            self.take();
        }
        while self.peek() == b' ' && !self.rest.is_empty() {
            self.take();
        }
        let quote = Some(self.peek()).filter(|byte| matches!(byte, b'\'' | b'"'));
        if quote.is_some() {
            self.take();
        }
        let mut end = Vec::new();
        while self.peek().is_ascii_alphanumeric() || self.peek() == b'_' {
            end.push(self.peek());
            self.take();
        }
        if quote.is_some_and(|quote| self.peek() != quote) || end.is_empty() {
            return refuse("a here-document with an unusual end marker");
        }
        if quote.is_some() {
            self.take();
        }
        self.waiting.push(WaitingDocument { end, without_tabs, literal: quote.is_some() });
        Ok(())
    }

    /// Reads the bodies of the here-documents that began in the line that ends here.
    fn documents(&mut self) -> Result<(), String> {
        for document in std::mem::take(&mut self.waiting) {
            let mut body = Vec::new();
            loop {
                if self.rest.is_empty() {
                    return refuse("a here-document without its end marker");
                }
                let length = self.rest.iter().position(|byte| *byte == b'\n').map_or(self.rest.len(), |at| at + 1);
                let (line, rest) = self.rest.split_at(length);
                self.rest = rest;
                self.out.extend(line);
                let tabs =
                    if document.without_tabs { line.iter().take_while(|byte| **byte == b'\t').count() } else { 0 };
                let line = &line[tabs..];
                if line.strip_suffix(b"\n").unwrap_or(line) == document.end {
                    break;
                }
                if !document.literal && line.iter().any(|byte| matches!(byte, b'$' | b'`' | b'\\')) {
                    return refuse("a here-document with an expansion");
                }
                body.extend(line);
            }
            self.documents.push(String::from_utf8_lossy(&body).into_owned());
        }
        Ok(())
    }

    fn unquoted(&mut self, byte: u8, begins: bool, ends: bool) -> Result<(), String> {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'\t' => Ok(()),
            b' ' | b'_' | b'-' | b'.' | b'/' | b':' | b',' | b'+' | b'@' | b'%' | b'|' | b';' | b'>' => Ok(()),
            b'&' => {
                // `&&`, the one in `2>&1`, and `&>`.
                let doubled = self.peek() == b'&' || self.before == b'&';
                let all = self.before == b'>' || begins && self.peek() == b'>';
                if doubled || all { Ok(()) } else { refuse("a command in the background") }
            }
            b'=' if !begins || ends => Ok(()),
            // Comparisons in `[[ ]]`.
            b'=' if matches!(self.rest, [b'=' | b'~', b' ', ..]) => {
                self.take();
                Ok(())
            }
            b'=' => refuse("a word that begins with `=`, which zsh expands"),
            b'~' | b'^' if self.before.is_ascii_alphanumeric() || matches!(self.before, b'~' | b'^') => {
                match self.peek() {
                    b'0'..=b'9' | b'~' | b'^' | b' ' | b'.' | b':' | b'|' | b';' | b'\n' | b')' => Ok(()),
                    _ => refuse("an unquoted `~` or `^`"),
                }
            }
            b'~' => refuse("a home directory (`~`)"),
            b'^' => refuse("an unquoted `^`"),
            // An operator of `find` and `test`, or before a pipeline; decided in the syntax tree.
            b'!' if begins && ends => Ok(()),
            b'!' => refuse("an unquoted `!`"),
            b'[' | b']' if begins && ends => Ok(()),
            b'[' | b']'
                if begins
                    && self.peek() == byte
                    && self.rest.get(1).is_none_or(|byte| !byte.is_ascii_graphic() || b";&|)".contains(byte)) =>
            {
                self.take();
                Ok(())
            }
            // Whether the pattern is supported is decided for the whole word.
            b'*' if b" \t\n/_-.".contains(&self.before) || self.before.is_ascii_alphanumeric() => Ok(()),
            b'*' | b'?' | b'[' | b']' => refuse("a pattern of file names"),
            b'`' => refuse("a command substitution in backquotes"),
            b'(' | b')' => refuse("a parenthesis that opens no subshell"),
            // A placeholder that `find` and `xargs` replace with a name.
            b'{' if self.peek() == b'}' => {
                self.take();
                Ok(())
            }
            b'{' | b'}' if begins && ends => Ok(()),
            b'{' | b'}' => refuse("a brace"),
            b'#' => refuse("an unquoted `#`"),
            b'<' => match self.peek() {
                b'(' => refuse("a process substitution"),
                b'&' | b'>' | b'|' | b';' => refuse("an unusual input redirection"),
                _ if begins || self.before.is_ascii_alphabetic() => Ok(()),
                _ => refuse("input from a file"),
            },
            other => refuse(&format!("the character `{}`", char::from(other))),
        }
    }
}

fn refuse<T>(what: &str) -> Result<T, String> {
    Err(format!("The command line has {what}."))
}
