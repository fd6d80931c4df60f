//! Finds the file that a bare command name starts: the first executable file on a PATH, as a shell does.

use std::{
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, AtFlags, CWD, accessat};

/// The file that `word` refers to in these directories, searched in order.
///
/// # Errors
/// `NotFound` if there is none; `PermissionDenied` if only files without execute permission were found.
pub fn find_program<D: AsRef<Path>>(dirs: impl IntoIterator<Item = D>, word: &OsStr) -> io::Result<PathBuf> {
    let mut refused = io::Error::from(io::ErrorKind::NotFound);
    for dir in dirs.into_iter().filter(|_| !word.is_empty()) {
        let file = dir.as_ref().join(word);
        match check_executable(&file) {
            Ok(()) => return Ok(file),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => refused = error,
            Err(_) => {}
        }
    }
    Err(refused)
}

/// Checks that this process could execute a file.
///
/// # Errors
/// If it does not exist, is not a regular file, or must not be executed.
pub fn check_executable(path: &Path) -> io::Result<()> {
    let meta = std::fs::metadata(path)?;
    if meta.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "Is a directory"));
    }
    if !meta.is_file() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS).map_err(Into::into)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    #[test]
    fn path_search_returns_the_first_executable_file() {
        let dir = tempfile::tempdir().unwrap();
        let make = |name: &str, mode: u32| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        make("plain/tool", 0o644);
        fs::create_dir_all(dir.path().join("folder/tool")).unwrap();
        let (first, second) = (make("first/tool", 0o755), make("second/tool", 0o755));
        let find = |dirs: &[&str], word: &str| {
            find_program(dirs.iter().map(|name| dir.path().join(name)), OsStr::new(word)).map_err(|e| e.kind())
        };
        assert_eq!(find(&["none", "plain", "folder", "first", "second"], "tool"), Ok(first));
        assert_eq!(find(&["second", "first"], "tool"), Ok(second));
        assert_eq!(find(&["plain", "none"], "tool"), Err(io::ErrorKind::PermissionDenied));
        assert_eq!(find(&["folder", "none"], "tool"), Err(io::ErrorKind::NotFound));
        assert_eq!(find(&["first"], "other"), Err(io::ErrorKind::NotFound));
        assert_eq!(find(&["first"], ""), Err(io::ErrorKind::NotFound));
        assert_eq!(check_executable(dir.path()).unwrap_err().kind(), io::ErrorKind::IsADirectory);
    }
}
