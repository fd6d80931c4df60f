//! Which files a program reads that searches a directory, by its options, as [`Facts::reached`] takes them.
//!
//! [`Facts::reached`]: crate::Facts::reached

use std::path::PathBuf;

/// A program that reads files below a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchScope {
    /// The directory below which it reads. Absolute, links resolved.
    pub dir: PathBuf,
    /// The directory in which it runs, from which the globs of ripgrep count.
    pub cwd: PathBuf,
    /// What it passes over.
    pub reader: SearchReader,
    /// Set when the program does not read the files but prints their names, and another reads what is named.
    pub named: Option<NamedFiles>,
}

/// What happens to the names of files that a program prints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NamedFiles {
    /// A name with a blank, a quote or a sign of the shell's would be taken for another: such a file counts as a secret.
    pub split: bool,
    /// Links are named too, and what they lead to would be read: such a link counts as a secret.
    pub links: bool,
    /// The files are read. Otherwise only their names count.
    pub read: bool,
}

/// What a program passes over by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchReader {
    /// Nothing but what its options say, as `grep -r` has them.
    Everything(GrepFilter),
    /// What is hidden or ignored, as ripgrep has it.
    Ripgrep(RipgrepOptions),
}

/// The files that `grep -r` leaves out. Empty: none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrepFilter {
    /// Only files of these names, `--include`. Globs, matched without regard to case.
    pub include: Vec<String>,
    /// No files of these names, `--exclude`. Globs.
    pub exclude: Vec<String>,
    /// Nothing below directories of these names, `--exclude-dir`. Globs.
    pub exclude_dir: Vec<String>,
}

/// The options of ripgrep that decide what it reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RipgrepOptions {
    /// Hidden files too.
    pub hidden: bool,
    /// Files that an ignore file names, too.
    pub ignored: bool,
    /// Files that an ignore file of git names, too.
    pub ignored_by_git: bool,
    /// Files that an ignore file above the directory names, too.
    pub ignored_above: bool,
    /// Binary files too.
    pub binary: bool,
    /// Globs in order, and whether each is matched without regard to case.
    pub globs: Vec<(String, bool)>,
    /// Types of files to read.
    pub types: Vec<String>,
    /// Types of files to leave out.
    pub types_not: Vec<String>,
}

impl NamedFiles {
    /// Whether the name of a file would be taken for something else: an option, or several words.
    #[must_use]
    pub fn is_odd(self, path: &std::path::Path) -> bool {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return true };
        let plain = |c: char| c.is_alphanumeric() || "_-.,+@%=:~^".contains(c);
        let line = name.chars().all(|c| !c.is_control()) && name.trim() == name;
        name.starts_with('-') || !line || self.split && (!name.chars().all(plain) || name.starts_with('~'))
    }
}
