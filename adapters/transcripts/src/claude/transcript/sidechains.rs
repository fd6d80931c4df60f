//! Sub-agents whose lines stand between those of their session (up to 1.0.x): each is a session of its own, named by
//! its first line. A line belongs to the one whose line it follows.

use std::{collections::VecDeque, sync::Arc};

use serde::{Deserialize, Serialize};
use tailer::decode::{Decoded, Record};

use super::{ClaudeState, TranscriptDecoder};
use crate::claude::record::ClaudeLine;

/// Sub-agents of one session that are remembered.
const SIDECHAINS: usize = 8;
/// Lines of a sub-agent that another may follow.
const LAST_LINES: usize = 16;

/// A sub-agent inside a session's file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Sidechain {
    /// The uuid of its first line.
    id: String,
    /// The uuids of its last lines.
    last: VecDeque<String>,
    state: ClaudeState,
}

impl TranscriptDecoder {
    /// Reads a line of a sub-agent as its own decoder would.
    pub(super) fn sidechain(&mut self, line: ClaudeLine<'_>, record: &Record<'_>, out: &mut Decoded) {
        let Some(mut chain) = self.take_sidechain(&line) else { return };
        if let Some(uuid) = &line.uuid {
            if chain.last.len() == LAST_LINES {
                chain.last.pop_front();
            }
            chain.last.push_back(uuid.to_string());
        }
        let mut decoder = Self {
            session: Arc::from(chain.id.as_str()),
            parent: Some(self.foreign.clone().unwrap_or_else(|| Arc::clone(&self.session))),
            carried: std::mem::take(&mut chain.state),
            foreign: None,
            held: Vec::new(),
        };
        decoder.line(line, record, out);
        chain.state = decoder.carried;
        if self.carried.sidechains.len() == SIDECHAINS {
            self.carried.sidechains.remove(0);
        }
        self.carried.sidechains.push(chain);
    }

    /// The sub-agent a line is of: that of the line it follows, else the last; a new one when it follows none.
    fn take_sidechain(&mut self, line: &ClaudeLine<'_>) -> Option<Sidechain> {
        let chains = &mut self.carried.sidechains;
        let follows = |chain: &Sidechain| {
            line.parent_uuid.as_deref().is_some_and(|parent| chain.last.iter().any(|uuid| uuid == parent))
        };
        let known = chains.iter().position(follows);
        if let Some(at) = known {
            return Some(chains.remove(at));
        }
        match (&line.parent_uuid, &line.uuid) {
            (Some(_), _) | (None, None) if !chains.is_empty() => chains.pop(),
            (_, Some(uuid)) => Some(Sidechain { id: uuid.to_string(), ..Sidechain::default() }),
            (_, None) => None,
        }
    }
}
