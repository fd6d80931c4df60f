//! Ends of turns without a stop reason. Versions up to 2.1.101 wrote the lines of a message before the model had
//! stopped; in many of them (observed in 1.0.51 to 2.1.39) no line has a stop reason, in others (2.1.92 to 2.1.101) the
//! last line of nearly every message has one. A text counts as the likely end of its turn only in sessions whose
//! messages have no stop reason.

use std::sync::Arc;

use events::{Claim, Confidence, Signal, Timestamp, TurnOutcome};
use tailer::decode::{Decoded, Record};

use super::{EXTRA, TranscriptDecoder};
use crate::claude::{
    record::{ClaudeLine, ClaudeTokens},
    words::version_numbers,
};

/// The last version that wrote lines before the model had stopped.
const LAST_UNSAID: [u32; 3] = [2, 1, 101];
/// How long after a text a call of the same message may follow, ms: up to 28 s were observed in 300 messages.
const GOES_ON_MS: i64 = 30_000;
/// Output tokens reported at the start of a message: the final count is higher.
const FIRST_TOKENS: u64 = 8;
/// Maximum characters of text per token.
const CHARS_PER_TOKEN: u64 = 6;

impl TranscriptDecoder {
    /// Counts the messages with and without a stop reason, each when the next message begins.
    pub(super) fn count_stop(&mut self, message_id: Option<&str>, known: bool) {
        let carried = &mut self.carried;
        if carried.message.as_deref() != message_id {
            if carried.message.is_some() {
                let stops = &mut carried.stops[usize::from(!carried.message_stop_known)];
                *stops = stops.saturating_add(1);
            }
            carried.message = message_id.map(str::to_owned);
            carried.message_stop_known = false;
        }
        carried.message_stop_known |= known;
    }

    /// Handles a text of `chars` characters without a stop reason: the turn has ended if nothing follows.
    pub(super) fn unsaid_end(
        &mut self,
        line: &ClaudeLine<'_>,
        record: &Record<'_>,
        owner: &Arc<str>,
        chars: usize,
        tokens: Option<ClaudeTokens<'_>>,
        out: &mut Decoded,
    ) {
        let [known, unknown] = self.carried.stops;
        if known > unknown || !ends_are_unsaid(self.carried.version.as_deref()) {
            return;
        }
        let spent = tokens.and_then(|t| t.output_tokens).unwrap_or(0);
        let is_whole = spent > FIRST_TOKENS && chars as u64 <= spent.saturating_mul(CHARS_PER_TOKEN);
        let strength = if is_whole { Confidence::Medium } else { Confidence::Low };
        self.carried.may_have_ended = true;
        let said_at = self.time_of(line).unwrap_or(record.observed_at);
        let from = Some(said_at.plus_ms(GOES_ON_MS));
        self.likely_end(line, record, owner, from, strength, "a text, and nothing after it", out);
    }

    /// Emits that the turn has ended unless something follows before `holds_from`.
    #[expect(clippy::too_many_arguments, reason = "the parts of one signal")]
    pub(super) fn likely_end(
        &self,
        line: &ClaudeLine<'_>,
        record: &Record<'_>,
        owner: &Arc<str>,
        holds_from: Option<Timestamp>,
        strength: Confidence,
        words: &str,
        out: &mut Decoded,
    ) {
        let claim = Claim::TurnEnded { outcome: TurnOutcome::Completed, pending_subagents: 0 };
        let signal = Signal { holds_from, ..Signal::new(claim, strength, Some(words.to_owned())) };
        self.emit(line, record, owner, EXTRA + 1, signal, None, out);
    }
}

/// Whether a version may omit the stop reason. A line without a version counts as old.
fn ends_are_unsaid(version: Option<&str>) -> bool {
    let Some(version) = version else { return true };
    version_numbers(version).is_some_and(|version| version <= LAST_UNSAID)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_before_2_1_104_record_no_turn_ends() {
        for version in [None, Some("1.0.51"), Some("1.0.108"), Some("2.0.60"), Some("2.1.39"), Some("2.1.101")] {
            assert!(ends_are_unsaid(version), "{version:?}");
        }
        for version in ["2.1.104", "2.1.330", "2.2.0", "3.0.0", "", "next"] {
            assert!(!ends_are_unsaid(Some(version)), "{version}");
        }
    }
}
