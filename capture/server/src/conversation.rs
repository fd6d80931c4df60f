//! Reads a page of a conversation from the store. Sub-agents are folded: clients read their conversations separately,
//! by the ids of their sessions.

use std::sync::Arc;

use events::{Kind, Payload, SessionId};
use live_view::SessionEntry;
use projections::{
    ConversationItem, ConversationItems, ItemBody, ItemText, PageOfItems, StartedSubagent, Subagent, subagents,
};
use store::{ReadError, Reader};

/// The kinds of events in a conversation.
const KINDS: &[Kind] = &[
    Kind::UserPrompt,
    Kind::AssistantMessage,
    Kind::AssistantDelta,
    Kind::ToolCall,
    Kind::ToolResult,
    Kind::ApprovalRequested,
    Kind::ApprovalResolved,
    Kind::QuestionAsked,
    Kind::QuestionAnswered,
    Kind::Error,
    Kind::ContextCompacted,
    Kind::TurnCompleted,
];
/// Number of events read at a time.
const PAGE: usize = 1_000;
/// How far before the page to search for the calls of results on the page, in sequences.
const LOOK_BACK: u64 = 1_000;
/// How far after the page to search for the results of calls on the page, in events.
const LOOK_AHEAD: usize = 5_000;
/// Maximum size of long texts on a page, bytes.
const TEXTS: u64 = 16 << 20;

/// Maximum number of sub-agents considered for a page.
const SUBAGENTS: usize = 200;
/// Maximum time between the last call of a page and the start of its sub-agent, ms.
const START_MS: i64 = 600_000;
/// Number of a sub-agent's first records searched for the reason it was started.
const FIRST_RECORDS: usize = 8;
/// Maximum size of a text compared to find the call of a sub-agent, bytes.
const COMPARED: u64 = 64 << 10;

/// Selects the items to read.
pub(crate) struct WantedPage {
    /// The session to read.
    pub(crate) session: SessionId,
    /// Select items that begin after this sequence.
    pub(crate) after: u64,
    /// Maximum number of items.
    pub(crate) limit: usize,
    /// Whether to include long texts in full.
    pub(crate) whole: bool,
    /// The session's sub-agents.
    pub(crate) children: Vec<Arc<SessionEntry>>,
}

/// The selected items with their sub-agents folded, and whether there are more.
pub(crate) fn page(reader: &Reader, wanted: &WantedPage) -> Result<(Vec<ConversationItem>, bool), ReadError> {
    let mut items = ConversationItems::behind(wanted.after);
    let mut from = wanted.after.saturating_sub(LOOK_BACK);
    let (mut left, mut ahead) = (if wanted.whole { TEXTS } else { 0 }, 0);
    loop {
        let events = reader.events(wanted.session, from, PAGE, KINDS)?;
        let is_last = events.len() < PAGE;
        for mut event in events {
            from = event.sequence;
            if from > wanted.after {
                reader.whole_text(&mut event, &mut left)?;
            }
            items.apply(&event);
        }
        let is_full = items.len() > wanted.limit;
        if is_last || is_full && (!items.has_open_calls() || ahead >= LOOK_AHEAD) {
            let items = with_subagents(reader, wanted, items.into_page(wanted.limit), is_full)?;
            return Ok((items, is_full));
        }
        ahead += if is_full { PAGE } else { 0 };
    }
}

/// Folds sub-agents into the items of a page: into the calls that started them, or, if no such call is known, after the
/// items they followed. Calls around the page may have started sub-agents that began within it.
fn with_subagents(
    reader: &Reader,
    wanted: &WantedPage,
    page: PageOfItems,
    has_more: bool,
) -> Result<Vec<ConversationItem>, ReadError> {
    let PageOfItems { before, items, after } = page;
    if wanted.children.is_empty() {
        return Ok(items);
    }
    let behind = |item: Option<&ConversationItem>| item.filter(|_| wanted.after > 0).map(|item| item.at);
    let oldest = behind(before.first().or(items.first())).map(|at| at.plus_ms(-START_MS));
    let page_begins = behind(before.last().or(items.first()));
    let page_ends = items.last().filter(|_| has_more).map(|item| item.at);
    let newest = page_ends.map(|at| at.plus_ms(START_MS));
    let mut near: Vec<&Arc<SessionEntry>> = wanted
        .children
        .iter()
        .filter(|child| oldest.is_none_or(|oldest| child.started_at >= oldest))
        .filter(|child| newest.is_none_or(|newest| child.started_at <= newest))
        .collect();
    near.sort_by_key(|child| child.started_at);
    let mut children = Vec::new();
    for child in near.into_iter().take(SUBAGENTS) {
        children.extend(started(reader, child)?);
    }
    let (first, last) = (before.len(), before.len() + items.len());
    let mut all: Vec<ConversationItem> = [before, items, after].into_iter().flatten().collect();
    let left_over = subagents::fold(&mut all, children, |text| whole_text(reader, text))?;
    all.truncate(last);
    let mut items = all.split_off(first);
    for child in left_over {
        let at = child.subagent.started_at;
        if page_begins.is_none_or(|from| at > from) && page_ends.is_none_or(|to| at <= to) {
            let index = items.partition_point(|item| item.at <= at);
            let sequence = index.checked_sub(1).and_then(|last| items.get(last)).map_or(wanted.after, |i| i.sequence);
            let body = ItemBody::Subagent(child.subagent);
            items.insert(index, ConversationItem { sequence, at, turn_id: None, agent_id: None, body });
        }
    }
    Ok(items)
}

/// Reads how a sub-agent was started; `None` if the store does not contain it.
fn started(reader: &Reader, child: &SessionEntry) -> Result<Option<StartedSubagent>, ReadError> {
    let Some(session) = reader.session(child.id)? else { return Ok(None) };
    let mut subagent = Subagent {
        session_id: session.id,
        agent_type: None,
        title: session.title,
        state: session.status.state,
        turns: session.turns,
        started_at: session.started_at,
        last_event_at: session.last_event_at,
    };
    let mut prompt = None;
    for event in reader.events(child.id, 0, FIRST_RECORDS, &[Kind::SessionStarted, Kind::UserPrompt])? {
        #[expect(clippy::wildcard_enum_match_arm, reason = "exactly two kinds were requested")]
        match event.payload {
            Payload::SessionStarted(started) => {
                // Use the agent's clock, like the records of its parent.
                subagent.started_at = subagent.started_at.min(event.created_at);
                subagent.agent_type = started.agent_type.or(subagent.agent_type);
            }
            Payload::UserPrompt(_) if prompt.is_none() => {
                prompt = event.text.map(|text| ItemText { text, text_ref: event.text_ref });
            }
            _ => {}
        }
    }
    Ok(Some(StartedSubagent { subagent, provider_session_id: session.provider_session_id, prompt }))
}

/// The complete text of a shortened one, if it is stored and not too long.
fn whole_text(reader: &Reader, text: &ItemText) -> Result<Option<String>, ReadError> {
    match text.text_ref.as_ref().filter(|part| part.stored && part.length <= COMPARED) {
        Some(part) => reader.text(&part.hash),
        None => Ok(None),
    }
}
