//! The loop guard detects calls that are repeated without progress.
//!
//! Results are compared without clock times, dates, durations, addresses and hexadecimal ids ([`mask`]). Numbers count:
//! `10 %` and `20 %` are progress. Two rules apply to the calls since the last user message:
//!
//! - **The same calls**: up to [`PERIOD`] calls are repeated in the same order, with the same arguments and results. On
//!   the [`NOTE`]th occurrence the model gets a note, on the [`PAUSE`]th the turn is paused; on the [`PAUSE_SLOW`]th if
//!   a call takes long and succeeds, since it may be waiting for something.
//! - **The same results**, with any arguments: after [`NOTE_RESULTS`] calls the model gets a note, after
//!   [`PAUSE_RESULTS`] the turn is paused. Results of a few words count half. A call that changed a file does not
//!   count, nor does a refused call, whose result is unknown, nor a call that succeeded without output: a hundred files
//!   can be moved that way.
//!
//! A call that waits for something (a command that sleeps, or a check of a running background process) never ends a
//! turn: instead, the next request is delayed longer each time ([`wait_ms`]).

use std::collections::VecDeque;

use session_tree::{Json, Object};

use self::mask::masked;
use crate::{calls::text_block, input::CallOutput};

mod mask;

/// The occurrence of the same calls at which the model gets a note.
const NOTE: usize = 3;
/// The occurrence at which the turn is paused or the first delay is inserted.
const PAUSE: usize = 5;
/// The occurrence at which the turn is paused if a call takes long and succeeds.
const PAUSE_SLOW: usize = 20;
/// Number of calls with the same results after which the model gets a note.
const NOTE_RESULTS: usize = 8;
/// Number of calls with the same results after which the turn is paused or the first delay is inserted.
const PAUSE_RESULTS: usize = 20;
/// Factor by which the thresholds rise if the results are only a few words.
const QUIET_FACTOR: usize = 2;
/// Longest cycle of calls that counts as a repetition.
const PERIOD: usize = 6;
/// Number of calls remembered: enough for the longest cycle.
const REMEMBERED: usize = PAUSE_SLOW * PERIOD;
/// Maximum size of a result of a few words, in bytes.
const QUIET_BYTES: usize = 64;
/// Minimum duration of a call that may be waiting, in milliseconds.
const SLOW_MS: u64 = 5_000;
/// Minimum duration of a call that contains a word for waiting and does wait, in milliseconds.
const WAITING_MS: u64 = 500;
/// First delay before the next request, in milliseconds; it doubles with each repetition.
const FIRST_WAIT_MS: u64 = 1_000;
/// Longest delay, in milliseconds.
const LONGEST_WAIT_MS: u64 = 60_000;
/// The result of a command without output.
const NO_OUTPUT: &str = "(no output)";
/// Names of commands that wait.
const WAITING_WORDS: [&str; 4] = ["sleep", "wait", "watch", "inotifywait"];

/// The kind of a call, for the purposes of the guard. Its letter starts the identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallKind {
    /// It waited for something that has not happened.
    Waits,
    /// It took long and succeeded.
    Slow,
    /// It changed a file.
    Changes,
    /// It was not run: denied, unanswered, or above the limit of calls.
    Refused,
    /// It succeeded without output, so its result is not comparable.
    Silent,
    /// Its output is only a few words.
    Quiet,
    /// Any other.
    Plain,
}

impl CallKind {
    const ALL: [Self; 7] =
        [Self::Waits, Self::Slow, Self::Changes, Self::Refused, Self::Silent, Self::Quiet, Self::Plain];

    const fn letter(self) -> char {
        match self {
            Self::Waits => 'w',
            Self::Slow => 's',
            Self::Changes => 'c',
            Self::Refused => 'r',
            Self::Silent => 'n',
            Self::Quiet => 'q',
            Self::Plain => 'p',
        }
    }

    /// Whether its result can be compared with those of calls with other arguments.
    const fn is_comparable(self) -> bool {
        !matches!(self, Self::Changes | Self::Refused | Self::Silent)
    }
}

/// A call that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SeenCall {
    kind: CallKind,
    /// Tool, arguments and result.
    whole: String,
    /// Tool and result.
    result: String,
}

impl SeenCall {
    fn of(identity: &str) -> Option<Self> {
        let kind = CallKind::ALL.into_iter().find(|kind| identity.starts_with(kind.letter()))?;
        let (whole, result) = identity.get(1..)?.split_once('.')?;
        Some(Self { kind, whole: whole.to_owned(), result: result.to_owned() })
    }
}

/// The calls since the last user message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LoopGuard {
    recent: VecDeque<SeenCall>,
}

/// The guard's verdict on a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoopVerdict {
    /// No action.
    Fine,
    /// The model gets a note that this is the nth occurrence.
    Note(usize),
    /// The model gets a note that `calls` calls had `results` results in turn.
    NoteResults { calls: usize, results: usize },
    /// The next request is delayed by these milliseconds because this is the nth occurrence.
    Wait(usize, u64),
    /// The turn is paused.
    Pause,
}

impl LoopGuard {
    /// Records a call that has ended.
    pub(crate) fn push(&mut self, identity: &str) {
        let Some(seen) = SeenCall::of(identity) else { return };
        if self.recent.len() == REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.push_back(seen);
    }

    /// Forgets all calls.
    pub(crate) fn clear(&mut self) {
        self.recent.clear();
    }

    /// The verdict after recording this call.
    pub(crate) fn verdict_with(&self, identity: &str) -> LoopVerdict {
        let mut guard = self.clone();
        guard.push(identity);
        guard.verdict()
    }

    /// The verdict on the last call.
    pub(crate) fn verdict(&self) -> LoopVerdict {
        let verdicts = (1..=PERIOD).map(|period| self.verdict_of(period));
        let weight = |verdict: &LoopVerdict| match *verdict {
            LoopVerdict::Fine => (0, 0),
            LoopVerdict::Note(times) => (1, times),
            LoopVerdict::NoteResults { calls, .. } => (1, calls),
            LoopVerdict::Wait(times, _) => (2, times),
            LoopVerdict::Pause => (3, 0),
        };
        verdicts.max_by_key(weight).unwrap_or(LoopVerdict::Fine)
    }

    /// The verdict for cycles of this length.
    fn verdict_of(&self, period: usize) -> LoopVerdict {
        if self.recent.len() < period {
            return LoopVerdict::Fine;
        }
        let has = |kind: CallKind| self.recent.iter().rev().take(period).any(|call| call.kind == kind);
        let waits = has(CallKind::Waits);
        let same = self.run_of(period, |a, b| a.whole == b.whole);
        let times = same / period;
        // Only one call of a cycle gets the note.
        let is_round = same.is_multiple_of(period);
        let same_calls = if waits && times >= PAUSE {
            // Delay after each round, not after each call of a round.
            if is_round { LoopVerdict::Wait(times, wait_ms(times - PAUSE)) } else { LoopVerdict::Fine }
        } else if times >= if has(CallKind::Slow) { PAUSE_SLOW } else { PAUSE } {
            LoopVerdict::Pause
        } else if times == NOTE && is_round && !waits {
            LoopVerdict::Note(times)
        } else {
            LoopVerdict::Fine
        };
        if same_calls != LoopVerdict::Fine {
            return same_calls;
        }
        let alike_of = |period: usize| {
            self.run_of(period, |a, b| a.result == b.result && a.kind.is_comparable() && b.kind.is_comparable())
        };
        let alike = alike_of(period);
        let factor = if has(CallKind::Quiet) { QUIET_FACTOR } else { 1 };
        // A longer cycle must repeat as often as a single call, and calls that take long may be waiting.
        let rounds = if has(CallKind::Slow) && times >= PAUSE { PAUSE_SLOW } else { PAUSE };
        let most = (PAUSE_RESULTS * factor).max(rounds * period);
        let is_comparable = self.recent.iter().rev().take(period).all(|call| call.kind.is_comparable());
        if !is_comparable || alike < NOTE_RESULTS {
            LoopVerdict::Fine
        } else if alike >= most && waits {
            let over = (alike - most) / period;
            if alike.is_multiple_of(period) { LoopVerdict::Wait(alike, wait_ms(over)) } else { LoopVerdict::Fine }
        } else if alike >= most {
            LoopVerdict::Pause
        } else if alike == (NOTE_RESULTS * factor).max(NOTE * period)
            && times < NOTE
            // The note was already sent for a shorter cycle.
            && (1..period).all(|shorter| alike_of(shorter) < NOTE_RESULTS)
        {
            LoopVerdict::NoteResults { calls: alike, results: period }
        } else {
            LoopVerdict::Fine
        }
    }

    /// Number of calls at the end that form a cycle of this length.
    fn run_of(&self, period: usize, is_same: impl Fn(&SeenCall, &SeenCall) -> bool) -> usize {
        let pairs = self.recent.iter().rev().zip(self.recent.iter().rev().skip(period));
        pairs.take_while(|(a, b)| is_same(a, b)).count() + period
    }
}

/// The delay after this many repetitions beyond the threshold, in milliseconds.
fn wait_ms(over: usize) -> u64 {
    FIRST_WAIT_MS.saturating_mul(1 << over.min(16)).min(LONGEST_WAIT_MS)
}

/// The identity of a call: a letter for its kind, the hash of tool, arguments and result, a point, and the hash of tool
/// and result. `was_refused`: the output is the reason why the call was not run.
pub(crate) fn identity(tool: &str, arguments: &Object, output: &CallOutput, was_refused: bool) -> String {
    let mut result = blake3::Hasher::new();
    result.update(tool.as_bytes());
    let mut bytes = 0;
    for block in &output.content {
        let text = block.as_object().and_then(|block| block.text("text"));
        bytes += text.map_or(QUIET_BYTES + 1, |text| text.trim().len());
        result.update(&[0]);
        result.update(text.map_or_else(|| block.to_text(), masked).as_bytes());
    }
    let mut whole = result.clone();
    whole.update(&[1]);
    whole.update(canonical(&Json::Object(arguments.clone())).as_bytes());
    let kind = if was_refused { CallKind::Refused } else { kind_of(tool, arguments, output, bytes) };
    let short = |hasher: &blake3::Hasher| hasher.finalize().to_hex()[..16].to_owned();
    format!("{}{}.{}", kind.letter(), short(&whole), short(&result))
}

/// Whether a result is that of a command without output.
fn is_silent(output: &CallOutput) -> bool {
    let mut texts = output.content.iter().map(|block| block.as_object().and_then(|block| block.text("text")));
    texts.all(|text| text.is_some_and(|text| matches!(text.trim(), "" | NO_OUTPUT)))
}

/// The kind of a call whose result has this many bytes of text.
fn kind_of(tool: &str, arguments: &Object, output: &CallOutput, bytes: usize) -> CallKind {
    let details = output.details.as_ref();
    let detail = |key: &str| details.and_then(|details| details.get(key));
    let took_ms = detail("ms").and_then(Json::as_f64).unwrap_or_default();
    #[expect(clippy::cast_precision_loss, reason = "a limit of some seconds")]
    let takes = |limit_ms: u64| took_ms >= limit_ms as f64;
    let words = arguments.text("command").unwrap_or_default();
    let has_word = words.split(|c: char| !c.is_alphanumeric()).any(|word| WAITING_WORDS.contains(&word));
    // The details of a check of a background process name it if it still runs.
    let looks_at_running = tool == "process" && detail("background").is_some_and(|id| id.as_str().is_some());
    if looks_at_running || (has_word && takes(WAITING_MS)) {
        CallKind::Waits
    } else if !output.is_error && detail("changed").and_then(Json::as_array).is_some_and(|all| !all.is_empty()) {
        CallKind::Changes
    } else if !output.is_error && takes(SLOW_MS) {
        CallKind::Slow
    } else if !output.is_error && bytes <= NO_OUTPUT.len() && is_silent(output) {
        CallKind::Silent
    } else if bytes <= QUIET_BYTES {
        CallKind::Quiet
    } else {
        CallKind::Plain
    }
}

/// The note added to the result of a call.
pub(crate) fn note(verdict: LoopVerdict) -> Option<Json> {
    let text = match verdict {
        LoopVerdict::Note(times) => {
            format!("[This call was made {times} times with the same result. Try something else.]")
        }
        LoopVerdict::NoteResults { calls, results: 1 } => {
            format!("[The last {calls} calls had the same result. Try something else, or say what is missing.]")
        }
        LoopVerdict::NoteResults { calls, results } => format!(
            "[The last {calls} calls had the same {results} results in turn. Try something else, or say what is \
             missing.]"
        ),
        LoopVerdict::Wait(times, ms) => format!(
            "[The same result {times} times. The next request is sent after a wait of {} s. Wait longer in one command, \
             or do something else meanwhile.]",
            ms / 1000
        ),
        LoopVerdict::Fine | LoopVerdict::Pause => return None,
    };
    Some(text_block(text))
}

/// The JSON text of a value with the keys of objects sorted.
fn canonical(value: &Json) -> String {
    fn sorted(value: &Json) -> Json {
        match value {
            Json::Object(object) => {
                let mut pairs: Vec<_> = object.iter().map(|(key, value)| (key.to_owned(), sorted(value))).collect();
                pairs.sort_by(|a, b| a.0.cmp(&b.0));
                Json::Object(pairs.into_iter().collect())
            }
            Json::Array(items) => Json::Array(items.iter().map(sorted).collect()),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => value.clone(),
        }
    }
    sorted(value).to_text()
}

#[cfg(test)]
mod tests;
