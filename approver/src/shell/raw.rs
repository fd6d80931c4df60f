//! Checks the characters of a command line before it is parsed.
//!
//! Outside quotes only those are let through that no shell gives a meaning of its own, besides the
//! few operators that are understood. Each refusal names what it saw.

use crate::shell::command::MAX_BYTES;

/// Looks at the characters of a line.
///
/// # Errors
/// A sentence that names the first thing that is not understood.
pub(super) fn check(text: &str) -> Result<(), String> {
    if text.len() > MAX_BYTES {
        return Err(format!("The command is longer than {MAX_BYTES} bytes."));
    }
    if let Some(c) = text.chars().find(|c| !c.is_ascii()) {
        return Err(format!("The command line has a character that is not ASCII (U+{:04X}).", u32::from(c)));
    }
    if let Some(c) = text.chars().find(char::is_ascii_control) {
        return Err(match c {
            '\n' => "The command line has more than one line.".into(),
            '\t' => "The command line has a tab.".into(),
            _ => format!("The command line has a control character (U+{:04X}).", u32::from(c)),
        });
    }
    let mut scan = CharScan { rest: text.as_bytes(), before: b' ' };
    while let Some(byte) = scan.next() {
        scan.step(byte)?;
    }
    Ok(())
}

struct CharScan<'a> {
    rest: &'a [u8],
    /// What stood before the present character.
    before: u8,
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

    fn step(&mut self, byte: u8) -> Result<(), String> {
        match byte {
            b'\'' => self.single_quotes()?,
            b'"' => self.double_quotes()?,
            b'\\' => match self.next() {
                Some(next) if next != b'\n' => {}
                Some(_) | None => return refuse("a trailing backslash"),
            },
            _ => self.unquoted(byte)?,
        }
        self.before = byte;
        Ok(())
    }

    fn single_quotes(&mut self) -> Result<(), String> {
        while let Some(byte) = self.next() {
            if byte == b'\'' {
                return Ok(());
            }
        }
        refuse("an unterminated quote")
    }

    fn double_quotes(&mut self) -> Result<(), String> {
        while let Some(byte) = self.next() {
            match byte {
                b'"' => return Ok(()),
                b'`' => return refuse("a command substitution"),
                b'!' => return refuse("a `!` in double quotes, which an interactive shell replaces"),
                // At the end of the quotes it is itself: a pattern's end of line.
                b'$' if self.peek() == b'?' => {
                    self.next();
                }
                b'$' if self.peek() != b'"' => return refuse(expansion(self.peek())),
                b'\\' => {
                    self.next();
                }
                _ => {}
            }
        }
        refuse("an unterminated quote")
    }

    fn unquoted(&mut self, byte: u8) -> Result<(), String> {
        let begins = matches!(self.before, b' ' | b'|' | b'&' | b';');
        let ends = matches!(self.peek(), b' ' | b'|' | b'&' | b';');
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => Ok(()),
            b' ' | b'_' | b'-' | b'.' | b'/' | b':' | b',' | b'+' | b'@' | b'%' | b'|' | b';' | b'>' => Ok(()),
            b'&' => {
                // `&&`, and the one in `2>&1`.
                let doubled = self.peek() == b'&' || self.before == b'&';
                if doubled || self.before == b'>' { Ok(()) } else { refuse("a command in the background") }
            }
            b'=' if !begins || ends => Ok(()),
            b'=' => refuse("a word that begins with `=`, which zsh expands"),
            b'~' | b'^' if self.before.is_ascii_alphanumeric() || matches!(self.before, b'~' | b'^') => {
                match self.peek() {
                    b'0'..=b'9' | b'~' | b'^' | b' ' | b'.' | b':' | b'|' | b';' => Ok(()),
                    _ => refuse("an unquoted `~` or `^`"),
                }
            }
            b'~' => refuse("a home directory (`~`)"),
            b'^' => refuse("an unquoted `^`"),
            // An operator of `find` and `test`; as a command it is seen in the tree.
            b'!' if begins && ends => Ok(()),
            b'!' => refuse("an unquoted `!`"),
            b'[' | b']' if begins && ends => Ok(()),
            // Whether it is a pattern that is understood, its word tells.
            b'*' if b" /_-.".contains(&self.before) || self.before.is_ascii_alphanumeric() => Ok(()),
            b'*' | b'?' | b'[' | b']' => refuse("a pattern of file names"),
            // The exit status.
            b'$' if self.peek() == b'?' => {
                self.next();
                Ok(())
            }
            b'$' => refuse(expansion(self.peek())),
            b'`' => refuse("a command substitution"),
            b'(' | b')' => refuse("a parenthesis: a subshell, a function or a pattern"),
            b'{' | b'}' => refuse("a brace"),
            b'#' => refuse("a comment or an unquoted `#`"),
            b'<' => match self.peek() {
                b'<' => refuse("a here-document"),
                b'(' => refuse("a process substitution"),
                b'&' | b'>' | b'|' | b';' => refuse("input from elsewhere"),
                _ if begins || self.before.is_ascii_alphabetic() => Ok(()),
                _ => refuse("input from a file"),
            },
            other => refuse(&format!("the character `{}`", char::from(other))),
        }
    }
}

const fn expansion(next: u8) -> &'static str {
    match next {
        b'(' => "a command substitution",
        b'\'' | b'"' => "a quote with `$`",
        b'{' | b'a'..=b'z' | b'A'..=b'Z' | b'_' => "a variable",
        _ => "an expansion (`$`)",
    }
}

fn refuse<T>(what: &str) -> Result<T, String> {
    Err(format!("The command line has {what}."))
}
