//! The files that a program reads when it searches a directory, determined by its options, as an argument of
//! [`Facts::reached`].
//!
//! [`Facts::reached`]: crate::Facts::reached

use std::path::PathBuf;

/// A program that reads files below a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchScope {
    /// The directory below which it reads. Absolute, with links resolved.
    pub dir: PathBuf,
    /// The directory in which it runs; ripgrep's globs are relative to it.
    pub cwd: PathBuf,
    /// The files that it skips.
    pub reader: SearchReader,
    /// Set if the program prints the names of files and another program uses these names.
    pub named: Option<NamedFiles>,
}

/// What happens to the file names that a program prints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NamedFiles {
    /// Whether names are split into words. A file whose name contains a blank, a quote or a special character of the
    /// shell then counts as a secret.
    pub split: bool,
    /// Whether links are named too and their targets would be read. Such a link then counts as a secret.
    pub links: bool,
    /// Whether the files are read. Otherwise only their names are used.
    pub read: bool,
}

/// The files that a program skips by default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchReader {
    /// Skips only what its options say, as `grep -r` does.
    Everything(GrepFilter),
    /// Skips hidden and ignored files, as ripgrep does.
    Ripgrep(RipgrepOptions),
}

/// The files that `grep -r` skips. Empty: none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrepFilter {
    /// Read only files with these names (`--include`). Globs, matched case-insensitively.
    pub include: Vec<String>,
    /// Skip files with these names (`--exclude`). Globs.
    pub exclude: Vec<String>,
    /// Skip directories with these names (`--exclude-dir`). Globs.
    pub exclude_dir: Vec<String>,
}

/// The options of ripgrep that determine which files it reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RipgrepOptions {
    /// Whether it reads hidden files.
    pub hidden: bool,
    /// Whether it reads files that an ignore file names.
    pub ignored: bool,
    /// Whether it reads files that an ignore file of git names.
    pub ignored_by_git: bool,
    /// Whether it reads files that an ignore file above the directory names.
    pub ignored_above: bool,
    /// Whether it reads binary files.
    pub binary: bool,
    /// Globs in order, and whether each is matched case-insensitively.
    pub globs: Vec<(String, bool)>,
    /// Types of files to read.
    pub types: Vec<String>,
    /// Types of files to skip.
    pub types_not: Vec<String>,
}

impl NamedFiles {
    /// Whether the name of a file could be mistaken for an option or for several words.
    #[must_use]
    pub fn is_odd(self, path: &std::path::Path) -> bool {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return true };
        let plain = |c: char| c.is_alphanumeric() || "_-.,+@%=:~^".contains(c);
        let line = name.chars().all(|c| !c.is_control()) && name.trim() == name;
        name.starts_with('-') || !line || self.split && (!name.chars().all(plain) || name.starts_with('~'))
    }
}
