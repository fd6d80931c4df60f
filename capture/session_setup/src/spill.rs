//! The file for encoded text of a long session that exceeds the memory limit.

use std::{
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use models::SpillFile;

/// A file in a directory, created when needed. It has no name, so it is removed with the process.
pub(crate) fn file_in(directory: PathBuf) -> SpillFile {
    SpillFile::new(move || nameless(&directory))
}

fn nameless(directory: &Path) -> io::Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let path = directory.join(format!(".encoded.{}", std::process::id()));
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}
