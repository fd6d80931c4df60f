//! Decodes the beginnings and ends of turns.

use events::{CompactTrigger, Confidence, ContextCompacted, Reason, Topic, TurnOutcome};

use super::{
    errors,
    memory::{CodexMemory, OpenTurn, Starter},
    records::{Attribution, Compacted, Failure, Field, Turn},
    session::annotate,
    writer::EventWriter,
};

/// `task_started`. `turn_attribution` names the starter of the turn; in a file whose turns have one, a turn without it
/// belongs to a command of Codex itself (0.169.0, S13-compact: `/compact`).
pub(super) fn started(turn: &Turn<'_>, memory: &mut CodexMemory, w: &mut EventWriter<'_, '_>) {
    let attribution = turn.turn_attribution.parse::<Attribution<'_>>();
    let trigger = attribution.and_then(|said| said.turn_trigger.name());
    let starter = match (trigger.as_deref(), &attribution) {
        (_, Some(said)) if said.initiating_agent_path.name().is_some() => Starter::Agent,
        // `exec`: the prompt was an argument of `codex exec` (0.171.0).
        (Some("user" | "exec"), _) => Starter::User,
        (Some(_), _) => Starter::Itself,
        (None, _) if memory.attributed => Starter::Command,
        (None, _) => Starter::Unsaid,
    };
    memory.attributed |= attribution.is_some();
    memory.has_ends = true;
    let id = turn.turn_id.text();
    let (reason, words) = match starter {
        Starter::Command => (Reason::Compacting, "task_started without a trigger".to_owned()),
        Starter::Itself => (Reason::Thinking, format!("task_started by {}", trigger.unwrap_or_default())),
        Starter::User | Starter::Agent | Starter::Unsaid => (Reason::Thinking, "task_started".to_owned()),
    };
    w.running(id.as_deref(), reason, words);
    memory.calls.clear();
    memory.turn = Some(OpenTurn { id, starter, ..OpenTurn::default() });
    if let Some(trace) = turn.trace_id.name().filter(|trace| is_trace(trace)) {
        annotate(Topic::Trace, trace.into_owned(), w);
    }
}

/// Whether this is a trace id: 16 bytes in hexadecimal digits, not all of them 0.
fn is_trace(id: &str) -> bool {
    id.len() == 32 && id.bytes().all(|digit| digit.is_ascii_hexdigit()) && id.bytes().any(|digit| digit != b'0')
}

/// `task_complete`, with `error` if the turn failed.
pub(super) fn complete(turn: &Turn<'_>, memory: &mut CodexMemory, w: &mut EventWriter<'_, '_>) {
    let id = turn.turn_id.name();
    let told = close(id.as_deref(), memory);
    let failure = turn.error.map(|error| match error.parse::<Failure<'_>>() {
        Some(failure) => failure,
        None => Failure { message: Some(error), ..Failure::default() },
    });
    if let (Some(failure), false) = (&failure, told.failed) {
        errors::ended_turn(failure, id.as_deref(), w);
    }
    let (outcome, words) = if failure.is_some() || told.failed {
        (TurnOutcome::Failed, "task_complete with error")
    } else {
        (TurnOutcome::Completed, "task_complete")
    };
    w.turn_ended(id.as_deref(), outcome, Confidence::High, words.to_owned());
}

/// `turn_aborted`. A refused dialog and an interrupt are recorded with the same words; only the refused call (see
/// `outcome`) distinguishes them, and not with certainty.
pub(super) fn aborted(turn: &Turn<'_>, memory: &mut CodexMemory, w: &mut EventWriter<'_, '_>) {
    let id = turn.turn_id.name();
    let mut told = close(id.as_deref(), memory);
    told.denied |= std::mem::take(&mut memory.refused);
    let reason = turn.reason.name().unwrap_or_default();
    let (outcome, strength) = match reason.as_ref() {
        "replaced" => (TurnOutcome::Superseded, Confidence::High),
        "review_ended" => (TurnOutcome::Completed, Confidence::High),
        _ if told.denied => (TurnOutcome::Denied, Confidence::Medium),
        _ => (TurnOutcome::Interrupted, Confidence::High),
    };
    w.turn_ended(id.as_deref(), outcome, strength, format!("turn_aborted: {reason}"));
}

/// Removes and returns the open turn if it is the one that ends.
fn close(id: Option<&str>, memory: &mut CodexMemory) -> OpenTurn {
    let same = memory.turn.as_ref().is_some_and(|open| id.is_none() || open.id.is_none() || open.id.as_deref() == id);
    if !same {
        return OpenTurn::default();
    }
    memory.calls.clear();
    memory.turn.take().unwrap_or_default()
}

/// `compacted`: in a separate turn if the user requested it, otherwise within the agent's turn.
pub(super) fn compacted(record: &Compacted<'_>, memory: &CodexMemory, w: &mut EventWriter<'_, '_>) {
    let trigger = memory.turn.as_ref().and_then(|turn| match turn.starter {
        Starter::Command => Some(CompactTrigger::Manual),
        Starter::User | Starter::Agent | Starter::Itself => Some(CompactTrigger::Auto),
        Starter::Unsaid => None,
    });
    let data = ContextCompacted { trigger, ..ContextCompacted::default() };
    let mut event = w.event("compacted", record.window_id.name().as_deref(), data);
    event.text = record.message.text().filter(|text| !text.is_empty());
    w.push(event);
}
