//! The decoder's state between two records, stored in the cursor.
//!
//! Bounded: hashes of the last few hundred messages, one prompt, one standing record. A message that was dropped from
//! the state and appears again is emitted again, with the same identities.

use std::{collections::VecDeque, sync::Arc};

use events::Timestamp;
use serde::{Deserialize, Serialize};

use super::standing::StandingRecord;
use crate::gemini::position::RecordPosition;

/// Maximum number of messages remembered.
const REMEMBERED: usize = 256;

/// Maximum text of a record that is held back, bytes.
pub(super) const LONGEST_HELD: usize = 64 * 1024;

/// The state for one file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct GeminiMemory {
    /// The session, once a header named it.
    pub(super) session: Option<Arc<str>>,
    /// Whether `session.started` was emitted.
    pub(super) started: bool,
    /// The messages emitted last, oldest first.
    pub(super) told: VecDeque<EmittedMessage>,
    /// A record whose meaning depends on the next one.
    pub(super) held: Option<HeldRecord>,
    /// The last record and its claim about the state, if it has one.
    pub(super) standing: Option<StandingRecord>,
    /// Whether a turn is open: a prompt or an answer of the model was recorded, but no end.
    pub(super) open: bool,
    /// Whether the user refused a call of the last batch of tools.
    pub(super) denied: bool,
    /// Whether a `$set.sessionId` was recorded: the next `$set.messages` is a resume or a compaction.
    pub(super) reopened: bool,
    /// Since then the CLI has been rewriting its whole history, under new ids, up to the next `$set.messages`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) copying: Option<Timestamp>,
    /// Records with this time repeat, under new ids, a compacted or restored history.
    pub(super) restated: Option<Restated>,
}

/// A message that was emitted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EmittedMessage {
    /// Hash of its id.
    pub(super) id: u64,
    /// Emitted bytes of its text.
    pub(super) text: u32,
    /// Bytes of its content as written.
    pub(super) raw: u32,
    /// Number of its leading tool calls that were emitted with their results.
    pub(super) calls: u32,
    /// Whether its usage was emitted.
    pub(super) usage: bool,
}

/// A record that is emitted once the next one has shown its meaning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum HeldRecord {
    /// A prompt, or the first record of a restored checkpoint.
    Prompt { id: String, at: Option<Timestamp>, place: RecordPosition, text: String, attachments: u32 },
    /// A compaction, requested by the user or automatic.
    Compaction { id: String, at: Option<Timestamp>, place: RecordPosition, summary: String },
}

/// A history that is repeated under new ids, all with the time of the rewrite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Restated {
    pub(super) at: Timestamp,
    /// Whether its first copy was already in this session (after a compaction), so that all of it is known; a restored
    /// checkpoint may come from another session.
    pub(super) known: bool,
}

impl Restated {
    /// Whether a record with that time belongs to the rewrite. The copies are written at once; no model answers within
    /// 5 ms.
    pub(super) fn covers(self, at: Option<Timestamp>) -> bool {
        at.is_some_and(|at| at.since_ms(self.at).abs() <= 5)
    }
}

/// Maximum duration of a rewrite of the history, ms: a record with a later time is not one of its copies. Writing 168
/// copies took 21 ms, and they all have the same time.
const COPYING_MS: i64 = 1_000;

impl GeminiMemory {
    /// Whether a record with that time is a copy in a history being rewritten.
    pub(super) fn is_copied(&self, at: Option<Timestamp>) -> bool {
        self.copying.zip(at).is_some_and(|(since, at)| (0..=COPYING_MS).contains(&at.since_ms(since)))
    }

    /// Looks up a message by its id.
    pub(super) fn emitted(&mut self, id: u64) -> Option<&mut EmittedMessage> {
        self.told.iter_mut().rev().find(|t| t.id == id)
    }

    /// Remembers a message, dropping the oldest if necessary.
    pub(super) fn remember(&mut self, told: EmittedMessage) {
        if self.told.len() >= REMEMBERED {
            self.told.pop_front();
        }
        self.told.push_back(told);
    }
}

/// The hash by which a message's id is remembered.
pub(super) fn hash(id: &str) -> u64 {
    // FNV-1a: stable across versions of the program, because the state outlives them.
    id.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}
