//! Claude Code. Variables: seen in 2.1.328.

use events::Provider;

use crate::{
    facts::{
        Agent, Commands, Drive, Home, McpSettings, PrintedVersion, Protocol, TranscriptPath, Transcripts,
        VersionSources,
    },
    hooks::{HookAnswers, HookEvent, HookPayload, HookVersions, Hooks, Switch, TimeoutUnit, from_the_first, new_in, v},
    telemetry::{Name, Telemetry},
};

/// Claude Code.
pub static CLAUDE: Agent = Agent {
    provider: Provider::Claude,
    programs: &["claude"],
    script_below: None,
    version: VersionSources {
        package: Some("@anthropic-ai/claude-code"),
        // The agent's own installer: ~/.local/share/claude/versions/2.1.330
        directory: Some("claude/versions"),
        printed: Some(PrintedVersion { before: &[""], behind: " (Claude Code)" }),
    },
    daemon_word: None,
    headless: &["-p", "--print"],
    tells_headless: true,
    commands: Commands::AllBut(&[]),
    descent_variables: &["CLAUDECODE"],
    home: Home { variable: "CLAUDE_CONFIG_DIR", below_variable: "", usual: &[".claude"] },
    transcripts: Transcripts { directories: &["projects", "sessions"], path: TranscriptPath::EndsWith(".jsonl") },
    resume: Some("claude --resume"),
    resume_model: Some("--model"),
    resume_harm: None,
    interrupt_key: b"\x1b",
    tested_dialogs: &[">=2.1.328, <2.2.0"],
    mcp_settings: Some(McpSettings {
        files: &["../.claude.json", ".claude.json"],
        servers: "mcpServers",
        remove: "claude mcp remove",
    }),
    drive: Some(Drive {
        protocol: Protocol::StreamJson,
        command: &[
            "claude",
            "-p",
            "--input-format",
            "stream-json",
            "--output-format",
            "stream-json",
            "--verbose",
            "--include-partial-messages",
            "--permission-prompt-tool",
            "stdio",
        ],
        names_edits: true,
        names_directory: true,
    }),
    hooks: Some(Hooks {
        settings_file: "settings.json",
        comments: true,
        timeout_unit: TimeoutUnit::Seconds,
        named_entries: false,
        switches: &[Switch::All { path: &["disableAllHooks"], off: true }],
        config: None,
        after_install: None,
        // Both sides of every version limit were tested: with `since` the settings with the event are read, with
        // `not_in` a denied command runs. The names come from the enumeration in `cli.js`. Unknown events are fatal up
        // to 2.1.100 and skipped from 2.1.101 on.
        versions: HookVersions {
            oldest: v(1, 0, 38),
            newest: v(2, 1, 330),
            reads_the_rest_since: Some(v(2, 1, 101)),
            on_by_default: None,
            events: EVENTS,
        },
        payload: HookPayload {
            shell_tools: &["Bash"],
            shell_switches: &["dangerouslyDisableSandbox", "run_in_background"],
            shell_details: None,
            keyed_requests: true,
        },
        answers: HookAnswers {
            asking_event: "PermissionRequest",
            allowance: true,
            rewrite: true,
            before_rules: false,
            dialog_meanwhile: true,
            // The directory of the command.
            names_directory: true,
        },
    }),
    // Names as in fixtures/telemetry, from 2.1.328.
    gen_ai_provider: Some("anthropic"),
    telemetry: Some(Telemetry {
        service: Name::Is("claude-code"),
        scope: Name::StartsWith("com.anthropic.claude_code"),
        environment: &[
            ("CLAUDE_CODE_ENABLE_TELEMETRY", "1"),
            ("OTEL_LOGS_EXPORTER", "otlp"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "{url}"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer {token}"),
            ("OTEL_LOGS_EXPORT_INTERVAL", "{interval_ms}"),
        ],
        file: None,
    }),
};

/// Omitted: `WorktreeCreate` and `WorktreeRemove`, whose mere presence changes the agent's behaviour.
const EVENTS: &[HookEvent] = &[
    new_in("SessionStart", v(1, 0, 61), v(1, 0, 62)),
    new_in("UserPromptSubmit", v(1, 0, 51), v(1, 0, 53)),
    from_the_first("PreToolUse", v(1, 0, 38)),
    from_the_first("PostToolUse", v(1, 0, 38)),
    new_in("PostToolUseFailure", v(2, 0, 55), v(2, 0, 56)),
    new_in("PermissionRequest", v(2, 0, 44), v(2, 0, 45)),
    new_in("PermissionDenied", v(2, 1, 87), v(2, 1, 88)),
    from_the_first("Notification", v(1, 0, 38)),
    from_the_first("Stop", v(1, 0, 38)),
    new_in("StopFailure", v(2, 1, 77), v(2, 1, 78)),
    new_in("SubagentStart", v(2, 0, 42), v(2, 0, 44)),
    new_in("SubagentStop", v(1, 0, 40), v(1, 0, 41)),
    new_in("PreCompact", v(1, 0, 45), v(1, 0, 48)),
    new_in("PostCompact", v(2, 1, 75), v(2, 1, 76)),
    new_in("Elicitation", v(2, 1, 62), v(2, 1, 63)),
    new_in("ElicitationResult", v(2, 1, 62), v(2, 1, 63)),
    new_in("SessionEnd", v(1, 0, 84), v(1, 0, 85)),
];
