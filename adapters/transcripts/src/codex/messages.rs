//! Decodes messages: prompts, answers, thinking, mail between agents.

use events::{AssistantDelta, AssistantMessage, Block, Confidence, PromptOrigin, Stop, TurnOutcome, UserPrompt};

use super::{
    memory::{CodexMemory, EmittedText, MessageForm, Starter},
    records::{
        BareMessage, Field, Item, ItemCompleted, Mail, MailAhead, OlderMessage, RawField, Reasoning, Role, join_parts,
        parts,
    },
    session,
    writer::EventWriter,
};

/// Beginnings of context that Codex injects in the user's name.
const INJECTED: &[&str] = &[
    "<turn_aborted>",
    "<environment_context>",
    "<user_instructions>",
    "<user_shell_command>",
    "<subagent_notification>",
    "# AGENTS.md instructions",
];

/// `item_completed` UserMessage.
pub(super) fn prompt(completed: &ItemCompleted<'_>, memory: &mut CodexMemory, w: &mut EventWriter<'_, '_>) {
    let item = &completed.item;
    let text = join_parts(item.content, "\n");
    let images =
        parts(item.content).iter().filter(|part| part.kind.name().is_some_and(|kind| kind.contains("mage"))).count();
    if injected(&text) || EmittedText::repeats(&mut memory.last_prompt, MessageForm::Item, &text) {
        return;
    }
    let (origin, stated) = origin(memory);
    let prompt = UserPrompt {
        origin,
        stated,
        attachments: u32::try_from(images).unwrap_or(u32::MAX),
        provider_turn_id: completed.turn_id.text(),
    };
    put_prompt(item.id, prompt, text, memory, w);
}

/// `user_message`: the older form of a prompt.
pub(super) fn older_prompt(message: &OlderMessage<'_>, memory: &mut CodexMemory, w: &mut EventWriter<'_, '_>) {
    let text = message.message.text().unwrap_or_default();
    if injected(&text) || EmittedText::repeats(&mut memory.last_prompt, MessageForm::Event, &text) {
        return;
    }
    memory.refused = false;
    let count = |list: Option<RawField<'_>>| list.parse::<Vec<RawField<'_>>>().map_or(0, |list| list.len());
    let images = count(message.images) + count(message.local_images);
    let (origin, stated) = origin(memory);
    let prompt = UserPrompt {
        origin,
        stated,
        attachments: u32::try_from(images).unwrap_or(u32::MAX),
        provider_turn_id: memory.turn.as_ref().and_then(|turn| turn.id.clone()),
    };
    put_prompt(None, prompt, text, memory, w);
}

/// `message` of the bare form: prompts, answers, and Codex's injected context, which names the working directory.
pub(super) fn bare(message: &BareMessage<'_>, memory: &mut CodexMemory, w: &mut EventWriter<'_, '_>) {
    let text = join_parts(message.content, "\n");
    match message.role.name().as_deref() {
        Some("user") if injected(&text) => session::environment(&text, memory, w),
        Some("user") => {
            let content = parts(message.content);
            let images = content.iter().filter(|part| part.kind.name().as_deref() == Some("input_image")).count();
            let attachments = u32::try_from(images).unwrap_or(u32::MAX);
            let (origin, stated) = origin(memory);
            let prompt = UserPrompt { origin, stated, attachments, provider_turn_id: None };
            put_prompt(None, prompt, text, memory, w);
        }
        Some("assistant") => put_answer(message.id, None, text, memory, w),
        _ => {}
    }
}

fn put_prompt(
    id: Option<RawField<'_>>,
    prompt: UserPrompt,
    text: String,
    memory: &mut CodexMemory,
    w: &mut EventWriter<'_, '_>,
) {
    if let Some(turn) = &mut memory.turn {
        turn.prompted = true;
    }
    let mut event = w.event("prompt", id.name().as_deref(), prompt);
    event.text = Some(text);
    w.push(event);
}

fn injected(text: &str) -> bool {
    let text = text.trim_start();
    INJECTED.iter().any(|head| text.starts_with(head))
}

/// The origin of the next prompt, and whether the file states it.
fn origin(memory: &CodexMemory) -> (PromptOrigin, bool) {
    let turn = memory.turn.as_ref();
    let starter = turn.map_or(Starter::Unsaid, |turn| turn.starter);
    if turn.is_some_and(|turn| turn.prompted) {
        // A message into a running turn. Only the turn's starter is recorded, so nothing states who wrote it.
        return (PromptOrigin::Steering, false);
    }
    match starter {
        Starter::Itself => (PromptOrigin::Wakeup, true),
        Starter::Agent => (PromptOrigin::Agent, true),
        Starter::User => (PromptOrigin::Human, true),
        Starter::Command | Starter::Unsaid if memory.subagent => (PromptOrigin::Agent, false),
        Starter::Command | Starter::Unsaid => (PromptOrigin::Human, false),
    }
}

/// `item_completed` AgentMessage.
pub(super) fn answer(item: &Item<'_>, memory: &mut CodexMemory, w: &mut EventWriter<'_, '_>) {
    let text = join_parts(item.content, "");
    if !EmittedText::repeats(&mut memory.last_answer, MessageForm::Item, &text) {
        put_answer(item.id, item.phase, text, memory, w);
    }
}

/// `agent_message`: the older form of an answer.
pub(super) fn older_answer(message: &OlderMessage<'_>, memory: &mut CodexMemory, w: &mut EventWriter<'_, '_>) {
    memory.has_ends |= message.phase.name().is_some();
    let text = message.message.text().unwrap_or_default();
    if !EmittedText::repeats(&mut memory.last_answer, MessageForm::Event, &text) {
        put_answer(None, message.phase, text, memory, w);
        if memory.tells_no_ends() {
            w.likely_works("an answer; calls are written once they are done".into());
        }
    }
}

/// `response_item/message` in a file without ends of turns: it is written together with the calls of the same response,
/// so an answer without a following call is likely the last.
pub(super) fn likely_last(message: &Role<'_>, w: &mut EventWriter<'_, '_>) {
    if message.role.name().is_some_and(|role| role == "assistant") {
        w.turn_ended(None, TurnOutcome::Completed, Confidence::Low, "an answer, and no call with it".into());
    }
}

/// `item_completed` Plan: the model's proposal in plan mode. Codex removes it from the accompanying answer (0.169.0,
/// S18-plan), so it is emitted as a separate answer for the reader.
pub(super) fn plan(item: &Item<'_>, memory: &CodexMemory, w: &mut EventWriter<'_, '_>) {
    put_answer(item.id, None, item.text.text().unwrap_or_default(), memory, w);
}

/// The phase is only present if the model sent it, so an answer without a phase is not evidence about the turn's end.
fn put_answer(
    id: Option<RawField<'_>>,
    phase: Option<RawField<'_>>,
    text: String,
    memory: &CodexMemory,
    w: &mut EventWriter<'_, '_>,
) {
    let id = id.name();
    let last = phase.name().is_some_and(|phase| phase == "final_answer");
    let message = AssistantMessage {
        message_id: id.as_deref().map(str::to_owned),
        model: memory.model.clone(),
        stop: last.then_some(Stop::EndTurn),
        blocks: 1,
        ..AssistantMessage::default()
    };
    let mut event = w.event("message", id.as_deref(), message);
    event.text = Some(text);
    w.push(event);
}

/// `response_item/reasoning`: written once per piece of thinking in both forms of rollouts. The accompanying events are
/// written per paragraph (older) or are copies (paginated).
pub(super) fn reasoning(reasoning: &Reasoning<'_>, w: &mut EventWriter<'_, '_>) {
    let text = join_parts(reasoning.summary, "\n\n");
    if text.is_empty() {
        return;
    }
    let id = reasoning.id.name();
    let delta = AssistantDelta {
        message_id: id.as_deref().map(str::to_owned),
        block: Block::Thinking,
        ..AssistantDelta::default()
    };
    let mut event = w.event("reasoning", id.as_deref(), delta);
    event.text = Some(text);
    w.push(event);
}

/// `inter_agent_communication_metadata`: whether the mail in the next line starts a turn.
pub(super) fn mail_ahead(ahead: &MailAhead<'_>, memory: &mut CodexMemory) {
    memory.mail_triggers = ahead.trigger_turn.is_true();
}

/// `response_item/agent_message`: mail from another agent. Mail that starts a turn is its prompt: the task of a
/// sub-agent (0.169.0, S12-subagent), or a wakeup of a main agent. Other mail is a sub-agent's answer, which is
/// recorded in the sub-agent's own file.
pub(super) fn mail(mail: &Mail<'_>, memory: &mut CodexMemory, w: &mut EventWriter<'_, '_>) {
    if !std::mem::take(&mut memory.mail_triggers) {
        return;
    }
    let prompt = UserPrompt {
        origin: if memory.subagent { PromptOrigin::Agent } else { PromptOrigin::Wakeup },
        stated: true,
        attachments: 0,
        provider_turn_id: memory.turn.as_ref().and_then(|turn| turn.id.clone()),
    };
    put_prompt(mail.id, prompt, letter(mail), memory, w);
}

/// The body of a mail, below its header (`Message Type: …` to `Payload:`). OpenAI's models encrypt it: then only the
/// header is readable and is used instead.
fn letter(mail: &Mail<'_>) -> String {
    let mut text = String::new();
    for part in parts(mail.content) {
        if let Some(piece) = part.text.text() {
            text.push_str(&piece);
        } else if let Some(piece) = part.encrypted_content.text().filter(|piece| !piece.starts_with("gAAAA")) {
            text.push_str(&piece);
        }
    }
    match text.split_once("\nPayload:\n") {
        Some((_, body)) if !body.trim().is_empty() => body.to_owned(),
        Some(_) | None => text,
    }
}
