//! The loop guard: calls that are repeated and bring nothing new.
//!
//! Results are compared without clock times, dates, durations, addresses and hexadecimal ids ([`mask`]). Numbers count:
//! `10 %` and `20 %` are progress. Two rules look at the calls since the last message of a user:
//!
//! - **The same calls**: up to [`PERIOD`] calls come again in the same order, with the same arguments and results. At
//!   the [`NOTE`]th time the model is told, at the [`PAUSE`]th the turn is paused; at the [`PAUSE_SLOW`]th where a call
//!   takes long and succeeds, since it may be one that waits.
//! - **The same results**, whatever the arguments: at [`NOTE_RESULTS`] calls the model is told, at [`PAUSE_RESULTS`] the
//!   turn is paused. Results of a few words count half as much. A call that changed a file does not count, nor one
//!   that was refused: what it would have brought is unknown. Nor does one that succeeded and said nothing: a hundred
//!   files can be moved so.
//!
//! A call that waits for something (a command that sleeps, a look at a background process that runs) never ends a turn:
//! the next request waits longer each time instead ([`wait_ms`]).

use std::collections::VecDeque;

use session_tree::{Json, Object};

use self::mask::masked;
use crate::{calls::text_block, input::CallOutput};

mod mask;

/// At which repetition of the same calls the model is told.
const NOTE: usize = 3;
/// At which repetition the turn is paused, or the first wait is put in,
const PAUSE: usize = 5;
/// and at which it is paused when a call takes long and succeeds.
const PAUSE_SLOW: usize = 20;
/// After how many calls with the same results the model is told,
const NOTE_RESULTS: usize = 8;
/// and after how many the turn is paused, or the first wait is put in.
const PAUSE_RESULTS: usize = 20;
/// How much longer it takes where all that is said are a few words.
const QUIET_FACTOR: usize = 2;
/// Longest cycle of calls that counts as a repetition.
const PERIOD: usize = 6;
/// Number of calls that are remembered: enough for the longest cycle.
const REMEMBERED: usize = PAUSE_SLOW * PERIOD;
/// Longest result that is only a few words, in bytes.
const QUIET_BYTES: usize = 64;
/// How long a call takes that may be one that waits, in milliseconds.
const SLOW_MS: u64 = 5_000;
/// How long a call takes at least that has a word for waiting and does wait, in milliseconds.
const WAITING_MS: u64 = 500;
/// The first wait before the next request, in milliseconds; it doubles with each repetition.
const FIRST_WAIT_MS: u64 = 1_000;
/// The longest wait, in milliseconds.
const LONGEST_WAIT_MS: u64 = 60_000;
/// The result of a command that says nothing.
const NO_OUTPUT: &str = "(no output)";
/// Words of commands that wait.
const WAITING_WORDS: [&str; 4] = ["sleep", "wait", "watch", "inotifywait"];

/// What kind of call was made, as far as it matters here. Its letter begins the identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallKind {
    /// It waited for something that has not come.
    Waits,
    /// It took long and succeeded.
    Slow,
    /// It changed a file.
    Changes,
    /// It was not run: denied, unanswered, or one too many.
    Refused,
    /// It succeeded and said nothing: its result tells nothing of others.
    Silent,
    /// It said only a few words.
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

    /// Whether its result says something about calls with other arguments.
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

/// The calls since the last message of a user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LoopGuard {
    recent: VecDeque<SeenCall>,
}

/// What is to be done about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoopVerdict {
    /// Nothing.
    Fine,
    /// The model is told that this is the nth time.
    Note(usize),
    /// The model is told that this many calls brought this many results in turn.
    NoteResults { calls: usize, results: usize },
    /// The next request waits, in milliseconds, because this is the nth time.
    Wait(usize, u64),
    /// The turn is paused.
    Pause,
}

impl LoopGuard {
    /// Takes in a call that has ended.
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

    /// What is to be done once this call has been taken in.
    pub(crate) fn verdict_with(&self, identity: &str) -> LoopVerdict {
        let mut guard = self.clone();
        guard.push(identity);
        guard.verdict()
    }

    /// What is to be done about the last call.
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

    /// The verdict about a cycle of this length.
    fn verdict_of(&self, period: usize) -> LoopVerdict {
        if self.recent.len() < period {
            return LoopVerdict::Fine;
        }
        let has = |kind: CallKind| self.recent.iter().rev().take(period).any(|call| call.kind == kind);
        let waits = has(CallKind::Waits);
        let same = self.run_of(period, |a, b| a.whole == b.whole);
        let times = same / period;
        // One call of a cycle gets the note.
        let is_round = same.is_multiple_of(period);
        let same_calls = if waits && times >= PAUSE {
            // Between the rounds, not after each call of one.
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
        // A longer cycle has to come as often as to be one, and the same calls that take long may wait.
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
            // A shorter cycle has been told.
            && (1..period).all(|shorter| alike_of(shorter) < NOTE_RESULTS)
        {
            LoopVerdict::NoteResults { calls: alike, results: period }
        } else {
            LoopVerdict::Fine
        }
    }

    /// How many calls at the end make a cycle of this length.
    fn run_of(&self, period: usize, is_same: impl Fn(&SeenCall, &SeenCall) -> bool) -> usize {
        let pairs = self.recent.iter().rev().zip(self.recent.iter().rev().skip(period));
        pairs.take_while(|(a, b)| is_same(a, b)).count() + period
    }
}

/// The wait after this many repetitions too many, in milliseconds.
fn wait_ms(over: usize) -> u64 {
    FIRST_WAIT_MS.saturating_mul(1 << over.min(16)).min(LONGEST_WAIT_MS)
}

/// What makes two calls the same: a letter for its kind, the hash of tool, arguments and result, a point, and the hash
/// of tool and result. `was_refused`: the output says why the call was not run.
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

/// Whether a result is what commands without output have.
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
    // A background process that still runs is named in the details of a look at it.
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

/// What the model is told with the result of a call.
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

/// The text of a value with the keys of objects in order.
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
