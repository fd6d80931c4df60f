use super::*;
use std::os::unix::fs::PermissionsExt;

#[test]
fn tokens_are_made_once_and_are_private() {
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

#[test]
fn the_endpoint_is_written_and_only_taken_away_by_its_owner() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(Endpoint::load(dir.path()).unwrap(), None);
    let mine = Endpoint {
        url: "http://127.0.0.1:1".into(),
        pid: 1,
        start_ticks: 7,
        epoch: "a".into(),
        socket: "s".into(),
        token_file: "t".into(),
        version: "1.2.3".into(),
        background: true,
    };
    publish(&mine, dir.path()).unwrap();
    assert_eq!(Endpoint::load(dir.path()).unwrap(), Some(mine.clone()));
    withdraw(&Endpoint { epoch: "b".into(), ..mine.clone() }, dir.path());
    assert!(file(dir.path()).exists());
    withdraw(&mine, dir.path());
    assert!(!file(dir.path()).exists());
}
