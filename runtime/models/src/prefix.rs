//! The part of a request that never changes in a session: system prompt and tools.

use session_tree::{Json, Object, context::text_of};

/// System prompt and tools as stored in the session. Requests are encoded only from this, so it stays the same after a
/// resume and after an upgrade.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prefix {
    system: String,
    tools: Vec<Object>,
}

impl Prefix {
    /// Reads a system message as stored in sessions: `content`, `sections` and `toolsAdded`, each tool with `name`,
    /// `description` and `parameters` (pi-ai 0.87.1, `SystemMessage` and `Tool`). If a session has several, pass the
    /// result of [`session_tree::context::system_message`].
    #[must_use]
    pub fn of_message(message: &Object) -> Self {
        let content = message.get("content").map(|content| text_of(content, "\n")).unwrap_or_default();
        let sections = message.get("sections").and_then(Json::as_object).into_iter().flat_map(Object::iter);
        let sections = sections.filter_map(|(_, text)| text.as_str()).map(str::to_owned);
        let system: Vec<String> = std::iter::once(content).chain(sections).filter(|text| !text.is_empty()).collect();
        let tools = message.get("toolsAdded").and_then(Json::as_array).unwrap_or_default();
        Self {
            system: system.join("\n\n"),
            tools: tools
                .iter()
                .filter_map(Json::as_object)
                .filter(|tool| tool.text("name").is_some())
                .cloned()
                .collect(),
        }
    }

    /// The system prompt; empty if there is none.
    #[must_use]
    pub fn system(&self) -> &str {
        &self.system
    }
}

/// A borrowed tool definition.
pub(crate) struct ToolSchema<'a> {
    pub(crate) name: &'a str,
    pub(crate) description: &'a str,
    /// JSON text of the schema of its input.
    pub(crate) schema: String,
}

impl Prefix {
    pub(crate) fn each_tool(&self) -> impl Iterator<Item = ToolSchema<'_>> {
        self.tools.iter().map(|tool| ToolSchema {
            name: tool.text("name").unwrap_or_default(),
            description: tool.text("description").unwrap_or_default(),
            // A tool without a schema has no parameters; every vendor requires the schema to be an object.
            schema: tool
                .get("parameters")
                .filter(|schema| schema.as_object().is_some())
                .map_or_else(|| r#"{"type":"object","properties":{}}"#.to_owned(), Json::to_text),
        })
    }
}
