//! What is known of each agent, as plain data: one value an agent, without defaults, so that a new agent
//! does not compile until every fact of it is stated.

use std::path::PathBuf;

use events::Provider;

/// An agent whose processes and files are observed.
#[derive(Debug)]
pub struct Agent {
    /// Which one.
    pub provider: Provider,
    /// The names of its program, and of its script where an interpreter runs it.
    pub programs: &'static [&'static str],
    /// A part of the path of its script, where an interpreter runs it under another name.
    pub script_below: Option<&'static str>,
    /// Its package on npm, whose `package.json` tells its version.
    pub package: Option<&'static str>,
    /// The word behind its name with which it serves the sessions of other processes.
    pub daemon_word: Option<&'static str>,
    /// Variables that it sets for what it runs: whoever has one was started by it.
    pub descent_variables: &'static [&'static str],
    /// Where it keeps its files.
    pub home: Home,
    /// The words that take a session up again, before its id; `None` where that does harm or is not known.
    pub resume: Option<&'static str>,
    /// What its hooks can be answered; `None` for an agent without hooks.
    pub hooks: Option<HookAnswers>,
}

/// Where an agent keeps its files.
#[derive(Debug)]
pub struct Home {
    /// The variable that names the directory.
    pub variable: &'static str,
    /// The directory below what the variable names; empty for that itself.
    pub below_variable: &'static str,
    /// The directories below the user's home, when the variable is not set.
    pub usual: &'static [&'static str],
}

/// What an agent's hooks ask and can be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookAnswers {
    /// The event by which a hook asks for a decision.
    pub asking_event: &'static str,
    /// It takes an allowance; otherwise only a denial.
    pub allowance: bool,
    /// It takes another command in place of the one it asked for.
    pub rewrite: bool,
    /// Its hook is called for every tool, before the agent's own rules are asked.
    pub before_rules: bool,
    /// It shows its dialog while the hook waits; otherwise nothing of it tells that it waits.
    pub dialog_meanwhile: bool,
    /// The directory its hook names is the one the command would run in.
    pub tells_directory: bool,
}

/// Claude Code. Variables: seen in 2.1.328. The directory of a hook is that of the command.
pub static CLAUDE: Agent = Agent {
    provider: Provider::Claude,
    programs: &["claude"],
    script_below: None,
    package: Some("@anthropic-ai/claude-code"),
    daemon_word: None,
    descent_variables: &["CLAUDECODE"],
    home: Home { variable: "CLAUDE_CONFIG_DIR", below_variable: "", usual: &[".claude"] },
    resume: Some("claude --resume"),
    hooks: Some(HookAnswers {
        asking_event: "PermissionRequest",
        allowance: true,
        rewrite: true,
        before_rules: false,
        dialog_meanwhile: true,
        tells_directory: true,
    }),
};

/// Codex CLI. Variables: seen in 0.169.0. Its hook names the directory of the turn, and a call may have another.
pub static CODEX: Agent = Agent {
    provider: Provider::Codex,
    programs: &["codex"],
    script_below: None,
    package: Some("@openai/codex"),
    daemon_word: Some("app-server"),
    descent_variables: &["CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_THREAD_ID", "CODEX_CI"],
    home: Home { variable: "CODEX_HOME", below_variable: "", usual: &[".codex"] },
    resume: Some("codex resume"),
    hooks: Some(HookAnswers {
        asking_event: "PermissionRequest",
        allowance: true,
        rewrite: false,
        before_rules: false,
        dialog_meanwhile: false,
        tells_directory: false,
    }),
};

/// Gemini CLI. Variables: seen in 0.61.0, where after `--resume` the next start in the same directory deletes
/// the session's file.
pub static GEMINI: Agent = Agent {
    provider: Provider::Gemini,
    programs: &["gemini"],
    script_below: None,
    package: Some("@google/gemini-cli"),
    daemon_word: None,
    descent_variables: &["GEMINI_CLI"],
    home: Home { variable: "GEMINI_CLI_HOME", below_variable: ".gemini", usual: &[".gemini"] },
    resume: None,
    hooks: Some(HookAnswers {
        asking_event: "BeforeTool",
        allowance: false,
        rewrite: false,
        before_rules: true,
        dialog_meanwhile: false,
        tells_directory: true,
    }),
};

/// pi, and oh-my-pi, which looks at the same variable.
pub static PI: Agent = Agent {
    provider: Provider::Pi,
    programs: &["pi", "omp"],
    script_below: Some("/pi-coding-agent/"),
    package: None,
    daemon_word: None,
    descent_variables: &[],
    home: Home { variable: "PI_CODING_AGENT_DIR", below_variable: "", usual: &[".pi/agent", ".omp/agent"] },
    resume: None,
    hooks: None,
};

/// Every agent with processes of its own.
pub static ALL: [&Agent; 4] = [&CLAUDE, &CODEX, &GEMINI, &PI];

impl Agent {
    /// The agent of a provider; `None` for our own, which is a library, and for one that is not known.
    #[must_use]
    pub const fn of(provider: Provider) -> Option<&'static Self> {
        match provider {
            Provider::Claude => Some(&CLAUDE),
            Provider::Codex => Some(&CODEX),
            Provider::Gemini => Some(&GEMINI),
            Provider::Pi => Some(&PI),
            Provider::Capture | Provider::Unknown => None,
        }
    }

    /// The command line that takes a session up again, for a person to type.
    #[must_use]
    pub fn resume_command(&self, session: &str) -> Option<String> {
        let plain = !session.is_empty() && session.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        self.resume.filter(|_| plain).map(|words| format!("{words} {session}"))
    }
}

impl Home {
    /// The directories in an environment; none when neither the variable nor HOME is set.
    pub fn directories(&self, variable: impl Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
        match variable(self.variable) {
            Some(dir) if self.below_variable.is_empty() => vec![dir],
            Some(dir) => vec![dir.join(self.below_variable)],
            None => {
                let home = variable("HOME");
                self.usual.iter().filter_map(|below| Some(home.as_ref()?.join(below))).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_is_found_by_its_provider() {
        for agent in ALL {
            assert!(std::ptr::eq(Agent::of(agent.provider).unwrap(), agent));
        }
        assert!(Agent::of(Provider::Unknown).is_none());
    }

    #[test]
    fn a_session_is_resumed_by_a_plain_id_only() {
        assert_eq!(CLAUDE.resume_command("5a6b-7"), Some("claude --resume 5a6b-7".into()));
        assert_eq!(CODEX.resume_command("x; rm -rf ~"), None);
        assert_eq!(GEMINI.resume_command("5a6b"), None);
    }

    #[test]
    fn a_home_is_the_variables_or_the_usual_one() {
        let home = |name: &str| (name == "HOME").then(|| PathBuf::from("/home/a"));
        assert_eq!(PI.home.directories(home), ["/home/a/.pi/agent", "/home/a/.omp/agent"].map(PathBuf::from));
        let set = |name: &str| (name == "GEMINI_CLI_HOME").then(|| PathBuf::from("/srv/g"));
        assert_eq!(GEMINI.home.directories(set), [PathBuf::from("/srv/g/.gemini")]);
        assert_eq!(CLAUDE.home.directories(|_| None), Vec::<PathBuf>::new());
    }
}
