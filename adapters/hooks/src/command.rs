//! The command that an agent runs for an event, as a line for `/bin/sh`, and how capture recognizes its own lines.

use std::path::{Path, PathBuf};

use agents::hooks::TimeoutUnit;
use events::Provider;

use crate::{delivery::answer::asking_event, facts::facts};

/// Comment at the end of each of our command lines, by which our entries are recognised.
pub const MARK: &str = " # capture-hook";

/// Subcommand of the program.
const VERB: &str = "hook";

/// How long an agent waits for one of our entries, in seconds. The answer takes milliseconds; this allows for a machine
/// that swaps.
const PATIENCE_S: u64 = 5;

/// The option of entries that answer requests for permission.
pub const APPROVER: &str = "--approver";

/// The command that is run for an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCommand {
    /// The program, an absolute path.
    pub program: PathBuf,
    /// The data directory, an absolute path; `None` if the program determines it.
    pub data_dir: Option<PathBuf>,
    /// How long a permission request waits for the user's decision, in seconds; `None` if requests are only reported.
    pub approver: Option<u32>,
}

/// A path that cannot be written into a settings file.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum UnwritablePath {
    /// Settings are JSON, which contains only text.
    #[error("{}: a path that is not UTF-8 cannot be written into settings", .0.display())]
    NotText(PathBuf),
    /// A relative path would have a different meaning in each project.
    #[error("{}: not an absolute path", .0.display())]
    Relative(PathBuf),
}

impl HookCommand {
    /// The line for the shell.
    ///
    /// # Errors
    /// If a path is relative or not UTF-8.
    pub fn line(&self, provider: Provider) -> Result<String, UnwritablePath> {
        let mut line = format!("{} {VERB} {}", quoted(&self.program)?, provider.as_str());
        if let Some(dir) = &self.data_dir {
            line += &format!(" --data-dir {}", quoted(dir)?);
        }
        if let Some(seconds) = self.approver {
            line += &format!(" {APPROVER} {seconds}");
        }
        Ok(line + MARK)
    }
}

/// How long an entry with this command waits for the user, in seconds; `None` if it does not wait.
pub(super) fn approver(line: &str) -> Option<u32> {
    let (_, seconds) = line.strip_suffix(MARK)?.rsplit_once(' ')?;
    let seconds = seconds.parse().ok()?;
    line.ends_with(&format!(" {APPROVER} {seconds}{MARK}")).then_some(seconds)
}

/// The command for one event: only the event that asks for permission waits for an answer.
pub(super) fn of_event(line: &str, provider: Provider, event: &str) -> String {
    match approver(line) {
        Some(seconds) if asking_event(provider) != Some(event) => {
            let waits = format!(" {APPROVER} {seconds}{MARK}");
            format!("{}{MARK}", line.strip_suffix(&waits).unwrap_or(line))
        }
        Some(_) | None => line.to_owned(),
    }
}

/// How long the agent waits for an entry with this command, in the unit of its settings.
pub(super) fn patience(provider: Provider, line: &str) -> u64 {
    let facts = facts(provider);
    // Hooks called before the agent's own rules are checked do not wait for the user.
    let person = approver(line).filter(|_| facts.is_none_or(|hooks| !hooks.answers.before_rules)).unwrap_or(0);
    let seconds = PATIENCE_S + u64::from(person);
    match facts.map(|hooks| hooks.timeout_unit) {
        Some(TimeoutUnit::Milliseconds) => seconds * 1000,
        Some(TimeoutUnit::SecondsBelow(limit)) if seconds >= limit => seconds * 1000,
        Some(TimeoutUnit::Seconds | TimeoutUnit::SecondsBelow(_)) | None => seconds,
    }
}

/// Whether a command in a settings file is one of ours.
#[must_use]
pub fn is_ours(line: &str) -> bool {
    line.ends_with(MARK)
}

/// The program that one of our commands runs; `None` for any other command.
#[must_use]
pub fn program(line: &str) -> Option<PathBuf> {
    let rest = line.strip_suffix(MARK)?.strip_prefix('\'')?;
    let mut path = String::new();
    let mut pieces = rest.split('\'');
    loop {
        path += pieces.next()?;
        // Between two quoted pieces is an escaped quote, after the last one the verb.
        match pieces.next()? {
            "\\" if pieces.next() == Some("") => path.push('\''),
            tail if tail.starts_with(" hook ") => return Some(PathBuf::from(path)),
            _ => return None,
        }
    }
}

fn quoted(path: &Path) -> Result<String, UnwritablePath> {
    if !path.is_absolute() {
        return Err(UnwritablePath::Relative(path.to_owned()));
    }
    let text = path.to_str().ok_or_else(|| UnwritablePath::NotText(path.to_owned()))?;
    Ok(format!("'{}'", text.replace('\'', "'\\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(program_path: &str, data: Option<&str>, line: &str) {
        let command = HookCommand { program: program_path.into(), data_dir: data.map(PathBuf::from), approver: None };
        let written = command.line(Provider::Claude).unwrap();
        assert_eq!(written, line);
        assert!(is_ours(&written));
        assert_eq!(program(&written), Some(PathBuf::from(program_path)));
        // The shell parses the same words.
        let shown =
            std::process::Command::new("/bin/sh").arg("-c").arg(format!("printf '%s\\n' {written}")).output().unwrap();
        let words = String::from_utf8(shown.stdout).unwrap();
        let data = data.map_or(String::new(), |data| format!("--data-dir\n{data}\n"));
        assert_eq!(words, format!("{program_path}\nhook\nclaude\n{data}"));
    }

    #[test]
    fn hook_command_quotes_paths_for_the_shell() {
        check("/usr/bin/capture", None, "'/usr/bin/capture' hook claude # capture-hook");
        check("/a b/$HOME/`x`/capture", None, "'/a b/$HOME/`x`/capture' hook claude # capture-hook");
        check(
            "/it's/capture",
            Some("/data # '; rm"),
            "'/it'\\''s/capture' hook claude --data-dir '/data # '\\''; rm' # capture-hook",
        );
        check("/'/\\'", Some("/é\n"), "'/'\\''/\\'\\''' hook claude --data-dir '/é\n' # capture-hook");
    }

    #[test]
    fn only_the_approval_event_gets_the_approver_timeout() {
        let line = |approver| {
            let command =
                HookCommand { program: "/bin/capture".into(), data_dir: Some("/d --approver 7".into()), approver };
            command.line(Provider::Claude).unwrap()
        };
        let waits = line(Some(600));
        assert_eq!(waits, "'/bin/capture' hook claude --data-dir '/d --approver 7' --approver 600 # capture-hook");
        assert_eq!((approver(&waits), approver(&line(None))), (Some(600), None));
        assert_eq!(of_event(&waits, Provider::Claude, "PermissionRequest"), waits);
        assert_eq!(of_event(&waits, Provider::Claude, "PreToolUse"), line(None));
        assert_eq!(of_event(&line(None), Provider::Claude, "PermissionRequest"), line(None));
        assert_eq!((patience(Provider::Claude, &waits), patience(Provider::Claude, &line(None))), (605, 5));
        assert_eq!(patience(Provider::Gemini, &waits), 5_000);
        assert_eq!((patience(Provider::Qwen, &waits), patience(Provider::Qwen, &line(Some(1_000)))), (605, 1_005_000));
    }

    #[test]
    fn command_lines_without_the_hook_marker_are_not_ours() {
        for line in ["capture hook claude", "'/bin/capture' hook claude", "echo '# capture-hook'", "# capture-hook-2"] {
            assert!(!is_ours(line), "{line}");
        }
        assert_eq!(program("/bin/capture hook claude # capture-hook"), None);
        assert_eq!(program("'/bin/capture # capture-hook"), None);
    }

    #[test]
    fn relative_and_non_utf8_program_paths_are_refused() {
        use std::os::unix::ffi::OsStringExt;
        let line = |program: PathBuf| HookCommand { program, data_dir: None, approver: None }.line(Provider::Codex);
        assert!(matches!(line("capture".into()), Err(UnwritablePath::Relative(_))));
        let bytes = std::ffi::OsString::from_vec(b"/bin/\xff".to_vec());
        assert!(matches!(line(bytes.into()), Err(UnwritablePath::NotText(_))));
    }
}
