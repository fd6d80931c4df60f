//! Which files grep and ripgrep skip below a directory, from their options.

use crate::{
    search::{GrepFilter, RipgrepOptions, SearchReader},
    tools::arguments::ParsedArguments,
};

/// The files that a program skips when it reads below directories.
pub(crate) fn reader(name: &str, parts: &ParsedArguments<'_>) -> SearchReader {
    if name == "rg" { SearchReader::Ripgrep(ripgrep(parts)) } else { SearchReader::Everything(grep(parts)) }
}

fn values<'a>(parts: &'a ParsedArguments<'_>, names: &'a [&str]) -> impl Iterator<Item = &'a str> {
    parts.values.iter().filter(|(option, _)| names.contains(option)).map(|(_, value)| *value)
}

/// If `--include` and `--exclude` contradict each other, their order decides, so if both are used, no file counts as
/// skipped.
fn grep(parts: &ParsedArguments<'_>) -> GrepFilter {
    let all = |name: &str| values(parts, &[name]).map(str::to_owned).collect::<Vec<_>>();
    let (include, exclude) = (all("--include"), all("--exclude"));
    let exclude_dir = all("--exclude-dir");
    if include.is_empty() || exclude.is_empty() {
        GrepFilter { include, exclude, exclude_dir }
    } else {
        GrepFilter { exclude_dir, ..GrepFilter::default() }
    }
}

fn ripgrep(parts: &ParsedArguments<'_>) -> RipgrepOptions {
    let unrestricted = parts.options.iter().filter(|option| matches!(**option, "-u" | "--unrestricted")).count();
    let ignored = unrestricted > 0 || parts.has("--no-ignore");
    let any_case = parts.has("--glob-case-insensitive");
    let globs = values(parts, &["-g", "--glob"]).map(|glob| (glob.to_owned(), any_case));
    let of_any_case = values(parts, &["--iglob"]).map(|glob| (glob.to_owned(), true));
    RipgrepOptions {
        hidden: unrestricted > 1 || parts.has("-.") || parts.has("--hidden"),
        ignored,
        ignored_by_git: ignored || parts.has("--no-ignore-vcs"),
        ignored_above: ignored || parts.has("--no-ignore-parent"),
        // A decoded file is no longer binary.
        binary: unrestricted > 2 || ["-a", "--text", "--encoding"].iter().any(|option| parts.has(option)),
        globs: globs.chain(of_any_case).collect(),
        types: values(parts, &["-t", "--type"]).map(str::to_owned).collect(),
        types_not: values(parts, &["-T", "--type-not"]).map(str::to_owned).collect(),
    }
}
