//! The tables of programs: which programs only read, and with which options. The tables are data (`tools/*.toml`;
//! `README.md` is their manual). An option, an abbreviation or a letter of a bundle that is not in a table is unknown.

mod arguments;
mod grammar;
mod judge;
mod scripts;
mod search;
mod table;

pub(crate) use grammar::{found_by, without_actions};
pub(crate) use judge::{
    GitSubcommand, ReadOnlyCommand, arguments, expanded, judge, judge_git, judge_work, outside, resolved,
};
pub(crate) use search::reader;
pub(crate) use table::{PrintsContents, build, change, is_build, tool};

#[cfg(test)]
mod tests;
