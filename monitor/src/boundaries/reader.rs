//! Reads the tokens of a sentence. Lists of words and phrases are texts with `|` between them.

use super::sentences::Token;

/// Whether a list contains a word.
pub(super) fn lists(list: &str, word: &str) -> bool {
    !word.is_empty() && list.split('|').any(|listed| listed == word)
}

/// Words that may precede what a sentence forbids.
pub(super) const FILLERS: &str = "\
    please|pls|but|and|also|again|for now|ok|okay|so|then|just|important|note|remember|reminder|plus|\
    however|still|now|always|of course|this time|hey|stop|no|rule|rules|constraint|constraints|one thing|\
    one more thing|and please|under no circumstances|hi|hello|thanks|great|good|sure|yes|btw|by the way|\
    for the moment|at this point";

/// Verbs of an instruction to change files.
pub(super) const CHANGES: &str = "\
    touch|edit|change|modify|update|fix|add|write|rewrite|refactor|implement|rename|replace|move|delete|\
    remove|create|put|apply|extend|bump|regenerate|revert|format|clean|overwrite|alter|adjust|extract|split|\
    simplify|improve|drop|restore|patch|correct|adapt|use|include|append|set|port|migrate|convert|upgrade|\
    work";

/// Branches that may be named without further words.
const BRANCHES: &str = "main|master|develop|dev|staging|production|prod|release|trunk|origin|upstream";

/// Reads the tokens of a sentence one after another.
pub(super) struct Reader<'a> {
    pub(super) tokens: &'a [Token],
    pub(super) at: usize,
}

impl Reader<'_> {
    /// The word at a distance, in lower case; empty for anything else.
    pub(super) fn word_at(&self, distance: usize) -> &str {
        match self.tokens.get(self.at + distance) {
            Some(Token::Word(word, _)) => word,
            Some(Token::Code(_) | Token::Sign(_)) | None => "",
        }
    }

    pub(super) fn word(&self) -> &str {
        self.word_at(0)
    }

    pub(super) fn raw(&self) -> Option<&str> {
        match self.tokens.get(self.at) {
            Some(Token::Word(_, raw) | Token::Code(raw)) => Some(raw),
            Some(Token::Sign(_)) | None => None,
        }
    }

    pub(super) fn is_code(&self) -> bool {
        matches!(self.tokens.get(self.at), Some(Token::Code(_)))
    }

    pub(super) fn sign(&self) -> Option<char> {
        match self.tokens.get(self.at) {
            Some(Token::Sign(sign)) => Some(*sign),
            Some(Token::Word(..) | Token::Code(_)) | None => None,
        }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    /// Consumes the longest of these phrases that comes next.
    pub(super) fn eat(&mut self, phrases: &str) -> bool {
        let length = |phrase: &str| {
            let words = phrase.split(' ');
            let count = words.clone().count();
            let is_next = !phrase.is_empty() && words.enumerate().all(|(at, word)| self.word_at(at) == word);
            is_next.then_some(count)
        };
        let longest = phrases.split('|').filter_map(length).max();
        self.at += longest.unwrap_or(0);
        longest.is_some()
    }

    pub(super) fn eat_all(&mut self, phrases: &str) -> usize {
        (0..12).take_while(|_| self.eat(phrases)).count()
    }

    pub(super) fn eat_sign(&mut self, signs: &[char]) -> bool {
        let is_next = self.sign().is_some_and(|sign| signs.contains(&sign));
        self.at += usize::from(is_next);
        is_next
    }

    pub(super) fn attempt<T>(&mut self, parse: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let before = self.at;
        let parsed = parse(self);
        if parsed.is_none() {
            self.at = before;
        }
        parsed
    }

    /// Words that stand for the work at hand: `the changes`, `anything`, `it`.
    pub(super) fn object(&mut self, nouns: &str) {
        const GENERAL: &str = "\
            the|a|an|any|your|my|our|this|that|these|those|all|anything|it|them|everything|of|changes|\
            change|new|stuff|more|further|any of|anything else|fix|result";
        for _ in 0..8 {
            if !(self.eat(GENERAL) || self.eat(nouns)) {
                return;
            }
        }
    }

    /// A target: `to main`. `None` if it is not certain what it means.
    pub(super) fn to(&mut self) -> Option<Option<String>> {
        self.eat("directly|straight|automatically");
        if self.eat("upstream|remotely") {
            return Some(None);
        }
        if !self.eat("to|on|onto|into|in") {
            return Some(None);
        }
        let before = self.at - 1;
        if self.eat("this repo|this repository|this project|this session|this branch") {
            return Some(None);
        }
        self.eat("the|our|any");
        if self.eat("remote|remotes|remote repository|remote repo|github|gitlab|server|git|remote branch") {
            return Some(None);
        }
        let first = self.raw().map(str::to_owned);
        let Some(mut name) = first else {
            self.at = before;
            return None;
        };
        let follows = self.word_at(1).to_owned();
        let is_branch = self.is_code()
            || lists(BRANCHES, name.to_lowercase().as_str())
            || name.contains('/')
            || follows == "branch";
        if !is_branch || name.contains(char::is_whitespace) {
            return None;
        }
        self.at += 1;
        if matches!(name.as_str(), "origin" | "upstream") {
            // `origin main`
            match self.raw().map(str::to_owned) {
                Some(branch) if lists(BRANCHES, branch.as_str()) || self.is_code() => {
                    name = branch;
                    self.at += 1;
                }
                Some(_) | None if name == "origin" => {
                    self.eat("branch");
                    return Some(None);
                }
                Some(_) | None => {}
            }
        }
        let name = name.strip_prefix("origin/").unwrap_or(&name).to_owned();
        self.eat("branch|environment|env|yet");
        Some(Some(name))
    }

    /// The targets of a list: `to main or master`.
    pub(super) fn targets(&mut self) -> Option<Vec<Option<String>>> {
        let mut all = vec![self.to()?];
        while all[0].is_some() && matches!(self.word(), "or" | "and" | "nor") && lists(BRANCHES, self.word_at(1)) {
            all.push(Some(self.word_at(1).to_owned()));
            self.at += 2;
        }
        Some(all)
    }

    /// Whether one of the words from `start` up to here is in a list.
    pub(super) fn has_said(&self, start: usize, list: &str) -> bool {
        self.tokens[start..self.at].iter().any(|token| matches!(token, Token::Word(word, _) if lists(list, word)))
    }
}
