//! All agents, and the agent of each provider. The facts about an agent are an [`Agent`]; each value has its own file:
//! [`crate::claude`], [`crate::codex`], [`crate::gemini`], [`crate::pi`], [`crate::qwen`], [`crate::opencode`], and,
//! for agents whose files are not read, [`crate::aider`], [`crate::crush`], [`crate::goose`], [`crate::amp`].

use events::Provider;

pub use crate::facts::{
    Agent, Commands, Drive, Home, PrintedVersion, Protocol, TranscriptPath, Transcripts, VersionSources,
};
pub use crate::{
    aider::AIDER, amp::AMP, claude::CLAUDE, codex::CODEX, crush::CRUSH, gemini::GEMINI, goose::GOOSE,
    opencode::OPENCODE, pi::PI, qwen::QWEN,
};

/// Every agent that runs in separate processes.
pub static ALL: [&Agent; 10] = [&CLAUDE, &CODEX, &GEMINI, &PI, &QWEN, &OPENCODE, &AIDER, &CRUSH, &GOOSE, &AMP];

impl Agent {
    /// The agent of a provider; `None` for our own agent, which is a library, and for unknown providers.
    #[must_use]
    pub const fn of(provider: Provider) -> Option<&'static Self> {
        match provider {
            Provider::Claude => Some(&CLAUDE),
            Provider::Codex => Some(&CODEX),
            Provider::Gemini => Some(&GEMINI),
            Provider::Pi => Some(&PI),
            Provider::Qwen => Some(&QWEN),
            Provider::Opencode => Some(&OPENCODE),
            Provider::Aider => Some(&AIDER),
            Provider::Crush => Some(&CRUSH),
            Provider::Goose => Some(&GOOSE),
            Provider::Amp => Some(&AMP),
            Provider::Capture | Provider::Unknown => None,
        }
    }

    /// The providers whose agents satisfy `has`, in the order of [`ALL`].
    pub fn providers_with(has: impl Fn(&Self) -> bool) -> Vec<Provider> {
        ALL.into_iter().filter(|agent| has(agent)).map(|agent| agent.provider).collect()
    }
}

/// The meaning of a provider's name; `None` if the name is self-explanatory.
#[must_use]
pub const fn explanation(provider: Provider) -> Option<&'static str> {
    match provider {
        Provider::Unknown => Some("programs under `capture run` that capture does not know as agents"),
        Provider::Capture => Some("capture's own agent, with session files in `agent` in the data directory"),
        Provider::Pi => Some("pi and oh-my-pi"),
        Provider::Claude => Some("Claude Code"),
        Provider::Gemini => Some("Gemini CLI"),
        Provider::Qwen => Some("Qwen Code"),
        Provider::Codex | Provider::Opencode | Provider::Aider | Provider::Crush | Provider::Goose | Provider::Amp => {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn every_agent_is_found_by_its_provider() {
        for agent in ALL {
            assert!(std::ptr::eq(Agent::of(agent.provider).unwrap(), agent));
        }
        let known = Provider::ALL.iter().filter(|provider| Agent::of(**provider).is_some()).count();
        assert_eq!(known, ALL.len(), "an agent is missing from ALL");
        assert!(Agent::of(Provider::Unknown).is_none());
    }

    #[test]
    fn no_two_agents_share_a_program_variable_or_home() {
        for (at, agent) in ALL.into_iter().enumerate() {
            for other in &ALL[at + 1..] {
                let both = format!("{} and {}", agent.provider, other.provider);
                assert!(agent.programs.iter().all(|program| !other.programs.contains(program)), "{both}");
                assert!(agent.descent_variables.iter().all(|name| !other.descent_variables.contains(name)), "{both}");
                if !agent.home.variable.is_empty() {
                    assert_ne!(agent.home.variable, other.home.variable, "{both}");
                }
                assert!(agent.home.usual.iter().all(|home| !other.home.usual.contains(home)), "{both}");
            }
        }
    }

    #[test]
    fn resume_command_is_built_only_from_a_plain_session_id() {
        assert_eq!(CLAUDE.resume_command("5a6b-7"), Some("claude --resume 5a6b-7".into()));
        assert_eq!(CODEX.resume_command("x; rm -rf ~"), None);
        assert_eq!(GEMINI.resume_command("5a6b"), None);
        assert!(GEMINI.resume_harm.is_some());
        let words = |agent: &Agent, model| agent.resume_words("5a6b", model).map(|words| words.join(" "));
        assert_eq!(words(&CLAUDE, Some("opus")), Some("claude --resume 5a6b --model opus".into()));
        assert_eq!(words(&CODEX, Some("--yolo")), Some("codex resume 5a6b".into()));
        assert_eq!(words(&PI, Some("m")), Some("pi --session 5a6b".into()));
        assert_eq!(words(&OPENCODE, Some("m")), Some("opencode -s 5a6b".into()));
    }

    #[test]
    fn headless_mode_is_detected_from_the_command_line() {
        let headless = |agent: &Agent, line: &str| agent.is_headless(line.split(' ').filter(|word| !word.is_empty()));
        for (agent, line) in [
            (&CLAUDE, "-p hi"),
            (&CLAUDE, "--model opus --print"),
            (&CODEX, "exec --json hi"),
            (&GEMINI, "-m x --prompt=hi"),
            (&OPENCODE, "run hi"),
        ] {
            assert!(headless(agent, line), "{line}");
        }
        for (agent, line) in [
            (&CLAUDE, ""),
            (&CLAUDE, "hi"),
            (&CLAUDE, "-- -p"),
            (&CODEX, "resume exec"),
            (&GEMINI, "--prompt-interactive hi"),
            (&OPENCODE, "-s run"),
        ] {
            assert!(!headless(agent, line), "{line}");
        }
    }

    #[test]
    fn resumed_session_id_is_parsed_from_the_command_line() {
        let resumed = |agent: &Agent, line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            agent.resumed(&words).map(str::to_owned)
        };
        for (agent, line) in [
            (&CLAUDE, "claude --resume 5a6b-7 --model opus"),
            (&CLAUDE, "/usr/bin/claude --model opus --resume=5a6b-7"),
            (&CODEX, "codex --yolo resume 5a6b-7"),
            (&PI, "pi --session 5a6b-7"),
            (&OPENCODE, "opencode -s 5a6b-7"),
        ] {
            assert_eq!(resumed(agent, line).as_deref(), Some("5a6b-7"), "{line}");
        }
        for (agent, line) in [
            (&CLAUDE, "claude"),
            (&CLAUDE, "claude --resume"),
            (&CLAUDE, "claude --resume --model"),
            (&CLAUDE, "claude --resume 5a6b-7 --fork-session"),
            (&CLAUDE, "sh --resume 5a6b-7"),
            (&CODEX, "codex fork 5a6b-7"),
            (&CODEX, "codex resume --last"),
            (&GEMINI, "gemini --resume 5a6b-7"),
        ] {
            assert_eq!(resumed(agent, line), None, "{line}");
        }
    }

    #[test]
    fn agent_home_comes_from_its_variable_or_defaults_below_home() {
        let home = |name: &str| (name == "HOME").then(|| PathBuf::from("/home/a"));
        assert_eq!(PI.home.directories(home), ["/home/a/.pi/agent", "/home/a/.omp/agent"].map(PathBuf::from));
        let set = |name: &str| (name == "GEMINI_CLI_HOME").then(|| PathBuf::from("/srv/g"));
        assert_eq!(GEMINI.home.directories(set), [PathBuf::from("/srv/g/.gemini")]);
        assert_eq!(CLAUDE.home.directories(|_| None), Vec::<PathBuf>::new());
    }
}
