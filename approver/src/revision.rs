//! Words that name a commit, a range of commits or a file in a commit, and their form in which git cannot interpret
//! them in another way.
//!
//! git prints any object that is named: it prints a blob completely, regardless of options and paths, and the hash of a
//! file says nothing about its name. So every revision is peeled (`X^{commit}`), which git refuses for anything but a
//! commit. A file in a commit is identified by its path.

use std::path::{Path, PathBuf};

use crate::{facts::Facts, names::is_secret, paths::WorkingDir};

/// A word that names commits for git.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Revision<'a> {
    /// The same word, peeled to commits.
    pub(crate) peeled: String,
    /// The file or directory in the commit, as written after the colon.
    pub(crate) path: Option<&'a str>,
}

/// Parses a word that names commits. `None` if it does not have one of the known forms.
pub(crate) fn parse(text: &str) -> Option<Revision<'_>> {
    let (commits, path) = match colon(text) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let peeled = match (path, split_range(commits)) {
        (Some(path), None) => format!("{}:{path}", one(commits)?),
        (Some(_), Some(_)) => return None,
        (None, Some((from, dots, to))) => format!("{}{dots}{}", end(from)?, end(to)?),
        (None, None) => match commits.strip_prefix('^') {
            Some(rest) => format!("^{}", one(rest)?),
            None => with_parents(commits)?,
        },
    };
    Some(Revision { peeled, path })
}

/// The colon before a path: the first one outside braces.
fn colon(text: &str) -> Option<usize> {
    let mut open = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => open += 1,
            '}' => open = open.saturating_sub(1),
            ':' if open == 0 => return Some(at),
            _ => {}
        }
    }
    None
}

/// `A..B`, `A...B`. Two dots in braces belong to a date.
fn split_range(text: &str) -> Option<(&str, &'static str, &str)> {
    let at = text.find("..")?;
    if text[..at].contains('{') && !text[..at].contains('}') {
        return None;
    }
    let dots = if text[at..].starts_with("...") { "..." } else { ".." };
    Some((&text[..at], dots, &text[at + dots.len()..]))
}

/// One end of a range, which may be empty.
fn end(text: &str) -> Option<String> {
    if text.is_empty() { Some(String::new()) } else { one(text) }
}

/// `A^@`, `A^!`, `A^-`, `A^-2`, or one commit.
fn with_parents(text: &str) -> Option<String> {
    if let Some((before, number)) = text.rsplit_once("^-")
        && number.bytes().all(|b| b.is_ascii_digit())
    {
        return Some(format!("{}^-{number}", one(before)?));
    }
    for ending in ["^@", "^!"] {
        if let Some(before) = text.strip_suffix(ending) {
            return Some(format!("{}{ending}", one(before)?));
        }
    }
    one(text)
}

/// One commit: a name or a hash, then steps (`~2`, `^`, `^2`, `@{1}`, `@{upstream}`, `@{2 days ago}`).
fn one(text: &str) -> Option<String> {
    let name_end = text.find(['~', '^', '{']).unwrap_or(text.len());
    // `main@{1}`: the `@` belongs to the step; a name may contain one elsewhere.
    let name_end = if text[name_end..].starts_with('{') { text[..name_end].strip_suffix('@')?.len() } else { name_end };
    let name = &text[..name_end];
    let plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+' | '@' | '#' | '=' | '%' | ',');
    if name.starts_with('-') || !name.chars().all(plain) {
        return None;
    }
    let mut rest = &text[name_end..];
    if name.is_empty() && !rest.starts_with("@{") {
        return None;
    }
    while !rest.is_empty() {
        rest = match rest.as_bytes() {
            [b'~' | b'^', ..] if rest.starts_with("^{commit}") => &rest["^{commit}".len()..],
            [b'~' | b'^', ..] if !rest.starts_with("^{") => rest[1..].trim_start_matches(|c: char| c.is_ascii_digit()),
            [b'@', b'{', ..] => {
                let close = rest.find('}')?;
                let date = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | ':' | '.' | ',' | '-' | '+' | '/');
                if !rest[2..close].chars().all(date) {
                    return None;
                }
                &rest[close + 1..]
            }
            _ => return None,
        };
    }
    Some(format!("{text}^{{commit}}"))
}

/// Judges the value of `-L`: `1,5`, `1,5:FILE`, `:FUNCTION:FILE`.
///
/// # Errors
/// A sentence with the reason why it is not allowed.
pub(crate) fn lines(written: &str, working_dir: &WorkingDir, facts: &dyn Facts) -> Result<Vec<PathBuf>, String> {
    let mut paths = Vec::new();
    // Any of the colons may precede the file.
    for (at, _) in written.match_indices(':') {
        let found = revision(&written[at + 1..], working_dir, facts)?;
        found.iter().try_for_each(|path| working_dir.printable(path, facts))?;
        paths.extend(found);
    }
    Ok(paths)
}

/// Judges a commit, a range, a path, a pattern of paths, or `COMMIT:PATH`.
///
/// # Errors
/// A sentence with the reason why it is not allowed.
pub(crate) fn revision(written: &str, working_dir: &WorkingDir, facts: &dyn Facts) -> Result<Vec<PathBuf>, String> {
    let odd = || format!("`{written}` is not a plain revision or path.");
    let path = match parse(written) {
        Some(revision) => revision.path.unwrap_or(written),
        // Otherwise it is a path, possibly with a pattern.
        None if written.starts_with(['-', ':', '^']) || written.contains(['?', '[', ']', '\\', '{', '}', ':', '@']) => {
            return Err(odd());
        }
        None => written,
    };
    for text in [written, path] {
        // A pattern may match a secret.
        let vague = text.contains('*') && text.split('/').any(|part| part.starts_with('.') && part.contains('*'));
        let filled = text.replace('*', "x");
        if vague || is_secret(Path::new(&filled)) || is_secret(Path::new(text)) {
            return Err(format!("`{written}` may contain secrets."));
        }
    }
    if path.split('/').any(|part| part == "..") {
        return Err(format!("`{written}` may be outside the workspace."));
    }
    working_dir.readable(if path.is_empty() { "." } else { path }, facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, peeled: &str, path: Option<&str>) {
        assert_eq!(parse(text), Some(Revision { peeled: peeled.to_owned(), path }), "{text}");
    }

    #[test]
    fn every_commit_is_peeled() {
        check("HEAD", "HEAD^{commit}", None);
        check("1a2b3c", "1a2b3c^{commit}", None);
        check("origin/feat-1.x", "origin/feat-1.x^{commit}", None);
        check("HEAD~2^", "HEAD~2^^{commit}", None);
        check("stash@{0}", "stash@{0}^{commit}", None);
        check("@{u}", "@{u}^{commit}", None);
        check("@", "@^{commit}", None);
        check("v1^{commit}", "v1^{commit}^{commit}", None);
        check("main..", "main^{commit}..", None);
        check("a...b", "a^{commit}...b^{commit}", None);
        check("^main", "^main^{commit}", None);
        check("HEAD^!", "HEAD^{commit}^!", None);
        check("HEAD^-", "HEAD^{commit}^-", None);
        check("HEAD@{1 day ago, 00:00}", "HEAD@{1 day ago, 00:00}^{commit}", None);
    }

    #[test]
    fn the_path_after_the_colon_names_the_file_in_a_commit() {
        check("HEAD:src/a.rs", "HEAD^{commit}:src/a.rs", Some("src/a.rs"));
        check("HEAD@{12:00}:.env", "HEAD@{12:00}^{commit}:.env", Some(".env"));
        check("HEAD:", "HEAD^{commit}:", Some(""));
        check("1a2b:config", "1a2b^{commit}:config", Some("config"));
        check("HEAD:a:b", "HEAD^{commit}:a:b", Some("a:b"));
    }

    #[test]
    fn other_revision_forms_are_refused() {
        for text in [
            ":x",
            ":/fix",
            ":0:x",
            "HEAD^{tree}",
            "HEAD^{/fix}",
            "HEAD^{}",
            "HEAD^{blob}",
            "HEAD^{tree}:x",
            "HEAD@{0}^{tree}:.npmrc",
            "a b",
            "a*",
            "a?",
            "-p",
            "HEAD@{",
            "HEAD@{a;b}",
            "a..b:c",
            "",
            "^",
            "a\\b",
            "HEAD^{commit",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
