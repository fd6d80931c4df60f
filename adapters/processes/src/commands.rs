//! The shell commands that a process runs: evidence that an agent was allowed to run one.

use crate::{
    os,
    stat::{children, start_ticks},
};

/// Programs that accept a command line as an argument.
const SHELLS: [&str; 7] = ["sh", "bash", "zsh", "dash", "ash", "ksh", "fish"];
/// Maximum depth of a shell below an agent: the processes between them (a wrapper of npm, a sandbox), and the shell.
const DEPTH: usize = 3;
/// Maximum number of processes examined below an agent.
const MAX_PROCESSES: usize = 256;

/// A shell that runs a command line (`bash -c …`), below another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShellCommand {
    /// Process id of the shell.
    pub pid: u32,
    /// Its start in clock ticks since boot.
    pub start_ticks: u64,
}

/// The shell commands that run below a process now, and the processes that shells became by executing a command that
/// `is_asked` recognizes by its arguments (each ends with NUL). Excludes commands that `is_known`, and hooks of this
/// program, because they made the request.
#[must_use]
pub fn shell_commands_below(
    pid: u32,
    is_known: impl Fn(&[u8]) -> bool,
    is_asked: impl Fn(&[u8]) -> bool,
) -> Vec<ShellCommand> {
    let (mut found, mut looked) = (Vec::new(), 0);
    let mut level = children(pid);
    for _ in 0..DEPTH {
        let mut next = Vec::new();
        for child in level {
            looked += 1;
            if looked > MAX_PROCESSES {
                return found;
            }
            let arguments = os::arguments(child).unwrap_or_default();
            if is_known(&arguments) {
                continue;
            }
            let is_shell = is_shell_command(&arguments);
            if !is_shell && !is_asked(&arguments) {
                next.extend(children(child));
            } else if !(is_shell && is_hook(&arguments))
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
    // `-c`, or `-lc` as Codex passes it; long options do not count.
    let takes_command =
        |word: &str| word.strip_prefix('-').is_some_and(|rest| !rest.starts_with('-') && rest.contains('c'));
    SHELLS.contains(&program) && words.take_while(|word| word.starts_with('-')).any(takes_command)
}

/// The words of a command line without their quotes, joined by spaces. `None` if a quote is open.
#[must_use]
pub fn simple_command(line: &str) -> Option<String> {
    shlex::split(line).map(|words| words.join(" "))
}

/// The simple commands that may have become a process with these arguments (each ends with NUL), in the form of
/// [`simple_command`]: bash executes a single command in its own process, and a script is run by its interpreter.
pub fn executed_commands(arguments: &[u8]) -> impl Iterator<Item = String> {
    let text = String::from_utf8_lossy(arguments);
    let words: Vec<String> = text.trim_end_matches('\0').split('\0').map(str::to_owned).collect();
    let begins = (0..words.len().min(INTERPRETER + 1)).filter(|from| *from == 0 || words[*from].contains('/'));
    let commands: Vec<String> = begins
        .flat_map(|from| {
            let by_path = words[from..].join(" ");
            let by_name =
                words[from].rsplit_once('/').map(|(_, name)| [&[name.to_owned()], &words[from + 1..]].concat());
            [Some(by_path), by_name.map(|words| words.join(" "))]
        })
        .flatten()
        .collect();
    commands.into_iter()
}

/// Maximum number of arguments before a script: its interpreter, and one argument of the interpreter.
const INTERPRETER: usize = 2;

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
    fn shell_commands_are_distinguished_from_scripts_and_hooks() {
        let is = |words: &[&str]| is_shell_command(words.join("\0").as_bytes());
        assert!(is(&["bash", "-c", "sleep 3"]) && is(&["/bin/bash", "-lc", "ls"]) && is(&["sh", "-e", "-c", "x"]));
        assert!(!is(&["bash", "script.sh"]) && !is(&["node", "-c", "x"]) && !is(&["bash", "--norc"]) && !is(&[""]));
        assert!(is_hook(b"/bin/sh\0-c\0/opt/capture hook claude"));
        assert!(!is_hook(b"bash\0-c\0cat capture.toml") && !is_hook(b"bash\0-c\0git hook run"));
    }

    #[test]
    fn a_command_that_replaced_its_shell_is_recognized_by_its_arguments() {
        let ran = |arguments: &[&str], line: &str| {
            let arguments: String = arguments.iter().map(|word| format!("{word}\0")).collect();
            executed_commands(arguments.as_bytes()).any(|command| Some(command) == simple_command(line))
        };
        assert!(ran(&["sleep", "5"], "sleep 5") && ran(&["/bin/sleep", "5"], "sleep  5"));
        assert!(ran(&["node", "/usr/bin/npm", "run", "a b"], "npm run 'a b'"));
        assert!(ran(&["/bin/sh", "-e", "./build.sh"], "./build.sh") && ran(&["python3", "x.py"], "python3 x.py"));
        assert!(!ran(&["sleep", "50"], "sleep 5") && !ran(&["node", "test"], "test") && !ran(&[""], "sleep 5"));
        assert!(!ran(&["sleep", "5"], "sleep 5; echo slept") && !ran(&["sleep", "5"], "sleep '5"));

        // For a single command, bash becomes the command; dash does not.
        let mut child = Command::new("bash").args(["-c", "cat"]).stdin(Stdio::piped()).spawn().unwrap();
        let asked = |arguments: &[u8]| executed_commands(arguments).any(|command| command == "cat");
        let arguments = || os::arguments(child.id()).unwrap();
        while arguments() != b"cat\0" {
            std::thread::yield_now();
        }
        let found = shell_commands_below(std::process::id(), |_| false, asked);
        assert!(found.iter().any(|command| command.pid == child.id()));
        assert!(shell_commands_below(std::process::id(), asked, asked).iter().all(|one| one.pid != child.id()));
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn a_descendant_shell_command_is_listed_until_it_exits() {
        let below = || shell_commands_below(std::process::id(), |_| false, |_| false);
        // `read` keeps the shell itself running, below another program as in a sandbox.
        let mut child = Command::new("env").args(["sh", "-c", "read x; exit 0"]).stdin(Stdio::piped()).spawn().unwrap();
        let ours = |found: &[ShellCommand]| found.iter().any(|command| command.pid == child.id());
        while !ours(&below()) {
            std::thread::yield_now();
        }
        let known = |arguments: &[u8]| arguments.ends_with(b"read x; exit 0\0");
        assert!(!ours(&shell_commands_below(std::process::id(), known, |_| false)), "the caller knows it");
        drop(child.stdin.take());
        let pid = child.id();
        child.wait().unwrap();
        assert!(below().iter().all(|command| command.pid != pid), "it has ended");
    }
}
