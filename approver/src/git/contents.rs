//! Decides whether a git command would print the contents of a secret file.

use std::path::{Path, PathBuf};

use super::index;
use crate::{
    facts::{Facts, FileContent, FileInspection},
    names::{is_left_out_of_history, is_secret, left_out_of_history, may_hold_secret},
    paths::WorkingDir,
    revision,
    search::{GrepFilter, SearchReader, SearchScope},
    tools::GitSubcommand,
};

/// Maximum number of tracked files with suspicious names whose content is examined.
const MAX_SUSPECTS: usize = 400;

/// The operands of a command, each classified.
#[derive(Debug, Default)]
pub(super) struct Operands {
    /// Peeled commits.
    pub(super) commits: Vec<String>,
    /// Paths and patterns of paths, as written.
    pub(super) paths: Vec<String>,
    /// The named files in commits (`HEAD:src/main.rs`), relative to the top of the repository.
    in_commits: Vec<PathBuf>,
    /// Patterns that the command must exclude.
    pub(super) left_out: Vec<String>,
}

impl Operands {
    /// Whether files in commits are named (`HEAD:src/main.rs`).
    pub(super) const fn names_files(&self) -> bool {
        !self.in_commits.is_empty()
    }

    /// Distinguishes commits from paths, as git does: all operands after a `--`, and from the first existing file on,
    /// are paths.
    ///
    /// # Errors
    /// A sentence that names the operand that cannot be classified.
    pub(super) fn new(asked: &GitSubcommand, working_dir: &WorkingDir, facts: &dyn Facts) -> Result<Self, String> {
        let mut found = Self::default();
        let (free, behind) = asked.operands.split_at(asked.operands.len() - asked.behind);
        for word in free {
            let there = |base: &PathBuf| facts.read(&base.join(word), 0) != FileContent::Missing;
            let here = working_dir.bases.iter().filter(|base| there(base)).count();
            let is_path = !asked.dashes && (word.contains('*') || here > 0 || !found.paths.is_empty());
            if is_path {
                if here > 0 && here < working_dir.bases.len() {
                    return Err(format!(
                        "capture cannot determine whether `{word}` is a file in the directory in which git would run."
                    ));
                }
                found.paths.push(word.clone());
                continue;
            }
            let revision = revision::parse(word).ok_or_else(|| format!("`{word}` is not a plain commit name."))?;
            match revision.path {
                Some(path) if path.starts_with("./") => found.in_commits.extend(working_dir.readable(path, facts)?),
                Some(path) => found.in_commits.push(working_dir.workspace.join(path)),
                None => {}
            }
            found.commits.push(revision.peeled);
        }
        found.paths.extend(behind.iter().cloned());
        Ok(found)
    }
}

/// Checks that the output of a command contains no secret that is tracked or is in the workspace. Returns the patterns
/// that exclude secrets that are only in commits.
///
/// # Errors
/// A sentence that names a secret, or says that this cannot be determined.
pub(super) fn check(
    name: &str,
    asked: &GitSubcommand,
    operands: &Operands,
    dir: &Path,
    working_dir: &WorkingDir,
    facts: &dyn Facts,
) -> Result<Vec<String>, String> {
    let bound = bound(asked, operands, working_dir, facts)?;
    for path in &bound {
        if let PathBound::Below(path) = path {
            plain(path, &operands.in_commits, working_dir, facts)?;
        }
    }
    let tracked = match facts.read(&dir.join("index"), 64 * 1024 * 1024) {
        FileContent::Missing => Some(Vec::new()),
        FileContent::Unreadable => None,
        FileContent::Bytes(bytes) => index::names(&bytes),
    };
    let history = looks_into_commits(name, asked, operands);
    let search = SearchScope {
        dir: working_dir.workspace.clone(),
        cwd: working_dir.workspace.clone(),
        reader: SearchReader::Everything(GrepFilter::default()),
        named: None,
    };
    match &tracked {
        None => working_dir.reaches_no_secret(&search, facts)?,
        Some(tracked) => {
            let reached = |path: &&PathBuf| {
                let whole = working_dir.workspace.join(path);
                is_secret(path) && (bound.is_empty() || bound.iter().any(|bound| bound.reaches(&whole)))
            };
            if let Some(secret) = tracked.iter().find(reached) {
                return Err(format!("`{}` may contain secrets, is tracked and would be printed.", secret.display()));
            }
            let within = |path: &&PathBuf| bound.is_empty() || bound.iter().any(|bound| bound.reaches(path));
            let suspects =
                tracked.iter().filter(|path| may_hold_secret(path)).map(|path| working_dir.workspace.join(path));
            if let Some(secret) = suspects
                .filter(|path| within(&path))
                .take(MAX_SUSPECTS)
                .find(|path| facts.inspect(path) == FileInspection::Secret)
            {
                return Err(format!("`{}` contains what looks like a secret and is tracked.", secret.display()));
            }
        }
    }
    if !history {
        return Ok(Vec::new());
    }
    // An untracked secret may have been tracked before.
    if let crate::facts::SecretsBelow::Secrets(found) = facts.reached(&search) {
        let lies = |secret: &&PathBuf| {
            let inside = secret.strip_prefix(&working_dir.workspace).unwrap_or(secret);
            let covered = is_left_out_of_history(inside) || inside.iter().any(|part| part == ".git");
            !covered && (bound.is_empty() || bound.iter().any(|bound| bound.reaches(secret)))
        };
        if let Some(secret) = found.iter().find(lies) {
            return Err(format!(
                "`{}` may contain secrets, and may be in a commit that would be printed.",
                secret.display()
            ));
        }
    }
    let single = asked.options.iter().any(|given| matches!(given.as_str(), "--follow" | "-L")) || name == "blame";
    let only_files = operands.paths.is_empty()
        && !operands.commits.is_empty()
        && operands.commits.len() == operands.in_commits.len();
    if single || only_files || name == "cat-file" {
        return Ok(Vec::new());
    }
    let kept: Vec<PathBuf> = tracked.unwrap_or_default().into_iter().filter(|path| !is_secret(path)).collect();
    Ok(left_out_of_history(&kept))
}

/// The paths to which a command is limited.
#[derive(Debug, PartialEq, Eq)]
enum PathBound {
    /// A file, or everything below a directory.
    Below(PathBuf),
    /// The paths below a directory with this ending: a pattern.
    Ending(PathBuf, String),
}

impl PathBound {
    fn reaches(&self, path: &Path) -> bool {
        match self {
            Self::Below(dir) => path.starts_with(dir),
            Self::Ending(dir, ending) => {
                path.starts_with(dir) && path.to_string_lossy().to_lowercase().ends_with(&ending.to_lowercase())
            }
        }
    }
}

/// The paths to which a command is limited. Empty: all paths.
fn bound(
    asked: &GitSubcommand,
    operands: &Operands,
    working_dir: &WorkingDir,
    facts: &dyn Facts,
) -> Result<Vec<PathBound>, String> {
    let mut bound: Vec<PathBound> = operands.in_commits.iter().cloned().map(PathBound::Below).collect();
    for word in &operands.paths {
        let Some(star) = word.find('*') else {
            bound.extend(working_dir.readable(word, facts)?.into_iter().map(PathBound::Below));
            continue;
        };
        let dir = word[..star].rsplit_once('/').map_or(".", |(dir, _)| dir);
        let ending = word.rsplit('*').next().unwrap_or_default();
        let known = ending.strip_prefix('.').is_some_and(|ending| SOURCES.contains(&ending) || TEXTS.contains(&ending));
        if !known {
            return Err(format!("The pattern `{word}` may match a secret."));
        }
        bound
            .extend(working_dir.readable(dir, facts)?.into_iter().map(|dir| PathBound::Ending(dir, ending.to_owned())));
    }
    // A commit on its own is not limited by files named beside it.
    let whole = operands.paths.is_empty() && operands.commits.len() > operands.in_commits.len();
    let lines = asked.options.iter().any(|given| given == "-L");
    if whole && !lines { Ok(Vec::new()) } else { Ok(bound) }
}

/// Checks that the named files contain no text that looks like a secret now. The content of a file that is only in
/// commits is unknown; source files are accepted, because agents look at them like this all the time.
fn plain(path: &Path, in_commits: &[PathBuf], working_dir: &WorkingDir, facts: &dyn Facts) -> Result<(), String> {
    working_dir.printable(path, facts)?;
    let gone = in_commits.iter().any(|named| named == path)
        && facts.inspect(path) == FileInspection::NoFile
        && !facts.is_directory(path);
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_lowercase();
    if gone && !SOURCES.contains(&ending.as_str()) {
        return Err(format!("`{}` no longer exists, so its content cannot be checked.", path.display()));
    }
    Ok(())
}

/// Extensions of source files and documents.
const SOURCES: &[&str] = &[
    "rs", "py", "pyi", "ts", "tsx", "js", "jsx", "mjs", "cjs", "go", "c", "h", "cc", "cpp", "hpp", "cs", "java", "kt",
    "rb", "php", "swift", "scala", "ex", "exs", "erl", "hs", "ml", "lua", "zig", "dart", "vue", "svelte", "md", "rst",
    "html", "css", "scss", "proto",
];

/// Extensions of other files for which a pattern may be printed.
const TEXTS: &[&str] = &["toml", "sh", "sql", "json", "yml", "yaml", "lock", "xml", "csv", "gradle", "cmake"];

fn looks_into_commits(name: &str, asked: &GitSubcommand, operands: &Operands) -> bool {
    let staged = asked.options.iter().any(|given| matches!(given.as_str(), "--cached" | "--staged" | "--merge-base"));
    match name {
        "diff" => !operands.commits.is_empty() || staged,
        "grep" => !operands.commits.is_empty(),
        _ => true,
    }
}

/// Checks that the reflog, if it would be printed, contains no address. `git pull ADDRESS` writes the address into it,
/// including a token.
///
/// # Errors
/// A sentence with the reason why not.
pub(super) fn reflog(name: &str, asked: &GitSubcommand, dir: &Path, facts: &dyn Facts) -> Result<(), String> {
    let walks = asked.options.iter().any(|given| matches!(given.as_str(), "-g" | "--walk-reflogs"));
    if !walks && name != "reflog" {
        return Ok(());
    }
    let all = |given: &String| matches!(given.as_str(), "--all" | "--branches" | "--tags" | "--remotes");
    if !asked.operands.is_empty() || asked.options.iter().any(all) {
        return Err("Only the reflog of `HEAD` can be checked for credentials.".into());
    }
    let file = dir.join("logs/HEAD");
    let clean = match facts.read(&file, 1024 * 1024) {
        FileContent::Missing => facts.read(&dir.join("reftable"), 0) == FileContent::Missing,
        FileContent::Unreadable => false,
        FileContent::Bytes(bytes) => {
            !String::from_utf8_lossy(&bytes).contains("://") && facts.inspect(&file) == FileInspection::Plain
        }
    };
    if clean { Ok(()) } else { Err("The reflog may contain an address with a credential.".into()) }
}
