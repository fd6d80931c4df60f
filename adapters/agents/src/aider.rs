//! aider. Tested with 0.86.2: its name, its process (run by Python), its end, and its screen.

use events::Provider;

use crate::facts::{Agent, Commands, Home, PrintedVersion, TranscriptPath, Transcripts, VersionSources};

/// aider.
pub static AIDER: Agent = Agent {
    provider: Provider::Aider,
    programs: &["aider"],
    script_below: None,
    version: VersionSources {
        package: None,
        directory: None,
        printed: Some(PrintedVersion { before: &["aider "], behind: "" }),
    },
    daemon_word: None,
    headless: &["--message", "--msg", "-m", "--message-file", "-f"],
    tells_headless: false,
    commands: Commands::AllBut(&[]),
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
