//! The bytes of a body, block by block.

use std::{ops::Range, sync::Arc};

use session_tree::json::write_string;

use crate::{
    BlockHash, BlockKind, Target,
    body::{BodyText, RequestBody, SpillFile},
};

/// A written block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WireBlock {
    pub(crate) kind: BlockKind,
    /// The offset after its last byte.
    pub(crate) end: usize,
    /// The offset at which a marker is inserted, if it can have one.
    pub(crate) mark: Option<usize>,
    pub(crate) hash: BlockHash,
}

/// A call without a result so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingCall {
    /// Its id in the session.
    pub(crate) id: String,
    /// Its id on the wire.
    pub(crate) wire_id: String,
    pub(crate) name: String,
}

/// The state on which the encoding of the next message depends.
#[derive(Debug, Clone, Default)]
pub(crate) struct WireState {
    /// The opening text of the open message, to which blocks of the same role are appended.
    open: Option<&'static str>,
    /// Whether a message was written, so that the next one needs a comma.
    follows: bool,
    pending: Vec<PendingCall>,
    /// Images of results to be shown in a separate message, as JSON text.
    images: Vec<String>,
}

/// The encoded bytes.
#[derive(Debug, Clone)]
pub(crate) struct Wire {
    text: BodyText,
    blocks: Vec<WireBlock>,
    state: WireState,
    /// A hash of inputs that are not in the body, such as the name of the API.
    seed: BlockHash,
}

impl Wire {
    pub(crate) fn new(target: &Target) -> Self {
        let seed = format!("{}\n{}\n{}", target.api.name(), target.provider, target.model);
        Self {
            text: BodyText::default(),
            blocks: Vec::new(),
            state: WireState::default(),
            seed: hash(BlockHash([0; 16]), seed.as_bytes()),
        }
    }

    /// The number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    /// Appends a range of the bytes to a body.
    pub(crate) fn append_to(&self, range: Range<usize>, body: &mut RequestBody) {
        self.text.append_to(range, body);
    }

    /// Spills text that exceeds the memory limit to this file.
    pub(crate) fn spill_to(&mut self, spill: Arc<SpillFile>) {
        self.text.spill_to(spill);
    }

    /// The bytes after the last block.
    pub(crate) fn behind_blocks(&self) -> &[u8] {
        self.text.unsealed(self.blocks_end())
    }

    /// Seals the complete blocks, so that requests share them instead of copying them.
    pub(crate) fn seal(&mut self) {
        self.text.seal(self.blocks_end());
    }

    fn blocks_end(&self) -> usize {
        self.blocks.last().map_or(0, |block| block.end)
    }

    pub(crate) fn blocks(&self) -> &[WireBlock] {
        &self.blocks
    }

    pub(crate) fn state(&self) -> &WireState {
        &self.state
    }

    /// Restores the state with this number of blocks and these bytes after them.
    pub(crate) fn truncate(&mut self, blocks: usize, behind: &[u8], state: WireState) {
        self.blocks.truncate(blocks);
        self.text.truncate(self.blocks_end(), behind);
        self.state = state;
    }

    /// An empty text that continues from the current state.
    pub(crate) fn rest(&self) -> Self {
        Self { text: BodyText::default(), blocks: Vec::new(), state: self.state.clone(), seed: self.seed }
    }

    pub(crate) fn raw(&mut self, text: &str) {
        self.text.extend(text.as_bytes());
    }

    /// Writes `,` unless this is the first message.
    fn comma(&mut self) {
        if std::mem::replace(&mut self.state.follows, true) {
            self.raw(",");
        }
    }

    /// Ends a block that contains everything written since the last one. A marker would be inserted before the last
    /// `behind` bytes.
    pub(crate) fn end_block(&mut self, kind: BlockKind, behind: Option<usize>) {
        let before = self.blocks.last().map_or(self.seed, |block| block.hash);
        let end = self.text.len();
        let hash = hash(before, self.behind_blocks());
        self.blocks.push(WireBlock { kind, end, mark: behind.map(|behind| end - behind), hash });
    }

    /// Writes a message with one block.
    pub(crate) fn message(&mut self, text: &str, behind: Option<usize>) {
        self.close_message();
        self.comma();
        self.raw(text);
        self.end_block(BlockKind::Message, behind);
    }

    /// Writes a block of a message that starts with `opener` and ends with `]}`, continuing the open message if it
    /// started the same way.
    pub(crate) fn block_in(&mut self, opener: &'static str, text: &str, markable: bool) {
        if self.state.open == Some(opener) {
            self.raw(",");
        } else {
            self.close_message();
            self.comma();
            self.raw(opener);
            self.state.open = Some(opener);
        }
        self.raw(text);
        self.end_block(BlockKind::Message, markable.then_some(1));
    }

    /// Closes the open message.
    pub(crate) fn close_message(&mut self) {
        if self.state.open.take().is_some() {
            self.raw("]}");
        }
    }

    /// Records that the head contains a message.
    pub(crate) fn head_has_message(&mut self) {
        self.state.follows = true;
    }

    pub(crate) fn expect_result(&mut self, call: PendingCall) {
        self.state.pending.push(call);
    }

    pub(crate) fn take_pending(&mut self, id: &str) -> Option<PendingCall> {
        let at = self.state.pending.iter().position(|call| call.id == id)?;
        Some(self.state.pending.remove(at))
    }

    pub(crate) fn take_all_pending(&mut self) -> Vec<PendingCall> {
        std::mem::take(&mut self.state.pending)
    }

    pub(crate) fn show_image(&mut self, image: String) {
        self.state.images.push(image);
    }

    pub(crate) fn take_images(&mut self) -> Vec<String> {
        std::mem::take(&mut self.state.images)
    }
}

fn hash(before: BlockHash, bytes: &[u8]) -> BlockHash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&before.0);
    hasher.update(bytes);
    let mut hash = [0; 16];
    hash.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    BlockHash(hash)
}

/// JSON text, assembled in the order in which it is sent.
#[derive(Debug, Default)]
pub(crate) struct JsonText(String);

impl JsonText {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn raw(mut self, text: &str) -> Self {
        self.0.push_str(text);
        self
    }

    pub(crate) fn string(mut self, text: &str) -> Self {
        write_string(text, &mut self.0);
        self
    }

    /// Appends `text` and a string, if there is one.
    pub(crate) fn maybe(self, text: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.raw(text).string(value),
            None => self,
        }
    }

    pub(crate) fn done(self) -> String {
        self.0
    }
}
