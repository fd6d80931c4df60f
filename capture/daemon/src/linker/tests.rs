use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use super::*;

/// A shell with this command line that waits for input.
fn shell(line: &str) -> Child {
    Command::new("sh").args(["-c", line]).stdin(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_late_starting_user_hook_is_not_mistaken_for_the_command() {
    let dir = tempfile::tempdir().unwrap();
    let home: PathBuf = dir.path().join(".codex");
    fs::create_dir(&home).unwrap();
    let hook = "read decision; exit 0";
    let settings =
        format!(r#"{{"hooks":{{"PermissionRequest":[{{"hooks":[{{"type":"command","command":"{hook}"}}]}}]}}}}"#);
    fs::write(home.join("hooks.json"), settings).unwrap();
    let homes: Homes = [(events::Provider::Codex, vec![home])].into_iter().collect();
    let agent = (std::process::id(), 0);
    let command = WatchedAction::Command(Some("read allowed".into()));
    let mut waiting = Waiting::new(WatchedRequest { agent, asks_for: command }, &homes);
    let (begin, mut own, mut children) = (Instant::now(), shell(hook), Vec::new());
    while waiting.look(begin) != (None, Some(true)) {
        std::thread::yield_now();
    }
    assert_eq!(waiting.look(begin + STAYS), (None, None), "the user's own hook");
    assert_eq!(waiting.look(begin + DECIDES), (None, Some(true)), "it still runs");
    children.push(shell("read allowed; exit 0"));
    let command = children[0].id();
    while !waiting.running().0.iter().any(|running| running.pid == command) {
        std::thread::yield_now();
    }
    drop(own.stdin.take());
    own.wait().unwrap();
    assert_eq!(waiting.look(begin), (None, Some(false)));
    assert_eq!(waiting.look(begin + STAYS).0.map(|found| found.pid), Some(command));
    for child in &mut children {
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
