//! The messages an agent is sent at an entry.

use std::{borrow::Cow, collections::HashMap};

use crate::{
    entry::{Compaction, ContextEdit, Entry, EntryBody, EntryKey, EntryKind, Model},
    json::{Json, Object},
};

/// The default thinking level.
const NO_THINKING: &str = "off";

/// An entry and its messages.
#[derive(Debug, Clone)]
pub struct ContextEntry<'a> {
    /// The entry.
    pub entry: &'a Entry,
    /// Its messages; empty if the model sees nothing of the entry.
    pub messages: Vec<Cow<'a, Object>>,
}

/// The context at a point of the tree.
#[derive(Debug, Clone)]
pub struct Context<'a> {
    /// The chosen entries with their messages. The compaction in force comes first.
    pub entries: Vec<ContextEntry<'a>>,
    /// The thinking level, as written.
    pub thinking_level: Option<Cow<'a, Json>>,
    /// The model; `None` if the path names none.
    pub model: Option<Model<'a>>,
}

impl<'a> Context<'a> {
    /// The context at the end of a path.
    #[must_use]
    pub fn of_path(path: &[&'a Entry]) -> Self {
        let (thinking_level, model) = settings(path);
        let chosen = choose(path);
        let mut edits: HashMap<EntryKey, ContextEdit<'a>> = HashMap::new();
        for entry in &chosen {
            if let EntryBody::ContextEdit(edit) = entry.body() {
                edits.insert(edit.target.clone(), edit);
            }
        }
        let project = |(index, entry): (usize, &&'a Entry)| {
            // Among the entries kept by the last compaction there may be an older one. It yields no messages.
            let messages = if index > 0 && entry.kind() == EntryKind::Compaction {
                Vec::new()
            } else {
                edited(messages_of(entry), edits.get(entry.key()))
            };
            ContextEntry { entry, messages }
        };
        Self { entries: chosen.iter().enumerate().map(project).collect(), thinking_level, model }
    }

    /// The messages.
    pub fn messages(&self) -> impl Iterator<Item = &Object> {
        self.entries.iter().flat_map(|entry| entry.messages.iter().map(Cow::as_ref))
    }
}

/// The messages of an entry, before edits.
#[must_use]
pub fn messages_of(entry: &Entry) -> Vec<Cow<'_, Object>> {
    match entry.body() {
        EntryBody::Message(message) => message.map(with_content).into_iter().collect(),
        EntryBody::CustomMessage(message) => vec![Cow::Owned(custom(message.fields(), entry.at_ms()))],
        EntryBody::BranchSummary(summary) => {
            let told = summary.fields().get("summary").is_some_and(Json::is_truthy);
            told.then(|| Cow::Owned(branch_summary(summary.fields(), entry.at_ms()))).into_iter().collect()
        }
        EntryBody::Compaction(compaction) => {
            let system = compaction.system_message().map(Cow::Borrowed);
            system.into_iter().chain([Cow::Owned(compaction_summary(&compaction, entry.at_ms()))]).collect()
        }
        EntryBody::ThinkingLevelChange(_)
        | EntryBody::ModelChange(_)
        | EntryBody::Custom(_)
        | EntryBody::Label(_)
        | EntryBody::SessionInfo(_)
        | EntryBody::SessionInit(_)
        | EntryBody::TtsrInjection(_)
        | EntryBody::ContextEdit(_)
        | EntryBody::Usage(_)
        | EntryBody::Unknown(_) => Vec::new(),
    }
}

/// A compaction summary as a message.
pub(crate) fn compaction_summary(compaction: &Compaction<'_>, at_ms: Option<i64>) -> Object {
    let fields = compaction.fields();
    Object::new()
        .with("role", "compactionSummary")
        .with_some("summary", fields.get("summary").cloned())
        .with_some("tokensBefore", fields.get("tokensBefore").cloned())
        .with("timestamp", moment(at_ms))
}

/// A branch summary as a message.
pub(crate) fn branch_summary(fields: &Object, at_ms: Option<i64>) -> Object {
    Object::new()
        .with("role", "branchSummary")
        .with_some("summary", fields.get("summary").cloned())
        .with_some("fromId", fields.get("fromId").cloned())
        .with("timestamp", moment(at_ms))
}

/// A message of an extension.
pub(crate) fn custom(fields: &Object, at_ms: Option<i64>) -> Object {
    let content = fields.get("content").filter(|c| **c != Json::Null).cloned();
    Object::new()
        .with("role", "custom")
        .with_some("customType", fields.get("customType").cloned())
        .with("content", content.unwrap_or(Json::Array(Vec::new())))
        .with_some("display", fields.get("display").cloned())
        .with_some("details", fields.get("details").cloned())
        .with("timestamp", moment(at_ms))
}

/// The text of a content: a string itself, or the text blocks joined.
#[must_use]
pub fn text_of(content: &Json, separator: &str) -> String {
    match content {
        Json::String(text) => text.clone(),
        Json::Array(blocks) => {
            let texts = blocks.iter().filter_map(Json::as_object).filter(|block| block.text("type") == Some("text"));
            texts.map(|block| block.text("text").unwrap_or_default()).collect::<Vec<_>>().join(separator)
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Object(_) => String::new(),
    }
}

/// A content as blocks: a string becomes one text block.
pub(crate) fn blocks(content: Json) -> Json {
    match content {
        Json::String(text) => Json::Array(vec![Object::new().with("type", "text").with("text", text).into()]),
        other @ (Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_)) => other,
    }
}

pub(crate) fn moment(at_ms: Option<i64>) -> Json {
    at_ms.map_or(Json::Null, Json::from)
}

/// A message with missing content gets an empty one.
fn with_content(message: &Object) -> Cow<'_, Object> {
    let empty: Json = match message.text("role") {
        Some("system") => "".into(),
        Some("user" | "assistant" | "toolResult") => Json::Array(Vec::new()),
        Some(_) | None => return Cow::Borrowed(message),
    };
    match message.get("content") {
        None | Some(Json::Null) => Cow::Owned(message.clone().with("content", empty)),
        Some(_) => Cow::Borrowed(message),
    }
}

pub(crate) fn edited<'a>(messages: Vec<Cow<'a, Object>>, edit: Option<&ContextEdit<'a>>) -> Vec<Cow<'a, Object>> {
    let Some(edit) = edit else { return messages };
    let content = match edit.replacement {
        Some(Json::Object(replacement)) => replacement.get("content"),
        Some(Json::Null) => return Vec::new(),
        Some(Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_)) => None,
        // pi fails on an edit without a replacement; here it changes nothing.
        None => return messages,
    };
    let replace = |message: Cow<'a, Object>| {
        let content = match message.text("role") {
            Some("assistant" | "toolResult") => content.cloned().map(blocks),
            Some("user" | "custom") => content.cloned(),
            Some(_) | None => return message,
        };
        let mut message = message.into_owned();
        match content {
            Some(content) => message.set("content", content),
            None => drop(message.remove("content")),
        }
        Cow::Owned(message)
    };
    messages.into_iter().map(replace).collect()
}

/// The last thinking level and model named on the path, even if before a compaction.
pub(crate) fn settings<'a>(path: &[&'a Entry]) -> (Option<Cow<'a, Json>>, Option<Model<'a>>) {
    let (mut level, mut model) = (Some(Cow::Owned(NO_THINKING.into())), None);
    for entry in path {
        match entry.body() {
            EntryBody::ThinkingLevelChange(new) => level = new.map(Cow::Borrowed),
            EntryBody::ModelChange(new) => model = Some(new),
            EntryBody::Message(Some(message)) if message.text("role") == Some("assistant") => {
                model = Some(Model { provider: message.get("provider"), id: message.get("model"), both: None });
            }
            EntryBody::Message(_)
            | EntryBody::Compaction(_)
            | EntryBody::BranchSummary(_)
            | EntryBody::Custom(_)
            | EntryBody::CustomMessage(_)
            | EntryBody::Label(_)
            | EntryBody::SessionInfo(_)
            | EntryBody::SessionInit(_)
            | EntryBody::TtsrInjection(_)
            | EntryBody::ContextEdit(_)
            | EntryBody::Usage(_)
            | EntryBody::Unknown(_) => {}
        }
    }
    (level, model)
}

/// The last compaction, the entries it keeps, and the entries after it.
fn choose<'a>(path: &[&'a Entry]) -> Vec<&'a Entry> {
    let Some(compaction) = path.iter().rev().find(|entry| entry.kind() == EntryKind::Compaction) else {
        return path.to_vec();
    };
    let at = path.iter().position(|entry| entry.key() == compaction.key()).unwrap_or_default();
    let first_kept = EntryKey::of(compaction.fields().get("firstKeptEntryId"));
    let kept = path[..at].iter().skip_while(|entry| *entry.key() != first_kept);
    // The compaction contains the system prompt.
    let kept = kept.filter(|entry| entry.role() != Some("system"));
    [compaction].into_iter().chain(kept).chain(&path[at + 1..]).copied().collect()
}
