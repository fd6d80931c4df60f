//! The sentences that a person wrote in a prompt, as tokens.
//!
//! Removes what the person only shows: code blocks, quotes, blockquotes, logs, and everything after an introduction such
//! as `the log says:`. A text whose author is uncertain is removed too.

use super::reader::lists;

/// Longest prompt that is read, bytes.
const READ: usize = 32 << 10;
/// Maximum number of tokens of a sentence that is read.
const TOKENS: usize = 200;
/// Longest quote between single quotation marks, characters.
const QUOTE: usize = 400;

/// A part of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A word: in lower case, and as written.
    Word(String, String),
    /// A text between backticks, or one word between quotes.
    Code(String),
    /// Punctuation, a line break (`\n`), or a removed quote (`"`).
    Sign(char),
}

/// A sentence.
#[derive(Debug, Default)]
pub(super) struct Sentence {
    pub(super) tokens: Vec<Token>,
    /// The sentence as written.
    pub(super) text: String,
    pub(super) is_question: bool,
}

/// Words before a colon after which the text of somebody else follows, or a text for the agent to write.
const INTRODUCES: &str = "\
    says|said|say|wrote|writes|write|reads|states|reply|replied|answered|log|logs|output|error|errors|\
    message|messages|trace|traceback|docs|documentation|readme|comment|comments|review|email|mail|ticket|\
    issue|slack|chat|transcript|paste|pasted|following|text|example|prompt|quote|add|insert|print|echo|put|\
    translate|rename|title|line|sentence|summarize|see";

/// The sentences of a prompt.
pub(super) fn sentences(text: &str) -> Vec<Sentence> {
    let text = &text[..text.floor_char_boundary(READ)];
    let mut all = Vec::new();
    for paragraph in own_paragraphs(text) {
        Scanner { rest: paragraph.chars().collect(), at: 0, open: Sentence::default(), all: &mut all }.scan();
    }
    all.retain(|sentence| {
        let is_cut = sentence.text.contains('…');
        !sentence.tokens.is_empty() && sentence.tokens.len() <= TOKENS && !is_cut
    });
    all
}

/// The parts of a prompt that its author wrote: lines that belong together, joined by line breaks.
fn own_paragraphs(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut joins = false;
    let (mut fence, mut tag): (Option<&str>, Option<String>) = (None, None);
    let is_diff = text.lines().any(|line| line.starts_with("@@ ") || line.starts_with("diff --git"));
    for line in text.lines() {
        let trimmed = line.trim();
        let mark = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark));
        match (fence, mark) {
            (Some(open), Some(mark)) if open == mark => {
                fence = None;
                joins = false;
                continue;
            }
            (Some(_), _) => continue,
            (None, Some(mark)) => {
                fence = Some(mark);
                joins = false;
                continue;
            }
            (None, None) => {}
        }
        if let Some(name) = &tag {
            if trimmed.contains(&format!("</{name}")) {
                tag = None;
            }
            continue;
        }
        if let Some(name) = opened_tag(trimmed) {
            joins = false;
            if !trimmed.contains(&format!("</{name}")) {
                tag = Some(name.to_owned());
            }
            continue;
        }
        if trimmed.is_empty() || is_foreign(line, is_diff) {
            joins = false;
            continue;
        }
        let (item, is_item) = without_bullet(trimmed);
        let begins = is_item || item.starts_with(|c: char| c.is_uppercase());
        match all.last_mut() {
            Some(last) if joins && !begins => {
                last.push('\n');
                last.push_str(item);
            }
            Some(_) | None => all.push(item.to_owned()),
        }
        joins = true;
        if item.ends_with(':') && introduces(item) {
            break;
        }
    }
    all
}

/// Whether the words before a colon introduce a text of somebody else.
fn introduces(words: &str) -> bool {
    let words = words.to_lowercase();
    words.split(|c: char| !c.is_alphanumeric()).any(|word| lists(INTRODUCES, word))
}

/// The name of an XML element that begins a line.
fn opened_tag(line: &str) -> Option<&str> {
    let rest = line.strip_prefix('<')?;
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_')))?;
    (end > 0 && rest[end..].contains('>')).then_some(&rest[..end])
}

/// Whether a line is a quote, code, a part of a log, a diff or a table.
fn is_foreign(line: &str, is_diff: bool) -> bool {
    let trimmed = line.trim_start();
    let is_indented = line.starts_with("    ") || line.starts_with('\t');
    let (_, is_item) = without_bullet(trimmed);
    if is_indented && !is_item || is_diff && line.starts_with(['+', '-', '@']) {
        return true;
    }
    let signs = [">", "$ ", "% ", "# ", "|", "[", "<", "//", "/*", "#!", "{", "}", "\"", "“"];
    if signs.iter().any(|sign| trimmed.starts_with(sign)) {
        return true;
    }
    let first = trimmed.split_whitespace().next().unwrap_or_default();
    let level = first.trim_end_matches(':').to_ascii_lowercase();
    let is_level = matches!(
        level.as_str(),
        "error"
            | "warn"
            | "warning"
            | "info"
            | "debug"
            | "trace"
            | "fatal"
            | "hint"
            | "remote"
            | "traceback"
            | "assistant"
            | "user"
    );
    let is_time = first.len() >= 8 && first.starts_with(|c: char| c.is_ascii_digit()) && first.contains([':', '-']);
    is_level && (first.ends_with(':') || first.chars().all(|c| c.is_ascii_uppercase())) || is_time
}

/// A line without the sign of a list item, and whether there was one.
fn without_bullet(line: &str) -> (&str, bool) {
    let line = line.trim_start();
    for bullet in ["- [ ] ", "- [x] ", "- ", "* ", "+ ", "• "] {
        if let Some(rest) = line.strip_prefix(bullet) {
            return (rest.trim_start(), true);
        }
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    match line[digits..].strip_prefix(['.', ')']) {
        Some(rest) if digits > 0 && digits < 3 && rest.starts_with(' ') => (rest.trim_start(), true),
        Some(_) | None => (line, false),
    }
}

struct Scanner<'a> {
    rest: Vec<char>,
    at: usize,
    open: Sentence,
    all: &'a mut Vec<Sentence>,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.get(self.at).copied()
    }

    fn scan(mut self) {
        while let Some(c) = self.peek() {
            let is_start =
                self.at == 0 || self.rest[self.at - 1].is_whitespace() || "([{*".contains(self.rest[self.at - 1]);
            match c {
                '`' => self.code(),
                '"' | '“' | '„' | '«' => self.quote(c),
                '\'' | '‘' if is_start => self.quote(c),
                '\n' => self.sign(c),
                c if c.is_whitespace() => self.at += 1,
                ',' | ';' | ':' | '(' | ')' | '[' | ']' | '{' | '}' | '—' | '–' => self.sign(c),
                '.' | '!' | '?' if self.ends_here() => {
                    self.at += 1;
                    self.open.text.push(c);
                    self.open.is_question |= c == '?';
                    if !matches!(self.peek(), Some('.' | '!' | '?')) {
                        self.end();
                    }
                }
                _ => self.word(),
            }
        }
        self.end();
    }

    /// Whether punctuation ends a sentence: `.` within a word does not.
    fn ends_here(&self) -> bool {
        self.rest.get(self.at + 1).is_none_or(|next| next.is_whitespace() || "*_)\"'”’.!?".contains(*next))
    }

    fn sign(&mut self, c: char) {
        self.at += 1;
        self.open.text.push(c);
        self.open.tokens.push(Token::Sign(c));
        if c == ':' && self.open.tokens.len() <= TOKENS && introduces(&self.open.text) {
            // The rest of the paragraph is somebody else's.
            self.at = self.rest.len();
            self.open = Sentence::default();
        }
    }

    fn end(&mut self) {
        let sentence = std::mem::take(&mut self.open);
        if !sentence.tokens.is_empty() {
            self.all.push(sentence);
        }
    }

    fn space(&mut self) {
        if self.at > 0 && self.rest[self.at - 1].is_whitespace() && !self.open.text.is_empty() {
            self.open.text.push(' ');
        }
    }

    /// The text up to a closing sign within a number of characters (0: anywhere). The sign is consumed; `None` if there
    /// is none.
    fn until(&mut self, within: usize, is_end: impl Fn(&[char], usize) -> bool) -> Option<String> {
        let last = if within == 0 { self.rest.len() } else { self.rest.len().min(self.at + within) };
        let end = (self.at..last).find(|at| is_end(&self.rest, *at))?;
        let text = (self.at..end).map(|at| self.rest[at]).collect();
        self.at = end + 1;
        Some(text)
    }

    fn code(&mut self) {
        self.space();
        while self.peek() == Some('`') {
            self.at += 1;
        }
        let code = self.until(0, |rest, at| rest[at] == '`');
        while self.peek() == Some('`') {
            self.at += 1;
        }
        match code {
            Some(code) => {
                self.open.text += &format!("`{code}`");
                self.open.tokens.push(Token::Code(code.trim().to_owned()));
            }
            None => self.lost(),
        }
    }

    fn quote(&mut self, open: char) {
        self.space();
        self.at += 1;
        let close = match open {
            '“' | '„' => "”“\"",
            '«' => "»",
            '‘' => "’'",
            '\'' => "'",
            _ => "\"",
        };
        let is_single = matches!(open, '\'' | '‘');
        let quoted = self.until(if is_single { QUOTE } else { 0 }, |rest, at| {
            let ends = rest.get(at + 1).is_none_or(|next| !next.is_alphanumeric());
            close.contains(rest[at]) && (!is_single || ends)
        });
        match quoted {
            Some(word) if !word.contains(char::is_whitespace) && !word.is_empty() => {
                self.open.text += &format!("\"{word}\"");
                self.open.tokens.push(Token::Code(word.trim_end_matches([',', '.']).to_owned()));
            }
            Some(quoted) => {
                self.open.text += &format!("\"{quoted}\"");
                self.open.tokens.push(Token::Sign('"'));
            }
            None if is_single => {}
            None => self.lost(),
        }
    }

    /// After an opening sign without a closing one, nothing is certain.
    fn lost(&mut self) {
        self.at = self.rest.len();
        self.open = Sentence::default();
    }

    fn word(&mut self) {
        self.space();
        let start = self.at;
        while let Some(c) = self.peek() {
            let ends = c.is_whitespace()
                || matches!(c, ',' | ';' | '(' | ')' | '{' | '}' | '—' | '–' | '`' | '"' | '“' | '”')
                || c == ':' && self.ends_here()
                || matches!(c, '.' | '!' | '?') && self.ends_here();
            if ends && self.at > start {
                break;
            }
            self.at += 1;
            if ends {
                break;
            }
        }
        let raw: String = (start..self.at).map(|at| self.rest[at]).collect();
        self.open.text.push_str(&raw);
        let word = without_emphasis(&raw);
        if word == "-" || word == "--" {
            self.open.tokens.push(Token::Sign('—'));
        } else if !word.is_empty() {
            self.open.tokens.push(Token::Word(word.to_lowercase().replace('’', "'"), word.to_owned()));
        }
    }
}

/// A word without the marks of Markdown around it; `**/a` and `src/*` are patterns.
fn without_emphasis(word: &str) -> &str {
    let mut word = word;
    for mark in ["**", "__"] {
        word = word.strip_prefix(mark).filter(|rest| !rest.starts_with('/')).unwrap_or(word);
        word = word.strip_suffix(mark).filter(|rest| !rest.ends_with('/')).unwrap_or(word);
    }
    for mark in ['*', '_'] {
        let inner = word.strip_prefix(mark).and_then(|rest| rest.strip_suffix(mark));
        word = inner.filter(|inner| !inner.is_empty()).unwrap_or(word);
    }
    word.trim_end_matches(['.', ':', '!', '?'])
}
