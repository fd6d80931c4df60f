//! The decoder's state between two records, as it is stored in the cursor.
//!
//! Bounded: hashes of the last few hundred messages, one prompt, one standing. A message that
//! was forgotten and is seen again is told again, with the identities it had.

use std::{collections::VecDeque, sync::Arc};

use events::Timestamp;
use serde::{Deserialize, Serialize};

use super::standing::StandingRecord;
use crate::gemini::position::RecordPosition;

/// Maximum number of messages remembered.
const REMEMBERED: usize = 256;

/// A record with a longer text is not held back; bytes.
pub(super) const LONGEST_HELD: usize = 64 * 1024;

/// All that is remembered of one file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct GeminiMemory {
    /// The session, once a header named it.
    pub(super) session: Option<Arc<str>>,
    /// `session.started` was put out.
    pub(super) started: bool,
    /// The messages put out last, oldest first.
    pub(super) told: VecDeque<EmittedMessage>,
    /// A record whose meaning the next one decides.
    pub(super) held: Option<HeldRecord>,
    /// What the last record says about the state, if it says anything.
    pub(super) standing: Option<StandingRecord>,
    /// A turn is open: a prompt or an answer of the model came, and no end that a record names.
    pub(super) open: bool,
    /// The user refused a call of the last batch of tools.
    pub(super) denied: bool,
    /// A `$set.sessionId` came: the next `$set.messages` is a resume or a compaction.
    pub(super) reopened: bool,
    /// Since then the CLI writes its whole history again, under new ids, up to the next `$set.messages`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) copying: Option<Timestamp>,
    /// Records of this moment repeat, under new ids, what was compacted or restored.
    pub(super) restated: Option<Restated>,
}

/// One message that was put out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EmittedMessage {
    /// Hash of its id.
    pub(super) id: u64,
    /// Bytes of its text that were put out.
    pub(super) text: u32,
    /// Bytes of its content as it was written.
    pub(super) raw: u32,
    /// Its leading tool calls that were put out with their results.
    pub(super) calls: u32,
    /// Its usage was put out.
    pub(super) usage: bool,
}

/// A record put out later, when the next one has shown what it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum HeldRecord {
    /// A prompt, or the first record of a restored checkpoint.
    Prompt { id: String, at: Option<Timestamp>, place: RecordPosition, text: String, attachments: u32 },
    /// A compaction, asked for by the user or not.
    Compaction { id: String, at: Option<Timestamp>, place: RecordPosition, summary: String },
}

/// A history that is written again under new ids, all with the time of the rewriting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Restated {
    pub(super) at: Timestamp,
    /// Whether its first copy was already in this session (after a compaction), so that nothing
    /// of it is news; a restored checkpoint may come from another session.
    pub(super) known: bool,
}

impl Restated {
    /// Whether a record of that moment belongs to it. The copies are written in one go; no model
    /// answers within 5 ms.
    pub(super) fn covers(self, at: Option<Timestamp>) -> bool {
        at.is_some_and(|at| at.since_ms(self.at).abs() <= 5)
    }
}

/// Longest time in which a history is written again, ms: a record that is dated later is none of its copies. 168 copies
/// took 21 ms, and they are dated alike.
const COPYING_MS: i64 = 1_000;

impl GeminiMemory {
    /// Whether a record of that moment is a copy in a history that is being written again.
    pub(super) fn is_copied(&self, at: Option<Timestamp>) -> bool {
        self.copying.zip(at).is_some_and(|(since, at)| (0..=COPYING_MS).contains(&at.since_ms(since)))
    }

    /// Looks up a message by its id.
    pub(super) fn emitted(&mut self, id: u64) -> Option<&mut EmittedMessage> {
        self.told.iter_mut().rev().find(|t| t.id == id)
    }

    /// Remembers a message, forgetting the oldest if need be.
    pub(super) fn remember(&mut self, told: EmittedMessage) {
        if self.told.len() >= REMEMBERED {
            self.told.pop_front();
        }
        self.told.push_back(told);
    }
}

/// The hash of a message's id that is remembered.
pub(super) fn hash(id: &str) -> u64 {
    // FNV-1a: stable across versions of the program, which a state outlives.
    id.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}
