//! Judges one simple command by the tables of programs.

use std::{path::PathBuf, sync::Arc};

use super::{grammar, scripts::ValueKind, search};
use crate::{
    facts::{Facts, FileContent},
    paths::WorkingDir,
    revision,
    search::{NamedFiles, SearchScope},
    shell::{Listed, ShellWord, SimpleCommand},
    tools::{
        arguments::{ParsedArguments, parts},
        table::{ReadsBelow, Tool, git, tool},
    },
    values::LISTED,
};

/// Maximum number of names in a directory in which a pattern is expanded.
const MAX_NAMES: usize = 2000;

/// A command that the tables list as read-only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReadOnlyCommand {
    /// The paths it reads, with links resolved.
    pub(crate) paths: Vec<PathBuf>,
    /// The words that must run instead of the original ones.
    pub(crate) rewrite: Option<Vec<String>>,
}

/// Checks that a command other than git only reads, and reads nothing that it must not.
///
/// # Errors
/// A sentence with the reason why this is not known.
pub(crate) fn judge(
    command: &SimpleCommand,
    working_dir: &WorkingDir,
    facts: &dyn Facts,
) -> Result<ReadOnlyCommand, String> {
    let Some((first, words)) = command.words.split_first() else { return Err("The command is empty.".into()) };
    let name = first.text.as_str();
    let Some(tool) = tool(name) else { return Err(format!("`{name}` is not known to be read-only.")) };
    if !first.bare {
        return Err(format!("The program name `{name}` is quoted, escaped or expanded."));
    }
    if !tool.builtin {
        resolved(first, working_dir, facts)?;
    }
    if let Some(word) = words.iter().find(|word| word.zsh) {
        return Err(format!("zsh may read `{}` as a pattern.", word.text));
    }
    let mut reading = ArgumentReader {
        name,
        working_dir,
        facts,
        paths: Vec::new(),
        prints: !tool.names_only,
        listed: words.iter().filter_map(|word| word.listed.clone()).collect(),
    };
    if let Some(at) = words.iter().position(|word| word.unknown).filter(|_| !takes_any_text(tool, name, words)) {
        return Err(format!(
            "capture cannot determine the value of `{}`, and therefore the effect of `{name}`.",
            words[at].text
        ));
    }
    let words = reading.expanded(tool, words)?;
    if let Some(input) = &command.input {
        for path in reading.read(&input.text)? {
            if facts.is_directory(&path) {
                return Err(format!("`{}` is a directory.", input.text));
            }
        }
    }
    reading.judge(tool, &words)?;
    Ok(ReadOnlyCommand { paths: reading.paths, rewrite: None })
}

/// Whether a program only prints or compares the words with unknown text.
fn takes_any_text(tool: &Tool, name: &str, words: &[ShellWord]) -> bool {
    let known = |word: &ShellWord| !word.unknown;
    match (name, words) {
        _ if tool.words => true,
        ("printf", [format, ..]) => known(format),
        ("test" | "[", [option, _] | [option, _, _])
            if matches!(option.text.as_str(), "-n" | "-z") && known(option) =>
        {
            words.get(2).is_none_or(|last| last.text == "]")
        }
        ("test" | "[", [_, operator, _] | [_, operator, _, _]) => {
            matches!(operator.text.as_str(), "=" | "!=")
                && known(operator)
                && words.get(3).is_none_or(|last| last.text == "]")
        }
        _ => false,
    }
}

/// Parses the arguments of a program of the tables.
pub(crate) fn arguments<'a>(name: &str, words: &[&'a str]) -> Option<ParsedArguments<'a>> {
    parts(tool(name)?, words).ok()
}

/// The names that a pattern of file names may match now.
///
/// # Errors
/// If there are none, or one could be mistaken for an option.
pub(crate) fn expanded(word: &ShellWord, working_dir: &WorkingDir, facts: &dyn Facts) -> Result<Vec<String>, String> {
    let odd = || format!("The command line has a pattern of file names (`{}`).", word.text);
    let (dir, pattern) = word.text.rsplit_once('/').unwrap_or((".", &word.text));
    let pattern = globset::GlobBuilder::new(pattern).case_insensitive(true).build().map_err(|_| odd())?;
    let pattern = pattern.compile_matcher();
    let mut all = Vec::new();
    for base in working_dir.readable(dir, facts)? {
        let names = facts.names(&base, MAX_NAMES).ok_or_else(odd)?;
        let names = names.into_iter().filter(|name| pattern.is_match(std::path::Path::new(name)));
        let names: Vec<_> = names.map(|name| name.into_string().map_err(|_| odd())).collect::<Result<_, _>>()?;
        if names.is_empty() {
            return Err(format!("The pattern `{}` matches no file.", word.text));
        }
        for name in names {
            let text = if word.text.contains('/') { format!("{dir}/{name}") } else { name };
            // A file with a name like an option would be read as one.
            if text.starts_with('-') {
                return Err(odd());
            }
            all.push(text);
        }
    }
    Ok(all)
}

/// Checks that a command word is the bare name of a program outside the workspace.
///
/// # Errors
/// A sentence with the reason why it is not.
pub(crate) fn resolved(word: &ShellWord, working_dir: &WorkingDir, facts: &dyn Facts) -> Result<(), String> {
    let name = word.text.as_str();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '+' | '-');
    if !word.bare || name.is_empty() || name.starts_with(['-', '.']) || !name.chars().all(plain) {
        return Err(format!("`{name}` is not a bare command name."));
    }
    let files = facts.program(name);
    outside(name, &files, working_dir)?;
    // A shim for all versions of a program searches the workspace for the version to run.
    if is_shim(&files) { chosen(MANAGERS, name, working_dir, facts) } else { Ok(()) }
}

fn is_shim(files: &[PathBuf]) -> bool {
    let managed = |part: &std::ffi::OsStr| part == "shims" || part == ".volta" || part == ".proto" || part == "mise";
    files.iter().any(|file| file.components().any(|part| managed(part.as_os_str())))
}

/// Files through which a version manager (asdf, mise, proto, pyenv, rbenv, nodenv, volta) may select a program of the
/// workspace. Their content can be written in many ways, so their presence is enough.
const MANAGERS: &[&str] = &[
    ".tool-versions",
    "mise.toml",
    ".mise.toml",
    "mise.local.toml",
    ".mise.local.toml",
    "mise/config.toml",
    ".mise",
    ".miserc.toml",
    ".config/mise.toml",
    ".config/mise",
    ".prototools",
    ".python-version",
    ".python-versions",
    ".ruby-version",
    ".node-version",
    ".nvmrc",
    ".go-version",
    ".java-version",
    ".sdkmanrc",
];

/// # Errors
/// If one of these files is in the working directory, or above it in the workspace.
fn chosen(by: &[&str], name: &str, working_dir: &WorkingDir, facts: &dyn Facts) -> Result<(), String> {
    for base in &working_dir.bases {
        for dir in base.ancestors().take_while(|dir| dir.starts_with(&working_dir.workspace)) {
            if let Some(file) = by.iter().map(|file| dir.join(file)).find(|f| facts.read(f, 0) != FileContent::Missing)
            {
                return Err(format!("`{}` may choose what `{name}` runs.", file.display()));
            }
        }
    }
    Ok(())
}

/// Checks that a program's files exist and are all outside the workspace.
///
/// # Errors
/// A sentence with the reason why they are not.
pub(crate) fn outside(name: &str, files: &[PathBuf], working_dir: &WorkingDir) -> Result<(), String> {
    if files.is_empty() {
        return Err(format!("There is no program `{name}`."));
    }
    if files.iter().any(|file| file.starts_with(&working_dir.workspace)) {
        return Err(format!("`{name}` is a file of the workspace."));
    }
    Ok(())
}

/// Judges the words after the first words of an everyday command. Returns the paths it names.
///
/// # Errors
/// A sentence that names the unknown part.
pub(crate) fn judge_work(
    tool: &Tool,
    name: &str,
    words: &[ShellWord],
    working_dir: &WorkingDir,
    facts: &dyn Facts,
) -> Result<Vec<PathBuf>, String> {
    let mut reading = ArgumentReader { name, working_dir, facts, paths: Vec::new(), prints: false, listed: Vec::new() };
    let mut all = Vec::new();
    for word in words {
        if word.glob {
            all.extend(expanded(word, working_dir, facts)?.into_iter().map(|text| ShellWord {
                text,
                glob: false,
                ..word.clone()
            }));
        } else {
            all.push(word.clone());
        }
    }
    reading.judge(tool, &all)?;
    Ok(reading.paths)
}

/// Judges a subcommand of git by its table. Returns the paths it names.
///
/// # Errors
/// A sentence with the reason why it is unknown.
pub(crate) fn judge_git(
    name: &str,
    words: &[ShellWord],
    working_dir: &WorkingDir,
    facts: &dyn Facts,
) -> Result<GitSubcommand, String> {
    let Some(tool) = git(name) else { return Err(format!("`git {name}` is not known to be read-only.")) };
    let name = format!("git {name}");
    let mut reading =
        ArgumentReader { name: &name, working_dir, facts, paths: Vec::new(), prints: false, listed: Vec::new() };
    let parts = reading.judge(tool, words)?;
    let texts = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let values = parts.values.iter().map(|(option, _)| *option);
    let options = texts(&parts.options.iter().copied().chain(values).collect::<Vec<_>>());
    // A text to search for is not a path.
    let text = usize::from(tool.operands.first().is_some_and(|sort| sort == "text") && !parts.any(&tool.first_by));
    let operands = texts(parts.operands.get(text..).unwrap_or_default());
    let behind = parts.before.map_or(0, |before| parts.operands.len() - before.max(text).min(parts.operands.len()));
    let moved = parts.operands_at.get(text..).unwrap_or_default();
    let stays = |at: &usize| !moved.contains(at) && parts.dashes_at != Some(*at);
    let kept = (0..words.len()).filter(stays).map(|at| words[at].text.clone()).collect();
    Ok(GitSubcommand { tool, paths: reading.paths, options, operands, behind, dashes: parts.before.is_some(), kept })
}

/// A parsed subcommand of git.
pub(crate) struct GitSubcommand {
    pub(crate) tool: &'static Tool,
    /// The paths it names, with links resolved.
    pub(crate) paths: Vec<PathBuf>,
    /// The names of the given options.
    pub(crate) options: Vec<String>,
    /// Commits, ranges and paths.
    pub(crate) operands: Vec<String>,
    /// Number of operands, counted from the last, that follow `--`.
    pub(crate) behind: usize,
    /// Whether there is a `--`.
    pub(crate) dashes: bool,
    /// All other words, as written: options, their values, the text to search for.
    pub(crate) kept: Vec<String>,
}

struct ArgumentReader<'a> {
    name: &'a str,
    working_dir: &'a WorkingDir,
    facts: &'a dyn Facts,
    paths: Vec<PathBuf>,
    /// Whether it prints the contents of the files it names, or something derived from them.
    prints: bool,
    /// The directories of the files whose names it gets.
    listed: Vec<Arc<Listed>>,
}

impl ArgumentReader<'_> {
    fn judge<'w>(&mut self, tool: &'w Tool, words: &'w [ShellWord]) -> Result<ParsedArguments<'w>, String> {
        if let Some(word) = words.iter().find(|word| word.glob) {
            return Err(format!("`{}` is a pattern of file names.", word.text));
        }
        let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        self.runs_itself(tool)?;
        if let Some(word) = words.iter().find(|word| tool.response_files && word.starts_with('@')) {
            return Err(format!("`{word}` may name a file from which `{}` reads more arguments.", self.name));
        }
        if let Some(exact) = &tool.exact {
            let typed = words.join(" ");
            let known = exact.contains(&typed) && words.iter().all(|w| !w.contains(' '));
            if known {
                return Ok(ParsedArguments::default());
            }
            if tool.operands.is_empty() && tool.flags.is_empty() {
                let shown = format!("{} {typed}", self.name);
                return Err(format!("`{}` is not known to be read-only.", shown.trim_end()));
            }
        }
        if let Some(grammar) = tool.grammar {
            if words.iter().any(|word| word.contains(LISTED) && *word != LISTED) {
                return Err(format!("`{}` would not read the inserted file name as a path.", self.name));
            }
            return grammar::judge(grammar, &words, &mut |path| self.read(path).map(|_| ()))
                .map(|()| ParsedArguments::default());
        }
        let parts = if tool.words {
            ParsedArguments { operands: words, ..ParsedArguments::default() }
        } else {
            parts(tool, &words).map_err(|what| format!("{what} of `{}` is not known to be safe.", self.name))?
        };
        self.values(tool, &parts)?;
        let read = self.operands(tool, &parts)?;
        self.below(tool, &parts, read)?;
        Ok(parts)
    }

    /// The words with patterns replaced by all names that any shell, with any settings, may insert now. A name may be
    /// absent when the program runs, so each must be readable on its own, and there must be at least one.
    fn expanded(&mut self, tool: &Tool, words: &[ShellWord]) -> Result<Vec<ShellWord>, String> {
        let mut all = Vec::new();
        for word in words {
            if !word.glob {
                all.push(word.clone());
                continue;
            }
            if !tool.globs {
                return Err(format!("The command line has a pattern of file names (`{}`).", word.text));
            }
            for text in expanded(word, self.working_dir, self.facts)? {
                self.read(&text)?;
                all.push(ShellWord { text, glob: false, ..word.clone() });
            }
        }
        Ok(all)
    }

    /// Files of the workspace select the versions of tools.
    fn runs_itself(&self, tool: &Tool) -> Result<(), String> {
        let shim = !tool.builtin && !self.working_dir.certain && is_shim(&self.facts.program(self.name));
        if (shim || !tool.unless.is_empty()) && !self.working_dir.certain {
            return Err(format!("capture cannot determine the directory in which `{}` would run.", self.name));
        }
        if tool.unless.is_empty() {
            return Ok(());
        }
        let own: Vec<&str> = tool.unless.iter().map(String::as_str).collect();
        chosen(&own, self.name, self.working_dir, self.facts)?;
        chosen(MANAGERS, self.name, self.working_dir, self.facts)
    }

    fn values(&mut self, tool: &Tool, parts: &ParsedArguments<'_>) -> Result<(), String> {
        for (option, value) in &parts.values {
            let sort = tool.values.get(*option).or_else(|| tool.optional.get(*option));
            let sort = sort
                .and_then(|sort| ValueKind::parse(sort))
                .ok_or("Internal error: unknown value type in the table of tools.")?;
            self.value(&sort, value).map_err(|why| {
                why.unwrap_or_else(|| {
                    format!("The value `{value}` of `{option}` of `{}` is not known to be safe.", self.name)
                })
            })?;
        }
        Ok(())
    }

    /// `Err(None)` if the value is not of this kind.
    fn value(&mut self, sort: &ValueKind, value: &str) -> Result<Vec<PathBuf>, Option<String>> {
        if sort.is_path() {
            if value == "-" {
                return Ok(Vec::new());
            }
            return self.read(value).map_err(Some);
        }
        if matches!(sort, ValueKind::Rev) {
            return revision::revision(value, self.working_dir, self.facts).map_err(Some);
        }
        if matches!(sort, ValueKind::Lines) {
            return revision::lines(value, self.working_dir, self.facts).map_err(Some);
        }
        if let Some(paths) = self.workspace_path(sort, value) {
            return paths.map_err(Some);
        }
        if value == LISTED && matches!(sort, ValueKind::Text) && !self.prints {
            return self.read_listed().map_err(Some);
        }
        if value.contains(LISTED) {
            return Err(Some(format!("`{}` would not read the inserted file name as a path.", self.name)));
        }
        if sort.accepts(value) { Ok(Vec::new()) } else { Err(None) }
    }

    fn read(&mut self, written: &str) -> Result<Vec<PathBuf>, String> {
        if written == LISTED {
            return self.read_listed();
        }
        if !self.prints {
            let paths = self.working_dir.nameable(written, self.facts)?;
            self.paths.extend(paths.iter().cloned());
            return Ok(paths);
        }
        let paths = self.working_dir.readable(written, self.facts)?;
        paths.iter().try_for_each(|path| self.working_dir.printable(path, self.facts))?;
        self.paths.extend(paths.iter().cloned());
        Ok(paths)
    }

    /// Checks a path that everyday work reads, changes, creates or removes. `None` for other kinds.
    #[expect(clippy::wildcard_enum_match_arm, reason = "all other sorts are not paths of everyday work")]
    fn workspace_path(&mut self, sort: &ValueKind, value: &str) -> Option<Result<Vec<PathBuf>, String>> {
        let paths = match sort {
            ValueKind::Source => self.working_dir.readable(value, self.facts),
            ValueKind::Edit => {
                self.working_dir.editable(value, self.facts).and_then(|()| self.working_dir.readable(value, self.facts))
            }
            ValueKind::Made => self.working_dir.makeable(value, self.facts),
            ValueKind::Removed => self.working_dir.removable(value, self.facts),
            ValueKind::BranchOnly => {
                let is_path = self.working_dir.nameable(value, self.facts).is_ok_and(|paths| {
                    paths.iter().any(|path| self.facts.entry(path) != crate::facts::FileEntry::Missing)
                });
                match super::scripts::is_branch(value) && !is_path {
                    true => Ok(Vec::new()),
                    false => Err(format!("`{value}` may be a path, and uncommitted changes there would be lost.")),
                }
            }
            _ => return None,
        };
        Some(paths.inspect(|paths| self.paths.extend(paths.iter().cloned())))
    }

    /// Checks the files whose names other commands print.
    fn read_listed(&mut self) -> Result<Vec<PathBuf>, String> {
        let mut dirs = Vec::new();
        for scope in self.listed.iter().flat_map(|scopes| scopes.iter()) {
            let named =
                scope.named.map(|named| NamedFiles { read: self.prints, links: self.prints && named.links, ..named });
            let scope = SearchScope { named, ..scope.clone() };
            self.working_dir.reaches_no_secret(&scope, self.facts)?;
            dirs.push(scope.dir);
        }
        self.paths.extend(dirs.iter().cloned());
        Ok(dirs)
    }

    fn operands(&mut self, tool: &Tool, parts: &ParsedArguments<'_>) -> Result<Vec<PathBuf>, String> {
        let given = |options: &[String]| parts.any(options);
        if !parts.operands.is_empty() && !tool.operands_with.is_empty() && !given(&tool.operands_with) {
            return Err(format!("`{}` with operands is not known to be read-only.", self.name));
        }
        let mut sorts = tool.operands.iter().map(String::as_str).peekable();
        if given(&tool.first_by) {
            sorts.next();
        }
        let mut read = Vec::new();
        for operand in &parts.operands {
            let Some(sort) = sorts.peek().copied() else {
                return Err(format!("`{}` with the operand `{operand}` is not known to be read-only.", self.name));
            };
            let sort = match sort.strip_suffix("...") {
                Some(sort) => sort,
                None => sorts.next().unwrap_or(sort),
            };
            let sort = ValueKind::parse(sort).ok_or("Internal error: unknown value type in the table of tools.")?;
            read.extend(self.value(&sort, operand).map_err(|why| {
                why.unwrap_or_else(|| format!("The operand `{operand}` of `{}` is not known to be safe.", self.name))
            })?);
        }
        Ok(read)
    }

    fn below(&mut self, tool: &Tool, parts: &ParsedArguments<'_>, mut read: Vec<PathBuf>) -> Result<(), String> {
        let given = |options: &[String]| parts.any(options);
        if let Some(dir) = read.iter().find(|path| tool.no_directories && self.facts.is_directory(path)) {
            return Err(format!("`{}` is a directory, whose files `{}` would read.", dir.display(), self.name));
        }
        let below = match tool.below {
            ReadsBelow::Never => false,
            ReadsBelow::Always => !given(&tool.below_unless),
            ReadsBelow::Asked => given(&tool.below_with),
        };
        if read.is_empty() && (tool.here || below) {
            read = self.working_dir.readable(".", self.facts)?;
            self.paths.extend(read.iter().cloned());
        }
        if !below {
            return Ok(());
        }
        for dir in read {
            for cwd in &self.working_dir.bases {
                let search = SearchScope {
                    dir: dir.clone(),
                    cwd: cwd.clone(),
                    reader: search::reader(self.name, parts),
                    named: None,
                };
                self.working_dir.reaches_no_secret(&search, self.facts)?;
            }
        }
        Ok(())
    }
}
