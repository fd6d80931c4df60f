//! Sub-agents whose lines are interleaved with those of their session (up to 1.0.x): each is a separate session, named
//! after its first line. A line belongs to the sub-agent whose line it follows.

use std::sync::Arc;

use tailer::decode::{Decoded, Record};

use super::{TranscriptDecoder, state::Sidechain};
use crate::claude::record::ClaudeLine;

/// Maximum number of sub-agents remembered per session.
const SIDECHAINS: usize = 8;
/// Maximum number of a sub-agent's last lines remembered, for lines that follow them.
const LAST_LINES: usize = 16;

impl TranscriptDecoder {
    /// Decodes a line of a sub-agent as the sub-agent's own decoder would.
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

    /// The sub-agent of a line: that of the line it follows, else the last one; a new one if it follows no line.
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
