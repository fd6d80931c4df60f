//! Codex: decodes its rollout files.
//!
//! Decodes `$CODEX_HOME/sessions/YYYY/MM/DD/rollout-*.jsonl` in the forms Codex has written: the bare form of 2025,
//! which contains response items without envelopes, times or ends of turns; the older form (`event_msg/user_message`,
//! `event_msg/agent_message`); and the paginated form of 0.16x (`event_msg/item_completed`). Reads no files and no
//! clock. The facts are those of codex-cli 0.169.0 as recorded in `fixtures/recordings/codex`; forms marked "read" are
//! known only from Codex's source code.
//!
//! Three rules apply:
//! - Everything that is recorded twice is emitted once. Messages are read from `item_completed` (older: their own
//!   events), tool calls and their results from `response_item`, usage from `token_usage_record` (older:
//!   `token_count`). `response_item/message` is a copy and is only parsed in the bare form, which contains nothing
//!   else.
//! - Dialogs are not recorded in a rollout, so this decoder claims none.
//! - A turn begins with `task_started` and ends with `task_complete` or `turn_aborted`. A later record with an old turn
//!   id (a background command that ends) does not open a turn.
//!
//! `history.jsonl` has no decoder. It repeats each prompt, without an id or its turn and with a resolution of one
//! second, less than a second before the rollout records it (whose `task_started` reports immediately that a prompt was
//! submitted). It could only add duplicate prompts.
//!
//! Start at [`CodexDecoder`]; `envelope` finds the envelope, `records` defines the types, and each of the other modules
//! interprets one family of records.

mod ends;
mod envelope;
mod errors;
mod memory;
mod messages;
mod outcome;
mod patch;
mod provider;
mod records;
mod script;
mod session;
mod text;
mod tools;
mod turns;
mod usage;
mod writer;

use std::{path::Path, sync::Arc};

use envelope::RolloutLine;
use memory::CodexMemory;
use records::Field;
use tailer::decode::{Decoded, Decoder, Malformed, Record};
use writer::EventWriter;

/// Decodes the records of one rollout file.
#[derive(Debug)]
pub struct CodexDecoder {
    /// The thread the file belongs to: derived from the file name until `session_meta` names it.
    session: Option<Arc<str>>,
    memory: CodexMemory,
}

impl CodexDecoder {
    /// A decoder for the rollout at `path`. Starts at the beginning of the file or, with the `state` of an earlier
    /// decoder of the file, where that one stopped. An unreadable state is ignored.
    #[must_use]
    pub fn new(path: &str, state: Option<&str>) -> Self {
        let memory: CodexMemory = state.and_then(|s| serde_json::from_str(s).ok()).unwrap_or_default();
        let session = memory.thread.clone().or_else(|| session_hint(Path::new(path)));
        Self { session: session.map(Arc::from), memory }
    }
}

impl Decoder for CodexDecoder {
    fn record(&mut self, record: Record<'_>, out: &mut Decoded) -> Result<(), Malformed> {
        let line = RolloutLine::find(record.bytes)?;
        let session = self.session.clone().unwrap_or_else(|| Arc::from(""));
        let mut writer = EventWriter::new(record, line.timestamp, session, out);
        dispatch(&line, &mut self.memory, &mut writer)?;
        if let Some(thread) = &self.memory.thread
            && self.session.as_deref() != Some(thread.as_str())
        {
            self.session = Some(Arc::from(thread.as_str()));
        }
        Ok(())
    }

    fn state(&self) -> Option<String> {
        serde_json::to_string(&self.memory).ok()
    }

    fn session(&self) -> Option<&Arc<str>> {
        self.session.as_ref()
    }
}

/// Whether a path relative to `CODEX_HOME` is a rollout: below `sessions/YYYY/MM/DD` or anywhere below
/// `archived_sessions`.
#[must_use]
pub fn recognize(relative: &Path) -> bool {
    let parts: Option<Vec<&str>> = relative.iter().map(|part| part.to_str()).collect();
    let Some(parts) = parts else { return false };
    let digits = |text: &str, count: usize| text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    let name = match parts.as_slice() {
        ["sessions", year, month, day, name] if digits(year, 4) && digits(month, 2) && digits(day, 2) => name,
        ["archived_sessions", .., name] => name,
        _ => return false,
    };
    name.starts_with("rollout-") && (name.ends_with(".jsonl") || is_compressed(name))
}

/// Whether a file with this name is compressed: since 0.137 Codex compresses rollouts that were not written for a week
/// (openai/codex, `rollout/src/compression.rs`, read).
#[must_use]
pub fn is_compressed(name: &str) -> bool {
    name.ends_with(".jsonl.zst")
}

/// The thread a rollout belongs to, from its name
/// `rollout-<local time>-<thread>[_<segment>].jsonl`.
#[must_use]
pub fn session_hint(path: &Path) -> Option<String> {
    /// `2026-11-20T04-41-53-`
    const TIME: usize = 20;
    const UUID: usize = 36;
    let name = path.file_name()?.to_str()?;
    let name = name.strip_suffix(".zst").unwrap_or(name);
    let ids = name.strip_prefix("rollout-")?.strip_suffix(".jsonl")?.get(TIME..)?;
    let thread = ids.get(..UUID)?;
    let rest = &ids[UUID..];
    let uuid = thread.bytes().enumerate().all(|(i, b)| match i {
        8 | 13 | 18 | 23 => b == b'-',
        _ => b.is_ascii_hexdigit(),
    });
    (uuid && (rest.is_empty() || rest.starts_with('_'))).then(|| thread.to_owned())
}

/// Passes a line to the module for its kind. Nothing is emitted or stored before the whole line was parsed.
fn dispatch(line: &RolloutLine<'_>, memory: &mut CodexMemory, w: &mut EventWriter<'_, '_>) -> Result<(), Malformed> {
    match (line.kind, line.tag) {
        ("session_meta", _) => session::meta(line.read()?, memory, w),
        ("turn_context", _) => session::turn_context(&line.read()?, memory, w),
        ("token_usage_record", _) => usage::record(&line.read()?, memory, w),
        ("compacted", _) => turns::compacted(&line.read()?, memory, w),
        ("retained_context", "verified_answer") => {
            tools::verified_answer(&line.read()?, memory, w);
        }
        ("inter_agent_communication_metadata", _) => messages::mail_ahead(&line.read()?, memory),
        ("world_state" | "inter_agent_communication" | "retained_context", _) => line.skip()?,
        ("event_msg", tag) => event_msg(tag, line, memory, w)?,
        ("response_item", tag) => response_item(tag, line, memory, w)?,
        (kind, _) => {
            line.skip()?;
            w.unrecognized(kind);
        }
    }
    Ok(())
}

fn event_msg(
    tag: &str,
    line: &RolloutLine<'_>,
    memory: &mut CodexMemory,
    w: &mut EventWriter<'_, '_>,
) -> Result<(), Malformed> {
    match tag {
        "item_completed" => item_completed(line, memory, w)?,
        "task_started" | "turn_started" => turns::started(&line.read()?, memory, w),
        "task_complete" | "turn_complete" => turns::complete(&line.read()?, memory, w),
        "turn_aborted" => turns::aborted(&line.read()?, memory, w),
        "user_message" => messages::older_prompt(&line.read()?, memory, w),
        "agent_message" => messages::older_answer(&line.read()?, memory, w),
        "token_count" => usage::token_count(&line.read()?, memory, w),
        "thread_settings_applied" => session::settings(&line.read()?, memory, w),
        "thread_rolled_back" => session::rolled_back(&line.read()?, w),
        "thread_name_updated" => session::renamed(&line.read()?, w),
        "exec_command_end" | "patch_apply_end" | "mcp_tool_call_end" => {
            ends::older_end(&line.read()?, memory, w);
        }
        "error" => errors::reported(&line.read()?, memory, w),
        "stream_error" => errors::retrying(&line.read()?, w),
        // Recorded elsewhere in the file, or not needed.
        "agent_reasoning"
        | "agent_reasoning_raw_content"
        | "agent_reasoning_section_break"
        | "context_compacted"
        | "entered_review_mode"
        | "exited_review_mode"
        | "guardian_assessment"
        | "image_generation_end"
        | "sub_agent_activity"
        | "thread_goal_updated"
        | "turn_diff"
        | "view_image_tool_call" => line.skip()?,
        "web_search_end" => memory.search = line.read::<records::Call<'_>>()?.call_id.text(),
        // The tools of cooperating agents are separate calls.
        other if other.starts_with("collab_") && other.ends_with("_end") => line.skip()?,
        other => {
            line.skip()?;
            w.unrecognized(&format!("event_msg/{other}"));
        }
    }
    Ok(())
}

fn item_completed(
    line: &RolloutLine<'_>,
    memory: &mut CodexMemory,
    w: &mut EventWriter<'_, '_>,
) -> Result<(), Malformed> {
    let completed: records::ItemCompleted<'_> = line.read()?;
    let item = &completed.item;
    match item.kind.name().unwrap_or_default().as_ref() {
        "UserMessage" => messages::prompt(&completed, memory, w),
        "AgentMessage" => messages::answer(item, memory, w),
        "Plan" => messages::plan(item, memory, w),
        "CommandExecution" | "FileChange" | "McpToolCall" => ends::item_end(&completed, memory, w),
        // Also recorded by a response_item, or not needed.
        "Reasoning"
        | "SubAgentActivity"
        | "CollabAgentToolCall"
        | "ContextCompaction"
        | "DynamicToolCall"
        | "EnteredReviewMode"
        | "ExitedReviewMode"
        | "Extension"
        | "HookPrompt"
        | "ImageGeneration"
        | "ImageView"
        | "Sleep"
        | "WebSearch" => {}
        other => w.unrecognized(&format!("event_msg/item_completed/{other}")),
    }
    Ok(())
}

fn response_item(
    tag: &str,
    line: &RolloutLine<'_>,
    memory: &mut CodexMemory,
    w: &mut EventWriter<'_, '_>,
) -> Result<(), Malformed> {
    if tag == "message" && memory.tells_no_ends() {
        messages::likely_last(&line.read()?, w);
        return Ok(());
    }
    match tag {
        // Messages of every role are copies of `event_msg` records, or injected context.
        "message" if line.is_bare => messages::bare(&line.read()?, memory, w),
        "message" | "additional_tools" | "compaction" | "context_compaction" | "ghost_snapshot" | "other" => {
            line.skip()?;
        }
        "reasoning" if line.has_no_summary() => line.skip()?,
        "reasoning" => messages::reasoning(&line.read()?, w),
        "agent_message" => messages::mail(&line.read()?, memory, w),
        "function_call" | "custom_tool_call" | "local_shell_call" | "tool_search_call" => {
            tools::call(tag, &line.read()?, memory, w);
        }
        "web_search_call" | "image_generation_call" => tools::served(tag, &line.read()?, memory, w),
        "function_call_output" | "custom_tool_call_output" | "tool_search_output" => {
            output(line, memory, w)?;
        }
        other => {
            line.skip()?;
            w.unrecognized(&format!("response_item/{other}"));
        }
    }
    Ok(())
}

/// An output is mostly one long string, which is extracted before the rest is parsed.
fn output(line: &RolloutLine<'_>, memory: &mut CodexMemory, w: &mut EventWriter<'_, '_>) -> Result<(), Malformed> {
    if let Some((text, rest)) = line.take_text(b"\"output\":\"") {
        let mut output: records::CodexOutput<'_> = envelope::read_rest(&rest)?;
        if output.output.plain && output.output.text.is_empty() {
            output.output.text = text;
            tools::output(output, memory, w);
            return Ok(());
        }
    }
    tools::output(line.read()?, memory, w);
    Ok(())
}

#[cfg(test)]
mod tests;
