//! Reduces the syntax tree of a line to the few forms that are supported.

use brush_parser::{Parser, ParserOptions, ast};

use super::{raw, words::unquote};
use crate::shell::command::{CommandLine, MAX_COMMANDS, Separator, ShellWord, SimpleCommand};

/// Understands a line; one `bash -c` around it is taken off.
///
/// # Errors
/// A sentence that names what is not understood.
pub(crate) fn understand(text: &str) -> Result<CommandLine, String> {
    let line = parse(text)?;
    let Some((wrapper, inner)) = unwrap(&line) else { return Ok(line) };
    let inner = parse(&inner)?;
    if unwrap(&inner).is_some() {
        return Err("The command line runs a shell within a shell.".into());
    }
    Ok(CommandLine { wrapper: Some(wrapper), ..inner })
}

/// The words of `bash -c WORD` before the last, and the last, when that is all there is.
fn unwrap(line: &CommandLine) -> Option<(Vec<ShellWord>, String)> {
    let [SimpleCommand { words, redirects, input: None, .. }] = line.commands.as_slice() else { return None };
    let [shell, option, inner] = words.as_slice() else { return None };
    let name = shell.text.strip_prefix("/usr/bin/").or(shell.text.strip_prefix("/bin/")).unwrap_or(&shell.text);
    let wraps = shell.bare
        && matches!(name, "bash" | "sh" | "zsh")
        && matches!(option.text.as_str(), "-c" | "-lc")
        && redirects.is_empty()
        && inner.is_exact();
    wraps.then(|| (vec![shell.clone(), option.clone()], inner.text.clone()))
}

fn parse(text: &str) -> Result<CommandLine, String> {
    raw::check(text)?;
    let options = ParserOptions::default();
    let mut parser = Parser::new(std::io::Cursor::new(text), &options);
    let program = parser.parse_program().map_err(|_| "The command line cannot be parsed.".to_owned())?;
    let [list] = program.complete_commands.as_slice() else {
        return Err(match program.complete_commands.len() {
            0 => "The command line is empty.",
            _ => "The command line has more than one line.",
        }
        .into());
    };
    let mut commands = Vec::new();
    let last = list.0.len().saturating_sub(1);
    for (index, ast::CompoundListItem(and_or, separator)) in list.0.iter().enumerate() {
        match separator {
            ast::SeparatorOperator::Sequence => {}
            ast::SeparatorOperator::Async => return Err("The command line runs a command in the background.".into()),
        }
        pipeline(&and_or.first, &options, &mut commands)?;
        for more in &and_or.additional {
            let (then, next) = match more {
                ast::AndOr::And(next) => (Separator::And, next),
                ast::AndOr::Or(next) => (Separator::Or, next),
            };
            join(&mut commands, then);
            pipeline(next, &options, &mut commands)?;
        }
        if index < last {
            join(&mut commands, Separator::Next);
        }
    }
    if commands.is_empty() {
        return Err("The command line is empty.".into());
    }
    Ok(CommandLine { commands, wrapper: None })
}

fn join(commands: &mut [SimpleCommand], then: Separator) {
    if let Some(last) = commands.last_mut() {
        last.then = then;
    }
}

fn pipeline(
    pipeline: &ast::Pipeline,
    options: &ParserOptions,
    commands: &mut Vec<SimpleCommand>,
) -> Result<(), String> {
    if pipeline.bang {
        return Err("The command line has a `!`.".into());
    }
    if pipeline.timed.is_some() {
        return Err("The command line has `time`.".into());
    }
    for (index, command) in pipeline.seq.iter().enumerate() {
        if index > 0 {
            join(commands, Separator::Pipe);
        }
        if commands.len() == MAX_COMMANDS {
            return Err(format!("The command line has more than {MAX_COMMANDS} commands."));
        }
        commands.push(simple(command, options)?);
    }
    Ok(())
}

fn simple(command: &ast::Command, options: &ParserOptions) -> Result<SimpleCommand, String> {
    let command = match command {
        ast::Command::Simple(command) => command,
        ast::Command::Compound(..) => return Err("The command line has control flow, a group or a subshell.".into()),
        ast::Command::Function(_) => return Err("The command line defines a function.".into()),
        ast::Command::ExtendedTest(..) => return Err("The command line has `[[`.".into()),
    };
    let mut simple = SimpleCommand { words: Vec::new(), redirects: Vec::new(), input: None, then: Separator::End };
    // `export a=b` is not an assignment to the parser's mind but one of its words.
    let mut item = |item: &ast::CommandPrefixOrSuffixItem, prefix: bool| {
        match item {
            ast::CommandPrefixOrSuffixItem::IoRedirect(redirect) if prefix => {
                let _ = redirect;
                return Err("The command line has a redirection before the command.".to_owned());
            }
            ast::CommandPrefixOrSuffixItem::IoRedirect(ast::IoRedirect::File(
                None | Some(0),
                ast::IoFileRedirectKind::Read,
                ast::IoFileRedirectTarget::Filename(word),
            )) => {
                let word = unquote(&word.value, options)?;
                if simple.input.is_some() || !word.is_exact() || word.zsh || word.text.is_empty() {
                    return Err("The command line reads input from a file that is not named plainly.".to_owned());
                }
                simple.input = Some(word);
            }
            ast::CommandPrefixOrSuffixItem::IoRedirect(redirect) => {
                simple.redirects.push(self::redirect(redirect, options)?);
            }
            ast::CommandPrefixOrSuffixItem::AssignmentWord(..) if prefix => {
                return Err("The command line has an assignment.".to_owned());
            }
            ast::CommandPrefixOrSuffixItem::Word(word) | ast::CommandPrefixOrSuffixItem::AssignmentWord(_, word) => {
                simple.words.push(unquote(&word.value, options)?);
            }
            ast::CommandPrefixOrSuffixItem::ProcessSubstitution(..) => {
                return Err("The command line has a process substitution.".to_owned());
            }
        }
        Ok(())
    };
    for prefix in command.prefix.iter().flat_map(|prefix| &prefix.0) {
        item(prefix, true)?;
    }
    if let Some(word) = &command.word_or_name {
        item(&ast::CommandPrefixOrSuffixItem::Word(word.clone()), false)?;
    }
    for suffix in command.suffix.iter().flat_map(|suffix| &suffix.0) {
        item(suffix, false)?;
    }
    if simple.words.is_empty() { Err("The command line contains an empty command.".into()) } else { Ok(simple) }
}

fn redirect(redirect: &ast::IoRedirect, options: &ParserOptions) -> Result<&'static str, String> {
    use ast::{IoFileRedirectKind as RequestKind, IoFileRedirectTarget as Target, IoRedirect as Io};
    match redirect {
        Io::File(fd, RequestKind::Write, Target::Filename(word)) => {
            let word = unquote(&word.value, options)?;
            match (fd, word.text.as_str(), word.bare) {
                (None, "/dev/null", true) => Ok(">/dev/null"),
                (Some(2), "/dev/null", true) => Ok("2>/dev/null"),
                (_, target, _) => Err(format!("The command line writes to `{target}`.")),
            }
        }
        Io::File(Some(2), RequestKind::DuplicateOutput, Target::Fd(1)) => Ok("2>&1"),
        Io::File(Some(2), RequestKind::DuplicateOutput, Target::Duplicate(word)) if word.value == "1" => Ok("2>&1"),
        Io::File(..) | Io::OutputAndError(..) => Err("The command line has a redirection.".into()),
        Io::HereDocument(..) => Err("The command line has a here-document.".into()),
        Io::HereString(..) => Err("The command line has a here-string.".into()),
    }
}
