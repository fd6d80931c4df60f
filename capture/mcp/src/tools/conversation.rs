//! The conversation of a session, in parts that fit a model's context.

use api::{
    history::{ConversationQuery, ConversationTexts},
    list::Limit,
    routes::ReadConversation,
};
use events::{ApprovalId, SessionId, Timestamp};
use projections::{ConversationItem, ItemBody};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ToolError, sessions::find};
use crate::{
    link::Link,
    text::{NOTE, TextPart, clean, maybe_line},
};

/// Default and maximum number of items in an answer.
const ITEMS: (usize, usize) = (20, 100);
/// Default length of a text, and its bounds, characters.
const TEXT: usize = 2_000;
const TEXT_BOUNDS: (usize, usize) = (100, 20_000);
/// Number of characters of text after which an answer ends.
const ANSWER: usize = 40_000;
/// Maximum length of a call's title, characters.
const TITLE: usize = 400;
/// Assumed maximum number of events per item: determines how far before the end to look for the last items.
const EVENTS_AN_ITEM: u64 = 12;
/// Number of items per request.
const PAGE: usize = 50;

/// Which part of a conversation to read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadArguments {
    /// The session: its id, the agent's id, the name of its run, or at least 3 characters from the start or end of its
    /// id.
    session: String,
    /// Only items with a higher `sequence` (default 0: from the beginning). To read one item again, pass its sequence
    /// minus one.
    #[serde(default)]
    after: Option<u64>,
    /// Return this many of the last items instead (at most 50).
    #[serde(default)]
    last: Option<usize>,
    /// Only items of these types.
    #[serde(default)]
    types: Vec<ItemType>,
    /// Include the model's thinking if it is readable (default false).
    #[serde(default)]
    thinking: bool,
    /// Items in the answer (default 20, at most 100).
    #[serde(default)]
    limit: Option<usize>,
    /// Longest text, characters (default 2000, 100 to 20000).
    #[serde(default)]
    max_chars: Option<usize>,
    /// Offset at which texts begin, characters (default 0). To read on in a cut text, pass its `next_offset`.
    #[serde(default)]
    offset: usize,
}

/// The kind of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ItemType {
    /// The agent received a prompt.
    Prompt,
    /// The agent wrote a message.
    Message,
    /// The agent called a tool.
    ToolCall,
    /// The agent asked for permission.
    Approval,
    /// The agent asked the user a question.
    Question,
    /// The agent reported an error.
    Error,
    /// The context was compacted.
    Compaction,
    /// A turn ended.
    TurnEnd,
    /// A sub-agent whose starting call is unknown.
    Subagent,
}

/// A part of a conversation.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ConversationAnswer {
    /// How to read the texts of this answer.
    note: &'static str,
    /// The session's id.
    session: SessionId,
    /// The items, oldest first.
    items: Vec<ItemRow>,
    /// To continue the conversation, pass it as `after`. Absent if there are no more items yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_after: Option<u64>,
}

/// An item of a conversation.
#[derive(Debug, Serialize, JsonSchema)]
struct ItemRow {
    /// The sequence of its first event in the session.
    sequence: u64,
    /// When it began.
    at: Timestamp,
    /// Its kind.
    #[serde(rename = "type")]
    kind: ItemType,
    /// The agent's id of the sub-agent it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    sub_agent: Option<String>,
    /// The session ids of the sub-agents that the call started. Use them to read their conversations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sub_agent_sessions: Vec<SessionId>,
    /// Who asked, the tool, or the kind of error.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// In one line: the command, the file or the URL of a call or a permission request.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// The text: what was asked or said, the output of a tool, the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<TextPart>,
    /// The model's thinking.
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<TextPart>,
    /// The input of a tool, as the agent wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<TextPart>,
    /// The permission request.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval_id: Option<ApprovalId>,
    /// How a call, a permission request or a turn ended; absent while it is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<String>,
    /// The exit code of a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// How long a call or a turn took, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
}

/// Where to cut texts.
#[derive(Clone, Copy)]
struct Cut {
    offset: usize,
    most: usize,
    thinking: bool,
}

pub(super) fn read(link: &Link, arguments: &ReadArguments) -> Result<ConversationAnswer, ToolError> {
    let session = find(link, &arguments.session)?;
    let id = session.id.to_string();
    let (fewest, most) = TEXT_BOUNDS;
    let cut = Cut {
        offset: arguments.offset,
        most: arguments.max_chars.unwrap_or(TEXT).clamp(fewest, most),
        thinking: arguments.thinking,
    };
    let wanted = |item: &ConversationItem| arguments.types.is_empty() || arguments.types.contains(&type_of(&item.body));
    match (arguments.last, arguments.after) {
        (Some(_), Some(_)) => Err(ToolError::Argument("pass either `after` or `last`, not both".into())),
        (Some(last), None) => {
            let last = last.clamp(1, PAGE);
            let items = last_items(link, &id, session.last_sequence, last, wanted)?;
            Ok(ConversationAnswer {
                note: NOTE,
                session: session.id,
                items: bounded_end(&items, cut),
                next_after: None,
            })
        }
        (None, after) => {
            let limit = arguments.limit.unwrap_or(ITEMS.0).clamp(1, ITEMS.1);
            let (items, next_after) = items_behind(link, &id, after.unwrap_or_default(), limit, cut, wanted)?;
            Ok(ConversationAnswer { note: NOTE, session: session.id, items, next_after })
        }
    }
}

/// A page of items after a sequence, and the start of the next page.
fn page(link: &Link, id: &str, after: u64, limit: usize) -> Result<(Vec<ConversationItem>, Option<u64>), ToolError> {
    let query = ConversationQuery {
        after: Some(after),
        cursor: None,
        limit: Some(Limit::of(limit)),
        // Redact the whole text before it is cut.
        texts: Some(ConversationTexts::Whole),
    };
    let page = link.read(|client| client.get::<ReadConversation>(id, &query))?;
    let next = page.next_cursor.and_then(|cursor| cursor.parse().ok());
    Ok((page.items, next))
}

/// Items after a sequence, until there are enough items or enough text, and the start of the next page.
fn items_behind(
    link: &Link,
    id: &str,
    after: u64,
    limit: usize,
    cut: Cut,
    wanted: impl Fn(&ConversationItem) -> bool,
) -> Result<(Vec<ItemRow>, Option<u64>), ToolError> {
    let (mut rows, mut chars, mut after) = (Vec::new(), 0, after);
    loop {
        let (items, next) = page(link, id, after, (limit - rows.len()).min(PAGE))?;
        let last = items.last().map(|item| item.sequence);
        for item in items {
            if wanted(&item) {
                let row = row_of(&item, cut);
                chars += row.chars();
                rows.push(row);
            }
            let is_last = next.is_none() && last == Some(item.sequence);
            if !is_last && (rows.len() >= limit || chars >= ANSWER) {
                return Ok((rows, Some(item.sequence)));
            }
        }
        match next {
            Some(next) => after = next,
            None => return Ok((rows, None)),
        }
    }
}

/// The last items, oldest first. The number of events per item is unknown, so the search starts further and further
/// back.
fn last_items(
    link: &Link,
    id: &str,
    end: u64,
    last: usize,
    wanted: impl Fn(&ConversationItem) -> bool,
) -> Result<Vec<ConversationItem>, ToolError> {
    let mut reach = EVENTS_AN_ITEM.saturating_mul(last as u64);
    loop {
        let begin = end.saturating_sub(reach);
        let (mut found, mut after) = (Vec::new(), begin);
        loop {
            let (items, next) = page(link, id, after, PAGE)?;
            found.extend(items.into_iter().filter(&wanted));
            found.drain(..found.len().saturating_sub(last));
            match next {
                Some(next) => after = next,
                None => break,
            }
        }
        if found.len() == last || begin == 0 {
            return Ok(found);
        }
        reach = reach.saturating_mul(8);
    }
}

/// The rows of items, without the first ones if there is too much text.
fn bounded_end(items: &[ConversationItem], cut: Cut) -> Vec<ItemRow> {
    let (mut rows, mut chars) = (Vec::new(), 0);
    for item in items.iter().rev() {
        let row = row_of(item, cut);
        chars += row.chars();
        if chars > ANSWER && !rows.is_empty() {
            break;
        }
        rows.push(row);
    }
    rows.reverse();
    rows
}

const fn type_of(body: &ItemBody) -> ItemType {
    match body {
        ItemBody::Prompt { .. } => ItemType::Prompt,
        ItemBody::Message { .. } => ItemType::Message,
        ItemBody::ToolCall { .. } => ItemType::ToolCall,
        ItemBody::Approval { .. } => ItemType::Approval,
        ItemBody::Question { .. } => ItemType::Question,
        ItemBody::Error { .. } => ItemType::Error,
        ItemBody::Compaction { .. } => ItemType::Compaction,
        ItemBody::TurnEnd { .. } => ItemType::TurnEnd,
        ItemBody::Subagent(_) => ItemType::Subagent,
    }
}

impl ItemRow {
    fn chars(&self) -> usize {
        let texts = [&self.text, &self.thinking, &self.input].into_iter().flatten();
        texts.map(TextPart::chars).sum::<usize>() + self.title.as_ref().map_or(0, |title| title.len())
    }
}

fn row_of(item: &ConversationItem, cut: Cut) -> ItemRow {
    let part = |text: &str| TextPart::of(text, cut.offset, cut.most);
    let mut row = ItemRow {
        sequence: item.sequence,
        at: item.at,
        kind: type_of(&item.body),
        sub_agent: item.agent_id.as_deref().map(clean),
        sub_agent_sessions: Vec::new(),
        name: None,
        title: None,
        text: None,
        thinking: None,
        input: None,
        approval_id: None,
        outcome: None,
        exit_code: None,
        duration_ms: None,
    };
    match &item.body {
        ItemBody::Prompt { origin, text, .. } => {
            (row.name, row.text) = (Some(origin.to_string()), part(&text.text));
        }
        ItemBody::Message { thinking, text, .. } => {
            row.text = part(&text.text);
            row.thinking = thinking.as_deref().filter(|_| cut.thinking).and_then(part);
        }
        ItemBody::ToolCall { name, title, input, result, subagents, .. } => {
            row.sub_agent_sessions = subagents.iter().map(|subagent| subagent.session_id).collect();
            (row.name, row.title) = (Some(clean(name)), maybe_line(title.as_deref(), TITLE));
            row.input = part(&input.text);
            if let Some(result) = result {
                (row.outcome, row.exit_code) = (Some(result.outcome.to_string()), result.exit_code);
                (row.duration_ms, row.text) = (result.duration_ms, part(&result.text.text));
            }
        }
        ItemBody::Approval { approval_id, subject, state, .. } => {
            row.title = maybe_line(subject.as_deref(), TITLE);
            (row.approval_id, row.outcome) = (Some(approval_id.clone()), Some(state.to_string()));
        }
        ItemBody::Question { text, options, answer } => {
            let mut whole = text.text.clone();
            for option in options {
                whole = format!("{whole}\n- {option}");
            }
            if let Some(answer) = answer {
                whole = format!("{whole}\nAnswer: {}", answer.text);
            }
            row.text = part(&whole);
        }
        ItemBody::Error { class, text, .. } => {
            (row.name, row.text) = (Some(class.to_string()), part(&text.text));
        }
        ItemBody::Compaction { text, .. } => row.text = part(&text.text),
        ItemBody::Subagent(subagent) => {
            row.sub_agent_sessions = vec![subagent.session_id];
            (row.name, row.title) =
                (subagent.agent_type.as_deref().map(clean), maybe_line(subagent.title.as_deref(), TITLE));
        }
        ItemBody::TurnEnd { outcome, duration_ms, .. } => {
            (row.outcome, row.duration_ms) = (Some(outcome.to_string()), Some(*duration_ms));
        }
    }
    row
}
