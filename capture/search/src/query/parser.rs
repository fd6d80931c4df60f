//! Parses a query by recursive descent.

use api::search::TextKind;
use events::{Provider, ToolOutcome};

use super::{Clock, Condition, Field, Node, QueryError, time};
use crate::tokens;

/// Maximum length of a query, bytes.
const QUERY_BYTES: usize = 4096;
/// Maximum nesting depth of parentheses and negations.
const DEPTH: usize = 32;
/// Maximum number of conditions.
const CONDITIONS: usize = 128;
/// Minimum length of a prefix, bytes; a shorter one would match nearly everything.
const PREFIX_BYTES: usize = 2;
/// Minimum length of a word that may differ in some letters, characters.
const FUZZY_CHARS: usize = 3;

const QUOTE: &str = "; put it in double quotes to search for it as text";

pub(super) fn parse(text: &str, clock: &Clock) -> Result<Node, QueryError> {
    if text.len() > QUERY_BYTES {
        return Err(of_whole(&format!("the query is longer than {QUERY_BYTES} bytes"), ""));
    }
    let mut parser = Parser { chars: text.chars().collect(), at: 0, depth: 0, conditions: 0, dropped: None, clock };
    let node = parser.alternatives(Field::Text)?;
    if parser.peek().is_some() {
        // Only a closing parenthesis ends the alternatives before the end.
        return Err(error("unexpected `)`", parser.at, QUOTE));
    }
    match (node, parser.dropped) {
        (Some(node), _) if only_excludes(&node) => {
            // Most likely the user meant the text itself, such as the option `-DNDEBUG`.
            Err(of_whole(
                "the query only excludes words",
                "; add a word to search for, or put the query in double quotes",
            ))
        }
        (Some(node), _) => Ok(node),
        (None, Some(at)) => Err(error("expected letters or digits to search for", at, "")),
        (None, None) => Ok(Node::All),
    }
}

/// Whether a query only contains words that a text must not have.
fn only_excludes(node: &Node) -> bool {
    match node {
        Node::Not(inner) => is_of_words(inner),
        Node::And(nodes) | Node::Or(nodes) => nodes.iter().all(only_excludes),
        Node::All | Node::Leaf(..) => false,
    }
}

/// Whether a part of a query only concerns words.
fn is_of_words(node: &Node) -> bool {
    match node {
        Node::Leaf(field, _) => *field == Field::Text,
        Node::And(nodes) | Node::Or(nodes) => nodes.iter().all(is_of_words),
        Node::Not(inner) => is_of_words(inner),
        Node::All => false,
    }
}

fn error(what: &str, at: usize, hint: &str) -> QueryError {
    QueryError { what: what.to_owned(), column: at + 1, hint: hint.to_owned() }
}

/// An error in the query as a whole.
fn of_whole(what: &str, hint: &str) -> QueryError {
    QueryError { what: what.to_owned(), column: 0, hint: hint.to_owned() }
}

struct Parser<'a> {
    chars: Vec<char>,
    at: usize,
    depth: usize,
    conditions: usize,
    /// Where something without letters or digits was dropped.
    dropped: Option<usize>,
    clock: &'a Clock,
}

/// A word as typed.
struct Word {
    /// Its characters, and whether each was escaped.
    chars: Vec<(char, bool)>,
    /// Where the word begins.
    at: usize,
}

impl Word {
    fn text(&self) -> String {
        self.chars.iter().map(|(c, _)| *c).collect()
    }

    /// Removes this character from the end if it is there unescaped; returns whether it was.
    fn take_last(&mut self, last: char) -> bool {
        let ends = self.chars.last() == Some(&(last, false));
        if ends {
            self.chars.pop();
        }
        ends
    }
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn skip_spaces(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    /// Consumes a keyword that stands alone; returns whether it was there.
    fn keyword(&mut self, keyword: &str) -> bool {
        let end = self.at + keyword.len();
        let is_there = self.chars.get(self.at..end).is_some_and(|here| here.iter().copied().eq(keyword.chars()));
        let is_alone = self.chars.get(end).is_none_or(|c| c.is_whitespace() || matches!(c, '(' | ')' | '"'));
        if is_there && is_alone {
            self.at = end;
        }
        is_there && is_alone
    }

    /// Parses `a b OR c`. `None` if nothing remains.
    fn alternatives(&mut self, field: Field) -> Result<Option<Node>, QueryError> {
        let mut nodes = Vec::new();
        loop {
            let at = self.at;
            let before = self.dropped;
            let node = self.conjunction(field)?;
            self.skip_spaces();
            let at_or = self.at;
            let or_follows = self.keyword("OR");
            if node.is_none() && before == self.dropped && (or_follows || !nodes.is_empty()) {
                let (what, place) = if or_follows { ("before", at_or) } else { ("after", at) };
                return Err(error(&format!("expected a word {what} `OR`"), place, ""));
            }
            nodes.extend(node);
            if !or_follows {
                return Ok(one_or(nodes, Node::Or));
            }
        }
    }

    /// Parses `a b AND c -d`.
    fn conjunction(&mut self, field: Field) -> Result<Option<Node>, QueryError> {
        let mut nodes = Vec::new();
        let mut is_first = true;
        loop {
            self.skip_spaces();
            let at = self.at;
            let has_and = self.keyword("AND");
            if has_and && is_first {
                return Err(error("expected a word before `AND`", at, ""));
            }
            self.skip_spaces();
            let ends = self.peek().is_none_or(|c| c == ')') || self.or_is_next();
            if ends && has_and {
                return Err(error("expected a word after `AND`", at + 3, ""));
            }
            if ends {
                return Ok(one_or(nodes, Node::And));
            }
            nodes.extend(self.unary(field)?);
            is_first = false;
        }
    }

    fn or_is_next(&mut self) -> bool {
        let at = self.at;
        let is_or = self.keyword("OR");
        self.at = at;
        is_or
    }

    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T, QueryError>) -> Result<T, QueryError> {
        if self.depth == DEPTH {
            return Err(error("the query is nested too deeply", self.at, ""));
        }
        self.depth += 1;
        let done = inner(self);
        self.depth -= 1;
        done
    }

    fn unary(&mut self, field: Field) -> Result<Option<Node>, QueryError> {
        let at = self.at;
        let next = self.chars.get(at + 1);
        let is_minus = self.peek() == Some('-') && next.is_some_and(|c| !c.is_whitespace() && *c != '-');
        if !is_minus && !self.keyword("NOT") {
            return self.term(field);
        }
        self.at += usize::from(is_minus);
        self.skip_spaces();
        if self.peek().is_none_or(|c| c == ')') || self.or_is_next() {
            let given = if is_minus { "-" } else { "NOT" };
            return Err(error(&format!("expected a word after `{given}`"), at + given.len(), ""));
        }
        let inner = self.deeper(|parser| parser.unary(field))?;
        Ok(inner.map(|node| Node::Not(Box::new(node))))
    }

    fn term(&mut self, field: Field) -> Result<Option<Node>, QueryError> {
        let at = self.at;
        match self.peek() {
            Some('(') => {
                self.at += 1;
                let inner = self.deeper(|parser| parser.alternatives(field))?;
                if self.peek() != Some(')') {
                    return Err(error("the `(` is not closed", at, QUOTE));
                }
                self.at += 1;
                Ok(inner)
            }
            Some('"') => self.phrase().and_then(|text| self.condition(field, &text, at, true)),
            Some(_) | None => match self.field()? {
                Some(named) if field != Field::Text => {
                    Err(error(&format!("the field `{}` is inside another field", field_name(named)), at, QUOTE))
                }
                Some(named) => self.term(named),
                None => {
                    let word = self.word();
                    self.of_word(field, word)
                }
            },
        }
    }

    /// Parses the text between double quotes.
    fn phrase(&mut self) -> Result<String, QueryError> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.peek() {
                None => return Err(error("the `\"` is not closed", start, "")),
                Some('"') => break,
                Some('\\') if matches!(self.chars.get(self.at + 1), Some('"' | '\\')) => {
                    self.at += 1;
                    text.extend(self.peek());
                }
                Some(c) => text.push(c),
            }
            self.at += 1;
        }
        self.at += 1;
        Ok(text)
    }

    /// Parses a field name with its colon. Does not accept `std::fs`, `https://…` or `name: …`.
    fn field(&mut self) -> Result<Option<Field>, QueryError> {
        let rest = self.chars.get(self.at..).unwrap_or_default();
        let name: String = rest.iter().take_while(|c| c.is_alphanumeric() || **c == '_').collect();
        let length = name.chars().count();
        let follows = rest.get(length + 1).copied();
        let is_named = !name.is_empty()
            && rest.get(length) == Some(&':')
            && follows.is_some_and(|c| !c.is_whitespace() && !matches!(c, ':' | ')'))
            && !(follows == Some('/') && rest.get(length + 2) == Some(&'/'));
        if !is_named {
            return Ok(None);
        }
        let wanted = name.to_lowercase();
        let Some((_, field)) = Field::NAMED.iter().find(|(known, _)| *known == wanted) else {
            let names: Vec<_> = Field::NAMED.iter().map(|(name, _)| *name).collect();
            let hint = format!(", expected one of {}{QUOTE}", names.join(", "));
            return Err(error(&format!("unknown field `{}`", api::part::shown(&name)), self.at, &hint));
        };
        self.at += length + 1;
        Ok(Some(*field))
    }

    /// Parses a word, up to a space, a quote, or the end of its group.
    fn word(&mut self) -> Word {
        let mut word = Word { chars: Vec::new(), at: self.at };
        let mut open = 0_usize;
        while let Some(c) = self.peek() {
            match c {
                c if c.is_whitespace() => break,
                '"' => break,
                ')' if open == 0 => break,
                '\\' if self.chars.get(self.at + 1).is_some_and(|next| !next.is_whitespace()) => {
                    self.at += 1;
                    word.chars.extend(self.peek().map(|c| (c, true)));
                    self.at += 1;
                    continue;
                }
                // A parenthesis within code, such as `f(x)`.
                '(' => open += 1,
                ')' => open -= 1,
                _ => {}
            }
            word.chars.push((c, false));
            self.at += 1;
        }
        word
    }

    fn of_word(&mut self, field: Field, mut word: Word) -> Result<Option<Node>, QueryError> {
        let is_words = matches!(
            field,
            Field::Text | Field::Tool | Field::Cwd | Field::Project | Field::Model | Field::File | Field::Session
        );
        if !is_words {
            return self.condition(field, &word.text(), word.at, false);
        }
        if field == Field::Text && matches!(word.chars.as_slice(), [('*', false)]) {
            return Ok(Some(Node::All));
        }
        let is_prefix = word.take_last('*');
        if let Some(star) = word.chars.iter().position(|c| *c == ('*', false)) {
            return Err(error("`*` is supported only at the end of a word", word.at + star, QUOTE));
        }
        let fuzzy = word.chars.iter().rposition(|c| *c == ('~', false));
        let at = word.at;
        match fuzzy {
            Some(tilde) if is_fuzzy(&word, tilde) && !is_prefix && field != Field::Session => {
                self.fuzzy(field, &word, tilde)
            }
            _ if field == Field::Session => self.condition(field, &word.text(), at, false),
            _ if is_prefix => {
                let (parts, _) = tokens::parts(&word.text());
                match parts.last() {
                    Some(_) if parts.iter().map(String::len).sum::<usize>() < PREFIX_BYTES => {
                        Err(error("expected at least 2 letters before `*`", at, ""))
                    }
                    Some(_) => self.leaf(field, Condition::Prefix(parts), at),
                    None => Ok(self.drop_at(at)),
                }
            }
            _ => self.condition(field, &word.text(), at, false),
        }
    }

    fn fuzzy(&mut self, field: Field, word: &Word, tilde: usize) -> Result<Option<Node>, QueryError> {
        let at = word.at;
        let distance = match word.chars.get(tilde + 1) {
            None | Some(('1', _)) => 1,
            Some(('2', _)) => 2,
            Some(_) => return Err(error("expected `~`, `~1` or `~2` at the end of a word", at + tilde, QUOTE)),
        };
        let text: String = word.chars.iter().take(tilde).map(|(c, _)| *c).collect();
        let (parts, whole) = tokens::parts(&text);
        let single = if parts.len() == 1 { parts.into_iter().next() } else { whole };
        match single {
            Some(word) if word.chars().count() >= FUZZY_CHARS => {
                self.leaf(field, Condition::Fuzzy { word, distance }, at)
            }
            Some(_) => Err(error("expected at least 3 letters before `~`", at, "")),
            None => Err(error("expected one word before `~`", at, QUOTE)),
        }
    }

    /// The condition that a value expresses for a field.
    fn condition(&mut self, field: Field, text: &str, at: usize, is_quoted: bool) -> Result<Option<Node>, QueryError> {
        let one_of = |known: &[&str], what: &str| {
            let wanted = text.to_lowercase();
            if known.contains(&wanted.as_str()) {
                return Ok(Condition::Exact(wanted));
            }
            let hint = format!(", expected one of {}", known.join(", "));
            Err(error(&format!("unknown {what} `{}`", api::part::shown(text)), at, &hint))
        };
        let condition = match field {
            Field::Agent => {
                let agents: Vec<_> =
                    Provider::ALL.iter().filter(|p| **p != Provider::Unknown).map(|p| p.as_str()).collect();
                one_of(&agents, "agent")?
            }
            Field::Kind => one_of(&TextKind::ALL.iter().map(|kind| kind.as_str()).collect::<Vec<_>>(), "kind")?,
            Field::Outcome => {
                one_of(&ToolOutcome::ALL.iter().map(|outcome| outcome.as_str()).collect::<Vec<_>>(), "outcome")?
            }
            Field::Time => match time::range(text, self.clock) {
                Some(range) => Condition::During(range),
                None => {
                    let hint = ", expected a date, a time or an age such as 2026-11-01, >=2026-11-01T09:30, <7d or \
                                2026-11-01..2026-11-05";
                    return Err(error(&format!("unknown time `{}`", api::part::shown(text)), at, hint));
                }
            },
            Field::Session => {
                let id = text.trim().to_lowercase();
                if id.is_empty() {
                    return Err(error("expected the id of a session, or the start of an id", at, ""));
                }
                Condition::Begins(id)
            }
            Field::Cwd if text.starts_with('/') => Condition::Exact(directory(text)),
            Field::Text | Field::Tool | Field::Cwd | Field::Project | Field::Model | Field::File => {
                let (parts, whole) = tokens::parts(text);
                if parts.is_empty() {
                    return Ok(self.drop_at(at));
                }
                // A quoted text is a phrase of its parts, however they are joined.
                Condition::Words { parts, whole: whole.filter(|_| !is_quoted) }
            }
        };
        self.leaf(field, condition, at)
    }

    fn leaf(&mut self, field: Field, condition: Condition, at: usize) -> Result<Option<Node>, QueryError> {
        self.conditions += 1;
        if self.conditions > CONDITIONS {
            return Err(error(&format!("more than {CONDITIONS} conditions"), at, ""));
        }
        Ok(Some(Node::Leaf(field, condition)))
    }

    fn drop_at(&mut self, at: usize) -> Option<Node> {
        self.dropped = Some(at);
        None
    }
}

/// A directory in the form of the index: without a trailing slash.
pub(crate) fn directory(path: &str) -> String {
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() { "/".into() } else { trimmed.into() }
}

/// Whether the `~` after a word begins a distance, unlike the one in `a~b`.
fn is_fuzzy(word: &Word, tilde: usize) -> bool {
    let after = word.chars.get(tilde + 1..).unwrap_or_default();
    tilde > 0 && (after.is_empty() || matches!(after, [(c, false)] if c.is_ascii_digit()))
}

fn field_name(field: Field) -> &'static str {
    Field::NAMED.iter().find(|(_, named)| *named == field).map_or("text", |(name, _)| name)
}

fn one_or(mut nodes: Vec<Node>, join: fn(Vec<Node>) -> Node) -> Option<Node> {
    match nodes.len() {
        0 => None,
        1 => nodes.pop(),
        _ => Some(join(nodes)),
    }
}
