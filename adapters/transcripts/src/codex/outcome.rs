//! Determines the outcome of a call from the text of its output. Codex has no field for it: its own text is in the
//! first lines, before the output of the command, and only those are examined.

use events::ToolOutcome;

use super::{
    memory::OpenCall,
    records::{Field, OutputMetadata, OutputObject, OutputText},
};

/// The parsed output of a call.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Returned {
    pub(super) outcome: ToolOutcome,
    pub(super) exit_code: Option<i32>,
    pub(super) duration_ms: Option<u64>,
    pub(super) text: String,
}

/// Length of the beginning of an output that may contain Codex's own text, bytes.
const HEAD: usize = 2048;

/// Beginnings of outputs that report a failure of the call itself.
const FAILURES: &[&str] = &[
    "Script failed",
    "apply_patch verification failed",
    "apply_patch failed",
    "exec_command failed",
    "write_stdin failed",
    "execution error:",
    "failed to parse",
    "failed in sandbox",
    "unsupported call:",
    "unsupported custom tool call:",
    "tool call error:",
    "collab spawn failed",
];

/// Parses an output. `call` is the call it belongs to, if still known.
pub(super) fn read(output: OutputText, call: Option<&OpenCall>) -> Returned {
    let mut returned = plain(output);
    let head = &returned.text[..returned.text.floor_char_boundary(HEAD)];
    let header = OutputHeader::read(head);
    returned.exit_code = returned.exit_code.or(header.exit_code);
    returned.duration_ms = returned.duration_ms.or(header.duration_ms);
    let said = verdict(head, call);
    // A script is reported as "completed" regardless of its commands; their ends have reported their exit codes.
    if said.is_none() && returned.exit_code.is_none() {
        returned.exit_code = call.and_then(|call| call.exit_code);
    }
    returned.outcome = match said {
        Some(outcome) => outcome,
        None if returned.exit_code.is_some_and(|code| code != 0) => ToolOutcome::Error,
        None => returned.outcome,
    };
    returned
}

/// Older shells and patches write JSON in a string: `{"output":"…","metadata":{"exit_code":0}}`.
fn plain(output: OutputText) -> Returned {
    if output.plain
        && output.text.starts_with("{\"output\":")
        && let Ok(OutputObject { output: Some(inner), metadata, .. }) = serde_json::from_str(&output.text)
    {
        let metadata = metadata.parse::<OutputMetadata<'_>>().unwrap_or_default();
        return Returned {
            exit_code: metadata.exit_code.parse(),
            duration_ms: metadata.duration_seconds.parse().and_then(milliseconds),
            text: inner.text().unwrap_or_default(),
            ..Returned::default()
        };
    }
    Returned {
        outcome: if output.failed { ToolOutcome::Error } else { ToolOutcome::Ok },
        text: output.text,
        ..Returned::default()
    }
}

fn milliseconds(seconds: f64) -> Option<u64> {
    let ms = (seconds * 1000.0).round();
    // An f64 represents integers in this range exactly, so the cast is lossless.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "range checked")]
    (0.0..9e15).contains(&ms).then_some(ms as u64)
}

/// The header Codex writes above a command's output.
#[derive(Default)]
struct OutputHeader {
    exit_code: Option<i32>,
    duration_ms: Option<u64>,
}

impl OutputHeader {
    /// `Chunk ID: …`, `Wall time: … seconds`, `Process exited with code …`, `Output:` (0.169.0), or
    /// `Exit code: …`, `Wall time: …`, `Output:` (older).
    fn read(head: &str) -> Self {
        let mut header = Self::default();
        for line in head.lines().take(8) {
            if let Some(code) =
                line.strip_prefix("Process exited with code ").or_else(|| line.strip_prefix("Exit code: "))
            {
                header.exit_code = code.trim().parse().ok();
            } else if let Some(time) = line.strip_prefix("Wall time") {
                let number = time.trim_start_matches(':').trim().trim_end_matches("seconds").trim();
                header.duration_ms = number.parse().ok().and_then(milliseconds);
            } else if !["Chunk ID:", "Process running with", "Original token count:", "Script ", "Total output lines:"]
                .iter()
                .any(|known| line.starts_with(known))
            {
                break;
            }
        }
        header
    }
}

/// The outcome according to the first words, if they are more than a header.
///
/// An interrupted call and one whose dialog was refused end with the same words, "aborted by user after 5.7s". A
/// refusal is likely if the call requested more rights and no action of the call was recorded.
fn verdict(head: &str, call: Option<&OpenCall>) -> Option<ToolOutcome> {
    // 0.150.0 writes the wall time above it.
    let first = head.lines().find(|line| !line.starts_with("Wall time:")).unwrap_or_default();
    if first.starts_with("aborted by user") || head.starts_with("aborted") && head.len() < 16 {
        let refused = call.is_some_and(|call| call.escalated && !call.executed);
        return Some(if refused { ToolOutcome::Denied } else { ToolOutcome::Cancelled });
    }
    if head.starts_with("user cancelled MCP tool call") || head.starts_with("request_user_input was cancelled") {
        return Some(ToolOutcome::Cancelled);
    }
    if head.starts_with("user rejected MCP tool call") || head.starts_with("exec command rejected by user") {
        return Some(ToolOutcome::Denied);
    }
    let failed = FAILURES.iter().any(|words| head.starts_with(words));
    let patch = head.starts_with("patch rejected");
    if !failed && !patch {
        return None;
    }
    // `exec_command failed: CreateProcess { message: "Rejected(\"lab policy says no\")" …` (0.169.0, H02-hook-denies);
    // a refusal by the user is `rejected by user`.
    let rejected = head.split_once("Rejected(").map(|(_, reason)| reason);
    Some(match rejected {
        Some(reason) if reason.trim_start_matches(['\\', '"']).starts_with("rejected by user") => ToolOutcome::Denied,
        Some(_) => ToolOutcome::Blocked,
        None if patch => ToolOutcome::Denied,
        None => ToolOutcome::Error,
    })
}
