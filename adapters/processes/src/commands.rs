//! The shell commands that a process runs: evidence that an agent was allowed to run one.

use std::fs;

use crate::stat::{children, start_ticks};

/// Programs that take a command line as an argument.
const SHELLS: [&str; 7] = ["sh", "bash", "zsh", "dash", "ash", "ksh", "fish"];
/// Maximum number of processes between an agent and its shell (a wrapper of npm, a sandbox), and the shell.
const DEPTH: usize = 3;
/// Maximum number of processes looked at below an agent.
const MAX_PROCESSES: usize = 256;

/// A shell that runs a command line (`bash -c …`), below another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShellCommand {
    /// Process id of the shell.
    pub pid: u32,
    /// Its start in clock ticks since boot.
    pub start_ticks: u64,
}

/// The shell commands that run below a process now. Hooks of this program are left out, since they are what asked, and
/// those with arguments (each ends with NUL) that the caller knows.
#[must_use]
pub fn shell_commands_below(pid: u32, is_known: impl Fn(&[u8]) -> bool) -> Vec<ShellCommand> {
    let (mut found, mut looked) = (Vec::new(), 0);
    let mut level = children(pid);
    for _ in 0..DEPTH {
        let mut next = Vec::new();
        for child in level {
            looked += 1;
            if looked > MAX_PROCESSES {
                return found;
            }
            let arguments = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
            if !is_shell_command(&arguments) {
                next.extend(children(child));
            } else if !is_hook(&arguments)
                && !is_known(&arguments)
                && let Some(start_ticks) = start_ticks(child)
            {
                found.push(ShellCommand { pid: child, start_ticks });
            }
        }
        level = next;
    }
    found
}

fn is_shell_command(arguments: &[u8]) -> bool {
    let mut words = arguments.split(|byte| *byte == 0).map(|word| std::str::from_utf8(word).unwrap_or_default());
    let program = words.next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    // `-c`, or `-lc` as Codex has it; long options do not count.
    let takes_command =
        |word: &str| word.strip_prefix('-').is_some_and(|rest| !rest.starts_with('-') && rest.contains('c'));
    SHELLS.contains(&program) && words.take_while(|word| word.starts_with('-')).any(takes_command)
}

/// Whether a command line calls `capture hook`.
fn is_hook(arguments: &[u8]) -> bool {
    let text = String::from_utf8_lossy(arguments);
    text.contains("capture") && text.split(|c: char| c.is_whitespace() || c == '\0').any(|word| word == "hook")
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_command_line_is_told_from_a_script_and_from_a_hook() {
        let is = |words: &[&str]| is_shell_command(words.join("\0").as_bytes());
        assert!(is(&["bash", "-c", "sleep 3"]) && is(&["/bin/bash", "-lc", "ls"]) && is(&["sh", "-e", "-c", "x"]));
        assert!(!is(&["bash", "script.sh"]) && !is(&["node", "-c", "x"]) && !is(&["bash", "--norc"]) && !is(&[""]));
        assert!(is_hook(b"/bin/sh\0-c\0/opt/capture hook claude"));
        assert!(!is_hook(b"bash\0-c\0cat capture.toml") && !is_hook(b"bash\0-c\0git hook run"));
    }

    #[test]
    fn what_runs_below_is_found_until_it_ends() {
        let below = || shell_commands_below(std::process::id(), |_| false);
        // `read` keeps the shell itself at work, below another program as in a sandbox.
        let mut child = Command::new("env").args(["sh", "-c", "read x; exit 0"]).stdin(Stdio::piped()).spawn().unwrap();
        let ours = |found: &[ShellCommand]| found.iter().any(|command| command.pid == child.id());
        while !ours(&below()) {
            std::thread::yield_now();
        }
        let known = |arguments: &[u8]| arguments.ends_with(b"read x; exit 0\0");
        assert!(!ours(&shell_commands_below(std::process::id(), known)), "the caller knows it");
        drop(child.stdin.take());
        let pid = child.id();
        child.wait().unwrap();
        assert!(below().iter().all(|command| command.pid != pid), "it has ended");
    }
}
