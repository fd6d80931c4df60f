//! `capture show --all`: a session as a conversation.

use std::io::Write;

use client::Client;
use export::conversation::{ConversationFormat, heading, item, subagent_forgotten, subagent_heading};
use printing::{markdown, style};
use projections::Session;

use printing::{is_seen, safe_lines};

use crate::commands::export::session::{ConversationPart, SessionExportError, Subagents, each_item, each_part};

use super::{context::Context, report::fitted};

/// Maximum number of lines of tool input or output shown on a terminal.
const LINES: usize = 20;

/// The left margin of a sub-agent's conversation: on a terminal, and in a file or pipe.
const EDGE: &str = "│ ";
const QUOTE: &str = "> ";

/// Prints the whole conversation.
pub(super) fn show(context: &Context, client: &Client, session: &Session, subagents: Subagents) -> anyhow::Result<()> {
    if context.json {
        return each_item(client, session, |one| context.print_json(&one)).map_err(without_wrapping);
    }
    let mut out = printing::stdout();
    let lines = is_seen().then_some(LINES);
    let format = ConversationFormat { lines, thinking: true, time: &style::local };
    let mut write = |text: String, depth: usize| {
        // A margin marks sub-agents, so that their text keeps its colours.
        let text = fitted(&markdown::painted(&safe_lines(&text)), depth * EDGE.chars().count());
        let edge = if is_seen() { style::painted(EDGE, style::DIM) } else { QUOTE.to_owned() }.repeat(depth);
        let lines: String = text.lines().map(|line| format!("{edge}{line}\n")).collect();
        out.write_all(lines.as_bytes())
    };
    write(heading(session, format), 0)?;
    let mut depth = 0;
    each_part(client, session, subagents, |part| {
        let text = match part {
            ConversationPart::Item(one) => item(one, format),
            ConversationPart::SubagentBegins(subagent) => {
                depth += 1;
                subagent_heading(subagent)
            }
            ConversationPart::SubagentForgotten => subagent_forgotten(),
            ConversationPart::SubagentEnds => {
                depth -= 1;
                "\n".to_owned()
            }
        };
        Ok(write(text, depth)?)
    })
    .map_err(without_wrapping)
}

/// Unwraps an error of the client, which decides the exit code.
pub(super) fn without_wrapping(error: anyhow::Error) -> anyhow::Error {
    match error.downcast() {
        Ok(SessionExportError::Client(error)) => error.into(),
        Ok(error) => error.into(),
        Err(error) => error,
    }
}

#[cfg(test)]
mod tests {
    use events::{Timestamp, ToolKind};
    use projections::{ConversationItem, ItemBody, ItemText};

    use super::*;

    #[test]
    fn control_characters_in_a_diff_are_escaped() {
        let input = serde_json::json!({"file_path": "a", "content": "a\u{1b}[2J\u{202e}b\u{61c}\r\n"}).to_string();
        let body = ItemBody::ToolCall {
            call_id: "c".into(),
            name: "Write".into(),
            tool: ToolKind::Edit,
            title: None,
            input: ItemText { text: input, text_ref: None },
            result: None,
            subagents: Vec::new(),
        };
        let at = Timestamp::from_millisecond(5);
        let one = ConversationItem { sequence: 1, at, turn_id: None, agent_id: None, body };
        let format = ConversationFormat { lines: None, thinking: true, time: &|_| String::new() };
        let shown = safe_lines(&item(&one, format));
        assert!(shown.contains("+a\\u{1b}[2J\\u{202e}b\\u{61c}\\u{d}\n"), "{shown}");
    }
}
