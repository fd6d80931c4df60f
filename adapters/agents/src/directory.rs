//! What the directories of agents are called where people read of them.

use std::path::Path;

use events::Provider;

use crate::{Agent, pi};

/// The title of a directory in which an agent stores its files: its agent's name, unless several programs share it.
#[must_use]
pub fn title(provider: Provider, directory: &Path) -> &'static str {
    let own = if provider == Provider::Capture { "capture sessions" } else { provider.as_str() };
    pi::title(provider, directory).unwrap_or(own)
}

/// The name of a directory as a source: its agent's name, unless several programs share it.
#[must_use]
pub fn source_name(provider: Provider, directory: &Path) -> &'static str {
    pi::title(provider, directory).unwrap_or(provider.as_str())
}

/// The program that goes on with a session whose transcript stands there, where another one than the agent's own does.
#[must_use]
pub fn program(provider: Provider, transcript: &Path) -> Option<&'static str> {
    pi::program(provider, transcript)
}

/// The command line that goes on with a session, by its agent's own id and where its transcripts stand; `None` where
/// the agent has none.
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
    fn programs_that_share_an_agent_are_told_apart() {
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
