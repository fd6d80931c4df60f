//! Reads a page of a conversation from the store.

use events::{Kind, SessionId};
use projections::{ConversationItem, ConversationItems};
use store::{ReadError, Reader};

/// Kinds that a conversation is made of.
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
/// Events read at a time.
const PAGE: usize = 1_000;
/// How far before the page calls are looked for whose results come on it, sequences.
const LOOK_BACK: u64 = 1_000;
/// How far behind the page results of its calls are looked for, events.
const LOOK_AHEAD: usize = 5_000;
/// Most bytes of long texts on a page.
const TEXTS: u64 = 16 << 20;

/// At most `limit` items that begin behind a sequence, and whether there are more.
pub(crate) fn page(
    reader: &Reader,
    session: SessionId,
    after: u64,
    limit: usize,
    whole: bool,
) -> Result<(Vec<ConversationItem>, bool), ReadError> {
    let mut items = ConversationItems::behind(after);
    let mut from = after.saturating_sub(LOOK_BACK);
    let (mut left, mut ahead) = (if whole { TEXTS } else { 0 }, 0);
    loop {
        let events = reader.events(session, from, PAGE, KINDS)?;
        let is_last = events.len() < PAGE;
        for mut event in events {
            from = event.sequence;
            if from > after {
                reader.whole_text(&mut event, &mut left)?;
            }
            items.apply(&event);
        }
        let is_full = items.len() > limit;
        if is_last || is_full && (!items.has_open_calls() || ahead >= LOOK_AHEAD) {
            return Ok((items.into_items(limit), is_full));
        }
        ahead += if is_full { PAGE } else { 0 };
    }
}
