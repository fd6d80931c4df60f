use std::os::unix::fs::PermissionsExt;

use home::endpoint::token_file;

use super::*;

#[test]
fn token_files_are_created_once_with_mode_0600() {
    let dir = tempfile::tempdir().unwrap();
    tokens(dir.path()).unwrap();
    let path = token_file(dir.path());
    let first = fs::read_to_string(&path).unwrap();
    assert_eq!(first.len(), 64);
    tokens(dir.path()).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), first);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let others: Vec<String> = ["ingest", "read", "control", "admin"]
        .iter()
        .map(|s| fs::read_to_string(dir.path().join("tokens").join(s)).unwrap())
        .collect();
    assert!(!others.contains(&first));
}
