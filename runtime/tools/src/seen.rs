//! The files the model has seen, so that it never overwrites content it does not know.

use std::{
    collections::{HashMap, VecDeque},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

/// Maximum size of a content stored to show later changes to it, in bytes.
const CONTENT: usize = 256 * 1024;
/// Maximum total size of the stored contents, in bytes.
const CONTENTS: usize = 1024 * 1024;

/// A file as the model last saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenFile {
    /// The path, absolute and without links.
    pub path: PathBuf,
    /// BLAKE3 of its content, 64 hexadecimal digits.
    pub hash: String,
    /// Its size, in bytes.
    pub bytes: u64,
    /// When it was modified, in microseconds since 1970: pi does not store larger numbers exactly.
    #[serde(default)]
    pub modified_us: i64,
    /// The ranges of lines shown, first and last, counted from 1, sorted and disjoint.
    pub lines: Vec<(u64, u64)>,
    /// Whether the whole file was shown.
    pub whole: bool,
}

/// The model's knowledge of a file that is about to be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Knowledge {
    /// It has not seen the file.
    Unseen,
    /// It has seen this content, in whole or in part.
    Current {
        /// Whether it has seen all of the content.
        whole: bool,
    },
    /// It has seen an older content, which is still stored unless it was too long.
    Stale(Option<Vec<u8>>),
}

/// The files the model has seen.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SeenFiles {
    files: HashMap<PathBuf, SeenFile>,
    contents: VecDeque<(PathBuf, Vec<u8>)>,
}

impl SeenFiles {
    /// Records what was shown. Lines of the same content accumulate.
    pub(crate) fn record(&mut self, mut now: SeenFile, content: Option<&[u8]>) -> SeenFile {
        if let Some(before) = self.files.get(&now.path)
            && before.hash == now.hash
        {
            now.whole |= before.whole;
            now.lines = joined(before.lines.iter().chain(&now.lines).copied().collect());
        }
        if let Some(content) = content {
            self.keep(&now.path, content);
        }
        self.files.insert(now.path.clone(), now.clone());
        now
    }

    fn keep(&mut self, path: &Path, content: &[u8]) {
        self.contents.retain(|(of, _)| of != path);
        if content.len() > CONTENT {
            return;
        }
        self.contents.push_back((path.to_owned(), content.to_owned()));
        while self.contents.iter().map(|(_, content)| content.len()).sum::<usize>() > CONTENTS {
            self.contents.pop_front();
        }
    }

    /// The knowledge of a file whose current content has this hash.
    pub(crate) fn knowledge(&self, path: &Path, hash: &str) -> Knowledge {
        match self.files.get(path) {
            None => Knowledge::Unseen,
            Some(seen) if seen.hash == hash => Knowledge::Current { whole: seen.whole },
            Some(_) => {
                let kept = self.contents.iter().find(|(of, _)| of == path);
                Knowledge::Stale(kept.map(|(_, content)| content.clone()))
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        self.files.clear();
        self.contents.clear();
    }
}

#[cfg(test)]
impl SeenFiles {
    /// The files, in any order.
    pub(crate) fn files(&self) -> Vec<SeenFile> {
        self.files.values().cloned().collect()
    }

    /// A copy without modification times.
    pub(crate) fn without_times(mut self) -> Self {
        self.files.values_mut().for_each(|file| file.modified_us = 0);
        self
    }
}

/// Ranges sorted and disjoint.
fn joined(mut lines: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    lines.sort_unstable();
    let mut apart: Vec<(u64, u64)> = Vec::with_capacity(lines.len());
    for (first, last) in lines {
        match apart.last_mut() {
            Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
            Some(_) | None => apart.push((first, last)),
        }
    }
    apart
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(hash: &str, lines: (u64, u64), whole: bool) -> SeenFile {
        SeenFile { path: "/f".into(), hash: hash.into(), bytes: 1, modified_us: 1, lines: vec![lines], whole }
    }

    #[test]
    fn line_ranges_read_from_the_same_content_are_merged() {
        let mut files = SeenFiles::default();
        assert_eq!(files.knowledge(Path::new("/f"), "a"), Knowledge::Unseen);
        files.record(seen("a", (1, 10), false), None);
        let now = files.record(seen("a", (11, 20), false), None);
        assert_eq!(now.lines, [(1, 20)]);
        assert_eq!(files.record(seen("a", (30, 40), false), None).lines, [(1, 20), (30, 40)]);
        assert_eq!(files.knowledge(Path::new("/f"), "a"), Knowledge::Current { whole: false });
        assert_eq!(files.knowledge(Path::new("/f"), "b"), Knowledge::Stale(None));
        assert_eq!(files.record(seen("b", (2, 3), false), Some(b"x")).lines, [(2, 3)]);
        assert_eq!(files.knowledge(Path::new("/f"), "c"), Knowledge::Stale(Some(b"x".to_vec())));
    }

    #[test]
    fn remembered_file_contents_are_limited_in_size() {
        let mut files = SeenFiles::default();
        for number in 0..20 {
            let mut file = seen("a", (1, 1), true);
            file.path = format!("/{number}").into();
            files.record(file, Some(&vec![0; CONTENT]));
        }
        assert_eq!(files.contents.len(), CONTENTS / CONTENT);
        assert!(matches!(files.knowledge(Path::new("/0"), "z"), Knowledge::Stale(None)));
        assert!(matches!(files.knowledge(Path::new("/19"), "z"), Knowledge::Stale(Some(_))));
        files.record(seen("a", (1, 1), true), Some(&vec![0; CONTENT + 1]));
        assert!(matches!(files.knowledge(Path::new("/f"), "z"), Knowledge::Stale(None)));
    }
}
