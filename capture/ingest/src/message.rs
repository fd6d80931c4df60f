//! Merges the blocks of one message into one `assistant.message` event.

use events::{AssistantDelta, Block, NewEvent, Payload};

use super::transaction::Addition;

/// The position of the batch's message that may still get blocks.
#[derive(Debug, Default)]
pub(super) struct OpenMessage {
    at: Option<(usize, usize)>,
}

/// What happens to a block.
pub(super) enum Merge {
    /// It begins a message.
    New,
    /// It was merged into its message's event.
    Into,
    /// Its message is committed or already has text: the block becomes a delta.
    Delta,
}

impl OpenMessage {
    /// Merges a block into its message's event if that is not committed yet.
    pub(super) fn merge(
        &mut self,
        slot: usize,
        block: &NewEvent,
        last_message: Option<&str>,
        additions: &mut [Addition],
    ) -> Merge {
        let Payload::AssistantMessage(new) = &block.payload else { return Merge::New };
        let Some(id) = new.message_id.as_deref() else { return Merge::New };
        if last_message != Some(id) {
            return Merge::New;
        }
        let begun = self.at.filter(|(of, _)| *of == slot);
        let Some(begun) = begun.and_then(|(_, index)| additions.get_mut(index)) else { return Merge::Delta };
        let Payload::AssistantMessage(known) = &mut begun.event.payload else { return Merge::Delta };
        // The event is already folded, so fields the fold reads must not change.
        if known.message_id.as_deref() != Some(id)
            || block.text.is_some()
            || new.stop.is_some_and(|stop| known.stop != Some(stop))
        {
            return Merge::Delta;
        }
        known.blocks += new.blocks;
        known.tool_calls += new.tool_calls;
        begun.prepared.payload = None;
        Merge::Into
    }

    /// Records that the event at `index` of the batch begins a message.
    pub(super) fn begin(&mut self, slot: usize, index: usize) {
        self.at = Some((slot, index));
    }
}

/// A block of a known message as a separate event.
pub(super) fn as_delta(payload: &Payload) -> Option<Payload> {
    let Payload::AssistantMessage(message) = payload else { return None };
    Some(
        AssistantDelta {
            message_id: message.message_id.clone(),
            block: Block::Text,
            stop: message.stop,
            blocks: message.blocks,
        }
        .into(),
    )
}
