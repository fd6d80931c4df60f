//! The terminal and the environment of a process.

use crate::os;

/// The terminal device that a process reads from or writes to; `None` if it has none, or belongs to another user.
#[must_use]
pub fn terminal_of(pid: u32) -> Option<String> {
    (0..=2).find_map(|descriptor| {
        let target = os::descriptor(pid, descriptor).ok()?;
        let path = target.to_str()?;
        (path.starts_with("/dev/pts/") || path.starts_with("/dev/tty")).then(|| path.to_owned())
    })
}

/// A variable in the environment a process was started with; `None` if it is not set or not UTF-8, or the process
/// belongs to another user.
#[must_use]
pub fn variable_of(pid: u32, name: &str) -> Option<String> {
    let environment = os::environment(pid).ok()?;
    let value =
        environment.split(|byte| *byte == 0).find_map(|set| set.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
    String::from_utf8(value?.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead, BufReader},
        process::Stdio,
    };

    use super::*;

    #[test]
    fn a_variable_is_found_by_its_whole_name() {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "echo ready; read _"]).env("PANE", "%3").env("PANE_2", "x");
        let mut child = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // The environment may be missing until the process writes its first line.
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
        assert_eq!(variable_of(child.id(), "PANE").as_deref(), Some("%3"));
        assert_eq!(variable_of(child.id(), "PAN"), None);
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
