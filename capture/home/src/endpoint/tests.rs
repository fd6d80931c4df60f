use super::*;

#[test]
fn the_endpoint_file_is_removed_only_by_its_owner() {
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
