//! git: allowed only for what reads, and only as a command written anew.
//!
//! A repository decides a good deal of what git runs: filters, drivers, hooks, pagers, programs that
//! verify signatures. What the command line can switch off, the rewritten command does
//! ([`rewrite`]); what it cannot, filters above all, is looked for in the repository's own
//! configuration, of which every key must be on a list of harmless ones ([`config`]).

mod config;
mod rewrite;

use std::path::{Path, PathBuf};

use crate::{
    Facts,
    paths::{Place, is_secret},
    shell::Word,
    tools::{Known, judge_git, outside},
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
    let [cwd] = place.bases.as_slice() else {
        return Err("git after `cd` may be in another repository.".into());
    };
    let (tool, paths) = judge_git(name, rest, place, facts)?;
    config::check(cwd, &place.workspace, name == "remote", facts)?;
    outside("env", &facts.program("env"), place)?;
    let rest: Vec<&str> = rest.iter().map(|word| word.text.as_str()).collect();
    Ok(Known { paths, rewrite: Some(rewrite::words(name, &tool.insert, &rest)) })
}

/// Judges a commit, a range, a path, or `COMMIT:PATH`.
///
/// # Errors
/// A sentence that says why not.
pub(crate) fn revision(written: &str, place: &Place, facts: &dyn Facts) -> Result<Vec<PathBuf>, String> {
    let odd = |c: char| matches!(c, '?' | '[' | ']' | '\\' | '{' | '}') && !written.contains("@{");
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
