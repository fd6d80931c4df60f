//! Backups of settings files: a copy before every change, and a note of which copy is the file without our entries.
//! They are private files in the data directory, since settings can contain keys.
//!
//! The note is written before the settings. If power fails in between, the note refers to bytes that were never
//! written; it is then ignored, since it applies only to exactly the bytes it names.

use std::{
    fs,
    path::{Path, PathBuf},
};

use events::{Provider, Timestamp};
use serde::{Deserialize, Serialize};

use super::file::{make_private_dir, write_private};
use crate::error::Error;

/// Number of copies kept of one file, besides the one without our entries.
const COPIES: usize = 10;

/// Version of the note's form.
const VERSION: u32 = 1;

/// The copies of one settings file.
#[derive(Debug, Clone)]
pub(super) struct Backups {
    dir: PathBuf,
    path: PathBuf,
}

/// The file without our entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Without {
    /// The file does not exist.
    Absent,
    /// The bytes of the file.
    Bytes(Vec<u8>),
}

#[derive(Debug, Serialize, Deserialize)]
struct BackupNote {
    version: u32,
    path: PathBuf,
    /// Hash of the bytes that install wrote.
    installed: String,
    /// The copy's name and hash; `None` if there was no file.
    without: Option<(String, String)>,
}

impl Backups {
    /// The backups of the file at `path`.
    pub(super) fn of(data: &Path, provider: Provider, path: &Path) -> Self {
        let name = format!("{}-{}", provider.as_str(), &hash(path.as_os_str().as_encoded_bytes())[..16]);
        Self { dir: data.join("backups/hooks").join(name), path: path.to_owned() }
    }

    /// The file without our entries as recorded by the last install, and whether `bytes` is exactly what it wrote.
    /// `None` if there is no trustworthy note.
    pub(super) fn without(&self, bytes: &[u8]) -> Option<(Without, bool)> {
        let note: BackupNote = serde_json::from_slice(&fs::read(self.note_file()).ok()?).ok()?;
        if note.version != VERSION || note.path != self.path {
            return None;
        }
        let exact = note.installed == hash(bytes);
        let Some((name, expected)) = note.without else { return Some((Without::Absent, exact)) };
        // Only a file name, never a path.
        let name = Path::new(&name).file_name()?;
        let copy = fs::read(self.dir.join(name)).ok()?;
        (hash(&copy) == expected).then_some((Without::Bytes(copy), exact))
    }

    /// Copies the bytes that are about to be replaced.
    pub(super) fn copy(&self, bytes: &[u8], now: Timestamp) -> Result<PathBuf, Error> {
        make_private_dir(&self.dir)?;
        let path = self.dir.join(format!("{:013}-{}.json", now.as_millisecond(), &hash(bytes)[..8]));
        write_private(&path, bytes)?;
        self.thin_out()?;
        Ok(path)
    }

    /// Records the bytes about to be written, and the file without our entries.
    pub(super) fn record_installed(&self, installed: &[u8], without: &Without) -> Result<(), Error> {
        make_private_dir(&self.dir)?;
        let without = match without {
            Without::Absent => None,
            Without::Bytes(bytes) => {
                let name = format!("without-{}.json", &hash(bytes)[..16]);
                write_private(&self.dir.join(&name), bytes)?;
                Some((name, hash(bytes)))
            }
        };
        let kept = without.as_ref().map(|(name, _)| name.clone());
        let note = BackupNote { version: VERSION, path: self.path.clone(), installed: hash(installed), without };
        let text = serde_json::to_vec_pretty(&note).map_err(|error| Error::io(&self.note_file(), error))?;
        write_private(&self.note_file(), &text)?;
        for name in self.names()?.iter().filter(|name| name.starts_with("without-") && Some(*name) != kept.as_ref()) {
            fs::remove_file(self.dir.join(name)).ok();
        }
        Ok(())
    }

    /// Removes the note of the last install; keeps the copies.
    pub(super) fn forget_installed(&self) {
        fs::remove_file(self.note_file()).ok();
    }

    fn note_file(&self) -> PathBuf {
        self.dir.join("note")
    }

    fn names(&self) -> Result<Vec<String>, Error> {
        let io = |error| Error::io(&self.dir, error);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.dir).map_err(io)? {
            names.extend(entry.map_err(io)?.file_name().into_string());
        }
        Ok(names)
    }

    fn thin_out(&self) -> Result<(), Error> {
        let mut copies = self.names()?;
        copies.retain(|name| name.ends_with(".json") && name.starts_with(|c: char| c.is_ascii_digit()));
        copies.sort_unstable();
        for old in copies.iter().rev().skip(COPIES) {
            fs::remove_file(self.dir.join(old)).ok();
        }
        Ok(())
    }
}

fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}
