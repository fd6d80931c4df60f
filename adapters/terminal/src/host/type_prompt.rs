//! Types text into a program's prompt, and presses Enter only if the prompt is still the same.
//!
//! As with the keys of a dialog (`press_answer`), two threads are involved. The thread that reads the screen owns the
//! [`Prompting`]: it asks the screen whether text may be typed ([`Observer::typing_gate`]), waits until the text
//! appears on the screen, and asks again before Enter. The thread that owns the terminal types ([`may_type`]):
//! immediately before, it reads all the program's output, and if that is more than the screen has parsed, it types
//! nothing and the screen is checked again. Both are pure.
//!
//! One race remains: a program that is about to open a dialog but has not written any of it when Enter arrives.

use std::time::Duration;

use crossbeam_channel::Sender;
use events::Timestamp;
use host_protocol::{claim::TypingGate, frame::PromptTyping};

use super::keys;
use crate::screen::{Observer, PromptMark};

/// Minimum time since the user last typed before text is typed: their own text may still be in the input line.
const HANDS_OFF: Duration = Duration::from_secs(5);
/// The reason reported when typing is refused for this.
const SOMEBODY_TYPES: &str = "another client is typing";
/// Delay between a text and its Enter, ms: agents treat input that arrives in one piece as a paste.
const BEFORE_ENTER_MS: i64 = 300;
/// Time within which the screen must show a typed text, ms.
const SHOWN_MS: i64 = 2_000;
/// Time within which the terminal must accept a text, and then Enter, ms.
const READY_MS: i64 = 1_500;
/// Time within which the screen must change after Enter, ms.
const TAKEN_MS: i64 = 2_000;
/// Interval between checks while waiting, ms.
const AGAIN_MS: i64 = 20;
/// Number of characters at the end of a text used to find it on the screen.
const SEEN: usize = 12;
/// The placeholder that agents show for a long paste.
const PASTED: &str = "[Pasted";

/// Bytes to type if nothing has changed.
#[derive(Debug)]
pub struct PromptKeys {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Bytes of the program's output that the screen model has parsed.
    pub parsed: u64,
    /// Whether this is the Enter after a text.
    pub after_text: bool,
    /// Receives the outcome.
    pub typed: Sender<PromptTyped>,
}

/// The outcome of typing bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptTyped {
    /// The bytes were typed.
    Yes,
    /// Nothing was typed because the program wrote output in the meantime. Check the screen again.
    NotNow,
    /// Nothing was typed, for this reason. A later attempt may succeed.
    No(&'static str),
}

/// The state of the terminal after all pending output was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputFacts {
    /// Bytes of the program's output passed on so far.
    pub passed: u64,
    /// Whether output is unread or cannot be read now.
    pub unread: bool,
    /// Whether the program has not yet read all typed bytes.
    pub waiting: bool,
    /// Whether the program is running: neither ended nor stopped.
    pub runs: bool,
    /// Time since the user last typed.
    pub typed: Option<Duration>,
    /// Time since the text was typed, and whether the same process group is still in the foreground.
    pub text: Option<(Duration, bool)>,
}

/// Whether the bytes may be typed.
///
/// # Errors
/// [`PromptTyped::NotNow`] or [`PromptTyped::No`].
pub fn may_type(keys: &PromptKeys, facts: &InputFacts) -> Result<(), PromptTyped> {
    if !facts.runs {
        return Err(PromptTyped::No("the program has ended, or is stopped"));
    }
    if facts.unread || facts.waiting || facts.passed != keys.parsed {
        return Err(PromptTyped::NotNow);
    }
    let hands_off = match facts.text.filter(|_| keys.after_text) {
        Some((_, false)) => return Err(PromptTyped::No("another program is in the foreground now")),
        Some((ago, true)) => ago,
        None => HANDS_OFF,
    };
    if facts.typed.is_some_and(|ago| ago < hands_off) {
        return Err(PromptTyped::No(SOMEBODY_TYPES));
    }
    Ok(())
}

/// Whether text may be typed at an open prompt, given the time since the user last typed.
pub fn gate(typed: Option<Duration>) -> TypingGate {
    if typed.is_some_and(|ago| ago < HANDS_OFF) {
        TypingGate::Busy { shows: SOMEBODY_TYPES.into() }
    } else {
        TypingGate::Open
    }
}

/// The next step.
#[derive(Debug)]
pub enum PromptStep {
    /// Do nothing before this moment, unless the program writes.
    Wait(Timestamp),
    /// Type these bytes and report the [`PromptTyped`].
    Type {
        /// The bytes.
        bytes: Vec<u8>,
        /// Whether this is the Enter after a text.
        after_text: bool,
    },
    /// Finished; an error means that nothing was typed and nothing will be.
    Done(Result<PromptTyping, String>),
}

/// A text that is being typed.
#[derive(Debug)]
pub struct Prompting {
    text: String,
    submit: bool,
    stage: PromptStage,
    /// The prompt the text is typed into.
    mark: Option<PromptMark>,
    /// How often the screen showed the text, and a paste placeholder, before it was typed.
    before: (usize, usize),
    /// The screen before the text, later the screen before Enter.
    screen: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PromptStage {
    /// The text must be typed by then.
    Text { until: Timestamp },
    /// Bytes were handed to the terminal thread.
    Handed { until: Timestamp, is_text: bool },
    /// Waiting for the text to appear on the screen.
    Shown { since: Timestamp },
    /// Enter must be pressed by then.
    Enter { until: Timestamp },
    /// Enter was pressed: waiting for the screen to change.
    Taken { until: Timestamp },
}

impl Prompting {
    /// Starts typing `text`.
    #[must_use]
    pub fn new(text: String, submit: bool, now: Timestamp) -> Self {
        let stage = PromptStage::Text { until: now.plus_ms(READY_MS) };
        Self { text, submit, stage, mark: None, before: (0, 0), screen: String::new() }
    }

    /// Performs the next step.
    pub fn step(&mut self, observer: &Observer, now: Timestamp) -> PromptStep {
        match self.stage {
            PromptStage::Text { until } => self.type_text(observer, now, until),
            PromptStage::Handed { .. } => PromptStep::Wait(now.plus_ms(TAKEN_MS)),
            PromptStage::Shown { since } => self.shown(observer, now, since),
            PromptStage::Enter { until } => self.press_enter(observer, now, until),
            PromptStage::Taken { until } => {
                let is_taken = !self.is_read() || observer.screen_text() != self.screen;
                if is_taken {
                    PromptStep::Done(Ok(PromptTyping::Typed))
                } else if now >= until {
                    unsubmitted("Enter was pressed, but the screen did not change")
                } else {
                    again(now, until)
                }
            }
        }
    }

    /// Handles the outcome of bytes handed to the terminal thread.
    pub fn typed(&mut self, typed: PromptTyped, now: Timestamp) -> Option<PromptStep> {
        let PromptStage::Handed { until, is_text } = self.stage else { return None };
        match typed {
            PromptTyped::Yes if is_text => self.stage = PromptStage::Shown { since: now },
            PromptTyped::Yes => self.stage = PromptStage::Taken { until: now.plus_ms(TAKEN_MS) },
            PromptTyped::NotNow if is_text => self.stage = PromptStage::Text { until },
            PromptTyped::NotNow => self.stage = PromptStage::Enter { until },
            PromptTyped::No(why) if is_text => return Some(refused(busy(why))),
            PromptTyped::No(why) => return Some(unsubmitted(why)),
        }
        None
    }

    fn type_text(&mut self, observer: &Observer, now: Timestamp, until: Timestamp) -> PromptStep {
        let gate = observer.typing_gate(now);
        if gate != TypingGate::Open {
            return refused(gate);
        }
        if now >= until {
            return refused(busy("its screen keeps changing"));
        }
        let mark = observer.prompt_mark();
        self.before = (observer.occurrences(end_of(&self.text)), observer.occurrences(PASTED));
        let is_read = mark.is_read();
        self.screen = observer.screen_text();
        self.mark = Some(mark);
        if self.text.is_empty() {
            self.stage = PromptStage::Enter { until };
            return self.step(observer, now);
        }
        match bytes(&self.text, is_read, observer.accepts_pastes()) {
            Ok(bytes) => {
                self.stage = PromptStage::Handed { until, is_text: true };
                PromptStep::Type { bytes, after_text: false }
            }
            Err(why) => PromptStep::Done(Err(why.to_owned())),
        }
    }

    /// Proceeds to Enter once the text is on the screen. A program that does not show the text is not reading its input
    /// yet, and Enter would reach whatever it opens next.
    fn shown(&mut self, observer: &Observer, now: Timestamp, since: Timestamp) -> PromptStep {
        let (text, pastes) = self.before;
        let is_shown = || observer.occurrences(end_of(&self.text)) > text || observer.occurrences(PASTED) > pastes;
        let (settled, until) = (since.plus_ms(BEFORE_ENTER_MS), since.plus_ms(SHOWN_MS));
        if now < settled {
            return PromptStep::Wait(settled);
        }
        if self.is_read() && !is_shown() {
            if now < until {
                return again(now, until);
            }
            if observer.screen_text() == self.screen {
                return unsubmitted("the screen does not show the text");
            }
        }
        if !self.submit {
            return PromptStep::Done(Ok(PromptTyping::Typed));
        }
        self.stage = PromptStage::Enter { until: now.plus_ms(READY_MS) };
        self.step(observer, now)
    }

    fn press_enter(&mut self, observer: &Observer, now: Timestamp, until: Timestamp) -> PromptStep {
        let Some(mark) = &self.mark else { return unsubmitted("capture does not know the prompt") };
        if let Err(shows) = observer.is_still_at(mark) {
            return match now >= until {
                true => unsubmitted(&format!("the screen changed ({shows})")),
                false => again(now, until),
            };
        }
        if now >= until {
            return unsubmitted("its screen keeps changing");
        }
        self.screen = observer.screen_text();
        self.stage = PromptStage::Handed { until, is_text: false };
        PromptStep::Type { bytes: b"\r".to_vec(), after_text: !self.text.is_empty() }
    }

    fn is_read(&self) -> bool {
        self.mark.as_ref().is_some_and(PromptMark::is_read)
    }
}

/// Finishes: the text was typed but not submitted.
fn unsubmitted(why: &str) -> PromptStep {
    PromptStep::Done(Ok(PromptTyping::NotSubmitted { why: why.to_owned() }))
}

fn refused(gate: TypingGate) -> PromptStep {
    PromptStep::Done(Ok(PromptTyping::Refused { gate }))
}

fn busy(shows: &str) -> TypingGate {
    TypingGate::Busy { shows: shows.to_owned() }
}

fn again(now: Timestamp, until: Timestamp) -> PromptStep {
    PromptStep::Wait(until.min(now.plus_ms(AGAIN_MS)))
}

/// The end of a text, which an input line shows however long the text is.
fn end_of(text: &str) -> &str {
    let line = text.trim_end().rsplit('\n').next().unwrap_or_default().trim();
    line.char_indices().rev().nth(SEEN - 1).map_or(line, |(at, _)| &line[at..])
}

/// The bytes sent to the program for a text. In a prompt a control character could act as a key, and a newline outside
/// a paste would submit.
fn bytes(text: &str, is_read: bool, pastes: bool) -> Result<Vec<u8>, &'static str> {
    if is_read && text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
        return Err("the text was not typed: it contains control characters");
    }
    match (text.contains(['\n', '\t']), pastes) {
        (true, true) => Ok(keys::paste(text)),
        (true, false) if is_read => {
            Err("the text was not typed: it has several lines, and the program does not accept bracketed paste")
        }
        (true | false, _) => Ok(text.as_bytes().to_vec()),
    }
}

#[cfg(test)]
mod tests;
