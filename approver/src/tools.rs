//! The tables of programs: which are read-only, and with which options. The tables are data (`tools/*.toml`;
//! `README.md` is their manual). An option that is not in a table, an abbreviation, or a letter in a bundle that is
//! not, is not known.

mod arguments;
mod grammar;
mod judge;
mod scripts;
mod search;
mod table;

pub(crate) use judge::{GitSubcommand, ReadOnlyCommand, judge, judge_git, outside, resolved};
pub(crate) use table::{PrintsContents, tool};

#[cfg(test)]
mod tests;
