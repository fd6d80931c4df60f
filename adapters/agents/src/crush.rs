//! Crush. Not tested, because its program could not be installed. The name comes from its documentation.

use events::Provider;

use crate::facts::{Agent, Commands, Home, TranscriptPath, Transcripts, VersionSources};

/// Crush.
pub static CRUSH: Agent = Agent {
    provider: Provider::Crush,
    programs: &["crush"],
    script_below: None,
    version: VersionSources { package: Some("@charmland/crush"), directory: None, printed: None },
    daemon_word: None,
    headless: &["run"],
    tells_headless: false,
    commands: Commands::Only(&["run"]),
    descent_variables: &[],
    // Its files are not read.
    home: Home { variable: "", below_variable: "", usual: &[] },
    transcripts: Transcripts { directories: &[], path: TranscriptPath::EndsWith("/") },
    resume: None,
    resume_model: None,
    resume_harm: None,
    interrupt_key: b"\x03",
    tested_dialogs: &[],
    mcp_settings: None,
    drive: None,
    hooks: None,
    gen_ai_provider: None,
    telemetry: None,
};
