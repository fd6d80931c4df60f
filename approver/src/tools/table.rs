//! The tables of known programs and subcommands of git.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::Deserialize;

use crate::shell::ShellWord;

/// The entry of one program, or of one subcommand of git.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Tool {
    pub(super) names: Vec<String>,
    /// Whether it is a builtin of the shell, so that no file is searched for.
    pub(crate) builtin: bool,
    /// Options without a value. Those of one letter may be bundled.
    pub(super) flags: Vec<String>,
    /// Options with a value, and the kind of the value.
    pub(super) values: BTreeMap<String, String>,
    /// Options with an optional value. A short option's value follows directly, a long option's after `=`.
    pub(super) optional: BTreeMap<String, String>,
    /// Whether `-5` is an option.
    pub(super) number: bool,
    /// The kinds of the operands. `x...` at the end means any number of operands of kind x.
    pub(super) operands: Vec<String>,
    /// Operands are accepted only together with one of these options.
    pub(super) operands_with: Vec<String>,
    /// Options that replace the first operand.
    pub(super) first_by: Vec<String>,
    /// Whether the program has no options.
    pub(super) words: bool,
    /// Whether its parser differs from getopt: options only as spelled here, no bundles, and each value a separate
    /// word.
    pub(super) whole: bool,
    /// Whether its operands may be patterns of file names.
    pub(super) globs: bool,
    /// Whether a word that begins with `@` names a file with more words.
    pub(super) response_files: bool,
    /// The complete list of accepted argument lists.
    pub(super) exact: Option<Vec<String>>,
    /// Whether it reads the current directory if no path is given.
    pub(super) here: bool,
    /// Whether it would read all files of a directory among its operands, so that directories are refused.
    pub(super) no_directories: bool,
    /// Whether it prints names, sizes and times of files, but no contents.
    pub(super) names_only: bool,
    /// Whether it reads all files below its paths.
    pub(super) below: ReadsBelow,
    /// Options that make it read below its paths.
    pub(super) below_with: Vec<String>,
    /// Options that keep it from reading any file.
    pub(super) below_unless: Vec<String>,
    /// The parser of its arguments, if they are a language.
    pub(super) grammar: Option<super::grammar::Grammar>,
    /// Files of the workspace whose mere presence may make another program run. If the list is not empty, files of
    /// version managers count too.
    pub(super) unless: Vec<String>,
    /// Whether a subcommand of git prints contents of files.
    pub(crate) contents: PrintsContents,
    /// Options that make a subcommand of git safe; they are inserted after it.
    pub(crate) insert: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReadsBelow {
    #[default]
    Never,
    /// With one of the options that request it.
    Asked,
    Always,
}

/// Whether a subcommand of git prints contents of files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PrintsContents {
    #[default]
    Never,
    /// With an option that requests patches.
    Asked,
    /// Unless an option requests less.
    Usually,
    Always,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolTable {
    tool: Vec<Tool>,
}

pub(crate) const TABLES: &[(&str, &str)] = &[
    ("files.toml", include_str!("../../tools/files.toml")),
    ("texts.toml", include_str!("../../tools/texts.toml")),
    ("search.toml", include_str!("../../tools/search.toml")),
    ("shell.toml", include_str!("../../tools/shell.toml")),
    ("system.toml", include_str!("../../tools/system.toml")),
];

pub(crate) static TOOLS: LazyLock<BTreeMap<String, Tool>> =
    LazyLock::new(|| TABLES.iter().flat_map(|(file, text)| by_name(file, text)).collect());

pub(crate) static GIT: LazyLock<BTreeMap<String, Tool>> =
    LazyLock::new(|| by_name("git.toml", include_str!("../../tools/git.toml")).into_iter().collect());

/// Commands that build and test, by their first words.
pub(crate) static BUILD: LazyLock<BTreeMap<String, Tool>> =
    LazyLock::new(|| by_name("build.toml", include_str!("../../develop/build.toml")).into_iter().collect());

/// Commands that change files and commits, by their first words.
pub(crate) static CHANGE: LazyLock<BTreeMap<String, Tool>> =
    LazyLock::new(|| by_name("change.toml", include_str!("../../develop/change.toml")).into_iter().collect());

/// Maximum number of first words of a command in these tables.
const MAX_BEGINNING: usize = 5;

fn longest<'a>(table: &'a BTreeMap<String, Tool>, words: &[ShellWord]) -> Option<(&'a Tool, usize)> {
    (1..=MAX_BEGINNING.min(words.len())).rev().find_map(|count| {
        let exact = words[..count].iter().all(ShellWord::is_exact);
        let name = words[..count].iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
        Some((table.get(&name).filter(|_| exact)?, count))
    })
}

/// The entry of a command that builds or tests, and the number of its first words.
pub(crate) fn build(words: &[ShellWord]) -> Option<(&'static Tool, usize)> {
    longest(&BUILD, words)
}

/// The entry of a command that changes files or commits, and the number of its first words.
pub(crate) fn change(words: &[ShellWord]) -> Option<(&'static Tool, usize)> {
    longest(&CHANGE, words)
}

/// Whether a program builds or tests.
pub(crate) fn is_build(name: &str) -> bool {
    BUILD.keys().any(|words| words == name || words.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')))
}

#[expect(clippy::panic, reason = "the tables are part of the program, and a test reads them")]
pub(crate) fn by_name(file: &str, text: &str) -> Vec<(String, Tool)> {
    let table: ToolTable = toml::from_str(text).unwrap_or_else(|error| panic!("tools/{file}: {error}"));
    let mut all = Vec::new();
    for tool in table.tool {
        for option in tool.values.values().chain(tool.optional.values()).chain(&tool.operands) {
            let kind = option.strip_suffix("...").unwrap_or(option);
            assert!(super::scripts::ValueKind::parse(kind).is_some(), "tools/{file}: `{kind}` is not a kind of value");
        }
        all.extend(tool.names.clone().into_iter().map(|name| (name, tool.clone())));
    }
    all
}

/// The entry of a program.
pub(crate) fn tool(name: &str) -> Option<&'static Tool> {
    TOOLS.get(name)
}

/// The entry of a subcommand of git.
pub(crate) fn git(name: &str) -> Option<&'static Tool> {
    GIT.get(name)
}
