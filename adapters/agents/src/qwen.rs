//! Qwen Code. All facts were tested with 0.24.4, which needs Node.js 22.

use events::Provider;

use crate::{
    facts::{Agent, Commands, Home, PrintedVersion, TranscriptPath, Transcripts, VersionSources},
    hooks::{HookAnswers, HookEvent, HookPayload, HookVersions, Hooks, Switch, TimeoutUnit, from_the_first, v},
};

/// Qwen Code.
pub static QWEN: Agent = Agent {
    provider: Provider::Qwen,
    programs: &["qwen"],
    // It restarts itself as `node --expose-gc …/@qwen-code/qwen-code/cli.js`.
    script_below: Some("/@qwen-code/qwen-code/cli"),
    version: VersionSources {
        package: Some("@qwen-code/qwen-code"),
        directory: None,
        printed: Some(PrintedVersion { before: &[""], behind: "" }),
    },
    daemon_word: None,
    headless: &["-p", "--prompt"],
    tells_headless: false,
    commands: Commands::AllBut(&[]),
    // Set for commands of its shell, but not for hooks.
    descent_variables: &["QWEN_CODE"],
    // `QWEN_RUNTIME_DIR` and a setting move the conversations; the user then lists the directory in `[roots]`.
    home: Home { variable: "QWEN_HOME", below_variable: "", usual: &[".qwen"] },
    transcripts: Transcripts { directories: &["projects"], path: TranscriptPath::EndsWith(".jsonl") },
    resume: Some("qwen --resume"),
    resume_model: Some("--model"),
    resume_harm: None,
    interrupt_key: b"\x1b",
    tested_dialogs: &[],
    mcp_settings: None,
    // It has `--acp`, which was not tested.
    drive: None,
    hooks: Some(Hooks {
        settings_file: "settings.json",
        comments: true,
        // A number from 1000 on is interpreted as milliseconds.
        timeout_unit: TimeoutUnit::SecondsBelow(1_000),
        named_entries: false,
        switches: &[Switch::All { path: &["disableAllHooks"], off: true }],
        config: None,
        after_install: None,
        // If the file contains an unknown event, the other hooks are called and a rule that denies applies.
        versions: HookVersions {
            oldest: v(0, 24, 4),
            newest: v(0, 24, 4),
            reads_the_rest_since: None,
            on_by_default: None,
            events: EVENTS,
        },
        payload: HookPayload {
            shell_tools: &["run_shell_command"],
            shell_switches: &["is_background"],
            shell_details: None,
            keyed_requests: true,
        },
        answers: HookAnswers {
            asking_event: "PermissionRequest",
            // Tested: an allowed command ran, a denied one did not, and the model received the reason.
            allowance: true,
            // Not tested.
            rewrite: false,
            before_rules: false,
            dialog_meanwhile: false,
            // A call may name another directory.
            names_directory: false,
        },
    }),
    // It has telemetry, which was not examined.
    gen_ai_provider: None,
    telemetry: None,
};

/// Omitted: `PostToolBatch`, `MessageDisplay`, `UserPromptExpansion`, `InstructionsLoaded`, `TodoCreated`,
/// `TodoCompleted` and `SessionDelete`, which do not affect the status.
const EVENTS: &[HookEvent] = &[
    from_the_first("SessionStart", v(0, 24, 4)),
    from_the_first("UserPromptSubmit", v(0, 24, 4)),
    from_the_first("PreToolUse", v(0, 24, 4)),
    from_the_first("PostToolUse", v(0, 24, 4)),
    from_the_first("PostToolUseFailure", v(0, 24, 4)),
    from_the_first("PermissionRequest", v(0, 24, 4)),
    from_the_first("PermissionDenied", v(0, 24, 4)),
    from_the_first("Notification", v(0, 24, 4)),
    from_the_first("Stop", v(0, 24, 4)),
    from_the_first("StopFailure", v(0, 24, 4)),
    from_the_first("SubagentStart", v(0, 24, 4)),
    from_the_first("SubagentStop", v(0, 24, 4)),
    from_the_first("PreCompact", v(0, 24, 4)),
    from_the_first("PostCompact", v(0, 24, 4)),
    from_the_first("SessionEnd", v(0, 24, 4)),
];
