//! Matches file names against tables: names of secrets, names that may contain secrets, and files that control what
//! runs later. The tables are data (`secrets.toml`, `runs-later.toml`).

mod patterns;

use std::{
    path::{Path, PathBuf},
    sync::LazyLock,
};

use serde::Deserialize;

use self::patterns::Patterns;

/// One group of a table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NameGroup {
    /// The common property of the names.
    #[expect(dead_code, reason = "for readers of the table")]
    kind: String,
    /// The programs that write or read such files, and the content of the files.
    #[expect(dead_code, reason = "for readers of the table")]
    facts: String,
    names: Vec<String>,
    #[serde(default)]
    except: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SecretTable {
    history: Vec<String>,
    copies: Vec<String>,
    secret: Vec<NameGroup>,
    suspect: Vec<NameGroup>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunsLaterTable {
    protected: Vec<NameGroup>,
    runs: Vec<NameGroup>,
}

/// The groups of one kind, prepared for matching: groups without exceptions together, each other group separately.
struct NameMatcher {
    plain: Patterns,
    excepted: Vec<(Patterns, Patterns)>,
}

impl NameMatcher {
    fn new(groups: &[NameGroup]) -> Self {
        let of = |names: &[String]| Patterns::new(names.iter().map(String::as_str));
        let plain = groups.iter().filter(|group| group.except.is_empty()).flat_map(|group| &group.names);
        let excepted = groups.iter().filter(|group| !group.except.is_empty());
        Self {
            plain: Patterns::new(plain.map(String::as_str)),
            excepted: excepted.map(|group| (of(&group.names), of(&group.except))).collect(),
        }
    }

    fn contains(&self, folded: &str) -> bool {
        self.plain.is_match(folded)
            || self.excepted.iter().any(|(names, except)| names.is_match(folded) && !except.is_match(folded))
    }
}

struct NameTables {
    secret: NameMatcher,
    suspect: NameMatcher,
    protected: NameMatcher,
    runs: NameMatcher,
    copies: Vec<String>,
    history: Vec<(String, Patterns)>,
}

#[expect(clippy::panic, reason = "the tables are part of the program, and a test reads them")]
static TABLES: LazyLock<NameTables> = LazyLock::new(|| {
    let secrets: SecretTable =
        toml::from_str(include_str!("../secrets.toml")).unwrap_or_else(|error| panic!("secrets.toml: {error}"));
    let later: RunsLaterTable =
        toml::from_str(include_str!("../runs-later.toml")).unwrap_or_else(|error| panic!("runs-later.toml: {error}"));
    NameTables {
        secret: NameMatcher::new(&secrets.secret),
        suspect: NameMatcher::new(&secrets.suspect),
        protected: NameMatcher::new(&later.protected),
        runs: NameMatcher::new(&later.runs),
        copies: secrets.copies,
        history: secrets.history.into_iter().map(|name| (name.clone(), Patterns::new([name.as_str()]))).collect(),
    }
});

/// A path in the form in which it is matched: ignoring case, as on case-insensitive file systems.
fn folded(path: &Path) -> String {
    let mut text = String::new();
    for c in path.to_string_lossy().chars().flat_map(char::to_lowercase) {
        match c {
            'ſ' => text.push('s'),
            'ı' => text.push('i'),
            // The dot that remains from a lower-case `İ`, and invisible characters.
            '\u{307}' | '\u{200b}'..='\u{200f}' | '\u{feff}' | '\u{ad}' => {}
            c => text.push(c),
        }
    }
    text
}

/// Whether the table lists a file of this name as a secret, also as a copy (`.env.bak`, `id_rsa~`).
#[must_use]
pub fn is_secret(path: &Path) -> bool {
    let folded = folded(path);
    let mut name = folded.as_str();
    if TABLES.secret.contains(name) {
        return true;
    }
    // `.env.bak.1`
    for _ in 0..2 {
        let Some(original) = TABLES.copies.iter().find_map(|ending| name.strip_suffix(ending.as_str())) else { break };
        if TABLES.secret.contains(original) {
            return true;
        }
        name = original;
    }
    false
}

/// Whether every file below a directory of this name counts as a secret.
#[must_use]
pub fn is_secret_directory(path: &Path) -> bool {
    TABLES.secret.contains(&folded(&path.join("x")))
}

/// Whether a file of this name contains secrets so often that its content must be examined, although the name alone
/// proves nothing.
#[must_use]
pub fn may_hold_secret(path: &Path) -> bool {
    TABLES.suspect.contains(&folded(path))
}

/// Whether a path is a secret, or a file that programs act on without being asked.
#[must_use]
pub fn is_protected(path: &Path) -> bool {
    TABLES.protected.contains(&folded(path)) || is_secret(path)
}

/// Whether a build, a test, a check or an installation may run the content of a file with this name.
#[must_use]
pub fn runs_later(path: &Path) -> bool {
    TABLES.runs.contains(&folded(path)) || is_protected(path)
}

/// The patterns that exclude names of secrets when git reads commits. A pattern that also matches one of `kept` is left
/// out, because only secrets may be excluded.
pub(crate) fn left_out_of_history(kept: &[PathBuf]) -> Vec<String> {
    let kept: Vec<String> = kept.iter().map(|path| folded(path)).collect();
    let means_none = |set: &Patterns| !kept.iter().any(|path| set.is_match(path));
    let names = TABLES.history.iter().filter(|(_, set)| means_none(set)).map(|(name, _)| name);
    names.map(|name| format!(":(top,exclude,icase,glob){name}")).collect()
}

/// Whether [`left_out_of_history`] excludes a file of this name.
pub(crate) fn is_left_out_of_history(path: &Path) -> bool {
    let folded = folded(path);
    TABLES.history.iter().any(|(_, set)| set.is_match(&folded))
}

#[cfg(test)]
mod tests;
