//! Judges git: only read-only subcommands are allowed, and only as a rewritten command.
//!
//! A repository controls much of what git runs: filters, drivers, hooks, pagers, programs that verify signatures. The
//! rewritten command disables everything that can be disabled on the command line ([`rewrite`]). Everything else,
//! filters above all, is searched for in the repository's own configuration, in which every key must be on a list of
//! harmless keys ([`config`]).
//!
//! Two checks limit which file contents git can print: no tracked secret may be among the files that the command
//! reaches ([`contents`]); and the rewritten command names only commits ([`crate::revision`]), and excludes files with
//! the name of a secret when it reads commits.

mod config;
mod contents;
mod index;
mod rewrite;

use crate::{
    facts::Facts,
    paths::WorkingDir,
    shell::ShellWord,
    tools::{GitSubcommand, PrintsContents, ReadOnlyCommand, judge_git, outside},
};

/// Judges the words after `git`.
///
/// # Errors
/// A sentence with the reason why the command is not known to be safe.
pub(crate) fn judge(
    words: &[ShellWord],
    working_dir: &WorkingDir,
    facts: &dyn Facts,
) -> Result<ReadOnlyCommand, String> {
    let (before, words) = before(words);
    let Some((subcommand, rest)) = words.split_first() else { return Err("`git` has no subcommand.".into()) };
    let name = subcommand.text.as_str();
    if name.starts_with('-') {
        return match (name, rest, before) {
            ("--version", [], None) => Ok(ReadOnlyCommand::default()),
            _ => Err(format!("`{name}` before the subcommand of git is not known to be safe.")),
        };
    }
    if !working_dir.certain {
        return Err("capture cannot determine the directory in which git would run.".into());
    }
    let moved = before.map(|dir| working_dir.within(&dir.text, facts)).transpose()?;
    let working_dir = moved.as_ref().unwrap_or(working_dir);
    if working_dir.bases.len() > 1 || moved.is_some() {
        // In a directory that does not exist yet, there may be another repository when the command runs.
        if let Some(missing) = working_dir.bases.iter().find(|base| !facts.is_directory(base)) {
            return Err(format!("`{}` is not a directory.", missing.display()));
        }
    }
    let asked = judge_git(name, rest, working_dir, facts)?;
    let mut safe = rewrite::SafeCommand::new(before.map(|dir| dir.text.as_str()), asked.kept.clone());
    if name != "version" {
        let tells_addresses = name == "remote" || name == "config";
        safe.own_configuration_only = tells_addresses;
        let mut operands = None;
        for cwd in &working_dir.bases {
            let dir = config::check(cwd, &working_dir.workspace, tells_addresses, facts)?;
            contents::reflog(name, &asked, &dir, facts)?;
            if asked.tool.contents == PrintsContents::Never {
                continue;
            }
            let found = operands.get_or_insert(contents::Operands::new(&asked, working_dir, facts)?);
            // A file in a commit is printed whole, regardless of options for patches.
            if prints(&asked) || name == "show" && found.names_files() {
                found.left_out = contents::check(name, &asked, found, &dir, working_dir, facts)?;
            }
        }
        match operands {
            Some(operands) => safe.add_operands(name, operands),
            None => safe.add_words(rest),
        }
    }
    outside("env", &facts.program("env"), working_dir)?;
    Ok(ReadOnlyCommand { paths: asked.paths, rewrite: Some(safe.render(name, &asked.tool.insert)) })
}

/// The words before the subcommand: the directory of one `-C`; a `--no-pager` is skipped.
fn before(words: &[ShellWord]) -> (Option<&ShellWord>, &[ShellWord]) {
    let mut rest = words;
    let mut dir = None;
    loop {
        rest = match rest {
            [word, rest @ ..] if matches!(word.text.as_str(), "--no-pager" | "-P") => rest,
            [word, to, rest @ ..] if word.text == "-C" && dir.is_none() && !to.glob && !to.zsh => {
                dir = Some(to);
                rest
            }
            _ => return (dir, rest),
        };
    }
}

/// Options that print the contents of files, and options that print less instead.
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
    // They reveal whether a text is in a file, in any commit.
    "-S",
    "-G",
    "--pickaxe-regex",
    "--pickaxe-all",
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

fn prints(asked: &GitSubcommand) -> bool {
    let given = |options: &[&str]| asked.options.iter().any(|given| options.contains(&given.as_str()));
    match asked.tool.contents {
        PrintsContents::Never => false,
        PrintsContents::Asked => given(PATCH),
        PrintsContents::Usually => given(PATCH) || !given(LESS),
        PrintsContents::Always => true,
    }
}
