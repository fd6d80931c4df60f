//! Parses a command line, or says why it cannot be analysed.
//!
//! The text must pass [`raw`], a white list of characters outside quotes; then it is parsed as bash
//! would ([`line`]), and every word is unquoted ([`words`]). What is left is the part of the
//! language in which bash, zsh and POSIX shells agree: plain and quoted words, pipes, lists, loops, conditions and groups,
//! and variables that the line itself gives a value. For rules that deny or ask, [`possible`] finds what any line may run.
//! Owns the analysis of syntax; knows no rule.

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

#[cfg(test)]
mod tests;
