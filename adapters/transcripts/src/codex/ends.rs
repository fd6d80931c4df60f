//! Decodes the ends of commands, patches and MCP calls, which are recorded in addition to the results of calls.
//!
//! An end adds details to a call but is never its result. In code mode the item's id is not the call's, see
//! [`CodexMemory::owner`].

use events::{ToolOutcome, ToolResult};

use super::{
    memory::CodexMemory,
    patch,
    records::{Duration, Field, ItemCompleted, McpResult, OlderEnd, RawField},
    tools,
    writer::EventWriter,
};

/// The end of an action performed by a call.
struct CallEnd<'a> {
    item: &'a str,
    turn: Option<&'a str>,
    began_ms: Option<i64>,
    outcome: ToolOutcome,
    exit_code: Option<i32>,
    duration_ms: Option<u64>,
    output: Option<RawField<'a>>,
    command: Option<String>,
}

/// `item_completed` CommandExecution, FileChange, McpToolCall.
pub(super) fn item_end(completed: &ItemCompleted<'_>, memory: &mut CodexMemory, w: &mut EventWriter<'_, '_>) {
    let item = &completed.item;
    let Some(id) = item.id.name() else { return };
    let turn = completed.turn_id.name();
    let exit_code: Option<i32> = item.exit_code.parse();
    let ended = CallEnd {
        item: &id,
        turn: turn.as_deref(),
        began_ms: completed.started_at_ms.parse(),
        outcome: outcome_of(item.status, exit_code),
        exit_code,
        duration_ms: duration(item.duration),
        output: item.aggregated_output,
        command: item.command.and_then(tools::command),
    };
    detail(&ended, memory, w);
}

/// `exec_command_end`, `patch_apply_end`, `mcp_tool_call_end` (read).
pub(super) fn older_end(end: &OlderEnd<'_>, memory: &mut CodexMemory, w: &mut EventWriter<'_, '_>) {
    let Some(id) = end.call_id.name() else { return };
    let turn = end.turn_id.name();
    let exit_code: Option<i32> = end.exit_code.parse();
    let failed = end.success.is_some_and(|success| success.json() == "false")
        || end.result.parse::<McpResult<'_>>().is_some_and(|result| result.ok.is_none() && result.err.is_some());
    let outcome = if failed { ToolOutcome::Error } else { outcome_of(end.status, exit_code) };
    let ended = CallEnd {
        item: &id,
        turn: turn.as_deref(),
        began_ms: None,
        outcome,
        exit_code,
        duration_ms: duration(end.duration),
        output: end.aggregated_output.or(end.stdout),
        command: None,
    };
    detail(&ended, memory, w);
}

fn outcome_of(status: Option<RawField<'_>>, exit_code: Option<i32>) -> ToolOutcome {
    match status.name().as_deref() {
        Some("declined") => ToolOutcome::Denied,
        Some("failed") => ToolOutcome::Error,
        _ if exit_code.is_some_and(|code| code != 0) => ToolOutcome::Error,
        _ => ToolOutcome::Ok,
    }
}

fn duration(raw: Option<RawField<'_>>) -> Option<u64> {
    let duration = raw.parse::<Duration<'_>>()?;
    let secs: u64 = duration.secs.parse()?;
    let nanos: u64 = duration.nanos.parse().unwrap_or_default();
    Some(secs.saturating_mul(1000).saturating_add(nanos / 1_000_000))
}

/// Emits the detail. While the call is open, its result will contain the output; for a command that outlived its call,
/// only this record has it.
fn detail(ended: &CallEnd<'_>, memory: &mut CodexMemory, w: &mut EventWriter<'_, '_>) {
    let owner = memory.owner(ended.item, ended.turn, ended.began_ms);
    let call = owner.map(|call| {
        // The script's other commands are not evidence about the one that requested more rights.
        let asking = call.asks.is_none() || call.asks == ended.command.as_deref().and_then(patch::title);
        call.executed |= asking && ended.outcome != ToolOutcome::Denied;
        if let Some(code) = ended.exit_code {
            call.exit_code = Some(if code != 0 { code } else { call.exit_code.unwrap_or(0) });
        }
        call.id.clone()
    });
    let data = ToolResult {
        call_id: call.clone().unwrap_or_else(|| ended.item.to_owned()),
        outcome: ended.outcome,
        exit_code: ended.exit_code,
        duration_ms: ended.duration_ms,
        detail: true,
    };
    let mut event = w.event("end", Some(ended.item), data);
    match call {
        Some(call) => event.parent = Some(w.call_identity(&call)),
        None => event.text = ended.output.text(),
    }
    w.push(event);
}
