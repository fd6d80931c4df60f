//! Amp. Tested with 0.0.1790142911, without an account: its name, its process and its first question.

use events::Provider;

use crate::facts::{Agent, Commands, Home, TranscriptPath, Transcripts, VersionSources};

/// Amp.
pub static AMP: Agent = Agent {
    provider: Provider::Amp,
    programs: &["amp"],
    script_below: None,
    version: VersionSources { package: Some("@ampcode/cli"), directory: None, printed: None },
    daemon_word: None,
    headless: &["-x", "--execute"],
    tells_headless: false,
    commands: Commands::AllBut(&["mcp", "permissions", "threads", "tools", "usage"]),
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
