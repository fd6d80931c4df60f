//! The names of agents' directories, as shown to users.

use std::path::Path;

use events::Provider;

use crate::{Agent, pi};

/// The title of a directory in which an agent stores its files: the agent's name, unless several programs share the
/// directory.
#[must_use]
pub fn title(provider: Provider, directory: &Path) -> &'static str {
    let own = if provider == Provider::Capture { "capture sessions" } else { provider.as_str() };
    pi::title(provider, directory).unwrap_or(own)
}

/// The name of a directory as a source: the agent's name, unless several programs share the directory.
#[must_use]
pub fn source_name(provider: Provider, directory: &Path) -> &'static str {
    pi::title(provider, directory).unwrap_or(provider.as_str())
}

/// The program that continues a session with this transcript, if it is not the agent's usual program.
#[must_use]
pub fn program(provider: Provider, transcript: &Path) -> Option<&'static str> {
    pi::program(provider, transcript)
}

/// The command line that continues a session, by the agent's id for it and the paths of its transcripts; `None` if the
/// agent has no such command.
#[must_use]
pub fn resume_line<'a>(
    provider: Provider,
    session: &str,
    mut transcripts: impl Iterator<Item = &'a str>,
) -> Option<String> {
    let command = Agent::of(provider)?.resume_command(session)?;
    let (first, rest) = command.split_once(' ')?;
    let program = transcripts.find_map(|path| program(provider, Path::new(path)));
    Some(format!("{} {rest}", program.unwrap_or(first)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pi_and_omp_sessions_are_distinguished_by_directory() {
        for (provider, directory, expected) in [
            (Provider::Pi, "/home/me/.pi/agent", "pi"),
            (Provider::Pi, "/home/me/.omp/agent", "oh-my-pi"),
            (Provider::Capture, "/data/agent", "capture sessions"),
            (Provider::Claude, "/home/me/.claude", "claude"),
        ] {
            assert_eq!(title(provider, Path::new(directory)), expected, "{directory}");
        }
        let program = |path: &str| program(Provider::Pi, Path::new(path));
        assert_eq!(program("/home/me/.omp/agent/sessions/--p--/1.jsonl"), Some("omp"));
        assert_eq!(program("/home/me/.pi/agent/sessions/--p--/1.jsonl"), None);
        let line = |path| resume_line(Provider::Pi, "ID", std::iter::once(path)).unwrap();
        assert!(line("/home/me/.omp/agent/sessions/--p--/1.jsonl").starts_with("omp "));
        assert!(line("/home/me/.pi/agent/sessions/--p--/1.jsonl").starts_with("pi "));
    }
}
