//! Judges everyday work in the workspace: builds and tests, which run the repository's code, and changes of its files,
//! index and commits. The tables are data (`develop/*.toml`).

use std::path::{Path, PathBuf};

use crate::{
    facts::{Facts, FileContent, FileEntry},
    names::{is_protected, is_secret, runs_later},
    paths::{WorkingDir, is_built},
    read_only,
    search::{GrepFilter, SearchReader, SearchScope},
    shell::{self, ShellWord, SimpleCommand},
    tools::{self, ReadOnlyCommand},
    values::{self, LineContext},
};

/// The kind of an everyday command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// It runs the repository's code.
    Builds,
    /// It changes files or commits.
    Changes,
}

/// An everyday command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DevelopCommand {
    pub(crate) work: Work,
    /// The paths it names, with links resolved.
    pub(crate) paths: Vec<PathBuf>,
    /// The words that must run instead of the original ones.
    pub(crate) rewrite: Option<Vec<String>>,
}

/// Checks that a command is everyday work in the workspace.
///
/// # Errors
/// A sentence with the reason why it is not.
pub(crate) fn judge(
    command: &SimpleCommand,
    known: &Result<ReadOnlyCommand, String>,
    context: LineContext<'_>,
    working_dir: &WorkingDir,
    facts: &dyn Facts,
) -> Result<DevelopCommand, String> {
    if known.is_ok() {
        return Err("The command only reads.".into());
    }
    if !working_dir.certain {
        return Err("capture cannot determine the directory in which the command would run.".into());
    }
    if command.words.is_empty() {
        return Err("The command only sets a variable.".into());
    }
    let mut paths = Vec::new();
    for output in &command.outputs {
        for file in values::words(&output.file, context, working_dir, facts)? {
            if !file.is_exact() || file.zsh {
                return Err(format!(
                    "The command writes to `{}`, whose value capture cannot determine.",
                    output.file.raw
                ));
            }
            working_dir.editable(&file.text, facts)?;
            paths.extend(working_dir.readable(&file.text, facts)?);
        }
    }
    let written = SimpleCommand { outputs: Vec::new(), ..command.clone() };
    let words: Vec<&str> = command.texts();
    let builds = words.first().is_some_and(|name| tools::is_build(name)) || wraps_build(&words);
    // A read-only command that writes its output to a file.
    if !command.outputs.is_empty()
        && let Ok(known) = read_only::judge(&written, context, working_dir, facts)
    {
        paths.extend(known.paths);
        return Ok(DevelopCommand { work: Work::Changes, paths, rewrite: known.rewrite });
    }
    for assigned in &command.assignments {
        let values = values::words(&assigned.value, context, working_dir, facts)?;
        let usual = |value: &ShellWord| {
            value.is_exact()
                && if builds {
                    shell::is_usual(&assigned.name, &value.text)
                } else {
                    shell::is_harmless(&assigned.name, &value.text)
                }
        };
        if !values.iter().all(usual) {
            return Err(format!("The variable `{}` may change what runs.", assigned.name));
        }
    }
    let mut work = Work::Changes;
    for form in values::forms(&written, context, working_dir, facts)? {
        let made = one(&form, working_dir, facts)?;
        if made.work == Work::Builds {
            work = Work::Builds;
        }
        paths.extend(made.paths);
    }
    Ok(DevelopCommand { work, paths, rewrite: None })
}

/// Whether a command may move files or links, so that a later path may refer to another file.
pub(crate) fn rearranges(command: &SimpleCommand) -> bool {
    const GIT: &[&str] = &[
        "switch",
        "checkout",
        "merge",
        "cherry-pick",
        "rebase",
        "revert",
        "restore",
        "stash",
        "pull",
        "reset",
        "mv",
        "apply",
        "am",
    ];
    let words = command.texts();
    words.iter().any(|word| matches!(*word, "mv" | "cp" | "ln"))
        || words.contains(&"git") && words.iter().any(|word| GIT.contains(word))
}

fn wraps_build(words: &[&str]) -> bool {
    words.iter().take(6).any(|word| tools::is_build(word))
}

/// Prefixes that run a program of the project's own environment.
const RUNNERS: &[&[&str]] = &[
    &["npx", "--no-install"],
    &["npx", "--no"],
    &["npx"],
    &["bunx"],
    &["pnpm", "exec"],
    &["yarn", "exec"],
    &["npm", "exec", "--"],
    &["uv", "run"],
    &["poetry", "run"],
    &["pdm", "run"],
    &["pipenv", "run"],
    &["hatch", "run"],
    &["bundle", "exec"],
];

fn one(command: &SimpleCommand, working_dir: &WorkingDir, facts: &dyn Facts) -> Result<DevelopCommand, String> {
    let Some((first, rest)) = command.words.split_first() else { return Err("The command is empty.".into()) };
    if let Some(skip) = read_only::wrapped(&first.text, rest) {
        if first.text != "command" {
            tools::resolved(first, working_dir, facts)?;
        }
        if first.text == "env" {
            let set = command.words[1..skip].iter().filter_map(|word| word.text.split_once('='));
            if let Some((name, _)) = set.clone().find(|(name, value)| !shell::is_usual(name, value)) {
                return Err(format!("The variable `{name}` may change what runs."));
            }
        }
        let inner = SimpleCommand { words: command.words[skip..].to_vec(), ..command.clone() };
        return one(&inner, working_dir, facts);
    }
    // Git has `HEAD~1`, and does not interpret it as a pattern.
    let pattern = |word: &ShellWord| word.zsh && first.text != "git";
    if let Some(word) = command.words.iter().find(|word| pattern(word) || word.unknown || word.listed.is_some()) {
        return Err(format!("capture cannot determine the value of `{}`.", word.raw));
    }
    let texts = command.texts();
    let runner = RUNNERS.iter().find(|runner| texts.starts_with(runner));
    let begin = runner.map_or(0, |runner| runner.len());
    let mut words = command.words[begin..].to_vec();
    // `cargo +nightly test`
    let toolchain = |word: &ShellWord| {
        word.text.len() > 1
            && word.text.starts_with('+')
            && word.text[1..].bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b))
    };
    if words.first().is_some_and(|word| word.text == "cargo") && words.get(1).is_some_and(toolchain) {
        words.remove(1);
    }
    // `cargo --version` and similar commands are judged by the read-only tables.
    let name = words.first().map(|word| word.text.clone()).unwrap_or_default();
    if let Some((tool, used)) = tools::build(&words) {
        // Compilers and checkers read further options from such a file.
        if let Some(word) = words[used..].iter().find(|word| word.text.starts_with('@')) {
            return Err(format!("capture does not check the options in `{}`.", word.raw));
        }
        program(&words, &name, working_dir, facts)?;
        let paths = tools::judge_work(tool, &name, &words[used..], working_dir, facts)?;
        return Ok(DevelopCommand { work: Work::Builds, paths, rewrite: None });
    }
    if runner.is_some() {
        return Err(format!("`{name}` is not one of the build and test programs that capture knows."));
    }
    let Some((tool, used)) = tools::change(&words) else {
        return Err(format!("`{name}` is not one of the build, test and change commands that capture knows."));
    };
    tools::resolved(first, working_dir, facts)?;
    if name == "git" {
        in_own_repository(working_dir, facts)?;
    }
    let mut paths = tools::judge_work(tool, &name, &words[used..], working_dir, facts)?;
    match name.as_str() {
        "cp" | "mv" => paths.extend(moved(&name, &words[used..], working_dir, facts)?),
        "git" if words[used..].is_empty() && matches!(words[1].text.as_str(), "commit" | "tag" | "branch") => {
            return Err("Without arguments, the command opens an editor or only lists.".into());
        }
        "git" => commits(&words)?,
        "rm" if words[used..].iter().all(|word| word.text.starts_with('-')) => {
            return Err("The command names no file.".into());
        }
        "rm" => {
            // A path that does not exist yet may be a directory when the command runs.
            let recursive = |word: &ShellWord| {
                word.text == "--recursive"
                    || word.text.starts_with('-') && !word.text.starts_with("--") && word.text.contains(['r', 'R'])
            };
            let vague = |path: &&PathBuf| facts.entry(path) == FileEntry::Missing && !is_built(path);
            if words.iter().any(recursive)
                && let Some(path) = paths.iter().find(vague)
            {
                return Err(format!("`{}` does not exist yet, so capture cannot check it.", path.display()));
            }
        }
        _ => {}
    }
    Ok(DevelopCommand { work: Work::Changes, paths, rewrite: None })
}

/// Checks that a commit has its message, so that no editor opens.
fn commits(words: &[ShellWord]) -> Result<(), String> {
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let has = |options: &[&str]| {
        texts.iter().any(|word| options.iter().any(|option| word == option || word.starts_with(&format!("{option}="))))
    };
    let bundled = |letter: char| {
        texts.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(letter))
    };
    match texts.get(1) {
        Some(&"commit") if !has(&["--message", "--no-edit", "--fixup", "--dry-run"]) && !bundled('m') => {
            Err("Without a message `git commit` opens an editor.".into())
        }
        Some(&"revert") if !has(&["--no-edit", "--abort", "--no-commit", "--continue", "--skip", "--quit"]) => {
            Err("`git revert` opens an editor.".into())
        }
        Some(&"tag") if (bundled('a') || has(&["--annotate"])) && !bundled('m') && !has(&["--message"]) => {
            Err("Without a message `git tag -a` opens an editor.".into())
        }
        Some(_) | None => Ok(()),
    }
}

/// Checks that the program of a build is outside the workspace, or one that the project installs for itself.
fn program(words: &[ShellWord], name: &str, working_dir: &WorkingDir, facts: &dyn Facts) -> Result<(), String> {
    let Some(first) = words.first() else { return Err("The command is empty.".into()) };
    if !first.is_exact() || !first.bare {
        return Err(format!("The program name `{name}` is quoted, escaped or expanded."));
    }
    if name.contains('/') {
        working_dir.readable(name, facts)?;
    }
    Ok(())
}

/// Checks that git works on the session's own repository.
fn in_own_repository(working_dir: &WorkingDir, facts: &dyn Facts) -> Result<(), String> {
    let is_top = |dir: &Path| facts.read(&dir.join(".git"), 0) != FileContent::Missing;
    for base in &working_dir.bases {
        if base.ancestors().find(|dir| is_top(dir)) != Some(&working_dir.workspace) {
            return Err(format!("`{}` is not in the repository of the workspace.", base.display()));
        }
    }
    Ok(())
}

/// The source and target paths of `cp` and `mv`.
fn moved(name: &str, words: &[ShellWord], working_dir: &WorkingDir, facts: &dyn Facts) -> Result<Vec<PathBuf>, String> {
    if let Some(word) = words.iter().find(|word| word.glob) {
        return Err(format!("capture cannot determine which files `{}` matches.", word.raw));
    }
    let operands: Vec<&str> =
        words.iter().map(|word| word.text.as_str()).filter(|word| !word.starts_with('-')).collect();
    let Some((to, sources)) = operands.split_last().filter(|(_, sources)| !sources.is_empty()) else {
        return Err(format!("`{name}` needs a source file and a destination."));
    };
    let mut all = Vec::new();
    for source in sources {
        if source.ends_with("/.") || source.ends_with("..") || *source == "." {
            return Err(format!(
                "The content of `{source}` would be copied into other directories, and may replace files there."
            ));
        }
        let paths = working_dir.readable(source, facts)?;
        for path in &paths {
            let inside = path.strip_prefix(&working_dir.workspace).unwrap_or(path);
            if facts.is_directory(path) {
                let reader = SearchReader::Everything(GrepFilter::default());
                let scope = SearchScope { dir: path.clone(), cwd: path.clone(), reader, named: None };
                working_dir.reaches_no_secret(&scope, facts)?;
                if inside.as_os_str().is_empty() || name == "mv" && runs_later_below(inside) {
                    return Err(format!("`{source}` contains files that control what runs later."));
                }
            } else {
                working_dir.printable(path, facts)?;
                if name == "mv" {
                    working_dir.editable(source, facts)?;
                }
            }
        }
        let to_dir = working_dir.readable(to, facts)?.iter().any(|path| facts.is_directory(path)) || to.ends_with('/');
        let target = match Path::new(source.trim_end_matches('/')).file_name().and_then(|name| name.to_str()) {
            Some(file) if to_dir => format!("{}/{file}", to.trim_end_matches('/')),
            Some(_) => (*to).to_owned(),
            None => return Err(format!("`{source}` has no name.")),
        };
        put(&target, paths.iter().any(|path| facts.is_directory(path)), working_dir, facts)?;
        all.extend(paths);
        all.extend(working_dir.readable(&target, facts)?);
    }
    Ok(all)
}

/// Checks that a new file or directory may be created at a path.
fn put(target: &str, directory: bool, working_dir: &WorkingDir, facts: &dyn Facts) -> Result<(), String> {
    if !directory {
        return working_dir.editable(target, facts);
    }
    for path in working_dir.readable(target, facts)? {
        let inside = path.strip_prefix(&working_dir.workspace).unwrap_or(&path);
        // Programs read the files in hidden directories, and which programs do depends on file names that are not known
        // here.
        let is_hidden = inside.iter().any(|name| name.as_encoded_bytes().starts_with(b"."));
        if inside.as_os_str().is_empty()
            || is_hidden
            || runs_later_below(inside)
            || facts.entry(&path) != FileEntry::Missing
        {
            return Err(format!("`{target}` exists, or controls what runs later."));
        }
    }
    Ok(())
}

fn runs_later_below(inside: &Path) -> bool {
    runs_later(inside) || runs_later(&inside.join("x")) || is_protected(inside) || is_secret(inside)
}
