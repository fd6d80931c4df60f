//! Determines which files the commands of a pipe may name, for a later command that uses the names.

use crate::{
    facts::Facts,
    paths::WorkingDir,
    search::{GrepFilter, NamedFiles, RipgrepOptions, SearchReader, SearchScope},
    tools,
    values::LineContext,
};

/// The directories in which the commands `by` search for the files they name. The commands themselves are judged
/// elsewhere.
///
/// # Errors
/// A sentence, if they may print anything but names of files below these directories.
pub(crate) fn scopes(
    by: &[usize],
    context: LineContext<'_>,
    working_dir: &WorkingDir,
    split: bool,
    facts: &dyn Facts,
) -> Result<Vec<SearchScope>, String> {
    let unknown = || "capture cannot determine which files the command names.".to_owned();
    let (first, filters) = by.split_first().ok_or_else(unknown)?;
    for index in by {
        // A name is relative to the directory in which it is used.
        let place = context.places.get(*index).and_then(|place| place.as_ref().ok()).ok_or_else(unknown)?;
        let command = context.line.commands.get(*index).ok_or_else(unknown)?;
        let plain = command.words.iter().all(|word| word.is_exact());
        if place.bases != working_dir.bases || !plain || !command.outputs.is_empty() {
            return Err(unknown());
        }
    }
    let words = |index: &usize| context.line.commands.get(*index).map(|command| command.texts()).unwrap_or_default();
    if !filters.iter().all(|index| leaves_out(&words(index))) {
        return Err(unknown());
    }
    named_by(&words(first), working_dir, split, facts).ok_or_else(unknown)
}

/// Whether a command prints only lines of its input.
fn leaves_out(words: &[&str]) -> bool {
    let Some((name, rest)) = words.split_first() else { return false };
    let all = |known: &[&str]| rest.iter().all(|word| known.contains(word));
    let number = |word: &&str| word.trim_start_matches(['-', 'n']).bytes().all(|b| b.is_ascii_digit());
    match *name {
        "sort" => all(&["-r", "-u", "-n", "-V", "-z", "-f", "-ru", "-rn", "-uz", "-zu", "--reverse", "--unique"]),
        "uniq" => rest.is_empty(),
        "head" | "tail" => rest.iter().all(|word| *word == "-n" || *word == "-z" || number(word)),
        "grep" | "egrep" | "fgrep" => {
            let options = rest.iter().take_while(|word| word.starts_with('-')).count();
            let known = [
                "-v",
                "-i",
                "-E",
                "-F",
                "-w",
                "-x",
                "-e",
                "-vE",
                "-Ev",
                "-iE",
                "-vi",
                "-iv",
                "-P",
                "-z",
                "-zv",
                "-vz",
                "-vF",
                "--invert-match",
            ];
            // One operand: the pattern.
            rest.len() == options + 1 && rest[..options].iter().all(|word| known.contains(word))
        }
        "cat" => rest.is_empty(),
        _ => false,
    }
}

/// The directories in which the first command of a pipe finds the names it prints.
fn named_by(words: &[&str], working_dir: &WorkingDir, split: bool, facts: &dyn Facts) -> Option<Vec<SearchScope>> {
    let (name, rest) = words.split_first()?;
    let everything = || SearchReader::Everything(GrepFilter::default());
    let (dirs, reader, links) = match *name {
        "find" => {
            let found = tools::found_by(rest)?;
            let reader = SearchReader::Everything(GrepFilter { include: found.names, ..GrepFilter::default() });
            (found.starts, reader, !found.only_files)
        }
        "rg" => {
            let parsed = tools::arguments("rg", rest)?;
            let files = ["--files"].iter().any(|option| parsed.has(option));
            let lists = files
                || ["-l", "--files-with-matches", "--files-without-match"].iter().any(|option| parsed.has(option));
            let odd = ["-0", "--null", "--json", "--stats", "-c", "--count", "--heading", "-r", "--replace"]
                .iter()
                .any(|option| parsed.has(option));
            let patterns = usize::from(!files && !["-e", "--regexp"].iter().any(|option| parsed.has(option)));
            let paths = parsed.operands().get(patterns..)?.to_vec();
            (lists && !odd).then_some(())?;
            (paths.into_iter().map(str::to_owned).collect(), tools::reader("rg", &parsed), false)
        }
        "grep" => {
            let parsed = tools::arguments("grep", rest)?;
            let given = |options: &[&str]| options.iter().any(|option| parsed.has(option));
            let lists =
                given(&["-l", "--files-with-matches", "-L", "--files-without-match"]) && given(&["-r", "--recursive"]);
            let patterns = usize::from(!given(&["-e", "--regexp", "-f", "--file"]));
            let paths = parsed.operands().get(patterns..)?.to_vec();
            lists.then_some(())?;
            (paths.into_iter().map(str::to_owned).collect(), tools::reader("grep", &parsed), false)
        }
        "git" => {
            let lists = match rest {
                ["ls-files", rest @ ..] => rest.iter().all(|word| {
                    !word.starts_with('-') || matches!(*word, "-z" | "--" | "-c" | "--cached" | "-m" | "--modified")
                }),
                ["diff", rest @ ..] => {
                    rest.contains(&"--name-only")
                        && rest.iter().all(|word| {
                            !word.starts_with('-') || matches!(*word, "--name-only" | "--cached" | "--staged" | "--")
                        })
                }
                _ => false,
            };
            lists.then_some(())?;
            (Vec::new(), everything(), true)
        }
        "ls" => {
            let flags = ["-1", "-t", "-r", "-S", "-1t", "-tr", "-rt"];
            rest.iter().all(|word| flags.contains(word)).then_some(())?;
            let hidden = RipgrepOptions {
                ignored: true,
                ignored_by_git: true,
                ignored_above: true,
                binary: true,
                ..RipgrepOptions::default()
            };
            (Vec::new(), SearchReader::Ripgrep(hidden), true)
        }
        _ => return None,
    };
    let dirs: Vec<String> = if dirs.is_empty() { vec![".".to_owned()] } else { dirs };
    let mut all = Vec::new();
    for dir in dirs {
        for path in working_dir.nameable(&dir, facts).ok()? {
            let named = Some(NamedFiles { split, links, read: true });
            let cwd = working_dir.bases.first()?.clone();
            all.push(SearchScope { dir: path, cwd, reader: reader.clone(), named });
        }
    }
    // A name printed by git may be a file anywhere in the repository.
    if *name == "git" {
        for scope in &mut all {
            scope.dir.clone_from(&working_dir.workspace);
        }
    }
    Some(all)
}

/// Like `scopes`, for the names that `find` passes to a command it runs.
pub(crate) fn executed(
    words: &[&str],
    working_dir: &WorkingDir,
    facts: &dyn Facts,
) -> Result<Vec<SearchScope>, String> {
    let mut all = vec!["find"];
    all.extend(words);
    named_by(&all, working_dir, false, facts)
        .ok_or_else(|| "capture cannot determine which files the command names.".to_owned())
}
