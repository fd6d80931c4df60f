//! goose, by Block. Not tested, because its program could not be installed. The names come from its documentation.

use events::Provider;

use crate::facts::{Agent, Commands, Home, TranscriptPath, Transcripts, VersionSources};

/// goose.
pub static GOOSE: Agent = Agent {
    provider: Provider::Goose,
    programs: &["goose"],
    script_below: None,
    version: VersionSources { package: None, directory: None, printed: None },
    daemon_word: None,
    headless: &[],
    tells_headless: false,
    // A tool that migrates databases has the same name.
    commands: Commands::Only(&["run", "s", "session"]),
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
