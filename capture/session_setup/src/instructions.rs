//! Files with instructions for agents (<https://agents.md>): the user's own, and those of the repository from its top
//! down to the working directory, one per directory. The model gets them in a message that names their origin.
//!
//! A repository may be untrusted: its files are read only if the tool `read` could read them without asking, so a link
//! that leads out of the workspace or to a secret is not followed.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use engine::{InstructionFile, InstructionOrigin};
use rustix::fs::OFlags;

/// Maximum total size of the files, in bytes, as in Codex (`project_doc_max_bytes`).
const MOST: usize = 32 * 1024;
/// File names in order of precedence; only the first existing one is read.
const NAMES: [&str; 2] = ["AGENTS.override.md", "AGENTS.md"];

/// Where to search for instructions.
pub(crate) struct InstructionPlaces<'a> {
    /// The user's own file.
    pub(crate) own: &'a Path,
    /// The top of the repository.
    pub(crate) workspace: &'a Path,
    /// The working directory.
    pub(crate) cwd: &'a Path,
    /// Names of further instruction files in a directory.
    pub(crate) names: &'a [String],
}

/// The instructions, and notes for the user.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FoundInstructions {
    /// The files, the most general first.
    pub(crate) files: Vec<InstructionFile>,
    /// Files that were not read, or not completely, with the reason.
    pub(crate) notes: Vec<String>,
}

/// Finds and reads the files. `may_read` decides about a file of the repository, by its path without links; `clean`
/// removes secrets from a text.
pub(crate) fn find(
    places: &InstructionPlaces<'_>,
    may_read: impl Fn(&Path) -> bool,
    clean: impl Fn(&str) -> String,
) -> FoundInstructions {
    let mut found = FoundInstructions::default();
    let mut left = MOST;
    found.take(places.own, InstructionOrigin::User, &mut left, &clean);
    let mut directories: Vec<&Path> =
        places.cwd.ancestors().take_while(|directory| directory.starts_with(places.workspace)).collect();
    directories.reverse();
    for directory in directories {
        let names = NAMES.into_iter().chain(places.names.iter().map(String::as_str));
        let Some(path) = names.map(|name| directory.join(name)).find(|path| path.symlink_metadata().is_ok()) else {
            continue;
        };
        match path.canonicalize() {
            Ok(real) if may_read(&real) => found.take(&real, InstructionOrigin::Repository, &mut left, &clean),
            Ok(_) => found.notes.push(format!("{} is not read: it needs your permission", path.display())),
            Err(error) => found.notes.push(format!("{} is not read: {error}", path.display())),
        }
    }
    found
}

impl FoundInstructions {
    fn take(&mut self, path: &Path, origin: InstructionOrigin, left: &mut usize, clean: &impl Fn(&str) -> String) {
        let bytes = match read(path, *left) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return,
            Err(error) => return self.notes.push(format!("{} is not read: {error}", path.display())),
        };
        let is_whole = bytes.len() <= *left;
        let mut text = String::from_utf8_lossy(&bytes[..bytes.len().min(*left)]).into_owned();
        *left = left.saturating_sub(bytes.len());
        if !is_whole {
            let note = format!("{} is cut: all instructions together may total {} KiB", path.display(), MOST / 1024);
            text.push_str("\n[The rest is left out.]");
            self.notes.push(note);
        }
        if !text.trim().is_empty() {
            self.files.push(InstructionFile { origin, path: path.to_string_lossy().into_owned(), text: clean(&text) });
        }
    }
}

/// The first bytes of a file, one more than the limit if it is longer; `None` if the file does not exist.
fn read(path: &Path, limit: usize) -> io::Result<Option<Vec<u8>>> {
    // Prevents blocking if the path is a FIFO.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = match File::options().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink, path::PathBuf};

    use super::*;

    /// A repository with a directory, and the files in it that may be read.
    struct Place {
        dir: tempfile::TempDir,
        names: Vec<String>,
    }

    impl Place {
        fn new(files: &[(&str, &str)]) -> Self {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir_all(dir.path().join("repo/a/b")).unwrap();
            let place = Self { dir, names: Vec::new() };
            for (path, text) in files {
                fs::write(place.path(path), text).unwrap();
            }
            place
        }

        fn path(&self, path: &str) -> PathBuf {
            self.dir.path().canonicalize().unwrap().join(path)
        }

        fn find(&self) -> FoundInstructions {
            let (own, workspace, cwd) = (self.path("own.md"), self.path("repo"), self.path("repo/a/b"));
            let places = InstructionPlaces { own: &own, workspace: &workspace, cwd: &cwd, names: &self.names };
            let may_read = |path: &Path| path.starts_with(&workspace) && !path.ends_with(".env");
            find(&places, may_read, |text| text.replace("SECRET", "…"))
        }

        #[track_caller]
        fn check(&self, expected: &[(&str, &str)]) {
            let root = self.path("");
            let found = self.find();
            let told: Vec<(String, String)> = found
                .files
                .iter()
                .map(|file| (file.path.strip_prefix(root.to_str().unwrap()).unwrap().to_owned(), file.text.clone()))
                .collect();
            let told: Vec<(&str, &str)> = told.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
            assert_eq!(told, expected, "{:?}", found.notes);
        }
    }

    #[test]
    fn user_instructions_come_first_and_the_nearest_last() {
        let place = Place::new(&[
            ("own.md", "mine SECRET"),
            ("AGENTS.md", "above the repository"),
            ("repo/AGENTS.md", "top"),
            ("repo/a/AGENTS.md", "a"),
            ("repo/a/AGENTS.override.md", "instead"),
            ("repo/a/b/CLAUDE.md", "other"),
        ]);
        place.check(&[("own.md", "mine …"), ("repo/AGENTS.md", "top"), ("repo/a/AGENTS.override.md", "instead")]);
        assert_eq!(place.find().files[0].origin, InstructionOrigin::User);
        assert_eq!(place.find().files[1].origin, InstructionOrigin::Repository);
        let place = Place { names: vec!["CLAUDE.md".to_owned()], ..place };
        assert_eq!(place.find().files.last().unwrap().text, "other");
    }

    #[test]
    fn instruction_symlinks_to_other_files_are_reported_and_not_read() {
        let place = Place::new(&[("secret", "secret"), ("repo/.env", "KEY=1"), ("repo/CLAUDE.md", "shared")]);
        symlink(place.path("secret"), place.path("repo/AGENTS.md")).unwrap();
        symlink(place.path("repo/.env"), place.path("repo/a/AGENTS.md")).unwrap();
        symlink(place.path("repo/CLAUDE.md"), place.path("repo/a/b/AGENTS.md")).unwrap();
        place.check(&[("repo/CLAUDE.md", "shared")]);
        assert_eq!(place.find().notes.len(), 2);
        fs::remove_file(place.path("repo/AGENTS.md")).unwrap();
        fs::create_dir(place.path("repo/AGENTS.md")).unwrap();
        assert!(place.find().notes[0].contains("not a regular file"));
    }

    #[test]
    fn the_total_size_of_instruction_files_is_limited() {
        let long = "x".repeat(MOST - 3);
        let place =
            Place::new(&[("repo/AGENTS.md", &long), ("repo/a/AGENTS.md", "abcdef"), ("repo/a/b/AGENTS.md", "y")]);
        place.check(&[
            ("repo/AGENTS.md", &long),
            ("repo/a/AGENTS.md", "abc\n[The rest is left out.]"),
            ("repo/a/b/AGENTS.md", "\n[The rest is left out.]"),
        ]);
        assert_eq!(place.find().notes.len(), 2);
    }
}
