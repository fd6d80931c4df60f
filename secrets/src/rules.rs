//! The rules for keys with a vendor's own form: Betterleaks' rules, and `own.toml` in the same format.
//!
//! A rule is applied only around its keywords. Its expression is compiled when one of its keywords is first found, with
//! two changes, because transcripts contain tokens in more surroundings than source files do: a token may also follow
//! an escaped line break (`\n` as two characters), and it may end at any character that cannot be part of it. Character
//! classes are ASCII, as in Go.

use std::sync::{Arc, OnceLock};

use regex_automata::{
    Input,
    meta::{self, Regex},
    util::{captures::Captures, syntax},
};
use serde::Deserialize;

use crate::{
    found::{SecretKind, Span},
    value,
};

/// If two rules match the same text, the later one determines the kind.
const FILES: [&str; 2] = [include_str!("../rules/own.toml"), include_str!("../rules/betterleaks.toml")];

/// How far before a keyword a secret of its rule may begin, bytes.
const BEFORE: usize = 128;
/// How far after a keyword a secret of its rule may end, bytes.
const AFTER: usize = 1024;
/// Like [`AFTER`], for rules whose tokens have no maximum length.
const LONG: usize = 8192;

/// The end of a token in upstream's expressions.
const END: &str = r#"(?:\\?['"\x60]|[\s;]|\\[nr]|$)"#;
/// The end of a token here.
const ANY_END: &str = r"(?:[^\w-]|$)";

/// The error that the built-in rules cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// The rules file is not TOML of the expected form.
    #[error("the built-in rules cannot be read: {0}")]
    Form(#[from] toml::de::Error),
    /// The keywords do not fit into one automaton.
    #[error("the keywords of the rules cannot be compiled: {0}")]
    Keywords(#[from] aho_corasick::BuildError),
}

#[derive(Deserialize)]
struct RuleFile {
    rules: Vec<RuleRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleRow {
    id: String,
    regex: String,
    keywords: Vec<String>,
    #[serde(default)]
    entropy: f32,
    #[serde(default)]
    allows: Vec<String>,
    #[serde(default)]
    requires: Vec<String>,
    group: Option<usize>,
    #[serde(default)]
    random: bool,
}

/// A rule for the form of a vendor's key.
#[derive(Debug)]
pub(crate) struct KeyRule {
    pub(crate) kind: SecretKind,
    pub(crate) keywords: Vec<String>,
    source: String,
    entropy: f32,
    allows: Vec<String>,
    requires: Vec<String>,
    group: Option<usize>,
    random: bool,
    compiled: OnceLock<Option<CompiledRule>>,
}

#[derive(Debug)]
struct CompiledRule {
    regex: Regex,
    allows: Vec<Regex>,
    requires: Vec<Regex>,
}

/// Reads the built-in rules.
pub(crate) fn built_in() -> Result<Vec<KeyRule>, RulesError> {
    let mut rules = Vec::new();
    for text in FILES {
        let file: RuleFile = toml::from_str(text)?;
        rules.extend(file.rules.into_iter().map(KeyRule::of));
    }
    Ok(rules)
}

impl KeyRule {
    fn of(row: RuleRow) -> Self {
        Self {
            kind: Arc::from(row.id),
            keywords: row.keywords,
            source: row.regex,
            entropy: row.entropy,
            allows: row.allows,
            requires: row.requires,
            group: row.group,
            random: row.random,
            compiled: OnceLock::new(),
        }
    }

    /// The rule's expression as used here.
    fn expression(&self) -> String {
        let loose = self.source.replace(END, ANY_END);
        loose
            .strip_prefix(r"\b")
            .map_or_else(|| loose.clone(), |rest| format!(r"(?:\b|\\[nrt]|\x1b\[[\d;]*m|\\u001b\[[\d;]*m){rest}"))
    }

    /// A rule that does not compile finds nothing; a test ensures that there is none.
    fn compiled(&self) -> Option<&CompiledRule> {
        self.compiled
            .get_or_init(|| {
                let all = |sources: &[String]| sources.iter().map(|s| compile(s)).collect::<Option<Vec<_>>>();
                Some(CompiledRule {
                    regex: compile(&self.expression())?,
                    allows: all(&self.allows)?,
                    requires: all(&self.requires)?,
                })
            })
            .as_ref()
    }

    /// Applies the rule around each position of one of its keywords. `places` must be sorted.
    pub(crate) fn find(&self, bytes: &[u8], places: &[usize], out: &mut Vec<Span>) {
        let Some(compiled) = self.compiled() else { return };
        let after = if self.source.contains(",}") { LONG } else { AFTER };
        let mut captures = compiled.regex.create_captures();
        let mut searched = 0;
        let mut places = places.iter().copied().peekable();
        while let Some(first) = places.next() {
            let start = first.saturating_sub(BEFORE).max(searched);
            let mut end = first.saturating_add(after).min(bytes.len());
            // Keywords that are close together are searched once.
            while let Some(next) = places.next_if(|next| next.saturating_sub(BEFORE) <= end) {
                end = next.saturating_add(after).min(bytes.len());
            }
            searched = self.find_in(compiled, bytes, start, end, &mut captures, out).max(searched);
        }
    }

    /// Searches a range for the rule; returns the end of the last match.
    fn find_in(
        &self,
        compiled: &CompiledRule,
        bytes: &[u8],
        start: usize,
        end: usize,
        captures: &mut Captures,
        out: &mut Vec<Span>,
    ) -> usize {
        let mut at = start;
        while at < end {
            compiled.regex.captures(Input::new(bytes).range(at..end), captures);
            let Some(whole) = captures.get_match() else { break };
            let groups = 1..captures.group_len();
            let secret = self
                .group
                .and_then(|group| captures.get_group(group))
                .or_else(|| groups.filter_map(|group| captures.get_group(group)).next())
                .unwrap_or(whole.span());
            let mut range = secret.range();
            if self.group.is_none() && range.start == whole.start() {
                range.start = crate::text::behind_escape(bytes, range.start);
            }
            if self.is_secret(compiled, &bytes[range.clone()]) {
                out.push(Span { start: range.start, end: range.end, kind: self.kind.clone() });
            }
            at = whole.end().max(range.end).max(at + 1);
        }
        at.min(end)
    }

    fn is_secret(&self, compiled: &CompiledRule, secret: &[u8]) -> bool {
        !secret.is_empty()
            && value::entropy(secret) >= self.entropy
            && (!self.random || value::looks_random(secret))
            && !value::is_placeholder(secret)
            && !ends_with_placeholder(secret)
            && !compiled.allows.iter().any(|regex| regex.is_match(secret))
            && (compiled.requires.is_empty() || compiled.requires.iter().any(|regex| regex.is_match(secret)))
    }
}

/// Whether the last part of an address is a placeholder.
fn ends_with_placeholder(secret: &[u8]) -> bool {
    let mut parts = secret.rsplit(|b| *b == b'/');
    let last = parts.next().unwrap_or_default();
    parts.count() >= 3 && value::is_placeholder(last)
}

fn compile(source: &str) -> Option<Regex> {
    Regex::builder()
        .configure(
            meta::Config::new().utf8_empty(false).hybrid_cache_capacity(512 * 1024).nfa_size_limit(Some(16 << 20)),
        )
        .syntax(syntax::Config::new().unicode(false).utf8(false))
        .build(source)
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_compiles() {
        let broken: Vec<_> = built_in().unwrap().into_iter().filter(|rule| rule.compiled().is_none()).collect();
        assert!(broken.is_empty(), "{broken:#?}");
    }
}
