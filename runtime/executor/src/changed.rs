//! Finds the files that changed since an interrupted call was started.

use std::{
    fs,
    path::Path,
    time::{Duration, UNIX_EPOCH},
};

/// Maximum number of directory entries read.
const ENTRIES: usize = 50_000;
/// Maximum number of files named.
const NAMED: usize = 20;
/// Directories that are skipped: build output, and git's own files.
const SKIPPED: [&str; 4] = [".git", "node_modules", "target", ".venv"];

/// The files below a directory that changed after a time (milliseconds since 1970), as relative paths. `None` if there
/// are too many entries to read.
pub(crate) fn since(workspace: &Path, at_ms: i64) -> Option<Vec<String>> {
    let at = UNIX_EPOCH + Duration::from_millis(u64::try_from(at_ms).ok()?);
    let (mut found, mut open, mut seen) = (Vec::new(), vec![workspace.to_owned()], 0);
    while let Some(directory) = open.pop() {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            seen += 1;
            if seen > ENTRIES {
                return None;
            }
            // Symbolic links are not followed.
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                if !SKIPPED.iter().any(|skipped| entry.file_name() == *skipped) {
                    open.push(entry.path());
                }
            } else if metadata.modified().is_ok_and(|modified| modified >= at) {
                let path = entry.path();
                found.push(path.strip_prefix(workspace).unwrap_or(&path).to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    let more = found.len().saturating_sub(NAMED);
    found.truncate(NAMED);
    if more > 0 {
        found.push(format!("and {more} more"));
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_files_are_listed_without_git_and_build_directories() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, at_ms: u64| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let file = fs::File::create(path).unwrap();
            file.set_modified(UNIX_EPOCH + Duration::from_millis(at_ms)).unwrap();
        };
        write("old.rs", 1000);
        write("src/new.rs", 3000);
        write("target/debug/new", 3000);
        write(".git/index", 3000);
        std::os::unix::fs::symlink("/", dir.path().join("root")).unwrap();
        let found = since(dir.path(), 2000).unwrap();
        // The link itself is new.
        assert_eq!(found, ["root", "src/new.rs"]);
        for n in 0..30 {
            write(&format!("more/{n:02}"), 3000);
        }
        let found = since(dir.path(), 2000).unwrap();
        assert_eq!((found.len(), found.last().unwrap().as_str()), (21, "and 12 more"));
    }
}
