//! git: allowed only for what reads, and only as a command written anew.
//!
//! A repository decides a good deal of what git runs: filters, drivers, hooks, pagers, programs that
//! verify signatures. What the command line can switch off, the rewritten command does
//! ([`rewrite`]); what it cannot, filters above all, is looked for in the repository's own
//! configuration, of which every key must be on a list of harmless ones ([`config`]).

mod config;
mod index;
mod rewrite;

use std::path::{Path, PathBuf};

use crate::{
    Content, Facts,
    paths::{Place, is_secret},
    shell::Word,
    tools::{Contents, Known, OfGit, judge_git, outside},
};

/// Judges the words behind `git`.
///
/// # Errors
/// A sentence that says why it is not known to be safe.
pub(crate) fn judge(words: &[Word], place: &Place, facts: &dyn Facts) -> Result<Known, String> {
    let Some((subcommand, rest)) = words.split_first() else { return Err("`git` is without a subcommand.".into()) };
    let name = subcommand.text.as_str();
    if name.starts_with('-') {
        return match (name, rest) {
            ("--version", []) => Ok(Known::default()),
            _ => Err(format!("`{name}` before the subcommand of git is not known to be safe.")),
        };
    }
    if place.bases.len() > 1 {
        return Err("Git behind a `cd` is not followed: another repository may begin there.".into());
    }
    if !place.certain {
        return Err("It is not known in which directory git would run.".into());
    }
    let asked = judge_git(name, rest, place, facts)?;
    if name != "version" {
        for cwd in &place.bases {
            let dir = config::check(cwd, &place.workspace, name == "remote", facts)?;
            if prints(&asked) {
                exposes(name, &asked, &dir, place, facts)?;
            }
        }
    }
    outside("env", &facts.program("env"), place)?;
    let rest: Vec<&str> = rest.iter().map(|word| word.text.as_str()).collect();
    let rewrite = Some(rewrite::words(name, &asked.tool.insert, &rest));
    Ok(Known { paths: asked.paths, rewrite })
}

/// Options that print what files hold, and those that print less instead.
const PATCH: &[&str] = &[
    "-p",
    "-u",
    "-U",
    "-W",
    "-L",
    "-c",
    "-m",
    "--patch",
    "--unified",
    "--function-context",
    "--patch-with-stat",
    "--binary",
    "--color-words",
    "--word-diff",
    "--word-diff-regex",
    "--cc",
    "--diff-merges",
    "--check",
];
const LESS: &[&str] = &[
    "-s",
    "--no-patch",
    "--stat",
    "--numstat",
    "--shortstat",
    "--dirstat",
    "--summary",
    "--name-only",
    "--name-status",
    "--raw",
    "--compact-summary",
    "--quiet",
];

fn prints(asked: &OfGit) -> bool {
    let given = |options: &[&str]| asked.options.iter().any(|given| options.contains(&given.as_str()));
    match asked.tool.contents {
        Contents::Never => false,
        Contents::Asked => given(PATCH),
        Contents::Verbose => given(&["-v", "-vv", "--verbose"]),
        Contents::Usually => given(PATCH) || !given(LESS),
        Contents::Always => true,
    }
}

/// Endings of files of which a pattern may be printed.
const SOURCES: &[&str] = &[
    "rs", "py", "pyi", "ts", "tsx", "js", "jsx", "mjs", "cjs", "go", "c", "h", "cc", "cpp", "hpp", "cs", "java", "kt",
    "rb", "php", "swift", "scala", "ex", "exs", "erl", "hs", "ml", "lua", "zig", "dart", "vue", "svelte", "md", "rst",
    "html", "css", "scss", "proto", "sql", "sh", "toml",
];

/// Whether it would print a secret that is tracked.
///
/// # Errors
/// A sentence that says which, or that it cannot be told.
fn exposes(name: &str, asked: &OfGit, dir: &Path, place: &Place, facts: &dyn Facts) -> Result<(), String> {
    for operand in asked.operands.iter().filter(|operand| operand.contains('*')) {
        let ending = operand.rsplit_once("*.").filter(|(before, _)| !before.contains('*') || *before == "**/");
        if !ending.is_some_and(|(_, ending)| SOURCES.contains(&ending)) {
            return Err(format!("`{operand}` is a pattern, which may mean a secret."));
        }
    }
    let (paths, history) = reach(name, asked, place, facts)?;
    // What is no longer tracked may be in a commit; that it still lies there is the sign looked for.
    let whole = std::slice::from_ref(&place.workspace);
    let below = if paths.is_empty() { whole } else { &paths };
    let tracked = match facts.read(&dir.join("index"), 64 * 1024 * 1024) {
        Content::Missing => Some(Vec::new()),
        Content::Unreadable => None,
        Content::Bytes(bytes) => index::secrets(&bytes),
    };
    if history || tracked.is_none() {
        place.readable_below(below, false, facts)?;
    }
    let seen = |secret: &&PathBuf| below.iter().any(|path| place.workspace.join(secret).starts_with(path));
    match tracked.iter().flatten().find(seen) {
        Some(secret) => Err(format!("`{}` may hold secrets, is tracked and would be printed.", secret.display())),
        None => Ok(()),
    }
}

/// The paths to which a command is bound (none: all of them), and whether it looks into commits.
fn reach(name: &str, asked: &OfGit, place: &Place, facts: &dyn Facts) -> Result<(Vec<PathBuf>, bool), String> {
    let (commits, mut paths) = (asked.operands.iter().map(String::as_str), Vec::new());
    let mut rest = commits.clone().count();
    if let Some(behind) = &asked.behind {
        rest -= behind.len();
        for word in behind {
            paths.extend(place.readable(word, facts)?);
        }
    } else if rest > 0 && commits.clone().all(|word| word.contains(':')) {
        // `HEAD:src/main.rs` is that file alone.
        for path in commits.filter_map(|word| Some(word.split_once(':')?.1)) {
            match path.strip_prefix("./") {
                Some(_) => paths.extend(place.readable(path, facts)?),
                None => paths.push(place.workspace.join(path)),
            }
        }
    } else {
        // git refuses a word that is a commit and a file.
        let is_file = |word: &&str| place.bases.iter().all(|base| facts.read(&base.join(word), 0) != Content::Missing);
        for word in commits.filter(is_file) {
            paths.extend(place.readable(word, facts)?);
            rest -= 1;
        }
    }
    let staged = asked.options.iter().any(|given| matches!(given.as_str(), "--cached" | "--staged" | "--merge-base"));
    let history = match name {
        "diff" => rest > 0 || staged,
        "grep" => rest > 0,
        _ => true,
    };
    Ok((paths, history))
}

/// Judges the lines of `-L`: `1,5`, `1,5:FILE`, `:FUNCTION:FILE`.
///
/// # Errors
/// A sentence that says why not.
pub(crate) fn lines(written: &str, place: &Place, facts: &dyn Facts) -> Result<Vec<PathBuf>, String> {
    let mut paths = Vec::new();
    // Any of them may be the one behind which the file stands.
    for (at, _) in written.match_indices(':') {
        paths.extend(revision(&written[at + 1..], place, facts)?);
    }
    Ok(paths)
}

/// Whether a configuration holds an address with a credential, or a header with one.
pub(crate) fn holds_credential(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes).to_ascii_lowercase();
    text.contains("extraheader") || text.lines().any(config::has_user)
}

/// Judges a commit, a range, a path, or `COMMIT:PATH`.
///
/// # Errors
/// A sentence that says why not.
pub(crate) fn revision(written: &str, place: &Place, facts: &dyn Facts) -> Result<Vec<PathBuf>, String> {
    let odd = |c: char| matches!(c, '?' | '[' | ']' | '\\') || matches!(c, '{' | '}') && !written.contains("@{");
    if written.starts_with(['-', ':']) || written.contains(odd) {
        return Err(format!("`{written}` is no plain revision or path."));
    }
    let path = written.split_once(':').map_or(written, |(_, path)| path);
    for text in [written, path] {
        // A pattern may mean a secret.
        let vague = text.contains('*') && text.split('/').any(|part| part.starts_with('.') && part.contains('*'));
        let filled = text.replace('*', "x");
        if vague || is_secret(Path::new(&filled)) || is_secret(Path::new(text)) {
            return Err(format!("`{written}` may hold secrets."));
        }
    }
    if path.split('/').any(|part| part == "..") {
        return Err(format!("`{written}` may be outside the workspace."));
    }
    place.readable(written, facts)
}
