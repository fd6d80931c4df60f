//! The messages of a session, encoded once for one model, however many requests are sent.

use std::sync::Arc;

use session_tree::{Object, llm::message_for_model};

use crate::{
    Api, CacheTtl, EncodedRequest, MAX_MARKERS, Marker, MarkerError, MarkerPlace, Prefix, RequestBody, SpillFile,
    Target, TargetError,
    codec::{self, Wire, WireState},
    message,
};

/// The hash of a body up to the end of a block, without markers. Two requests share a prefix exactly up to the last
/// equal hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockHash(pub [u8; 16]);

/// The kind of a block of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// Model, thinking and other settings that are part of the vendor's cache key.
    Settings,
    /// The tools.
    Tools,
    /// The system prompt.
    System,
    /// A block of a message.
    Message,
}

/// A block in the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainBlock {
    /// Its kind.
    pub kind: BlockKind,
    /// Its entry, counted from 0 in the order they were pushed; `None` before the messages.
    pub entry: Option<usize>,
    /// Its size in the body, including the preceding punctuation.
    pub bytes: usize,
    /// The hash of the body up to its end.
    pub hash: BlockHash,
    /// Whether it can have a marker.
    pub markable: bool,
}

/// The encoded messages.
#[derive(Debug, Clone)]
pub struct Transcript {
    target: Target,
    wire: Wire,
    /// Number of blocks before the messages.
    head_blocks: usize,
    /// The state after each entry; the first is the state before all entries.
    entries: Vec<EntryEnd>,
}

#[derive(Debug, Clone)]
struct EntryEnd {
    blocks: usize,
    /// The bytes after the last of these blocks.
    behind: Box<[u8]>,
    state: WireState,
    /// The entry's key, if it has one.
    key: Option<Box<str>>,
}

impl Transcript {
    /// A transcript with the fixed prefix.
    ///
    /// # Errors
    /// If a vendor would refuse the settings in every request.
    pub fn new(target: Target, prefix: &Prefix) -> Result<Self, TargetError> {
        target.check()?;
        let mut wire = Wire::new(&target);
        codec::head(&target, prefix, &mut wire);
        let head_blocks = wire.blocks().len();
        let mut transcript = Self { target, wire, head_blocks, entries: Vec::new() };
        transcript.entries.push(transcript.end());
        Ok(transcript)
    }

    /// Spills text that exceeds the memory limit to this file.
    #[must_use]
    pub fn spilling_to(mut self, spill: Arc<SpillFile>) -> Self {
        self.wire.spill_to(spill);
        self
    }

    /// The model it is encoded for.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Appends a message of a session, of any role, and returns its index. A message that is not sent to the model (a
    /// failed answer, a system message, a result without its call) becomes an entry without blocks.
    pub fn push(&mut self, message: &Object) -> usize {
        if let Some(message) = message_for_model(message)
            && let Some(turn) = message::turn(&self.target, &message)
        {
            codec::push(&self.target, &turn, &mut self.wire);
        }
        self.entries.push(self.end());
        self.wire.seal();
        self.entries.len() - 2
    }

    /// Makes the transcript that of these messages: keeps the common beginning, removes the rest and pushes the missing
    /// messages. A key identifies a message with its content, such as the id of its entry; messages without a key are
    /// encoded again each time.
    pub fn sync<'a>(&mut self, messages: impl IntoIterator<Item = (Option<&'a str>, &'a Object)>) {
        let messages: Vec<_> = messages.into_iter().collect();
        let same = self.known(messages.iter().map(|(key, _)| *key));
        self.truncate(same);
        for (key, message) in messages.into_iter().skip(same) {
            self.push(message);
            if let Some(end) = self.entries.last_mut() {
                end.key = key.map(Box::from);
            }
        }
    }

    /// Number of the messages with these keys that are already encoded, counted from the first: [`sync`](Self::sync)
    /// does not read these.
    pub fn known<'a>(&self, keys: impl IntoIterator<Item = Option<&'a str>>) -> usize {
        let ends = self.entries.iter().skip(1);
        let is_same = |(key, end): &(Option<&str>, &EntryEnd)| key.is_some() && end.key.as_deref() == *key;
        keys.into_iter().zip(ends).take_while(is_same).count()
    }

    /// Number of entries pushed.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.entries.len() - 1
    }

    /// Number of blocks of an entry; 0 if there is no such entry.
    #[must_use]
    pub fn blocks_of(&self, entry: usize) -> usize {
        let end = |at: usize| self.entries.get(at).map_or(0, |end| end.blocks);
        end(entry + 1).saturating_sub(end(entry))
    }

    /// Removes entries from the end until `entries` are left, for another branch of the session.
    pub fn truncate(&mut self, entries: usize) {
        self.entries.truncate(entries + 1);
        if let Some(end) = self.entries.last() {
            self.wire.truncate(end.blocks, &end.behind, end.state.clone());
        }
    }

    /// The chain of all blocks.
    pub fn chain(&self) -> impl Iterator<Item = ChainBlock> + '_ {
        let ends = &self.entries;
        let mut from = 0;
        self.wire.blocks().iter().enumerate().map(move |(at, block)| {
            let bytes = block.end - from;
            from = block.end;
            // The first entry whose end is after the block.
            let entry = (at >= self.head_blocks).then(|| ends.partition_point(|end| end.blocks <= at) - 1);
            ChainBlock { kind: block.kind, entry, bytes, hash: block.hash, markable: block.mark.is_some() }
        })
    }

    /// The request for the next answer. `cache_key` routes requests with the same prefix to the same cache, for vendors
    /// with such a key: the session's id, for a sub-agent its parent's.
    ///
    /// APIs without markers ignore them.
    ///
    /// # Errors
    /// If the markers cannot be placed.
    pub fn request(&self, cache_key: Option<&str>, markers: &[Marker]) -> Result<EncodedRequest, MarkerError> {
        let placed = self.place(markers)?;
        let mut rest = self.wire.rest();
        codec::close(&self.target, &mut rest);
        let tail = codec::tail(&self.target, cache_key);
        let mut body = RequestBody::default();
        let mut from = 0;
        for (_, at, ttl) in &placed {
            self.wire.append_to(from..*at, &mut body);
            body.push(ttl.text());
            from = *at;
        }
        self.wire.append_to(from..self.wire.len(), &mut body);
        rest.append_to(0..rest.len(), &mut body);
        body.push(tail);
        Ok(EncodedRequest {
            api: self.target.api,
            path: codec::path(&self.target),
            body,
            markers: placed.into_iter().map(|(place, ..)| place).collect(),
            blocks: self.wire.blocks().len(),
        })
    }

    /// The position, offset and time to live of each marker, in the order of the body, without duplicate offsets.
    fn place(&self, markers: &[Marker]) -> Result<Vec<(MarkerPlace, usize, CacheTtl)>, MarkerError> {
        if markers.len() > MAX_MARKERS {
            return Err(MarkerError::TooMany(markers.len()));
        }
        let takes_markers = match self.target.api {
            Api::Anthropic => true,
            Api::Chat => self.target.chat.cache_control,
            Api::Responses | Api::Gemini => false,
        };
        let mut placed: Vec<(MarkerPlace, usize, CacheTtl)> = Vec::new();
        for marker in markers {
            if let Some(at) = self.offset(marker.place)?.filter(|_| takes_markers)
                && placed.iter().all(|(_, other, _)| *other != at)
            {
                placed.push((marker.place, at, marker.ttl));
            }
        }
        placed.sort_by_key(|(_, at, _)| *at);
        let hour_later =
            |pair: &[(MarkerPlace, usize, CacheTtl)]| pair[0].2 == CacheTtl::FiveMinutes && pair[1].2 == CacheTtl::Hour;
        if placed.windows(2).any(hour_later) { Err(MarkerError::HourAfterFiveMinutes) } else { Ok(placed) }
    }

    /// The offset of a marker; `None` if no block there can have one.
    fn offset(&self, place: MarkerPlace) -> Result<Option<usize>, MarkerError> {
        let blocks = self.wire.blocks();
        let range = match place {
            MarkerPlace::System => 0..self.head_blocks,
            MarkerPlace::Entry(entry) | MarkerPlace::Block { entry, .. } => {
                let from = self.entries.get(entry).ok_or(MarkerError::NoEntry(entry))?.blocks;
                let to = self.entries.get(entry + 1).ok_or(MarkerError::NoEntry(entry))?.blocks;
                match place {
                    MarkerPlace::Block { block, .. } => from..to.min(from + block + 1),
                    MarkerPlace::System | MarkerPlace::Entry(_) => from..to,
                }
            }
        };
        Ok(blocks[range].iter().rev().find_map(|block| block.mark))
    }

    fn end(&self) -> EntryEnd {
        EntryEnd {
            blocks: self.wire.blocks().len(),
            behind: self.wire.behind_blocks().into(),
            state: self.wire.state().clone(),
            key: None,
        }
    }
}

#[cfg(test)]
mod tests;
