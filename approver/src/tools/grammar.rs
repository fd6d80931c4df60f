//! Judges programs whose arguments are a language: find, test, printf, command.

use serde::Deserialize;

use super::scripts::ValueKind;

/// The program whose arguments are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Grammar {
    /// `find`: starting points, then an expression.
    Find,
    /// `test`.
    Test,
    /// `[`, which ends with `]`.
    Bracket,
    /// `printf` of the shell.
    Printf,
    /// `command -v`.
    Command,
    /// `cd`; its directory is checked elsewhere.
    Cd,
}

/// Judges the arguments; `read` is called with every path.
///
/// # Errors
/// A sentence that names the unknown part.
pub(super) fn judge(
    grammar: Grammar,
    words: &[&str],
    read: &mut dyn FnMut(&str) -> Result<(), String>,
) -> Result<(), String> {
    match grammar {
        Grammar::Find => find(words, read),
        Grammar::Test => test(words, read),
        Grammar::Bracket => match words.split_last() {
            Some((&"]", words)) => test(words, read),
            Some(_) | None => Err("`[` does not end with `]`.".into()),
        },
        Grammar::Printf => printf(words),
        Grammar::Command => match words {
            ["-v" | "-V", name] if !name.starts_with('-') => Ok(()),
            _ => Err("Only the form `command -v NAME` is known to be safe.".into()),
        },
        Grammar::Cd => match words {
            [dir] if !dir.starts_with('-') && !dir.is_empty() => read(dir),
            _ => Err("capture can check `cd` only with exactly one directory.".into()),
        },
    }
}

/// Primaries of find without a value, and those with one.
const ALONE: &[&str] = &[
    "-print",
    "-print0",
    "-prune",
    "-empty",
    "-quit",
    "-readable",
    "-writable",
    "-executable",
    "-ls",
    "-depth",
    "-xdev",
    "-mount",
    "-true",
    "-false",
    "-not",
    "-o",
    "-or",
    "-a",
    "-and",
    "!",
    "(",
    ")",
    "-noleaf",
    "-daystart",
];
const WITH_TEXT: &[&str] =
    &["-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-lname", "-ilname", "-perm", "-printf"];
const WITH_WORD: &[&str] = &["-type", "-xtype", "-user", "-group", "-regextype", "-fstype"];
const WITH_NUMBER: &[&str] = &[
    "-maxdepth",
    "-mindepth",
    "-mtime",
    "-mmin",
    "-atime",
    "-amin",
    "-ctime",
    "-cmin",
    "-size",
    "-links",
    "-inum",
    "-uid",
    "-gid",
];
const WITH_PATH: &[&str] = &["-newer", "-anewer", "-cnewer", "-samefile"];

fn find(words: &[&str], read: &mut dyn FnMut(&str) -> Result<(), String>) -> Result<(), String> {
    let begins = |word: &&&str| !word.starts_with('-') && !matches!(**word, "!" | "(" | ")" | ",");
    let starts = words.iter().take_while(begins).count();
    for start in &words[..starts] {
        read(start)?;
    }
    if starts == 0 {
        read(".")?;
    }
    let mut words = words[starts..].iter().copied();
    while let Some(word) = words.next() {
        if ALONE.contains(&word) {
            continue;
        }
        let of = |all: &[&str]| all.contains(&word);
        if !of(WITH_TEXT) && !of(WITH_WORD) && !of(WITH_NUMBER) && !of(WITH_PATH) {
            return Err(format!("`{word}` of `find` is not known to be safe."));
        }
        let value = words.next().ok_or_else(|| format!("`{word}` of `find` has no value."))?;
        if of(WITH_PATH) {
            read(value)?;
        } else if of(WITH_WORD) && !ValueKind::Word.accepts(value)
            || of(WITH_NUMBER) && !ValueKind::Number.accepts(value)
        {
            return Err(format!("`{word} {value}` of `find` is not known to be safe."));
        }
    }
    Ok(())
}

/// The directories in which `find` searches, and the names it prints.
pub(crate) struct FindScope {
    pub(crate) starts: Vec<String>,
    /// Patterns of names; a printed name matches one of them. Empty: all names.
    pub(crate) names: Vec<String>,
    /// Whether it prints no links.
    pub(crate) only_files: bool,
}

/// The names that `find` prints with these arguments. `None` if it prints anything but names.
pub(crate) fn found_by(words: &[&str]) -> Option<FindScope> {
    let begins = |word: &&&str| !word.starts_with('-') && !matches!(**word, "!" | "(" | ")" | ",");
    let starts = words.iter().take_while(begins).count();
    let rest = &words[starts..];
    let has = |options: &[&str]| rest.iter().any(|word| options.contains(word));
    if has(&["-printf", "-ls", "-fprint", "-print0-from"]) {
        return None;
    }
    let starts = words[..starts].iter().map(|word| (*word).to_owned()).collect();
    // Each branch of an `-o` must have a name, and nothing may be negated.
    let mut names = Vec::new();
    let mut bound = !has(&["!", "-not", ","]);
    for branch in rest.split(|word| matches!(*word, "-o" | "-or")) {
        let named: Vec<String> = branch
            .windows(2)
            .filter(|pair| matches!(pair[0], "-name" | "-iname"))
            .map(|pair| pair[1].to_owned())
            .collect();
        bound &= !named.is_empty();
        names.extend(named);
    }
    let files = |pair: &[&str]| pair[0] == "-type" && pair[1] == "f";
    let only_files = !has(&["-o", "-or", "!", "-not", ",", "("]) && rest.windows(2).any(files)
        // `\( -name a -o -name b \) -type f`
        || !has(&["!", "-not", ","]) && (rest.first() == Some(&"(") && ends_with_files(rest) || begins_with_files(rest));
    Some(FindScope { starts, names: if bound { names } else { Vec::new() }, only_files })
}

fn begins_with_files(rest: &[&str]) -> bool {
    matches!(rest, ["-type", "f", "(", inner @ .., ")"] | ["-type", "f", "(", inner @ .., ")", "-print" | "-print0"] if !inner.contains(&")"))
}

fn ends_with_files(rest: &[&str]) -> bool {
    matches!(rest, ["(", inner @ .., ")", "-type", "f"] | ["(", inner @ .., ")", "-type", "f", "-print" | "-print0"] if !inner.contains(&")"))
}

/// The arguments of `find` without `-exec`, and the commands that `-exec` runs. `None` if one of them has no end.
pub(crate) fn without_actions<T: Clone>(words: &[T], text: impl Fn(&T) -> &str) -> Option<(Vec<T>, Vec<Vec<T>>)> {
    let (mut rest, mut actions) = (Vec::new(), Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if text(word) != "-exec" {
            rest.push(word.clone());
            continue;
        }
        let mut action = Vec::new();
        loop {
            match words.next() {
                None => return None,
                Some(word) if matches!(text(word), ";" | "+") => break,
                Some(word) => action.push(word.clone()),
            }
        }
        actions.push(action);
    }
    Some((rest, actions))
}

/// Shells evaluate the subscripts in the operands of `-v` and `-R`, and zsh evaluates the compared numbers.
fn test(words: &[&str], read: &mut dyn FnMut(&str) -> Result<(), String>) -> Result<(), String> {
    let number = |text: &str| !text.is_empty() && text.len() < 19 && text.bytes().all(|b| b.is_ascii_digit());
    match words {
        ["!", rest @ ..] if !rest.is_empty() => test(rest, read),
        [
            "-b" | "-c" | "-d" | "-e" | "-f" | "-g" | "-h" | "-L" | "-p" | "-r" | "-s" | "-S" | "-u" | "-w" | "-x",
            path,
        ] => read(path),
        ["-n" | "-z", _] => Ok(()),
        [_, "=" | "!=", _] => Ok(()),
        [a, "-nt" | "-ot" | "-ef", b] => read(a).and_then(|()| read(b)),
        [a, "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge", b] if number(a) && number(b) => Ok(()),
        _ => Err("This form of `test` is not known to be safe.".into()),
    }
}

/// Only `%s`: zsh evaluates the arguments of other conversions.
fn printf(words: &[&str]) -> Result<(), String> {
    let Some(format) = words.first() else { return Err("`printf` has no format.".into()) };
    let mut rest = *format;
    let mut safe = !format.starts_with('-');
    while let Some(at) = rest.find('%') {
        let conversion = &rest[at + 1..];
        rest = conversion.trim_start_matches(|c: char| c == '-' || c == '.' || c.is_ascii_digit());
        // `%999999999s` has that width.
        safe &= conversion.len() - rest.len() < 5;
        safe &= rest.starts_with(['s', '%', 'b', 'q']);
        rest = rest.get(1..).unwrap_or_default();
    }
    if safe { Ok(()) } else { Err("This format of `printf` is not known to be safe.".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(grammar: Grammar, words: &str) -> bool {
        judge(grammar, &words.split(' ').collect::<Vec<_>>(), &mut |_| Ok(())).is_ok()
    }

    #[test]
    fn find_actions_that_run_or_write_are_refused() {
        for words in [
            ". -name *.rs",
            "-type f",
            "src tests -type f ( -name a -o -name b ) -print",
            ". -mtime -3 -size +10k",
            ". ! -name x",
        ] {
            assert!(check(Grammar::Find, words), "{words}");
        }
        for words in [
            ". -exec id ;",
            ". -delete",
            ". -execdir id ;",
            ". -ok id ;",
            ". -fprint x",
            ". -fls x",
            ". -fprintf x y",
            ". -fprint0 x",
            ". -files0-from x",
            "-L .",
            ". -name",
            ". -follow",
            "-P .",
            ". -type $x",
            ". -maxdepth 1e",
        ] {
            assert_eq!(check(Grammar::Find, words), words.ends_with("1e"), "{words}");
        }
    }

    #[test]
    fn test_operands_that_could_be_evaluated_are_refused() {
        assert!(check(Grammar::Test, "-f x") && check(Grammar::Bracket, "-d src ]") && check(Grammar::Test, "1 -eq 2"));
        for words in ["-v a[$(x)]", "-R x", "a -eq b", "a[$(x)] -eq 1", "-f x -a -v y", "-t a[x]", "-o x"] {
            assert!(!check(Grammar::Test, words), "{words}");
        }
    }

    #[test]
    fn printf_forms_that_assign_or_evaluate_are_refused() {
        assert!(check(Grammar::Printf, "%s\\n x") && check(Grammar::Printf, "%-10s|%%"));
        for words in ["-v x %s", "%d a[x]", "%n", "%(%s)T 1", "%*s 3 x", "%999999999s x"] {
            assert!(!check(Grammar::Printf, words), "{words}");
        }
    }
}
