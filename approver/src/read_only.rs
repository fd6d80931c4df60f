//! Judges one simple command: its assignments and the commands that it runs. git has its own rules; every other program
//! is judged by the tables.

use std::sync::Arc;

use crate::{
    facts::Facts,
    git, listing,
    paths::WorkingDir,
    shell::{self, ShellWord, SimpleCommand, Value, WordPart},
    tools::{self, ReadOnlyCommand, resolved},
    values::{self, LISTED, LineContext},
};

/// Maximum depth to which commands that run commands are followed.
const MAX_DEPTH: usize = 4;

/// Checks that the command only reads, and reads nothing that it must not.
///
/// # Errors
/// A sentence with the reason why this is not known.
pub(crate) fn judge(
    command: &SimpleCommand,
    context: LineContext<'_>,
    working_dir: &WorkingDir,
    facts: &dyn Facts,
) -> Result<ReadOnlyCommand, String> {
    if let Some(output) = command.outputs.first() {
        return Err(format!("The command line writes to `{}`.", output.file.text));
    }
    for assigned in &command.assignments {
        let values = values::words(&assigned.value, context, working_dir, facts)?;
        // If the command only assigns, it sets a variable of the shell, whose name was checked before.
        let harmless = |value: &ShellWord| value.is_exact() && shell::is_harmless(&assigned.name, &value.text);
        if !command.words.is_empty() && !values.iter().all(harmless) {
            return Err(format!("The variable `{}` may change what runs.", assigned.name));
        }
    }
    if command.words.is_empty() {
        return Ok(ReadOnlyCommand::default());
    }
    let forms = values::forms(command, context, working_dir, facts)?;
    let mut all = ReadOnlyCommand::default();
    for form in &forms {
        let known = one(form, context, working_dir, facts, 0)?;
        if forms.len() > 1 && known.rewrite.is_some() {
            return Err("To be safe, the command needs a rewrite, but its variables have several values.".into());
        }
        all.paths.extend(known.paths);
        all.rewrite = known.rewrite;
    }
    // git's output is inserted in its place, so that git need not run.
    let replaced = command.words.iter().flat_map(|word| &word.parts);
    if replaced.clone().any(|part| matches!(part, WordPart::Value { value: Value::Toplevel, .. }))
        && all.rewrite.is_none()
    {
        let [form] = forms.as_slice() else {
            return Err("To be safe, the command needs a rewrite, but its variables have several values.".into());
        };
        if form.words.iter().any(|word| !word.is_exact()) {
            return Err("To be safe, the command needs a rewrite, but capture does not know its exact words.".into());
        }
        all.rewrite = Some(form.texts().into_iter().map(str::to_owned).collect());
    }
    Ok(all)
}

/// One form of a command.
fn one(
    command: &SimpleCommand,
    context: LineContext<'_>,
    working_dir: &WorkingDir,
    facts: &dyn Facts,
    depth: usize,
) -> Result<ReadOnlyCommand, String> {
    let Some((first, words)) = command.words.split_first() else { return Err("The command is empty.".into()) };
    let name = first.text.as_str();
    if depth > MAX_DEPTH {
        return Err("The command runs commands within commands.".into());
    }
    let inner = |words: Vec<ShellWord>| {
        one(&SimpleCommand { words, ..command.clone() }, context, working_dir, facts, depth + 1)
    };
    if let Some(skip) = wrapped(name, words) {
        if name != "command" {
            resolved(first, working_dir, facts)?;
        }
        let mut known = inner(command.words[skip..].to_vec())?;
        if let Some(rewrite) = &mut known.rewrite {
            rewrite.splice(0..0, command.words[..skip].iter().map(|word| word.text.clone()));
        }
        return Ok(known);
    }
    let without_rewrite = |known: ReadOnlyCommand| match known.rewrite {
        None => Ok(known),
        Some(_) => Err(format!("`{name}` runs a command that is safe only when rewritten.")),
    };
    match name {
        "git" => {
            resolved(first, working_dir, facts)?;
            if command.input.is_some() || command.document || words.iter().any(|word| !word.is_exact()) {
                return Err("Git is only allowed without input redirection and with plain words.".into());
            }
            git::judge(words, working_dir, facts)
        }
        "xargs" => {
            resolved(first, working_dir, facts)?;
            without_rewrite(inner(by_xargs(command, words, context, working_dir, facts)?)?)
        }
        "find" if words.iter().any(|word| word.text == "-exec") => {
            let (rest, actions) = tools::without_actions(words, |word| word.text.as_str())
                .ok_or_else(|| "The end of an `-exec` of `find` (`;` or `+`) is missing.".to_owned())?;
            if rest.iter().any(|word| !word.is_exact()) {
                return Err("`find` is only allowed to run commands with plain words.".into());
            }
            let texts: Vec<&str> = rest.iter().map(|word| word.text.as_str()).collect();
            let scopes = Arc::new(listing::executed(&texts, working_dir, facts)?);
            let mut all = vec![first.clone()];
            all.extend(rest.clone());
            let mut known = inner(all)?;
            for action in actions {
                let words = with_names(&action, "{}", &scopes)?;
                known.paths.extend(without_rewrite(inner(words)?)?.paths);
            }
            Ok(known)
        }
        _ => tools::judge(command, working_dir, facts),
    }
}

/// The number of words before the command that a wrapper runs. `None` if it is not a wrapper, or is used in another
/// way.
pub(crate) fn wrapped(name: &str, words: &[ShellWord]) -> Option<usize> {
    let texts: Vec<&str> = words.iter().map(|word| if word.is_exact() { word.text.as_str() } else { "" }).collect();
    let number = |text: &str| !text.is_empty() && text.trim_start_matches('-').bytes().all(|b| b.is_ascii_digit());
    let seconds = |text: &str| {
        let digits = text.trim_end_matches(['s', 'm']);
        !digits.is_empty()
            && digits.len() < 7
            && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.')
            && text.len() - digits.len() < 2
    };
    let mut at = 0;
    loop {
        let taken = match (name, texts.get(at..)?) {
            ("nice", ["-n", value, ..]) if number(value) => 2,
            ("nice", [value, ..]) if value.starts_with('-') && number(&value[1..]) => 1,
            ("ionice", ["-c" | "-n", value, ..]) if number(value) => 2,
            ("timeout", ["-s" | "-k", value, ..])
                if value.bytes().all(|b| b.is_ascii_alphanumeric()) && !value.is_empty() =>
            {
                2
            }
            ("timeout", ["--preserve-status" | "--foreground" | "-v" | "--verbose", ..]) => 1,
            ("stdbuf", ["-oL" | "-o0" | "-eL" | "-e0" | "-iL" | "-i0", ..]) => 1,
            ("env", [value, ..]) => match value.split_once('=') {
                Some((name, value)) if shell::is_harmless(name, value) => 1,
                _ => 0,
            },
            _ => 0,
        };
        if taken == 0 {
            break;
        }
        at += taken;
    }
    let takes = match (name, texts.get(at..)?) {
        ("timeout", [value, ..]) if seconds(value) => at + 1,
        ("nice" | "ionice" | "command", _) => at,
        ("stdbuf" | "env", _) if at > 0 => at,
        _ => return None,
    };
    // The next word must be a command.
    let next = texts.get(takes)?;
    (!next.is_empty() && !next.starts_with('-')).then_some(takes + 1)
}

/// The command that `xargs` runs, with the names that it passes.
fn by_xargs(
    command: &SimpleCommand,
    words: &[ShellWord],
    context: LineContext<'_>,
    working_dir: &WorkingDir,
    facts: &dyn Facts,
) -> Result<Vec<ShellWord>, String> {
    let odd = |word: &str| Err(format!("The option `{word}` of `xargs` is not known to be safe."));
    let mut rest = words;
    let (mut literal, mut replaced) = (false, None);
    while let [word, behind @ ..] = rest {
        let text = word.text.as_str();
        if !text.starts_with('-') {
            break;
        }
        if !word.is_exact() {
            return odd(text);
        }
        rest = behind;
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        match text {
            "-0" | "--null" => literal = true,
            "-r" | "--no-run-if-empty" => {}
            "-0r" | "-r0" => literal = true,
            "-n" | "-L" | "-P" => match rest {
                [count, behind @ ..] if digits(&count.text) => rest = behind,
                _ => return odd(text),
            },
            "-I" => match rest {
                [mark, behind @ ..] if mark.is_exact() && !mark.text.is_empty() => {
                    replaced = Some(mark.text.clone());
                    rest = behind;
                }
                _ => return odd(text),
            },
            _ if text.starts_with("-I") => replaced = Some(text[2..].to_owned()),
            "-d" => match rest {
                [mark, behind @ ..] if mark.text == "\\n" => {
                    literal = true;
                    rest = behind;
                }
                _ => return odd(text),
            },
            "-d\\n" => literal = true,
            _ if ["-n", "-L", "-P"].iter().any(|option| text.strip_prefix(option).is_some_and(digits)) => {}
            _ => return odd(text),
        }
    }
    let by = match &command.piped {
        Some(by) if !by.is_empty() && command.input.is_none() && !command.document => by,
        _ => return Err("capture cannot determine the input of `xargs`.".into()),
    };
    let scopes = Arc::new(listing::scopes(by, context, working_dir, !literal, facts)?);
    if rest.is_empty() {
        return Ok(vec![ShellWord::plain("echo")]);
    }
    match replaced {
        Some(mark) => with_names(rest, &mark, &scopes),
        // It may pass several names.
        None => {
            let mut all = rest.to_vec();
            all.extend([name(&scopes), name(&scopes)]);
            Ok(all)
        }
    }
}

fn name(scopes: &Arc<shell::Listed>) -> ShellWord {
    ShellWord { text: LISTED.to_owned(), listed: Some(Arc::clone(scopes)), ..ShellWord::default() }
}

/// The words with a file name in place of a marker.
fn with_names(words: &[ShellWord], mark: &str, scopes: &Arc<shell::Listed>) -> Result<Vec<ShellWord>, String> {
    let one = |(at, word): (usize, &ShellWord)| {
        if word.text == mark && at > 0 {
            return Ok(name(scopes));
        }
        if word.text.contains(mark) {
            return Err(format!("capture cannot judge `{}`, because a file name will be inserted into it.", word.text));
        }
        Ok(word.clone())
    };
    words.iter().enumerate().map(one).collect()
}
