//! Gemini CLI. Variables: seen in 0.61.0.

use events::Provider;

use crate::{
    facts::{
        Agent, Commands, Drive, Home, McpSettings, PrintedVersion, Protocol, TranscriptPath, Transcripts,
        VersionSources,
    },
    hooks::{HookAnswers, HookEvent, HookPayload, HookVersions, Hooks, Switch, TimeoutUnit, new_in, v},
    telemetry::{Name, Telemetry, TelemetryFile},
};

/// Gemini CLI.
pub static GEMINI: Agent = Agent {
    provider: Provider::Gemini,
    programs: &["gemini"],
    script_below: None,
    version: VersionSources {
        package: Some("@google/gemini-cli"),
        directory: None,
        printed: Some(PrintedVersion { before: &[""], behind: "" }),
    },
    daemon_word: None,
    headless: &["-p", "--prompt"],
    tells_headless: false,
    commands: Commands::AllBut(&[]),
    descent_variables: &["GEMINI_CLI"],
    home: Home { variable: "GEMINI_CLI_HOME", below_variable: ".gemini", usual: &[".gemini"] },
    transcripts: Transcripts { directories: &["tmp"], path: TranscriptPath::Contains("/chats/") },
    // In 0.61.0, the next start in the same directory after `--resume` deletes the session's file.
    resume: None,
    resume_model: None,
    resume_harm: Some(
        "Gemini CLI deletes the file of a session at the next start in its directory after `--resume` (seen in 0.61.0)",
    ),
    interrupt_key: b"\x1b",
    tested_dialogs: &[">=0.38.2, <1.0.0"],
    mcp_settings: Some(McpSettings { files: &["settings.json"], servers: "mcpServers", remove: "gemini mcp remove" }),
    drive: Some(Drive {
        protocol: Protocol::Acp,
        command: &["gemini", "--acp"],
        names_edits: true,
        names_directory: true,
    }),
    hooks: Some(Hooks {
        settings_file: "settings.json",
        comments: true,
        timeout_unit: TimeoutUnit::Milliseconds,
        // Gemini CLI shows the name while a hook runs, and disables hooks by name.
        named_entries: true,
        switches: &[
            Switch::All { path: &["hooksConfig", "enabled"], off: false },
            Switch::Listed { path: &["hooksConfig", "disabled"] },
        ],
        config: None,
        after_install: None,
        // Unknown events are skipped with a warning. Exclusions, policies and the user's own hooks apply in every
        // version that supports them. Up to 0.25.0 no hook is run.
        versions: HookVersions {
            oldest: v(0, 10, 0),
            newest: v(0, 61, 0),
            reads_the_rest_since: None,
            on_by_default: None,
            events: EVENTS,
        },
        payload: HookPayload {
            shell_tools: &["run_shell_command"],
            shell_switches: &["is_background"],
            shell_details: Some("exec"),
            // Gemini CLI makes one request at a time, and its result uses another name.
            keyed_requests: false,
        },
        answers: HookAnswers {
            asking_event: "BeforeTool",
            allowance: false,
            rewrite: false,
            before_rules: true,
            dialog_meanwhile: false,
            names_directory: true,
        },
    }),
    // Names as in fixtures/telemetry, from 0.61.0.
    gen_ai_provider: Some("gcp.gemini"),
    telemetry: Some(Telemetry {
        service: Name::Is("gemini-cli"),
        scope: Name::Is("gemini-cli"),
        // The settings have no field for headers; the exporter reads them from the environment.
        environment: &[
            ("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer {token}"),
            ("OTEL_BLRP_SCHEDULE_DELAY", "{interval_ms}"),
        ],
        file: Some(TelemetryFile {
            path: "~/.gemini/settings.json",
            content: "{\n  \"telemetry\": {\n    \"enabled\": true,\n    \"target\": \"local\",\n    \
                      \"otlpEndpoint\": \"{url}\",\n    \"otlpProtocol\": \"http\",\n    \"logPrompts\": false\n  }\n}\n",
        }),
    }),
};

/// Omitted: `BeforeModel`, `AfterModel`, `BeforeToolSelection` and `PreCompress`, which Gemini CLI fires for each step
/// of an answer (`PreCompress` even if it does not compress).
const EVENTS: &[HookEvent] = &[
    new_in("SessionStart", v(0, 25, 0), v(0, 26, 0)),
    new_in("BeforeAgent", v(0, 25, 0), v(0, 26, 0)),
    new_in("BeforeTool", v(0, 25, 0), v(0, 26, 0)),
    new_in("AfterTool", v(0, 25, 0), v(0, 26, 0)),
    new_in("Notification", v(0, 25, 0), v(0, 26, 0)),
    new_in("AfterAgent", v(0, 25, 0), v(0, 26, 0)),
    new_in("SessionEnd", v(0, 25, 0), v(0, 26, 0)),
];
