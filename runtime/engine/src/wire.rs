//! The part of a session that a model is sent, and the positions of cache marks.
//!
//! Everything comes from the entries: the system prompt and the tools as stored when the session began, and the
//! messages on the path to the leaf, in order. Each entry yields the same messages in every request, so that a request
//! starts with the previous one. Content that cannot be sent is omitted or completed here, always in the same way:
//!
//! - failed and empty answers are omitted;
//! - of an aborted answer, the texts are sent with a note that it was interrupted; its calls, which did not run, are
//!   omitted, and so is its thinking, which vendors accept only complete and signed;
//! - each call is followed by its result; a missing result is generated, a result without a call is omitted;
//! - a call whose id occurs in an earlier answer gets another id: vendors refuse duplicate ids.
//!
//! Consecutive messages of one role are not joined: the wire format does that.

use std::{borrow::Cow, collections::BTreeSet};

use session_tree::{
    Context, Entry, EntryKind, Json, Object, Tree,
    context::{system_message, text_of},
    llm,
};

use crate::{
    compaction,
    effect::{RequestPurpose, SummaryForm},
    entries::{CONTEXT_TYPE, NOTE_TYPE},
    ids::{call_key, other_id},
    recorded::{calls_of, says_something},
};

/// Maximum number of blocks after a mark before another one is set.
const BLOCKS_BEHIND_MARK: usize = 15;
/// The `errorMessage` of an answer ended by the time limit.
pub(crate) const OUT_OF_TIME: &str = "out of time";
/// The `errorMessage` of an answer that ended with the session or its process.
pub(crate) const STOPPED: &str = "stopped";
/// Sent to the model after an answer that the user interrupted.
const USER_ENDED_IT: &str = "[The user interrupted this answer here.]";
/// Sent to the model after an answer that the time limit ended.
const TIME_ENDED_IT: &str = "[The time limit ended this answer here.]";
/// Sent to the model after an answer that ended with the session or its process.
const SESSION_ENDED_IT: &str = "[This answer ended here because the agent's session was closed.]";
/// Sent to the model for a call whose result is not in the file.
const LOST_RESULT: &str = "The result of this call is missing in the session's file. It may have taken effect.";

/// The content of a request to a model.
#[derive(Debug, Clone)]
pub struct WireOutline<'a> {
    /// The system prompt.
    pub system: String,
    /// The tools: `name`, `description`, `parameters`.
    pub tools: Vec<Object>,
    /// The messages.
    pub messages: Vec<WireMessage<'a>>,
    /// Cache marks in the messages; the end of the system prompt is marked too.
    pub markers: Vec<CacheMarker>,
    /// A message of the program after them, which is no entry of the session: the order to write a summary.
    pub order: Option<Object>,
}

/// A message to a model: role `user`, `assistant` or `toolResult`.
#[derive(Debug, Clone)]
pub struct WireMessage<'a> {
    /// Its entry; for a generated result, the entry of its call.
    pub entry: &'a Entry,
    /// The message, in pi's form.
    pub message: Cow<'a, Object>,
    /// Whether the program added it: it is never marked.
    pub is_injected: bool,
}

/// A cache mark at the end of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheMarker {
    /// The index of the message.
    pub message: usize,
    /// The index of the block in its content. For a result it is the last block: the result is marked as a whole.
    pub block: usize,
}

/// The content of a request for this purpose, in the current state of a session. For a flattened summary, the tree must
/// be [whole](session_tree::Session::whole_tree).
#[must_use]
pub fn outline_for<'a>(tree: &'a Tree, purpose: &RequestPurpose) -> WireOutline<'a> {
    let RequestPurpose::Compaction(request) = purpose else { return outline(tree) };
    let mut order = compaction::order(request.focus.as_deref(), request.again);
    let outline = match request.form {
        SummaryForm::Live => {
            // Only what is cached is marked: after the summary, nothing would read what else is written.
            let mut live = outline(tree);
            live.markers.pop();
            live
        }
        SummaryForm::Flattened => {
            order = compaction::flattened(tree, request.kept_tokens, request.focus.as_deref()).unwrap_or_default();
            WireOutline {
                system: compaction::SYSTEM.to_owned(),
                tools: Vec::new(),
                messages: Vec::new(),
                markers: Vec::new(),
                order: None,
            }
        }
    };
    WireOutline { order: Some(Object::new().with("role", "user").with("content", order)), ..outline }
}

/// The request content for the current state of a session.
#[must_use]
pub fn outline(tree: &Tree) -> WireOutline<'_> {
    let mut path = tree.leaf_path();
    // Most entries are this program's own and yield no message. One of them may be the first entry that a compaction
    // keeps.
    if path.iter().all(|entry| entry.kind() != EntryKind::Compaction) {
        path.retain(|entry| entry.kind() != EntryKind::Custom);
    }
    let context = Context::of_path(&path);
    let (system, tools) = system_message(&context).map(prefix_of).unwrap_or_default();
    let mut sent: Vec<WireMessage<'_>> = Vec::new();
    for item in context.entries {
        let is_injected = is_injected(item.entry);
        for message in item.messages {
            let own = match message {
                Cow::Borrowed(message) => llm::message_for_model(message),
                Cow::Owned(message) => llm::message_for_model(&message).map(|m| Cow::Owned(m.into_owned())),
            };
            let Some(message) = own.filter(|message| is_sent(message)) else { continue };
            if message.text("stopReason") == Some("aborted") {
                let (said, remark) = interrupted(&message);
                sent.push(WireMessage { entry: item.entry, message: Cow::Owned(said), is_injected });
                sent.push(WireMessage { entry: item.entry, message: Cow::Owned(remark), is_injected: true });
                continue;
            }
            sent.push(WireMessage { entry: item.entry, message, is_injected });
        }
    }
    let messages = paired(sent);
    let markers = markers(&messages);
    WireOutline { system, tools, messages, markers, order: None }
}

/// The system prompt and the tools of a system message.
fn prefix_of(message: Object) -> (String, Vec<Object>) {
    let content = message.get("content").map(|content| text_of(content, "\n")).unwrap_or_default();
    let sections = message.get("sections").and_then(Json::as_object).into_iter().flat_map(Object::iter);
    let texts = [content.as_str()].into_iter().chain(sections.filter_map(|(_, text)| text.as_str()));
    let system = texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n");
    let tools = message.get("toolsAdded").and_then(Json::as_array).unwrap_or_default();
    (system, tools.iter().filter_map(Json::as_object).cloned().collect())
}

fn is_injected(entry: &Entry) -> bool {
    let of_ours = matches!(entry.fields().text("customType"), Some(CONTEXT_TYPE | NOTE_TYPE));
    entry.kind() == EntryKind::CustomMessage && of_ours
}

/// Whether a message can be sent.
fn is_sent(message: &Object) -> bool {
    match message.text("role") {
        Some("assistant") => {
            let has_calls = || calls_of(message).next().is_some();
            match message.text("stopReason") {
                Some("error") => false,
                Some("aborted") => says_something(message),
                Some(_) | None => says_something(message) || has_calls(),
            }
        }
        Some("user") => has_content(message),
        Some("toolResult") => true,
        Some(_) | None => false,
    }
}

/// The parts of an interrupted answer that are sent: its texts, and a note after them.
fn interrupted(message: &Object) -> (Object, Object) {
    let text_only = |block: &Object| {
        let text = block.text("text").filter(|text| block.text("type") == Some("text") && !text.trim().is_empty())?;
        Some(Json::Object(Object::new().with("type", "text").with("text", text)))
    };
    let content = match message.get("content") {
        Some(Json::Array(blocks)) => {
            Json::Array(blocks.iter().filter_map(Json::as_object).filter_map(text_only).collect())
        }
        other => other.cloned().unwrap_or(Json::Null),
    };
    let mut said = message.clone();
    said.set("content", content);
    said.set("stopReason", "stop");
    said.remove("errorMessage");
    let remark = match message.text("errorMessage") {
        Some(OUT_OF_TIME) => TIME_ENDED_IT,
        Some(STOPPED) => SESSION_ENDED_IT,
        Some(_) | None => USER_ENDED_IT,
    };
    let remark = Object::new()
        .with("role", "user")
        .with("content", remark)
        .with_some("timestamp", message.get("timestamp").cloned());
    (said, remark)
}

/// Returns the messages with every call followed by its result and no duplicate call ids.
fn paired(messages: Vec<WireMessage<'_>>) -> Vec<WireMessage<'_>> {
    let mut out: Vec<WireMessage<'_>> = Vec::with_capacity(messages.len());
    // The original ids, the ids with which results are sent, and the tools.
    let mut open: Vec<SentCall> = Vec::new();
    let mut known: BTreeSet<String> = BTreeSet::new();
    let mut asked_by: Option<&Entry> = None;
    for mut message in messages {
        if message.message.text("role") == Some("toolResult") {
            let id = message.message.text("toolCallId").unwrap_or_default();
            let Some(at) = open.iter().position(|open| open.given == id) else { continue };
            // Results are in the order of their calls.
            out.extend(open.drain(..at).filter_map(|call| Some(lost(asked_by?, &call))));
            let call = open.remove(0);
            if call.sent != call.given {
                message.message.to_mut().set("toolCallId", call.sent);
            }
            out.push(message);
            continue;
        }
        out.extend(open.drain(..).filter_map(|call| Some(lost(asked_by?, &call))));
        if message.message.text("role") == Some("assistant") {
            open = open_calls(&message.message, &known, out.len());
            known.extend(open.iter().map(|call| call_key(&call.sent)));
            if open.iter().any(|call| call.sent != call.given) {
                rename_calls(message.message.to_mut(), &open);
            }
            asked_by = Some(message.entry);
        }
        out.push(message);
    }
    // The calls of the last answer may still be running: then no request is sent.
    out.extend(open.drain(..).filter_map(|call| Some(lost(asked_by?, &call))));
    out
}

/// A call that waits for its result.
struct SentCall {
    /// Its id in the file.
    given: String,
    /// Its id in the request.
    sent: String,
    tool: String,
}

/// The calls of the answer at index `at`. The ids in `known` were sent before it.
fn open_calls(answer: &Object, known: &BTreeSet<String>, at: usize) -> Vec<SentCall> {
    let mut open: Vec<SentCall> = Vec::new();
    for call in calls_of(answer) {
        let given = call.text("id").unwrap_or_default().to_owned();
        let is_taken = |id: &str| {
            let key = call_key(id);
            known.contains(&key) || open.iter().any(|other| call_key(&other.sent) == key)
        };
        // Derived only from preceding messages, so that it is the same in every request.
        let is_again = is_taken(&given);
        let sent = if is_again { other_id(format!("call_again_{at}_{}", open.len()), is_taken) } else { given.clone() };
        open.push(SentCall { given, sent, tool: call.text("name").unwrap_or_default().to_owned() });
    }
    open
}

/// Replaces the ids of an answer's calls with those that are sent.
fn rename_calls(answer: &mut Object, open: &[SentCall]) {
    let Some(Json::Array(blocks)) = answer.get("content").cloned() else { return };
    let mut calls = open.iter();
    let renamed = blocks.into_iter().map(|block| {
        let Json::Object(mut block) = block else { return block };
        if block.text("type") == Some("toolCall")
            && let Some(call) = calls.next().filter(|call| call.sent != call.given)
        {
            block.set("id", call.sent.as_str());
            // The block in the vendor's form has the old id.
            block.remove("raw");
        }
        Json::Object(block)
    });
    let renamed = Json::Array(renamed.collect());
    answer.set("content", renamed);
}

fn lost<'a>(entry: &'a Entry, call: &SentCall) -> WireMessage<'a> {
    let block = Object::new().with("type", "text").with("text", LOST_RESULT);
    let message = Object::new()
        .with("role", "toolResult")
        .with("toolCallId", call.sent.as_str())
        .with("toolName", call.tool.as_str())
        .with("content", vec![Json::Object(block)])
        .with("isError", true)
        .with("timestamp", entry.at_ms().unwrap_or_default());
    WireMessage { entry, message: Cow::Owned(message), is_injected: false }
}

/// A run of messages of one side, which become one message on the wire.
struct Side {
    is_answer: bool,
    /// The blocks that can be marked, each with the number of blocks up to and including it.
    blocks: Vec<(CacheMarker, usize)>,
    /// Number of blocks up to the end of the side.
    end: usize,
}

/// Marks the end of the last and of the second-to-last message not added by the program. If more than
/// [`BLOCKS_BEHIND_MARK`] blocks lie between the latter and the message before it, another mark is set in between:
/// providers look back only about 20 blocks for an earlier write.
fn markers(messages: &[WireMessage<'_>]) -> Vec<CacheMarker> {
    let mut sides: Vec<Side> = Vec::new();
    let mut count = 0;
    for (at, message) in messages.iter().enumerate() {
        let is_answer = message.message.text("role") == Some("assistant");
        if sides.last().is_none_or(|side| side.is_answer != is_answer) {
            sides.push(Side { is_answer, blocks: Vec::new(), end: count });
        }
        let Some(side) = sides.last_mut() else { continue };
        for (block, can_be_marked) in markable(&message.message).into_iter().enumerate() {
            count += 1;
            if can_be_marked && !message.is_injected {
                side.blocks.push((CacheMarker { message: at, block }, count));
            }
        }
        side.end = count;
    }
    let mut ends = sides.iter().filter_map(|side| side.blocks.last());
    let (last, before) = (ends.next_back(), ends.next_back());
    let earlier = ends.next_back().map_or(0, |(_, at)| *at);
    let extra = before.filter(|(_, at)| at - earlier > BLOCKS_BEHIND_MARK).and_then(|(_, end)| {
        let all = sides.iter().flat_map(|side| &side.blocks);
        all.filter(|(_, at)| *at >= earlier + BLOCKS_BEHIND_MARK && at < end).map(|(marker, _)| *marker).next()
    });
    extra.into_iter().chain(before.map(|(m, _)| *m)).chain(last.map(|(m, _)| *m)).collect()
}

/// For each block of a message, whether it can be marked. A result is one block.
fn markable(message: &Object) -> Vec<bool> {
    if message.text("role") == Some("toolResult") {
        return vec![true];
    }
    match message.get("content") {
        Some(Json::String(text)) => vec![!text.is_empty()],
        Some(Json::Array(blocks)) => blocks.iter().map(is_markable).collect(),
        Some(Json::Null | Json::Bool(_) | Json::Number(_) | Json::Object(_)) | None => Vec::new(),
    }
}

/// Whether a block can be marked: providers refuse marks on thinking and on empty texts.
fn is_markable(block: &Json) -> bool {
    let Some(block) = block.as_object() else { return false };
    match block.text("type") {
        Some("text") => block.text("text").is_some_and(|text| !text.trim().is_empty()),
        Some("image" | "toolCall") => true,
        Some(_) | None => false,
    }
}

/// Whether a user message has a text or an image.
fn has_content(message: &Object) -> bool {
    match message.get("content") {
        Some(Json::String(text)) => !text.trim().is_empty(),
        Some(Json::Array(blocks)) => blocks.iter().any(is_markable),
        Some(Json::Null | Json::Bool(_) | Json::Number(_) | Json::Object(_)) | None => false,
    }
}

#[cfg(test)]
mod tests;
