//! Codex CLI. Variables: seen in 0.169.0.

use events::Provider;

use crate::{
    facts::{
        Agent, Commands, Drive, Home, McpSettings, PrintedVersion, Protocol, TranscriptPath, Transcripts,
        VersionSources,
    },
    hooks::{HookAnswers, HookConfig, HookEvent, HookPayload, HookVersions, Hooks, TimeoutUnit, new_in, v},
    telemetry::{Name, Telemetry, TelemetryFile},
};

/// Codex CLI.
pub static CODEX: Agent = Agent {
    provider: Provider::Codex,
    programs: &["codex"],
    script_below: None,
    version: VersionSources {
        package: Some("@openai/codex"),
        directory: None,
        printed: Some(PrintedVersion { before: &["codex-cli ", "codex "], behind: "" }),
    },
    daemon_word: Some("app-server"),
    headless: &["exec", "e"],
    tells_headless: false,
    commands: Commands::AllBut(&[]),
    descent_variables: &["CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_THREAD_ID", "CODEX_CI"],
    home: Home { variable: "CODEX_HOME", below_variable: "", usual: &[".codex"] },
    transcripts: Transcripts {
        directories: &["sessions", "archived_sessions"],
        path: TranscriptPath::Contains("/rollout-"),
    },
    resume: Some("codex resume"),
    resume_model: Some("--model"),
    resume_harm: None,
    interrupt_key: b"\x1b",
    tested_dialogs: &[">=0.169.0, <1.0.0"],
    mcp_settings: Some(McpSettings { files: &["config.toml"], servers: "mcp_servers", remove: "codex mcp remove" }),
    drive: Some(Drive {
        protocol: Protocol::AppServer,
        command: &["codex", "app-server"],
        names_edits: true,
        names_directory: true,
    }),
    hooks: Some(Hooks {
        settings_file: "hooks.json",
        // Codex reads the file with a standard JSON parser, and ignores the whole file if it contains comments.
        comments: false,
        timeout_unit: TimeoutUnit::Seconds,
        named_entries: false,
        switches: &[],
        // `codex_hooks` is the older name of the switch.
        config: Some(HookConfig {
            file: "config.toml",
            switches: &["hooks", "codex_hooks"],
            has_hooks_too: "also contains hooks; Codex runs both, and reports this at each start",
            untrusted: "Codex does not trust any of them yet, and runs none of them until then",
        }),
        // 0.169: Codex stores a hash of each trusted hook, and skips all other hooks.
        after_install: Some(
            "Codex runs new or changed hooks only after you have trusted them: it asks at its next start (\"Hooks need \
             review\"), and `/hooks` shows them",
        ),
        // Every version that reads `hooks.json` skips unknown events in it, and the sandbox, the rules and the user's
        // own hooks apply in all of them. Events are dated by their name in the program; `Stop`, `SessionEnd` and
        // `Interrupt` by what the program does with an entry.
        versions: HookVersions {
            oldest: v(0, 60, 1),
            newest: v(0, 169, 0),
            reads_the_rest_since: None,
            on_by_default: Some((v(0, 124, 0), "codex_hooks = true below [features] in config.toml")),
            events: EVENTS,
        },
        payload: HookPayload {
            shell_tools: &["Bash", "shell", "exec_command"],
            shell_switches: &[],
            shell_details: None,
            keyed_requests: true,
        },
        answers: HookAnswers {
            asking_event: "PermissionRequest",
            allowance: true,
            rewrite: false,
            before_rules: false,
            dialog_meanwhile: false,
            // The hook contains the directory of the turn, and a call may have another.
            names_directory: false,
        },
    }),
    // `codex_cli_rs` and `codex_otel.log_only` as in fixtures/telemetry, from 0.169.0.
    gen_ai_provider: Some("openai"),
    telemetry: Some(Telemetry {
        service: Name::StartsWith("codex"),
        scope: Name::StartsWith("codex_otel"),
        environment: &[],
        file: Some(TelemetryFile {
            path: "~/.codex/config.toml",
            content: "[otel]\nlog_user_prompt = false\n\n[otel.exporter.otlp-http]\nendpoint = \"{url}/v1/logs\"\n\
                      protocol = \"json\"\nheaders = { \"Authorization\" = \"Bearer {token}\" }\n",
        }),
    }),
};

const EVENTS: &[HookEvent] = &[
    new_in("SessionStart", v(0, 113, 0), v(0, 114, 0)),
    new_in("UserPromptSubmit", v(0, 115, 0), v(0, 116, 0)),
    new_in("PreToolUse", v(0, 116, 0), v(0, 117, 0)),
    new_in("PermissionRequest", v(0, 121, 0), v(0, 122, 0)),
    new_in("PostToolUse", v(0, 116, 0), v(0, 117, 0)),
    new_in("SubagentStart", v(0, 132, 0), v(0, 133, 0)),
    new_in("SubagentStop", v(0, 132, 0), v(0, 133, 0)),
    new_in("PreCompact", v(0, 128, 0), v(0, 129, 0)),
    new_in("PostCompact", v(0, 128, 0), v(0, 129, 0)),
    new_in("Stop", v(0, 113, 0), v(0, 114, 0)),
    new_in("Interrupt", v(0, 149, 1), v(0, 150, 0)),
    new_in("SessionEnd", v(0, 144, 6), v(0, 145, 0)),
];
