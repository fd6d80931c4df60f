//! Recognizes an agent by its command line.

use std::ffi::OsString;

use agents::{Agent, agent::ALL};
use events::Provider;

/// Subcommands that hold no conversation, for every agent. Those of a single agent are in its [`Agent`] value.
const NO_CONVERSATION: &[&str] = &[
    "mcp",
    "mcp-server",
    "login",
    "logout",
    "update",
    "upgrade",
    "doctor",
    "completion",
    "config",
    "install",
    "--version",
    "-v",
    "--help",
    "-h",
];

/// The agent that a command line starts, if it holds a conversation; and whether it serves sessions for other
/// processes.
pub(crate) fn which_agent(arguments: &[u8]) -> Option<(Provider, bool)> {
    let (agent, mut words) = agent_named(arguments)?;
    let word = words.next();
    if word.is_some_and(|w| NO_CONVERSATION.contains(&w) || !agent.commands.converse(w)) {
        return None;
    }
    Some((agent.provider, word.is_some() && word == agent.daemon_word))
}

/// Whether a command line starts an agent that resumes an earlier session.
pub(crate) fn resumes(arguments: &[u8]) -> bool {
    let Some((agent, mut words)) = agent_named(arguments) else { return false };
    let word = words.next();
    word.is_some() && word == agent.resume_word()
}

/// Whether a command line starts an agent for one prompt, so that the user cannot type into it.
pub(crate) fn is_headless(arguments: &[u8]) -> bool {
    agent_named(arguments).is_some_and(|(agent, words)| agent.is_headless(words))
}

/// Options of Node.js that use the next word as their value (`node --help`, 24).
const OPTIONS_WITH_VALUE: [&str; 7] =
    ["-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions"];

/// The agent whose program, or script run by an interpreter, a command line names; and the words after that name.
pub(crate) fn agent_named(arguments: &[u8]) -> Option<(&'static Agent, impl Iterator<Item = &str>)> {
    // Each word ends with NUL, the last one too: without this, a command line without arguments would have an empty
    // word.
    let arguments = arguments.strip_suffix(&[0]).unwrap_or(arguments);
    let mut words = arguments.split(|b| *b == 0).map(|w| std::str::from_utf8(w).unwrap_or_default());
    let first = words.next()?;
    let base = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
    let name = base(first);
    let by_name = |name: &str| {
        let name = name.trim_end_matches(".js");
        ALL.into_iter().find(|agent| agent.programs.contains(&name))
    };
    let agent = if matches!(name.as_str(), "node" | "bun" | "deno") || name.starts_with("python") {
        let script = loop {
            match words.next()? {
                option if OPTIONS_WITH_VALUE.contains(&option) => drop(words.next()),
                option if option.starts_with('-') => {}
                script => break script,
            }
        };
        // Some agents are started by the path of their package instead of by name.
        let below = |agent: &&Agent| agent.script_below.is_some_and(|part| script.contains(part));
        ALL.into_iter().find(below).or_else(|| by_name(&base(script)))?
    } else {
        by_name(&name)?
    };
    Some((agent, words))
}

/// The agent after which a shell's script is named: a wrapper around an agent, used while the agent itself is not
/// found.
pub(crate) fn agent_of_script(arguments: &[u8]) -> Option<Provider> {
    const SHELLS: [&str; 6] = ["sh", "bash", "dash", "ash", "zsh", "ksh"];
    let name = |word: &[u8]| std::str::from_utf8(word).ok().and_then(|word| word.rsplit('/').next()).map(str::to_owned);
    let mut words = arguments.split(|byte| *byte == 0);
    name(words.next()?).filter(|shell| SHELLS.contains(&shell.as_str()))?;
    let script = name(words.find(|word| !word.starts_with(b"-"))?)?;
    let rest: Vec<&[u8]> = std::iter::once(script.as_bytes()).chain(words).collect();
    which_agent(&rest.join(&0)).map(|(provider, _)| provider)
}

/// The agent that a command starts; `None` if it starts none.
#[must_use]
pub fn agent_of_words(words: &[OsString]) -> Option<Provider> {
    use std::os::unix::ffi::OsStrExt;
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    which_agent(&words.join(&0)).map(|(provider, _)| provider)
}

/// The first word after a program's name.
pub(crate) fn verb(arguments: &[u8]) -> Option<&[u8]> {
    arguments.split(|byte| *byte == 0).nth(1)
}
