//! The argument syntax of well-known programs, for rules that deny or ask. The table is data (`programs.toml`).
//!
//! Such a rule matches a command however it is spelled: options are sets in which short, long, bundled and abbreviated
//! forms are equal, and the subcommand is compared at the position where the program expects it. If the table has no
//! entry for a program, a rule matches more of that program's commands.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use serde::Deserialize;

/// The table entry of a program, or of one of its subcommands.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Program {
    names: Vec<String>,
    subcommands: bool,
    /// All its subcommands, if another word may be an alias of the user's.
    own: Vec<String>,
    synonyms: BTreeMap<String, String>,
    values: Vec<String>,
    same: Vec<Vec<String>>,
    stands_for: BTreeMap<String, String>,
    implies: BTreeMap<String, String>,
    subcommand: Vec<Program>,
}

/// A program that runs the command after its own options.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Wrapper {
    names: Vec<String>,
    /// Options with a value in the next word.
    pub(crate) values: Vec<String>,
    /// Options whose value is a command line.
    pub(crate) text: Vec<String>,
    /// Number of operands before the command.
    pub(crate) skip: usize,
    /// Whether `NAME=value` may precede the command.
    pub(crate) assignments: bool,
    /// Whether its operands together form a command line.
    pub(crate) joined: bool,
    /// Whether its operands and its input are scripts.
    pub(crate) shell: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramTable {
    wrapper: Vec<Wrapper>,
    program: Vec<Program>,
}

#[expect(clippy::panic, reason = "the table is part of the program, and a test reads it")]
static TABLE: LazyLock<ProgramTable> = LazyLock::new(|| {
    toml::from_str(include_str!("../programs.toml")).unwrap_or_else(|error| panic!("programs.toml: {error}"))
});

/// The wrapper with this name.
pub(crate) fn wrapper(name: &str) -> Option<&'static Wrapper> {
    TABLE.wrapper.iter().find(|wrapper| wrapper.names.iter().any(|known| known == name))
}

fn program(name: &str) -> Option<&'static Program> {
    TABLE.program.iter().find(|program| program.names.iter().any(|known| known == name))
}

/// Whether a program is known, so that its arguments are not another command that it runs.
pub(crate) fn is_known(name: &str) -> bool {
    program(name).is_some() || wrapper(name).is_some()
}

/// The name of a program without its directory, in lower case as on case-insensitive file systems.
pub(crate) fn base_name(word: &str) -> String {
    let name = word.rsplit('/').next().unwrap_or(word);
    // `=ls` of zsh.
    name.strip_prefix('=').unwrap_or(name).to_ascii_lowercase()
}

/// A parsed command, independent of its spelling.
#[derive(Debug, Default)]
pub(crate) struct Invocation {
    /// The first operand, for a program that has subcommands.
    pub(crate) subcommand: Option<String>,
    /// The options. Synonyms have one name, and the letters of a bundle are separate options.
    pub(crate) options: BTreeSet<String>,
    /// Options with their values.
    pub(crate) values: Vec<(String, String)>,
    /// The remaining operands, without the subcommand.
    pub(crate) operands: Vec<String>,
    /// Words of an unknown program, each with the letters it may be a bundle of.
    bundles: Vec<(String, Vec<String>)>,
}

impl Invocation {
    /// Parses the words after a program's name.
    pub(crate) fn parse(name: &str, words: &[&str]) -> Self {
        let known = program(name);
        let unknown = Program::default();
        let mut spec = known.unwrap_or(&unknown);
        let mut all = Self::default();
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            if word == "--" {
                for word in words.by_ref() {
                    all.operand(spec, word);
                }
            } else if let Some(body) = word.strip_prefix("--") {
                all.long(spec, body, &mut words);
            } else if word.len() > 1 && word.starts_with('-') {
                if known.is_some() && !spec.values.iter().chain(spec.same.iter().flatten()).any(|known| known == word) {
                    all.bundle(spec, word, &mut words);
                } else if spec.values.iter().any(|known| known == word) {
                    let value = words.next().unwrap_or_default();
                    all.value(spec, word, value);
                } else if known.is_some() {
                    all.option(spec, word);
                } else {
                    let letters = word.chars().skip(1).map(|letter| format!("-{letter}")).collect();
                    all.bundles.push((word.to_owned(), letters));
                }
            } else if spec.subcommands && all.subcommand.is_none() {
                // `cargo +nightly test`
                if word.starts_with('+') {
                    continue;
                }
                let word = spec.synonyms.get(word).map_or(word, String::as_str);
                all.subcommand = Some(word.to_owned());
                if let Some(sub) = spec.subcommand.iter().find(|sub| sub.names.iter().any(|name| name == word)) {
                    spec = sub;
                }
            } else {
                all.operand(spec, word);
            }
        }
        all
    }

    fn operand(&mut self, spec: &Program, word: &str) {
        if let Some((_, option)) = spec.stands_for.iter().find(|(start, _)| word.starts_with(start.as_str())) {
            self.options.insert(option.clone());
        }
        self.operands.push(word.to_owned());
    }

    fn option(&mut self, spec: &Program, word: &str) {
        self.options.extend(spec.implies.get(word).cloned());
        let mut classes = spec.same.iter().filter(|class| class.iter().any(|option| option == word)).peekable();
        if classes.peek().is_none() {
            self.options.insert(word.to_owned());
        }
        self.options.extend(classes.filter_map(|class| class.first().cloned()));
    }

    fn value(&mut self, spec: &Program, word: &str, value: &str) {
        self.option(spec, word);
        let class = spec.same.iter().find(|class| class.iter().any(|option| option == word));
        let name = class.and_then(|class| class.first()).map_or(word, String::as_str);
        self.values.push((name.to_owned(), value.to_owned()));
    }

    fn long<'a>(&mut self, spec: &Program, body: &str, words: &mut impl Iterator<Item = &'a str>) {
        let (name, value) = body.split_once('=').map_or((body, None), |(name, value)| (name, Some(value)));
        let word = format!("--{name}");
        // An abbreviation may mean any option that begins with it.
        let all = spec.values.iter().chain(spec.same.iter().flatten());
        let exact = spec.values.iter().chain(spec.same.iter().flatten()).any(|known| *known == word);
        let meant: BTreeSet<&str> = all
            .map(String::as_str)
            .filter(|known| if exact { *known == word } else { !name.is_empty() && known.starts_with(&word) })
            .collect();
        if meant.is_empty() {
            match value {
                Some(value) => self.value(spec, &word, value),
                None => self.option(spec, &word),
            }
            return;
        }
        let takes = meant.iter().any(|known| spec.values.iter().any(|option| option == known));
        let next = if value.is_none() && takes { words.next() } else { None };
        for known in meant {
            match value.or(next) {
                Some(value) => self.value(spec, known, value),
                None => self.option(spec, known),
            }
        }
    }

    fn bundle<'a>(&mut self, spec: &Program, word: &str, words: &mut impl Iterator<Item = &'a str>) {
        for (at, letter) in word.char_indices().skip(1) {
            let option = format!("-{letter}");
            if spec.values.contains(&option) {
                let rest = &word[at + letter.len_utf8()..];
                let value = if rest.is_empty() { words.next().unwrap_or_default() } else { rest };
                self.value(spec, &option, value);
                return;
            }
            self.option(spec, &option);
        }
    }

    /// Whether the subcommand may be an alias in the user's configuration.
    pub(crate) fn may_be_alias(&self, name: &str) -> bool {
        let own = program(name).map(|program| program.own.as_slice()).unwrap_or_default();
        !own.is_empty() && self.subcommand.as_ref().is_some_and(|word| !own.contains(word))
    }

    /// Whether this command has the effect of `named`, and possibly more.
    pub(crate) fn includes(&self, named: &Self) -> bool {
        let has = |option: &String| {
            self.options.contains(option)
                || self.bundles.iter().any(|(word, letters)| word == option || letters.contains(option))
                // For an unknown program, an abbreviation counts.
                || option.starts_with("--")
                    && self.options.iter().any(|given| given.len() > 2 && given.starts_with("--") && option.starts_with(given.as_str()))
        };
        let mut later = self.operands.iter();
        named.subcommand.as_ref().is_none_or(|named| self.subcommand.as_ref() == Some(named))
            && named.options.iter().all(has)
            && named.bundles.iter().all(|(word, letters)| has(word) || letters.iter().all(has))
            && named.values.iter().all(|named| self.values.contains(named))
            && named.operands.iter().all(|named| later.any(|given| is_same_operand(given, named)))
    }
}

/// Whether two operands are the same: `target/` is `target`.
fn is_same_operand(given: &str, named: &str) -> bool {
    let bare = |text: &str| match text.trim_end_matches('/') {
        "" if !text.is_empty() => "/".to_owned(),
        bare => bare.strip_prefix("./").unwrap_or(bare).to_owned(),
    };
    bare(given) == bare(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn includes(given: &str, named: &str) -> bool {
        let parse = |text: &str| {
            let words: Vec<&str> = text.split(' ').collect();
            (words[0].to_owned(), Invocation::parse(words[0], &words[1..]))
        };
        let (given, named) = (parse(given), parse(named));
        given.0 == named.0 && given.1.includes(&named.1)
    }

    #[test]
    fn the_program_table_contains_git_and_sudo() {
        assert!(program("git").is_some() && wrapper("sudo").is_some());
    }

    #[test]
    fn options_match_in_any_order_and_grouping() {
        for given in ["rm -rf x", "rm -fr x", "rm -r -f x", "rm x -f -R", "rm --rec --forc x", "rm -vrf x"] {
            assert!(includes(given, "rm -rf"), "{given}");
        }
        for given in ["rm -r x", "rm -f x", "rm x", "rm -- -rf"] {
            assert!(!includes(given, "rm -rf"), "{given}");
        }
        assert!(includes("frob -xzf a --verb", "frob -xf --verbose"));
        assert!(!includes("frob -xz a", "frob -xf"));
    }

    #[test]
    fn option_values_are_not_treated_as_operands() {
        assert!(includes("git -C push status", "git status") && !includes("git -C push status", "git push"));
        assert!(includes("git push -o x origin +main", "git push --force origin"));
        assert!(includes("docker run -v /:/host x", "docker run --volume /:/host"));
        assert!(!includes("docker run -v /a:/host x", "docker run --volume /:/host"));
    }
}
