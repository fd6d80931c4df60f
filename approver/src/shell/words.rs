//! Removes the quotes of words, by the pieces the parser reports.

use brush_parser::{
    ParserOptions,
    word::{Parameter, ParameterExpr, SpecialParameter, WordPiece, WordPieceWithSource, parse},
};

use crate::shell::command::ShellWord;

/// Unquotes a word.
///
/// # Errors
/// A sentence that names the piece that is not understood.
pub(super) fn unquote(raw: &str, options: &ParserOptions) -> Result<ShellWord, String> {
    let pieces = parse(raw, options).map_err(|_| format!("The word `{raw}` is not understood."))?;
    let mut word = ShellWord { text: String::new(), bare: true, zsh: false, glob: false, status: None };
    let mut end = 0;
    for WordPieceWithSource { piece, start_index, end_index } in pieces {
        if start_index != end {
            return Err(format!("The word `{raw}` is not understood."));
        }
        end = end_index;
        take(&piece, &mut word)?;
    }
    if word.status.is_some() {
        word.status = Some(raw.to_owned());
    }
    if word.glob && !is_glob(raw) {
        return Err("The command line has a pattern of file names.".into());
    }
    // Every character of it must be accounted for.
    if end != raw.chars().count() {
        return Err(format!("The word `{raw}` is not understood."));
    }
    Ok(word)
}

fn take(piece: &WordPiece, word: &mut ShellWord) -> Result<(), String> {
    match piece {
        WordPiece::ParameterExpansion(parameter) if is_status(parameter) => {
            word.bare = false;
            word.status = Some(String::new());
            word.text.push_str("$?");
        }
        WordPiece::Text(text) => {
            word.glob |= text.contains('*');
            if let Some(c) = text.chars().find(|c| !is_plain(*c) && *c != '*') {
                let alone = matches!(text.as_str(), "!" | "[" | "]");
                if !alone {
                    return Err(format!("The command line has an unquoted `{c}`."));
                }
            }
            word.zsh |= text.contains(['~', '^']);
            word.text.push_str(text);
        }
        WordPiece::SingleQuotedText(text) => {
            word.bare = false;
            word.text.push_str(text);
        }
        WordPiece::EscapeSequence(text) => {
            word.bare = false;
            word.text.push_str(escaped(text)?);
        }
        WordPiece::DoubleQuotedSequence(pieces) => {
            word.bare = false;
            let last = pieces.len().saturating_sub(1);
            for (index, piece) in pieces.iter().enumerate() {
                match &piece.piece {
                    WordPiece::ParameterExpansion(parameter) if is_status(parameter) => {
                        word.status = Some(String::new());
                        word.text.push_str("$?");
                    }
                    WordPiece::Text(text) => word.text.push_str(quoted(text, index == last)?),
                    WordPiece::EscapeSequence(text) => word.text.push_str(escaped(text)?),
                    WordPiece::SingleQuotedText(_)
                    | WordPiece::DoubleQuotedSequence(_)
                    | WordPiece::AnsiCQuotedText(_)
                    | WordPiece::GettextDoubleQuotedSequence(_)
                    | WordPiece::TildeExpansion(_)
                    | WordPiece::ParameterExpansion(_)
                    | WordPiece::CommandSubstitution(_)
                    | WordPiece::BackquotedCommandSubstitution(_)
                    | WordPiece::ArithmeticExpression(_) => return Err(refusal(&piece.piece)),
                }
            }
        }
        WordPiece::AnsiCQuotedText(_)
        | WordPiece::GettextDoubleQuotedSequence(_)
        | WordPiece::TildeExpansion(_)
        | WordPiece::ParameterExpansion(_)
        | WordPiece::CommandSubstitution(_)
        | WordPiece::BackquotedCommandSubstitution(_)
        | WordPiece::ArithmeticExpression(_) => return Err(refusal(piece)),
    }
    Ok(())
}

/// Whether it is the exit status of the command before, as plain as it can be.
const fn is_status(parameter: &ParameterExpr) -> bool {
    matches!(
        parameter,
        ParameterExpr::Parameter { parameter: Parameter::Special(SpecialParameter::LastExitStatus), indirect: false }
    )
}

/// Whether a word is a pattern on which shells agree: plain directories, then a name with `*`. One
/// that begins with a dot may mean `..`, and with a dash an option.
fn is_glob(raw: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let Some((dirs, name)) = raw.rsplit_once('/') else {
        return !raw.starts_with(['-', '.']) && !raw.contains("**") && raw.chars().all(|c| plain(c) || c == '*');
    };
    let is_dir = |dir: &str| !dir.is_empty() && !dir.starts_with(['-', '.']) && dir.chars().all(plain);
    dirs.split('/').all(is_dir) && name.chars().all(|c| plain(c) || c == '*') && !name.starts_with('.')
}

const fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':' | ',' | '+' | '@' | '%' | '=' | '~' | '^')
}

/// What an escape stands for.
fn escaped(sequence: &str) -> Result<&str, String> {
    let rest = sequence.strip_prefix('\\').unwrap_or_default();
    let one = rest.len() == 1 && rest.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
    if one { Ok(rest) } else { Err("The command line has an escape that is not understood.".into()) }
}

/// Text in double quotes: a backslash before a plain character is itself, a `$` only at the end.
fn quoted(text: &str, last: bool) -> Result<&str, String> {
    let body = if last { text.strip_suffix('$').unwrap_or(text) } else { text };
    match body.chars().find(|c| matches!(c, '$' | '`' | '!' | '"')) {
        Some(c) => Err(format!("The command line has a `{c}` in double quotes.")),
        None => Ok(text),
    }
}

fn refusal(piece: &WordPiece) -> String {
    let what = match piece {
        WordPiece::AnsiCQuotedText(_) | WordPiece::GettextDoubleQuotedSequence(_) => "a quote with `$`",
        WordPiece::TildeExpansion(_) => "a home directory (`~`)",
        WordPiece::ParameterExpansion(_) => "a variable",
        WordPiece::CommandSubstitution(_) | WordPiece::BackquotedCommandSubstitution(_) => "a command substitution",
        WordPiece::ArithmeticExpression(_) => "arithmetic",
        WordPiece::Text(_)
        | WordPiece::SingleQuotedText(_)
        | WordPiece::DoubleQuotedSequence(_)
        | WordPiece::EscapeSequence(_) => "a quote in a quote",
    };
    format!("The command line has {what}.")
}
