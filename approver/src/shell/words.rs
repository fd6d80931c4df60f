//! Removes quotes from words, using the pieces that the parser reports.

use brush_parser::{
    ParserOptions,
    word::{Parameter, ParameterExpr, SpecialParameter, WordPiece, WordPieceWithSource, parse},
};

use crate::shell::command::{ShellWord, Value, WordPart};

/// The values of variables and substitutions at the position of a word.
pub(super) trait Values {
    /// The value of a variable.
    ///
    /// # Errors
    /// A sentence, if nothing is known about it.
    fn variable(&mut self, name: &str, quoted: bool) -> Result<Value, String>;

    /// The output of a command line.
    ///
    /// # Errors
    /// A sentence that names the unsupported part.
    fn substitution(&mut self, script: &str, quoted: bool) -> Result<Value, String>;
}

/// Unquotes a word.
///
/// # Errors
/// A sentence that names the unsupported piece.
pub(super) fn unquote(raw: &str, options: &ParserOptions, values: &mut dyn Values) -> Result<ShellWord, String> {
    let pieces = parse(raw, options).map_err(|_| format!("capture cannot parse the word `{raw}`."))?;
    let mut word = ShellWord { bare: true, raw: raw.to_owned(), ..ShellWord::default() };
    let mut end = 0;
    for WordPieceWithSource { piece, start_index, end_index } in pieces {
        if start_index != end {
            return Err(format!("capture cannot parse the word `{raw}`."));
        }
        end = end_index;
        take(&piece, &mut word, values)?;
    }
    // The pieces must cover every character of the word.
    if end != raw.chars().count() {
        return Err(format!("capture cannot parse the word `{raw}`."));
    }
    if word.glob && (!is_glob(raw) || word.parts.iter().any(|part| matches!(part, WordPart::Value { .. }))) {
        return Err("The command line has a pattern of file names.".into());
    }
    if word.parts.iter().any(|part| matches!(part, WordPart::Value { .. })) {
        raw.clone_into(&mut word.text);
    } else {
        word.parts.clear();
    }
    Ok(word)
}

impl ShellWord {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        match self.parts.last_mut() {
            Some(WordPart::Text(last)) => last.push_str(text),
            Some(WordPart::Value { .. }) | None => self.parts.push(WordPart::Text(text.to_owned())),
        }
    }

    fn push_value(&mut self, value: Value, quoted: bool) {
        self.bare = false;
        self.parts.push(WordPart::Value { value, quoted });
    }
}

fn take(piece: &WordPiece, word: &mut ShellWord, values: &mut dyn Values) -> Result<(), String> {
    match piece {
        WordPiece::ParameterExpansion(parameter) => {
            let value = expansion(parameter, false, values)?;
            word.push_value(value, false);
        }
        WordPiece::CommandSubstitution(script) => {
            let value = values.substitution(script, false)?;
            word.push_value(value, false);
        }
        WordPiece::Text(text) => {
            word.glob |= text.contains('*');
            // A placeholder that `find` and `xargs` replace with a name.
            if let Some(c) = text.replace("{}", "").chars().find(|c| !is_plain(*c) && *c != '*') {
                let alone = matches!(text.as_str(), "!" | "[" | "]");
                if !alone {
                    return Err(format!("The command line has an unquoted `{c}`."));
                }
            }
            word.zsh |= text.contains(['~', '^']);
            word.push(text);
        }
        WordPiece::SingleQuotedText(text) => {
            word.bare = false;
            word.push(text);
        }
        WordPiece::EscapeSequence(text) => {
            word.bare = false;
            word.push(escaped(text)?);
        }
        WordPiece::DoubleQuotedSequence(pieces) => {
            word.bare = false;
            word.push("");
            let last = pieces.len().saturating_sub(1);
            for (index, piece) in pieces.iter().enumerate() {
                match &piece.piece {
                    WordPiece::ParameterExpansion(parameter) => {
                        let value = expansion(parameter, true, values)?;
                        word.push_value(value, true);
                    }
                    WordPiece::CommandSubstitution(script) => {
                        let value = values.substitution(script, true)?;
                        word.push_value(value, true);
                    }
                    WordPiece::Text(text) => word.push(quoted(text, index == last)?),
                    WordPiece::EscapeSequence(text) => word.push(escaped(text)?),
                    WordPiece::SingleQuotedText(_)
                    | WordPiece::DoubleQuotedSequence(_)
                    | WordPiece::AnsiCQuotedText(_)
                    | WordPiece::GettextDoubleQuotedSequence(_)
                    | WordPiece::TildeExpansion(_)
                    | WordPiece::BackquotedCommandSubstitution(_)
                    | WordPiece::ArithmeticExpression(_) => return Err(refusal(&piece.piece)),
                }
            }
        }
        WordPiece::AnsiCQuotedText(_)
        | WordPiece::GettextDoubleQuotedSequence(_)
        | WordPiece::TildeExpansion(_)
        | WordPiece::BackquotedCommandSubstitution(_)
        | WordPiece::ArithmeticExpression(_) => return Err(refusal(piece)),
    }
    Ok(())
}

#[expect(clippy::wildcard_enum_match_arm, reason = "of the parser's many forms only these are known")]
fn expansion(expression: &ParameterExpr, quoted: bool, values: &mut dyn Values) -> Result<Value, String> {
    match expression {
        ParameterExpr::Parameter { parameter: Parameter::Named(name), indirect: false } => {
            values.variable(name, quoted)
        }
        // The exit status of the previous command: a number.
        ParameterExpr::Parameter {
            parameter: Parameter::Special(SpecialParameter::LastExitStatus),
            indirect: false,
        } => Ok(Value::Unknown),
        _ => Err("The command line has an expansion other than a plain variable.".into()),
    }
}

/// Whether a word is a pattern on which shells agree: plain directories, then a name with `*`. A pattern that begins
/// with a dot may match `..`, and one that begins with a dash may match an option.
fn is_glob(raw: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let raw = raw.strip_prefix("./").unwrap_or(raw);
    let Some((dirs, name)) = raw.rsplit_once('/') else {
        return !raw.starts_with(['-', '.']) && !raw.contains("**") && raw.chars().all(|c| plain(c) || c == '*');
    };
    let is_dir = |dir: &str| !dir.is_empty() && !dir.starts_with(['-', '.']) && dir.chars().all(plain);
    dirs.split('/').all(is_dir) && name.chars().all(|c| plain(c) || c == '*') && !name.starts_with('.')
}

const fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':' | ',' | '+' | '@' | '%' | '=' | '~' | '^')
}

/// The character that an escape represents.
fn escaped(sequence: &str) -> Result<&str, String> {
    let rest = sequence.strip_prefix('\\').unwrap_or_default();
    let one = rest.len() == 1 && rest.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
    if one { Ok(rest) } else { Err("capture cannot parse an escape sequence of the command line.".into()) }
}

/// Text in double quotes: a backslash before a plain character is literal, a `$` only at the end.
fn quoted(text: &str, last: bool) -> Result<&str, String> {
    let body = if last { text.strip_suffix('$').unwrap_or(text) } else { text };
    match body.chars().find(|c| matches!(c, '$' | '`' | '"')) {
        Some(c) => Err(format!("The command line has a `{c}` in double quotes.")),
        None => Ok(text),
    }
}

fn refusal(piece: &WordPiece) -> String {
    let what = match piece {
        WordPiece::AnsiCQuotedText(_) | WordPiece::GettextDoubleQuotedSequence(_) => "a quote with `$`",
        WordPiece::TildeExpansion(_) => "a home directory (`~`)",
        WordPiece::BackquotedCommandSubstitution(_) => "a command substitution in backquotes",
        WordPiece::ArithmeticExpression(_) => "arithmetic",
        WordPiece::ParameterExpansion(_)
        | WordPiece::CommandSubstitution(_)
        | WordPiece::Text(_)
        | WordPiece::SingleQuotedText(_)
        | WordPiece::DoubleQuotedSequence(_)
        | WordPiece::EscapeSequence(_) => "a quote in a quote",
    };
    format!("The command line has {what}.")
}
