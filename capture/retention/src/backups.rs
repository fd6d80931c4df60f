//! Records the paths of backups, so that a user who forgets a session learns which backups still contain it.

use std::{
    fs, io,
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

/// Name of the file that lists the backups, one path per line.
const LIST: &str = "backups.list";

/// Records the path of a backup.
///
/// # Errors
/// When the list cannot be written.
pub fn record(data: &Path, backup: &Path) -> io::Result<()> {
    if listed(data).iter().any(|listed| listed == backup) {
        return Ok(());
    }
    let mut list = fs::OpenOptions::new().create(true).append(true).mode(0o600).open(data.join(LIST))?;
    writeln!(list, "{}", backup.display())
}

/// The listed backups that still exist.
fn listed(data: &Path) -> Vec<PathBuf> {
    let text = fs::read_to_string(data.join(LIST)).unwrap_or_default();
    let mut paths: Vec<PathBuf> = text.lines().map(PathBuf::from).collect();
    paths.sort();
    paths.dedup();
    paths.retain(|path| path.symlink_metadata().is_ok());
    paths
}

fn is_within(data: &Path, path: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(path).starts_with(real(data))
}

/// The backups in the data directory.
pub(crate) fn within(data: &Path) -> Vec<PathBuf> {
    listed(data).into_iter().filter(|path| is_within(data, path)).collect()
}

/// The backups elsewhere.
pub(crate) fn elsewhere(data: &Path) -> Vec<PathBuf> {
    listed(data).into_iter().filter(|path| !is_within(data, path)).collect()
}

/// Removes deleted backups from the list.
pub(crate) fn let_go(data: &Path) -> io::Result<()> {
    let path = data.join(LIST);
    if !path.exists() {
        return Ok(());
    }
    let text: String = listed(data).iter().map(|path| format!("{}\n", path.display())).collect();
    let mut list = fs::OpenOptions::new().write(true).truncate(true).mode(0o600).open(path)?;
    list.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backups_inside_and_outside_the_data_directory_are_listed_separately() {
        let dir = tempfile::tempdir().unwrap();
        let (data, other) = (dir.path().join("data"), dir.path().join("other.db"));
        fs::create_dir(&data).unwrap();
        let own = data.join("own.db");
        for path in [&own, &other, &other] {
            fs::write(path, "").unwrap();
            record(&data, path).unwrap();
        }
        record(&data, &dir.path().join("gone.db")).unwrap();
        assert_eq!((within(&data), elsewhere(&data)), (vec![own.clone()], vec![other.clone()]));
        fs::remove_file(own).unwrap();
        let_go(&data).unwrap();
        assert_eq!(fs::read_to_string(data.join(LIST)).unwrap(), format!("{}\n", other.display()));
    }
}
