//! pi, and oh-my-pi, which reads the same variable.

use std::path::Path;

use events::Provider;

use crate::facts::{Agent, Commands, Home, TranscriptPath, Transcripts, VersionSources};

/// pi and oh-my-pi.
pub static PI: Agent = Agent {
    provider: Provider::Pi,
    programs: &["pi", "omp"],
    script_below: Some("/pi-coding-agent/"),
    version: VersionSources { package: None, directory: None, printed: None },
    daemon_word: None,
    headless: &["-p", "--print"],
    tells_headless: false,
    commands: Commands::AllBut(&[]),
    descent_variables: &[],
    home: Home { variable: "PI_CODING_AGENT_DIR", below_variable: "", usual: &[".pi/agent", ".omp/agent"] },
    transcripts: Transcripts { directories: &["sessions"], path: TranscriptPath::EndsWith(".jsonl") },
    // A path, an id or a part of an id; oh-my-pi 18.3.4 has the option too. Both continue with the session's own model.
    resume: Some("pi --session"),
    resume_model: None,
    resume_harm: None,
    interrupt_key: b"\x1b",
    tested_dialogs: &[],
    mcp_settings: None,
    drive: None,
    hooks: None,
    gen_ai_provider: None,
    telemetry: None,
};

/// The title of a directory of oh-my-pi, which stores sessions as pi does.
pub(crate) fn title(provider: Provider, directory: &Path) -> Option<&'static str> {
    is_of_omp(provider, directory).then_some("oh-my-pi")
}

/// The program of a session in a directory of oh-my-pi.
pub(crate) fn program(provider: Provider, directory: &Path) -> Option<&'static str> {
    is_of_omp(provider, directory).then_some("omp")
}

fn is_of_omp(provider: Provider, directory: &Path) -> bool {
    provider == Provider::Pi && directory.components().any(|part| part.as_os_str() == ".omp")
}
