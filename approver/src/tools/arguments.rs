//! The arguments of a command, parsed according to its table.

use crate::tools::table::Tool;

/// The arguments of a command, parsed according to its table.
#[derive(Default)]
pub(crate) struct ParsedArguments<'a> {
    pub(super) options: Vec<&'a str>,
    pub(super) values: Vec<(&'a str, &'a str)>,
    pub(super) operands: Vec<&'a str>,
    /// The index of each operand among the words.
    pub(super) operands_at: Vec<usize>,
    /// Number of operands before a `--`, if there is one.
    pub(super) before: Option<usize>,
    /// The index of the `--`.
    pub(super) dashes_at: Option<usize>,
}

impl ParsedArguments<'_> {
    pub(crate) fn operands(&self) -> &[&str] {
        &self.operands
    }

    pub(super) fn any(&self, options: &[String]) -> bool {
        options.iter().any(|option| self.has(option))
    }

    pub(crate) fn has(&self, option: &str) -> bool {
        self.options.contains(&option) || self.values.iter().any(|(name, _)| *name == option)
    }
}

/// Parses words as getopt does. The error is the unknown option.
pub(crate) fn parts<'a>(tool: &'a Tool, words: &[&'a str]) -> Result<ParsedArguments<'a>, String> {
    let mut parts = ParsedArguments::default();
    let all = words.len();
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        let at = all - words.len() - 1;
        if word == "--" {
            parts.before = Some(parts.operands.len());
            parts.dashes_at = Some(at);
            parts.operands_at.extend(at + 1..all);
            parts.operands.extend(words.by_ref());
        } else if word == "-" || !word.starts_with('-') {
            parts.operands_at.push(at);
            parts.operands.push(word);
        } else if tool.flags.iter().any(|flag| flag == word) {
            parts.options.push(word);
        } else if tool.values.contains_key(word) {
            let value = words.next().ok_or_else(|| format!("The option `{word}` without its value"))?;
            parts.values.push((word, value));
        } else if tool.optional.contains_key(word) {
            parts.options.push(word);
        } else if let Some((name, value)) = word.split_once('=').filter(|(name, _)| {
            // `-run=X`
            word.starts_with("--") || name.len() > 2 && tool.values.contains_key(*name)
        }) {
            if !tool.values.contains_key(name) && !tool.optional.contains_key(name) {
                return Err(format!("The option `{name}`"));
            }
            parts.values.push((name, value));
        } else if word.starts_with("--") {
            return Err(format!("The option `{word}`"));
        } else if tool.number && word.bytes().skip(1).all(|b| b.is_ascii_digit()) {
            parts.options.push(word);
        } else if tool.whole {
            return Err(format!("The option `{word}`"));
        } else {
            bundle(tool, word, &mut words, &mut parts)?;
        }
    }
    Ok(parts)
}

/// Parses a bundle: `-la`, `-n5`, `-rnA 3`.
pub(crate) fn bundle<'a>(
    tool: &'a Tool,
    word: &'a str,
    words: &mut impl Iterator<Item = &'a str>,
    parts: &mut ParsedArguments<'a>,
) -> Result<(), String> {
    for (at, letter) in word.char_indices().skip(1) {
        let is = |option: &&String| option.strip_prefix('-') == Some(letter.encode_utf8(&mut [0; 4]) as &str);
        if let Some(flag) = tool.flags.iter().find(is) {
            parts.options.push(flag);
        } else if let Some(option) = tool.values.keys().find(is) {
            let rest = &word[at + letter.len_utf8()..];
            let value = if rest.is_empty() { words.next() } else { Some(rest) };
            let value = value.ok_or_else(|| format!("The option `{option}` without its value"))?;
            parts.values.push((option, value));
            return Ok(());
        } else if let Some(option) = tool.optional.keys().find(is) {
            let rest = &word[at + letter.len_utf8()..];
            if rest.is_empty() {
                parts.options.push(option);
            } else {
                parts.values.push((option, rest));
            }
            return Ok(());
        } else {
            return Err(format!("The option `-{letter}`"));
        }
    }
    Ok(())
}
