//! The world of an agent whose PATH is its own: a word means a program only when it means the same on
//! the PATH of the server's start.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use approver::{Below, Content, Facts};

use super::OnDisk;

/// What is so on the agent's PATH and on ours.
#[derive(Debug)]
pub struct AlsoOn<'a> {
    ours: &'a OnDisk,
    agents: OnDisk,
}

impl OnDisk {
    /// The same world, for an agent with this PATH.
    #[must_use]
    pub fn also_on(&self, path: &str) -> AlsoOn<'_> {
        AlsoOn { ours: self, agents: self.with_path(std::env::split_paths(OsStr::new(path)).collect()) }
    }
}

impl Facts for AlsoOn<'_> {
    fn program(&self, word: &str) -> Vec<PathBuf> {
        let (ours, agents) = (self.ours.program(word), self.agents.program(word));
        if ours == agents { ours } else { Vec::new() }
    }

    fn canonical(&self, path: &Path) -> Option<PathBuf> {
        self.ours.canonical(path)
    }

    fn read(&self, path: &Path, cap: usize) -> Content {
        self.ours.read(path, cap)
    }

    fn secrets_below(&self, dir: &Path) -> Below {
        self.ours.secrets_below(dir)
    }

    fn names(&self, dir: &Path, most: usize) -> Option<Vec<OsString>> {
        self.ours.names(dir, most)
    }

    fn is_directory(&self, path: &Path) -> bool {
        self.ours.is_directory(path)
    }

    fn is_private(&self, path: &Path) -> bool {
        self.ours.is_private(path)
    }

    fn home(&self) -> Option<PathBuf> {
        self.ours.home()
    }
}
