//! The system prompt and tools after all messages that changed them: `getCurrentSystemMessage` of pi-ai 0.87.1.

use crate::{
    context::messages::{Context, text_of},
    json::{Json, Object},
};

/// One message that combines all system messages of a context; `None` if there are none.
#[must_use]
pub fn system_message(context: &Context<'_>) -> Option<Object> {
    let (mut content, mut sections, mut tools) = (Vec::new(), Object::new(), Vec::new());
    let mut timestamp = None;
    for message in context.messages().filter(|message| message.text("role") == Some("system")) {
        timestamp = timestamp.or_else(|| message.get("timestamp").filter(|t| **t != Json::Null));
        content.extend(message.get("content").map(|c| text_of(c, "\n")).filter(|text| !text.is_empty()));
        patch(&mut sections, message.get("sections"));
        change_tools(&mut tools, message);
    }
    if timestamp.is_none() && tools.is_empty() {
        return None;
    }
    let tools: Vec<Json> = tools.into_iter().map(|(_, tool)| tool.clone()).collect();
    let message = Object::new()
        .with("role", "system")
        .with("content", content.join("\n\n"))
        .with_some("sections", (!sections.is_empty()).then_some(sections))
        .with_some("toolsAdded", (!tools.is_empty()).then_some(tools))
        .with("timestamp", timestamp.cloned().unwrap_or_else(|| 0_i64.into()));
    Some(message)
}

/// Sections are replaced by name; `null` removes one.
fn patch(sections: &mut Object, changes: Option<&Json>) {
    for (name, text) in changes.and_then(Json::as_object).into_iter().flat_map(Object::iter) {
        match text {
            Json::Null => drop(sections.remove(name)),
            text @ (Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) | Json::Object(_)) => {
                sections.set(name, text.clone());
            }
        }
    }
}

fn change_tools<'a>(tools: &mut Vec<(Option<&'a str>, &'a Json)>, message: &'a Object) {
    let listed = |key: &str| message.get(key).and_then(Json::as_array).unwrap_or_default();
    let name_of = |tool: &'a Json| tool.as_object().and_then(|tool| tool.text("name"));
    for removed in listed("toolsRemoved") {
        tools.retain(|(name, _)| *name != name_of(removed));
    }
    for added in listed("toolsAdded") {
        match tools.iter_mut().find(|(name, _)| *name == name_of(added)) {
            Some((_, tool)) => *tool = added,
            None => tools.push((name_of(added), added)),
        }
    }
}
