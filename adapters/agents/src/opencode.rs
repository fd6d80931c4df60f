//! opencode. All facts were tested with 1.18.33.

use events::Provider;

use crate::facts::{
    Agent, Commands, Drive, Home, PrintedVersion, Protocol, TranscriptPath, Transcripts, VersionSources,
};

/// opencode.
pub static OPENCODE: Agent = Agent {
    provider: Provider::Opencode,
    // npm's entry is the program itself, under a different name.
    programs: &["opencode", "opencode.exe"],
    script_below: None,
    version: VersionSources {
        package: Some("opencode-ai"),
        directory: None,
        printed: Some(PrintedVersion { before: &[""], behind: "" }),
    },
    daemon_word: Some("serve"),
    headless: &["run"],
    tells_headless: false,
    commands: Commands::AllBut(&[
        "agent",
        "auth",
        "db",
        "debug",
        "export",
        "github",
        "import",
        "models",
        "plug",
        "plugin",
        "pr",
        "providers",
        "session",
        "stats",
        "uninstall",
        "web",
    ]),
    // Set for commands of its shell; it sets `AGENT` too, but so do other programs.
    descent_variables: &["OPENCODE", "OPENCODE_PID"],
    home: Home { variable: "XDG_DATA_HOME", below_variable: "opencode", usual: &[".local/share/opencode"] },
    transcripts: Transcripts { directories: &[""], path: TranscriptPath::EndsWith(".db") },
    resume: Some("opencode -s"),
    resume_model: None,
    resume_harm: None,
    // Twice: the first press asks for a second one.
    interrupt_key: b"\x1b\x1b",
    // Its dialog does not show the key that refuses, so a version with other keys would look the same.
    tested_dialogs: &[">=1.18.33, <1.19.0"],
    mcp_settings: None,
    // Of the edits, only `write` was tested.
    drive: Some(Drive {
        protocol: Protocol::Acp,
        command: &["opencode", "acp"],
        names_edits: false,
        names_directory: false,
    }),
    hooks: None,
    gen_ai_provider: None,
    telemetry: None,
};
