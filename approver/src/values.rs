//! Substitutes the values of variables: a command with variables is judged once for each of its forms.

use std::sync::Arc;

use crate::{
    facts::Facts,
    listing,
    paths::WorkingDir,
    shell::{CommandLine, ShellWord, SimpleCommand, Value, WordPart},
    tools,
};

/// Maximum number of forms of a command that are judged.
const MAX_FORMS: usize = 256;

/// The text of a word that represents names printed by other commands. No command line can contain it.
pub(crate) const LISTED: &str = "\u{1}";

/// A line, and the directory in which each of its commands runs.
#[derive(Clone, Copy)]
pub(crate) struct LineContext<'a> {
    pub(crate) line: &'a CommandLine,
    pub(crate) places: &'a [Result<WorkingDir, String>],
}

/// The forms of a command: one for each combination of the values of its variables.
///
/// # Errors
/// A sentence that names the unknown value.
pub(crate) fn forms(
    command: &SimpleCommand,
    context: LineContext<'_>,
    working_dir: &WorkingDir,
    facts: &dyn Facts,
) -> Result<Vec<SimpleCommand>, String> {
    let mut all = vec![Vec::new()];
    for word in &command.words {
        let values = words(word, context, working_dir, facts)?;
        let mut more = Vec::new();
        for begun in &all {
            for value in &values {
                let mut form = begun.clone();
                form.push(value.clone());
                more.push(form);
            }
        }
        if more.len() > MAX_FORMS {
            return Err(format!("The words of the command have more than {MAX_FORMS} combinations of values."));
        }
        all = more;
    }
    Ok(all.into_iter().map(|words| SimpleCommand { words, ..command.clone() }).collect())
}

/// The possible values of a word.
///
/// # Errors
/// As for [`forms`].
pub(crate) fn words(
    word: &ShellWord,
    context: LineContext<'_>,
    working_dir: &WorkingDir,
    facts: &dyn Facts,
) -> Result<Vec<ShellWord>, String> {
    if word.parts.is_empty() {
        return Ok(vec![word.clone()]);
    }
    // `"$f"` alone may represent listed names.
    let parts: Vec<&WordPart> =
        word.parts.iter().filter(|part| !matches!(part, WordPart::Text(text) if text.is_empty())).collect();
    if let [WordPart::Value { value, quoted }] = parts.as_slice() {
        return value_words(word, value, *quoted, context, working_dir, facts);
    }
    let mut texts = vec![(String::new(), true)];
    for part in parts {
        let values = match part {
            WordPart::Text(text) => vec![(text.clone(), true)],
            WordPart::Value { value, quoted } => {
                let words = value_words(word, value, *quoted, context, working_dir, facts)?;
                if words.iter().any(|word| word.glob || word.listed.is_some()) {
                    return Err(format!("The word `{}` contains a file name that capture cannot determine.", word.raw));
                }
                words.into_iter().map(|word| (word.text, !word.unknown)).collect()
            }
        };
        texts = texts
            .iter()
            .flat_map(|(text, known)| values.iter().map(move |(more, also)| (format!("{text}{more}"), *known && *also)))
            .collect();
        if texts.len() > MAX_FORMS {
            return Err(format!("The word `{}` has more than {MAX_FORMS} possible values.", word.raw));
        }
    }
    Ok(texts.into_iter().map(|(text, known)| made(word, text, known)).collect())
}

fn made(word: &ShellWord, text: String, known: bool) -> ShellWord {
    let text = if known { text } else { word.raw.clone() };
    ShellWord { text, raw: word.raw.clone(), bare: false, unknown: !known, ..ShellWord::default() }
}

fn value_words(
    word: &ShellWord,
    value: &Value,
    quoted: bool,
    context: LineContext<'_>,
    working_dir: &WorkingDir,
    facts: &dyn Facts,
) -> Result<Vec<ShellWord>, String> {
    let listed = |by: &[usize], split: bool| -> Result<Vec<ShellWord>, String> {
        let scopes = listing::scopes(by, context, working_dir, split, facts)?;
        Ok(vec![ShellWord {
            listed: Some(Arc::new(scopes)),
            text: LISTED.to_owned(),
            ..made(word, LISTED.to_owned(), true)
        }])
    };
    let texts = match value {
        // An exit status is a number; other unknown values are accepted only in quotes.
        Value::Unknown => return Ok(vec![made(word, String::new(), false)]),
        Value::Line(by) => {
            return if quoted {
                listed(by, false).or_else(|_| Ok(vec![made(word, String::new(), false)]))
            } else {
                listed(by, true)
            };
        }
        Value::Printed(by) => return listed(by, true),
        Value::Home => vec![path(facts.home())?],
        Value::Directory => match working_dir.bases.as_slice() {
            [dir] if working_dir.certain => vec![path(Some(dir.clone()))?],
            _ => return Ok(vec![made(word, String::new(), false)]),
        },
        Value::Toplevel => vec![toplevel(working_dir, facts)?],
        Value::OneOf(words) => {
            let mut all = Vec::new();
            for value in words {
                for value in self::words(value, context, working_dir, facts)? {
                    if value.listed.is_some() || value.unknown {
                        if words.len() > 1 {
                            return Err(format!("capture cannot determine the value of `{}`.", word.raw));
                        }
                        return Ok(vec![ShellWord {
                            raw: word.raw.clone(),
                            text: if value.unknown { word.raw.clone() } else { value.text.clone() },
                            ..value
                        }]);
                    }
                    if value.glob {
                        all.extend(tools::expanded(&value, working_dir, facts)?);
                    } else {
                        all.push(value.text);
                    }
                }
            }
            all
        }
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:,+@%=-".contains(c);
    if let Some(text) = texts.iter().find(|text| !quoted && (text.is_empty() || !text.chars().all(plain))) {
        return Err(format!("The value `{text}` of `{}` contains special characters or is empty.", word.raw));
    }
    Ok(texts.into_iter().map(|text| made(word, text, true)).collect())
}

fn path(path: Option<std::path::PathBuf>) -> Result<String, String> {
    path.and_then(|path| path.into_os_string().into_string().ok())
        .ok_or_else(|| "capture cannot determine the path of a directory.".into())
}

/// The top of the session's repository, if the command runs in it.
fn toplevel(working_dir: &WorkingDir, facts: &dyn Facts) -> Result<String, String> {
    let is_top = |dir: &std::path::Path| facts.read(&dir.join(".git"), 0) != crate::facts::FileContent::Missing;
    let inside = |dir: &&std::path::Path| dir.starts_with(&working_dir.workspace);
    for base in &working_dir.bases {
        // Without a repository git prints nothing, so the top of the workspace can be assumed.
        let top = base.ancestors().take_while(inside).find(|dir| is_top(dir));
        if !working_dir.certain || top.is_some_and(|top| top != working_dir.workspace) {
            return Err("The repository's top directory is not the workspace.".into());
        }
    }
    path(Some(working_dir.workspace.clone()))
}
