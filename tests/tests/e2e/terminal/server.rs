//! The server stops and restarts during a run.

use super::TerminalMachine;

/// P12: the agent notices nothing.
#[test]
fn a_server_restart_does_not_affect_a_run() {
    let here = TerminalMachine::new();
    let server = here.machine.serve();
    let mut user = here.run("while read line; do printf '\\a'; echo \"got:$line\"; done; exit 3");
    user.is_raw_soon();
    user.types("one\n");
    user.expect("got:one\r\n");
    server.kill();
    user.types("two\n");
    user.expect("got:two\r\n");
    let server = here.machine.serve();
    user.types("three\n");
    user.expect("got:three\r\n");
    user.types("\x04");
    let (shown, status) = user.end();
    assert_eq!(status, 3);
    assert!(!String::from_utf8_lossy(&shown).contains("capture"));
    assert_eq!(user.settings(), user.settings_before());
    drop(server);
    // Without a server from beginning to end.
    let mut user = here.run("echo alone; exit 2");
    let (shown, status) = user.end();
    assert_eq!((String::from_utf8_lossy(&shown).as_ref(), status), ("alone\r\n", 2));
    here.is_deserted_soon(&user);
}
