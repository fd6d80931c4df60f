//! pi, and oh-my-pi, which looks at the same variable.

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
    commands: Commands::AllBut(&[]),
    descent_variables: &[],
    home: Home { variable: "PI_CODING_AGENT_DIR", below_variable: "", usual: &[".pi/agent", ".omp/agent"] },
    transcripts: Transcripts { directories: &["sessions"], path: TranscriptPath::EndsWith(".jsonl") },
    resume: None,
    resume_model: None,
    resume_harm: None,
    interrupt_key: b"\x1b",
    tested_dialogs: &[],
    drive: None,
    hooks: None,
    gen_ai_provider: None,
    telemetry: None,
};

/// The title of a directory of oh-my-pi, which stores sessions as pi does.
pub(crate) fn title(provider: Provider, directory: &Path) -> Option<&'static str> {
    let is_other = directory.components().any(|part| part.as_os_str() == ".omp");
    (provider == Provider::Pi && is_other).then_some("oh-my-pi")
}
