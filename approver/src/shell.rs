//! Parses a command line, or says why it cannot be analysed.
//!
//! The text must pass [`raw`], a white list of characters outside quotes; then it is parsed as bash
//! would ([`line`]), and every word is unquoted ([`words`]). What is left is the part of the
//! language in which bash, zsh and POSIX shells agree: plain and quoted words, pipes, lists, and
//! redirections to nothing. Owns the analysis of syntax; knows no program and no rule.

mod command;
mod line;
mod raw;
mod words;

pub(crate) use command::{CommandLine, Separator, ShellWord, SimpleCommand};
pub(crate) use line::understand;

#[cfg(test)]
mod tests;
