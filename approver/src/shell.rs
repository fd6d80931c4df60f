//! Parses a command line, or states why it cannot be analysed.
//!
//! First, the text must pass [`raw`], a list of characters that are allowed outside quotes. Then it is parsed as bash
//! would ([`line`]), and every word is unquoted ([`words`]). Only the part of the language in which bash, zsh and POSIX
//! shells agree is accepted: plain and quoted words, pipes, lists, loops, conditions and groups, and variables to which
//! the line itself assigns a value. For rules that deny or ask, [`possible`] finds the commands that any line may run.
//! The module owns the analysis of syntax and does not depend on rules.

mod command;
mod environment;
mod line;
mod possible;
mod raw;
mod words;

pub(crate) use command::{
    CommandLine, LineNode, Listed, Possible, Separator, ShellWord, SimpleCommand, Value, WordPart,
};
pub(crate) use environment::{is_harmless, is_usual};
pub(crate) use line::understand;
pub(crate) use possible::{PossibleCommand, PossibleCommands, PossibleRedirect, find as possible_commands};

/// Whether a shell may expand parts of a command line, so that its text does not name all files it uses.
#[must_use]
pub fn may_expand(command: &str) -> bool {
    command.contains(['$', '`', '~', '*', '?', '[', '{', '<', '\\'])
}

#[cfg(test)]
mod tests;
